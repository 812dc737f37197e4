"""Run a search to its end while others look on: callbacks, the proof's writer, the trace."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from exactsel.arguments import file_name, seconds
from exactsel.errors import InvariantError
from exactsel.files import NamedFile, named_files, refuse_shared
from exactsel.observers.trace import Trace
from exactsel.proofs.writer import ProofWriter
from exactsel.search.events import Event
from exactsel.search.state import SearchState
from exactsel.solving.checkpointing import EVERY, Checkpointer, ResumedSearch, Store, take_up
from exactsel.solving.claim import with_proof
from exactsel.solving.fallback import bounded_in_time
from exactsel.solving.reproducer import kept
from exactsel.solving.result import Result
from exactsel_mapped import file_of

if TYPE_CHECKING:
    from exactsel.problem.interface import SubsetProblem
    from exactsel.solving.solver import Search

Callback = Callable[[Event, SearchState], None]


def only(kind: type, callback: Callback | None) -> Callback | None:
    """A callback for events of one kind."""
    if callback is None:
        return None
    return lambda event, state: callback(event, state) if isinstance(event, kind) else None


@dataclass(frozen=True)
class Files:
    """The files a solve writes, from the arguments of :func:`exactsel.solve`."""

    proof: str | os.PathLike[str] | None = None
    trace: str | os.PathLike[str] | None = None
    checkpoint: str | os.PathLike[str] | None = None
    every: float = EVERY
    """Seconds between checkpoints."""
    resume: str | os.PathLike[str] | None = None
    failures: str | os.PathLike[str] | None = "."
    """Folder for what is kept of a search that contradicts itself."""

    def __post_init__(self) -> None:
        for name in ("proof", "trace", "checkpoint", "resume", "failures"):
            file_name(name, getattr(self, name))
        seconds("checkpoint_every", self.every)
        refuse_shared(self._written)

    def sparing(self, problem: SubsetProblem) -> Files:
        """The same; :class:`InputError` where one of them is the file that the data of a problem stay in."""
        file = file_of(problem.A if problem.preparation is None else problem.preparation.AT)
        refuse_shared(self._written, [] if file is None else [NamedFile("the file of the data", file)])
        return self

    @property
    def _written(self) -> list[NamedFile]:
        # A search continues in the checkpoint it resumes from.
        saved = {"checkpoint": self.checkpoint} if self.resume is None else {"resume": self.resume}
        return named_files(proof=self.proof, trace=self.trace, **saved)

    @property
    def saved(self) -> bool:
        """Whether the search is saved as it goes."""
        return self.checkpoint is not None or self.resume is not None


def observed(
    run: Search, callbacks: Sequence[Callback | None], files: Files, record: bool,
    checkpoint: Store | None = None, going_on: ResumedSearch | None = None,
) -> Result:  # fmt: skip
    """Run to the end; every event goes to the checkpoint, the proof, the trace and the callbacks there are, in this
    order, and into the result if ``record`` says so.
    """
    events: list[Event] = []
    with ExitStack() as stack:
        writer = None if files.proof is None else stack.enter_context(closing(ProofWriter(run.problem, files.proof)))
        if going_on is not None:
            take_up(going_on, writer)
        saver = None
        if checkpoint is not None:
            before = 0.0 if going_on is None else going_on.seconds
            # First of all, since the end of a search closes in the proof what is open in the state.
            saver = stack.enter_context(closing(Checkpointer(checkpoint, writer, files.every, before)))
        tracer = None if files.trace is None else stack.enter_context(Trace(files.trace))
        if tracer is not None:
            tracer.begin(run.problem, run.settings.as_dict())
        run.has_fallback = writer is None
        observers = [observer for observer in (saver, writer, tracer, *callbacks) if observer is not None]
        try:
            for event in run:
                if record:
                    events.append(event)
                for observer in observers:
                    observer(event, run.state)
        except InvariantError as error:
            if files.failures is None:
                raise
            raise kept(error, run.problem, run.settings, run.state, files.failures) from error
        result = run.result(events if record else None)
        if writer is not None:
            result = with_proof(result, writer)
        else:
            result = bounded_in_time(run.problem, result, run.time_left, run.signals)
        if tracer is not None:
            tracer.end(result.lower, result.upper, result.as_dict())
    return replace(result, _kept=run.kept())
