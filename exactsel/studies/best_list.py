"""The list of the best models over all sizes: every set of columns whose criterion is within a threshold.

The threshold is the n-th best criterion known, or a distance from the best. For each size it is a threshold of the
objective, and the sets of exactly so many columns are a solution pool (:mod:`exactsel.studies.pool_search`). Its models
lower the threshold of all sizes; so many models are first looked for among the neighbours of those known, by
exchanging, adding and dropping a column.

Most pools are filled at once, by an enumeration of all sets on a quadratic minorant of the objective
(:mod:`exactsel.studies.best_enumeration`). Where there is none, as where columns depend on each other and lam = 0, or
where there are very many sets, regions are bounded one by one, or searched (:mod:`exactsel.studies.best_partition`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from exactsel.problem.design import is_design
from exactsel.solving.result import Result
from exactsel.solving.settings import Settings
from exactsel.studies.best_enumeration import SizeEnumeration
from exactsel.studies.best_models import BestModels, RankedModel, claim_over_sizes
from exactsel.studies.best_neighbours import backward, grow
from exactsel.studies.best_partition import SearchedRegions
from exactsel.studies.best_search import NO_BOUND, AcrossSizes, SizeSearch
from exactsel.studies.pool_search import RegionSolver, SolutionPool, fill
from exactsel.studies.sequence import settings_among
from exactsel.studies.size_criterion import SizeCriterion
from exactsel.studies.size_report import SizeReport, SizeStatus
from exactsel.studies.solution_pool import fill_by_bounds

EASY = 5e8
"""Multiplications a size may take before anything is searched."""

WAY_DOWN = 2e9
"""Rows times columns three times, up to which the way down from all columns is gone."""

FAILURES = 3
"""Sizes that cannot be listed at once, after which no others are tried."""

MANY_SETS = 1_000_000
"""More sets than this are not partitioned region by region, where there is no minorant."""


@dataclass
class SizePool(SolutionPool):
    """The models of one size, up to a threshold that those of all sizes lower."""

    pools: SizePools = field(kw_only=True)
    level: float = field(kw_only=True)
    """The threshold when it was last looked at."""

    @property
    def threshold(self) -> float:
        """The objective up to which models are listed."""
        return self.level

    def renew(self) -> None:
        """Lower the threshold to what the models of all sizes make of it."""
        self.level = min(self.level, self.pools.level(self.problem.k))

    def add(self, support: tuple[int, ...], value: float) -> bool:
        """Add a model, and record it."""
        added = super().add(support, value)
        if added:
            self.pools.across.known.note(support, value)
        return added

    def drop(self) -> list[tuple[int, ...]]:
        """Drop the models beyond the threshold; whether their fits are doubted is judged in the end, of all sizes."""
        super().drop()
        return []


@dataclass(frozen=True)
class ListRequest:
    """Which models are listed beside the best one."""

    top: int = 1
    """So many, ..."""
    within: float | None = None
    """... and all whose criterion is at most this above the best."""
    cap: int = 1000
    """Models of one size after which the list is cut short."""

    @property
    def several(self) -> bool:
        """Whether it is for more than the best model."""
        return self.top > 1 or self.within is not None

    def threshold(self, best: float, nth: float) -> float:
        """The criterion up to which models are listed, by the best one known and the ``top``-th best."""
        if self.within is None:
            return nth
        return max(nth if self.top > 1 else -math.inf, best + self.within)

    def answer(
        self, ranked: list[RankedModel], criterion: SizeCriterion, reports: tuple[SizeReport, ...], *,
        threshold: float, complete: bool, stop: str, result: Result, valid_for: str,
    ) -> BestModels:  # fmt: skip
        """The models that were requested, of all that were found, and what the reports of the sizes prove of them."""
        best = ranked[0]
        lower = min(best.criterion, *(report.lower for report in reports))
        none_open = all(report.status is not SizeStatus.OPEN for report in reports)
        if not self.several:
            threshold, complete = best.criterion, none_open
        models = [model for model in ranked if model.criterion <= threshold]
        if self.within is None or len(models) < self.top:
            models = ranked[: self.top]
        return BestModels(
            tuple(models), criterion, reports, lower, threshold, complete,
            claim_over_sizes(best.criterion, lower, none_open, criterion, best.objective, best.df),
            "complete" if none_open and complete else stop, result, valid_for,
        )  # fmt: skip


@dataclass
class SizePools:
    """The pools of all sizes."""

    across: AcrossSizes
    request: ListRequest

    def __post_init__(self) -> None:
        self.listed: set[int] = set()
        self.valid_for, self.looked, self.top = "", False, self.request.top
        self.at_once = SizeEnumeration(self.across, self.request.cap)

    @property
    def free(self) -> bool:
        """Whether coefficients are free and there is a table of columns, as lists at once and neighbours need it."""
        problem = self.across.problem
        return problem.coefficient_bounds is None and not is_design(problem.AT)

    @property
    def threshold(self) -> float:
        """The criterion up to which models are listed; inf where there are fewer models than requested."""
        return self.request.threshold(self.across.known.best, self.across.known.nth_best(self.top))

    def firm(self) -> None:
        """Fit the models that are shown."""
        self.across.known.firm(1, to_the_end=True)
        if self.request.within is not None:
            self.across.known.firm(self.top, below=self.threshold)

    def look(self) -> None:
        """Look for good models, and list what can be listed at once, before anything is searched."""
        study = self.across
        if (
            not self.free
            or study.proofs is not None
            or not study.limited
            or not any(map(self.at_once.possible, study.sizes))
        ):
            return
        if study.problem.n * float(study.problem.d) ** 3 > WAY_DOWN:
            return
        self.looked = True
        backward(study)
        self._list_all()
        failed = 0
        for size in study.by_promise():
            if study.is_over() or failed == FAILURES:
                return
            if size not in self.listed and not self._closed(size) and self.at_once.possible(size):
                if self._fill(self._pool(size), replace(self.at_once, work=EASY)) == "complete":
                    self.listed.add(size)
                else:
                    failed += 1

    def run(self) -> None:
        """List all sizes, the most promising first, or as many as the limits leave time for."""
        study = self.across
        if self.top > 1 and not self.looked and self.free:
            self._list_all()
        for size in study.by_promise():
            if size in self.listed or self._closed(size):
                continue
            if study.by_size[size].result is None:
                study.search(size, eps=NO_BOUND)
            if study.is_over():
                break
            if size == 0:  # one set of columns, which is met before anything else
                self.listed.add(size)
                continue
            self._list(size)
        for size in study.sizes:
            if self._closed(size):
                self.listed.add(size)

    def _list_all(self) -> None:
        """Look for good models, and list all sizes together, where that can be done."""
        grow(self.across, self.top)
        self.across.known.firm(self.top)
        pools = {size: self._pool(size) for size in self.across.sizes if not self._closed(size)}
        self.listed |= self.at_once.fill_all(pools, self.top, self.request.within is None)

    @property
    def complete(self) -> bool:
        """Whether all models within the threshold are known."""
        return self.listed >= {*self.across.sizes} and not self.across.known.doubted(self.threshold)

    def _closed(self, size: int) -> bool:
        return self.across.lower_of(size)[0] > self.level(size)

    def level(self, size: int) -> float:
        """The objective at which this size reaches the threshold; no set of columns is above the empty one."""
        return min(self.across.criterion.level(self.threshold, size), self.highest)

    @property
    def highest(self) -> float:
        """Above the objective of any set of columns; infinite where the empty model does not meet the equalities."""
        problem = self.across.problem
        return math.inf if problem.first_support is not None else (1.0 + 1e-6) * problem.null_objective

    def _pool(self, size: int) -> SizePool:
        """The pool of a size, with nothing in it yet."""
        search, level = self.across.by_size[size], self.level(size)
        root = [(search.problem.root_state, None)]
        return SizePool(search.problem, min(search.upper, level), 0.0, root, pools=self, level=level)

    def _fill(self, pool: SizePool, solver: RegionSolver) -> str:
        """Fill a pool; why that ended."""
        return fill(pool, solver, self.request.cap, self.across.stop_reason)

    def _list(self, size: int) -> None:
        """Fill the pool of a size, by the first way that leaves nothing open."""
        study, search = self.across, self.across.by_size[size]
        assert search.result is not None
        valid_for, pool = search.result.valid_for or self.valid_for or study.valid_for, self._pool(size)
        if self.free and self._fill(pool, replace(self.at_once, valid_for=valid_for)) == "complete":
            self.listed.add(size)
        elif not study.is_over():
            solver = SearchedRegions(search.problem, study.options, lambda: study.time_left)
            ended = self._fill(pool, solver) if self._many(search) else self._bounded(pool, valid_for)
            if ended == "complete":
                self.listed.add(size)
                self.valid_for = self.valid_for or valid_for or pool.restriction
            else:
                study.terminations.append(ended)

    def _bounded(self, pool: SizePool, valid_for: str) -> str:
        """Fill a pool by bounds of its regions; why that ended."""
        study = self.across
        settings = Settings(**settings_among(study.options) | {"time_limit": study.time_left})
        signals = study.options.get("signals", ())
        ended = fill_by_bounds(pool, valid_for, self.request.cap, settings, signals)
        if ended == "precision" and pool.restriction and not valid_for:
            return self._bounded(pool, pool.restriction)
        return ended

    def _many(self, search: SizeSearch) -> bool:
        """Whether a size has too many sets for a partition region by region, and no constraint on them."""
        units = search.problem.units
        free = units.d - len(units.force_in) - len(units.force_out)
        slots = search.size - len(units.force_in)
        return units.constraint is None and slots > 0 and math.comb(free, slots) > MANY_SETS


Supports = dict[tuple[int, ...], float]
"""The objectives of models, or about that, by their columns."""


def _best_known(size: int, about: Supports) -> tuple[float, tuple[int, ...] | None]:
    """The best model known of one size: its objective, or about that, and its columns."""
    return min(((value, s) for s, value in about.items() if len(s) == size), default=(math.inf, None))


def status_of(study: AcrossSizes, size: int, about: Supports, lower: float = -math.inf) -> SizeStatus:
    """What is proven of one size, where other searches have shown that none of its objectives is below ``lower``."""
    lower = max(lower, study.lower_of(size)[0])
    if not study.settles(size, lower):
        return SizeStatus.OPEN
    objective, support = _best_known(size, about)
    tolerance = study.finest(objective)
    if study.criterion.name == "l0":  # its tolerance is one of the penalised objective
        tolerance = max(tolerance, study.finest(study.criterion.value(objective, size)))
    attained = support in study.known.models and objective - lower <= tolerance
    return SizeStatus.PROVEN if attained else SizeStatus.CANNOT_WIN


def report_of(study: AcrossSizes, pools: SizePools, size: int, about: Supports) -> SizeReport:
    """What is known of one size."""
    search, (_, by) = study.by_size[size], study.lower_of(size)
    objective, support = _best_known(size, about)
    criterion = math.inf if support is None else study.criterion.value(objective, size)
    lower = min(study.criterion_below(size), criterion)
    source = study.by_size.get(size if by is None else by)
    proof = None if source is None or source.result is None else source.result.proof
    return SizeReport(
        size, criterion, lower, support, 0 if search.result is None else search.result.nodes, by,
        status_of(study, size, about), pools.request.several and size in pools.listed,
        study.floor_proofs.get(size, proof) if by == size else proof,
    )  # fmt: skip
