"""The weak columns after elimination of the strong ones: their cosines, and the rest of the target on them.

Rounding: computed products are those of a matrix off by some e in every entry, and an elimination of m columns that
meets positive pivots is that of a matrix off by gamma (Higham 2002, theorem 10.3). On sets of m columns both are less
than a part mu of the diagonal (:func:`exactsel.algebra.elimination.shift`). That is taken off where u is computed, and
twice where M is, so that the exact M is no less than the computed one, for any B.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exactsel.algebra import dense
from exactsel.algebra.elimination import entry_error, shift
from exactsel.bounds.base import never_stop
from exactsel.enumeration.cosines import LeftColumns
from exactsel.enumeration.products import Products
from exactsel.types import BoolArray, FloatArray, IntArray

FIRST_LOOK = 64
"""Columns whose cosines are computed before all others."""

NEAR = 0.99
"""Part of the empty model's objective from which on rounding is too large."""

ROOM = 1e-10
"""Part of the squared length of columns that is taken off M at least."""

LEAST_LEFT = 1e-2
"""Part of its squared length that elimination must leave of a weak column."""

NEIGHBOURS = 24
"""Cosines that are kept of each column besides those with as many others as a model has."""

WHOLE = 1 << 27
"""Cosines of all columns with all that are kept in one table, at most."""

SPARED = 8
"""Neighbours of a column that a first look does not count."""


class Below(NamedTuple):
    """What is known of regions with the strong columns B."""

    rest: float
    """What the elimination of B leaves of the target, of length 1: above 0 where the fit on B is above the level."""
    u: FloatArray
    """(columns of W,) what it leaves of their products with the target, each column made one long by what
    elimination of all strong columns leaves of it."""
    drop: FloatArray
    """(columns of B,) what leaving each out would cost the fit, in the same units."""


class TooMuchAlikeError(Exception):
    """More weak columns are like others than can become strong ones."""


class WeakColumns:
    """Columns W with the strong ones F eliminated.

    Parameters
    ----------
    products : Products
    strong : int array (m,)
        The columns of F, ascending.
    weak : int array (any,)
        Those of W, ascending.
    slots : int
        Columns of W a model may have, at most; at least 1.
    most_alike : int
        Columns like others at which a first look gives up.
    stop : bool array (1,), optional
        Turns true when the pass over the cosines is to end.
    threads : int

    Raises
    ------
    TooMuchAlikeError
        Where that is soon seen to be of no use, or after a stop.
    """

    def __init__(
        self, products: Products, strong: IntArray, weak: IntArray, slots: int, *, most_alike: int = 10,
        stop: BoolArray | None = None, threads: int = 1,
    ) -> None:  # fmt: skip
        self.stop = never_stop() if stop is None else stop
        self.strong, self.weak, self.slots, self._products = strong, weak, min(slots, len(weak)), products
        self._most = len(strong) + slots + 2
        self._inner, self._outer = products.among(strong, strong), products.among(strong, weak)
        self._b = products.target[strong], products.target[weak]
        self._taken = max(ROOM, 2.0 * self._room(NEAR * products.constant))
        factor = np.linalg.cholesky(self._inner - self._taken * np.eye(len(strong)))
        X = dense.solve_triangular(factor, self._outer, lower=True, check_finite=False)
        remainder = 1.0 - self._taken - np.einsum("ij,ij->j", X, X)
        self.known: BoolArray = remainder > LEAST_LEFT
        """(columns of W,) whether elimination leaves enough of a column."""
        self._inverse = np.where(self.known, 1.0 / np.sqrt(np.where(self.known, remainder, 1.0)), 0.0)
        self.columns = LeftColumns(products, weak, X, self._inverse)
        self._known_below: dict[tuple[bytes, float], Below | None] = {}
        alike, some = self._first_look()
        if np.count_nonzero(~self.known) + alike > most_alike:
            raise TooMuchAlikeError
        tabled = some and len(weak) ** 2 <= WHOLE
        self.table = np.empty((len(weak), len(weak)), dtype=np.float32) if tabled else None
        """All cosines, where some columns are like others and there are not too many of them."""
        self.sizes, self.others = self.columns.largest(self.kept, self.stop, threads, self.table)
        """(columns of W, kept) the largest cosines of each, ascending, and the columns they are with."""
        if self.stop[0]:
            raise TooMuchAlikeError

    @property
    def kept(self) -> int:
        """Cosines that are kept of each column."""
        return min(self.slots - 1 + NEIGHBOURS, max(1, len(self.weak) - 1))

    def _first_look(self) -> tuple[int, bool]:
        """How many of some columns are too much like others, even if their nearest neighbours are not counted.

        And whether any are if these are counted.
        """
        count = len(self.weak)
        rows = np.arange(0, count, max(1, count // FIRST_LOOK), dtype=np.int64)
        if self.slots < 2 or not rows.size or self.stop[0]:
            return 0, False
        sizes = np.abs(self.columns.block(rows))
        sizes[range(len(rows)), rows] = 0.0
        taken = min(count, SPARED + self.slots - 1)
        largest = -np.sort(-np.partition(sizes, count - taken, axis=1)[:, count - taken :], axis=1)
        alone = largest[:, : self.slots - 1].sum(axis=1)
        return int(np.count_nonzero(largest[:, SPARED:].sum(axis=1) >= 1.0)), bool(np.any(alone >= 1.0))

    def _room(self, threshold: float) -> float:
        """mu for sets of strong and weak columns and the target."""
        return 2.0 * shift(self._most, entry_error(self._products.roundings, self._products.constant, threshold))

    def below(self, included: BoolArray, threshold: float) -> Below | None:
        """For B, a mask over the strong columns; None where rounding is too large."""
        key = included.tobytes(), threshold
        if key not in self._known_below:
            self._known_below[key] = self._below(included, threshold)
        return self._known_below[key]

    def _below(self, included: BoolArray, threshold: float) -> Below | None:
        constant = self._products.constant
        room = self._room(threshold) if threshold < constant else math.inf
        if not 2.0 * room <= self._taken:
            return None
        scale = math.sqrt(2.0 * (constant - threshold))
        of_strong, of_weak = self._b[0][included] / scale, self._b[1] / scale
        inner = self._inner[np.ix_(included, included)] - room * np.eye(int(np.count_nonzero(included)))
        try:
            factor = np.linalg.cholesky(inner)
        except np.linalg.LinAlgError:
            return None
        z, x, inverse = _solved(factor, of_strong)
        rest = 1.0 - room - float(z @ z)
        drop = x**2 / np.diagonal(inverse) if len(z) else np.zeros(0)
        sides = dense.solve_triangular(factor, self._outer[included], lower=True, check_finite=False)
        return Below(rest, (of_weak - z @ sides) * self._inverse, drop)


def _solved(factor: NDArray[np.floating[Any]], side: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Of R R' = factor and its transpose: R^-1 side, its solution, and the inverse."""
    z = dense.solve_triangular(factor, side, lower=True, check_finite=False)
    x, inverse = (dense.cho_solve((factor, True), rhs, check_finite=False) for rhs in (side, np.eye(len(side))))
    return z, x, inverse
