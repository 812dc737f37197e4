"""Bounds of models with columns that are not active, as FORMAT.md has them: on a table, without room for rounding."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from exactsel_certificates.formula import FloatArray, Instance


def touched_bound(instance: Instance, levels: Sequence[float]) -> tuple[float, list[float]]:
    """Of all models and of those with each column, by the rows that columns touch; quadratic loss."""
    A, k = np.asarray(instance.A, dtype=np.longdouble), instance.k
    r = np.asarray(instance.y, dtype=np.longdouble)
    r = r - np.mean(r) if instance.intercept else r
    allowed = [j for j in range(A.shape[1]) if j not in instance.force_out]
    nothing = 0.0, [0.0 if j in allowed and k else math.inf for j in range(A.shape[1])]

    def cost(j: int, c: float) -> float:
        return float(np.sum((r[A[:, j] != 0] - c) ** 2))

    if not instance.intercept:
        return _less(0.5 * float(r @ r), {j: 0.5 * cost(j, 0.0) for j in allowed}, instance)
    if not len(levels):
        return nothing
    for end, sign in ((levels[-1], 1.0), (levels[0], -1.0)):
        gaps = sign * (end - r)
        touched = sorted((float(np.sum(np.maximum(gaps, 0.0)[A[:, j] != 0])) for j in allowed), reverse=True)
        if float(np.sum(gaps)) < sum(touched[:k]):
            return nothing
    found = []
    for low, high in zip(levels[:-1] or levels, levels[1:] or levels, strict=True):
        c = min(max(float(np.mean(r)), low), high)
        gains = {j: 0.5 * max(cost(j, low), cost(j, high)) for j in allowed}
        found.append(_less(0.5 * float(np.sum((r - c) ** 2)), gains, instance))
    return min(whole for whole, _ in found), [min(values) for values in zip(*(each for _, each in found), strict=True)]


def dual_bounds(instance: Instance, slopes: FloatArray) -> tuple[float, list[float]]:
    """The same by formula (2) at a dual vector; quadratic loss, lam > 0 or limits on both sides of all coefficients."""
    b = np.asarray(slopes, dtype=np.longdouble)
    b = b - np.mean(b) if instance.intercept else b
    base = -float(0.5 * (b @ b) + np.asarray(instance.y, dtype=np.longdouble) @ b)
    A, lam, box = np.asarray(instance.A, dtype=np.longdouble), instance.lam, instance.box
    allowed = [j for j in range(A.shape[1]) if j not in instance.force_out]
    gains = {}
    for j in allowed:
        v = float(A[:, j] @ b)
        low, high = (-math.inf, math.inf) if box is None else (float(box.lower[j]), float(box.upper[j]))
        ends = [w for w in (low, high) if math.isfinite(w)] + ([min(max(-v / lam, low), high)] if lam else [])
        gains[j] = max([0.0, *(-v * w - 0.5 * lam * w * w for w in ends)])
    return _less(base, gains, instance)


def _less(base: float, gains: dict[int, float], instance: Instance) -> tuple[float, list[float]]:
    """``base`` less the k largest gains, and for each column less its own and the k - 1 largest others."""
    k, ranked, values = instance.k, sorted(gains, key=lambda j: -gains[j]), []
    for j in range(instance.A.shape[1]):
        chosen = [j, *[i for i in ranked if i != j][: k - 1]] if j in gains and k else []
        values.append(base - sum(gains[i] for i in chosen) if chosen else math.inf)
    return base - sum(gains[j] for j in ranked[:k]), values
