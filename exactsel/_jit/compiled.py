"""The general parts of numba, and compiled kernels: with our own dispatchers, or with numba's.

Where numba is newer than the versions our target and cache are tested with (versions.py) kernels are numba's own: they
take longer to compile, and every process compiles them again.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# Threads that wait by spinning starve each other on a busy machine (measured: seven times slower); a user's own
# choice stands.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numba
from numba import prange as prange
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.extending import overload as overload

from exactsel._jit import uncompiled
from exactsel._jit.cache_paths import cache_folder
from exactsel._jit.versions import is_tested

CACHE = cache_folder()
"""The folder, or None."""

dispatchers: list[Any] = []
"""All kernels."""

_parallel_lock = threading.RLock()


def njit(kernel: Any, instead: Callable[..., Any]) -> Any:
    """The dispatcher of a kernel, see :func:`exactsel._jit.kernel.njit`.

    Parameters
    ----------
    kernel : Kernel
        As Python holds it.
    instead : callable
        What runs in its place where the result is needed and it is not compiled yet.
    """
    options = {
        "nogil": True,
        "parallel": kernel.options["parallel"],
        "fastmath": {"reassoc", "contract"} if kernel.options["sums"] else False,
        "error_model": "numpy",
        "forceinline": kernel.options["inline"],
    }
    made = _dispatcher(kernel, options, instead) if is_tested() else numba.njit(**options)(kernel.py_func)
    dispatchers.append(made)
    return made


def _dispatcher(kernel: Any, options: dict[str, Any], instead: Callable[..., Any]) -> Any:
    from exactsel._jit.dispatchers import Entry  # it rests on parts of numba that newer versions may not have

    return Entry(kernel, {"nopython": True, **options}, instead, CACHE)


@contextmanager
def parallel_section(threads: int) -> Iterator[None]:
    """Run a parallel kernel on ``threads`` threads; one at a time, as numba's simplest backend demands."""
    with _parallel_lock:
        previous = numba.get_num_threads()
        numba.set_num_threads(max(1, min(threads, numba.config.NUMBA_NUM_THREADS)))
        try:
            yield
        finally:
            numba.set_num_threads(previous)


def available_threads() -> int:
    """How many threads a parallel kernel can use in this process."""
    return int(numba.config.NUMBA_NUM_THREADS)


def _atomic(operation: str) -> Any:
    """A function (cells, index, value) -> old value that no other thread can come between; int64 cells."""

    def change(_typing: Any, cells: Any, index: Any, value: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = signature.args[0]
            array = context.make_array(kind)(context, builder, arguments[0])
            place = cgutils.get_item_pointer(context, builder, kind, array, [arguments[1]])
            return builder.atomic_rmw(operation, place, arguments[2], "seq_cst")

        return types.int64(cells, types.int64, types.int64), emit

    return intrinsic(change)


_wait = types.ExternalFunction("SwitchToThread" if sys.platform == "win32" else "sched_yield", types.int32())


@numba.njit(nogil=True)  # type: ignore[untyped-decorator]
def _yield_thread() -> None:
    """Let another thread run on this core."""
    _wait()


_add, _swap = _atomic("add"), _atomic("xchg")


def in_place_of(stub: Callable[..., Any]) -> Callable[..., Any]:
    """What stands for a function of uncompiled.py in compiled kernels, for :func:`numba.extending.overload`."""
    if stub is uncompiled.yield_thread:
        return lambda: lambda: _yield_thread()
    if stub is uncompiled.atomic_add:
        return lambda cells, index, value: lambda cells, index, value: _add(cells, index, value)
    return lambda cells, index, value: lambda cells, index, value: _swap(cells, index, value)
