"""The best models over all sizes, against every set of columns."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.integrate import quad

from exactsel import Problem, best_model
from exactsel.errors import InputError, UnsupportedError

CRITERIA = ("aic", "aicc", "bic", "ebic", "hqic", "custom")
LEFT_ALONE = {"signals": (), "threads": 1}


def awkward(seed, loss, lam, n=14, d=5):
    """A small instance, with columns that are equal, opposite or constant in some of them."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, d))
    if seed % 3 == 0:
        A[:, -1] = A[:, 0]
    if seed % 4 == 1:
        A = np.sign(A)
    if seed % 5 == 2:
        A[:, 1] = 1.0
    y = A[:, :2] @ rng.normal(size=2) + rng.normal(size=n) * (0.2 + seed % 3)
    if loss == "logistic":
        y = np.where(y > 0, 1.0, -1.0)
        y[:2] = (-1.0, 1.0)
    options = {"delta": 1.3} if loss == "huber" else {}
    return Problem.prepared(A, y, d, loss=loss, lam=lam, intercept=bool(seed % 2), **options)


def deviance(problem, objective):
    """-2 log L by the definition, row by row of the density's logarithm."""
    n = problem.n
    if problem.loss.name == "quadratic":
        variance = 2.0 * objective / n
        return n * math.log(2.0 * math.pi * variance) + 2.0 * objective / variance
    if problem.loss.name == "logistic":
        return 2.0 * objective
    delta = problem.loss_parameters["delta"]
    middle = quad(lambda r: math.exp(-0.5 * r**2), -delta, delta, epsabs=1e-14)[0]
    tail = quad(lambda r: math.exp(-delta * r + 0.5 * delta**2), delta, math.inf, epsabs=1e-14)[0]
    return 2.0 * objective + 2.0 * n * math.log(middle + 2.0 * tail)


def criterion(name, problem, objective, size):
    n, d = problem.n, problem.d
    p = size + (problem.preparation is not None) + (problem.loss.name == "quadratic")
    fit = deviance(problem, objective)
    return {
        "aic": lambda: fit + 2 * p, "aicc": lambda: fit + 2 * p * n / (n - p - 1), "bic": lambda: fit + p * math.log(n),
        "ebic": lambda: fit + p * math.log(n) + 2 * math.log(math.comb(d, size)),
        "hqic": lambda: fit + 2 * p * math.log(math.log(n)), "custom": lambda: fit + 1.5 * p,
    }[name]()  # fmt: skip


def every(name, problem, k_max=None):
    """The criterion of every set of columns."""
    sets = [s for k in range((problem.d if k_max is None else k_max) + 1) for s in combinations(range(problem.d), k)]
    return {s: criterion(name, problem, problem.fit(s).value, len(s)) for s in sets}


def check(problem, name, top, values, **options):
    """Hold what is said against all sets."""
    own = {"penalty": 1.5} if name == "custom" else {}
    found = best_model(problem, criterion=name, top=top, **own, **LEFT_ALONE, **options)
    ordered, tiny = sorted(values.values()), 1e-6
    assert found.reached
    assert found.complete
    assert found.lower <= ordered[0] + 1e-9
    assert found.value == pytest.approx(ordered[0], abs=tiny)
    assert found.gap <= tiny
    for size in found.sizes:
        assert size.lower <= min(value for s, value in values.items() if len(s) == size.size) + 1e-9
        assert size.settled
    assert len(found.models) == min(top, len(values))
    for model, value in zip(found.models, ordered, strict=False):
        assert model.criterion == pytest.approx(value, abs=tiny)
        assert values[model.support] == pytest.approx(model.criterion, abs=tiny)
    assert len({model.support for model in found.models}) == len(found.models)
    assert sum(found.weights) == pytest.approx(1.0)
    return found


@pytest.mark.parametrize("name", CRITERIA)
@pytest.mark.parametrize(("loss", "lam"), [("quadratic", 0.0), ("quadratic", 0.1), ("huber", 0.01), ("logistic", 0.01)])
def test_the_best_models_are_those_of_trying_every_set(loss, lam, name):
    for seed in range(3):
        problem = awkward(seed + 10 * CRITERIA.index(name), loss, lam)
        check(problem, name, (1, 4, 40)[seed], every(name, problem))
