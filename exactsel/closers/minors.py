"""Leave nodes with many columns and few places to the walker that counts, before they are bounded or divided.

A region that has been begun is one node, marked as bounded already (``tight``) so that no bound call is wasted on it:
it is counted on at once when its turn comes. What a count gives up becomes nodes like all others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from exactsel.bounds.witness import FitPoint
from exactsel.closers.base import RegionSolver, Task
from exactsel.closers.visit import Interrupted
from exactsel.enumeration.base import EnumerationResult
from exactsel.enumeration.minors import MULTIPLICATIONS, MinorTest
from exactsel.enumeration.minors_parts import Stopped
from exactsel.enumeration.work_budget import WorkBudget
from exactsel.kernels.node import IN
from exactsel.nodes.node import ROOT_ID, Node
from exactsel.nodes.regions import NodeKept, Region, RoundWork, SubtreeResult, constrained, inherit
from exactsel.nodes.subtree import walked
from exactsel.nodes.tolerance import Tolerance
from exactsel.problem.interface import SubsetProblem
from exactsel.problem.restrictions import proposed
from exactsel.types import StateArray


@dataclass(frozen=True)
class _Counting(RegionSolver):
    """What both have."""

    problem: SubsetProblem
    tolerance: Tolerance
    cutoff: Callable[[float], float]
    """The bound at which a region is closed, given the best objective known."""
    counter: MinorTest
    name = "counted"
    label = "counting"
    status = "counted"

    def begun(self, node: Node) -> bool:
        """Whether a count continues at this node."""
        return node.tight and node.id != ROOT_ID

    def fraction(self, state: StateArray, walk: EnumerationResult) -> float:
        """The part of all there is to be counted that is done with a call."""
        has_rest = len(walk.open_states) > 0 and is_rest(state, walk, 0)
        return self.counter.fraction(walk.open_states[0]) if has_rest else 1.0

    def _counted(self, node: Node, region: Region, work: RoundWork, at_once: bool) -> NodeKept | SubtreeResult | None:
        """What a count makes of a region; None where it is not for the counter, or rounding is too large."""
        if not self.counter.takes(region.state, at_once):
            return None
        began = time.perf_counter()
        try:
            walk = self.counter.explore(region.state, work.upper, self.tolerance.absolute)
        except Stopped:
            raise Interrupted from None
        finally:
            work.seconds.subtrees += time.perf_counter() - began
        if walk is None:
            return None
        work.offer(proposed(self.problem, walk.support))
        cutoff = self.cutoff(work.upper)
        if region.bound >= cutoff:  # as it may be once a better model has been found: more than the count has shown
            return NodeKept(node, replace(region, closed="incumbent"))
        children = tuple(
            constrained(
                replace(inherit(region, state, 0.0, FitPoint(), cutoff), tight=is_rest(region.state, walk, i)),
                self.problem,
            )
            for i, state in enumerate(walk.open_states)
        )
        fraction = self.fraction(region.state, walk)
        result = walked(node, region, walk, children, self.name, valid_for=self.counter.valid_for, fraction=fraction)
        return replace(result, work=self._done(region.state, walk))

    def _done(self, state: StateArray, walk: EnumerationResult) -> float:
        """Multiplications, about, of a call."""
        has_rest = len(walk.open_states) > 0 and is_rest(state, walk, 0)
        rest_work = self.counter.work(walk.open_states[0]) if has_rest else 0.0
        return MULTIPLICATIONS * max(0.0, self.counter.work(state) - rest_work)


@dataclass(frozen=True)
class TestMinorsBegun(_Counting):
    """Count the nodes that have been begun, a root that is soon counted, and all once that is due."""

    words = "sets of features counted, all of them if there is time"

    def close(self, tasks: Sequence[Task], work: RoundWork, work_budget: WorkBudget) -> None:
        """Settle what is counted."""
        due = self.counter.due(
            0.0 if work_budget.walks is None else work_budget.walks.useful + work_budget.walks.wasted
        )
        for task in tasks:
            in_progress = self.begun(task.node) or due
            if in_progress or (task.node.id == ROOT_ID and self.counter.first):
                task.outcome = self._counted(task.node, task.region, work, at_once=not in_progress)

    def alone(self, nodes: Sequence[Node]) -> bool:
        """A count divides itself."""
        return any(self.begun(node) for node in nodes)


@dataclass(frozen=True)
class TestMinorsOfRoot(_Counting):
    """Count a root that has been bounded, and is open still."""

    def close(self, tasks: Sequence[Task], work: RoundWork, work_budget: WorkBudget) -> None:
        """Settle it."""
        for task in tasks if self.counter.first else ():
            region = task.region
            if task.node.id == ROOT_ID and region.closed is None and region.bound < self.cutoff(work.upper):
                task.outcome = self._counted(task.node, region, work, at_once=False)


def is_rest(state: StateArray, walk: EnumerationResult, i: int) -> bool:
    """Whether a region left open is what has not been counted yet: the first one, with no more columns in."""
    return i == 0 and np.count_nonzero(walk.open_states[0] == IN) == np.count_nonzero(state == IN)
