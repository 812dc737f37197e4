"""Penalty paths: optimality conditions, closed forms, and other people's solvers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from instances_for_heuristics import each_loss, make_problem
from samples import examples
from scipy.optimize import minimize

from exactsel.problem.regression import Problem
from exactsel_heuristics import Context
from exactsel_heuristics._weighted_lasso import WeightedLasso, descend
from exactsel_heuristics.penalty_paths import LassoPath, McpPath, ScadPath, solve_level

PATHS = (LassoPath(), ScadPath(), McpPath())


@examples(60, 120)
@given(
    seed=st.integers(0, 10**6), m=st.integers(1, 6), rank=st.integers(1, 6), weight=st.floats(0.05, 3.0) | st.just(0.0)
)
def test_coordinate_descent_meets_the_optimality_conditions(seed, m, rank, weight):
    rng = np.random.default_rng(seed)
    columns = rng.standard_normal((rank, m))
    H = columns.T @ columns
    # Coordinate descent takes about as many sweeps as the condition, of which it has a limited number here.
    sizes = np.linalg.svd(columns, compute_uv=False)
    assume(sizes[-1] > 0.02 * sizes[0])
    # A gradient in the range of H, so that the problem is bounded whatever the weight.
    start, g = rng.standard_normal(m), H @ rng.standard_normal(m)
    x, updated, weights = start.copy(), g.copy(), np.full(m, weight)
    descend(H, updated, weights, 1e-12, 100_000, x)
    gradient = g + H @ (x - start)
    assert updated == pytest.approx(gradient, abs=1e-8)
    for j in range(m):
        if x[j] != 0.0:
            assert gradient[j] == pytest.approx(-weight * np.sign(x[j]), abs=1e-6)
        else:
            assert abs(gradient[j]) <= weight + 1e-6


@each_loss
@pytest.mark.parametrize("share", [0.5, 0.1, 0.01])
def test_the_weighted_lasso_meets_the_optimality_conditions(loss, share):
    for seed in range(3):
        problem = make_problem(seed, 30, 9, 9, loss)
        solver = WeightedLasso.of(problem)
        weights = share * solver.steepest * np.random.default_rng(seed).uniform(0.5, 1.0, problem.d)
        solver.minimise(weights)
        gradient = problem.gradient(solver.x)
        tolerance = 1e-6 * solver.steepest
        nonzero = solver.x != 0.0
        assert np.all(np.abs(gradient + weights * np.sign(solver.x))[nonzero] <= tolerance)
        assert np.all(np.abs(gradient[~nonzero]) <= weights[~nonzero] + tolerance)
        assert solver.violations(weights).max() <= tolerance


def test_the_lasso_agrees_with_least_angle_regression():
    linear = pytest.importorskip("sklearn.linear_model")
    for seed in range(4):
        problem = make_problem(seed, 40, 12, 12, lam=0.0, awkward=False)
        _, _, path = linear.lars_path(problem.AT.T, problem.y, method="lasso")
        sizes = np.count_nonzero(path, axis=0)
        for k in range(1, 12):
            # Between two knots the support is the one at the second; the first knot beyond k ends the path.
            beyond = int(np.argmax(sizes > k))
            expected = tuple(np.flatnonzero(path[:, beyond - 1]).tolist())
            assert LassoPath().run(problem.replace(k=k), Context()).support == expected


def test_the_lasso_of_logistic_loss_agrees_with_a_general_solver():
    problem = make_problem(5, 60, 8, 8, "logistic", lam=0.1, awkward=False)
    solver = WeightedLasso.of(problem)
    weight = 0.3 * solver.steepest
    solver.minimise(np.full(problem.d, weight))

    def split(parts):
        """The penalised objective and its gradient, with x as the difference of two non-negative vectors."""
        x = parts[:8] - parts[8:]
        gradient = problem.gradient(x)
        return problem.objective(x) + weight * parts.sum(), np.concatenate([gradient + weight, weight - gradient])

    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000}
    answer = minimize(split, np.zeros(16), jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * 16, options=options)
    assert 0 < np.count_nonzero(solver.x) < 8
    assert solver.x == pytest.approx(answer.x[:8] - answer.x[8:], abs=1e-4)


def scad(t, level, shape=3.7):
    if t <= level:
        return level * t
    if t <= shape * level:
        return (2 * shape * level * t - t**2 - level**2) / (2 * (shape - 1))
    return level**2 * (shape + 1) / 2


def mcp(t, level, shape=3.0):
    return level * t - t**2 / (2 * shape) if t <= shape * level else shape * level**2 / 2


PENALTIES = {"lasso": lambda t, level: level * t, "scad": scad, "mcp": mcp}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
@given(t=st.floats(0.01, 5.0), level=st.floats(0.1, 2.0))
def test_slopes_are_the_derivatives_of_the_published_penalties(path, t, level):
    h = 1e-6
    rise = (PENALTIES[path.name](t + h, level) - PENALTIES[path.name](t - h, level)) / (2 * h)
    assert path.slope(np.array([t]), level)[0] == pytest.approx(rise, abs=1e-4)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
@each_loss
def test_levels_are_stationary_and_never_above_the_point_before(path, loss):
    for seed in range(2):
        problem = make_problem(seed, 30, 9, 9, loss)
        solver = WeightedLasso.of(problem)

        def penalised(x, level, problem=problem):
            return problem.objective(x) / problem.n + sum(PENALTIES[path.name](abs(t), level) for t in x)

        for level in solver.steepest / problem.n * np.geomspace(0.9, 1e-2, 12):
            before = penalised(solver.x, level)
            solve_level(solver, level, problem.n, path.slope, path.concave)
            assert penalised(solver.x, level) <= before + 1e-9 * (1.0 + abs(before))
            weights = problem.n * path.slope(np.abs(solver.x), level)
            assert solver.violations(weights).max() <= 1e-4 * problem.n * level + 1e-7 * solver.steepest


def test_concave_penalties_have_their_closed_forms_on_orthogonal_columns():
    n, level = 64, 0.5
    A = np.sqrt(n) * np.linalg.qr(np.random.default_rng(0).standard_normal((n, 6)))[0]
    u = np.array([0.3, -0.7, 0.9, 1.2, -1.6, 4.0])
    problem = Problem(A, A @ u, 6, lam=0.0)
    beyond = np.sign(u) * np.maximum(np.abs(u) - level, 0.0)
    firm = np.where(np.abs(u) <= 3.0 * level, beyond / (1.0 - 1.0 / 3.0), u)
    middle = (2.7 * u - np.sign(u) * 3.7 * level) / 1.7
    clipped = np.where(np.abs(u) <= 2 * level, beyond, np.where(np.abs(u) <= 3.7 * level, middle, u))
    for path, expected in ((LassoPath(), beyond), (McpPath(), firm), (ScadPath(), clipped)):
        solver = WeightedLasso.of(problem)
        solve_level(solver, level, n, path.slope, path.concave)
        assert solver.x == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_the_end_of_a_path_is_closed_in_on(path):
    problem = make_problem(2, 60, 12, 4, awkward=False)
    coarse = type(path)(points=2, ratio=1e-3, halvings=0).run(problem, Context()).support
    fine = type(path)(points=2, ratio=1e-3, halvings=20).run(problem, Context()).support
    assert coarse == ()
    assert len(fine) == 4
