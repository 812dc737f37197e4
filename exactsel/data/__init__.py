"""Data as people have them: files of many kinds and data frames, turned into instances."""

from exactsel.data.reading import FORMATS, load, read_columns, read_data
from exactsel.data.tables import instance_from

__all__ = ["FORMATS", "instance_from", "load", "read_columns", "read_data"]
