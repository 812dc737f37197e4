"""The intercept a checker chooses, and the dual vectors that go with one.

With an unpenalised intercept c every bound is about min over c of sum_i w_i l(z_i + c, y_i), and a dual vector must sum
to zero. Any c will do; one near the minimum loses nothing. With g_i = l'(z_i + c, y_i), in the domain of l*, the dual
vector is *defined* as w_i g_i with its positive or its negative entries, whichever have the larger sum, multiplied by
t = the smaller sum / the larger. As l* is convex and -l*(0) = inf l = 0, -l*(t g) >= t (-l*(g)).
"""

from __future__ import annotations

import numpy as np

from exactsel_certificates.losses.base import FloatArray, Loss
from exactsel_certificates.sums import row_slices
from exactsel_certificates.work import spend

STEPS = 200

BALANCED = 1e-15
"""Part of their total size at which the sum of the slopes counts as zero."""

TOO_SMALL = 1e-200
"""Where one side's slopes sum to less than this the dual vector is zero instead: underflow may be in the sum."""

SMALLEST_PART = 1e-60
"""The same where one side is less than this part of the other."""


def find_levels(loss: Loss, y: FloatArray, weights: FloatArray | None, Z: FloatArray) -> FloatArray:
    """For each row of Z (P, n) about the c that makes the weighted slopes at Z + c sum to zero.

    In a bracket: Newton steps near the root; far from it Newton steps on log(plus / minus), the ratio of the two sides'
    sums, or, where that is flat, steps to the minimum of a quadratic above the loss.
    """
    levels = loss.levels(y, weights, Z)
    if levels is not None:
        return levels
    c, low, high = np.zeros(len(Z)), np.full(len(Z), -np.inf), np.full(len(Z), np.inf)
    scale = np.abs(Z).max(axis=1) + np.abs(y).max()
    previous, last, halved = np.full(len(Z), np.inf), np.zeros(len(Z)), np.zeros(len(Z), dtype=np.bool_)
    for _ in range(STEPS):
        spend(16.0 * Z.size)
        plus, minus, bends_plus, bends_minus, bends, above = _sums(loss, y, weights, Z, c)
        rest = plus - minus
        moving = np.abs(rest) > BALANCED * (plus + minus)
        if not np.any(moving):
            break
        high, low = np.where(rest > 0, c, high), np.where(rest < 0, c, low)
        with np.errstate(all="ignore"):
            straight = bends_plus / plus + bends_minus / minus
            far, ratio = rest / above, np.log(plus / minus) / straight
            far = np.where((scale * straight > 1e-3) & (np.abs(ratio) > np.abs(far)), ratio, far)
            is_near = np.abs(rest) <= 0.5 * (plus + minus)
            newton = rest / bends
            step = np.where(is_near & np.isfinite(newton), newton, far)
            finest = 2.0**-51 * (scale + np.abs(c))
            moving &= ~(is_near & (np.abs(step) <= finest))
            bracketed = np.isfinite(low) & np.isfinite(high)
            size = np.maximum(np.maximum(2.0 * last, np.minimum(np.abs(step), 2.0 * scale)), finest)
            step = np.where(bracketed, step, np.sign(rest) * size)
            stuck = (np.abs(rest) > 0.5 * previous) & ~halved
            # Heavy rows without a slope make a step short that says nothing of how far the level is.
            stuck |= ~is_near & (np.abs(step) <= finest)
            halved = bracketed & (stuck | ~((low < c - step) & (c - step < high)))
            target = np.where(halved, 0.5 * low + 0.5 * high, c - step)
        previous, last = np.abs(rest), np.abs(target - c)
        moving &= np.isfinite(target) & (last > 0.25 * finest)
        if not np.any(moving):
            break
        c = np.where(moving, target, c)
    return c


def _sums(loss: Loss, y: FloatArray, weights: FloatArray | None, Z: FloatArray, c: FloatArray) -> FloatArray:
    """Sums (6, P) over the rows at Z + c: of the slopes that are positive and of those that are negative, sizes only;
    of curvatures where slopes are positive, where they are negative, and of all; of curvatures from above.
    """
    total = np.zeros((6, len(Z)))
    for rows in row_slices(y.size):
        at = Z[:, rows] + c[:, None]
        parts = loss.slopes(at, y[rows]), *loss.bends(at, y[rows])
        slopes, bends, above = parts if weights is None else (part * weights[rows] for part in parts)
        up, down = slopes > 0, slopes < 0
        total += [
            np.sum(slopes, axis=1, where=up), -np.sum(slopes, axis=1, where=down),
            np.sum(bends, axis=1, where=up), np.sum(bends, axis=1, where=down),
            np.sum(bends, axis=1), np.sum(above, axis=1),
        ]  # fmt: skip
    return total


def side_parts(plus: FloatArray, minus: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What the positive and the negative slopes are multiplied by, from the sums of both (P,); 0 for both if tiny."""
    smaller, larger = np.minimum(plus, minus), np.maximum(plus, minus)
    enough = (smaller > TOO_SMALL) & (smaller > SMALLEST_PART * larger)
    part = np.where(enough, smaller / np.where(larger > 0, larger, 1.0), 0.0)
    whole = np.where(enough, 1.0, 0.0)
    return np.where(plus > minus, part, whole), np.where(plus > minus, whole, part)
