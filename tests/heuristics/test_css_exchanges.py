"""Iterative and two-stage column selection: exchanges, starts, and the sampling distribution by its definition."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matrices import make_matrix, slow_value, small_matrices
from samples import examples

from exactsel.errors import InputError
from exactsel.problem.column_subset import ColumnSubsetProblem
from exactsel_heuristics._projection import smallest_decrease
from exactsel_heuristics._singular import leading_singular_vectors
from exactsel_heuristics.base import Context, Proposal
from exactsel_heuristics.iterative_css import IterativeColumnSelection
from exactsel_heuristics.two_stage import TwoStageColumnSelection, _pivots, _sampled, sampling_distribution

# Iterative selection


def exchanges(d, support) -> Iterator[tuple[int, ...]]:
    for leaving in support:
        stay = tuple(i for i in support if i != leaving)
        yield from ((*stay, j) for j in range(d) if j not in stay)


@examples(60, 120)
@given(A=small_matrices, k=st.integers(1, 6), seed=st.integers(0, 3))
def test_no_exchange_improves_the_answer_of_iterative_selection(A, k, seed):
    problem = ColumnSubsetProblem(A, min(k, A.shape[1]))
    support = IterativeColumnSelection().run(problem, Context(seed=seed)).support
    value = slow_value(A, support)
    reachable = [slow_value(A, near) for near in exchanges(problem.d, support)]
    if len(support) < problem.k:
        reachable += [slow_value(A, (*support, j)) for j in range(problem.d)]
    assert value <= min(reachable, default=value) + 1e-9 * (1.0 + problem.null_objective)


@pytest.mark.parametrize(("n", "d"), [(30, 14), (8, 14)])
@pytest.mark.parametrize("start", [None, (), (0, 1, 3), (0, 1, 2, 3)])
def test_iterative_selection_from_a_start(n, d, start):
    for seed in range(3):
        A = make_matrix(seed, n, d)
        problem = ColumnSubsetProblem(A, 4)
        support = IterativeColumnSelection().run(problem, Context(seed=seed, start=start)).support
        value = slow_value(A, support)
        assert len(support) == 4
        assert (
            value <= min(map(lambda near: slow_value(A, near), exchanges(d, support))) + 1e-9 * problem.null_objective
        )
        assert value <= slow_value(A, start or ())


def test_iterative_selection_keeps_an_optimal_start():
    A = make_matrix(4, 12, 7, awkward=False)
    best = min(combinations(range(7), 3), key=lambda chosen: slow_value(A, chosen))
    proposal = IterativeColumnSelection().run(ColumnSubsetProblem(A, 3), Context(start=best))
    assert proposal.support == best
    assert len(proposal.curve) == 1


def test_iterative_selection_returns_its_start_when_stopped_at_once():
    problem = ColumnSubsetProblem(make_matrix(4, 12, 7), 3)
    proposal = IterativeColumnSelection().run(problem, Context(start=(5, 2), should_stop=lambda: True))
    assert proposal == Proposal((2, 5), 0)


def test_restarts_improve():
    A = make_matrix(2, 40, 30, awkward=False)
    problem = ColumnSubsetProblem(A, 8)
    values = [
        problem.fit(IterativeColumnSelection(restarts=r).run(problem, Context(seed=2)).support).value for r in (1, 2, 8)
    ]
    assert values[0] >= values[1] >= values[2]
    assert values[0] > values[2]


def test_random_starts_follow_the_seed():
    problem = ColumnSubsetProblem(make_matrix(11, 40, 30, awkward=False), 8)
    runs = [IterativeColumnSelection(max_passes=1).run(problem, Context(seed=s)).support for s in range(5)]
    assert len(set(runs)) > 1


def test_the_curve_of_iterative_selection_descends_to_its_answer():
    problem = ColumnSubsetProblem(make_matrix(7, 40, 30), 8)
    proposal = IterativeColumnSelection(restarts=3).run(problem, Context(seed=1))
    counts, values = zip(*proposal.curve, strict=True)
    assert list(counts) == sorted(counts)
    assert list(values) == sorted(values, reverse=True)
    assert values[-1] == pytest.approx(problem.fit(proposal.support).value, rel=1e-12)
    assert counts[-1] <= proposal.evaluations


def test_an_impossible_start_is_refused():
    problem = ColumnSubsetProblem(make_matrix(0, 12, 6), 2)
    with pytest.raises(InputError, match="has 3 columns, but at most k = 2 are allowed; give a smaller selection"):
        IterativeColumnSelection().run(problem, Context(start=(0, 1, 2)))
    for column in (-1, 6):
        with pytest.raises(InputError, match=f"names column {column}, but the columns are 0 to 5; correct it"):
            IterativeColumnSelection().run(problem, Context(start=(column,)))


# The two-stage algorithm


@examples(60, 120)
@given(A=small_matrices, k=st.integers(1, 6))
def test_the_sampling_distribution_equals_its_slow_twin(A, k):
    problem = ColumnSubsetProblem(A, min(k, A.shape[1]))
    rank = int(np.linalg.matrix_rank(A))
    p = sampling_distribution(problem, leading_singular_vectors(problem))
    _, values, right = np.linalg.svd(A, full_matrices=False)
    r = min(problem.k, rank)
    if rank == 0:
        assert not p.any()
        return
    if r < values.size and values[r - 1] - values[r] < 1e-6:
        return  # the k leading vectors are not unique
    V = right[:r].T
    expected = np.sum(V**2, axis=1) / r
    if r < rank:
        beyond = np.sum(A**2, axis=0) - np.sum((A @ V @ V.T) ** 2, axis=0)
        expected = 0.5 * expected + 0.5 * beyond / np.sum(beyond)
    assert p.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(p, expected, atol=1e-9)


def test_columns_are_kept_as_often_as_their_probabilities_say():
    keep, rng = np.array([1.0, 0.5, 0.1, 0.0]), np.random.default_rng(0)
    counts = sum(np.bincount(_sampled(keep, 0, rng), minlength=4) for _ in range(4000))
    np.testing.assert_allclose(counts / 4000, keep, atol=0.03)


def test_the_likeliest_columns_are_added_when_too_few_are_kept():
    keep, rng = np.array([0.0, 1e-9, 1e-3, 1e-6]), np.random.default_rng(0)
    assert _sampled(keep, 2, rng).tolist() == [2, 3]


def slow_pivots(rows, count):
    """Take the longest column, then the longest of what is left of the others, and so on."""
    rows, taken = rows.copy(), []
    for _ in range(count):
        taken.append(int(np.argmax(np.sum(rows**2, axis=0))))
        q = rows[:, taken[-1]] / np.linalg.norm(rows[:, taken[-1]])
        rows -= np.outer(q, q @ rows)
    return tuple(sorted(taken))


def test_the_deterministic_stage_equals_its_slow_twin():
    rng = np.random.default_rng(0)
    scaling_matters = False
    for _ in range(20):
        right = np.linalg.qr(rng.standard_normal((12, 4)))[0]
        keep = rng.uniform(0.1, 1.0, 12)
        candidates = np.sort(rng.choice(12, 8, replace=False))
        rows = right[candidates].T / np.sqrt(keep[candidates])
        expected = tuple(candidates[list(slow_pivots(rows, 4))].tolist())
        assert tuple(_pivots(right, keep, candidates).tolist()) == expected
        scaling_matters |= expected != tuple(candidates[list(slow_pivots(right[candidates].T, 4))].tolist())
    assert scaling_matters


def test_two_stage_with_every_column_kept_is_the_pivoted_factorisation():
    A = make_matrix(3, 30, 12, awkward=False)
    right = np.linalg.svd(A, full_matrices=False)[2]
    support = TwoStageColumnSelection(candidates=10**9).run(ColumnSubsetProblem(A, 4), Context()).support
    assert support == slow_pivots(right[:4], 4)


def test_repeats_of_two_stage_improve():
    problem = ColumnSubsetProblem(make_matrix(3, 40, 30, awkward=False), 5)
    values = [
        problem.fit(TwoStageColumnSelection(repeats=r).run(problem, Context(seed=1)).support).value for r in (1, 5, 40)
    ]
    assert values[0] >= values[1] >= values[2]
    assert values[0] > values[2]


def test_the_smallest_decrease_goes_with_the_matrix():
    A = make_matrix(0, 10, 4)
    assert smallest_decrease(ColumnSubsetProblem(A, 2)) == pytest.approx(1e-12 * np.sum(A**2))
