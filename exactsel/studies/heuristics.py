"""Run one heuristic by name, and say how far from optimal its answer is proven to be.

    from exactsel import load
    from exactsel import heuristics
    print(heuristics.run("poss", load("instances/diabetes.npz"), seed=1))

The heuristics themselves are plug-ins and know nothing of bounds; this module adds the bound.
"""

from __future__ import annotations

import dataclasses
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from numbers import Integral, Real
from types import NoneType
from typing import Any, get_args, get_type_hints

from numpy.typing import ArrayLike

from exactsel import clock, registry
from exactsel.arguments import every_core, with_aliases
from exactsel.bounds.base import BoundSolver
from exactsel.deadlines import within
from exactsel.errors import InputError, TimeLimitError
from exactsel.interrupts import dispensable
from exactsel.nodes.tolerance import resolution
from exactsel.observers.lines import teller
from exactsel.problem.capabilities import CLOSED_FORM
from exactsel.problem.fit import Fit
from exactsel.problem.interface import SubsetProblem, is_problem, is_regression
from exactsel.problem.model import Model, PreparedModel
from exactsel.problem.some_columns import refuse_unlimited
from exactsel.proofs.statement import statement_of
from exactsel.search.watch import Watch
from exactsel.solving.fallback import run_in_time, with_fallback_bound
from exactsel.solving.outcome import Termination, claim_of
from exactsel.solving.problem_arguments import problem_asked
from exactsel.solving.quality import quality_of
from exactsel.solving.result import Result
from exactsel.solving.screening import search_screened
from exactsel.solving.settings import Settings
from exactsel.solving.small import begun_without_compiler
from exactsel.solving.solver import Search
from exactsel.solving.unattained import refuse_unattained
from exactsel.start.heuristic import Context, Heuristic, Proposal
from exactsel.start.models import admissible, checked_support, given_support
from exactsel.to_plain import finite
from exactsel.types import Scalar

KEPT_FOR_BOUND = 0.25
"""Part of the time limit that no method gets: an answer nothing is known about is worth little."""

MULTIPLICATIONS = 1e10
"""Of matrices, that a core makes in a second."""


@dataclass(frozen=True)
class MethodResult(Result):
    """The answer of a heuristic, with a certified gap; everything :class:`exactsel.Result` has, and:"""

    method: str = ""
    """The heuristic's name."""
    method_options: dict[str, Any] = field(default_factory=dict)
    proposal: Proposal = field(default_factory=lambda: Proposal((), 0), repr=False)
    """What the method returned: besides its support the evaluations, and where it has them path and anytime curve."""
    best_upper: float = float("nan")
    """Objective of the best model met, which is below ``upper`` when the search behind the bound found a better one."""
    best_support: tuple[int, ...] = ()

    @property
    def evaluations(self) -> int:
        """Supports whose objective the method computed."""
        return self.proposal.evaluations

    @property
    def improved(self) -> bool:
        """Whether a better model turned up on the way to the bound (by more than rounding)."""
        return self.upper - self.best_upper > resolution(self.upper, self.tolerance.noise)

    def as_dict(self) -> dict[str, Any]:
        """Plain data: the keys of :meth:`Result.as_dict`, and what the method adds."""
        return {
            **super().as_dict(),
            "method": self.method,
            "method_options": self.method_options,
            "evaluations": self.evaluations,
            "path": list(self.proposal.path),
            "criterion": [finite(value) for value in self.proposal.criterion],
            "curve": [[count, finite(value)] for count, value in self.proposal.curve],
            "improved": self.improved,
            "best_upper": finite(self.best_upper),
            "best_support": list(self.best_support),
        }

    def __str__(self) -> str:
        lines = [f"method       {self.method}: {self.evaluations} evaluations, {self.times['method']:.2f} s"]
        if self.improved:
            columns = ", ".join(map(str, self.best_support))
            lines.append(f"better       a model of objective {self.best_upper:.12g} was met on the way: {columns}")
        return "\n".join([*lines, super().__str__()])


def names() -> list[str]:
    """The heuristics that can be run, built in or plugged in."""
    return registry.names("heuristics")


def make(method: str | Heuristic, options: Mapping[str, Any] | None = None) -> Heuristic:
    """A heuristic by its name, with options; an object is returned as it is.

    Raises
    ------
    InputError
        For an unknown name, or an option the method does not have.
    """
    if not isinstance(method, str):
        if not isinstance(method, Heuristic):
            raise InputError(f"{method!r} is no heuristic; give a name, or an object with a name and a run method.")
        if options:
            raise InputError(f"options are given besides an object; make the '{method.name}' object with them instead.")
        return method
    kind, values = registry.load("heuristics", method), dict(options or {})
    allowed = option_names(method)
    foreign = next((name for name in values if name not in allowed), None)
    if foreign is not None:
        choices = ", ".join(allowed) or "none"
        raise InputError(f"the method '{method}' has no option '{foreign}'; its options are: {choices}.")
    for name, value in values.items():
        values[name] = _checked_option(method, name, value, get_type_hints(kind).get(name, Any))
    heuristic: Heuristic = kind(**values)
    return heuristic


def _checked_option(method: str, name: str, value: object, hint: object) -> object:
    """The value, found to be of the declared type; whole numbers pass for numbers, and none of them is negative."""
    kinds = get_args(hint) or (hint,)
    if hint is Any or not set(kinds) <= {bool, int, float, str, NoneType} or type(value) in kinds:
        plain = value
    elif int in kinds and isinstance(value, Integral) and not isinstance(value, bool):
        plain = int(value)
    elif float in kinds and isinstance(value, Real) and not isinstance(value, bool):
        plain = float(value)
    else:
        words = {bool: "True or False", int: "a whole number", float: "a number", str: "a text", NoneType: "None"}
        expected = " or ".join(words[kind] for kind in kinds)
        raise InputError(f"{name} of the method '{method}' is {value!r}, but {expected} was expected; change {name}.")
    if isinstance(plain, int | float) and not isinstance(plain, bool) and not plain >= 0:
        raise InputError(f"{name} of the method '{method}' is {plain}, but it cannot be negative; change {name}.")
    return plain


def option_names(method: str) -> tuple[str, ...]:
    """The options of a heuristic: the fields of its dataclass."""
    kind = registry.load("heuristics", method)
    return tuple(entry.name for entry in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else ()


@begun_without_compiler
@with_aliases
def run(
    method: str | Heuristic, problem: SubsetProblem | object, y: ArrayLike | None = None, k: int | None = None, *,
    seed: int = 0, start: Sequence[int] | None = None, time_limit: float | None = None, eps: float = 0.0,
    rel_eps: float = 1e-6, threads: int | None = None, bound: str | BoundSolver = "auto",
    signals: Sequence[int] = (signal.SIGINT,), verbose: int = 0, **options: object,
) -> MethodResult:  # fmt: skip
    """Run a heuristic, refit its support exactly, and bound how far from optimal it is: ``run("poss", X, y, k=5)``.

    Parameters
    ----------
    method : str or Heuristic
        A name (see :func:`names`) or an object.
    problem : problem; or array, sparse matrix or data frame (n, d)
    y, k : array (n,), int, optional
        Of data, which also have the ``options`` of a problem, as for :func:`exactsel.solve`.
    seed : int
        Seed of the method's random choices.
    start : sequence of int, optional
        A support to improve, for a local search.
    time_limit : float, optional
        Seconds for the method and the search for a better bound together, for which a quarter is kept. Where that is
        not enough for the root :mod:`exactsel.bounds.fallback` bounds it. Without a limit only the root is bounded, by
        the same means where its own bound says nothing.
    eps, rel_eps, threads, bound : of the search for a better bound, see :class:`exactsel.Settings`
    signals, verbose : sequence of int, int
        Signals that end the run with a result (main thread only); 1 says on stderr what is found and proven.
    **options
        Options of the method, the fields of its dataclass. One called like a parameter above (``threads`` of pposs),
        or with data like one of a problem (``lam``), is not the method's; to set that, pass an object of :func:`make`.

    Returns
    -------
    MethodResult
        ``upper`` and ``support`` are the method's own model, also where the search met a better one.

    Raises
    ------
    InputError
        For an unknown name or option.
    UnsupportedError
        When the method cannot serve the problem.
    """
    problem, options = within(time_limit)(_asked)(method, problem, y, k, options)
    heuristic, threads = make(method, options), every_core(threads)
    settings = Settings(eps, rel_eps, time_limit, 1, threads=threads, seed=seed, heuristics=(), bound=bound)
    context = Context(seed, None if start is None else given_support(start, problem))
    began, began_clock = time.perf_counter(), clock.now()
    with Watch(None if time_limit is None else (1.0 - KEPT_FOR_BOUND) * time_limit, signals) as watch, dispensable():
        proposal = _proposed(heuristic, problem, context, watch, time_limit)
        interrupted = watch.reason == "interrupted"
    support = admissible(checked_support(proposal.support, problem), problem)
    seconds, fit, tell = time.perf_counter() - began, problem.fit(support), teller(verbose)
    if tell is not None:
        tell(f"{heuristic.name}: objective {fit.value:.8g} after {seconds:.1f} s; its bound comes next")
    proven = _bounded(problem, support, settings, began_clock, interrupted, signals)
    spent = time.perf_counter() - began
    result = _as_method_result(problem, fit, heuristic, options, proposal, proven, seconds, spent)
    if tell is not None:
        tell(f"{heuristic.name}: gap {result.gap:.2e}, {result.claim.value}, {spent:.1f} s")
    return result


def _proposed(
    heuristic: Heuristic, problem: SubsetProblem, context: Context, watch: Watch, time_limit: float | None
) -> Proposal:
    """What the method says; where time was over in the middle of a pass that it did not end itself, where it began."""
    with suppress(TimeLimitError), within(time_limit):
        return heuristic.run(problem, dataclasses.replace(context, should_stop=lambda: watch.stopped))
    return Proposal(context.start or (), 0)


def _asked(
    method: str | Heuristic, problem: object, y: ArrayLike | None, k: int | None, options: Mapping[str, Any]
) -> tuple[SubsetProblem, dict[str, Any]]:
    """The problem, and the method's own options; those that are none :func:`make` refuses.

    Beside a problem, which has its lam, ``lam`` is the method's; beside data it is the problem's.
    """
    has_problem = is_problem(problem) and isinstance(method, str)
    method_options = (
        {name: options[name] for name in option_names(str(method)) if name in options} if has_problem else {}
    )
    others = {name: value for name, value in options.items() if name not in method_options}
    subset_problem, rest = problem_asked(problem, y, k, others, known=tuple(others))
    if is_regression(subset_problem) and subset_problem.objective.on_demand:
        refuse_unlimited(subset_problem)
    return subset_problem, method_options | rest


def _options_of(heuristic: Heuristic, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options a heuristic runs with, those left at their defaults included, as plain data."""
    if not dataclasses.is_dataclass(heuristic):
        return dict(options)
    values = {entry.name: getattr(heuristic, entry.name) for entry in dataclasses.fields(heuristic)}
    return {name: _plain(value) for name, value in values.items()}


def _plain(value: object) -> Scalar:
    """An option as JSON has it."""
    if isinstance(value, bool | str | NoneType):
        return value
    if isinstance(value, Integral):
        return int(value)
    return finite(float(value)) if isinstance(value, Real) else str(value)


def _bounded(
    problem: SubsetProblem,
    support: tuple[int, ...],
    settings: Settings,
    began: float,
    interrupted: bool,
    signals: Sequence[int],
) -> Result:
    """Search from the support while there is time, or only bound the root where there is no time limit."""
    first = dataclasses.replace(settings, time_limit=0.0) if interrupted else settings
    if is_regression(problem) and problem.objective.on_demand:
        spent = clock.now() - began
        remaining = 0.0 if interrupted else None if first.time_limit is None else max(0.0, first.time_limit - spent)
        with Watch(remaining, signals) as watch:
            fit, limited = problem.fit(support), dataclasses.replace(first, node_limit=None if remaining else 1)
            return search_screened(problem, limited, fit, "given", watch, {}, signals, grows=remaining is not None)
    if settings.time_limit is None or interrupted:
        result = Search(problem, first, start=support, signals=signals, thorough=True).run()
        bounded = interrupted or result.lower > problem.infimum
        return result if bounded else with_fallback_bound(problem, result, None, signals)
    remaining = max(KEPT_FOR_BOUND * settings.time_limit, settings.time_limit - (clock.now() - began))
    if _prepares_for(problem) > remaining:
        return with_fallback_bound(problem, _unsearched(problem, settings, support), remaining, signals)
    in_time = dataclasses.replace(settings, node_limit=None, time_limit=remaining)
    return run_in_time(Search(problem, in_time, start=support, signals=signals, listing=True))


def _prepares_for(problem: SubsetProblem) -> float:
    """Seconds, roughly, for the Gram matrix without which a search of quadratic loss does not begin."""
    if not is_regression(problem, CLOSED_FORM) or "gram" in problem.shared:
        return 0.0
    return problem.n * problem.objective.d**2 / MULTIPLICATIONS


def _unsearched(problem: SubsetProblem, settings: Settings, support: tuple[int, ...]) -> Result:
    """What a search would say that had no time to prepare."""
    search, fit = Search(problem, settings), problem.fit(support)
    if fit.value < search.state.value:
        search.state.take_over(fit, "given")
    return dataclasses.replace(search.result(), termination=Termination.TIME_LIMIT)


def _as_method_result(
    problem: SubsetProblem, fit: Fit, heuristic: Heuristic, options: dict[str, Any], proposal: Proposal, bound: Result,
    seconds: float, total: float,
) -> MethodResult:  # fmt: skip
    """The search's result, restated for the method's own model."""
    inherited = {entry.name: getattr(bound, entry.name) for entry in dataclasses.fields(Result)}
    refuse_unattained(problem, fit)
    upper, model = statement_of(problem).upper(fit), Model.of(problem, fit.coef)
    return MethodResult(
        **{
            **inherited,
            "upper": upper,
            "support": fit.support,
            "prepared": PreparedModel.of(problem, fit.coef),
            "model": model,
            "quality": quality_of(problem, model),
            "claim": claim_of(upper, min(bound.lower, upper), bound.tolerance),
            "lower": min(bound.lower, upper),
            "source": heuristic.name,
            "times": {**bound.times, "method": seconds, "total": total},
        },
        method=heuristic.name,
        method_options=_options_of(heuristic, options),
        proposal=proposal,
        best_upper=min(bound.upper, upper),
        best_support=bound.support if bound.upper < upper else fit.support,
    )
