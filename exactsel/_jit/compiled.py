"""Kernels compiled by numba and cached on disk.

A cache folder's name is a hash of every file a kernel can take in (our kernels and losses, and the kernel's own
folder), because numba's own cache does not notice an edit in another file and would silently return the old numbers. A
folder that cannot be written, or that others can change or replace, is not used, and then nothing is cached.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
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

from exactsel._jit import plain
from exactsel._jit.dispatchers import Entry
from exactsel._jit.folders import PACKAGE, cache_folder, hash_of

CACHE = None if cache_folder() is None else str(cache_folder())
"""The folder, or None."""

dispatchers: list[Any] = []
"""All kernels."""

_parallel_lock = threading.RLock()


@cache
def _cache_of(folder: Path) -> str | None:
    """Where kernels defined in ``folder`` are cached: elsewhere than our own, and anew after any edit there."""
    if CACHE is None or folder.parent == PACKAGE:
        return CACHE
    return str(Path(CACHE) / f"{folder.name}-{hash_of(sorted(folder.glob('*.py')))}")


def njit(
    py_function: Callable[..., Any], *, instead: Callable[..., Any], parallel: bool, sums: bool, inline: bool
) -> Any:
    """The dispatcher of a kernel, see :func:`exactsel._jit.kernel.njit`."""
    options = {
        "nopython": True,
        "nogil": True,
        "parallel": parallel,
        "fastmath": {"reassoc", "contract"} if sums else False,
        "error_model": "numpy",
        "forceinline": inline,
    }
    folder = None if CACHE is None else _cache_of(Path(py_function.__code__.co_filename).resolve().parent)
    made = Entry(py_function, options, instead, folder)
    dispatchers.append(made)
    return made


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
    """What stands for a function of plain.py in compiled kernels, for :func:`numba.extending.overload`."""
    if stub is plain.yield_thread:
        return lambda: lambda: _yield_thread()
    if stub is plain.atomic_add:
        return lambda cells, index, value: lambda cells, index, value: _add(cells, index, value)
    return lambda cells, index, value: lambda cells, index, value: _swap(cells, index, value)
