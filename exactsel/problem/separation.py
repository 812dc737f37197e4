"""Separation: columns with which predictions of the right sign can grow for ever, so that no model is best.

With logistic loss, and no ridge, the objective of a support has no minimiser where some direction w on its columns (and
the intercept) has y_i (a_i'w + c) >= 0 on all rows, not 0 on all of them: along w it only falls. Where the sign is
strict on all rows the separation is complete, and else quasi-complete: the rows where it is strict can then be fitted
as well as one likes, the others as before. Such a w is found by a linear program (Albert, Anderson: On the existence of
maximum likelihood estimates in logistic regression models, Biometrika 1984; Konis 2007). With Poisson loss it is a
direction that leaves rows of positive counts as they are, and on which predictions of rows whose counts are 0 fall.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from exactsel.errors import InputError, option
from exactsel.losses.logistic import Logistic
from exactsel.losses.poisson import Poisson
from exactsel.problem.objective import Objective
from exactsel.types import BoolArray, FloatArray, IntArray

STRICT = 1e-6
"""A row counts as on the right side where its prediction is more than this part of what it may be (and NOISE)."""

NOISE = 2e-15
"""Part of what is added up in a prediction that rounding may make of it."""

LARGE = 1e6
"""Coefficients (of columns of size one) that suffice where the solver does not converge without a limit."""

TO_BE_DROPPED = 60
"""Columns of a direction up to which those it does not need are looked for one by one."""

SHOWN = 8
"""Columns listed one by one."""


class Separation(NamedTuple):
    """Columns that separate rows, and the rows on the right side of their direction, not on its border."""

    columns: IntArray
    strict: BoolArray
    """(n,)"""

    @property
    def complete(self) -> bool:
        """Whether no row lies on the border."""
        return bool(np.all(self.strict))


def separation(objective: Objective, columns: Sequence[int] | IntArray) -> Separation | None:
    """How some columns of a problem with logistic or Poisson loss separate its rows, by few of them; None where they
    do not.
    """
    witness = _direction(objective, np.asarray(columns, dtype=np.int64))
    if witness is None:
        return None
    used = witness.columns
    if used.size <= TO_BE_DROPPED:
        for j in used.tolist():
            fewer = _direction(objective, used[used != j]) if j in used else None
            if fewer is not None:
                witness, used = fewer, fewer.columns
    return witness


def _direction(objective: Objective, columns: IntArray) -> Separation | None:
    """A direction on these columns that as many rows as possible are strictly on the right side of."""
    from scipy.optimize import linprog  # a second to load, and hardly ever needed

    signs, fixed = _sides(objective)
    rows = objective.AT[columns] * signs
    largest = np.max(np.abs(rows), axis=1, initial=0.0)
    candidates = columns[largest > 0]
    rows = rows[largest > 0] / largest[largest > 0, None]
    if objective.intercept:
        rows = np.vstack([rows, signs])
    if not len(rows):
        return None
    m, n = rows.shape
    # Maximise the sum of s with s <= y (Aw + c), 0 <= s <= 1: without bounds on w nothing is lost but scale.
    upper = np.hstack([-rows.T, np.eye(n)])
    cost = np.concatenate([np.zeros(m), -np.ones(n)])
    level = np.hstack([rows.T, np.zeros((n, n))])[fixed]
    equal = {"A_eq": level, "b_eq": np.zeros(len(level))} if len(level) else {}
    for most in (None, LARGE):
        free = (None, None) if most is None else (-most, most)
        answer = linprog(cost, A_ub=upper, b_ub=np.zeros(n), bounds=[free] * m + [(0.0, 1.0)] * n, method="highs-ds",
                         **equal)  # fmt: skip
        if answer.x is not None:
            break
    if answer.x is None or not -answer.fun > STRICT:
        return None
    w = answer.x[:m]
    least = np.maximum(STRICT, NOISE * (np.abs(w) @ np.abs(rows)))
    strict = w @ rows > least
    included = np.abs(w[: candidates.size]) > 1e-9 * float(np.max(np.abs(w), initial=0.0))
    # Of columns that are nearly multiples of each other coefficients are so large that others seem to be none.
    alone = np.where(np.concatenate([included, np.ones(m - candidates.size, np.bool_)]), w, 0.0) @ rows
    if np.any((alone > least) != strict) or np.any(alone < -least) or np.any(np.abs(alone) > least, where=fixed):
        included = w[: candidates.size] != 0
    return Separation(candidates[included], strict) if np.any(strict) else None


def _sides(objective: Objective) -> tuple[FloatArray, BoolArray]:
    """Signs (n,) of the side of every row, and the rows (n,) whose predictions have to stay as they are."""
    if isinstance(objective.loss, Logistic):
        return objective.y, np.zeros(objective.n, dtype=np.bool_)
    fixed = objective.y > 0.0
    return np.where(fixed, 1.0, -1.0), fixed


def refuse_separated(objective: Objective, columns: IntArray, in_a_model: Callable[[IntArray], bool]) -> None:
    """:class:`InputError` where of some columns those of one model are found to separate the classes completely.

    That columns do which no model has together does no harm. Where they do so quasi-completely another model may be
    better than all on these columns.
    """
    if not isinstance(objective.loss, Logistic | Poisson):
        return
    witness, counts = separation(objective, columns), isinstance(objective.loss, Poisson)
    if witness is not None and (witness.complete or counts) and in_a_model(witness.columns):
        raise InputError(sentence_on_counts(witness) if counts else sentence(witness, objective.n))


def _named(witness: Separation, called: Sequence[str] | None = None) -> str:
    numbers = witness.columns[:SHOWN].tolist()
    names = ", ".join(str(j) if called is None else called[j] for j in numbers)
    more = f" and {witness.columns.size - SHOWN} more" if witness.columns.size > SHOWN else ""
    if not witness.columns.size:
        return "the intercept"
    return f"feature {names}" if witness.columns.size == 1 else f"features {names}{more}"


def sentence_on_counts(witness: Separation) -> str:
    """What was found with Poisson loss, for people."""
    rows = np.count_nonzero(witness.strict)
    what, verb = _named(witness), "tells" if witness.columns.size <= 1 else "tell"
    return (
        f"lam is 0, but {what} {verb} {rows} row{'s' if rows > 1 else ''} apart whose counts are 0, so that the "
        f"smaller the means there the better, and no model is best; give a positive {option('lam')}, or leave out such "
        f"features."
    )


def sentence(witness: Separation, n: int, called: Sequence[str] | None = None) -> str:
    """What was found with logistic loss, for people; with what columns are called, where they have names."""
    what = _named(witness, called)
    one = witness.columns.size <= 1
    if witness.complete:
        how = f"separate{'s' if one else ''} the two classes completely"
    else:
        how = (
            f"separate{'s' if one else ''} the two classes quasi-completely ({np.count_nonzero(witness.strict)} of {n} "
            f"rows can be told for certain)"
        )
    return (
        f"lam is 0, but {what} {how}, so that the larger the coefficients the better, and no model is best; give a "
        f"positive {option('lam')}, or leave out such features."
    )
