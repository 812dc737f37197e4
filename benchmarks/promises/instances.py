"""A dozen problems of all kinds that take a search seconds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.speed.instances import full
from exactsel import Problem
from exactsel.types import FloatArray


def _rng(seed: int) -> np.random.Generator:
    return np.random.default_rng([42, seed])


def _features(n: int, d: int, factors: int, noise: float, seed: int) -> tuple[FloatArray, FloatArray]:
    """Many nearly collinear columns: what a few factors make of them, and a target made of the factors."""
    rng = _rng(seed)
    Z = rng.standard_normal((n, factors))
    A = Z @ (rng.standard_normal((factors, d)) * (rng.random((factors, d)) < 0.3))
    A += noise * rng.standard_normal((n, d)) * rng.lognormal(0.0, 1.0, d)
    y = Z @ rng.standard_normal(factors) + 0.8 * np.sin(2 * Z[:, 0]) + 0.5 * rng.standard_normal(n)
    A = A - A.mean(axis=0)
    return A / A.std(axis=0), y - y.mean()


def features(d: int, k: int, lam: float = 0.0, dependent: bool = False) -> Problem:
    """Features of images or molecules, as many as three of which may be sums of others."""
    A, y = _features(4 * d, d, d // 8, 0.15, d)
    if dependent:
        A[:, -3:] = A[:, :3] - A[:, 3:6]
    return Problem(A, y, k, lam=lam)


def correlated(d: int, k: int, rho: float, lam: float) -> Problem:
    """Columns that are the more correlated the nearer they are, with few rows."""
    rng, places = _rng(d + k), np.arange(d)
    A = rng.standard_normal((2 * d, d)) @ np.linalg.cholesky(rho ** np.abs(places[:, None] - places)).T
    A /= np.linalg.norm(A, axis=0)
    coef = np.where(places % (d // k) == 0, 1.0, 0.0)
    return Problem(A, A @ coef + 0.15 * rng.standard_normal(2 * d), k, lam=lam)


def classes(n: int, d: int, k: int, loss: str) -> Problem:
    """Labels of correlated columns."""
    A, z = _features(n, d, d // 4, 0.5, n)
    y = np.where(z + _rng(n).logistic(size=n) > 0, 1.0, -1.0)
    return Problem(A, y, k, lam=1.0, loss=loss)


def counts(n: int, d: int, k: int) -> Problem:
    """Counts of events."""
    A, z = _features(n, d, d // 4, 0.5, n)
    return Problem(A, _rng(n).poisson(np.exp(np.clip(0.3 * z, -3.0, 3.0))).astype(float), k, lam=1.0, loss="poisson")


INSTANCES: dict[str, Callable[[], Problem]] = {
    "features": lambda: features(96, 8),
    "features, a ridge": lambda: features(96, 8, 1.0),
    "features, dependent": lambda: features(72, 5, dependent=True),
    "many features": lambda: features(200, 8),
    "hard": lambda: correlated(80, 12, 0.7, 0.01),
    "hardly correlated": lambda: correlated(100, 8, 0.2, 0.01),
    "easy": lambda: correlated(200, 8, 0.2, 0.5),
    "wide": lambda: Problem(*_features(60, 300, 20, 0.5, 3), 4, lam=1.0),
    "huber": lambda: Problem(*_features(200, 60, 15, 0.3, 4), 7, lam=1.0, loss="huber"),
    "logistic": lambda: classes(200, 50, 8, "logistic"),
    "squared hinge": lambda: classes(150, 50, 8, "squared_hinge"),
    "poisson": lambda: counts(150, 40, 7),
}


def everything() -> dict[str, Callable[[], Problem]]:
    """These and those of :mod:`benchmarks.speed`, real data where ``EXACTSEL_DATA`` says where they are."""
    return INSTANCES | {name: lambda make=make: make().problem() for name, make in full().items()}
