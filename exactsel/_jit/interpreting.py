"""Small problems are solved by the Python text of kernels: compiling takes a minute, and they a fraction of a second.

In a :func:`session` kernels are interpreted as long as an allowance of kernel calls lasts, one for the whole process.
It is counted, so that nothing depends on the speed of the machine or on which kernels have been compiled before. A call
that uses it up is undone, as far as arrays were changed, and done again by the compiled kernel, as are all after it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np

from exactsel._jit.cache_paths import warmed_up
from exactsel.interrupts import CompilationStopped, give_up_if_over, patiently
from exactsel.types import BoolArray

if TYPE_CHECKING:
    from exactsel._jit.kernel import Kernel

T = TypeVar("T")

ALLOWANCE = 800_000
"""Calls of kernels a process interprets, five to ten seconds, where compiling them first takes half a minute, ..."""

WARMED_UP = 20_000
"""... and where ``exactsel dev warmup`` has compiled them, a few tenths of a second."""

NUMBERS_A_CALL = 4096
"""A kernel that works on whole arrays counts once more for each so many numbers of a row: about what a call takes."""

PLENTY = 3_000_000
"""Calls that a conformance kit may interpret before the rest of it is compiled: half a minute to a minute."""

CALLS_A_LOOK = 200
"""Calls, a few milliseconds, from one read of the watch to the next."""

CHOOSES = os.environ.get("EXACTSEL_JIT", "") not in ("0", "1")
"""Whether it is for this module to say what is compiled: EXACTSEL_JIT=0 says nothing is, EXACTSEL_JIT=1 all is."""


class Exhausted(Exception):
    """The allowance is used up."""


class PartUsedUp(Exception):
    """The caller's part of the allowance is used up; the call that used it up is undone."""


class _Allowance:
    """What is left of it."""

    def __init__(self) -> None:
        self.left = self.whole = ALLOWANCE
        self._begun = False

    def begin(self) -> None:
        """Check, once, whether the user has had kernels compiled ahead.

        Kernels that happen to be compiled play no part.
        """
        if not self._begun and self.left == ALLOWANCE and warmed_up():
            self.left = self.whole = WARMED_UP
        self._begun = True


allowance = _Allowance()

_flags: WeakValueDictionary[int, np.ndarray[Any, Any]] = WeakValueDictionary()
"""Of :func:`new_flag`, by identity."""


def new_flag() -> BoolArray:
    """A flag (1,), down, that others raise while a kernel runs, so that undoing a call must leave it as it is."""
    flag = np.zeros(1, dtype=np.bool_)
    _flags[id(flag)] = flag
    return flag


class Compiled(BaseException):
    """The kernel that is to be compiled has been called."""


class Session:
    """Interprets the kernels that one thread calls; a ``free`` one without regard to the allowance. It ends with
    :class:`Compiled` when the kernel ``compiles`` has been called, which is not interpreted.
    """

    def __init__(self, free: bool = False, compiles: str | None = None) -> None:
        self._free, self._included, self._compiles = free, False, compiles
        self._look = allowance.left
        self.least = 0
        """The part of the allowance that current work must leave."""

    def call(self, kernel: Kernel, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """What the kernel returns."""
        if kernel.py_func.__name__ == self._compiles:
            kernel.compiled(*arguments, **named)
            raise Compiled
        if not self._free:
            if allowance.left <= self.least:
                return self._without_allowance(kernel, arguments, named)
            allowance.left -= 1 if kernel.text is kernel.py_func else _calls_worth(arguments)
        if self._included:
            if not self._free and allowance.left <= self._look:
                self._look = allowance.left - CALLS_A_LOOK
                give_up_if_over()
            return kernel.text(*arguments, **named)
        before = [(array, array.copy()) for array in _changeable((arguments, tuple(named.values())))]
        self._included = True
        try:
            with np.errstate(all="ignore"):
                return kernel.text(*arguments, **named)
        except (Exhausted, ArithmeticError, ValueError):  # functions of math raise where compiled ones return nan
            _undo(before)
        except CompilationStopped:
            _undo(before)
            raise
        finally:
            self._included = False
        if self.least and allowance.left <= self.least:
            raise PartUsedUp
        with patiently(self._free):  # nothing else is left to do for what is needed
            return _compiled(kernel, arguments, named)

    def _without_allowance(self, kernel: Kernel, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if self._included:
            raise Exhausted
        if self.least:
            raise PartUsedUp
        return kernel.compiled(*arguments, **named)


class _Current(threading.local):
    """The session of this thread."""

    session: Session | None = None


current = _Current()


def as_text(kernel: Kernel, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The result of the Python text of a kernel, and of all it calls, on the arguments, at any cost."""
    before, current.session = current.session, Session(free=True)
    try:
        return current.session.call(kernel, arguments, named)
    finally:
        current.session = before


@contextmanager
def session(wanted: bool) -> Iterator[None]:
    """Interpret kernels in this block, where that is ``wanted`` and the allowance is not used up."""
    if wanted and CHOOSES:
        allowance.begin()
    if not (wanted and CHOOSES) or current.session is not None or allowance.left <= 0:
        yield
        return
    current.session = Session()
    try:
        yield
    finally:
        current.session = None


@contextmanager
def compiled_once_called(name: str) -> Iterator[None]:
    """Interpret kernels in this block, without any allowance, up to the call of the kernel ``name``, which is compiled;
    the block ends there.
    """
    before, current.session = current.session, Session(free=True, compiles=name)
    with suppress(Compiled):
        try:
            yield
        finally:
            current.session = before


@contextmanager
def without_compiling() -> Iterator[None]:
    """Interpret kernels in this block with an allowance of its own, a much larger one: for tiny problems of many kinds,
    of which each would be compiled for longer than it takes to solve them all.
    """
    before, allowance.left = allowance.left, PLENTY
    try:
        with session(True):
            yield
    finally:
        allowance.left = before


def steps_leaving_half(sequence: Iterable[T], cut: Callable[[], None]) -> Iterator[T]:
    """The same steps up to the one that would use more than half of what is left of the allowance; ``cut`` is called
    then. All of them where compiled kernels are at work, or little is left.
    """
    iterator = iter(sequence)
    least = allowance.left // 2 if allowance.left >= allowance.whole // 2 else 0
    while True:
        try:
            with _leaving(least):
                step = next(iterator)
        except StopIteration:
            return
        except PartUsedUp:
            return cut()
        yield step


@contextmanager
def _leaving(least: int) -> Iterator[None]:
    at_work = current.session
    if at_work is None:
        yield
        return
    at_work.least = least
    try:
        yield
    finally:
        at_work.least = 0


def interprets() -> bool:
    """Whether the next kernel this thread calls is interpreted."""
    return current.session is not None and allowance.left > 0


def steps(wanted: bool, sequence: Iterable[T]) -> Iterator[T]:
    """The same steps; kernels are interpreted on the way to each, but not in the code that consumes them."""
    if not (wanted and CHOOSES):
        yield from sequence
        return
    iterator = iter(sequence)
    while True:
        with session(True):
            try:
                step = next(iterator)
            except StopIteration:
                return
        yield step


def _compiled(kernel: Kernel, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """What the compiled kernel returns; on one thread, as nothing was prepared for more."""
    from exactsel._jit.kernel import parallel_section

    with parallel_section(1):
        return kernel.compiled(*arguments, **named)


def _calls_worth(arguments: tuple[Any, ...]) -> int:
    """How many calls one counts for that works on these in whole arrays."""
    longest = max((each.shape[-1] for each in arguments if isinstance(each, np.ndarray) and each.ndim), default=0)
    return 1 + longest // NUMBERS_A_CALL


def _undo(before: Iterable[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]) -> None:
    """Bring back what arrays held."""
    for array, kept in before:
        np.copyto(array, kept)


def _changeable(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    """All arrays of a nested tuple that kernels can write to, except flags that other threads set."""
    if isinstance(value, np.ndarray):
        if value.flags.writeable and _flags.get(id(value)) is not value:
            yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _changeable(part)
