"""The table of a sweep: its columns, and its bytes as CSV or parquet."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from exactsel.errors import InputError, UnsupportedError
from exactsel.files import check_target

COLUMNS: dict[str, type] = {
    "instance": str, "instance_hash": str, "problem": str, "n": int, "d": int, "k": int, "loss": str, "delta": float,
    "lam": float, "method": str, "seed": int, "rng_seed": int, "settings": str, "status": str, "upper": float,
    "lower": float, "gap": float, "absolute_gap": float, "claim": str, "termination": str, "valid_for": str, "support":
    str, "names": str, "nodes": int, "seconds": float, "tree_hash": str, "error": str, "key": str, "version": str,
}  # fmt: skip
"""Names and types; what is not known is empty."""

ENDINGS = (".csv", ".parquet")

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""How texts begin that spreadsheets may take for formulas."""


def check_table(file: str | os.PathLike[str]) -> None:
    """:class:`InputError` now rather than after all jobs where a table cannot be written."""
    ending = Path(file).suffix.lower()
    if ending not in ENDINGS:
        raise InputError(f"the table {Path(file)} must have a name that ends in .csv or .parquet; choose one.")
    check_target(file)
    if ending == ".parquet":
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError:
            raise UnsupportedError(
                "a parquet file needs pyarrow; run: pip install 'exactsel[frames]', or give a table that ends in .csv."
            ) from None


def table_bytes(rows: Iterable[Mapping[str, Any]], file: str | os.PathLike[str]) -> bytes:
    """The table in the format of its name's ending; equal rows give equal bytes."""
    if Path(file).suffix.lower() == ".parquet":
        return _parquet(rows)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow(_cell(row.get(name)) for name in COLUMNS)
    return out.getvalue().encode("utf-8", "backslashreplace")


def _cell(value: object) -> object:
    """A value as a cell of a CSV table: a text that may be a formula to a spreadsheet gets an apostrophe before it."""
    if value is None:
        return ""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def _parquet(rows: Iterable[Mapping[str, Any]]) -> bytes:
    import pyarrow
    import pyarrow.parquet

    kinds = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64()}
    held = list(rows)
    arrays = {
        name: pyarrow.array([row.get(name) for row in held], type=kinds[kind]) for name, kind in COLUMNS.items()
    }  # fmt: skip
    out = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(arrays), out)
    return out.getvalue()
