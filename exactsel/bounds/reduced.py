"""Bounds where lam = 0 and columns are dependent: by the bounds for independent columns, as far as there are such.

A region without the columns that bring nothing new to others (problem/redundant_columns.py) is most often one of
independent
columns, for which any bound will do, a little lowered. Where larger sets of columns depend on each other the one with
the fewest is divided by: without one of its columns it is none, and with all but one the last brings nothing new.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactsel.bounds.base import BoundOptions, PreparedBound, Tightened
from exactsel.bounds.fit import BOUNDED_MODELS, PreparedFit
from exactsel.bounds.witness import FitPoint, InfimumPoint, Proof
from exactsel.kernels.node import FREE, IN, OUT, RELAXED, Answers, empty_answers, is_convex, node_columns
from exactsel.problem.redundant_columns import RedundantColumns
from exactsel.problem.regression import Problem
from exactsel.types import FloatArray, IntArray, StateArray

DIVIDED = FitPoint()
"""What the children of a node that was not bounded, but divided, are handed: no bound leaves that, and it is packed."""


class PreparedReduced(PreparedBound):
    """Bound to one problem; ``inner`` serves independent columns."""

    def __init__(self, problem: Problem, options: BoundOptions, spans: RedundantColumns, inner: PreparedBound) -> None:
        self._problem, self._spans, self._inner = problem, spans, inner
        self._fit = PreparedFit(problem, options)

    @property
    def valid_for(self) -> str:
        """See :class:`exactsel.bounds.base.PreparedBound`."""
        return BOUNDED_MODELS

    def tighten(
        self, states: StateArray, warm: Sequence[Any], cutoff: float, upper: float, known: FloatArray | None = None
    ) -> Tightened:
        """See :class:`exactsel.bounds.base.PreparedBound`.

        ``warm`` holds what the parent's bound left, or :data:`DIVIDED` where it was not bounded.
        """
        nodes = len(states)
        merged = _Merged(empty_answers(nodes, self._problem.d, self._problem.k), nodes)
        smaller, independent, dependent = states.copy(), [], []
        for row, state in enumerate(states):
            columns, fixed = node_columns(state)
            convex = is_convex(columns, fixed, self._problem.k)
            reduced = self._spans.reduce(columns[:fixed], columns[fixed:], self._problem.k)
            reduced_columns = np.concatenate([reduced.included, reduced.candidates])
            if not convex and self._spans.independent(reduced_columns):
                smaller[row] = OUT
                smaller[row, reduced.candidates], smaller[row, reduced.included] = FREE, IN
                independent.append(row)
                continue
            circuit = None if convex else self._spans.circuit(reduced_columns)
            if circuit is not None and circuit[reduced.included.size :].any():
                merged.divide(row, reduced.candidates, circuit[reduced.included.size :])
            else:
                circuit = None
            if circuit is None or warm[row] is None:
                dependent.append(row)
        full_price = self._spans.price(self._problem.k)
        for rows, bound, price in ((independent, self._inner, full_price), (dependent, self._fit, 0.0)):
            if rows:
                starts = [None if isinstance(warm[row], FitPoint) else warm[row] for row in rows]
                before = None if known is None else known[rows]
                merged.take(rows, bound.tighten(smaller[rows], starts, cutoff + price, upper, before), price)
        return ReducedTightened(
            merged.answers, merged.proofs, merged.warm, valid_for=BOUNDED_MODELS, parts=merged.parts
        )


@dataclass(frozen=True, kw_only=True)
class ReducedTightened(Tightened):
    """The answer of a call in which nodes were bounded by different bounds."""

    parts: Mapping[int, tuple[Tightened, int]]
    """By row, whose answer it is, and its row there."""

    def child_proof(self, row: int, column: int, included: bool) -> Proof:
        """As the bound that answered has it."""
        if row not in self.parts:
            return self.proofs[row]
        part, at = self.parts[row]
        return part.child_proof(at, column, included)


class _Merged:
    """The answers of one call on their way."""

    def __init__(self, answers: Answers, nodes: int) -> None:
        self.answers = answers
        self.proofs: list[Proof] = [InfimumPoint()] * nodes
        self.warm: list[Any] = [None] * nodes
        self.parts: dict[int, tuple[Tightened, int]] = {}
        self._circuits: dict[int, tuple[IntArray, FloatArray]] = {}

    def divide(self, row: int, candidates: IntArray, weights: FloatArray) -> None:
        """Have a node divided by a dependence, which the candidates have so much to do with."""
        self._circuits[row] = candidates, weights
        self.answers.status[row], self.warm[row] = RELAXED, DIVIDED
        self._branch(row)

    def take(self, rows: list[int], part: Tightened, price: float) -> None:
        """Enter what a bound says of some nodes, which is good for so much less."""
        for mine, theirs in zip(list[Any](self.answers), part.answers, strict=True):
            mine[rows] = theirs
        for bounds in (self.answers.bound, self.answers.bound_in, self.answers.bound_out):
            bounds[rows] -= price
        for at, row in enumerate(rows):
            self.proofs[row], self.parts[row] = part.proofs[at], (part, at)
            if row in self._circuits:
                self._branch(row)
            else:
                self.warm[row] = part.warm[at]

    def _branch(self, row: int) -> None:
        candidates, weights = self._circuits[row]
        self.answers.indicator[row] = 0.0
        self.answers.indicator[row, candidates] = 0.5 * weights / weights.max()
