"""Objectives in exact arithmetic: a case's data as whole numbers times powers of two, nothing rounded.

The objective of coefficients x, for the data as given, is

    min over c of  sum_i w_i l((Ax)_i + c, y_i)  +  (lam/2) sum_j s_j^2 x_j^2

with c = 0 without an intercept, and s_j^2 the (weighted) mean square of the column (centred, with an intercept),
if columns are to be scaled and that is not zero; else 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from benchmarks.attacks.cases import Case


def dyadic(values: Iterable[float | Fraction]) -> tuple[list[int], int]:
    """The doubles (or fractions of powers of two) as whole numbers times one power of two."""
    ratios = [Fraction(value).as_integer_ratio() for value in values]
    shift = max((bottom.bit_length() - 1 for _, bottom in ratios), default=0)
    whole = [top << (shift - bottom.bit_length() + 1) for top, bottom in ratios]
    twos = min(((value & -value).bit_length() - 1 for value in whole if value), default=0)
    return [value >> twos for value in whole], twos - shift


def power(exponent: int) -> Fraction:
    """2 to a whole number."""
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


RESIDUAL = ("quadratic", "huber", "css")
"""Losses of the difference of prediction and target."""


class Data:
    """A case's numbers, rows of weight zero left out."""

    def __init__(self, case: Case) -> None:
        self.case = case
        weights = [1.0] * len(case.y) if case.weights is None else [float(w) for w in case.weights]
        rows = [i for i, w in enumerate(weights) if w > 0]
        self.weights, self.weight_power = dyadic([weights[i] for i in rows])
        self.total = sum(self.weights)
        split = [dyadic([case.A[i, j] for i in rows]) for j in range(case.d)]
        self.columns = [whole for whole, _ in split]
        self.powers = [exponent for _, exponent in split]
        offset = [Fraction(0) if case.offset is None else Fraction(case.offset[i]) for i in rows]
        target = [Fraction(case.y[i]) for i in rows]
        if case.loss in RESIDUAL:  # the offset is a part of the target, as the difference in doubles
            target = [Fraction(float(t) - float(o)) for t, o in zip(target, offset, strict=True)]
            offset = [Fraction(0)] * len(rows)
        self.target, self.target_power = dyadic(target)
        self.offset = offset
        self.lam = Fraction(case.lam)

    def moment(self, left: Sequence[int], right: Sequence[int], centred: bool) -> int:
        """The weighted sum of products; times the sum of weights, and centred, where that is asked for."""
        plain = sum(w * a * b for w, a, b in zip(self.weights, left, right, strict=True))
        if not centred:
            return plain
        return self.total * plain - self.first(left) * self.first(right)

    def first(self, values: Sequence[int]) -> int:
        """The weighted sum."""
        return sum(w * a for w, a in zip(self.weights, values, strict=True))

    def squared_scale(self, j: int) -> Fraction:
        """s_j squared."""
        if not self.case.scale:
            return Fraction(1)
        column, centred = self.columns[j], self.case.intercept
        square = Fraction(self.moment(column, column, centred), self.total ** (2 if centred else 1))
        return square * power(2 * self.powers[j]) or Fraction(1)

    def ridge(self, coef: Sequence[float]) -> Fraction:
        """(lam/2) sum s_j^2 x_j^2."""
        used = [(j, Fraction(x)) for j, x in enumerate(coef) if x]
        return self.lam / 2 * sum((self.squared_scale(j) * x * x for j, x in used), Fraction(0))

    def residuals(self, coef: Sequence[float]) -> list[Fraction]:
        """Ax - y."""
        return [
            p - value * power(self.target_power) for p, value in zip(self.predictions(coef), self.target, strict=True)
        ]

    def predictions(self, coef: Sequence[float]) -> list[Fraction]:
        """Ax."""
        sums = [Fraction(0)] * len(self.target)
        for j, x in enumerate(coef):
            if x:
                factor = Fraction(float(x)) * power(self.powers[j])
                sums = [s + factor * a for s, a in zip(sums, self.columns[j], strict=True)]
        return sums

    def row_weights(self) -> list[Fraction]:
        """The weights of the rows that count."""
        return [w * power(self.weight_power) for w in self.weights]


def quadratic_objective(data: Data, coef: Sequence[float]) -> Fraction:
    """The objective of a model for quadratic loss, its intercept the best there is."""
    residuals, weights = data.residuals(coef), data.row_weights()
    loss = sum((w * r * r for w, r in zip(weights, residuals, strict=True)), Fraction(0))
    if data.case.intercept:
        first = sum((w * r for w, r in zip(weights, residuals, strict=True)), Fraction(0))
        loss -= first * first / sum(weights)
    return loss / 2 + data.ridge(coef)


def huber_objective(data: Data, coef: Sequence[float], delta: Fraction) -> Fraction:
    """The same for Huber loss: the derivative along the intercept is piecewise linear, so its zero is rational."""
    residuals, weights = data.residuals(coef), data.row_weights()
    level = best_level(residuals, weights, delta) if data.case.intercept else Fraction(0)
    loss = sum((w * huber(r + level, delta) for w, r in zip(weights, residuals, strict=True)), Fraction(0))
    return loss + data.ridge(coef)


def huber(r: Fraction, delta: Fraction) -> Fraction:
    """The loss of one residual."""
    size = abs(r)
    return r * r / 2 if size <= delta else delta * size - delta * delta / 2


def best_level(residuals: Sequence[Fraction], weights: Sequence[Fraction], delta: Fraction) -> Fraction:
    """What to add to all residuals for the smallest weighted Huber loss."""

    def slope(level: Fraction) -> Fraction:
        clipped = (max(-delta, min(delta, r + level)) for r in residuals)
        return sum((w * g for w, g in zip(weights, clipped, strict=True)), Fraction(0))

    corners = sorted({sign * delta - r for r in residuals for sign in (-1, 1)})
    low, high = 0, len(corners) - 1  # the slope is not positive at the first corner, not negative at the last
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if slope(corners[middle]) <= 0 else (low, middle)
    first, last = slope(corners[low]), slope(corners[high])
    if first == last:
        return corners[low]
    return corners[low] - first * (corners[high] - corners[low]) / (last - first)
