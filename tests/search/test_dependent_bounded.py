"""Walks over dependent columns whose bounds speak of bounded models: nothing in fractions lies below them."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
from bounded_models import best_bounded, dependent_problem, supports
from exact_fits import exact_fit
from hypothesis import given
from hypothesis import strategies as st
from regions import random_state
from samples import examples

from exactsel import Problem, Settings, solve
from exactsel.algebra.extended import PRODUCT_ERROR, extended_products
from exactsel.bounds.base import BoundOptions
from exactsel.enumeration.closed_form import ClosedFormEnumeration, walk_data
from exactsel.kernels.bounded import bounded_fit, bounded_workspace
from exactsel.kernels.counting import count_workspace
from exactsel.kernels.dependent_columns import independent
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.problem.redundant_columns import only_bounded_models
from exactsel.solving.solver import Search

SEEDS = st.integers(0, 10**7)


def dot(a, b):
    return sum(Fraction(float(p)) * Fraction(float(q)) for p, q in zip(a, b, strict=True))


@given(SEEDS)
@examples(150, 300)
def test_products_to_twice_the_digits(seed):
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(1, 5)), int(rng.integers(1, 40))
    vectors = rng.standard_normal((m, n)) * 10.0 ** rng.integers(-8, 9, (m, 1)) * 10.0 ** rng.integers(-9, 1, (m, n))
    high, low = extended_products(vectors)
    for i in range(m):
        for j in range(m):
            exact = dot(vectors[i], vectors[j])
            most = float(np.linalg.norm(vectors[i]) * np.linalg.norm(vectors[j]))
            assert abs(Fraction(high[i, j]) + Fraction(low[i, j]) - exact) <= Fraction(PRODUCT_ERROR * most)


@given(SEEDS)
@examples(300, 600)
def test_any_coefficients_give_a_bound(seed):
    """The slow twin: the same formula in fractions, which the bound may not exceed and comes close to."""
    rng, problem = np.random.default_rng(seed), dependent_problem(seed)
    data, d = walk_data(problem, None, bounded=True), problem.d
    columns = rng.permutation(d)[: rng.integers(1, d + 1)]
    m, fixed = columns.size, int(rng.integers(0, columns.size + 1))
    slots = int(rng.integers(0, m - fixed + 1))
    K = np.linalg.pinv(data.H[np.ix_(columns, columns)] + 1e-9 * np.diag(data.H[columns, columns]))
    if rng.random() < 0.2:
        K = rng.standard_normal((m, m))
    skip = int(rng.integers(-1, m))
    if skip >= 0 and not K[skip, skip] > 0.0:
        skip = -1
    x = rng.standard_normal(m) * float(rng.choice([0.0, 1.0]))
    if skip >= 0:
        x[skip] = 0.0
    room = bounded_workspace(d)
    level = float(rng.choice([0.0, data.constant * rng.random(), -np.inf]))
    bound = bounded_fit(data, columns, x, fixed, m, slots, skip, K, level, room)
    if not bound > -np.inf:
        return
    included = [int(j) for i, j in enumerate(columns[:fixed]) if i != skip]
    free = [int(j) for i, j in enumerate(columns) if i >= fixed and i != skip]
    for size in range(slots + 1):
        for more in combinations(free, size):
            assert Fraction(bound) <= best_bounded(problem, [*included, *more])


@given(SEEDS)
@examples(300, 600)
def test_distances_are_not_too_small(seed):
    rng, problem = np.random.default_rng(seed), dependent_problem(seed)
    data, room, d = walk_data(problem, None, bounded=True), count_workspace(problem.d), problem.d
    order = rng.permutation(d)
    room.order[:] = order
    included = int(rng.integers(0, d + 1))
    kept, left, min_pruned_bound = independent(data, included, d, room)
    if kept < 0:
        return
    basis, others = room.order[:kept].tolist(), room.order[kept:left].tolist()
    assert left + min_pruned_bound == d
    distances = np.sort(room.distances[:min_pruned_bound])
    exact = []
    for j in sorted(set(range(d)) - {*basis, *others}):
        ways = [basis, *([*basis, other] for other in others)]
        length = dot(problem.AT[j], problem.AT[j])
        exact.append(min(2 * best_square(problem, way, j) / length for way in ways))
    for claimed, true in zip(distances, sorted(exact), strict=True):
        assert Fraction(claimed) ** 2 >= true


def best_square(problem, columns, j):
    """Half the squared distance of column j from the span of some others, exactly."""
    A = np.column_stack([problem.AT.T[:, columns], np.zeros(problem.n)])
    return exact_fit(Problem(A, problem.AT.T[:, j], 1, lam=0.0), list(range(len(columns))))


@given(SEEDS)
@examples(40, 400)
def test_a_walk_closes_nothing_below_its_bound(seed):
    check_walk(seed)


def check_walk(seed, most=8):
    """One region of one problem against every support of it; whether anything was closed."""
    rng, problem = np.random.default_rng(seed), dependent_problem(seed, most=most, most_k=7)
    if not only_bounded_models(problem):
        return False
    state = np.full(problem.d, FREE, dtype=np.int8) if rng.random() < 0.5 else random_state(rng, problem)
    truth = {support: best_bounded(problem, support) for support in supports(state, problem.k)}
    best = float(min(truth.values()))
    upper = [np.inf, best, best * (1.0 + 1e-9), best * 1.1 + 1e-3][rng.integers(4)]
    tolerance = float(rng.choice([1e-11, 1e-9, 1e-6, 1e-2])) * max(min(upper, best), 1e-6 * problem.gram.constant)
    return holds_for_all(problem, state, truth, upper, tolerance, int(rng.choice([1, 4, 10_000])))


def holds_for_all(problem, state, truth, upper, tolerance, budget):
    """Compare one walk with the best bounded models; whether anything was closed."""
    walk = ClosedFormEnumeration(problem, None, BoundOptions()).explore(state[None], upper, tolerance, budget)[0]
    if walk is None:
        return False
    for support, value in truth.items():
        left_open = any(
            np.all(piece[list(support)] != OUT)
            and np.count_nonzero(piece == IN) + np.count_nonzero(piece[list(support)] == FREE) <= problem.k
            for piece in walk.open_states
        )
        if not left_open:
            assert Fraction(walk.min_pruned_bound) <= value, support
    for piece, bound in zip(walk.open_states, walk.open_bounds, strict=True):
        if bound > -np.inf:
            assert Fraction(bound) <= min(truth[support] for support in supports(piece, problem.k) if support in truth)
    return walk.min_pruned_bound < np.inf


@given(SEEDS)
@examples(70, 200)
def test_a_column_that_stands_for_another_needs_larger_coefficients(seed):
    problem, state, upper = longer_way_round(seed)
    truth = {support: best_bounded(problem, support) for support in supports(state, problem.k)}
    holds_for_all(problem, state, truth, upper, 1e-6 * upper, 10_000)


def longer_way_round(seed):
    """Columns u, v, w with w in the span of the first two, and one near w: with v for w it takes more than R ||y||.

    The region that holds u, with three places, and an objective that only models with w go below.
    """
    rng = np.random.default_rng(seed)
    along, across = [(4.0, 3.0), (12.0, 5.0), (15.0, 8.0), (24.0, 7.0), (35.0, 12.0)][rng.integers(5)]
    d = int(rng.integers(5, 8))
    columns, y = np.eye(d), np.zeros(d)
    columns[1, :2] = along, across
    columns[2, 1:3] = 1.0, 0.0
    columns[3, 1:4] = 1.0, 2.0 ** -rng.uniform(18.0, 20.0), 0.0
    order = rng.permutation(d)
    y[0], y[2] = rng.integers(-3, 4), 10.0 * rng.choice([1.0, 1e-3])
    problem = Problem(columns[order].T, y, 3, lam=0.0)
    u, v, near = (int(np.flatnonzero(order == j)[0]) for j in (0, 1, 3))
    state = np.full(d, FREE, dtype=np.int8)
    state[u] = IN
    return problem, state, float(best_bounded(problem, sorted((u, v, near)))) * rng.uniform(0.1, 0.999)


@given(SEEDS)
@examples(30, 60)
def test_a_search_claims_nothing_above_the_best_bounded_model(seed):
    problem = dependent_problem(seed, most=7)
    result = solve(problem, threads=1, heuristics=(), time_limit=5.0)
    best = min(best_bounded(problem, support) for support in supports(problem.root_state, problem.k))
    assert Fraction(result.lower) <= best


def test_the_tree_is_the_same_with_two_threads_and_the_scope_is_stated():
    rng = np.random.default_rng(3)
    A = rng.standard_normal((40, 24))
    A[:, 20:] = A[:, :4] / 3.0 + A[:, 4:8] * 0.7
    A[:, 19] = A[:, 18] * (1.0 / 3.0)
    problem = Problem(A, A @ rng.standard_normal(24) + rng.standard_normal(40), 4, lam=0.0)
    results = []
    for threads in (1, 2):
        search = Search(problem, Settings(threads=threads, heuristics=()))
        for _ in search:
            pass
        results.append(search.result())
    assert results[0].tree_hash == results[1].tree_hash
    assert results[0].reached
    assert "models with" in results[0].valid_for
