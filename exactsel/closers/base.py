"""The closers of a round: each settles the nodes it can, and the next one receives the others.

A closer either settles a task (its outcome is then fixed), or leaves it, perhaps with a better region. A further
way to close regions is one more closer in the list of search/expand.py, or a plug-in (:class:`Closer`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from exactsel.enumeration.base import EnumerationResult
from exactsel.enumeration.work_budget import WorkBudget
from exactsel.nodes.node import Node
from exactsel.nodes.regions import NodeBounds, Outcome, Region, RoundWork, SubtreeResult
from exactsel.nodes.tolerance import Tolerance
from exactsel.problem.interface import SubsetProblem
from exactsel.problem.restrictions import is_restricted
from exactsel.types import BoolArray, FloatArray


@dataclass(slots=True)
class Task:
    """A node on its way through the closers of a round."""

    node: Node
    region: Region
    bounds: NodeBounds | None = None
    """What the last bound call said of the region, where it may be divided."""
    walk: EnumerationResult | None = None
    result_of: Callable[[Task, EnumerationResult, float], SubtreeResult] | None = None
    """Makes the outcome of the walk, given the cut-off of the round."""
    walk_tried: bool = False
    walk_used: bool = False
    """The walk settles it, once the cut-off of the round is known."""
    outcome: Outcome | None = None


class RegionSolver(Protocol):
    """One way to deal with nodes. Derive from it, and only :meth:`close` need be written."""

    name: str = ""
    """What its results are named after (:attr:`exactsel.nodes.regions.SubtreeResult.closer`); empty without any."""
    words: str = ""
    """What results call it; empty for what every search does."""
    label: str = ""
    """What counts call the subtrees it dealt with; the name where it is empty."""
    status: str = "walked"
    """What the explored tree says of a node whose subtree it dealt with."""
    after_bounds: bool = False
    """Whether it runs on the nodes that bounds have left open, for a closer that otherwise runs before all others."""

    def close(self, tasks: Sequence[Task], work: RoundWork, work_budget: WorkBudget) -> None:
        """Settle the tasks it can, all of them open; :class:`exactsel.closers.visit.Interrupted` after a stop."""
        ...

    def expected(self, nodes: Sequence[Node], work_budget: WorkBudget) -> FloatArray:
        """About the work there is below each node (m,), as far as this closer knows; zero elsewhere."""
        return np.zeros(len(nodes))

    def alone(self, nodes: Sequence[Node]) -> bool:
        """Whether the nodes are divided among workers by the closer itself."""
        return False


class CloserOptions(NamedTuple):
    """What a closer may use of a search."""

    tolerance: Tolerance
    cutoff: Callable[[float], float]
    """The bound at which a region is closed, given the best objective known."""
    threads: int
    stop: BoolArray
    """(1,) True once the search is to stop."""


class Closer(Protocol):
    """A plug-in that closes regions (entry points ``exactsel.closers``)."""

    @property
    def name(self) -> str:
        """The name it is registered by, and that of its :class:`RegionSolver`."""
        ...

    def prepare(self, problem: SubsetProblem, options: CloserOptions) -> RegionSolver:
        """Bind it to a problem; :class:`exactsel.errors.UnsupportedError` for one it cannot serve."""
        ...


def _named(name: str) -> type[RegionSolver] | None:
    """The imported class of closers whose results have this name."""
    waiting = RegionSolver.__subclasses__()
    while waiting:
        closer = waiting.pop()
        if closer.name == name:
            return closer
        waiting += closer.__subclasses__()
    return None


def label_of(name: str) -> str:
    """What counts call the subtrees that the closer of this name dealt with."""
    closer = _named(name)
    return name if closer is None else closer.label or name


def status_of(name: str) -> str:
    """What the explored tree says of a node whose subtree the closer of this name dealt with."""
    closer = _named(name)
    return RegionSolver.status if closer is None else closer.status


def settle(tasks: Sequence[Task], outcomes: dict[int, Outcome]) -> None:
    """Fix the outcomes that a closer has brought, by the ids of nodes."""
    for task in tasks:
        task.outcome = outcomes.get(task.node.id)


@dataclass(frozen=True)
class Kernel(RegionSolver):
    """What searches regions by itself, with the tolerance of the objective known when it begins."""

    problem: SubsetProblem
    tolerance: Tolerance
    cutoff: Callable[[float], float]
    """The bound at which a region is closed, given the best objective known."""

    @property
    def adopts(self) -> bool:
        """Whether the kernel may hold regions against models it meets, as all of them are admissible."""
        return not is_restricted(self.problem)

    def closed_too_soon(self, min_pruned_bound: float, before: float, upper: float) -> bool:
        """Whether a kernel closed a region that the tolerance leaves open, now that there is a better model.

        A kernel has the absolute tolerance of the objective known when it began. Where that is relative and the kernel
        finds a much better model, what it closed last may be closed by too much; then the region is left as it was.
        """
        return upper - self.tolerance.absolute(before) <= min_pruned_bound < self.cutoff(upper)
