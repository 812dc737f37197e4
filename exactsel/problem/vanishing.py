"""Huber and logistic loss without a ridge: searched with one so small that what it does to any model is known.

With lam = 0 the bounds that are made for a ridge have nothing to divide by. But where the fit on all columns exists,
every model with P(x) <= P(0) has |x_j| <= R_j (exactsel_certificates.radii), so for any mu > 0

    P(x)  >=  P(x) + (mu/2) ||x||^2  -  (mu/2) sum_j R_j^2

for all models that count. The problem is searched with the ridge mu, chosen so that the last term is a small part of
P(0), and that term is taken off what is said of it. Columns that no model may hold are taken as zeros, whose
coefficients change nothing, so that they neither separate the classes nor depend on others. A ridge goes by the units
of the columns; without one they are free, so columns are multiplied by powers of two, which rounds nothing, until their
lengths are much alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from exactsel._jit import interpreted
from exactsel.errors import UnsupportedError
from exactsel.kernels.rows import loss_gradient
from exactsel.losses.huber import Huber
from exactsel.problem.objective import MOST_ROWS, Objective, Vanishing
from exactsel.problem.preparing import Preparation
from exactsel.problem.rows import Rows, Unusable, fit_all
from exactsel.problem.separation import refuse_separated
from exactsel.rounding import UNIT
from exactsel.types import FloatArray
from exactsel_certificates.formula import Instance
from exactsel_certificates.prepared import Prepared
from exactsel_certificates.radii import Radii, radii

SHARE = 2e-11
"""Part of P(0) that the small ridge may take off a bound."""

REWEIGHTED = 100
"""Steps of reweighted least squares before Newton's method is tried once more."""

SMALLEST, LARGEST = 1e-50, 900
"""A ridge below the first is none to compute with; none is above 2 to the power of the second."""


def without_ridge(objective: Objective, left_out: Iterable[int] = ()) -> Objective:
    """The objective to search with in place of one of Huber or logistic loss with lam = 0.

    No model may hold the columns ``left_out``.

    Raises
    ------
    InputError
        Where the columns separate the classes, so that there is no best model on all of them.
    UnsupportedError
        Where they are (nearly) dependent, so that nothing limits the coefficients.
    """
    even: FloatArray = np.where(objective.norms > 0.0, np.ldexp(1.0, np.frexp(objective.norms)[1]), 1.0)
    banned = frozenset(map(int, left_out))
    alike = _evened(objective, even, banned)
    if alike.at_zero == 0.0:
        # No model is better than the empty one.
        nothing = Radii(0.0, np.zeros(alike.d))
        return replace(alike, lam=1.0, vanishing=Vanishing(objective, even, np.zeros(alike.d), nothing, 0.0, banned))
    found = _limits(alike)
    if found is None:
        refuse_separated(alike)
        raise UnsupportedError(
            f"lam is 0, but the columns are (nearly) linearly dependent, which leaves coefficients of any size with "
            f"{objective.loss.name} loss; leave out columns that others make up for, or give a positive lam (--lam)."
        )
    point, limits = found
    # Once more, so that coefficients are limited much alike: each then pays its part of what the ridge may cost.
    further: FloatArray = np.where(limits.size > 0.0, np.ldexp(1.0, -np.frexp(limits.size)[1]), 1.0)
    even, point, limits = even * further, point * further, Radii(limits.level, limits.size * further)
    alike = _evened(objective, even, banned)
    square = float(limits.size @ limits.size)
    lam = 1.0  # of columns of zeros alone
    if square > 0.0:
        off = _rounded(alike, point)
        exponent = math.floor(math.log2(max(2.0 * SHARE * alike.at_zero / square, off / math.sqrt(square))))
        lam = math.ldexp(1.0, min(exponent, LARGEST))
    if lam < SMALLEST:
        raise UnsupportedError(
            f"lam is 0, but the columns hardly limit the coefficients of models ({math.sqrt(square):.3g} is the most "
            f"that can be shown); leave out columns that are nearly dependent, or give a positive lam (--lam)."
        )
    taken = 0.5 * lam * square * (1.0 + 1e-9)
    return replace(alike, lam=lam, shared={}, vanishing=Vanishing(objective, even, point, limits, taken, banned))


def _rounded(objective: Objective, point: FloatArray) -> float:
    """What bounds allow for rounding in A'b, about: a ridge mu makes that, squared, over 2 mu of it."""
    slopes = np.empty(objective.n)
    with interpreted(objective.n <= MOST_ROWS):
        loss_gradient(objective.row_loss, point @ objective.AT, objective.y, slopes)
    return 3.0 * objective.n * UNIT * float(np.linalg.norm(slopes) * np.linalg.norm(objective.norms))


def _evened(objective: Objective, even: FloatArray, banned: frozenset[int]) -> Objective:
    """The objective of columns divided by powers of two, and of zeros in place of those banned."""
    made = objective.preparation
    AT: FloatArray = np.ascontiguousarray(objective.AT / even[:, None])
    AT[[*banned]] = 0.0
    AT.flags.writeable = False
    if made is None:
        nothing = np.zeros(len(AT))
        data = Prepared(
            AT, objective.y, None, False, np.zeros((2, len(AT))), (0.0, 0.0), even, nothing, nothing, 0.0, 0.0, 0.0
        )
        prepared = Preparation(objective.AT, objective.y, None, False, False, objective.loss.name, data)
        return replace(objective, AT=AT, preparation=prepared, shared={})
    was = made.made
    data = replace(
        was, AT=AT, scale=was.scale * even, column_error=was.column_error / even, column_rest=was.column_rest / even
    )
    return replace(objective, AT=AT, preparation=replace(made, made=data), shared={})


def _limits(objective: Objective) -> tuple[FloatArray, Radii] | None:
    """About the fit on all columns (d,), and what limits models around it; None where nothing does."""
    if not np.any(objective.norms > 0.0):
        nothing = np.zeros(objective.d)
        limits = radii(_instance(objective), nothing)
        return None if limits is None else (nothing, limits)
    huber = isinstance(objective.loss, Huber)
    for begin in (_at_zero, _reweighted) if huber else (_at_zero,):
        point = _fit(objective, begin)
        limits = None if point is None else radii(_instance(objective), point)
        if point is not None and limits is not None:
            return point, limits
    return None


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


def _instance(objective: Objective) -> Instance:
    return Instance(
        objective.A, objective.y, objective.d, objective.loss.name, 0.0,
        objective.loss_parameters.get("delta", math.inf), weights=objective.weights, intercept=objective.intercept,
    )  # fmt: skip
