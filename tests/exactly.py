"""What a model costs, in whole numbers and fifty digits: nothing of exactsel, and no rounding to speak of."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import hand_written
import numpy as np

CLOSE = Fraction(1, 10**15)
"""Times its objective: what the best intercept may be missed by, for which there is no formula."""

DIGITS = 50


def stated(A, y, k=0, loss="quadratic", lam=1.0, delta=None, weights=None, level=False, scale=False, **more):
    """The problem for :mod:`hand_written`."""
    return hand_written.Case(
        np.asarray(A, dtype=float).tolist(), np.asarray(y, dtype=float).tolist(), k, loss, float(lam),
        1.0 if delta is None else float(delta), None if weights is None else np.asarray(weights, dtype=float).tolist(),
        level, scale, **more,
    )  # fmt: skip


def objective(case, coef):
    """The objective of a model (d,), with the best intercept where there is one; a fraction.

    Exact for quadratic and Huber loss; to fifty digits for logistic loss, where with an intercept it is no smaller than
    the true one, and larger by :data:`CLOSE` times it at most.
    """
    x = {j: Fraction(float(v)) for j, v in enumerate(coef) if v}
    level = _level(case, x) if case.level else Fraction(0)
    if case.loss != "logistic":
        return hand_written.objective(case, x, level)
    total = Fraction(case.lam) * sum((s * x.get(j, 0) ** 2 for j, s in enumerate(case.squares())), Fraction(0)) / 2
    for row, label, weight in zip(case.A, case.y, case.row_weights(), strict=True):
        margin = Fraction(label) * (sum((v * Fraction(row[j]) for j, v in x.items()), Fraction(0)) + level)
        total += weight * _softplus(-margin)
    return total


def _level(case, x):
    """The best intercept; for logistic loss as well as doubles tell."""
    rows = [
        (sum((v * Fraction(row[j]) for j, v in x.items()), Fraction(0)), Fraction(t), w)
        for row, t, w in zip(case.A, case.y, case.row_weights(), strict=True)
        if w
    ]
    total = sum(w for _, _, w in rows)
    if case.loss == "quadratic":
        return sum(w * (t - z) for z, t, w in rows) / total
    if case.loss == "huber":
        return _huber_level([(z - t, w) for z, t, w in rows], Fraction(case.delta))
    middle = sorted(z for z, _, _ in rows)[len(rows) // 2]
    near = [(float(z - middle), float(t), float(w)) for z, t, w in rows]

    def slope(c):
        return sum(-w * t / (1.0 + math.exp(min(max(t * (z + c), -700.0), 700.0))) for z, t, w in near)

    high = 1e3 + 2 * max(abs(z) for z, _, _ in near)
    low = -high
    for _ in range(120):
        c = (low + high) / 2
        low, high = (low, c) if slope(c) > 0 else (c, high)
    return Fraction(low) - middle


def _huber_level(rows, delta):
    """Exact: the slope is a broken line in the intercept."""

    def slope(c):
        return sum(w * min(max(r + c, -delta), delta) for r, w in rows)

    ends = sorted({side - r for r, _ in rows for side in (-delta, delta)})
    first = next(at for at, c in enumerate(ends) if slope(c) >= 0)
    if slope(ends[first]) == 0:
        return ends[first]
    low, high = ends[first - 1], ends[first]
    return low - slope(low) * (high - low) / (slope(high) - slope(low))


def _softplus(t):
    """log(1 + exp(t))."""
    with localcontext() as context:
        context.prec, context.Emin = DIGITS, -(10**15)
        size = -(Decimal(abs(t).numerator) / Decimal(abs(t).denominator))
        power = size.exp() if size > -(10**6) else Decimal(0)
        # Where exp(t) is below all digits of 1, it is the logarithm.
        return max(t, Fraction(0)) + Fraction((1 + power).ln() if power > Decimal("1e-40") else power)


def above(value):
    """The smallest double that is no smaller."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)
