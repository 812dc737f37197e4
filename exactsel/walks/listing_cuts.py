"""Shorten a list of sets by more minorants, each made where the last ones say least.

One q touches P at one point, and is loose on sets whose best models are elsewhere. But the box of intervals that holds
{P <= U} (bounds/minorant.py) serves every point in it. So, as with cutting planes, more q are made, and every set whose
bound one of them lifts to U is dropped. The first ones touch P at the mean of the models on which the sets' bounds are
attained: near most of them, and nearer to what is left as the list grows shorter. Once that drops few, the set with the
smallest bound is fitted, roughly, and q touches P there: it is nearly exact on this set, and on those that share most
of its columns. Each q, by its ellipsoid {q <= U}, also cuts the intervals. A model better than U takes its place.

It goes on as long as the fits that are saved would take more work than that; work is counted, not timed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError

from exactsel._jit import loss_session, parallel_section
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.minorant import Minorant, as_minorant, ellipsoid, touching
from exactsel.kernels.listing_cuts import raise_bounds
from exactsel.kernels.node import IN, OUT
from exactsel.kernels.refit import newton_bounds
from exactsel.problem.fit import Fit
from exactsel.problem.regression import Problem
from exactsel.problem.rows import Rows, Unusable
from exactsel.types import FloatArray, IntArray, StateArray

ROUGH = 1e-3
"""Times the problem's gradient scale: where a rough fit ends."""

PATIENCE = 2
"""Rounds that together must save more than they cost, for another to be made."""

MANY, AGAIN = 0.85, 4
"""Where the mean leaves more than this part of the list, so many rounds follow at fits."""

ROUND_WORK, SET_WORK, CUBES = 4e5, 500.0, 10.0
"""Multiplications a round is worth beside those of its sums over rows, a set beside those of its factorisation, and
the matrices of a round, times m^3."""

ROW_SHARE = 2.0
"""Times what a row's loss is worth in a Newton step: what it is in a round."""


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
    problem: Problem, below: Minorant, sets: IntArray, upper: float, fit_work: float, row_work: float,
    options: BoundOptions, any_better: bool = False,
) -> Shortened | None:  # fmt: skip
    """A list, made with ``below`` where some model is known to cost ``upper``, without the sets that cuts can drop.

    A fit takes ``fit_work`` multiplications, ``row_work`` of them for each row and step. None when told to stop midway.
    With ``any_better`` it ends with the first model that is better than U.
    """
    cuts = _Cuts(problem, sets, upper, options)
    cuts.apply(below, upper)
    m, saved, at_fits = len(below.scale), [np.inf], 0
    round_work = ROUND_WORK + problem.n * (ROW_SHARE * row_work + m * m) + CUBES * m**3
    quiet = np.errstate(over="ignore", invalid="ignore")
    try:
        with loss_session(problem.loss), quiet, Rows(problem.objective, options.stop, options.threads) as rows:
            low, high = below.low, below.high
            while sum(saved[-PATIENCE:]) > 0.0 and not (options.stop[0] or (any_better and cuts.best)):
                before = len(cuts.sets)
                work = round_work + before * (SET_WORK + (problem.k + 1) ** 3) + (fit_work if at_fits else 0.0)
                if before * fit_work <= PATIENCE * work:
                    break
                row, coef = cuts.rough_fit() if at_fits else (-1, cuts.mean())
                model = rows.model(coef, problem.objective)
                z = np.clip(rows.predictions(model), low, high)
                q = touching(rows, z, low, high, cuts.upper)
                cuts.apply(as_minorant(rows, q, low, high, cuts.upper, model, below.fit), cuts.upper, row)
                center, needed = ellipsoid(rows, q)
                low, high = np.maximum(low, center - needed), np.minimum(high, center + needed)
                left = len(cuts.sets)
                saved.append((before - left) * fit_work - work)
                if at_fits or left > MANY * before:
                    at_fits = (at_fits + 1) % (AGAIN + 1)
    except (Unusable, LinAlgError):
        pass
    return None if options.stop[0] else Shortened(cuts.sets, cuts.models, cuts.upper, cuts.best, cuts.bound)


def fit_to_the_end(problem: Problem, chosen: IntArray) -> tuple[Fit, float]:
    """The best model on a set, and what no model on it is below."""
    fit = problem.fit(chosen)
    region: StateArray = np.full(problem.d, OUT, dtype=np.int8)
    region[chosen] = IN
    return fit, problem.objective.dual_bound(fit.coef, region, chosen.size)


class _Cuts:
    """The sets that are left, and what is known of each."""

    def __init__(self, problem: Problem, sets: IntArray, upper: float, options: BoundOptions) -> None:
        self._problem, self._options = problem, options
        self.sets, self.models = sets, np.zeros(sets.shape)
        self._bounds = np.full(len(sets), -np.inf)
        self.upper, self.bound = upper, np.inf
        self.best: Fit | None = None

    def apply(self, below: Minorant, upper: float, row: int = -1) -> None:
        """Raise the bounds by a minorant on {P <= upper}, and drop what comes to U.

        A set in a ``row`` that is given is then fitted to the end if it is still there, and leaves the list.
        """
        with parallel_section(self._options.threads):
            raise_bounds(
                below.quadratic, below.scale, below.level, upper, self.sets, self._problem.d, self._options.stop,
                self._bounds, self.models,
            )  # fmt: skip
        kept = ~(self._bounds >= self.upper)
        if row >= 0 and kept[row]:
            kept[row] = False
            fit, bound = fit_to_the_end(self._problem, self.sets[row][self.sets[row] >= 0])
            self.bound = min(self.bound, bound)
            if fit.value < self.upper:
                self.best, self.upper = fit, fit.value
                kept &= ~(self._bounds >= self.upper)
        self.sets, self.models, self._bounds = self.sets[kept], self.models[kept], self._bounds[kept]

    def mean(self) -> FloatArray:
        """(d,) The mean of the models on which the sets' bounds are attained."""
        there = self.sets >= 0
        total = np.bincount(self.sets[there], self.models[there], self._problem.d)
        return np.asarray(total / len(self.sets))

    def rough_fit(self) -> tuple[int, FloatArray]:
        """The row of the set with the smallest bound, and nearly the best model on it (d,)."""
        problem, row = self._problem, int(np.argmin(self._bounds))
        models = self.models[row : row + 1].copy()
        with parallel_section(self._options.threads):
            newton_bounds(
                problem.row_loss, problem.raw.AT, problem.y, problem.raw.norms, problem.lam, self.sets[row : row + 1],
                ROUGH * problem.gradient_scale, np.inf, self._options.stop, np.empty(1), models,
            )  # fmt: skip
        coef, chosen = np.zeros(problem.d), self.sets[row][self.sets[row] >= 0]
        coef[chosen] = models[0, : len(chosen)]
        return row, coef
