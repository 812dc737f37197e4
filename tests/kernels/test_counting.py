"""Counting: against eigenvalues and against objectives in fractions; nothing below a level is ever cleared."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from exact_fits import awkward_problem, exact_best, exact_fit
from hypothesis import given
from hypothesis import strategies as st
from regions import random_state
from samples import examples, sample

from exactsel.algebra.curvature import balanced_curvature
from exactsel.enumeration.closed_form import duplicates, walk_data
from exactsel.kernels.bounded import bounded_workspace
from exactsel.kernels.counting import MOST_SUSPECTS, count, count_workspace, distinct, eliminate, margin_for, sets_of
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.kernels.subtree_count import CLEAR, count_of_columns
from exactsel.kernels.subtree_fit import NONE, fit_reaches, formula, formula_workspace, value_of
from exactsel.kernels.subtree_record import COUNTED, LEFT_OPEN, SubtreeLimits, empty_walk, set_apart

SEEDS = st.integers(0, 10**7)


def ordered(state):
    """The columns of a region, those inside first, and how many those are."""
    included, free = np.flatnonzero(state == IN), np.flatnonzero(state == FREE)
    return np.concatenate([included, free]), included.size


def curvature_of(problem):
    return balanced_curvature(problem.hessian, problem.n) if problem.d < problem.n else None


def levels_around(best, rng):
    """Numbers just below a value, at it, and just above."""
    step = float(rng.choice([0.0, 1e-16, 1e-15, 1e-13, 1e-10, 1e-6, 0.1])) * float(rng.choice([-1, 1]))
    return best * (1.0 + step) + float(rng.choice([0.0, 0.0, 1e-14, -1e-14]))


@given(SEEDS)
@examples(400, 800)
def test_suspects_are_the_sets_that_are_not_positive_definite(seed):
    """The slow twin: the smallest eigenvalue of each principal submatrix."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 12))
    slots = int(rng.integers(1, min(m, 4) + 1))
    basis = rng.standard_normal((m, int(rng.integers(1, m + 3))))
    M = basis @ basis.T + rng.choice([-0.5, 0.05, 0.3]) * np.eye(m) * rng.random(m)
    room = count_workspace(m)
    room.M[:] = M
    found = count(m, slots, room)
    undecided = [{*line[line >= 0].tolist()} for line in room.undecided[: min(found, MOST_SUSPECTS)]]
    smallest = {chosen: np.linalg.eigvalsh(M[np.ix_(chosen, chosen)])[0] for chosen in combinations(range(m), slots)}
    for suspect in undecided:
        part = sorted(suspect)
        assert np.linalg.eigvalsh(M[np.ix_(part, part)])[0] <= 1e-9 * np.abs(M).max()
    if found > MOST_SUSPECTS:
        assert sum(value < 1e-9 for value in smallest.values()) > 1
        return
    for chosen, value in smallest.items():
        if abs(value) > 1e-9 * np.abs(M).max():
            assert any(suspect <= {*chosen} for suspect in undecided) == (value < 0), (chosen, value)


@given(SEEDS)
@examples(200, 400)
def test_elimination_is_the_schur_complement(seed):
    rng = np.random.default_rng(seed)
    problem = awkward_problem(seed, most=9)
    data, room = walk_data(problem, None), count_workspace(problem.d)
    room.order[:] = rng.permutation(problem.d)
    included, level = int(rng.integers(0, problem.d + 1)), float(rng.random() * problem.gram.constant)
    margin = margin_for(data, level, problem.d)
    passed = eliminate(data, included, problem.d, level, margin, room)
    if not margin < np.inf:
        assert not passed
        return
    order = room.order
    Q = problem.hessian - np.outer(problem.gram.b, problem.gram.b) / (2 * (problem.gram.constant - level))
    Q = Q[np.ix_(order, order)]
    S, smallest = Q[:included, :included], -1.0
    if included and np.all(np.diag(S) > 0):
        smallest = np.linalg.eigvalsh(S / np.sqrt(np.outer(np.diag(S), np.diag(S))))[0]
    if included and abs(smallest) > 1e-6:
        assert passed == (smallest > 0)
    if passed and (included == 0 or smallest > 1e-6):
        expected = Q[included:, included:] - Q[included:, :included] @ np.linalg.solve(S, Q[:included, included:])
        room_for = 1e-7 * np.outer(data.lengths[order[included:]], data.lengths[order[included:]])
        rest = problem.d - included
        assert np.all(np.abs(np.tril(room.M[:rest, :rest] - expected)) <= room_for)


@pytest.mark.parametrize("block", sample(6, 6))
def test_no_region_is_cleared_above_its_best_model(block):
    """Exact objectives in fractions; levels within rounding of them."""
    cleared = refused = better = 0
    for seed in range(block * 400, block * 400 + 400):
        problem, rng = awkward_problem(seed), np.random.default_rng(seed)
        if problem.k == 0:
            continue
        state = random_state(rng, problem)
        best = exact_best(problem, state)
        data, room = walk_data(problem, None), count_workspace(problem.d)
        columns, fixed = ordered(state)
        walk = empty_walk(1, problem.d, problem.k, 100)
        slots = problem.k - fixed
        if slots > 4:
            continue
        upper, tolerance = levels_around(float(best), rng), float(rng.choice([0.0, 1e-12, 1e-6])) * float(best)
        outcome = count_of_columns(
            data,
            columns,
            fixed,
            columns.size,
            slots,
            SubtreeLimits(upper, tolerance, 100, np.inf, True),
            walk,
            0,
            room,
            bounded_workspace(problem.d),
        )
        found = walk.support[0][walk.support[0] >= 0].tolist()
        better += np.isfinite(walk.value[0])
        if np.isfinite(walk.value[0]):
            assert set(found) <= {*columns.tolist()}
            assert float(exact_fit(problem, found)) == pytest.approx(walk.value[0], abs=1e-7 * problem.gram.constant)
        if outcome == CLEAR:
            cleared += 1
            assert Fraction(walk.min_pruned_bound[0]) <= best, seed
        else:
            refused += 1
            undecided = [{*line[line >= 0].tolist()} for line in room.undecided[: max(outcome, 0)]]
            if outcome > 0:
                included, free = columns[:fixed].tolist(), columns[fixed:].tolist()
                for more in combinations(free, min(slots, len(free))):
                    if not any(suspect <= {*more} for suspect in undecided):
                        assert Fraction(walk.min_pruned_bound[0]) <= exact_fit(problem, [*included, *more]), seed
    assert cleared > 60
    assert refused > 5
    assert better > 5


@pytest.mark.parametrize("block", sample(4, 4))
def test_fits_and_formula_are_never_above_the_exact_ones(block):
    reached = tight = 0
    for seed in range(block * 300, block * 300 + 300):
        problem, rng = awkward_problem(seed), np.random.default_rng(seed)
        if problem.k == 0:
            continue
        state = random_state(rng, problem)
        columns, fixed = ordered(state)
        skip = int(rng.integers(-1, columns.size)) if columns.size else -1
        left = [j for i, j in enumerate(columns.tolist()) if i != skip]
        whole = exact_fit(problem, left)
        room = count_workspace(problem.d)
        level = levels_around(float(whole), rng)
        if fit_reaches(walk_data(problem, None), columns, columns.size, skip, level, room):
            reached += 1
            assert Fraction(level) <= whole, seed
        curvature = curvature_of(problem) if rng.random() < 0.6 else None
        data = walk_data(problem, curvature)
        if not columns.size or not data.floor[0] > 0.0 or skip >= 0:
            continue
        best = exact_best(problem, state)
        H, b = problem.hessian[np.ix_(columns, columns)], problem.gram.b[columns]
        x = np.linalg.lstsq(H, b, rcond=None)[0] * float(rng.choice([1.0, 1.0 + 1e-9, 0.5]))
        slots = min(problem.k - fixed, columns.size - fixed)
        bound = formula(data, columns, x, fixed, columns.size, slots, NONE, NONE, formula_workspace(problem.d))
        assert not Fraction(bound) > best, seed
        bound = formula(data, columns, x, columns.size, columns.size, 0, NONE, NONE, formula_workspace(problem.d))
        assert not Fraction(bound) > whole, seed
        tight += bound >= float(whole) - 1e-6 * problem.gram.constant
    assert reached > 20
    assert tight > 20


@given(SEEDS)
@examples(150, 300)
def test_values_of_supports(seed):
    problem, rng = awkward_problem(seed), np.random.default_rng(seed)
    columns = rng.permutation(problem.d)[: rng.integers(0, problem.d + 1)]
    value = value_of(walk_data(problem, None), columns, columns.size, count_workspace(problem.d))
    if np.isfinite(value):
        assert value == pytest.approx(float(exact_fit(problem, columns.tolist())), abs=1e-6 * problem.gram.constant)


@given(SEEDS)
@examples(200, 400)
def test_twins_bring_the_same_models(seed):
    problem, rng = awkward_problem(seed), np.random.default_rng(seed)
    found = duplicates(problem)
    for j, twin in enumerate(found.tolist()):
        if twin < 0:
            assert not problem.AT[j].any()
        elif twin != j:
            assert problem.lam == 0
            assert exact_fit(problem, [j]) == exact_fit(problem, [twin]) == exact_fit(problem, [j, twin])
    columns, fixed = rng.permutation(problem.d), int(rng.integers(0, problem.d + 1))
    room = count_workspace(problem.d)
    included, size = distinct(walk_data(problem, None), columns, fixed, problem.d, NONE, room)
    assert exact_fit(problem, room.order[:included].tolist()) == exact_fit(problem, columns[:fixed].tolist())
    assert exact_fit(problem, room.order[:size].tolist()) == exact_fit(problem, columns.tolist())
    assert not room.seen.any()


@given(SEEDS)
@examples(200, 400)
def test_suspects_are_set_apart(seed):
    """Every support of the region lies in one part: an open one where it holds a suspect, else mostly a counted one."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 9))
    fixed, slots = int(rng.integers(0, d - 1)), int(rng.integers(1, 4))
    columns = rng.permutation(d)
    found = int(rng.integers(1, 5))
    undecided = np.full((MOST_SUSPECTS, 4), -1, dtype=np.int64)
    for s in range(found):
        chosen = rng.permutation(columns[fixed:])[: rng.integers(1, slots + 1)]
        undecided[s, : chosen.size] = chosen
    walk = empty_walk(1, d, fixed + slots, 1000)
    few = int(rng.choice([1, 100]))
    if not set_apart(walk, 0, columns, fixed, d, slots, undecided, found, few):
        assert walk.move_count[0] == walk.open_count[0] == 0
        assert few == 1
        return
    waiting, counted, opened = [((), ())], [], []
    for move in walk.moves[0, : walk.move_count[0]].tolist():
        put_in, left_out = waiting.pop()
        if move % 8 == COUNTED:
            counted.append((put_in, left_out))
        elif move % 8 == LEFT_OPEN:
            opened.append((put_in, left_out))
        else:
            assert move % 8 == 0
            waiting += [((*put_in, move // 8), left_out), (put_in, (*left_out, move // 8))]
    assert not waiting
    assert len(opened) == walk.open_count[0]
    for (put_in, left_out), state in zip(opened, walk.open_states[0], strict=False):
        assert {*np.flatnonzero(state == OUT)} == {*left_out}
        assert {*np.flatnonzero(state == IN)} == {*columns[:fixed].tolist(), *put_in}
        assert len(put_in) <= slots
    lists = [{*line[line >= 0].tolist()} for line in undecided[:found]]
    for size in range(slots + 1):
        for support in map(set, combinations(columns[fixed:].tolist(), size)):
            parts = [part for part in counted + opened if set(part[0]) <= support and not set(part[1]) & support]
            every = [part for part in parts if part in counted]
            if any(suspect <= support for suspect in lists):
                assert not every
    # Each set of all places lies in exactly one part that leaves out what it does not hold.
    for support in map(set, combinations(columns[fixed:].tolist(), min(slots, d - fixed))):
        holds = [part for part in counted + opened if set(part[0]) <= support and not set(part[1]) & support]
        assert len(holds) == 1


def test_a_level_no_margin_can_serve_proves_nothing():
    problem = awkward_problem(3)
    data = walk_data(problem, None)
    constant = problem.gram.constant
    assert margin_for(data, constant, 2) == margin_for(data, 2 * constant, 2) == np.inf
    assert margin_for(data, constant * (1 - 1e-15), 2) == np.inf
    assert 0 < margin_for(data, 0.5 * constant, 2) < margin_for(data, 0.5 * constant, 3) < 1e-9
    assert [sets_of(r, 5) for r in range(6)] == [1, 5, 10, 10, 5, 1]
