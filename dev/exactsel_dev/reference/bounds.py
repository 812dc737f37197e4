"""The bound of a region, slow and plain: what any number claimed by a search is held against.

A region (S, C) holds all models x whose non-zeros lie in S and C together, with at most r = k - |S| of them in C. The
objective is P(x) = L(Ax) + (lam/2) ||x||^2 with L a sum over rows. For every dual vector beta, with v = A'beta, no
model of the region has a smaller objective than

    D(beta; S, C, r) = -L*(beta) - (1 / 2 lam) ( sum_{j in S} v_j^2  +  the r largest v_j^2, j in C )         (2)

Where coefficients have limits v_j^2 / (2 lam) is the most of -v_j w - (lam/2) w^2 over the w that column j may have.
(Sakaue, Marumo: best-first search for l0-constrained optimization, formulas 19 and 20). Sums are formed in numpy's
long double, which has 11 more bits than the solver's numbers on most machines and as many on the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from exactsel_certificates.formula import (
    FloatArray,
    Instance,
    Long,
    long_doubles,
    predictions,
    row_values,
    summed_loss,
)
from exactsel_certificates.pattern_regions import fitted
from exactsel_dev.reference.record import Split


def loss_value(instance: Instance, z: object) -> float:
    """L(z), the sum over rows, of predictions z (n,) that hold the intercept if there is one."""
    return float(summed_loss(instance, long_doubles(z)))


def loss_gradient(instance: Instance, z: object) -> Long:
    """The derivative of the loss of each row at z, both (n,); without weights that is the gradient of L."""
    y = long_doubles(instance.y)
    residual = long_doubles(z) - y
    if instance.loss == "quadratic":
        return residual
    if instance.loss == "huber":
        return long_doubles(np.clip(residual, -instance.delta, instance.delta))
    if instance.loss == "squared_hinge":
        return long_doubles(-2 * y * np.maximum(0, 1 - y * long_doubles(z)))
    if instance.loss == "poisson":
        with np.errstate(over="ignore"):
            return long_doubles(np.exp(long_doubles(z)) - y)
    t = -y * long_doubles(z)
    # exp of a negative number only, so that nothing overflows
    e = np.exp(-np.abs(t))
    return long_doubles(-y * np.where(t >= 0, 1.0, e) / (1.0 + e))


def conjugate(instance: Instance, beta: object) -> float:
    """L*(beta) for a dual vector (n,); inf outside its domain."""
    return float(_conjugate(instance, long_doubles(beta)))


def dual_bound(instance: Instance, included: Sequence[int], candidates: Sequence[int], beta: object) -> float:
    """Formula (2) for the region (inside, candidates) at the dual vector beta (n,)."""
    beta = long_doubles(beta)
    return float(-_conjugate(instance, beta) - _largest_squares(instance, included, candidates, beta))


def bound_at_model(instance: Instance, included: Sequence[int], candidates: Sequence[int], x: ArrayLike) -> float:
    """Formula (2) at beta = gradient of L at Ax, for any coefficient vector x (d,).

    There Fenchel's equality gives -L*(beta) = L(Ax) - beta'Ax, which is safer than logarithms of small numbers.
    """
    z = predictions(instance, x)
    beta = loss_gradient(instance, z)
    if instance.adjusted:
        shares = _shares(instance, beta)
        value = np.sum(shares * (row_values(instance, z) - beta * z))
        return float(value - _largest_squares(instance, included, candidates, shares * beta))
    return float(summed_loss(instance, z) - beta @ z - _largest_squares(instance, included, candidates, beta))


def _shares(instance: Instance, slopes: Long) -> Long:
    """What each row's slope is multiplied by: its weight and, with an intercept, its side's part (see levels.py)."""
    weights = np.ones(len(slopes), dtype=np.longdouble) if instance.weights is None else long_doubles(instance.weights)
    if not instance.intercept:
        return weights
    sums = [np.sum(weights * slopes, where=slopes > 0), -np.sum(weights * slopes, where=slopes < 0)]
    plus, minus = (min(1.0, sums[1 - side] / sums[side]) if sums[side] > 0 else 1.0 for side in (0, 1))
    return long_doubles(weights * np.where(slopes > 0, plus, minus))


def rounding_at_model(instance: Instance, included: Sequence[int], candidates: Sequence[int], x: object) -> float:
    """How far (2) can move when the predictions Ax are formed in doubles: what a solver's own value may differ by.

    Each entry of beta then moves by at most (d + 4) 2^-53 (sum_j abs(A_ij x_j) + abs(y_i)), to first order.
    """
    A, x, y = long_doubles(instance.A), long_doubles(x), long_doubles(instance.y)
    z = predictions(instance, x)
    beta = loss_gradient(instance, z)
    if instance.adjusted:
        beta = beta * _shares(instance, beta)
    moved = (x.size + 4) * 2.0**-53 * (np.abs(A) @ np.abs(x) + np.abs(y))
    if instance.loss == "poisson":  # whose slopes move by more, where it bends more
        moved = moved * np.maximum(1, np.exp(z))
    v, shift = np.abs(A.T @ beta), np.abs(A).T @ moved
    changes = 2 * v * shift + shift * shift
    counted = _with_largest(instance, included, candidates, changes)
    return float(np.abs(z) @ moved + (counted / (2 * instance.lam) if instance.lam > 0 else 0.0))


def curved_bound(
    instance: Instance, included: Sequence[int], candidates: Sequence[int], x: object, curvature: object,
    split: Split | None = None,
) -> float:  # fmt: skip
    """Formula (3) for quadratic loss: with M = A'A + lam I - diag(D) positive semidefinite and g = Mx - A'y,

        c - x'Mx/2 - (1/2) ( sum_{j in S} g_j^2/D_j  +  the r largest g_j^2/D_j, j in C );

    -inf where M is not positive semidefinite, or D not positive, for then it is no bound. With a split its E for
    models of k columns is taken off M.
    """
    D, x, d = long_doubles(curvature), long_doubles(x), instance.A.shape[1]
    E = np.zeros((d, d)) if split is None else taken_off(split, d, instance.k)
    if not (np.all(D > 0) and _leaves_convex(instance, np.asarray(curvature, dtype=np.float64), E)):
        return -np.inf
    A, y = long_doubles(instance.A), long_doubles(instance.y)
    z = A @ x
    g = A.T @ (z - y) + (instance.lam - D) * x - E @ x
    convex_part = z @ z + np.sum((instance.lam - D) * x * x) - x @ E @ x
    counted = _with_largest(instance, included, candidates, _taken(instance, g, D))
    return float(0.5 * (y @ y) - 0.5 * convex_part - 0.5 * counted)


_known_convex: dict[bytes, bool] = {}


def taken_off(split: Split, d: int, k: int) -> FloatArray:
    """E (d, d): N on the split's columns, and on the diagonal the k - 1 largest of each row, times the scales."""
    m = len(split.columns)
    N = np.zeros((m, m))
    N[np.tril_indices(m, -1)] = split.entries
    N += N.T
    N[np.diag_indices(m)] = [math.fsum(sorted(row, reverse=True)[: max(0, k - 1)]) for row in np.abs(N).tolist()]
    E = np.zeros((d, d))
    E[np.ix_(split.columns, split.columns)] = N * np.outer(split.scale, split.scale)
    return E


def _leaves_convex(instance: Instance, curvature: FloatArray, E: FloatArray) -> bool:
    """Whether A'A + lam I - diag(D) - E is semidefinite, by a Cholesky factorisation with room for rounding."""
    data = (instance.A, np.float64(instance.lam), curvature, E)
    key = sha256(b"".join(part.tobytes() for part in data)).digest()
    if key not in _known_convex:
        n, d = instance.A.shape
        hessian = instance.A.T @ instance.A + instance.lam * np.eye(d)
        # In columns of about one length: powers of two round nothing.
        sizes = np.sqrt(np.diagonal(hessian))
        even = 2.0 ** np.round(np.log2(np.where(sizes > 0, sizes, 1.0)))
        hessian, curvature = (hessian - E) / even[:, None] / even, curvature / even**2
        room = (n + d + 32) * 2.0**-53 * (np.trace(hessian) + np.abs(hessian).sum(axis=1).max())
        try:
            np.linalg.cholesky(hessian - np.diag(curvature) - room * np.eye(d))
            _known_convex[key] = True
        except np.linalg.LinAlgError:
            _known_convex[key] = False
    return _known_convex[key]


def fit_bound(instance: Instance, included: Sequence[int], candidates: Sequence[int]) -> float:
    """The smallest objective of any model on S and C together, whatever its size (on S where no place is left).

    Least squares, so for quadratic loss only. For lam > 0 what the computed fit x may be short of the minimum, at
    most ||gradient||^2 / (2 lam), is taken off.
    """
    if instance.loss != "quadratic":
        raise ValueError(f"the fit of a region needs quadratic loss, but the loss is {instance.loss}.")
    columns = instance.columns_of(included if len(included) >= instance.k else [*included, *candidates])
    A, y = long_doubles(instance.A)[:, columns], long_doubles(instance.y)
    x = least_squares(instance, columns)[columns]
    residual = A @ x - y
    value = 0.5 * (residual @ residual) + 0.5 * instance.lam * (x @ x)
    if instance.lam > 0:
        gradient = A.T @ residual + instance.lam * x
        value -= (gradient @ gradient) / (2 * instance.lam)
    return float(value)


def leaf_bound(instance: Instance, included: Sequence[int], candidates: Sequence[int]) -> float:
    """The smallest bound of the models on S and each set of candidates that fills all places, at about the best one."""
    S, lowest = sorted(included), np.inf
    for more in combinations(candidates, min(max(0, instance.k - len(S)), len(candidates))):
        columns = [*S, *more]
        A = instance.A[:, columns] if columns else np.zeros((len(instance.y), 1))
        weights = np.ones(len(instance.y)) if instance.weights is None else instance.weights
        about = replace(
            instance, A=A, k=A.shape[1], weights=weights, force_in=(), force_out=(), hierarchy=None, box=None
        )
        x = np.zeros(instance.A.shape[1])
        x[columns] = fitted(about)[: len(columns)]
        lowest = min(lowest, bound_at_model(instance, columns, [], x))
    return float(lowest)


def least_squares(instance: Instance, columns: Sequence[int]) -> Long:
    """The fit on some columns, ridge included, as a full coefficient vector (d,)."""
    chosen = sorted(columns)
    A, y = long_doubles(instance.A)[:, chosen], long_doubles(instance.y)
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


def _conjugate(instance: Instance, beta: Long) -> np.longdouble | float:
    y = long_doubles(instance.y)
    if instance.loss in ("quadratic", "huber"):
        inside_domain = instance.loss == "quadratic" or bool(np.all(np.abs(beta) <= instance.delta))
        return np.sum(0.5 * beta * beta + y * beta) if inside_domain else np.inf
    if instance.loss == "squared_hinge":
        return np.sum(y * beta + beta * beta / 4) if bool(np.all(y * beta <= 0)) else np.inf
    if instance.loss == "poisson":
        p = y + beta
        logs = [np.log(np.where(v > 0, v, 1)) for v in (p, y)]
        return np.sum(p * logs[0] - p - y * logs[1] + y) if bool(np.all(p >= 0)) else np.inf
    p = -y * beta
    if not np.all((p >= 0) & (p <= 1)):
        return np.inf
    # 0 log 0 = 0
    left, right = np.where(p > 0, p, 1), np.where(p < 1, -p, 0)
    logs_of_both: np.longdouble = np.sum(left * np.log(left)) + np.sum((1 + right) * np.log1p(right))
    return logs_of_both


def _largest_squares(
    instance: Instance, included: Sequence[int], candidates: Sequence[int], beta: Long
) -> np.longdouble | float:
    """The second term of (2); for lam = 0 it is 0 where all its squares are, and inf otherwise."""
    v = long_doubles(instance.A).T @ beta
    if instance.lam > 0 or instance.box is not None:
        return _with_largest(instance, included, candidates, _taken(instance, v, instance.lam)) / 2
    return 0.0 if _with_largest(instance, included, candidates, v**2) == 0 else np.inf


def _taken(instance: Instance, v: object, curvature: object) -> Long:
    """What columns take off a bound, twice: the most of -2 v w - D w^2 over the coefficients w they may have."""
    v, D = long_doubles(v), long_doubles(curvature)
    if instance.box is None:
        return long_doubles(v * v / D)
    with np.errstate(all="ignore"):
        free = np.where(v == 0, 0, -v / D)
    w = np.minimum(np.maximum(free, long_doubles(instance.box.lower)), long_doubles(instance.box.upper))
    return long_doubles(-w * (2 * v + D * w))


def _with_largest(
    instance: Instance, included: Sequence[int], candidates: Sequence[int], values: Long
) -> np.longdouble | float:
    """The sum of ``values`` (d,) over ``included`` and the largest of ``candidates``, one for each place left.

    A group's value is the sum of those of its columns.
    """
    if instance.groups:
        values = long_doubles([sum(values[j] for j in group) for group in instance.groups])
    slots = instance.k - len(included)
    if slots < 0:
        raise ValueError(f"{len(included)} columns are fixed inside, but a model may have {instance.k} only.")
    largest = sorted((values[j] for j in candidates), reverse=True)[:slots]
    total: np.longdouble | float = sum(values[j] for j in included) + sum(largest)
    return total
