"""One round's work: closers, in order, each of which settles the nodes it can (closers/base.py).

:meth:`Expander.expand` is a pure function of (problem, nodes, upper, work_budget, settings): the same arguments bring
the same outcome each time and in any thread, process or resumed run. The engine commits what it returns. All an
expander keeps are objectives of supports (closers/refits.py), to save time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exactsel.bounds.base import Cheaper, PreparedBound, never_stop
from exactsel.closers.base import Closer, CloserOptions, RegionSolver, Task
from exactsel.closers.enumeration import EnumerateFirst, EnumerateLater
from exactsel.closers.minors import TestMinorsBegun, TestMinorsOfRoot
from exactsel.closers.native import NativeSearch
from exactsel.closers.refits import Refits
from exactsel.closers.relaxation import BoundRegions, Divide, EagerVisit
from exactsel.closers.trial import CheaperFirst
from exactsel.closers.visit import Interrupted, Visitor
from exactsel.enumeration.base import SubtreeSolver
from exactsel.enumeration.minors import MinorTest
from exactsel.enumeration.native import NativeBranchAndBound
from exactsel.enumeration.work_budget import WorkBudget, bound_work
from exactsel.nodes.branching import Branching
from exactsel.nodes.node import Node
from exactsel.nodes.regions import Round, RoundWork, as_region
from exactsel.nodes.tolerance import Tolerance
from exactsel.nodes.trees import Tree
from exactsel.problem.capabilities import CLOSED_FORM
from exactsel.problem.interface import SubsetProblem
from exactsel.types import BoolArray, FloatArray

__all__ = ["Expander", "Interrupted"]


class Expander:
    """Everything :meth:`expand` needs besides nodes and upper, fixed for a whole search."""

    def __init__(
        self, problem: SubsetProblem, tree: Tree, branching: Branching, bound: PreparedBound, tolerance: Tolerance,
        threads: int = 1, *, enumeration: SubtreeSolver | None = None, native: NativeBranchAndBound | None = None,
        counter: MinorTest | None = None, cheaper: Cheaper | None = None, first: Sequence[RegionSolver] = (),
        plug_in: Closer | None = None, stop: BoolArray | None = None,
    ) -> None:  # fmt: skip
        """``first`` are closers that run before all others, but for the ``plug_in``: a user wants to see it at work."""
        self.problem, self.tree, self.tolerance, self.threads = problem, tree, tolerance, threads
        self.enumeration, self.native, self.counter = enumeration, native, counter
        self.plug_in = None if plug_in is None else plug_in.name
        if plug_in is not None:
            options = CloserOptions(tolerance, self.cutoff, threads, never_stop() if stop is None else stop)
            first = [plug_in.prepare(problem, options), *first]
        visitor = Visitor(problem, bound, Refits(problem, threads), tree.fixes, self.cutoff)
        ways = [closer for closer in first if not closer.after_bounds]
        if counter is not None:
            ways.append(TestMinorsBegun(problem, tolerance, self.cutoff, counter))
        if native is not None:
            ways.append(NativeSearch(problem, tolerance, self.cutoff, native))
        if enumeration is not None:
            ways.append(EnumerateFirst(problem, tolerance, self.cutoff, enumeration))
        divide = Divide(problem, tree, branching, self.cutoff)
        if cheaper is not None:
            quick = Visitor(problem, cheaper.bound, visitor.refits, tree.fixes, self.cutoff)
            ways.insert(0 if cheaper.before_all else len(ways), CheaperFirst(cheaper, BoundRegions(quick), divide))
        ways += [BoundRegions(visitor), *(closer for closer in first if closer.after_bounds)]
        if enumeration is not None:
            ways.append(EnumerateLater(problem, tolerance, self.cutoff, enumeration))
        if counter is not None:
            ways.append(TestMinorsOfRoot(problem, tolerance, self.cutoff, counter))
        ways.append(divide)
        self.closers = [EagerVisit(problem, tree, visitor)] if tree.eager else ways

    def cutoff(self, upper: float) -> float:
        """The bound at which a region is discarded."""
        return upper if self.tree.prunes_at_upper else upper - self.tolerance.absolute(upper)

    def expand(self, nodes: Sequence[Node], upper: float, work_budget: WorkBudget | None = None) -> Round:
        """Bound and split the nodes; :class:`Interrupted` after a stop midway.

        ``work_budget``, what the search has spent so far, says whether subtrees are left to the kernels.
        """
        work, work_budget = RoundWork(upper), work_budget or WorkBudget()
        tasks = [Task(node, as_region(node)) for node in nodes]
        for closer in self.closers:
            open_tasks = [task for task in tasks if task.outcome is None]
            if open_tasks:
                closer.close(open_tasks, work, work_budget)
        return work.done(task.outcome for task in tasks if task.outcome is not None)

    def expected_work(self, nodes: Sequence[Node], work_budget: WorkBudget) -> FloatArray:
        """About the work there is below each node (m,), where that differs much; zero where nothing is known of it."""
        return np.asarray(np.max([closer.expected(nodes, work_budget) for closer in self.closers], axis=0))

    def counts(self, nodes: Sequence[Node]) -> bool:
        """Whether a count continues at one of the nodes."""
        return any(closer.alone(nodes) for closer in self.closers)

    @property
    def counts_work(self) -> bool:
        """Whether multiplications are entered closer by closer; else iterations say it all."""
        return self.problem.has(CLOSED_FORM) or self.enumeration is not None

    def bound_work(self, columns: int, iterations: int) -> float:
        """Multiplications of a bound call of a region of so many columns."""
        work = bound_work if self.enumeration is None else self.enumeration.bound_work
        return work(columns, self.problem.n, iterations)

    def closes_by(self, name: str) -> bool:
        """Whether one of its closers deals with subtrees under this name."""
        return any(closer.name == name for closer in self.closers)
