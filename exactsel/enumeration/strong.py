"""Few strong columns and many weak ones: a tree over the strong ones, and a bound for what the weak ones can add.

Quadratic loss, columns one by one, with or without a ridge. F holds the columns of a good model and their rivals, W all
others. With columns of length one (the ridge included) and F eliminated, W keeps the matrix M. For any r columns of W
x'Mx is bounded from below by their cosines, for any coefficients (enumeration/like_columns.py). Less of F eliminated
only leaves more. So a region with S in, the columns B of F (S among them) not excluded and r places holds nothing below
a level L if r columns of W never gain more than 1 - z'z, z and u being what the elimination of B makes and leaves of v
= b / sqrt(2 (c - L)), the target being one more column of length sqrt(2 (c - L)), of which less than all must be
eliminated by B: else the fit on B is below the level. The cosines take one pass over the products of columns; each node
of the tree takes one over B and W.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exactsel.algebra.elimination import definite
from exactsel.bounds.witness import StrongPoint
from exactsel.enumeration.cosine_graphs import graphs
from exactsel.enumeration.like_columns import LikeColumns
from exactsel.enumeration.products import Products
from exactsel.enumeration.weak_columns import NEAR, TooMuchAlikeError, WeakColumns
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.problem.regression import Problem
from exactsel.types import BoolArray, IntArray, StateArray

RIVALS, ALIKE, LIKE = 10, 3, 0.3
"""Strong columns besides those of a model: so many that would reduce its objective most, and of each of its columns so
many of those that have a larger cosine with it."""

MOST_NODES = 4_000
"""Nodes of the tree over the strong columns."""

LEAST = 1e-6
"""Part of its squared length that elimination must leave of a strong column."""

ROUNDS, MORE = 2, 10
"""Passes at most, after each of which so many columns that stand in the way become strong ones."""

SORTED, SHARE = 20, 0.2
"""Multiplications that finding the largest cosines is worth, an entry, and the part of the cube of the columns that all
passes, and all gains of like columns, may take: a root bound of another kind takes as much and more."""

MOST_BLAMED = 40
"""Weak columns in the way after which a tree is given up."""


@dataclass(frozen=True)
class Part:
    """A region of the tree over the strong columns."""

    state: StateArray
    proof: StrongPoint | None
    """What shows that it holds nothing below the level; None where it is left open."""


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
    threads : int
    """

    def __init__(self, problem: Problem, support: Sequence[int], stop: BoolArray, threads: int = 1) -> None:
        self._problem, self.support, self._stop, self._threads = problem, support, stop, threads
        self._products, self._work_left = Products(problem), SHARE * float(problem.d) ** 3
        self._length = self._products.length

    @property
    def stopped(self) -> bool:
        """Whether it was stopped: then that it divided nothing means nothing."""
        return bool(self._stop[0])

    @staticmethod
    def is_quick(problem: Problem) -> bool:
        """Whether passes over the products of columns take little beside a factorisation of their matrix."""
        return ROUNDS * ((1 + ALIKE) * problem.k + RIVALS + SORTED) < SHARE * problem.d

    def divide(self, state: StateArray, support: Sequence[int], level: float) -> list[Part] | None:
        """The parts of a region, closed but for single models; None where that is not to be had.

        ``support`` is that of a good model, ``level`` the one below which there is to be nothing.
        """
        slots = self._problem.k - int(np.count_nonzero(state == IN))
        if not level < NEAR * self._products.constant or slots < 1:
            return None
        strong = self._independent([*np.flatnonzero(state == IN).tolist(), *self._first(state, support)])
        if np.any((state == IN) & (self._length > 0.0) & ~np.isin(np.arange(len(state)), strong)):
            return None
        for _ in range(ROUNDS):
            weak = np.setdiff1d(np.flatnonzero((state == FREE) & (self._length > 0.0)), strong)
            try:
                columns = WeakColumns(
                    self._products, strong, weak, slots, most_alike=MORE, stop=self._stop, threads=self._threads
                )
            except (np.linalg.LinAlgError, TooMuchAlikeError):
                return None
            in_the_way: list[int] = []
            for graph in graphs(columns):
                bound = LikeColumns(columns, graph)
                in_the_way = bound.too_much_alike().tolist()
                if in_the_way:
                    continue
                tree = _Tree(columns, bound, self._problem.k, level, self._work_left)
                parts = tree.divide(state)
                self._work_left -= bound.work
                if parts is not None or self.stopped or self._work_left <= 0.0:
                    return parts
                in_the_way = tree.in_the_way[:MOST_BLAMED]
            if not 0 < len(in_the_way) <= MOST_BLAMED:
                return None
            strong = self._independent([*strong.tolist(), *in_the_way[:MORE]])
        return None

    def _first(self, state: StateArray, support: Sequence[int]) -> list[int]:
        """The columns of a model, and their rivals."""
        products, free = self._products, state == FREE
        active = np.array([j for j in support if state[j] != OUT and self._length[j] > 0.0], dtype=np.int64)
        coef = self._problem.fit(active).coef[active] * self._length[active]
        like = products.among(active, np.arange(len(state)))
        slopes = np.abs(products.target - coef @ like)
        np.abs(like, out=like)
        for values in (slopes[None], like):
            values[:, active] = 0.0
            values[:, ~free | (self._length == 0.0)] = 0.0
        rivals = np.argsort(-slopes, kind="stable")[:RIVALS].tolist()
        alike = [j for row in like for j in np.argsort(-row, kind="stable")[:ALIKE].tolist() if row[j] > LIKE]
        return [*active.tolist(), *rivals, *alike]

    def _independent(self, columns: Sequence[int]) -> IntArray:
        """Those that the ones before them leave something of, ascending."""
        candidates = np.array([j for j in dict.fromkeys(columns) if self._length[j] > 0.0], dtype=np.int64)
        C, chosen = self._products.among(candidates, candidates) - LEAST * np.eye(len(candidates)), list[int]()
        for i in range(len(candidates)):
            if definite(C[np.ix_([*chosen, i], [*chosen, i])]):
                chosen.append(i)
        return np.sort(candidates[chosen])


class _Tree:
    """The tree over the strong columns of a region."""

    def __init__(self, columns: WeakColumns, bound: LikeColumns, k: int, level: float, most_work: float) -> None:
        self._columns, self._bound, self._k, self._level, self._most_work = columns, bound, k, level, most_work
        self._proof = StrongPoint(columns.strong.astype(np.int32), bound.threshold)
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
            if nodes > MOST_NODES or len(blamed) > MOST_BLAMED or self._bound.work > self._most_work:
                waiting.append(state)  # it may have been the last, and is neither closed nor divided
                break
            if column < 0:
                parts.append(part)
                continue
            included, outside = state.copy(), state.copy()
            included[column], outside[column] = IN, OUT
            waiting += [outside, included]
        self.in_the_way = [column for column, _ in blamed.most_common()]
        return None if waiting or blamed else parts

    def _looked_at(self, state: StateArray) -> tuple[Part, int, IntArray]:
        """A region as a part, the column to divide it by (-1: none) and the weak columns that leave it open."""
        columns, bound, nothing = self._columns, self._bound, np.zeros(0, dtype=np.int64)
        strong, slots = state[columns.strong], self._k - int(np.count_nonzero(state == IN))
        below = columns.below((strong == IN) if slots == 0 else (strong != OUT), self._level)
        free = np.flatnonzero(strong == FREE)
        last = not free.size or slots == 0
        if below is not None and bound.holds(below, slots, thorough=last):
            return Part(state, self._proof), -1, nothing
        if last:
            weak = columns.weak if slots else nothing
            return Part(state, None), -1, weak if below is None else bound.in_the_way(below, slots)
        drop = np.zeros(len(strong))
        if below is not None:
            drop[strong != OUT] = below.drop
        return Part(state, None), int(columns.strong[free[np.argmax(drop[free])]]), nothing
