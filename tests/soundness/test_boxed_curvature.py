"""Signs and bounds of coefficients with the curvature of all columns, with lam = 0, and under constraints."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from exactsel import Problem, boxed, solve
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.boxed import BoxedBound, _outwards


def test_curvature_is_used_and_closes_more():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((80, 20))
    y = A[:, :5] @ rng.standard_normal(5) + rng.standard_normal(80)
    problem = boxed(Problem(A, y, 4, lam=1e-3), "all")
    result = solve(problem, signals=())
    assert result.reached
    assert result.nodes <= 12  # 25 with the ridge alone
    prepared = BoxedBound().prepare(problem, BoundOptions())
    assert prepared.curvature is not None
    assert np.all(prepared.curvature > 1.0)


def test_a_search_over_nearly_dependent_columns_begins_at_their_fit():
    rng = np.random.default_rng(4)
    A = rng.standard_normal((60, 12))
    A[:, 6:] = A[:, :6] + 1e-5 * rng.standard_normal((60, 6))
    y = A[:, 0] - A[:, 1] + A[:, 2] + rng.standard_normal(60)
    problem = boxed(Problem(A, y, 3, lam=0.0), "all")
    root = problem.root_state
    told = BoxedBound().prepare(problem, BoundOptions()).tighten(root[None], [None], np.inf, np.inf)
    fit = problem.fit(range(12)).value
    assert fit * (1.0 - 1e-6) <= told.answers.bound[0] <= solve(problem, signals=()).upper


def test_without_a_ridge_columns_may_depend_on_each_other():
    """Copies, zeros, fewer rows than columns, a constant column beside an intercept; as with hardly a ridge."""
    rng = np.random.default_rng(2)
    A, y = rng.standard_normal((20, 4)), rng.standard_normal(20)
    for columns in (A[:, [0, 1, 2, 0]], np.column_stack([A, np.zeros(20)]), A[:3], np.column_stack([A, np.ones(20)])):
        free = Problem.prepared(columns, y[: len(columns)], 2, lam=1e-9, intercept=len(columns) == 20)
        found, beside = (solve(boxed(free.replace(lam=lam), "all"), signals=()) for lam in (0.0, 1e-9))
        assert found.reached
        assert found.upper <= beside.upper * (1.0 + 1e-12)
        assert found.upper == pytest.approx(beside.upper, rel=1e-6)


@pytest.mark.parametrize("size", [1e-320, 1e-308, 1.0, 1e308])
@pytest.mark.parametrize("scale", [1e-9, 0.1, 3.0, 1e9])
def test_limits_in_the_units_of_the_curvature_are_never_narrower(size, scale):
    scales = np.full(2, scale)
    low = _outwards(np.array([-size, 0.0]), scales, -np.inf)
    high = _outwards(np.array([size, 0.0]), scales, np.inf)
    assert low[1] == high[1] == 0.0
    assert high[0] == -low[0] > 0.0
    assert high[0] == np.inf or Fraction(high[0]) >= Fraction(size) * Fraction(scale)
