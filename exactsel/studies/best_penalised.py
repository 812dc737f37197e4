"""The penalised objective P(x) + lam0 ||x||_0 over all sizes together, before sizes are searched one by one.

One tree bounds models of every size (:mod:`exactsel.enumeration.penalised`). A lower bound of the penalised objective,
less the price of the columns, is a bound for each size. The dual vector of the root also bounds each size by itself, as
it gives a bound for models of at most k columns for any k. A tree that is not finished within its work has still done
that, and sizes that are left are searched.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext, suppress

import numpy as np

from exactsel._jit import interpreted, parallel_section
from exactsel.algebra.threads import one_thread
from exactsel.enumeration.penalised import PenalisedTree
from exactsel.enumeration.penalised_record import TreeRecord
from exactsel.errors import UnsupportedError
from exactsel.kernels.box import gram_box_objectives
from exactsel.kernels.refit import gram_objectives
from exactsel.problem.capabilities import QUADRATIC_LOSS
from exactsel.problem.gram_data import gram_data
from exactsel.problem.read_only import read_only
from exactsel.search.watch import Watch
from exactsel.solving.small import is_small
from exactsel.studies.best_search import AcrossSizes
from exactsel.studies.penalised_proofs import TreeProofs
from exactsel.types import FloatArray, IntArray

PORTION = 4e9
"""Multiplications the tree may take at first. The next portion is twice as large, and so on, ..."""

ALMOST = 0.1
"""... as long as no more than this part of the distance from the root's bound to the cut-off is left, and half of what
was left before. Within limits searches of sizes have no bound that is better, so it continues in any case (measured:
10,000 columns, limits five times too large, 20 s: 46 % are left where 53 % are with the sizes, 80 % without the tree).
"""

WORK = 2e11
"""Multiplications after which the tree is given up in any case."""

SHARE, SHARE_WITHIN_LIMITS = 0.5, 0.95
"""Part of the time left that the tree may take."""

ROUNDING = 2.0**-48
"""Times a penalised objective and its price: more than what rounding does to their difference."""

SPARE = 0.5
"""Part of the tolerance by which the tree proves more where that is to be shown."""

LIKELY = 10
"""Columns that are tried as additions to a model, those with the largest slopes."""


def serves(study: AcrossSizes) -> bool:
    """Whether one tree may bound all sizes: columns are chosen freely, one by one."""
    problem = study.problem
    return (
        study.criterion.name == "l0"
        and not problem.units.grouped
        and problem.units.constraint is None
        and not problem.valid_for
    )


def bound_all_sizes(study: AcrossSizes, work: float = WORK) -> TreeProofs | None:
    """Note good models, and what one tree proves of each size; what to write its proofs by, where such are wanted."""
    if not serves(study):
        return None
    proofs = None
    remaining, share = study.time_left, SHARE if study.problem.coefficient_bounds is None else SHARE_WITHIN_LIMITS
    signals = study.options.get("signals", ())
    compiled = nullcontext() if is_small(study.problem) else interpreted(False)
    with Watch(None if remaining is None else share * remaining, signals) as watch, one_thread(), compiled:
        with suppress(UnsupportedError):
            proofs = _Run(study, watch).run(work)
        if watch.interrupted:
            study.terminations.append("interrupted")
    return proofs


class _Run:
    """A tree, and the models it meets."""

    def __init__(self, study: AcrossSizes, watch: Watch) -> None:
        self.across, self.price = study, study.criterion.lam0
        problem = study.by_size[max(study.sizes)].problem
        self.problem = problem
        self.objective = problem.objective
        self._cutoff: float | None = None
        self.tree = PenalisedTree(
            problem, self.price, self._meet, self.cutoff, watch.flag, study.time_left,
            None if study.proofs is None else TreeRecord(),
        )  # fmt: skip

    def run(self, work: float) -> TreeProofs | None:
        """Run the tree, and note what it proves."""
        if self.cutoff() == math.inf:
            return None
        self._improve(self.problem.force_in)
        self.tree.run(1.0)  # the root
        root, portion, missing = self.tree.lower, min(PORTION, work), 2.0 * ALMOST
        while not self.tree.done and self.tree.work < work:
            self.tree.run(self.tree.work + portion)
            cutoff = self.cutoff()
            gap = (cutoff - self.tree.lower) / (cutoff - root) if root < cutoff else 0.0
            slow = gap > 0.5 * missing and self.problem.coefficient_bounds is None
            if slow or self.tree.stop[0]:
                break
            portion, missing = 2.0 * portion, gap
        self.across.shared_nodes = self.tree.nodes
        self._note_floors()
        floors = {size: self.across.floors[size] for size in self.across.sizes}
        return None if self.across.proofs is None else TreeProofs(self.across, self.tree, floors)

    def cutoff(self) -> float:
        """The penalised objective, in the numbers that are searched, at which no model of any size is better."""
        if self._cutoff is not None:
            return self._cutoff
        study, statement = self.across, self.across.known.statement
        most = -math.inf
        for size in study.sizes:
            threshold = study.threshold(size)
            if threshold >= 0.0:
                most = max(most, statement.needed(threshold, "") + self.price * size)
        # A file claims a little less than what was proven, so a little more is.
        spare = 0.0 if study.proofs is None else SPARE * study.finest(study.known.best)
        self._cutoff = most + ROUNDING * abs(most) + spare
        return self._cutoff

    def _note_floors(self) -> None:
        study, proven = self.across, self.tree.lower
        closed = self.tree.done
        for size in study.sizes:
            threshold, charged = study.threshold(size), self.price * size
            bound = proven - charged - ROUNDING * (abs(proven) + charged)
            if self.tree.root_floors is not None:
                bound = max(bound, float(self.tree.root_floors[size]))
            done = (closed and proven >= self.cutoff()) or bound >= study.known.statement.needed(threshold, "")
            if done and study.proofs is None:
                floor = threshold
            else:
                most = min(max(threshold, bound), study.upper_of(size))
                floor = study.known.statement.lower(bound, most, "")
            study.floors[size] = max(floor, study.floors.get(size, -math.inf))

    def _meet(self, support: tuple[int, ...]) -> None:
        """Note a model, and where it is better than the best its better neighbours."""
        if len(support) in self.across.sizes and self._better(support):
            self._improve(support)

    def _improve(self, support: Sequence[int]) -> None:
        """Note better neighbours of a model, each the best of those of the one before."""
        while not self.across.is_over():
            neighbours = self._neighbours(tuple(sorted(support)))
            support = neighbours[int(np.argmin(self._values(neighbours)))]
            if not self._better(support):
                return

    def _better(self, support: tuple[int, ...]) -> bool:
        study, before = self.across, self.across.known.best
        fit = self.problem.fit(support)
        if fit.value + self.price * len(support) < before:
            study.known.note(support, study.known.statement.upper(fit))
            self._cutoff = None
        return study.known.best < before

    def _neighbours(self, support: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Models with a column more, a column less, or another one, of the likeliest columns."""
        problem, objective, included = self.problem, self.objective, set(support)
        slopes = np.abs(objective.gradient(problem.fit(support).coef)) / np.maximum(objective.norms, 1e-300)
        slopes[list({*included, *problem.force_out})] = -1.0
        added = [j for j in np.argsort(-slopes, kind="stable")[:LIKELY].tolist() if slopes[j] >= 0.0]
        dropped = [j for j in support if j not in problem.force_in]
        candidates = [included | {j} for j in added] + [included - {j} for j in dropped]
        candidates += [(included | {i}) - {j} for i in added for j in dropped]
        return [tuple(sorted(each)) for each in candidates if len(each) in self.across.by_size] or [support]

    def _values(self, supports: list[tuple[int, ...]]) -> list[float]:
        """About what models cost, each with its price."""
        width = max(len(each) for each in supports) or 1
        padded = np.full((len(supports), width), -1, dtype=np.int64)
        for row, each in enumerate(supports):
            padded[row, : len(each)] = each
        prices = self.price * np.count_nonzero(padded >= 0, axis=1)
        return [float(v) if np.isfinite(v) else math.inf for v in self._costs(padded) + prices]

    def _costs(self, supports: IntArray) -> FloatArray:
        """What models (rows, padded with -1) cost, from the products of their columns alone where that will do."""
        objective, limits = self.objective, self.problem.coefficient_bounds
        if not self.problem.has(QUADRATIC_LOSS):
            return self.problem.objectives(supports, self.across.threads)
        columns, costs = np.unique(supports[supports >= 0]), np.full(len(supports), np.nan)
        local = np.where(supports >= 0, np.searchsorted(columns, supports), -1)
        gram = gram_data(objective.AT[columns], objective.y, objective.norms[columns])[:3]
        with parallel_section(1):
            if limits is not None:
                lower, upper = read_only(limits.lower[columns]), read_only(limits.upper[columns])
                gram_box_objectives(*gram, objective.lam, lower, upper, local, costs)
            else:
                gram_objectives(*gram, objective.lam, local, costs)
        return costs
