"""How large coefficients can be without a ridge (FORMAT.md, *Radii*): Huber and logistic loss, lam = 0.

Let b be a dual vector in the domain of L*, with v = A'b. A model of an objective of at most L has, by weak duality,

    v'x <= P(x) + L*(b) <= L + L*(b).

So a b with v = t e_j, nearly, limits x_j from above, and one with v = -t e_j from below. Such b lie around the slopes g
at the fit on all columns, where A'g = 0: with h the room each slope has in its domain (p (1 - p) for logistic loss,
(delta^2 - g^2) / delta^2 for Huber loss) and H = A' diag(h) A it is g + t diag(h) A H^-1 e_j. What v has besides t e_j
is rounding; it limits coefficients by each other, |x| <= a + E|x|, and any R > 0 with R >= a + E R is no smaller than
any such |x|: E then has a spectral radius below one.

No b like that exists where the columns separate the classes, or depend on each other: then nothing limits models.
Columns no model may hold are not looked at.

Which points and directions are taken does not matter for what is established. L is a little more than P(0): models that
cost more than the empty one are of no interest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exactsel_certificates.formula import FloatArray, Instance
from exactsel_certificates.rigorous import RigorousBounds, gamma, model_objective

ABOVE = 1.001
"""Times P(0): L."""

SHRUNK = (0.0, 0.5)
"""By which part slopes are shrunk: at the fit many may have hardly any room (Huber's outliers have none)."""

CAREFUL = 0.95
"""Part of the room that is used."""

WIDER = 1.001
"""Times what is needed: R, so that roundings do not matter."""

STEPS = 6

AT_ONCE = 4_000_000
"""Numbers in the dual vectors looked at together."""


def of_allowed_columns(instance: Instance) -> Instance:
    """The instance with zeros for columns no model may hold, where there is no ridge and Huber or logistic loss."""
    banned = instance.columns_of(instance.must_not)
    if not banned or instance.lam > 0 or instance.loss not in ("huber", "logistic"):
        return instance
    A = np.array(instance.A, dtype=np.float64)
    A[:, banned] = 0.0
    return replace(instance, A=A)


class Radii(NamedTuple):
    """Every model with P(x) <= level has |x_j| <= size_j; columns of zeros, whose coefficients do not count, have 0."""

    level: float
    size: FloatArray
    """(d,)"""


def radii(instance: Instance, x: FloatArray) -> Radii | None:
    """What limits models of the instance, by dual vectors around the slopes at a model x (d,); None where nothing does.

    x should be near the fit on all columns. For Huber and logistic loss.
    """
    with np.errstate(all="ignore"):
        plain = RigorousBounds(instance)
        level = ABOVE * model_objective(instance, np.zeros(plain.d))
        used = np.flatnonzero(plain.norms > 0)
        size = np.zeros(plain.d)
        if not used.size:
            return Radii(level, size)
        slopes = plain.gradients(np.asarray(x, dtype=np.float64)[None])[0]
        for part in SHRUNK:
            found = _around(plain, slopes * (1.0 - part), used, level)
            if found is not None:
                size[used] = found
                return Radii(level, size)
    return None


def _room(instance: Instance, g: FloatArray) -> tuple[FloatArray, FloatArray]:
    """h (n,), and how far each slope may move up or down."""
    if instance.loss == "huber":
        left = instance.delta - np.abs(g)
        return left / instance.delta * (1.0 + np.abs(g) / instance.delta), left
    p = np.abs(g)
    return p * (1.0 - p), np.minimum(p, 1.0 - p)


def _around(plain: RigorousBounds, g: FloatArray, used: NDArray[np.intp], level: float) -> FloatArray | None:
    """The sizes of the used columns' coefficients (m,), or None."""
    instance, norms = plain.instance, plain.norms[used]
    h, left = _room(instance, g)
    weighted = h if instance.weights is None else h * instance.weights
    B = plain.A[:, used] / norms
    if instance.intercept:
        B = np.hstack([B, np.full((plain.n, 1), 1.0 / np.sqrt(plain.n))])
    H = B.T @ (B * weighted[:, None])
    roots = np.sqrt(np.diagonal(H))
    if not (np.all(np.isfinite(H)) and np.all(roots > 0)):
        return None
    try:
        inverse = np.linalg.inv(np.linalg.cholesky(H / np.outer(roots, roots)))
    except np.linalg.LinAlgError:
        return None
    inverse = inverse.T @ inverse / np.outer(roots, roots)
    m = used.size
    gap = max(level - float(plain.correlations(g[None])[0][0]), 1e-6 * level)
    a, E = np.zeros(m), np.zeros((m, m))
    step = max(1, AT_ONCE // plain.n)
    for first in range(0, m, step):
        rows = slice(first, min(m, first + step))
        directions = h[:, None] * (B @ inverse[:, rows])
        moved = np.max(np.where(directions != 0, np.abs(directions) / left[:, None], 0.0), axis=0)
        length = np.minimum(CAREFUL / moved, np.sqrt(2.0 * gap / np.diagonal(inverse)[rows]))
        for sign in (1.0, -1.0):
            base, V, error = plain.correlations(plain.projected(g + sign * (directions * length).T))
            V, error = V[:, used] / norms, error[:, used] / norms * (1.0 + 8 * plain.unit)
            own = np.arange(rows.stop - rows.start), np.arange(rows.start, rows.stop)
            pull = (sign * V[own] - error[own]) * (1.0 - 8 * plain.unit)
            rest = np.abs(V) + error
            rest[own] = 0.0
            if not np.all(pull > 0):
                return None
            most = np.maximum(level - base, 0.0) * (1.0 + 8 * plain.unit)
            a[rows] = np.maximum(a[rows], most / pull)
            E[rows] = np.maximum(E[rows], rest / pull[:, None])
    return _limited(a, E, norms)


def _limited(a: FloatArray, E: FloatArray, norms: FloatArray) -> FloatArray | None:
    """R > 0 with R >= a + E R, of unit columns, for columns as they are."""
    R = WIDER * a
    for _ in range(STEPS):
        needed = (a + E @ R) * (1.0 + gamma(len(a) + 8))
        if not (np.all(np.isfinite(needed)) and np.all(needed > 0)):
            return None
        if np.all(needed < R):
            return np.asarray(R / norms * (1.0 + 1e-12))
        R = WIDER * needed
    return None
