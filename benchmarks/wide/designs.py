"""Random designs of regression, each made from its seed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from exactsel import Problem, boxed
from exactsel.types import FloatArray


@dataclass(frozen=True)
class Design:
    """Normal columns, neighbours correlated by rho, and a target of k evenly spaced ones with coefficients of 1."""

    name: str
    n: int
    p: int
    k: int
    rho: float = 0.1
    lam: float = 0.0
    times: float | None = None
    """No coefficient is larger than so many times the largest one of the target's own model; None: no limits."""
    unit: bool = False
    """Columns and target are scaled to norm 1, as in L0BnB's experiments."""
    aim: float | None = None
    """Seconds of processor time within which it is to be solved."""
    series: str = ""
    """The line of the picture to which it belongs; empty: none."""
    snr: float = 5.0
    """Variance of what the columns say over that of the noise."""
    seed: int = 0

    @property
    def support(self) -> list[int]:
        """The columns behind the target."""
        return [int(i * (self.p / self.k)) for i in range(self.k)]

    def data(self) -> tuple[FloatArray, FloatArray]:
        """A (n, p), by columns in memory and never copied, and y (n,)."""
        rng = np.random.default_rng([43, self.seed])
        columns = rng.standard_normal((self.p, self.n))
        if self.rho:
            rest = math.sqrt(1.0 - self.rho**2)
            for j in range(1, self.p):
                columns[j] *= rest
                columns[j] += self.rho * columns[j - 1]
        signal = columns[self.support].sum(axis=0)
        y = signal + rng.standard_normal(self.n) * math.sqrt(float(signal.var()) / self.snr)
        if self.unit:
            for column in columns:
                column /= np.linalg.norm(column)
            y /= np.linalg.norm(y)
        return columns.T, y

    def max_coef(self, A: FloatArray, y: FloatArray) -> float:
        """The limit of the coefficients; inf where there is none."""
        if self.times is None:
            return math.inf
        chosen = A[:, self.support]
        coef = np.linalg.solve(chosen.T @ chosen + self.lam * np.eye(self.k), chosen.T @ y)
        return self.times * float(np.abs(coef).max())

    def problem(self) -> Problem:
        """The problem to solve."""
        A, y = self.data()
        problem, largest = Problem(A, y, self.k, lam=self.lam), self.max_coef(A, y)
        return problem if largest == math.inf else boxed(problem, max_coef=largest)

    def small(self) -> Design:
        """A small one of the same kind, to load kernels."""
        return replace(self, n=min(self.n, 200), p=min(self.p, 400), k=min(self.k, 4))
