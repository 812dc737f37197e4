"""One round's work: bound some nodes, fix columns, round, split.

:meth:`Expander.expand` is a pure function of (problem, nodes, upper, effort, settings): the same arguments bring the
same outcome however often and to whomever they are given, so a thread, a process or a resumed run may do it, twice if
need be. The engine commits what it returns. All an expander keeps are objectives of supports (refits.py), to save time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from exactsel.bounds.base import PreparedBound
from exactsel.kernels.node import FREE, OUT
from exactsel.problem.interface import SubsetProblem
from exactsel.search.below import SubtreeKernels, walked
from exactsel.search.branching import Branching
from exactsel.search.counted import Counting
from exactsel.search.listed import all_counted, root_listed
from exactsel.search.node import Node
from exactsel.search.refits import Refits
from exactsel.search.regions import (
    NodeBounds,
    NodeDivided,
    NodeKept,
    NodeWalked,
    Outcome,
    Region,
    Round,
    RoundWork,
    as_region,
    constrained,
    inherit,
)
from exactsel.search.tolerance import Tolerance
from exactsel.search.trees import Tree
from exactsel.search.visit import Interrupted, Visited, Visitor
from exactsel.types import FloatArray, StateArray
from exactsel.walks.cell_counting import CellCounter
from exactsel.walks.closed_form import WalkResult
from exactsel.walks.effort import Effort
from exactsel.walks.listing import Lister
from exactsel.walks.relaxation import Subsearcher
from exactsel.walks.walker import Walker
from exactsel.walks.wide import CountingWalker

__all__ = ["Expander", "Interrupted"]


class Expander:
    """Everything :meth:`expand` needs besides nodes and upper, fixed for a whole search."""

    def __init__(
        self,
        problem: SubsetProblem,
        tree: Tree,
        branching: Branching,
        bound: PreparedBound,
        tolerance: Tolerance,
        threads: int = 1,
        walker: Walker | None = None,
        subsearcher: Subsearcher | None = None,
        counter: CountingWalker | None = None,
        lister: Lister | None = None,
        cells: CellCounter | None = None,
    ) -> None:
        self.problem = problem
        self.tree = tree
        self.branching = branching
        self.tolerance = tolerance
        self.threads = threads
        self.walker = walker
        self.subsearcher = subsearcher
        self.counter = counter
        self.lister = lister
        self.cells = cells
        self._visitor = Visitor(problem, bound, Refits(problem, threads), tree.fixes, self.cutoff)
        self._kernels = SubtreeKernels(problem, tolerance, self.cutoff, walker, subsearcher)
        self._counting = Counting(problem, tolerance, self.cutoff, counter)

    @property
    def walker_curvature(self) -> FloatArray | None:
        """The curvature subtrees are walked with, if any."""
        return None if self.walker is None else self.walker.curvature

    @property
    def walker_scope(self) -> str:
        """The restriction, in words, under which walks of subtrees hold."""
        walker = self.walker or self.counter
        return "" if walker is None else walker.scope

    def counted(self, outcome: NodeWalked) -> float | None:
        """The part of all there is to be counted that is done once a count is committed; None for other walks."""
        return self._counting.fraction(outcome)

    def expected_work(self, nodes: Sequence[Node], effort: Effort) -> FloatArray:
        """About the work there is below each node (m,), where that differs much; zero where nothing is known of it."""
        return self._kernels.expected(nodes, effort)

    def counts(self, nodes: Sequence[Node]) -> bool:
        """Whether a count goes on at one of the nodes."""
        return any(self._counting.begun(node) for node in nodes)

    def cutoff(self, upper: float) -> float:
        """The bound at which a region is discarded."""
        return upper if self.tree.prunes_at_upper else upper - self.tolerance.absolute(upper)

    def expand(self, nodes: Sequence[Node], upper: float, effort: Effort | None = None) -> Round:
        """Bound and split the nodes; :class:`Interrupted` when told to stop midway.

        ``effort``, what the search has spent so far, says whether subtrees are left to the kernels.
        """
        work, effort = RoundWork(upper), effort or Effort()
        if self.tree.eager:
            return work.done([self._expand_eagerly(node, work) for node in nodes])
        outcomes: dict[int, Outcome] = {}
        outcomes.update(root_listed(self.lister, nodes, work) or all_counted(self.cells, nodes, work, effort))
        nodes, asked = [node for node in nodes if node.id not in outcomes], nodes
        outcomes.update(self._counting.at_once(nodes, work, effort))
        uncounted = [node for node in nodes if node.id not in outcomes]
        outcomes.update(self._kernels.search(uncounted, work, effort))
        left = [node for node in nodes if node.id not in outcomes]
        if left:
            outcomes.update(zip((node.id for node in left), self._expand_here(left, work, effort), strict=True))
        return work.done(outcomes[node.id] for node in asked)

    def _expand_here(self, nodes: Sequence[Node], work: RoundWork, effort: Effort) -> list[Outcome]:
        """Walk the subtrees of some nodes, bound the others in one call, walk some of those and divide the rest."""
        begun: list[Visited] = [(as_region(node), None) for node in nodes]
        walks = self._kernels.walk([region for region, _ in begun], work, effort, bounded=False)
        worth = {i for i, walk in walks.items() if self._used(begun[i][0], walk)}
        # What a walk of the root leaves open would have to do without the root's bound: that comes first.
        used = {i for i in worth if nodes[i].parent >= 0 or cast(WalkResult, walks[i]).finished}
        left = [i for i in range(len(nodes)) if i not in used]
        visited = self._visitor.visit([begun[i][0] for i in left], work) if left else []
        for i, found in zip(left, visited, strict=True):
            begun[i] = found
        used |= {i for i in worth if begun[i][0].closed is None and not begun[i][0].fixings}
        untried = [i for i in left if i not in walks]
        later = self._kernels.walk([begun[i][0] for i in untried], work, effort, bounded=True)
        walks |= {untried[row]: walk for row, walk in later.items()}
        used |= {untried[row] for row, walk in later.items() if self._used(begun[untried[row]][0], walk)}
        cutoff = self.cutoff(work.upper)
        outcomes: list[Outcome] = []
        for i, (node, (region, bounds)) in enumerate(zip(nodes, begun, strict=True)):
            counted = self._counting.after_visit(node, region, work)
            if counted is not None:
                outcomes.append(counted)
                continue
            walk = walks.get(i)
            # A better model may lower the cut-off below what is known of the region: its own bound closes it then,
            # which is more than the walk has shown.
            if walk is not None and i in used and not region.bound >= cutoff:
                outcomes.append(walked(node, region, walk, cutoff))
                continue
            unused = None if i not in walks else 0 if walk is None else walk.nodes
            outcome = self._divide(node, region, bounds, cutoff, unused)
            outcomes.append(outcome if walk is None else replace(outcome, unused_work=walk.work))
        return outcomes

    def _used(self, region: Region, walk: WalkResult | None) -> bool:
        return walk is not None and self._kernels.worth_keeping(region, walk)

    def _divide(
        self, node: Node, region: Region, bounds: NodeBounds | None, cutoff: float, unused_walk: int | None
    ) -> NodeKept | NodeDivided:
        """Split an open region; children start from the better of its bound and what its dual vector says of them."""
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

    def _expand_eagerly(self, node: Node, work: RoundWork) -> NodeKept | NodeDivided:
        """The paper's order: split a bounded node and bound its children one after the other."""
        region = as_region(node)
        if not node.tight:
            return NodeKept(node, self._visit_one(region, work))
        split = self.tree.split(node.state, -1, self.problem.k)
        children = tuple(self._visit_one(replace(region, state=state, tight=False), work) for state in split.children)
        rest = replace(children[-1], state=split.rest, visits=(), closed="contained")
        return NodeDivided(node, region, split.columns, children, rest)

    def _visit_one(self, region: Region, work: RoundWork) -> Region:
        return self._visitor.visit([region], work)[0][0]
