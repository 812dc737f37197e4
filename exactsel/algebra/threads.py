"""One BLAS thread, so that neither the last bits nor the tree depend on the machine's cores.

Most BLAS libraries have one number of threads for the whole process: it is set by the first of several searches and
given back by the last, whichever threads those are in. threadpoolctl restores what a context found, which is right for
one thread alone, and since 3.8 lets no thread but the first set anything; so here its libraries are set one by one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from threading import Lock, local
from typing import Any

LIBRARIES = ("scipy.linalg",)
"""Modules, besides numpy, that bring a BLAS library of their own when they are imported."""


class _Held:
    """Libraries held to one thread until the last of their users is done."""

    def __init__(self) -> None:
        self._included = 0
        self._had: dict[str, tuple[Any, int]] = {}
        """Library and number of threads before, by file."""

    def enter(self, libraries: Sequence[Any]) -> None:
        """Hold those that are not held yet, until :meth:`leave`."""
        self._included += 1
        self.hold(libraries)

    def hold(self, libraries: Sequence[Any]) -> None:
        """Hold those that are not held yet, where others are held."""
        if not self._included:
            return
        for library in libraries:
            if library.filepath not in self._had:
                self._had[library.filepath] = library, library.num_threads
                _let_set(library)
                library.set_num_threads(1)

    def leave(self) -> None:
        """Give the threads back, if this was the last."""
        self._included -= 1
        if not self._included:
            for library, threads in self._had.values():
                _let_set(library)
                library.set_num_threads(threads)
                _let_set(library)
            self._had.clear()


class _OfThread(local):
    """What each thread holds by itself: libraries whose number of threads is a thread's own."""

    def __init__(self) -> None:
        self.held = _Held()


_lock = Lock()
_of_process = _Held()
_of_thread = _OfThread()


@contextmanager
def one_thread() -> Iterator[None]:
    """A context in which every BLAS library loaded by now uses one thread, also while other threads enter and leave."""
    shared, openmp = _libraries(tuple(name in sys.modules for name in LIBRARIES))
    held = _of_thread.held  # a generator may be closed by another thread than the one it ran in
    with _lock:
        _of_process.enter(shared)
    held.enter(openmp)
    try:
        yield
    finally:
        held.leave()
        with _lock:
            _of_process.leave()


def hold_loaded() -> None:
    """Where this thread is inside :func:`one_thread`, hold libraries, too, that were loaded since."""
    shared, openmp = _libraries(tuple(name in sys.modules for name in LIBRARIES))
    with _lock:
        _of_process.hold(shared)
    _of_thread.held.hold(openmp)


def _let_set(library: object) -> None:
    """Let this thread set the number of threads, whichever thread did so before."""
    clear = getattr(library, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


@cache
def _libraries(loaded: tuple[bool, ...]) -> tuple[Sequence[Any], Sequence[Any]]:
    """The BLAS libraries with a number for the process, and with one for each thread, as OpenMP has it; finding them
    takes milliseconds, many times the work of a small problem.
    """
    from threadpoolctl import ThreadpoolController

    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    openmp = [each for each in libraries if each.internal_api == "openblas" and each.threading_layer == "openmp"]
    return [each for each in libraries if each not in openmp], openmp
