"""The certificate of a minorant: two points, and two widths for each row, from which a checker rebuilds it.

The box of :mod:`exactsel.bounds.minorant` comes out of many q, one after the other. In the end two of them vouch for
all of it, those that touch P at the fit and near the incumbent, with the curvatures of the box itself: a row needs no
more than the smaller of what both need. As their box was never smaller before, they need no more than they did.
Intervals are made a little wider for checkers that round in their own way, and widths are kept as single floats.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray

from exactsel.algebra.elimination import gamma
from exactsel.bounds.minorant import BELOW, Minorant, TangentMinorant, as_minorant, largest_in, reached, touching
from exactsel.bounds.witness import ModelPoint
from exactsel.problem.objective import Objective
from exactsel.problem.rows import Rows, Unusable
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


def minorant_certificate(
    objective: Objective, below: Minorant, upper: float, stop: BoolArray, threads: int = 1
) -> Shown | None:  # fmt: skip
    """A minorant much like ``below``; None without luck."""
    try:
        quiet = np.errstate(over="ignore", invalid="ignore")
        with quiet, Rows(objective, stop, threads) as rows:
            return _shown(rows, objective, below, upper)
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
        low, high = z - widths[0].astype(np.float64), z + widths[1].astype(np.float64)
        q = touching(rows, z, low, high, upper)
        lowest, highest = reached(rows, q)
        for end, further in zip((lowest, highest), reached(rows, touching(rows, other, low, high, upper)), strict=True):
            (np.maximum if end is lowest else np.minimum)(end, further, out=end)
        if np.all((lowest > low) & (highest < high)):
            minorant = as_minorant(rows, q, low, high, upper, *models)
            minorant = minorant._replace(threshold=minorant.threshold + _taken_by_checking(rows, q, upper))
            return Shown(minorant, tuple(map(ModelPoint.from_dense, coefs)), widths)
        low, high = np.minimum(low, lowest), np.maximum(high, highest)
    raise Unusable


def _taken_by_checking(rows: Rows, q: TangentMinorant, upper: float) -> float:
    """By how much a checker lowers q: it eliminates H - h h' / T less a margin, T = 2 (constant - upper)."""
    T, m, lengths = 2.0 * (q.constant - q.noise - upper), len(q.center), q.quadratic.lengths
    if not T > 0.0:
        raise Unusable
    off = q.noise_square + 2.2 * float(np.max(q.noise_linear / lengths)) / np.sqrt(T)
    margin = 1.2 * (m + 1) * (off + gamma(2 * m + 16))
    return float(0.5 * margin * np.sum((lengths * largest_in(q)) ** 2))


def _widths(z: FloatArray, low: FloatArray, high: FloatArray) -> NDArray[np.float32]:
    """How far intervals go down and up, a little wider and rounded upwards."""
    widths = np.stack([z - low, high - z])
    widths = WIDER * np.maximum(widths, THINNEST * float(np.max(widths, initial=0.0)))
    return np.nextafter(widths.astype(np.float32), np.float32(np.inf))
