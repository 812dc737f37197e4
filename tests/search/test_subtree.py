"""Subtrees walked depth first in closed form: against brute force, against a slow twin, and retraced move by move."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from exact_fits import awkward_problem, exact_best, exact_fit
from hypothesis import given
from hypothesis import strategies as st
from instances_for_tests import random_case
from recorded import columns_of, instance_of, replayed
from regions import random_state, region_values
from samples import examples, sample

from exactsel import Problem, Settings, solve
from exactsel.algebra.curvature import balanced_curvature
from exactsel.bounds.base import BoundOptions
from exactsel.enumeration.closed_form import ClosedFormEnumeration, walk_data
from exactsel.kernels.moves import CLOSED
from exactsel.kernels.node import FREE, OUT
from exactsel.kernels.subtree_fit import (
    coefficients_without,
    coefficients_without_last,
    first_columns,
    inverse_of,
    inverse_without_last,
    new_stack,
    start_fit,
    swap_columns,
)
from exactsel.kernels.subtree_record import COUNTED
from exactsel.search.events import SubtreeClosed
from exactsel.solving.solver import Search
from exactsel_dev.reference.subtree import retrace


def curvature_of(problem):
    return balanced_curvature(problem.gram.G + problem.lam * np.eye(problem.d), problem.n)


def random_problem(seed):
    case = random_case(seed, loss="quadratic")
    return case.problem()


def long_double_fit(problem, columns):
    """The least-squares objective on the columns by normal equations in long double, with refinement."""
    A, y = problem.AT.T[:, columns].astype(np.longdouble), problem.y.astype(np.longdouble)
    H = A.T @ A + np.longdouble(problem.lam) * np.eye(columns.size, dtype=np.longdouble)
    inverse, b, x = np.linalg.inv(H.astype(float)), A.T @ y, np.zeros(columns.size, dtype=np.longdouble)
    for _ in range(60):
        x = x + (inverse @ (b - H @ x).astype(float)).astype(np.longdouble)
    r = y - A @ x
    return float(r @ r / 2 + np.longdouble(problem.lam) / 2 * (x @ x))


def walked(problem, state, upper=np.inf, tolerance=0.0, budget=10_000, curved=True, threads=1):
    enumeration = ClosedFormEnumeration(
        problem, curvature_of(problem) if curved else None, BoundOptions(threads=threads)
    )
    return enumeration, enumeration.explore(state[None], upper, tolerance, budget)[0]


@pytest.mark.parametrize("block", sample(6, 6))
def test_a_walk_finds_the_optimum_of_its_region_or_hands_it_back(block):
    trusted = 0
    for seed in range(block * 100, block * 100 + 100):
        problem, rng = random_problem(seed), np.random.default_rng(seed)
        if problem.k == 0:
            continue
        state = random_state(rng, problem)
        values = region_values(problem, state)
        best = min(values.values())
        scale = 1e-9 * (1.0 + problem.gram.constant)
        upper = [np.inf, best + scale, best * 1.5 + 1.0][rng.integers(3)]
        tolerance = float(rng.choice([1e-11, 1e-6, 0.1])) * max(1.0, abs(min(upper, best)))
        budget = int(rng.choice([0, 1, 3, 10_000]))
        _, subtree = walked(problem, state, upper, tolerance, budget, curved=bool(rng.random() < 0.7))
        if subtree is None:
            continue
        trusted += 1
        found = min(upper, problem.fit(subtree.support).value if subtree.support is not None else np.inf)
        reached = min([found, *subtree.open_bounds])
        assert reached <= best + tolerance + scale, seed
        assert subtree.min_pruned_bound >= min(found, best) - tolerance - scale
        # No bound above what its region holds.
        for piece, bound in zip(subtree.open_states, subtree.open_bounds, strict=True):
            assert bound <= min(region_values(problem, piece).values()) + 1e-12 * (1.0 + problem.gram.constant), seed
        open_best = min((min(region_values(problem, p).values()) for p in subtree.open_states), default=np.inf)
        if best < open_best - scale:
            assert subtree.min_pruned_bound <= best + 1e-12 * (1.0 + problem.gram.constant), seed
        assert subtree.finished == (len(subtree.open_states) == 0)
        assert subtree.nodes <= budget + problem.d
    assert trusted > 40


@pytest.mark.parametrize("block", sample(4, 4))
def test_walks_of_awkward_problems_against_fractions(block):
    """Ties, copies, zeros, sums of columns, no ridge; places enough that fits and formula (3) close regions too."""
    finished = fitted = counted = 0
    for number in range(block * 100, block * 100 + 100):
        rng, seed = np.random.default_rng(number), number
        problem = awkward_problem(seed, most=8)
        while problem.d < 6:
            seed += 10_000
            problem = awkward_problem(seed, most=8)
        problem = problem.replace(k=int(rng.integers(1, 7)))
        state = random_state(rng, problem)
        best, constant = exact_best(problem, state), problem.gram.constant
        upper = [constant, float(best), float(best) * (1 + 1e-7), float(best) * 1.3][rng.integers(4)]
        tolerance = max(float(rng.choice([1e-10, 1e-6, 1e-2])) * upper, 1e-11 * constant)
        curvature = curvature_of(problem) if rng.random() < 0.6 and problem.d < problem.n else None
        enumeration = ClosedFormEnumeration(problem, curvature, BoundOptions())
        walk = enumeration.explore(state[None], upper, tolerance, int(rng.choice([3, 10_000])))[0]
        if walk is None or enumeration.valid_for:  # what is said of bounded models only: test_dependent_bounded.py
            continue
        for piece, bound in zip(walk.open_states, walk.open_bounds, strict=True):
            assert not bound > exact_best(problem, piece), seed
        left = min((exact_best(problem, piece) for piece in walk.open_states), default=np.inf)
        if best < left:
            assert Fraction(walk.min_pruned_bound) <= best, seed
        found = upper if walk.support is None else min(upper, float(exact_fit(problem, walk.support)))
        if walk.finished:
            finished += 1
            assert found <= float(best) + tolerance + 1e-7 * constant, seed
        fitted += bool(np.any((walk.moves & 7) == CLOSED))
        counted += bool(np.any((walk.moves & 7) == COUNTED))
    assert finished > 40
    assert fitted > 5
    assert counted > 20


@pytest.mark.smoke
def test_every_move_can_be_retraced_with_plain_numpy():
    for seed in range(150):
        problem, rng = random_problem(seed), np.random.default_rng(seed)
        if problem.k == 0:
            continue
        state = random_state(rng, problem)
        enumeration, subtree = walked(problem, state, budget=int(rng.choice([2, 10_000])), curved=seed % 2 == 0)
        if subtree is None:
            continue
        pieces = list(
            retrace(instance_of(problem), *map(frozenset, columns_of(state)), subtree.moves, enumeration.curvature)
        )
        left = [piece for piece in pieces if piece.bound is None]
        assert [(piece.included, piece.candidates) for piece in left] == [
            tuple(map(frozenset, columns_of(piece))) for piece in subtree.open_states
        ]
        closed = [piece.bound for piece in pieces if piece.bound is not None]
        if closed:
            assert min(closed) >= subtree.min_pruned_bound - 1e-8 * (1.0 + abs(subtree.min_pruned_bound))


@pytest.mark.smoke
def test_moves_that_are_no_walk_are_refused():
    problem = random_problem(3)
    instance, everything = instance_of(problem), frozenset(range(problem.d))
    for moves, said in (
        ([3, 3], "continues after its last region"),
        ([8 * 0 + 0, 3], "regions undecided"),
        ([8 * problem.d + 1], "is no candidate"),
        ([8 * 0 + 0, 8 * 0 + 1], "is no candidate"),
        ([7], "is no kind of move"),
    ):
        with pytest.raises(ValueError, match=said):
            list(retrace(instance, frozenset(), everything, moves, None))


@examples(80, 160)
@given(st.integers(0, 10**6))
def test_downdates_are_the_fit_without_the_column(seed):
    """Downdates against inverting anew, down to the last column."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 9))
    A = rng.standard_normal((d + 3, d))
    H, b = A.T @ A + 0.1 * np.eye(d), rng.standard_normal(d)
    data = walk_data(Problem(A, rng.standard_normal(d + 3), d, lam=0.1), None)._replace(b=b)
    stack = new_stack(d, 2, np.empty(2 * d * d))
    first_columns(np.full(d, FREE, dtype=np.int8), stack)
    assert start_fit(data, stack)
    K, x = inverse_of(stack, 0), stack.x[0]
    for m in range(d, 0, -1):
        gone, left = int(rng.integers(m)), np.empty(m)
        coefficients_without(K, x, m, gone, left)
        rest = [j for j in range(m) if j != gone]
        np.testing.assert_allclose(left[rest], np.linalg.solve(H[np.ix_(rest, rest)], b[rest]), rtol=1e-8, atol=1e-10)
        assert left[gone] == 0.0
        np.testing.assert_allclose(np.tril(K[:m, :m]), np.tril(np.linalg.inv(H[:m, :m])), rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(x[:m], np.linalg.solve(H[:m, :m], b[:m]), rtol=1e-8, atol=1e-10)
        coefficients_without_last(K, x, m, x)
        inverse_without_last(K, m, K)


@examples(80, 160)
@given(st.integers(0, 10**6))
def test_exchanging_two_columns_of_a_triangle(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 9))
    i, j = rng.integers(0, m, 2)
    full = rng.standard_normal((m, m))
    full = full + full.T
    K, x, columns = np.tril(full), rng.standard_normal(m), np.arange(m)
    order = np.arange(m)
    order[[i, j]] = order[[j, i]]
    expected = x[order]
    swap_columns(K, x, columns, m, i, j)
    np.testing.assert_array_equal(np.tril(K), np.tril(full[np.ix_(order, order)]))
    np.testing.assert_array_equal(x, expected)
    np.testing.assert_array_equal(columns, order)


def test_copies_are_no_obstacle():
    A = np.random.default_rng(0).standard_normal((10, 4))
    A[:, 3] = A[:, 0]
    problem = Problem(A, np.arange(10.0), 2, lam=0.0)
    subtree = walked(problem, np.full(4, FREE, dtype=np.int8), curved=False, tolerance=1e-6)[1]
    assert subtree.finished
    result = solve(problem)
    assert result.reached
    assert result.upper == pytest.approx(min(problem.fit(c).value for c in combinations(range(4), 2)))


class TestInTheSearch:
    @pytest.fixture
    def problem(self):
        rng = np.random.default_rng(1)
        A = rng.standard_normal((60, 20)) + 1.5 * rng.standard_normal((60, 1))
        return Problem(A, A @ rng.standard_normal(20) + rng.standard_normal(60), 6, lam=0.1)

    def run(self, problem, **options):
        search, events = Search(problem, Settings(**options), signals=()), []
        for event in search:
            events.append(event)
        return search.result(), events

    def test_it_agrees_with_the_search_without(self, problem):
        result, events = self.run(problem)
        plain, _ = self.run(problem, subtrees=False)
        assert any(isinstance(event, SubtreeClosed) for event in events)
        assert result.upper == pytest.approx(plain.upper, rel=1e-9)
        assert result.reached
        assert replayed(problem, result, events).lower == result.lower

    def test_the_tree_does_not_depend_on_threads(self, problem):
        assert self.run(problem, threads=1)[0].tree_hash == self.run(problem, threads=2)[0].tree_hash

    def test_unfinished_walks_are_taken_up_again(self, problem, monkeypatch):
        monkeypatch.setattr("exactsel.closers.enumeration.walk_budget", lambda columns, work: 1)
        monkeypatch.setattr("exactsel.closers.enumeration.WORTH_KEEPING", 1.0)
        result, events = self.run(problem, heuristics="none")
        explored = [event for event in events if isinstance(event, SubtreeClosed)]
        assert any(event.open_ids for event in explored)
        assert len(explored) > 2
        assert result.reached
        assert result.upper == pytest.approx(self.run(problem)[0].upper, rel=1e-9)
        assert replayed(problem, result, events).proven <= result.upper + 1e-9

    def test_other_settings_do_without(self, problem):
        for options in ({"bound": "apg"}, {"tree": "state-space", "node_limit": 50}, {"subtrees": False}):
            _, events = self.run(problem, **options)
            assert not any(isinstance(event, SubtreeClosed) for event in events)

    def test_the_tree_can_be_drawn(self, problem):
        graph = solve(problem, record=True).tree()
        assert "walked" in {status for _, status in graph.nodes(data="status")}


class TestOddData:
    def nearly_dependent(self, seed, d=30, n=40, noise=4e-3):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((n, d))
        for j in range(d // 2, d):
            A[:, j] = A[:, j - d // 2] + noise * rng.standard_normal(n)
        return Problem(A, A[:, :4].sum(axis=1) + rng.standard_normal(n), 4, lam=1e-6)

    @pytest.mark.parametrize("noise", [1e-3, 1e-5, 1e-6])
    @pytest.mark.parametrize("lam", [0.0, 1e-9])
    def test_nearly_dependent_columns_are_walked(self, noise, lam):
        """Fits of many columns are ill-conditioned; what is closed is proven all the same."""
        problem = self.nearly_dependent(0, d=10, noise=noise).replace(lam=lam)
        best = min(long_double_fit(problem, np.array(c)) for c in combinations(range(10), 4))
        search = Search(problem, Settings(heuristics="none"), signals=())
        assert any(isinstance(event, SubtreeClosed) for event in search)
        result = search.result()
        assert result.lower <= best + 1e-12
        assert result.upper == pytest.approx(best, rel=1e-6)

    @pytest.mark.parametrize("seed", sample(6, 6))
    def test_walks_do_not_drift(self, seed):
        """What is handed back after many downdates is no better than the fit, computed afresh in long double."""
        problem = self.nearly_dependent(seed)
        state = np.full(problem.d, FREE, dtype=np.int8)
        enumeration = ClosedFormEnumeration(problem, None, BoundOptions())
        for budget in (50, 500, 3000):
            subtree = enumeration.explore(state[None], np.inf, 1e-3 * problem.gram.constant, budget)[0]
            assert subtree is not None
            for piece, bound in zip(subtree.open_states, subtree.open_bounds, strict=True):
                columns = np.flatnonzero(piece != OUT)
                assert bound <= long_double_fit(problem, columns)

    def test_more_decisions_than_nodes(self):
        """Orthogonal columns of equal weight: whole cascades of columns are put in at one node."""
        y = np.ones(24) + 1e-4 * np.random.default_rng(0).standard_normal(24)
        problem = Problem(np.eye(24), y, 20, lam=0.0)
        state = np.full(24, FREE, dtype=np.int8)
        upper = problem.fit(np.argsort(-np.abs(y))[:20]).value
        for budget in (0, 1, 10, 100, 1000):
            _, subtree = walked(problem, state, upper * (1 + 1e-9), 1e-6 * upper, budget)
            assert len(subtree.moves) <= 4 * budget + 4 * 24 + 16
            pieces = list(retrace(instance_of(problem), frozenset(), frozenset(range(24)), subtree.moves, None))
            assert sum(piece.bound is None for piece in pieces) == len(subtree.open_states)
        assert solve(problem, heuristics="forward").upper == pytest.approx(upper)

    def test_a_copied_column_and_a_tiny_ridge(self):
        for seed in range(40):
            rng = np.random.default_rng(seed)
            A = rng.standard_normal((30, 6))
            A[:, 5] = A[:, 0]
            problem = Problem(A, rng.standard_normal(30), 3, lam=10.0 ** -rng.integers(3, 10))
            best = min(problem.fit(c).value for c in combinations(range(6), 3))
            result = solve(problem, heuristics="none")
            assert result.upper == pytest.approx(best, rel=1e-6)
            assert result.lower <= best + 1e-12

    def test_a_region_too_ill_conditioned_to_bound_still_yields_its_model(self):
        a = np.array([[1.0], [2.0], [3.0]])
        problem = Problem(1e6 * np.hstack([a, -a]), np.array([1.0, 2.0, 2.0]), 2, lam=1e-12)
        assert solve(problem, heuristics="none").upper == pytest.approx(problem.fit([0, 1]).value)

    def test_many_subtrees_are_walked_in_slices(self, monkeypatch):
        monkeypatch.setattr("exactsel.enumeration.closed_form.MOST_MEMORY", 1.0)
        problem = random_problem(4)
        states = np.stack([random_state(np.random.default_rng(seed), problem) for seed in range(7)])
        enumeration = ClosedFormEnumeration(problem, None, BoundOptions())
        together = enumeration.explore(states, np.inf, 1e-6, 50)
        alone = [enumeration.explore(state[None], np.inf, 1e-6, 50)[0] for state in states]
        for a, b in zip(together, alone, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                assert a.nodes == b.nodes
                np.testing.assert_array_equal(a.moves, b.moves)
