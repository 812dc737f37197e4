"""Losses with row weights, an unpenalised intercept, or both, in the form kernels take.

An adjusted loss is z -> min over the intercept c of sum_i w_i l(z_i + c, y_i); without intercept c is 0. It is convex,
and an intercept makes it blind to constants added to z. Kernels know it by its fields and evaluate all rows at once
(:mod:`exactsel.kernels.levels`); its scalar functions are those of one row, without weight. It is one flat tuple,
because parallel kernels take no tuple within a tuple.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any, Protocol, TypeAlias

import numpy as np

from exactsel.losses.base import Loss
from exactsel.types import FloatArray

FIELDS = ("weights", "levelled")
"""What an adjusted loss has beside the fields of the loss: (n,) positive weights, and whether there is an intercept."""

_ADJUSTED: dict[type, type] = {}


class AdjustedLoss(Protocol):
    """A loss with row weights or an intercept: the fields that it has beside those of the loss."""

    weights: FloatArray
    levelled: bool


RowLoss: TypeAlias = Loss | AdjustedLoss
"""A loss as kernels take it."""


def adjustable(loss: type) -> Any:
    """The type of a loss with weights or an intercept; to be called where the loss is defined, and kept by its name::

        AdjustedMine = adjustable(Mine)

    By this the author of a loss says that **no row is ever below zero**: inf l(., y) >= 0 for every target y. On that
    rests the dual bound with an intercept (:func:`exactsel.kernels.levels.adjusted_dual`). The name must be the class's
    own after ``Adjusted``, so that other processes find it and compiled kernels for it can be kept.
    """
    fields = (*getattr(loss, "_fields", ()), *FIELDS)
    made: Any = namedtuple(f"Adjusted{loss.__name__}", fields, module=loss.__module__)
    for name in (name for name in dir(loss) if name.startswith(("point_", "rows_"))):
        setattr(made, name, staticmethod(getattr(loss, name)))
    _ADJUSTED[loss] = made
    return made


def can_be_adjusted(loss: type) -> bool:
    """Whether a loss can have weights and an intercept."""
    return loss in _ADJUSTED


def is_adjusted(kind: type) -> bool:
    """Whether this is the type of a loss with weights or an intercept."""
    return bool(getattr(kind, "_fields", ())[-2:] == FIELDS)


def adjusted(loss: Any, weights: FloatArray | None, levelled: bool, rows: int) -> Any:
    """A loss with weights (None: all 1) and, where ``levelled``, an intercept."""
    known = np.ones(rows) if weights is None else weights
    return _ADJUSTED[type(loss)](*loss, known, levelled)
