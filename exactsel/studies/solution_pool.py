"""The list of models close to the best, and how it is made from the search for the best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from exactsel._jit import available_threads
from exactsel.algebra.threads import one_thread
from exactsel.bounds.base import BoundOptions
from exactsel.errors import InputError, option
from exactsel.interrupts import CompilationStopped
from exactsel.problem.model import demands_text, listed
from exactsel.search.watch import Watch
from exactsel.solving.choose import methods_for
from exactsel.solving.outcome import Termination
from exactsel.solving.result import Result
from exactsel.solving.settings import Settings
from exactsel.studies.pool_search import BoundedRegions, NearModel, SolutionPool, fill
from exactsel.to_plain import Readable, counted, finite, html_line, html_table, html_view

NUMBER_FIRST = "{number} {name}"
"""How a column is called in the list."""

CAP = 1000
"""Models after which a list is cut short, unless it is said otherwise."""


@dataclass(frozen=True)
class ResumablePool:
    """The state from which a list is resumed."""

    pool: SolutionPool
    go_on: Callable[[NearOptimal, dict[str, Any]], NearOptimal]
    """Called with the list and the limits :meth:`NearOptimal.resume` is given."""


@dataclass(frozen=True, repr=False)
class NearOptimal(Readable):
    """All sets of exactly k features whose objective is at most ``threshold``, best first.

    When ``complete``, every other set of k features has a larger objective; within ``valid_for`` and to what
    rounding does to an objective. Otherwise the list has been cut short, and nothing is said of what is missing.
    """

    models: tuple[NearModel, ...]
    complete: bool
    threshold: float
    """Objective of the best model plus tau."""
    tau: float
    termination: str
    """``complete``, ``cap`` (too many models), ``time_limit``, ``node_limit``, ``interrupted``, or ``precision``:
    rounding leaves open whether some set that is not listed is within the threshold."""
    regions: int
    """Regions that were bounded."""
    result: Result
    """The search for the optimum itself."""
    feature_names: tuple[str, ...] | None = None
    valid_for: str = ""
    """What ``complete`` is restricted to, in words; empty when it is not."""
    _kept: ResumablePool | None = field(default=None, repr=False, compare=False)
    """The state :meth:`resume` continues from; absent where the list comes from another process."""

    def __getstate__(self) -> dict[str, Any]:
        """A copy for another process has no state to resume from."""
        return {**vars(self), "_kept": None}

    def resume(self, **limits: object) -> NearOptimal:
        """Resume search and listing where they stopped: ``near.resume(time_limit=60)``, or ``cap=10_000`` for more.

        The search for the optimum comes first, if it has a gap, and then the open regions of the listing. Earlier
        limits no longer apply, apart from the cap; the tolerance stays unless you give another one. A list that was
        saved with ``checkpoint=`` continues in its file.

        Parameters
        ----------
        **limits
            cap, eps, rel_eps, time_limit, node_limit, memory_limit, threads, and ``signals`` and ``callback`` as
            :func:`exactsel.near_optimal` has them.

        Raises
        ------
        InputError
            Where the list has no state to resume, or another argument than a limit is given.
        """
        if self._kept is None:
            raise InputError(
                "this list has no state to resume, as it comes from elsewhere; list again, or save it with checkpoint=."
            )
        resumed: NearOptimal = self._kept.go_on(self, limits)
        return resumed

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
            "complete": self.complete, "termination": self.termination, "valid_for": self.valid_for, "unique":
            self.unique, "threshold": finite(self.threshold), "tau": self.tau, "regions": self.regions,
            "in_every": None if self.in_every is None else list(self.in_every),
            "in_none": None if self.in_none is None else list(self.in_none),
            "optimum": self.result.as_dict(),
        }  # fmt: skip

    def listed(self) -> dict[str, Any]:
        """As :meth:`as_dict`, without the optimum itself."""
        return {key: value for key, value in self.as_dict().items() if key != "optimum"}

    def __str__(self) -> str:
        names, features = self.feature_names, counted(self.result.problem["k"], self.result._noun)
        sets = f"{counted(len(self.models), 'set')} of {features}"
        if self.complete:
            are = "is" if len(self.models) == 1 else "are"
            what = f"{sets} {are} within {self.tau:g} of the best; there is no other"
        else:
            what = f"INCOMPLETE ({self.termination}): {sets} found so far"
        lines = [what, f"threshold    {self.threshold:.12g}   scope: {self.valid_for or 'all models'}"]
        demands = demands_text(self.result.problem)
        if demands:
            lines.append(f"constraints  {demands}")
        lines += advice_lines(self.result, self.termination)
        if self.complete:
            unique = "no set of this size is" if not self.models else "yes" if self.unique else "no"
            lines.append(f"unique       {unique}")
            lines.append(f"in every one {listed(self.in_every or (), names, NUMBER_FIRST)}")
        lines += [f"{model.value:.12g}   {listed(model.support, names, NUMBER_FIRST)}" for model in self.models]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        said, names = str(self).partition("\n")[0], self.feature_names
        lowest = min((model.value for model in self.models), default=0.0)
        rows = [
            (f"{model.value:.12g}", f"{model.value - lowest:.4g}", listed(model.support, names, NUMBER_FIRST))
            for model in self.models
        ]
        every = listed(self.in_every or (), names, NUMBER_FIRST)
        shared = [html_line(f"In every one: {every}.")] if self.complete and self.models else []
        head = ("objective", "above the best", f"{self.result._noun}s")
        return html_view(html_line(f"{said}.", strong=True, aside=not self.complete), html_table(rows, head), *shared)


def advice_lines(result: Result, termination: str) -> list[str]:
    """A line of what helps where rounding has ended a list, or a search over sizes, that ``result`` is the best of."""
    rounded = termination in ("precision", Termination.PRECISION_LIMIT.value)
    advice = replace(result, termination=Termination.PRECISION_LIMIT).advice if rounded else ""
    return [f"advice       {advice}"] if advice else []


def list_on(
    result: Result, pool: SolutionPool, cap: int, settings: Settings, signals: Sequence[int],
    after: Callable[[], None] | None = None,
) -> NearOptimal:  # fmt: skip
    """Fill a pool, and return its models; ``after`` is called after every batch of regions."""
    return list_of(result, pool, fill_by_bounds(pool, result.valid_for, cap, settings, signals, after))


def fill_by_bounds(
    pool: SolutionPool, valid_for: str, cap: int, settings: Settings, signals: Sequence[int],
    after: Callable[[], None] | None = None,
) -> str:  # fmt: skip
    """Fill a pool by bounds of its regions; why that ended."""
    with Watch(settings.time_limit, signals, gives_up=True) as watch, one_thread():
        watch.keep_result()
        methods = methods_for(pool.problem, replace(settings, time_limit=None))  # the same bound for any limit
        options = BoundOptions(settings.threads or available_threads(), stop=watch.flag)
        bound = methods.bound.prepare(pool.problem, options)
        solver = BoundedRegions(pool.problem, bound, methods.branching, valid_for)
        try:
            return fill(pool, solver, cap, watch.stop_reason, settings.node_limit, after)
        except CompilationStopped:
            return watch.reason or "interrupted"


def list_of(result: Result, pool: SolutionPool, termination: str) -> NearOptimal:
    """The models of a pool, as far as it is filled."""
    models = tuple(sorted(pool.within, key=lambda model: (model.value, model.support)))
    return NearOptimal(
        models, termination == "complete", pool.threshold, pool.tau, termination, pool.regions, result,
        pool.problem.feature_names, result.valid_for or pool.restriction,
    )  # fmt: skip


def check_near(tau: float, cap: int, name: str = "near") -> None:
    """:class:`InputError` for a tau (or a share, by its ``name``) that is negative or no number, or no room at all."""
    if not (np.isfinite(tau) and tau >= 0):
        named = option(name)
        raise InputError(f"{named} is {tau}, but a number that is not negative was expected; correct it.")
    check_cap(cap)


def check_cap(cap: int) -> None:
    """:class:`InputError` for no room at all."""
    if cap < 1:
        raise InputError(f"cap is {cap}, but at least one model must be allowed; raise {option('cap')}.")
