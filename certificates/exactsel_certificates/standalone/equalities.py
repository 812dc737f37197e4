"""Linear equalities on coefficients, for the second checker: C x = c for the data as given, and their weights.

With t_i > 0 the rows t_i C_i and the targets t_i c_i may be appended to the data of quadratic loss, for any t: of a
model that meets the equalities they change no objective, and others only gain. They have no part in an intercept.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction as F
from typing import Any, NamedTuple

from .bounds import column_called
from .values import LARGEST, SMALLEST, Outside, Unclear

TOLERANCE = F(1, 10**12)
"""An equality holds up to this part of the sizes of its terms and of its right-hand side."""


TERM = re.compile(r"\s*([+-])?\s*(?:([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*\*\s*)?(?:`([^`]+)`|([^\s+\-*=`]+))")
"""A sign, a number and a star where there is one, and a column."""


class Equalities(NamedTuple):
    """C, c and t as plain floats."""

    rows: list[list[float]]
    right: list[float]
    sizes: list[float]

    def entry(self) -> dict[str, Any]:
        """What a problem's hash holds of them."""
        return {
            "rows": [[v.hex() for v in row] for row in self.rows],
            "right": [v.hex() for v in self.right],
        }  # fmt: skip

    def missed(self, model: dict[int, F]) -> bool:
        """Whether a model of the data as given misses an equality by more than rounding."""
        for row, right in zip(self.rows, self.right, strict=True):
            terms = [F(row[j]) * v for j, v in model.items()]
            size = sum(map(abs, terms), abs(F(right)))
            if abs(sum(terms, -F(right))) > TOLERANCE * size:
                return True
        return False

    def appended(self) -> list[tuple[list[F], F]]:
        """Rows and targets to append."""
        sizes = map(F, self.sizes)
        return [
            ([t * F(v) for v in row], t * F(right)) for row, right, t in zip(self.rows, self.right, sizes, strict=True)
        ]


def checked_equalities(arrays: object, d: int, by_products: bool) -> Equalities:
    """The equalities of d coefficients; Outside where they are none that a proof may be about."""
    equalities = _equalities_of(arrays, d) if by_products else None
    if equalities is None:
        raise Outside(
            "the equalities are none, or the loss is not quadratic, but rows, right-hand sides and powers of two were "
            "expected."
        )
    return equalities


def _equalities_of(arrays: object, d: int) -> Equalities | None:
    if not isinstance(arrays, Sequence) or len(arrays) != 3 or not all(isinstance(part, list) for part in arrays):
        return None
    rows, right, sizes = arrays
    m = len(right)
    if not m or len(rows) != m or len(sizes) != m or not all(isinstance(row, list) and len(row) == d for row in rows):
        return None
    numbers = [v for part in (*rows, right, sizes) for v in part]
    if not all(isinstance(v, float) and math.isfinite(v) for v in numbers):
        return None
    if not all(math.frexp(t)[0] == 0.5 for t in sizes) or not all(any(row) for row in rows):
        return None
    for row, value, t in zip(rows, right, sizes, strict=True):
        if not all(v == 0 or SMALLEST <= abs(v) * u <= LARGEST for v in [*row, value] for u in (1.0, t)):
            return None
    return Equalities(rows, right, sizes)


def written(
    texts: Sequence[str], sum_to: float | None, names: Sequence[str], d: int
) -> tuple[list[list[float]], list[float]]:  # fmt: skip
    """Numbers by column and right-hand sides of equalities such as ``a + b - 2*c = 1``. Raises :class:`Unclear`.

    An equality that follows from those before is left out.
    """
    rows, right = [], []
    for text in texts:
        left, _, value = text.rpartition("=")
        row, position = [0.0] * d, 0
        try:
            right.append(float(value) + 0.0)
            while left[position:].strip() or not position:
                term = TERM.match(left, position)
                if term is None or (position and term[1] is None):
                    raise ValueError
                row[column_called(term[3] or term[4], names, d)] += float(f"{term[1] or ''}{term[2] or 1.0}")
                position = term.end()
        except ValueError:
            raise Unclear(f"the equality {text!a} cannot be read; write it as in a + b - 2*c = 1.") from None
        rows.append(row)
    if sum_to is not None:
        rows.append([1.0] * d)
        right.append(sum_to + 0.0)
    if not all(math.isfinite(v) for part in (*rows, right) for v in part):
        raise Unclear("the equalities hold a number that is not finite; correct it.")
    basis = _leading(rows, right)
    return [rows[i] for i in basis], [right[i] for i in basis]


def _leading(rows: Sequence[Sequence[float]], right: Sequence[float]) -> list[int]:
    """The equalities that do not follow from those before. Raises :class:`Unclear` where none can hold."""
    basis: list[int] = []
    echelon: list[list[F]] = []
    for i, (row, value) in enumerate(zip(rows, right, strict=True)):
        remainder = [*map(F, row), F(value)]
        for other in echelon:
            first = next(j for j, v in enumerate(other) if v)
            if remainder[first]:
                times = remainder[first] / other[first]
                remainder = [v - times * u for v, u in zip(remainder, other, strict=True)]
        if any(remainder[:-1]):
            basis.append(i)
            echelon.append(remainder)
        elif remainder[-1] or not any(row):
            raise Unclear("the equalities contradict each other, or one holds no coefficient; correct them.")
    return basis


def implied(rows: Sequence[Sequence[float]], right: Sequence[float], bounds: list[list[float]]) -> list[list[float]]:
    """Limits of coefficients with the upper ones that rows of one sign imply where no coefficient is negative."""
    lower, upper = bounds[0], [*bounds[1]]
    for row, value in zip(rows, right, strict=True):
        sign = 1.0 if all(v >= 0 for v in row) else -1.0
        used = [j for j, v in enumerate(row) if v]
        if any(sign * v < 0 for v in row) or any(lower[j] < 0 for j in used) or sign * value < 0:
            continue
        for j in used:
            limit = value / row[j] + 0.0
            exact = F(limit) * F(row[j]) == F(value)
            upper[j] = min(upper[j], limit if exact else math.nextafter(limit, math.inf))
    return [lower, upper]
