"""Redundant columns, which a region can ignore where lam = 0 and columns are dependent.

Where column a_j is within e ||a_j|| of the span of the columns S, a model that uses S and a_j has a neighbour that does
without a_j: its coefficient goes to S, and the residual moves by at most e ||a_j|| |x_j|. So among models with |x_j|
||a_j|| <= R ||y|| a region that holds S loses at most R ||y|| times the distances of such columns, of as many of them
as a model holds. The size of the neighbour's coefficients is not restricted. What is decided on other columns is
decided alike for a model and its neighbour, so a region may be divided further without those columns, and each of its
parts speaks of the part that has them back. (That is not so of columns that a candidate would make up for.)

An elimination of the Gram matrix suggests such columns. How far they are is computed from the data: for *any* t the
distance is at most ||a_j - A_B t||, B being the columns it is to be combined of, of which every entry is off by no more
than the rounding of a sum of |B| + 1 terms.

What is left of a region's columns is most often independent, and then has curvature: a D > 0 with H - diag(D) positive
definite on these columns. One D serves all such sets if it is small on the columns that take part in a dependence.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple, cast

import numpy as np

from exactsel.algebra import dense
from exactsel.algebra.curvature import balanced_curvature, rounding_room
from exactsel.algebra.elimination import definite, gamma
from exactsel.algebra.threads import one_thread
from exactsel.problem.regression import BOUNDED_MODEL_RADIUS, Problem
from exactsel.types import FloatArray, IntArray

DEPENDENT = 1e-14
"""Times the columns: the smallest eigenvalue of A'A, of unit columns, at which nothing is proven in doubles."""

MOST_DEPENDENT = 400
"""With more columns than this bounds for bounded models take too long."""

MOST_CIRCUITS = 32
"""With more independent dependences than this they are not sparse (more columns than rows)."""

TAKES_PART = 1e-9
"""Part of the largest weight in a dependence from which on a column takes part in it."""

NEARLY = 1e-9
"""Part of a column's length, squared, that is left where it may depend on others."""

FARTHEST = 1e-14
"""Distances above this, in lengths of the column, are not neglected; ..."""

CERTAINLY = 0.5
"""A checker rounds in its own way. For it to neglect a column with certainty, the column must be nearer by this factor.
"""

ROOM = 0.9
"""Part of the curvature that is used, so that it serves one set of columns as well as another."""

MOST_TAKING_PART = 0.25
"""Part of the columns that may take part in dependences for this to be worth it; with more there is no curvature."""

SMALL_CURVATURES = tuple(10.0**-power for power in range(3, 13))
"""Tried for the columns that take part in a dependence, of unit columns."""


class Reduced(NamedTuple):
    """A region without the columns that bring nothing new."""

    included: IntArray
    candidates: IntArray


class RedundantColumns:
    """The columns of one problem with quadratic loss and lam = 0, and which of them bring nothing new to others."""

    def __init__(self, problem: Problem) -> None:
        self._AT, self._norms = problem.AT, np.where(problem.norms > 0.0, problem.norms, 1.0)
        self._roundings = problem.gram.roundings
        self._unit: FloatArray = problem.reduced[0] / self._norms
        self._G: FloatArray = problem.hessian / np.outer(self._norms, self._norms)
        self._H, self._constant = problem.hessian, problem.gram.constant
        self._curved: list[frozenset[int]] = []

    @staticmethod
    def of(problem: Problem) -> RedundantColumns | None:
        """Those of a problem where they matter: lam = 0 and dependent columns."""
        if "spans" not in problem.shared:
            problem.shared["spans"] = RedundantColumns(problem) if only_bounded_models(problem) else None
        return cast("RedundantColumns | None", problem.shared["spans"])

    def price(self, k: int) -> float:
        """The threshold a proof must exceed to claim a level for bounded models of k columns that use removed columns.

        ||Az - y|| moves by k R ||y|| e at most, and half its square by ||y|| times that, where the model is no worse
        than the empty one.
        """
        return 1.001 * BOUNDED_MODEL_RADIUS * FARTHEST * k * 2.0 * self._constant

    def reduce(self, included: IntArray, candidates: IntArray, k: int) -> Reduced:
        """Remove the columns that S makes up for, and those of S that the columns before them make up for.

        So that the column is also removed in regions below this one, whose S has up to k columns.
        """
        basis: list[int] = []
        for column in included.tolist():
            if not self._redundant(column, basis, k):
                basis.append(column)
        S = np.array(basis, dtype=np.int64)
        drop = np.zeros(candidates.size, dtype=np.bool_)
        for at in np.flatnonzero(self._left(S, candidates) <= NEARLY).tolist():
            drop[at] = self._redundant(int(candidates[at]), basis, k)
        return Reduced(S, candidates[~drop])

    def independent(self, columns: IntArray) -> bool:
        """Whether doubles suffice for these columns, and :attr:`curvature` is that of them."""
        if self.curvature is None:
            return False
        key = frozenset(columns.tolist())
        if any(key <= superset for superset in self._curved):
            return True
        H = self._H[np.ix_(columns, columns)]
        room = rounding_room(H, self._roundings)
        H[np.diag_indices(len(H))] -= self.curvature[columns] + room
        if not definite(H):
            return False
        H[np.diag_indices(len(H))] -= room
        # by so much that rounding cannot make any subset fail: the order of the tests makes no difference
        if definite(H):
            self._curved.append(key)
        return True

    def circuit(self, columns: IntArray) -> FloatArray | None:
        """Weights (m,) of columns in a dependence among few of them; None where there is none."""
        null = self._null(columns)
        if not 0 < len(null) <= MOST_CIRCUITS:
            return None
        circuits, _ = _circuits(null)
        spread = np.sum(circuits**2, axis=1) ** 2 / np.sum(circuits**4, axis=1)
        sparsest: FloatArray = np.abs(circuits[int(np.argmin(spread))])
        return sparsest

    def made_up_for(self, k: int) -> dict[int, list[int]] | None:
        """Columns that others make up for, each with these others, so that what is left of all columns is independent.

        Among models of up to k columns; None where there are too many, or some are not near enough, or the others are
        not shown to have curvature.
        """
        columns = np.arange(self._norms.size)
        null = self._null(columns)
        if not 0 < len(null) <= MOST_CIRCUITS:
            return None
        circuits, pivots = _circuits(null)
        substitutes: dict[int, list[int]] = {}
        for column, weights in zip(pivots.tolist(), np.abs(circuits), strict=True):
            taking_part = np.flatnonzero(weights > TAKES_PART * weights.max())
            substitutes[column] = np.setdiff1d(taking_part, pivots).tolist()
            if not self._redundant(column, substitutes[column], k):
                return None
        return substitutes if self.independent(np.setdiff1d(columns, pivots)) else None

    @cached_property
    def curvature(self) -> FloatArray | None:
        """A D (d,) for :meth:`independent` sets; None where too many columns take part in a dependence."""
        used = np.flatnonzero(np.diagonal(self._G) > 0.0)
        null = self._null(used)
        weights = np.abs(null).max(axis=0, initial=0.0)
        taking_part = weights > TAKES_PART * weights.max(initial=0.0)
        Z, rest = used[taking_part], used[~taking_part]
        if Z.size > MOST_TAKING_PART * used.size:
            return None
        with one_thread():
            values, vectors = np.linalg.eigh(self._G[np.ix_(Z, Z)])
            proper = values > DEPENDENT * self._norms.size
            half = (vectors[:, proper] / np.sqrt(values[proper])).T @ self._G[np.ix_(Z, rest)]
            D = balanced_curvature(self._G[np.ix_(rest, rest)] - half.T @ half, self._roundings)
        if D is None:
            return None
        base = self._base(Z)
        columns = np.concatenate([base, rest])
        H = self._G[np.ix_(columns, columns)]
        full = np.ones(self._norms.size)
        full[rest] = ROOM * D
        for small in SMALL_CURVATURES:
            full[Z] = small
            if definite(H - np.diag(np.append(2.0 * full[base], 0.5 * (1.0 + ROOM) * D))):
                scaled: FloatArray = full * self._norms**2
                return scaled
        return None

    def _base(self, columns: IntArray) -> IntArray:
        """Some independent columns, as many as there are."""
        _, triangle, order = dense.qr(self._unit[:, columns], mode="economic", pivoting=True)
        mask = np.abs(np.diagonal(triangle)) ** 2 > NEARLY
        base: IntArray = columns[order[: mask.size][mask]]
        return base

    def _null(self, columns: IntArray) -> FloatArray:
        """An orthonormal basis (q, m) of the dependences among columns of length one."""
        with one_thread():
            values, vectors = np.linalg.eigh(self._G[np.ix_(columns, columns)])
        return np.asarray(vectors[:, values <= DEPENDENT * self._norms.size].T)

    def _left(self, S: IntArray, candidates: IntArray) -> FloatArray:
        """The part of each candidate's length, squared, that S leaves."""
        if S.size == 0:
            return np.asarray(np.diagonal(self._G)[candidates])
        part = np.linalg.qr(self._unit[:, S])[0].T @ self._unit[:, candidates]
        return np.asarray(np.diagonal(self._G)[candidates] - np.sum(part * part, axis=0))

    def _redundant(self, column: int, others: list[int], k: int) -> bool:
        """Whether a column is so near to the span of others that the price covers it, as one of zeros always is."""
        vector = self._AT[column]
        if not vector.any():
            return True
        if not others:
            return False
        G, lengths = self._G[np.ix_(others, others)], self._norms[others] / self._norms[column]
        try:
            t = np.linalg.lstsq(self._unit[:, others], self._unit[:, column], rcond=None)[0]
            rest = self._unit[:, column] - self._unit[:, others] @ t
            if rest @ rest > NEARLY:
                return False
            # Where others are nearly dependent, the first solution leaves many times more than rounding does.
            rest = vector - (t / lengths) @ self._AT[others]
            better = (
                t
                + np.linalg.lstsq(
                    G, (self._AT[others] @ rest) / (self._norms[others] * self._norms[column]), rcond=None
                )[0]
            )
        except np.linalg.LinAlgError:
            return False
        return any(self._neglected(column, others, weights / lengths, k) for weights in (t, better))

    def _neglected(self, column: int, others: list[int], t: FloatArray, k: int) -> bool:
        """Whether a column is near enough to a combination of others, and a checker is certain to see that."""
        terms, vector = t[:, None] * self._AT[others], self._AT[column]
        size = np.abs(vector) + np.abs(terms).sum(axis=0)
        residual = np.abs(vector - terms.sum(axis=0)) + 1.01 * gamma(max(k, len(others)) + 4) * size
        return bool(1.001 * np.linalg.norm(residual) <= CERTAINLY * FARTHEST * self._norms[column])


def _circuits(null: FloatArray) -> tuple[FloatArray, IntArray]:
    """A basis (q, m) of the same dependences, each with weight 1 of one of the q columns returned and 0 of the rest."""
    pivots = dense.qr(null, mode="r", pivoting=True)[1][: len(null)]
    circuits = np.asarray(np.linalg.solve(null[:, pivots], null), dtype=np.float64)
    circuits[:, pivots] = np.eye(len(null))
    return circuits, np.asarray(pivots, dtype=np.int64)


def only_bounded_models(problem: Problem) -> bool:
    """Whether nothing can be said of models of any size: lam = 0, and columns so nearly dependent that doubles fail."""
    if problem.lam > 0 or problem.d > MOST_DEPENDENT:
        return False
    lengths = np.where(problem.norms > 0.0, problem.norms, 1.0)
    scaled = problem.gram.G / np.outer(lengths, lengths)
    used = problem.norms > 0.0
    if not used.any() or not np.all(np.isfinite(scaled)):
        return False
    with one_thread():
        return bool(np.linalg.eigvalsh(scaled[np.ix_(used, used)])[0] <= DEPENDENT * problem.d)
