"""The versions of numba with which our own target and cache are tested.

Both rest on internal parts of numba without a promise of stability. Where it is newer kernels are numba's own: compiled
by every process, and kept by none.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import PackageNotFoundError, version

BELOW = (0, 69)
"""Versions from this one on are newer than those tested; the bound in ``pyproject.toml`` is the same."""


@cache
def is_tested() -> bool:
    """Whether the numba that is installed is none of the newer ones; numba is not imported."""
    try:
        numbers = re.findall(r"\d+", version("numba"))
    except PackageNotFoundError:
        return False
    return tuple(map(int, numbers[:2])) < BELOW
