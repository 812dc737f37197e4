"""Data of very many rows, reduced to a few that have the same objective, and what is known of the rows they stand for.

The rows are gone; in their place stand A' and y' with

    abs( N(x) - ||A'x - y'|| ) <= sum_j e_j abs(x_j) + e_y        for every x,

where N(x)^2 is the (weighted) sum of squared residuals of all rows, with the best intercept where there is one. What is
proven of the few rows thus says something of all of them, see :meth:`Reduction.of_all_rows`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from exactsel.errors import InputError, either, option
from exactsel.losses.base import Loss
from exactsel.problem.checks import one_number, one_whole_number
from exactsel.types import FloatArray, IntArray

KEYS = ("tall_rows", "tall_weight", "tall_errors", "tall_means")
"""Of arrays in an instance file; the last only with an intercept."""

ROOM = 1.0 + 1e-12
"""For the roundings of a few sums of positive numbers."""


@dataclass(frozen=True, eq=False)
class Reduction:
    """The rows that an instance stands for.

    Parameters
    ----------
    rows : int
        How many there are, those of weight 0 included.
    weight : float
        The sum of their weights; ``rows`` where there are none.
    errors : array (d + 1,)
        e_j of each column, then e_y of the target, see the module.
    means : array (d + 1,) or None
        Means of the columns and of the target, weighted where rows are; None where models have no intercept.

    Raises
    ------
    InputError
        For numbers that cannot be these.
    """

    rows: int
    weight: float
    errors: FloatArray
    means: FloatArray | None = None

    def __post_init__(self) -> None:
        parts = [self.errors, *([] if self.means is None else [self.means])]
        fine = all(part.ndim == 1 and part.size == self.errors.size and np.isfinite(part).all() for part in parts)
        if not (fine and self.errors.size and np.all(self.errors >= 0) and self.rows >= 1 and 0 < self.weight < np.inf):
            raise InputError(
                "what it says of the rows it stands for is damaged; write it again with exactsel data gram."
            )

    @property
    def row_error(self) -> float:
        """The length of ``errors``: N(x) and ||A'x - y'|| differ by this times ||(x, -1)|| at most."""
        return float(np.linalg.norm(self.errors)) * ROOM

    @property
    def intercept(self) -> bool:
        """Whether models have an unpenalised intercept, which is worked into A' and y'."""
        return self.means is not None

    def of_columns(self, columns: IntArray) -> Reduction:
        """The same rows with some of the columns."""
        places = np.append(columns, self.errors.size - 1)
        return Reduction(
            self.rows, self.weight, self.errors[places], None if self.means is None else self.means[places]
        )

    def divided(self, divisors: FloatArray) -> Reduction:
        """The same rows, their columns divided by powers of two (d,)."""
        units = np.append(divisors, 1.0)
        return Reduction(
            self.rows, self.weight, self.errors / units, None if self.means is None else self.means / units
        )

    def level(self, x: FloatArray) -> float:
        """The best intercept for coefficients x (d,), 0 where models have none."""
        if self.means is None:
            return 0.0
        total = Fraction(float(self.means[-1]))
        for j in np.flatnonzero(x):
            total -= Fraction(float(self.means[j])) * Fraction(float(x[j]))
        return float(total)

    def describe(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "rows": self.rows, "weight": self.weight, "intercept": self.intercept, "row_error": self.row_error,
        }  # fmt: skip

    def as_arrays(self) -> dict[str, Any]:
        """What a file keeps of it, by key."""
        arrays = {"tall_rows": self.rows, "tall_weight": self.weight, "tall_errors": self.errors}
        return arrays if self.means is None else {**arrays, "tall_means": self.means}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Reduction:
        """The same from a file; :class:`InputError` where it holds something else."""
        missing = [key for key in KEYS[:-1] if key not in arrays]
        if missing:
            raise InputError(
                f"{missing[0]} is missing beside other keys tall_...; write it again with exactsel data gram."
            )
        means = arrays.get("tall_means")
        vectors = [np.asarray(part) for part in (arrays["tall_errors"], *([] if means is None else [means]))]
        if any(part.dtype.kind not in "iuf" for part in vectors):
            raise InputError(
                "what it says of the rows it stands for is no numbers; write it again with exactsel data gram."
            )
        floats = [part.astype(np.float64) for part in vectors]
        rows, weight = (
            one_whole_number("tall_rows", arrays["tall_rows"]),
            one_number("tall_weight", arrays["tall_weight"]),
        )
        return cls(rows, weight, floats[0], None if means is None else floats[1])

    def refuse(
        self, loss: str | Loss, intercept: bool | None = None, scale: bool = False, weights: bool = False
    ) -> None:
        """:class:`InputError` for what would need the rows themselves."""
        name = loss if isinstance(loss, str) else loss.name
        if name != "quadratic":
            raise InputError(
                f"the rows have been reduced for quadratic loss and say nothing of {name} loss; give the rows "
                f"themselves, or some of them."
            )
        centre, maker = option("fit_intercept", True), either("exactsel.gram", "exactsel data gram")
        reduced = f"the rows have been reduced {'with' if self.intercept else 'without'} an intercept and are gone"
        if intercept:
            raise InputError(f"{reduced}; {f'leave {centre} out' if self.intercept else f'give {centre} to {maker}'}.")
        if intercept is False and self.intercept:
            raise InputError(f"{reduced}; give {option('fit_intercept', False)} to {maker}.")
        if weights:
            raise InputError(f"{reduced}; give {option('sample_weight')} to {maker}.")
        if scale:
            raise InputError(f"{reduced}, so how large features are is not known; rescale them before.")

    def above(self, upper: float, x: FloatArray) -> float:
        """No smaller than the objective of x (d,) over all rows, where ``upper`` is that for the few."""
        off = float(self.errors[:-1] @ np.abs(x) + self.errors[-1]) * ROOM
        return (upper + off * math.sqrt(2.0 * max(upper, 0.0)) * ROOM + 0.5 * off**2) * ROOM

    def below(self, lower: float, upper: float, off: float) -> float:
        """No larger than the objective over all rows of any model that is off by ``off`` at most.

        ``lower`` is such a number for the few rows, ``upper`` at least the optimum over all rows. Of the best model
        N <= sqrt(2 upper) and ||A'x - y'|| <= N + off, and half the difference of their squares is what is lost.
        """
        if not math.isfinite(off):
            return 0.0
        lost = off * (math.sqrt(2.0 * upper) + 0.5 * off) * ROOM
        return max(0.0, lower - lost - 1e-15 * abs(lower))

    def farthest(
        self, *, A: FloatArray, y: FloatArray, lam: float, k: int, upper: float, apart: float, radius: float | None
    ) -> float:
        """No smaller than sum_j e_j abs(x_j) + e_y of a best model x of at most k columns, over all rows.

        Parameters
        ----------
        A, y : array (n', d), (n',)
            The few rows.
        lam : float
            Ridge weight.
        k : int
            Columns in a model.
        upper : float
            At least the optimum over all rows.
        apart : float
            At most the smallest singular value of the columns of A that are not zero, each divided by its length.
        radius : float or None
            abs(x_j) ||a_j|| <= radius ||y|| is known; None: it is not.

        Returns
        -------
        float
            inf where nothing is known of how large coefficients are.
        """
        lengths = np.linalg.norm(A, axis=0) * ROOM
        used = lengths > 0
        target, e_y = float(np.linalg.norm(y)) * ROOM, float(self.errors[-1])
        if k == 0 or not used.any():
            return e_y
        shares = self.errors[:-1][used] / lengths[used]
        size = math.inf if radius is None else radius * math.sqrt(k) * (target + e_y)
        between = apart - float(np.linalg.norm(shares)) * 1.01
        if between > 0:  # ||Ax|| <= ||y|| for the best x, and no column is nearly made up of others
            size = min(size, (target + e_y) / between)
        off = float(np.linalg.norm(np.sort(shares)[-k:])) * size
        if lam > 0:  # (lam/2) ||x||^2 <= upper
            off = min(off, float(np.linalg.norm(np.sort(self.errors[:-1])[-k:])) * math.sqrt(2.0 * upper / lam))
        return (off + e_y) * 1.01
