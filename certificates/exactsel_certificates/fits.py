"""Least-squares fits of many regions at once, by plain floating-point linear algebra that nobody need trust.

A fit is only a point to put into formula (3). One thing is proven here, because it would cost one point a column
otherwise: the bound of a region with one place left, which is the best of all single additions to S.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactsel_certificates.formula import FloatArray, Instance
from exactsel_certificates.rigorous import DENSE_UP_TO, TINY, RigorousBounds, States, U, gamma
from exactsel_certificates.walk import FREE, IN, OUT

MOST_ENTRIES = 4_000_000
"""Numbers in the stacked systems solved at a time."""


class Fits:
    """Works in columns of length one, so that their scales do not matter."""

    def __init__(self, instance: Instance, bounds: RigorousBounds) -> None:
        self.instance = instance
        self.bounds = bounds
        with np.errstate(all="ignore"):
            self.scale = np.where(bounds.norms > 0, bounds.norms, 1.0)
            self.unit = bounds.A / self.scale
            self.ridge = instance.lam / self.scale / self.scale
            self.b = self.unit.T @ bounds.y
            self.target = float(np.sqrt(bounds.y @ bounds.y)) * (1.0 + gamma(bounds.n))

    def affordable(self, m: int) -> bool:
        """Whether a square table of m columns takes no more memory than the data, or little."""
        return bool(m <= max(DENSE_UP_TO, self.bounds.n))

    @cached_property
    def H(self) -> FloatArray:
        """The Hessian (d, d) in columns of length one; only for an affordable number of columns."""
        with np.errstate(all="ignore"):
            return np.asarray(self.unit.T @ self.unit + np.diag(self.ridge))

    def hessian_of(self, columns: NDArray[np.intp]) -> FloatArray:
        """The rows and columns (m, m) of the Hessian for some columns."""
        if self.affordable(len(self.b)):
            return self.H[np.ix_(columns, columns)]
        part = self.unit[:, columns]
        with np.errstate(all="ignore"):
            return np.asarray(part.T @ part + np.diag(self.ridge[columns]))

    def on_regions(self, states: States, k: int) -> FloatArray:
        """The fit (B, d) on S and C of each region, on S alone where no place is left; zeros where that fails."""
        used = states != OUT
        full = np.sum(states == IN, axis=1) >= k
        used[full] = states[full] == IN
        if self.instance.lam == 0:
            used &= self.bounds.norms > 0
        W = np.zeros(states.shape)
        sizes = np.sum(used, axis=1)
        for size in np.unique(sizes[sizes > 0]).tolist():
            rows = np.flatnonzero(sizes == size)
            if not self.affordable(len(self.b)):
                for row in rows.tolist():
                    self._fit_alone(row, np.flatnonzero(used[row]), W)
                continue
            step = max(1, MOST_ENTRIES // (size * size))
            for first in range(0, len(rows), step):
                self._fit(rows[first : first + step], used, size, W)
        with np.errstate(all="ignore"):
            W = W / self.scale
        return np.where(np.isfinite(W), W, 0.0)

    def _fit(self, rows: NDArray[np.intp], used: NDArray[np.bool_], size: int, W: FloatArray) -> None:
        columns = np.nonzero(used[rows])[1].reshape(len(rows), size)
        systems = self.H[columns[:, :, None], columns[:, None, :]]
        W[rows[:, None], columns] = solve_each(systems, self.b[columns][:, :, None])[:, :, 0]

    def _fit_alone(self, row: int, columns: NDArray[np.intp], W: FloatArray) -> None:
        if self.affordable(columns.size):
            systems = self.hessian_of(columns)[None]
            W[row, columns] = solve_each(systems, self.b[columns][None, :, None])[0, :, 0]
        elif self.instance.lam > 0:
            # With many more columns than rows the same fit comes from a system of the size of the rows.
            A = self.bounds.A[:, columns]
            system = A @ A.T + self.instance.lam * np.eye(self.bounds.n)
            W[row, columns] = self.scale[columns] * (
                A.T @ solve_each(system[None], self.bounds.y[None, :, None])[0, :, 0]
            )

    def additions(self, states: States, curvature: FloatArray) -> FloatArray:
        """Bounds of one or more regions with exactly one place left and a candidate: the cheapest single addition.

        For each candidate j let w be the fit on S and j, and rho = Hw - b on these columns. Formula (3) at w is
        c - b'w/2 + rho'w/2 - (1/2) sum rho_i^2/D_i, whatever w is. Everything is evaluated from the Gram matrix, whose
        entries are off by gamma(n) in columns of length one.
        """
        bounds = np.empty(len(states))
        size = int(np.sum(states[0] == IN))
        step = max(1, MOST_ENTRIES // (len(self.b) * (size + 1) * 4))
        for first in range(0, len(states), step):
            part = states[first : first + step]
            bounds[first : first + step] = self._additions(part, curvature, size)
        return bounds

    def _additions(self, states: States, curvature: FloatArray, size: int) -> FloatArray:
        S = np.nonzero(states == IN)[1].reshape(len(states), size)
        H_SS, H_SC = self.H[S[:, :, None], S[:, None, :]], self.H[S]
        b_S = self.b[S]
        with np.errstate(all="ignore"):
            solution = solve_each(H_SS, np.concatenate([b_S[:, :, None], H_SC], axis=2))
            x, towards = solution[:, :, :1], solution[:, :, 1:]
            left = self.b - np.sum(H_SC * x, axis=1)
            curve = np.diagonal(self.H) - np.sum(H_SC * towards, axis=1)
            t = np.where(curve > 0, left / curve, 0.0)
            w = x - towards * t[:, None, :]
            rho_S = H_SS @ w + H_SC * t[:, None, :] - b_S[:, :, None]
            rho_j = np.sum(H_SC * w, axis=1) + np.diagonal(self.H) * t - self.b
            weighted = self._weights(curvature)
            reach = np.sum(np.abs(w), axis=1) + np.abs(t)
            error = (gamma(self.bounds.n + 2 * size + 12) * (reach + self.target)) + TINY
            error = error + gamma(2 * size + 12) * np.max(np.diagonal(self.H)) * reach
            explained = np.sum(b_S[:, :, None] * w, axis=1) + self.b * t
            rough = np.sum((np.abs(rho_S) + error[:, None, :]) ** 2 / weighted[S][:, :, None], axis=1)
            rough = rough + (np.abs(rho_j) + error) ** 2 / weighted
            cross = np.sum((np.abs(rho_S) + error[:, None, :]) * np.abs(w), axis=1) + (np.abs(rho_j) + error) * np.abs(
                t
            )
            constant = 0.5 * float(self.bounds.y @ self.bounds.y)
            slack = gamma(self.bounds.n + 2 * size + 16) * (2.0 * constant + self.target * reach) + TINY
            values = constant - 0.5 * explained - 0.5 * (cross + rough) * (1.0 + 64 * (size + 2) * U) - slack
        values = np.where(np.isfinite(values), values, -np.inf)
        values = np.where(states == FREE, values, np.inf)
        return np.asarray(np.min(values, axis=1))

    def _weights(self, curvature: FloatArray) -> FloatArray:
        """The curvature in columns of length one, rounded downwards."""
        weights = curvature / self.scale / self.scale * (1.0 - 8 * U)
        # A number near the smallest doubles has few digits; zero only weakens the bound.
        return np.asarray(np.where(weights > TINY, np.minimum(weights, 1e300), 0.0))


def solve_each(systems: FloatArray, sides: FloatArray) -> FloatArray:
    """Solutions of stacked symmetric systems (B, m, m) for sides (B, m, q); some answer where a system is singular."""
    if systems.shape[-1] == 0:
        return np.zeros(sides.shape)
    try:
        return np.asarray(np.linalg.solve(systems, sides))
    except np.linalg.LinAlgError:
        answers = np.zeros(sides.shape)
        for row, (matrix, side) in enumerate(zip(systems, sides, strict=True)):
            answers[row] = _solve_somehow(matrix, side)
        return answers


def _solve_somehow(matrix: Any, side: Any) -> Any:
    try:
        return np.linalg.lstsq(matrix, side, rcond=1e-13)[0]
    except np.linalg.LinAlgError:
        return np.zeros_like(side)
