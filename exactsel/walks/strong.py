"""Few strong columns and many weak ones: a tree over the strong ones, and a bound for what the weak ones can add.

Quadratic loss, columns one by one, with or without a ridge. F holds the columns of a good model and their rivals, W all
others. With columns of length one (the ridge included) and F eliminated, W keeps the matrix M. If T_wr is the sum of
the r largest cosines |M_wv| / sqrt(M_ww M_vv) of column w with others of W, then for any r columns of W

    x'Mx >= sum M_ww (1 - T_w,r-1) x_w^2 =: sum D_wr x_w^2

by diagonal dominance after scaling, whatever the coefficients. Less of F eliminated only leaves more. So a region with
S in, the columns B of F (S among them) not excluded and r places holds nothing below a level L if

    sum of the r largest u_w^2 / D_wr <= 1,   u = what the elimination of B leaves of v = b / sqrt(2 (c - L)),

the target being one more column of length sqrt(2 (c - L)), of which less than all must be eliminated by B: else the fit
on B is below the level. T takes one pass over the products of columns; each node of the tree takes one over B and W.

Rounding: computed products are those of a matrix off by some e in every entry, and an elimination of m columns that
meets positive pivots is that of a matrix off by gamma (Higham 2002, theorem 10.3). On sets of m columns both are less
than a part mu of the diagonal (:func:`exactsel.algebra.elimination.shift`). That is taken off where u is computed, and
twice where M is, so that the exact M is no less than the computed D, whatever B.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exactsel.algebra import dense
from exactsel.algebra.elimination import definite, entry_error, shift
from exactsel.bounds.base import never_stop
from exactsel.bounds.witness import StrongPoint
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.problem.regression import Problem
from exactsel.types import BoolArray, FloatArray, IntArray, StateArray

RIVALS, ALIKE, LIKE = 10, 3, 0.3
"""Strong columns besides those of a model: so many that would reduce its objective most, and of each of its columns so
many of those that have a larger cosine with it."""

BLOCK = 1 << 22
"""Entries of M that are worked out at a time."""

FIRST_LOOK = 64
"""Columns whose cosines are looked at before all others."""

MOST_NODES = 4_000
"""Nodes of the tree over the strong columns."""


CAREFUL = 1e-12
"""Room for the roundings of sums of some positive numbers."""

NEAR = 0.99
"""Part of the empty model's objective from which on rounding is too large."""

ROOM = 1e-10
"""Part of the squared length of columns that is taken off M at least."""

LEAST_LEFT = 1e-2
"""Part of its squared length that elimination must leave of a weak column."""

LEAST = 1e-6
"""Part of its squared length that elimination must leave of a strong column."""

ROUNDS, MORE = 2, 10
"""Passes at most, after each of which so many columns that stand in the way become strong ones."""

SORTED, SHARE = 20, 0.2
"""Multiplications that finding the largest cosines is worth, an entry, and the part of the cube of the columns that all
passes may take: a root bound of another kind takes as much and more."""

MOST_BLAMED = 40
"""Weak columns in the way after which a tree is given up."""


@dataclass(frozen=True)
class Part:
    """A region of the tree over the strong columns."""

    state: StateArray
    proof: StrongPoint | None
    """What shows that it holds nothing below the level; None where it is left open."""


class Below(NamedTuple):
    """What is known of regions with the strong columns B."""

    rest: float
    """What the elimination of B leaves of the target, of length 1: above 0 where the fit on B is above the level."""
    q: FloatArray
    """(columns of W,) u^2"""
    drop: FloatArray
    """(columns of B,) what leaving each out would cost the fit, in the same units."""


class TooMuchAlikeError(Exception):
    """More weak columns are like others than can become strong ones."""


def _parts(count: int) -> Iterator[IntArray]:
    """Columns in parts, some from everywhere first."""
    first = np.arange(0, count, max(1, count // FIRST_LOOK), dtype=np.int64)
    yield first
    others = np.delete(np.arange(count, dtype=np.int64), first)
    yield from np.array_split(others, max(1, -(-others.size * count // BLOCK)))


class Products:
    """Products of a problem's columns, which are made one long, the ridge included; of wide data no table is made."""

    def __init__(self, problem: Problem) -> None:
        self._AT, lam, tall = problem.AT, problem.lam, problem.n >= problem.d
        self._G = problem.gram.G if tall else None
        squares = np.einsum("ij,ij->i", self._AT, self._AT) if self._G is None else np.diagonal(self._G)
        self.length = np.sqrt(squares + lam)
        self._inverse = np.where(self.length > 0.0, 1.0 / np.where(self.length > 0.0, self.length, 1.0), 0.0)
        self._ridge = lam * self._inverse**2
        self.target = (problem.gram.b if tall else self._AT @ problem.y) * self._inverse
        self.constant = problem.gram.constant if tall else 0.5 * float(problem.y @ problem.y)
        self.roundings = problem.gram.roundings if tall else problem.n + 8
        self._terms = 0 if tall else problem.n

    def among(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Those of a few columns with some others."""
        made = self._AT[rows] @ self._AT.T if self._G is None else self._G[rows]
        made = made[:, columns] * np.outer(self._inverse[rows], self._inverse[columns])
        return np.asarray(made + np.where(rows[:, None] == columns, self._ridge[rows, None], 0.0))

    def single(self, rows: IntArray, columns: IntArray) -> NDArray[np.float32]:
        """The same in single precision, without the ridge."""
        if self._G is not None:
            made = self._G[rows][:, columns] * np.outer(self._inverse[rows], self._inverse[columns])
            return np.asarray(made, dtype=np.float32)
        return np.asarray((self._unit[rows] @ self._unit.T)[:, columns])

    def single_error(self, strong: int) -> float:
        """How far that may be off, once as many products as there are strong columns have been taken off as well."""
        return 1.1 * (self._terms + strong + 16) * 2.0**-24

    @cached_property
    def _unit(self) -> NDArray[np.float32]:
        unit: NDArray[np.float32] = (self._AT * self._inverse[:, None]).astype(np.float32)
        return unit


class WeakColumns:
    """What all columns but some strong ones can add to a fit on strong ones.

    Parameters
    ----------
    products : Products
    strong : int array (m,)
        The columns of F, ascending.
    weak : int array (any,)
        Those of W, ascending.
    places : int
        Columns of W a model may have, at most; at least 1.

    stop : bool array (1,), optional
        Turns true when the pass over the cosines is to end.

    Raises
    ------
    TooMuchAlikeError
        Where that is soon seen to be of no use, or when told to stop.
    """

    def __init__(
        self, products: Products, strong: IntArray, weak: IntArray, places: int, stop: BoolArray | None = None
    ) -> None:
        self._stop = never_stop() if stop is None else stop
        self.strong, self.weak, self.places, self._products = strong, weak, places, products
        self._most = len(strong) + places + 2
        self._inner, self._outer = products.among(strong, strong), products.among(strong, weak)
        self._b = products.target[strong], products.target[weak]
        self._taken = max(ROOM, 2.0 * self._room(NEAR * products.constant))
        self.dominance = self._dominance()

    def _room(self, level: float) -> float:
        """mu for sets of strong and weak columns and the target."""
        return 2.0 * shift(self._most, entry_error(self._products.roundings, self._products.constant, level))

    def _dominance(self) -> FloatArray:
        """D (columns of W, places); not positive where nothing is known of a column."""
        count, most = len(self.weak), min(self.places, len(self.weak)) - 1
        factor = np.linalg.cholesky(self._inner - self._taken * np.eye(len(self.strong)))
        X = dense.solve_triangular(factor, self._outer, lower=True, check_finite=False)
        left = 1.0 - self._taken - np.einsum("ij,ij->j", X, X)
        known = left > LEAST_LEFT
        inverse = np.where(known, 1.0 / np.sqrt(np.where(known, left, 1.0)), 0.0)
        error = self._products.single_error(len(self.strong)) / math.sqrt(LEAST_LEFT)
        result, alike = np.empty((count, self.places)), int(np.count_nonzero(~known))
        X32 = X.astype(np.float32)
        for part in _parts(count):
            if alike > MORE or self._stop[0]:
                raise TooMuchAlikeError
            M = self._products.single(self.weak[part], self.weak)
            M -= X32[:, part].T @ X32
            M *= inverse.astype(np.float32)
            np.abs(M, out=M)
            M[np.arange(len(M)), part] = 0.0
            sums = np.zeros((len(M), self.places))
            if most > 0:
                largest = -np.sort(-np.partition(M, count - most, axis=1)[:, count - most :].astype(np.float64), axis=1)
                sums[:, 1 : most + 1] = np.cumsum(largest + error, axis=1)
                sums[:, most + 1 :] = sums[:, most, None]
            sums *= inverse[part, None] * (1.0 + CAREFUL)
            result[part] = left[part, None] * (1.0 - sums) * (1.0 - CAREFUL)
            alike += int(np.count_nonzero(known[part] & ~(result[part, -1] > 0.0)))
        result[~known] = -1.0
        return result

    def below(self, inside: BoolArray, level: float) -> Below | None:
        """For B, a mask over the strong columns; None where rounding is too large."""
        constant = self._products.constant
        room = self._room(level) if level < constant else math.inf
        if not 2.0 * room <= self._taken:
            return None
        scale = math.sqrt(2.0 * (constant - level))
        of_strong, of_weak = self._b[0][inside] / scale, self._b[1] / scale
        inner = self._inner[np.ix_(inside, inside)] - room * np.eye(int(np.count_nonzero(inside)))
        try:
            factor = np.linalg.cholesky(inner)
        except np.linalg.LinAlgError:
            return None
        sides = np.column_stack([of_strong, self._outer[inside]])
        solved = dense.solve_triangular(factor, sides, lower=True, check_finite=False)
        z = solved[:, 0]
        rest = 1.0 - room - float(z @ z)
        x, inverse = (dense.cho_solve((factor, True), side, check_finite=False) for side in (of_strong, np.eye(len(z))))
        drop = x**2 / np.diagonal(inverse) if len(z) else np.zeros(0)
        return Below(rest, (of_weak - z @ solved[:, 1:]) ** 2, drop)

    def holds(self, below: Below, allowed: BoolArray, places: int) -> bool:
        """Whether no ``places`` of the weak columns allowed can bring a fit on B below the level."""
        count = min(places, int(np.count_nonzero(allowed)))
        if not below.rest > 0.0 or count == 0:
            return below.rest > 0.0
        gains = self._gains(below, places)[allowed]
        return bool(np.partition(gains, len(gains) - count)[len(gains) - count :].sum() * (1.0 + CAREFUL) <= below.rest)

    def in_the_way(self, below: Below, allowed: BoolArray, places: int) -> IntArray:
        """The weak columns that can bring it below the level most easily, some more than there are places."""
        if not allowed.any():
            return np.zeros(0, dtype=np.int64)
        gains = np.where(allowed, self._gains(below, places), 0.0)
        order = np.argsort(-gains)[: places + 2]
        return np.asarray(self.weak[order[allowed[order]]], dtype=np.int64)

    def _gains(self, below: Below, places: int) -> FloatArray:
        D = self.dominance[:, places - 1]
        gains: FloatArray = np.where(D > 0.0, below.q / np.where(D > 0.0, D, 1.0), np.inf)
        return gains


class StrongColumns:
    """Bound to one problem.

    Parameters
    ----------
    problem : Problem
        Quadratic loss, without restrictions.
    support : sequence of int
        Of a good model.
    stop : bool array (1,)
        Turns true when it is to end.
    """

    def __init__(self, problem: Problem, support: Sequence[int], stop: BoolArray) -> None:
        self._problem, self.support, self._stop = problem, support, stop
        self._products = Products(problem)
        self._length = self._products.length

    @property
    def stopped(self) -> bool:
        """Whether it was told to stop: then that it divided nothing means nothing."""
        return bool(self._stop[0])

    @staticmethod
    def is_quick(problem: Problem) -> bool:
        """Whether passes over the products of columns take little beside a factorisation of their matrix."""
        return ROUNDS * ((1 + ALIKE) * problem.k + RIVALS + SORTED) < SHARE * problem.d

    def divide(self, state: StateArray, support: Sequence[int], level: float) -> list[Part] | None:
        """The parts of a region, closed but for single models; None where that is not to be had.

        ``support`` is that of a good model, ``level`` the one below which there is to be nothing.
        """
        places = self._problem.k - int(np.count_nonzero(state == IN))
        if not level < NEAR * self._products.constant or places < 1:
            return None
        strong = self._independent([*np.flatnonzero(state == IN).tolist(), *self._first(state, support)])
        if np.any((state == IN) & (self._length > 0.0) & ~np.isin(np.arange(len(state)), strong)):
            return None
        for _ in range(ROUNDS):
            weak = np.setdiff1d(np.flatnonzero((state == FREE) & (self._length > 0.0)), strong)
            try:
                columns = WeakColumns(self._products, strong, weak, places, self._stop)
            except (np.linalg.LinAlgError, TooMuchAlikeError):
                return None
            tree = _Tree(columns, self._problem.k, level)
            parts = tree.divide(state)
            if parts is not None or not tree.in_the_way:
                return parts
            strong = self._independent([*strong.tolist(), *tree.in_the_way[:MORE]])
        return None

    def _first(self, state: StateArray, support: Sequence[int]) -> list[int]:
        """The columns of a model, and their rivals."""
        products, free = self._products, state == FREE
        own = np.array([j for j in support if state[j] != OUT and self._length[j] > 0.0], dtype=np.int64)
        coef = self._problem.fit(own).coef[own] * self._length[own]
        like = products.among(own, np.arange(len(state)))
        slopes = np.abs(products.target - coef @ like)
        np.abs(like, out=like)
        for values in (slopes[None], like):
            values[:, own] = 0.0
            values[:, ~free | (self._length == 0.0)] = 0.0
        rivals = np.argsort(-slopes, kind="stable")[:RIVALS].tolist()
        alike = [j for row in like for j in np.argsort(-row, kind="stable")[:ALIKE].tolist() if row[j] > LIKE]
        return [*own.tolist(), *rivals, *alike]

    def _independent(self, columns: Sequence[int]) -> IntArray:
        """Those that the ones before them leave something of, ascending."""
        asked = np.array([j for j in dict.fromkeys(columns) if self._length[j] > 0.0], dtype=np.int64)
        C, chosen = self._products.among(asked, asked) - LEAST * np.eye(len(asked)), list[int]()
        for i in range(len(asked)):
            if definite(C[np.ix_([*chosen, i], [*chosen, i])]):
                chosen.append(i)
        return np.sort(asked[chosen])


class _Tree:
    """The tree over the strong columns of a region."""

    def __init__(self, columns: WeakColumns, k: int, level: float) -> None:
        self._columns, self._k, self._level = columns, k, level
        self._proof = StrongPoint(columns.strong.astype(np.int32))
        self._known: dict[bytes, Below | None] = {}
        self.in_the_way: list[int] = []
        """Weak columns that leave regions open, those first that do so most often."""

    def divide(self, state: StateArray) -> list[Part] | None:
        """The parts of a region; None where some of them are left open."""
        parts: list[Part] = []
        waiting, nodes, blamed = [state], 0, Counter[int]()
        while waiting:
            state = waiting.pop()
            nodes += 1
            part, column, blame = self._looked_at(state)
            blamed.update(blame.tolist())
            if nodes > MOST_NODES or len(blamed) > MOST_BLAMED:
                break
            if column < 0:
                parts.append(part)
                continue
            inside, outside = state.copy(), state.copy()
            inside[column], outside[column] = IN, OUT
            waiting += [outside, inside]
        self.in_the_way = [column for column, _ in blamed.most_common()]
        return None if waiting or blamed else parts

    def _looked_at(self, state: StateArray) -> tuple[Part, int, IntArray]:
        """A region as a part, the column to divide it by (-1: none) and the weak columns that leave it open."""
        columns, nothing = self._columns, np.zeros(0, dtype=np.int64)
        strong, places = state[columns.strong], self._k - int(np.count_nonzero(state == IN))
        below = self._below((strong == IN) if places == 0 else (strong != OUT))
        allowed = (state[columns.weak] == FREE) & (places > 0)
        if below is not None and columns.holds(below, allowed, places):
            return Part(state, self._proof), -1, nothing
        free = np.flatnonzero(strong == FREE)
        if not free.size or places == 0:
            weak = columns.weak[allowed]
            return Part(state, None), -1, weak if below is None else columns.in_the_way(below, allowed, places)
        drop = np.zeros(len(strong))
        if below is not None:
            drop[strong != OUT] = below.drop
        return Part(state, None), int(columns.strong[free[np.argmax(drop[free])]]), nothing

    def _below(self, inside: BoolArray) -> Below | None:
        key = inside.tobytes()
        if key not in self._known:
            self._known[key] = self._columns.below(inside, self._level)
        return self._known[key]
