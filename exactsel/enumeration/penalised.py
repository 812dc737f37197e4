"""One tree over all sizes for the penalised form, P(x) + lam0 ||x||_0, best first (:mod:`exactsel.kernels.penalised`).

    open <- the root
    while the smallest bound of an open node is below the cut-off:
        relax it; the columns it uses are a model to fit, which may lower the cut-off
        close it at the cut-off, else fix the columns one of whose children reaches it, and divide by one in between

A node is columns that are in, columns that are out and columns that are open, of any number up to the largest size. The
lower bound is the smallest of what closed nodes, fixed children and open nodes have, or the cut-off.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

import numpy as np

from exactsel.bounds.apg import AcceleratedGradientBound, curved_data, gains, may_gain
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.boxed import outwards
from exactsel.bounds.witness import CurvedPoint, InfimumPoint, ModelPoint, Proof
from exactsel.enumeration.penalised_record import ROOT, TreeRecord
from exactsel.errors import UnsupportedError
from exactsel.kernels.node import FREE, IN, OUT, node_columns
from exactsel.kernels.penalised import evaluate, penalised_bound, relax_penalised
from exactsel.kernels.penalised_descent import PenalisedGram, PenalisedRows, shares_of
from exactsel.problem.capabilities import CLOSED_FORM
from exactsel.problem.design import is_design
from exactsel.problem.read_only import read_only
from exactsel.problem.regression import Problem
from exactsel.types import BoolArray, FloatArray, IntArray, StateArray

MOST_MEMORY = 1e9
"""Bytes of open nodes, about, after which the tree is given up."""

MOST_HELD = 2000
"""Columns whose products are kept."""

ROUNDED = 0.5
"""Columns whose relaxed indicator is at least this make the model of a node."""


def penalised_data(problem: Problem, price: float, seconds: float | None) -> tuple[PenalisedGram | PenalisedRows, Any]:
    """A problem as the kernel takes it, and by what coefficients are multiplied there.

    Raises
    ------
    UnsupportedError
        Where neither a ridge, nor limits of all coefficients, nor the columns limit what one gains; and for a loss
        without a smoothness.
    """
    free = problem.without_coefficient_bounds
    objective, d = free.objective, free.d
    lower, upper, limited = read_only(np.full(d, -np.inf)), read_only(np.full(d, np.inf)), False
    limits = problem.coefficient_bounds
    if limits is not None:
        lower, upper, limited = limits.lower, limits.upper, True
    if free.has(CLOSED_FORM) and d <= free.n and may_gain(free) and not is_design(objective.AT):
        curvature = AcceleratedGradientBound().known_curvature(free, BoundOptions(seconds=seconds))
        if curvature is not None and gains(curvature, free.lam):
            gram, scale = curved_data(free, curvature)[0], np.sqrt(curvature)
            lower, upper = outwards(lower, scale, -np.inf), outwards(upper, scale, np.inf)
            return PenalisedGram(*gram[:5], 1.0, 1.0, price, lower, upper, limited), scale
    smoothness = float(objective.loss.smoothness)
    bounded = free.lam > 0.0 or (limits is not None and limits.all_finite)
    if not (bounded and math.isfinite(smoothness)):
        raise UnsupportedError(
            "one tree over all sizes needs a ridge, or limits of all coefficients, and a smooth loss; search the sizes."
        )
    bends = np.full(free.n, smoothness) * (1.0 if objective.weights is None else objective.weights)
    most = min(d, MOST_HELD)
    return PenalisedRows(
        free.row_loss, objective.raw.AT, free.y, objective.raw.norms, bends, free.lam or 1.0,
        float(free.lam > 0.0), price, lower, upper, limited,
        np.full(d, -1), np.zeros(most + 1, dtype=np.int64), np.empty((most, most)),
    ), np.ones(d)  # fmt: skip


@dataclass(order=True)
class _Node:
    """Models with some columns, without others."""

    bound: float
    number: int
    state: StateArray = field(compare=False)
    used: IntArray = field(compare=False)
    """Columns of the relaxed model to begin with, ..."""
    coef: FloatArray = field(compare=False)
    """... and its coefficients."""
    recorded: int = field(compare=False, default=ROOT)
    """Its number in the record."""


@dataclass
class PenalisedTree:
    """The tree for one problem and price; :meth:`run` continues it."""

    problem: Problem
    """Its k is the largest size."""
    price: float
    meet: Callable[[tuple[int, ...]], None]
    """Called with models that may be good ones; may change the value of ``cutoff``."""
    cutoff: Callable[[], float]
    """Nodes with this bound are closed."""
    stop: BoolArray
    seconds: float | None = None
    """The time there is, for how much to prepare."""
    record: TreeRecord | None = None
    """Where the tree is to be shown: what became of its nodes."""
    nodes: int = 0
    work: float = 0.0
    """Multiplications so far."""
    min_pruned_bound: float = math.inf
    """The smallest bound of what has been closed."""
    root_floors: FloatArray | None = None
    """(k + 1,) of each size a lower bound of P, without the price; from the root's dual vector, ..."""
    root_proof: Proof = field(default_factory=InfimumPoint)
    """... which this one shows."""

    def __post_init__(self) -> None:
        data, self.scale = penalised_data(self.problem, self.price, self.seconds)
        self.data: PenalisedGram | PenalisedRows = data
        self._curvature = self.scale**2 if isinstance(data, PenalisedGram) else None
        self._numbers, self._met = 0, set[tuple[int, ...]]()
        self._open: list[_Node] = []
        self._push(-math.inf, self.problem.root_state, np.empty(0, dtype=np.int64), np.empty(0))

    @property
    def lower(self) -> float:
        """No model of any size up to k has a smaller penalised objective than this, or than the cut-off."""
        return min(self.min_pruned_bound, self._open[0].bound if self._open else math.inf)

    @property
    def done(self) -> bool:
        """Whether no open node is below the cut-off."""
        return not self._open or self._open[0].bound >= self.cutoff()

    def run(self, work: float) -> None:
        """Continue until all is closed, a stop, memory is exhausted, or so many multiplications are done."""
        most = max(1000.0, MOST_MEMORY / (self.problem.d + 1000))
        while not self.done and self.work < work and not self.stop[0] and len(self._open) < most:
            self._expand(heappop(self._open))

    def _push(
        self, bound: float, state: StateArray, used: IntArray, coef: FloatArray, recorded: int = ROOT
    ) -> None:  # fmt: skip
        self._numbers += 1
        heappush(self._open, _Node(bound, self._numbers, state, used, coef, recorded))

    def point(self, columns: IntArray, x: FloatArray) -> ModelPoint:
        """The point of a model (columns.size,) in the kernel's variables."""
        used = np.flatnonzero(x)
        order = used[np.argsort(columns[used])]
        index, value = columns[order].astype(np.int32), (x / self.scale[columns])[order]
        return ModelPoint(index, value) if self._curvature is None else CurvedPoint(index, value, self._curvature)

    def fitted(self, support: tuple[int, ...]) -> ModelPoint:
        """That of the best model on some columns."""
        columns = np.array(support, dtype=np.int64)
        return self.point(columns, self.problem.fit(support).coef[columns] * self.scale[columns])

    def _expand(self, node: _Node) -> None:
        state = node.state
        columns, fixed = node_columns(state)
        slots = self.problem.k - fixed
        if slots <= 0 or columns.size == fixed:
            self._close_leaf(node, columns[:fixed])
            return
        x = np.zeros(self.problem.d)
        x[node.used] = node.coef
        compact = x[columns]
        bound_in, bound_out, dual = np.empty(columns.size), np.empty(columns.size), np.empty(2 * columns.size + 1)
        bound, work = relax_penalised(
            self.data, columns, fixed, slots, self.cutoff(), compact, self.stop, bound_in, bound_out, dual
        )
        self.nodes, self.work = self.nodes + 1, self.work + work
        proof = self.point(columns, dual[columns.size : -1]) if self.record is not None or self.nodes == 1 else None
        self._note_bound(node, bound, proof)
        bound = max(bound, node.bound)
        if self.nodes == 1 and proof is not None:
            self.root_floors, self.root_proof = self._floors(dual, fixed), proof
        shares = shares_of(self.data, columns, compact)
        shares[:fixed] = 1.0
        self._round(columns, shares, fixed, slots)
        cutoff = self.cutoff()
        if bound >= cutoff or self.stop[0]:
            self._prune(node, bound, state, columns, compact)
            return
        state = state.copy()
        never, always = bound_in >= cutoff, bound_out >= cutoff
        never[:fixed] = always[:fixed] = False
        for which, bounds, decided in ((never, bound_in, OUT), (always & ~never, bound_out, IN)):
            if np.any(which):
                self.min_pruned_bound = min(self.min_pruned_bound, float(bounds[which].min()))
                state[columns[which]] = decided
                if self.record is not None and proof is not None:
                    pairs = zip(columns[which].tolist(), bounds[which].tolist(), strict=True)
                    closed = self.record.nodes[node.recorded].fixed
                    closed.extend((j, decided == IN, each, proof) for j, each in pairs)
        compact[never] = 0.0
        self._divide(node, bound, state, columns, compact, shares, bound_in, bound_out, proof)

    def _prune(self, node: _Node, bound: float, state: StateArray, columns: IntArray, x: FloatArray) -> None:
        """Close a node, or where it was broken off put it back."""
        if bound >= self.cutoff():
            self.min_pruned_bound = min(self.min_pruned_bound, bound)
        else:
            self._push(bound, state, columns[x != 0.0], x[x != 0.0], node.recorded)

    def _note_bound(self, node: _Node, bound: float, proof: Proof | None) -> None:
        """Record what proves a node's bound, where it is the best so far."""
        if self.record is not None and proof is not None and bound > self.record.nodes[node.recorded].bound:
            entry = self.record.nodes[node.recorded]
            entry.bound, entry.witness = bound, proof

    def _child(self, node: _Node, least: float, proof: Proof | None) -> int:
        """The number of a child with the node's bound, or one by the node's own dual vector."""
        if self.record is None or proof is None:
            return ROOT
        entry = self.record.nodes[node.recorded]
        return self.record.add(proof, least) if least > entry.bound else self.record.add(entry.witness, entry.bound)

    def _divide(
        self, node: _Node, bound: float, state: StateArray, columns: IntArray, x: FloatArray, shares: FloatArray,
        bound_in: FloatArray, bound_out: FloatArray, proof: Proof | None,
    ) -> None:  # fmt: skip
        """Two children, by the open column that is most undecided."""
        used = x != 0.0
        free = state[columns] == FREE
        if not np.any(free):
            self._push(bound, state, columns[used], x[used], node.recorded)
            return
        undecided = np.where(free, 0.5 - np.abs(shares - 0.5), -1.0)
        if undecided.max() <= 0.0:  # all or nothing: then the one of the largest share, and the largest gain
            undecided = np.where(free, shares, -1.0)
        i = int(np.argmax(undecided))
        numbers = self._child(node, float(bound_in[i]), proof), self._child(node, float(bound_out[i]), proof)
        if self.record is not None:
            entry = self.record.nodes[node.recorded]
            entry.column, entry.children = int(columns[i]), numbers
        for decided, least, number in ((IN, bound_in[i], numbers[0]), (OUT, bound_out[i], numbers[1])):
            child, begin = state.copy(), used.copy()
            child[columns[i]] = decided
            begin[i] = begin[i] and decided == IN
            self._push(max(bound, float(least)), child, columns[begin], x[begin], number)

    def _close_leaf(self, node: _Node, included: IntArray) -> None:
        """One set of columns: its best model, and the bound at its dual vector."""
        problem, support = self.problem, tuple(sorted(included.tolist()))
        self.meet(support)
        q, v, low, high = (np.empty(included.size) for _ in range(4))
        coef = (problem.fit(support).coef * self.scale)[included]
        base = evaluate(self.data, included, coef, np.empty(problem.n), q, v)
        bound = penalised_bound(base, q, included.size, 0, self.data.lam, self.price, low, high)
        self._note_bound(node, bound, self.point(included, coef))
        self.min_pruned_bound = min(self.min_pruned_bound, max(bound, node.bound))

    def _round(self, columns: IntArray, shares: FloatArray, fixed: int, slots: int) -> None:
        """Meet the model on the columns with large shares; at the root also those with the largest few."""
        order = np.argsort(-shares, kind="stable")[: fixed + slots]
        count = int(np.count_nonzero(shares[order] >= ROUNDED))
        nested = range(fixed, min(count + 10, order.size) + 1) if self.nodes == 1 else (count,)
        for size in nested:
            support = tuple(sorted(columns[order[:size]].tolist()))
            if support not in self._met:
                self._met.add(support)
                self.meet(support)

    def _floors(self, dual: FloatArray, fixed: int) -> FloatArray:
        """Formula (2) for every size at one dual vector: base and q of it."""
        q, base = dual[: (dual.size - 1) // 2], float(dual[-1])
        free = np.sort(q[fixed:])[::-1]
        sums = np.concatenate([[0.0], np.cumsum(free)]) + q[:fixed].sum()
        sizes = np.minimum(np.maximum(np.arange(self.problem.k + 1) - fixed, 0), free.size)
        taken = sums[sizes] * (1.0 + (2 * q.size + 16) * 2.0**-52) / (2.0 * self.data.lam)
        return np.asarray(base - taken - 2.0**-50 * (abs(base) + taken))
