"""The unpacked size of a parquet or feather file, from the headers of its compressed parts.

A part says how many bytes it takes, and no decompressor writes more than it was promised. These numbers stand in thrift
(compact protocol) in parquet files, and in flatbuffers or beside the bytes in feather files.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from exactsel.data.sizes import Budget

if TYPE_CHECKING:
    import pyarrow.parquet

MOST_PAGES = 10**6
DEEPEST = 20
"""Structures inside each other, in a page header."""


def parquet_bytes(data: bytes, metadata: pyarrow.parquet.FileMetaData, budget: Budget) -> None:
    """Take what the pages of a parquet file unpack to; ``metadata`` is pyarrow's reading of its footer.

    Raises
    ------
    InputError
        When that is more than is left.
    ValueError, IndexError
        When a page is not where it should be.
    """
    pages = 0
    for g in range(metadata.num_row_groups):
        group = metadata.row_group(g)
        for j in range(group.num_columns):
            chunk = group.column(j)
            budget.take(2 * max(0, chunk.num_values))
            starts = [chunk.data_page_offset, chunk.dictionary_page_offset]
            place = min(start for start in starts if start is not None and start > 0)
            end = place + chunk.total_compressed_size
            if chunk.num_values > metadata.num_rows or not 0 < place <= end <= len(data):
                raise ValueError(f"column {j} does not fit into the file")
            while place < end:
                unpacked, packed, values, place = _page_header(data, place)
                if min(unpacked, packed) < 0 or place + packed > end or values > metadata.num_rows:
                    raise ValueError(f"a page of column {j} does not fit into the file")
                budget.take(unpacked)
                place += packed
                pages += 1
                if pages > MOST_PAGES:
                    raise ValueError("too many pages")


def feather_bytes(data: bytes, budget: Budget) -> tuple[int, int]:
    """Take what the batches of a feather (Arrow file) unpack to; rows and the most buffers of one batch.

    Raises
    ------
    InputError
        When that is more than is left.
    ValueError, struct.error
        When a batch is not where it should be.
    """
    if data[:8] != b"ARROW1\0\0" or data[-6:] != b"ARROW1":
        raise ValueError("no feather file of version 2")
    size = _number("<i", data, len(data) - 10)
    footer = _Table(data, len(data) - 10 - size)
    rows = widest = 0
    for field in (2, 3):
        for place in footer.structs(field, 24):
            start, body = _number("<q", data, place), _number("<q", data, place + 16)
            after = start + _number("<i", data, place + 8)
            marked = _number("<I", data, start) == 0xFFFFFFFF
            batch = _Table(data, start + (8 if marked else 4)).table(2)
            batch = batch.table(1) if field == 2 else batch
            rows += batch.number("<q", 0) if field == 3 else 0
            buffers = batch.structs(2, 16)
            widest = max(widest, len(batch.structs(1, 16)) if field == 3 else 0)
            for buffer in buffers:
                offset, length = _number("<q", data, buffer), _number("<q", data, buffer + 8)
                if min(offset, length) < 0 or offset + length > body or after + body > len(data):
                    raise ValueError("a buffer does not fit into the file")
                unpacked = _number("<q", data, after + offset) if batch.has(3) and length >= 8 else length
                budget.take(max(length, unpacked))
    if rows < 0:
        raise ValueError(f"{rows} rows")
    return rows, widest


class _Table:
    """A table of a flatbuffer that begins at ``start``: fields are found by number."""

    def __init__(self, data: bytes, start: int, root: bool = True) -> None:
        self._data = data
        self._place = start + (_number("<I", data, start) if root else 0)
        self._fields = self._place - _number("<i", data, self._place)

    def _at(self, field: int) -> int:
        """The position of a field; 0 where it is absent."""
        if 4 + 2 * field >= _number("<H", self._data, self._fields):
            return 0
        offset = _number("<H", self._data, self._fields + 4 + 2 * field)
        return self._place + offset if offset else 0

    def has(self, field: int) -> bool:
        """Whether the field is there."""
        return self._at(field) > 0

    def number(self, form: str, field: int) -> int:
        """A number, 0 by default."""
        return _number(form, self._data, self._at(field)) if self.has(field) else 0

    def table(self, field: int) -> _Table:
        """A table in this one."""
        place = self._at(field)
        if not place:
            raise ValueError("a part is missing")
        return _Table(self._data, place + _number("<I", self._data, place), root=False)

    def structs(self, field: int, size: int) -> range:
        """Where the structs of a vector begin."""
        place = self._at(field)
        if not place:
            return range(0)
        start = place + _number("<I", self._data, place)
        count = _number("<I", self._data, start)
        if start + 4 + size * count > len(self._data):
            raise ValueError("a vector does not fit into the file")
        return range(start + 4, start + 4 + size * count, size)


def _number(form: str, data: bytes, place: int) -> int:
    if place < 0:
        raise ValueError("a place before the file")
    return int(struct.unpack_from(form, data, place)[0])


def _page_header(data: bytes, place: int) -> tuple[int, int, int, int]:
    """Bytes a page unpacks to, bytes it has, its values, and where it begins after this header."""
    fields: dict[tuple[int, ...], int] = {}
    place = _struct(data, place, (), fields)
    values = max((fields.get((field, 1), 0) for field in (5, 7, 8)), default=0)
    return fields[(2,)], fields[(3,)], values, place


def _struct(data: bytes, place: int, path: tuple[int, ...], fields: dict[tuple[int, ...], int]) -> int:
    """Go through a structure in thrift's compact protocol, keeping whole numbers by the fields that lead to them."""
    if len(path) > DEEPEST:
        raise ValueError("structures too deep")
    field = 0
    while True:
        byte = data[place]
        place += 1
        if byte == 0:
            return place
        if byte >> 4:
            field += byte >> 4
        else:
            field, place = _varint(data, place)
        place = _value(data, place, byte & 15, (*path, field), fields)


def _value(data: bytes, place: int, kind: int, path: tuple[int, ...], fields: dict[tuple[int, ...], int]) -> int:
    if kind in (1, 2):  # a truth value is in its own type
        return place
    if kind == 3:
        return place + 1
    if kind in (4, 5, 6):
        fields[path], place = _varint(data, place)
        return place
    if kind == 7:
        return place + 8
    if kind == 8:
        size, place = _unsigned(data, place)
        return place + size
    if kind == 12:
        return _struct(data, place, path, fields)
    raise ValueError(f"a page header with an entry of kind {kind}")


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A whole number in zigzag code, and where it ends."""
    raw, place = _unsigned(data, place)
    return (raw >> 1) ^ -(raw & 1), place


def _unsigned(data: bytes, place: int) -> tuple[int, int]:
    raw = shift = 0
    while shift < 70:
        byte = data[place]
        place += 1
        raw |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return raw, place
    raise ValueError("a number too long")
