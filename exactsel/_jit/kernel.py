"""A kernel as Python holds it: compiled when it is first called, or interpreted where a small problem is solved.

Nothing here imports numba, which takes a third of a second, before a kernel must be compiled or loaded.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, update_wrapper
from typing import Any, TypeVar

from exactsel._jit import uncompiled
from exactsel._jit.cache_key import runs_instead
from exactsel._jit.interpreting import as_text, current, interprets

F = TypeVar("F", bound=Callable[..., Any])

_lock = threading.RLock()
_waiting: list[Callable[[Any], None]] = []
"""Callbacks for the compiler's first use; each is given the module compiled.py."""


def compiler() -> Any:
    """The module that compiles, imported when this is first called."""
    with _lock:
        from exactsel._jit import compiled

        while _waiting:
            _waiting.pop(0)(compiled)
        return compiled


def with_compiler(tell: Callable[[Any], None], instead_of: Callable[..., Any] | None = None) -> None:
    """Call ``tell`` with the module that compiles before the next kernel is compiled.

    ``instead_of`` is the Python function in whose place it lets something else be compiled.
    """
    if instead_of is not None:
        runs_instead(instead_of, tell)
    _waiting.append(tell)


class Kernel:
    """A function that is compiled when called, and interpreted in a session of :mod:`exactsel._jit.interpreting`.

    Kernels that are compiled call it as they would call what numba makes of the function.
    """

    def __init__(self, py_func: Callable[..., Any], options: dict[str, bool]) -> None:
        update_wrapper(self, py_func)
        self.py_func, self.options = py_func, options
        self.text = py_func
        """What is interpreted."""
        given, defaults = py_func.__code__, py_func.__defaults__ or ()
        self._names = given.co_varnames[: given.co_argcount]
        self._defaults = dict(zip(self._names[len(self._names) - len(defaults) :], defaults, strict=True))

    @cached_property
    def compiled(self) -> Any:
        """What numba makes of it."""
        made = compiler().njit(self, self._as_text)
        return self.__dict__.setdefault("compiled", made)  # another thread may have been quicker

    def _as_text(self, *arguments: Any, **named: Any) -> Any:
        return as_text(self, arguments, named)

    @property
    def _numba_type_(self) -> Any:
        """By which numba knows what a kernel calls."""
        return self.compiled._numba_type_

    def _complete(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments with the defaults of those omitted: numba compiles once more for each omitted one."""
        filled, rest = self._defaults | named, self._names[len(arguments) :]
        if named.keys() <= {*rest} and filled.keys() >= {*rest}:
            return (*arguments, *(filled[name] for name in rest)), {}
        return arguments, named  # what is wrong with them is for Python to say

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if len(arguments) < len(self._names):
            arguments, named = self._complete(arguments, named)
        session = current.session
        if session is None:
            return self.compiled(*arguments, **named)
        return session.call(self, arguments, named)


def njit(function: F | None = None, *, parallel: bool = False, sums: bool = False, inline: bool = False) -> Any:
    """Make a kernel of a function; it releases the interpreter lock and is cached on disk.

    ``inline`` copies it into its callers, for what is called once and short beside the cost of a call.
    ``sums`` lets the compiler reorder additions so that dot products use vector instructions. The rounding
    allowance of a bound (:mod:`exactsel.kernels.dual`) holds for every order of summation.
    """

    def decorate(py_function: F) -> Kernel:
        return Kernel(py_function, {"parallel": parallel, "sums": sums, "inline": inline})

    return decorate(function) if function is not None else decorate


def in_numpy(kernel: Any) -> Callable[[F], F]:
    """Say what is interpreted in the place of a kernel with long loops: the same in whole arrays."""

    def keep(text: F) -> F:
        kernel.text = text
        return text

    return keep


def overload(stub: Callable[..., Any], jit_options: dict[str, Any] | None = None) -> Callable[[F], F]:
    """Say what compiled code runs in the place of a Python function: numba's own, kept until it is needed."""

    def keep(implementation: F) -> F:
        with_compiler(lambda compiled: compiled.overload(stub, jit_options=jit_options or {})(implementation))
        runs_instead(stub, implementation)
        return implementation

    return keep


def prange(*limits: int) -> range:
    """A range whose numbers compiled kernels may take in any order, in several threads."""
    return range(*limits)


def _name_parallel_ranges(compiled: Any) -> None:
    """Numba knows its own ``prange`` only; it is a range for Python, too."""
    for module in tuple(sys.modules.values()):
        names = getattr(module, "__dict__", None)
        if isinstance(names, dict) and names.get("prange") is prange and names is not globals():
            names["prange"] = compiled.prange


with_compiler(_name_parallel_ranges)


@contextmanager
def parallel_section(threads: int) -> Iterator[None]:
    """Run a parallel kernel on ``threads`` threads; one at a time, as numba's simplest backend demands."""
    if interprets():
        yield
        return
    with compiler().parallel_section(threads):
        yield


def available_threads() -> int:
    """How many threads a parallel kernel can use in this process."""
    if "numba" in sys.modules:
        return int(compiler().available_threads())
    given = os.environ.get("NUMBA_NUM_THREADS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def working_threads(threads: int) -> int:
    """How many of so many threads are worth while: one, as long as kernels are interpreted."""
    return 1 if interprets() else threads


yield_thread, atomic_add, atomic_swap = uncompiled.yield_thread, uncompiled.atomic_add, uncompiled.atomic_swap


def _tell_of_threads(compiled: Any) -> None:
    for stub in (yield_thread, atomic_add, atomic_swap):
        compiled.overload(stub)(compiled.in_place_of(stub))


with_compiler(_tell_of_threads)
