"""What an interrupt must know: who can end with a result, which compilation may be given up, which files are half done.

Nothing heavy is imported here, because the command line loads this before anything else.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

POLL = 0.05
"""Seconds between two looks at the stop flag while a kernel is compiled."""

LOADS = 3
"""Looks at the stop flag that a needed kernel may take; enough to load one from the disk cache."""

STACK = 64 * 2**20
"""Bytes of stack for a thread that compiles; some systems give threads far less than the compiler needs."""

T = TypeVar("T")


class CompilationStopped(KeyboardInterrupt):
    """An interrupt came while a kernel was compiled; the compilation goes on in the background, and nobody waits."""


class Watching(Protocol):
    """What :class:`exactsel.search.watch.Watch` shows here."""

    @property
    def interrupted(self) -> bool:
        """Whether a signal has come."""

    result_at_hand: bool
    """Whether whoever is watched has a result, which must not be lost."""


_local = threading.local()
_in_main: list[Watching] = []
_half_written: set[str] = set()


def current() -> Watching | None:
    """The innermost watch of this thread."""
    watches = _watches()
    return watches[-1] if watches else None


def in_main() -> Watching | None:
    """The outermost watch of the main thread."""
    return next(iter(tuple(_in_main)), None)


def enter(watch: Watching) -> None:
    """A watch begins in this thread."""
    _watches().append(watch)
    if threading.current_thread() is threading.main_thread():
        _in_main.append(watch)


def leave(watch: Watching) -> None:
    """A watch ends."""
    for watches in (_watches(), _in_main):
        if watch in watches:
            watches.remove(watch)


def adopt(watch: Watching | None) -> None:
    """Let this thread do dispensable work for the one ``watch`` belongs to."""
    if watch is not None:
        _watches().append(watch)
    _local.dispensable = True


@contextlib.contextmanager
def dispensable() -> Iterator[None]:
    """A block whose work nobody needs once a signal has come, so that compiling for it may be given up."""
    before = getattr(_local, "dispensable", False)
    _local.dispensable = True
    try:
        yield
    finally:
        _local.dispensable = before


def dispensable_steps(steps: Iterable[T]) -> Iterator[T]:
    """The same steps; what it takes to come to each is dispensable."""
    iterator = iter(steps)
    while True:
        with dispensable():
            try:
                step = next(iterator)
            except StopIteration:
                return
        yield step


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
        When the work is :func:`dispensable` and the watch of this thread has taken a signal.
    """
    if getattr(_local, "aside", False):
        return work()
    watch = current()
    needed = watch is not None and watch.interrupted and not getattr(_local, "dispensable", False)
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
    waited = 0
    while not done.wait(POLL):
        watch = current()
        if watch is None or not watch.interrupted:
            continue
        if getattr(_local, "dispensable", False):
            raise CompilationStopped
        waited += 1
        if instead is not None and waited >= LOADS:
            _local.plain = True
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
