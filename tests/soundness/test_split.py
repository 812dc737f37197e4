"""The split (bounds/split.py): its matrix, its steps and its bounds, against slow twins and brute force."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import many

from exactsel import Problem, solve
from exactsel.algebra.elimination import definite, entry_error, shift
from exactsel.bounds import split
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.split import PreparedSplit, SplitBound
from exactsel.bounds.split_point import rescaled, rounded, sound, split_matrix
from exactsel.bounds.witness import FitPoint, SplitPoint
from exactsel.kernels.node import CUT, FREE, IN, OUT
from exactsel.kernels.split import descend, row_sums
from exactsel.testing import check_bound
from exactsel.testing.cases import Truth

SEEDS = st.integers(0, 2**32 - 1)


@pytest.fixture(autouse=True)
def split_more_often(monkeypatch):
    """Where the relaxation is nearly there the split is not tried, which small problems would mostly be."""
    monkeypatch.setattr(split, "CLOSE", 0.9)


def random_symmetric(rng, m, zeros=0.3):
    N = rng.uniform(-1, 1, (m, m)) * (rng.random((m, m)) > zeros)
    N = np.tril(N, -1)
    return N + N.T


def slow_sums(N, slots):
    return [sum(sorted(np.abs(np.delete(row, i)), reverse=True)[: slots - 1]) for i, row in enumerate(N)]


@given(SEEDS, st.integers(1, 8), st.integers(1, 9))
def test_row_sums_are_those_of_the_largest(seed, m, slots):
    N = random_symmetric(np.random.default_rng(seed), m)
    sums, largest = np.empty(m), np.empty((m, max(0, min(slots - 1, m - 1))), dtype=np.int64)
    row_sums(N, sums, largest)
    assert sums == pytest.approx(slow_sums(N, slots))
    for i in range(m):
        named = [abs(N[i, j]) for j in largest[i] if j >= 0]
        assert sum(named) == pytest.approx(sums[i])


@given(SEEDS, st.integers(1, 7), st.integers(1, 7))
def test_every_small_part_of_a_split_is_semidefinite(seed, m, slots):
    rng = np.random.default_rng(seed)
    columns = np.sort(rng.choice(12, m, replace=False))
    point = rounded(columns, rng.uniform(0.1, 10, m), random_symmetric(rng, m))
    asked = np.sort(rng.choice(12, int(rng.integers(1, 9)), replace=False))
    E = split_matrix(point, asked, slots)
    for chosen in combinations(range(asked.size), min(slots, asked.size)):
        part = E[np.ix_(chosen, chosen)]
        assert np.linalg.eigvalsh(part)[0] >= -1e-12 * max(1.0, np.abs(part).max())


@given(SEEDS, st.integers(1, 7), st.integers(1, 5))
def test_a_split_matrix_is_what_it_is_said_to_be(seed, m, slots):
    rng = np.random.default_rng(seed)
    scale, N = rng.uniform(0.1, 10, m), random_symmetric(rng, m).astype(np.float16).astype(float)
    point = rounded(np.arange(m), scale, N)
    assert sound(point)
    wanted = np.outer(scale, scale) * (N + np.diag(slow_sums(N, slots)))
    assert split_matrix(point, np.arange(m), slots) == pytest.approx(wanted)
    other = scale * rng.uniform(1, 2, m)
    assert rescaled(point, np.arange(m), other) == pytest.approx(N * np.outer(scale / other, scale / other))


@given(SEEDS, st.integers(2, 6), st.integers(2, 4))
def test_a_step_goes_along_the_gradient(seed, m, slots):
    """The gradient with respect to N, by differences of f at an N without ties."""
    rng = np.random.default_rng(seed)
    N, delta = random_symmetric(rng, m, zeros=0.0), 0.5
    M = random_symmetric(rng, m, zeros=0.0) + np.eye(m)

    def short(N):
        values, vectors = np.linalg.eigh(M - N - np.diag(slow_sums(N, slots)))
        lacking = np.maximum(delta - values, 0.0)
        return 0.5 * float(lacking @ lacking), (vectors * lacking) @ vectors.T

    value, P = short(N)
    sums, largest = np.empty(m), np.empty((m, min(slots - 1, m - 1)), dtype=np.int64)
    row_sums(N, sums, largest)
    G, after = np.empty((m, m)), N.copy()
    descend(after, P, largest, value, 1.0, G)
    h = 1e-6
    for i in range(m):
        for j in range(i):
            up, down = N.copy(), N.copy()
            up[i, j] = up[j, i] = N[i, j] + h
            down[i, j] = down[j, i] = N[i, j] - h
            slope = (short(up)[0] - short(down)[0]) / (2 * h)
            assert 2.0 * G[i, j] == pytest.approx(slope, abs=2e-4 * (1.0 + np.abs(G).max()))
    size = float((G * G).sum())
    assert after == pytest.approx(N - (value / size if size else 0.0) * G)


def awkward(rng):
    """A small problem with what real data have, or lam = 0, or fewer rows than columns."""
    n, d = int(rng.integers(2, 14)), int(rng.integers(2, 9))
    A = rng.standard_normal((n, d)) + rng.choice([0.0, 1.0, 5.0]) * rng.standard_normal((n, 1))
    if rng.random() < 0.3:
        A = np.round(A)
    if d > 3 and rng.random() < 0.4:
        A[:, 1], A[:, 2] = A[:, 0] * rng.choice([1.0, -2.0]), rng.choice([0.0, 1.0])
    y = A @ rng.standard_normal(d) * rng.choice([0.0, 0.3, 1.0]) + rng.standard_normal(n)
    if rng.random() < 0.2:
        y = np.round(y)
    A *= 10.0 ** rng.integers(-3, 4, d if rng.random() < 0.2 else 1)
    k = int(rng.choice([1, d, int(rng.integers(1, d + 1))]))
    lam = float(rng.choice([0.0, 1e-8, 1e-3, 0.1, 10.0])) * float(np.mean(A * A) + 1e-300)
    return Problem(A, y, k, lam=lam)


def some_regions(problem, rng, count=5):
    yield np.full(problem.d, FREE, dtype=np.int8)
    for _ in range(count):
        state = rng.choice(np.array([OUT, FREE, FREE, FREE, IN], dtype=np.int8), problem.d)
        if np.count_nonzero(state == IN) <= problem.k:
            yield state


def check_against_brute_force(seed):
    """How many answers were the split's own."""
    rng = np.random.default_rng(seed)
    problem = awkward(rng)
    truth, told = Truth(problem), 0
    prepared = SplitBound(steps=int(rng.choice([0, 3, 20]))).prepare(problem, BoundOptions())
    warm = None
    for state in some_regions(problem, rng):
        best = truth.best(state)
        slack = 1e-9 * max(problem.null_objective, 1e-300)
        for cutoff in (
            best - 1e-3 * problem.null_objective,
            best * (1 - 1e-6),
            best + slack,
            best * 1.001 + slack,
            np.inf,
        ):
            answer = prepared.tighten(state[None], [warm], cutoff, problem.null_objective)
            assert answer.answers.bound[0] <= best + slack, (seed, state, cutoff)
            for j in np.flatnonzero(state == FREE):
                for bounds, decision in ((answer.answers.bound_in, IN), (answer.answers.bound_out, OUT)):
                    child = state.copy()
                    child[j] = decision
                    assert bounds[0, j] <= truth.best(child) + slack, (seed, state, cutoff, j)
            told += isinstance(answer.proofs[0], SplitPoint)
            if isinstance(answer.warm[0], SplitPoint):
                warm = answer.warm[0]
    return told


def test_bounds_hold():
    told = sum(check_against_brute_force(seed) for seed in range(many(36, 300)))
    assert told > many(15, 150), "hardly any answer was a split"


@pytest.mark.slow
def test_many_bounds_hold():
    for seed in range(1000, 6000):
        check_against_brute_force(seed)


def test_any_split_gives_a_valid_bound():
    """Also one nobody would make, as damaged data may bring."""
    rng = np.random.default_rng(3)
    for _ in range(many(48, 200)):
        problem = awkward(rng)
        truth = Truth(problem)
        m = int(rng.integers(1, problem.d + 1))
        columns = np.sort(rng.choice(problem.d, m, replace=False))
        point = rounded(columns, 10.0 ** rng.uniform(-3, 3, m), 3 * random_symmetric(rng, m))
        prepared = SplitBound(steps=int(rng.integers(0, 3))).prepare(problem, BoundOptions())
        for state in some_regions(problem, rng, 3):
            best = truth.best(state)
            for cutoff in (best, 0.5 * best):
                answer = prepared.tighten(state[None], [point], cutoff, problem.null_objective)
                assert answer.answers.bound[0] <= best + 1e-9 * problem.null_objective


def test_a_factorisation_proves_with_room():
    """The margin covers what rounding does to Q: exact minima just below the level are never passed."""
    rng = np.random.default_rng(8)
    passed = 0
    for _ in range(500):
        n, m = int(rng.integers(3, 40)), int(rng.integers(1, 6))
        A, y = rng.standard_normal((n, m)), rng.standard_normal(n)
        H, b, c = A.T @ A, A.T @ y, 0.5 * float(y @ y)
        least = 0.5 * float(np.linalg.lstsq(A, y)[1].sum()) if n > m else 0.0
        for distance in (-1e-9, -1e-12, 1e-13, 1e-9):
            level = least + distance * c
            if not 0 < level < c:
                continue
            Q = H - np.outer(b, b) / (2 * (c - level)) - shift(m, entry_error(n, c, level)) * np.diag(np.diag(H))
            passed += definite(Q)
            assert not (definite(Q) and distance > 1e-12)
    assert passed > 300


def test_a_split_of_columns_put_in_since_is_valid():
    """A parent's split holds columns of S: they keep their places."""
    rng = np.random.default_rng(5)
    proven = 0
    for _ in range(many(240, 400)):
        problem = awkward(rng)
        prepared, truth = SplitBound().prepare(problem, BoundOptions()), Truth(problem)
        scale = rng.uniform(0, 0.6, problem.d) * np.sqrt(np.diag(problem.hessian)) + 1e-30
        point = rounded(np.arange(problem.d), scale, random_symmetric(rng, problem.d))
        for state in some_regions(problem, rng, 6):
            if 0 < np.count_nonzero(state == IN) < problem.k:
                value = prepared._value(prepared._region(state), point)
                assert value.bound <= truth.best(state) + 1e-9 * problem.null_objective
                proven += isinstance(value.proof, SplitPoint)
    assert proven > many(10, 20)


def test_cut_means_that_the_cutoff_is_reached():
    """Also where what is asked for lies above the best objective known, as for lists of close models."""
    rng = np.random.default_rng(6)
    cut = 0
    for seed in range(many(36, 60)):
        problem = make_hard(30, 12, 3, seed)
        best = solve(problem, signals=()).upper
        root = np.full((1, problem.d), FREE, dtype=np.int8)
        for cutoff in (best * rng.uniform(0.7, 1.0), best * 1.2, np.inf):
            answer = SplitBound(steps=40).prepare(problem, BoundOptions()).tighten(root, [None], cutoff, best).answers
            assert (answer.status[0] == CUT) == (answer.bound[0] >= cutoff)
            cut += answer.status[0] == CUT
    assert cut > 10


def test_no_infinite_factor_proves_anything():
    assert definite(np.diag([2.0, 1.0]))
    for number in (np.inf, -np.inf, np.nan):
        assert not definite(np.diag([number, 1.0]))
        assert not definite(np.diag([1.0, number]))


def test_the_conformance_kit():
    check_bound("split")


def make_hard(n, d, k, seed=1):
    """No clean support to find: every column counts a little."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    y = A @ (rng.choice([-1.0, 1.0], d) / np.sqrt(np.arange(1, d + 1))) + 1.5 * rng.standard_normal(n)
    A /= np.linalg.norm(A, axis=0)
    return Problem(A, y / np.linalg.norm(y), k, lam=0.01)


def test_the_split_closes_what_the_relaxation_divides():
    problem = make_hard(80, 40, 6)
    by_split = solve(problem, bound="split", subtrees=False)
    by_relaxation = solve(problem, bound="apg")
    assert by_split.upper == pytest.approx(by_relaxation.upper, rel=1e-6)
    assert by_split.nodes < by_relaxation.nodes / 4


def test_a_node_that_stays_open_has_a_bound_of_its_own():
    problem = make_hard(60, 60, 8)
    stopped = solve(problem, bound="split", node_limit=1)
    relaxed = solve(problem, bound="apg", node_limit=1)
    assert stopped.lower > relaxed.lower
    assert stopped.lower <= stopped.upper


def test_a_search_that_is_broken_off_says_what_the_relaxation_says_of_open_nodes(monkeypatch):
    """Splits are made for the cut-off, and leave what they do not close at the bound of the root."""
    problem, options = make_hard(200, 80, 8, seed=3), {"bound": "split", "node_limit": 3, "heuristics": ("forward",)}
    told = solve(problem, **options)
    monkeypatch.setattr(PreparedSplit, "_ask_beside_too", lambda *_: None)
    assert solve(problem, **options).lower < told.lower < told.upper


def test_no_node_has_less_than_the_fit():
    """Collinear columns and hardly any ridge: the relaxation says nothing."""
    rng = np.random.default_rng(4)
    A = rng.standard_normal((80, 3)) @ rng.standard_normal((3, 25)) + 0.05 * rng.standard_normal((80, 25))
    y = A @ rng.standard_normal(25) + rng.standard_normal(80)
    problem = Problem(A / np.linalg.norm(A, axis=0), y / np.linalg.norm(y), 8, lam=1e-7)
    fit = problem.fit(range(problem.d)).value
    root = np.full((1, problem.d), FREE, dtype=np.int8)
    answer = SplitBound().prepare(problem, BoundOptions()).tighten(root, [None], 2 * fit, 2 * fit).answers
    assert answer.bound[0] >= fit * (1 - 1e-6)


def test_bounds_of_children_are_proven_by_what_they_say():
    """Also where the node itself is proven by the fit, and its children by the relaxation."""
    rng = np.random.default_rng(1)
    both = 0
    for _ in range(many(60, 300)):
        problem = Problem(rng.standard_normal((3, 8)), rng.standard_normal(3), 2, lam=1e-3)
        root = np.full((1, problem.d), FREE, dtype=np.int8)
        upper = solve(problem, signals=()).upper
        answer = SplitBound().prepare(problem, BoundOptions()).tighten(root, [None], upper, upper)
        for j in range(problem.d):
            for included, bounds in ((True, answer.answers.bound_in), (False, answer.answers.bound_out)):
                child = root[0].copy()
                child[j] = IN if included else OUT
                proof = answer.child_proof(0, j, included)
                if isinstance(proof, FitPoint) and bounds[0, j] > 0:
                    columns = np.flatnonzero(child != OUT)
                    assert bounds[0, j] <= problem.fit(columns).value * (1 + 1e-9)
                both += type(proof) is not type(answer.proofs[0]) and bounds[0, j] > 0
    assert both > 0


def test_a_closed_node_is_proven_by_what_it_says():
    problem = make_hard(60, 30, 4)
    best = solve(problem).upper
    prepared = SplitBound(steps=60).prepare(problem, BoundOptions())
    root = np.full((1, problem.d), FREE, dtype=np.int8)
    answer = prepared.tighten(root, [None], 0.8 * best, best)
    assert answer.answers.status[0] == CUT
    point = answer.proofs[0]
    if isinstance(point, SplitPoint):
        E = split_matrix(point, np.arange(problem.d), problem.k)
        H, b, c = problem.hessian, problem.gram.b, problem.gram.constant
        assert np.linalg.eigvalsh(H - np.outer(b, b) / (2 * (c - 0.8 * best)) - E)[0] > 0
    else:
        assert not isinstance(point, FitPoint)


@settings(max_examples=20)
@given(SEEDS)
def test_searches_find_the_best_model(seed):
    rng = np.random.default_rng(seed)
    problem = awkward(rng)
    result = solve(problem, bound="split", signals=())
    best = Truth(problem).best(np.full(problem.d, FREE, dtype=np.int8))
    assert result.upper == pytest.approx(best, rel=1e-5, abs=1e-8 * problem.null_objective)
    assert result.lower <= best + 1e-9 * problem.null_objective


def test_nodes_bounded_by_several_threads_are_bounded_alike():
    problem = make_hard(60, 40, 6)
    rng, points = np.random.default_rng(5), []
    states = np.full((7, 40), FREE, dtype=np.int8)
    for state in states[1:]:
        state[rng.permutation(40)[:4]] = [IN, OUT, OUT, OUT]
    cutoff = 0.97 * solve(problem, threads=1).upper
    columns = np.arange(40, dtype=np.int32)
    start = rounded(columns, np.ones(40), np.zeros((40, 40)))
    for threads in (1, 3):
        bound = SplitBound().prepare(problem, BoundOptions(threads=threads))
        points.append(bound.tighten(states, [start] * 7, cutoff, cutoff))
    for one, other in zip(points[0].answers, points[1].answers, strict=True):
        assert np.array_equal(one, other)
    assert [type(proof) for proof in points[0].proofs] == [type(proof) for proof in points[1].proofs]
    assert points[0].answers.iterations.min() > 0
