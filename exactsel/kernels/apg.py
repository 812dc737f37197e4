"""Accelerated proximal gradient on the perspective relaxation of a node: any loss, columns or groups of them.

The relaxation of (S, C) with r places is   min_x L(Ax) + (lam/2)(||x_S||^2 + squared k-support norm of x_C),
and by duality its minimum is the best bound (2). Every iterate's gradient is a dual vector, so each iteration gives
a valid bound for free. A node stops as soon as its bound reaches the cut-off (force-quit), or once it is clear that
it will not: when the relaxation lies below the cut-off, and the gap left inside it is not large against what is
missing, branching helps more than polishing.

With a general loss the steps are found by backtracking (Beck, Teboulle, A fast iterative shrinkage-thresholding
algorithm, 2009). Momentum with gradient restart: O'Donoghue, Candes, Adaptive restart for accelerated gradient
schemes (2015). What depends on the data (rows, or their Gram matrix) stands in kernels/forms.py, what depends on groups
in kernels/grouped.py, what depends on limits of coefficients in kernels/boxed.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from exactsel._jit import njit, prange
from exactsel.kernels.columns import RawData
from exactsel.kernels.dual import node_bound
from exactsel.kernels.forms import (
    GramData,
    dual_value,
    minimise,
    proven_by,
    prox,
    sizes,
    smooth_value,
    stalled,
    value_ahead,
    write_image,
)
from exactsel.kernels.grouped import node_form
from exactsel.kernels.linalg import dot, extrapolate
from exactsel.kernels.newton_fit import begin_at_fit
from exactsel.kernels.newton_relaxation import begin_at_relaxation
from exactsel.kernels.node import (
    ILL_CONDITIONED,
    UNFINISHED,
    Answers,
    is_convex,
    node_columns,
    solved_columns,
    suggest_by_cost,
    write_relaxed,
    write_solved,
)
from exactsel.types import BoolArray, FloatArray, IntArray, StateArray

FEWEST_AFTER_FIT = 2
"""Iterations after a fit, which may have cost next to nothing: the first says how far the relaxation can go."""


class Rules(NamedTuple):
    """When a node's iteration ends."""

    lipschitz: float
    """Of the gradient of x -> L(Ax), in the Euclidean norm."""
    max_iterations: int
    accuracy: float
    """Relative gap at which the relaxation counts as solved."""
    polish: float
    """Stop once the relaxation lies below the cut-off and its gap is at most this many times what is missing ..."""
    progress: float
    """... and at most this part of what the relaxation can add to the bound the node came with."""
    floor: float
    """Steps are not shortened below this part of 1 / ``lipschitz``: 1 where that is an upper bound, and the parabola of
    such a step lies above the loss."""
    after_fit: float = -1.0
    """Where not negative a node begins at the fit on its columns (kernels/newton_fit.py), and this part of what that
    took may go into iterations after it."""
    second_order: bool = False
    """Whether a node that would begin at its fit is bounded by Newton's method on the relaxation instead
    (kernels/newton_relaxation.py)."""


class Perspective(NamedTuple):
    """The perspective relaxation of a problem, as kernels take it."""

    loss: Any
    data: GramData | RawData
    groups: Any
    """Groups, where what is chosen is not single columns, a Box or a GroupedBox where coefficients have limits, or None
    (kernels/grouped.py, kernels/boxed.py)."""
    lam: float
    k: int
    rules: Rules


@njit
def turns_back(w: FloatArray, new: FloatArray, old: FloatArray) -> bool:
    """Whether the last step points against the momentum (time to restart)."""
    total = 0.0
    for i in range(w.size):
        total += (w[i] - new[i]) * (new[i] - old[i])
    return total > 0.0


@njit
def overshoots(rise: float, w: FloatArray, new: FloatArray, slope: FloatArray, step: float) -> bool:
    """Whether the loss rose, from w to ``new``, by more than the parabola allows that the step was made with."""
    linear, square = 0.0, 0.0
    for i in range(w.size):
        move = new[i] - w[i]
        linear += slope[i] * move
        square += move * move
    return not rise <= linear + 0.5 * square / step  # nor where the loss has overflown


@njit
def settled(best: float, relaxation: float, cutoff: float, known: float, rules: Rules) -> bool:
    """Whether more iterations cannot pay: solved, or the node will not be closed and its bound is good enough.

    ``best`` <= optimum of the relaxation <= ``relaxation``; ``known`` is the bound the node came with.
    """
    if relaxation == np.inf:
        return False
    gap = relaxation - best
    if gap <= rules.accuracy * max(1e-300, abs(relaxation)):
        return True
    if not relaxation < cutoff < np.inf:
        return False
    enough = best >= known and gap <= rules.progress * (relaxation - known)
    return bool(gap <= rules.polish * (cutoff - relaxation) and (enough or relaxation <= known))


@njit
def forget_worse_start(
    loss: Any, form: Any, lam: float, rules: Rules, x: FloatArray, image: FloatArray
) -> None:  # fmt: skip
    """Begin with no model where the start costs more than that, if the loss may be as steep as it likes.

    A model of a larger region that lacks some of its columns can be where the loss overflows, and no step leads away.
    """
    if rules.floor < 1.0:
        empty = np.zeros(x.size)
        write_image(form, empty, image)
        most = smooth_value(loss, form, empty, image)
        write_image(form, x, image)
        if not smooth_value(loss, form, x, image) + 0.5 * lam * dot(x, x) <= most:
            x[:] = 0.0


@njit
def relax_node(
    problem: Perspective, state: StateArray, start: FloatArray, cutoff: float, known: float, stop: BoolArray,
    answers: Answers, points: FloatArray, row: int,
) -> None:  # fmt: skip
    """Bound one node; ``points[row]`` receives the model, like ``start`` one of all columns, that proves the bound."""
    units, fixed = node_columns(state)
    if is_convex(units, fixed, problem.k):
        _solve_node(problem, solved_columns(units, fixed, problem.k), start, cutoff, answers, points, row)
        return
    form, loss, lam, rules = node_form(problem.groups, problem.data, units), problem.loss, problem.lam, problem.rules
    slots, x = problem.k - fixed, start[form.columns]
    image, new_image, q, ranked = (
        np.empty(form.image_size), np.empty(form.image_size), np.empty(units.size), np.empty(slots + 1),
    )  # fmt: skip
    forget_worse_start(loss, form, lam, rules, x, image)
    write_image(form, x, image)
    w, image_w, new, slope, u = x.copy(), image.copy(), x.copy(), np.empty(x.size), np.empty(x.size)
    point, point_q = x.copy(), np.zeros(units.size)
    best, relaxation, point_base, level, t = -np.inf, np.inf, -np.inf, 0.0, 1.0
    step, iterations, finished = form.first_step / rules.lipschitz, 0, True
    costs, spent, most = np.zeros(units.size), 0, rules.max_iterations
    if rules.after_fit >= 0.0:
        work = 0.0
        if rules.second_order:
            work = begin_at_relaxation(loss, form, fixed, slots, lam, cutoff, stop, start, x, image)
        if work > 0.0:
            spent, most = int(work), 0
        else:
            spent = int(begin_at_fit(loss, form, lam, cutoff, stop, x, image, costs) - work)
            most = int(min(most, max(FEWEST_AFTER_FIT, rules.after_fit * spent)))
        w[:] = x
        image_w[:] = image
    while True:
        base = dual_value(loss, form, x, image, w, image_w, q, slope)
        bound = node_bound(base, q, fixed, slots, lam, ranked)
        if bound > best:
            best, point_base = bound, base
            point[:] = proven_by(form, x, w)
            point_q[:] = q
        if best >= cutoff or iterations >= most or settled(best, relaxation, cutoff, known, rules):
            break
        if stalled(form, best, iterations):
            break
        if stop[0]:
            finished = False
            break
        iterations += 1
        while True:
            for i in range(w.size):
                u[i] = w[i] - step * slope[i]
            norm, level = prox(form, u, fixed, slots, step * lam, level, new)
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
    write_relaxed(answers, row, units, fixed, problem.k, lam, point_base, point_q, size, size, cutoff)
    write_point(points, row, form.columns, point)
    if rules.after_fit >= 0.0:
        suggest_by_cost(answers, row, units, fixed, slots, costs)
    answers.iterations[row] = iterations + spent
    if not finished or (rules.after_fit >= 0.0 and stop[0]):  # a fit may have been cut short
        answers.status[row] = UNFINISHED


@njit
def write_point(points: FloatArray, row: int, columns: IntArray, point: FloatArray) -> None:
    """Write the coefficients of some columns into a row of models of all columns."""
    for i in range(columns.size):
        points[row, columns[i]] = point[i]


@njit
def _solve_node(
    problem: Perspective, units: IntArray, start: FloatArray, cutoff: float, answers: Answers, points: FloatArray,
    row: int,
) -> None:  # fmt: skip
    """Bound a node that holds one convex problem, the one on all columns of ``units``."""
    form = node_form(problem.groups, problem.data, units)
    x, image, q = start[form.columns], np.empty(form.image_size), np.empty(units.size)
    forget_worse_start(problem.loss, form, problem.lam, problem.rules, x, image)
    stop_above = cutoff + 1e-12 * abs(cutoff)
    status = minimise(problem.loss, form, problem.data, problem.lam, x, image, stop_above)
    if status == ILL_CONDITIONED:
        answers.status[row] = ILL_CONDITIONED
        return
    base = dual_value(problem.loss, form, x, image, x, image, q, np.empty(x.size))
    bound = node_bound(base, q, units.size, 0, problem.lam, np.empty(1))
    write_solved(answers, row, units, sizes(form, x), bound)
    write_point(points, row, form.columns, x)
    if bound >= cutoff:
        answers.status[row] = status


@njit(parallel=True)
def relax_nodes(
    loss: Any, data: Any, groups: Any, lam: float, k: int, rules: Rules,
    states: StateArray, starts: FloatArray, cutoff: float, known: FloatArray, stop: BoolArray,
    answers: Answers, points: FloatArray,
) -> None:  # fmt: skip
    """Bound every node (a row of ``states``) of the :class:`Perspective` whose fields come first.

    ``starts`` (B, d) are the models to start from, and ``points`` (B, d) receives those that prove the bounds.
    ``known`` (B,) are the bounds the nodes came with: a call that does not beat them would be for nothing. Where groups
    are chosen, states and answers speak of groups, and the models in ``answers`` are the groups' lengths.
    """
    for row in prange(states.shape[0]):
        # Put together here: numba hands threads no tuple that holds tuples.
        problem = Perspective(loss, data, groups, lam, k, rules)
        relax_node(problem, states[row], starts[row], cutoff, known[row], stop, answers, points, row)
