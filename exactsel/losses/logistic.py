"""Logistic loss l(z, y) = log(1 + exp(-y z)), y in {-1, +1}."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from exactsel.errors import InputError
from exactsel.losses.adjusted import adjustable
from exactsel.rounding import UNIT
from exactsel.types import FloatArray

ROUNDING = 32 * UNIT
"""What a few operations with doubles may do, as a part of the numbers that go in."""


def check_labels(y: FloatArray, called: str) -> None:
    """:class:`InputError` where a target (n,) holds other numbers than -1 and +1; ``called`` names the loss in it."""
    labels = np.unique(y)
    if not np.all(np.isin(labels, (-1.0, 1.0))):
        shown = ", ".join(f"{v:g}" for v in labels[:4]) + (", …" if labels.size > 4 else "")
        raise InputError(f"the target y holds the values {shown}, but {called} needs labels -1 and +1; recode y.")


class Logistic(NamedTuple):
    """Conjugate p log p + (1-p) log(1-p) with p = -y b in [0, 1] and 0 log 0 = 0."""

    name = "logistic"
    smoothness = 0.25
    infimum = 0.0

    @staticmethod
    def point_value(loss: Any, z: float, y: float) -> float:
        t = -y * z
        return max(t, 0.0) + math.log1p(math.exp(-abs(t)))

    @staticmethod
    def point_derivative(loss: Any, z: float, y: float) -> float:
        t = -y * z
        e = math.exp(-abs(t))
        return -y * (1.0 if t >= 0.0 else e) / (1.0 + e)

    @staticmethod
    def point_curvature(loss: Any, z: float, y: float) -> float:
        e = math.exp(-abs(z))
        return e / ((1.0 + e) * (1.0 + e))

    @staticmethod
    def point_majorizer(loss: Any, z: float, y: float) -> float:
        # Jaakkola and Jordan's bound; its value at 0 is the limit.
        if abs(z) < 1e-4:
            return 0.25
        return math.tanh(0.5 * z) / (2.0 * z)

    @staticmethod
    def point_curvature_on(loss: Any, low: float, high: float, z: float, y: float) -> float:
        # The ends suffice, see base.py. Near z the difference that defines the curvature has no digits; there (and
        # wherever that is more) another bound serves: the third derivative is no larger than the second, so that
        # l''(t) >= l''(z) exp(-|t - z|).
        e = math.exp(-abs(z))
        bend = e / ((1.0 + e) * (1.0 + e))
        value = max(-y * z, 0.0) + math.log1p(e)
        slope = -y * (1.0 if y * z <= 0.0 else e) / (1.0 + e)
        lowest = bend
        for t in (low, high):
            width = t - z
            there = max(-y * t, 0.0) + math.log1p(math.exp(-abs(t)))
            size = there + value + abs(slope) * (abs(width) + abs(t) + abs(z))
            square = width * width
            secant = 2.0 * (there - value - slope * width - ROUNDING * size) / square if square > 1e-200 else 0.0
            lowest = min(lowest, max(bend * math.exp(-abs(width)), secant))
        return lowest * (1.0 - ROUNDING)

    @staticmethod
    def rows_value(loss: Any, z: FloatArray, y: FloatArray) -> FloatArray:
        t = -y * z
        return np.maximum(t, 0.0) + np.log1p(np.exp(-abs(t)))

    @staticmethod
    def rows_derivative(loss: Any, z: FloatArray, y: FloatArray) -> FloatArray:
        t = -y * z
        e = np.exp(-abs(t))
        return -y * (np.where(t >= 0.0, 1.0, e) / (1.0 + e))

    @staticmethod
    def rows_curvature(loss: Any, z: FloatArray, y: FloatArray) -> FloatArray:
        e = np.exp(-abs(z))
        return e / ((1.0 + e) * (1.0 + e))

    @staticmethod
    def rows_majorizer(loss: Any, z: FloatArray, y: FloatArray) -> FloatArray:
        near = abs(z) < 1e-4
        return np.where(near, 0.25, np.tanh(0.5 * z) / (2.0 * np.where(near, 1.0, z)))

    @staticmethod
    def rows_curvature_on(loss: Any, low: FloatArray, high: FloatArray, z: FloatArray, y: FloatArray) -> FloatArray:
        bend, value = Logistic.rows_curvature(loss, z, y), Logistic.rows_value(loss, z, y)
        slope, lowest = Logistic.rows_derivative(loss, z, y), bend
        for t in (low, high):
            width = t - z
            there = Logistic.rows_value(loss, t, y)
            size = there + value + abs(slope) * (abs(width) + abs(t) + abs(z))
            square, rise = width * width, 2.0 * (there - value - slope * width - ROUNDING * size)
            secant = np.divide(rise, square, out=np.zeros(z.size), where=square > 1e-200)
            lowest = np.minimum(lowest, np.maximum(bend * np.exp(-abs(width)), secant))
        return lowest * (1.0 - ROUNDING)

    @staticmethod
    def point_prox(loss: Any, u: float, step: float, y: float) -> float:
        # Newton on the increasing function f(z) = z + step*l'(z) - u, whose root lies between u and u + y*step. As a
        # function of yz, y f is convex below 0 and concave above: from the point of that interval nearest to 0 the
        # iteration is monotone. (From elsewhere it can jump to and fro between the flat ends of l' for ever.)
        low, high = min(u, u + y * step), max(u, u + y * step)
        z = min(max(0.0, low), high)
        for _ in range(100):
            t = -y * z
            e = math.exp(-abs(t))
            slope = -y * (1.0 if t >= 0.0 else e) / (1.0 + e)
            f = z - u + step * slope
            if abs(f) <= 2e-16 * (abs(z) + abs(u) + step * abs(slope)):
                return z
            if f > 0.0:
                high = z
            else:
                low = z
            new = z - f / (1.0 + step * e / ((1.0 + e) * (1.0 + e)))
            if not (low <= new <= high):
                new = 0.5 * (low + high)
            if abs(new - z) <= 1e-15 * abs(z):
                return new
            z = new
        return z

    @staticmethod
    def point_conjugate(loss: Any, b: float, y: float) -> float:
        p = -y * b
        value = 0.0
        if p > 0.0:
            value += p * math.log(p)
        if p < 1.0:
            value += (1.0 - p) * math.log1p(-p)
        return value

    @staticmethod
    def point_conjugate_derivative(loss: Any, b: float, y: float) -> float:
        p = min(max(-y * b, 1e-14), 1.0 - 1e-14)
        return -y * math.log(p / (1.0 - p))

    @staticmethod
    def point_project(loss: Any, b: float, y: float) -> float:
        return -y * min(max(-y * b, 0.0), 1.0)

    def check_target(self, y: FloatArray) -> None:
        """Labels must be -1 or +1."""
        check_labels(y, "logistic loss")

    def check_parameters(self) -> None:
        """There are none."""


AdjustedLogistic = adjustable(Logistic)
"""Logistic loss with row weights or an intercept."""
