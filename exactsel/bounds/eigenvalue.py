"""The eigenvalue bound of column subset selection.

Let E be A after projecting out the columns of S. Any r columns of C span, together with S, at most r directions more,
all of them in the span of E_C; these capture at most the r largest eigenvalues of E E' restricted to that span. So

    ||E||² - (sum of the r largest eigenvalues)

is a lower bound of the node (Arai, Maung and Schweitzer 2015: optimal column subset selection by A-star search).
Putting in column j captures exactly ||E'e_j||²/||e_j||², and what r - 1 more can capture is no more than before.

Rounding. Everything is computed on orthogonal factors, so errors are absolute, in units of ||A||², except that the span
of nearly dependent columns is known badly: each bound gives up what the measured condition allows for. No direction is
ever dropped from the span of C: where C is nearly dependent the eigenvalues of all of E E' are taken. A column of S
that is nearly a combination of others counts as one; the bound then speaks of reconstructions whose coefficients are
not absurdly large, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactsel._jit import working_threads
from exactsel.algebra.projection import Span, span_of
from exactsel.bounds.base import BoundOptions, BoundSolver, PreparedBound, Tightened
from exactsel.bounds.witness import EigenvaluePoint, Proof
from exactsel.errors import UnsupportedError, css_problem
from exactsel.kernels.node import CUT, FREE, IN, RELAXED, SOLVED, UNFINISHED, Answers, empty_answers
from exactsel.problem.column_subset import ColumnSubsetProblem
from exactsel.rounding import UNIT
from exactsel.types import BoolArray, FloatArray, IntArray, StateArray

BOUNDED_RECONSTRUCTION = 1e4
"""Where columns are nearly dependent, bounds speak of reconstructions with abs(x_jl) ||a_j|| <= this * ||a_l||."""

CONDITIONS = (1e-2, 1e-4, 1e-6, 1e-8)
"""C counts as independent when the Gram matrix of its unit residuals exceeds one of these times the identity."""

BOUNDED_ONLY = f"reconstructions with |x_jl| ||a_j|| <= {BOUNDED_RECONSTRUCTION:g} ||a_l|| (nearly dependent columns)"
"""The scope of a bound where a nearly dependent column was left out of the span of S."""

RELIABLE = 1e-7
"""A direction one can rely upon is turned by rounding by no more than this angle."""


@dataclass(frozen=True)
class EigenvalueBound(BoundSolver):
    """Eigenvalues of what is left once S is projected out (column subset selection)."""

    name = "eigenvalue"
    family = "css"

    def prepare(self, problem: ColumnSubsetProblem, options: BoundOptions) -> PreparedEigenvalue:
        """Bind to a problem of column subset selection."""
        if problem.family != self.family:
            raise UnsupportedError(f"the bound 'eigenvalue' is for column subset selection; use {css_problem()}.")
        return PreparedEigenvalue(problem, options)


class PreparedEigenvalue(PreparedBound):
    """Bounds nodes one by one, on several threads (the factorisations release the interpreter lock)."""

    def __init__(self, problem: ColumnSubsetProblem, options: BoundOptions) -> None:
        self.problem = problem
        self.options = options
        self._columns = problem.reduced
        self._norms = np.linalg.norm(self._columns, axis=1)
        self._original = _first_copies(problem.AT)
        self._total = problem.squared_norm
        self._rounding = 16.0 * (problem.n + problem.d) * UNIT * self._total
        # What the rotation in `reduced` and later sums do to a column, relative to its length.
        self._unit = (8.0 + float(np.sqrt(problem.n + problem.d))) * UNIT

    def tighten(
        self, states: StateArray, warm: Sequence[Any], cutoff: float, upper: float, known: FloatArray | None = None
    ) -> Tightened:
        """See :class:`exactsel.bounds.base.PreparedBound`; there is nothing to warm-start."""
        answers = empty_answers(len(states), self.problem.d, self.problem.k)

        def work(row: int) -> bool:
            if self.options.stop[0]:
                answers.status[row] = UNFINISHED
                return False
            return self._bound(states[row], cutoff, answers, row)

        threads = working_threads(self.options.threads)
        if threads > 1 and len(states) > 1:
            with ThreadPoolExecutor(threads) as pool:
                restricted = any(list(pool.map(work, range(len(states)))))
        else:
            restricted = any([work(row) for row in range(len(states))])
        proofs: list[Proof] = [EigenvaluePoint()] * len(states)
        return Tightened(answers, proofs, [None] * len(states), scope=BOUNDED_ONLY if restricted else "")

    def _bound(self, state: StateArray, cutoff: float, answers: Answers, row: int) -> bool:
        """Bound one node and write its answer; whether that speaks only of reconstructions of bounded coefficients."""
        inside, candidates = np.flatnonzero(state == IN), np.flatnonzero(state == FREE)
        places = self.problem.k - inside.size
        answers.iterations[row] = 1
        if places <= 0 or candidates.size <= places:
            chosen = inside if places <= 0 else np.concatenate([inside, candidates])
            span = self._span(chosen)
            left = float(np.sum(span.residual(self._columns) ** 2))
            _write_solved(answers, row, chosen, left - self._margin(span, left))
            return span.skipped > 0.0
        span = self._span(inside)
        rest = span.residual(self._columns)
        left = float(np.sum(rest**2))
        margin = self._margin(span, left)
        angles = self._angles(rest, span)
        gains, reliable = self._gains(rest, inside, candidates, angles)
        if places == 1 and reliable.all():
            best = int(np.argmax(gains))
            chosen = np.append(inside, candidates[best])
            _write_solved(answers, row, chosen, left - float(gains[best]) - margin)
            return span.skipped > 0.0
        captured, doubt = self._captured(rest, candidates, places, angles)
        bound = left - float(captured.sum()) - margin - doubt * left
        into = left - gains - float(captured[: places - 1].sum()) - margin - doubt * left
        answers.bound[row] = bound
        answers.status[row] = CUT if bound >= cutoff else RELAXED
        answers.bound_in[row, candidates] = np.where(reliable, np.maximum(into, bound), bound)
        answers.bound_out[row, candidates] = bound
        answers.x[row, candidates] = gains
        answers.indicator[row, candidates] = gains / max(float(gains.max()), 1e-300)
        if bound < cutoff:
            support = _greedily(rest, inside, candidates, places)
            answers.support[row, : support.size] = support
        return span.skipped > 0.0

    def _span(self, chosen: IntArray) -> Span:
        # Copies are recognised in the data: the rotation may have told them apart by a rounding.
        return span_of(self._columns[np.unique(self._original[chosen])])

    def _angle(self, span: Span) -> float:
        """By how much rounding may have turned the span of S."""
        return float((span.basis.shape[0] + 4) * self._unit * span.condition)

    def _margin(self, span: Span, left: float) -> float:
        """What rounding in the span of S may have added to ``left`` = ||E||², or to what is captured of it.

        Turning the span by an angle moves E by no more than the angle times ||A||. A skipped column could contribute
        its coefficient times what is left of it.
        """
        size, angle = float(np.sqrt(left * self._total)), self._angle(span)
        hidden = 2.0 * BOUNDED_RECONSTRUCTION * (span.skipped + 4 * UNIT * (span.skipped > 0)) * size
        return float(self._rounding + 4.0 * angle * size + 2.0 * angle**2 * self._total + hidden)

    def _angles(self, rest: FloatArray, span: Span) -> FloatArray:
        """By how much rounding may have turned each column's residual, (d,): its error over its length."""
        lengths = np.linalg.norm(rest, axis=1)
        error = (self._angle(span) + 2.0 * self._unit) * self._norms
        angles: FloatArray = np.full(lengths.size, np.inf)
        np.divide(error, lengths, out=angles, where=lengths > 0)
        return angles

    def _gains(
        self, rest: FloatArray, inside: IntArray, candidates: IntArray, angles: FloatArray
    ) -> tuple[FloatArray, BoolArray]:
        """The most each candidate alone can capture, and whether that is known well.

        A zero column captures nothing, for sure, and neither does an exact copy of a column in S.
        """
        lengths = np.sum(rest[candidates] ** 2, axis=1)
        energy = np.sum((rest[candidates] @ rest.T) ** 2, axis=1)
        useless = (self._norms[candidates] == 0) | np.isin(self._original[candidates], self._original[inside])
        reliable = useless | (angles[candidates] <= RELIABLE)
        known = reliable & ~useless
        gains = np.divide(energy, lengths, out=np.zeros(candidates.size), where=known)
        gains[known] += 3.0 * angles[candidates][known] * float(np.sum(rest**2))
        return gains, reliable

    def _captured(
        self, rest: FloatArray, candidates: IntArray, places: int, angles: FloatArray
    ) -> tuple[FloatArray, float]:
        """The ``places`` largest eigenvalues, largest first, and the share of ||E||² rounding in span E_C may hide."""
        distinct = candidates[np.unique(self._original[candidates], return_index=True)[1]]
        doubt, restricted = 0.0, rest
        if distinct.size < rest.shape[1]:
            angle = _span_angle(rest[distinct], angles[distinct])
            if angle <= RELIABLE:
                restricted = rest @ np.linalg.qr(rest[distinct].T)[0]
                # Directions turned by an angle capture at most 2 angle ||E||² more, to first order.
                doubt = 3.0 * angle
        eigenvalues = np.linalg.eigvalsh(restricted.T @ restricted)
        return np.maximum(eigenvalues[::-1][:places], 0.0), doubt


def _span_angle(directions: FloatArray, angles: FloatArray) -> float:
    """By how much rounding may have turned the span of some rows, each turned by its own angle; inf if not known."""
    errors = float(np.linalg.norm(angles)) + 8.0 * math.sqrt(len(directions)) * UNIT
    if not errors < RELIABLE:
        return math.inf
    units = directions / np.linalg.norm(directions, axis=1)[:, None]
    gram = units @ units.T
    for smallest in CONDITIONS:
        try:
            np.linalg.cholesky(gram - smallest * np.eye(len(gram)))
        except np.linalg.LinAlgError:
            continue
        return errors / math.sqrt(smallest)
    return math.inf


def _first_copies(AT: FloatArray) -> IntArray:
    """For each column the number of the first column equal to it."""
    first: dict[bytes, int] = {}
    return np.array([first.setdefault(column.tobytes(), j) for j, column in enumerate(AT)], dtype=np.int64)


def _write_solved(answers: Answers, row: int, chosen: IntArray, bound: float) -> None:
    answers.bound[row] = bound
    answers.status[row] = SOLVED
    answers.x[row, chosen] = 1.0
    answers.indicator[row, chosen] = 1.0
    answers.support[row, : chosen.size] = chosen


def _greedily(rest: FloatArray, inside: IntArray, candidates: IntArray, places: int) -> IntArray:
    """S filled up by the candidates that capture most, one after the other."""
    gram = rest @ rest.T
    squares = np.diagonal(gram).copy()
    chosen: list[int] = []
    free = candidates.copy()
    for _ in range(places):
        pivots = np.diagonal(gram)[free]
        energy = np.sum(gram[free] ** 2, axis=1)
        gains = np.divide(energy, pivots, out=np.zeros(free.size), where=pivots > 1e-10 * squares[free])
        best = int(np.argmax(gains))
        if gains[best] <= 0.0:
            break
        j = int(free[best])
        gram = gram - np.outer(gram[:, j], gram[:, j]) / gram[j, j]
        chosen.append(j)
        free = np.delete(free, best)
    return np.sort(np.concatenate([inside, np.array(chosen, dtype=np.int64)]))
