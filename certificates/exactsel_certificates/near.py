"""Claims about bounded models, lam = 0: columns that others make up for, and curvature of some columns (FORMAT.md).

A column a_j within e ||a_j|| of the span of columns of S brings a region nothing but R ||y|| e: its coefficient goes
to S, which moves the residual by e ||a_j|| |x_j| <= R ||y|| e at most, so a model that costs less than ||y||^2 / 2 by
R ||y||^2 e. No model has more than k such columns. That a_j is so near is shown by any combination of S.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from exactsel_certificates.formula import FloatArray, Instance
from exactsel_certificates.rigorous import RigorousBounds, States, gamma, leaves_convex
from exactsel_certificates.transfer import RADIUS
from exactsel_certificates.walk import FREE, IN, OUT
from exactsel_certificates.work import STEP, spend

FARTHEST = 1e-14
"""Distances of columns, in their lengths, that are neglected; ..."""

DISTANCES = (3e-15, FARTHEST)
"""... the fewer of them, the less is to be proven besides."""

SOLVED = 2
"""Times a combination is solved for, of what is left: once leaves too much where columns are nearly dependent."""

Columns = NDArray[np.intp]


class NearColumns:
    """Bound to one problem, the curvature of a file (empty where it has none) and what is neglected."""

    def __init__(
        self, instance: Instance, bounds: RigorousBounds, curvature: FloatArray, farthest: float = FARTHEST
    ) -> None:
        self.instance, self.bounds, self.curvature, self.farthest = instance, bounds, curvature, farthest
        with np.errstate(all="ignore"):
            square = float(bounds.y @ bounds.y) * (1.0 + gamma(bounds.n + 4))
        self.price = 1.0001 * instance.k * farthest * RADIUS * square
        """The threshold a proof must exceed, above a level, where such columns are removed."""
        self._near: dict[bytes, tuple[list[int], NDArray[np.bool_]]] = {}
        self._convex: list[frozenset[int]] = []

    def without(self, states: States) -> tuple[States, NDArray[np.int64]]:
        """Regions (B, d) without the columns that S makes up for, and how many of S these were (B,)."""
        result, fewer = states.copy(), np.zeros(len(states), dtype=np.int64)
        for row, state in enumerate(states):
            S = np.flatnonzero(state == IN)
            basis, is_near = self._of(S)
            result[row, S] = OUT
            result[row, basis] = IN
            result[row, is_near & (state == FREE)] = OUT
            fewer[row] = len(S) - len(basis)
        return result, fewer

    def convex(self, state: NDArray[np.uint8], x: FloatArray) -> bool:
        """Whether formula (3) with the file's curvature holds at a point x (d,) for all models of a region."""
        used = np.flatnonzero((state != OUT) | (x != 0.0))
        if self.curvature.size != len(state) or len(used) > self.bounds.n:
            return False
        key = frozenset(used.tolist())
        spend(STEP * (1 + len(self._convex)))
        if not any(key <= columns for columns in self._convex):
            spend(float(self.bounds.n + len(used)) * len(used) ** 2)
            about = Instance(self.bounds.A[:, used], self.bounds.y, len(used), "quadratic", self.instance.lam)
            if not leaves_convex(about, self.curvature[used]):
                return False
            self._convex.append(key)
        return True

    def independent(self, columns: list[int], stay: Sequence[int] = ()) -> list[int]:
        """The columns without those that the ones before, and those that ``stay``, make up for."""
        basis = [*stay]
        for j in columns:
            if j not in stay and not self._within(basis, [j])[0]:
                basis.append(j)
        return basis

    def _of(self, S: Columns) -> tuple[list[int], NDArray[np.bool_]]:
        """Columns of S without those that the ones before make up for, and all columns near to their span (d,)."""
        key = S.tobytes()
        if key not in self._near:
            basis = self.independent(S.tolist())
            self._near[key] = basis, self._within(basis, [*range(self.bounds.d)])
        return self._near[key]

    def _within(self, S: list[int], columns: list[int]) -> NDArray[np.bool_]:
        """Which of some columns are near enough to the span of S, as columns of zeros are to any."""
        A, norms = self.bounds.A, self.bounds.norms
        zero = ~np.any(A[:, columns], axis=0)
        spend(STEP + self.bounds.n * len(columns))
        if not S:
            return np.asarray(zero)
        spend(8.0 * SOLVED * self.bounds.n * len(S) * (len(S) + len(columns)))
        with np.errstate(all="ignore"):
            try:
                t, unit = np.zeros((len(S), len(columns))), A[:, S] / norms[S]
                for _ in range(SOLVED):
                    t += np.linalg.lstsq(unit, A[:, columns] - A[:, S] @ t, rcond=None)[0] / norms[S][:, None]
            except np.linalg.LinAlgError:
                return np.asarray(zero)
            # Nothing is expected of t; of the sums only that every entry has |S| + 1 terms.
            sizes = np.abs(A[:, columns]) + np.abs(A[:, S]) @ np.abs(t)
            rest = np.abs(A[:, columns] - A[:, S] @ t) + 1.01 * gamma(len(S) + 4) * sizes
            length = np.sqrt(np.sum(rest * rest, axis=0)) * (1.0 + gamma(self.bounds.n + 4))
            # ``norms`` are upper estimates.
            return np.asarray(
                zero | (length <= self.farthest * norms[columns] * (1.0 - 2.0 * gamma(self.bounds.n + 8)))
            )
