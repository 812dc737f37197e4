"""Counting over groups: against eigenvalues, and against objectives in fractions; nothing below a level is cleared."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from exact_fits import awkward_problem, exact_fit
from hypothesis import given
from hypothesis import strategies as st
from regions import random_state
from samples import examples, sample

from exactsel import Problem
from exactsel.algebra.curvature import balanced_curvature
from exactsel.enumeration.closed_form import walk_data
from exactsel.kernels.counting import MOST_SUSPECTS
from exactsel.kernels.group_counting import contracts, count_groups, factor, group_workspace, spare
from exactsel.kernels.node import FREE, IN
from exactsel.kernels.subtree import scratch_space
from exactsel.kernels.subtree_columns import cost_without, first_level, leave_out, put_in, write_without
from exactsel.kernels.subtree_count import CLEAR, value_on
from exactsel.kernels.subtree_fit import NONE, inverse_of, start_fit
from exactsel.kernels.subtree_group_count import GroupData, Grouping, columns_of, count_of_groups, widest
from exactsel.kernels.subtree_group_fit import fit_workspace, group_excess, group_formula, locate
from exactsel.kernels.subtree_groups import group_workspaces
from exactsel.kernels.subtree_record import SubtreeLimits, empty_walk
from exactsel.problem.groups import GroupedUnits
from exactsel_certificates.formula import Instance
from exactsel_dev.reference.bounds import curved_bound

SEEDS = st.integers(0, 10**7)


def grouped(problem, rng, k=None):
    """The columns of a problem in random groups, uneven ones, at times all in one or each alone."""
    labels = [str(g) for g in rng.integers(0, max(1, int(rng.integers(1, problem.d + 1))), problem.d)]
    count = len({*labels})
    k = int(rng.choice([1, 1, 2, 2, 3, count])) if k is None else k
    plain = Problem(np.array(problem.A), np.array(problem.y), min(k, count), lam=problem.lam)
    # Not by the argument groups, for which groups of one column each are plain columns.
    return Problem.of(plain.objective, GroupedUnits.of_columns(plain.units, labels), plain.k)


def group_data(problem, curvature=None):
    curvature = np.full(problem.units.columns, problem.lam) if curvature is None else curvature
    units, data = problem.units, walk_data(problem.inner, curvature)
    largest = int(np.diff(units.spans.first).max())
    return GroupData(data, Grouping(*units.spans, units.unit_of.astype(np.int64), largest))


def ordered(state):
    included, free = np.flatnonzero(state == IN), np.flatnonzero(state == FREE)
    return np.concatenate([included, free]), included.size


def exact_union(problem, units):
    return exact_fit(problem.inner, problem.units.columns_of(units).tolist())


@given(SEEDS)
@examples(400, 800)
def test_suspects_are_the_unions_that_are_not_positive_definite(seed):
    """The slow twin: the smallest eigenvalue of each union of diagonal blocks."""
    rng = np.random.default_rng(seed)
    widths = rng.integers(1, 4, int(rng.integers(1, 8)))
    groups, m = widths.size, int(widths.sum())
    slots = int(rng.integers(1, min(groups, 3) + 1))
    basis = rng.standard_normal((m, int(rng.integers(1, m + 3))))
    M = basis @ basis.T + rng.choice([-0.5, 0.05, 0.3, 2.0]) * np.eye(m) * rng.random(m)
    room = group_workspace(m, groups, 3)
    room.counts.M[:] = M
    room.first[:] = np.concatenate([[0], np.cumsum(widths)])
    found = count_groups(groups, slots, room)
    undecided = [{*line[line >= 0].tolist()} for line in room.counts.undecided[: min(found, MOST_SUSPECTS)]]

    def smallest(chosen):
        columns = [j for g in chosen for j in range(room.first[g], room.first[g + 1])]
        return np.linalg.eigvalsh(M[np.ix_(columns, columns)])[0] / np.abs(M).max()

    for suspect in undecided:
        assert smallest(sorted(suspect)) <= 1e-9
    values = {chosen: smallest(chosen) for chosen in combinations(range(groups), slots)}
    if found > MOST_SUSPECTS:
        assert sum(value < 1e-9 for value in values.values()) > 1
        return
    for chosen, value in values.items():
        if abs(value) > 1e-9:
            assert any(suspect <= {*chosen} for suspect in undecided) == (value < 0), (chosen, value)


@given(SEEDS)
@examples(200, 400)
def test_contractions_have_no_singular_value_above_one(seed):
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(1, 6, 2)
    room = group_workspace(10, 2, 5)
    X = rng.standard_normal((rows, columns))
    X *= (1.0 + float(rng.choice([-1e-1, -1e-6, -1e-12, 0.0, 1e-12, 1e-6]))) / np.linalg.norm(X, 2)
    room.product[:rows, :columns] = X
    largest = np.linalg.norm(X, 2)
    if contracts(room.product, rows, columns, room):
        assert largest < 1.0
    else:
        assert largest > 1.0 - 2 * spare(5)
    square = rng.standard_normal((4, 4))
    square = square @ square.T - float(rng.choice([0.0, 1.0])) * np.eye(4)
    if abs(np.linalg.eigvalsh(square)[0]) > 1e-9:
        assert factor(square.copy(), 4) == (np.linalg.eigvalsh(square)[0] > 0)


@pytest.mark.parametrize("block", sample(6, 6))
def test_no_region_of_groups_is_cleared_above_its_best_model(block):
    """Exact objectives in fractions; levels within rounding of them; singular blocks, copies, zeros, no ridge."""
    cleared = refused = better = 0
    for seed in range(block * 400, block * 400 + 400):
        rng = np.random.default_rng([15, seed])
        problem = grouped(awkward_problem(seed, most=8), rng)
        state = random_state(rng, problem)
        units, included = ordered(state)
        slots = problem.k - included
        free = units[included:].tolist()
        size = min(slots, len(free))
        values = {more: exact_union(problem, [*units[:included], *more]) for more in combinations(free, size)}
        best = min(values.values())
        step = float(rng.choice([0.0, 1e-16, 1e-15, 1e-13, 1e-10, 1e-6, 0.1])) * float(rng.choice([-1, 1]))
        upper, tolerance = float(best) * (1.0 + step), float(rng.choice([0.0, 1e-12, 1e-6])) * float(best)
        data, room = group_data(problem), group_workspace(problem.units.columns, problem.d, problem.units.columns)
        walk = empty_walk(1, problem.d, problem.k, 100)
        outcome = count_of_groups(
            data, units, included, units.size, slots, SubtreeLimits(upper, tolerance, 100, np.inf, True), walk, 0, room
        )  # fmt: skip
        if np.isfinite(walk.value[0]):
            better += 1
            found = walk.support[0][walk.support[0] >= 0].tolist()
            assert {*units[:included].tolist()} <= {*found} <= {*units.tolist()}
            assert len(found) <= problem.k
            value = float(exact_union(problem, found))
            assert value == pytest.approx(walk.value[0], abs=1e-7 * problem.inner.gram.constant)
        if outcome == CLEAR:
            cleared += 1
            assert Fraction(walk.min_pruned_bound[0]) <= best, seed
        else:
            refused += 1
            undecided = [{*line[line >= 0].tolist()} for line in room.counts.undecided[: max(outcome, 0)]]
            for more, value in values.items():
                if outcome > 0 and not any(suspect <= {*more} for suspect in undecided):
                    assert Fraction(walk.min_pruned_bound[0]) <= value, seed
    assert cleared > 60
    assert refused > 5
    assert better > 5


@given(SEEDS)
@examples(100, 200)
def test_layout_of_groups(seed):
    rng = np.random.default_rng(seed)
    problem = grouped(awkward_problem(seed, most=9), rng)
    data, room = group_data(problem), group_workspace(problem.units.columns, problem.d, problem.units.columns)
    units = rng.permutation(problem.d)
    included, slots = int(rng.integers(0, problem.d + 1)), int(rng.integers(0, 4))
    into = np.zeros(problem.units.columns, dtype=np.int64)
    end = columns_of(data, units, included, into, 0)
    assert sorted(into[:end].tolist()) == problem.units.columns_of(units[:included]).tolist()
    widths = sorted((len(problem.units.groups[g]) for g in units[included:]), reverse=True)
    assert widest(data, units, included, problem.d, slots, room) == sum(widths[:slots])
    value = value_on(data, units, included, room)
    if np.isfinite(value):
        exact = float(exact_union(problem, units[:included].tolist()))
        assert value == pytest.approx(exact, abs=1e-6 * problem.inner.gram.constant)


def independent_problem(rng):
    n, d = int(rng.integers(8, 20)), int(rng.integers(2, 8))
    A = rng.standard_normal((n, d)) + float(rng.choice([0.0, 1.0])) * rng.standard_normal((n, 1))
    plain = Problem(A, rng.standard_normal(n), 1, lam=float(rng.choice([0.0, 0.1, 2.0])))
    problem = grouped(plain, rng, k=int(rng.integers(1, 4)))
    return problem, balanced_curvature(problem.inner.hessian, problem.inner.n)


@given(SEEDS)
@examples(150, 300)
def test_fits_are_kept_up_to_date_group_by_group(seed):
    """Putting in and leaving out against fits from scratch; costs of leaving out against differences of fits."""
    rng = np.random.default_rng(seed)
    problem, curvature = independent_problem(rng)
    data, d = group_data(problem, curvature), problem.units.columns
    state = np.full(problem.d, FREE, dtype=np.int8)
    stack, rooms = first_level(data, state, scratch_space(d, 1)[0]), group_workspaces(d, problem.d, d)
    assert start_fit(data.columns, stack)
    H, b, constant = problem.inner.hessian, problem.inner.gram.b, problem.inner.gram.constant

    def fitted(columns):
        x = np.linalg.solve(H[np.ix_(columns, columns)], b[columns])
        return x, constant - 0.5 * b[columns] @ x

    level, included, out = 0, set(), set()
    for _ in range(problem.d):
        free = stack.units[level, stack.included[level] : stack.present[level]]
        if free.size == 0 or stack.size[level] == 0:
            break
        locate(stack, level, rooms.fits)
        m = stack.size[level]
        columns = stack.columns[level, :m]
        x, value = fitted(columns)
        assert stack.x[level, :m] == pytest.approx(x, abs=1e-7 * np.abs(x).max())
        position = int(rng.integers(stack.included[level], stack.present[level]))
        group = int(stack.units[level, position])
        left = np.setdiff1d(columns, problem.units.groups[group])
        K, trial = inverse_of(stack, level), rooms.fits.trial
        cost = cost_without(data, K, stack.x[level], stack.units[level], position, rooms.fits)
        write_without(data, K, stack, level, position, rooms)
        after = dict(zip(left.tolist(), fitted(left)[0].tolist(), strict=True)) if left.size else {}
        lost = (fitted(left)[1] if left.size else constant) - value
        assert cost == pytest.approx(lost, abs=1e-7 * constant)
        expected = [after.get(j, 0.0) for j in columns.tolist()]
        assert trial[:m] == pytest.approx(expected, abs=1e-7 * np.abs(x).max())
        if rng.random() < 0.5:
            put_in(data, stack, level, position, rooms)
            included.add(group)
        else:
            into = level + int(rng.integers(0, 2)) if level + 1 < stack.size.size else level
            before = {*columns.tolist()}
            leave_out(data, stack, level, position, into, rooms)
            if into > level:
                assert {*stack.columns[level, :m].tolist()} == before
            level = into
            out.add(group)
        assert {*stack.units[level, : stack.included[level]].tolist()} == included
        assert {*stack.units[level, : stack.present[level]].tolist()} == {*range(problem.d)} - out
        fixed = stack.fixed[level]
        assert {*stack.columns[level, :fixed].tolist()} == {*problem.units.columns_of(included).tolist()}


@given(SEEDS)
@examples(200, 400)
def test_formula_of_groups_is_the_reference_less_its_allowance(seed):
    rng = np.random.default_rng(seed)
    problem, curvature = independent_problem(rng)
    data, d = group_data(problem, curvature), problem.units.columns
    state = random_state(rng, problem)
    units, included = ordered(state)
    columns = problem.units.columns_of(units)
    if columns.size == 0:
        return
    columns = rng.permutation(columns)
    room, x = fit_workspace(d, problem.d, d), rng.standard_normal(columns.size)
    if rng.random() < 0.5:
        x = np.linalg.solve(problem.inner.hessian[np.ix_(columns, columns)], problem.inner.gram.b[columns])
    also = skip = NONE
    slots = problem.k - included
    kind = rng.integers(3) if included < units.size and slots > 0 else 0
    position = int(rng.integers(included, units.size)) if kind else NONE
    S, C = units[:included].tolist(), units[included:].tolist()
    if kind == 1:
        also, slots = position, slots - 1
        S, C = [*S, int(units[position])], [g for g in C if g != units[position]]
    elif kind == 2:
        skip = position
        C = [g for g in C if g != units[position]]
        x[np.isin(columns, problem.units.groups[int(units[position])])] = 0.0
    bound = group_formula(data, columns, x, columns.size, units, included, units.size, slots, also, skip, room)
    full = np.zeros(d)
    full[columns] = x
    instance = Instance(
        np.array(problem.AT.T), np.array(problem.y), problem.k, "quadratic", problem.lam, groups=problem.units.groups
    )  # fmt: skip
    reference = curved_bound(instance, S, C, full, data.columns.floor)
    scale = abs(reference) + problem.inner.gram.constant + x @ x * np.max(np.diag(problem.inner.hessian))
    if np.isfinite(reference):
        assert bound <= reference
        assert bound >= reference - 1e-9 * scale
    for i, j in enumerate(columns):
        room.at[j] = i
    largest = np.empty(max(1, problem.k - included))
    excess = group_excess(data, units, included, units.size, x, NONE, room, largest)
    D, members = data.columns.curvature, problem.units.groups
    weights = sorted((sum(D[j] * full[j] ** 2 for j in members[g]) for g in units[included:]), reverse=True)
    assert excess == pytest.approx(0.5 * sum(weights[largest.size :]), abs=1e-9 * scale)
