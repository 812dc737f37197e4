"""Signs and bounds of coefficients with losses other than the quadratic one: against all sets, fitted by L-BFGS-B."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from boxed_cases import LOSSES
from samples import sample
from scipy.optimize import minimize
from scipy.special import xlogy

from exactsel import Problem, boxed, solve


def loss_of(name, z, y):
    """Each row's loss, by its definition."""
    if name == "huber":
        size = np.abs(z - y)
        return np.where(size <= 0.7, 0.5 * size**2, 0.7 * (size - 0.35))
    if name == "poisson":
        return np.exp(z) - y * z + xlogy(y, y) - y
    return np.logaddexp(0.0, -y * z) if name == "logistic" else np.maximum(0.0, 1.0 - y * z) ** 2


@pytest.mark.parametrize("seed", sample(32, 400, smoke=4))
def test_what_is_said_holds_for_the_data_as_given(seed):
    """Columns far from zero and of other sizes, an intercept, scaling, weights: by hand, from the data themselves."""
    rng = np.random.default_rng([seed, 67])
    loss, n, d = LOSSES[seed % 4], 24, 3
    A = (5.0 + rng.standard_normal((n, d))) * 10.0 ** rng.integers(-2, 3, d)
    z = (A[:, 0] - A[:, 0].mean()) / A[:, 0].std() + rng.standard_normal(n)
    counts = rng.poisson(np.exp(np.clip(z, -2.0, 2.0))).astype(float)
    y = {"huber": 3.0 + 2.0 * z, "poisson": counts}.get(loss, np.where(z > np.median(z), 1.0, -1.0))
    w, lam, scale = rng.integers(1, 4, n).astype(float), float(rng.choice([0.1, 1.0])), bool(seed % 3)
    options = {"delta": 0.7} if loss == "huber" else {}
    given = Problem.prepared(A, y, 2, loss=loss, lam=lam, intercept=True, scale=scale, weights=w, **options)
    result = solve(boxed(given, "all"), signals=())
    assert result.reached
    spread = (
        np.sqrt(np.average((A - np.average(A, axis=0, weights=w)) ** 2, axis=0, weights=w)) if scale else np.ones(d)
    )

    def cost(coef, level):
        return float(w @ loss_of(loss, A @ coef + level, y) + 0.5 * lam * np.sum((spread * coef) ** 2))

    def best_on(chosen):
        # Centred and of one size, which changes neither the objective nor the signs.
        X = (A[:, chosen] - A[:, chosen].mean(axis=0)) / A[:, chosen].std(axis=0)
        ridge = (spread[chosen] / A[:, chosen].std(axis=0)) ** 2

        def value(p):
            return float(w @ loss_of(loss, X @ p[:-1] + p[-1], y) + 0.5 * lam * ridge @ p[:-1] ** 2)

        limits = [(0.0, None)] * len(chosen) + [(None, None)]
        found = minimize(value, np.zeros(len(chosen) + 1), method="L-BFGS-B", bounds=limits, options={"ftol": 1e-15})
        again = minimize(value, found.x, method="Powell", bounds=limits, options={"xtol": 1e-10, "ftol": 1e-15})
        return min(found.fun, again.fun)

    best = min(best_on([*c]) for size in (1, 2) for c in itertools.combinations(range(d), size))
    assert result.lower <= best * (1.0 + 1e-9)
    assert result.upper == pytest.approx(best, rel=1e-5)
    assert np.all(result.model.coef >= 0.0)
    shown = cost(result.model.coef, result.model.intercept)
    assert result.upper == pytest.approx(shown, rel=1e-8)
    assert shown >= result.lower * (1.0 - 1e-9)
