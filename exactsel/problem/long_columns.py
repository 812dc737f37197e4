"""Columns that are long beside the ridge: searched in units in which the same ridge hardly matters to them.

Bounds of Huber, logistic, Poisson and squared hinge loss divide by the ridge weight the product of a column with a dual
vector. In the bound's units, the rounding error of that product, and of the column's mean, grows with the column. A
column 10^9 times as long as another thus loses everything that is known of either, though its coefficient is tiny:
every model that costs no more than the empty one has |x_j| <= R_j, R_j from dual vectors (exactsel_certificates.radii).
With column j divided by t_j >= 1, a power of two, its coefficient is w_j = t_j x_j, and for all models that count

    P(x)  =  L(Ax) + (lam/2) ||x||^2  >=  L(Bw) + (lam/2) ||w||^2  -  (lam/2) sum_j (t_j R_j)^2  over the t_j > 1,

where t_j is so small that the last sum is a small part of P(0). It is taken off what is said of the problem, as where
there is no ridge (:mod:`exactsel.problem.infinitesimal_ridge`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from exactsel._jit import interpreted
from exactsel.kernels.rows import loss_gradient
from exactsel.losses.huber import Huber
from exactsel.losses.logistic import Logistic
from exactsel.losses.poisson import Poisson
from exactsel.losses.squared_hinge import SquaredHinge
from exactsel.problem.column_scales import divided, powers_near
from exactsel.problem.infinitesimal_ridge import fit_on_all, instance_of_all, most_columns, usable_columns
from exactsel.problem.objective import MOST_ROWS, Objective
from exactsel.problem.ridge_limits import RidgeLimits
from exactsel.problem.units import Units
from exactsel.rounding import UNIT
from exactsel.types import BoolArray, FloatArray
from exactsel_certificates.radii import Radii, radii

LOSSES: tuple[type, ...] = (Huber, Logistic, Poisson, SquaredHinge)

ROOM = 1e-11
"""Part of P(0) by which rounding may lower bounds before columns are rescaled."""

ENOUGH = 1e-10
"""The part from which no better limits are looked for."""

SHARES = (2e-11, 1e-9, 5e-8)
"""Parts of P(0) that the ridge of divided columns may take off bounds; the less it may, the more rounding takes."""

COLUMNS_UP_TO = 3000
"""Columns up to which they are, which takes a table of d x d."""


def with_long_columns_divided(objective: Objective, units: Units, k: int) -> Objective:
    """The objective to search with for models of at most k of the units where lam > 0; mostly the one that is given."""
    allowed, most = usable_columns(units), most_columns(units, k)
    if objective.ridge_limits is not None:
        if objective.ridge_limits.serves(allowed, most):
            return objective
        objective = objective.before or objective
    if _lost(objective, allowed, most) <= ROOM:
        return objective
    forbidden = tuple(np.flatnonzero(~allowed).tolist())
    instance = replace(instance_of_all(objective), k=most, lam=objective.lam, force_out=forbidden)
    best = objective
    for point in _points(objective, allowed):
        limits = radii(instance, point)
        if limits is not None:
            candidates = [_divided(objective, point, limits, share, allowed, most) for share in SHARES]
            best = min([best, *candidates], key=lambda candidate: _lost(candidate, allowed, most))
        if _lost(best, allowed, most) <= ENOUGH:
            break
    return best


def _divided(
    objective: Objective, point: FloatArray, limits: Radii, share: float, allowed: BoolArray, most: int
) -> Objective:
    """The objective on columns as short as the ridge lets them be where it may take a ``share`` of P(0).

    The limits are those around a model ``point`` (d,).
    """
    room = math.sqrt(2.0 * share * objective.at_zero / (objective.lam * most))
    with np.errstate(all="ignore"):
        times = np.where(limits.size > 0.0, np.ldexp(1.0, np.frexp(room / limits.size)[1] - 1), 1.0)
    # Columns of no model only have to be out of the way.
    times = np.where(allowed, times, powers_near(objective.norms / math.sqrt(objective.n)))
    times = np.where(np.isfinite(times), np.maximum(times, 1.0), 1.0)
    if not np.any(times[allowed] > 1.0):
        return objective
    paid = np.where((times > 1.0) & allowed, (times * limits.size) ** 2, 0.0)
    taken = 0.5 * objective.lam * float(np.sort(paid)[::-1][:most].sum()) * (1.0 + 1e-9)
    ridge_limits = RidgeLimits(point * times, limits._replace(size=limits.size * times), taken, allowed, most)
    return replace(divided(objective, times), ridge_limits=ridge_limits)


def _points(objective: Objective, allowed: BoolArray) -> Iterator[FloatArray]:
    """Models (d,) to look for limits around: the fit on all columns, that on the longest, and the empty one.

    Where all columns together nearly separate the classes the first leaves slopes no room.
    """
    lengths = objective.norms * allowed
    for columns in (allowed, lengths >= math.sqrt(float(np.max(lengths)) * float(np.median(lengths[allowed])))):
        point = fit_on_all(_on(objective, columns))
        if point is not None:
            yield point
    yield np.zeros(objective.d)


def _on(objective: Objective, columns: BoolArray) -> Objective:
    """The objective with columns of zeros in place of the others."""
    AT = np.where(columns[:, None], objective.AT, 0.0)
    AT.flags.writeable = False
    return replace(objective, AT=AT, shared={})


def _lost(objective: Objective, allowed: BoolArray, most: int) -> float:
    """The part of P(0) taken off bounds, for rounding and by the ridge, about; 0 where nothing can be done about it."""
    usable = most > 0 and objective.d <= COLUMNS_UP_TO and bool(np.any(allowed))
    if not (usable and objective.lam > 0.0 and type(objective.loss) in LOSSES and objective.at_zero > 0.0):
        return 0.0
    slopes = np.empty(objective.n)
    with interpreted(objective.n <= MOST_ROWS):
        loss_gradient(objective.row_loss, np.zeros(objective.n), objective.y, slopes)
    products = 3.0 * objective.n * UNIT * float(np.linalg.norm(slopes)) * objective.norms[allowed]
    preparation, reach = objective.preparation, math.sqrt(2.0 * objective.at_zero / objective.lam)
    means = np.zeros(allowed.sum()) if preparation is None else preparation.made.column_error[allowed]
    off = _largest(products, most) ** 2 / (2.0 * objective.lam)
    ridge_limits = objective.ridge_limits
    sizes = reach if ridge_limits is None else np.minimum(reach, ridge_limits.limits.size[allowed])
    off += _largest(means * sizes, most) * math.sqrt(2.0 * objective.at_zero)
    return (off + (0.0 if ridge_limits is None else ridge_limits.taken)) / objective.at_zero


def _largest(parts: FloatArray, many: int) -> float:
    """The length of the ``many`` largest."""
    return float(np.linalg.norm(np.sort(parts)[::-1][:many]))
