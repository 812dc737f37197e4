"""One BLAS thread, so that neither the last bits nor the tree depend on the machine's cores."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

LIBRARIES = ("scipy.linalg",)
"""Modules, besides numpy, that bring a BLAS library of their own when they are imported."""


_lock = threading.Lock()
_inside = 0
_limits: list[tuple[tuple[bool, ...], Any]] = []
"""What has been limited, the latest last: which libraries were loaded then, and what gives them their threads back."""


@contextmanager
def one_thread() -> Iterator[None]:
    """A context in which every BLAS library loaded by now uses one thread.

    The limit is the whole process's, so it stays until the last of several threads leaves: otherwise the sums of the
    others, and the last bits of their bounds, would depend on who is done first.
    """
    global _inside
    loaded = tuple(name in sys.modules for name in LIBRARIES)
    with _lock:
        _inside += 1
        if not _limits or _limits[-1][0] != loaded:
            _limits.append((loaded, _controller(loaded).limit(limits=1, user_api="blas")))
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            while _inside == 0 and _limits:
                _limits.pop()[1].restore_original_limits()


@cache
def _controller(loaded: tuple[bool, ...]) -> Any:
    """The libraries loaded; finding them takes milliseconds, many times the work of a small problem."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
