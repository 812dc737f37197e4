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
from exactsel.kernels.node import IN
from exactsel.problem.interface import SubsetProblem
from exactsel.search.node import ROOT_ID, Node
from exactsel.search.regions import NodeKept, NodeWalked, Region, RoundWork, as_region, inherit
from exactsel.search.tolerance import Tolerance
from exactsel.search.visit import Interrupted
from exactsel.types import StateArray
from exactsel.walks.closed_form import WalkResult
from exactsel.walks.effort import Effort
from exactsel.walks.wide import CountingWalker
from exactsel.walks.wide_parts import Stopped


@dataclass(frozen=True)
class Counting:
    """The walker that counts, if the problem and the settings allow it."""

    problem: SubsetProblem
    tolerance: Tolerance
    cutoff: Callable[[float], float]
    """The bound at which a region is closed, given the best objective known."""
    counter: CountingWalker | None

    def begun(self, node: Node) -> bool:
        """Whether a count goes on at this node."""
        return self.counter is not None and node.tight and node.id != ROOT_ID

    def at_once(self, nodes: Sequence[Node], work: RoundWork, effort: Effort) -> dict[int, NodeKept | NodeWalked]:
        """Count the nodes that have been begun, a root that is soon counted, and all once that is due; by id."""
        outcomes: dict[int, NodeKept | NodeWalked] = {}
        spent = 0.0 if effort.walks is None else effort.walks.useful + effort.walks.wasted
        if self.counter is None:
            return outcomes
        due = self.counter.due(spent)
        for node in nodes:
            begun = self.begun(node) or due
            if begun or (node.id == ROOT_ID and self.counter.first):
                outcome = self._counted(node, as_region(node), work, at_once=not begun)
                if outcome is not None:
                    outcomes[node.id] = outcome
        return outcomes

    def after_visit(self, node: Node, region: Region, work: RoundWork) -> NodeKept | NodeWalked | None:
        """Count a root that has been bounded, and is open still."""
        is_open = region.closed is None and region.bound < self.cutoff(work.upper)
        if self.counter is None or not self.counter.first or node.id != ROOT_ID or not is_open:
            return None
        return self._counted(node, region, work, at_once=False)

    def fraction(self, outcome: NodeWalked) -> float | None:
        """The part of all there is to be counted that is done with this outcome; None where it is no count."""
        walk, state = outcome.walk, outcome.region.state
        if self.counter is None:
            return None
        begun = len(walk.open_states) > 0 and is_rest(state, walk, 0)
        return self.counter.fraction(walk.open_states[0]) if begun else 1.0

    def _counted(self, node: Node, region: Region, work: RoundWork, at_once: bool) -> NodeKept | NodeWalked | None:
        """What a count makes of a region; None where it is not for the counter, or rounding is too large."""
        if self.counter is None or not self.counter.takes(region.state, at_once):
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
        work.offer(None if walk.support is None else self.problem.fit(walk.support))
        cutoff = self.cutoff(work.upper)
        if region.bound >= cutoff:  # as it may be once a better model has been found: more than the count has shown
            return NodeKept(node, replace(region, closed="incumbent"))
        children = tuple(
            replace(inherit(region, state, 0.0, FitPoint(), cutoff), tight=is_rest(region.state, walk, i))
            for i, state in enumerate(walk.open_states)
        )
        return NodeWalked(node, region, walk, children)


def is_rest(state: StateArray, walk: WalkResult, i: int) -> bool:
    """Whether a region left open is what has not been counted yet: the first one, with no more columns in."""
    return i == 0 and np.count_nonzero(walk.open_states[0] == IN) == np.count_nonzero(state == IN)
