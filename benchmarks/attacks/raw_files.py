"""A proof file taken apart without a look at its sense, and put together again with anything in it."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactsel_certificates.container import ARRAYS

Array = Any
"""A numpy array."""


@dataclass
class RawFile:
    """The header as JSON has it, and every array by name, in its order; nothing need fit anything."""

    header: dict[str, Any]
    arrays: dict[str, Array]

    @classmethod
    def of(cls, data: bytes) -> RawFile:
        """The parts of a sound file."""
        size = struct.unpack("<Q", data[:8])[0]
        header, start = json.loads(data[8 : 8 + size]), 8 + size
        arrays = {name: np.zeros(0, dtype=kinds[0]) for name, kinds in ARRAYS.items()}
        for name, kind, count in header.pop("arrays"):
            arrays[name] = np.frombuffer(data, dtype=kind, count=count, offset=start).copy()
            start += arrays[name].nbytes
        return cls(header, arrays)

    def data(self) -> bytes:
        """The bytes, with the types and lengths the arrays have now."""
        listed = [[name, _kind(array), int(array.size)] for name, array in self.arrays.items()]
        text = json.dumps(self.header | {"arrays": listed}).encode()
        text += b" " * (-len(text) % 8)
        return struct.pack("<Q", len(text)) + text + b"".join(array.tobytes() for array in self.arrays.values())

    def copy(self) -> RawFile:
        """Another one with the same in it."""
        return RawFile(dict(self.header), {name: array.copy() for name, array in self.arrays.items()})

    def headed(self, **entries: Any) -> RawFile:
        """With entries of the header changed; those that are ``...`` are left out."""
        made = self.copy()
        made.header = {name: value for name, value in (made.header | entries).items() if value is not ...}
        return made

    def holding(self, **arrays: Array) -> RawFile:
        """With arrays changed; those that are None are left out."""
        made = self.copy()
        made.arrays = {name: array for name, array in (made.arrays | arrays).items() if array is not None}
        return made

    def points(self) -> list[Array]:
        """The places of each point's coefficients in ``point_value``."""
        ends = np.cumsum(self.arrays["point_size"])
        sizes = self.arrays["point_size"]
        return [np.arange(end - size, end) for end, size in zip(ends.tolist(), sizes.tolist(), strict=True)]


def _kind(array: Array) -> str:
    return "u1" if array.dtype == np.uint8 else str(array.dtype.newbyteorder("<").str)
