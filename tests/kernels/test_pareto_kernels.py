"""Kernels of Pareto optimisation against slow twins: random flips, flip values, the archive, and the paper's lemmas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances_for_heuristics import make_problem
from pocss_lemmas import delete_column, insert_column
from samples import examples, kernels_of_its_own

from exactsel.problem.column_subset import ColumnSubsetProblem
from exactsel_heuristics import _pareto_css, _pareto_loss, _pareto_quadratic
from exactsel_heuristics._inverse_updates import border_inverse, drop_from_inverse, invert
from exactsel_heuristics._pareto_archive import keep_undominated
from exactsel_heuristics._pareto_layout import ADDS, COUNTS, DROPS, FIRST, SIZE, new_members, new_scratch
from exactsel_heuristics._pareto_loss import empty_rows, loss_objective
from exactsel_heuristics._pareto_random import flipped_positions, plan_flips, random_bits, skipping_rate, uniform

WIDTH = 6
counters = st.integers(0, 2**40)


def direct_css(A, support):
    S = A[:, list(support)]
    return float(np.linalg.norm(A - S @ (np.linalg.pinv(S) @ A)) ** 2)


# Random flips


@pytest.mark.smoke
@examples(200, 400)
@given(key=st.integers(0, 2**63 - 1), iteration=counters, stream=st.integers(0, 100), number=st.integers(0, 100))
def test_compiled_and_plain_random_numbers_are_the_same(key, iteration, stream, number):
    bits = random_bits(key, iteration, stream, number)
    assert 0 <= bits < 2**53
    assert uniform(key, iteration, stream, number) == (bits + 0.5) * 2.0**-53


def test_every_counter_matters():
    drawn = {random_bits(*key) for key in np.ndindex(6, 6, 6, 6)}
    assert len(drawn) == 6**4


@pytest.mark.smoke
@examples(200, 400)
@given(data=st.data(), key=st.integers(0, 2**63 - 1), iteration=counters, d=st.integers(1, 12))
def test_planned_flips_are_those_of_the_plain_twin(data, key, iteration, d):
    support = sorted(data.draw(st.sets(st.integers(0, d - 1))))
    drops, adds = np.full(d, -1), np.full(d, -1)
    counts = plan_flips(key, iteration, 1, d, skipping_rate(d), np.array(support, dtype=np.int64), drops, adds)
    positions = flipped_positions(key, iteration, 1, d)
    assert list(drops[: counts[0]]) == [place for place, j in enumerate(support) if j in positions]
    assert list(adds[: counts[1]]) == [j for j in positions if j not in support]


@pytest.mark.parametrize("d", [2, 5, 40])
def test_each_position_is_flipped_with_probability_one_over_d_independently(d):
    runs = 4000
    flips = np.zeros((runs, d))
    for iteration in range(runs):
        flips[iteration, flipped_positions(7, iteration, 1, d)] = 1.0
    error = math.sqrt(1.0 / d * (1.0 - 1.0 / d) / runs)
    assert np.abs(flips.mean(axis=0) - 1.0 / d).max() < 4.5 * error
    assert abs(flips.sum(axis=1).var() - (1.0 - 1.0 / d)) < 0.15
    assert abs(np.mean(flips[:, 0] * flips[:, 1]) - 1.0 / d**2) < 4.5 / d / math.sqrt(runs)


def test_a_single_position_is_always_flipped():
    assert all(flipped_positions(3, iteration, 1, 1) == [0] for iteration in range(100))


# Inverses


@examples(60, 120)
@given(seed=st.integers(0, 2**32), m=st.integers(1, 6), data=st.data())
def test_inverses_are_cut_and_bordered(seed, m, data):
    A = np.random.default_rng(seed).standard_normal((m + 3, m))
    H = A.T @ A
    K, i = np.zeros((m + 1, m)), data.draw(st.integers(0, m - 1))
    assert invert(np.tril(H), m, K)
    np.testing.assert_allclose(K[:m] @ H, np.eye(m), atol=1e-6)
    places = list(range(m))
    places[i] = places[-1]
    drop_from_inverse(K, m, i)
    rest = H[np.ix_(places[:-1], places[:-1])]
    np.testing.assert_allclose(K[: m - 1, : m - 1] @ rest, np.eye(m - 1), atol=1e-6)
    h = H[places[:-1], i]
    w = K[: m - 1, : m - 1] @ h
    border_inverse(K, m - 1, w, H[i, i] - h @ w)
    order = [*places[:-1], i]
    np.testing.assert_allclose(K[:m] @ H[np.ix_(order, order)], np.eye(m), atol=1e-5)


def test_dependent_columns_have_no_inverse():
    a, b = np.random.default_rng(0).standard_normal((2, 9))
    for columns in ([a, a], [a, b, a + b], [a, 0 * a]):
        A = np.column_stack(columns)
        assert not invert(np.tril(A.T @ A), len(columns), np.zeros((len(columns) + 1, len(columns))))


# Flip values


def kernels_of(kind, seed, d):
    """The objective, its direct formula, how to settle a support and how to evaluate a flip."""
    problem = make_problem(seed, 25, d, 3, "quadratic" if kind == "css" else kind, lam=0.4, awkward=False)
    if kind == "quadratic":
        objective = _pareto_quadratic.quadratic_objective(problem)
        return (
            objective, lambda s: problem.fit(s).value, np.zeros((3, 0)),
            lambda members, scratch: _pareto_quadratic._settled_value(objective, members, 0),
            lambda members, scratch, cutoff: _pareto_quadratic._flipped_value(objective, members, 0, scratch, 0),
        )  # fmt: skip
    if kind == "css":
        selection = ColumnSubsetProblem(problem.A, 3)
        objective = _pareto_css.column_subset_objective(selection)
        return (
            objective, lambda s: direct_css(problem.A, s), np.zeros((3, 0)),
            lambda members, scratch: _pareto_css._settled_value(objective, members, 0),
            lambda members, scratch, cutoff: _pareto_css._flipped_value(objective, members, 0, scratch, 0),
        )  # fmt: skip
    objective = loss_objective(problem)
    return (
        objective, lambda s: problem.fit(s).value, empty_rows(problem),
        lambda members, scratch: _pareto_loss._settled_value(objective, members, 0, scratch, 0),
        lambda members, scratch, cutoff: _pareto_loss._flipped_value(objective, members, 0, scratch, 0, cutoff),
    )  # fmt: skip


def settled(kernels, support):
    """A member with this support, and scratch space."""
    _, direct, rows, settle, _ = kernels
    members, scratch = new_members(1, WIDTH, rows.shape[1]), new_scratch(1, WIDTH, rows.shape[1])
    members.rows[0] = rows
    members.supports[0, SIZE] = len(support)
    members.supports[0, FIRST : FIRST + len(support)] = support
    if support:
        members.values[0] = settle(members, scratch)
        assert members.values[0] == pytest.approx(direct(support), rel=1e-9)
    return members, scratch


@pytest.mark.parametrize("kind", ["quadratic", "css", kernels_of_its_own("logistic")])
@examples(40, 80)
@given(
    seed=st.integers(0, 2**32), support=st.sets(st.integers(0, 8), max_size=WIDTH),
    flips=st.sets(st.integers(0, 8), min_size=1, max_size=4), share=st.floats(0.0, 2.0),
)  # fmt: skip
def test_flip_values_equal_the_direct_formula(kind, seed, support, flips, share):
    after = support ^ flips
    if not 0 < len(after) <= WIDTH:
        return
    kernels = kernels_of(kind, seed, 9)
    _, direct, _, _, flip = kernels
    parent = sorted(support)
    members, scratch = settled(kernels, parent)
    drops, adds = [i for i, j in enumerate(parent) if j in flips], sorted(flips - support)
    scratch.flips[0, DROPS, : len(drops)], scratch.flips[0, ADDS, : len(adds)] = drops, adds
    scratch.flips[0, COUNTS, :2] = len(drops), len(adds)
    before = [part.copy() for part in members]
    exact = direct(sorted(after))
    assert flip(members, scratch, np.inf) == pytest.approx(exact, rel=1e-8)
    cutoff = share * exact
    value = flip(members, scratch, cutoff)
    assert value > cutoff if exact > cutoff * (1 + 1e-9) else value == pytest.approx(exact, rel=1e-8)
    for part, copy in zip(members, before, strict=True):
        np.testing.assert_array_equal(part, copy)


# The archive


def no_worse(value, size, other, other_size):
    return value <= other and size <= other_size


def strictly_better(value, size, other, other_size):
    return no_worse(value, size, other, other_size) and (value, size) != (other, other_size)


def slow_undominated(offspring):
    """What is left when (support, value) pairs enter an empty archive one after the other."""
    kept = []
    for p, (support, value) in enumerate(offspring):
        if value == math.inf:
            continue
        if any(
            s == support or strictly_better(v, len(s), value, len(support)) for s, v in (offspring[q] for q in kept)
        ):
            continue
        kept = [q for q in kept if not no_worse(value, len(support), offspring[q][1], len(offspring[q][0]))] + [p]
    return kept


@examples(200, 400)
@given(
    st.lists(
        st.tuples(st.sets(st.integers(0, 4), min_size=1, max_size=4), st.sampled_from([1.0, 2.0, 3.0, math.inf])),
        max_size=7,
    )
)
def test_the_undominated_subset(drawn):
    offspring = [(tuple(sorted(support)), value) for support, value in drawn]
    members = new_members(max(1, len(offspring)), 4, 0)
    for p, (support, value) in enumerate(offspring):
        members.supports[p, SIZE], members.values[p] = len(support), value
        members.supports[p, FIRST : FIRST + len(support)] = support
    kept = np.zeros(8, dtype=np.int64)
    assert list(kept[: keep_undominated(members, kept, len(offspring))]) == slow_undominated(offspring)


# The lemmas of the column subset paper


@examples(60, 120)
@given(seed=st.integers(0, 2**32), m=st.integers(1, 5), data=st.data())
def test_the_lemmas_equal_the_direct_formula(seed, m, data):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((9, 8))
    columns = tuple(int(j) for j in rng.choice(8, m, replace=False))
    value, inverse = direct_css(A, columns), np.linalg.pinv(A[:, columns])

    i = data.draw(st.integers(0, m - 1))
    fewer = columns[:i] + columns[i + 1 :]
    less, smaller = delete_column(A, value, inverse, i)
    assert less == pytest.approx(direct_css(A, fewer), rel=1e-8)
    np.testing.assert_allclose(smaller, np.linalg.pinv(A[:, fewer]), atol=1e-6)

    place = data.draw(st.integers(0, m))
    j = data.draw(st.sampled_from([j for j in range(8) if j not in columns]))
    more = (*columns[:place], j, *columns[place:])
    better, larger = insert_column(A, value, columns, inverse, place, j)
    assert better == pytest.approx(direct_css(A, more), rel=1e-8, abs=1e-8)
    np.testing.assert_allclose(larger, np.linalg.pinv(A[:, more]), atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_the_lemmas_equal_the_gram_form(seed):
    kernels = kernels_of("css", seed, 9)
    problem = make_problem(seed, 25, 9, 3, lam=0.4, awkward=False)
    rng = np.random.default_rng(seed)
    parent = sorted(int(j) for j in rng.choice(9, 4, replace=False))
    members, scratch = settled(kernels, parent)
    value, inverse = members.values[0], np.linalg.pinv(problem.A[:, parent])
    for i in range(4):
        scratch.flips[0, COUNTS, :2], scratch.flips[0, DROPS, 0] = (1, 0), i
        assert delete_column(problem.A, value, inverse, i)[0] == pytest.approx(kernels[4](members, scratch, np.inf))
    for j in sorted(set(range(9)) - set(parent)):
        scratch.flips[0, COUNTS, :2], scratch.flips[0, ADDS, 0] = (0, 1), j
        lemma = insert_column(problem.A, value, tuple(parent), inverse, 0, j)[0]
        assert lemma == pytest.approx(kernels[4](members, scratch, np.inf))


def test_a_column_taken_out_and_put_back_changes_nothing():
    A = np.random.default_rng(3).standard_normal((7, 5))
    columns = (0, 2, 4)
    value, inverse = direct_css(A, columns), np.linalg.pinv(A[:, columns])
    for i, j in enumerate(columns):
        less, smaller = delete_column(A, value, inverse, i)
        again, larger = insert_column(A, less, columns[:i] + columns[i + 1 :], smaller, i, j)
        assert again == pytest.approx(value)
        np.testing.assert_allclose(larger, inverse, atol=1e-10)
