"""Shorten a list of sets by more minorants, each made where the last ones say least.

One q touches P at one point, and is loose on sets whose best models are elsewhere. But the box of intervals that holds
{P <= U} (bounds/minorant.py) serves every point in it. So, as with cutting planes, more q are made, and every set whose
bound one of them lifts to U is dropped. The first ones touch P at the mean of the models on which the sets' bounds are
attained: near most of them, and nearer to what is left as the list grows shorter. Once that drops few, the set with the
smallest bound is fitted, roughly, and q touches P there: it is nearly exact on this set, and on those that share most
of its columns. Each q, by its ellipsoid {q <= U}, also cuts the intervals. A model better than U takes its place.

At last, for logistic loss, what is left is closed as soon as a Newton step or two come near its best models
(kernels/listing_close.py).

It continues as long as the fits that are saved would take more work than that; work is counted, not timed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError

from exactsel._jit import parallel_section
from exactsel.algebra.elimination import gamma
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.minorant import Minorant, as_minorant, ellipsoid, largest_in, least_curvature, touching
from exactsel.kernels.listing_close import Box, close_sets
from exactsel.kernels.listing_cuts import raise_bounds
from exactsel.kernels.node import IN, OUT
from exactsel.kernels.refit import newton_bounds
from exactsel.losses.logistic import Logistic
from exactsel.problem.fit import Fit
from exactsel.problem.regression import Problem
from exactsel.problem.rows import BLOCK, Rows, Unusable
from exactsel.types import BoolArray, FloatArray, IntArray, StateArray

ROUGH = 1e-3
"""Times the problem's gradient scale: where a rough fit ends."""

PATIENCE = 2
"""Rounds that together must save more than they cost, for another to be made."""

MANY, AGAIN = 0.85, 4
"""Where the mean leaves more than this part of the list, so many rounds follow at fits."""

CUT_SHARE = 0.25
"""Part of the work of all fits that may be made that cuts take at most."""

ROUND_WORK, SET_WORK, CUBES = 4e5, 500.0, 10.0
"""Multiplications a round is worth beside those of its sums over rows, a set beside those of its factorisation, and
the matrices of a round, times m^3."""

ROW_SHARE = 2.0
"""Times what a row's loss is worth in a Newton step: what it is in a round."""


CLOSING, CLOSING_STEPS = 0.25, 20
"""Part of a fit's work that it takes to close a set, and Newton steps until that is given up."""


WIDER = 0.1
"""Part of the intervals by which they are widened, to both sides, for closing sets: their best models are above U, so
that predictions may well be outside of them."""


class Shortened(NamedTuple):
    """What is left of a list."""

    sets: IntArray
    """(count, k at most) the sets still to be fitted."""
    models: FloatArray
    """(count, k at most) coefficients to begin at."""
    upper: float
    """Of the best model known: no set that was dropped holds a better one."""
    best: Fit | None
    """This model, where it was met here."""
    bound: float
    """No model of a set that was fitted here is below this; infinity where none was."""


def shortened(
    problem: Problem, below: Minorant, sets: IntArray, upper: float, fit_work: float, row_work: float, most_work: float,
    options: BoundOptions, any_better: bool = False, every: bool = False,
) -> Shortened | None:  # fmt: skip
    """A list, made with ``below`` where some model is known to cost ``upper``, without the sets that cuts can drop.

    A fit takes ``fit_work`` multiplications, ``row_work`` of them for each row and step; no more than ``most_work`` are
    made for sets that are left in the end. None after a stop midway. With ``any_better`` it ends with the first model
    that is better than U. With ``every`` U stays where it is, also when better models are found, and all sets of models
    that are no worse stay in the list.
    """
    cuts = _Cuts(problem, sets, upper, options, every)
    cuts.apply(below, upper)
    quiet = np.errstate(over="ignore", invalid="ignore")
    try:
        with quiet, Rows(problem.objective, options.stop, options.threads) as rows:
            work_left = CLOSING * fit_work if closable(rows) else fit_work
            low, high = _cut(rows, cuts, below, row_work, fit_work, work_left, CUT_SHARE * most_work, any_better)
            if closable(rows) and len(cuts.sets) * work_left <= most_work and not (any_better and cuts.best):
                cuts.close(rows, low, high)
    except (Unusable, LinAlgError):
        pass
    # In one piece: kernels would be compiled again for what is not.
    models = np.ascontiguousarray(cuts.models[:, : sets.shape[1]])
    if options.stop[0]:
        return None
    shortlist = Shortened(cuts.sets, models, cuts.upper, cuts.best, cuts.bound)
    if not cuts.met:
        return shortlist
    met = np.array(cuts.met, dtype=np.int64)
    return shortlist._replace(sets=np.vstack([shortlist.sets, met]), models=np.vstack([models, np.zeros(met.shape)]))


def _cut(
    rows: Rows, cuts: _Cuts, below: Minorant, row_work: float, fit_work: float, work_left: float, most_work: float,
    any_better: bool,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Rounds of cuts, while they save more than they cost, and take no more than ``most_work`` in all: the last box.

    A set that is left costs ``work_left``.
    """
    problem, saved, at_fits, m, spent = cuts.problem, [np.inf], 0, rows.m, 0.0
    round_work = ROUND_WORK + rows.n * (ROW_SHARE * row_work + m * m) + CUBES * m**3
    low, high = below.low, below.high
    while sum(saved[-PATIENCE:]) > 0.0 and not (rows.stopped or (any_better and cuts.best)):
        before = len(cuts.sets)
        work = round_work + before * (SET_WORK + (problem.k + 1) ** 3) + (fit_work if at_fits else 0.0)
        spent += work
        if before * work_left <= PATIENCE * work or spent > most_work:
            break
        row, coef = cuts.rough_fit() if at_fits else (-1, cuts.mean())
        model = rows.model(coef, problem.objective)
        z = np.clip(rows.predictions(model), low, high)
        q = touching(rows, z, low, high, cuts.upper)
        cuts.apply(as_minorant(rows, q, low, high, cuts.upper, model, below.fit), cuts.upper, row)
        center, needed = ellipsoid(rows, q)
        low, high = np.maximum(low, center - needed), np.minimum(high, center + needed)
        saved.append((before - len(cuts.sets)) * work_left - work)
        if at_fits or len(cuts.sets) > MANY * before:
            at_fits = (at_fits + 1) % (AGAIN + 1)
    return low, high


def closable(rows: Rows) -> bool:
    """Whether sets can be closed by one curvature for all: rows are few enough, and it is known where it is least."""
    return rows.n <= BLOCK and isinstance(rows.loss, Logistic)


def fit_to_the_end(problem: Problem, chosen: IntArray) -> tuple[Fit, float]:
    """The best model on a set, and what no model on it is below."""
    fit = problem.fit(chosen)
    return fit, proven_at(problem, fit)


def proven_at(problem: Problem, fit: Fit) -> float:
    """What no model on the columns of a best one is below."""
    region: StateArray = np.full(problem.d, OUT, dtype=np.int8)
    region[fit.columns] = IN
    return problem.objective.dual_bound(fit.coef, region, fit.columns.size)


class _Cuts:
    """The sets that are left, and what is known of each."""

    def __init__(
        self, problem: Problem, sets: IntArray, upper: float, options: BoundOptions, every: bool = False
    ) -> None:
        self.problem, self._options, self._every = problem, options, every
        self.met: list[IntArray] = []
        """Sets that were fitted and hold models no worse than U, where U stays as it is."""
        self.sets = -np.sort(-sets, axis=1)  # what pads a row comes last
        self.models = np.zeros((len(sets), sets.shape[1] + problem.objective.intercept))
        self._bounds = np.full(len(sets), -np.inf)
        self.upper, self.bound = upper, np.inf
        self.best: Fit | None = None

    def apply(self, below: Minorant, upper: float, row: int = -1) -> None:
        """Raise the bounds by a minorant on {P <= upper}, and drop the sets whose bound reaches U.

        A set in a ``row`` that is given is then fitted to the end if it is still there, and leaves the list.
        """
        with parallel_section(self._options.threads):
            raise_bounds(
                below.quadratic, below.scale, below.threshold, upper, self.sets, self.problem.d, self._options.stop,
                self._bounds, self.models,
            )  # fmt: skip
        survivors = ~(self._bounds >= self.upper)
        if row >= 0 and survivors[row]:
            survivors[row] = False
            fit, bound = fit_to_the_end(self.problem, self.sets[row][self.sets[row] >= 0])
            self.bound = min(self.bound, bound)
            if self._every and not bound >= self.upper:
                self.met.append(self.sets[row])
            elif not self._every and fit.value < self.upper:
                self.best, self.upper = fit, fit.value
                survivors &= ~(self._bounds >= self.upper)
        self._keep(survivors)

    def _keep(self, mask: BoolArray) -> None:
        self.sets, self.models, self._bounds = self.sets[mask], self.models[mask], self._bounds[mask]

    def mean(self) -> FloatArray:
        """(d,) The mean of the models on which the sets' bounds are attained."""
        there, models = self.sets >= 0, self.models[:, : self.sets.shape[1]]
        total = np.bincount(self.sets[there], models[there], self.problem.d)
        return np.asarray(total / len(self.sets))

    def close(self, rows: Rows, low: FloatArray, high: FloatArray) -> None:
        """Drop the sets that one curvature for the whole box shows to hold no model as good as U."""
        wider = WIDER * (high - low)
        low, high = low - wider, high + wider
        w = least_curvature(rows, low, high)
        q = touching(rows, 0.5 * (low + high), low, high, self.upper, w)
        largest = largest_in(q)
        size = float(q.quadratic.lengths @ largest)
        box = Box(
            low, high, w, rows.ridge, rows.scale, rows.lengths, largest, gamma(rows.n + 64), rows.error,
            1.1 * q.noise_square * size * size, self.upper,
        )  # fmt: skip
        closed = np.zeros(len(self.sets), dtype=np.bool_)
        weights = np.empty(0) if rows.weights is None else rows.weights
        with parallel_section(self._options.threads):
            close_sets(
                rows.loss, rows.block(0), rows.y, weights, q.quadratic, box, self.sets, self.problem.d, CLOSING_STEPS,
                self._options.stop, self.models, closed,
            )  # fmt: skip
        self._keep(~closed)

    def rough_fit(self) -> tuple[int, FloatArray]:
        """The row of the set with the smallest bound, and nearly the best model on it (d,)."""
        problem, row = self.problem, int(np.argmin(self._bounds))
        models = self.models[row : row + 1].copy()
        with parallel_section(self._options.threads):
            newton_bounds(
                problem.row_loss, problem.raw.AT, problem.y, problem.raw.norms, problem.lam, self.sets[row : row + 1],
                problem.objective.gradient_tolerance(ROUGH), np.inf, self._options.stop, np.empty(1), models,
            )  # fmt: skip
        coef, chosen = np.zeros(problem.d), self.sets[row][self.sets[row] >= 0]
        coef[chosen] = models[0, : len(chosen)]
        return row, coef


def least_models(below: Minorant, sets: IntArray, d: int) -> FloatArray:
    """The model with the least minorant on each set, its coefficients in the order of the set's columns."""
    q, models, there = below.quadratic, np.zeros(sets.shape), sets >= 0
    sizes = np.count_nonzero(there, axis=1)
    for size in np.unique(sizes).tolist():
        rows = np.flatnonzero(sizes == size)
        chosen = sets[rows][there[rows]].reshape(len(rows), size)
        columns = np.hstack([chosen, np.broadcast_to(np.arange(d, len(q.h)), (len(rows), len(q.h) - d))])
        try:
            x = np.linalg.solve(q.H[columns[:, :, None], columns[:, None, :]], q.h[columns][:, :, None])[:, :size, 0]
        except LinAlgError:
            continue
        models[rows, :size] = x * below.scale[chosen]
    return models
