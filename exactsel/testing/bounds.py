"""Conformance checks for bounds: above all, no bound may lie above the best model of a region."""

from __future__ import annotations

import numpy as np

from exactsel._jit import without_compiling
from exactsel.bounds.base import BoundOptions, BoundSolver, PreparedBound, Tightened, never_stop
from exactsel.bounds.plug_in import bound_solver
from exactsel.errors import UnsupportedError
from exactsel.kernels.node import CUT, FREE, ILL_CONDITIONED, IN, OUT, RELAXED, SOLVED, UNFINISHED
from exactsel.problem.interface import SubsetProblem
from exactsel.solving.api import solve
from exactsel.testing.cases import Truth, above, loaded, regions, small_problems
from exactsel.types import StateArray

KNOWN = (RELAXED, CUT, SOLVED, UNFINISHED, ILL_CONDITIONED)


@without_compiling()
def check_bound(bound: object, *, nodes: int = 12, seed: int = 0) -> None:
    """Assert that a bound keeps its contract on small awkward problems of its family.

    It may refuse a problem with :class:`exactsel.errors.UnsupportedError` and a sentence, but not all of them. Where it
    serves, no bound of a node or of a child lies above the region's best model, found by trying all; answers do not
    depend on the order of the nodes or the number of threads; what it hands to children is accepted; it returns
    something valid after a stop; and a search with it finds the optimum.

    Parameters
    ----------
    bound : str or BoundSolver
        A registered name, or an object.
    nodes : int
        Nodes to try for each problem.
    seed : int
        Seed of the nodes.
    """
    solver = bound_solver(loaded("bounds", bound))
    served = 0
    for label, problem in small_problems(solver.needs):
        where = f"{solver.name} on {label}"
        try:
            prepared = solver.prepare(problem, BoundOptions())
        except UnsupportedError as refusal:
            sentence = str(refusal)
            assert sentence, f"{where}: refused without a sentence"
            continue
        served += 1
        truth, states = Truth(problem), np.array(regions(problem, nodes, seed))
        upper = problem.fit([]).value
        answer = prepared.tighten(states, [None] * nodes, np.inf, upper)
        _check_sound(answer, states, problem, truth, where)
        _check_pure(solver, problem, states, answer, upper, where)
        _check_children(prepared, states, answer, problem, truth, where)
        _check_ends(solver, problem, states, truth, where)
        best = truth.best(states[0])
        result = solve(problem, bound=solver, signals=())
        assert not above(result.lower, best), f"{where}: the search's lower bound {result.lower} is above {best}"
        assert result.reached, f"{where}: the search ended with {result.termination.value}, gap {result.gap:.3g}"
        assert not above(best, result.upper), f"{where}: the search found {result.upper}, below the best, {best}"
    assert served, f"{solver.name} refused every problem"


def _check_sound(answer: Tightened, states: StateArray, problem: SubsetProblem, truth: Truth, where: str) -> None:
    """No bound above the truth, and a suggested model that belongs to the node."""
    answers = answer.answers
    assert len(answer.proofs) == len(answer.warm) == len(states), f"{where}: one proof and one warm start per node"
    for row, state in enumerate(states):
        best, status = truth.best(state), int(answers.status[row])
        here = f"{where}, node {state.tolist()}"
        assert status in KNOWN, f"{here}: there is no status {status}"
        assert not above(answers.bound[row], best), f"{here}: bound {answers.bound[row]}, but a model has {best}"
        chosen = [int(j) for j in answers.support[row] if j >= 0]
        assert len({*chosen}) == len(chosen) <= problem.k, f"{here}: the suggested model {chosen} is no selection"
        assert all(state[j] != OUT for j in chosen), f"{here}: the suggested model {chosen} uses excluded columns"
        if status == SOLVED:
            value = problem.fit(chosen).value
            assert not above(value, best), f"{here}: solved, but its model has {value}, and the best {best}"
            continue
        for j in np.flatnonzero(state == FREE):
            for values, decision in ((answers.bound_in, IN), (answers.bound_out, OUT)):
                child = state.copy()
                child[j] = decision
                worth = truth.best(child)
                word = "in" if decision == IN else "out"
                assert not above(values[row, j], worth), (
                    f"{here}: with column {j} {word} the bound is {values[row, j]}, but a model has {worth}"
                )


def _check_pure(
    solver: BoundSolver, problem: SubsetProblem, states: StateArray, answer: Tightened, upper: float, where: str
) -> None:
    """Neither order nor threads change an answer, and the states are left alone."""
    before = states.copy()
    for threads in (1, 2):
        prepared = solver.prepare(problem, BoundOptions(threads=threads))
        turned = prepared.tighten(states[::-1].copy(), [None] * len(states), np.inf, upper).answers
        for name in ("bound", "status", "bound_in", "bound_out"):
            same = np.array_equal(getattr(turned, name)[::-1], getattr(answer.answers, name))
            assert same, f"{where}: {name} depends on the order of the nodes or on the threads"
    assert np.array_equal(before, states), f"{where}: changed the states"


def _check_children(
    prepared: PreparedBound, states: StateArray, answer: Tightened, problem: SubsetProblem, truth: Truth, where: str
) -> None:
    """What a call leaves behind serves both children."""
    children, warm, parent_bounds = [], [], []
    for row, state in enumerate(states):
        free = np.flatnonzero(state == FREE)
        if int(answer.answers.status[row]) != RELAXED or not free.size or np.count_nonzero(state == IN) >= problem.k:
            continue
        for decision in (IN, OUT):
            child = state.copy()
            child[free[0]] = decision
            children.append(child)
            warm.append(answer.warm[row])
            parent_bounds.append(float(answer.answers.bound[row]))
    if children:
        again = prepared.tighten(np.array(children), warm, np.inf, problem.fit([]).value, np.array(parent_bounds))
        _check_sound(again, np.array(children), problem, truth, f"{where}, warm")


def _check_ends(solver: BoundSolver, problem: SubsetProblem, states: StateArray, truth: Truth, where: str) -> None:
    """A call that is cut off, or stopped, returns what is true so far."""
    best = truth.best(states[0])
    cutoff = 0.5 * best
    cut = solver.prepare(problem, BoundOptions()).tighten(states, [None] * len(states), cutoff, best)
    _check_sound(cut, states, problem, truth, f"{where}, cut off")
    early = cut.answers.bound[cut.answers.status == CUT]
    assert np.all(early >= cutoff), f"{where}: a node counts as cut off below the cut-off"
    flag = never_stop()
    flag[0] = True
    stopped = solver.prepare(problem, BoundOptions(stop=flag)).tighten(states, [None] * len(states), np.inf, best)
    _check_sound(stopped, states, problem, truth, f"{where}, told to stop")
