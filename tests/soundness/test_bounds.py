"""Every bound against brute force, against the conic oracle, and against its own proof written in plain numpy."""

from __future__ import annotations

import numpy as np
import pytest
from bounds_by_hand import (
    CONVERGED,
    ITERATIVE,
    LOSSES,
    all_problems,
    brute_force,
    call,
    converged,
    each_bound,
    each_loss,
    is_relaxed,
    make_problem,
    make_states,
    plain_bound,
    plain_gradient,
    proven_bound,
    root,
    served,
    value_on,
)

from exactsel.bounds.fit import FitBound
from exactsel.bounds.oracle import CvxpyBound
from exactsel.bounds.pdal import PrimalDualBound
from exactsel.bounds.pointwise import bound_at_model
from exactsel.bounds.supergradient import SupergradientBound
from exactsel.bounds.witness import DualPoint, FitPoint, ModelPoint
from exactsel.kernels.node import CUT, FREE, IN, OUT, SOLVED

pytest.importorskip("cvxpy")

# Validity


@each_bound
@each_loss
def test_bounds_hold(bound, loss):
    for problem in all_problems(loss):
        if not served(bound, problem):
            continue
        states = make_states(problem)
        # From a very early end to a late one: every answer must hold.
        for cutoff in (-1e9, brute_force(problem, states[0]), np.inf):
            answers = call(bound, problem, states, cutoff).answers
            for row, state in enumerate(states):
                best = brute_force(problem, state)
                assert answers.bound[row] <= best + 1e-9
                if answers.status[row] == SOLVED:
                    assert not is_relaxed(problem, state)
                    assert answers.bound[row] == pytest.approx(best, rel=1e-7)
                elif answers.status[row] == CUT:
                    assert answers.bound[row] >= cutoff
                else:
                    assert is_relaxed(problem, state)


@each_bound
@each_loss
def test_what_children_inherit_holds(bound, loss):
    for problem in all_problems(loss):
        if not served(bound, problem):
            continue
        states = make_states(problem)
        answers = call(bound, problem, states, force_quit=False).answers
        for row, state in enumerate(states):
            if not is_relaxed(problem, state):
                continue
            for j in np.flatnonzero(state == FREE):
                for value, inherited in ((IN, answers.bound_in), (OUT, answers.bound_out)):
                    child = state.copy()
                    child[j] = value
                    assert inherited[row, j] <= brute_force(problem, child) + 1e-9
                    assert inherited[row, j] >= answers.bound[row]


@pytest.mark.smoke
@each_bound
@each_loss
def test_proofs_reproduce_the_bound(bound, loss):
    for problem in all_problems(loss):
        if not served(bound, problem):
            continue
        states = make_states(problem)
        result = call(bound, problem, states, force_quit=False)
        for row, state in enumerate(states):
            claimed, shown = result.answers.bound[row], proven_bound(problem, state, result.proofs[row])
            # The claim may lie below by the allowance for rounding, never above by more than the test's own rounding.
            assert shown == pytest.approx(claimed, rel=1e-7, abs=1e-7)
            assert claimed <= shown + 1e-11 * (1.0 + abs(shown))
            if is_relaxed(problem, state):
                self_made = isinstance(result.proofs[row], DualPoint)
                assert self_made == (bound.name in ("pdal", "supergradient"))
            else:
                assert isinstance(result.proofs[row], ModelPoint)


def test_child_proofs_reproduce_what_children_inherit():
    for bound in (*ITERATIVE, FitBound()):
        problem = make_problem(0, "quadratic")
        states = make_states(problem)
        result = call(bound, problem, states, force_quit=False)
        for row, state in enumerate(states):
            if not is_relaxed(problem, state):
                continue
            for j in np.flatnonzero(state == FREE):
                for included, inherited in ((True, result.answers.bound_in), (False, result.answers.bound_out)):
                    child, proof = state.copy(), result.child_proof(row, j, included)
                    child[j] = IN if included else OUT
                    if isinstance(proof, FitPoint):
                        shown = value_on(problem, tuple(np.flatnonzero(child != OUT).tolist()))
                    else:
                        shown = proven_bound(problem, child, proof)
                    assert inherited[row, j] <= shown + 1e-11 * (1.0 + abs(shown))


def test_the_fit_without_a_ridge():
    for problem in (make_problem(4, "quadratic", lam=0.0), make_problem(5, "quadratic", n=5, lam=0.0, awkward=True)):
        states = make_states(problem)
        result = call(FitBound(), problem, states, force_quit=False)
        for row, state in enumerate(states):
            assert result.answers.bound[row] <= brute_force(problem, state) + 1e-9
            fit = value_on(problem, tuple(np.flatnonzero(state != OUT).tolist()))
            if is_relaxed(problem, state):
                assert result.answers.bound[row] == pytest.approx(fit, rel=1e-4, abs=1e-4)
            assert isinstance(result.proofs[row], FitPoint)


def test_the_bound_at_a_model_equals_the_formula():
    for loss in LOSSES:
        for problem in all_problems(loss):
            x = np.random.default_rng(6).standard_normal(problem.d)
            for state in make_states(problem):
                shown = plain_bound(problem, state, plain_gradient(problem, x))
                assert bound_at_model(problem, state, x) == pytest.approx(shown, rel=1e-9)
                assert bound_at_model(problem, state, x) <= shown + 1e-12 * abs(shown)


# Strength


@pytest.mark.parametrize("bound", CONVERGED, ids=lambda bound: bound.name)
@each_loss
def test_the_relaxation_is_solved(bound, loss):
    for problem in all_problems(loss):
        states = make_states(problem)
        expected, found = converged(CvxpyBound(), problem, states), converged(bound, problem, states)
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize(("bound", "loose"), [(PrimalDualBound(), 0.01), (SupergradientBound(), 0.1)])
@each_loss
def test_the_defaults_come_near_the_relaxation(bound, loose, loss):
    # On badly scaled data the paper's stopping rule may end the iteration far below the maximum.
    for problem in (make_problem(0, loss), make_problem(3, loss, n=20, d=6, k=1, lam=0.5)):
        states = make_states(problem)
        expected, found = converged(CvxpyBound(), problem, states), converged(bound, problem, states)
        assert np.all(found >= expected - loose * np.abs(expected) - 1e-9)


@each_loss
def test_relaxed_models_agree_with_the_oracle(loss):
    problem = make_problem(0, loss)
    expected = call(CvxpyBound(), problem, [root(problem)]).answers
    for bound in CONVERGED:
        answers = call(bound, problem, [root(problem)]).answers
        np.testing.assert_allclose(answers.x, expected.x, atol=1e-3)
        np.testing.assert_allclose(answers.indicator, expected.indicator, atol=1e-2)
        assert set(answers.support[0]) == set(expected.support[0])
