"""Long sums in blocks, so that few roundings are made in a row, and how many these are at most.

Within a block sums are formed in any order, as numpy and the library below it like; blocks are added one after another.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

SHORTEST = 512
"""Terms of a block of products at least: shorter ones take much longer."""

SHORT, MOST_ENTRIES = 64, 1 << 20
"""Terms of a block of careful products, and entries of the result up to which there are any."""

BLOCK = 65_536
"""Rows processed together: what is made of them is small beside vectors of all rows."""


def row_slices(n: int) -> list[slice]:
    """The rows, some at a time."""
    return [slice(first, first + BLOCK) for first in range(0, max(1, n), BLOCK)]


def blocked_roundings(n: int) -> int:
    """Roundings any term meets in :func:`blocked_sums`, at most."""
    return 2 * int(np.ceil(np.sqrt(n))) + 4


def blocked_sums(rows: FloatArray) -> FloatArray:
    """Sums of the rows (m, n), in about sqrt(n) blocks, so that few roundings are made in a row."""
    n = rows.shape[1]
    side = max(1, int(np.ceil(np.sqrt(n))))
    starts = np.arange(0, n, side)
    return np.asarray(np.sum(np.add.reduceat(rows, starts, axis=1), axis=1))


def product_roundings(n: int) -> int:
    """Roundings any term meets in :func:`products`, at most."""
    block = _block(n)
    return min(n, block) + math.ceil(n / block)


def products(left: FloatArray, right: FloatArray, out: FloatArray | None = None) -> FloatArray:
    """left (p, n) times right (n, d), by blocks of the n terms; ``out`` (p, d), or a new array."""
    n = right.shape[0]
    block = _block(n)
    total = np.asarray(np.matmul(left[:, :block], right[:block], out=out))
    for first in range(block, n, block):
        some = slice(first, first + block)
        total += left[:, some] @ right[some]
    return total


def careful_products(left: FloatArray, right: FloatArray, out: FloatArray | None = None) -> tuple[FloatArray, int]:
    """The same by short blocks, added up with what rounding takes kept, and the roundings any term meets, at most.

    These do not depend on n, up to 2^40 terms, but where the result has very many entries.
    """
    n = right.shape[0]
    if n <= SHORT or left.shape[0] * right.shape[1] > MOST_ENTRIES:
        return products(left, right, out), product_roundings(n)
    high = np.asarray(left[:, :SHORT] @ right[:SHORT])
    low = np.zeros(high.shape)
    for first in range(SHORT, n, SHORT):
        some = slice(first, first + SHORT)
        term = left[:, some] @ right[some]
        total = high + term
        part = total - high
        low += (high - (total - part)) + (term - part)
        high = total
    return np.add(high, low, out=out), SHORT + 2


def _block(n: int) -> int:
    return max(SHORTEST, math.isqrt(n))
