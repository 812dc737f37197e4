"""Kernels as numba holds them: two dispatchers each, one that Python calls and one that kernels call.

Numbers written in a call (``f(x, 0)``) are taken by their type: numba would lower ``f`` once more for each.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from numba.core import sigutils
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import OmittedArg
from numba.core.registry import CPUDispatcher
from numba.core.target_extension import current_target, target_override
from numba.core.types import Dispatcher as DispatcherType
from numba.core.types import unliteral  # type: ignore[attr-defined]

from exactsel._jit.compile_events import compiling_begins, compiling_ended
from exactsel._jit.disk import KernelCache
from exactsel._jit.target import NAME, FunctionCompiler, Lowered
from exactsel.file_lock import turn
from exactsel.interrupts import aside


@contextmanager
def nothing_collected() -> Iterator[None]:
    """While a kernel is compiled Python looks for no garbage, a seventh of the time; the compiler's lock is held."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


class Inner(Lowered):
    """A kernel as kernels call it."""

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """How it is called with these types."""
        return super().get_call_template(
            tuple(map(unliteral, args)), {name: unliteral(kind) for name, kind in kws.items()}
        )


class _EntryCompiler(FunctionCompiler):
    is_entry = True


class Entry(Lowered):
    """A kernel as Python calls it: it takes in all it needs, and is what is kept on disk.

    Parameters
    ----------
    kernel : Kernel
        As Python holds it.
    options : dict
        Numba's.
    instead : callable
        What runs in its place where the result is needed and it is not compiled yet.
    folder : Path, optional
        Where it is kept.
    """

    compiler_class = _EntryCompiler

    def __init__(self, kernel: Any, options: dict[str, Any], instead: Callable[..., Any], folder: Path | None) -> None:
        super().__init__(kernel.py_func, targetoptions=options)
        self.inner, self._instead = Inner(kernel.py_func, targetoptions=options), instead
        self._compiling_counter = self.inner._compiling_counter  # by which numba knows recursion
        self._keeps: KernelCache | None = None
        if folder is not None:
            with suppress(OSError):  # the folder has gone, or nothing can be written into it any more
                self._cache = self._keeps = KernelCache(kernel, folder)
        if self._keeps is None:
            compiling_begins(kernel.py_func.__name__)

    @property
    def _numba_type_(self) -> Any:
        """What kernels call; what a function calls that is not compiled for our target is compiled as that is."""
        return DispatcherType(self.inner if current_target() == NAME else self._for_others)

    @cached_property
    def _for_others(self) -> Any:
        return CPUDispatcher(self.py_func, targetoptions=self.targetoptions)

    def compile(self, sig: Any) -> Any:
        """Compile it for these types of arguments, or load it.

        One process compiles a kernel for them while others that need the same wait for its file, as when tests run in
        parallel. The compiler's own lock comes first, so that threads of one process cannot wait for each other.
        """
        with global_compiler_lock:
            if tuple(sigutils.normalize_signature(sig)[0]) in self.overloads or self._keeps is None:
                return self._compile(sig)
            began = time.perf_counter()
            with turn(self._keeps.lock_for(sig)):
                made = self._compile(sig)
            compiling_ended(self.py_func.__name__, time.perf_counter() - began)
            return made

    def _compile(self, sig: Any) -> Any:
        with nothing_collected(), target_override(NAME):
            return CPUDispatcher.compile(self, sig)

    def _compile_for_args(self, *args: Any, **kws: Any) -> Any:
        """Compile in a thread that can be left alone, so that neither an interrupt nor a time limit waits for the
        compiler.

        What is needed for the result after that runs as plain Python.
        """

        def as_text(*arguments: Any) -> Any:
            return self._instead(*(each.value if isinstance(each, OmittedArg) else each for each in arguments))

        return aside(lambda: CPUDispatcher._compile_for_args(self, *args, **kws), as_text)
