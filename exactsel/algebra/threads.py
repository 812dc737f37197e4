"""One BLAS thread, so that neither the last bits nor the tree depend on the machine's cores."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

LIBRARIES = ("scipy.linalg",)
"""Modules, besides numpy, that bring a BLAS library of their own when they are imported."""


def one_thread() -> AbstractContextManager[Any]:
    """A context in which every BLAS library loaded by now uses one thread."""
    return _controller(tuple(name in sys.modules for name in LIBRARIES)).limit(limits=1, user_api="blas")  # type: ignore[no-any-return]


@cache
def _controller(loaded: tuple[bool, ...]) -> Any:
    """The libraries loaded; finding them takes milliseconds, many times the work of a small problem."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
