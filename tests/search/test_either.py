"""Two kernels for subtrees of dependent columns take turns: the one that ends sooner, and no more work than offered."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from samples import sample

from exactsel import Problem, solve
from exactsel.bounds.base import BoundOptions
from exactsel.enumeration.closed_form import ClosedFormEnumeration
from exactsel.enumeration.dependent import DependentEnumeration
from exactsel.enumeration.faster import FasterEnumeration
from exactsel.kernels.node import FREE, IN


def dependent(seed, n=40, base=4):
    """Columns with copies, sums and close copies of them, and products, as interactions have."""
    rng = np.random.default_rng([4200, seed])
    X = rng.normal(size=(n, base)) + rng.choice([0.0, 3.0])
    near = X + 10.0 ** -rng.integers(2, 6) * rng.normal(size=X.shape)
    A = np.hstack([X, X[:, [0]] * X, near, X[:, :2], X[:, [0]] + X[:, [1]]])
    y = A @ (rng.normal(size=A.shape[1]) * (rng.random(A.shape[1]) < 0.3)) + rng.normal(size=n)
    return Problem.prepared(A, y, int(rng.integers(1, 5)), intercept=True)


def enumerations(problem):
    options = BoundOptions()
    other = DependentEnumeration.of(problem, options)
    assert other is not None
    return FasterEnumeration(ClosedFormEnumeration(problem, None, options), other), other


def least(problem):
    """The least objective of the models on k columns."""
    sets = itertools.combinations(range(problem.d), problem.k)
    return min(problem.fit(np.array(chosen)).value for chosen in sets)


@pytest.mark.parametrize("seed", sample(6, 200))
def test_regions_are_closed_below_every_model_in_them(seed):
    problem = dependent(seed, n=20, base=2)
    either, _ = enumerations(problem)
    best, rng = least(problem), np.random.default_rng(seed)
    upper = best * rng.choice([1.0, 1.5]) + 1e-9
    walk = either.explore(problem.root_state[None], upper, 1e-6 * upper, 10_000)[0]
    assert walk is not None
    if walk.finished:
        assert walk.min_pruned_bound <= best * (1.0 + 1e-9) or walk.min_pruned_bound <= upper
        assert walk.support is not None or best >= upper * (1.0 - 2e-6)
    left = [least_in(problem, state) for state in walk.open_states]
    closed = best < upper - 2e-6 * upper and (
        walk.support is None or problem.fit(walk.support).value > best * (1 + 1e-6)
    )
    assert not closed or min(left, default=np.inf) <= best * (1.0 + 1e-6), "the best model is lost"


def least_in(problem, state):
    included, free = np.flatnonzero(state == IN), np.flatnonzero(state == FREE)
    slots = min(problem.k - included.size, free.size)
    sets = itertools.combinations(free, slots)
    return min(problem.fit(np.sort(np.concatenate([included, chosen]).astype(int))).value for chosen in sets)


def test_no_more_work_than_was_offered_and_less_left_than_by_one_alone():
    problem = dependent(3)
    either, other = enumerations(problem)
    upper = problem.null_objective
    for work in (1e5, 1e6, 1e7):
        walk = either.explore(problem.root_state[None], upper, 1e-9 * upper, 100_000, work)[0]
        assert walk.work <= 1.5 * work + 1e6
    alone = other.explore(problem.root_state[None], upper, 1e-9 * upper, 100_000, 1e7)[0]
    assert walk.finished or len(walk.open_states) <= len(alone.open_states)


def test_what_one_kernel_alone_leaves_open_is_closed():
    """Products and close copies of nine columns: after 15 seconds half of the objective was open."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(140, 9)) + 3.0
    products = np.stack([X[:, i] * X[:, j] for i in range(9) for j in range(i, 9)], axis=1)
    A = np.hstack([X, products, X + 1e-3 * rng.normal(size=X.shape)])
    A = np.hstack([A, A[:, :3], A[:, [0]] + A[:, [1]]])
    y = A @ (rng.normal(size=A.shape[1]) * (rng.random(A.shape[1]) < 0.1)) + 5.0 * rng.normal(size=140)
    result = solve(A, y, 5, node_limit=2_000)
    assert result.reached, result
