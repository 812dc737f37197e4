"""The best model over all sizes where terms have several columns: their price is a number of columns.

A criterion prices a model by its columns, and models of equally many terms may have more or fewer. So what is divided
first is which of the wide terms, those of several columns, are in. Where that is settled, columns are left to be chosen
one by one, sizes count columns, and the search is that of :mod:`exactsel.studies.best_search`:

    part   <- some wide terms in, some out, others open
    bound  <- the criterion of the fit on all columns that are not out, priced as the fewest columns of the part
    where many terms are open, their columns chosen one by one give a higher bound: every set of terms is such a choice
    a part that cannot reach the threshold is closed; one with a term open is divided; all others are searched

All parts share the threshold: the best criterion known, or as far above as models are listed.
"""

from __future__ import annotations

import math
from bisect import insort
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import Any

from exactsel import clock
from exactsel.errors import InputError
from exactsel.kernels.node import IN, OUT
from exactsel.problem.regression import Problem
from exactsel.problem.units import Units
from exactsel.proofs.statement import statement_of
from exactsel.search.watch import Watch
from exactsel.solving.api import solve
from exactsel.solving.outcome import Termination
from exactsel.studies.best_list import ListRequest, SizePools, report_of, status_of
from exactsel.studies.best_search import AcrossSizes
from exactsel.studies.size_criterion import SizeCriterion
from exactsel.studies.size_report import SizeReport, SizeStatus
from exactsel.studies.size_supports import meets

Terms = tuple[int, ...]

MANY_OPEN = 4
"""With so many wide terms open a part is searched first as if their columns were chosen one by one, ..."""

NODES_OF_EACH = 2000
"""... with so many regions for each size."""


@dataclass(order=True)
class Part:
    """The models that have some of the wide terms and lack others."""

    bound: float
    """No model of it has a smaller criterion."""
    number: int
    included: Terms = field(compare=False)
    outside: Terms = field(compare=False)
    lower: float = field(compare=False, default=-math.inf)
    """No model of it has a smaller objective."""
    sizes: range = field(compare=False, default=range(0))
    """How many columns its models may have."""
    terms: int = field(compare=False, default=0)
    """How many terms they have at least."""


@dataclass
class AcrossTerms:
    """The search over all sets of terms."""

    problem: Problem
    """Its k is the largest number of terms."""
    criterion: SizeCriterion
    options: dict[str, Any]
    """As for :class:`exactsel.studies.best_search.AcrossSizes`."""
    request: ListRequest
    models: dict[Terms, float] = field(default_factory=dict)
    """The objective of every model that was met, by its terms."""
    values: list[float] = field(default_factory=list)
    """Their criteria, ascending."""
    reports: dict[int, list[SizeReport]] = field(default_factory=dict)
    """What each part says of models of so many columns."""
    lowers: list[tuple[int, float]] = field(default_factory=list)
    """For each part a number of terms, and an objective that no model of it with as many or more is below."""
    terminations: list[str] = field(default_factory=list)
    valid_for: str = ""
    complete: bool = True

    def __post_init__(self) -> None:
        self.began, self.time_limit = clock.now(), self.options.pop("time_limit", None)
        self.units = self.problem.units
        self.wide = [g for g, columns in enumerate(self.units.groups) if len(columns) > 1]
        self.statement = statement_of(self.problem)
        self.watch: Watch | None = None
        self.parts = 0

    @property
    def time_left(self) -> float | None:
        """Seconds of the time limit; None where there is none."""
        return None if self.time_limit is None else max(0.0, self.time_limit - (clock.now() - self.began))

    def is_over(self) -> bool:
        """Whether time is over or a stop was requested."""
        stopped = self.watch is not None and self.watch.stopped
        return stopped or self.time_left == 0.0 or Termination.INTERRUPTED.value in self.terminations

    def value(self, terms: Terms) -> float:
        """The criterion of a model that was met."""
        return self._measure(terms).value(self.models[terms], self.df(terms))

    def df(self, terms: Terms) -> int:
        """The columns of some terms."""
        return sum(len(self.units.groups[g]) for g in terms)

    def _criteria_by_columns(self) -> dict[tuple[int, ...], float]:
        return {tuple(self.units.columns_of(terms).tolist()): self.value(terms) for terms in self.models}

    def _measure(self, terms: Terms) -> SizeCriterion:
        return replace(self.criterion, beyond=sum(len(self.units.groups[g]) - 1 for g in terms))

    @property
    def threshold(self) -> float:
        """The criterion up to which models are looked for."""
        values, top = [*self.values, math.inf], self.request.top
        return self.request.threshold(values[0], values[top - 1] if len(values) > top else math.inf)

    # --- the parts ---

    def run(self) -> None:
        """Search all parts, or as many as there is time for."""
        self._note(tuple(self.units.completed(self.units.force_in, self.problem.k) or ()))
        order = self._by_weight()
        open_parts: list[Part] = []
        self._open(open_parts, (), ())
        while open_parts:
            part = heappop(open_parts)
            if self._closed(part) or self.is_over():
                self._tell_of(part)
                continue
            undecided = [g for g in order if g not in part.included and g not in part.outside]
            if len(undecided) >= MANY_OPEN and not self.request.several:
                undecided = self._one_by_one(part, undecided)
                if self._closed(part):
                    self._tell_of(part)
                    continue
            if undecided:
                self._open(open_parts, (*part.included, undecided[0]), part.outside, part)
                self._open(open_parts, part.included, (*part.outside, undecided[0]), part)
            else:
                self._search(part)

    def _open(self, parts: list[Part], included: Terms, outside: Terms, above: Part | None = None) -> None:
        """Add a part that holds a model at all, with its bound."""
        columns = self.columns_problem(included, outside)
        if columns is None:
            return
        region = columns.root_state
        fewest, most = int((region == IN).sum()), int((region != OUT).sum())
        terms = len(self.units.units_of([j for j in range(columns.d) if region[j] == IN]))
        limit = self.criterion.largest_size()
        sizes = range(fewest, (most if limit is None else min(most, limit)) + 1)
        if terms > self.problem.k or not sizes:
            return
        lower = -math.inf if above is None else above.lower
        if above is None or included == above.included:
            lower = max(lower, self._fit_on_all(columns, most))
        self.parts += 1
        bound = max(min(self._below(lower, size) for size in sizes), -math.inf if above is None else above.bound)
        heappush(parts, Part(bound, self.parts, included, outside, lower, sizes, terms))

    def _fit_on_all(self, columns: Problem, most: int) -> float:
        """An objective that no model of a part is below; -inf where its columns could fit every row."""
        if self.is_over() or not (most + 1 < columns.n or columns.lam > 0.0):
            return -math.inf
        # One region, whose fit is the best model.
        options = {**self.options, "heuristics": (), "time_limit": self.time_left}
        result = solve(columns.replace(k=most), **options)
        self.valid_for = self.valid_for or result.valid_for
        return result.lower

    def _below(self, lower: float, size: int) -> float:
        """The criterion that no model of so many columns, however many terms, is below."""
        return replace(self.criterion, gamma=0.0).below(lower, size)

    def _closed(self, part: Part) -> bool:
        threshold = self.threshold
        if part.bound > threshold or (part.bound == threshold and not self.request.several):
            return True
        measure = replace(self.criterion, gamma=0.0)
        levels = (measure.level(threshold, size) for size in part.sizes)
        return all(part.lower > level or (part.lower == level and not self.request.several) for level in levels)

    def _one_by_one(self, part: Part, undecided: list[int]) -> list[int]:
        """Raise a part's bound: the columns of its open terms chosen one by one, which every set of terms is, too.

        Returns the open terms, the one first that the best such model has in part.
        """
        columns = self.columns_problem(part.included, part.outside)
        assert columns is not None
        sizes = [size for size in part.sizes if columns.units.completed((), size) is not None]
        if not sizes or self.valid_for:
            return undecided
        options = {"heuristics": (), **self.options, "node_limit": NODES_OF_EACH, "time_limit": self.time_left}
        study = AcrossSizes(columns, replace(self.criterion, gamma=0.0), sizes, options)
        study.known.elsewhere, study.watch = self._criteria_by_columns(), self.watch
        if part.lower > -math.inf:
            study.floors = dict.fromkeys(sizes, part.lower)
        try:
            study.note_first()
            study.begin()
            study.run()
        except InputError:  # columns that make no terms may fit every row
            return undecided
        if study.valid_for:
            return undecided
        part.bound = max(part.bound, min(study.criterion_below(size) for size in sizes))
        best = min((study.known.value(s), s) for s in study.known.models)[1]
        terms = self.units.units_of(best)
        if self.units.columns_of(terms).tolist() == list(best) and len(terms) <= self.problem.k:
            self._note(tuple(terms))
        in_part = [g for g in undecided if g in terms and not {*self.units.groups[g]} <= {*best}]
        return in_part + [g for g in undecided if g not in in_part]

    def columns_problem(self, included: Terms, outside: Terms) -> Problem | None:
        """The problem of choosing columns one by one beside the wide terms ``included``, without those ``outside``."""
        units = self.units
        column_units = Units(
            units.columns, units.column_names,
            tuple(units.columns_of({*units.force_in, *included}).tolist()),
            tuple(units.columns_of({*units.force_out, *outside}).tolist()),
            None if units.constraint is None else units.constraint.of_columns(units), coding=units.coding,
        )  # fmt: skip
        most = units.columns - len(column_units.force_out)
        if {*column_units.force_in} & {*column_units.force_out} or column_units.region(most) is None:
            return None
        return self.problem.choosing(column_units, most)

    def _by_weight(self) -> list[int]:
        """The wide terms, those first without which the fit on all others is worst; a first good model, too."""
        free = [g for g in range(self.units.d) if g not in self.units.force_out]
        if len(self.units.columns_of(free)) + 1 >= self.problem.n and self.problem.lam == 0.0:
            return self.wide
        without = {g: self.problem.fit([f for f in free if f != g]).value for g in self.wide if g in free}
        self._backward(tuple(free))
        return sorted(self.wide, key=lambda g: -without.get(g, math.inf))

    def _backward(self, terms: Terms) -> None:
        """Meet the models on the way down from all terms, the one without which the criterion is smallest first."""
        while not self.is_over():
            if len(terms) <= self.problem.k and meets(self.units, terms):
                self._note(terms)
            fewer = [tuple(f for f in terms if f != g) for g in terms if g not in self.units.force_in]
            if not fewer:
                return
            terms = min(fewer, key=lambda s: self._measure(s).value(self.problem.fit(s).value, self.df(s)))

    def _note(self, terms: Terms, objective: float | None = None) -> None:
        limit = self.criterion.largest_size()
        if limit is not None and self.df(terms) > limit:
            return
        value = self.statement.upper(self.problem.fit(terms)) if objective is None else objective
        self.criterion.check_fit(value, terms, self.problem.null_objective)
        if terms in self.models:
            if value >= self.models[terms]:
                return
            self.values.remove(self.value(terms))
        self.models[terms] = value
        insort(self.values, self.value(terms))

    def _search(self, part: Part) -> None:
        """Search a part in which all that is left to choose are columns."""
        columns = self.columns_problem(part.included, part.outside)
        assert columns is not None
        beyond = self.df(part.included) - len(part.included)
        sizes = [
            size for size in part.sizes
            if size - beyond <= self.problem.k and columns.units.completed((), size) is not None
        ]  # fmt: skip
        if not sizes:
            return
        measure = replace(self.criterion, beyond=beyond)
        # Good models are looked for in the first part, and serve all others.
        look = self.request.several or not self.reports
        options = {**({} if look else {"heuristics": ()}), **self.options, "time_limit": self.time_left}
        study = AcrossSizes(columns, measure, sizes, options)
        study.known.elsewhere, study.watch = self._criteria_by_columns(), self.watch
        if part.lower > -math.inf and not self.valid_for:
            study.floors = dict.fromkeys(sizes, part.lower)
        pools = SizePools(study, self.request)
        study.note_first()
        study.begin()
        if look:
            pools.look()
        study.run()
        if self.request.several:
            pools.run()
        pools.firm()
        self._take(study, pools, part, beyond)

    def _take(self, study: AcrossSizes, pools: SizePools, part: Part, beyond: int) -> None:
        """Keep what was learned of a part."""
        about = study.known.about
        for support, objective in study.known.models.items():
            if len(support) in study.sizes:
                self._note(tuple(self.units.units_of(support)), objective)
        for size in study.sizes:
            report = report_of(study, pools, size, about)
            terms = None if report.support is None else tuple(self.units.units_of(report.support))
            # Where columns depend on each other, or time was short, the fit on all columns may say more.
            lower = max(report.lower, min(report.criterion, self._below(part.lower, size)))
            status = status_of(study, size, about, part.lower)
            rated = replace(report, support=terms, closed_by=None, lower=lower, status=status)
            self.reports.setdefault(size, []).append(rated)
            self.lowers.append((size - beyond, max(part.lower, study.lower_of(size)[0])))
        self.terminations += study.terminations
        if study.is_over():
            self.terminations.append(study.at_last)
        self.valid_for = self.valid_for or study.valid_for or pools.valid_for
        self.complete = self.complete and (pools.complete if self.request.several else True)

    def _tell_of(self, part: Part) -> None:
        """Keep what is known of a part that is not searched."""
        closed = self._closed(part)
        for size in part.sizes:
            lower = max(part.bound, self._below(part.lower, size))
            status = SizeStatus.CANNOT_WIN if closed else SizeStatus.OPEN
            report = SizeReport(size, math.inf, lower, None, 0, None, status, closed)
            self.reports.setdefault(size, []).append(report)
        self.lowers.append((part.terms, part.lower))
        self.complete = self.complete and closed
        if not closed:
            self.terminations.append(Termination.TIME_LIMIT.value)
