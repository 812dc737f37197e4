"""The one call: :func:`solve`."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from exactsel._jit import interpreted
from exactsel.errors import InputError
from exactsel.problem.interface import SubsetProblem
from exactsel.search.events import IncumbentFound, LowerBoundRaised
from exactsel.solving.asked import problem_asked
from exactsel.solving.checkpointing import EVERY, LIMITS, How, begin, take_along
from exactsel.solving.checkpointing import resume as resume_from
from exactsel.solving.observed import Callback, Files, observed, only
from exactsel.solving.result import Result
from exactsel.solving.settings import Settings
from exactsel.solving.small import is_small
from exactsel.solving.solver import Search


def solve(
    problem: SubsetProblem | Any, y: Any = None, k: int | None = None, *, callback: Callback | None = None,
    start: Sequence[int] | None = None, record: bool = False, details: bool = False,
    proof: str | os.PathLike[str] | None = None, trace: str | os.PathLike[str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None, checkpoint_every: float = EVERY, resume: Any = None,
    on_incumbent: Callback | None = None, on_bound: Callback | None = None, signals: Sequence[int] = (signal.SIGINT,),
    **options: Any,
) -> Result:  # fmt: skip
    """Find the best model with at most k columns, and prove how good it is: ``solve(X, y, k=5, loss="huber", lam=1)``.

    Parameters
    ----------
    problem : Problem, ColumnSubsetProblem or GroupedProblem; or array, sparse matrix or data frame (n, d)
        Data come with ``y`` and ``k``, and the ``options`` take those of :meth:`exactsel.Problem.prepared`, too.
    y, k : array (n,), int, optional
        Target of the data, and the largest number of columns.
    callback, on_incumbent, on_bound : callable, optional
        Called with (event, state) for every event (see :mod:`exactsel.search.events`), for every better model
        (``event.upper``, ``event.support``, ``event.coef``), or when the lower bound rises (``event.lower``).
    start : sequence of int, optional
        A support to start from, besides the heuristics'.
    record, details : bool
        Keep all events in :attr:`Result.events`; tell also of every node a kernel searched by itself (both do).
    proof : path, optional
        File to write the proof to, for :func:`exactsel.verify`; also when the search is interrupted. On a full disk
        ``proof`` of the result is None, and an :class:`exactsel.errors.OutputWarning` says so.
    trace : path, optional
        File that gets every event as one JSON object a line, see :mod:`exactsel.observers.trace`. With one, ``record``
        or ``details`` nothing is solved by listing, which leaves nothing to replay.
    checkpoint : path, optional
        File to save the search to when it ends, and every ``checkpoint_every`` seconds (a fiftieth of the time at most;
        0: every round). From it the search goes on by the same tree, whatever happened. Kernels are all compiled.
    resume : path, optional
        Such a file, to go on from and to save to. Limits may be others (eps, rel_eps, time_limit, node_limit,
        memory_limit, threads); all else stays, need not be said again, and a proof that was begun is gone on with.
    signals : sequence of int
        Signals that end the search with a result (main thread only).
    **options
        Fields of :class:`exactsel.Settings`, such as eps, time_limit and threads.

    Returns
    -------
    Result
        With a lower bound that holds however the search ended.

    Raises
    ------
    InputError
        For an unknown name, a bad setting, a bound that cannot serve the problem, or a proof that cannot be begun.
    """
    asked, settings = problem_asked(problem, y, k, options)
    files = Files(proof, trace, checkpoint, checkpoint_every, resume)
    how = How(listing=trace is None, shown=proof is not None, details=record or details)
    watching = (callback, only(IncumbentFound, on_incumbent), only(LowerBoundRaised, on_bound))
    if files.saved:
        return solve_saved(asked, settings, how, files, watching, start=start, signals=signals, record=record)
    with interpreted(is_small(asked)):
        run = _search(asked, Settings(**settings), how, start=start, signals=signals)
        return observed(run, watching, files, record)


def solve_saved(
    problem: SubsetProblem, settings: dict[str, Any], how: How, files: Files, watching: Sequence[Callback | None], *,
    start: Sequence[int] | None, signals: Sequence[int], record: bool,
) -> Result:  # fmt: skip
    """A solve that is saved as it goes, or goes on from what was saved; arguments as :func:`solve` has them."""
    if files.resume is None:
        checked = Settings(**settings)
        assert files.checkpoint is not None
        with closing(begin(files.checkpoint, problem, checked, how, files.proof)) as checkpoint:
            run = _search(problem, checked, how, start=start, signals=signals, compiled=True, room=checkpoint)
            return observed(run, watching, files, record, checkpoint)
    if files.checkpoint is not None and os.path.abspath(files.checkpoint) != os.path.abspath(files.resume):
        raise InputError("a search goes on in the checkpoint it is resumed from; leave the other one out, or copy it.")
    if start is not None:
        raise InputError("a search that is resumed has its models already; leave out what it should start from.")
    going = resume_from(files.resume, problem, settings, files.proof, how)
    with closing(going.checkpoint):
        more = {"state": going.state, "signals": signals, "compiled": True, "room": going.checkpoint}
        run = _search(problem, going.settings, going.how, **more)
        return observed(run, watching, replace(files, proof=going.proof), record, going.checkpoint, going)


def go_on(result: Result, limits: dict[str, Any]) -> Result:
    """Go on with the search behind a result, see :meth:`exactsel.Result.resume`."""
    kept, watching = result.kept, (limits.pop("callback", None),)
    signals = limits.pop("signals", (signal.SIGINT,))
    if kept is None:
        raise InputError(
            "this result has no search to go on with, as it comes from elsewhere; solve the problem again, with "
            "start=result.support, or save the search with checkpoint=."
        )
    other = next((name for name in limits if name not in LIMITS), None)
    if other is not None:
        raise InputError(f"{other} is given, but only limits may change when a search goes on: {', '.join(LIMITS)}.")
    anew: dict[str, Any] = {"time_limit": None, "node_limit": None, **limits}
    settings, state = replace(kept.settings, **anew), kept.state
    tolerance = replace(settings.tolerance, null=kept.problem.null_objective)
    if state.dropped < state.value - tolerance.absolute(state.value):
        run = _search(kept.problem, settings, kept.how, start=result.support, signals=signals, compiled=True)
    else:
        take_along(state)
        run = _search(kept.problem, settings, kept.how, state=state, signals=signals)
    return observed(run, watching, Files(), kept.how.details)


def _search(problem: SubsetProblem, settings: Settings, how: How, **more: Any) -> Search:
    return Search(problem, settings, details=how.details, listing=how.listing, shown=how.shown, **more)
