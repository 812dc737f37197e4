"""The eigenvalue bound of column subset selection.

Let E be A after projecting out the columns of S. Any r columns of C span, together with S, at most r directions more,
all of them in the span of E_C; these capture at most the r largest eigenvalues of E E' restricted to that span. So

    ||E||² - (sum of the r largest eigenvalues)

is a lower bound of the node (Arai, Maung and Schweitzer 2015: optimal column subset selection by A-star search). Adding
column j captures exactly ||E'e_j||²/||e_j||², and what r - 1 more can capture is no more than before.

Rounding: bounds/residuals.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactsel._jit import working_threads
from exactsel.bounds.base import BoundOptions, BoundSolver, PreparedBound, Tightened
from exactsel.bounds.residuals import BOUNDED_RECONSTRUCTION, Residuals
from exactsel.bounds.witness import EigenvaluePoint, Proof
from exactsel.errors import UnsupportedError, css_problem
from exactsel.kernels.node import CUT, FREE, IN, RELAXED, SOLVED, UNFINISHED, Answers, empty_answers
from exactsel.problem.capabilities import COEFFICIENTS, RECONSTRUCTION
from exactsel.problem.column_subset import ColumnSubsetProblem
from exactsel.types import FloatArray, IntArray, StateArray

BOUNDED_ONLY = f"reconstructions with |x_jl| ||a_j|| <= {BOUNDED_RECONSTRUCTION:g} ||a_l|| (nearly dependent columns)"
"""The scope of a bound where a nearly dependent column was removed from the span of S."""


@dataclass(frozen=True)
class EigenvalueBound(BoundSolver):
    """Eigenvalues of what is left once S is projected out (column subset selection)."""

    name = "eigenvalue"
    needs = RECONSTRUCTION

    def prepare(self, problem: ColumnSubsetProblem, options: BoundOptions) -> PreparedEigenvalue:
        """Bind to a problem of column subset selection."""
        if problem.has(COEFFICIENTS):
            raise UnsupportedError(f"the bound 'eigenvalue' is for column subset selection; use {css_problem()}.")
        return PreparedEigenvalue(problem, options)


class PreparedEigenvalue(PreparedBound):
    """Bounds nodes one by one, on several threads (the factorisations release the interpreter lock)."""

    def __init__(self, problem: ColumnSubsetProblem, options: BoundOptions) -> None:
        self.problem = problem
        self.options = options
        self.residuals = Residuals(problem)

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
        return Tightened(answers, proofs, [None] * len(states), valid_for=BOUNDED_ONLY if restricted else "")

    def _bound(self, state: StateArray, cutoff: float, answers: Answers, row: int) -> bool:
        """Bound one node and write its answer; whether that speaks only of reconstructions of bounded coefficients."""
        included, candidates = np.flatnonzero(state == IN), np.flatnonzero(state == FREE)
        slots, residuals = self.problem.k - included.size, self.residuals
        answers.iterations[row] = 1
        if slots <= 0 or candidates.size <= slots:
            chosen = included if slots <= 0 else np.concatenate([included, candidates])
            span = residuals.span(chosen)
            rss = float(np.sum(span.residual(residuals.columns) ** 2))
            _write_solved(answers, row, chosen, rss - residuals.margin(residuals.angle(span), rss, span.skipped))
            return span.skipped > 0.0
        span = residuals.span(included)
        rest = span.residual(residuals.columns)
        rss, angle = float(np.sum(rest**2)), residuals.angle(span)
        margin = residuals.margin(angle, rss, span.skipped)
        angles = residuals.angles(rest, angle)
        gains, reliable = residuals.gains(rest, included, candidates, angles)
        if slots == 1 and reliable.all():
            best = int(np.argmax(gains))
            chosen = np.append(included, candidates[best])
            _write_solved(answers, row, chosen, rss - float(gains[best]) - margin)
            return span.skipped > 0.0
        captured, doubt = residuals.captured(rest, candidates, slots, angles)
        bound = rss - float(captured.sum()) - margin - doubt * rss
        into = rss - gains - float(captured[: slots - 1].sum()) - margin - doubt * rss
        answers.bound[row] = bound
        answers.status[row] = CUT if bound >= cutoff else RELAXED
        answers.bound_in[row, candidates] = np.where(reliable, np.maximum(into, bound), bound)
        answers.bound_out[row, candidates] = bound
        answers.x[row, candidates] = gains
        answers.indicator[row, candidates] = gains / max(float(gains.max()), 1e-300)
        if bound < cutoff:
            support = _greedily(rest, included, candidates, slots)
            answers.support[row, : support.size] = support
        return span.skipped > 0.0


def _write_solved(answers: Answers, row: int, chosen: IntArray, bound: float) -> None:
    answers.bound[row] = bound
    answers.status[row] = SOLVED
    answers.x[row, chosen] = 1.0
    answers.indicator[row, chosen] = 1.0
    answers.support[row, : chosen.size] = chosen


def _greedily(rest: FloatArray, included: IntArray, candidates: IntArray, slots: int) -> IntArray:
    """S filled up by the candidates that capture most, one after the other."""
    gram = rest @ rest.T
    squares = np.diagonal(gram).copy()
    chosen: list[int] = []
    free = candidates.copy()
    for _ in range(slots):
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
    return np.sort(np.concatenate([included, np.array(chosen, dtype=np.int64)]))
