"""Limits of coefficients as a form: what accelerated proximal gradient (kernels/apg.py) then does otherwise.

At s = -v_j, v_j the slope of the smooth part, a column takes c_j(s) = max of s w - (lam/2) w^2 over its box off a
bound, where a free one takes s^2 / (2 lam). So q_j becomes 2 lam c_j, which is nowhere larger, and all that is made of
q stays as it is. And a column that may not be negative (positive) moves from max(u, 0) (min(u, 0)) on: the regulariser
grows with the size of every entry, so that is the prox with the sign. Finite limits are in the bound only. Where groups
are chosen (kernels/grouped.py) a group takes what its columns take within their boxes, added up.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from exactsel._jit import choose_by_type, njit
from exactsel.kernels.forms import GramForm
from exactsel.kernels.grouped import GroupedForm, unit_sums
from exactsel.rounding import UNIT
from exactsel.types import FloatArray, IntArray

OWN = 64 * UNIT
"""What a gain may be off by, relatively: a quotient, two products, a difference that loses at most a bit, and limits
that were rounded twice."""

STALLED = 1e-7
"""Part of what the empty model costs: with finite limits, which the relaxation does not know, an iteration ends where
bounds rise by less ..."""

LOOKED_AT = 10
"""... in so many steps."""


@njit
def box_gain(s: float, lam: float, low: float, high: float) -> float:
    """max of s w - (lam/2) w^2 over low <= w <= high, nearly; inf where it is beyond doubles."""
    w = min(max(s / lam, low), high)
    if w == 0.0:
        return 0.0
    gained = w * (s - 0.5 * lam * w)
    return max(gained, 0.0) if np.isfinite(gained) else np.inf


@njit
def column_squares(v: FloatArray, lam: float, low: FloatArray, high: FloatArray, q: FloatArray) -> None:
    """Replace q, upper estimates of the squares of slopes v, by 2 lam times what columns gain in their boxes, at most.

    The gain is convex in the slope, so over what the slope may be it is largest at an end.
    """
    for i in range(q.size):
        reach = np.sqrt(q[i]) * (1.0 + 4 * UNIT)
        off = max(reach - abs(v[i]), 0.0) * (1.0 + 4 * UNIT) + 4 * UNIT * abs(v[i])
        most = max(box_gain(-v[i] - off, lam, low[i], high[i]), box_gain(-v[i] + off, lam, low[i], high[i]))
        q[i] = 2.0 * lam * most * (1.0 + OWN) if np.isfinite(q[i]) else np.inf


@choose_by_type("form")
def limit_units(form: Any, v: FloatArray, lam: float, low: FloatArray, high: FloatArray, q: FloatArray) -> None:
    """What columns gain, of what is chosen, columns or groups of them; slopes and limits are of columns."""
    column_squares(v, lam, low, high, q)


@limit_units.register(GroupedForm)
def _limit_groups(form: Any, v: FloatArray, lam: float, low: FloatArray, high: FloatArray, q: FloatArray) -> None:
    column_squares(v, lam, low, high, form.q)
    unit_sums(form.q, form.first, q)


@choose_by_type("form")
def proven_slope(form: Any, image: FloatArray, slope: FloatArray, v: FloatArray) -> None:
    """Write the slope at the point :func:`exactsel.kernels.forms.proven_by` names; ``slope`` is that ahead."""
    v[:] = slope


@proven_slope.register(GramForm)
def _gram_proven_slope(form: Any, image: FloatArray, slope: FloatArray, v: FloatArray) -> None:
    for i in range(v.size):
        v[i] = image[i] - form.b[i]


@njit
def _signs_alone(low: FloatArray, high: FloatArray) -> bool:
    """Whether all limits are 0 or infinite, so that the relaxation knows them all."""
    for i in range(low.size):
        if (low[i] != 0.0 and np.isfinite(low[i])) or (high[i] != 0.0 and np.isfinite(high[i])):
            return False
    return True


class Box(NamedTuple):
    """Limits of coefficients, as a relaxation takes them."""

    lower: FloatArray
    """(columns,) at most 0."""
    upper: FloatArray
    """(columns,) at least 0."""
    empty: float
    """What the empty model costs."""


class NodeBox(NamedTuple):
    """The limits of the columns of a node."""

    low: FloatArray
    high: FloatArray
    empty: float
    signs: bool
    """Whether all are 0 or infinite, so that the relaxation knows them all."""
    slope: FloatArray
    """Room for one number a column."""


@choose_by_type("box")
def node_box(box: Any, columns: IntArray) -> Any:
    """The limits of some columns; None where there are none."""
    return None


@node_box.register(Box)
def _node_box(box: Any, columns: IntArray) -> Any:
    low, high = box.lower[columns], box.upper[columns]
    return NodeBox(low, high, box.empty, _signs_alone(low, high), np.empty(columns.size))


@choose_by_type("box")
def limit_squares(box: Any, form: Any, image: FloatArray, slope: FloatArray, lam: float, q: FloatArray) -> None:
    """Replace q by what units gain within limits; ``slope`` is that ahead."""


@limit_squares.register(NodeBox)
def _limit_squares(box: Any, form: Any, image: FloatArray, slope: FloatArray, lam: float, q: FloatArray) -> None:
    proven_slope(form, image, slope, box.slope)
    limit_units(form, box.slope, lam, box.low, box.high, q)


@choose_by_type("box")
def ends_early(box: Any, iterations: int, best: float, before: FloatArray) -> bool:
    """Whether bounds have risen too little since this was last looked at, when they were ``before``."""
    return False


@ends_early.register(NodeBox)
def _ends_early(box: Any, iterations: int, best: float, before: FloatArray) -> bool:
    if box.signs or iterations % LOOKED_AT != 0:
        return False
    stalled = best - before[0] <= STALLED * box.empty
    before[0] = best
    return bool(stalled)


@choose_by_type("box")
def into_signs(box: Any, u: FloatArray) -> None:
    """Move coefficients that have a sign to where they may be, ahead of a prox."""


@into_signs.register(NodeBox)
def _into_signs(box: Any, u: FloatArray) -> None:
    for i in range(u.size):
        if box.low[i] == 0.0:
            u[i] = max(u[i], 0.0)
        if box.high[i] == 0.0:
            u[i] = min(u[i], 0.0)
