"""The least-squares fit of some coefficients under linear equalities and within limits, and whether there is one.

    minimise ||A x - y||^2 + lam ||x||^2   subject to   C x = c,   lower <= x <= upper

Without limits a singular value decomposition of C gives one solution of Cx = c and all directions that keep it, in
which the rest is an ordinary least-squares problem. Within limits an active-set method does the same on the
coefficients that are not at a limit.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np

from exactsel.algebra.triangle import triangle
from exactsel.problem.fit import Fit
from exactsel.problem.objective import Objective
from exactsel.types import BoolArray, FloatArray, IntArray

RANK = 1e-11
"""Singular values of equalities, columns and rows of even length, below this part of the largest are none."""

FLAT = 1e-13
"""Singular values of columns of length one that are none."""

HOLDS = 1e-13
"""Part of the sizes of its terms up to which an equality holds in doubles."""

ZERO = 1e-12
"""Part of the largest coefficient, times its column's length, up to which one may stand for zero."""

REFINED = 4
"""Times a solution is corrected by what it misses the equalities by."""

DESCENT = 1e-12
"""Slopes against a limit, in units of the column's length times that of the target, that are none."""


class Constraints(NamedTuple):
    """Equalities and limits of some coefficients."""

    rows: FloatArray
    """C (m, p)."""
    right: FloatArray
    """c (m,)."""
    lower: FloatArray
    """(p,) at most 0."""
    upper: FloatArray
    """(p,) at least 0."""

    def missed(self, x: FloatArray) -> FloatArray:
        """c - Cx (m,), each sum rounded once."""
        return np.array([
            math.fsum([b, *(-(row * x)).tolist()]) for row, b in zip(self.rows, self.right.tolist(), strict=True)
        ])  # fmt: skip

    def hold(self, x: FloatArray) -> bool:
        """Whether x (p,) meets them, up to rounding."""
        sizes = np.abs(self.rows) @ np.abs(x) + np.abs(self.right)
        included = np.all((x >= self.lower) & (x <= self.upper))
        return bool(included and np.all(np.abs(self.missed(x)) <= HOLDS * sizes))

    def of(self, mask: BoolArray, x: FloatArray) -> Constraints:
        """Those of some coefficients, the others being what they are in x (p,)."""
        right = self.right - self.rows[:, ~mask] @ x[~mask]
        return Constraints(self.rows[:, mask], right, self.lower[mask], self.upper[mask])


def constrained_least_squares(
    matrix: FloatArray, target: FloatArray, constraints: Constraints
) -> FloatArray | None:  # fmt: skip
    """argmin ||matrix x - target|| under constraints; None where no x was found that meets them."""
    scale = np.linalg.norm(matrix, axis=0)
    scale[scale == 0.0] = 1.0
    free = _solved(matrix, target, constraints, scale)
    if free is not None:
        free = _corrected(free, constraints, np.ones(free.size, dtype=np.bool_))
        if constraints.hold(free):
            return free
        # No rounding of a term that equalities make zero is small beside it.
        few = np.abs(free) * scale > ZERO * np.max(np.abs(free) * scale, initial=0.0)
        fewer = _corrected(np.where(few, free, 0.0), constraints, few)
        if constraints.hold(fewer):
            return fewer
    limited = np.isfinite(constraints.lower) | np.isfinite(constraints.upper)
    if free is None or not limited.any():
        return None
    start = admissible_point(constraints)
    return None if start is None else _active_set(matrix, target, constraints, scale, start)


def _decomposed(rows: FloatArray, scale: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, int]:
    """Lengths of the rows, and the singular value decomposition of rows and columns of even length, with its rank."""
    scaled_rows = rows / scale
    lengths = np.linalg.norm(scaled_rows, axis=1)
    lengths[lengths == 0.0] = 1.0
    U, s, Vt = np.linalg.svd(scaled_rows / lengths[:, None], full_matrices=True)
    rank = int(np.count_nonzero(s > RANK * s[0])) if s.size and s[0] > 0 else 0
    return lengths, U, s, Vt, rank


def _solved(
    matrix: FloatArray, target: FloatArray, constraints: Constraints, scale: FloatArray
) -> FloatArray | None:  # fmt: skip
    """The fit under the equalities, without limits; None where they have no solution, or only by rounding."""
    rows, right = constraints.rows, constraints.right
    lengths, U, s, Vt, rank = _decomposed(rows, scale)
    wanted = U.T @ (right / lengths)
    size = float(np.linalg.norm(right / lengths))
    if np.linalg.norm(wanted[rank:]) > 1e-9 * size:
        return None
    start = Vt[:rank].T @ (wanted[:rank] / s[:rank])
    design = matrix / scale
    return np.asarray((start + _along(design, target - design @ start, Vt[rank:].T)) / scale)


def _along(design: FloatArray, residual: FloatArray, directions: FloatArray) -> FloatArray:
    """The step in some directions (p, q) that makes the residual shortest."""
    if directions.shape[1] == 0:
        return np.zeros(len(directions))
    moved = design @ directions
    U, s, Vt = np.linalg.svd(moved, full_matrices=False)
    # Columns are of length one: what is left of copies that cancel is rounding, even where it is all there is.
    mask = s > FLAT
    if not mask.any():
        return np.zeros(len(directions))
    U, s, Vt = U[:, mask], s[mask], Vt[mask]
    step = Vt.T @ ((U.T @ residual) / s)
    step += Vt.T @ ((U.T @ (residual - moved @ step)) / s)
    return np.asarray(directions @ step)


def _corrected(x: FloatArray, constraints: Constraints, movable: BoolArray) -> FloatArray:
    """x (p,) moved as little as meets the equalities to a rounding; the last correction is of one coefficient each."""
    places = np.flatnonzero(movable)
    if not places.size:
        return x
    x = x.copy()
    rows = constraints.rows[:, places]
    scale = np.maximum(np.abs(x[places]), 1e-3 * float(np.max(np.abs(x), initial=0.0)))
    scale[scale == 0.0] = 1.0
    for _ in range(REFINED):
        missed = constraints.missed(x)
        if not np.any(missed):
            return x
        lengths = np.linalg.norm(rows * scale, axis=1)
        lengths[lengths == 0.0] = 1.0
        step = np.linalg.lstsq(rows * scale / lengths[:, None], missed / lengths, rcond=RANK)[0] * scale
        x[places] = x[places] + step
    rest = float(constraints.missed(x)[0])
    if len(rows) == 1 and rest:
        # The smallest coefficient that matters has the finest steps.
        at = min(np.flatnonzero(rows[0]).tolist(), key=lambda i: abs(float(rows[0, i] * x[places[i]])), default=None)
        if at is not None:
            x[places[at]] += rest / rows[0, at]
    return x


def admissible_point(constraints: Constraints, costs: FloatArray | None = None) -> FloatArray | None:
    """Coefficients (p,) that meet the constraints, a corner of what does; None where there are none.

    One for which the sum of the sizes of coefficients times ``costs`` (p,) is least, where these are given.
    """
    from scipy.optimize import linprog

    rows, right, lower, upper = constraints
    lengths = np.linalg.norm(rows, axis=1)
    fixed = lengths == 0.0
    if np.any(right[fixed] != 0.0):
        return None
    lengths[fixed] = 1.0
    normals, p = rows / lengths[:, None], rows.shape[1]
    limits = np.stack([np.concatenate([np.zeros(p), np.zeros(p)]), np.concatenate([upper, -lower])], axis=1)
    weights = np.zeros(p) if costs is None else costs
    solution = linprog(
        np.tile(weights, 2), A_eq=np.hstack([normals, -normals]), b_eq=right / lengths, bounds=limits, method="highs-ds"
    )  # fmt: skip
    if solution.x is None or solution.status != 0:
        return None
    x = np.clip(solution.x[:p] - solution.x[p:], lower, upper)
    corrected = _corrected(x, constraints, (x > lower) & (x < upper))
    for candidate in (corrected, np.clip(corrected, lower, upper), x):
        if constraints.hold(candidate):
            return candidate
    return None


def _active_set(
    matrix: FloatArray, target: FloatArray, constraints: Constraints, scale: FloatArray, x: FloatArray
) -> FloatArray | None:
    """The fit within limits, from an admissible x (p,) on."""
    lower, upper, length = constraints.lower, constraints.upper, float(np.linalg.norm(target)) or 1.0
    free = (x > lower) & (x < upper)
    for turn in range(20 * x.size + 100):
        blocked = None
        if free.any():
            design = matrix[:, free] / scale[free]
            *_, Vt, rank = _decomposed(constraints.rows[:, free], scale[free])
            step = np.zeros(x.size)
            step[free] = _along(design, target - matrix @ x, Vt[rank:].T) / scale[free]
            x, blocked = _moved(x, step, free, constraints)
        if blocked is not None:
            free[blocked] = False
            continue
        released = _released(matrix, target, constraints, scale, x, free, length, first=turn > 5 * x.size + 50)
        if released is None:
            break
        free[released] = True
    x = np.clip(x, lower, upper)
    corrected = _corrected(x, constraints, free & (x > lower) & (x < upper))
    return next((each for each in (corrected, x) if constraints.hold(each)), None)


def _moved(
    x: FloatArray, step: FloatArray, free: BoolArray, constraints: Constraints
) -> tuple[FloatArray, int | None]:  # fmt: skip
    """x moved along a step as far as limits let it, and the coefficient that is at a limit first."""
    with np.errstate(all="ignore"):
        ends = np.where(step > 0.0, constraints.upper, constraints.lower)
        share = np.where(free & (step != 0.0), (ends - x) / step, np.inf)
    at = int(np.argmin(share))
    if not share[at] < 1.0:
        return x + step, None
    moved = x + max(float(share[at]), 0.0) * step
    moved[at] = ends[at]
    return moved, at


def _released(
    matrix: FloatArray, target: FloatArray, constraints: Constraints, scale: FloatArray, x: FloatArray,
    free: BoolArray, length: float, first: bool,
) -> int | None:  # fmt: skip
    """The coefficient at a limit whose slope leads inside most, or the ``first`` one that does; None where none does.

    Slopes are those of the objective with multipliers of the equalities.
    """
    slopes = (matrix.T @ (matrix @ x - target)) / scale
    normals = constraints.rows / scale
    lengths = np.linalg.norm(normals, axis=1)
    lengths[lengths == 0.0] = 1.0
    normals = normals / lengths[:, None]
    if free.any():
        slopes = slopes - normals.T @ np.linalg.lstsq(normals[:, free].T, slopes[free], rcond=RANK)[0]
    rising = ~free & (x <= constraints.lower) & (slopes < -DESCENT * length)
    falling = ~free & (x >= constraints.upper) & (slopes > DESCENT * length)
    inwards = np.flatnonzero((rising | falling) & (constraints.lower < constraints.upper))
    if not inwards.size:
        return None
    return int(inwards[0] if first else inwards[np.argmax(np.abs(slopes[inwards]))])


class EqualityFits:
    """Fits of one objective to whose data the rows of equalities have been appended, within limits (d,), (d,)."""

    def __init__(self, objective: Objective, lower: FloatArray, upper: FloatArray) -> None:
        preparation = objective.preparation
        assert objective.equalities is not None
        assert preparation is not None
        self.objective, self.given = objective, objective.equalities
        self._scale = preparation.made.scale
        self._rows = self.given.rows / self._scale
        self._lower, self._upper = lower, upper

    @cached_property
    def _table(self) -> tuple[FloatArray, FloatArray]:
        """The rows without those of the equalities, rotated and cut to at most one more than there are columns."""
        n = self.objective.observations
        A, y = self.objective.A[:n], self.objective.y[:n]
        if n <= self.objective.d + 1:
            return A, y
        factor = triangle(A, y)
        return factor[:, :-1], factor[:, -1]

    @cached_property
    def null_objective(self) -> float:
        """What a model without coefficients would cost, admissible or not."""
        return 0.5 * float(self._table[1] @ self._table[1])

    def fit(self, columns: IntArray) -> Fit:
        """The best admissible model on some columns; one that costs infinitely much where there is none."""
        objective, coef = self.objective, np.zeros(self.objective.d)
        used = columns[(objective.norms[columns] > 0) & (self._lower[columns] < self._upper[columns])]
        solution = self._found(used)
        if solution is None:
            return Fit(columns, coef, math.inf, 0.0)
        coef[used] = solution
        return Fit(columns, coef, objective(coef), 0.0)

    def _found(self, used: IntArray) -> FloatArray | None:
        """Coefficients of the columns as they are searched."""
        if not used.size:
            return np.zeros(0) if not np.any(self.given.right) else None
        A, y = self._table
        lam = self.objective.lam
        matrix = np.vstack([A[:, used], math.sqrt(lam) * np.eye(used.size)]) if lam > 0 else A[:, used]
        target = np.concatenate([y, np.zeros(used.size)]) if lam > 0 else y
        return constrained_least_squares(matrix, target, self.constraints(used))

    def constraints(self, columns: IntArray) -> Constraints:
        """What coefficients of some columns, as they are searched, must meet."""
        return Constraints(self._rows[:, columns], self.given.right, self._lower[columns], self._upper[columns])
