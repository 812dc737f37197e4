"""The interface of a bound: tighten a batch of nodes.

A bound solver is a small options object; :meth:`BoundSolver.prepare` binds it to a problem and returns the object the
search calls once a round. The answers are plain arrays (:class:`exactsel.kernels.node.Answers`) plus, per node, the
proof of its bound and the data the solver receives again for the node's children (``warm``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from exactsel._jit import new_flag
from exactsel.bounds.kernel_form import KernelForm
from exactsel.bounds.witness import ModelPoint, Proof
from exactsel.kernels.node import Answers
from exactsel.problem.capabilities import PLAIN_REGRESSION, Capability
from exactsel.types import BoolArray, FloatArray, StateArray


def never_stop() -> BoolArray:
    """A stop flag that is down."""
    return new_flag()


@dataclass(frozen=True)
class BoundOptions:
    """Options that a search passes to its bound solver."""

    threads: int = 1
    warm_start: bool = True
    """Start from what the parent's call left behind."""
    force_quit: bool = True
    """End a call as soon as the bound reaches the cut-off."""
    seconds: float | None = None
    """The time limit of the search, for solvers that choose how much to prepare."""
    thorough: bool = False
    """The bound of the first node is what will be shown: polish it to the end."""
    stop: BoolArray = field(default_factory=never_stop)
    """One shared flag; when it turns true kernels return UNFINISHED at once."""


@dataclass(frozen=True)
class Tightened:
    """The answer for a batch of B nodes."""

    answers: Answers
    proofs: Sequence[Proof]
    """What proves each ``answers.bound``."""
    warm: Sequence[Any]
    """What to hand in for each node's children."""
    valid_for: str = field(default="", kw_only=True)
    """A restriction, in words, under which some of these bounds hold; empty where they hold for all models."""

    def child_proof(self, row: int, column: int, included: bool) -> Proof:
        """What proves ``bound_in`` (inside) or ``bound_out`` of a column of node ``row``."""
        return self.proofs[row]


@dataclass(frozen=True)
class Cheaper:
    """A bound to try before a more expensive one, in a tree of its own."""

    bound: PreparedBound
    budget: Callable[[StateArray, float, float, float], int]
    """Iterations it may take in all, given the state (d,) of the first node, the bound it found there, the cut-off and
    the best objective known; 0 where the expensive one will not run."""
    before_all: bool = False
    """Whether it is so much cheaper that it comes before what else may close the first node."""


class PreparedBound(Protocol):
    """A bound solver bound to one problem. Derive from it, and only :meth:`tighten` need be written."""

    curvature: FloatArray | None = None
    """(d,) The curvature of all columns, where the bound uses it; None where it has the ridge's or none."""
    quick: bool = False
    """Whether the first node is bounded before anything looks for strong columns, since that takes longer."""

    @property
    def valid_for(self) -> str:
        """What the bounds met so far are restricted to, in words; empty when they are not."""
        return ""

    @property
    def detail(self) -> str:
        """What else its bounds are made of, in words; empty where the name says it all."""
        return ""

    @property
    def kernel_form(self) -> KernelForm | None:
        """What a kernel needs to search by itself (:class:`exactsel.bounds.kernel_form.Relaxation`), if it can."""
        return None

    @property
    def cheaper(self) -> Cheaper | None:
        """What to try before this bound, where that is a dear one."""
        return None

    def tighten(
        self, states: StateArray, warm: Sequence[Any], cutoff: float, upper: float, known: FloatArray | None = None
    ) -> Tightened:
        """Bound each node.

        Parameters
        ----------
        states : int8 array (B, d)
            OUT, FREE or IN (:mod:`exactsel.kernels.node`) for every column of every node.
        warm : sequence of B
            What the parent's call returned in :attr:`Tightened.warm`; None at the root.
        cutoff : float
            A node whose bound reaches this is discarded, so no more work need go into it.
        upper : float
            The best objective known, the scale of relative accuracies.
        known : float array (B,), optional
            Bounds already proven for the nodes: an answer below them would be of no use.

        Notes
        -----
        A pure function of its arguments and the problem: neither the order of the nodes nor the number of threads
        may change a node's answer. Every returned bound must hold, also when the call is stopped early.
        """
        ...


class BoundSolver(Protocol):
    """A way to bound nodes, found by name among the entry points ``exactsel.bounds``.

    Where a bound holds for some models only, the answer says so in :attr:`Tightened.valid_for`. What is prepared may
    also have a text ``valid_for`` of its own, for all its answers.

    A subclass need not write the members with defaults; an object of another class may lack them too
    (:mod:`exactsel.bounds.plug_in`).
    """

    name: str

    needs: Capability = PLAIN_REGRESSION
    """What a problem must have to be served; by default single columns with free coefficients."""

    adjusted_rows: bool = False
    """Whether it evaluates rows by ``problem.row_loss``, and so knows row weights and the intercept of a loss; no other
    is given such a problem."""

    def prepare(self, problem: Any, options: BoundOptions) -> PreparedBound:
        """Bind to a problem; :class:`exactsel.errors.UnsupportedError` when it cannot be served."""
        ...


def scope_of(bound: PreparedBound, answer: Tightened) -> str:
    """The restriction, in words, under which the bounds of an answer hold; empty where there is none."""
    return answer.valid_for or str(getattr(bound, "valid_for", ""))


def stack_points(warm: Sequence[object], d: int) -> FloatArray:
    """Starting models of a batch as a dense array (B, d); zeros where there is none, or something that is no model."""
    starts = np.zeros((len(warm), d))
    for row, point in enumerate(warm):
        if isinstance(point, ModelPoint):
            starts[row, point.index] = point.value
    return starts


def sparse_points(answers: Answers) -> list[ModelPoint]:
    """The proof points of a batch, one sparse model a node."""
    return [ModelPoint.from_dense(row) for row in answers.point]
