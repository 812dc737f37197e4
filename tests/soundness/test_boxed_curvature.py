"""Signs and bounds of coefficients with the curvature of all columns, with lam = 0, and under constraints."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from boxed_cases import allowed_sets, constrained_case, curved_case, enumerated_fit, smallest_on
from regions import supports_of
from samples import sample

from exactsel import Problem, best_model, boxed, certify, near_optimal, solve, solve_path
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.boxed import BoxedBound, _outwards
from exactsel.bounds.witness import CurvedPoint, ModelPoint
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.solving.outcome import Termination


@pytest.mark.parametrize("seed", sample(48, 6000, smoke=8))
def test_the_best_model_is_found_with_all_curvature(seed):
    problem = curved_case(seed)
    if problem is None:
        return
    scale = problem.null_objective
    best = min(enumerated_fit(problem, chosen) for chosen in allowed_sets(problem))
    result = solve(problem, signals=(), **({} if seed % 3 else {"batch": 1, "warm_start": False}))
    assert result.lower <= best + 1e-12 * scale
    assert best - 1e-9 * scale <= result.upper <= best + 2e-6 * scale  # the tolerance is 1e-6
    # Where columns are nearly dependent and nothing is paid for coefficients doubles may not tell.
    assert result.reached or (result.termination is Termination.PRECISION_LIMIT and problem.lam < 1e-3)
    assert problem.admits(result.coef)
    assert np.count_nonzero(result.coef) <= problem.k


@pytest.mark.parametrize("seed", sample(48, 6000, smoke=4))
def test_no_bound_of_a_region_is_above_its_best_model(seed):
    """Whatever the start and the cut-off; with all curvature, with the ridge alone, on rows, and of children."""
    problem, rng = curved_case(seed), np.random.default_rng([seed, 97])
    if problem is None:
        return
    state = rng.choice([OUT, FREE, FREE, FREE, IN], problem.d).astype(np.int8)
    sets = supports_of(state, problem.k)
    if not sets:
        return
    values = {chosen: enumerated_fit(problem, chosen) for chosen in sets}
    best, above = min(values.values()), 1e-12 * problem.null_objective
    bound = BoxedBound().prepare(problem, BoundOptions(thorough=bool(seed % 2)))
    start = rng.standard_normal(problem.d) * 10.0 ** rng.integers(-2, 3)
    for warm in (None, ModelPoint.from_dense(start)):
        told = bound.tighten(state[None], [warm], np.inf, np.inf)
        assert told.answers.bound[0] <= best + above
        assert isinstance(told.proofs[0], CurvedPoint) or problem.lam > 0
        for j in np.flatnonzero(state == FREE):
            with_j, without = (np.where(np.arange(problem.d) == j, at, state) for at in (IN, OUT))
            for child, found in ((with_j, told.answers.bound_in), (without, told.answers.bound_out)):
                least = min((values[c] for c in supports_of(child, problem.k)), default=np.inf)
                assert found[0, j] <= least + above


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


@pytest.mark.parametrize("seed", sample(7, 1000, smoke=1))
def test_lists_paths_and_criteria_without_a_ridge(seed):
    problem = curved_case(seed, lams=(0.0,))
    if problem is None:
        return
    problem = problem.replace(k=max(1, problem.k))
    scale = problem.null_objective
    values = {chosen: enumerated_fit(problem, chosen) for chosen in allowed_sets(problem.replace(k=problem.d))}
    for result in solve_path(problem, signals=()).results:
        best = min(value for chosen, value in values.items() if len(chosen) <= result.problem["k"])
        assert result.lower <= best + 1e-12 * scale
        assert result.upper == pytest.approx(best, abs=2e-6 * scale)
    exact = {chosen: value for chosen, value in values.items() if len(chosen) == problem.k}
    best, tau = min(values[c] for c in values if len(c) <= problem.k), 0.1 * scale
    listed = {model.support: model.value for model in near_optimal(problem, tau=tau, signals=()).models}
    for chosen, value in exact.items():
        if abs(value - best - tau) > 1e-6 * scale:
            assert (chosen in listed) == (value <= best + tau)
    chosen = sorted(exact)[seed % len(exact)]
    certified = certify(problem, support=chosen, signals=())
    assert certified.value == pytest.approx(exact[chosen], abs=1e-9 * scale)
    assert certified.value - certified.absolute_gap <= best + 1e-12 * scale
    n = problem.n
    if min(values.values()) > 1e-3 * scale and n > 2:
        least = min(n * np.log(2.0 * v / n) + (len(c) + 1) * np.log(n) for c, v in values.items())
        found = best_model(problem, criterion="bic", signals=())
        assert found.value == pytest.approx(least + n * (1.0 + np.log(2.0 * np.pi)), abs=1e-4 * (1.0 + abs(least)))


@pytest.mark.parametrize("seed", sample(24, 3000, smoke=4))
def test_hierarchies_and_limits_on_groups(seed):
    """Against all sets of columns that go together."""
    problem = constrained_case(seed)
    scale = max(1.0, problem.null_objective)
    values = {chosen: smallest_on(problem, chosen) for chosen in allowed_sets(problem)}
    best = min(values.values())
    result = solve(problem, signals=())
    assert result.reached
    assert result.lower <= best + 1e-9 * scale
    assert result.upper == pytest.approx(best, abs=1e-6 * scale)
    assert problem.admits(result.coef)
    assert any({*result.support} <= {*chosen} for chosen in values)
    for other in solve_path(problem, ks=range(1, problem.k + 1), signals=()).results:
        smaller = min((v for c, v in values.items() if len(c) <= other.problem["k"]), default=np.inf)
        assert other.lower <= smaller + 1e-9 * scale
        assert other.upper == pytest.approx(smaller, abs=1e-6 * scale)
    chosen = sorted(values)[seed % len(values)]
    if chosen:
        certified = certify(problem, support=chosen, signals=())
        assert certified.value == pytest.approx(values[chosen], abs=1e-6 * scale)
        assert certified.value - certified.absolute_gap <= best + 1e-9 * scale


@pytest.mark.parametrize("seed", sample(7, 1000, smoke=1))
def test_lists_and_criteria_under_constraints(seed):
    problem = constrained_case(seed)
    scale = max(1.0, problem.null_objective)
    values = {chosen: smallest_on(problem, chosen) for chosen in allowed_sets(problem.replace(k=problem.d))}
    best, tau = min(v for c, v in values.items() if len(c) <= problem.k), 0.1 * scale
    near = near_optimal(problem, tau=tau, signals=())
    listed = {model.support for model in near.models}
    assert near.complete
    for chosen, value in values.items():
        if len(chosen) == problem.k and abs(value - best - tau) > 1e-5 * scale:
            assert (chosen in listed) == (value <= best + tau)
    if min(values.values()) < 1e-3 * problem.null_objective:
        return
    found = best_model(problem, criterion="custom", penalty=2.0, signals=())
    criteria = min(found.criterion.value(value, len(chosen)) for chosen, value in values.items())
    assert found.value == pytest.approx(criteria, abs=1e-5 * (1.0 + abs(criteria)))
    assert found.lower <= criteria + 1e-9 * (1.0 + abs(criteria))


@pytest.mark.parametrize("size", [1e-320, 1e-308, 1.0, 1e308])
@pytest.mark.parametrize("scale", [1e-9, 0.1, 3.0, 1e9])
def test_limits_in_the_units_of_the_curvature_are_never_narrower(size, scale):
    scales = np.full(2, scale)
    low = _outwards(np.array([-size, 0.0]), scales, -np.inf)
    high = _outwards(np.array([size, 0.0]), scales, np.inf)
    assert low[1] == high[1] == 0.0
    assert high[0] == -low[0] > 0.0
    assert high[0] == np.inf or Fraction(high[0]) >= Fraction(size) * Fraction(scale)
