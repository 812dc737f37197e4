"""Leave what is below nodes to the kernels that can search by themselves, where that promises to pay."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from exactsel.bounds.witness import FitPoint, SplitPoint
from exactsel.kernels.node import FREE, IN
from exactsel.problem.interface import SubsetProblem
from exactsel.search.left_open import LeftOpen
from exactsel.search.node import Node, is_convex
from exactsel.search.regions import NodeSearched, NodeWalked, Region, RoundWork, inherit
from exactsel.search.tolerance import Tolerance
from exactsel.search.visit import Interrupted
from exactsel.types import FloatArray, StateArray
from exactsel.walks.closed_form import WalkResult
from exactsel.walks.effort import MOST_COLUMNS, WORTH_KEEPING, Effort, supports, walk_budget
from exactsel.walks.relaxation import Subsearcher
from exactsel.walks.walker import Walker


@dataclass(frozen=True)
class SubtreeKernels:
    """The kernels that can search by themselves, as far as the problem and the settings allow."""

    problem: SubsetProblem
    tolerance: Tolerance
    cutoff: Callable[[float], float]
    """The bound at which a region is closed, given the best objective known."""
    walker: Walker | None
    subsearcher: Subsearcher | None

    def expected(self, nodes: Sequence[Node], effort: Effort) -> FloatArray:
        """About the work there is below each node (m,), where subtrees are walked; zero where they are not."""
        if self.walker is None or effort.walks is None:
            return np.zeros(len(nodes))
        walks, iterations = effort.walks, _iterations(effort)
        states = np.stack([node.state for node in nodes])
        shapes = np.stack([self.problem.k - np.sum(states == IN, axis=1), np.count_nonzero(states, axis=1)], axis=1)
        kinds, which = np.unique(shapes, axis=0, return_inverse=True)
        each = np.array([walks.expected(places, columns, iterations) for places, columns in kinds.tolist()])
        return np.asarray(each[which.reshape(-1)], dtype=np.float64)

    def search(self, nodes: Sequence[Node], work: RoundWork, effort: Effort) -> dict[int, NodeSearched]:
        """Leave nodes to the relaxation's own kernel, but for convex ones, which are solved with more care; by id."""
        if self.subsearcher is None:
            return {}
        wide = [node for node in nodes if not is_convex(node.state, self.problem.k)]
        budget = effort.subsearch_budget(self.subsearcher.iteration_cost, len(wide)) if wide else 0
        if budget == 0:
            return {}
        began, before = time.perf_counter(), work.upper
        found = self.subsearcher.explore(
            np.stack([node.state for node in wide]), [node.warm for node in wide],
            np.array([node.bound for node in wide]), work.upper, self.tolerance.absolute(work.upper), budget,
            effort.horizon,
        )  # fmt: skip
        if found is None:
            raise Interrupted
        for search in found:
            work.offer(None if search.support is None else self.problem.fit(search.support))
        work.seconds.subtrees += time.perf_counter() - began
        sound = [i for i, search in enumerate(found) if not self._closed_too_soon(search.dropped, before, work.upper)]
        wide, searches = [wide[i] for i in sound], [found[i] for i in sound]
        if not wide:
            return {}
        left = LeftOpen.below(wide, searches, self.cutoff(work.upper))
        return {
            node.id: NodeSearched(node, search, below, below.numbers)
            for node, search, below in zip(wide, searches, left, strict=True)
        }

    def walk(
        self, regions: Sequence[Region], work: RoundWork, effort: Effort, *, bounded: bool
    ) -> dict[int, WalkResult | None]:
        """Walk the subtrees of the open regions for which that promises to pay; by row, None where it was refused.

        ``bounded`` says whether the regions have been bounded: before, only those are walked that need no bound.
        """
        rows = self._worth_walking(regions, self.cutoff(work.upper), effort, bounded)
        if self.walker is None or effort.walks is None or not rows:
            return {}
        began, before = time.perf_counter(), work.upper
        states = np.stack([regions[row].state for row in rows])
        most = effort.walks.work
        nodes = walk_budget(int(np.count_nonzero(states, axis=1).max()), most)
        if effort.left is not None:
            nodes = min(nodes, effort.left // len(rows))
        if nodes == 0:
            return {}
        walks = self.walker.explore(states, work.upper, self.tolerance.absolute(work.upper), nodes, most)
        if walks is None:
            raise Interrupted
        work.seconds.subtrees += time.perf_counter() - began
        for walk in walks:
            work.offer(None if walk is None or walk.support is None else self.problem.fit(walk.support))
        return {
            row: None if walk is not None and self._closed_too_soon(walk.dropped, before, work.upper) else walk
            for row, walk in zip(rows, walks, strict=True)
        }

    def _closed_too_soon(self, dropped: float, before: float, upper: float) -> bool:
        """Whether a kernel closed a region that the tolerance leaves open, now that there is a better model.

        A kernel has the absolute tolerance of the objective known when it began. Where that is relative and the kernel
        finds a much better model, what it closed last may be closed by too much; then the region is left as it was.
        """
        return upper - self.tolerance.absolute(before) <= dropped < self.cutoff(upper)

    def _worth_walking(self, regions: Sequence[Region], cutoff: float, effort: Effort, bounded: bool) -> list[int]:
        walks, k, iterations = effort.walks, self.problem.k, _iterations(effort)
        if self.walker is None or walks is None:
            return []

        # Over hundreds of columns a walk that has only the ridge to close regions with is for counting, where bounds
        # are costly.
        only_costly = self.problem.d > MOST_COLUMNS and self.walker.curvature is None

        def wanted(region: Region) -> bool:
            costly = isinstance(region.warm, SplitPoint)
            if only_costly and not costly:
                return False
            places, columns = k - int(np.count_nonzero(region.state == IN)), int(np.count_nonzero(region.state))
            if bounded:
                short = walks.expected(places, columns, iterations) < effort.divides_from
                return short and walks.wants(places, columns)
            return walks.wants_unbounded(places, columns, costly)

        return [
            row for row, region in enumerate(regions)
            if region.closed is None and region.bound < cutoff and wanted(region)
        ]  # fmt: skip

    def worth_keeping(self, region: Region, walk: WalkResult) -> bool:
        """Whether a walk has dealt with so much of its region that what it left open is better to go on from."""
        if walk.finished:
            return True
        left = sum(self._supports(state) for state in walk.open_states)
        return left <= WORTH_KEEPING * self._supports(region.state)

    def _supports(self, state: StateArray) -> int:
        return supports(self.problem.k - int(np.count_nonzero(state == IN)), int(np.count_nonzero(state == FREE)))


def _iterations(effort: Effort) -> float:
    """Those of a usual bound call."""
    return effort.iterations / max(1, effort.bound_calls)


def walked(node: Node, region: Region, walk: WalkResult, cutoff: float) -> NodeWalked:
    """What a walk left open, with the better of the region's bound and the fit's."""
    children = tuple(
        inherit(region, state, float(bound), FitPoint(), cutoff)
        for state, bound in zip(walk.open_states, walk.open_bounds, strict=True)
    )
    return NodeWalked(node, region, walk, children)
