"""A tiny instance in whole numbers: doubles are whole numbers times powers of two, so nothing need be rounded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from exactsel.testing.instances import TinyInstance


def whole(values: Iterable[float]) -> tuple[list[int], int]:
    """The doubles as whole numbers times one power of two, and that power."""
    ratios = [float(value).as_integer_ratio() for value in values]
    shift = max((bottom.bit_length() - 1 for _, bottom in ratios), default=0)
    numbers = [top << (shift - bottom.bit_length() + 1) for top, bottom in ratios]
    twos = min(((number & -number).bit_length() - 1 for number in numbers if number), default=0)
    return [number >> twos for number in numbers], twos - shift


def power(exponent: int) -> Fraction:
    """2 to a whole number."""
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


class WholeData:
    """An instance's numbers; rows of weight zero, which say nothing, are left out."""

    def __init__(self, instance: TinyInstance) -> None:
        self.instance = instance
        given = [1.0] * instance.n if instance.weights is None else instance.weights.tolist()
        self.rows = [i for i, weight in enumerate(given) if weight > 0]
        self.weights, self.weight_power = whole(given[i] for i in self.rows)
        self.total = sum(self.weights)
        split = [whole(instance.A[self.rows, j].tolist()) for j in range(instance.d)]
        self.columns = [numbers for numbers, _ in split]
        self.powers = [exponent for _, exponent in split]
        self.target, self.target_power = whole(instance.y[self.rows].tolist())
        self.lam = Fraction(instance.lam)

    def moment(self, left: Sequence[int], right: Sequence[int]) -> int:
        """The weighted sum of products; with an intercept that of the centred numbers, times the sum of weights."""
        plain = sum(w * a * b for w, a, b in zip(self.weights, left, right, strict=True))
        return self.total * plain - self.sum_of(left) * self.sum_of(right) if self.instance.intercept else plain

    def sum_of(self, numbers: Sequence[int]) -> int:
        """The weighted sum."""
        return sum(w * a for w, a in zip(self.weights, numbers, strict=True))

    def squared_scale(self, j: int) -> Fraction:
        """The factor of x_j² in the ridge: the mean square of the column where columns are scaled, else 1."""
        if not self.instance.scale:
            return Fraction(1)
        square = Fraction(self.moment(self.columns[j], self.columns[j]), self.total)
        square = square / self.total if self.instance.intercept else square
        return square * power(2 * self.powers[j]) or Fraction(1)

    def ridge(self, coef: Sequence[float]) -> Fraction:
        """(lam/2) times the sum of squares."""
        used = [(j, Fraction(x)) for j, x in enumerate(coef) if x]
        return self.lam / 2 * sum((self.squared_scale(j) * x * x for j, x in used), Fraction(0))

    def scores(self, coef: Sequence[float]) -> tuple[list[int], int]:
        """Ax as whole numbers times a power of two."""
        terms = []
        for j, x in enumerate(coef):
            if x:
                (number,), exponent = whole([x])
                terms.append((j, number, exponent + self.powers[j]))
        least = min((exponent for _, _, exponent in terms), default=0)
        sums = [0] * len(self.rows)
        for j, number, exponent in terms:
            factor = number << (exponent - least)
            sums = [s + factor * a for s, a in zip(sums, self.columns[j], strict=True)]
        return sums, least

    def residuals(self, coef: Sequence[float]) -> tuple[list[int], int]:
        """Ax - y as whole numbers times a power of two."""
        sums, exponent = self.scores(coef)
        least = min(exponent, self.target_power)
        up, down = exponent - least, self.target_power - least
        return [(s << up) - (t << down) for s, t in zip(sums, self.target, strict=True)], least
