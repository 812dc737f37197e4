"""Many columns: estimates in place of whole spectra, copies of the data avoided, and the same answers."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import examples
from threadpoolctl import threadpool_info

from exactsel import Problem, solve
from exactsel.algebra import curvature, spectrum
from exactsel.algebra.curvature import balanced_curvature, rounding_room, uniform_curvature
from exactsel.algebra.threads import one_thread
from exactsel.bounds.apg import AcceleratedGradientBound
from exactsel.bounds.base import BoundOptions
from exactsel_heuristics import dual_iht
from exactsel_heuristics.base import Context


@pytest.fixture
def estimates(monkeypatch):
    """Lanczos steps for matrices of every size."""
    monkeypatch.setattr(spectrum, "DENSE_UP_TO", 0)
    monkeypatch.setattr("exactsel.problem.objective.DENSE_UP_TO", 0)


def problem_of(seed, n=30, d=12, **options):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) @ np.diag(10.0 ** rng.uniform(-2, 2, d))
    return Problem(A, A @ rng.standard_normal(d) + rng.standard_normal(n), 3, **{"lam": 0.3, **options})


@given(seed=st.integers(0, 10**6), size=st.integers(1, 40))
@examples(200, 400)
def test_the_ends_of_the_spectrum(seed, size):
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((rng.integers(1, 60), size)) * 10.0 ** rng.uniform(-3, 3, size)
    matrix = factor.T @ factor + 10.0 ** rng.uniform(-3, 3) * np.eye(size)
    values = np.linalg.eigvalsh(matrix)
    exact = spectrum.smallest_eigenvalue(matrix), spectrum.largest_eigenvalue(matrix)
    assert exact == (values[0], values[-1])
    dense, spectrum.DENSE_UP_TO = spectrum.DENSE_UP_TO, 0
    try:
        assert spectrum.largest_eigenvalue(matrix) == pytest.approx(values[-1], rel=0.01)
        if values[0] > 1e-9 * values[-1]:
            assert spectrum.smallest_eigenvalue(matrix) == pytest.approx(values[0], rel=0.01)
    finally:
        spectrum.DENSE_UP_TO = dense


def test_no_smallest_eigenvalue_where_the_matrix_is_not_definite(estimates):
    assert spectrum.smallest_eigenvalue(np.diag([1.0, -1.0])) == 0.0


@pytest.mark.parametrize("lam", [0.0, 0.3])
def test_uniform_curvature_from_estimates(estimates, lam):
    for seed in range(100):
        H = problem_of(seed, lam=lam).hessian
        even = 2.0 ** np.frexp(np.sqrt(np.diagonal(H)))[1]
        D = uniform_curvature(H, 30)
        H, D = H / np.outer(even, even), None if D is None else D / even**2
        smallest = np.linalg.eigvalsh(H)[0]
        if D is None:
            assert smallest <= 8.0 * rounding_room(H, 30)
        else:
            assert 0.9 * (smallest - 8.0 * rounding_room(H, 30)) <= D[0] < smallest
            assert np.all(D[0] == D)


def test_curvature_exists_wherever_it_is_said_to(estimates):
    """lam = 0 relies on it: the bound is chosen by has_curvature."""
    rng = np.random.default_rng(4)
    for _ in range(300):
        Q = np.linalg.qr(rng.standard_normal((5, 5)))[0]
        scale = rounding_room(np.eye(5), 5)
        H = (Q * [1.0, 1.0, 1.0, 1.0, scale * rng.uniform(6.0, 11.0)]) @ Q.T
        H = 0.5 * (H + H.T)
        if curvature.has_curvature(H, 5):
            assert uniform_curvature(H, 5) is not None


@pytest.mark.parametrize("loss", ["quadratic", "huber"])
@pytest.mark.parametrize("shape", [(30, 12), (12, 30)])
def test_the_spectral_norm_from_products(estimates, loss, shape):
    for seed in range(20):
        problem = problem_of(seed, *shape, loss=loss)
        exact = np.linalg.norm(problem.AT.T, 2) ** 2
        assert problem.spectral_norm_squared == pytest.approx(exact, rel=0.01)


@pytest.mark.smoke
def test_the_same_optimum_with_estimates(estimates, monkeypatch):
    expected = [solve(problem_of(seed)).upper for seed in range(5)]
    monkeypatch.setattr(curvature, "BALANCED_UP_TO", 0)
    for seed, value in enumerate(expected):
        result = solve(problem_of(seed))
        assert result.reached
        assert result.upper == pytest.approx(value, rel=1e-9)


def test_dual_iht_from_the_gram_matrix_takes_the_steps_of_the_data(monkeypatch):
    method = dual_iht.DualIterativeHardThresholding()
    for seed in range(20):
        problem = problem_of(seed)
        by_gram, by_data = dual_iht._GramAscent(problem), dual_iht._DataAscent(problem)
        first = 1.0 + problem.spectral_norm_squared / problem.lam
        for t in range(20):
            scale = np.linalg.norm(by_data.correlation)
            np.testing.assert_allclose(by_gram.correlation, by_data.correlation, atol=1e-9 * scale)
            assert by_gram.advance(t, t + 1, first, Context()) == by_data.advance(t, t + 1, first, Context()) == t + 1
        fast = method.run(problem, Context())
        monkeypatch.setattr(dual_iht, "GRAM_COLUMNS", 0)
        assert method.run(problem, Context()).support == fast.support
        monkeypatch.undo()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int8, bool])
def test_any_layout_and_type_is_the_same_problem(order, kind):
    values = np.random.default_rng(0).integers(0, 2, (150, 7)).astype(kind)
    A = np.array(values, order=order)
    for table in (A, np.asarray(A.tolist()), A.astype(object)):
        problem = Problem(table, np.arange(150.0), 2, lam=1.0)
        np.testing.assert_array_equal(problem.A, values.astype(float))
        assert problem.AT.flags.c_contiguous
        assert not np.shares_memory(problem.AT, A)


def test_float32_data_are_the_numbers_they_are():
    A = np.random.default_rng(0).standard_normal((40, 8)).astype(np.float32)
    y = np.random.default_rng(1).standard_normal(40).astype(np.float32)
    single, double = Problem(A, y, 3, lam=0.1), Problem(A.astype(float), y.astype(float), 3, lam=0.1)
    assert single.hash == double.hash
    assert solve(single).upper == solve(double).upper


def test_the_hash_does_not_depend_on_how_much_is_hashed_at_once(monkeypatch):
    expected = problem_of(0).hash
    assert hashlib.sha256().digest_size * 2 == len(expected)
    for count in (1, 25, 10**9):
        monkeypatch.setattr("exactsel.problem.identity.HASHED_AT_ONCE", count)
        assert problem_of(0).hash == expected


def test_part_of_a_gradient():
    problem = problem_of(1, loss="huber")
    x, columns = np.random.default_rng(2).standard_normal(12), np.array([3, 0, 7])
    np.testing.assert_allclose(problem.gradient(x, columns), problem.gradient(x)[columns], rtol=1e-12, atol=1e-9)
    assert problem.gradient(x, np.zeros(0, dtype=np.int64)).shape == (0,)


def test_blas_uses_one_thread_inside():
    def threads():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    before = threads()
    with one_thread():
        assert set(threads()) == {1}
    assert threads() == before


@pytest.mark.parametrize(
    ("rows", "lam", "curved"), [(90, 0.1, True), (90, 1e4, False), (30, 0.1, False), (20, 0.1, False)]
)
def test_curvature_is_used_only_where_it_is_more_than_the_ridge(rows, lam, curved):
    A = np.random.default_rng(rows).standard_normal((rows, 30))
    problem = Problem(A, A @ np.ones(30), 4, lam=lam)
    bound = AcceleratedGradientBound().prepare(problem, BoundOptions())
    assert (getattr(bound, "curvature", None) is not None) is curved
    if rows < 30:  # why more columns than rows gain nothing: a null vector weighs D by no more than lam
        D = balanced_curvature(problem.hessian, rows)
        assert np.linalg.svd(A)[2][-1] ** 2 @ D <= lam * (1 + 1e-9)
