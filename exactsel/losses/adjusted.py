"""Losses with row weights, an unpenalised intercept, or both, in the form kernels take.

An adjusted loss is z -> min over the intercept c of sum_i w_i l(z_i + c, y_i); without intercept c is 0. It is convex,
and an intercept makes it blind to constants added to z. Kernels know it by its type and evaluate all rows at once
(:mod:`exactsel.kernels.levels`); its scalar functions are those of one row, without weight. There is one flat tuple for
each loss, because parallel kernels take no tuple within a tuple.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from exactsel.losses.huber import Huber
from exactsel.losses.logistic import Logistic
from exactsel.types import FloatArray


class AdjustedHuber(NamedTuple):
    """Huber loss with row weights or an intercept."""

    delta: float
    weights: FloatArray
    """(n,) positive."""
    levelled: bool
    """Whether there is an intercept."""

    point_value = Huber.point_value
    point_derivative = Huber.point_derivative
    point_curvature = Huber.point_curvature
    point_majorizer = Huber.point_majorizer


class AdjustedLogistic(NamedTuple):
    """Logistic loss with row weights or an intercept."""

    weights: FloatArray
    """(n,) positive."""
    levelled: bool
    """Whether there is an intercept."""

    point_value = Logistic.point_value
    point_derivative = Logistic.point_derivative
    point_curvature = Logistic.point_curvature
    point_majorizer = Logistic.point_majorizer


ADJUSTED = (AdjustedHuber, AdjustedLogistic)

ADJUSTABLE = {Huber: AdjustedHuber, Logistic: AdjustedLogistic}
"""Losses that can have weights and an intercept."""


def adjusted(loss: Any, weights: FloatArray | None, levelled: bool, rows: int) -> Any:
    """A loss with weights (None: all 1) and, where ``levelled``, an intercept."""
    known = np.ones(rows) if weights is None else weights
    return ADJUSTABLE[type(loss)](*loss, known, levelled)
