"""Linear equalities on coefficients, Cx = c in the units of the features as given, for quadratic loss.

What is searched is the problem with the rows t_i C_i and the targets t_i c_i appended, which is a relaxation for every
t (:mod:`exactsel_certificates.equalities`): all bounds of the ordinary problem hold. Models are fitted with the
equalities (:mod:`exactsel.problem.equality_fit`), and what they cost is their objective.

The relaxation of a support S costs at least R / (1 + R) times what its best admissible model does, where for one
equality R = t^2 C_S H^-1 C_S' with the Hessian H of the support. That is at least t^2 C_j^2 / H_jj for each j in S, so
t is chosen to make the smallest of these :data:`CLOSE`.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from exactsel.arguments import shown
from exactsel.errors import InputError, UnsupportedError, option
from exactsel.problem.objective import Objective
from exactsel.problem.preparing import Preparation
from exactsel.problem.units import Units
from exactsel.types import FloatArray
from exactsel_certificates.equalities import LARGEST, Equalities, appended, check_equalities, fine, independent
from exactsel_certificates.prepared import Prepared

CLOSE = 4.0**10
"""R, about: a relaxed support costs at most a part 1 / R less than its best admissible model.

Of 136 awkward small cases and 20 portfolios 90 and 4 end within 1e-6 with 4^8, 125 and 20 with 4^10, 111 and 20 with
4^12 (in four times the nodes), 100 and 16 with 4^14: rounding then takes more than the relaxation.
"""


def named_equalities(
    columns: Units, equalities: Sequence[tuple[Any, float]] = (), sum_to: float | None = None
) -> tuple[FloatArray, FloatArray] | None:
    """C (m, columns) and c (m,) of the equalities that are named, none of which follows from others; None for none.

    Raises
    ------
    InputError
        For equalities that are none, name a feature that is not there, or contradict each other.
    """
    named = list(_entries(equalities))
    rows = [_row(columns, terms) for terms, _ in named]
    right = [_number(value, "a right-hand side of the equalities") for _, value in named]
    if sum_to is not None:
        rows.append(np.ones(columns.d))
        right.append(_number(sum_to, option("sum_to")))
    if not rows:
        return None
    try:
        basis = independent(rows, right)
    except ValueError as error:
        raise InputError(str(error)) from None
    return np.array([rows[i] for i in basis]), np.array([right[i] for i in basis])


def _entries(equalities: object) -> Iterable[tuple[Any, Any]]:
    """Pairs of terms and right-hand side."""
    if isinstance(equalities, str | Mapping) or not isinstance(equalities, Iterable):
        raise InputError(
            f"the equalities are {shown(equalities)}, but a list of pairs was expected; write "
            '[({"a": 1, "b": 1}, 1.0)] for a + b = 1.'
        )
    for entry in equalities:
        if not (isinstance(entry, tuple | list) and len(entry) == 2 and isinstance(entry[0], Mapping)):
            raise InputError(
                f"the equalities hold {shown(entry)}, but a pair of terms and right-hand side was expected; write "
                '({"a": 1, "b": 1}, 1.0) for a + b = 1.'
            )
        yield entry[0], entry[1]


def _row(columns: Units, terms: Mapping[Any, Any]) -> FloatArray:
    row, seen = np.zeros(columns.d), set[int]()
    for name, value in terms.items():
        j = columns.number(name, option("equalities"))
        if j in seen:
            raise InputError(f"an equality names feature {shown(name)} twice; name it once.")
        seen.add(j)
        row[j] = _number(value, "a number of the equalities")
    if not np.any(row):
        raise InputError("an equality holds no coefficient; leave it out, or give its features numbers other than 0.")
    return row


def _number(value: float, what: str) -> float:
    number = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
    # Comparisons of whole numbers of any size are exact; a conversion may overflow.
    if not number or not abs(value) <= LARGEST or not fine(float(value)):
        raise InputError(f"{what} is {shown(value)}, but 0 or a number between 1e-60 and 1e60 in size was expected.")
    return float(value) + 0.0


def with_equalities(
    objective: Objective, rows: FloatArray, right: FloatArray, sizes: FloatArray | None = None
) -> Objective:
    """The objective as given with the rows of the equalities appended, times ``sizes`` where these are known.

    Raises
    ------
    UnsupportedError
        For another loss than the quadratic one, and for data that are not held as a table.
    """
    before = objective.before or objective
    if not before.is_quadratic:
        raise UnsupportedError(f"equalities go with quadratic loss, but the loss is {before.loss.name}; leave one out.")
    if before.on_demand:
        raise UnsupportedError(
            "equalities go with data that are held as a table, but these stay sparse or in their file; keep fewer "
            "features, or leave the equalities out."
        )
    if before.reduction is not None:
        raise UnsupportedError("equalities need the rows themselves, but these have been reduced; give all rows.")
    preparation = before.preparation or _unprepared(before)
    preparation.made.AT.flags.writeable = False
    equalities = Equalities(rows, right, _sizes(before, preparation, rows) if sizes is None else sizes)
    try:
        check_equalities(equalities, before.d)
    except ValueError:
        raise InputError(
            "numbers of the equalities and of the features are too far apart in size; give both in other units."
        ) from None
    data = appended(preparation.made, equalities)
    return replace(
        before, AT=data.AT, y=data.y, preparation=replace(preparation, made=data), equalities=equalities, shared={}
    )  # fmt: skip


def _unprepared(objective: Objective) -> Preparation:
    """The preparation of data to which nothing has been done."""
    nothing = np.zeros(objective.d)
    data = Prepared(
        objective.AT, objective.y, None, False, np.zeros((2, objective.d)), (0.0, 0.0), np.ones(objective.d), nothing,
        nothing, 0.0, 0.0, 0.0,
    )  # fmt: skip
    return Preparation(objective.AT, objective.y, None, False, False, objective.loss.name, data)


def _sizes(objective: Objective, preparation: Preparation, rows: FloatArray) -> FloatArray:
    """The powers of two t by which the rows are multiplied."""
    lengths = np.sqrt(objective.norms**2 + objective.lam) * preparation.scale
    sizes = np.ones(len(rows))
    for i, row in enumerate(rows):
        used = row != 0.0
        longest = float(np.max(lengths[used] / np.abs(row[used])))
        if longest > 0.0:
            sizes[i] = math.ldexp(1.0, math.frexp(math.sqrt(CLOSE) * longest)[1])
    return sizes
