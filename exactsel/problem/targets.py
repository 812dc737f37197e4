"""Targets that least squares are not made for: two classes, and counts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from exactsel.errors import either, option
from exactsel.problem.design import DesignColumns
from exactsel.types import FloatArray

LEAST_ROWS = 5
"""Fewer rows say nothing of what the target is."""

LOOKED_AT = 10
"""Columns with the target's sum that are compared with it, of data that are not held as a table."""

LARGEST_MEAN = 10.0
"""Of counts: with a larger mean least squares are a fair approximation, and whole numbers may be anything."""

LEAST_SPREAD = 0.7
"""Of counts: the variance, in means. Counts vary by about their mean or more, grades and ratings by less."""


class Hint(NamedTuple):
    """What the target looks like, and the loss that is made for it."""

    found: str
    loss: str
    lam: float
    """The ridge weight to begin with: none, as in R; where that will not do, a sentence names a small one."""
    recode: bool = False
    """Whether the two values must be written as 0 and 1 before."""

    @property
    def advice(self) -> str:
        """What to do about it."""
        first = "write them as 0 and 1 and give" if self.recode else "give"
        other = f"{option('loss', self.loss)}{either(',', '')} {option('lam', self.lam)}"
        return f"{self.found}, but the loss is quadratic; {first} {other}, or {option('loss', 'quadratic')} to keep it."


def better_loss(y: ArrayLike | None) -> Hint | None:
    """A hint where a target (n,) of numbers is one of two classes, or of counts; None for any other."""
    values = np.asarray(y)
    if values.dtype.kind not in "biuf" or values.ndim != 1 or values.size < LEAST_ROWS or not np.isfinite(values).all():
        return None
    distinct = np.unique(values)
    if distinct.size == 2:
        low, high = distinct.tolist()
        is_coded = (low, high) in ((0, 1), (-1, 1))
        return Hint(f"the target holds two values, {low:g} and {high:g}", "logistic", 0.0, recode=not is_coded)
    repeated = 2 * distinct.size <= values.size
    counts = distinct.size > 2 and repeated and distinct[0] == 0 and bool(np.all(distinct == np.floor(distinct)))
    mean = float(np.mean(values))
    if not counts or mean > LARGEST_MEAN or float(np.var(values)) < LEAST_SPREAD * mean:
        return None
    return Hint(f"the target holds counts, whole numbers from 0 to {distinct[-1]:g}", "poisson", 0.0)


def copies_of(y: object, AT: FloatArray | DesignColumns) -> list[int]:
    """Numbers of the columns, rows of AT (d, n), that are the target y (n,) itself; none where y has one value."""
    target = np.asarray(y)
    if target.dtype.kind not in "biuf" or target.shape != AT.shape[1:] or target.size < LEAST_ROWS:
        return []
    if not np.any(target != target[0]):
        return []
    if isinstance(AT, DesignColumns):
        alike = (AT.counts >= np.count_nonzero(target)) & (AT.summary.totals == target.sum())
        return [int(j) for j in np.flatnonzero(alike)[:LOOKED_AT] if np.array_equal(AT.as_given[int(j)], target)]
    return [int(j) for j in np.flatnonzero(AT[:, 0] == target[0]) if np.array_equal(AT[j], target)]


def advice_on_copies(names: list[str]) -> str:
    """What to do about columns that are the target."""
    several = len(names) > 1
    return (
        f"feature{'s' * several} {', '.join(names)} hold{'' if several else 's'} the same numbers as the target, so "
        f"{'they predict' if several else 'it predicts'} it without an error; if that is not meant, leave "
        f"{'them' if several else 'it'} out."
    )
