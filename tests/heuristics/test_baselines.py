"""The baselines: FoBa, RFE, IHT and the penalty paths on awkward data, and held against slow twins."""

from __future__ import annotations

import os
from dataclasses import fields
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from exactsel import registry
from exactsel.column_subset import ColumnSubsetProblem
from exactsel.errors import InputError, UnsupportedError
from exactsel.losses import Huber
from exactsel.problem import Problem
from exactsel_heuristics import Context, Heuristic, OrthogonalMatchingPursuit, Proposal
from exactsel_heuristics._weighted_lasso import WeightedLasso, descend
from exactsel_heuristics.foba import ForwardBackward
from exactsel_heuristics.iht import IterativeHardThresholding
from exactsel_heuristics.penalty_paths import LassoPath, McpPath, ScadPath, solve_level
from exactsel_heuristics.rfe import RecursiveFeatureElimination

HEURISTICS = (
    ForwardBackward(),
    ForwardBackward(refit=False),
    RecursiveFeatureElimination(),
    RecursiveFeatureElimination(step=0.3, scaled=True),
    IterativeHardThresholding(max_steps=300),
    IterativeHardThresholding(normalised=True, max_steps=300),
    LassoPath(points=60, ratio=1e-3),
    ScadPath(points=60, ratio=1e-3),
    McpPath(points=60, ratio=1e-3),
)
PATHS = (LassoPath(), ScadPath(), McpPath())
each_heuristic = pytest.mark.parametrize("heuristic", HEURISTICS, ids=repr)
each_loss = pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic"])


def make_problem(seed, n, d, k, loss="quadratic", lam=0.5, awkward=True):
    """Random data; ``awkward`` adds a duplicate, a constant, a zero and a badly scaled column as far as d allows."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) + 0.7 * rng.standard_normal((n, 1))
    if awkward and d >= 6:
        A[:, 1], A[:, 2], A[:, 3], A[:, 4] = A[:, 0], 1.0, 0.0, 1e3 * A[:, 4]
    y = A @ (rng.integers(-1, 2, d) * rng.random(d)) / (1.0 + np.abs(A).max()) + rng.standard_normal(n)
    if loss == "logistic":
        y = np.where(y > 0, 1.0, -1.0)
    return Problem(A, y, k, loss=Huber(0.8) if loss == "huber" else loss, lam=lam)


def planted_problem(loss, n=200, d=20, k=4, seed=1):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    planted = tuple(sorted(rng.choice(d, k, replace=False).tolist()))
    signal = A[:, planted] @ np.array([2.0, -2.0, 2.5, 3.0])[:k]
    y = np.where(signal > 0, 1.0, -1.0) if loss == "logistic" else signal + 0.1 * rng.standard_normal(n)
    return Problem(A, y, k, loss=loss, lam=0.1), planted


def correlated_problem(seed, n=40, d=10, k=4, loss="quadratic", lam=0.2):
    """Strongly correlated columns without ties, on which greedy steps have to be taken back."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, 3)) @ rng.standard_normal((3, d)) + 0.4 * rng.standard_normal((n, d))
    y = A @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n)
    if loss == "logistic":
        y = np.where(y > 0, 1.0, -1.0)
    return Problem(A, y, k, loss=Huber(0.8) if loss == "huber" else loss, lam=lam)


def assert_valid(problem, proposal):
    assert isinstance(proposal, Proposal)
    assert len(proposal.support) <= problem.k
    assert list(proposal.support) == sorted(set(proposal.support))
    assert all(type(j) is int and 0 <= j < problem.d for j in proposal.support)
    assert proposal.evaluations >= 0


class StopAfter:
    """A stopping signal that says yes from the (count + 1)-th question on."""

    def __init__(self, count):
        self.left, self.asked_again = count, 0

    def __call__(self):
        self.left -= 1
        self.asked_again += self.left < -1
        return self.left < 0


# Every baseline, on data as it comes


@each_heuristic
def test_the_interface_is_followed_and_the_registry_knows_the_name(heuristic):
    assert isinstance(heuristic, Heuristic)
    assert heuristic == type(heuristic)(**{f.name: getattr(heuristic, f.name) for f in fields(heuristic)})
    assert registry.load("heuristics", heuristic.name) is type(heuristic)


@each_heuristic
@each_loss
@pytest.mark.parametrize(
    ("n", "d", "k"), [(30, 8, 3), (6, 10, 4), (4, 9, 9), (20, 7, 1), (15, 6, 6), (1, 2, 1), (10, 6, 0)]
)
def test_proposals_are_valid_and_reproducible(heuristic, loss, n, d, k):
    problem = make_problem(n + d, n, d, k, loss)
    before = problem.A.copy(), problem.y.copy()
    proposal = heuristic.run(problem, Context(seed=1))
    assert_valid(problem, proposal)
    assert heuristic.run(problem, Context(seed=2)) == proposal
    assert np.array_equal(problem.A, before[0])
    assert np.array_equal(problem.y, before[1])


@each_heuristic
@pytest.mark.parametrize(("n", "d", "k"), [(30, 8, 3), (6, 10, 4), (5, 8, 8), (20, 7, 1)])
def test_proposals_without_a_ridge(heuristic, n, d, k):
    problem = make_problem(7, n, d, k, lam=0.0)
    assert_valid(problem, heuristic.run(problem, Context()))


@each_heuristic
@pytest.mark.parametrize("lam", [0.0, 0.1])
@pytest.mark.parametrize("A", [np.zeros((5, 3)), np.ones((5, 3))], ids=["zero", "constant"])
def test_degenerate_data(heuristic, A, lam):
    for y in (np.zeros(5), np.arange(5.0)):
        assert_valid(problem := Problem(A, y, 2, lam=lam), heuristic.run(problem, Context()))


@each_heuristic
@each_loss
def test_the_planted_support_is_found(heuristic, loss):
    problem, planted = planted_problem(loss)
    assert heuristic.run(problem, Context()).support == planted


@each_heuristic
@each_loss
def test_stopping(heuristic, loss):
    problem = make_problem(3, 30, 12, 5, loss)
    full = heuristic.run(problem, Context())
    for count in (0, 1, 2, 4):
        stop = StopAfter(count)
        proposal = heuristic.run(problem, Context(should_stop=stop))
        assert_valid(problem, proposal)
        assert proposal.evaluations <= full.evaluations
        assert (proposal.support == ()) == (count == 0) or isinstance(heuristic, LassoPath | ScadPath | McpPath)
        assert stop.asked_again <= 2


@each_heuristic
def test_column_subset_selection_is_declined(heuristic):
    with pytest.raises(UnsupportedError, match="column subset selection does not have"):
        heuristic.run(ColumnSubsetProblem(np.eye(3), 2), Context())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ForwardBackward(nu=1.0), r"nu is 1, but .* give one in \(0, 1\)"),
        (lambda: ForwardBackward(steps=0), r"steps is 0, but .* give at least 1"),
        (lambda: RecursiveFeatureElimination(step=1.0), r"step is 1, but .* give a number from 0"),
        (lambda: IterativeHardThresholding(max_steps=0), r"max_steps is 0, but .* give at least 1"),
        (lambda: IterativeHardThresholding(tolerance=0.0), r"tolerance is 0, but .* give a small number"),
        (lambda: LassoPath(points=1), r"points is 1, but .* give at least 2"),
        (lambda: LassoPath(ratio=1.0), r"ratio is 1, but .* give a number between 0 and 1"),
        (lambda: LassoPath(halvings=-1), r"halvings is -1, but .* give 0 or more"),
        (lambda: ScadPath(shape=2.0), r"shape is 2, but SCAD needs more than 2"),
        (lambda: McpPath(shape=1.0), r"shape is 1, but MCP needs more than 1"),
    ],
)
def test_bad_options_are_refused_in_a_sentence(make, message):
    with pytest.raises(InputError, match=message):
        make()


# FoBa


def literal_foba(problem, nu=0.5, steps=5, refit=True):
    """The algorithm of the paper, word for word, on refits alone; also says how many columns were deleted."""
    active, history, delta, deletions = [], [], {}, 0
    for _ in range(steps * problem.k):
        if len(history) >= steps * problem.k:
            break
        fit = problem.fit(active)
        gradient = problem.gradient(fit.coef)
        alone = [
            gradient[j] ** 2 / (problem.loss.smoothness * np.sum(problem.A[:, j] ** 2) + problem.lam)
            for j in range(problem.d)
        ]
        outside = [j for j in range(problem.d) if j not in active]
        if not outside:
            break
        active = [*active, max(outside, key=lambda j: alone[j])]
        delta[len(active)] = fit.value - problem.fit(active).value
        history.append(tuple(active))
        while len(history) < steps * problem.k and len(active) > 1:
            here = problem.fit(active)
            if refit:
                costs = [problem.fit([i for i in active if i != j]).value - here.value for j in active]
            else:
                costs = [problem.objective(here.coef * (np.arange(problem.d) != j)) - here.value for j in active]
            if min(costs) > nu * delta[len(active)]:
                break
            active = [j for j in active if j != active[int(np.argmin(costs))]]
            history.append(tuple(active))
            deletions += 1
    return tuple(sorted([s for s in history if len(s) == problem.k][-1])), deletions


@pytest.mark.parametrize("refit", [True, False])
@pytest.mark.parametrize(("loss", "count"), [("quadratic", 12), ("huber", 4), ("logistic", 4)])
def test_foba_equals_its_literal_definition(loss, count, refit):
    total = 0
    for seed in range(count):
        problem = correlated_problem(seed, loss=loss)
        expected, deletions = literal_foba(problem, refit=refit)
        assert ForwardBackward(refit=refit).run(problem, Context()).support == expected
        total += deletions
    assert total > 0 or loss != "quadratic", "these problems do not exercise the deletions"


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 6), nu=st.sampled_from([0.1, 0.5, 0.9]))
def test_foba_equals_its_literal_definition_on_any_data(seed, k, nu):
    problem = correlated_problem(seed, n=25, d=8, k=k)
    assert ForwardBackward(nu=nu).run(problem, Context()).support == literal_foba(problem, nu)[0]


def test_foba_takes_back_a_first_step_that_was_wrong():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 200))
    A = np.column_stack([a + b + 0.3 * rng.standard_normal(200), a, b, rng.standard_normal((200, 3))])
    problem = Problem(A / np.linalg.norm(A, axis=0), a + b, 2, lam=0.0)
    assert 0 in OrthogonalMatchingPursuit().run(problem, Context()).support
    assert ForwardBackward().run(problem, Context()).support == (1, 2)


def test_foba_returns_fewer_columns_where_no_more_gain():
    A = np.eye(6)
    assert ForwardBackward().run(Problem(A, 3.0 * A[2], 4, lam=0.0), Context()).support == (2,)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 20))
    problem = Problem(np.column_stack([a, a, b, a + b, 1e-9 * a]), a + 2 * b + rng.standard_normal(20), 5, lam=0.0)
    assert len(ForwardBackward().run(problem, Context()).support) == 2


# Recursive feature elimination


def scaled_least_squares(problem, columns):
    """Ridge coefficients on some columns, of smallest norm in unit columns where they are not unique."""
    matrix = np.vstack([problem.A[:, columns], np.sqrt(problem.lam) * np.eye(len(columns))])
    norms = np.linalg.norm(matrix, axis=0)
    norms[norms == 0.0] = 1.0
    return np.linalg.pinv(matrix / norms, rcond=1e-10) @ np.concatenate([problem.y, np.zeros(len(columns))]) / norms


def assert_each_deletion_has_the_smallest_weight(problem, heuristic, weights_of, tolerance):
    """Supports for k = d, d - 1, ... are nested, and hold the column that goes each time against a fit; ties pass."""
    supports = [heuristic.run(problem.replace(k=k), Context()).support for k in range(problem.d, 0, -1)]
    assert supports[0] == tuple(range(problem.d))
    for larger, smaller in pairwise(supports):
        (gone,) = set(larger) - set(smaller)
        weights = np.abs(weights_of(list(larger)))
        assert weights[larger.index(gone)] <= weights.min() + tolerance * (1.0 + weights.max())


@pytest.mark.parametrize("lam", [0.0, 1e-6, 0.5])
@pytest.mark.parametrize(("n", "d"), [(30, 8), (6, 10)])
def test_rfe_equals_its_slow_twin(n, d, lam):
    for seed in range(4):
        problem = make_problem(seed, n, d, d, lam=lam)

        def weights_of(columns, problem=problem):
            return scaled_least_squares(problem, columns)

        assert_each_deletion_has_the_smallest_weight(problem, RecursiveFeatureElimination(), weights_of, 1e-7)

        def scaled_weights_of(columns, problem=problem):
            return scaled_least_squares(problem, columns) * np.linalg.norm(problem.A[:, columns], axis=0)

        scaled = RecursiveFeatureElimination(scaled=True)
        assert_each_deletion_has_the_smallest_weight(problem, scaled, scaled_weights_of, 1e-7)


@settings(max_examples=50, deadline=None)
@given(data=st.data(), n=st.integers(1, 6), d=st.integers(1, 6), lam=st.sampled_from([0.0, 0.25, 2.0]))
def test_rfe_equals_its_slow_twin_on_whole_numbers(data, n, d, lam):
    numbers = st.integers(-3, 3)
    A = data.draw(st.lists(st.lists(numbers, min_size=d, max_size=d), min_size=n, max_size=n))
    y = data.draw(st.lists(numbers, min_size=n, max_size=n))
    problem = Problem(A, y, d, lam=lam)
    assert_each_deletion_has_the_smallest_weight(
        problem, RecursiveFeatureElimination(), lambda columns: scaled_least_squares(problem, columns), 1e-7
    )


@pytest.mark.parametrize("loss", ["huber", "logistic"])
def test_rfe_equals_repeated_fits(loss):
    for seed in range(3):
        problem = make_problem(seed, 30, 8, 8, loss)
        assert_each_deletion_has_the_smallest_weight(
            problem, RecursiveFeatureElimination(), lambda columns, p=problem: p.fit(columns).coef[columns], 1e-6
        )


def test_rfe_agrees_with_scikit_learn():
    selection, linear = pytest.importorskip("sklearn.feature_selection"), pytest.importorskip("sklearn.linear_model")
    for seed in range(4):
        problem = make_problem(seed, 40, 12, 4, lam=0.0, awkward=False)
        for step in (0.0, 0.25):
            # Its share is one of all columns, ours one of those that are left, so only the first round is the same.
            k = 4 if step == 0.0 else 9
            estimator = linear.LinearRegression(fit_intercept=False)
            theirs = selection.RFE(estimator, n_features_to_select=k, step=step or 1).fit(problem.A, problem.y)
            ours = RecursiveFeatureElimination(step=step).run(problem.replace(k=k), Context()).support
            assert ours == tuple(np.flatnonzero(theirs.support_).tolist())


# Iterative hard thresholding


def keep_largest(x, k):
    order = sorted(range(len(x)), key=lambda j: (-abs(x[j]), j))
    return np.array([x[j] if j in order[:k] else 0.0 for j in range(len(x))])


def literal_iht(problem, steps, normalised):
    """The iterates of the papers for quadratic loss with a ridge, from the definition."""
    A, y, lam = problem.A, problem.y, problem.lam
    x, iterates = np.zeros(problem.d), []
    for _ in range(steps):
        ascent = A.T @ (y - A @ x) - lam * x
        if np.linalg.norm(ascent[np.flatnonzero(x)]) <= 1e-7 * np.linalg.norm(A.T @ y) and x.any():
            # Nothing but rounding is left to step along.
            break
        if not normalised:
            x = keep_largest(x + ascent / (np.linalg.norm(A, 2) ** 2 + lam), problem.k)
        else:
            support = set(np.flatnonzero(x)) or set(np.flatnonzero(keep_largest(ascent, problem.k)))
            part = np.array([ascent[j] if j in support else 0.0 for j in range(problem.d)])
            length = part @ part / (np.sum((A @ part) ** 2) + lam * part @ part)
            while True:
                new = keep_largest(x + length * ascent, problem.k)
                move = new - x
                sure = 0.99 * (move @ move) / (np.sum((A @ move) ** 2) + lam * move @ move)
                if set(np.flatnonzero(new)) == support or length <= sure:
                    break
                length /= 2.0
            x = new
        iterates.append(x)
    return iterates


@pytest.mark.parametrize("normalised", [False, True])
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 5), lam=st.sampled_from([0.0, 0.3]))
def test_iht_equals_its_slow_twin_step_by_step(normalised, seed, k, lam):
    problem = correlated_problem(seed, n=20, d=7, k=k, lam=lam)
    for count, x in enumerate(literal_iht(problem, 8, normalised), start=1):
        heuristic = IterativeHardThresholding(normalised=normalised, max_steps=count, tolerance=1e-300)
        assert heuristic.run(problem, Context()).support == tuple(np.flatnonzero(x).tolist())


@pytest.mark.parametrize("normalised", [False, True])
@each_loss
def test_iht_never_raises_the_objective(loss, normalised):
    from exactsel_heuristics import iht

    step = iht._normalised_step if normalised else iht._sure_step
    for seed in range(4):
        problem = make_problem(seed, 30, 9, 4, loss)
        x = np.zeros(problem.d)
        for _ in range(40):
            new = step(problem, x, problem.gradient(x))
            assert np.count_nonzero(new) <= problem.k
            value = problem.objective(x)
            assert problem.objective(new) <= value + 1e-12 * (1.0 + abs(value))
            x = new


# Penalty paths


@settings(max_examples=60, deadline=None)
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
        _, _, path = linear.lars_path(problem.A, problem.y, method="lasso")
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


# The experiments of the POSS paper


@pytest.fixture
def poss_commands(monkeypatch):
    """The command line of benchmarks.poss; ``benchmarks`` is not an installed package."""
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2]))
    from benchmarks.poss import commands

    return commands


@pytest.mark.parametrize(
    ("arguments", "headings"),
    [
        (["table2", "--solved", "1", "--time-limit", "60"], ["Training R² on random halves", "Certified by"]),
        (["test-r2"], ["Training and test half", "Does training tell"]),
        (["ridge"], ["Training and test half", "Does training tell"]),
    ],
)
def test_an_experiment_writes_its_tables(poss_commands, tmp_path, arguments, headings):
    file = tmp_path / "new" / "tables.md"
    result = CliRunner().invoke(poss_commands.main, [*arguments, "--quick", "--out", str(file)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    tables = file.read_text(encoding="utf-8")
    assert tables in result.output
    assert tables.startswith("`python -m benchmarks.poss")
    assert all(f"### {heading}" in tables for heading in headings)
    for method in ("FR", "FoBa", "OMP", "RFE", "Lasso", "SCAD", "MCP"):
        assert f"| {method} |" in tables


def test_data_that_are_missing_are_skipped_in_a_sentence(poss_commands, tmp_path, monkeypatch):
    monkeypatch.setenv("EXACTSEL_DATA", str(tmp_path))
    result = CliRunner().invoke(poss_commands.main, ["ridge"], catch_exceptions=False)
    assert "sonar is skipped: there is no" in result.output
    monkeypatch.delenv("EXACTSEL_DATA")
    result = CliRunner().invoke(poss_commands.main, ["ridge"], catch_exceptions=False)
    assert "sonar is skipped: EXACTSEL_DATA does not name a folder" in result.output


def test_halves_are_standardised_on_the_training_part(poss_commands):
    from benchmarks.poss.data import Data, half

    rng = np.random.default_rng(0)
    A = np.column_stack([5.0 + 3.0 * rng.standard_normal((31, 4)), np.full(31, 7.0)])
    data = Data("made up", A, 2.0 + A[:, 0])
    part = half(data, 0, 1)
    assert part.A.shape == (15, 5)
    assert part.A_test.shape == (16, 5)
    assert part.A.mean(axis=0) == pytest.approx(0.0, abs=1e-12)
    assert part.A.std(axis=0) == pytest.approx([1.0, 1.0, 1.0, 1.0, 0.0])
    assert (part.y.mean(), part.y.std()) == pytest.approx((0.0, 1.0), abs=1e-12)
    # The target is an affine function of the first column, in these units on both halves.
    assert part.y_test == pytest.approx(part.A_test[:, 0])
    assert part.test_r2(np.eye(5)[0]) == pytest.approx(1.0)
    assert np.array_equal(half(data, 0, 1).A, part.A)
    assert not np.array_equal(half(data, 0, 2).A, part.A)


def test_a_split_is_measured_as_its_definition_says(poss_commands):
    from benchmarks.poss.data import generated, half
    from benchmarks.poss.generalisation import compare
    from benchmarks.poss.table2 import measure

    data, k, weight = generated("made up"), 2, 0.5
    part = half(data, 3, 0)

    def share(coef):
        rest = part.y - part.A @ coef
        return 1.0 - rest @ rest / (part.y @ part.y)

    problem = Problem(part.A, part.y, k, lam=0.0)
    measured = measure(data, k, splits=1, solved=1, time_limit=60.0, seed=3)
    for name, heuristic in {"FoBa": ForwardBackward(), "MCP": McpPath()}.items():
        coef = problem.fit(heuristic.run(problem, Context()).support).coef
        assert measured.r2[name] == [pytest.approx(share(coef))]
    best = max(share(problem.fit([i, j]).coef) for i in range(12) for j in range(i))
    assert measured.certified[0].proven
    assert measured.certified[0].r2 == pytest.approx(best)
    assert max(max(values) for values in measured.r2.values()) <= best + 1e-9 <= measured.certified[0].most + 1e-6

    n = part.y.size
    ridged = Problem(part.A, part.y, k, lam=n * weight)
    coef = ridged.fit(RecursiveFeatureElimination().run(ridged, Context()).support).coef
    compared = compare(data, k, splits=1, seed=3, ridge=weight)
    rss = np.mean((part.y - part.A @ coef) ** 2) + weight * coef @ coef
    assert compared.scores["RFE"].training == [pytest.approx(rss)]
    assert compared.scores["RFE"].test == [pytest.approx(part.test_r2(coef))]


def test_the_published_table_is_that_of_the_text(poss_commands):
    from benchmarks.poss.published import TABLE_2

    assert TABLE_2["housing"]["FR"] == (0.7429, 0.0300)
    assert TABLE_2["sonar"]["POSS"] == (0.5365, 0.0410)
    assert TABLE_2["svmguide3"]["OPT"] == (0.2705, 0.0255)
    assert "OPT" not in TABLE_2["mushrooms"]
    # What the text says of it: POSS is best everywhere, next to the optimum where there is one.
    for row in TABLE_2.values():
        assert all(row["POSS"].mean >= figure.mean for name, figure in row.items() if name != "OPT")
        assert "OPT" not in row or 0.0 <= row["OPT"].mean - row["POSS"].mean <= 0.00051


def test_the_t_test_sees_what_is_there(poss_commands):
    from benchmarks.poss.table2 import verdict

    noise = np.random.default_rng(0).normal(0.0, 0.01, 30)
    ones = np.ones(30)
    assert verdict(list(ones + 0.1), list(ones + noise)) == "better"
    assert verdict(list(ones - 0.1), list(ones + noise)) == "worse"
    assert verdict(list(ones), list(ones + noise - noise.mean())) == "tie"
    assert verdict(list(noise), list(noise)) == "tie"


@pytest.mark.skipif("EXACTSEL_DATA" not in os.environ, reason="EXACTSEL_DATA names no folder with data")
def test_forward_selection_on_housing_is_as_published(poss_commands):
    from benchmarks.poss.data import load
    from benchmarks.poss.published import TABLE_2
    from benchmarks.poss.table2 import measure

    measured = measure(load("housing"), 8, splits=20, solved=0, time_limit=1.0, seed=0)
    for method in ("FR", "OMP", "FoBa", "RFE"):
        published = TABLE_2["housing"][method]
        assert np.mean(measured.r2[method]) == pytest.approx(published.mean, abs=published.sd)
