"""Greedy RLS: the fast algorithm against the paper's two slow ones, hard data, and lam = 0."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from leave_one_out import hat_matrix, leave_one_out, random_data
from samples import examples

from benchmarks.greedy_rls import reference
from exactsel import registry
from exactsel.errors import InputError, UnsupportedError
from exactsel.problem.column_subset import ColumnSubsetProblem
from exactsel.problem.regression import Problem
from exactsel_heuristics import _greedy_rls_selection as module
from exactsel_heuristics._greedy_rls_selection import LeaveOneOutSelection
from exactsel_heuristics.base import Context, Heuristic
from exactsel_heuristics.greedy_rls import GreedyRegularizedLeastSquares, select_path

CRITERIA = ("squared", "zero-one")
each_criterion = pytest.mark.parametrize("criterion", CRITERIA)


def awkward(A):
    """The same with a duplicate, a constant, a zero and a badly scaled column."""
    B = A.copy()
    B[:, 1], B[:, 2], B[:, 3], B[:, 4] = B[:, 0], 1.0, 0.0, 1e3 * B[:, 4]
    return B


def assert_each_step_is_the_best_one(A, y, lam, criterion):
    """Every step of the fast method against Algorithm 1, ties either way; and no step is missing."""
    found = select_path(A.T, y, lam, A.shape[1], criterion)
    scores = reference.wrapper_scores(A, y, lam, criterion)
    path = found.columns.tolist()
    assert len(set(path)) == len(path)
    for t, (i, error) in enumerate(zip(path, found.errors, strict=True)):
        keys = scores(path[:t])
        tolerance = 1e-8 * (1.0 + float(y @ y))
        assert np.isfinite(keys[i][-1])
        assert error == pytest.approx(keys[i][0], rel=1e-7, abs=tolerance)
        assert keys[i][0] <= min(key[0] for key in keys.values()) + (tolerance if criterion == "squared" else 0.0)
        level = [key for key in keys.values() if key[0] == keys[i][0]] if criterion == "zero-one" else [keys[i]]
        assert keys[i][-1] <= min(key[-1] for key in level) * (1.0 + 1e-7) + tolerance
    if len(path) < A.shape[1]:
        assert lam == 0.0
        assert all(not np.isfinite(key[-1]) for key in scores(path).values())


# The three algorithms of the paper


@pytest.mark.smoke
@each_criterion
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 9),
    d=st.integers(1, 7),
    lam=st.sampled_from([1e-3, 0.25, 1.0, 40.0]),
)
def test_the_three_algorithms_select_the_same_path(criterion, seed, n, d, lam):
    A, y = random_data(seed, n, d, criterion)
    path, errors = reference.wrapper(A, y, lam, d, criterion)
    found = select_path(A.T, y, lam, d, criterion)
    assert reference.low_rank_update(A, y, lam, d, criterion)[0] == path
    assert found.columns.tolist() == path
    np.testing.assert_allclose(reference.low_rank_update(A, y, lam, d, criterion)[1], errors, rtol=1e-8)
    np.testing.assert_allclose(found.errors, errors, rtol=1e-8)


@each_criterion
@examples(40, 80)
@given(data=st.data(), n=st.integers(1, 6), d=st.integers(1, 5), lam=st.sampled_from([0.0, 0.25, 2.0]))
def test_each_step_is_the_best_one_on_whole_numbers(criterion, data, n, d, lam):
    numbers = st.integers(-2, 2)
    A = np.array(data.draw(st.lists(st.lists(numbers, min_size=d, max_size=d), min_size=n, max_size=n)), dtype=float)
    targets = numbers if criterion == "squared" else st.sampled_from([-1, 1])
    y = np.array(data.draw(st.lists(targets, min_size=n, max_size=n)), dtype=float)
    assert_each_step_is_the_best_one(A, y, lam, criterion)


@each_criterion
@pytest.mark.parametrize("lam", [0.0, 1e-4, 1.0])
@pytest.mark.parametrize(("n", "d"), [(14, 7), (6, 9)])
def test_each_step_is_the_best_one_on_awkward_columns(criterion, lam, n, d):
    A, y = random_data(n, n, d, criterion)
    assert_each_step_is_the_best_one(awkward(A), y, lam, criterion)


@each_criterion
def test_the_lower_of_two_equal_columns_is_taken(criterion):
    A, y = random_data(0, 30, 6, criterion)
    doubled = np.column_stack([A, A])
    path = select_path(doubled.T, y, 1.0, 12, criterion).columns.tolist()
    for i in range(6):
        assert path.index(i) < path.index(i + 6)


def test_equal_counts_are_decided_by_the_squared_loss():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(40) < 0.5, 1.0, -1.0)
    A = np.column_stack([y * (1.0 + 2.0 * rng.random(40)), y * (1.0 + 0.1 * rng.random(40))])
    found = select_path(A.T, y, 0.1, 1, "zero-one")
    assert found.errors.tolist() == [0.0]
    assert found.columns.tolist() == [1]


def test_a_prediction_of_zero_counts_as_wrong():
    y = np.array([1.0, -1.0, 1.0])
    assert select_path(np.zeros((1, 3)), y, 1.0, 1, "zero-one").errors.tolist() == [3.0]


# Numerics


@pytest.mark.parametrize(("n", "d", "lam"), [(200, 40, 1e-3), (40, 120, 1e-2), (60, 60, 1.0), (100, 30, 0.0)])
def test_the_caches_do_not_drift(n, d, lam):
    A, y = random_data(3, n, d)
    selection = LeaveOneOutSelection(np.ascontiguousarray(A.T), y, lam, labels=False)
    selection.extend(d)
    assert sorted(selection.path) == list(range(d))
    H = hat_matrix(A, lam)
    assert np.all(selection.slack > 0.0)
    np.testing.assert_allclose(selection.slack, 1.0 - np.diagonal(H), rtol=1e-8)
    np.testing.assert_allclose(selection.residual, y - H @ y, atol=1e-10 * np.linalg.norm(y))
    assert selection.errors[-1] == pytest.approx(np.sum(leave_one_out(A, y, lam) ** 2), rel=1e-7)


@pytest.mark.parametrize("lam", [0.0, 1e-6, 1.0])
def test_nearly_dependent_columns(lam):
    """Powers of one variable, condition number up to 1e9: every error that is given is right to six digits."""
    t = np.linspace(0.0, 1.0, 60)
    A, y = np.column_stack([t**p for p in range(13)]), np.sin(9.0 * t)
    found = select_path(A.T, y, lam, 13)
    assert len(found.columns) >= 7
    for m in range(1, len(found.columns) + 1):
        exact = np.sum(leave_one_out(A[:, found.columns[:m]], y, lam) ** 2)
        assert found.errors[m - 1] == pytest.approx(exact, rel=1e-6)


def test_errors_lost_to_rounding_end_the_selection():
    """Five rows are interpolated by five columns; with so small a lam 1 - leverage is rounding."""
    A, y = random_data(1, 5, 8)
    for scale in (1e8, 1e30, 1e60):
        found = select_path(scale * A.T, y, 1e-3, 8)
        assert 1 <= len(found.columns) <= 4
        assert np.all(np.isfinite(found.errors))
        assert np.all(np.isfinite(found.coefficients))
    assert len(select_path(A.T, y, 1e-3, 8).columns) == 8


@pytest.mark.parametrize("scale", [1e-50, 1e-8, 1e8, 1e50])
def test_the_path_does_not_depend_on_the_unit(scale):
    A, y = random_data(5, 30, 8)
    plain = select_path(A.T, y, 0.5, 8)
    scaled = select_path(scale * A.T, y, 0.5 * scale**2, 8)
    assert scaled.columns.tolist() == plain.columns.tolist()
    np.testing.assert_allclose(scaled.errors, plain.errors, rtol=1e-9)


@each_criterion
def test_the_number_of_threads_does_not_change_a_bit(criterion, monkeypatch):
    monkeypatch.setattr(module, "WORTH_SHARING", 0)
    A, y = random_data(2, 333, 57, criterion)
    one, two = (select_path(A.T, y, 0.3, 57, criterion, threads=threads) for threads in (1, 2))
    assert np.array_equal(one.columns, two.columns)
    assert np.array_equal(one.errors, two.errors)
    assert np.array_equal(one.coefficients, two.coefficients)


@pytest.mark.parametrize(("n", "d", "lam"), [(5000, 4, 0.7), (30, 8, 0.0), (6, 9, 0.1), (1, 1, 0.1)])
def test_coefficients_of_every_step(n, d, lam):
    A, y = random_data(4, n, d)
    found = select_path(A.T, y, lam, d)
    for m in range(1, d + 1):
        exact = reference.train(A[:, found.columns[:m]], y, lam)
        np.testing.assert_allclose(found.coefficients[m - 1, :m], exact, rtol=1e-9, atol=1e-9)
        assert np.all(found.coefficients[m - 1, m:] == 0.0)


# lam = 0, the limit


def test_without_a_ridge_it_is_press():
    A, y = random_data(6, 40, 9)
    found = select_path(A.T, y, 0.0, 9)
    limit = select_path(A.T, y, 1e-9, 9)
    assert found.columns.tolist() == limit.columns.tolist()
    np.testing.assert_allclose(found.errors, limit.errors, rtol=1e-6)
    for m in range(1, 10):
        errors = reference.retrained_errors(A, y, 0.0, found.columns[:m].tolist())
        assert found.errors[m - 1] == pytest.approx(np.sum(errors**2), rel=1e-9)


def test_without_a_ridge_no_row_may_determine_a_coefficient_alone():
    A, y = random_data(7, 20, 4)
    indicator = np.zeros(20)
    indicator[3] = 1.0
    found = select_path(np.column_stack([indicator, A, A[:, 1] - A[:, 2]]).T, y, 0.0, 6)
    assert 0 not in found.columns
    assert len(found.columns) == 4
    assert sorted(select_path(np.column_stack([indicator, A]).T, y, 0.1, 5).columns.tolist()) == [0, 1, 2, 3, 4]


def test_a_leverage_of_one_is_noticed_behind_the_error_of_a_small_pivot():
    """The second column differs from the first in one row only: that row alone determines its coefficient."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        a, y = rng.standard_normal((2, 12))
        found = select_path(np.stack([a, a + 1e-5 * np.eye(12)[seed % 12]]), y, 0.0, 2)
        assert len(found.columns) == 1


@pytest.mark.parametrize("lam", [0.0, 1e-16])
def test_dependent_columns_are_not_added_without_a_ridge_to_speak_of(lam):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((25, 4)) @ rng.standard_normal((4, 9))
        found = select_path(A.T, rng.standard_normal(25), lam, 9)
        assert len(found.columns) == 4
        assert np.abs(found.coefficients).max() < 1e4


def test_without_a_ridge_there_are_fewer_columns_than_rows():
    A, y = random_data(8, 6, 15)
    assert len(select_path(A.T, y, 0.0, 15).columns) == 5
    assert len(select_path(A[:1].T, y[:1], 0.0, 15).columns) == 0


# The heuristic


def test_the_registry_finds_it():
    assert registry.load("heuristics", "greedy-rls") is GreedyRegularizedLeastSquares
    assert isinstance(GreedyRegularizedLeastSquares(), Heuristic)


@each_criterion
@pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic"])
@pytest.mark.parametrize(("n", "d", "k"), [(30, 8, 3), (6, 10, 4), (4, 9, 9), (20, 7, 1), (15, 6, 6), (10, 6, 0)])
def test_proposals(criterion, loss, n, d, k):
    A, y = random_data(9, n, d, "zero-one")
    problem = Problem(awkward(A), y, k, loss=loss, lam=0.5, delta=0.8 if loss == "huber" else None)
    heuristic = GreedyRegularizedLeastSquares(criterion)
    proposal = heuristic.run(problem, Context())
    assert proposal == heuristic.run(problem, Context(seed=1))
    assert len(proposal.support) == k
    assert tuple(sorted(proposal.path)) == proposal.support
    assert len(proposal.criterion) == k
    assert proposal.evaluations == sum(d - t for t in range(k))
    assert np.isfinite(problem.fit(proposal.support).value)
    twin = select_path(problem.AT, y, 0.5, k, criterion)
    assert tuple(twin.columns.tolist()) == proposal.path
    assert tuple(twin.errors.tolist()) == proposal.criterion


def test_it_works_without_a_ridge():
    A, y = random_data(10, 40, 8)
    proposal = GreedyRegularizedLeastSquares().run(Problem(awkward(A), y, 8, lam=0.0), Context())
    assert len(proposal.support) == 6, "neither the duplicate nor the zero column"


def test_its_own_ridge_weight():
    A, y = random_data(11, 15, 12)
    problem = Problem(A, y, 12, lam=0.0)
    own = GreedyRegularizedLeastSquares(lam=3.0).run(problem, Context())
    # Without a ridge of the problem's the columns are searched in units of their own, and so is this ridge.
    assert own == GreedyRegularizedLeastSquares().run(Problem(problem.AT.T, y, 12, lam=3.0), Context())
    assert own.criterion[-1] == pytest.approx(np.sum(leave_one_out(problem.AT.T, y, 3.0) ** 2), rel=1e-9)


@pytest.mark.parametrize("A", [np.zeros((5, 3)), np.ones((5, 3))], ids=["zero", "constant"])
def test_degenerate_data(A):
    for y in (np.zeros(5), np.arange(5.0)):
        assert len(GreedyRegularizedLeastSquares().run(Problem(A, y, 2, lam=0.1), Context()).support) == 2
        assert len(GreedyRegularizedLeastSquares().run(Problem(A, y, 2, lam=0.0), Context()).support) == A[0, 0]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_stopping(count):
    A, y = random_data(12, 30, 12)
    asked = []

    def stop():
        asked.append(True)
        return len(asked) > count

    problem = Problem(A, y, 6, lam=0.1)
    whole = GreedyRegularizedLeastSquares().run(problem, Context())
    proposal = GreedyRegularizedLeastSquares().run(problem, Context(should_stop=stop))
    assert proposal.path == whole.path[:count]
    assert len(asked) == count + 1


def test_a_planted_support_is_found():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((200, 30))
    z = A[:, [3, 7, 20]] @ [2.0, -1.5, 1.0] + 0.1 * rng.standard_normal(200)
    assert GreedyRegularizedLeastSquares().run(Problem(A, z, 3, lam=1.0), Context()).support == (3, 7, 20)
    problem = Problem(A, np.sign(z), 3, loss="logistic", lam=1.0)
    assert GreedyRegularizedLeastSquares("zero-one").run(problem, Context()).support == (3, 7, 20)


def test_refusals():
    A, y = random_data(13, 10, 4)
    with pytest.raises(InputError, match="'absolute', but a leave-one-out loss was expected; give 'squared'"):
        GreedyRegularizedLeastSquares("absolute")
    for lam in (-1.0, np.nan, np.inf):
        with pytest.raises(InputError, match="must be a finite number that is not negative"):
            GreedyRegularizedLeastSquares(lam=lam)
        with pytest.raises(InputError, match="must be a finite number that is not negative"):
            select_path(A.T, y, lam, 2)
    with pytest.raises(InputError, match=r"AT has shape \(10, 4\) and y \(10,\), but"):
        select_path(A, y, 1.0, 2)
    with pytest.raises(UnsupportedError, match=r"needs labels -1 and \+1, but y holds"):
        GreedyRegularizedLeastSquares("zero-one").run(Problem(A, y, 2, lam=1.0), Context())
    with pytest.raises(UnsupportedError, match="predicts a target"):
        GreedyRegularizedLeastSquares().run(ColumnSubsetProblem(A, 2), Context())


@pytest.mark.skipif("EXACTSEL_DATA" not in os.environ, reason="EXACTSEL_DATA names no folder")
@pytest.mark.parametrize("name", ["australian", "german.numer"])
def test_leave_one_out_errors_on_real_data(name):
    with np.load(Path(os.environ["EXACTSEL_DATA"]) / f"{name}.npz", allow_pickle=False) as arrays:
        A, y = arrays["A"].astype(float), arrays["y"].astype(float)
    for criterion in CRITERIA:
        found = select_path(A.T, y, 1.0, A.shape[1], criterion)
        assert len(found.columns) == A.shape[1]
        for m in range(1, A.shape[1] + 1):
            errors = leave_one_out(A[:, found.columns[:m]], y, 1.0)
            exact = np.sum(errors**2) if criterion == "squared" else np.sum(y * (y - errors) <= 0.0)
            assert found.errors[m - 1] == pytest.approx(exact, rel=1e-8)
