"""Linear relations among the columns of a matrix that are whole numbers, once the columns are scaled.

One-hot columns add up to the constant one, copies are equal, sums and differences of columns are columns too: such
dependence is decided exactly. ``coordinates`` V are whole numbers such that column j, times ``scale_j``, is the sum of
V_ij times the i-th column of a basis (scaled likewise). Of rounded data, centred or scaled, that is true of columns
nearby only; ``distance`` says how near. It is measured in the span of the basis and y: with Q the projection on that
span, ||Ax - y|| >= ||QAx - y||, so nothing outside it matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from exactsel.algebra import dense
from exactsel.algebra.threads import one_thread
from exactsel.types import FloatArray, IntArray

LongArray: TypeAlias = NDArray[np.longdouble]

INDEPENDENT = 1e-5
"""A column of which at least this part is left once others are projected out does not depend on them ..."""

DEPENDENT = 1e-11
"""... and one of which no more than this is left does. Anything between is not for whole numbers to decide."""

WHOLE = 1e-8
"""How far from a whole number a coordinate may be computed to be."""

MOST_TURNS = 1000
"""Largest coordinate."""

DENOMINATORS = range(1, 13)
"""What the coordinates of a column, or of all, may have to be multiplied by to be whole."""


@dataclass(frozen=True)
class IntegerDependencies:
    """See the module; ``scale`` is for columns of length one, and 1 for columns that are zero."""

    coordinates: IntArray
    """(p, d) where p is the rank"""
    scale: FloatArray
    """(d,)"""
    distance: FloatArray
    """(d,)"""


@dataclass(frozen=True)
class Basis:
    """Some columns split into a basis and the others, which are ``T / denominator`` times the basis."""

    included: IntArray
    """Columns that had to come first, as far as they are independent."""
    further: IntArray
    """The rest of the basis."""
    others: IntArray
    """The rest of the columns, those that had to come first excluded."""
    T: IntArray
    """(inside + further, others) whole numbers"""
    denominator: int


def find_relations(AT: FloatArray, y: FloatArray) -> IntegerDependencies | None:
    """The relations of the rows of ``AT`` (d, n), the columns of A; None where they are not whole numbers."""
    d = len(AT)
    lengths = np.linalg.norm(AT, axis=1)
    used = np.flatnonzero(lengths > 0.0)
    unit = (AT[used] / lengths[used, None]).T
    split = _split(unit, np.zeros(0, dtype=np.int64), np.arange(used.size))
    if split is None:
        return None
    basis, others = split
    T = _combinations(AT, used[basis], used[others])
    lengths = np.sqrt(np.sum(AT.astype(np.longdouble) ** 2, axis=1))
    T = T * lengths[used[basis], None] / lengths[None, used[others]]
    scale = _scales(T)
    T = T * scale[None, basis.size :] / scale[: basis.size, None]
    factors = [next((q for q in DENOMINATORS if _are_whole(q * column)), 0) for column in T.T]
    if 0 in factors:
        return None
    V = np.zeros((basis.size, d), dtype=np.int64)
    V[np.arange(basis.size), used[basis]] = 1
    V[:, used[others]] = np.rint(T * np.array(factors)).astype(np.int64)
    full = np.ones(d, dtype=np.longdouble)
    full[used[basis]], full[used[others]] = scale[: basis.size], scale[basis.size :] * np.array(factors)
    full[used] /= lengths[used]
    distance = _distances(AT, y, V, full, used[basis], used[others])
    full[used] *= lengths[used]
    return IntegerDependencies(V, full.astype(float), distance)


def basis_of(
    relations: IntegerDependencies, unit: FloatArray, included: IntArray, candidates: IntArray
) -> Basis | None:
    """A basis of some columns, ``included`` before ``candidates``; None where the rest is not a whole combination.

    Parameters
    ----------
    relations : IntegerDependencies
    unit : array (any, d)
        Columns of length one (or zero) with the same relations.
    included, candidates : arrays of int
    """
    split = _split(unit, included, candidates)
    if split is None:
        return None
    columns, rest = split
    others = rest[np.isin(rest, candidates)]
    V = relations.coordinates
    solution = np.linalg.lstsq(V[:, columns].astype(float), V[:, others].astype(float), rcond=None)[0]
    denominator = next((q for q in DENOMINATORS if _are_whole(q * solution)), 0)
    T = np.rint(denominator * solution).astype(np.int64)
    if denominator == 0 or not np.array_equal(V[:, columns] @ T, denominator * V[:, others]):
        return None
    first = int(np.isin(columns, included).sum())
    return Basis(columns[:first], columns[first:], others, T, denominator)


def _are_whole(values: FloatArray | LongArray) -> bool:
    return values.size == 0 or bool(
        np.abs(values - np.rint(values)).max() <= WHOLE and np.abs(values).max() <= MOST_TURNS
    )


def _split(unit: FloatArray, included: IntArray, candidates: IntArray) -> tuple[IntArray, IntArray] | None:
    """Columns of a basis, those of ``included`` first, and the others; None where rank is a matter of opinion."""
    columns: list[int] = []
    others: list[int] = []
    Q = np.zeros((len(unit), 0))
    for group in (included, candidates):
        if group.size == 0:
            continue
        rest = unit[:, group]
        for _ in range(2):
            rest = rest - Q @ (Q.T @ rest)
        with one_thread():
            directions, triangle, order = dense.qr(rest, mode="economic", pivoting=True)
        diagonal = np.abs(np.diagonal(triangle))
        rank = int(np.count_nonzero(diagonal >= INDEPENDENT))
        if np.any(diagonal[rank:] > DEPENDENT):
            return None
        columns += group[order[:rank]].tolist()
        others += group[order[rank:]].tolist()
        Q = np.column_stack([Q, directions[:, :rank]])
    return np.array(columns, dtype=np.int64), np.array(others, dtype=np.int64)


def _combinations(AT: FloatArray, basis: IntArray, others: IntArray) -> LongArray:
    """Least squares of columns on a basis, refined with residuals in extended precision."""
    A, targets = AT[basis].T.astype(np.longdouble), AT[others].T.astype(np.longdouble)
    scale = np.linalg.norm(AT[basis], axis=1)
    Q, triangle = np.linalg.qr(AT[basis].T / scale)
    T = np.zeros((basis.size, others.size), dtype=np.longdouble)
    for _ in range(3):
        T = T + np.linalg.solve(triangle, Q.T @ (targets - A @ T).astype(float)) / scale[:, None]
    return T


def _scales(T: LongArray) -> LongArray:
    """Factors for the basis and then the others, such that a spanning forest of the entries of T become 1 or -1."""
    p, q = T.shape
    scale = np.zeros(p + q, dtype=np.longdouble)
    linked = np.abs(T) > WHOLE
    for root in range(p + q):
        if scale[root] != 0:
            continue
        scale[root] = 1.0
        waiting = [root]
        while waiting:
            at = waiting.pop()
            neighbours = np.flatnonzero(linked[at]) + p if at < p else np.flatnonzero(linked[:, at - p])
            for other in neighbours.tolist():
                if scale[other] == 0:
                    entry = abs(T[at, other - p]) if at < p else abs(T[other, at - p])
                    scale[other] = scale[at] / entry if at < p else scale[at] * entry
                    waiting.append(other)
    return scale


def _distances(
    AT: FloatArray, y: FloatArray, V: IntArray, factors: LongArray, basis: IntArray, others: IntArray
) -> FloatArray:
    """How far each column is from what V says of it, relative to its length, and rounded up."""
    distance = np.zeros(len(AT))
    Q = np.linalg.qr(np.column_stack([AT[basis].T, y]))[0]
    scaled = AT[basis].astype(np.longdouble) * factors[basis, None]
    sizes = np.linalg.norm(scaled.astype(float), axis=1)
    for j in others.tolist():
        column = AT[j].astype(np.longdouble) * factors[j]
        rest = (column - V[:, j].astype(np.longdouble) @ scaled).astype(float)
        length = float(np.linalg.norm(column.astype(float)))
        # Q is orthonormal to far better than a millionth, and so is the rest of what is computed here.
        seen = np.linalg.norm(Q.T @ rest) + 1e-6 * np.linalg.norm(rest)
        error = (len(V) + 8) * float(np.finfo(np.longdouble).eps) * (length + np.abs(V[:, j]) @ sizes)
        distance[j] = (1.0 + 1e-6) * (seen + error) / length
    return distance
