"""scipy.linalg, imported on first use.

That takes a tenth of a second, which small searches need not wait for. Used as ``dense.solve_triangular(...)``.
"""

from __future__ import annotations

from typing import Any

from exactsel.algebra.threads import hold_loaded


def __getattr__(name: str) -> Any:
    import scipy.linalg

    hold_loaded()  # the import brings a BLAS library, which the current search does not know yet
    return getattr(scipy.linalg, name)
