"""A minorant that can be shown: two points, and two widths for each row, from which anyone can make it again.

The box of :mod:`exactsel.bounds.minorant` comes out of many q, one after the other. In the end two of them vouch for
all of it, those that touch P at the fit and near the incumbent, with the curvatures of the box itself: a row needs no
more than the smaller of what both need. As their box was never smaller before, they need no more than they did.
Intervals are made a little wider for whoever rounds in his own way, and widths are kept as single floats.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray

from exactsel._jit import loss_session
from exactsel.bounds.minorant import BELOW, Minorant, Rows, Unusable, as_minorant, ellipsoid, touching
from exactsel.bounds.witness import ModelPoint
from exactsel.problem.objective import Objective
from exactsel.types import BoolArray, FloatArray

ROUNDS = 6
"""Boxes tried."""

WIDER = 1.0005
"""Times what a row needs: its interval."""

THINNEST = 1e-5
"""Part of the widest interval that every one is wide, so that rows that hardly move leave rounding some room."""


class Shown(NamedTuple):
    """A minorant and what shows it."""

    below: Minorant
    touching: tuple[ModelPoint, ...]
    """Where it touches P, and where the other q does."""
    widths: NDArray[np.float32]
    """(2, n) how far intervals go from the predictions at the first of these, down and up."""


def shown_minorant(objective: Objective, below: Minorant, upper: float, stop: BoolArray) -> Shown | None:
    """A minorant much like ``below``; None without luck."""
    try:
        with loss_session(objective.loss), np.errstate(over="ignore", invalid="ignore"):
            return _shown(Rows(objective, stop), objective, below, upper)
    except (Unusable, LinAlgError):
        return None


def _shown(rows: Rows, objective: Objective, below: Minorant, upper: float) -> Shown:
    coefs = [(x * rows.scale)[: objective.d] for x in (below.point, below.fit)]
    models = [rows.model(coef, objective) for coef in coefs]
    if not objective(coefs[0]) < upper - BELOW * abs(upper):
        raise Unusable
    z, other = (rows.predictions(model) for model in models)
    low, high = below.low, below.high
    for _ in range(ROUNDS):
        widths = _widths(z, np.minimum(np.minimum(low, z), other), np.maximum(np.maximum(high, z), other))
        down, up = widths.astype(np.float64)
        low, high = z - down, z + up
        q = touching(rows, z, low, high, upper)
        reached = [ellipsoid(rows, each) for each in (q, touching(rows, other, low, high, upper))]
        lowest = np.maximum(*(center - needed for center, needed in reached))
        highest = np.minimum(*(center + needed for center, needed in reached))
        if np.all((lowest > low) & (highest < high)):
            points = tuple(map(ModelPoint.from_dense, coefs))
            return Shown(as_minorant(rows, q, low, high, upper, *models), points, widths)
        low, high = np.minimum(low, lowest), np.maximum(high, highest)
    raise Unusable


def _widths(z: FloatArray, low: FloatArray, high: FloatArray) -> NDArray[np.float32]:
    """How far intervals go down and up, a little wider and rounded upwards."""
    widths = np.stack([z - low, high - z])
    widths = WIDER * np.maximum(widths, THINNEST * float(np.max(widths, initial=0.0)))
    return np.nextafter(widths.astype(np.float32), np.float32(np.inf))
