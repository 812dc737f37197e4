"""scipy.linalg, imported when something of it is first asked for.

That takes a tenth of a second, which small searches need not wait for. Used as ``dense.solve_triangular(...)``.
"""

from __future__ import annotations

from typing import Any

from exactsel.algebra.threads import hold_loaded


def __getattr__(name: str) -> Any:
    import scipy.linalg

    hold_loaded()  # the import brings a BLAS library, which a search that is going on does not know yet
    return getattr(scipy.linalg, name)
