"""Arrays that kernels only read."""

from __future__ import annotations

from exactsel.types import FloatArray


def read_only(array: FloatArray) -> FloatArray:
    """The array as kernels take all of its kind: a kernel is compiled once more for arrays that can be written to."""
    array.flags.writeable = False
    return array
