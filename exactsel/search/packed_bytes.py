"""Packed data as bytes: a line of JSON and raw arrays, compressed a little.

Reading trusts no size stated in the data.
"""

from __future__ import annotations

import json
import math
import zlib
from typing import Any

import numpy as np

from exactsel.search.json_shapes import read_json
from exactsel.search.layout import ARRAYS, refusing_damage, require
from exactsel.search.packing import Packed

LEVEL = 1
"""Of compression: states and columns of nodes packed one by one shrink to a third for a tenth of what packing takes."""

AS_IT_IS = 0
"""For what is on its way from one process to another: mostly digits of numbers, which shrink by a third at most, while
compressing them takes up to a tenth of what finding them did."""

LARGEST = 2**28
"""Bytes that are compressed; what takes more is not, so that bytes which unpack to more are refused unread."""


def to_bytes(packed: Packed, level: int = LEVEL) -> bytes:
    """Everything that is packed, in one piece."""
    index = [[name, array.dtype.name, array.shape] for name, array in packed.arrays.items()]
    text = json.dumps({"header": packed.header, "arrays": index}, allow_nan=False).encode()
    parts = [len(text).to_bytes(8, "little"), text]
    parts += [np.ascontiguousarray(array).tobytes() for array in packed.arrays.values()]
    whole = b"".join(parts)
    return zlib.compress(whole, level if len(whole) <= LARGEST else AS_IT_IS)


def from_bytes(data: bytes) -> Packed:
    """What :func:`to_bytes` made these of.

    Raises
    ------
    InputError
        Where they are damaged.
    """
    with refusing_damage():
        raw = _unpacked(data)
        first = 8 + int.from_bytes(raw[:8], "little")
        require(len(raw) >= first, "less of it than it says")
        text = read_json(raw[8:first].decode())
        arrays: dict[str, Any] = {}
        for name, kind, shape in text["arrays"]:
            require(kind in ARRAYS and all(type(size) is int and size >= 0 for size in shape), "arrays of no type")
            count = math.prod(shape)
            end = first + count * np.dtype(kind).itemsize
            require(end <= len(raw), "less of it than it says")
            arrays[name] = np.frombuffer(raw, kind, count, first).reshape(shape)
            first = end
        require(first == len(raw), "more of it than it says")
        return Packed(text["header"], arrays)


def _unpacked(data: bytes) -> bytes:
    """The bytes that were compressed: no more than there can be."""
    unpacker, most = zlib.decompressobj(), max(LARGEST, len(data))
    try:
        raw = unpacker.decompress(data, most)
    except zlib.error:
        raw = b""
    require(unpacker.eof and not unpacker.unused_data, "bytes that cannot be unpacked")
    return raw
