"""Newton's method on the perspective relaxation: its model's minimiser and its bounds, beside plain numpy."""

from __future__ import annotations

import numpy as np
import pytest
from free_rows import free_case
from instances_for_tests import random_case
from samples import sample, whole

from exactsel import Problem
from exactsel.kernels.forms import form_of
from exactsel.kernels.newton_relaxation import k_support_norm, minimise_model, newton_relaxation
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.kernels.selection import prox_k_support
from exactsel.losses.adjusted import is_adjusted

NEVER = np.zeros(1, dtype=np.bool_)


def slow_norm(x, fixed, slots):
    """||x_S||^2 + squared k-support norm of x_C, by bisection over the indicators' level."""
    size = np.abs(x[fixed:])
    if np.count_nonzero(size) <= slots:
        return float(x @ x)
    low, high = 0.0, 1.0 / size[size > 0].min()
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.minimum(1.0, middle * size).sum() < slots else (low, middle)
    z = np.minimum(1.0, high * size)
    return float(x[:fixed] @ x[:fixed] + np.sum(size[size > 0] ** 2 / z[size > 0]))


def slow_minimum(M, linear, fixed, slots, lam, u):
    """The least value of the model, by proximal gradient steps."""
    step, u = 1.0 / np.linalg.eigvalsh(M)[-1], u.copy()
    for _ in range(20_000):
        new = np.empty_like(u)
        prox_k_support(u - step * (M @ u - linear), fixed, slots, step * lam, 0.0, new)
        if np.abs(new - u).max() <= 1e-12 * (1.0 + np.abs(u).max()):
            break
        u = new
    return value_of(M, linear, fixed, slots, lam, u)


def value_of(M, linear, fixed, slots, lam, u):
    return 0.5 * u @ M @ u - linear @ u + 0.5 * lam * slow_norm(u, fixed, slots)


@pytest.mark.parametrize("seed", sample(20, 200, smoke=2))
def test_the_model_is_minimised(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 12))
    fixed = int(rng.integers(0, m - 1))
    slots = int(rng.integers(1, m - fixed))
    A = rng.standard_normal((m + 3, m)) * 10.0 ** rng.uniform(-0.5, 0.5, m)
    if seed % 3 == 0:
        A[:, 0] = A[:, 1]
    M, linear, lam = A.T @ A, A.T @ rng.standard_normal(m + 3), float(10.0 ** rng.uniform(-1, 1))
    u, H = np.zeros(m), np.empty((m, m))
    assert minimise_model(np.tril(M), linear, fixed, slots, lam, u, H)
    least, value = slow_minimum(M, linear, fixed, slots, lam, u), value_of(M, linear, fixed, slots, lam, u)
    assert value >= least - 1e-9 * (1.0 + abs(least))
    assert value <= least + 0.03 * abs(least) + 1e-9


@pytest.mark.parametrize("seed", sample(20, 100))
def test_the_norm_is_that_of_its_definition(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 15))
    fixed = int(rng.integers(0, m - 1))
    slots, x = int(rng.integers(1, m - fixed)), rng.standard_normal(m) * (rng.random(m) < 0.7)
    assert k_support_norm(x, fixed, slots, np.empty(m)) == pytest.approx(slow_norm(x, fixed, slots), rel=1e-9)


def relaxed(problem, columns, fixed, cutoff, start, stop=NEVER):
    x, image = start[columns].copy(), np.empty(problem.n)
    form = form_of(problem.raw, columns)
    work = newton_relaxation(
        problem.row_loss, form, fixed, problem.k - fixed, problem.lam, cutoff, stop, start, x, image
    )  # fmt: skip
    dense = np.zeros(problem.d)
    dense[columns] = x
    return dense, image, work


@pytest.mark.parametrize("block", sample(3, 12, smoke=1))
def test_the_bound_is_that_of_the_relaxation(block):
    """No point's relaxed objective is below it, and that of nine points in ten is near."""
    near, asked = 0, 0
    for seed in range(40 * block, 40 * block + 40):
        loss, rng = ("huber", "logistic")[seed % 2], np.random.default_rng([3, seed])
        case = free_case(seed, loss) if seed % 4 < 2 else random_case(seed, loss=loss, lam=10.0 ** rng.uniform(-3, 1))
        problem = case.problem()
        if not whole() and is_adjusted(type(problem.row_loss)) != (loss == "logistic"):
            continue  # each of these takes kernels of its own
        fixed = int(rng.integers(0, max(1, problem.k)))
        left = problem.d - fixed
        if not 0 < problem.k - fixed < left:
            continue
        order = rng.permutation(problem.d)
        columns = np.concatenate([order[:fixed], np.sort(order[fixed : problem.d - (left > problem.k - fixed + 1)])])
        start = rng.choice([0.0, 1.0]) * rng.standard_normal(problem.d) / (1.0 + np.abs(problem.AT).max())
        dense, image, work = relaxed(problem, columns, fixed, np.inf, start)
        state = np.full(problem.d, OUT, dtype=np.int8)
        state[columns], state[columns[:fixed]] = FREE, IN
        bound = problem.objective.dual_bound(dense, state, problem.k)
        x = dense[columns]
        ridge = 0.5 * problem.lam * (slow_norm(x, fixed, problem.k - fixed) - float(x @ x))
        relaxation = problem.objective(dense) + ridge
        assert bound <= relaxation + 1e-9 * (1.0 + abs(relaxation)), seed
        assert work >= 1.0
        moved = image - dense @ problem.AT
        assert np.allclose(moved, moved[0] if problem.intercept else 0.0, atol=1e-7 * (1.0 + np.abs(image).max()))
        near += bound >= relaxation - 1e-3 * abs(relaxation)
        asked += 1
    assert near >= 0.9 * asked > 0


def test_a_column_that_is_left_out_is_made_up_for():
    rng = np.random.default_rng(0)
    A = (rng.random((80, 20)) < 0.4).astype(float)
    y = np.where(A[:, 0] + A[:, 1] - A[:, 2] > 0.2, 1.0, -1.0)
    problem = Problem.prepared(A, y, 4, loss="logistic", lam=1e-3, intercept=True)
    everything = np.arange(problem.d)
    best, _, _ = relaxed(problem, everything, 0, np.inf, np.zeros(problem.d))
    without = np.delete(everything, int(np.argmax(np.abs(best))))
    part = best.copy()
    part[np.setdiff1d(everything, without)] = 0.0
    _, _, from_whole = relaxed(problem, without, 0, np.inf, best)
    _, _, from_part = relaxed(problem, without, 0, np.inf, part)
    assert from_whole < from_part


def test_it_obeys_the_stop_flag():
    rng = np.random.default_rng(1)
    problem = Problem(rng.standard_normal((20, 6)), rng.standard_normal(20), 2, loss="huber", lam=0.1)
    start = np.full(problem.d, 0.25)
    dense, _, _ = relaxed(problem, np.arange(problem.d), 0, np.inf, start, np.ones(1, dtype=np.bool_))
    assert np.array_equal(dense, start)
