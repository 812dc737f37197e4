"""What a model costs on the data as given, with the best intercept: exact where there are no logarithms."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from exactsel_dev.campaigns.convex_fits import Long, as_long
from exactsel_dev.campaigns.whole_numbers import WholeData, power

LOGISTIC_BLUR = Fraction(1, 10**16)
"""Times its value: what the objective of logistic loss may be off by."""

LEVEL_STEPS = 200

DIGITS, FARTHEST = 80, 10_000
"""Of decimals for Poisson loss, and the prediction beyond which a model is not worth a number."""


def model_value(data: WholeData, coef: Sequence[float]) -> Fraction:
    """The objective of these coefficients; for logistic and Poisson loss no more than the true one."""
    loss = {
        "quadratic": _quadratic,
        "huber": _huber,
        "logistic": _logistic,
        "squared_hinge": _squared_hinge,
        "poisson": _poisson,
    }[data.instance.loss]
    return loss(data, coef) + data.ridge(coef)


def _quadratic(data: WholeData, coef: Sequence[float]) -> Fraction:
    residuals, exponent = data.residuals(coef)
    square = Fraction(data.moment(residuals, residuals))
    square = square / data.total if data.instance.intercept else square
    return square * power(2 * exponent + data.weight_power) / 2


def _huber(data: WholeData, coef: Sequence[float]) -> Fraction:
    numbers, exponent = data.residuals(coef)
    delta = Fraction(data.instance.delta) / power(exponent)
    level = _huber_level(numbers, data.weights, delta) if data.instance.intercept else Fraction(0)
    total = Fraction(0)
    for number, weight in zip(numbers, data.weights, strict=True):
        size = abs(number + level)
        total += weight * (size * size / 2 if size <= delta else delta * (size - delta / 2))
    return total * power(2 * exponent + data.weight_power)


def _huber_level(numbers: Sequence[int], weights: Sequence[int], delta: Fraction) -> Fraction:
    """The shift at which the weighted loss is least: its slope is a broken line, so this is a fraction."""

    def slope(level: Fraction) -> Fraction:
        pulls = (max(-delta, min(delta, number + level)) for number in numbers)
        return sum((w * pull for w, pull in zip(weights, pulls, strict=True)), Fraction(0))

    corners = sorted({sign * delta - number for number in numbers for sign in (-1, 1)})
    low, high = 0, len(corners) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if slope(corners[middle]) <= 0 else (low, middle)
    first, last = slope(corners[low]), slope(corners[high])
    return corners[low] if first == last else corners[low] - first * (corners[high] - corners[low]) / (last - first)


def _squared_hinge(data: WholeData, coef: Sequence[float]) -> Fraction:
    sums, exponent = data.scores(coef)
    labels = [1 if label > 0 else -1 for label in data.target]
    one = 1 / power(exponent)
    rows = [(label, number, weight) for label, number, weight in zip(labels, sums, data.weights, strict=True) if weight]
    level = _hinge_level(rows, one) if data.instance.intercept else Fraction(0)
    squares = (weight * max(Fraction(0), one - label * (number + level)) ** 2 for label, number, weight in rows)
    return sum(squares, Fraction(0)) * power(2 * exponent + data.weight_power)


def _hinge_level(rows: Sequence[tuple[int, int, int]], one: Fraction) -> Fraction:
    """The shift at which the weighted loss is least: here too its slope is a broken line."""

    def slope(level: Fraction) -> Fraction:
        pulls = (-w * label * max(Fraction(0), one - label * (number + level)) for label, number, w in rows)
        return sum(pulls, Fraction(0))

    corners = sorted({label * one - number for label, number, _ in rows})
    corners = [corners[0] - one, *corners, corners[-1] + one]
    low, high = 0, len(corners) - 1
    if slope(corners[high]) < 0:  # a straight line from the last corner on
        low = high - 1
    elif slope(corners[0]) > 0:
        high = 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if slope(corners[middle]) <= 0 else (low, middle)
    first, last = slope(corners[low]), slope(corners[high])
    return corners[low] if first == last else corners[low] - first * (corners[high] - corners[low]) / (last - first)


def _logistic(data: WholeData, coef: Sequence[float]) -> Fraction:
    sums, exponent = data.scores(coef)
    labels = [1 if label > 0 else -1 for label in data.target]
    middle = sorted(sums)[len(sums) // 2] if data.instance.intercept else 0
    z = np.array([as_long(number - middle) for number in sums], dtype=np.longdouble) * np.ldexp(
        np.longdouble(1), exponent
    )
    t = np.array(labels, dtype=np.longdouble)
    w = np.array([as_long(weight) for weight in data.weights], dtype=np.longdouble)
    level = _logistic_level(z, t, w) if data.instance.intercept else np.longdouble(0)
    margin = t * (z + level)
    value = np.sum(w * (np.maximum(-margin, 0) + np.log1p(np.exp(-np.abs(margin)))))
    return _fraction(value) * power(data.weight_power) * (1 - LOGISTIC_BLUR)


def _poisson(data: WholeData, coef: Sequence[float]) -> Fraction:
    sums, exponent = data.scores(coef)
    with localcontext() as context:
        context.prec, context.Emin = DIGITS, -(10**9)
        z = [Decimal(number) * Decimal(2) ** exponent for number in sums]
        y = [Decimal(count) for count in data.instance.y[data.rows].tolist()]
        w = [Decimal(weight) for weight in data.weights]
        if data.instance.intercept:
            top = max(z)
            means = sum((weight * (at - top).exp() for weight, at in zip(w, z, strict=True)), Decimal(0))
            counts = sum((weight * count for weight, count in zip(w, y, strict=True)), Decimal(0))
            z = [at - top + (counts / means).ln() for at in z]
        if max(z) > FARTHEST:
            return Fraction(2) ** 20000
        rows = (at.exp() - t * at + (t * t.ln() if t else 0) - t for at, t in zip(z, y, strict=True))
        total = sum((weight * row for weight, row in zip(w, rows, strict=True)), Decimal(0))
        return max(Fraction(0), Fraction(total)) * power(data.weight_power) * (1 - LOGISTIC_BLUR)


def _logistic_level(z: Long, t: Long, w: Long) -> np.longdouble:
    """The best intercept, by halving."""
    far = np.max(np.abs(z)) + np.longdouble(1e3)
    low, high = -far, far
    for _ in range(LEVEL_STEPS):
        middle = (low + high) / 2
        margin = t * (z + middle)
        e = np.exp(-np.abs(margin))
        slope = np.sum(-w * t * np.where(margin > 0, e / (1 + e), 1 / (1 + e)))
        low, high = (low, middle) if slope > 0 else (middle, high)
    halfway: np.longdouble = (low + high) / 2
    return halfway


def _fraction(value: np.longdouble) -> Fraction:
    """A long double as a fraction."""
    top, bottom = value.as_integer_ratio()
    return Fraction(int(top), int(bottom))
