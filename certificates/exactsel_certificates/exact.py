"""The same bounds without any rounding, for one region at a time: for margins too thin for doubles.

Every double is an integer times a power of two, so a sum of products is integer arithmetic. Only logarithms are not
exact: they come from :mod:`decimal` with 50 digits.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from exactsel_certificates.boxes import gain, within
from exactsel_certificates.formula import FloatArray, Instance
from exactsel_certificates.levels import TOO_SMALL, find_levels
from exactsel_certificates.losses import exactly
from exactsel_certificates.scaled import Scaled, fraction_of, scaled, weights_of

RADIUS = 10**6
"""With lam = 0 and dependent columns a bound speaks of models with abs(x_j) ||a_j|| <= this * ||y||."""

LARGEST = Fraction(sys.float_info.max)


class ExactBounds:
    """Bound to one instance."""

    def __init__(self, instance: Instance, sizes: FloatArray | None = None) -> None:
        """``sizes`` (d,) are those coefficients are known to have at most, see radii.py."""
        self.instance, self.loss, self._box = instance, exactly(instance.formulas), within(instance.box, sizes)
        self.A = scaled(instance.A)
        self.y, self.w = scaled(instance.y), weights_of(instance.weights, len(instance.y))
        self.lam = Fraction(instance.lam)

    def at_model(self, S: Sequence[int], C: Sequence[int], x: Sequence[Fraction], curvature: FloatArray) -> Fraction:
        """Formula (3) at a model (d,) of fractions whose denominators are powers of two; quadratic loss."""
        w, z, residual = self._predict(x)
        constant = fraction_of(self.y.values @ self.y.values, 2 * self.y.exponent)
        square = fraction_of(z.values @ z.values, 2 * z.exponent)
        rest = sum(((self.lam - Fraction(float(curvature[j]))) * w[j] * w[j] for j in w), Fraction(0))
        terms = {}
        for j in self.instance.columns_of([*S, *C]):
            D = Fraction(float(curvature[j]))
            g = self._inner(j, residual) + (self.lam - D) * w.get(j, Fraction(0))
            terms[j] = self._taken(j, g, D)
        return (constant - square - rest - self._counted(S, C, terms)) / 2

    def at_dual(self, S: Sequence[int], C: Sequence[int], vector: Scaled) -> Fraction:
        """Formula (2) at a dual vector (n,) in the domain of the conjugate; lam > 0, or sizes are known.

        With weights or an intercept ``vector`` holds the slopes of the rows, as in rigorous.py.
        """
        if self.instance.adjusted:
            return self._at_slopes(S, C, vector)
        terms = {j: self._taken(j, self._inner(j, vector), self.lam) for j in self.instance.columns_of([*S, *C])}
        return self.loss.exact_minus_conjugate(vector, self.y, self.w) - self._counted(S, C, terms) / 2

    def _taken(self, j: int, v: Fraction, D: Fraction) -> Fraction:
        """What column j takes off a bound, twice, where its product with the dual vector is v."""
        return v * v / D if self._box is None else 2 * gain(self._box, D, j, v)

    def _at_slopes(self, S: Sequence[int], C: Sequence[int], slopes: Scaled) -> Fraction:
        w = self.w
        weighted = slopes.values * w.values
        sides = [np.array([v > 0 for v in weighted]), np.array([v <= 0 for v in weighted])]
        parts = [Fraction(1), Fraction(1)]
        if self.instance.intercept:
            sums = [abs(sum(weighted[side].tolist())) for side in sides]
            small = fraction_of(min(sums), slopes.exponent + w.exponent) <= Fraction(TOO_SMALL)
            parts = [Fraction(0) if small else min(Fraction(1), Fraction(sums[1 - i], sums[i])) for i in (0, 1)]
        value, inner = Fraction(0), dict.fromkeys(self.instance.columns_of([*S, *C]), Fraction(0))
        for side, part in zip(sides, parts, strict=True):
            rows = Scaled(slopes.values[side], slopes.exponent)
            y = Scaled(self.y.values[side], self.y.exponent)
            value += part * self.loss.exact_minus_conjugate(rows, y, Scaled(w.values[side], w.exponent))
            for j in inner:
                product = self.A.values[side, j] @ weighted[side]
                inner[j] += part * fraction_of(product, self.A.exponent + slopes.exponent + w.exponent)
        return value - self._counted(S, C, {j: self._taken(j, v, self.lam) for j, v in inner.items()}) / 2

    def dual_vector(self, x: FloatArray) -> Scaled:
        """The slopes of the rows at Ax for a model (d,) of doubles: exact but for logarithms."""
        return self.loss.exact_slopes(self._levelled([Fraction(value) for value in x.tolist()])[1], self.y)[0]

    def for_bounded_models(self, S: Sequence[int], C: Sequence[int], x: Sequence[Fraction]) -> Fraction:
        """A bound over models with abs(x_j) ||a_j|| <= RADIUS ||y||; quadratic loss, lam = 0.

        L(Ax) >= -L*(b) + sum_j x_j v_j for any b, here the residual at x, and v = A'b. At a fit every v_j is zero.
        """
        _, _, residual = self._predict(x)
        target = root_above(fraction_of(self.y.values @ self.y.values, 2 * self.y.exponent))
        terms = {}
        for j in self.instance.columns_of([*S, *C]):
            column = self.A.values[:, j]
            length = root_below(fraction_of(column @ column, 2 * self.A.exponent))
            v = abs(self._inner(j, residual))
            terms[j] = RADIUS * target * v / length if v else Fraction(0)
        return self.loss.exact_minus_conjugate(residual, self.y, self.w) - self._counted(S, C, terms)

    def objective(self, x: FloatArray) -> Fraction:
        """P(x) for a model (d,) of doubles; with logarithms a little more than that, never less."""
        w, z = self._levelled([Fraction(float(value)) for value in x])
        ridge = self.lam * sum((value * value for value in w.values()), Fraction(0)) / 2
        return ridge + self.loss.exact_value(z, self.y, self.w)

    def gradient(self, columns: Sequence[int], x: Sequence[Fraction]) -> FloatArray:
        """A'(Ax - y) + lam x on some columns, exact but for the last rounding; quadratic loss."""
        w, _, residual = self._predict(x)
        return np.array([float(self._inner(j, residual) + self.lam * w.get(j, Fraction(0))) for j in columns])

    def _levelled(self, x: Sequence[Fraction]) -> tuple[dict[int, Fraction], Scaled]:
        """The non-zeros of x, and Ax, with an intercept added where there is one."""
        w, z, _ = self._predict(x)
        about = self.instance
        if not about.intercept:
            return w, z
        row = np.array([[nearest(fraction_of(value, z.exponent)) for value in z.values]])
        with np.errstate(all="ignore"):
            level = scaled(find_levels(self.loss, about.y, about.weights, row)[:1])
        exponent = min(z.exponent, level.exponent, self.y.exponent)
        return w, Scaled(z.at(exponent) + level.at(exponent)[0], exponent)

    def _predict(self, x: Sequence[Fraction]) -> tuple[dict[int, Fraction], Scaled, Scaled]:
        """The non-zeros of x, Ax, and Ax - y."""
        w = {j: Fraction(value) for j, value in enumerate(x) if value}
        bits = max((value.denominator.bit_length() - 1 for value in w.values()), default=0)
        integers = np.array([int(value * (1 << bits)) for value in w.values()], dtype=object)
        products = self.A.values[:, list(w)] @ integers if w else 0 * self.y.values
        z = Scaled(products, self.A.exponent - bits)
        exponent = min(z.exponent, self.y.exponent)
        return w, z, Scaled(z.at(exponent) - self.y.at(exponent), exponent)

    def _inner(self, j: int, vector: Scaled) -> Fraction:
        return fraction_of(self.A.values[:, j] @ vector.values, self.A.exponent + vector.exponent)

    def _counted(self, S: Sequence[int], C: Sequence[int], terms: dict[int, Fraction]) -> Fraction:
        slots = max(0, self.instance.k - len(S))
        if self.instance.groups:
            terms = {g: sum((terms[j] for j in self.instance.groups[g]), Fraction(0)) for g in [*S, *C]}
        largest = sorted((terms[j] for j in C), reverse=True)[:slots]
        return sum((terms[j] for j in S), Fraction(0)) + sum(largest, Fraction(0))


def root_above(value: Fraction) -> Fraction:
    """A number no smaller than the square root, and larger by very little."""
    return Fraction(_root(value) + 1, 1 << _root_bits(value))


def root_below(value: Fraction) -> Fraction:
    """A number no larger than the square root, and smaller by very little."""
    return Fraction(_root(value), 1 << _root_bits(value))


def _root_bits(value: Fraction) -> int:
    return max(0, 64 + (value.denominator.bit_length() - value.numerator.bit_length()) // 2)


def _root(value: Fraction) -> int:
    bits = _root_bits(value)
    return math.isqrt((value.numerator << (2 * bits)) // value.denominator)


def nearest(value: Fraction) -> float:
    """About the value, within what doubles can be."""
    return float(min(max(value, -LARGEST), LARGEST))


def float_below(value: Fraction) -> float:
    """The nearest double that is no larger."""
    double = float(min(max(value, -LARGEST), LARGEST))
    return double if Fraction(double) <= value else math.nextafter(double, -math.inf)


def float_above(value: Fraction) -> float:
    """The nearest double that is no smaller."""
    return -float_below(-value)
