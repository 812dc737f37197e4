"""Islands of Pareto optimisation: what a leg is, what is exchanged, and that processes change nothing."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from exactsel import ColumnSubsetProblem, Problem
from exactsel.errors import InputError, UnsupportedError
from exactsel.testing import check_heuristic
from exactsel_heuristics import _island_legs
from exactsel_heuristics._island_legs import Leg, LegProcesses, run_leg
from exactsel_heuristics._pareto_tasks import regression_task
from exactsel_heuristics.base import Context
from exactsel_heuristics.islands import IslandsOfParetoOptimization

SMALL = IslandsOfParetoOptimization(islands=3, exchange=40, iterations=150)


def problem_of(loss="quadratic", seed=3, d=12, k=3):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((30, d)) + rng.standard_normal((30, 1))
    y = A[:, 0] - A[:, 1] + 0.5 * A[:, 2] + rng.standard_normal(30)
    return Problem(A, np.sign(y) if loss == "logistic" else y, k, lam=0.1, loss=loss)


def test_islands_of_several_processors_pass_the_conformance_kit():
    check_heuristic(IslandsOfParetoOptimization(islands=2, exchange=10, iterations=20, processors=2))


@pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic"])
def test_processes_change_nothing(loss):
    problem = problem_of(loss)
    here = SMALL.run(problem, Context(seed=2))
    assert replace(SMALL, workers=2).run(problem, Context(seed=2)) == here
    assert SMALL.run(problem, Context(seed=4)) != here


def test_a_process_that_is_killed():
    problem, killed = problem_of(), []
    started = LegProcesses._keep_busy

    def kill(helper, *busy):
        if not killed and helper._process is not None:
            killed.append(helper._process.pid)
            os.kill(killed[0], signal.SIGKILL)
        started(helper, *busy)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LegProcesses, "_keep_busy", staticmethod(kill))
        there = replace(SMALL, workers=1).run(problem, Context(seed=2))
    assert there == SMALL.run(problem, Context(seed=2))
    assert killed


def test_legs_nobody_can_run_elsewhere_are_run_here(monkeypatch):
    problem = problem_of()
    here = SMALL.run(problem, Context(seed=2))
    monkeypatch.setattr(_island_legs.sys, "executable", "/nonexistent/python")
    assert replace(SMALL, workers=2).run(problem, Context(seed=2)) == here


def test_the_optimum_is_found_and_exchanged():
    problem = problem_of(d=9)
    best = min(problem.fit(columns).value for columns in combinations(range(9), 3))
    proposal = IslandsOfParetoOptimization(islands=3, exchange=100, iterations=600).run(problem, Context(seed=1))
    assert problem.fit(proposal.support).value == pytest.approx(best, rel=1e-12)
    assert len(proposal.support) <= 3
    assert proposal.curve[-1][1] == pytest.approx(best, rel=1e-9)
    assert [value for _, value in proposal.curve] == sorted({value for _, value in proposal.curve}, reverse=True)


def test_each_island_begins_with_what_it_has_and_what_the_one_before_it_has():
    legs = SMALL._legs(7, 2, 40, [((1,),), ((2,), (1,)), ((3, 4),)])
    assert [leg.supports for leg in legs] == [((1,), (3, 4)), ((2,), (1,)), ((3, 4), (2,), (1,))]
    assert len({leg.seed for leg in legs} | {leg.seed for leg in SMALL._legs(7, 3, 40, [()] * 3)}) == 6
    assert legs == SMALL._legs(7, 2, 40, [((1,),), ((2,), (1,)), ((3, 4),)])


def test_a_leg_begins_with_its_supports():
    problem = problem_of()
    task, best = regression_task(problem), (0, 1, 2)
    outcome = run_leg(task, Leg(1, 1, 1, None, (best,)), Context())
    assert dict(outcome.archive)[best] == pytest.approx(problem.fit(best).value)


def test_told_to_stop():
    stopped = replace(SMALL, workers=2).run(problem_of(), Context(should_stop=lambda: True))
    assert (stopped.support, stopped.evaluations) == ((), 0)


def test_with_a_limit_on_its_work_it_begins_with_the_supports_given():
    problem = problem_of()
    task = regression_task(problem)
    context = Context(seed=1, supports=((0, 1, 2),), work=12 * task.work)
    proposal = IslandsOfParetoOptimization(islands=2, workers=2).run(problem, context)
    assert problem.fit(proposal.support).value <= problem.fit((0, 1, 2)).value + 1e-12


def test_what_is_refused():
    with pytest.raises(InputError, match="islands of the method 'islands' is 0"):
        IslandsOfParetoOptimization(islands=0)
    with pytest.raises(InputError, match="exchange of the method 'islands' is 0"):
        IslandsOfParetoOptimization(exchange=0)
    with pytest.raises(UnsupportedError, match="predicts a target"):
        SMALL.run(ColumnSubsetProblem(np.eye(4), 2), Context())
    assert SMALL.run(problem_of().replace(k=0), Context()).support == ()
