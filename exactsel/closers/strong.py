"""Close the first node by its strong columns, where the others are nearly orthogonal (enumeration/strong.py)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exactsel.bounds.witness import InfimumPoint
from exactsel.closers.base import RegionSolver, Task
from exactsel.closers.visit import Interrupted
from exactsel.enumeration.strong import Part, StrongColumns
from exactsel.enumeration.work_budget import WorkBudget
from exactsel.kernels.node import IN
from exactsel.nodes.regions import Region, RoundWork, SubtreeResult
from exactsel.nodes.tolerance import Tolerance
from exactsel.problem.interface import SubsetProblem
from exactsel.problem.restrictions import proposed

FAR = 0.25
"""Part of the cut-off below which a relaxation's bound at the root promises a long search."""

AGAIN = 3
"""How often it is begun again from a better model."""


@dataclass(frozen=True)
class CloseByStrong(RegionSolver):
    """Settles the first node of a search, or leaves it as it is."""

    problem: SubsetProblem
    tolerance: Tolerance
    strong: StrongColumns
    valid_for: str = ""
    """A restriction, in words, without which nothing could be said of the data as given."""
    after_bounds: bool = False
    """Where all coefficients are limited, or working sets do for very many columns, the relaxation often does better,
    and says so at once."""
    name = "strong"
    label = "a tree over strong features"
    status = "searched"
    words = "strong features divided, weak ones bounded by their cosines"

    def close(self, tasks: Sequence[Task], work: RoundWork, work_budget: WorkBudget) -> None:
        """Settle the root where all of its parts can be closed."""
        for task in tasks:
            if task.node.parent < 0 and self._is_asked(task.region, work):
                began = time.perf_counter()
                task.outcome = self._settled(task, work)
                work.seconds.subtrees += time.perf_counter() - began

    def _is_asked(self, region: Region, work: RoundWork) -> bool:
        """Whether this is the region as it was, or its bound is far from closing it."""
        if not self.after_bounds:
            return region.warm is None
        far = region.bound < FAR * (work.upper - self.tolerance.absolute(work.upper))
        return far and region.closed is None and not region.fixings

    def _settled(self, task: Task, work: RoundWork) -> SubtreeResult | None:
        support = self.strong.support
        for _ in range(AGAIN):
            cutoff, model_count = work.upper - self.tolerance.absolute(work.upper), len(work.models)
            parts = self.strong.divide(task.region.state, support, cutoff)
            if self.strong.stopped:
                raise Interrupted
            if parts is None:
                return None
            if self.problem.units.constraint is not None and any(part.proof is None for part in parts):
                return None  # what follows from decisions would make other regions of those left open
            for part in parts:
                if part.proof is None:
                    work.offer(proposed(self.problem, np.flatnonzero(part.state == IN)))
            if len(work.models) == model_count:
                children = tuple(self._region(part, cutoff) for part in parts)
                return SubtreeResult(
                    task.node, task.region, self.name, children, nodes=len(parts), closed=0, valid_for=self.valid_for
                )
            support = work.models[-1].support
        return None

    def _region(self, part: Part, cutoff: float) -> Region:
        if part.proof is not None:
            return Region(part.state, cutoff, part.proof, closed="bound")
        return Region(part.state, self.problem.infimum, InfimumPoint())
