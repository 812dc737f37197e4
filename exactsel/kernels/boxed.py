"""Signs and limits of coefficients as a form of the accelerated loop (kernels/apg.py), around the form of the node.

At s = -v_j, v_j the slope of the smooth part, a column takes c_j(s) = max of s w - (lam/2) w^2 over its box off a
bound, where a free one takes s^2 / (2 lam). So q_j becomes 2 lam c_j, which is nowhere larger, and all that is made of
q stays as it is. And a column that may not be negative (positive) moves from max(u, 0) (min(u, 0)) on: the regulariser
grows with the size of every entry, so that is the prox with the sign. That of finite limits stands in
kernels/limited_prox.py. Where groups are chosen (kernels/grouped.py) a group takes what its columns take within their
boxes, added up, and finite limits are in the bound only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from exactsel._jit import choose_by_type, njit
from exactsel.kernels.box import newton_box_refit
from exactsel.kernels.dual import node_bound
from exactsel.kernels.forms import (
    GramForm,
    RowsForm,
    dual_value,
    form_of,
    minimise,
    proven_by,
    prox,
    sizes,
    smooth_value,
    stalled,
    value_ahead,
    write_image,
)
from exactsel.kernels.grouped import GroupedForm, Groups, node_form, unit_sums
from exactsel.kernels.limited_prox import prox_limited
from exactsel.kernels.newton_fit import begin_at_fit
from exactsel.kernels.node import CUT, ILL_CONDITIONED
from exactsel.rounding import UNIT
from exactsel.types import BoolArray, FloatArray, IntArray

OWN = 64 * UNIT
"""What a gain may be off by, relatively: a quotient, two products, a difference that loses at most a bit, and limits
that were rounded twice."""

STALLED = 1e-7
"""Part of what the empty model costs: where the relaxation does not know finite limits, an iteration ends where
bounds rise by less ..."""

LOOKED_AT = 10
"""... in so many steps."""


class Box(NamedTuple):
    """Limits of all columns, each of which is a unit of its own."""

    lower: FloatArray
    """(d,) -inf where there is none."""
    upper: FloatArray
    """(d,)"""
    lam: float
    """The unit of q: the ridge weight of the relaxation, or 1 where it has none."""
    ridge: float
    """The ridge weight, in that unit: 1 or 0."""
    empty: float
    """What the empty model costs."""


class GroupedBox(NamedTuple):
    """Limits of all columns, and the columns of every unit (flat: numba hands threads no tuple that holds tuples)."""

    lower: FloatArray
    upper: FloatArray
    lam: float
    ridge: float
    empty: float
    members: IntArray
    """As in :class:`exactsel.kernels.grouped.Groups`."""
    first: IntArray


class BoxedForm(NamedTuple):
    """A node whose coefficients have limits: the form it would have without, the limits, and room to work in."""

    columns: IntArray
    image_size: int
    first_step: float
    extrapolates: bool
    inner: Any
    box: Any
    """The :class:`Box` or :class:`GroupedBox` of all columns."""
    low: FloatArray
    """(m,) limits of the node's columns."""
    high: FloatArray
    signs: bool
    """Whether all limits are 0 or infinite."""
    slope: FloatArray
    """(m,) of the smooth part, at the point that proves the bound."""
    before: FloatArray
    """(1,) the best bound at the last look."""


@njit
def _boxed_form(inner: Any, box: Any) -> BoxedForm:
    low, high = box.lower[inner.columns], box.upper[inner.columns]
    return BoxedForm(
        inner.columns, inner.image_size, inner.first_step, inner.extrapolates, inner, box, low, high,
        _signs_alone(low, high), np.empty(low.size), np.full(1, -np.inf),
    )  # fmt: skip


@njit
def _signs_alone(low: FloatArray, high: FloatArray) -> bool:
    for i in range(low.size):
        if (low[i] != 0.0 and np.isfinite(low[i])) or (high[i] != 0.0 and np.isfinite(high[i])):
            return False
    return True


@node_form.register(Box)
def _boxed_node_form(groups: Any, data: Any, units: IntArray) -> Any:
    return _boxed_form(form_of(data, units), groups)


@node_form.register(GroupedBox)
def _boxed_grouped_node_form(groups: Any, data: Any, units: IntArray) -> Any:
    return _boxed_form(node_form(Groups(groups.members, groups.first), data, units), groups)


@njit
def box_gain(s: float, lam: float, low: float, high: float) -> float:
    """max of s w - (lam/2) w^2 over low <= w <= high, nearly; inf where it is beyond doubles."""
    if lam == 0.0:
        return s * high if s > 0.0 else s * low if s < 0.0 else 0.0
    w = min(max(s / lam, low), high)
    if w == 0.0:
        return 0.0
    gained = w * (s - 0.5 * lam * w)
    return max(gained, 0.0) if np.isfinite(gained) else np.inf


@njit
def limit_squares(v: FloatArray, box: Any, low: FloatArray, high: FloatArray, q: FloatArray) -> None:
    """Replace q, upper estimates of the squares of slopes v, by 2 lam times what columns gain in their boxes, at most.

    The gain is convex in the slope, so over what the slope may be it is largest at an end.
    """
    lam = box.lam * box.ridge
    for i in range(q.size):
        reach = np.sqrt(q[i]) * (1.0 + 4 * UNIT)
        off = max(reach - abs(v[i]), 0.0) * (1.0 + 4 * UNIT) + 4 * UNIT * abs(v[i])
        most = max(box_gain(-v[i] - off, lam, low[i], high[i]), box_gain(-v[i] + off, lam, low[i], high[i]))
        q[i] = 2.0 * box.lam * most * (1.0 + OWN) if np.isfinite(q[i]) else np.inf


@choose_by_type("form")
def limit_units(form: Any, v: FloatArray, box: Any, low: FloatArray, high: FloatArray, q: FloatArray) -> None:
    """:func:`limit_squares` of what is chosen, columns or groups of them; slopes and limits are of columns."""
    limit_squares(v, box, low, high, q)


@limit_units.register(GroupedForm)
def _limit_groups(form: Any, v: FloatArray, box: Any, low: FloatArray, high: FloatArray, q: FloatArray) -> None:
    limit_squares(v, box, low, high, form.q)
    unit_sums(form.q, form.first, q)


@choose_by_type("form")
def proven_slope(form: Any, image: FloatArray, slope: FloatArray, v: FloatArray) -> None:
    """Write the slope at the point :func:`exactsel.kernels.forms.proven_by` names; ``slope`` is that ahead."""
    v[:] = slope


@proven_slope.register(GramForm)
def _gram_proven_slope(form: Any, image: FloatArray, slope: FloatArray, v: FloatArray) -> None:
    for i in range(v.size):
        v[i] = image[i] - form.b[i]


@choose_by_type("form")
def knows_limits(form: Any) -> bool:
    """Whether the relaxation knows finite limits, and not only its bound."""
    return True


@knows_limits.register(GroupedForm)
def _grouped_knows_limits(form: Any) -> bool:
    return False


@write_image.register(BoxedForm)
def _boxed_image(form: Any, x: FloatArray, image: FloatArray) -> None:
    write_image(form.inner, x, image)


@dual_value.register(BoxedForm)
def _boxed_dual_value(
    loss: Any, form: Any, x: FloatArray, image: FloatArray, ahead: FloatArray, image_ahead: FloatArray, q: FloatArray,
    v: FloatArray,
) -> float:  # fmt: skip
    base = dual_value(loss, form.inner, x, image, ahead, image_ahead, q, v)
    proven_slope(form.inner, image, v, form.slope)
    limit_units(form.inner, form.slope, form.box, form.low, form.high, q)
    return float(base)


@proven_by.register(BoxedForm)
def _boxed_proven_by(form: Any, x: FloatArray, ahead: FloatArray) -> FloatArray:
    point: FloatArray = proven_by(form.inner, x, ahead)
    return point


@smooth_value.register(BoxedForm)
def _boxed_smooth_value(loss: Any, form: Any, x: FloatArray, image: FloatArray) -> float:
    return float(smooth_value(loss, form.inner, x, image))


@value_ahead.register(BoxedForm)
def _boxed_value_ahead(loss: Any, form: Any, base: float, ahead: FloatArray, image_ahead: FloatArray) -> float:
    return float(value_ahead(loss, form.inner, base, ahead, image_ahead))


@prox.register(BoxedForm)
def _boxed_prox(
    form: Any, u: FloatArray, fixed: int, slots: int, weight: float, guess: float, x: FloatArray
) -> tuple[float, float]:
    if not form.signs and knows_limits(form.inner):
        norm, level = prox_limited(u, form.low, form.high, fixed, slots, weight * form.box.ridge, guess, x)
        return norm * form.box.ridge, level
    for i in range(u.size):
        if form.low[i] == 0.0 and u[i] < 0.0:
            u[i] = 0.0
        if form.high[i] == 0.0 and u[i] > 0.0:
            u[i] = 0.0
    norm, level = prox(form.inner, u, fixed, slots, weight, guess, x)
    return norm, level


@sizes.register(BoxedForm)
def _boxed_sizes(form: Any, x: FloatArray) -> FloatArray:
    lengths: FloatArray = sizes(form.inner, x)
    return lengths


@stalled.register(BoxedForm)
def _boxed_stalled(form: Any, best: float, iterations: int) -> bool:
    if form.signs or knows_limits(form.inner) or iterations % LOOKED_AT != 0:
        return False
    if best - form.before[0] <= STALLED * form.box.empty:
        return True
    form.before[0] = best
    return False


@minimise.register(BoxedForm)
def _boxed_minimise(
    loss: Any, form: Any, data: Any, lam: float, x: FloatArray, image: FloatArray, stop_above: float
) -> int:
    status = int(minimise(loss, form.inner, data, lam, x, image, stop_above))
    if status == ILL_CONDITIONED or within(x, form.low, form.high):
        return status
    into_box(x, form.low, form.high)
    if not fit_in_box(loss, form.inner, form.box, lam, x):
        return ILL_CONDITIONED
    write_image(form.inner, x, image)
    return CUT


@begin_at_fit.register(BoxedForm)
def _boxed_begin_at_fit(
    loss: Any, form: Any, lam: float, cutoff: float, stop: BoolArray, x: FloatArray, image: FloatArray,
    costs: FloatArray,
) -> float:  # fmt: skip
    """The fit without limits, if it keeps to them or closes the node; else, about as much work again, that in the box.

    The cost of fixing a unit to 0 is taken from the first; nothing where the second does without it.
    """
    work = float(begin_at_fit(loss, form.inner, lam, cutoff, stop, x, image, costs))
    known = False
    for i in range(costs.size):
        known = known or costs[i] > 0.0
    if stop[0] or not known or within(x, form.low, form.high):
        return work
    into_box(x, form.low, form.high)
    fit_in_box(loss, form.inner, form.box, lam, x)
    write_image(form.inner, x, image)
    size = sizes(form.inner, x)
    for i in range(costs.size):
        if size[i] == 0.0:
            costs[i] = 0.0
    return 2.0 * work


@choose_by_type("form")
def fit_in_box(loss: Any, form: Any, box: Any, lam: float, x: FloatArray) -> bool:
    """Overwrite a model in the box by the best one on the columns of a form; False where that fails.

    Not served from the Gram matrix: such nodes are solved from the data (bounds/boxed.py).
    """
    return False


@fit_in_box.register(RowsForm)
def _rows_fit_in_box(loss: Any, form: Any, box: Any, lam: float, x: FloatArray) -> bool:
    value = newton_box_refit(loss, form.AT, form.y, lam, box.lower, box.upper, form.columns, x)
    return bool(np.isfinite(value))


@fit_in_box.register(GroupedForm)
def _grouped_fit_in_box(loss: Any, form: Any, box: Any, lam: float, x: FloatArray) -> bool:
    return bool(fit_in_box(loss, form.inner, box, lam, x))


@njit
def within(x: FloatArray, low: FloatArray, high: FloatArray) -> bool:
    """Whether coefficients keep to limits."""
    for i in range(x.size):  # noqa: SIM110  (a generator would be compiled)
        if not low[i] <= x[i] <= high[i]:
            return False
    return True


@njit
def into_box(x: FloatArray, low: FloatArray, high: FloatArray) -> None:
    """Move each coefficient to the nearest value within its limits, one that is none to zero."""
    for i in range(x.size):
        x[i] = min(max(x[i], low[i]), high[i]) if np.isfinite(x[i]) else 0.0


@njit
def solved_bound(loss: Any, data: Any, groups: Any, lam: float, units: IntArray, point: FloatArray) -> float:
    """The bound of all models on some units that a model (columns,) of them proves."""
    form = node_form(groups, data, units)
    x, image, q, slope = point[form.columns], np.empty(form.image_size), np.empty(units.size), np.empty(point.size)
    write_image(form, x, image)
    base = dual_value(loss, form, x, image, x, image, q, slope[: x.size])
    return float(node_bound(base, q, units.size, 0, lam, np.empty(1)))
