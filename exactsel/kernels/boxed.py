"""Accelerated proximal gradient where coefficients have signs or limits: kernels/apg.py, with two things changed.

At s = -v_j, v_j the slope of the smooth part, a column takes c_j(s) = max of s w - (lam/2) w^2 over its box off a
bound, where a free one takes s^2 / (2 lam). So q_j becomes 2 lam c_j, which is nowhere larger, and all that is made of
q stays as it is. And a column that may not be negative (positive) moves from max(u, 0) (min(u, 0)) on: the regulariser
grows with the size of every entry, so that is the prox with the sign. Finite limits are in the bound only. Where groups
are chosen (kernels/grouped.py) a group takes what its columns take within their boxes, added up.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exactsel._jit import choose_by_type, njit, prange
from exactsel.kernels.apg import Rules, forget_worse_start, overshoots, settled, turns_back, write_point
from exactsel.kernels.dual import node_bound
from exactsel.kernels.forms import (
    GramForm,
    dual_value,
    proven_by,
    prox,
    sizes,
    smooth_value,
    value_ahead,
    write_image,
)
from exactsel.kernels.grouped import GroupedForm, node_form, unit_sums
from exactsel.kernels.linalg import extrapolate
from exactsel.kernels.node import UNFINISHED, Answers, node_columns, write_relaxed
from exactsel.rounding import UNIT
from exactsel.types import BoolArray, FloatArray, StateArray

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
def limit_squares(v: FloatArray, lam: float, low: FloatArray, high: FloatArray, q: FloatArray) -> None:
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
    """:func:`limit_squares` of what is chosen, columns or groups of them; slopes and limits are of columns."""
    limit_squares(v, lam, low, high, q)


@limit_units.register(GroupedForm)
def _limit_groups(form: Any, v: FloatArray, lam: float, low: FloatArray, high: FloatArray, q: FloatArray) -> None:
    limit_squares(v, lam, low, high, form.q)
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
def _into_signs(u: FloatArray, low: FloatArray, high: FloatArray) -> None:
    for i in range(u.size):
        if low[i] == 0.0:
            u[i] = max(u[i], 0.0)
        if high[i] == 0.0:
            u[i] = min(u[i], 0.0)


@njit
def relax_boxed_node(
    loss: Any, data: Any, groups: Any, lam: float, k: int, rules: Rules, lower: FloatArray, upper: FloatArray,
    empty: float, state: StateArray, start: FloatArray, cutoff: float, known: float, stop: BoolArray, answers: Answers,
    points: FloatArray, row: int,
) -> None:  # fmt: skip
    """Bound one node; ``points[row]`` receives the model, like ``start`` one of all columns, that proves the bound."""
    units, fixed = node_columns(state)
    form, places = node_form(groups, data, units), k - fixed
    x, low, high = start[form.columns], lower[form.columns], upper[form.columns]
    image, new_image, q, ranked = (
        np.empty(form.image_size), np.empty(form.image_size), np.empty(units.size), np.empty(places + 1),
    )  # fmt: skip
    forget_worse_start(loss, form, lam, rules, x, image)
    write_image(form, x, image)
    w, image_w, new, slope, v = x.copy(), image.copy(), x.copy(), np.empty(x.size), np.empty(x.size)
    point, point_q, point_base = x.copy(), np.full(units.size, np.inf), -np.inf
    best, relaxation, level, t, before = -np.inf, np.inf, 0.0, 1.0, -np.inf
    step, iterations, finished, signs = form.first_step / rules.lipschitz, 0, True, _signs_alone(low, high)
    while True:
        base = dual_value(loss, form, x, image, w, image_w, q, slope)
        proven_slope(form, image, slope, v)
        limit_units(form, v, lam, low, high, q)
        bound = node_bound(base, q, fixed, places, lam, ranked)
        if bound > best:
            best, point_base = bound, base
            point[:] = proven_by(form, x, w)
            point_q[:] = q
        if best >= cutoff or iterations >= rules.max_iterations or settled(best, relaxation, cutoff, known, rules):
            break
        if not signs and iterations % LOOKED_AT == 0:
            if best - before <= STALLED * empty:
                break
            before = best
        if stop[0]:
            finished = False
            break
        iterations += 1
        while True:
            for i in range(w.size):
                v[i] = w[i] - step * slope[i]
            _into_signs(v, low, high)
            norm, level = prox(form, v, fixed, places, step * lam, level, new)
            write_image(form, new, new_image)
            value = smooth_value(loss, form, new, new_image)
            if step * rules.lipschitz <= rules.floor:
                break
            rise = value - value_ahead(loss, form, base, w, image_w)
            if not overshoots(rise, w, new, slope, step):
                break
            step = max(0.5 * step, rules.floor / rules.lipschitz)
        relaxation = min(relaxation, value + 0.5 * lam * norm)
        if turns_back(w, new, x):
            t, momentum = 1.0, 0.0
        else:
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
            momentum, t = (t - 1.0) / following, following
        extrapolate(w, new, x, momentum)
        if form.extrapolates:
            extrapolate(image_w, new_image, image, momentum)
        else:
            write_image(form, w, image_w)
        x[:] = new
        image[:] = new_image
    size = sizes(form, x)
    write_relaxed(answers, row, units, fixed, k, lam, point_base, point_q, size, size, cutoff)
    write_point(points, row, form.columns, point)
    answers.iterations[row] = iterations
    if not finished:
        answers.status[row] = UNFINISHED


@njit
def _signs_alone(low: FloatArray, high: FloatArray) -> bool:
    """Whether all limits are 0 or infinite, so that the relaxation knows them all."""
    for i in range(low.size):
        if (low[i] != 0.0 and np.isfinite(low[i])) or (high[i] != 0.0 and np.isfinite(high[i])):
            return False
    return True


@njit(parallel=True)
def relax_boxed_nodes(
    loss: Any, data: Any, groups: Any, lam: float, k: int, rules: Rules, lower: FloatArray, upper: FloatArray,
    empty: float, states: StateArray, starts: FloatArray, cutoff: float, known: FloatArray, stop: BoolArray,
    answers: Answers, points: FloatArray,
) -> None:  # fmt: skip
    """Bound every node (a row of ``states``) that is no convex problem, or one whose units are all in.

    ``starts`` (B, columns) are the models to start from, and ``points`` (B, columns) receives those that prove the
    bounds; ``known`` (B,) are the bounds the nodes came with, ``lower`` and ``upper`` (columns,) the limits, ``empty``
    what the empty model costs. Where ``groups`` are chosen, states and answers speak of groups, and the models in
    ``answers`` are the groups' lengths.
    """
    for row in prange(states.shape[0]):
        relax_boxed_node(
            loss, data, groups, lam, k, rules, lower, upper, empty, states[row], starts[row], cutoff, known[row], stop,
            answers, points, row,
        )  # fmt: skip
