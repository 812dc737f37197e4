"""Least-squares fits of many regions at once, by plain floating-point linear algebra that need not be trusted.

A fit is only a point to put into formula (3).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactsel_certificates.formula import FloatArray, Instance
from exactsel_certificates.rigorous import DENSE_UP_TO, TINY, RigorousBounds, States, gamma, runs_to_its_end
from exactsel_certificates.sums import products
from exactsel_certificates.walk import IN, OUT

MOST_ENTRIES = 4_000_000
"""Numbers in the stacked systems solved at a time."""

INACCURATE = 1e8
"""An inverse with entries larger than this is not used."""


class Fits:
    """Works in columns of length one, so that their scales do not matter."""

    def __init__(self, instance: Instance, bounds: RigorousBounds) -> None:
        self.instance = instance
        self.bounds = bounds
        with np.errstate(all="ignore"):
            self.scale = np.where(bounds.norms > 0, bounds.norms, 1.0)
            self.ridge = instance.lam / self.scale / self.scale
            self.target = float(np.sqrt(bounds.y @ bounds.y)) * (1.0 + gamma(bounds.n))

    @cached_property
    def unit(self) -> FloatArray:
        """The columns, each divided by its length; made for fits only: other losses have no use for it."""
        with np.errstate(all="ignore"):
            return self.bounds.A / self.scale

    @cached_property
    def b(self) -> FloatArray:
        """The products of these with y (d,)."""
        with np.errstate(all="ignore"):
            return np.asarray(self.unit.T @ self.bounds.y)

    def affordable(self, m: int) -> bool:
        """Whether a square table of m columns takes no more memory than the data, or little."""
        return bool(m <= max(DENSE_UP_TO, self.bounds.n))

    @cached_property
    def H(self) -> FloatArray:
        """The Hessian (d, d) in columns of length one; only for an affordable number of columns."""
        with np.errstate(all="ignore"):
            return products(self.unit.T, self.unit) + np.diag(self.ridge)

    def own_curvature(self, columns: list[int]) -> FloatArray:
        """For lam = 0: as little curvature as makes some columns verifiably independent; nan if they are not.

        A column of zeros changes no prediction, so regions with and without it hold the same objectives.
        """
        plain = self.bounds
        columns = [j for j in columns if plain.norms[j] > 0]
        m = len(columns)
        room = 1.01 * m * (gamma(plain.many + 8) + gamma(m + 8))
        curvature = np.ones(plain.d)
        if m > plain.n:  # dependent
            curvature[columns] = np.nan
            return curvature
        gram = self.hessian_of(np.array(columns, dtype=np.intp))
        independent = runs_to_its_end(gram - 2.0 * room * np.eye(m))
        with np.errstate(all="ignore"):
            diagonal = room * self.scale[columns] ** 2
        # A number near the smallest doubles has few digits, and may be too large for it.
        curvature[columns] = np.where((diagonal > TINY) & independent, diagonal, np.nan)
        return curvature

    def hessian_of(self, columns: NDArray[np.intp]) -> FloatArray:
        """The rows and columns (m, m) of the Hessian for some columns."""
        if self.affordable(len(self.b)):
            return self.H[np.ix_(columns, columns)]
        part = self.unit[:, columns]
        with np.errstate(all="ignore"):
            return products(part.T, part) + np.diag(self.ridge[columns])

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
            if self.inverse is not None and 2 * size > len(self.b):
                self._fit_without(rows, used, W)
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

    @cached_property
    def inverse(self) -> FloatArray | None:
        """Of the Hessian; None where it says nothing."""
        try:
            inverse = np.asarray(np.linalg.inv(self.H))
        except np.linalg.LinAlgError:
            return None
        return inverse if np.max(np.abs(inverse), initial=0.0) < INACCURATE else None

    def _fit_without(self, rows: NDArray[np.intp], used: NDArray[np.bool_], W: FloatArray) -> None:
        """Fits on most columns, from the one on all: what the others carry there is taken from them."""
        assert self.inverse is not None
        x = self.inverse @ self.b
        out = np.nonzero(~used[rows])[1].reshape(len(rows), -1)
        carried = solve_each(self.inverse[out[:, :, None], out[:, None, :]], x[out][:, :, None])[:, :, 0]
        taken = np.zeros((len(rows), len(x)))
        np.put_along_axis(taken, out, carried, axis=1)
        W[rows] = np.where(used[rows], x - taken @ self.inverse, 0.0)

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


def _solve_somehow(matrix: FloatArray, side: FloatArray) -> NDArray[np.floating[Any]]:
    try:
        return np.linalg.lstsq(matrix, side, rcond=1e-13)[0]
    except np.linalg.LinAlgError:
        return np.zeros_like(side)
