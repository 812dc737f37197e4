"""The contract of a bound call: what an answer depends on, when a call ends, what it remembers and what it refuses."""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
import pytest
from bounds_by_hand import (
    BOUNDS,
    ITERATIVE,
    LOSSES,
    brute_force,
    call,
    converged,
    each_bound,
    each_dual,
    each_iterative,
    each_loss,
    is_relaxed,
    make_problem,
    make_states,
    root,
    served,
)

from exactsel import registry
from exactsel.bounds.apg import AcceleratedGradientBound
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.fit import FitBound
from exactsel.bounds.oracle import CvxpyBound
from exactsel.bounds.supergradient import SupergradientBound
from exactsel.bounds.witness import DualPoint, FitPoint, ModelPoint
from exactsel.errors import UnsupportedError
from exactsel.kernels.node import CUT, FREE, OUT, RELAXED, SOLVED, UNFINISHED
from exactsel.kernels.pdal import STEPS, has_converged
from exactsel.losses import Huber, Quadratic
from exactsel.problem.regression import Problem


@each_bound
@each_loss
def test_answers_depend_on_nothing_but_the_node(bound, loss):
    problem = make_problem(9, loss)
    if not served(bound, problem):
        return
    warm_root = call(bound, problem, [root(problem)]).warm[0]
    states = make_states(problem, count=6, seed=1)
    warm = [None, *[warm_root] * (len(states) - 1)]
    whole = call(bound, problem, states, warm=warm, threads=1)
    order = np.arange(len(states))[::-1]
    others = [
        (call(bound, problem, states, warm=warm, threads=2), order[::-1]),
        (call(bound, problem, states[order], warm=[warm[i] for i in order], threads=2), order),
    ]
    for row in range(len(states)):
        others.append((call(bound, problem, states[row : row + 1], warm=warm[row : row + 1]), [row]))
    for other, rows in others:
        for name, expected in whole.answers._asdict().items():
            np.testing.assert_array_equal(getattr(other.answers, name), expected[rows], err_msg=name)
        for position, row in enumerate(rows):
            assert_same(other.proofs[position], whole.proofs[row])
            assert_same(other.warm[position], whole.warm[row])


def assert_same(a, b):
    assert type(a) is type(b)
    if isinstance(a, ModelPoint):
        np.testing.assert_array_equal(a.index, b.index)
        np.testing.assert_array_equal(a.value, b.value)
    elif isinstance(a, DualPoint):
        np.testing.assert_array_equal(a.beta, b.beta)
    elif isinstance(a, np.ndarray):
        np.testing.assert_array_equal(a, b)
    else:
        assert a is None or isinstance(a, FitPoint)


@pytest.mark.smoke
@each_dual
@each_loss
def test_inputs_are_not_modified(bound, loss):
    problem = make_problem(9, loss)
    A, y = problem.AT.T.copy(), problem.y.copy()
    first = call(bound, problem, [root(problem)])
    memory, beta = first.warm[0].copy(), first.proofs[0].beta.copy()
    states = make_states(problem)
    before = states.copy()
    # Read-only views: a kernel that writes to its input fails rather than corrupting a sibling.
    first.warm[0].flags.writeable = False
    prepared = bound.prepare(problem, BoundOptions())
    prepared.tighten(states, [first.warm[0]] * len(states), np.inf, 1.0)
    assert np.array_equal(states, before)
    assert np.array_equal(first.warm[0], memory)
    assert np.array_equal(first.proofs[0].beta, beta)
    assert np.array_equal(problem.AT.T, A)
    assert np.array_equal(problem.y, y)


@each_bound
@each_loss
def test_a_call_ends_at_the_cut_off(bound, loss):
    problem = make_problem(0, loss)
    if not served(bound, problem):
        return
    state = root(problem)
    free = call(bound, problem, [state], force_quit=False).answers
    cutoff = free.bound[0] - 0.1 * abs(free.bound[0])
    cut = call(bound, problem, [state], cutoff).answers
    assert cut.status[0] == CUT
    assert cutoff <= cut.bound[0] <= brute_force(problem, state) + 1e-9
    assert cut.iterations[0] <= free.iterations[0]
    assert free.status[0] == RELAXED
    if bound.name in ("apg", "pdal", "supergradient"):
        assert cut.iterations[0] < free.iterations[0]


@each_iterative
@each_loss
def test_without_force_quit_the_cut_off_changes_nothing(bound, loss):
    problem = make_problem(0, loss)
    free = call(bound, problem, [root(problem)], force_quit=False).answers
    for cutoff in (-1e9, 0.5 * free.bound[0], 1e9):
        answers = call(bound, problem, [root(problem)], cutoff, force_quit=False).answers
        assert answers.status[0] == RELAXED
        assert answers.bound[0] == free.bound[0]


@pytest.mark.parametrize("cutoff", [1.0, np.inf])
def test_without_force_quit_the_default_bound_solves_the_relaxation(cutoff):
    """Whatever the cut-off, also when there is none yet, as before the first model is known."""
    for loss in LOSSES:
        problem = make_problem(0, loss)
        expected = call(CvxpyBound(), problem, [root(problem)]).answers.bound[0]
        answers = call(
            AcceleratedGradientBound(curvature=False), problem, [root(problem)], cutoff, force_quit=False
        ).answers
        assert answers.bound[0] == pytest.approx(expected, rel=1e-3)


@each_bound
@each_loss
def test_the_stop_flag_is_obeyed(bound, loss):
    problem = make_problem(0, loss)
    if not served(bound, problem):
        return
    states = make_states(problem)
    answers = call(bound, problem, states, stop=np.array([True])).answers
    for row, state in enumerate(states):
        if is_relaxed(problem, state):
            assert answers.status[row] == UNFINISHED
        assert answers.bound[row] <= brute_force(problem, state) + 1e-9
        assert answers.iterations[row] <= 1


# Memories


@each_dual
@each_loss
def test_children_start_from_their_parent(bound, loss):
    problem = make_problem(10, loss)
    parent = call(bound, problem, [root(problem)])
    again = call(bound, problem, [root(problem)], warm=[parent.warm[0]])
    ignored = call(bound, problem, [root(problem)], warm=[parent.warm[0]], warm_start=False)
    assert again.answers.iterations[0] <= parent.answers.iterations[0]
    assert again.answers.bound[0] >= parent.answers.bound[0] - 0.02 * abs(parent.answers.bound[0])
    np.testing.assert_array_equal(ignored.answers.bound, parent.answers.bound)
    head = STEPS if bound.name == "pdal" else 1
    length = head + problem.n + (problem.d if bound.name == "pdal" else 0)
    assert parent.warm[0].shape == (length,)
    assert parent.warm[0].base is None


@each_dual
def test_convex_nodes_leave_no_memory(bound):
    problem = make_problem(10, "huber")
    state = np.full(problem.d, OUT, dtype=np.int8)
    state[:2] = FREE
    result = call(bound, problem, [state])
    assert result.warm == [None]
    assert result.answers.status[0] == SOLVED


def test_converged_means_still_and_not_below_the_best():
    assert has_converged(10.0, 10.0 - 1e-5, 10.0, 1e-5, 11.0)
    assert not has_converged(10.0, 9.9, 10.0, 1e-5, 11.0)
    assert not has_converged(10.0, 10.0, 10.1, 1e-5, 11.0)
    assert not has_converged(10.0, -np.inf, 10.0, 1e-5, 11.0)
    assert has_converged(10.0, 10.0, 10.0, 1e-5, np.inf)
    assert not has_converged(10.0, 9.9, 10.0, 1e-5, np.inf)
    assert has_converged(0.0, 0.0, 0.0, 1e-5, 0.0)


@each_dual
def test_no_upper_bound_is_needed(bound):
    problem = make_problem(0, "huber")
    expected = converged(CvxpyBound(), problem, [root(problem)])[0]
    found = call(bound, problem, [root(problem)], upper=np.inf).answers.bound[0]
    assert found == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("bound", ITERATIVE, ids=lambda bound: bound.name)
@pytest.mark.parametrize("k", [0, 1, 3, 7])
def test_data_that_say_nothing(bound, k):
    for A in (np.zeros((4, 7)), np.ones((4, 7))):
        problem = Problem(A, np.arange(4.0), k, loss=Huber(0.5), lam=0.1)
        states = make_states(problem, count=3)
        answers = call(bound, problem, states).answers
        for row, state in enumerate(states):
            assert answers.bound[row] == pytest.approx(brute_force(problem, state), rel=0.05)
            assert answers.bound[row] <= brute_force(problem, state) + 1e-9


# What they refuse


def test_the_registry_finds_them():
    for bound in BOUNDS:
        assert registry.load("bounds", bound.name) is type(bound)


@each_bound
def test_lam_zero_is_refused(bound):
    if bound.name != "fit":
        with pytest.raises(UnsupportedError, match=f"the bound '{bound.name}' .*lam.* is 0"):
            bound.prepare(make_problem(5, "quadratic", n=5, lam=0.0, awkward=True), BoundOptions())


def test_the_fit_needs_quadratic_loss():
    with pytest.raises(UnsupportedError, match="needs quadratic loss, but the loss is huber"):
        FitBound().prepare(make_problem(0, "huber"), BoundOptions())


def test_the_oracle_says_how_to_get_cvxpy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'exactsel\[cvxpy\]'"):
        CvxpyBound().prepare(make_problem(0, "quadratic"), BoundOptions())


class Stranger(NamedTuple):
    """A plug-in loss without a conjugate; never compiled."""

    name = "stranger"
    smoothness = 1.0
    infimum = 0.0
    point_value = Quadratic.point_value
    point_derivative = Quadratic.point_derivative
    point_curvature = Quadratic.point_curvature
    point_majorizer = Quadratic.point_majorizer
    point_prox = Quadratic.point_prox

    def check_target(self, y):
        pass

    def check_parameters(self):
        pass


def test_losses_without_what_a_bound_needs_are_refused():
    problem = Problem(np.eye(3), np.ones(3), 1, loss=Stranger(), lam=0.1)
    with pytest.raises(UnsupportedError, match="stranger lacks point_conjugate, point_conjugate_derivative"):
        SupergradientBound().prepare(problem, BoundOptions())
    with pytest.raises(UnsupportedError, match=r"the loss is stranger; use bound=.apg."):
        CvxpyBound().prepare(problem, BoundOptions())
