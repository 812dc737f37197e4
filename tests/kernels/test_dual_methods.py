"""The two dual methods against slow twins, iteration by iteration."""

from __future__ import annotations

import numpy as np
import pytest
from bounds_by_hand import call, each_loss, make_problem, plain_bound, root
from scipy.optimize import brentq

from exactsel import Problem, registry
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.pdal import PrimalDualBound
from exactsel.bounds.supergradient import SupergradientBound
from exactsel.kernels.node import FREE
from exactsel.kernels.pdal import STEPS
from exactsel.losses import Huber, Logistic, Quadratic


def twin_prox_conjugate_loss(problem, u, tau):
    """prox_{tau L*}(u) from L* itself."""
    if not isinstance(problem.loss, Logistic):
        beta = (u - tau * problem.y) / (1.0 + tau)
        return beta if isinstance(problem.loss, Quadratic) else np.clip(beta, -problem.loss.delta, problem.loss.delta)
    p = [
        brentq(lambda p, a=-yi * ui: p - a + tau * (np.log(p) - np.log1p(-p)), 1e-300, 1.0 - 1e-16, xtol=1e-15)
        for ui, yi in zip(u, problem.y, strict=True)
    ]
    return -problem.y * np.array(p)


def twin_prox_norm(u, slots, weight):
    """Prox of weight/2 times the squared k-support norm, the water level by bisection."""
    low, high = 0.0, (1.0 + weight) / max(np.abs(u).min(), 1e-12)
    for _ in range(300):
        middle = 0.5 * (low + high)
        too_much = np.clip(middle * np.abs(u) - weight, 0.0, 1.0).sum() > slots
        low, high = (low, middle) if too_much else (middle, high)
    z = np.clip(low * np.abs(u) - weight, 0.0, 1.0)
    return u * z / (z + weight)


def twin_pdal(problem, iterations):
    """The paper's Algorithm 3 at the root, word for word; the best bound, the last beta and x, and the steps."""
    A, gamma = problem.AT.T, 1.0 / problem.loss.smoothness
    # The algorithm as published, for A in units in which its norm is between 1/2 and 1.
    norm = np.sqrt(problem.spectral_norm_squared)
    unit = 2.0 ** np.frexp(norm)[1]
    tau, theta, rho = unit / norm, 1.0, unit**-2.0
    x, beta, best = np.zeros(problem.d), np.zeros(problem.n), -np.inf
    for _ in range(iterations):
        last_beta, beta = beta, twin_prox_conjugate_loss(problem, beta + tau * A @ x, tau)
        best = max(best, plain_bound(problem, root(problem), beta))
        last_rho, last_tau, rho = rho, tau, rho * (1.0 + gamma * tau)
        tau = last_tau * np.sqrt(last_rho / rho * (1.0 + theta))
        while True:
            theta = tau / last_tau
            moved = x - rho * tau * A.T @ (beta + theta * (beta - last_beta))
            new = twin_prox_norm(moved, problem.k, rho * tau * problem.lam)
            if np.sqrt(rho) * tau * np.linalg.norm(A @ (new - x)) <= 0.99 * np.linalg.norm(new - x):
                break
            tau *= 0.7
        x = new
    return best, beta, x, (tau, theta, rho)


@pytest.mark.smoke
@each_loss
def test_pdal_follows_the_paper(loss):
    problem = make_problem(7, loss)
    for iterations in (1, 2, 10, 40):
        bound = PrimalDualBound(accuracy=0.0, max_iterations=iterations)
        result = call(bound, problem, [root(problem)], force_quit=False)
        best, beta, x, steps = twin_pdal(problem, iterations)
        memory = result.warm[0]
        assert result.answers.iterations[0] == iterations
        assert result.answers.bound[0] == pytest.approx(best, rel=1e-8)
        np.testing.assert_allclose(memory[:STEPS], steps, rtol=1e-7)
        np.testing.assert_allclose(memory[STEPS : STEPS + problem.d], x, atol=1e-7)
        np.testing.assert_allclose(memory[STEPS + problem.d :], beta, atol=1e-7)
        np.testing.assert_allclose(result.answers.x[0], x, atol=1e-7)


def twin_supergradient(problem, iterations):
    """Projected supergradient ascent at the root; the best bound and the last beta."""
    A, loss, k = problem.AT.T, problem.loss, problem.k
    first = 1.0 + loss.smoothness * problem.spectral_norm_squared / problem.lam
    beta, best = np.zeros(problem.n), -np.inf
    for step in range(iterations + 1):
        best = max(best, plain_bound(problem, root(problem), beta))
        if step == iterations:
            return best, beta
        v = A.T @ beta
        x = np.zeros(problem.d)
        kept = np.argsort(-np.abs(v), kind="stable")[:k]
        x[kept] = -v[kept] / problem.lam
        if isinstance(loss, Logistic):
            p = np.clip(-problem.y * beta, 1e-14, 1.0 - 1e-14)
            gradient = -problem.y * np.log(p / (1.0 - p))
        else:
            gradient = beta + problem.y
        moved = beta + loss.smoothness / (first + step) * (A @ x - gradient)
        if isinstance(loss, Logistic):
            beta = -problem.y * np.clip(-problem.y * moved, 0.0, 1.0)
        else:
            beta = np.clip(moved, -loss.delta, loss.delta) if isinstance(loss, Huber) else moved
    raise AssertionError


@pytest.mark.smoke
@each_loss
def test_supergradient_ascent_follows_its_description(loss):
    problem = make_problem(8, loss)
    for iterations in (0, 1, 30):
        bound = SupergradientBound(accuracy=0.0, max_iterations=iterations)
        result = call(bound, problem, [root(problem)], force_quit=False)
        best, beta = twin_supergradient(problem, iterations)
        assert result.answers.iterations[0] == iterations
        assert result.answers.bound[0] == pytest.approx(best, rel=1e-8)
        np.testing.assert_allclose(result.warm[0][1:], beta, atol=1e-8)


@pytest.mark.parametrize("damage", ["nan", "infinite", "no step", "too short", "whole numbers"])
@pytest.mark.parametrize("name", ["pdal", "supergradient"])
def test_a_memory_no_kernel_left_is_not_started_from(name, damage):
    """It may come from a damaged file, and could keep the kernel from ending."""
    rng = np.random.default_rng(3)
    problem = Problem(rng.standard_normal((12, 6)), rng.standard_normal(12), 2, lam=0.5)
    bound = registry.load("bounds", name)().prepare(problem, BoundOptions())
    states = np.full((1, 6), FREE, dtype=np.int8)
    alone = bound.tighten(states, [None], np.inf, 100.0)
    memory = alone.warm[0].copy()
    if damage == "no step":
        memory[0] = -1.0
    elif damage in ("nan", "infinite"):
        memory[-1] = np.nan if damage == "nan" else np.inf
    else:
        memory = memory[:-1] if damage == "too short" else memory.astype(np.int64)
    again = bound.tighten(states, [memory], np.inf, 100.0)
    assert again.answers.bound[0] == alone.answers.bound[0]
    assert again.answers.iterations[0] == alone.answers.iterations[0]
