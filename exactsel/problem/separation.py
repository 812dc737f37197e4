"""Separation: columns with which predictions of the right sign can grow for ever, so that no model is best.

With logistic loss, and no ridge, the objective of a support has no minimiser where some direction w on its columns (and
the intercept) has y_i (a_i'w + c) >= 0 on all rows, not 0 on all of them: along w it only falls. Where the sign is
strict on all rows the separation is complete, and else quasi-complete: the rows where it is strict can then be fitted
as well as one likes, the others as before. Such a w is found by a linear program (Albert, Anderson: On the existence of
maximum likelihood estimates in logistic regression models, Biometrika 1984; Konis 2007).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from exactsel.errors import InputError
from exactsel.losses.logistic import Logistic
from exactsel.problem.objective import Objective
from exactsel.types import BoolArray, IntArray

STRICT = 1e-6
"""A row counts as on the right side where its prediction is more than this part of what it may be (and NOISE)."""

NOISE = 2e-15
"""Part of what is added up in a prediction that rounding may make of it."""

LARGE = 1e6
"""Coefficients (of columns of size one) that are enough where the solver comes to no end without a limit."""

TO_BE_DROPPED = 60
"""Columns of a direction up to which those it does not need are looked for one by one."""

SHOWN = 8
"""Columns told one by one."""


class Separation(NamedTuple):
    """Columns that separate the classes, and the rows on the right side of their direction, not on its border."""

    columns: IntArray
    strict: BoolArray
    """(n,)"""

    @property
    def complete(self) -> bool:
        """Whether no row lies on the border."""
        return bool(np.all(self.strict))


def separation(objective: Objective, columns: Sequence[int] | IntArray) -> Separation | None:
    """How some columns of a problem with logistic loss separate its classes, by few of them; None where they do not."""
    found = _direction(objective, np.asarray(columns, dtype=np.int64))
    if found is None:
        return None
    used = found.columns
    if used.size <= TO_BE_DROPPED:
        for j in used.tolist():
            fewer = _direction(objective, used[used != j]) if j in used else None
            if fewer is not None:
                found, used = fewer, fewer.columns
    return found


def _direction(objective: Objective, columns: IntArray) -> Separation | None:
    """A direction on these columns that as many rows as possible are strictly on the right side of."""
    from scipy.optimize import linprog  # a second to load, and hardly ever needed

    rows = objective.AT[columns] * objective.y
    largest = np.max(np.abs(rows), axis=1, initial=0.0)
    kept = columns[largest > 0]
    rows = rows[largest > 0] / largest[largest > 0, None]
    if objective.intercept:
        rows = np.vstack([rows, objective.y])
    if not len(rows):
        return None
    m, n = rows.shape
    # Maximise the sum of s with s <= y (Aw + c), 0 <= s <= 1: without bounds on w nothing is lost but scale.
    upper = np.hstack([-rows.T, np.eye(n)])
    cost = np.concatenate([np.zeros(m), -np.ones(n)])
    for most in (None, LARGE):
        free = (None, None) if most is None else (-most, most)
        answer = linprog(cost, A_ub=upper, b_ub=np.zeros(n), bounds=[free] * m + [(0.0, 1.0)] * n, method="highs-ds")
        if answer.x is not None:
            break
    if answer.x is None or not -answer.fun > STRICT:
        return None
    w = answer.x[:m]
    least = np.maximum(STRICT, NOISE * (np.abs(w) @ np.abs(rows)))
    strict = w @ rows > least
    inside = np.abs(w[: kept.size]) > 1e-9 * float(np.max(np.abs(w), initial=0.0))
    # Of columns that are nearly multiples of each other coefficients are so large that others seem to be none.
    alone = np.where(np.concatenate([inside, np.ones(m - kept.size, np.bool_)]), w, 0.0) @ rows
    if np.any((alone > least) != strict) or np.any(alone < -least):
        inside = w[: kept.size] != 0
    return Separation(kept[inside], strict) if np.any(strict) else None


def refuse_separated(objective: Objective) -> None:
    """:class:`InputError` where all columns together separate the classes; those of zeros alone do not count."""
    if not isinstance(objective.loss, Logistic):
        return
    found = separation(objective, np.arange(objective.d))
    if found is not None:
        raise InputError(sentence(found, objective.n))


def sentence(found: Separation, n: int) -> str:
    """What was found, for people."""
    names = ", ".join(map(str, found.columns[:SHOWN].tolist()))
    more = f" and {found.columns.size - SHOWN} more" if found.columns.size > SHOWN else ""
    what = f"column {names}" if found.columns.size == 1 else f"columns {names}{more}"
    if not found.columns.size:
        what = "the intercept"
    one = found.columns.size <= 1
    if found.complete:
        how = f"separate{'s' if one else ''} the two classes completely"
    else:
        how = (
            f"separate{'s' if one else ''} the two classes quasi-completely ({np.count_nonzero(found.strict)} of {n} "
            f"rows can be told for certain)"
        )
    return (
        f"lam is 0, but {what} {how}, so that the larger the coefficients the better, and no model is best; give a "
        f"positive lam (--lam), or leave out such columns."
    )
