"""Ctrl-C on the command line: exit code 130 within a second, from the first line of ``main`` on.

Outside a search nothing can be saved, so the handler ends the process where it stands: an exception would have to find
its way through half-imported modules, which turn it into errors of other kinds. Python runs handlers only between two
of its instructions, so a thread hears of the signal too, through the wake-up descriptor, and ends the process where the
main thread does not react. Inside a search :class:`exactsel.search.watch.Watch` has taken the signal: then the search
ends with its result, and the thread steps in only while there is none.
"""

from __future__ import annotations

import atexit
import contextlib
import signal
import socket
import threading
import time
from types import FrameType

from exactsel import interrupts

PATIENCE = 0.35
"""Seconds a search has to reach a result, if it has none when the signal comes."""

SECOND_PATIENCE = 0.1
"""Seconds the main thread has to react where nothing is to be saved, or to a second signal."""


class Guard:
    """Watches over the whole process; made once, in the main thread."""

    def __init__(self) -> None:
        self._ears, self._mouth = socket.socketpair()
        self._mouth.setblocking(False)
        signal.signal(signal.SIGINT, self._handle)
        signal.set_wakeup_fd(self._mouth.fileno(), warn_on_full_buffer=False)
        threading.Thread(target=self._listen, name="exactsel-guard", daemon=True).start()
        # From here on nothing is left to interrupt, and the interpreter takes its handlers down.
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        interrupts.end_now()

    def _listen(self) -> None:
        heard = 0
        while True:
            with contextlib.suppress(OSError):
                heard += self._ears.recv(64).count(signal.SIGINT)
            if heard == 1:
                self._wait_for_the_search()
                heard = 1
            elif heard > 1:
                time.sleep(SECOND_PATIENCE)
                interrupts.end_now()

    def _wait_for_the_search(self) -> None:
        """Come back when the search has a result, or a second signal comes; else end the process."""
        began = time.monotonic()
        while True:
            watch = interrupts.in_main()
            if watch is not None and watch.result_at_hand:
                return
            remaining = began + (SECOND_PATIENCE if watch is None else PATIENCE) - time.monotonic()
            if remaining <= 0:
                interrupts.end_now()
            time.sleep(min(remaining, interrupts.POLL))


def guard() -> None:
    """Set the guard up, unless the process was started to ignore Ctrl-C."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) not in (
        signal.SIG_IGN,
        None,
    ):
        Guard()
