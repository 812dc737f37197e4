"""The bound of a region, slow and plain: what any number claimed by a search is held against.

A region (S, C) holds all models x whose non-zeros lie in S and C together, with at most r = k - |S| of them in C. The
objective is P(x) = L(Ax) + (lam/2) ||x||^2 with L a sum over rows. For every dual vector beta, with v = A'beta, no
model of the region has a smaller objective than

    D(beta; S, C, r) = -L*(beta) - (1 / 2 lam) ( sum_{j in S} v_j^2  +  the r largest v_j^2, j in C )         (2)

(Sakaue, Marumo: best-first search for l0-constrained optimization, formulas 19 and 20). Sums are formed in numpy's
long double, which has 11 more bits than the solver's numbers on most machines and as many on the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from exactsel_certificates.levels import find_levels

FloatArray: TypeAlias = NDArray[np.float64]
Long: TypeAlias = NDArray[np.longdouble]

LOSSES = ("quadratic", "huber", "logistic")


@dataclass(frozen=True)
class Instance:
    """The problem whose optimum is spoken of, as the caller knows it (never as the record repeats it)."""

    A: FloatArray
    """(n, d), one row per observation."""
    y: FloatArray
    """(n,) target; -1 and +1 for logistic loss."""
    k: int
    """Largest number of non-zero coefficients."""
    loss: str
    """``quadratic``, ``huber`` or ``logistic``."""
    lam: float
    """Ridge weight, >= 0."""
    delta: float = np.inf
    """Threshold of the Huber loss; no other loss has one."""
    must_have: tuple[int, ...] = ()
    """Columns every model holds, ascending; they count towards k."""
    must_not: tuple[int, ...] = ()
    """Columns no model holds, ascending."""
    weights: FloatArray | None = None
    """(n,) positive weights of the rows, Huber and logistic loss; for quadratic loss prepared data hold them."""
    intercept: bool = False
    """Whether models have an unpenalised intercept; as ``weights``."""
    groups: tuple[tuple[int, ...], ...] = ()
    """Where columns are chosen in groups: the columns of each, ascending, in the order of their first columns, every
    column in one. Then k, must_have, must_not and all regions speak of groups, by number. None: every column is one."""

    def __post_init__(self) -> None:
        if self.loss not in LOSSES:
            raise ValueError(f"the loss is '{self.loss}', but formulas are known for {', '.join(LOSSES)} only.")
        if self.A.ndim != 2 or self.y.shape != self.A.shape[:1]:
            raise ValueError(f"A has shape {self.A.shape} and y {self.y.shape}; expected (n, d) and (n,).")
        self._check_rows()
        if self.groups and (
            sorted(j for group in self.groups for j in group) != [*range(self.A.shape[1])]
            or not all(self.groups)
            or [*self.groups] != sorted(tuple(sorted(group)) for group in self.groups)
        ):
            raise ValueError("groups must hold every column once, ascending, in the order of their first columns.")
        forced = (*self.must_have, *self.must_not)
        if len({*forced}) < len(forced) or not {*forced} <= {*range(self.units)} or len(self.must_have) > self.k:
            raise ValueError("must_have and must_not must be different columns of A, no more than k of them forced in.")

    def _check_rows(self) -> None:
        """:class:`ValueError` for weights, or an intercept, that the formulas do not know."""
        if self.adjusted and self.loss == "quadratic":
            raise ValueError("weights and intercept of quadratic loss are worked into A and y, not stated besides.")
        if self.weights is not None and not (
            self.weights.shape == self.y.shape and np.all(self.weights > 0) and np.all(np.isfinite(self.weights))
        ):
            raise ValueError("the weights must be positive finite numbers, one for each row.")

    @property
    def adjusted(self) -> bool:
        """Whether there are weights or an intercept."""
        return self.intercept or self.weights is not None

    @property
    def units(self) -> int:
        """How many there are to choose from: groups, or columns where there are none."""
        return len(self.groups) or self.A.shape[1]

    def columns_of(self, units: Iterable[int]) -> list[int]:
        """The columns of some groups, ascending; the same numbers where there are none."""
        return sorted(j for g in units for j in self.groups[g]) if self.groups else sorted(units)

    def units_of(self, columns: Iterable[int]) -> set[int]:
        """The groups some columns belong to; the same numbers where there are none."""
        wanted = {*columns}
        return {g for g, group in enumerate(self.groups) if wanted & {*group}} if self.groups else wanted


def loss_value(instance: Instance, z: Any) -> float:
    """L(z), the sum over rows, of predictions z (n,) that hold the intercept if there is one."""
    return float(_loss_value(instance, _long(z)))


def loss_gradient(instance: Instance, z: Any) -> Long:
    """The derivative of the loss of each row at z, both (n,); without weights that is the gradient of L."""
    y = _long(instance.y)
    residual = _long(z) - y
    if instance.loss == "quadratic":
        return residual
    if instance.loss == "huber":
        return _long(np.clip(residual, -instance.delta, instance.delta))
    t = -y * _long(z)
    # exp of a negative number only, so that nothing overflows
    e = np.exp(-np.abs(t))
    return _long(-y * np.where(t >= 0, 1.0, e) / (1.0 + e))


def conjugate(instance: Instance, beta: Any) -> float:
    """L*(beta) for a dual vector (n,); inf outside its domain."""
    return float(_conjugate(instance, _long(beta)))


def objective(instance: Instance, x: Any) -> float:
    """P(x) for a full coefficient vector (d,), with the best intercept where there is one."""
    x = _long(x)
    return float(_loss_value(instance, predictions(instance, x)) + 0.5 * instance.lam * (x @ x))


def predictions(instance: Instance, x: Any) -> Long:
    """Ax (n,), and the best intercept where there is one."""
    z = _long(instance.A) @ _long(x)
    if not instance.intercept:
        return z
    row = np.asarray(z, dtype=np.float64)[None]
    return _long(z + find_levels(instance.loss, instance.delta, instance.y, instance.weights, row)[0])


def dual_bound(instance: Instance, inside: Sequence[int], candidates: Sequence[int], beta: Any) -> float:
    """Formula (2) for the region (inside, candidates) at the dual vector beta (n,)."""
    beta = _long(beta)
    return float(-_conjugate(instance, beta) - _largest_squares(instance, inside, candidates, beta))


def bound_at_model(instance: Instance, inside: Sequence[int], candidates: Sequence[int], x: Any) -> float:
    """Formula (2) at beta = gradient of L at Ax, for any coefficient vector x (d,).

    There Fenchel's equality gives -L*(beta) = L(Ax) - beta'Ax, which is safer than logarithms of small numbers.
    """
    z = predictions(instance, x)
    beta = loss_gradient(instance, z)
    if instance.adjusted:
        shares = _shares(instance, beta)
        value = np.sum(shares * (_row_values(instance, z) - beta * z))
        return float(value - _largest_squares(instance, inside, candidates, shares * beta))
    return float(_loss_value(instance, z) - beta @ z - _largest_squares(instance, inside, candidates, beta))


def _shares(instance: Instance, slopes: Long) -> Long:
    """What each row's slope is multiplied by: its weight and, with an intercept, its side's part (see levels.py)."""
    weights = np.ones(len(slopes), dtype=np.longdouble) if instance.weights is None else _long(instance.weights)
    if not instance.intercept:
        return weights
    sums = [np.sum(weights * slopes, where=slopes > 0), -np.sum(weights * slopes, where=slopes < 0)]
    plus, minus = (min(1.0, sums[1 - side] / sums[side]) if sums[side] > 0 else 1.0 for side in (0, 1))
    return _long(weights * np.where(slopes > 0, plus, minus))


def rounding_at_model(instance: Instance, inside: Sequence[int], candidates: Sequence[int], x: Any) -> float:
    """How far (2) can move when the predictions Ax are formed in doubles: what a solver's own value may differ by.

    Each entry of beta then moves by at most (d + 4) 2^-53 (sum_j abs(A_ij x_j) + abs(y_i)), to first order.
    """
    A, x, y = _long(instance.A), _long(x), _long(instance.y)
    z = predictions(instance, x)
    beta = loss_gradient(instance, z)
    if instance.adjusted:
        beta = beta * _shares(instance, beta)
    moved = (x.size + 4) * 2.0**-53 * (np.abs(A) @ np.abs(x) + np.abs(y))
    v, shift = np.abs(A.T @ beta), np.abs(A).T @ moved
    changes = 2 * v * shift + shift * shift
    counted = _with_largest(instance, inside, candidates, changes)
    return float(np.abs(z) @ moved + (counted / (2 * instance.lam) if instance.lam > 0 else 0.0))


def curved_bound(instance: Instance, inside: Sequence[int], candidates: Sequence[int], x: Any, curvature: Any) -> float:
    """Formula (3) for quadratic loss: with M = A'A + lam I - diag(D) positive semidefinite and g = Mx - A'y,

        c - x'Mx/2 - (1/2) ( sum_{j in S} g_j^2/D_j  +  the r largest g_j^2/D_j, j in C );

    -inf where M is not positive semidefinite, or D not positive, for then it is no bound.
    """
    D, x = _long(curvature), _long(x)
    if not (np.all(D > 0) and _leaves_convex(instance, np.asarray(curvature, dtype=np.float64))):
        return -np.inf
    A, y = _long(instance.A), _long(instance.y)
    z = A @ x
    g = A.T @ (z - y) + (instance.lam - D) * x
    convex_part = z @ z + np.sum((instance.lam - D) * x * x)
    counted = _with_largest(instance, inside, candidates, g * g / D)
    return float(0.5 * (y @ y) - 0.5 * convex_part - 0.5 * counted)


_known_convex: dict[bytes, bool] = {}


def _leaves_convex(instance: Instance, curvature: FloatArray) -> bool:
    """Whether A'A + lam I - diag(D) is positive semidefinite, by a Cholesky factorisation with room for rounding."""
    key = sha256(instance.A.tobytes() + np.float64(instance.lam).tobytes() + curvature.tobytes()).digest()
    if key not in _known_convex:
        n, d = instance.A.shape
        hessian = instance.A.T @ instance.A + instance.lam * np.eye(d)
        room = (n + d + 32) * 2.0**-53 * np.trace(hessian)
        try:
            np.linalg.cholesky(hessian - np.diag(curvature) - room * np.eye(d))
            _known_convex[key] = True
        except np.linalg.LinAlgError:
            _known_convex[key] = False
    return _known_convex[key]


def fit_bound(instance: Instance, inside: Sequence[int], candidates: Sequence[int]) -> float:
    """The smallest objective of any model on S and C together, whatever its size (on S where no place is left).

    Least squares, so for quadratic loss only. For lam > 0 what the computed fit x may be short of the minimum, at
    most ||gradient||^2 / (2 lam), is taken off.
    """
    if instance.loss != "quadratic":
        raise ValueError(f"the fit of a region needs quadratic loss, but the loss is {instance.loss}.")
    columns = instance.columns_of(inside if len(inside) >= instance.k else [*inside, *candidates])
    A, y = _long(instance.A)[:, columns], _long(instance.y)
    x = least_squares(instance, columns)[columns]
    residual = A @ x - y
    value = 0.5 * (residual @ residual) + 0.5 * instance.lam * (x @ x)
    if instance.lam > 0:
        gradient = A.T @ residual + instance.lam * x
        value -= (gradient @ gradient) / (2 * instance.lam)
    return float(value)


def least_squares(instance: Instance, columns: Sequence[int]) -> Long:
    """The fit on some columns, ridge included, as a full coefficient vector (d,)."""
    chosen = sorted(columns)
    A, y = _long(instance.A)[:, chosen], _long(instance.y)
    ridge = np.sqrt(instance.lam) * np.eye(len(chosen))
    matrix = np.vstack([np.asarray(A, dtype=np.float64), ridge]) if instance.lam > 0 else np.asarray(A, np.float64)
    # Unit columns, so that a short column is not mistaken for a dependent one.
    scale = np.linalg.norm(matrix, axis=0)
    scale[scale == 0] = 1.0
    x = np.zeros(len(chosen), dtype=np.longdouble)
    for _ in range(3):
        missing = np.concatenate([y - A @ x, -np.sqrt(np.longdouble(instance.lam)) * x])[: matrix.shape[0]]
        x = x + np.linalg.lstsq(matrix / scale, np.asarray(missing, np.float64), rcond=1e-13)[0] / scale
    full = np.zeros(instance.A.shape[1], dtype=np.longdouble)
    full[chosen] = x
    return full


def _long(values: Any) -> Long:
    return np.asarray(values, dtype=np.longdouble)


def _loss_value(instance: Instance, z: Long) -> Any:
    rows = _row_values(instance, z)
    return np.sum(rows if instance.weights is None else _long(instance.weights) * rows)


def _row_values(instance: Instance, z: Long) -> Long:
    y = _long(instance.y)
    if instance.loss == "quadratic":
        return 0.5 * (z - y) ** 2
    if instance.loss == "huber":
        r, delta = np.abs(z - y), instance.delta
        return _long(np.where(r <= delta, 0.5 * r * r, delta * (r - 0.5 * delta)))
    t = -y * z
    return _long(np.maximum(t, 0) + np.log1p(np.exp(-np.abs(t))))


def _conjugate(instance: Instance, beta: Long) -> Any:
    y = _long(instance.y)
    if instance.loss in ("quadratic", "huber"):
        inside_domain = instance.loss == "quadratic" or bool(np.all(np.abs(beta) <= instance.delta))
        return np.sum(0.5 * beta * beta + y * beta) if inside_domain else np.inf
    p = -y * beta
    if not np.all((p >= 0) & (p <= 1)):
        return np.inf
    # 0 log 0 = 0
    left, right = np.where(p > 0, p, 1), np.where(p < 1, -p, 0)
    return np.sum(left * np.log(left)) + np.sum((1 + right) * np.log1p(right))


def _largest_squares(instance: Instance, inside: Sequence[int], candidates: Sequence[int], beta: Long) -> Any:
    """The second term of (2); for lam = 0 it is 0 where all its squares are, and inf otherwise."""
    total = _with_largest(instance, inside, candidates, (_long(instance.A).T @ beta) ** 2)
    if instance.lam > 0:
        return total / (2 * instance.lam)
    return 0.0 if total == 0 else np.inf


def _with_largest(instance: Instance, inside: Sequence[int], candidates: Sequence[int], values: Long) -> Any:
    """The sum of ``values`` (d,) over ``inside`` and the largest of ``candidates``, one for each place left.

    A group's value is the sum of those of its columns.
    """
    if instance.groups:
        values = _long([sum(values[j] for j in group) for group in instance.groups])
    places = instance.k - len(inside)
    if places < 0:
        raise ValueError(f"{len(inside)} columns are fixed inside, but a model may have {instance.k} only.")
    largest = sorted((values[j] for j in candidates), reverse=True)[:places]
    return sum(values[j] for j in inside) + sum(largest)
