"""Run a search to its end while others look on: callbacks, the proof's writer, the trace."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

from exactsel.observers.trace import Trace
from exactsel.proofs.writer import ProofWriter
from exactsel.search.events import Event
from exactsel.search.state import SearchState
from exactsel.solving.at_hand import bounded_in_time
from exactsel.solving.claim import with_proof
from exactsel.solving.result import Result

if TYPE_CHECKING:
    from exactsel.solving.solver import Search

Callback = Callable[[Event, SearchState], None]


def only(kind: type, callback: Callback | None) -> Callback | None:
    """A callback for events of one kind."""
    if callback is None:
        return None
    return lambda event, state: callback(event, state) if isinstance(event, kind) else None


def observed(
    run: Search, callbacks: Sequence[Callback | None], proof: str | os.PathLike[str] | None,
    trace: str | os.PathLike[str] | None, record: bool,
) -> Result:  # fmt: skip
    """Run to the end; every event goes to the proof, the trace and the callbacks there are, in this order, and into the
    result if ``record`` says so.
    """
    events: list[Event] = []
    with ExitStack() as files:
        writer = None if proof is None else files.enter_context(closing(ProofWriter(run.problem, proof)))
        tracer = None if trace is None else files.enter_context(Trace(trace))
        if tracer is not None:
            tracer.begin(run.problem, run.settings.as_dict())
        observers = [observer for observer in (writer, tracer, *callbacks) if observer is not None]
        for event in run:
            if record:
                events.append(event)
            for observer in observers:
                observer(event, run.state)
        result = run.result(events if record else None)
        if writer is not None:
            result = with_proof(result, writer)
        else:
            result = bounded_in_time(run.problem, result, run.time_left, run.signals)
        if tracer is not None:
            tracer.end(result.lower, result.upper, result.as_dict())
    return result
