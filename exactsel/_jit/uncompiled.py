"""Kernels as plain Python: what stands for the compiler where it is turned off."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

prange = range


def with_compiler(_tell: Callable[[Any], None], instead_of: Callable[..., Any] | None = None) -> None:
    """Do nothing: there is no compiler."""


def in_numpy(_kernel: Any) -> Callable[[F], F]:
    """Do nothing: the kernel's own text runs."""
    return lambda text: text


def overload(_stub: Any, jit_options: Any = None) -> Any:
    """Do nothing: without compilation the Python stub itself runs."""
    return lambda implementation: implementation


def njit(function: F | None = None, *, parallel: bool = False, sums: bool = False, inline: bool = False) -> Any:
    """Return the function unchanged."""
    return function if function is not None else lambda py_function: py_function


@contextmanager
def parallel_section(threads: int) -> Iterator[None]:
    """Do nothing: plain Python runs on one thread."""
    yield


def available_threads() -> int:
    """One: plain Python runs on one thread."""
    return 1


def working_threads(_threads: int) -> int:
    """One: there are no atomic operations."""
    return 1


def yield_thread() -> None:
    """Do nothing: plain Python runs on one thread."""


def atomic_add(cells: Any, index: int, value: int) -> int:
    """Add to an int64 cell and return what it held; plain Python runs on one thread."""
    before = int(cells[index])
    cells[index] += value
    return before


def atomic_swap(cells: Any, index: int, value: int) -> int:
    """Replace an int64 cell and return what it held; plain Python runs on one thread."""
    before = int(cells[index])
    cells[index] = value
    return before
