"""Curvature leaves a convex problem, and as much is found as there is."""

from __future__ import annotations

import numpy as np
import pytest
from bounds_by_hand import call, make_problem, root

from exactsel.algebra import curvature
from exactsel.algebra.curvature import balanced_curvature
from exactsel.bounds.apg import AcceleratedGradientBound
from exactsel.problem.regression import Problem


def convex_without(problem, D):
    """The smallest eigenvalue of A'A + lam I - diag(D), in extended precision as far as the product goes."""
    A = problem.AT.T.astype(np.longdouble)
    matrix = A.T @ A + np.diag(problem.lam - D.astype(np.longdouble))
    return float(np.linalg.eigvalsh(np.asarray(matrix, dtype=float))[0])


@pytest.mark.parametrize("lam", [0.0, 1e-3, 1.0])
def test_curvature_leaves_a_convex_problem(lam):
    for seed in range(30):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(1, 12))
        A = rng.standard_normal((d + int(rng.integers(1, 20)), d)) * 10.0 ** rng.uniform(-3, 3, d)
        problem = Problem(A, rng.standard_normal(len(A)), 1, lam=lam)
        hessian = problem.gram.G + lam * np.eye(d)
        D = balanced_curvature(hessian, problem.n)
        if D is None:
            assert np.linalg.cond(hessian) > 1e10
            continue
        assert np.all(D > 0)
        assert convex_without(problem, D) >= -1e-14 * np.trace(hessian)
        # Balanced: scaled by its own curvature no column is left with nothing.
        assert np.exp(np.mean(np.log(D))) >= 0.99 * np.linalg.eigvalsh(hessian)[0]


def test_no_curvature_where_columns_are_dependent():
    A = np.random.default_rng(0).standard_normal((10, 4))
    A[:, 3] = A[:, 0]
    assert balanced_curvature(A.T @ A, 10) is None
    assert balanced_curvature(A.T @ A + 0.1 * np.eye(4), 10) is not None


def test_curvature_is_as_good_as_a_conic_solver_finds():
    """The barrier's maximum, by cvxpy, to within the weight the barrier is left with."""
    cvxpy = pytest.importorskip("cvxpy")
    A = np.random.default_rng(1).standard_normal((30, 6)) @ np.random.default_rng(2).standard_normal((6, 6))
    hessian = A.T @ A + 0.1 * np.eye(6)
    D = cvxpy.Variable(6)
    best = cvxpy.Problem(cvxpy.Maximize(cvxpy.sum(cvxpy.log(D))), [hessian - cvxpy.diag(D) >> 0])
    best.solve(solver="CLARABEL")
    ours = balanced_curvature(hessian, 30)
    assert np.sum(np.log(ours)) == pytest.approx(best.value, abs=1e-2)


def test_curvature_is_never_worse_than_much():
    """At the root the curved relaxation is the tighter one on data with a strong design."""
    better = 0
    for seed in range(10):
        problem = make_problem(seed, "quadratic", lam=1e-3)
        states = [root(problem)]
        plain = call(AcceleratedGradientBound(20000, polish=0.0, curvature=False), problem, states, force_quit=False)
        curved = call(AcceleratedGradientBound(20000, polish=0.0), problem, states, force_quit=False)
        better += curved.answers.bound[0] > plain.answers.bound[0]
    assert better >= 8


@pytest.mark.parametrize("seed", [48083790, *range(40)])
def test_nearly_dependent_columns_end_in_a_curvature_or_none(seed):
    """Where a step ends on the boundary Cholesky may succeed and the inverse fail."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(3, 9))
    A = rng.standard_normal((d + int(rng.integers(1, 9)), d))
    for _ in range(int(rng.integers(1, 4))):
        i, j = rng.choice(d, 2, replace=False)
        A[:, i] = A[:, j] + 10.0 ** rng.integers(-9, -2) * rng.standard_normal(len(A))
    hessian = A.T @ A
    D = balanced_curvature(hessian, len(A))
    if D is not None:
        assert np.all(D > 0)
        assert np.linalg.eigvalsh(hessian - np.diag(D))[0] >= -1e-12 * np.trace(hessian)


@pytest.mark.parametrize(("rows", "noise", "k"), [(1.5, 1.0, 1), (1.1, 1.0, 1), (1.5, 1e-3, 3), (3.0, 1e-7, 20)])
def test_the_quicker_climb_over_many_columns_is_nearly_as_good(monkeypatch, rows, noise, k):
    """Against the climb that goes on with lower weights of the barrier, by factorisations in double precision."""
    d = curvature.DENSE_FROM + 10
    rng = np.random.default_rng(k)
    A = rng.standard_normal((int(rows * d), d)) * 10.0 ** rng.uniform(-3, 3, d)
    for j in range(k):
        A[:, j] = A[:, k + j] * rng.choice([1.0, -1.0]) + noise * np.linalg.norm(A[:, k + j]) / len(A) ** 0.5 * A[:, j]
    hessian = A.T @ A
    quick = balanced_curvature(hessian, len(A))
    monkeypatch.setattr(curvature, "DENSE_FROM", d + 1)
    slow = balanced_curvature(hessian, len(A))
    assert (quick is None) == (slow is None)
    if quick is not None:
        even = np.sqrt(np.diagonal(hessian))
        assert np.all(quick > 0)
        assert np.linalg.eigvalsh(hessian / even[:, None] / even - np.diag(quick / even**2))[0] >= -1e-12 * d
        assert np.mean(np.log(quick)) >= np.mean(np.log(slow)) - 0.01


def test_the_quicker_climb_ends_where_columns_depend_on_each_other_or_somebody_says_so():
    A = np.random.default_rng(0).standard_normal((300, curvature.DENSE_FROM))
    told = balanced_curvature(A.T @ A, 300, lambda: True)
    assert told is not None
    assert np.linalg.eigvalsh(A.T @ A - np.diag(told))[0] > 0.0
    A[:, 5] = -2.0 * A[:, 7]
    assert balanced_curvature(A.T @ A, 300) is None
    assert balanced_curvature(A.T @ A + 1e-3 * np.eye(A.shape[1]), 300) is not None
