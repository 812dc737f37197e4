"""Count all sets of columns of two values by the cells they divide the rows into, and fit those that are left.

For logistic loss and any coefficients (kernels/cell_counting.py). It depends neither on the ridge nor on the
correlation of the columns, so it closes what no relaxation sees: 0/1 data that a few columns divide almost without a
fault, with a small ridge. What it takes is known beforehand, and the search waits until it has itself spent as much.
Where too many sets are left it is given up, early: parents are counted in a random order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TypeGuard

import numpy as np

from exactsel._jit import parallel_section
from exactsel.bounds.base import BoundOptions
from exactsel.enumeration.below_minorant import Listed, fitted
from exactsel.enumeration.minorant_restricted import RestrictedSets
from exactsel.enumeration.pattern_classes import Classes, classes_of, filled, level_of, sets_within, supports_of
from exactsel.enumeration.work_budget import WholeProblemAttempt
from exactsel.kernels.cell_counting import ADD, LOOK_UP, count_sets
from exactsel.kernels.node import FREE, IN
from exactsel.losses.logistic import Logistic
from exactsel.problem.capabilities import PLAIN_REGRESSION
from exactsel.problem.fit import Fit
from exactsel.problem.interface import SubsetProblem, is_regression
from exactsel.problem.regression import Problem
from exactsel.types import FloatArray, IntArray

Checkable = Callable[[int, int, int, int], bool]
"""Whether a checker counts again, by default, all sets of r of m columns over cells of n rows: of n, cells, m, r."""

MOST_ROWS, MOST_COLUMNS, MOST_ENTRIES = 1 << 22, 400, 5e7
"""Rows, by weight, columns and entries there may be."""

MOST_BYTES = 1e8
"""Memory one thread may take."""

WORK, MOST_PARENTS = 1e13, 10_000_000
"""Multiplications a count may be worth (an hour on one core), and what the kernel calls parents."""

WAIT = 1.0
"""The search must have spent so many times as much before."""

LOOK = 100
"""Iterations' worth that the search has spent before the work of a count is estimated. Within limits on coefficients an
iteration takes Newton steps: half a table of all columns each."""

AT_ONCE = 5e8
"""Multiplications after which the stop flag is read (some tenths of a second)."""

SECONDS, CORES = 4e-10, 4
"""A multiplication takes so long: nothing is begun that could not end within the time limit on so many cores."""

SHORT = 1e-6
"""Part of the objective by which a count may fall short of it and still close a problem."""

LONGEST, SHORTEST, FIT_ROWS = 100_000, 64, 50
"""Sets that may be left, between these limits: a fit is worth so many multiplications a row, and all of them together
as much as the search has spent."""

AGAIN = 8.0
"""Where there were more it is tried again after so many times as much."""

MOST_PROMISING = 64
"""Where too many are left, so many with the least sums are fitted, to begin again from a better model."""

CHUNKS, CALLS = 32, 64
"""Chunks of parents in a call, and how many calls there are, about."""

ROOM = 4096
"""Sets that are noted of a chunk."""


class PatternEnumerator:
    """Bound to one problem; counts the whole of it once."""

    def __init__(
        self, problem: Problem, options: BoundOptions, checkable: Checkable | None = None,
        restricted: RestrictedSets | None = None,
    ) -> None:  # fmt: skip
        """Where ``checkable`` is given, only counts that it accepts are made; ``restricted`` as of a lister."""
        self._problem, self._options, self._checkable, self._restricted = problem, options, checkable, restricted

    @staticmethod
    def serves(problem: SubsetProblem) -> TypeGuard[Problem]:
        """Whether this can be thought of: logistic loss, rows of whole weight, two values in every free column."""
        if (
            not is_regression(problem, PLAIN_REGRESSION) or not problem.units.free_columns or problem.d == 0
            or not isinstance(problem.loss, Logistic) or problem.d > MOST_COLUMNS or not problem.lam > 0.0
            or problem.n * problem.d > MOST_ENTRIES
        ):  # fmt: skip
            return False
        objective = problem.objective
        weights = np.ones(objective.n) if objective.weights is None else objective.weights
        if not (np.all(weights == np.rint(weights)) and weights.sum() <= MOST_ROWS):
            return False
        return all(_of_two_values(objective.AT[j]) for j in np.flatnonzero(problem.root_state == FREE))

    @property
    def stopped(self) -> bool:
        """Whether it was stopped: then its list is incomplete and proves nothing."""
        return bool(self._options.stop[0])

    def explore(
        self, upper: float, iterations: int, counted: WholeProblemAttempt
    ) -> tuple[Listed | None, WholeProblemAttempt]:
        """The whole problem, where some model is known to cost ``upper``; None where that is not to be had now.

        ``iterations`` is what the search has spent, in steps of its relaxation, and ``counted`` the outcome of earlier
        counts; the outcome so far is returned. A bound of -inf comes with a better model. What was found once is what
        is said ever after.
        """
        if math.isfinite(counted.bound):
            return Listed(counted.bound, None, np.zeros((0, 0), dtype=np.int64), 0), counted
        entries = float(self._problem.n * self._problem.d)
        boxed = self._restricted is not None and self._restricted.problem.coefficient_bounds is not None
        spent = entries * iterations * (1.0 + (self._problem.d / 2 if boxed else 0.0))
        if spent <= LOOK * entries or spent < counted.after or not spent >= WAIT * self.work:
            return None, counted
        listing = by_cells(self._problem, self._classes, upper, spent, self._options, self._restricted)
        if self.stopped:
            return None, counted
        if listing is None or not math.isfinite(listing.bound):
            return listing, WholeProblemAttempt(AGAIN * spent)
        value = upper if listing.fit is None else listing.fit.value
        if listing.bound < value - SHORT * abs(value):  # fits that rounding leaves little to say of: bounds say more
            return (None if listing.fit is None else replace(listing, bound=-math.inf)), WholeProblemAttempt(math.inf)
        return listing, WholeProblemAttempt(AGAIN * spent, listing.bound)

    @cached_property
    def work(self) -> float:
        """The multiplications a count is worth; inf where it is too much."""
        problem, seconds = self._problem, self._options.seconds
        slots = problem.k - int(np.count_nonzero(problem.root_state == IN))
        if not 0 < slots < np.count_nonzero(problem.root_state == FREE):
            return math.inf
        size = min(slots, len(self._classes.members))
        improving = FIT_ROWS * float(problem.n) * slots * problem.d
        work = count_work(self._classes, size) + improving
        in_time = seconds is None or work * SECONDS <= CORES * seconds
        cells = self._classes.cells << max(0, size - 3)
        fits = 24.0 * cells * len(self._classes.members) ** 2 <= MOST_BYTES
        parents = math.comb(len(self._classes.members), max(0, size - 3))
        few = parents <= MOST_PARENTS and work <= 4.0 * AT_ONCE * parents
        if self._checkable is not None:
            few &= self._checkable(problem.n, self._classes.cells, len(self._classes.columns), slots)
        return work if work <= WORK and in_time and fits and few else math.inf

    @cached_property
    def _classes(self) -> Classes:
        return classes_of(self._problem, self._problem.root_state)


def count_work(classes: Classes, size: int) -> float:
    """The multiplications that counting all sets of so many classes is worth, about."""
    data, m = classes.data, len(classes.members)
    rows, counts = len(data.start), np.diff(data.first)
    if size < 2:
        return 4.0 * m * rows
    after = np.repeat(data.first[1:], counts) - np.arange(len(data.columns))
    # What is added for the rows that hold a column to the pairs after it, or for all rows to those from it on.
    below = np.bincount(data.columns, weights=ADD * (after * (after - 1) / 2 + 2.0), minlength=m)
    from_here = np.bincount(data.columns, weights=ADD * after, minlength=m)
    in_all = np.append(np.cumsum(from_here[::-1])[::-1], 0.0)
    if size == 2:
        return float(in_all[0] + 4.0 * ADD * rows + LOOK_UP * m * m)
    work, above = 0.0, size - 3
    for j in range(m - 2):
        rest = (m - j) ** 2 * (LOOK_UP + 0.4 * (classes.cells << above))
        work += math.comb(j, above) * float(below[j] + rest)
        if above > 0:
            work += math.comb(j, above - 1) * float(in_all[j + 1] + ADD * rows * size)
    return work if above > 0 else work + float(in_all[0])


class _TooMany(Exception):
    """Too many sets are left: those with the least sums (rows)."""

    def __init__(self, sets: IntArray) -> None:
        super().__init__(len(sets))
        self.sets = sets


def by_cells(
    problem: Problem, classes: Classes, upper: float, work: float, options: BoundOptions,
    restricted: RestrictedSets | None = None,
) -> Listed | None:  # fmt: skip
    """The region of these classes; None where there is none, or after a stop. ``upper`` is U.

    For a problem whose restrictions were dropped, ``restricted`` gives the costs of its models.

    ``work`` is what fits may be worth. Where too many sets are left, but a better model was found on the way, that
    comes with a bound of -inf.
    """
    slots, better, none = problem.k - len(classes.fixed), None, np.empty((0, 0), dtype=np.int64)
    most = int(min(LONGEST, max(SHORTEST, work / (FIT_ROWS * problem.n))))
    size = min(slots, len(classes.members))
    while True:
        try:
            sets = sets_left(classes, size, slots, upper, most, options)
            supports = None if sets is None else supports_of(classes, sets, slots, upper, most, options.stop)
            break
        except _TooMany as many:
            if restricted is not None:
                return None
            fit = _improved(problem, classes, many.sets, upper, options)
            if fit is None:
                return None if better is None else Listed(-math.inf, better, none, 0)
            better, upper = fit, fit.value
    if supports is None:
        return None
    outcome = fitted(problem, supports, np.zeros(supports.shape), upper, len(supports), options, restricted)
    if outcome is None or options.stop[0]:
        return None
    return outcome[0] if outcome[0].fit is not None else replace(outcome[0], fit=better)


def _improved(
    problem: Problem, classes: Classes, sets: IntArray, upper: float, options: BoundOptions
) -> Fit | None:  # fmt: skip
    """A model better than U from some sets of classes (rows), columns exchanged as long as that helps; or None."""
    slots = problem.k - len(classes.fixed)
    chosen = [next(filled(classes, row, slots), None) for row in sets.tolist()]
    supports = [support for support in chosen if support is not None]
    value, best = math.inf, tuple[int, ...]()
    while supports and not options.stop[0]:
        table = np.array([[*classes.fixed, *support] for support in supports])
        values = np.full(len(table), np.inf)
        share = 1 + int(AT_ONCE / (FIT_ROWS * problem.n))
        for begin in range(0, len(table), share):
            if not options.stop[0]:
                part = slice(begin, begin + share)
                values[part] = problem.objectives(table[part], options.threads)
        i = int(np.argmin(np.where(np.isnan(values), np.inf, values)))
        if not values[i] < value:
            break
        value, best = float(values[i]), supports[i]
        others = [j for j in classes.columns if j not in best]
        supports = [tuple(sorted({*best, j} - {gone})) for gone in best for j in others]
    fit = problem.fit((*classes.fixed, *best)) if value < upper else None
    return fit if fit is not None and fit.value < upper else None


def sets_left(
    classes: Classes, size: int, slots: int, upper: float, most: int, options: BoundOptions
) -> IntArray | None:  # fmt: skip
    """All sets of ``size`` classes (rows) whose cells let them come below U; None after a stop.

    :class:`_TooMany` where they stand for more than ``most`` sets of columns, or will.
    """
    m, threshold = len(classes.members), level_of(classes, upper, size)
    if size < 2:
        sets = np.arange(m if size else 1, dtype=np.int64).reshape(-1, 1)[:, :size]
        return sets_within(classes, sets, upper, options.stop)
    above, columns = max(0, size - 3), m - 3 if size > 2 else 0
    parents = math.comb(columns, above)
    ways = np.array([[math.comb(i, a) for a in range(above + 1)] for i in range(columns + 1)], dtype=np.int64)
    order = np.random.default_rng(0).permutation(parents)
    # Threads see the flag between calls.
    quick = max(1, int(AT_ONCE * parents / count_work(classes, size)))
    share, members = (
        min(quick, -(-parents // (CHUNKS * CALLS)) * CHUNKS),
        np.array([len(group) for group in classes.members]),
    )
    survivors, sums, supports, counted = np.empty((0, size), dtype=np.int64), np.empty(0), 0, 0
    for begin in range(0, parents, share):
        batch = order[begin : begin + share]
        numbers = np.full((CHUNKS, -(-batch.size // CHUNKS)), -1, dtype=np.int64)
        numbers.T.flat[: batch.size] = batch
        rows, their_sums = np.empty((CHUNKS, ROOM, size), dtype=np.int64), np.empty((CHUNKS, ROOM))
        counts, levels = np.zeros(CHUNKS, dtype=np.int64), np.full(CHUNKS, threshold)
        with parallel_section(options.threads):
            count_sets(
                *classes.data, classes.cells, size, ways, numbers, threshold, options.stop, rows, their_sums, counts,
                levels, np.zeros(CHUNKS),
            )  # fmt: skip
        if options.stop[0]:
            return None
        there = np.arange(ROOM) < counts[:, None]
        new = rows[there]
        survivors, sums = np.concatenate([survivors, new]), np.concatenate([sums, their_sums[there]])
        counted += batch.size
        supports += int(np.prod(members[new], axis=1).sum()) if size == slots else len(new)
        # Sets were dropped where the level came down; or half of them stayed, should that many be just at the level.
        left_out = np.any(levels < threshold) or np.any(2 * counts >= ROOM)
        if left_out or supports > most * min(1.0, 0.05 + 4.0 * counted / parents):
            raise _TooMany(survivors[np.argsort(sums, kind="stable")[:MOST_PROMISING]])
    return survivors


def _of_two_values(column: FloatArray) -> bool:
    others = column[column != column[0]]
    return bool(others.size == 0 or np.all(others == others[0]))
