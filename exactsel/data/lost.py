"""Rounding losses of a table's columns as doubles, found block by block and reported at the end.

How much a column varies, by which what it loses is judged, is known only once all blocks have been read.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactsel.problem.doubles import Rounding, rounding_of, say
from exactsel.types import FloatArray

WEIGHTS = "the weights"
"""The column that is not refused however much it loses: weights count by their size alone."""


class Lost:
    """What columns lose, by what messages call them."""

    def __init__(self) -> None:
        self._found: dict[str, Rounding] = {}
        self._ends: dict[str, tuple[float, float, int]] = {}

    def add(self, name: str, values: FloatArray, rounding: Rounding | None) -> None:
        """Take note of a block of a column: its doubles (m,), nan where there is no value, and what they lose."""
        low, high, size = self._ends.get(name, (np.inf, -np.inf, 0))
        if values.size:
            low, high = min(low, float(np.fmin.reduce(values))), max(high, float(np.fmax.reduce(values)))
        self._ends[name] = (low, high, size + values.size)
        if rounding is not None and rounding.count:
            self._found[name] = self._found[name].with_also(rounding) if name in self._found else rounding

    def add_table(self, names: Sequence[str], table: NDArray[Any], block: FloatArray) -> None:
        """Take note of a block of a table of one type (m, columns), and of the doubles made of it."""
        kind = table.dtype
        if kind.kind == "b" or kind.itemsize <= (4 if kind.kind in "iu" else 8 if kind.kind == "f" else 0):
            return
        for j, name in enumerate(names):
            self.add(name, block[:, j], rounding_of(table[:, j], block[:, j]))

    def tell(self) -> None:
        """Say what is lost; :class:`InputError` where that is too much."""
        for name, rounding in self._found.items():
            low, high, size = self._ends[name]
            is_finite = np.isfinite(low) and np.isfinite(high)
            ends = (Fraction(low), Fraction(high)) if is_finite else (rounding.low, rounding.high)
            whole = rounding.with_also(Rounding(0, Fraction(0), False, *ends, "", size - rounding.size))
            say(whole, name, refuse=not name.endswith(WEIGHTS))
