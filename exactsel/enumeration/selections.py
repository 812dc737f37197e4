"""Walk subtrees of column subset selection: few supports are gone through, many are bounded first.

With E what the columns fixed to 1 leave of the matrix, G = EE' and H = G² (of the columns, here rows of E), columns j
and l together capture

    H_jj / G_jj + |G_l - t G_j|² / (G_ll - t G_jl),    t = G_jl / G_jj,    |G_l - t G_j|² = H_ll - 2 t H_jl + t² H_jj,

so one product of matrices gives all pairs. Regions with two places left are closed by that. Those with more are closed
by their eigenvalues (bounds/eigenvalue.py), or divided by the columns that capture most, each without those before it.

Rounding. Entries of G and H are sums of at most m + d products, of sizes |e_j| |e_l| and |e_j| |e_l| ||E||². What they
are off is divided by the part 1 - c² that column j leaves of column l; it is worth ROUNDED (m + d) ||E||² / (1 - c²)
units at most. Directions turned by angles a_j and a_l turn their plane by (a_j + a_l) (2 / (1 - c²))^½ at most, and by
twice that times ||E||² what it captures (residuals.py). Pairs that this does not clear are checked one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from exactsel._jit import working_threads
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.residuals import RELIABLE, Residuals
from exactsel.bounds.witness import EigenvaluePoint
from exactsel.enumeration.base import EnumerationResult, SubtreeSolver
from exactsel.kernels.moves import BRANCHED, CLOSED, LEFT_OUT
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.kernels.subtree_record import COUNTED, LEFT_OPEN
from exactsel.problem.column_subset import ColumnSubsetProblem
from exactsel.rounding import UNIT
from exactsel.types import BoolArray, FloatArray, IntArray, StateArray

FINEST = 1e-11
"""Part of the empty selection's objective that a region is closed below the best one in any case."""

ROUNDED, TURNED = 32.0, 5.0
"""What rounding, and turning, can do to what a pair captures (above), with room for terms of second order."""

MOST_DEPENDENT = 1e-8
"""Pairs of which one leaves less than this part of the other's square are projected out one by one."""

MOST_SUSPECTS = 64
"""Pairs of one region that are; with more it is left to its eigenvalues, or open."""

OF_PAIRS, OF_EACH, OF_ENTRY = 5e4, 20.0, 0.25
"""Multiplications in the time of the interpreter's steps at a region with two places, of what is done to each pair, and
of each product of two entries; ..."""

OF_VALUES, OF_FACTORS = 3e5, 2.0
"""... and of the steps at a region that is bounded by its eigenvalues, and of each product in these (measured)."""


class _Part(NamedTuple):
    """A region of a walk."""

    state: StateArray
    included: IntArray
    candidates: IntArray
    """Those that may bring anything."""
    rest: FloatArray
    """What the columns inside leave of each column (d, m); ..."""
    left: float
    """... its squares, summed; ..."""
    angle: float
    """... and by how much rounding may have turned their span."""


class _Closed(NamedTuple):
    """How a part was closed: the words that say so, and what is left open, in their order."""

    moves: list[int]
    open: list[tuple[StateArray, float]]


class SelectionEnumeration(SubtreeSolver):
    """Bound to one problem, and to what its bound knows of it."""

    valid_for = ""
    curvature = None
    fewest_slots = 2
    keeps = True
    witness = EigenvaluePoint()

    def __init__(self, problem: ColumnSubsetProblem, residuals: Residuals, options: BoundOptions) -> None:
        self._problem, self._residuals, self._options = problem, residuals, options

    def explore(
        self, states: StateArray, upper: float, tolerance: float, budget: int, work: float = np.inf, adopts: bool = True
    ) -> list[EnumerationResult | None] | None:
        """As :meth:`exactsel.enumeration.base.SubtreeSolver.explore`."""
        tolerance = tolerance or FINEST * self._residuals.total

        def walk(state: StateArray) -> EnumerationResult | None:
            walker = _Walk(self._problem, self._residuals, self._options, upper, tolerance, budget, work)
            return walker.result(state)

        threads = working_threads(self._options.threads)
        if threads > 1 and len(states) > 1:
            with ThreadPoolExecutor(threads) as pool:
                results = list(pool.map(walk, states))
        else:
            results = [walk(state) for state in states]
        return None if self._options.stop[0] else results

    def bound_work(self, columns: int, rows: int, iterations: int) -> float:
        """An eigendecomposition."""
        return _of_values(columns, self._residuals.columns.shape[1])


@dataclass
class _Walk:
    """The walk of one subtree, depth first."""

    problem: ColumnSubsetProblem
    residuals: Residuals
    options: BoundOptions
    upper: float
    tolerance: float
    budget: int
    most_work: float
    nodes: int = 0
    work: float = 0.0
    min_pruned_bound: float = np.inf
    support: tuple[int, ...] | None = None
    best: float = field(init=False)
    """The best objective known."""

    def __post_init__(self) -> None:
        self.best = self.upper

    def result(self, state: StateArray) -> EnumerationResult | None:
        """Walk the region of a node; None where columns that are in depend on each other, nearly."""
        included, residuals = np.flatnonzero(state == IN), self.residuals
        span = residuals.span(included)
        if span.skipped > 0.0:
            return None
        rest = span.residual(residuals.columns)
        rss, angle = float(np.einsum("ij,ij->", rest, rest)), residuals.angle(span)
        closed = self._walk(_Part(state, included, self._useful(state, included), rest, rss, angle))
        states = np.array([state for state, _ in closed.open], dtype=np.int8).reshape(-1, self.problem.d)
        bounds, moves = np.array([bound for _, bound in closed.open]), np.array(closed.moves, dtype=np.int64)
        finished = not closed.open
        return EnumerationResult(
            finished, self.nodes, self.work, self.min_pruned_bound, self.support, states, bounds, moves
        )

    @property
    def needed(self) -> float:
        """The bound at which a region is closed: tolerances are relative, most often."""
        improves = 0.0 < self.best < self.upper < np.inf
        return self.best - self.tolerance * (self.best / self.upper if improves else 1.0)

    @property
    def _over(self) -> bool:
        return self.nodes >= self.budget or self.work >= self.most_work or bool(self.options.stop[0])

    def _useful(self, state: StateArray, included: IntArray) -> IntArray:
        """The candidates that are neither zero nor copies of columns inside, by number."""
        free, residuals = np.flatnonzero(state == FREE), self.residuals
        useless = (residuals.norms[free] == 0.0) | np.isin(residuals.original[free], residuals.original[included])
        return np.asarray(free[~useless])

    def _closes(self, bound: float) -> bool:
        """Whether a bound closes a region, which is entered if so."""
        if not bound >= self.needed:
            return False
        self.min_pruned_bound = min(self.min_pruned_bound, bound)
        return True

    def _walk(self, part: _Part) -> _Closed:
        """Close a region as far as the budget goes."""
        if self._over:
            return _left_open(part.state)
        self.nodes += 1
        slots = self.problem.k - part.included.size
        if part.candidates.size <= slots:
            return _COUNTED if self._closes_alone([*part.included, *part.candidates]) else _left_open(part.state)
        return self._pairs(part) if slots == 2 else self._divided(part, slots)

    def _divided(self, part: _Part, slots: int) -> _Closed:
        """A region with three places or more, by its eigenvalues or by its parts."""
        residuals, (d, m) = self.residuals, part.rest.shape
        angles, margin = residuals.angles(part.rest, part.angle), residuals.margin(part.angle, part.left)
        self.work += _of_values(d, m)
        gains, reliable = residuals.gains(part.rest, part.included, part.candidates, angles)
        captured, doubt = residuals.captured(part.rest, part.candidates, slots, angles)
        without = part.left - margin - doubt * part.left
        bound = without - float(captured.sum())
        if self._closes(bound):
            return _CLOSED
        into = np.where(reliable, without - gains - float(captured[: slots - 1].sum()), -np.inf)
        order = np.argsort(-gains, kind="stable")
        return self._parts(part, slots, order, into, bound)

    def _parts(self, part: _Part, slots: int, order: IntArray, into: FloatArray, bound: float) -> _Closed:
        """A region by its parts, the most promising columns first: each with one of them, without those before it."""
        state, moves, tails = part.state.copy(), list[int](), list[_Closed]()
        counted, last, angles = True, _CLOSED, self.residuals.angles(part.rest, part.angle)
        for at, row in enumerate(order.tolist()):
            column, later = int(part.candidates[row]), part.candidates[order[at + 1 :]]
            if later.size < slots - 1:
                # What is left has so few columns that a set with one more, dealt with above, captures no less.
                alone = [*part.included, column, *later]
                last = _CLOSED if counted or self._none_open(tails) or self._closes_alone(alone) else _left_open(state)
                break
            if self._over:
                last, counted = _left_open(state), False
                break
            if self._closes(float(into[row])):
                moves.append(8 * column + LEFT_OUT)
                counted = counted and slots == 3
            else:
                child = state.copy()
                child[column] = IN
                tail = self._with(part, child, column, later, float(angles[column]))
                moves.append(8 * column + BRANCHED)
                tails.append(tail)
                counted = counted and tail is _COUNTED
            state[column] = OUT
        if counted:  # in one word, which needs no more
            return _COUNTED
        closed = _Closed([*moves, *last.moves], [*last.open])
        for tail in reversed(tails):
            closed.moves.extend(tail.moves)
            closed.open.extend(tail.open)
        return closed if not closed.open else _Closed(closed.moves, [(s, max(b, bound)) for s, b in closed.open])

    def _none_open(self, tails: Sequence[_Closed]) -> bool:
        return not any(tail.open for tail in tails)

    def _with(self, part: _Part, state: StateArray, column: int, later: IntArray, angle: float) -> _Closed:
        """The part of a region that fixes a column to 1 whose direction is known up to an ``angle``."""
        if not angle <= RELIABLE:
            return _left_open(state)
        residuals, (d, m) = self.residuals, part.rest.shape
        self.work += 4.0 * d * m
        unit = part.rest[column] / np.linalg.norm(part.rest[column])
        rest = part.rest - np.outer(part.rest @ unit, unit)
        rss = float(np.einsum("ij,ij->", rest, rest))
        turned = part.angle + 1.01 * angle + residuals.unit
        useful = later[residuals.original[later] != residuals.original[column]]
        return self._walk(_Part(state, np.append(part.included, column), useful, rest, rss, turned))

    def _pairs(self, part: _Part) -> _Closed:
        """A region with two places, by all pairs of its candidates."""
        d, m = part.rest.shape
        size = part.candidates.size
        self.work += OF_PAIRS + OF_ENTRY * size * d * (m + size) + OF_EACH * size * size
        low, captured = self._left_by_pairs(part)
        undecided = self._suspects(low)
        if undecided.size:
            first, second = divmod(int(np.argmax(np.where(np.isfinite(low), captured, -np.inf))), size)
            if np.isfinite(low[first, second]) and part.left - captured[first, second] < self.best:
                self._adopt([*part.included, *part.candidates[[first, second]]])
                undecided = self._suspects(low)
        if undecided.shape[0] <= MOST_SUSPECTS:
            self.work += undecided.shape[0] * 4.0 * d * m
            alone = [[*part.included, *part.candidates[pair]] for pair in undecided]
            if all([self._closes_alone(columns) for columns in alone]):
                cleared = low >= self.needed
                least = float(low[cleared].min(initial=np.inf))
                self.min_pruned_bound = min(self.min_pruned_bound, least)
                return _COUNTED
        return self._by_eigenvalues(part)

    def _suspects(self, low: FloatArray) -> IntArray:
        """The pairs (m, 2) of candidates, by position, that are not cleared."""
        return np.argwhere(~(low >= self.needed))

    def _left_by_pairs(self, part: _Part) -> tuple[FloatArray, FloatArray]:
        """What each pair of candidates leaves at least (inf on and below the diagonal), and about what it captures."""
        residuals, columns, (d, m) = self.residuals, part.candidates, part.rest.shape
        products = part.rest[columns] @ part.rest.T
        G, H = products[:, columns], products @ products.T
        squares, energies = np.diagonal(G), np.diagonal(H)
        with np.errstate(all="ignore"):
            angles = (part.angle + 2.0 * residuals.unit) * residuals.norms[columns] / np.sqrt(squares)
            t = G / squares[:, None]
            apart = 1.0 - t * t.T
            second = (energies[None, :] - 2.0 * t * H + t * t * energies[:, None]) / (squares[None, :] * apart)
            turned = TURNED * (angles[:, None] + angles[None, :]) / np.sqrt(apart)
            doubt = ROUNDED * (m + d + 8) * UNIT / apart + turned
            captured = (energies / squares)[:, None] + second
            low = part.left - residuals.margin(part.angle, part.left) - captured - doubt * part.left
        reliable = (apart > MOST_DEPENDENT) & np.logical_and.outer(angles <= RELIABLE, angles <= RELIABLE)
        low[~(reliable & np.isfinite(low))] = -np.inf
        low[_lower_half(columns.size)] = np.inf
        return low, captured

    def _by_eigenvalues(self, part: _Part) -> _Closed:
        residuals, (d, m) = self.residuals, part.rest.shape
        self.work += _of_values(d, m)
        angles = residuals.angles(part.rest, part.angle)
        captured, doubt = residuals.captured(part.rest, part.candidates, 2, angles)
        without = part.left - residuals.margin(part.angle, part.left) - doubt * part.left
        bound = without - float(captured.sum())
        return _CLOSED if self._closes(bound) else _Closed([LEFT_OPEN], [(part.state, bound)])

    def _closes_alone(self, columns: Sequence[int]) -> bool:
        """Whether one selection is known not to be better, once it has been adopted if it is."""
        chosen, residuals = np.array(columns, dtype=np.int64), self.residuals
        span = residuals.span(chosen)
        rss = float(np.sum(span.residual(residuals.columns) ** 2))
        if rss < self.best:
            self._adopt(columns)
        return span.skipped == 0.0 and self._closes(rss - residuals.margin(residuals.angle(span), rss))

    def _adopt(self, columns: Sequence[int]) -> None:
        """Hold regions against a selection from now on, if it is better than all before."""
        support = np.sort(np.array(columns, dtype=np.int64))
        value = float(self.problem.objectives(support[None])[0])
        if value < self.best:
            self.best, self.support = value, tuple(support.tolist())


_CLOSED, _COUNTED = _Closed([CLOSED], []), _Closed([COUNTED], [])


def _of_values(d: int, m: int) -> float:
    return OF_VALUES + OF_FACTORS * d * m * m


def _left_open(state: StateArray) -> _Closed:
    return _Closed([LEFT_OPEN], [(state.copy(), 0.0)])


def _lower_half(size: int) -> BoolArray:
    """Where no pair (size, size) of positions stands that has not been named: on and below the diagonal."""
    return np.tri(size, dtype=bool)
