"""The baselines: FoBa, RFE, IHT and the penalty paths on awkward data; the first three against slow twins."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances_for_heuristics import StopAfter, each_loss, make_problem, planted_problem
from samples import examples

from exactsel import registry
from exactsel.errors import InputError, UnsupportedError
from exactsel.losses import Huber
from exactsel.problem.column_subset import ColumnSubsetProblem
from exactsel.problem.regression import Problem
from exactsel_heuristics import Context, Heuristic, OrthogonalMatchingPursuit, Proposal
from exactsel_heuristics.foba import ForwardBackward
from exactsel_heuristics.iht import IterativeHardThresholding
from exactsel_heuristics.penalty_paths import LassoPath, McpPath, ScadPath
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
each_heuristic = pytest.mark.parametrize("heuristic", HEURISTICS, ids=repr)


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
    before = problem.AT.T.copy(), problem.y.copy()
    proposal = heuristic.run(problem, Context(seed=1))
    assert_valid(problem, proposal)
    assert heuristic.run(problem, Context(seed=2)) == proposal
    assert np.array_equal(problem.AT.T, before[0])
    assert np.array_equal(problem.y, before[1])


@each_heuristic
@pytest.mark.parametrize(("n", "d", "k"), [(30, 8, 3), (6, 10, 4), (5, 8, 8), (20, 7, 1)])
def test_proposals_without_a_ridge(heuristic, n, d, k):
    problem = make_problem(7, n, d, k, lam=0.0)
    assert_valid(problem, heuristic.run(problem, Context()))


@pytest.mark.smoke
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
            gradient[j] ** 2 / (problem.loss.smoothness * np.sum(problem.AT.T[:, j] ** 2) + problem.lam)
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
    matrix = np.vstack([problem.AT.T[:, columns], np.sqrt(problem.lam) * np.eye(len(columns))])
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
            return scaled_least_squares(problem, columns) * np.linalg.norm(problem.AT.T[:, columns], axis=0)

        scaled = RecursiveFeatureElimination(scaled=True)
        assert_each_deletion_has_the_smallest_weight(problem, scaled, scaled_weights_of, 1e-7)


@examples(50, 100)
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
            theirs = selection.RFE(estimator, n_features_to_select=k, step=step or 1).fit(problem.AT.T, problem.y)
            ours = RecursiveFeatureElimination(step=step).run(problem.replace(k=k), Context()).support
            assert ours == tuple(np.flatnonzero(theirs.support_).tolist())


# Iterative hard thresholding


def keep_largest(x, k):
    order = sorted(range(len(x)), key=lambda j: (-abs(x[j]), j))
    return np.array([x[j] if j in order[:k] else 0.0 for j in range(len(x))])


def literal_iht(problem, steps, normalised):
    """The iterates of the papers for quadratic loss with a ridge, from the definition."""
    A, y, lam = problem.AT.T, problem.y, problem.lam
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
