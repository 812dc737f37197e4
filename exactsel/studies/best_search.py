"""One search over all sizes: each is searched only below the objective at which it could still win.

    known    <- a good model of each size, from heuristics
    all      <- a lower bound for models of any size, from the fit on all columns
    best     <- the smallest criterion of a known model
    for each size, the most promising first:
        level <- the objective at which this size reaches the best known criterion
        if a bound of this size or of a larger one is at the level: nothing to do
        else search this size until its bound is at the level; a better model lowers ``best``, and all levels

Models of at most k columns hold those of fewer, so a bound for a size is one for every smaller size. The sizes share
the data, the Gram matrix and the curvature, and each begins from the model of the one before. The search for a size
stops at its level by the absolute tolerance, which is the distance from the model known to the level.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from exactsel import clock
from exactsel._jit import available_threads
from exactsel.errors import InputError
from exactsel.problem.capabilities import CLOSED_FORM
from exactsel.problem.regression import Problem
from exactsel.search.watch import Watch
from exactsel.solving.api import solve
from exactsel.solving.outcome import Termination
from exactsel.solving.result import Result
from exactsel.studies.best_known import KnownModels
from exactsel.studies.size_criterion import SizeCriterion
from exactsel.studies.size_supports import first_support, meets, whole

NO_BOUND = 1e300
"""A tolerance at which a search ends with its starting models."""

PATIENCE = 5
"""Sizes in a row without a better criterion after which no more good models are looked for beforehand."""

MOST_COLUMNS, MOST_WITHIN_LIMITS, MOST_WIDE = 5000, 500, 1000
"""With more columns than this the search does not compute the fit on all of them; nor with more than the second where
coefficients have limits (measured: 140 s for 3,000 columns, and no time limit ends it), and the third where there are
fewer rows, as that fit says little then (3,000 columns: 16 s past a limit of 10 s)."""

FINER = 1e-3
"""Part of the requested relative tolerance that searches aim at: what is left of it is N times as large in a criterion,
and a gap that rounding makes unreachable is no failure."""

SLIGHTLY_LESS = 1.0 - 2.0**-20
"""Part of the distance to a level that a search is given for a tolerance, so that its bound is above the level."""

OF_EACH = ("node_limit", "memory_limit", "threads", "signals")
"""Options that a resumed search does not keep and must receive again."""

FIRST_SHARE = 0.5
"""Part of the time that is shared out evenly among the sizes at first; the rest among those not settled then."""

UNATTAINED = 1e-9
"""Part of an objective by which a size that is searched to its end may seem better than the best model known."""

ROUNDS = 50
"""Better models a size is searched on from; more than there ever are."""


@dataclass
class SizeSearch:
    """One size, and how far its search has come."""

    problem: Problem
    result: Result | None = None

    @property
    def size(self) -> int:
        """How many columns."""
        return self.problem.k

    @property
    def upper(self) -> float:
        """The best objective known of this size."""
        return math.inf if self.result is None else self.result.upper

    @property
    def lower(self) -> float:
        """No model of at most this size has a smaller objective."""
        return -math.inf if self.result is None else self.result.lower


@dataclass
class AcrossSizes:
    """The search over all sizes; ``known`` holds every model met."""

    problem: Problem
    criterion: SizeCriterion
    sizes: list[int]
    options: dict[str, Any]
    """As :func:`exactsel.solve` takes them; the time limit is for all sizes together."""
    proofs: Path | None = None
    """Folder for one proof a size."""
    by_size: dict[int, SizeSearch] = field(default_factory=dict)
    floors: dict[int, float] = field(default_factory=dict)
    """No model of exactly this size has a smaller objective: what lists have shown, or one tree over all sizes."""
    floor_proofs: dict[int, str] = field(default_factory=dict)
    """The files that show them, where such are written."""
    on_size: Callable[[int], None] | None = None
    """Called for every size that has been examined."""
    watch: Watch | None = None
    """Reports whether a stop was requested."""
    terminations: list[str] = field(default_factory=list)
    shared_nodes: int = 0
    """Regions of one tree over all sizes."""
    _began: float = field(default_factory=clock.now)
    _share: float = 1.0
    """Part of the time left that one search may take."""

    def __post_init__(self) -> None:
        self.time_limit = self.options.pop("time_limit", None)
        self.tolerance = {"eps": self.options.pop("eps", 0.0), "rel_eps": self.options.pop("rel_eps", 1e-6)}
        # What limits models of the largest size, where a condition does, serves all of them.
        problem = self.problem.replace(k=max(self.sizes))
        for size in self.sizes:
            self.by_size[size] = SizeSearch(problem.replace(k=size))
        d, fitted = problem.units.d, self.problem.lam > 0 and not self.valid_for
        if d not in self.by_size and d <= self.most_columns and (d + 1 < self.problem.n or fitted):
            with suppress(InputError):  # columns of none of the sizes may leave no best model, as separated classes do
                self.by_size[d] = SizeSearch(problem.replace(k=d))
        # However many columns a model has: those of more are rounded more.
        largest = self.problem.replace(k=max(self.by_size))
        self.known = KnownModels(largest, self.criterion, self.sizes, self.is_over)

    @property
    def threads(self) -> int:
        """How many work."""
        return int(self.options.get("threads") or available_threads())

    @property
    def time_left(self) -> float | None:
        """Seconds of the time limit; None where there is none."""
        return None if self.time_limit is None else max(0.0, self.time_limit - (clock.now() - self._began))

    @property
    def _seconds(self) -> float | None:
        """Seconds for one search."""
        return None if self.time_left is None else self._share * self.time_left

    def is_over(self) -> bool:
        """Whether time is over or a stop was requested, which is recorded."""
        if self.watch is not None and self.watch.stopped and self.watch.reason not in self.terminations:
            self.terminations.append(self.watch.reason or Termination.INTERRUPTED.value)
        return Termination.INTERRUPTED.value in self.terminations or self.time_left == 0.0

    def stop_reason(self) -> str:
        """Why nothing more is begun; empty where that is not so."""
        if not self.is_over():
            return ""
        interrupted = Termination.INTERRUPTED.value
        return interrupted if interrupted in self.terminations else Termination.TIME_LIMIT.value

    @property
    def at_last(self) -> str:
        """Why it ended where no search and no list says so."""
        return Termination.TIME_LIMIT.value if self.time_left == 0.0 else Termination.PRECISION_LIMIT.value

    def _note_shown(self, search: SizeSearch, result: Result) -> None:
        """The model of a search; with the parent where that is not shown, as its coefficient is 0."""
        units = search.problem.units
        if meets(units, result._shown):
            self.known.note(result._shown, result.upper)
        elif (columns := units.completed(result._shown, search.size)) is not None:
            self.known.note(columns, self.known.statement.upper(self.known.fitted(tuple(sorted(columns)))))

    def _note_whole(self, search: SizeSearch, result: Result) -> None:
        """The same model on a set of as many columns as the size has: where columns depend on each other it may need
        fewer, and a criterion whose price falls with the size prefers the larger set.
        """
        columns = whole(search.problem, result)
        if len(result._shown) < search.size == len(columns) and meets(search.problem.units, columns):
            self.known.guess(columns, result.upper)  # the best model on all of them may cost less
            self.known.firm(1)

    def lower_of(self, size: int) -> tuple[float, int | None]:
        """The largest lower bound of the objective of models of this size, and the size whose search it is from."""
        bounds = [(search.lower, -k) for k, search in self.by_size.items() if k >= size and search.result is not None]
        if size in self.floors:
            bounds.append((self.floors[size], -size))
        lower, k = max(bounds, default=(-math.inf, 0))
        return lower, None if lower == -math.inf else -k

    def upper_of(self, size: int) -> float:
        """The best objective known of this size."""
        return min([self.by_size[size].upper, *(value for s, value in self.known.models.items() if len(s) == size)])

    def by_promise(self) -> list[int]:
        """The sizes, the one of the smallest criterion known first."""
        least = {size: self.by_size[size].upper for size in self.sizes}
        for support, objective in self.known.about.items():
            least[len(support)] = min(objective, least[len(support)])
        return sorted(self.sizes, key=lambda k: (self.criterion.value(least[k], k), k))

    def criterion_below(self, size: int) -> float:
        """No model of this size has a smaller criterion."""
        lower = self.lower_of(size)[0]
        # Not searched yet, a size still costs what its columns do.
        least = self.problem.infimum if self.criterion.name == "l0" else -math.inf
        return self.criterion.below(max(lower, least), size)

    @property
    def target(self) -> float:
        """A criterion that no model needs to be shown to miss by more: the best known, and of the penalised objective,
        which is on the scale of the tolerances, that much less.
        """
        best = self.known.best
        return best if self.criterion.name != "l0" else best - SLIGHTLY_LESS * self.finest(best)

    def threshold(self, size: int) -> float:
        """The objective at which so many columns reach the target."""
        return self.criterion.level(self.target, size)

    def note_first(self) -> None:
        """A model of the smallest size for which one is found at once, so that there is one however early time ends."""
        for size in self.sizes:
            support = first_support(self.by_size[size].problem)
            self.known.note(support, self.known.statement.upper(self.known.fitted(support)))
            if self.known.models:
                return

    def begin(self) -> None:
        """Where there is one to be had at once, a bound for models of any size."""
        if self.limited and not all(map(self.settled, self.sizes)):
            # Where all columns may be in, the first region's fit is the best model.
            self.search(max(self.by_size), self.tolerance["eps"], heuristics=())

    @property
    def most_columns(self) -> int:
        """How many columns may be fitted together."""
        if self.problem.coefficient_bounds is not None:
            return MOST_WITHIN_LIMITS
        return MOST_COLUMNS if self.problem.units.d < self.problem.n else MOST_WIDE

    @property
    def limited(self) -> bool:
        """Whether there is a fit on all columns, which limits models of any size."""
        problem = self.by_size[max(self.by_size)].problem
        return problem.d <= self.most_columns and bool(problem.k >= problem.d - len(problem.units.force_out))

    def run(self) -> None:
        """Settle all sizes, or as many as the limits leave time for."""
        self._look()
        order = self.by_promise()
        # Again where time was left, or a restriction was met that says more of the others.
        for part in (FIRST_SHARE, 1.0):
            open_sizes = [size for size in order if not self.settled(size)]
            for number, size in enumerate(open_sizes):
                self._share = part / (len(open_sizes) - number)
                self.settle(size)
                if self.on_size is not None:
                    self.on_size(size)
        self._share = 1.0

    def settle(self, size: int) -> None:
        """Search a size until no model of it can be better than the best known, or is the best to the tolerance."""
        search = self.by_size[size]
        for _ in range(ROUNDS):
            threshold = self.threshold(size)
            if self.is_over() or self.lower_of(size)[0] >= threshold:
                return
            if search.result is None:
                self.search(size, eps=NO_BOUND)
                continue
            wins = search.upper <= threshold
            distance = 0.0 if wins else search.upper - threshold
            before = search.upper
            self.search(size, eps=max(self.tolerance["eps"], SLIGHTLY_LESS * distance))
            stopped = search.result is None or not search.result.reached
            if self.is_over() or stopped or search.upper == before:
                return

    def finest(self, upper: float) -> float:
        """The tolerance a search has in any case, where a model costs ``upper``."""
        finest: float = max(self.tolerance["eps"], self.tolerance["rel_eps"] * abs(upper))
        return finest

    def settled(self, size: int) -> bool:
        """Whether no model of this size is better than the best known, to the requested tolerance."""
        return self.settles(size, self.lower_of(size)[0])

    def settles(self, size: int, lower: float) -> bool:
        """Whether a lower bound of the objectives of a size says so."""
        if lower >= self.threshold(size):
            return True
        upper = self.upper_of(size)
        if not (upper < math.inf and upper - lower <= self.finest(upper)):
            return False
        return self.criterion.level(self.known.best, size) <= (1.0 + UNATTAINED) * upper

    def search(self, size: int, eps: float, **others: Any) -> None:
        """Search for the best model of a size down to this tolerance, from where its search stands.

        A search that begins takes other options as well.
        """
        if self.is_over():
            return
        search = self.by_size[size]
        limits = {"eps": eps, "rel_eps": FINER * self.tolerance["rel_eps"], "time_limit": self._seconds}
        if self.proofs is None and search.result is not None and search.result._kept is not None:
            of_run = {name: self.options[name] for name in OF_EACH if name in self.options}
            result = search.result.resume(**limits, **of_run)
        else:
            proof = None if self.proofs is None or eps == NO_BOUND else proof_file(self.proofs, size)
            result = solve(search.problem, start=self._start(size), proof=proof, **(self.options | limits | others))
        if size == 0 and eps < NO_BOUND and result.absolute_gap > self.finest(search.upper):
            result = self._of_no_column(result, limits)
        search.result = result = self._in_scope(search, result)
        self._note_shown(search, result)
        self._note_whole(search, result)
        if not result.reached and result.absolute_gap > self.finest(search.upper):
            self.terminations.append(result.termination.value)

    def _in_scope(self, search: SizeSearch, result: Result) -> Result:
        """The result, said of the models in the scope of other searches where without one nothing can be said."""
        if (
            result.absolute_gap <= self.finest(search.upper)
            or result.valid_for
            or not self.valid_for
            or result._kept is None
        ):
            return result
        lower = self.known.statement.lower(result._kept.state.bound, result.upper, self.valid_for)
        return replace(result, valid_for=self.valid_for)._claiming(lower) if lower > result.lower else result

    def _of_no_column(self, result: Result, limits: dict[str, Any]) -> Result:
        """The result for size 0, of which columns that depend on each other say nothing: they make no difference."""
        objective = self.problem.objective
        if not self.problem.has(CLOSED_FORM):
            return result
        if objective.reduction is not None or self.proofs is not None:
            return result
        preparation = objective.preparation
        y, weights = (objective.y, None) if preparation is None else (preparation.y, preparation.weights)
        alone = Problem.prepared(
            y[:, np.newaxis],
            y,
            0,
            lam=objective.lam,
            weights=weights,
            intercept=preparation is not None and preparation.centred,
        )
        lower: float = solve(alone, **(self.options | limits)).lower
        return result._claiming(min(lower, result.upper)) if lower > result.lower else result

    def _start(self, size: int) -> tuple[int, ...] | None:
        """The best support known of at most this size."""
        units = self.problem.units
        models = sorted((objective, s) for s, objective in self.known.about.items() if len(s) <= size)
        # A model whose coefficient of a parent is 0 is shown without it.
        return next((s or None for _, s in models if meets(units, s)), None)

    def _look(self) -> None:
        """Look for a good model of each size, until it is plain that larger ones are not better."""
        since, best = 0, math.inf
        for size in self.sizes:
            if self.by_size[size].result is None and not self.settled(size):
                if since >= PATIENCE or self.criterion_below(size) >= self.target:
                    continue
                self.search(size, eps=NO_BOUND)
            since, best = (0, self.known.best) if self.known.best < best else (since + 1, best)

    @property
    def valid_for(self) -> str:
        """A restriction, in words, of what the searches have proven."""
        searched = (
            search.result.valid_for for search in self.by_size.values() if search.result and search.result.valid_for
        )
        return next(searched, self.problem.valid_for)


def proof_file(folder: str | os.PathLike[str], size: int) -> str:
    """The name of the proof of a size."""
    return str(Path(folder) / f"k{size}.exsel")
