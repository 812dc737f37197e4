"""The same bounds without any rounding, for one region at a time: for margins too thin for doubles.

Every double is an integer times a power of two, so a sum of products is integer arithmetic. Only logarithms are not
exact: they come from :mod:`decimal` with 50 digits.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from exactsel_certificates.boxes import gain, within
from exactsel_certificates.exact_poisson import minus_conjugate, poisson_loss, steepness
from exactsel_certificates.formula import FloatArray, Instance
from exactsel_certificates.levels import TOO_SMALL, find_levels
from exactsel_certificates.scaled import BITS, DIGITS, Scaled, decimal_of, fraction_of, scaled

RADIUS = 10**6
"""With lam = 0 and dependent columns a bound speaks of models with abs(x_j) ||a_j|| <= this * ||y||."""

LARGEST = Fraction(sys.float_info.max)


class ExactBounds:
    """Bound to one instance."""

    def __init__(self, instance: Instance, sizes: FloatArray | None = None) -> None:
        """``sizes`` (d,) are those coefficients are known to have at most, see radii.py."""
        self.instance, self._box = instance, within(instance.box, sizes)
        self.A = scaled(instance.A)
        self.y = scaled(instance.y)
        self.lam = Fraction(instance.lam)
        # The conjugate is b^2 over this, and y b; but for logistic and Poisson loss.
        self._stiff = 4 if instance.loss == "squared_hinge" else 2

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
        return self._minus_conjugate(vector) - self._counted(S, C, terms) / 2

    def _taken(self, j: int, v: Fraction, D: Fraction) -> Fraction:
        """What column j takes off a bound, twice, where its product with the dual vector is v."""
        return v * v / D if self._box is None else 2 * gain(self._box, D, j, v)

    def _at_slopes(self, S: Sequence[int], C: Sequence[int], slopes: Scaled) -> Fraction:
        w = scaled(np.ones(self.y.values.size) if self.instance.weights is None else self.instance.weights)
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
            value += part * self._minus_conjugate_of(rows, side, Scaled(w.values[side], w.exponent))
            for j in inner:
                product = self.A.values[side, j] @ weighted[side]
                inner[j] += part * fraction_of(product, self.A.exponent + slopes.exponent + w.exponent)
        return value - self._counted(S, C, {j: self._taken(j, v, self.lam) for j, v in inner.items()}) / 2

    def _minus_conjugate_of(self, slopes: Scaled, side: Any, w: Scaled) -> Fraction:
        """The weighted sum of -l* over some rows, rounded downwards for logistic loss."""
        if self.instance.loss == "logistic":
            chances = [abs(fraction_of(value, slopes.exponent)) for value in slopes.values]
            pairs = zip(chances, w.values, strict=True)
            return sum((fraction_of(v, w.exponent) * _entropy([p]) for p, v in pairs), Fraction(0))
        if self.instance.loss == "poisson":
            counts = self.instance.y[side].tolist()
            each = (
                minus_conjugate(fraction_of(g, slopes.exponent), t) for g, t in zip(slopes.values, counts, strict=True)
            )
            return sum((fraction_of(v, w.exponent) * row for v, row in zip(w.values, each, strict=True)), Fraction(0))
        square = fraction_of(w.values @ (slopes.values * slopes.values), 2 * slopes.exponent + w.exponent)
        product = w.values @ (slopes.values * self.y.values[side])
        return -square / self._stiff - fraction_of(product, slopes.exponent + self.y.exponent + w.exponent)

    def dual_vector(self, x: FloatArray) -> Scaled:
        """The slopes of the rows at Ax for a model (d,) of doubles: exact, for logistic loss to some 36 digits."""
        _, z, residual = self._levelled([Fraction(value) for value in x.tolist()])
        if self.instance.loss == "logistic":
            labels = [int(label) for label in self.instance.y.tolist()]
            rows = zip(z.values, labels, strict=True)
            return Scaled(np.array([-y * chance(fraction_of(v * y, z.exponent)) for v, y in rows], dtype=object), -BITS)
        if self.instance.loss == "quadratic":
            return residual
        if self.instance.loss == "squared_hinge":
            return self.hinged(z)
        if self.instance.loss == "poisson":
            return steepness(z, self.y)
        delta = scaled([self.instance.delta])
        exponent = min(delta.exponent, residual.exponent)
        most = delta.at(exponent)[0]
        return Scaled(np.array([min(max(r, -most), most) for r in residual.at(exponent)], dtype=object), exponent)

    def hinged(self, z: Scaled) -> Scaled:
        """The slopes of squared hinge loss at predictions z (n,)."""
        labels = np.array([int(label) for label in self.instance.y.tolist()], dtype=object)
        return Scaled(-2 * labels * _short(z, labels), min(z.exponent, 0))

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
        return self._minus_conjugate(residual) - self._counted(S, C, terms)

    def objective(self, x: FloatArray) -> Fraction:
        """P(x) for a model (d,) of doubles; for logistic loss no smaller than P(x), and larger by less than 10^-40."""
        w, z, residual = self._levelled([Fraction(float(value)) for value in x])
        ridge = self.lam * sum((value * value for value in w.values()), Fraction(0)) / 2
        if self.instance.loss == "logistic":
            return ridge + logistic_loss(z, self.instance.y, self.instance.weights)
        if self.instance.loss == "poisson":
            return ridge + poisson_loss(z, self.instance.y, self.instance.weights)
        if self.instance.loss == "squared_hinge":
            return ridge + hinge_loss(z, self.instance.y, self.instance.weights)
        if self.instance.loss == "quadratic":
            return ridge + fraction_of(residual.values @ residual.values, 2 * residual.exponent) / 2
        delta = Fraction(self.instance.delta)
        sizes = [abs(fraction_of(value, residual.exponent)) for value in residual.values]
        steep = [min(size, delta) for size in sizes]
        rows = [s * (size - s / 2) for s, size in zip(steep, sizes, strict=True)]
        weights = np.ones(len(rows)) if self.instance.weights is None else self.instance.weights
        return ridge + sum((Fraction(v) * row for v, row in zip(weights.tolist(), rows, strict=True)), Fraction(0))

    def gradient(self, columns: Sequence[int], x: Sequence[Fraction]) -> FloatArray:
        """A'(Ax - y) + lam x on some columns, exact but for the last rounding; quadratic loss."""
        w, _, residual = self._predict(x)
        return np.array([float(self._inner(j, residual) + self.lam * w.get(j, Fraction(0))) for j in columns])

    def _levelled(self, x: Sequence[Fraction]) -> tuple[dict[int, Fraction], Scaled, Scaled]:
        """As :meth:`_predict`, with an intercept added to the predictions where there is one."""
        w, z, residual = self._predict(x)
        about = self.instance
        if not about.intercept:
            return w, z, residual
        row = np.array([[nearest(fraction_of(value, z.exponent)) for value in z.values]])
        with np.errstate(all="ignore"):
            level = scaled(find_levels(about.loss, about.delta, about.y, about.weights, row)[:1])
        exponent = min(z.exponent, level.exponent, self.y.exponent)
        moved = z.at(exponent) + level.at(exponent)[0]
        return w, Scaled(moved, exponent), Scaled(moved - self.y.at(exponent), exponent)

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

    def _minus_conjugate(self, vector: Scaled) -> Fraction:
        if self.instance.loss == "logistic":
            return _entropy([abs(fraction_of(value, vector.exponent)) for value in vector.values])
        if self.instance.loss == "poisson":
            rows = zip(vector.values, self.instance.y.tolist(), strict=True)
            return sum((minus_conjugate(fraction_of(g, vector.exponent), t) for g, t in rows), Fraction(0))
        square = fraction_of(vector.values @ vector.values, 2 * vector.exponent)
        return -square / self._stiff - fraction_of(vector.values @ self.y.values, vector.exponent + self.y.exponent)

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


def chance(t: Fraction) -> int:
    """1 / (1 + exp(t)) in units of 2^-BITS, nearly."""
    if abs(t) > BITS:
        return 0 if t > 0 else 2**BITS
    with localcontext() as context:
        context.prec = DIGITS
        small = (-abs(decimal_of(t))).exp()
        chance = Fraction((small if t > 0 else Decimal(1)) / (1 + small))
    nearest: int = round(chance * 2**BITS)
    return nearest


def _entropy(chances: Sequence[Fraction]) -> Fraction:
    """-sum p log p + (1 - p) log(1 - p), rounded downwards by less than 10^-40 a row."""
    with localcontext() as context:
        context.prec = DIGITS
        total = Decimal(0)
        for p in chances:
            if 0 < p < 1:
                q, rest = decimal_of(p), decimal_of(1 - p)
                total -= q * q.ln() + rest * rest.ln()
    return Fraction(total) - Fraction(len(chances) + 1, 10 ** (DIGITS - 8))


def logistic_loss(z: Scaled, y: FloatArray, weights: FloatArray | None) -> Fraction:
    """The (weighted) sum of log(1 + exp(-y z)) at predictions z (n,), rounded upwards."""
    if weights is not None:
        rows = zip(z.values, y, weights.tolist(), strict=True)
        single = ((Scaled(np.array([v], dtype=object), z.exponent), np.array([label]), w) for v, label, w in rows)
        return sum((Fraction(w) * logistic_loss(row, label, None) for row, label, w in single), Fraction(0))
    with localcontext() as context:
        context.prec = DIGITS
        total = Decimal(0)
        for value, label in zip(z.values, y.tolist(), strict=True):
            t = decimal_of(fraction_of(-value * int(label), z.exponent))
            total += max(t, Decimal(0)) + (1 + (-abs(t)).exp()).ln()
    return Fraction(total) * (1 + Fraction(len(y) + 8, 10 ** (DIGITS - 4))) + Fraction(len(y), 10 ** (DIGITS - 4))


def hinge_loss(z: Scaled, y: FloatArray, weights: FloatArray | None) -> Fraction:
    """The (weighted) sum of max(0, 1 - y z)^2 at predictions z (n,), exactly."""
    short = _short(z, np.array([int(label) for label in y.tolist()], dtype=object))
    w = scaled(np.ones(len(y)) if weights is None else weights)
    return fraction_of(int(w.values @ (short * short)), w.exponent + 2 * min(z.exponent, 0))


def _short(z: Scaled, labels: object) -> Any:
    """max(0, 1 - y z) at an exponent of at most 0."""
    exponent = min(z.exponent, 0)
    gaps = (1 << -exponent) - labels * z.at(exponent)
    return np.array([max(0, gap) for gap in gaps], dtype=object)


def float_below(value: Fraction) -> float:
    """The nearest double that is no larger."""
    near = float(min(max(value, -LARGEST), LARGEST))
    return near if Fraction(near) <= value else math.nextafter(near, -math.inf)


def float_above(value: Fraction) -> float:
    """The nearest double that is no smaller."""
    return -float_below(-value)
