"""What a split, or a count, proves of a region, slow and plain: the bounds themselves, by other formulas.

With E as FORMAT.md has it x'Ex >= 0 for all models x of the region. So none costs less than the minimum over all x on S
and C of c - b'x + x'(H - E)x/2: c - b'(H - E)^-1 b / 2 where H - E is positive semidefinite and b in its range.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from exactsel_certificates.formula import FloatArray, Instance
from exactsel_dev.reference.bounds import fit_bound
from exactsel_dev.reference.like_columns import like_gain

CUT = 1e-13
"""Part of the largest eigenvalue, in columns of length one, that counts as none."""


def split_matrix(
    columns: Sequence[int], scale: FloatArray, entries: FloatArray, used: Sequence[int], slots: int
) -> FloatArray:
    """E on some columns (m, m), of which models have ``slots`` at most of those the split holds.

    ``entries`` is the strict lower triangle of N, row by row.
    """
    E = np.zeros((len(used), len(used)))
    at = {j: i for i, j in enumerate(used)}
    size = dict(zip(columns, scale, strict=True))
    number = 0
    N = np.zeros_like(E)
    for high, i in enumerate(columns):
        for j in columns[:high]:
            if i in at and j in at:
                N[at[i], at[j]] = N[at[j], at[i]] = entries[number]
            number += 1
    for i in at:
        for j in at:
            if N[at[i], at[j]] != 0.0:
                E[at[i], at[j]] = size[i] * size[j] * N[at[i], at[j]]
        if i in size:
            E[at[i], at[i]] = size[i] ** 2 * sum(sorted(abs(N[at[i]]), reverse=True)[: max(0, slots - 1)])
    return E


def split_bound(
    instance: Instance, included: Sequence[int], candidates: Sequence[int], columns: Sequence[int], scale: FloatArray,
    entries: FloatArray,
) -> float:  # fmt: skip
    """The bound of a region by one split; -inf where H - E is not semidefinite, or beyond doubles."""
    if instance.loss != "quadratic" or instance.groups:
        return -np.inf
    r = max(0, instance.k - len(included))
    C = [j for j in sorted(candidates) if r and (instance.lam > 0 or np.any(instance.A[:, j]))]
    S = sorted(included)
    used = [*S, *C]
    A = instance.A[:, used]
    M = A.T @ A + instance.lam * np.eye(len(used))
    length = np.sqrt(np.diagonal(M))
    length[length == 0] = 1.0
    M -= split_matrix(columns, scale, entries, used, r + len({*S} & {*columns}))
    if not np.all(np.isfinite(M)):
        return -np.inf
    values, vectors = np.linalg.eigh(M / length / length[:, None])
    along = vectors.T @ (A.T @ instance.y / length)
    if len(used) and values[0] < -CUT * max(1.0, values[-1]):
        return -np.inf
    kept = values > CUT * np.max(values, initial=0.0)
    if np.any(np.abs(along[~kept]) > 1e-9 * np.linalg.norm(instance.y)):
        return -np.inf
    return float(0.5 * (instance.y @ instance.y) - 0.5 * np.sum(along[kept] ** 2 / values[kept]))


def strong_bound(
    instance: Instance, included: Sequence[int], candidates: Sequence[int], strong: Sequence[int], tau: float = math.inf
) -> float:
    """The bound of a region by strong columns: the fit on all of them, less the most r others can take off it.

    -inf where elimination of the strong columns leaves too little of another one. Those with a cosine of at least tau
    are taken together.
    """
    if instance.loss != "quadratic" or instance.groups:
        return -np.inf
    slots = max(0, instance.k - len(included))
    A, y, lam = instance.A, instance.y, instance.lam
    used = [j for j in [*included, *(candidates if slots else ())] if lam > 0 or np.any(A[:, j])]
    F = sorted({*strong, *included} & {j for j in range(A.shape[1]) if lam > 0 or np.any(A[:, j])})
    B, W = [j for j in used if j in F], [j for j in used if j not in F]
    value, residual = _fit(A[:, B], y, lam)
    if not W or not slots:
        return value
    left = A[:, W].T @ np.column_stack([_fit(A[:, F], A[:, j], lam)[1] for j in W]) + lam * np.eye(len(W))
    squares = np.diagonal(left)
    if np.min(squares) <= 0.0:
        return -np.inf
    if tau < math.inf:
        root = np.sqrt(squares)
        u = A[:, W].T @ residual / root
        return value - 0.5 * like_gain(left / np.outer(root, root), u, tau, min(slots, len(W)))
    cosines = np.abs(left) / np.sqrt(np.outer(squares, squares)) - np.eye(len(W))
    D = squares * (1.0 - np.sum(-np.sort(-cosines, axis=1)[:, : slots - 1], axis=1))
    if np.min(D) <= 0.0:  # a column without a slope of its own may still take from the others
        return -np.inf
    gains = (A[:, W].T @ residual) ** 2 / D
    return value - 0.5 * float(np.sum(np.sort(gains)[::-1][:slots]))


def _fit(A: FloatArray, y: FloatArray, lam: float) -> tuple[float, FloatArray]:
    """What a target costs on all columns, and the residual."""
    if not A.shape[1]:
        return 0.5 * float(y @ y), y
    x = np.linalg.lstsq(
        np.vstack([A, np.sqrt(lam) * np.eye(A.shape[1])]), np.append(y, np.zeros(A.shape[1])), rcond=None
    )[0]
    residual = y - A @ x
    return 0.5 * float(residual @ residual + lam * (x @ x)), residual


def counted_bound(instance: Instance, included: Sequence[int], candidates: Sequence[int]) -> float:
    """The smallest objective of any model of a region, by fitting every one; quadratic loss without groups."""
    r = max(0, instance.k - len(included))
    alone = Instance(instance.A, instance.y, instance.A.shape[1], "quadratic", instance.lam)
    more = (chosen for size in range(r + 1) for chosen in combinations(candidates, size))
    return min(fit_bound(alone, [*included, *chosen], []) for chosen in more)
