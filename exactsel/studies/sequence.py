"""A sequence of problems on the same data: each is solved from the models of those before, and what comes close to its
best may be listed.

A path is one of many steps, a list of close models one of a single step. It can be interrupted anywhere and resumed:
searches continue from their open nodes, pools from their open regions, and steps that are done stay as they are. A
:class:`StepSolver` solves and stores: the one here keeps all in memory, the one in sequence_checkpoint.py in a file.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from exactsel import clock
from exactsel._jit import interpreted
from exactsel.algebra.threads import one_thread
from exactsel.errors import InputError
from exactsel.solving.api import solve
from exactsel.solving.checkpointing import LIMITS, OF_ONE_RUN
from exactsel.solving.choose import class_of
from exactsel.solving.executors import Workers
from exactsel.solving.outcome import Termination, claim_of
from exactsel.solving.result import Result
from exactsel.solving.settings import Settings, settings_of
from exactsel.solving.small import is_small
from exactsel.studies.pool_search import SolutionPool
from exactsel.studies.solution_pool import CAP, NearOptimal, ResumablePool, check_cap, list_of, list_on

if TYPE_CHECKING:
    from exactsel.problem.interface import SubsetProblem

OF_A_RUN = ("signals", "callback")
"""The other options of a resumed sequence."""


@dataclass(frozen=True)
class Reach:
    """Which models are listed beside the best one: those that exceed it by ``tau``, or a ``share`` of it, at most."""

    tau: float | None = None
    share: float | None = None
    cap: int = CAP

    def tau_of(self, upper: float) -> float:
        """How far above the best objective ``upper`` a model may be."""
        return self.tau if self.tau is not None else (self.share or 0.0) * abs(upper)


@dataclass
class Step:
    """One problem of a sequence."""

    changes: dict[str, Any]
    """The arguments of ``replace`` on the previous problem."""
    result: Result | None = None
    near: NearOptimal | None = None


@dataclass
class ProblemSequence:
    """A sequence of problems to solve and list, and its state."""

    problem: SubsetProblem
    """Whose data these are."""
    steps: list[Step]
    options: dict[str, Any]
    """As :func:`exactsel.solve` takes them: settings, and its other arguments."""
    reach: Reach | None = None
    together: bool = False
    """Whether a time limit is for search and pool of a step together, and not for each."""
    log: Callable[[Result], None] | None = None
    """Called with every result."""
    workers: Workers = field(default_factory=Workers)
    """Executors that expand the nodes of its searches; lists are made in this process."""

    @property
    def settings(self) -> dict[str, Any]:
        """Those of the options that are settings."""
        return settings_among(self.options)

    @property
    def begun(self) -> list[Step]:
        """The steps that have a result."""
        return [step for step in self.steps if step.result is not None]

    @property
    def interrupted(self) -> bool:
        """Whether a signal or a stop request interrupted it."""
        return any(
            step.result.termination is Termination.INTERRUPTED or (step.near and step.near.termination == "interrupted")
            for step in self.steps
            if step.result is not None
        )

    def extend(self, steps: Iterable[dict[str, Any]]) -> None:
        """These steps from now on, in this order; those there were are among them."""
        there = {key_of(step.changes): step for step in self.steps}
        self.steps = [there.get(key_of(changes), Step(changes)) for changes in steps]


class StepSolver(Protocol):
    """Solver and lister of the steps of a sequence, with storage for the states of both."""

    signals: Sequence[int]

    def solve(self, place: int, problem: SubsetProblem, start: Sequence[int], settings: Settings) -> Result:
        """The result of a step's search, which is begun from a support or resumed."""
        ...

    def fill(self, place: int, result: Result, pool: SolutionPool, cap: int, settings: Settings) -> NearOptimal:
        """The list of a step, continued from its ``pool``."""
        ...


def run(sequence: ProblemSequence, solver: StepSolver) -> None:
    """Bring every step to its end, or to its limits; broken off, it leaves the steps that follow as they are."""
    problem, settings = sequence.problem, Settings(**sequence.settings)
    before: dict[int, tuple[int, ...]] = {}
    smaller: tuple[int, ...] = ()
    for place, step in enumerate(sequence.steps):
        # From the last one, which knows all that has been worked out from the data.
        problem, began = problem.replace(**step.changes) if step.changes else problem, clock.now()
        result = step.result
        if result is not None and finished(result, settings):
            result = restated(result, settings)
        else:
            result = solver.solve(place, problem, before.get(problem.k, smaller), _settings_at(sequence, place))
        step.result = result
        if sequence.log is not None:
            sequence.log(result)
        if result.termination is Termination.INTERRUPTED:
            return
        if sequence.reach is not None:
            spent = clock.now() - began if sequence.together else 0.0
            step.near = _filled(sequence.reach, step, solver, place, problem, _rest(settings, spent))
            if step.near.termination == "interrupted":
                return
        before[problem.k] = smaller = result.support


def _settings_at(sequence: ProblemSequence, place: int) -> Settings:
    """After the first problem there is a model to start from, and local search improves it."""
    first = not any(step.result is not None for step in sequence.steps[:place])
    usual = {} if first else {"heuristics": class_of(sequence.problem).improving}
    return Settings(**{**usual, **sequence.settings})


def _rest(settings: Settings, spent: float) -> Settings:
    limit = settings.time_limit
    return replace(settings, time_limit=None if limit is None else max(0.0, limit - spent))


def _filled(
    reach: Reach, step: Step, solver: StepSolver, place: int, problem: SubsetProblem, settings: Settings
) -> NearOptimal:
    """The list of a step, from where it stands."""
    result, listing = step.result, step.near
    assert result is not None
    tau = reach.tau_of(result.upper)
    if listing is None or listing._kept is None:
        pool = SolutionPool.begun(problem, result.upper, tau)
    else:
        pool = listing._kept.pool
        same = listing.tau == tau and pool.best <= result.upper
        if listing.termination in ("complete", "precision") and same:
            return replace(listing, result=result)
        pool = pool.lowered(result.upper, tau)
    return solver.fill(place, result, pool, reach.cap, settings)


def finished(result: Result, settings: Settings) -> bool:
    """Whether a search is complete: the tolerance is proven, or all that can be with the one it had."""
    if result.termination is Termination.INTERRUPTED:
        return False
    now = replace(result.tolerance, eps=settings.eps, rel_eps=settings.rel_eps)
    if claim_of(result.upper, result.lower, now).reached:
        return True
    finer = now.absolute(result.upper) < result.tolerance.absolute(result.upper)
    return result.termination is Termination.PRECISION_LIMIT and not finer


def restated(result: Result, settings: Settings) -> Result:
    """A finished result by the words of another tolerance."""
    tolerances = {"eps": settings.eps, "rel_eps": settings.rel_eps}
    if tolerances == {name: result.settings[name] for name in tolerances}:
        return result
    return replace(result, settings={**result.settings, **tolerances})._claiming(result.lower)


class InMemory:
    """Keeps everything in memory, as results do."""

    def __init__(self, sequence: ProblemSequence, executor: object = None) -> None:
        self._sequence, self._executor = sequence, executor
        self.signals: Sequence[int] = sequence.options.get("signals", (signal.SIGINT,))

    def solve(self, place: int, problem: SubsetProblem, start: Sequence[int], settings: Settings) -> Result:
        """The result of a step's search."""
        before, options = self._sequence.steps[place].result, self._sequence.options
        if before is not None and before._kept is not None:
            of_run = {name: options[name] for name in OF_A_RUN if name in options}
            return before.resume(**{name: getattr(settings, name) for name in LIMITS}, **of_run)
        start = start if before is None else before.support
        more = {"start": start or None, "heuristics": settings.heuristics, "executor": self._executor}
        return solve(problem, **{**more, **options})

    def fill(self, place: int, result: Result, pool: SolutionPool, cap: int, settings: Settings) -> NearOptimal:
        """The list of a step."""
        return resumable(list_on(result, pool, cap, settings, self.signals), pool, cap, self._sequence.settings)


def run_in_memory(sequence: ProblemSequence) -> ProblemSequence:
    """:func:`run` a sequence without a file, and return it; small problems are begun without the compiler."""
    small = is_small(sequence.problem) and not sequence.workers.asked
    with sequence.workers.engaged() as executor, interpreted(small), one_thread():
        run(sequence, InMemory(sequence, executor))
    return sequence


def limit(sequence: ProblemSequence, limits: dict[str, Any]) -> None:
    """Set other limits for a resumed sequence.

    The limits of one run are gone unless they are given again; ``cap`` goes to the lists.

    Raises
    ------
    InputError
        Where something else than a limit is given.
    """
    choices = (*LIMITS, *(("cap",) if sequence.reach is not None else ()))
    other = next((name for name in limits if name not in (*choices, *OF_A_RUN)), None)
    if other is not None:
        raise InputError(f"{other} is given, but only limits may change when a search resumes: {', '.join(choices)}.")
    options = {name: value for name, value in sequence.options.items() if name not in (*OF_ONE_RUN, *OF_A_RUN)}
    options |= {name: value for name, value in limits.items() if name != "cap"}
    Settings(**settings_among(options))  # before anything is changed
    if sequence.reach is not None and limits.get("cap") is not None:
        check_cap(limits["cap"])
        sequence.reach = replace(sequence.reach, cap=limits["cap"])
    sequence.options = options


def go_on_alone(
    problem: SubsetProblem, cap: int, settings: dict[str, Any], listing: NearOptimal, limits: dict[str, Any]
) -> NearOptimal:
    """Continue one list, and the search behind it; see :meth:`NearOptimal.resume`."""
    step = Step({}, listing.result, listing)
    sequence = ProblemSequence(problem, [step], settings, Reach(tau=listing.tau, cap=cap), together=True)
    limit(sequence, limits)
    return list_at(run_in_memory(sequence), 0)


def list_at(sequence: ProblemSequence, place: int) -> NearOptimal:
    """The list of a step that has a result; an empty one where listing has not begun."""
    step, reach = sequence.steps[place], sequence.reach
    assert step.result is not None
    assert reach is not None
    if step.near is not None:
        return step.near
    problem = sequence.problem.replace(**step.changes) if step.changes else sequence.problem
    pool = SolutionPool.begun(problem, step.result.upper, reach.tau_of(step.result.upper))
    return resumable(list_of(step.result, pool, "interrupted"), pool, reach.cap, sequence.settings)


def resumable(listing: NearOptimal, pool: SolutionPool, cap: int, settings: dict[str, Any]) -> NearOptimal:
    """The list with its pool, which belongs to no file."""
    return replace(listing, _kept=ResumablePool(pool, partial(go_on_alone, pool.problem, cap, settings)))


def settings_among(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the options that are settings."""
    return {name: value for name, value in options.items() if name in settings_of()}


def key_of(changes: Mapping[str, Any]) -> tuple[Any, float]:
    """The key that distinguishes a step from the others of its sequence."""
    return changes.get("k"), changes.get("lam", -1.0)
