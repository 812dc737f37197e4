"""Huber, logistic and Poisson loss without a ridge: searched with one so small that what it does to any model is known.

With lam = 0 the bounds that are made for a ridge have nothing to divide by. But where the fit on all columns exists,
every model with P(x) <= P(0) has |x_j| <= R_j (exactsel_certificates.radii), so for any mu > 0

    P(x)  >=  P(x) + (mu/2) ||x||^2  -  (mu/2) sum_j R_j^2

for all models that count. The problem is searched with the ridge mu, chosen so that the last term is a small part of
P(0), and that term is taken off what is said of it. Columns that no model may use are taken as zeros, whose
coefficients change nothing. Where nothing limits the coefficients of all features together (they
separate the classes, or depend on each other) though models of k of them have a best one, what is said is about models
whose coefficients are not beyond R_j = 10^4 ||y|| / ||a_j||. A ridge goes by the units of the columns; without one they
are free, so columns are multiplied by powers of two, which rounds nothing, until their lengths are much alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from exactsel._jit import interpreted
from exactsel.errors import UnsupportedError, option
from exactsel.kernels.rows import loss_curvature, loss_gradient
from exactsel.losses.huber import Huber
from exactsel.losses.poisson import Poisson
from exactsel.problem.column_scales import divided, with_even_columns
from exactsel.problem.objective import MOST_ROWS, Objective
from exactsel.problem.ridge_limits import RidgeLimits
from exactsel.problem.rows import Rows, Unusable, fit_all
from exactsel.problem.separation import refuse_separated
from exactsel.problem.units import Units
from exactsel.rounding import UNIT
from exactsel.types import BoolArray, FloatArray
from exactsel_certificates.formula import Instance
from exactsel_certificates.radii import MODEL_RADIUS, Radii, radii, within_scope

SCOPE = f"models with |x_j| ||a_j|| <= {MODEL_RADIUS:g} ||y|| (lam = 0, and the data do not limit coefficients)"
"""The models a search speaks of where the data do not limit coefficients."""

SHARE = 2e-11
"""Part of the objective of the fit on all columns that the small ridge may take off a bound."""

CANCELLED = 0.05
"""Part of what the rounding of predictions can do to A'b that it does, about: rows are off to both sides."""

REWEIGHTED = 100
"""Steps of reweighted least squares before Newton's method is tried once more."""

SMALLEST, LARGEST = 1e-50, 900
"""A ridge below the first is none to compute with; none is above 2 to the power of the second."""


def without_ridge(objective: Objective, units: Units | None = None, k: int | None = None) -> Objective:
    """The objective to search with in place of one of Huber, logistic or Poisson loss with lam = 0.

    It serves models of at most k of the units; of all columns where none are given. Where nothing limits the
    coefficients of all columns that these may use, it serves models whose coefficients are not beyond
    :data:`MODEL_RADIUS` (:attr:`RidgeLimits.valid_for`; not with Poisson loss, whose predictions are no numbers like
    y).

    Raises
    ------
    InputError
        Where k of the units separate the classes, or rows whose counts are 0, so that there is no best model.
    UnsupportedError
        Where limits of coefficients are too large to compute with; with Poisson loss where there are none.
    """
    units = Units(objective.d) if units is None else units
    slots = units.d if k is None else k
    allowed, most = usable_columns(units), most_columns(units, slots)
    if objective.ridge_limits is not None:
        if objective.ridge_limits.serves(allowed, most):
            return objective
        objective = objective.before or objective
    alike = _of_columns(with_even_columns(objective), allowed)
    nothing = np.zeros(alike.d)
    if alike.at_zero == 0.0 or most == 0:
        # No model is better than the empty one, or there is no other.
        ridge_limits = RidgeLimits(nothing, Radii(0.0, nothing), 0.0, allowed, most)
        return replace(alike, lam=1.0, ridge_limits=ridge_limits)
    pair = _limits(alike, most)
    if pair is None:
        refuse_separated(
            objective, np.flatnonzero(allowed),
            lambda columns: len({*units.units_of(columns), *units.force_in}) <= slots,
        )  # fmt: skip
        return _within_radius(alike, allowed, most)
    point, limits = pair
    # Once more, so that coefficients are limited much alike: each then pays its part of what the ridge may cost.
    further = np.where(limits.size > 0.0, np.ldexp(1.0, -np.frexp(limits.size)[1]), 1.0)
    point, limits = point * further, Radii(limits.level, limits.size * further)
    alike = divided(alike, further)
    square = float(limits.size @ limits.size)
    lam = _small_ridge(alike, point, square)
    if lam < SMALLEST:
        return _within_radius(alike, allowed, most)
    taken = 0.5 * lam * square * (1.0 + 1e-9)
    ridge_limits = RidgeLimits(point, limits, taken, allowed, most)
    return replace(alike, lam=lam, shared={}, ridge_limits=ridge_limits)


def usable_columns(units: Units) -> BoolArray:
    """The columns (d,) that some model may use: all but those of units that are forced out."""
    allowed = np.ones(units.columns, dtype=np.bool_)
    allowed[units.columns_of(units.force_out)] = False
    return allowed


def most_columns(units: Units, k: int) -> int:
    """The most columns of a model of at most k units, at most."""
    if not units.grouped:
        return min(k, units.columns)
    return int(np.sort([len(units.columns_of([g])) for g in range(units.d)])[::-1][:k].sum())


def _within_radius(alike: Objective, allowed: BoolArray, most: int) -> Objective:
    """What to search with for models within :data:`MODEL_RADIUS`."""
    if isinstance(alike.loss, Poisson):
        raise UnsupportedError(
            "lam is 0, but the data do not limit the coefficients of all features together, which depend on each other "
            f"or tell rows apart whose counts are 0; leave some out, or give a small positive {option('lam', 1e-6)}."
        )
    size = within_scope(instance_of_all(alike)).size
    size[~allowed] = 0.0
    square = float(np.sort(size * size)[::-1][:most].sum())
    lam = _small_ridge(alike, np.zeros(alike.d), square)
    if lam < SMALLEST:
        raise UnsupportedError(
            f"lam is 0, but the data hardly limit the coefficients of models ({math.sqrt(square):.3g} is the most that "
            f"can be said); use other units, or give a positive {option('lam')}."
        )
    taken = 0.5 * lam * square * (1.0 + 1e-9)
    ridge_limits = RidgeLimits(np.zeros(alike.d), Radii(math.inf, size), taken, allowed, most, SCOPE)
    return replace(alike, lam=lam, shared={}, ridge_limits=ridge_limits)


def _small_ridge(objective: Objective, point: FloatArray, square: float) -> float:
    """A ridge, a power of two, that adds little to models of so large a sum of squares at most.

    Little is beside the objective of a ``point`` that no model is much better than, such as the fit on all columns.
    """
    if square == 0.0:
        return 1.0  # of columns of zeros alone
    wanted = 2.0 * SHARE * min(objective.at_zero, objective(point))
    exponent = math.floor(math.log2(max(wanted / square, _rounded(objective, point) / math.sqrt(square))))
    return math.ldexp(1.0, min(exponent, LARGEST))


def _of_columns(objective: Objective, allowed: BoolArray) -> Objective:
    """The objective with columns of zeros in place of those that no model may use."""
    preparation = objective.preparation
    if np.all(allowed) or preparation is None:
        return objective
    AT = np.where(allowed[:, None], objective.AT, 0.0)
    AT.flags.writeable = False
    return replace(objective, AT=AT, preparation=replace(preparation, made=replace(preparation.made, AT=AT)), shared={})


def _rounded(objective: Objective, point: FloatArray) -> float:
    """What bounds allow for rounding in A'b, about: a ridge mu makes that, squared, over 2 mu of it.

    Predictions are rounded, too, and what that does to slopes goes by the curvature: most where counts are large.
    """
    slopes, bends, z = np.empty(objective.n), np.empty(objective.n), point @ objective.AT
    with interpreted(objective.n <= MOST_ROWS):
        loss_gradient(objective.row_loss, z, objective.y, slopes)
        loss_curvature(objective.row_loss, z, objective.y, bends)
    of_sums = 3.0 * objective.n * float(np.linalg.norm(slopes))
    return UNIT * (of_sums + CANCELLED * float(np.linalg.norm(bends * z))) * float(np.linalg.norm(objective.norms))


def _limits(objective: Objective, most: int) -> tuple[FloatArray, Radii] | None:
    """About the fit on all columns (d,), and what limits models of at most so many columns; None where nothing does."""
    instance = replace(instance_of_all(objective), k=most)
    if not np.any(objective.norms > 0.0):
        nothing = np.zeros(objective.d)
        limits = radii(instance, nothing)
        return None if limits is None else (nothing, limits)
    for begin in _beginnings(objective):
        point = _fit(objective, begin)
        limits = None if point is None else radii(instance, point)
        if point is not None and limits is not None:
            return point, limits
    return None


def fit_on_all(objective: Objective) -> FloatArray | None:
    """About the fit on all columns (d,); None where there seems to be none."""
    points = [_fit(objective, begin) for begin in _beginnings(objective)]
    return min((point for point in points if point is not None), key=objective, default=None)


def _beginnings(objective: Objective) -> tuple[Callable[[Rows, FloatArray], FloatArray], ...]:
    return (_at_zero, _reweighted) if isinstance(objective.loss, Huber) else (_at_zero,)


def _fit(objective: Objective, begin: Callable[[Rows, FloatArray], FloatArray]) -> FloatArray | None:
    """About the fit on all columns (d,); None where there seems to be none."""
    try:
        with np.errstate(all="ignore"), Rows(objective) as rows:
            x, _ = fit_all(rows, begin(rows, rows.model(np.zeros(objective.d), objective)))
            point = (x * rows.scale)[: objective.d]
    except (Unusable, np.linalg.LinAlgError):
        return None
    return np.asarray(point) if np.all(np.isfinite(point)) else None


def _at_zero(rows: Rows, x: FloatArray) -> FloatArray:
    return x


def _reweighted(rows: Rows, x: FloatArray) -> FloatArray:
    """After steps of iteratively reweighted least squares (Huber loss), each of which goes down.

    Where most rows are further off than the threshold Newton's method has hardly any curvature to go by: it may end
    far from the fit, or see no step at all, however independent the columns are.
    """
    for _ in range(REWEIGHTED):
        z = rows.predictions(x)
        _, slopes, bends = rows.at(z)
        off = z - rows.y
        H = rows.gram(np.where(bends > 0.0, bends, slopes / np.where(off != 0.0, off, 1.0)))
        # Columns of zeros would leave none; as in Newton's method.
        H[np.diag_indices(len(H))] += 1e-10 * np.trace(H) / len(H)
        gradient = rows.products(slopes)
        step = np.linalg.solve(H, gradient)
        if not float(gradient @ step) > 0.0:
            break
        x = x - step
    return x


def instance_of_all(objective: Objective) -> Instance:
    """The problem of choosing all columns without a ridge, as the checker takes it."""
    return Instance(
        objective.A, objective.y, objective.d, objective.loss.name, 0.0,
        objective.loss_parameters.get("delta", math.inf), weights=objective.weights, intercept=objective.intercept,
    )  # fmt: skip
