"""A relaxation over very many columns, solved on few of them: a working set that grows by what the others could gain.

Of the columns of a node the relaxation's solution uses few, and its gradient on all columns, one pass over the data,
says whether it is the solution with all of them too: where no column outside takes more off bound (2) than those that
count, the bound on the working set is that of the node. Until then the columns that would take most join the set. Every
pass yields a bound of the whole node, and the best one is kept, so where this ends only decides how good a bound is.

Of quadratic loss the working set's part of the Gram matrix is made, and kept for the next nodes; no other part is. The
bound itself is always evaluated from the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple, cast

import numpy as np

from exactsel._jit import parallel_section
from exactsel.bounds.base import BoundOptions
from exactsel.kernels.apg import Perspective, Rules, relax_nodes
from exactsel.kernels.boxed import Box
from exactsel.kernels.dual import node_bound
from exactsel.kernels.forms import GramData
from exactsel.kernels.node import (
    FREE,
    IN,
    OUT,
    UNFINISHED,
    Answers,
    empty_answers,
    is_convex,
    node_columns,
    write_relaxed,
)
from exactsel.kernels.pair_products import pair_products
from exactsel.problem.objective import Objective
from exactsel.types import BoolArray, FloatArray, IntArray, StateArray

AT_ONCE = 128
"""Columns of a node up to which all of them are the working set."""

FIRST, PER_PLACE = 32, 4
"""Columns a working set begins with beside those of the start, and as many for each place; ..."""

GROWTH = 0.5
"""... in each pass it grows by this part of itself, at most."""

PASSES = 20

CLOSE = 0.05
"""Part of what the working set's bound lacks to the cut-off that may be missing to it when a node stays open."""

SOLVED = 1e-6
"""Relative difference to the working set's bound at which it counts as reached."""

POWER_STEPS, ENLARGED = 12, 1.15
"""Of the power method for the step length, and what it is enlarged by: the steps are not checked, and too long ones
make a bound weak, never wrong."""

MOST_KEPT = 4000
"""Columns whose products with each other are kept."""


def many_columns(n: int, d: int) -> bool:
    """Whether relaxations over d columns of n rows are solved on working sets."""
    return d > max(n, AT_ONCE)


class KnownProducts:
    """Products of those columns with each other that have been in a working set."""

    def __init__(self, AT: FloatArray, y: FloatArray) -> None:
        self._AT, self._y, self._lock = AT, y, Lock()
        self._forget()

    def _forget(self) -> None:
        self._place = np.full(len(self._AT), -1, dtype=np.int64)
        self._columns, self._G, self._b = np.empty(0, dtype=np.int64), np.empty((0, 0)), np.empty(0)

    def among(self, columns: IntArray) -> tuple[FloatArray, FloatArray]:
        """A'A and A'y of some columns (m,): the same numbers in any order of requests."""
        with self._lock:
            new = columns[self._place[columns] < 0]
            if new.size and self._columns.size + new.size > MOST_KEPT:
                self._forget()
                new = columns
            if new.size:
                self._add(new)
            slots = self._place[columns]
            return self._G[np.ix_(slots, slots)], self._b[slots]

    def _add(self, new: IntArray) -> None:
        old_size = self._columns.size
        self._columns = np.concatenate([self._columns, new])
        self._b = np.concatenate([self._b, [float(self._AT[j] @ self._y) for j in new]])
        size = self._columns.size
        self._place[new] = np.arange(old_size, size)
        if size > len(self._G):
            grown = np.empty((size + size // 2, size + size // 2))
            grown[:old_size, :old_size] = self._G[:old_size, :old_size]
            self._G = grown
        pair_products(self._AT, self._columns, old_size, self._G)


class Evaluated(NamedTuple):
    """What a point says of a node."""

    bound: float
    base: float
    q: FloatArray
    """(m,) by the node's columns."""
    x: FloatArray
    """(m,)"""


@dataclass(frozen=True)
class WorkingSet:
    """The relaxations of a problem's nodes over single columns.

    Parameters
    ----------
    base : objective
        Of all columns.
    dual : callable
        What a model (d,) says of some columns, see :meth:`exactsel.problem.coefficient_bounds.CoefficientBounds.dual`.
    perspective : Perspective
        Of all columns, from their rows.
    options : BoundOptions
    products : KnownProducts, optional
        With quadratic loss.
    """

    base: Objective
    dual: Callable[[FloatArray, IntArray], tuple[float, FloatArray]]
    perspective: Perspective
    options: BoundOptions
    products: KnownProducts | None

    def relax_all(
        self, states: StateArray, starts: FloatArray, cutoff: float, parent_bounds: FloatArray, answers: Answers
    ) -> None:
        """Bound each node (a row of ``states``) from a start, one that is convex with all of its columns at once."""
        for row, state in enumerate(states):
            columns, fixed = node_columns(state)
            if is_convex(columns, fixed, self.perspective.k):
                rows = slice(row, row + 1)
                row_answers = Answers(*[cast("Any", array[rows]) for array in answers])
                self._by_kernel(self.perspective, states[rows], starts[rows], cutoff, parent_bounds[rows], row_answers)
            else:
                self._relax(columns, fixed, starts[row], cutoff, float(parent_bounds[row]), answers, row)
        if self.options.stop[0]:
            answers.status[:] = UNFINISHED

    def _by_kernel(
        self, perspective: Perspective, states: StateArray, starts: FloatArray, cutoff: float, bounds: FloatArray,
        answers: Answers,
    ) -> None:  # fmt: skip
        with parallel_section(1):
            relax_nodes(*perspective, states, starts, cutoff, bounds, self.options.stop, answers, answers.point)

    def _relax(
        self, columns: IntArray, fixed: int, start: FloatArray, cutoff: float, bound: float, answers: Answers, row: int
    ) -> None:
        """Write the answer of one node, its columns S first and then C."""
        slots, lam = self.perspective.k - fixed, self.perspective.lam
        x, ranked = start[columns], np.empty(slots + 1)
        best = self._evaluated(columns, fixed, x, ranked)
        chosen, passes = self._first(best, fixed, slots), 0
        while not self.options.stop[0] and best.bound < cutoff and passes < PASSES:
            passes += 1
            point, within = self._solved(columns, fixed, chosen, x, cutoff, bound)
            x = point
            evaluated = self._evaluated(columns, fixed, x, ranked)
            best = max(evaluated, best, key=lambda each: each.bound)
            outside = self._outside(evaluated, chosen, fixed, slots)
            missing = within - best.bound
            enough = SOLVED * abs(within) + (CLOSE * (cutoff - within) if within < cutoff < np.inf else 0.0)
            if not outside.size or missing <= enough:
                break
            chosen[outside[np.argsort(-evaluated.q[outside], kind="stable")[: self._growth(chosen)]]] = True
        write_relaxed(answers, row, columns, fixed, self.perspective.k, lam, best.base, best.q, best.x, best.x, cutoff)
        answers.iterations[row] = passes

    def _evaluated(self, columns: IntArray, fixed: int, x: FloatArray, ranked: FloatArray) -> Evaluated:
        coef = np.zeros(self.base.d)
        coef[columns] = x
        base, q = self.dual(coef, columns)
        bound = float(node_bound(base, q, fixed, len(ranked) - 1, self.perspective.lam, ranked))
        return Evaluated(bound, base, q, x)

    @staticmethod
    def _first(start: Evaluated, fixed: int, slots: int) -> BoolArray:
        """The columns to begin with, as a mask over the node's."""
        chosen: BoolArray = start.x != 0.0
        chosen[:fixed] = True
        if len(chosen) <= AT_ONCE:
            chosen[:] = True
        else:
            chosen[np.argsort(-start.q, kind="stable")[: FIRST + PER_PLACE * slots]] = True
        return chosen

    @staticmethod
    def _growth(chosen: BoolArray) -> int:
        return max(FIRST, int(GROWTH * np.count_nonzero(chosen)))

    @staticmethod
    def _outside(evaluated: Evaluated, chosen: BoolArray, fixed: int, slots: int) -> IntArray:
        """The columns outside the working set that take more off the bound than those of it that count."""
        included = evaluated.q[fixed:][chosen[fixed:]]
        least = np.partition(included, included.size - slots)[included.size - slots] if included.size > slots else 0.0
        return np.flatnonzero(~chosen & (evaluated.q > least))

    def _solved(
        self, columns: IntArray, fixed: int, chosen: BoolArray, x: FloatArray, cutoff: float, bound: float
    ) -> tuple[FloatArray, float]:
        """The relaxation on the working set: a point (m,), and its bound there."""
        at = np.flatnonzero(chosen)
        perspective, slots, d = self._on(columns[at]), np.arange(at.size), at.size
        if self.products is None:
            slots, d = columns[at], self.base.d
        states, start = np.full((1, d), OUT, dtype=np.int8), np.zeros((1, d))
        states[0, slots] = np.where(at < fixed, IN, FREE)
        start[0, slots] = x[at]
        answers = empty_answers(1, d, self.perspective.k)
        self._by_kernel(perspective, states, start, cutoff, np.array([bound]), answers)
        point = np.zeros(len(columns))
        point[at] = answers.point[0, slots]
        return point, float(answers.bound[0])

    def _on(self, columns: IntArray) -> Perspective:
        """The perspective of a working set: by its Gram matrix, or by the rows of all columns."""
        if self.products is None:
            return self.perspective
        base, whole = self.base, self.perspective
        G, b = self.products.among(columns)
        data = GramData(G, b, base.at_zero, base.n, base.norms[columns], base.AT[:0])
        box: Box | None = whole.groups
        if box is not None:
            box = box._replace(lower=box.lower[columns], upper=box.upper[columns])
        rules: Rules = whole.rules._replace(lipschitz=_largest(G))
        return Perspective(whole.loss, data, box, whole.lam, whole.k, rules)


def _largest(G: FloatArray) -> float:
    """About the largest eigenvalue."""
    vector = np.ones(len(G)) / np.sqrt(len(G))
    value = float(np.max(np.diagonal(G), initial=1e-300))
    for _ in range(POWER_STEPS):
        image = G @ vector
        length = float(np.linalg.norm(image))
        if not length > 0.0:
            break
        value, vector = max(value, length), image / length
    return ENLARGED * value
