"""Limits on the size of coefficients (FORMAT.md, *Limits*): every loss but the quadratic one; without a ridge, Huber,
logistic and Poisson loss.

Let b be a dual vector in the domain of L*, with v = A'b. A model of an objective of at most L has, by weak duality,

    v'x <= P(x) + L*(b) <= L + L*(b).

So a b with v = t e_j, nearly, limits x_j from above, and one with v = -t e_j from below. Such b lie around the slopes g
at the fit on all columns, where A'g = 0: with h the room each slope has in its domain (p (1 - p) for logistic loss,
(delta^2 - g^2) / delta^2 for Huber loss, the mean for Poisson loss) and H = A' diag(h) A it is g + t diag(h) A H^-1
e_j. What v has besides t e_j is rounding; it limits coefficients by each other, |x| <= a + E|x|, and any R > 0 with R
>= a + E R is no smaller than any such |x|: E then has a spectral radius below one.

A model has m columns at most, so of a row of E only the m - 1 largest E_jl R_l count.

A ridge limits coefficients itself, (lam/2) x_j^2 <= L, and says all there is to say of a column that is short beside
it. Of a long one, a_j'a_j >= LONG lam, dual vectors say more; a short column l then takes v_l^2 / (2 lam) of what b
shows instead of v_l x_l, which is (lam/2) x_l^2 less.

No b like that exists where the columns separate the classes, or depend on each other: then nothing limits models
without a ridge. With one, long columns that depend on each other still limit those of which a model holds one alone; H
is made a little firmer then, so that it has an inverse. Columns no model may hold are skipped.

Which points and directions are taken does not matter for what is established. L is a little more than P(0): models that
cost more than the empty one are of no interest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exactsel_certificates.formula import FloatArray, Instance
from exactsel_certificates.prepared import lengths
from exactsel_certificates.rigorous import RigorousBounds, U, gamma, model_objective
from exactsel_certificates.work import spend
from exactsel_mapped import column_blocks

ABOVE, FAR_ABOVE = 1.001, 1.1
"""Times P(0): L without and with a ridge, where it may have to leave room for what preparing the data rounds."""

MODEL_RADIUS = 1e4
"""R: claims about bounded models speak of those with |x_j| ||a_j|| <= R ||y||; lam = 0, not quadratic loss but where
coefficients have limits."""

SHRUNK = (0.0, 0.5)
"""By which part slopes are shrunk: at the fit many may have hardly any room (Huber's outliers have none)."""

CAREFUL = 0.95
"""Part of the room that is used."""

WIDER = 1.001
"""Times what is needed: R, so that roundings do not matter."""

STEPS = 6

DEPENDENT = 1e-14
"""Part of a column's square that others leave of it below which it counts as depending on them, beside a ridge."""

FIRMER = 1e-10
"""Part of it added to the diagonal of H where columns depend on each other, beside a ridge."""

LONG = 1e6
"""Times lam: the square of the length from which dual vectors limit a column's coefficient."""

AT_ONCE = 4_000_000
"""Numbers in the dual vectors processed together."""


def of_allowed_columns(instance: Instance) -> Instance:
    """The instance with zeros for columns no model may hold, where there is no ridge; not for quadratic loss."""
    banned = instance.columns_of(instance.force_out)
    if not banned or instance.lam > 0 or instance.formulas.quadratic:
        return instance
    A = np.array(instance.A, dtype=np.float64)
    A[:, banned] = 0.0
    return replace(instance, A=A)


class Radii(NamedTuple):
    """Every model with P(x) <= level has |x_j| <= size_j; columns of zeros, whose coefficients do not count, have 0.

    With an infinite level it is every model that is spoken of.
    """

    level: float
    size: FloatArray
    """(d,)"""


def within_scope(instance: Instance) -> Radii:
    """How large coefficients are in models that claims about bounded models speak of, rounded upwards.

    For prepared data: lengths are weighted, and a length of y that holds a shift more than the exact one is larger.
    """
    AT, weights = np.asarray(instance.A, dtype=np.float64).T, instance.weights
    with np.errstate(all="ignore"):
        columns = np.concatenate([lengths(AT[block], weights) for block in column_blocks(AT)])
        target = float(lengths(np.asarray(instance.y, dtype=np.float64)[None], weights)[0])
        size = np.where(columns > 0, 1.001 * MODEL_RADIUS * target / columns, 0.0)
    return Radii(np.inf, size)


def within_box(instance: Instance, scoped: bool) -> Radii | None:
    """How large coefficients within limits are, quadratic loss without a ridge; None where one of them is not limited.

    Where one is not, the scope of a claim about bounded models does. Columns of zeros, and of force_out, do not count.
    """
    assert instance.box is not None
    valid_for = within_scope(instance).size
    largest = np.maximum(-np.asarray(instance.box.lower), np.asarray(instance.box.upper))
    size = np.minimum(largest, valid_for) if scoped else largest
    size[~np.any(np.asarray(instance.A) != 0.0, axis=0)] = 0.0
    size[instance.columns_of(instance.force_out)] = 0.0
    return Radii(np.inf, size) if np.all(np.isfinite(size)) else None


def radii(instance: Instance, x: FloatArray) -> Radii | None:
    """What limits models of the instance, by dual vectors around the slopes at a model x (d,); None where nothing does.

    x should be near the fit on all columns models may use. Not for quadratic loss.
    """
    with np.errstate(all="ignore"):
        plain = RigorousBounds(instance)
        level = (ABOVE if instance.lam == 0 else FAR_ABOVE) * model_objective(instance, np.zeros(plain.d))
        allowed = np.ones(plain.d, dtype=np.bool_)
        allowed[instance.columns_of(instance.force_out)] = False
        used = np.flatnonzero((plain.norms > 0) & allowed)
        size = np.zeros(plain.d)
        if not used.size:
            return Radii(level, size)
        long = used[plain.norms[used] ** 2 >= LONG * instance.lam]
        if instance.lam > 0:
            size[used] = WIDER * np.sqrt(2.0 * level / instance.lam)
        if not long.size:
            return Radii(level, size)
        slopes, others = plain.gradients(np.asarray(x, dtype=np.float64)[None])[0], most_columns(instance) - 1
        for part in SHRUNK:
            system = _around(plain, slopes * (1.0 - part), used, long, level)
            norms = plain.norms[long]
            if system is not None and instance.lam > 0:
                size[long] = np.minimum(size[long], _lowered(*system, size[long] * norms, others) / norms)
            limited = None if system is None else _limited(*system, others)
            if limited is not None:
                size[long] = np.minimum(size[long] if instance.lam > 0 else np.inf, limited / norms * (1.0 + 1e-12))
                return Radii(level, size)
    return Radii(level, size) if instance.lam > 0 else None


def _around(
    plain: RigorousBounds, g: FloatArray, used: NDArray[np.intp], long: NDArray[np.intp], level: float
) -> tuple[FloatArray, FloatArray] | None:
    """a (l,) and E (l, l) for the long columns, which are some of the ``used`` ones (m,), divided by their lengths."""
    instance, norms, place = plain.instance, plain.norms[used], np.searchsorted(used, long)
    room = plain.loss.room(g, np.asarray(instance.y))
    if room is None:
        return None
    h, slack = room
    weighted = h if instance.weights is None else h * instance.weights
    B = plain.A[:, used] / norms
    if instance.intercept:
        B = np.hstack([B, np.full((plain.n, 1), 1.0 / np.sqrt(plain.n))])
    H = B.T @ (B * weighted[:, None])
    if instance.lam > 0:
        H[np.arange(used.size), np.arange(used.size)] += instance.lam / norms**2
    roots = np.sqrt(np.diagonal(H))
    if not (np.all(np.isfinite(H)) and np.all(roots > 0)):
        return None
    inverse = _inverse(H / np.outer(roots, roots), instance.lam > 0)
    if inverse is None:
        return None
    inverse = inverse / np.outer(roots, roots)
    m, many = used.size, long.size
    spend(2.0 * plain.n * m * m + float(m) ** 3)
    ridge = _Ridge(instance.lam, np.setdiff1d(used, long), most_columns(instance) - 1)
    at_g = plain.correlations(g[None])
    gap, now = max(level - float(ridge.left(*at_g)[0]), 1e-6 * level), at_g[1][0, long] / norms[place]
    a, E = np.zeros(many), np.zeros((many, many))
    step = max(1, AT_ONCE // plain.n)
    for first in range(0, many, step):
        rows = slice(first, min(many, first + step))
        spend(8.0 * plain.n * m * (rows.stop - rows.start))
        directions = h[:, None] * (B @ inverse[:, place[rows]])
        moved = np.max(np.where(directions != 0, np.abs(directions) / slack[:, None], 0.0), axis=0)
        most = 2.0 * gap / np.diagonal(inverse)[place[rows]]
        for sign in (1.0, -1.0):
            length = np.minimum(CAREFUL / moved, np.sqrt(now[rows] ** 2 + most) - sign * now[rows])
            products = plain.correlations(plain.projected(g + sign * (directions * length).T))
            V, error = products[1][:, long] / norms[place], products[2][:, long] / norms[place] * (1.0 + 8 * plain.unit)
            diagonal = np.arange(rows.stop - rows.start), np.arange(rows.start, rows.stop)
            pull = (sign * V[diagonal] - error[diagonal]) * (1.0 - 8 * plain.unit)
            rest = np.abs(V) + error
            rest[diagonal] = 0.0
            if instance.lam == 0 and not np.all(pull > 0):
                return None
            over = np.maximum(level - ridge.left(*products), 0.0) * (1.0 + 8 * plain.unit)
            a[rows] = np.maximum(a[rows], np.where(pull > 0, over / pull, np.inf))
            E[rows] = np.maximum(E[rows], np.where(pull[:, None] > 0, rest / pull[:, None], 0.0))
    return a, E


def _inverse(H: FloatArray, ridged: bool) -> FloatArray | None:
    """The inverse of a matrix (m, m) with ones on its diagonal; with a ridge that of a firmer one where it has none."""
    for more in (0.0, FIRMER) if ridged else (0.0,):
        try:
            factor = np.linalg.cholesky(H + more * np.eye(len(H)))
        except np.linalg.LinAlgError:
            continue
        if not ridged or np.min(np.diagonal(factor)) ** 2 > DEPENDENT:
            factor = np.linalg.inv(factor)
            return np.asarray(factor.T @ factor)
    return None


class _Ridge(NamedTuple):
    """What a ridge makes of columns that no dual vector limits."""

    lam: float
    short: NDArray[np.intp]
    most: int
    """Short columns beside a long one in a model, at most."""

    def left(self, base: FloatArray, V: FloatArray, error: FloatArray) -> FloatArray:
        """A lower bound (P,) of P(x) - v'x over all x of the short columns, from dual vectors."""
        if not self.short.size:
            return base
        squares = _largest((np.abs(V[:, self.short]) + error[:, self.short]) ** 2, self.most) / (2.0 * self.lam)
        return np.asarray(base - squares - 8 * U * (np.abs(base) + squares))


def most_columns(instance: Instance) -> int:
    """Columns of a model, at most."""
    if not instance.groups:
        return min(instance.k, int(instance.A.shape[1]))
    return sum(sorted(map(len, instance.groups), reverse=True)[: instance.k])


def _largest(parts: FloatArray, many: int) -> FloatArray:
    """The sum (P,) of the ``many`` largest of non-negative numbers (P, m), rounded upwards; inf where one is none."""
    parts = np.where(np.isnan(parts), np.inf, parts)
    if many < parts.shape[1]:
        parts = -np.partition(-parts, max(many - 1, 0), axis=1)[:, : max(many, 0)]
    return np.asarray(parts.sum(axis=1) * (1.0 + gamma(parts.shape[1] + 16)))


def _limited(a: FloatArray, E: FloatArray, others: int) -> FloatArray | None:
    """R > 0 with R >= a + E R."""
    R = WIDER * a
    for _ in range(STEPS):
        needed = _reached(a, E, R, others)
        if not (np.all(np.isfinite(needed)) and np.all(needed > 0)):
            return None
        if np.all(needed < R):
            return R
        R = WIDER * needed
    return None


def _lowered(a: FloatArray, E: FloatArray, R: FloatArray, others: int) -> FloatArray:
    """What is no smaller than any coefficient because R is not, either."""
    for _ in range(STEPS):
        R = np.fmin(R, _reached(a, E, R, others) * (1.0 + 1e-12))
    return R


def _reached(a: FloatArray, E: FloatArray, R: FloatArray, others: int) -> FloatArray:
    """a + E R, rounded upwards, of a row of E the largest parts that ``others`` columns can have."""
    with np.errstate(all="ignore"):
        parts = np.where(E == 0.0, 0.0, E * R)
    return np.asarray((a + _largest(parts, others)) * (1.0 + 8 * U))
