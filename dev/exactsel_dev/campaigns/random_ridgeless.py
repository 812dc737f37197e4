"""Instances of Huber and logistic loss with lam = 0: as they come, mostly without a best model, or made to have one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from exactsel.testing.instances import TinyInstance
from exactsel.types import FloatArray

AS_THEY_COME, MADE = 0.15, 0.35
"""Shares of the instances with these losses whose ridge is taken away, and which are made anew besides."""

MORE_ROWS = {"huber": (1, 3, 10), "logistic": (2, 4, 12)}
"""Rows for every column, and besides at least and at most; with fewer most classes are separated."""

Random = np.random.Generator


def without_ridge(rng: Random, instance: TinyInstance) -> TinyInstance:
    """At times without a ridge, where the loss is one that could not always do without."""
    if instance.loss not in ("huber", "logistic"):
        return instance
    chance = rng.random()
    if chance < AS_THEY_COME:
        return replace(instance, lam=0.0)
    return _made(rng, instance) if chance < AS_THEY_COME + MADE else instance


def _made(rng: Random, instance: TinyInstance) -> TinyInstance:
    """The same size, demands and settings on data that mostly have a best model."""
    d = instance.d
    each, fewest, most = MORE_ROWS[instance.loss]
    n = each * d + int(rng.integers(fewest, most + 1))
    A = _columns(rng, n, d)
    size = np.linalg.norm(A - A.mean(axis=0), axis=0)
    signal = A @ (rng.standard_normal(d) * (rng.random(d) < 0.5) / np.where(size > 0, size, 1.0)) * np.sqrt(n)
    noise = float(rng.choice([0.3, 1.0, 3.0, 3.0])) * rng.standard_normal(n)
    weights = None
    if instance.weights is not None:
        weights = 10.0 ** rng.uniform(-1, 1, n) if rng.random() < 0.6 else rng.integers(0, 4, n).astype(float)
    intercept = bool(rng.random() < 0.5)
    if instance.loss == "logistic":
        y = np.where(signal - np.median(signal) + noise >= 0, 1.0, -1.0)
        y[rng.permutation(n)[:2]] = 1.0, -1.0
    else:
        y = np.asarray(np.round(signal + noise) if rng.random() < 0.2 else signal + noise)
        y[rng.random(n) < 0.15] += float(rng.choice([10.0, 1e3]))
    if weights is not None:
        weights[[int(np.argmax(y)), int(np.argmin(y))]] += 1.0
    if rng.random() < 0.2:
        A = np.ldexp(A, rng.integers(-30, 31, d) if rng.random() < 0.5 else int(rng.integers(-60, 61)))
    delta = float(10.0 ** rng.uniform(-1.5, 0.5) * (np.std(y) or 1.0)) if instance.loss == "huber" else instance.delta
    return replace(instance, A=A, y=y, lam=0.0, delta=delta, weights=weights, intercept=intercept)


def _columns(rng: Random, n: int, d: int) -> FloatArray:
    """Gaussian, of few values, a little or very much alike, with a column of zeros, or far from zero."""
    kind = int(rng.integers(6))
    A = rng.standard_normal((n, d))
    if kind == 1:
        A = rng.integers(-2, 3, (n, d)).astype(float)
    elif kind == 2:
        A = rng.integers(0, 2, (n, d)).astype(float)
    elif kind == 3:
        A = rng.standard_normal((n, 1)) + float(rng.choice([1.0, 0.3, 1e-2, 1e-4])) * A
    elif kind == 4:
        A[:, int(rng.integers(d))] = 0.0
    elif kind == 5:
        A = A + float(rng.choice([1.0, 1e2, 1e4])) * rng.integers(-1, 2, d)
    return np.asarray(A)
