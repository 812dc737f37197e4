"""For each column the others with which it has the largest cosines, from blocks of products that are formed once.

The lists are ascending, so that the first entry is what a further cosine must exceed. Of equal ones those stay that
came first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from exactsel._jit import in_numpy, njit

SEGMENT = 64
"""Cosines that are compared with what they must exceed in one go; hardly any segment holds one that does."""

Lists = tuple[NDArray[np.float32], NDArray[np.int32]]


@njit
def _enter(sizes: NDArray[np.float32], others: NDArray[np.int32], row: int, size: float, other: int) -> None:
    at = 1
    while at < sizes.shape[1] and sizes[row, at] < size:
        sizes[row, at - 1], others[row, at - 1] = sizes[row, at], others[row, at]
        at += 1
    sizes[row, at - 1], others[row, at - 1] = size, other


@njit
def keep_largest(
    block: NDArray[np.float32], first_row: int, first_column: int, sizes: NDArray[np.float32],
    others: NDArray[np.int32],
) -> None:  # fmt: skip
    """Enter cosines into the lists of their rows and, where these are other columns, of their columns.

    Parameters
    ----------
    block : float32 array (a, b)
        Cosines of the a columns from ``first_row`` on with the b columns from ``first_column`` on; both are the same
        columns, or none of them is.
    first_row, first_column : int
    sizes : float32 array (count, kept)
        The largest |cosines| of each column so far, ascending.
    others : int32 array (count, kept)
        The columns they are with; -1 for none.
    """
    width, same = block.shape[1], first_row == first_column
    least = np.empty(width, dtype=np.float32)
    for b in range(width):
        least[b] = np.float32(np.inf) if same else sizes[first_column + b, 0]
    for a in range(block.shape[0]):
        i = first_row + a
        for begin in range(0, width, SEGMENT):
            end, low, found = min(begin + SEGMENT, width), sizes[i, 0], 0
            for b in range(begin, end):
                size = abs(block[a, b])
                found += (size > low) | (size > least[b])
            if found == 0:
                continue
            for b in range(begin, end):
                size = abs(block[a, b])
                if size > sizes[i, 0] and first_column + b != i:
                    _enter(sizes, others, i, size, first_column + b)
                if size > least[b]:
                    _enter(sizes, others, first_column + b, size, i)
                    least[b] = sizes[first_column + b, 0]


@in_numpy(keep_largest)
def _keep_largest(
    block: NDArray[np.float32], first_row: int, first_column: int, sizes: NDArray[np.float32],
    others: NDArray[np.int32],
) -> None:  # fmt: skip
    found = np.abs(block)
    if first_row == first_column:
        found[range(len(found)), range(len(found))] = 0.0
    else:
        _merge(found.T, first_row, slice(first_column, first_column + found.shape[1]), sizes, others)
    _merge(found, first_column, slice(first_row, first_row + len(found)), sizes, others)


def _merge(
    found: NDArray[np.float32], first: int, rows: slice, sizes: NDArray[np.float32], others: NDArray[np.int32]
) -> None:
    named = np.broadcast_to(np.arange(first, first + found.shape[1], dtype=np.int32), found.shape)
    both = np.concatenate([sizes[rows, ::-1], found], axis=1)
    names = np.concatenate([others[rows, ::-1], named], axis=1)
    order = np.argsort(-both, axis=1, kind="stable")[:, : sizes.shape[1]]
    sizes[rows] = np.take_along_axis(both, order, axis=1)[:, ::-1]
    others[rows] = np.take_along_axis(names, order, axis=1)[:, ::-1]
