"""Parts of the search space on their way through a round, and what a round returns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, overload

import numpy as np

from exactsel.bounds.base import Tightened
from exactsel.bounds.witness import Proof
from exactsel.enumeration.work_budget import WholeProblemAttempt
from exactsel.kernels.node import FREE
from exactsel.nodes.branching import BranchingView
from exactsel.nodes.node import Node
from exactsel.problem.fit import Fit
from exactsel.problem.interface import SubsetProblem
from exactsel.types import BoolArray, FloatArray, IntArray, StateArray


@dataclass(frozen=True, slots=True)
class Visit:
    """A bound call that was made."""

    bound: float
    solved: bool
    iterations: int


@dataclass(frozen=True, slots=True)
class Fixing:
    """A closed child, so the node continues as the other one (see events.Fixed)."""

    column: int
    included: bool
    bound: float
    proof: Proof


@dataclass(frozen=True, slots=True, eq=False)
class Fixings(Sequence[Fixing]):
    """Closed children of a node, one after the other: of wide data one for each of many thousand columns."""

    columns: IntArray
    """(m,)"""
    included: BoolArray
    """(m,) True: fixing the column to 0 is closed, so it is fixed to 1. False: fixing it to 1 is closed."""
    bounds: FloatArray
    """(m,) of the closed children."""
    proof_of: Callable[[int], Proof]
    """What proves the bound of the one at a place."""

    def __len__(self) -> int:
        return len(self.columns)

    @overload
    def __getitem__(self, place: int) -> Fixing: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Fixing, ...]: ...

    def __getitem__(self, place: int | slice) -> Fixing | tuple[Fixing, ...]:
        if isinstance(place, slice):
            return tuple(self[i] for i in range(*place.indices(len(self))))
        column, included, bound = self.columns[place], self.included[place], self.bounds[place]
        return Fixing(int(column), bool(included), float(bound), self.proof_of(place))

    def __reduce__(self) -> tuple[Callable[[Sequence[Fixing]], Fixings], tuple[tuple[Fixing, ...]]]:
        """By what they are: where proofs come from need not be known to pickle."""
        return Fixings.of, (tuple(self),)

    @classmethod
    def of(cls, fixings: Sequence[Fixing]) -> Fixings:
        """The same ones in arrays."""
        return cls(
            np.array([fixing.column for fixing in fixings], dtype=np.int64),
            np.array([fixing.included for fixing in fixings], dtype=np.bool_),
            np.array([fixing.bound for fixing in fixings], dtype=np.float64),
            lambda place: fixings[place].proof,
        )


NO_FIXINGS = Fixings.of(())


@dataclass(frozen=True, slots=True)
class Region:
    """A part of the search space with its best proven bound; ``closed`` says why it need not be searched."""

    state: StateArray
    bound: float
    proof: Proof
    warm: object = None
    tight: bool = False
    visits: tuple[Visit, ...] = ()
    fixings: Fixings = NO_FIXINGS
    closed: str | None = None
    estimate: float = math.inf
    """Objective of the model its relaxation, or the one it comes from, was rounded to."""


@dataclass(frozen=True, slots=True)
class NodeKept:
    """A node that is closed, or open again with a bound of its own: ``region`` is the node after its bound calls."""

    node: Node
    region: Region
    unused_walk: int | None = None
    """Nodes of a walk of its subtree whose result is not used, 0 where it was refused; None where none was tried."""
    unused_work: float = 0.0
    """The multiplications of that walk."""


@dataclass(frozen=True, slots=True)
class NodeDivided:
    """A node that was split: ``region`` is the node after its bound calls."""

    node: Node
    region: Region
    columns: tuple[int, ...]
    """The chain of decisions (see trees.Split)."""
    children: tuple[Region, ...]
    """One for each of the columns."""
    rest: Region
    """The child that fixes all the columns to 0."""
    unused_walk: int | None = None
    unused_work: float = 0.0
    """As in :class:`NodeKept`."""


@dataclass(frozen=True, slots=True)
class SubtreeResult:
    """A node whose subtree a closer has dealt with by itself; what it has not closed are the ``children``."""

    node: Node
    region: Region
    """The node after its bound calls."""
    closer: str
    """The closer's name: :attr:`exactsel.closers.base.RegionSolver.name`."""
    children: Sequence[Region]
    """The regions left open. One that says why it is closed, and what proves its bound, is closed in its own right."""
    min_pruned_bound: float = math.inf
    """A bound of everything else."""
    nodes: int = 0
    """Nodes it examined, ..."""
    bound_calls: int = 0
    iterations: int = 0
    work: float | None = None
    """... and multiplications, where the search learns from them when to walk (enumeration/work_budget.py)."""
    finished: bool = True
    """Whether it completed within its budget."""
    closed: int = 1
    """Regions it closed, as results count them."""
    numbers: tuple[int, ...] | None = None
    """Its own numbers of the children: from 1 on, 0 is the node itself; None where they are numbered as they come."""
    numbered: int = 0
    """The largest number it gave."""
    bounds: tuple[float, ...] | None = None
    """What it found of the children itself, of which more may be known from above; None: their bounds."""
    support: tuple[int, ...] | None = None
    """The best support it met, as a proposal."""
    valid_for: str = ""
    """A restriction, in words, under which its bounds hold."""
    fraction: float | None = None
    """The part of all there is to be counted that is done with it; None where it is no count."""
    expansion: object = None
    """How it closed what it closed, in its own form (nodes/subtree.py); None where the children are all there is."""


Outcome: TypeAlias = NodeKept | NodeDivided | SubtreeResult
"""What became of one node."""


@dataclass(slots=True)
class Seconds:
    """Time that went into the parts of rounds."""

    bound: float = 0.0
    refit: float = 0.0
    subtrees: float = 0.0

    def add(self, other: Seconds) -> None:
        """Count the time of another round too."""
        self.bound += other.bound
        self.refit += other.refit
        self.subtrees += other.subtrees

    def as_dict(self) -> dict[str, float]:
        """By name, as results show them."""
        return {"bound": self.bound, "refit": self.refit, "subtrees": self.subtrees}


@dataclass(frozen=True, slots=True)
class FailedTrials:
    """The work of trials that failed."""

    nodes: int = 0
    calls: int = 0
    iterations: int = 0

    def __add__(self, other: FailedTrials) -> FailedTrials:
        return FailedTrials(self.nodes + other.nodes, self.calls + other.calls, self.iterations + other.iterations)


@dataclass(frozen=True, slots=True)
class Round:
    """What a round returns."""

    models: tuple[Fit, ...]
    """Models better than the best known before, each better than the one before it."""
    outcomes: tuple[Outcome, ...]
    """One for each node, in their order."""
    valid_for: str = ""
    """A restriction, in words, under which some of its bounds hold."""
    seconds: Seconds = field(default_factory=Seconds, compare=False)
    rounded: tuple[int, ...] | None = None
    """The best support a relaxation was rounded to, for heuristics to begin from."""
    counted: WholeProblemAttempt | None = None
    """The outcome of counting all sets; None where counting did not continue."""
    rounded_value: float = math.inf
    """Objective of the model on ``rounded``."""
    failed_trials: FailedTrials = FailedTrials()
    relaxed: tuple[int, ...] = ()
    """The units of largest relaxed coefficients where ``rounded`` comes from, at most 2k - 1, the largest first."""


@dataclass(slots=True)
class RoundWork:
    """What a round has brought so far."""

    upper: float
    """The best objective known."""
    models: list[Fit] = field(default_factory=list)
    """The models that brought it down, in the order in which they came."""
    valid_for: str = ""
    seconds: Seconds = field(default_factory=Seconds)
    rounded: tuple[int, ...] | None = None
    rounded_value: float = math.inf
    counted: WholeProblemAttempt | None = None
    failed_trials: FailedTrials = FailedTrials()
    relaxed: tuple[int, ...] = ()

    def note_rounding(self, support: IntArray, value: float, sizes: FloatArray) -> None:
        """Keep the best support (padded with -1) a relaxation was rounded to, and its units of largest ``sizes``."""
        if value < self.rounded_value:
            self.rounded_value, self.rounded = value, tuple(np.sort(support[support >= 0]).tolist())
            most = np.argsort(-sizes, kind="stable")[: 2 * support.size - 1]
            self.relaxed = tuple(most[sizes[most] > 0.0].tolist())

    def offer(self, fit: Fit | None) -> None:
        """Take a model if it is better than all before."""
        if fit is not None and fit.value < self.upper:
            self.upper = fit.value
            self.models.append(fit)

    def done(self, outcomes: Iterable[Outcome]) -> Round:
        """The whole round."""
        return Round(
            tuple(self.models),
            tuple(outcomes),
            self.valid_for,
            self.seconds,
            self.rounded,
            self.counted,
            self.rounded_value,
            self.failed_trials,
            self.relaxed,
        )


@dataclass(frozen=True, slots=True)
class NodeBounds:
    """One node's row of a bound call's answers."""

    tightened: Tightened
    row: int

    def view(self, state: StateArray) -> BranchingView:
        """What the branching rule may see: the candidates left after fixing."""
        answers, candidates = self.tightened.answers, (state == FREE).nonzero()[0]
        return BranchingView(
            candidates,
            answers.x[self.row, candidates],
            answers.indicator[self.row, candidates],
            answers.bound_in[self.row, candidates],
            answers.bound_out[self.row, candidates],
        )

    def proof(self, column: int, included: bool) -> Proof:
        """What proves the bound a child inherits."""
        return self.tightened.child_proof(self.row, column, included)


def as_region(node: Node) -> Region:
    """The region of an open node, as the search left it."""
    return Region(node.state, node.bound, node.proof, node.warm, node.tight, estimate=node.estimate)


def inherit(region: Region, state: StateArray, bound: float, proof: Proof, cutoff: float) -> Region:
    """A child: its bound is the parent's, or the one the parent's last bound call gives it."""
    if not bound > region.bound:
        bound, proof = region.bound, region.proof
    closed = "inherited" if bound >= cutoff else None
    return Region(state, float(bound), proof, region.warm, closed=closed, estimate=region.estimate)


def constrained(region: Region, problem: SubsetProblem) -> Region:
    """The region with everything the problem's constraint implies; closed where no model is left in it."""
    if problem.units.constraint is None or region.closed is not None:
        return region
    state = problem.units.implied(region.state, problem.k)
    if state is None:
        return replace(region, bound=math.inf, closed="excluded")
    return replace(region, state=state)
