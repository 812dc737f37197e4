"""The one call: :func:`solve`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from inspect import signature
from typing import Any

from numpy.typing import ArrayLike

from exactsel._jit import interpreted
from exactsel._version import __version__
from exactsel.arguments import function, signal_numbers, switch
from exactsel.errors import InputError
from exactsel.observers.lines import teller
from exactsel.observers.log import ProgressLog
from exactsel.problem.interface import SubsetProblem, is_regression
from exactsel.problem.regression import Problem
from exactsel.proofs.statement import statement_of
from exactsel.search.events import IncumbentFound, LowerBoundRaised
from exactsel.search.pool import SHARD, Executor
from exactsel.search.state import SearchState
from exactsel.solving.checkpointing import (
    EVERY,
    LIMITS,
    ResumedSearch,
    SearchMode,
    Store,
    begin,
    check_in_shards,
    take_along,
)
from exactsel.solving.checkpointing import resume as resume_from
from exactsel.solving.executors import executor_for
from exactsel.solving.problem_arguments import problem_asked
from exactsel.solving.result import Result
from exactsel.solving.run import Callback, Files, observed, only
from exactsel.solving.screened_search import TableSearches
from exactsel.solving.screening import refuse_files, solve_screened
from exactsel.solving.settings import Settings, settings_of
from exactsel.solving.small import is_small
from exactsel.solving.solver import Search
from exactsel.types import PathName


def solve(
    problem: SubsetProblem | object, y: ArrayLike | None = None, k: int | None = None, *,
    callback: Callback | None = None, start: Sequence[int] | None = None, record: bool = False, details: bool = False,
    proof: PathName | None = None, trace: PathName | None = None, checkpoint: PathName | None = None,
    checkpoint_every: float = EVERY, resume: PathName | None = None, on_incumbent: Callback | None = None,
    on_bound: Callback | None = None, signals: Sequence[int] = (signal.SIGINT,), recheck: bool = False,
    failures: PathName | None = ".", executor: object = None, workers: int | None = None,
    scheduler: str | None = None, verbose: int = 0, **options: object,
) -> Result:  # fmt: skip
    """Find the best model with at most k features, and bound its gap: ``solve(X, y, k=5, loss="huber", lam=1)``.

    Parameters
    ----------
    problem : Problem, ColumnSubsetProblem or GroupedProblem; or array, sparse matrix or data frame (n, d)
        Data need ``y`` and ``k``, have an intercept, and take the options of :class:`exactsel.Problem`.
    y, k : array (n,), int, optional
        Target of the data; largest number of features.
    callback, on_incumbent, on_bound : callable, optional
        Called with (event, state) for every event (:mod:`exactsel.search.events`), better model, or higher bound.
    start : sequence of int, optional
        Another support to start from.
    record, details : bool
        Keep all events in :attr:`Result.events`. With details they include the nodes of subtrees searched in kernels.
    proof, trace : path, optional
        Files for the proof (:func:`exactsel.verify`) and for the events. An interrupted search writes both, too.
    checkpoint, resume : path, optional
        File to save to, at the end and every ``checkpoint_every`` seconds (0: every round). A file to resume from, by
        the same tree, and to save to. Limits may change, and all else stays.
    recheck, failures : bool, path
        Recompute every bound (:mod:`exactsel.proofs.recheck`). Folder for the files of a failed search.
    executor, workers, scheduler, verbose, signals : optional
        How nodes are expanded (:mod:`exactsel.solving.executors`). 1 shows progress. Signals that end the search.
    **options
        Fields of :class:`exactsel.Settings`, such as eps, time_limit and threads (or ``n_jobs``).

    Returns
    -------
    Result
        Its lower bound holds for every end of the search.

    Raises
    ------
    InputError
        For data or options that cannot be used. A search that contradicts itself raises InvariantError.
    """
    subset_problem, settings = problem_asked(problem, y, k, options)
    record, details, recheck = map(switch, ("record", "details", "recheck"), (record, details, recheck))
    files = Files(proof, trace, checkpoint, checkpoint_every, resume, failures).sparing(subset_problem)
    how = SearchMode(listing=trace is None, shown=proof is not None, details=record or details or recheck)
    by, watching = executor_for(executor, workers, scheduler), _watching(callback, on_incumbent, on_bound)
    if is_regression(subset_problem) and subset_problem.objective.on_demand:
        return _screened(subset_problem, settings, files, how, by, (on_incumbent, on_bound), start, signals)
    watchers = (_rechecker(subset_problem) if recheck else None, *watching, _table(verbose, subset_problem, settings))
    settings |= {} if executor is None or settings.get("shard") is not None or resume is not None else {"shard": SHARD}
    more: dict[str, Any] = {"start": start, "signals": signal_numbers("signals", signals), "executor": by}
    if files.saved:
        return solve_saved(subset_problem, settings, how, files, watchers, record=record, **more)
    with interpreted(is_small(subset_problem) and executor is None):
        more["compiled"] = executor is not None
        return _finished(_search(subset_problem, Settings(**settings), how, **more), watchers, files, record)


def _screened(
    problem: Problem, settings: dict[str, Any], files: Files, how: SearchMode, executor: Executor | None,
    watching: Sequence[Any], start: Sequence[int] | None, signals: Sequence[int],
) -> Result:  # fmt: skip
    """Solve a problem whose data are not held as a table."""
    refuse_files(details=how.details, executor=executor, on_incumbent=watching[0], on_bound=watching[1])
    if files.resume is not None:
        refuse_besides(files, start)
    by, searches = signal_numbers("signals", signals), TableSearches(problem, files, how, settings)
    return solve_screened(problem, searches.settings, start=start, signals=by, searches=searches)


def refuse_besides(files: Files, start: Sequence[int] | None) -> None:
    """:class:`InputError` where a search is resumed, but another checkpoint or a model to start from is given."""
    if files.checkpoint is not None and os.path.abspath(files.checkpoint) != os.path.abspath(str(files.resume)):
        raise InputError("a search continues in the checkpoint it resumes from; leave the other one out, or copy it.")
    if start is not None:
        raise InputError("a search that is resumed has its models already; leave out what it should start from.")


OPTIONS = (
    *settings_of(),
    *(name for name in signature(solve).parameters if name not in ("problem", "y", "k", "verbose", "options")),
)
"""The options of :func:`solve` that concern a search; verbs that solve several problems pass them on."""


def _watching(callback: object, on_incumbent: object, on_bound: object) -> tuple[Callback | None, ...]:
    """The callbacks for events, checked to be functions."""
    incumbents, bounds = function("on_incumbent", on_incumbent), function("on_bound", on_bound)
    return function("callback", callback), only(IncumbentFound, incumbents), only(LowerBoundRaised, bounds)


def _table(verbose: int, problem: SubsetProblem, settings: dict[str, Any]) -> Callback | None:
    """The progress table on stderr, begun, where ``verbose`` requests it."""
    if teller(verbose) is None:
        return None
    log, checked = ProgressLog(sys.stderr), Settings(**settings)
    with interpreted(is_small(problem)):
        log.begin(problem, __version__, f"stop at eps={checked.eps:g} or rel_eps={checked.rel_eps:g}")
    return log


def _rechecker(problem: SubsetProblem) -> Callback:
    from exactsel.proofs.recheck import Recheck  # with all of the checker, which others do not need

    return Recheck(problem)


def solve_saved(
    problem: SubsetProblem, settings: dict[str, Any], how: SearchMode, files: Files,
    watching: Sequence[Callback | None], *,
    start: Sequence[int] | None, signals: Sequence[int], record: bool, executor: Executor | None,
) -> Result:  # fmt: skip
    """A solve with a checkpoint, begun or resumed; arguments as :func:`solve` has them."""
    if files.resume is None:
        checked = Settings(**settings)
        assert files.checkpoint is not None
        with closing(begin(files.checkpoint, problem, checked, how, files.proof)) as checkpoint:
            more = {"signals": signals, "compiled": True, "room": checkpoint, "executor": executor}
            run = _search(problem, checked, how, start=start, **more)
            return _finished(run, watching, files, record, checkpoint)
    refuse_besides(files, start)
    going = resume_from(files.resume, problem, settings, files.proof, how)
    try:
        check_in_shards(files.resume, executor is not None, going.settings.shard)
    except InputError:
        going.checkpoint.close()
        raise
    if going.state is not None and going.proof is None:
        reopened(going.state, going.settings, problem)
    with closing(going.checkpoint):
        more = {"signals": signals, "compiled": True, "room": going.checkpoint, "executor": executor}
        more["state"] = going.state
        run = _search(problem, going.settings, going.how, **more)
        return _finished(run, watching, replace(files, proof=going.proof), record, going.checkpoint, going)


def go_on(result: Result, limits: dict[str, Any]) -> Result:
    """Continue the search behind a result, see :meth:`exactsel.Result.resume`."""
    search, watching = result._kept, (limits.pop("callback", None),)
    signals = limits.pop("signals", (signal.SIGINT,))
    assert search is not None
    other = next((name for name in limits if name not in LIMITS), None)
    if other is not None:
        raise InputError(f"{other} is given, but only limits may change when a search resumes: {', '.join(LIMITS)}.")
    overrides: dict[str, Any] = {"time_limit": None, "node_limit": None, **limits}
    settings, state = replace(search.settings, **overrides), search.state
    if not reopened(state, settings, search.problem):
        run = _search(search.problem, settings, search.how, start=result.support, signals=signals, compiled=True)
    else:
        take_along(state)
        run = _search(search.problem, settings, search.how, state=state, signals=signals)
    return _finished(run, watching, Files(), search.how.details)


def _finished(
    run: Search, callbacks: Sequence[Callback | None], files: Files, record: bool,
    checkpoint: Store | None = None, going_on: ResumedSearch | None = None,
) -> Result:  # fmt: skip
    """The result of a run to its end, which can be continued; arguments as :func:`observed` has them."""
    result = observed(run, callbacks, files, record, checkpoint, going_on)
    assert result._kept is not None
    return replace(result, _kept=replace(result._kept, continued=go_on))


def reopened(state: SearchState, settings: Settings, problem: SubsetProblem) -> bool:
    """Open again what is closed within a coarser tolerance than the settings'; False where that is lost."""
    statement = state.statement or statement_of(problem)
    tolerance = settings.tolerance.of(problem).for_search(statement.taken)
    cutoff = state.value - tolerance.absolute(state.value)
    return not state.min_pruned_bound < cutoff or state.reopen(cutoff)


def solve_beside(
    problem: SubsetProblem, settings: Settings, store: Store, saving: bool, every: float,
    watching: Sequence[Callback | None], *, state: SearchState | None, start: Sequence[int], signals: Sequence[int],
    executor: Executor | None = None,
) -> Result:  # fmt: skip
    """One of several searches that share a checkpoint, begun from a support or continued from a state.

    Its open nodes stay in the ``store``, and nowhere else. Without ``saving`` it is a room for them only.
    """
    how, begin_at = (
        SearchMode(listing=True, shown=False, details=False),
        None if state is not None and state.rounds else start,
    )
    if state is not None and not reopened(state, settings, problem):
        begin_at, state = state.shown.fit.support, None
    if not begin_at and problem.first_support is not None:
        begin_at = None  # the empty model stands for no start here, and does not meet the equalities
    more: dict[str, Any] = {"signals": signals, "compiled": True, "room": store, "executor": executor}
    run = _search(problem, settings, how, state=state, start=begin_at, **more)
    result = observed(run, watching, Files(every=every), False, store if saving else None)
    return replace(result, _kept=None)


def _search(problem: SubsetProblem, settings: Settings, how: SearchMode, **more: Any) -> Search:
    return Search(problem, settings, details=how.details, listing=how.listing, shown=how.shown, **more)
