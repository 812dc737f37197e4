"""Any loss as an objective of Pareto optimisation: a flip starts from the fit of the parent.

A member keeps its coefficients x, the inverse Hessian K there, z = Ax, the loss gradient b and the curvatures. K is
bordered or cut to the offspring's columns, and chord-Newton steps x - K grad, O(n m) each, lead to its optimum;
where they do not shrink the gradient quickly, Newton takes over. They end early at a point x from which strong
convexity, P(x*) >= P(x) - ||grad P(x)||^2 / (2 lam), shows that the offspring is dominated; most are, after a
single step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from exactsel._jit import njit
from exactsel.kernels.columns import Columns, add_column, column_dot, write_column
from exactsel.kernels.linalg import add_scaled, correlate, dot, predict
from exactsel.kernels.refit import newton_refit
from exactsel.kernels.rows import loss_curvature, loss_gradient, loss_value
from exactsel.types import FloatArray
from exactsel_heuristics._inverse_updates import DEPENDENT, border_inverse, copy_fit, drop_from_inverse, invert, product
from exactsel_heuristics._pareto_layout import ADDS, COLUMNS, COUNTS, DROPS, FIRST, SIZE, Members, Scratch

if TYPE_CHECKING:
    from exactsel.losses.adjusted import RowLoss
    from exactsel.problem.regression import Problem

TOLERANCE = 1e-8
"""Times 1 + ||grad P(0)||: gradient norm at which a support counts as solved, as in ``Problem.objectives``."""

CHORD_STEPS = 12
SHRINKAGE = 0.5
"""A chord step must shrink the gradient by this factor, or Newton takes over."""


class LossObjective(NamedTuple):
    """Minimal P on a support; ``AT``, the columns, ``y`` (n,)."""

    loss: RowLoss
    AT: Columns
    y: FloatArray
    lam: float
    tolerance: float

    @staticmethod
    def flipped_value(
        objective: LossObjective, source: Members, slot: int, scratch: Scratch, p: int, cutoff: float
    ) -> float:
        """See :mod:`exactsel_heuristics._pareto_objective`."""
        return float(_flipped_value(objective, source, slot, scratch, p, cutoff))

    @staticmethod
    def settled_value(objective: LossObjective, members: Members, slot: int, scratch: Scratch, p: int) -> float:
        """See :mod:`exactsel_heuristics._pareto_objective`."""
        return float(_settled_value(objective, members, slot, scratch, p))

    @staticmethod
    def adopt(objective: LossObjective, members: Members, slot: int) -> None:
        """Nothing to prepare."""


def loss_objective(problem: Problem) -> LossObjective:
    """The objective of a problem with lam > 0, for any loss."""
    return LossObjective(
        problem.row_loss, problem.raw.AT, problem.y, problem.lam, problem.objective.gradient_tolerance(TOLERANCE)
    )  # fmt: skip


def empty_rows(problem: Problem) -> FloatArray:
    """z, loss gradient and curvatures of the empty model, (3, n)."""
    rows = np.zeros((3, problem.n))
    loss_gradient(problem.row_loss, rows[0], problem.y, rows[1])
    loss_curvature(problem.row_loss, rows[0], problem.y, rows[2])
    return rows


@njit
def _start(objective: LossObjective, source: Members, slot: int, scratch: Scratch, p: int) -> int:
    """Cut and border the parent's x and K to the offspring's columns; z and b at the new x. Returns its size.

    A size of -1 says that a column depends on the others.
    """
    m, flips = int(source.supports[slot, SIZE]), scratch.flips[p]
    columns, K = flips[COLUMNS], scratch.factors[p]
    x = K[K.shape[1]]
    h, w = scratch.vectors[p, 0], scratch.vectors[p, 1]
    z, b, weights = scratch.rows[p, 0], scratch.rows[p, 1], scratch.rows[p, 2]
    copy_fit(m, source.supports[slot, FIRST:], source.factors[slot], columns, K)
    drops, adds = flips[COUNTS, DROPS], flips[COUNTS, ADDS]
    # From the last place on, so that filling a gap with the last column moves none that is still to be removed.
    for number in range(drops - 1, -1, -1):
        i = flips[DROPS, number]
        factor = x[i] / K[i, i]
        for a in range(m):
            x[a] -= factor * K[a, i]
        drop_from_inverse(K, m, i)
        m -= 1
        x[i], columns[i] = x[m], columns[m]
    for number in range(adds):
        write_column(objective.AT, flips[ADDS, number], source.rows[slot, 2], weights)
        diagonal = objective.lam + column_dot(objective.AT, flips[ADDS, number], weights)
        correlate(objective.AT, columns[:m], weights, h)
        product(K, m, h, w)
        pivot = diagonal - dot(h[:m], w[:m])
        if not pivot > DEPENDENT * diagonal:
            return -1
        border_inverse(K, m, w, pivot)
        x[m], columns[m] = 0.0, flips[ADDS, number]
        m += 1
    if drops == 0:
        for row in range(z.size):
            z[row], b[row] = source.rows[slot, 0, row], source.rows[slot, 1, row]
    else:
        predict(objective.AT, columns[:m], x[:m], z)
        loss_gradient(objective.loss, z, objective.y, b)
    return m


@njit
def _flipped_value(
    objective: LossObjective, source: Members, slot: int, scratch: Scratch, p: int, cutoff: float
) -> float:
    m = _start(objective, source, slot, scratch, p)
    if m < 0:
        return np.inf
    columns, K = scratch.flips[p, COLUMNS, :m], scratch.factors[p]
    x = K[K.shape[1], :m]
    gradient, step = scratch.vectors[p, 0, :m], scratch.vectors[p, 1, :m]
    z, b = scratch.rows[p, 0], scratch.rows[p, 1]
    norm = np.inf
    for _ in range(CHORD_STEPS):
        value = loss_value(objective.loss, z, objective.y) + 0.5 * objective.lam * dot(x, x)
        correlate(objective.AT, columns, b, gradient)
        add_scaled(gradient, objective.lam, x)
        previous, norm = norm, dot(gradient, gradient) ** 0.5
        if value - norm * norm / (2.0 * objective.lam) > cutoff or norm <= objective.tolerance:
            return float(value)
        if not norm <= SHRINKAGE * previous:
            break
        product(K, m, gradient, step)
        add_scaled(x, -1.0, step)
        for a in range(m):
            add_column(objective.AT, columns[a], -step[a], z)
        loss_gradient(objective.loss, z, objective.y, b)
    if not np.isfinite(norm):
        x[:] = 0.0
    loss, AT, y, lam = objective.loss, objective.AT, objective.y, objective.lam
    value, norm = newton_refit(loss, AT, y, lam, columns, objective.tolerance, x, z)
    return float(value) if norm < np.inf else np.inf


@njit
def _settled_value(objective: LossObjective, members: Members, slot: int, scratch: Scratch, p: int) -> float:
    """Start from the offspring that ``scratch`` holds, whose columns may stand in another order."""
    m = members.supports[slot, SIZE]
    columns, K = members.supports[slot, FIRST : FIRST + m], members.factors[slot]
    x = K[K.shape[1], :m]
    z, b, weights = members.rows[slot, 0], members.rows[slot, 1], members.rows[slot, 2]
    for a in range(m):
        for c in range(m):
            if scratch.flips[p, COLUMNS, c] == columns[a]:
                x[a] = scratch.factors[p, K.shape[1], c]
    loss, AT, y, lam = objective.loss, objective.AT, objective.y, objective.lam
    value, norm = newton_refit(loss, AT, y, lam, columns, objective.tolerance, x, z)
    loss_gradient(loss, z, y, b)
    loss_curvature(loss, z, y, weights)
    H, scaled = np.zeros((m, m)), np.empty(y.size)
    for a in range(m):
        write_column(AT, columns[a], weights, scaled)
        for c in range(a + 1):
            H[a, c] = column_dot(AT, columns[c], scaled)
        H[a, a] += lam
    if not norm < np.inf or not invert(H, m, K):
        return np.inf
    return float(value)
