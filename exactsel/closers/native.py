"""Leave what is below nodes to the relaxation's own kernel, which searches by itself (kernels/subsearch.py)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from exactsel.bounds.base import PreparedBound
from exactsel.closers.base import Kernel, Task, settle
from exactsel.closers.visit import Interrupted
from exactsel.kernels.node import UNFINISHED
from exactsel.nodes.left_open import left_below
from exactsel.nodes.node import Node, is_convex
from exactsel.nodes.regions import Outcome, RoundWork
from exactsel.nodes.subtree import searched
from exactsel.problem.restrictions import proposed
from exactsel.walks.effort import Effort
from exactsel.walks.relaxation import Subsearcher

MOST_LOST = 0.05
"""Part of the gap that a restriction may close at the root for a kernel that does not know it to be used (measured:
non-negative logistic loss on 50 columns 79 nodes with the restriction, 7,831 without)."""


@dataclass(frozen=True)
class NativeSearch(Kernel):
    """Leave nodes to the relaxation's own kernel, but for convex ones, which are solved with more care."""

    subsearcher: Subsearcher
    restricted: PreparedBound | None = None
    """The bound that knows the restrictions, where the kernel does not."""
    _known: list[float] = field(default_factory=list, repr=False, compare=False)
    name = "below"
    words = "subtrees searched inside the kernel"

    def close(self, tasks: Sequence[Task], work: RoundWork, effort: Effort) -> None:
        """Settle the nodes that are searched."""
        if self.restricted is not None and self._says_less(self.restricted, work.upper):
            return
        wide = [task.node for task in tasks if not is_convex(task.node.state, self.problem.k)]
        settle(tasks, self._search(wide, work, effort))

    def _says_less(self, restricted: PreparedBound, upper: float) -> bool:
        """Whether the kernel's bound, which knows no restrictions, leaves much of the gap that the other one closes."""
        without, under = self._roots(restricted)
        return without < under - MOST_LOST * max(0.0, upper - without)

    def _roots(self, restricted: PreparedBound) -> tuple[float, float]:
        """Both bounds of the root, made once."""
        if not self._known:
            state = self.problem.root_state[None]
            free = cast(PreparedBound, self.subsearcher.relaxation)
            both = [way.tighten(state, [None], np.inf, np.inf) for way in (free, restricted)]
            if any(np.any(one.answers.status == UNFINISHED) for one in both):
                raise Interrupted
            self._known.extend(float(one.answers.bound[0]) for one in both)
        return self._known[0], self._known[1]

    def _search(self, wide: list[Node], work: RoundWork, effort: Effort) -> dict[int, Outcome]:
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
            work.offer(proposed(self.problem, search.support))
        work.seconds.subtrees += time.perf_counter() - began
        sound = [i for i, search in enumerate(found) if not self.closed_too_soon(search.dropped, before, work.upper)]
        wide, searches = [wide[i] for i in sound], [found[i] for i in sound]
        if not wide:
            return {}
        left = left_below(wide, searches, self.cutoff(work.upper))
        return {
            node.id: searched(node, search, below, self.name)
            for node, search, below in zip(wide, searches, left, strict=True)
        }
