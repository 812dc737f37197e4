"""The state an interrupt needs: results that exist, compilations that may be given up, files that are half done.

Nothing heavy is imported here, because the command line loads this before anything else.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

POLL = 0.05
"""Seconds between two reads of the stop flag while a kernel is compiled."""

LOADS = 3
"""Reads of the stop flag that a needed kernel may take; enough to load one from the disk cache."""

STACK = 64 * 2**20
"""Bytes of stack for a thread that compiles; some systems give threads far less than the compiler needs."""

HANGUP: int | None = getattr(signal, "SIGHUP", None)
"""The signal of a terminal that closes, where there is such a thing."""

T = TypeVar("T")


def ending_signals() -> tuple[int, ...]:
    """The signals that end a command with its result: SIGINT, SIGTERM, and SIGHUP unless it is ignored, as by nohup."""
    hangs_up = HANGUP is not None and signal.getsignal(HANGUP) is not signal.SIG_IGN
    return (signal.SIGINT, signal.SIGTERM, *((HANGUP,) if hangs_up and HANGUP is not None else ()))


def leave_to_others() -> None:
    """Ignore signals that a terminal sends to all processes it has started: the parent process decides."""
    for number in (signal.SIGINT, HANGUP):
        if number is not None:
            signal.signal(number, signal.SIG_IGN)


class CompilationStopped(KeyboardInterrupt):
    """An interrupt, or the end of the time limit, came while a kernel was compiled.

    The compilation continues in the background, and its caller does not wait.
    """


class Watching(Protocol):
    """What :class:`exactsel.search.watch.Watch` shows here."""

    @property
    def interrupted(self) -> bool:
        """Whether a signal has come."""

    @property
    def over(self) -> bool:
        """Whether a signal has come, or the end of a time limit that compiling counts for."""

    result_at_hand: bool
    """Whether the watched search has a result, which must not be lost."""


_local = threading.local()
_in_main: list[Watching] = []
_half_written: set[str] = set()
_given_up: list[threading.Event] = []
"""One for each compilation that was given up; set when it has ended all the same."""


def current() -> Watching | None:
    """The innermost watch of this thread."""
    watches = _watches()
    return watches[-1] if watches else None


def watches() -> tuple[Watching, ...]:
    """All watches of this thread, the innermost last."""
    return tuple(_watches())


def waited() -> float:
    """Seconds this thread has waited for the compiler, loading what is compiled included."""
    seconds: float = getattr(_local, "waited", 0.0)
    return seconds


def compiles_on() -> bool:
    """Whether a compilation that was given up still runs, so that the process would wait for it at its end."""
    return not all(done.is_set() for done in _given_up)


def in_main() -> Watching | None:
    """The outermost watch of the main thread."""
    return next(iter(tuple(_in_main)), None)


def enter(watch: Watching, signals: bool) -> None:
    """A watch begins in this thread; ``signals`` says whether it takes any."""
    _watches().append(watch)
    if signals and threading.current_thread() is threading.main_thread():
        _in_main.append(watch)


def leave(watch: Watching) -> None:
    """A watch ends."""
    for watches in (_watches(), _in_main):
        if watch in watches:
            watches.remove(watch)


def adopt(watches: Iterable[Watching]) -> None:
    """Let this thread do dispensable work for the one these watches belong to."""
    _watches().extend(watches)
    _local.dispensable = True


@contextlib.contextmanager
def dispensable() -> Iterator[None]:
    """A block whose work is not needed after a signal, so that compiling for it may be given up."""
    before = getattr(_local, "dispensable", False)
    _local.dispensable = True
    try:
        yield
    finally:
        _local.dispensable = before


@contextlib.contextmanager
def hurrying(wanted: bool) -> Iterator[None]:
    """A block that must not wait for the compiler, where that is ``wanted``."""
    before = getattr(_local, "hurrying", False)
    _local.hurrying = before or wanted
    try:
        yield
    finally:
        _local.hurrying = before


@contextlib.contextmanager
def patiently(wanted: bool) -> Iterator[None]:
    """A block that waits for the compiler despite signals, where that is ``wanted``."""
    before = getattr(_local, "patient", False)
    _local.patient = before or wanted
    try:
        yield
    finally:
        _local.patient = before


def give_up_if_over() -> None:
    """Raise :class:`CompilationStopped` where :func:`aside` would."""
    if getattr(_local, "dispensable", False) and _is_over():
        raise CompilationStopped


def dispensable_steps(steps: Iterable[T]) -> Iterator[T]:
    """The same steps; the work to reach each is dispensable."""
    iterator = iter(steps)
    while True:
        with dispensable():
            try:
                step = next(iterator)
            except StopIteration:
                return
        yield step


def _is_over() -> bool:
    """Whether dispensable work is not needed any more.

    Of time limits only the innermost counts, because a caller that is given up must know that it is.
    """
    if getattr(_local, "patient", False):
        return False
    if getattr(_local, "hurrying", False):
        return True
    watches = _watches()
    return bool(watches) and (watches[-1].over or any(watch.interrupted for watch in watches))


def _watches() -> list[Watching]:
    if not hasattr(_local, "watches"):
        _local.watches = []
    watches: list[Watching] = _local.watches
    return watches


def aside(work: Callable[[], T], instead: T | None = None) -> T:
    """What ``work`` returns, done in another thread, so that neither a signal nor its handler waits for it.

    Where a result is wanted after a signal and the work takes long (a compilation that was given up may hold the
    compiler), ``instead`` is returned, if it is given.

    Raises
    ------
    CompilationStopped
        When the work is :func:`dispensable` and a watch of this thread says that all is over.
    """
    if getattr(_local, "aside", False):
        return work()
    needed = _is_over() and not getattr(_local, "dispensable", False)
    _local.plain = needed and getattr(_local, "plain", False)
    if _local.plain and instead is not None:
        return instead  # having waited once is enough
    done, outcome = threading.Event(), list[Any]()

    def go() -> None:
        _local.aside = True
        try:
            outcome.extend((True, work()))
        except BaseException as error:
            outcome.extend((False, error))
        finally:
            done.set()

    try:
        with _stack():
            threading.Thread(target=go, name="exactsel-compile").start()
    except RuntimeError:  # no more threads, or the interpreter is about to end
        return work()
    began = time.perf_counter()
    try:
        return _waited_for(done, outcome, instead)
    finally:
        _local.waited = waited() + time.perf_counter() - began


def _waited_for(done: threading.Event, outcome: list[Any], instead: T | None) -> T:
    """What a thread puts into ``outcome`` before ``done`` is set, see :func:`aside`."""
    looks = 0
    while not done.wait(POLL):
        if not _is_over():
            continue
        if getattr(_local, "dispensable", False):
            _given_up.append(done)
            raise CompilationStopped
        looks += 1
        if instead is not None and looks >= LOADS:
            _local.plain = True
            _given_up.append(done)
            return instead
    well, value = outcome
    if not well:
        raise value
    return value  # type: ignore[no-any-return]


@contextlib.contextmanager
def _stack() -> Iterator[None]:
    try:
        before = threading.stack_size(STACK)
    except (ValueError, RuntimeError):
        yield
        return
    try:
        yield
    finally:
        threading.stack_size(before)


@contextlib.contextmanager
def half_written(path: str) -> Iterator[None]:
    """A file that must not stay if the process ends inside the block."""
    _half_written.add(path)
    try:
        yield
    finally:
        _half_written.discard(path)


def end_now(code: int = 130, message: str = "interrupted.\n") -> None:
    """End the process at once, from any thread: no half-written file stays, and no thread is waited for."""
    for path in tuple(_half_written):
        with contextlib.suppress(OSError):
            os.unlink(path)
    say(message)
    os._exit(code)


def say(message: str) -> None:
    """Write to stderr without the locks of its stream, and without waiting for a reader that has stopped reading."""
    import select

    with contextlib.suppress(OSError, ValueError):
        if os.name == "nt" or select.select([], [2], [], 0.1)[1]:
            os.write(2, message.encode())
