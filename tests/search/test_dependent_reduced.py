"""Dependent columns left out where lam = 0: nothing in fractions lies below what is then claimed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from bounded_models import best_bounded, nearly_independent, supports
from hypothesis import given
from hypothesis import strategies as st
from regions import random_state
from samples import examples, sample

from exactsel import Problem, Settings, near_optimal, solve
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.reduced import PreparedReduced
from exactsel.bounds.split import SplitBound
from exactsel.enumeration.rank_reduced import RankReducedEnumeration
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.problem import redundant_columns as spans_module
from exactsel.problem.redundant_columns import RedundantColumns
from exactsel.solving.solver import Search

SEEDS = st.integers(0, 10**7)


@pytest.fixture(autouse=True)
def small_problems_too(monkeypatch):
    monkeypatch.setattr(spans_module, "MOST_TAKING_PART", 0.9)


def of(problem):
    spans = RedundantColumns.of(problem)
    return spans if spans is not None and spans.curvature is not None else None


def test_the_problems_are_of_the_kind_meant():
    kinds = [of(nearly_independent(seed)) is not None for seed in range(300)]
    assert 100 < sum(kinds) < 300


@given(SEEDS)
@examples(30, 300)
def test_no_model_is_lost_by_leaving_columns_out(seed):
    rng, problem = np.random.default_rng(seed), nearly_independent(seed)
    spans = of(problem)
    if spans is None:
        return
    state = random_state(rng, problem)
    reduced = spans.reduce(np.flatnonzero(state == IN), np.flatnonzero(state == FREE), problem.k)
    smaller = np.full(problem.d, OUT, dtype=np.int8)
    smaller[reduced.included], smaller[reduced.candidates] = IN, FREE
    # What is left is about all models of these columns, of any size.
    rest = min(best_bounded(problem, support) for support in supports(smaller, problem.k))
    price = Fraction(spans.price(problem.k))
    for support in supports(state, problem.k):
        assert best_bounded(problem, support) >= rest - price


@given(SEEDS)
@examples(300, 600)
def test_curvature_of_what_is_called_independent(seed):
    """In fractions: H - diag(D) is positive definite on every set of columns that passes."""
    rng, problem = np.random.default_rng(seed), nearly_independent(seed, most=6)
    spans = of(problem)
    if spans is None:
        return
    for _ in range(4):
        columns = np.sort(rng.permutation(problem.d)[: rng.integers(1, problem.d + 1)])
        if not spans.independent(columns):
            continue
        A = [[Fraction(float(value)) for value in problem.AT.T[:, j]] for j in columns]
        M = [[sum(p * q for p, q in zip(a, b, strict=True)) for b in A] for a in A]
        for i, j in enumerate(columns):
            M[i][i] -= Fraction(float(spans.curvature[j]))
        for i in range(len(M)):
            assert M[i][i] > 0
            for r in range(i + 1, len(M)):
                factor = M[r][i] / M[i][i]
                M[r] = [p - factor * q for p, q in zip(M[r], M[i], strict=True)]


@given(SEEDS)
@examples(30, 300)
def test_bounds_hold_for_all_bounded_models_of_a_region(seed):
    rng, problem = np.random.default_rng(seed), nearly_independent(seed)
    if of(problem) is None:
        return
    bound = SplitBound().prepare(problem, BoundOptions())
    assert isinstance(bound, PreparedReduced)
    state = np.full(problem.d, FREE, dtype=np.int8) if rng.random() < 0.3 else random_state(rng, problem)
    truth = {support: best_bounded(problem, support) for support in supports(state, problem.k)}
    best = float(min(truth.values()))
    cutoff = float(rng.choice([0.5, 0.999, 1.0, 1.01])) * best
    told = bound.tighten(state[None], [None], cutoff, max(best, cutoff))
    answers = told.answers
    assert Fraction(max(0.0, answers.bound[0])) <= min(truth.values())
    for j in np.flatnonzero(state == FREE).tolist():
        for bounds, included in ((answers.bound_in, True), (answers.bound_out, False)):
            values = [value for support, value in truth.items() if (j in support) == included]
            if values and included and sum(state == IN) < problem.k:
                assert Fraction(max(0.0, bounds[0, j])) <= min(values)
            if values and not included:
                assert Fraction(max(0.0, bounds[0, j])) <= min(values)


@given(SEEDS)
@examples(30, 300)
def test_a_walk_closes_nothing_below_its_bound(seed):
    rng, problem = np.random.default_rng(seed), nearly_independent(seed)
    spans = of(problem)
    if spans is None:
        return
    enumeration = RankReducedEnumeration(problem, spans, BoundOptions())
    state = np.full(problem.d, FREE, dtype=np.int8) if rng.random() < 0.5 else random_state(rng, problem)
    truth = {support: best_bounded(problem, support) for support in supports(state, problem.k)}
    best = float(min(truth.values()))
    upper = [np.inf, best, best * (1.0 + 1e-9), best * 1.1 + 1e-3][rng.integers(4)]
    tolerance = float(rng.choice([1e-9, 1e-6, 1e-2])) * max(min(upper, best), 1e-6 * problem.gram.constant)
    walk = enumeration.explore(state[None], upper, tolerance, int(rng.choice([1, 4, 10_000])))[0]
    if walk is None:
        return
    for support, value in truth.items():
        left_open = any(
            np.all(piece[list(support)] != OUT)
            and np.count_nonzero(piece == IN) + np.count_nonzero(piece[list(support)] == FREE) <= problem.k
            for piece in walk.open_states
        )
        if not left_open:
            assert Fraction(walk.min_pruned_bound) <= value, (seed, support)
    for piece, bound in zip(walk.open_states, walk.open_bounds, strict=True):
        if bound > -np.inf:
            assert Fraction(bound) <= min(truth[support] for support in supports(piece, problem.k) if support in truth)


@given(SEEDS)
@examples(20, 150)
def test_a_search_claims_nothing_above_the_best_bounded_model(seed):
    problem = nearly_independent(seed, most=9, most_k=5)
    result = solve(problem, threads=1, heuristics=(), time_limit=20.0, subtrees=seed % 2 == 0)
    best = min(best_bounded(problem, support) for support in supports(problem.root_state, problem.k))
    assert Fraction(result.lower) <= best
    assert result.upper <= float(best) * (1.0 + 1e-9) + 1e-12 * problem.gram.constant or not result.reached


def test_three_exact_sums_among_many_columns_and_two_threads():
    rng = np.random.default_rng(5)
    A = rng.standard_normal((70, 40))
    A[:, 3] = A[:, 4] / 3.0
    A[:, 10] = 0.3 * A[:, 11] - A[:, 12]
    A[:, 20] = A[:, 21] + 1e-2 * A[:, 22] + 0.1 * A[:, 23]
    y = A @ rng.standard_normal(40) + 3.0 * rng.standard_normal(70)
    problem, results = Problem(A, y, 5, lam=0.0), []
    for threads in (1, 2):
        search = Search(problem, Settings(threads=threads, heuristics=()))
        for _ in search:
            pass
        results.append(search.result())
    assert results[0].tree_hash == results[1].tree_hash
    assert results[0].reached
    assert "models with" in results[0].valid_for
    independent = solve(Problem(np.delete(A, [3, 10, 20], axis=1), y, 5, lam=0.0))
    assert results[0].upper <= independent.upper * (1.0 + 1e-9)


@pytest.mark.parametrize("seed", sample(3, 3))
def test_a_column_of_zeros_takes_part_in_nothing(seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((40, 16))
    A[:, 3], A[:, 7] = A[:, 4] + A[:, 5], 0.0
    y = A @ rng.standard_normal(16) + 3.0 * rng.standard_normal(40)
    problem = Problem(A, y, 3, lam=0.0)
    spans = of(problem)
    assert 7 not in spans.reduce(np.zeros(0, dtype=np.int64), np.arange(16), 3).candidates
    without = solve(Problem(np.delete(A, 7, axis=1), y, 3, lam=0.0), threads=1)
    for subtrees in (True, False):
        found = solve(problem, threads=1, heuristics=(), subtrees=subtrees)
        assert found.reached
        assert abs(found.upper - without.upper) <= 2e-6 * without.upper
    listed = near_optimal(problem, tau=0.05 * without.upper, threads=1)
    assert min(model.value for model in listed.models) <= without.upper * (1.0 + 2e-6)


def test_a_dependence_of_columns_put_in_divides_nothing(monkeypatch):
    problem = next(p for p in map(nearly_independent, range(300)) if of(p) is not None and p.k < p.d)
    bound = SplitBound().prepare(problem, BoundOptions())
    state = np.full((1, problem.d), FREE, dtype=np.int8)
    state[0, 0] = IN
    for columns_in_circuit in (1, 0):
        monkeypatch.setattr(RedundantColumns, "independent", lambda self, columns: False)
        weights = np.zeros(problem.d)
        weights[:columns_in_circuit] = 1.0
        monkeypatch.setattr(RedundantColumns, "circuit", lambda self, columns, weights=weights: weights[: columns.size])
        if problem.k > 1:
            told = bound.tighten(state, [None], np.inf, problem.null_objective)
            assert not np.isnan(told.answers.indicator).any()
