"""Inner products to twice the digits of a double, and to all of them, by exact products of slices (Ozaki, Ogita, Oishi,
Rump 2012).

Every vector is cut into slices of so few bits that sums of products of two slices are exact in doubles, in any order of
summation of a library. What is left is to add a few dozen numbers an entry.

Where that takes too long, as over many columns, what is left is :func:`blocked_products`: as a library adds up, but
block by block, so that no more roundings follow each other in a long sum than in a short one.

For all digits of a double two slices will do, in blocks of :data:`BLOCK` entries. Each is scaled by a power of two, so
that its largest entry is between 2^21 and 2^22, and is the sum of whole numbers H and a rest L of at most 1/2. Sums in
H'H are whole numbers of at most 2^53, and exact. L is at most 2^-17 times as long as the block, so that what rounding
does to H'L, L'H and L'L is less than a hundredth of a rounding of the product of two lengths. Sums of blocks keep what
rounding takes of them (Knuth), and are rounded once in the end.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from exactsel.algebra.threads import one_thread
from exactsel.types import FloatArray

DIGITS = 112
"""Bits below the product of two lengths that are kept at least."""

PRODUCT_ERROR = 2.0**-100
"""What :func:`extended_products` may be off by, times the lengths of the two vectors."""

BLOCK, BITS = 512, 22
"""Entries of a block, and bits of its whole numbers: 2 BITS + log2 BLOCK = 53."""

ENTRIES_AT_ONCE = 2**20
"""Entries that are cut up at a time."""

SMALLEST = -900
"""Binary exponent from which on blocks are not scaled up any further: their products vanish."""

ROUNDINGS = 2
"""How many roundings are enough for what an entry of :func:`rounded_products` is off by, for up to 2^40 numbers."""


MOST_COLUMNS = 256
"""Vectors up to which :func:`inner_products` rounds well; more take several times as long as a library's product."""


def inner_products(vectors: FloatArray, last: FloatArray) -> tuple[FloatArray, int]:
    """The inner products (m + 1, m + 1) of the rows of ``vectors`` (m, n) and ``last`` (n,), and their roundings.

    Each is off by so many times UNIT times the two lengths at most, however large n is.
    """
    if len(vectors) <= MOST_COLUMNS:
        return rounded_products(vectors, last), ROUNDINGS
    return blocked_products(vectors, last), min(vectors.shape[1], BLOCK) + 2


def rounded_products(vectors: FloatArray, last: FloatArray) -> FloatArray:
    """The inner products, off by ROUNDINGS * UNIT times two lengths at most."""
    many = BLOCK * max(1, ENTRIES_AT_ONCE // (BLOCK * (len(vectors) + 1)))
    slices = (slice(first, first + many) for first in range(0, last.size, many))
    parts = (_block_products(vectors[:, some], last[some]) for some in slices)
    return _summed((term for exact, rest in parts for term in (*exact, rest)), len(vectors) + 1)


def blocked_products(vectors: FloatArray, last: FloatArray) -> FloatArray:
    """The same, as the library that is used forms them, block by block."""
    blocks = (_with_last(vectors, last, first) for first in range(0, last.size, BLOCK))
    return _summed((block @ block.T for block in blocks), len(vectors) + 1)


def _summed(terms: Iterable[FloatArray], m: int) -> FloatArray:
    """The sum of symmetric matrices (m, m), rounded once, but for what rounding does to the sum of what it took."""
    high, low = np.zeros((m, m)), np.zeros((m, m))
    with one_thread():
        for term in terms:
            high, error = _sum(high, term)
            low += error
    total = high + low
    return np.asarray(np.tril(total) + np.tril(total, -1).T)


def _with_last(vectors: FloatArray, last: FloatArray, first: int) -> FloatArray:
    """A block of all vectors, from the entry ``first`` on."""
    return np.vstack([vectors[:, first : first + BLOCK], last[first : first + BLOCK]])


def _block_products(vectors: FloatArray, last: FloatArray) -> tuple[FloatArray, FloatArray]:
    """H'H of each block (blocks, m, m), exact, and the sum (m, m) of all that is missing."""
    length = min(last.size, BLOCK)
    parts = np.zeros((-(-last.size // length), len(vectors) + 1, length))
    for block, part in enumerate(parts):
        here = _with_last(vectors, last, block * length)
        part[:, : here.shape[1]] = here
    exponent = np.maximum(np.frexp(np.abs(parts).max(axis=2))[1], SMALLEST)
    parts *= np.exp2(BITS - exponent.astype(float))[:, :, None]
    whole = np.rint(parts)
    parts -= whole
    unit = np.exp2(exponent - BITS + 0.0)
    left, right = unit[:, :, None], unit[:, None, :]
    cross = whole @ parts.transpose(0, 2, 1)
    rest = cross + cross.transpose(0, 2, 1) + parts @ parts.transpose(0, 2, 1)
    return whole @ whole.transpose(0, 2, 1) * left * right, (rest * left * right).sum(axis=0)


def extended_products(vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The inner products of the rows of ``vectors`` (m, n), as sums of two arrays (m, m); the first is rounded well."""
    slices, m = _slices(vectors), len(vectors)
    high, low = np.zeros((m, m)), np.zeros((m, m))
    with one_thread():
        for total in range(len(slices)):
            for i in range(total + 1):
                term = slices[i] @ slices[total - i].T
                high, error = _sum(high, term)
                low += error
    return _sum(high, low)


def _slices(vectors: FloatArray) -> list[FloatArray]:
    """The rows as a sum of multiples of ever smaller powers of two, each slice of few bits."""
    n = max(2, vectors.shape[1])
    bits = (52 - math.ceil(math.log2(n))) // 2
    exponent = np.frexp(np.abs(vectors).max(axis=1, initial=0.0))[1].astype(float)[:, None]
    rest, slices = vectors.copy(), []
    for part in range(math.ceil((DIGITS + math.log2(n)) / bits)):
        anchor = 1.5 * np.exp2(exponent - bits * (part + 1) + 52.0)
        piece = (rest + anchor) - anchor
        slices.append(piece)
        rest = rest - piece
    return slices


def _sum(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """a + b, and what rounding took (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)
