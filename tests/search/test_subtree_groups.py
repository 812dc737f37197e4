"""Subtrees over groups walked in closed form: against brute force, in fractions, and retraced move by move."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from exact_fits import awkward_problem, exact_fit
from grouped_cases import random_grouped
from recorded import columns_of, instance_of, replayed
from regions import random_state, region_values
from samples import many, sample

from exactsel import Problem, Settings, UnsupportedError, solve
from exactsel.algebra.curvature import balanced_curvature
from exactsel.bounds.base import BoundOptions
from exactsel.enumeration.closed_form import ClosedFormEnumeration
from exactsel.kernels.moves import BRANCHED, LEFT_OUT, PUT_IN
from exactsel.kernels.subtree_record import COUNTED
from exactsel.problem.hierarchy import Hierarchy
from exactsel.search.events import SubtreeClosed
from exactsel.solving.solver import Search
from exactsel_dev.reference.subtree import retrace


def curvature_of(problem):
    inner = problem.inner
    return balanced_curvature(inner.hessian, inner.n) if inner.d < inner.n else None


def walked(problem, states, upper=np.inf, tolerance=0.0, budget=10_000, threads=1):
    enumeration = ClosedFormEnumeration(problem, curvature_of(problem), BoundOptions(threads=threads))
    return enumeration.explore(states, upper, tolerance, budget)


def exact_union(problem, units):
    return exact_fit(problem.inner, problem.units.columns_of(units).tolist())


def hard_problem(seed, groups=14, k=5, lam=0.05):
    rng = np.random.default_rng([43, seed])
    labels = [g for g in range(groups) for _ in range(int(rng.integers(1, 5)))]
    d = len(labels)
    A = rng.standard_normal((2 * d, d)) + 0.8 * rng.standard_normal((2 * d, 1))
    y = A @ rng.standard_normal(d) * 0.2 + rng.standard_normal(2 * d)
    return Problem(A, y, k, lam=lam, groups=[str(g) for g in labels])


@pytest.mark.parametrize("block", sample(4, 4))
def test_a_walk_finds_the_optimum_of_its_region_or_hands_it_back(block):
    walks = finished = 0
    for seed in range(block * 100, block * 100 + 100):
        case = random_grouped(840_000 + seed, loss="quadratic")
        problem, rng = case.problem(), np.random.default_rng(seed)
        if problem.k == 0 or (problem.lam == 0 and curvature_of(problem) is None):
            continue
        state = random_state(rng, problem)
        values = region_values(problem, state)
        best, constant = min(values.values()), problem.inner.gram.constant
        scale = 1e-9 * (1.0 + constant)
        upper = [np.inf, best + scale, best * 1.5 + 1.0][rng.integers(3)]
        tolerance = float(rng.choice([1e-11, 1e-6, 0.1])) * max(1.0, abs(min(upper, best)))
        budget = int(rng.choice([0, 1, 3, 10_000]))
        subtree = walked(problem, state[None], upper, tolerance, budget)[0]
        if subtree is None:
            continue
        walks += 1
        finished += subtree.finished
        found = min(upper, problem.fit(subtree.support).value if subtree.support is not None else np.inf)
        assert min([found, *subtree.open_bounds]) <= best + tolerance + scale, seed
        assert subtree.min_pruned_bound >= min(found, best) - tolerance - scale
        for piece, bound in zip(subtree.open_states, subtree.open_bounds, strict=True):
            assert bound <= min(region_values(problem, piece).values()) + 1e-12 * (1.0 + constant), seed
        open_best = min((min(region_values(problem, p).values()) for p in subtree.open_states), default=np.inf)
        if best < open_best - scale:
            assert subtree.min_pruned_bound <= best + 1e-12 * (1.0 + constant), seed
        assert subtree.finished == (len(subtree.open_states) == 0)
        assert subtree.nodes <= budget + problem.d
    assert walks > 40
    assert finished > 15


@pytest.mark.parametrize("block", sample(4, 4))
def test_walks_of_awkward_groups_against_fractions(block):
    """Ties, copies, zeros, sums of columns, tiny ridges; no region is closed above its best exact model."""
    finished = kinds = 0
    for number in range(block * 150, block * 150 + 150):
        rng = np.random.default_rng([44, number])
        plain = awkward_problem(number, most=9)
        lam = plain.lam or float(rng.choice([1e-12, 1e-9, 1e-6]))
        labels = [str(g) for g in rng.integers(0, plain.d, plain.d)]
        count = len({*labels})
        k = int(rng.choice([1, count, rng.integers(1, count + 1)]))
        problem = Problem(np.array(plain.A), np.array(plain.y), k, lam=lam, groups=labels)
        state = random_state(rng, problem)
        included, free = columns_of(state)
        sets = combinations(free, min(k - len(included), len(free)))
        exact = {(*included, *more): exact_union(problem, (*included, *more)) for more in sets}
        best, constant = min(exact.values()), problem.inner.gram.constant
        upper = [constant, float(best), float(best) * (1 + 1e-7), float(best) * 1.3][rng.integers(4)]
        tolerance = float(rng.choice([0.0, 1e-12, 1e-9, 1e-3])) * constant
        subtree = walked(problem, state[None], upper, tolerance, int(rng.choice([1, 2, 10_000])))[0]
        if subtree is None:
            continue
        finished += subtree.finished
        kinds |= sum(1 << int(kind) for kind in {*(subtree.moves & 7).tolist()})
        left = [columns_of(piece) for piece in subtree.open_states]
        for support, value in exact.items():
            held = any({*S} <= {*support} <= {*S, *C} for S, C in left)
            if not held:
                assert subtree.min_pruned_bound < np.inf, number
                assert Fraction(subtree.min_pruned_bound) <= value, number
        for (S, C), bound in zip(left, subtree.open_bounds, strict=True):
            for support, value in exact.items():
                if {*S} <= {*support} <= {*S, *C}:
                    assert bound == -np.inf or Fraction(float(bound)) <= value, number
    assert finished > 20
    assert kinds & 1 << COUNTED


@pytest.mark.parametrize("seed", sample(8, 8))
def test_every_move_is_retraced(seed):
    """Each region the walk closes reaches the level by the slow twin; open ones are those handed back."""
    problem = hard_problem(seed, lam=[0.05, 0.0][seed % 2])
    state = problem.root_state
    best = solve(problem, threads=1, signals=(), subtrees=False).upper
    for budget in (6, 10_000):
        subtree = walked(problem, state[None], best * (1 + 1e-7), 1e-6 * best, budget)[0]
        curvature = curvature_of(problem)
        pieces = list(retrace(instance_of(problem), *map(frozenset, columns_of(state)), subtree.moves, curvature))
        closed = [piece.bound for piece in pieces if piece.bound is not None]
        left = [(piece.included, piece.candidates) for piece in pieces if piece.bound is None]
        assert min(closed, default=np.inf) >= subtree.min_pruned_bound - 1e-9 * best
        assert left == [tuple(map(frozenset, columns_of(piece))) for piece in subtree.open_states]
        kinds = {*(subtree.moves & 7).tolist()}
        if budget > 6:
            assert subtree.finished
            assert {BRANCHED, COUNTED} <= kinds
            assert kinds & {PUT_IN, LEFT_OUT}


def test_walks_do_not_depend_on_threads():
    problem = hard_problem(1)
    rng = np.random.default_rng(2)
    states = np.stack([random_state(rng, problem) for _ in range(12)])
    once, again = (walked(problem, states, tolerance=1e-9, threads=threads) for threads in (1, 3))
    for one, other in zip(once, again, strict=True):
        assert one.moves.tolist() == other.moves.tolist()
        assert (one.nodes, one.work, one.min_pruned_bound) == (other.nodes, other.work, other.min_pruned_bound)
        assert one.support == other.support


def test_a_walk_that_is_told_to_stop_says_nothing():
    stop = np.ones(1, dtype=np.bool_)
    problem = hard_problem(3)
    enumeration = ClosedFormEnumeration(problem, curvature_of(problem), BoundOptions(threads=1, stop=stop))
    assert enumeration.explore(problem.root_state[None], np.inf, 0.0, 1000) is None


def test_lengths_whose_squares_are_lost_are_not_walked(monkeypatch):
    monkeypatch.setattr("exactsel.enumeration.closed_form.SMALLEST", 1e3)
    problem = Problem(np.eye(4), np.ones(4), 2, lam=1.0, groups=["a", "a", "b", "b"])
    enumeration = ClosedFormEnumeration(problem, None, BoundOptions(threads=1))
    assert enumeration.explore(problem.root_state[None], np.inf, 0.0, 10) == [None]


def test_who_is_served():
    rng = np.random.default_rng(4)
    A, y = rng.standard_normal((20, 6)), rng.standard_normal(20)
    groups = ["a", "a", "b", "c", "c", "c"]
    assert ClosedFormEnumeration.serves(Problem(A, y, 2, lam=1.0, groups=groups))
    assert ClosedFormEnumeration.serves(Problem(A, y, 2, lam=1.0))
    assert not ClosedFormEnumeration.serves(Problem(A, y, 2, lam=1.0, loss="huber", delta=1.0, groups=groups))
    below = Problem(A, y, 2, lam=1.0, groups=groups, hierarchy={1: [0]})
    assert isinstance(below.units.constraint, Hierarchy)
    assert not ClosedFormEnumeration.serves(below)
    assert not ClosedFormEnumeration.serves(Problem(A, y, 0, lam=1.0, groups=groups))


@pytest.mark.parametrize("seed", sample(4, 4))
def test_searches_walk_by_default_and_come_to_the_same_end(seed):
    problem = hard_problem(seed, groups=12, k=[1, 3, 5, 12][seed])
    events = []
    search = Search(problem, Settings(threads=1), signals=(), details=True)
    events.extend(search)
    result = search.result(events)
    assert any(isinstance(event, SubtreeClosed) for event in events)
    assert "subtrees enumerated" in result.settings["method"]
    replayed(problem, result, events, search.state)
    plain = solve(problem, threads=1, signals=(), subtrees=False)
    assert result.upper == pytest.approx(plain.upper, rel=1e-8)
    assert result.lower <= plain.upper
    assert result.lower >= result.upper * (1 - 1e-8)
    assert "subtrees enumerated" not in plain.settings["method"]


@pytest.mark.parametrize("block", sample(4, 4))
def test_solves_of_tiny_groups_against_every_union(block):
    """Uneven groups, singular blocks, copies, lam = 0, k = 1 and k = all."""
    solved = 0
    for seed in range(block * 400, block * 400 + many(45, 400)):
        rng = np.random.default_rng([45, seed])
        plain = awkward_problem(seed, most=9)
        labels = [str(g) for g in rng.integers(0, max(1, int(rng.integers(1, plain.d + 1))), plain.d)]
        count = len({*labels})
        k = int(rng.choice([1, count, rng.integers(1, count + 1)]))
        problem = Problem(np.array(plain.A), np.array(plain.y), k, lam=plain.lam, groups=labels)
        try:
            result = solve(problem, threads=1, signals=(), rel_eps=float(rng.choice([0.0, 1e-6])))
        except UnsupportedError:
            assert problem.lam == 0
            continue
        solved += 1
        unions = combinations(range(count), k)
        best = min(exact_union(problem, union) for union in unions)
        assert Fraction(result.lower) <= best, seed
        assert float(best) <= result.upper * (1 + 1e-9) + 1e-9 * problem.inner.gram.constant
        assert result.upper <= float(best) * (1 + 2e-6) + 1e-6 * problem.inner.gram.constant, seed
    assert solved > many(18, 200)
