"""The closers every search has: bound regions, and divide what is open in the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from exactsel.closers.base import RegionSolver, Task
from exactsel.closers.visit import Visitor
from exactsel.enumeration.work_budget import WorkBudget
from exactsel.kernels.node import FREE, OUT
from exactsel.nodes.branching import Branching
from exactsel.nodes.node import Node
from exactsel.nodes.regions import NodeDivided, NodeKept, Region, RoundWork, constrained, inherit
from exactsel.nodes.trees import Tree
from exactsel.problem.interface import SubsetProblem
from exactsel.types import StateArray


@dataclass(frozen=True)
class BoundRegions(RegionSolver):
    """Bound the regions of open tasks in one call."""

    visitor: Visitor

    def close(self, tasks: Sequence[Task], work: RoundWork, work_budget: WorkBudget) -> None:
        """Settles nothing; regions come back closed, or bounded."""
        open_tasks = [task for task in tasks if not task.walk_used and task.bounds is None]
        visited = self.visitor.visit([task.region for task in open_tasks], work) if open_tasks else []
        for task, (region, bounds) in zip(open_tasks, visited, strict=True):
            task.region, task.bounds = region, bounds


@dataclass(frozen=True)
class Divide(RegionSolver):
    """Keep what is closed, and split the rest: the last closer, which settles all that is left."""

    problem: SubsetProblem
    tree: Tree
    branching: Branching
    cutoff: Callable[[float], float]

    def close(self, tasks: Sequence[Task], work: RoundWork, work_budget: WorkBudget) -> None:
        """Settle every task."""
        cutoff = self.cutoff(work.upper)
        for task in tasks:
            walk = task.walk
            # A better model may lower the cut-off below what is known of the region: its own bound closes it then,
            # which is more than the walk has shown.
            if walk is not None and task.walk_used and task.result_of is not None and not task.region.bound >= cutoff:
                task.outcome = task.result_of(task, walk, cutoff)
                continue
            unused = None if not task.walk_tried else 0 if walk is None else walk.nodes
            outcome = self._divide(task, cutoff, unused)
            task.outcome = outcome if walk is None else replace(outcome, unused_work=walk.work)

    def _divide(self, task: Task, cutoff: float, unused_walk: int | None) -> NodeKept | NodeDivided:
        """Split an open region; children start from the better of its bound and what its dual vector says of them."""
        node, region, bounds = task.node, task.region, task.bounds
        if region.closed is None and region.bound >= cutoff:
            region = replace(region, closed="incumbent")
        if region.closed is not None or bounds is None:
            return NodeKept(node, region, unused_walk)
        view = bounds.view(self._to_divide(region.state))
        chosen = self.branching.select(view)
        column = int(view.candidates[chosen])
        split = self.tree.split(region.state, column, self.problem.k)
        children = tuple(
            constrained(inherit(region, state, view.bound_in[chosen], bounds.proof(column, True), cutoff), self.problem)
            for state in split.children
        )
        rest = inherit(region, split.rest, view.bound_out[chosen], bounds.proof(column, False), cutoff)
        rest = constrained(rest, self.problem)
        return NodeDivided(node, region, split.columns, children, rest, unused_walk)

    def _to_divide(self, state: StateArray) -> StateArray:
        """The region as the branching rule sees it: only with the candidates it may choose."""
        among = self.problem.units.to_divide(state, self.problem.k)
        if among is None:
            return state
        seen = state.copy()
        seen[(state == FREE) & ~among] = OUT
        return seen


@dataclass(frozen=True)
class EagerVisit(RegionSolver):
    """The paper's order: split a bounded node and bound its children one after the other."""

    problem: SubsetProblem
    tree: Tree
    visitor: Visitor

    def close(self, tasks: Sequence[Task], work: RoundWork, work_budget: WorkBudget) -> None:
        """Settle every task."""
        for task in tasks:
            task.outcome = self._expanded(task.node, task.region, work)

    def _expanded(self, node: Node, region: Region, work: RoundWork) -> NodeKept | NodeDivided:
        if not node.tight:
            return NodeKept(node, self._visit_one(region, work))
        split = self.tree.split(node.state, -1, self.problem.k)
        children = tuple(self._visit_one(replace(region, state=state, tight=False), work) for state in split.children)
        rest = replace(children[-1], state=split.rest, visits=(), closed="contained")
        return NodeDivided(node, region, split.columns, children, rest)

    def _visit_one(self, region: Region, work: RoundWork) -> Region:
        return self.visitor.visit([region], work)[0][0]
