"""Column subset selection: the problem as the caller knows it.

The objective of a selection S of columns of A is ||A - S S⁺ A||_F².
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class ColumnInstance:
    """The problem as the caller knows it."""

    A: FloatArray
    """(n, d), one column per candidate."""
    k: int
    """Largest number of columns."""

    loss = "column subset selection"

    def __post_init__(self) -> None:
        if self.A.ndim != 2:
            raise ValueError(f"A has {self.A.ndim} dimensions; expected a table (n, d).")
