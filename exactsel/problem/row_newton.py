"""Newton's method by orthogonal factors of the weighted rows, for supports whose normal equations do not converge.

Where row weights lie many decades apart, or curvatures do at the models a step passes through, the Hessian A'WA in
doubles holds nothing of the light rows. A factor Q R of the rows of W^(1/2) A does, where the heavy rows come first
and columns are pivoted: its errors are small beside each row (Cox, Higham: Stability of Householder QR factorization
for weighted least squares problems, 1998). An intercept is one more column, of ones.

A step that must be shortened much is replaced by one whose curvatures lie between those of the loss and those of a
quadratic above it. The method ends at a Newton decrement g'H^-1 g that is small beside the objective: this measure has
no units, neither of the columns nor of the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from exactsel.algebra import dense
from exactsel.kernels.levels import find_level
from exactsel.kernels.minorant import rows_at
from exactsel.kernels.rows import loss_majorizer
from exactsel.rounding import UNIT
from exactsel.types import FloatArray, IntArray

if TYPE_CHECKING:
    from exactsel.problem.objective import Objective

STEPS = 300

CONVERGED = 1e-13
"""Part of the objective that a step must promise for another one to be made."""

SHORTEST = 2.0**-40
"""Step length at which a direction is given up."""

LONG_ENOUGH = 0.05
"""A shorter step requires more curvature in the next one."""

BLENDS = (0.0, 1e-8, 1e-6, 1e-4, 1e-2, 0.1, 1.0)
"""Parts of the curvature above the loss that may take the place of the loss's own."""

SPREAD = 1e3
"""Ratio of weights, lengths, or objectives, from which on gradients are no measure of a fit."""

ENOUGH = 2
"""Up to this blend added curvature distinguishes a minimum from a model that can be improved."""

REFINEMENTS, ROUNDED = 3, 4e-15
"""Full steps at a minimum, which may raise the objective by this part of it."""

NOISE = 1e-15
"""Part of a pivoted factor's first entry below which a row of it is rounding."""


class RowValues(NamedTuple):
    """Rows at a model: weighted values, slopes and curvatures, those of the quadratic above, and the objective."""

    value: float
    slopes: FloatArray
    bends: FloatArray
    above: FloatArray


class Step(NamedTuple):
    """A step to the minimum of a quadratic."""

    direction: FloatArray
    promised: float
    """How far the quadratic falls."""
    whole: bool
    """Whether the step covers all directions: False where one in which the quadratic has no minimum was excluded."""


class RowModel:
    """The objective on some columns, scaled by powers of two, with an intercept as one more column."""

    def __init__(self, objective: Objective, columns: IntArray) -> None:
        A = objective.AT[columns].T
        largest = np.max(np.abs(A), axis=0, initial=0.0)
        # A column of zeros is as long as its ridge: nothing may depend on the units of the data.
        largest = np.where(largest > 0.0, largest, np.sqrt(objective.lam) or 1.0)
        scale = np.ldexp(1.0, -np.frexp(largest)[1])
        self._objective, self._columns = objective, columns
        self.loss, self.y = objective.loss, objective.y
        self.weights = np.ones(objective.n) if objective.weights is None else objective.weights
        ridge = objective.lam * scale * scale
        if objective.intercept:
            A, scale, ridge = np.hstack([A, np.ones((objective.n, 1))]), np.append(scale, 1.0), np.append(ridge, 0.0)
        self.A: FloatArray = A * scale
        self.scale, self.ridge = scale, ridge

    def model(self, coef: FloatArray) -> FloatArray:
        """The scaled coefficients of (m,) coefficients, with the best intercept."""
        if self._objective.intercept:
            z, spare = coef @ self._objective.AT[self._columns], np.empty((2, self.y.size))
            coef = np.append(coef, find_level(self._objective.row_loss, z, self.y, spare[0], spare[1]))
        return np.asarray(coef / self.scale)

    def coef(self, x: FloatArray) -> FloatArray:
        """(m,) coefficients of the columns as they are."""
        return np.asarray((x * self.scale)[: self._columns.size])

    def at(self, x: FloatArray) -> RowValues:
        """What the rows are at a model."""
        z, (values, slopes, bends, above) = self.A @ x, np.empty((4, self.y.size))
        rows_at(self.loss, z, self.y, values, slopes, bends)
        loss_majorizer(self.loss, z, self.y, above)
        w = self.weights
        value = float((w * values).sum() + 0.5 * (self.ridge * x) @ x)
        return RowValues(value, w * slopes, w * bends, w * above)

    def value(self, x: FloatArray) -> float:
        """The objective alone."""
        values, slopes, bends = np.empty((3, self.y.size))
        rows_at(self.loss, self.A @ x, self.y, values, slopes, bends)
        return float((self.weights * values).sum() + 0.5 * (self.ridge * x) @ x)

    def surely(self, x: FloatArray) -> float:
        """The objective and what rounding may have taken off it: much, where large coefficients cancel each other."""
        here = self.at(x)
        off = (x.size + 4) * UNIT * (np.abs(here.slopes) @ (np.abs(self.A) @ np.abs(x)))
        return float(here.value + off)

    def gradient(self, x: FloatArray, rows: RowValues) -> FloatArray:
        """The gradient of the objective at a model."""
        return np.asarray(rows.slopes @ self.A + self.ridge * x)

    def step(self, x: FloatArray, rows: RowValues, blend: float) -> Step:
        """A step down from x.

        ``blend`` is the part of the curvature above the loss that each row gets in place of its own.
        """
        bends = (1.0 - blend) * rows.bends + blend * np.maximum(rows.above, rows.bends)
        curved = bends > 0.0
        roots, ridge_roots, ridged = np.sqrt(bends[curved]), np.sqrt(self.ridge), self.ridge > 0.0
        matrix = np.vstack([self.A[curved] * roots[:, None], np.diag(ridge_roots)[ridged]])
        target = np.concatenate([-rows.slopes[curved] / roots, -(ridge_roots * x)[ridged]])
        # Rows without curvature (Huber's outliers) are linear in the model.
        linear = -(rows.slopes[~curved] @ self.A[~curved])
        order = np.argsort(-np.max(np.abs(matrix), axis=1, initial=0.0), kind="stable")
        if not matrix.size:
            return Step(np.zeros(x.size), 0.0, not np.any(linear))
        Q, R, pivots = dense.qr(matrix[order], mode="economic", pivoting=True, check_finite=False)
        sizes = np.abs(np.diagonal(R))
        rank = int(np.count_nonzero(sizes > NOISE * sizes[0]))
        R, pivots = R[:rank, :rank], pivots[:rank]
        wanted = Q[:, :rank].T @ target[order]
        wanted = wanted + dense.solve_triangular(R, linear[pivots], trans="T", check_finite=False)
        step = np.zeros(x.size)
        step[pivots] = dense.solve_triangular(R, wanted, check_finite=False)
        return Step(step, 0.5 * float(wanted @ wanted), rank == x.size or not np.any(linear))


def misjudged(objective: Objective, columns: IntArray, value: float) -> bool:
    """Whether a gradient that is small beside that of the empty model may still belong to a model that is no fit.

    So it is where weights or the lengths of the columns differ much, or an objective is far below that of the empty
    model.
    """
    lengths = objective.norms[columns]
    lengths = lengths[lengths > 0.0]
    if lengths.size and float(lengths.max()) > SPREAD * float(lengths.min()):
        return True
    weights = objective.weights
    if weights is not None and float(np.max(weights)) > SPREAD * float(np.min(weights)):
        return True
    return value < objective.at_zero / SPREAD


def improved(objective: Objective, columns: IntArray, start: FloatArray) -> tuple[FloatArray, bool]:
    """A model (m,) on these columns that is no worse than the start up to rounding.

    The flag says whether no further step promises a decrease.

    For all losses; ``start`` is (m,).
    """
    rows = RowModel(objective, columns)
    with np.errstate(all="ignore"):
        descents = [_descended(rows, rows.model(start))]
        if not descents[0][2] and np.any(start):
            descents.append(_descended(rows, rows.model(np.zeros(columns.size))))
        x, _, ended = min(descents, key=lambda descent: rows.surely(descent[0]))
        return rows.coef(_refined(rows, x) if ended else x), ended


def surely(objective: Objective, columns: IntArray, coef: FloatArray) -> float:
    """The objective of coefficients (m,) of some columns and what rounding may have taken off it."""
    rows = RowModel(objective, columns)
    with np.errstate(all="ignore"):
        return rows.surely(rows.model(coef))


def _refined(rows: RowModel, x: FloatArray) -> FloatArray:
    """The same minimum with a gradient as short as a few full steps make it: bounds are made of the gradient."""
    here = rows.at(x)
    shortest, best, most = float(np.linalg.norm(rows.gradient(x, here))), x, here.value * (1.0 + ROUNDED)
    for _ in range(REFINEMENTS):
        x = x + rows.step(x, here, 0.0).direction
        here = rows.at(x)
        length = float(np.linalg.norm(rows.gradient(x, here)))
        if not (here.value <= most and length < shortest):
            break
        shortest, best = length, x
    return best


def _descended(rows: RowModel, x: FloatArray) -> tuple[FloatArray, float, bool]:
    """A model below x, its objective, and whether it is a minimum as far as doubles show."""
    here, blend, least = rows.at(x), 0, 0
    for _ in range(STEPS):
        step = rows.step(x, here, BLENDS[blend])
        usable = step.whole and bool(np.all(np.isfinite(step.direction)))
        if usable and step.promised <= CONVERGED * here.value:
            if blend <= least:
                return x, here.value, True
            blend = least
            continue
        length, trial = _length(rows, x, step, here.value) if usable else (0.0, np.inf)
        if trial < here.value:
            x = x + length * step.direction
            here = rows.at(x)
        if length >= LONG_ENOUGH:
            blend, least = max(0, blend - 1), 0
        elif blend + 1 < len(BLENDS):
            blend += 1
            # The loss's own curvature may hold nothing: then a little more than that has to judge the model.
            least = least if usable else min(blend, ENOUGH)
        elif not trial < here.value:
            break
    return x, here.value, False


def _length(rows: RowModel, x: FloatArray, step: Step, value: float) -> tuple[float, float]:
    """A length at which a step brings a part of what it promises, and the objective there; 0 and inf for none."""
    length = 1.0
    while length >= SHORTEST:
        trial = rows.value(x + length * step.direction)
        if trial <= value - 0.1 * length * step.promised:
            return length, trial
        length *= 0.5
    return 0.0, np.inf
