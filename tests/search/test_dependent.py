"""Walks over dependent columns: against brute force and retraced move by move; relations against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import columns_of, instance_of, replayed
from samples import examples, sample

from exactsel import Problem, Settings, solve
from exactsel.algebra.column_dependencies import basis_of, find_relations
from exactsel.bounds.base import BoundOptions
from exactsel.enumeration.dependent import DependentEnumeration
from exactsel.kernels.dependent_basis import NOTHING, exchange, first_level, leave_out, substitute, swap_in_basis
from exactsel.kernels.dependent_value import best_addition, certified
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.search.events import SubtreeClosed
from exactsel.solving.solver import Search
from exactsel_dev.reference.subtree import retrace


def one_hot(rng, n, d):
    """Levels of some attributes, every level of each a column."""
    columns = []
    while len(columns) < d:
        attribute = rng.integers(0, rng.integers(2, 5), n)
        columns += [(attribute == level).astype(float) for level in np.unique(attribute)]
    return np.column_stack(columns[:d])


def combined(rng, n, d):
    """Columns and small whole combinations of them, copies and zeros among these."""
    own = rng.standard_normal((n, max(1, d - int(rng.integers(1, d)))))
    weights = rng.integers(-2, 3, (own.shape[1], d - own.shape[1])) * (rng.random((own.shape[1], 1)) < 0.7)
    return np.column_stack([own, own @ weights])[:, rng.permutation(d)]


def random_problem(seed):
    """Dependent columns more often than not, raw, centred or standardised, in any units; lam = 0."""
    rng = np.random.default_rng([5, seed])
    n, d = int(rng.integers(3, 25)), int(rng.integers(2, 11))
    A = one_hot(rng, n, d) if rng.random() < 0.5 else combined(rng, n, d)
    if rng.random() < 0.2:
        A[:, rng.integers(d)] = A[:, rng.integers(d)]
    y = A @ rng.standard_normal(A.shape[1]) * rng.integers(0, 2) + rng.standard_normal(n)
    if rng.random() < 0.5:
        A, y = A - A.mean(axis=0), y - y.mean()
    if rng.random() < 0.5:
        lengths = np.linalg.norm(A, axis=0)
        # What centring leaves of a constant column is rounding.
        A = np.where(lengths > 1e-12, A, 0.0) / np.where(lengths > 1e-12, lengths, 1.0)
    A = A * 10.0 ** rng.integers(-3, 4) * (2.0 ** rng.integers(-3, 4, A.shape[1]) if rng.random() < 0.3 else 1.0)
    return Problem(A, y * 10.0 ** rng.integers(-2, 3), int(rng.integers(0, A.shape[1] + 1)), lam=0.0)


def region_best(problem, state):
    """The smallest objective of the region, by trying every support."""
    included, free = np.flatnonzero(state == IN), np.flatnonzero(state == FREE)
    size = min(problem.k - included.size, free.size)
    return min(problem.fit([*included, *extra]).value for extra in combinations(free.tolist(), size))


def random_state(rng, problem):
    state = np.full(problem.d, FREE, dtype=np.int8)
    state[rng.permutation(problem.d)[: rng.integers(0, problem.k + 1)]] = IN
    free = np.flatnonzero(state == FREE)
    state[free[rng.random(free.size) < 0.2]] = OUT
    return state


def scale_of(problem):
    return 1.0 + problem.gram.constant


@pytest.mark.parametrize("block", sample(8, 8))
def test_a_walk_finds_the_optimum_of_its_region_or_hands_it_back(block):
    walks = whole = 0
    for seed in range(block * 100, block * 100 + 100):
        problem, rng = random_problem(seed), np.random.default_rng(seed)
        enumeration = DependentEnumeration.of(problem, BoundOptions())
        if enumeration is None:
            continue
        state = random_state(rng, problem)
        best, rounding = region_best(problem, state), 1e-9 * scale_of(problem)
        upper = [np.inf, best + rounding, best * 1.5 + 1.0][rng.integers(3)]
        tolerance = float(rng.choice([1e-11, 1e-6, 0.1])) * max(1.0, abs(min(upper, best)))
        budget = int(rng.choice([0, 1, 3, 10_000]))
        subtree = enumeration.explore(state[None], upper, tolerance, budget)[0]
        if subtree is None:
            continue
        walks += 1
        whole += subtree.finished
        model = np.inf if subtree.support is None else problem.fit(subtree.support).value
        found = min(upper, model)
        assert len(subtree.support or ()) <= problem.k
        assert min([found, *subtree.open_bounds]) <= best + tolerance + rounding, seed
        assert subtree.min_pruned_bound >= min(found, best) - tolerance - rounding
        open_best = [region_best(problem, piece) for piece in subtree.open_states]
        for value, bound in zip(open_best, subtree.open_bounds, strict=True):
            assert bound <= value + 1e-12 * scale_of(problem), seed
        if best < min(open_best, default=np.inf) - rounding:
            assert subtree.min_pruned_bound <= best + 1e-12 * scale_of(problem), seed
        assert subtree.finished == (len(open_best) == 0)
        assert subtree.nodes <= budget + problem.d + 1
    assert walks > 50
    assert whole > 25


@pytest.mark.smoke
def test_every_move_can_be_retraced_with_plain_numpy():
    for seed in range(200):
        problem, rng = random_problem(seed), np.random.default_rng(seed)
        enumeration = DependentEnumeration.of(problem, BoundOptions())
        state = random_state(rng, problem)
        subtree = enumeration and enumeration.explore(state[None], np.inf, 1e-6, int(rng.choice([2, 10_000])))[0]
        if subtree is None:
            continue
        pieces = list(retrace(instance_of(problem), *map(frozenset, columns_of(state)), subtree.moves, None))
        left = [(piece.included, piece.candidates) for piece in pieces if piece.bound is None]
        assert left == [tuple(map(frozenset, columns_of(piece))) for piece in subtree.open_states]
        closed = [piece.bound for piece in pieces if piece.bound is not None]
        if closed:
            assert min(closed) >= subtree.min_pruned_bound - 1e-8 * (1.0 + abs(subtree.min_pruned_bound)), seed


@pytest.mark.parametrize("block", sample(4, 4))
def test_solving_with_walks(block):
    walked = 0
    for seed in range(1000 + block * 60, 1060 + block * 60):
        problem = random_problem(seed)
        best = region_best(problem, np.full(problem.d, FREE, dtype=np.int8))
        search = Search(problem, Settings(threads=1, heuristics=()))
        events = list(search)
        result = search.result()
        walked += any(isinstance(event, SubtreeClosed) for event in events)
        assert result.reached, seed
        assert result.upper <= best * (1 + 1e-6) + 1e-9 * scale_of(problem)
        assert result.lower <= best + 1e-12 * scale_of(problem)
        if seed % 4 == 0:
            assert replayed(problem, result, events).proven <= best + 1e-9 * scale_of(problem)
    assert walked > 10


def test_the_scope_is_stated():
    rng = np.random.default_rng(0)
    A = one_hot(rng, 60, 14)
    A = np.column_stack([A, np.ones(60)])
    problem = Problem(A, A @ rng.standard_normal(A.shape[1]) + rng.standard_normal(60), 4, lam=0.0)
    result = solve(problem, threads=1, record=True)
    assert any(isinstance(event, SubtreeClosed) for event in result.events)
    assert "models with" in result.valid_for
    assert result.reached


def test_near_relations_are_left_alone():
    """One column is nearly, but not to rounding, the sum of two others: where that is neglected it costs too much."""
    rng = np.random.default_rng(1)
    for size in (1e-13, 1e-10, 1e-8, 1e-6):
        A = rng.standard_normal((30, 6))
        A[:, 5] = A[:, 0] + A[:, 1] + size * A[:, 2]
        y = A[:, 2] + 0.1 * rng.standard_normal(30)
        problem = Problem(A, y, 2, lam=0.0)
        enumeration = DependentEnumeration.of(problem, BoundOptions())
        if size < 1e-6:
            assert enumeration.explore(np.ones((1, 6), dtype=np.int8), 1.0, 1e-6, 1000) == [None]
        assert solve(problem, threads=1).lower <= region_best(problem, np.ones(6, dtype=np.int8)) + 1e-12


@given(seed=st.integers(0, 10**6))
@examples(300, 600)
def test_relations_hold_exactly(seed):
    """Whole data, where every relation can be checked with fractions."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 9)), int(rng.integers(2, 9))
    A = rng.integers(-1, 2, (n, d)).astype(float)
    relations = find_relations(np.ascontiguousarray(A.T), rng.standard_normal(n))
    if relations is None:
        return
    rank = exact_rank(A)
    assert relations.coordinates.shape == (rank, d)
    assert np.all(relations.distance < 1e-14)
    lengths = np.linalg.norm(A, axis=0)
    unit = A / np.where(lengths > 0, lengths, 1.0)
    order = rng.permutation(d)
    included, candidates = order[: d // 3], order[d // 3 :]
    basis = basis_of(relations, unit, included, candidates)
    if basis is None:
        return
    columns = np.concatenate([basis.included, basis.further])
    assert columns.size == exact_rank(A)
    assert basis.included.size == exact_rank(A[:, included])
    assert sorted([*columns, *basis.others]) == sorted({*columns.tolist(), *candidates.tolist()})
    scaled = unit * relations.scale
    np.testing.assert_allclose(scaled[:, columns] @ basis.T, basis.denominator * scaled[:, basis.others], atol=1e-10)


def start_of(problem):
    """A walker and its first level for the whole space; None where there is none."""
    enumeration = DependentEnumeration.of(problem, BoundOptions())
    begin = enumeration and enumeration._start(np.full(problem.d, FREE, dtype=np.int8), problem.gram.constant, 1.0)
    return begin and (enumeration, begin.start)


@given(seed=st.integers(0, 10**6))
@examples(300, 600)
def test_a_basis_changed_column_by_column_is_what_comes_out_anew(seed):
    rng, problem = np.random.default_rng(seed), random_problem(seed)
    found = start_of(problem)
    if found is None:
        return
    enumeration, start = found
    data, scale, V = enumeration._data, enumeration._relations.scale, enumeration._relations.coordinates
    levels = start.basis.size + start.others.size
    stack, turned = first_level(start, levels + 1), np.empty(start.basis.size)
    for level in range(levels - 1):
        p = int(stack.size[level])
        if p <= 1:
            return
        swap_in_basis(stack, level, int(rng.integers(p)), p - 1)
        other = substitute(stack, level, scale)
        gone = stack.columns[level, p - 1]
        before = set(stack.columns[level, : p + stack.others[level]].tolist())
        if other == NOTHING:
            leave_out(stack, level)
        elif not exchange(stack, level, other, scale, turned) <= 1e6:
            return
        size, left = int(stack.size[level + 1]), int(stack.others[level + 1])
        columns, rest = np.split(stack.columns[level + 1, : size + left], [size])
        assert {*columns.tolist(), *rest.tolist()} == before - {gone}
        assert np.linalg.matrix_rank(V[:, columns]) == size == np.linalg.matrix_rank(V[:, [*columns, *rest]])
        whole = V[:, columns] @ stack.T[level + 1, :size, :left]
        np.testing.assert_array_equal(whole, stack.denominator[level + 1] * V[:, rest])
        K = np.linalg.inv(data.H[np.ix_(columns, columns)])
        x, b = K @ data.b[columns], data.b[columns]
        room = 1e-9 * np.trace(K) ** 2
        np.testing.assert_allclose(stack.K[level + 1, :size, :size], K, atol=room)
        np.testing.assert_allclose(stack.x[level + 1, :size], x, atol=room * (1.0 + np.abs(b).max()))
        value = data.constant - 0.5 * b @ x
        assert stack.value[level + 1] == pytest.approx(value, abs=room * scale_of(problem))
        low = certified(data, stack.K[level + 1], stack.x[level + 1], columns, size, 1e-14)
        assert low <= problem.fit(columns).value + 1e-12 * scale_of(problem)
        assert low >= value - 1e-6 * scale_of(problem) * np.trace(K) ** 2


@given(seed=st.integers(0, 10**6))
@examples(300, 600)
def test_the_best_addition(seed):
    rng, problem = np.random.default_rng(seed), random_problem(seed)
    found = start_of(problem)
    if found is None:
        return
    enumeration, start = found
    fixed = int(rng.integers(0, start.basis.size + 1))
    columns = np.concatenate([start.basis, start.others])
    room = [np.zeros((fixed + 1, fixed + 1)), *(np.zeros(fixed + 1) for _ in range(3))]
    best, position, bound = best_addition(
        enumeration._data, columns, fixed, columns.size, enumeration._unit_rounding, *room
    )
    included = columns[:fixed].tolist()
    values = [problem.fit([*included, j]).value for j in columns[fixed:].tolist()]
    expected = min([problem.fit(included).value, *values])
    assert best == pytest.approx(expected, abs=1e-9 * scale_of(problem))
    assert bound <= expected + 1e-12 * scale_of(problem)
    if position >= 0:
        assert problem.fit([*included, columns[position]]).value == pytest.approx(
            expected, abs=1e-9 * scale_of(problem)
        )


def exact_rank(A):
    rows = [[Fraction(int(entry)) for entry in row] for row in A]
    rank = 0
    for column in range(A.shape[1]):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column] != 0), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for i in range(rank + 1, len(rows)):
            factor = rows[i][column] / rows[rank][column]
            rows[i] = [a - factor * b for a, b in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    return rank
