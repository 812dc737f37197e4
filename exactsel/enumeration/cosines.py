"""The largest cosines of many columns with each other, once strong columns are eliminated, in one pass over all pairs.

Products are formed in single precision, block by block, and nothing is kept of them but a short list for each column.
Each pair is processed once, for the lists of both its columns. Blocks are paired as players of a tournament are: those
of one round share no column, so threads may take them in any order, and the lists do not depend on how many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from exactsel._jit import working_threads
from exactsel.enumeration.products import Products
from exactsel.kernels.cosines import keep_largest
from exactsel.types import BoolArray, FloatArray, IntArray

BLOCK = 1024
"""Columns whose products with so many others are formed at a time."""

SINGLE_UNIT = 2.0**-24

Single = NDArray[np.float32]


class LeftColumns:
    """What elimination leaves of some columns, each made one long.

    Parameters
    ----------
    products : Products
    columns : int array (count,)
    eliminated : float array (strong, count)
        X: elimination takes X'X off their products.
    inverse : float array (count,)
        One over the root of what is left of each one's square; 0 where none of its cosines matter.
    """

    def __init__(self, products: Products, columns: IntArray, eliminated: FloatArray, inverse: FloatArray) -> None:
        self._products, self.columns = products, columns
        self._X, self._inverse = eliminated, inverse
        self._scale = products.inverse[columns] * inverse
        coordinates = (eliminated * inverse).T
        if products.table is None:
            self._right = np.empty((len(columns), products.terms + len(eliminated)), dtype=np.float32)
            for part in np.array_split(np.arange(len(columns)), -(-len(columns) // BLOCK) or 1):
                self._right[part, : products.terms] = products.AT[columns[part]] * self._scale[part, None]
            self._right[:, products.terms :] = coordinates
        else:
            self._right = np.asarray(coordinates, dtype=np.float32)
        terms = products.terms + len(eliminated) + 16
        self.error: FloatArray = 2.2 * terms * SINGLE_UNIT * inverse * np.max(inverse, initial=0.0)
        """(count,) how far each one's cosines in single precision may be off."""

    def block(self, rows: IntArray | slice, columns: slice = slice(None)) -> Single:
        """Cosines of some with others, in single precision; anything for a column with itself."""
        left, terms, table = self._right[rows].copy(), self._products.terms, self._products.table
        np.negative(left[:, terms:], out=left[:, terms:])
        cosines: Single = left @ self._right[columns].T
        if table is not None:
            part = table[np.ix_(self.columns[rows], self.columns[columns])]
            cosines += (part * self._scale[rows, None] * self._scale[columns]).astype(np.float32)
        return cosines

    def of_pairs(self, left: IntArray, right: IntArray) -> FloatArray:
        """Cosines of pairs of different ones, in double precision."""
        products = self._products.of_pairs(self.columns[left], self.columns[right])
        products -= np.einsum("ij,ij->j", self._X[:, left], self._X[:, right])
        return products * self._inverse[left] * self._inverse[right]

    def largest(
        self, width: int, stop: BoolArray, threads: int, table: Single | None
    ) -> tuple[Single, NDArray[np.int32]]:
        """So many of the largest |cosines| of each, ascending, with their columns; only some of them after a stop.

        A list of all is filled up by zeros, with -1. All cosines are written to the table, if there is one.
        """
        count = len(self.columns)
        sizes, others = np.zeros((count, width), dtype=np.float32), np.full((count, width), -1, dtype=np.int32)
        blocks = [slice(first, min(first + BLOCK, count)) for first in range(0, count, BLOCK)]

        def look(pair: tuple[int, int]) -> None:
            if not stop[0]:
                rows, columns = blocks[min(pair)], blocks[max(pair)]
                block = self.block(rows, columns)
                keep_largest(block, rows.start, columns.start, sizes, others)
                if table is not None:
                    table[rows, columns], table[columns, rows] = block, block.T

        _in_rounds(tournament(len(blocks)), look, working_threads(threads))
        return sizes, others


def _in_rounds(rounds: Iterator[list[tuple[int, int]]], look: Callable[[tuple[int, int]], None], threads: int) -> None:
    if threads == 1:
        for pairs in rounds:
            for pair in pairs:
                look(pair)
        return
    with ThreadPoolExecutor(threads) as pool:
        for pairs in rounds:
            list(pool.map(look, pairs))


def tournament(players: int) -> Iterator[list[tuple[int, int]]]:
    """Every pair of players once, and every player alone: in each round no player is in two pairs."""
    yield [(i, i) for i in range(players)]
    last = players + players % 2 - 1
    for turn in range(last):
        pairs = [(turn, last), *(((turn + i) % last, (turn - i) % last) for i in range(1, (last + 1) // 2))]
        yield [pair for pair in pairs if max(pair) < players]
