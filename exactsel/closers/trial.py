"""The trial of the cheaper of two bounds on the first node, before the expensive one is computed.

The dearer bound is better at the root, and its tree smaller; but what counts is what a tree costs. Where the cheaper
one closes all in a small part of the time of the expensive one's first answer, that is the faster way, and this is not
known in advance. So it gets that part, in counted work, in a small best-first search of its own. What it closes becomes
the outcome of the node; what it does not close is thrown away, models excepted.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from exactsel.bounds.base import Cheaper
from exactsel.closers.base import RegionSolver, Task
from exactsel.closers.relaxation import BoundRegions, Divide
from exactsel.enumeration.work_budget import WorkBudget
from exactsel.kernels.node import IN, OUT
from exactsel.nodes.node import Node
from exactsel.nodes.regions import NO_FIXINGS, FailedTrials, NodeDivided, Region, RoundWork, SubtreeResult

BATCH = 4
"""Regions bounded in one call."""

MOST_OPEN = 10
"""Regions that may be open before any has been closed. A tree in which every node is divided is not to be finished in
any work worth trying."""


@dataclass(frozen=True)
class CheaperFirst(RegionSolver):
    """Settles the first node of a search, if anything."""

    cheaper: Cheaper
    bounding: BoundRegions
    """By the cheaper bound."""
    divide: Divide
    name = "relaxed"
    label = "a tree by the cheaper of two bounds"
    status = "searched"
    words = "the cheaper of two bounds first"

    def close(self, tasks: Sequence[Task], work: RoundWork, work_budget: WorkBudget) -> None:
        """Settle the root where the cheaper bound does so within its part of the work."""
        for task in tasks:
            if task.node.parent < 0 and not task.walk_used and task.region.warm is None:
                self._close(task, work, work_budget)
                # The step that divides a node records the work of a walk that closed nothing; this node will not be
                # divided.
                if task.outcome is not None and task.walk is not None:
                    work.failed_trials += FailedTrials(task.walk.nodes)

    def _close(self, task: Task, work: RoundWork, work_budget: WorkBudget) -> None:
        valid_for, began = work.valid_for, self._expanded([task.region], work)[0]
        root = began.outcome
        if not isinstance(root, NodeDivided):
            task.outcome = None if root is None else replace(root, node=task.node)
            return
        most = self.cheaper.budget(root.region.state, root.region.bound, self.divide.cutoff(work.upper), work.upper)
        if most == 0 and root.region.warm is not None:  # the dearer bound would leave the root to this one
            task.region, task.bounds = began.region, began.bounds
            return
        trial = _Trial()
        trial.record_parts(root)
        while trial.should_continue and trial.iterations < most:
            regions = trial.best(BATCH)
            for region, below in zip(regions, self._expanded(regions, work), strict=True):
                trial.record(region, below)
            trial.close_from(self.divide.cutoff(work.upper))
        if trial.open:
            work.valid_for = valid_for
            visits = root.region.visits
            root_alone = FailedTrials(0, len(visits), sum(visit.iterations for visit in visits))
            work.failed_trials += FailedTrials(trial.nodes, trial.calls, trial.iterations) + root_alone
            return
        task.outcome = SubtreeResult(
            task.node, root.region, self.name, tuple(trial.closed), nodes=trial.nodes, bound_calls=trial.calls,
            iterations=trial.iterations, closed=0,
        )  # fmt: skip

    def _expanded(self, regions: Sequence[Region], work: RoundWork) -> list[Task]:
        """Bound some regions, and divide what that leaves open."""
        tasks = [Task(Node(0, 0, 0, region.state, region.bound, region.proof), region) for region in regions]
        for closer in (self.bounding, self.divide):
            closer.close(tasks, work, WorkBudget())
        return tasks


@dataclass
class _Trial:
    """What is closed and what is open below a region, which together divide it."""

    closed: list[Region] = field(default_factory=list)
    open: list[tuple[float, int, Region]] = field(default_factory=list)
    """A heap: the least bound first, and of equal ones the oldest."""
    nodes: int = 0
    calls: int = 0
    iterations: int = 0
    _entered: int = 0

    @property
    def should_continue(self) -> bool:
        """Whether a node is open, and bounds have closed some of the nodes examined."""
        return 0 < len(self.open) <= max(self.nodes, MOST_OPEN)

    def best(self, most: int) -> list[Region]:
        """Take the open regions of least bound."""
        return [heapq.heappop(self.open)[2] for _ in range(min(most, len(self.open)))]

    def close_from(self, cutoff: float) -> None:
        """Close all open nodes where the least bound has reached the cut-off, as a better model may lower it."""
        if self.open and self.open[0][0] >= cutoff:
            self.closed += [replace(region, closed="incumbent", warm=None) for _, _, region in self.open]
            self.open = []

    def record(self, before: Region, task: Task) -> None:
        """Enter what became of a region."""
        outcome = task.outcome
        assert outcome is not None
        after = outcome.region
        self.nodes += 1
        self.calls += len(after.visits)
        self.iterations += sum(visit.iterations for visit in after.visits)
        self.closed += _fixed(before, after)
        if isinstance(outcome, NodeDivided):
            self.record_parts(outcome)
        else:
            self._record(after)

    def record_parts(self, divided: NodeDivided) -> None:
        """Enter the parts a region was divided into."""
        for part in (*divided.children, divided.rest):
            self._record(part)

    def _record(self, region: Region) -> None:
        region = replace(region, visits=(), fixings=NO_FIXINGS)
        if region.closed is not None:
            self.closed.append(replace(region, warm=None))
        else:
            self._entered += 1
            heapq.heappush(self.open, (region.bound, self._entered, region))


def _fixed(before: Region, after: Region) -> Iterator[Region]:
    """The sides closed by fixing columns of a region."""
    state = before.state.copy()
    for fixing in after.fixings:
        side = state.copy()
        side[fixing.column], state[fixing.column] = (OUT, IN) if fixing.included else (IN, OUT)
        yield Region(side, fixing.bound, fixing.proof, closed="inherited")
