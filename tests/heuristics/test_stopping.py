"""Methods that are told to stop: work in pieces equals work in one go, and what was found so far is the answer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances_for_heuristics import StopAfter, make_problem
from samples import examples
from scipy.linalg import qr_delete

from exactsel import registry
from exactsel.algebra import triangle as tall
from exactsel.errors import UnsupportedError
from exactsel.problem import rows
from exactsel.problem.column_subset import ColumnSubsetProblem
from exactsel.problem.regression import Problem
from exactsel.problem.rows import Rows
from exactsel_heuristics import Context, RecursiveFeatureElimination, _rfe_fits, _second_order, _singular, _triangle
from exactsel_heuristics._newton_fit import newton_fit
from exactsel_heuristics._singular import leading_singular_vectors
from exactsel_heuristics.newton_swap import NewtonSwap

METHODS = sorted(set(registry.names("heuristics")) - {"pposs", "pposs-async"})


@pytest.fixture
def pieces(monkeypatch):
    """Everything is done in the pieces that are made of large data."""
    for module, name, value in (
        (_triangle, "AT_ONCE", 0.0), (_triangle, "PANEL", 3), (_triangle, "CHUNK", 2), (_rfe_fits, "KERNEL_WORK", 0.0),
        (_rfe_fits, "MANY_ENTRIES", 0), (_singular, "MANY", 0), (rows, "AT_ONCE", 0.0), (rows, "COLUMNS", 3),
        (_second_order, "MANY_COLUMNS", 0), (tall, "LARGE", 0), (tall, "TALL", 1),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)


def problems():
    rng = np.random.default_rng(5)
    yield from (make_problem(1, 30, 12, 4, loss, lam=0.5) for loss in ("quadratic", "huber", "logistic"))
    yield make_problem(2, 9, 14, 4, lam=0.5)
    yield make_problem(3, 9, 14, 4, lam=0.0)
    yield ColumnSubsetProblem(rng.normal(size=(20, 9)), 3)
    yield ColumnSubsetProblem(rng.normal(size=(7, 12)), 3)


@pytest.mark.parametrize("method", METHODS)
def test_whenever_it_is_stopped_the_answer_is_a_model_and_comes_soon(method, pieces):
    heuristic = registry.load("heuristics", method)()
    served = 0
    for problem in problems():
        for count in (0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 200):
            stop = StopAfter(count)
            try:
                proposal = heuristic.run(problem, Context(seed=1, should_stop=stop))
            except UnsupportedError:
                break
            served += 1
            assert stop.asked_again <= 12
            assert len(proposal.support) <= problem.k
            value = problem.fit(proposal.support).value
            assert value <= problem.null_objective * (1 + 1e-12)
    assert served


@pytest.mark.parametrize("n", [7, 30])
def test_elimination_in_pieces_equals_elimination_in_one_go(n, pieces, monkeypatch):
    for seed in range(4):
        for loss in ("quadratic", "huber", "logistic"):
            for lam in (0.0, 0.5) if loss == "quadratic" else (0.5,):
                problem = make_problem(seed, n, 12, 3, loss, lam=lam, awkward=False)
                whole = RecursiveFeatureElimination().run(problem, Context())
                with monkeypatch.context() as usual:
                    usual.setattr(_triangle, "AT_ONCE", 1e9)
                    usual.setattr(_rfe_fits, "KERNEL_WORK", 1e9)
                    usual.setattr(_rfe_fits, "MANY_ENTRIES", 1e9)
                    assert RecursiveFeatureElimination().run(problem, Context()) == whole


@examples(60, 120)
@given(data=st.data(), m=st.integers(1, 12), width=st.integers(1, 12))
def test_a_factor_in_pieces_is_one_of_the_table(data, m, width):
    seed = data.draw(st.integers(0, 999))
    table = np.random.default_rng(seed).integers(-3, 4, size=(m, width)).astype(float)
    with pytest.MonkeyPatch.context() as pieces:
        for name, value in (("AT_ONCE", 0.0), ("PANEL", 3), ("CHUNK", 2)):
            pieces.setattr(_triangle, name, value)
        R = _triangle.triangle_of(table, StopAfter(10**6))
        assert _triangle.triangle_of(table, StopAfter(0)) is None
    assert R.shape == (min(m, width), width)
    assert np.array_equal(R, np.triu(R))
    np.testing.assert_allclose(R.T @ R, table.T @ table, atol=1e-11)
    position = data.draw(st.integers(0, width - 1))
    _, slow = qr_delete(np.eye(len(R)), R, position, which="col")
    _triangle.delete_column(R, position)
    left = R[:, : width - 1]
    assert np.array_equal(left, np.triu(left))
    np.testing.assert_allclose(left.T @ left, slow.T @ slow, atol=1e-11)


def test_back_substitution():
    rng = np.random.default_rng(0)
    for m in range(1, 9):
        R = np.triu(rng.normal(size=(m, m + 3))) + np.eye(m, m + 3) * 3
        np.testing.assert_allclose(_triangle.back_substituted(R, m), np.linalg.solve(R[:, :m], R[:, m]), atol=1e-12)


@pytest.mark.parametrize("loss", ["huber", "logistic"])
@pytest.mark.parametrize("intercept", [False, True])
def test_newton_by_conjugate_gradients_ends_where_the_refit_does(loss, intercept):
    for seed in range(6):
        weights = np.random.default_rng(seed).uniform(0.2, 2.0, 25) if seed % 2 else None
        problem = make_problem(seed, 25, 10, 3, loss, lam=0.3)
        problem = Problem.prepared(problem.A, problem.y, 3, loss=loss, lam=0.3, intercept=intercept, weights=weights)
        columns = np.array([0, 2, 3, 5, 6, 9])
        found = newton_fit(problem, columns, np.zeros(6), 1e-9 * problem.gradient_scale, StopAfter(10**9))
        np.testing.assert_allclose(found, problem.fit(columns).coef[columns], atol=1e-6)
        stopped = newton_fit(problem, columns, np.zeros(6), 1e-9, StopAfter(3))
        coef = np.zeros(10)
        coef[columns] = stopped
        assert problem.objective(coef) <= problem.objective(np.zeros(10))


def test_rows_multiply_alike_in_pieces(pieces):
    problem = make_problem(0, 40, 11, 3, "logistic", lam=0.5)
    weights = np.random.default_rng(0).uniform(size=40)
    rows_ = Rows(problem.objective)
    B = rows_.block(0)
    np.testing.assert_allclose(rows_.gram(weights), (B * weights) @ B.T + np.diag(rows_.ridge), atol=1e-12)
    told = StopAfter(2)
    stopped = Rows(problem.objective, should_stop=told)
    with pytest.raises(rows.Unusable):
        stopped.gram(weights)


@pytest.mark.parametrize("loss", ["huber", "logistic"])
def test_newton_swap_does_not_depend_on_how_the_hessian_is_rooted(loss, pieces, monkeypatch):
    for seed in range(5):
        problem = make_problem(seed, 60, 10, 3, loss, lam=0.5, awkward=False)
        found = NewtonSwap().run(problem, Context()).support
        monkeypatch.setattr(_second_order, "MANY_COLUMNS", 100)
        assert NewtonSwap().run(problem, Context()).support == found
        monkeypatch.setattr(_second_order, "MANY_COLUMNS", 0)


def best_approximation(A, k):
    """The best approximation of rank k, transposed and rotated as the problem has its data."""
    left, values, right = np.linalg.svd(ColumnSubsetProblem(A, k).objective.reduced, full_matrices=False)
    return (left[:, :k] * values[:k]) @ right[:k]


@pytest.mark.parametrize("shape", [(20, 9), (9, 20)])
def test_leading_singular_vectors_of_a_gram_matrix_are_the_same(shape, monkeypatch):
    A = np.random.default_rng(1).normal(size=shape)
    slow = leading_singular_vectors(ColumnSubsetProblem(A, 4))
    monkeypatch.setattr(_singular, "MANY", 0)
    fast = leading_singular_vectors(ColumnSubsetProblem(A, 4))
    assert fast.complete == slow.complete
    np.testing.assert_allclose(fast.values, slow.values, rtol=1e-10)
    np.testing.assert_allclose(
        (fast.right * fast.values) @ fast.left, (slow.right * slow.values) @ slow.left, atol=1e-9
    )
    low = np.outer(A[:, 0], A[0]) + np.outer(A[:, 1], A[1])
    assert leading_singular_vectors(ColumnSubsetProblem(low, 4)).complete


def test_a_tall_matrix_is_factorised_from_the_top(pieces):
    rng = np.random.default_rng(2)
    A, y = rng.normal(size=(9000, 3)), rng.normal(size=9000)
    for R, table in ((tall.triangle(A), A), (tall.triangle(A, y), np.column_stack([A, y]))):
        assert R.shape == (table.shape[1], table.shape[1])
        np.testing.assert_allclose(R.T @ R, table.T @ table, rtol=1e-11, atol=1e-9)
