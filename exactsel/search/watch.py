"""Stop a search on a deadline or a signal within a fraction of a second, also from inside a kernel.

Kernels poll one shared flag. Python runs signal handlers only between bytecodes, so while a kernel holds the main
thread a watcher thread learns of the signal through the wake-up descriptor the interpreter writes to at once.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Any

from exactsel import clock, interrupts
from exactsel.bounds.base import never_stop
from exactsel.types import BoolArray

LONGEST_WAIT = 3600.0

HAS_THREADS = sys.platform not in ("emscripten", "wasi")
"""Whether threads can be started. A browser has none: there a search reads the clock between rounds."""


class Watch:
    """A context in which ``flag`` turns true at the deadline or on one of ``signals``; ``reason`` then says why.

    A second signal does what it would have done without any watch, or raises :class:`KeyboardInterrupt`, for callers
    that do not want to wait. A second SIGHUP does nothing, as a terminal that closes may send several. Signals are only
    caught in the main thread; elsewhere the deadline alone is watched.

    Watches may be nested, one around many searches: a signal to an inner watch is one to the outer watch too, and a
    watch begun after the signal is interrupted from the start.

    With ``gives_up`` the time limit holds for compiling, too: see :class:`exactsel.interrupts.CompilationStopped`. As
    long as there is no result, it ends ``early`` seconds before the limit, so that the caller can compute one by a
    faster method.
    """

    def __init__(
        self,
        time_limit: float | None = None,
        signals: Sequence[int] = (),
        *,
        gives_up: bool = False,
        early: float = 0.0,
    ) -> None:
        self.flag: BoolArray = never_stop()
        self.reason: str | None = None
        self.result_at_hand = False
        self._outer: Watch | None = None
        self._gives_up, self._early = gives_up, early
        self._deadline = None if time_limit is None else clock.now() + time_limit
        in_main = threading.current_thread() is threading.main_thread()
        self._signals = tuple(signals) if in_main and HAS_THREADS else ()
        self._previous: dict[int, Any] = {}
        self._previous_fd = -1
        self._caught = 0
        self._thread: threading.Thread | None = None
        if HAS_THREADS:
            self._wakeup, self._wakeup_writer = socket.socketpair()
            self._thread = threading.Thread(target=self._watch, name="exactsel-watch", daemon=True)

    @property
    def interrupted(self) -> bool:
        """Whether a signal has come."""
        return self.reason == "interrupted"

    @property
    def over(self) -> bool:
        """Whether a signal has come, or the end of a time limit that holds for compiling."""
        if self._gives_up and not self.result_at_hand and clock.now() >= self._current_deadline:
            self._raise_flag("time_limit")
        return self.interrupted or (self._gives_up and bool(self.flag[0]))

    @property
    def _current_deadline(self) -> float:
        """When the flag is raised, as things stand."""
        deadline = math.inf if self._deadline is None else self._deadline
        return deadline if self.result_at_hand else deadline - self._early

    @property
    def time_left(self) -> float:
        """Seconds until the time limit, infinite without one."""
        return math.inf if self._deadline is None else max(0.0, self._deadline - clock.now())

    def keep_result(self) -> None:
        """Record that a result exists now, for which the command line waits after a signal."""
        self.result_at_hand = True
        if self._outer is not None:
            self._outer.keep_result()

    @property
    def stopped(self) -> bool:
        """Whether the flag is up."""
        if clock.now() >= self._current_deadline:
            self._raise_flag("time_limit")
        return bool(self.flag[0])

    def stop_reason(self) -> str:
        """Why the flag is up; empty where it is not."""
        return self.reason or "time_limit" if self.stopped else ""

    def _raise_flag(self, reason: str) -> None:
        if self.reason is None:
            self.reason = reason
        self.flag[0] = True
        if reason == "interrupted" and self._outer is not None:
            self._outer._raise_flag(reason)

    def _watch(self) -> None:
        while True:
            wait = LONGEST_WAIT if self.flag[0] else self._current_deadline - clock.now()
            self._wakeup.settimeout(max(1e-3, min(wait, LONGEST_WAIT)))
            try:
                received = self._wakeup.recv(16)
            except TimeoutError:
                if clock.now() >= self._current_deadline:
                    self._raise_flag("time_limit")
                continue
            except OSError:
                return
            if not received or 0 in received:
                return
            if any(number in self._signals for number in received):
                self._raise_flag("interrupted")
            if self._previous_fd >= 0:
                with contextlib.suppress(OSError):
                    os.write(self._previous_fd, received)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        outermost = self
        while outermost._outer is not None:
            outermost = outermost._outer
        if number == interrupts.HANGUP and outermost._caught:
            return
        outermost._caught += 1
        if outermost._caught > 1:
            before = outermost._previous.get(number)
            if callable(before):
                before(number, frame)
            raise KeyboardInterrupt
        self._raise_flag("interrupted")

    def __enter__(self) -> Watch:
        if self._signals:
            outer = interrupts.current()
            self._outer = outer if isinstance(outer, Watch) else None
            if self._outer is not None and self._outer.interrupted:
                self._raise_flag("interrupted")
        if self._signals or self._gives_up:
            interrupts.enter(self, signals=bool(self._signals))
        for number in self._signals:
            self._previous[number] = signal.signal(number, self._handle)
        if self._signals:
            self._wakeup_writer.setblocking(False)
            self._previous_fd = signal.set_wakeup_fd(self._wakeup_writer.fileno(), warn_on_full_buffer=False)
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._signals:
            signal.set_wakeup_fd(self._previous_fd)
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        interrupts.leave(self)
        if self._thread is None:
            return
        # The thread ends for certain, even if the pipe is full and another process holds a copy of it.
        with contextlib.suppress(OSError):
            self._wakeup_writer.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._wakeup.close()
        self._wakeup_writer.close()
