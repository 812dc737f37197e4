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
from typing import NamedTuple

import numpy as np

from exactsel.algebra import dense
from exactsel.algebra.elimination import definite, entry_error, shift
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

ROOM = 1e-10
"""Part of the squared length of columns that is taken off M at least."""

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


class WeakColumns:
    """What all columns but some strong ones can add to a fit on strong ones.

    Parameters
    ----------
    problem : Problem
        With quadratic loss.
    strong : int array (m,)
        The columns of F, ascending.
    weak : int array (any,)
        Those of W, ascending.
    places : int
        Columns of W a model may have, at most; at least 1.

    Raises
    ------
    TooMuchAlikeError
        Where that is soon seen to be of no use.
    """

    def __init__(self, problem: Problem, strong: IntArray, weak: IntArray, places: int) -> None:
        self.strong, self.weak, self.places = strong, weak, places
        self._constant, self._roundings = problem.gram.constant, problem.gram.roundings
        H = problem.hessian
        length = np.sqrt(np.diagonal(H))
        F, W = length[strong], length[weak]
        self._most = len(strong) + places + 2
        self._inner = H[np.ix_(strong, strong)] / np.outer(F, F)
        self._outer = H[np.ix_(strong, weak)] / np.outer(F, W)
        self._b = problem.gram.b[strong] / F, problem.gram.b[weak] / W
        self._taken = max(ROOM, 2.0 * self._room(0.99 * self._constant))
        self.dominance = self._dominance(H, W)

    def _room(self, level: float) -> float:
        """mu for sets of strong and weak columns and the target."""
        return 2.0 * shift(self._most, entry_error(self._roundings, self._constant, level))

    def _dominance(self, H: FloatArray, length: FloatArray) -> FloatArray:
        """D (columns of W, places); not positive where nothing is known of a column."""
        count, most = len(self.weak), min(self.places, len(self.weak)) - 1
        factor = np.linalg.cholesky(self._inner - self._taken * np.eye(len(self.strong)))
        X = dense.solve_triangular(factor, self._outer, lower=True, check_finite=False)
        left = 1.0 - self._taken - np.einsum("ij,ij->j", X, X)
        known = left > 0.0
        root = length * np.sqrt(np.where(known, left, np.inf))
        X /= np.sqrt(np.where(known, left, np.inf))
        result, alike = np.empty((count, self.places)), int(np.count_nonzero(~known))
        for part in _parts(count):
            if alike > MORE:
                raise TooMuchAlikeError
            M = H[np.ix_(self.weak[part], self.weak)] / np.outer(root[part], root)
            M -= X[:, part].T @ X
            np.abs(M, out=M)
            M[np.arange(len(M)), part] = 0.0
            sums = np.zeros((len(M), self.places))
            if most > 0:
                largest = -np.sort(-np.partition(M, count - most, axis=1)[:, count - most :], axis=1)
                sums[:, 1 : most + 1] = np.cumsum(largest, axis=1)
                sums[:, most + 1 :] = sums[:, most, None]
            result[part] = left[part, None] * (1.0 - sums * (1.0 + CAREFUL)) * (1.0 - CAREFUL)
            alike += int(np.count_nonzero(known[part] & ~(result[part, -1] > 0.0)))
        result[~known] = -1.0
        return result

    def below(self, inside: BoolArray, level: float) -> Below | None:
        """For B, a mask over the strong columns; None where rounding is too large."""
        room = self._room(level) if level < self._constant else math.inf
        if not 2.0 * room <= self._taken:
            return None
        scale = math.sqrt(2.0 * (self._constant - level))
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
    """

    def __init__(self, problem: Problem, support: Sequence[int]) -> None:
        self._problem, self.support = problem, support
        self._length = np.sqrt(np.diagonal(problem.hessian))

    @staticmethod
    def is_quick(problem: Problem) -> bool:
        """Whether passes over the products of columns take little beside a factorisation of their matrix."""
        return ROUNDS * ((1 + ALIKE) * problem.k + RIVALS + SORTED) < SHARE * problem.d

    def divide(self, state: StateArray, support: Sequence[int], level: float) -> list[Part] | None:
        """The parts of a region, closed but for single models; None where that is not to be had.

        ``support`` is that of a good model, ``level`` the one below which there is to be nothing.
        """
        places = self._problem.k - int(np.count_nonzero(state == IN))
        if not level < self._problem.gram.constant or places < 1:
            return None
        strong = self._independent([*np.flatnonzero(state == IN).tolist(), *self._first(state, support)])
        if np.any((state == IN) & (self._length > 0.0) & ~np.isin(np.arange(len(state)), strong)):
            return None
        for _ in range(ROUNDS):
            weak = np.setdiff1d(np.flatnonzero((state == FREE) & (self._length > 0.0)), strong)
            try:
                columns = WeakColumns(self._problem, strong, weak, places)
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
        problem, free = self._problem, state == FREE
        H, b, length = problem.hessian, problem.gram.b, np.where(self._length > 0.0, self._length, np.inf)
        model = [j for j in support if state[j] != OUT]
        own = np.array(model, dtype=np.int64)
        slopes = np.abs(b - H[:, own] @ problem.fit(own).coef[own]) / length
        slopes[own] = 0.0
        slopes[~free] = 0.0
        rivals = np.argsort(-slopes, kind="stable")[:RIVALS].tolist()
        like = np.abs(H[own]) / np.outer(length[own], length)
        like[:, own] = 0.0
        like[:, ~free] = 0.0
        alike = [j for row in like for j in np.argsort(-row, kind="stable")[:ALIKE].tolist() if row[j] > LIKE]
        return [*model, *rivals, *alike]

    def _independent(self, columns: Sequence[int]) -> IntArray:
        """Those that the ones before them leave something of, ascending."""
        chosen: list[int] = []
        H, length = self._problem.hessian, self._length
        for j in dict.fromkeys(columns):
            if length[j] == 0.0:
                continue
            both = [*chosen, j]
            C = H[np.ix_(both, both)] / np.outer(length[both], length[both]) - LEAST * np.eye(len(both))
            if definite(C):
                chosen = both
        return np.array(sorted(chosen), dtype=np.int64)


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
