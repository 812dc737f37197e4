"""Arrays that hold several things one after the other, points or splits: whether they are in order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class MalformedError(Exception):
    """The file is no proof file of this version; the text says in one sentence why not."""


def check_parts(what: str, sizes: NDArray[np.int32], index: NDArray[Any], values: NDArray[Any], d: int) -> None:
    """Points, or splits: their sizes add up, with a value for every column; the columns of each ascend."""
    if np.any(sizes < 0) or int(np.sum(sizes, dtype=np.int64)) != index.size:
        raise MalformedError(f"the sizes of the {what}s do not add up.")
    if index.size != values.size:
        raise MalformedError(f"the {what}s have not one value for each index.")
    starts = np.zeros(index.size, dtype=np.bool_)
    first = np.cumsum(sizes, dtype=np.int64) - sizes
    starts[first[sizes > 0]] = True
    if not is_ascending(index, d, starts):
        raise MalformedError(f"a {what}'s columns are not distinct columns in ascending order.")


def is_ascending(index: NDArray[Any], d: int, starts: NDArray[np.bool_] | None = None) -> bool:
    """Whether all are columns, each larger than the one before it unless it starts a new point."""
    if index.size == 0:
        return True
    if int(index.min()) < 0 or int(index.max()) >= d:
        return False
    rising = index[1:] > index[:-1]
    return bool(np.all(rising if starts is None else rising | starts[1:]))
