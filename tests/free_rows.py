"""Random problems with row weights and a free intercept, and their optima by scipy, on the data as they are given."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import exactly
import numpy as np
from scipy.optimize import minimize

from exactsel import Problem


@dataclass(frozen=True)
class Free:
    """One random problem: huber or logistic loss, an intercept or weights or both."""

    A: np.ndarray
    y: np.ndarray
    k: int
    loss: str
    lam: float
    delta: float
    weights: np.ndarray | None
    intercept: bool

    @cached_property
    def w(self):
        return np.ones(len(self.y)) if self.weights is None else self.weights

    def problem(self, **changes):
        given = {"intercept": self.intercept, "weights": self.weights, "loss": self.loss, "lam": self.lam}
        if self.loss == "huber":
            given["delta"] = self.delta
        return Problem.prepared(self.A, self.y, self.k, **{**given, **changes})

    def rows(self, z):
        """Values, slopes and curvatures."""
        if self.loss == "huber":
            r = np.abs(z - self.y)
            inside = r <= self.delta
            values = np.where(inside, 0.5 * r * r, self.delta * (r - 0.5 * self.delta))
            return values, np.clip(z - self.y, -self.delta, self.delta), inside.astype(float)
        t = -self.y * z
        chance = np.exp(-np.logaddexp(0.0, -t))
        return np.logaddexp(0.0, t), -self.y * chance, chance * (1.0 - chance)

    def best_on(self, columns):
        """The smallest objective of a model on some columns."""
        return self.best_model(columns)[0]

    def best_model(self, columns):
        """The same, and the model's coefficients: a quasi-Newton method, then Newton's as far as it goes."""
        X = self.A[:, list(columns)]
        X = np.column_stack([X, np.ones(len(X))]) if self.intercept else X
        ridge = np.full(X.shape[1], self.lam)
        ridge[len(columns) :] = 0.0

        def value(p):
            values, slopes, _ = self.rows(X @ p)
            return self.w @ values + 0.5 * ridge @ p**2, X.T @ (self.w * slopes) + ridge * p

        if X.shape[1] == 0:
            return float(value(np.zeros(0))[0]), np.zeros(0)
        start = np.zeros(X.shape[1])
        if self.intercept and self.loss == "huber":
            start[-1] = np.median(self.y[self.w > 0])
        p = minimize(value, start, jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 3000}).x
        for _ in range(50):
            at, gradient = value(p)
            H = X.T @ ((self.w * self.rows(X @ p)[2])[:, None] * X) + np.diag(ridge)
            new = p - np.linalg.lstsq(H, gradient, rcond=1e-12)[0]
            if not value(new)[0] < at:
                break
            p = new
        return float(value(p)[0]), p[: len(columns)]

    @cached_property
    def optimum(self):
        """By trying every support of k columns: a larger one costs no more."""
        return min(self.best_on(columns) for columns in combinations(range(self.A.shape[1]), self.k))

    @property
    def told(self):
        """The problem in plain numbers."""
        level, weights = self.intercept, self.weights
        return exactly.stated(self.A, self.y, self.k, self.loss, self.lam, self.delta, weights, level)

    @cached_property
    def ceiling(self):
        """What the best model costs, exactly: a fraction no lower bound may exceed."""
        best = min(combinations(range(self.A.shape[1]), self.k), key=self.best_on)
        coef = np.zeros(self.A.shape[1])
        coef[list(best)] = self.best_model(best)[1]
        return exactly.objective(self.told, coef)


def free_case(seed, loss):
    """A random problem with whatever real data have: copies, constants, ties, few rows, outliers, rare classes."""
    rng = np.random.default_rng([77, seed, len(loss)])
    n, d = int(rng.integers(3, 16)), int(rng.integers(1, 7))
    A = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1, 1, d) + rng.uniform(-3, 3, d) * (rng.random() < 0.5)
    if rng.random() < 0.3:
        A = np.round(A)
    if d > 1 and rng.random() < 0.3:
        A[:, -1] = A[:, 0]
    if rng.random() < 0.2:
        A[:, rng.integers(d)] = rng.choice([0.0, 1.0, -7.0])
    weights = rng.choice([0.0, 0.3, 1.0, 2.0, 50.0], n) if rng.random() < 0.5 else None
    if weights is not None and np.count_nonzero(weights) < 3:
        weights[:3] = 1.0
    signal = A @ rng.standard_normal(d) + rng.standard_normal(n) * rng.choice([0.0, 0.1, 1.0])
    if loss == "huber":
        y = signal + rng.choice([0.0, 5.0, -1e3]) + rng.choice([0.0, 1e4], n, p=[0.9, 0.1])
    else:
        y = np.where(signal > np.quantile(signal, rng.choice([0.2, 0.5, 0.9])), 1.0, -1.0)
        counted = np.ones(n, dtype=bool) if weights is None else weights > 0
        y[np.flatnonzero(counted)[:2]] = 1.0, -1.0
    return Free(
        A, y, int(rng.choice([1, d, rng.integers(1, d + 1)])), loss, float(10.0 ** rng.uniform(-3, 1.5)),
        float(10.0 ** rng.uniform(-1, 0.7)), weights, bool(weights is None or rng.random() < 0.6),
    )  # fmt: skip
