"""The Newton fit on a node's columns: its model, its bound, and what leaving a column out costs, from plain numpy."""

from __future__ import annotations

import numpy as np
import pytest
from free_rows import free_case
from instances_for_tests import random_case
from samples import many, sample, whole

from exactsel.kernels.newton_fit import ENOUGH, EXACT, fit_hessian, newton_fit
from exactsel.kernels.node import FREE
from exactsel.kernels.rows import loss_curvature, weighted_gram
from exactsel.losses.adjusted import is_adjusted
from exactsel.problem.fit import fit_support

NEVER = np.zeros(1, dtype=np.bool_)


def problems(block):
    """Problems of both losses, with weights or an intercept and without, with columns to fit on.

    Outside of the slow tests one loss has them and the other has not: each takes kernels of its own.
    """
    for seed in range(40 * block, 40 * block + 40):
        loss = ("huber", "logistic")[seed % 2]
        rng = np.random.default_rng(seed)
        case = free_case(seed, loss) if seed % 4 < 2 else random_case(seed, loss=loss, lam=10.0 ** rng.uniform(-3, 1))
        problem = case.problem()
        if not whole() and is_adjusted(type(problem.row_loss)) != (loss == "logistic"):
            continue
        size = int(rng.integers(1, problem.d + 1))
        yield rng, problem, np.sort(rng.permutation(problem.d)[:size])


def fitted(problem, columns, cutoff, start=None, stop=NEVER):
    x, z, costs = np.zeros(columns.size) if start is None else start.copy(), np.empty(problem.n), np.empty(columns.size)
    work = newton_fit(
        problem.row_loss, problem.raw.AT, problem.y, problem.lam, columns, cutoff, stop, x, z, costs
    )  # fmt: skip
    return x, z, costs, work


def full(problem, columns, x):
    dense = np.zeros(problem.d)
    dense[columns] = x
    return dense


def hessian(problem, columns, z):
    """A'WA + lam I from its definition, W = diag(w) - w w' / sum(w) with an intercept."""
    w = np.empty(problem.n)
    loss_curvature(problem.row_loss, z.copy(), problem.y, w)
    W = np.diag(w)
    if problem.intercept and w.sum() > 0:
        W -= np.outer(w, w) / w.sum()
    A = problem.AT.T[:, columns]
    return A.T @ W @ A + problem.lam * np.eye(columns.size), w


@pytest.mark.parametrize("block", sample(4, 12, smoke=1))
def test_the_fit_and_its_bound(block):
    converged, tried = 0, 0
    for rng, problem, columns in problems(block):
        least = fit_support(problem.objective, columns).value
        start = rng.choice([0.0, 1.0]) * rng.standard_normal(columns.size)
        x, z, _, work = fitted(problem, columns, np.inf, start)
        dense = full(problem, columns, x)
        value, g = problem.objective(dense), problem.gradient(dense)[columns]
        lost = float(g @ g) / (2.0 * problem.lam)
        size = 1e-9 * (1.0 + abs(value))
        assert value >= least - size
        assert work >= 1.0
        state = np.zeros(problem.d, dtype=np.int8)
        state[columns] = FREE
        bound = problem.objective.dual_bound(dense, state, columns.size)
        assert value - lost - 1e-6 * (1.0 + abs(value)) <= bound <= least + size
        moved = z - dense @ problem.AT
        assert np.allclose(moved, moved[0] if problem.intercept else 0.0, atol=1e-7 * (1.0 + np.abs(z).max()))
        tried += 1
        converged += lost <= 2.0 * EXACT * abs(value) + size
    assert converged >= 0.75 * tried > 10


@pytest.mark.parametrize("block", sample(2, 6))
def test_it_ends_as_soon_as_the_cutoff_is_decided(block):
    for rng, problem, columns in problems(block):
        exact, _, _, longest = fitted(problem, columns, np.inf)
        least = problem.objective(full(problem, columns, exact))
        for cutoff in (0.5 * least, least * (1.0 + rng.uniform(0.1, 1.0)) + 1e-3):
            x, _, costs, work = fitted(problem, columns, cutoff)
            dense = full(problem, columns, x)
            g = problem.gradient(dense)[columns]
            reached = problem.objective(dense) - float(g @ g) / (2.0 * problem.lam)
            assert work <= longest + 0.25 * columns.size + 1.0
            if reached >= cutoff * (1.0 + 1e-12):
                assert not costs.any()
            elif cutoff > least and work < longest:
                assert cutoff - reached <= (1.0 + 2.0 * ENOUGH) * (cutoff - least) + 1e-9 * (1.0 + least)


@pytest.mark.parametrize("block", sample(2, 6))
def test_costs_are_those_of_the_inverse_hessian(block):
    compared = 0
    for _, problem, columns in problems(block):
        # Ended at once by a cut-off far above: the costs are from the Hessian at the very point.
        start = fitted(problem, columns, np.inf)[0]
        x, z, costs, _ = fitted(problem, columns, 1e12, start)
        if not np.array_equal(x, start) or not costs.any():
            continue
        H, _ = hessian(problem, columns, z)
        if np.linalg.cond(H) > 1e8:
            continue
        wanted = x**2 / (2.0 * np.diagonal(np.linalg.inv(H)))
        assert np.allclose(costs, wanted, rtol=1e-6, atol=1e-12 * (1.0 + wanted.max()))
        compared += 1
    assert compared >= many(5, 10)


@pytest.mark.parametrize("block", sample(1, 4))
def test_the_hessian_is_the_one_by_single_columns(block):
    for rng, problem, columns in problems(block):
        z = rng.standard_normal(problem.n)
        slow, fast = np.zeros((columns.size, columns.size)), np.zeros((columns.size, columns.size))
        exact, w = hessian(problem, columns, z)
        weighted_gram(problem.row_loss, problem.raw.AT, columns, w, problem.lam, slow)
        assert fit_hessian(problem.row_loss, problem.raw.AT, columns, w, problem.lam, NEVER, fast)
        size = 1e-11 * (1.0 + np.abs(problem.AT.T[:, columns]).max() ** 2 * w.sum())
        assert np.allclose(np.tril(slow), np.tril(fast), rtol=1e-12, atol=size)
        assert np.allclose(np.tril(exact), np.tril(fast), rtol=1e-9, atol=1e3 * size)


def test_it_obeys_the_stop_flag():
    _, problem, columns = next(problems(0))
    start = np.full(columns.size, 0.25)
    x, _, costs, _ = fitted(problem, columns, np.inf, start, np.ones(1, dtype=np.bool_))
    assert np.array_equal(x, start)
    assert not costs.any()
