"""Conformance checks for closers: they lose no model, claim no bound above one, and what they say can be proven."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from exactsel._jit import without_compiling
from exactsel.bounds.base import never_stop
from exactsel.bounds.witness import InfimumPoint
from exactsel.closers.base import Closer, CloserOptions, RegionSolver, Task
from exactsel.enumeration.work_budget import WorkBudget
from exactsel.errors import InvariantError, UnsupportedError
from exactsel.kernels.node import FREE, IN
from exactsel.nodes.node import Node
from exactsel.nodes.regions import NodeDivided, Outcome, Region, RoundWork, SubtreeResult, as_region
from exactsel.nodes.subtree import moves_of
from exactsel.nodes.tolerance import Tolerance
from exactsel.problem.capabilities import Capability
from exactsel.problem.interface import SubsetProblem
from exactsel.proofs.verify import verify
from exactsel.solving.api import solve
from exactsel.testing.cases import Truth, above, loaded, regions, small_problems


@without_compiling()
def check_closer(closer: str | Closer, *, nodes: int = 12, seed: int = 0) -> None:
    """Assert that a closer keeps its contract on small awkward problems.

    It may refuse a problem with :class:`exactsel.errors.UnsupportedError` and a sentence, and leave regions to others,
    but it must settle some. The parts that it makes of a region divide it. No bound lies above the best model of its
    region, found by trying all. Better models are offered: a part of one model with a bound of its own is known. The
    same nodes bring the same outcome. A search in which each bound is recomputed finds the optimum, and its proof is
    verified.

    Parameters
    ----------
    closer : str or Closer
        A registered name, or an object.
    nodes : int
        Regions to try for each problem.
    seed : int
        Seed of the regions.
    """
    plug_in: Closer = loaded("closers", closer)
    served = settled = 0
    for label, problem in small_problems(Capability(0)):
        where = f"{plug_in.name} on {label}"
        cutoff = _Cutoff(problem)
        try:
            solver = plug_in.prepare(problem, CloserOptions(cutoff.tolerance, cutoff, 1, never_stop()))
        except UnsupportedError as refusal:
            sentence = str(refusal)
            assert sentence, f"{where}: refused without a sentence"
            continue
        served += 1
        assert solver.name == plug_in.name, f"{where}: its results are named '{solver.name}'"
        truth = Truth(problem)
        for upper in (problem.fit([]).value, truth.best(problem.root_state)):
            settled += _check_regions(solver, problem, truth, cutoff, _nodes(problem, nodes, seed), upper, where)
        _check_search(plug_in, problem, truth.best(problem.root_state), where)
    assert served, f"{plug_in.name} refused every problem"
    assert settled, f"{plug_in.name} settled none of the regions; it must settle some, or it is of no use"


class _Cutoff:
    def __init__(self, problem: SubsetProblem) -> None:
        self.tolerance = Tolerance().of(problem)

    def __call__(self, upper: float) -> float:
        return upper - self.tolerance.absolute(upper)


def _nodes(problem: SubsetProblem, count: int, seed: int) -> list[Node]:
    """The root, and regions that a search may meet below it."""
    infimum = problem.infimum, InfimumPoint()
    states = regions(problem, count, seed)
    return [Node(i, 0 if i else -1, min(i, 1), state, *infimum) for i, state in enumerate(states)]


def _check_regions(
    solver: RegionSolver, problem: SubsetProblem, truth: Truth, cutoff: _Cutoff, nodes: list[Node], upper: float,
    where: str,
) -> int:  # fmt: skip
    """How many of the nodes it settled, all of them as it should."""
    work, tasks = _closed(solver, nodes, upper)
    again = _closed(solver, nodes, upper)[1]
    for fit in work.models:
        value = problem.fit(fit.support).value
        said = f"{where}: offered the model {fit.support} with {fit.value}"
        assert not above(fit.value, value), f"{said}, but it has {value}"
        assert not above(value, fit.value), f"{said}, but it has {value}"
    for task, second in zip(tasks, again, strict=True):
        here = f"{where}, node {task.node.state.tolist()}"
        assert _plain(task) == _plain(second), f"{here}: a second call brought another outcome"
        if isinstance(task.outcome, SubtreeResult):
            _check_division(task.outcome, here)
            least = task.outcome.min_pruned_bound
            if least < np.inf:
                best = truth.best(task.outcome.region.state)
                assert not above(least, best), f"{here}: closed the rest at {least}, but a model has {best}"
        for region in _regions(task):
            best = truth.best(region.state)
            said = f"{here}: the bound of {region.state.tolist()} is {region.bound}"
            assert not above(region.bound, best), f"{said}, but a model has {best}"
            early = region.closed is not None and region.bound < cutoff(work.upper)
            assert not early, f"{said}, and it is closed, but the cut-off is {cutoff(work.upper)}"
        if isinstance(task.outcome, SubtreeResult):
            _check_offers(task.outcome, problem.k, truth, work.upper, here)
    return sum(task.outcome is not None for task in tasks)


def _closed(solver: RegionSolver, nodes: list[Node], upper: float) -> tuple[RoundWork, list[Task]]:
    work, tasks = RoundWork(upper), [Task(node, as_region(node)) for node in nodes]
    solver.close(tasks, work, WorkBudget())
    return work, tasks


def _check_division(result: SubtreeResult, here: str) -> None:
    decided = result.region.fixings or np.array_equal(result.region.state, result.node.state)
    assert decided, f"{here}: works on another region than the node"
    try:
        moves_of(result)
    except InvariantError as error:
        raise AssertionError(f"{here}: {error}") from None


def _check_offers(result: SubtreeResult, k: int, truth: Truth, upper: float, here: str) -> None:
    """Of a part that is one model, and that has a bound of its own, the closer knows the model: it is no secret."""
    for part in result.children:
        one_model = np.count_nonzero(part.state == IN) >= k or not np.any(part.state == FREE)
        if one_model and part.bound > result.region.bound:
            value = truth.best(part.state)
            assert not above(upper, value), (
                f"{here}: the only model of {part.state.tolist()} has {value}, but the best one offered has {upper}; "
                f"offer each better model that is found"
            )


def _regions(task: Task) -> list[Region]:
    """All that a closer says something of."""
    outcome: Outcome | None = task.outcome
    if outcome is None:
        return [task.region]
    if isinstance(outcome, NodeDivided):
        return [outcome.region, *outcome.children, outcome.rest]
    return [outcome.region, *(outcome.children if isinstance(outcome, SubtreeResult) else ())]


def _plain(task: Task) -> list[object]:
    return [(type(task.outcome), each.state.tobytes(), each.bound, each.closed) for each in _regions(task)]


def _check_search(plug_in: Closer, problem: SubsetProblem, best: float, where: str) -> None:
    """A search from no model, with each bound recomputed and a proof."""
    with tempfile.TemporaryDirectory() as folder:
        proof = Path(folder) / "search.proof"
        try:
            result = solve(
                problem, closer=plug_in, recheck=True, proof=proof, heuristics=(), subtrees=False, signals=(),
                failures=None,
            )  # fmt: skip
        except InvariantError as error:
            raise AssertionError(f"{where}: {error}") from None
        verdict = verify(problem, proof)
    assert not above(result.lower, best), f"{where}: the search's lower bound {result.lower} is above {best}"
    assert not above(best, result.upper), f"{where}: the search found {result.upper}, below the best, {best}"
    assert result.reached, f"{where}: the search ended with a gap of {result.gap:.3g}"
    assert verdict.verified, f"{where}: the proof is rejected: {str(verdict).partition(chr(10))[0]}"
