"""The intercept a checker chooses, and the dual vectors that go with one.

With an unpenalised intercept c every bound is about min over c of sum_i w_i l(z_i + c, y_i), and a dual vector must sum
to zero. Any c will do; one near the minimum loses nothing. With g_i = l'(z_i + c, y_i), in the domain of l*, the dual
vector is *defined* as w_i g_i with its positive or its negative entries, whichever have the larger sum, multiplied by
t = the smaller sum / the larger. As l* is convex and -l*(0) = inf l = 0, -l*(t g) >= t (-l*(g)).
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]

STEPS = 100

BALANCED = 1e-15
"""Part of their total size at which the sum of the slopes counts as zero."""

TOO_SMALL = 1e-200
"""Where one side's slopes sum to less than this the dual vector is zero instead: underflow may be in the sum."""


def find_levels(loss: str, delta: float, y: FloatArray, weights: FloatArray | None, Z: FloatArray) -> FloatArray:
    """For each row of Z (P, n) about the c that makes the weighted slopes at Z + c sum to zero.

    Newton steps near the root and steps to the minimum of a quadratic above the loss far from it, in a bracket.
    """
    w = np.ones(y.size) if weights is None else weights
    c, low, high = np.zeros(len(Z)), np.full(len(Z), -np.inf), np.full(len(Z), np.inf)
    for step in range(1, STEPS + 1):
        slopes, bends, above = _derivatives(loss, delta, y, Z + c[:, None])
        rest, size = (slopes * w).sum(axis=1), (np.abs(slopes) * w).sum(axis=1)
        moving = np.abs(rest) > BALANCED * size
        if not np.any(moving):
            break
        high, low = np.where(rest > 0, c, high), np.where(rest < 0, c, low)
        bend, safe = (bends * w).sum(axis=1), (above * w).sum(axis=1)
        bend = np.where((bend > 0) & (np.abs(rest) <= 0.5 * size), bend, safe)
        target = c - rest / np.where(bend > 0, bend, np.inf)
        inside = (low < target) & (target < high)
        middle = np.where(np.isfinite(low) & np.isfinite(high), low + 0.5 * (high - low), np.where(inside, target, c))
        target = np.where(inside & (step % 8 != 0), target, middle)
        c = np.where(moving & np.isfinite(target), target, c)
    return c


def _derivatives(loss: str, delta: float, y: FloatArray, Z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Slopes and curvatures of the rows, and curvatures of quadratics that touch the loss there and lie above it."""
    if loss == "huber":
        r = Z - y
        size = np.maximum(np.abs(r), delta)
        return np.clip(r, -delta, delta), np.where(np.abs(r) <= delta, 1.0, 0.0), delta / size
    e = np.exp(-np.abs(Z))
    slopes = -y * np.where(y * Z <= 0, 1.0, e) / (1.0 + e)
    half = np.maximum(np.abs(Z) / 2.0, 1e-4)
    return slopes, e / (1.0 + e) ** 2, np.tanh(half) / (4.0 * half)


def side_parts(plus: Any, minus: Any) -> tuple[FloatArray, FloatArray]:
    """What the positive and the negative slopes are multiplied by, from the sums of both (P,); 0 for both if tiny."""
    smaller, larger = np.minimum(plus, minus), np.maximum(plus, minus)
    part = np.where(smaller > TOO_SMALL, smaller / np.where(larger > 0, larger, 1.0), 0.0)
    whole = np.where(smaller > TOO_SMALL, 1.0, 0.0)
    return np.where(plus > minus, part, whole), np.where(plus > minus, whole, part)
