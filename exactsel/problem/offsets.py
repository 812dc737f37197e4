"""Offsets: what is known of a row's prediction beforehand, put into the data.

A model then predicts z + o for a row with the offset o. For losses of the residual z - y (quadratic, Huber)
that is the target y - o. For Poisson loss, where o is the logarithm of an exposure E, it is the rate y / E with the
weight E:

    E ( exp(z) - (y/E) z + (y/E) log(y/E) - y/E )  =  exp(z + o) - y (z + o) + y log y - y,

the same number. For losses of labels neither will do: each row would need a loss of its own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from exactsel import registry
from exactsel.errors import InputError, UnsupportedError, option
from exactsel.types import FloatArray

if TYPE_CHECKING:
    from exactsel.losses.base import Loss
    from exactsel.problem.objective import Objective
    from exactsel.problem.regression import Problem

LARGEST = 60.0
"""Size of the offsets that Poisson loss takes: exposures are weights, which have limits."""


def checked_offset(offset: ArrayLike, rows: int) -> FloatArray:
    """An offset (rows,) as floats; :class:`InputError` where it cannot be used."""
    try:
        o = np.array(offset, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        raise InputError("the offset is not numeric; give one number per row.") from None
    if o.size != rows:
        raise InputError(f"the offset holds {o.size} numbers, but there are {rows} rows; give one number per row.")
    if not np.all(np.isfinite(o)):
        raise InputError("the offset holds NaN or infinite values; give a finite number per row.")
    return o


def has_offset(objective: Objective) -> bool:
    """Whether predictions have an offset: one that is kept, or the exposures of Poisson loss."""
    preparation = objective.preparation
    return objective.offset is not None or (preparation is not None and preparation.exposure is not None)


def knowing(problem: Problem, offset: ArrayLike | None) -> Problem:
    """The problem, which knows what has been taken off its target; itself where that is nothing."""
    if offset is None or problem.loss.name == "poisson":
        return problem
    o, objective = checked_offset(offset, problem.n), problem.objective
    before = None if objective.before is None else replace(objective.before, offset=o)
    known = replace(objective.free, offset=o, before=before).within(objective.coefficient_bounds)
    return problem.of(known, problem.units, problem.k)


def with_offset(
    loss: str | Loss, y: FloatArray, weights: FloatArray | None, offset: ArrayLike, scale: bool = False
) -> tuple[Any, Any, Any]:
    """The target, the weights and the exposures (None but for Poisson loss) that stand for an offset.

    Parameters
    ----------
    loss : str or Loss
        A name or an object. A loss of the residual z - y says so by ``of_residuals = True``.
    y, weights : array (n,)
        As given; weights may be None.
    offset : array (n,)
        Finite, in units of predictions.
    scale : bool
        Whether columns are to be scaled.

    Raises
    ------
    InputError
        For an offset that does not fit the rows.
    UnsupportedError
        For another loss, and for scaled columns with Poisson loss: exposures, as weights, would count in their sizes.
    """
    o = checked_offset(offset, y.size)
    kind = registry.load("losses", loss) if isinstance(loss, str) else type(loss)
    if getattr(kind, "of_residuals", False):
        return y - o, weights, None
    if kind.name != "poisson":
        raise UnsupportedError(
            f"{kind.name} loss takes no offset: it cannot be put into the target or the weights, and each row would "
            f"need a loss of its own; leave it out, or give it as a feature, which gets a coefficient."
        )
    if scale:
        raise UnsupportedError(
            f"{option('standardize')} does not go with an offset of poisson loss, whose exposures would count as "
            "weights "
            "in the sizes of the features; leave it out, or scale the columns of the table."
        )
    if np.max(np.abs(o)) > LARGEST:
        raise InputError(
            f"the offset goes up to {np.max(np.abs(o)):g} in size, but {LARGEST:g} is the most for poisson loss; it is "
            f"the logarithm of the exposure, so give log(E), or change the unit of E."
        )
    exposure = np.exp(o)
    return y / exposure, exposure if weights is None else weights * exposure, exposure
