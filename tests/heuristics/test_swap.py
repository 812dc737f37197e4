"""Swap local search: no single exchange improves its answer."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from instances_for_heuristics import each_loss, make_problem, planted_problem

from exactsel.errors import InputError
from exactsel.problem.regression import Problem
from exactsel_heuristics import (
    Context,
    ForwardSelection,
    SwapLocalSearch,
)
from exactsel_heuristics._scoring import padded
from exactsel_heuristics.swap import Neighbours, _confirmed


def one_move_away(problem, support):
    outside = [j for j in range(problem.d) if j not in support]
    if len(support) < problem.k:
        yield from ((*support, j) for j in outside)
    for leaving in support:
        stay = tuple(i for i in support if i != leaving)
        yield from ((*stay, j) for j in outside)


@pytest.mark.smoke
@each_loss
@pytest.mark.parametrize(("n", "d", "k"), [(30, 9, 3), (6, 9, 4), (20, 8, 1)])
def test_no_single_swap_improves_the_answer_of_swap(loss, n, d, k):
    for seed, start in ((0, None), (1, None), (2, (0,)), (3, tuple(range(k))), (4, ())):
        problem = make_problem(seed, n, d, k, loss)
        support = SwapLocalSearch().run(problem, Context(start=start)).support
        value = problem.fit(support).value
        neighbours = (problem.fit(near).value for near in one_move_away(problem, support))
        assert value <= min(neighbours) + 1e-9 * (1.0 + abs(value))


@pytest.mark.parametrize("start", [None, (0, 1, 2), (0, 1), (1, 3)])
def test_swap_is_a_local_optimum_among_dependent_columns(start):
    for seed in range(4):
        problem = make_problem(seed, 15, 9, 3, lam=0.0)
        support = SwapLocalSearch().run(problem, Context(start=start)).support
        value = problem.fit(support).value
        neighbours = (problem.fit(near).value for near in one_move_away(problem, support))
        assert value <= min(neighbours) + 1e-9 * (1.0 + abs(value))


@each_loss
def test_swap_is_never_worse_than_its_start(loss):
    problem = make_problem(9, 25, 8, 3, loss)
    for start in combinations(range(8), 3):
        found = SwapLocalSearch().run(problem, Context(start=start))
        assert problem.fit(found.support).value <= problem.fit(start).value


def test_swap_stopped_at_once_returns_its_start():
    problem = make_problem(9, 25, 8, 3)
    assert SwapLocalSearch().run(problem, Context(start=(5, 3), should_stop=lambda: True)).support == (3, 5)


def test_swap_escapes_where_forward_is_fooled():
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((2, 100))
    # The sum of both columns explains y best alone, and stands in the way once one of them is in.
    A = np.column_stack([a, b, a + b + 0.3 * rng.standard_normal(100)])
    problem = Problem(A, a + b, 2, lam=0.0)
    assert 2 in ForwardSelection().run(problem, Context()).support
    assert SwapLocalSearch().run(problem, Context()).support == (0, 1)


def test_swap_makes_only_moves_that_a_refit_confirms():
    problem, planted = planted_problem("quadratic")
    value = problem.fit(planted).value
    flattered = Neighbours(padded([(0, 1, 2, 3), (4, 5)], 4), np.array([value - 2.0, value - 1.0]), 2)
    assert _confirmed(problem, flattered, value) == (None, 2)
    mixed = Neighbours(padded([(0, 1), planted], 4), np.array([value - 2.0, value - 1.0]), 2)
    assert _confirmed(problem, mixed, value + 0.1) == ((planted, value), 2)


def test_swap_refuses_a_start_that_does_not_fit():
    problem = make_problem(0, 10, 6, 2)
    with pytest.raises(InputError, match="3 features, but at most k = 2"):
        SwapLocalSearch().run(problem, Context(start=(0, 1, 2)))
    for column in (-1, 6):
        with pytest.raises(InputError, match="the features are 0 to 5"):
            SwapLocalSearch().run(problem, Context(start=(column,)))
