"""Validation of coefficient limits: numbers for each column, or some columns named with theirs."""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from exactsel.arguments import entries, shown
from exactsel.errors import InputError, option
from exactsel.problem.read_only import read_only
from exactsel.problem.units import Units
from exactsel.types import FloatArray


def checked_limits(values: ArrayLike, d: int, side: str) -> FloatArray:
    """Limits on one ``side`` of d coefficients, as doubles, read-only; :class:`InputError` where they are none."""
    try:
        limits = np.array(values, dtype=np.float64) + 0.0  # 0 has no sign
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"the {side} bounds are no numbers ({error}); give one for each feature.") from None
    if limits.shape != (d,):
        raise InputError(
            f"the {side} bounds have shape {limits.shape}, but a number for each of {d} features is needed."
        )
    if np.any(np.isnan(limits)):
        raise InputError(f"the {side} bound of feature {int(np.argmax(np.isnan(limits)))} is NaN; give a number.")
    return read_only(limits)


def gains_within(
    lower: FloatArray, upper: FloatArray, lam: float | FloatArray, slopes: FloatArray
) -> FloatArray:  # fmt: skip
    """max of s w - (lam/2) w^2 over the box of each column, to double precision; infinite where nothing limits it."""
    with np.errstate(all="ignore"):
        free = np.where(slopes == 0.0, 0.0, slopes / lam)
        best = np.clip(free, lower, upper)
        gained: FloatArray = np.where(best == 0.0, 0.0, best * (slopes - 0.5 * lam * best))
    return np.where(np.isfinite(gained), np.maximum(gained, 0.0), np.inf)


def largest_size(max_coef: float | None) -> float:
    """How large a coefficient may be; infinite where nothing is said, :class:`InputError` for no positive number."""
    if max_coef is None:
        return math.inf
    number = not isinstance(max_coef, bool | np.bool_) and isinstance(max_coef, numbers.Real)
    if not number or not 0.0 < max_coef <= sys.float_info.max:
        raise InputError(
            f"{option('max_coef')} is {shown(max_coef)}, but a positive, finite number was expected; give the size "
            "that no coefficient may exceed, or leave it out."
        )
    return float(max_coef)


def columns_behind(units: Units) -> Units:
    """The columns themselves: limits concern columns, also where the units of selection are groups or terms."""
    return Units(units.columns, units.column_names) if units.grouped else units


def named_limits(
    columns: Units, bounds: Sequence[tuple[Any, float | None, float | None]]
) -> dict[int, tuple[float, float]]:
    """The limits of each column that is named; :class:`InputError` for entries that are none."""
    by_column: dict[int, tuple[float, float]] = {}
    if isinstance(bounds, Mapping):
        raise InputError(
            "the bounds are a mapping, but a list of triples was expected; write [(feature, lower, upper), ...]."
        )
    for entry in entries("bounds", bounds, "bounds (feature, lower, upper)"):
        try:
            column, low, high = entry
            j = columns.number(column, option("bounds"))
            limits = (-math.inf if low is None else float(low), math.inf if high is None else float(high))
        except InputError:  # a column that is not there
            raise
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(
                f"the bounds hold {entry!r}, but (feature, lower, upper) was expected ({error}); correct it."
            ) from None
        if j in by_column:
            raise InputError(f"the bounds name feature {column!r} twice; name it once.")
        by_column[j] = limits
    return by_column
