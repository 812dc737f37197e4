"""More than the optimum: every set of k columns that comes within tau of it.

From the complete list follows what a single model cannot tell: whether the optimum is unique within tau, which columns
all good models share, and which ones none of them needs.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactsel import clock
from exactsel._jit import available_threads
from exactsel.algebra.threads import one_thread
from exactsel.bounds.base import BoundOptions, PreparedBound, Tightened, scope_of
from exactsel.errors import InputError
from exactsel.interrupts import CompilationStopped, dispensable
from exactsel.kernels.node import IN, OUT
from exactsel.plain import Readable, finite
from exactsel.problem.interface import SubsetProblem
from exactsel.problem.model import demands_text, listed
from exactsel.proofs.statement import statement_of
from exactsel.search.branching import Branching
from exactsel.search.regions import NodeBounds
from exactsel.search.watch import Watch
from exactsel.solving.choose import methods_for
from exactsel.solving.entry import solve
from exactsel.solving.result import Result
from exactsel.solving.settings import Settings
from exactsel.solving.small import begun_without_compiler
from exactsel.types import IntArray, StateArray

BATCH = 64
"""Regions bounded at a time, the last found first."""

MARGIN = 1e-9
"""Times |threshold|, or a thousandth of the empty model's objective: regions are closed this much above the threshold,
so that rounding hides no model."""

NUMBER_FIRST = "{number} {name}"
"""How a column is called in the list."""


@dataclass(frozen=True)
class NearModel:
    """A set of exactly k columns and the objective of the best model on it."""

    support: tuple[int, ...]
    value: float


@dataclass(frozen=True, repr=False)
class NearOptimal(Readable):
    """All sets of exactly k columns whose objective is at most ``threshold``, best first.

    When ``complete``, every other set of k columns has a larger objective; within ``scope`` and to what
    rounding does to an objective. Otherwise the list has been cut short, and nothing is said of what is missing.
    """

    models: tuple[NearModel, ...]
    complete: bool
    threshold: float
    """Objective of the best model plus tau."""
    tau: float
    termination: str
    """``complete``, ``cap`` (too many models), ``time_limit``, ``interrupted``, or ``precision``: rounding leaves open
    whether some set that is not listed is within the threshold."""
    regions: int
    """Regions that were bounded."""
    result: Result
    """The search for the optimum itself."""
    feature_names: tuple[str, ...] | None = None
    scope: str = ""
    """What ``complete`` is restricted to, in words; empty when it is not."""

    @property
    def unique(self) -> bool | None:
        """Whether the best set of k columns is the only one within tau; None where that is not known."""
        if len(self.models) > 1:
            return False
        return True if self.complete and self.models else None

    @property
    def in_every(self) -> tuple[int, ...] | None:
        """Columns of every model within tau; None unless the list is complete."""
        if not self.complete:
            return None
        sets = [set(model.support) for model in self.models]
        return tuple(sorted(set.intersection(*sets))) if sets else ()

    @property
    def in_none(self) -> tuple[int, ...] | None:
        """Columns of no model within tau; None unless the list is complete."""
        if not self.complete:
            return None
        used = set[int]().union(*(model.support for model in self.models))
        return tuple(j for j in range(self.result.problem["d"]) if j not in used)

    def as_dict(self) -> dict[str, Any]:
        """Plain data: the JSON object of the command line."""
        names = self.feature_names
        return {
            "models": [
                {
                    "support": list(model.support), "value": finite(model.value),
                    "feature_names": None if names is None else [names[j] for j in model.support],
                }
                for model in self.models
            ],
            "complete": self.complete, "termination": self.termination, "scope": self.scope, "unique": self.unique,
            "threshold": finite(self.threshold), "tau": self.tau, "regions": self.regions,
            "in_every": None if self.in_every is None else list(self.in_every),
            "in_none": None if self.in_none is None else list(self.in_none),
            "optimum": self.result.as_dict(),
        }  # fmt: skip

    def listed(self) -> dict[str, Any]:
        """As :meth:`as_dict`, without the optimum itself."""
        return {key: value for key, value in self.as_dict().items() if key != "optimum"}

    def __str__(self) -> str:
        k, noun, names = self.result.problem["k"], f"{self.result.noun}s", self.feature_names
        if self.complete:
            what = f"{len(self.models)} sets of {k} {noun} are within {self.tau:g} of the best; there is no other"
        else:
            what = f"INCOMPLETE ({self.termination}): {len(self.models)} sets of {k} {noun} found so far"
        lines = [what, f"threshold    {self.threshold:.12g}   scope: {self.scope or 'all models'}"]
        demands = demands_text(self.result.problem)
        if demands:
            lines.append(f"demands      {demands}")
        if self.complete:
            unique = "no set of this size is" if not self.models else "yes" if self.unique else "no"
            lines.append(f"unique       {unique}")
            lines.append(f"in every one {listed(self.in_every or (), names, NUMBER_FIRST)}")
        lines += [f"{model.value:.12g}   {listed(model.support, names, NUMBER_FIRST)}" for model in self.models]
        return "\n".join(lines)


@begun_without_compiler
def near_optimal(
    problem: SubsetProblem,
    tau: float,
    *,
    cap: int = 1000,
    time_limit: float | None = None,
    signals: Sequence[int] = (signal.SIGINT,),
    **options: Any,
) -> NearOptimal:
    """List every set of exactly k columns whose best model is within ``tau`` of the best objective.

    Parameters
    ----------
    problem : Problem, ColumnSubsetProblem or GroupedProblem
        With groups, sets of exactly k groups are listed.
    tau : float
        Absolute, on the scale of the objective; not negative.
    cap : int
        With more models than this the list is cut short, and says so.
    time_limit : float, optional
        Seconds for finding the optimum and listing together.
    signals : sequence of int
        Signals that end the listing with what there is (main thread only).
    **options
        As for :func:`exactsel.solve`: bound, branching, threads, seed and so on.

    Returns
    -------
    NearOptimal

    Raises
    ------
    InputError
        For a tau or cap that is negative or no number.
    """
    check_near(tau, cap, "tau", "--tau")
    began = clock.now()
    result = solve(problem, time_limit=time_limit, signals=signals, **options)
    rest = None if time_limit is None else max(0.0, time_limit - (clock.now() - began))
    if result.termination == "interrupted":
        rest = 0.0
    return list_near(problem, result, tau, cap=cap, time_limit=rest, signals=signals, **options)


@begun_without_compiler
def list_near(
    problem: SubsetProblem,
    result: Result,
    tau: float,
    *,
    cap: int = 1000,
    time_limit: float | None = None,
    signals: Sequence[int] = (signal.SIGINT,),
    **options: Any,
) -> NearOptimal:
    """As :func:`near_optimal`, from a ``result`` of the same problem; the time limit is for the listing alone."""
    with Watch(time_limit, signals, gives_up=True) as watch, one_thread():
        watch.keep_result()
        methods = methods_for(problem, Settings(**options))
        threads = options.get("threads") or available_threads()
        bound = methods.bound.prepare(problem, BoundOptions(threads, stop=watch.flag))
        listing = _Listing(problem, bound, methods.branching, result.upper, tau, cap, result.scope)
        try:
            with dispensable():
                termination = listing.run(watch)
        except CompilationStopped:
            termination = watch.reason or "interrupted"
    models = tuple(sorted(listing.within(), key=lambda model: (model.value, model.support)))
    return NearOptimal(
        models, termination == "complete", listing.threshold, tau, termination, listing.regions, result,
        problem.feature_names, result.scope or listing.restriction,
    )  # fmt: skip


def check_near(tau: float, cap: int, name: str = "near", option: str = "--near") -> None:
    """:class:`InputError` for a tau (or a share, by its ``name``) that is negative or no number, or no room at all."""
    if not (np.isfinite(tau) and tau >= 0):
        raise InputError(f"{name} is {tau}, but it must be a number that is not negative; give {option}.")
    if cap < 1:
        raise InputError(f"cap is {cap}, but at least one model must be allowed; give --cap.")


class _Listing:
    """A depth-first search that closes a region only where its bound is above the threshold."""

    def __init__(
        self, problem: SubsetProblem, bound: PreparedBound, branching: Branching, upper: float, tau: float, cap: int,
        scope: str,
    ) -> None:  # fmt: skip
        self.problem, self.bound, self.branching, self.tau, self.cap = problem, bound, branching, tau, cap
        self.statement, self.scope = statement_of(problem), scope
        self.best = upper
        self.found: list[NearModel] = []
        self.regions = 0
        self.undecided = 0
        self.restriction = ""
        """A scope some bound met while listing came with."""
        self._cutoff = (math.nan, math.nan)
        self._open: list[tuple[StateArray, Any]] = [(problem.root_state, None)]

    @property
    def threshold(self) -> float:
        """The best objective known, plus tau."""
        return self.best + self.tau

    @property
    def highest(self) -> float:
        """What a model that is listed may cost, rounding included."""
        return self.threshold + MARGIN * max(abs(self.threshold), 1e-3 * self.problem.null_objective)

    @property
    def cutoff(self) -> float:
        """The bound, for the numbers searched, at which a region is closed."""
        if self._cutoff[0] != self.best:
            self._cutoff = (self.best, self._above(self.highest))
        return self._cutoff[1]

    def _above(self, value: float) -> float:
        """The bound, for the numbers searched, that shows a model to cost more than ``value``."""
        return self.statement.needed(math.nextafter(value, math.inf), self.scope)

    def within(self) -> list[NearModel]:
        """What was found and is within the threshold, as far as rounding lets one say."""
        return [model for model in self.found if model.value <= self.highest]

    def run(self, watch: Watch) -> str:
        """Take the space apart; why that ended."""
        while self._open:
            if watch.stopped:
                return watch.reason or "time_limit"
            if len(self.found) > self.cap:
                self._drop()
                if len(self.found) > self.cap:
                    return "cap"
            taken = self._taken()
            self._exclude([state for state, _ in taken if self._missed(state)])
            regions = [region for region in taken if self._single(region[0]) is None]
            if regions:
                self._divide(regions)
        self._drop()
        if len(self.found) > self.cap:
            return "cap"
        return "precision" if self.undecided else "complete"

    def _drop(self) -> None:
        """Leave out what a better model has put beyond the threshold since it was found, if a bound says so too."""
        kept = self.within()
        kept_supports = {model.support for model in kept}
        states = np.full((len(self.found) - len(kept), self.problem.d), OUT, dtype=np.int8)
        for state, model in zip(states, (m for m in self.found if m.support not in kept_supports), strict=True):
            state[list(model.support)] = IN
        self.found = kept
        self._exclude(list(states))

    def _taken(self) -> list[tuple[StateArray, Any]]:
        taken = self._open[-BATCH:]
        del self._open[-BATCH:]
        return taken

    def _single(self, state: StateArray) -> IntArray | None:
        """The only set of k columns in a region; empty where there is none, None where there are several."""
        inside, allowed = np.flatnonzero(state == IN), np.flatnonzero(state != OUT)
        if inside.size == self.problem.k:
            return inside
        return allowed if allowed.size == self.problem.k else None if allowed.size > self.problem.k else allowed[:0]

    def _missed(self, state: StateArray) -> bool:
        """Whether the region holds one set of k columns and that, evaluated, is not within the threshold."""
        support = self._single(state)
        if support is None or support.size < self.problem.k:
            return False
        value = self.statement.upper(self.problem.fit(support))
        self.best = min(self.best, value)
        if value <= self.highest:
            self.found.append(NearModel(tuple(int(j) for j in support), value))
        return value > self.highest

    def _exclude(self, states: list[StateArray]) -> None:
        """Make sure of the sets that are not within the threshold: only a bound can say so, a fit may be a bad one."""
        if not states:
            return
        alone = np.stack(states)
        for state in alone:
            support = self._single(state)
            state[:] = OUT
            state[support] = IN
        needed = self._above(self.threshold)
        tightened = self._noted(self.bound.tighten(alone, [None] * len(states), needed, self.best))
        self.undecided += int(np.count_nonzero(~(tightened.answers.bound >= needed)))

    def _divide(self, regions: list[tuple[StateArray, Any]]) -> None:
        states = np.stack([state for state, _ in regions])
        tightened = self._noted(self.bound.tighten(states, [warm for _, warm in regions], self.cutoff, self.best))
        self.regions += len(regions)
        for row, (state, _) in enumerate(regions):
            if tightened.answers.bound[row] >= self.cutoff:
                continue
            column = self._column(NodeBounds(tightened, row), state)
            for decision in (IN, OUT):
                child = state.copy()
                child[column] = decision
                implied = self.problem.units.implied(child, self.problem.k)
                if implied is not None:
                    self._open.append((implied, tightened.warm[row]))

    def _noted(self, tightened: Tightened) -> Tightened:
        self.restriction = scope_of(self.bound, tightened) or self.restriction
        return tightened

    def _column(self, answer: NodeBounds, state: StateArray) -> int:
        view = answer.view(state)
        return int(view.candidates[self.branching.select(view)])
