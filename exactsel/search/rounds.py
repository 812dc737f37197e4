"""Carry out a round in the background while the one before is committed.

Kernels release the interpreter lock, so with two or more threads the Python of one round runs beside the kernels of the
next. With one thread a round is carried out when its outcome is asked for: the same calls with the same arguments in
the same order, hence the same tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType

from exactsel import interrupts
from exactsel._jit import working_threads
from exactsel.search.expand import Expander
from exactsel.search.node import Node
from exactsel.search.regions import Round
from exactsel.walks.effort import Effort


class Rounds:
    """A context in which rounds are carried out, one at a time; leaving it waits for the one that is going on."""

    def __init__(self, expander: Expander) -> None:
        self._expander = expander
        self._wait: Callable[[], Round] | None = None
        self._worker: ThreadPoolExecutor | None = None
        if expander.threads > 1:
            self._worker = ThreadPoolExecutor(1, "exactsel-round", interrupts.adopt, (interrupts.watches(),))

    @property
    def begun(self) -> bool:
        """Whether there is a round whose outcome has not been asked for."""
        return self._wait is not None

    def begin(self, nodes: Sequence[Node], upper: float, effort: Effort) -> None:
        """Begin to expand the nodes."""
        expand = partial(self._expander.expand, nodes, upper, effort)
        worker = self._worker if working_threads(2) > 1 else None
        self._wait = expand if worker is None else worker.submit(expand).result

    def outcome(self) -> Round:
        """Wait for the round that has been begun.

        Raises
        ------
        exactsel.search.expand.Interrupted
            When it was told to stop; it then leaves no trace.
        """
        assert self._wait is not None, "a round must be begun first"
        wait, self._wait = self._wait, None
        return wait()

    def __enter__(self) -> Rounds:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._worker is not None:
            self._worker.shutdown()
