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

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactsel.bounds.base import BoundOptions, Tightened
from exactsel.column_subset import ColumnSubsetProblem
from exactsel.errors import UnsupportedError
from exactsel.kernels.node import CUT, FREE, IN, RELAXED, SOLVED, UNFINISHED, Answers, empty_answers
from exactsel.projection import Span, span_of
from exactsel.proof import EigenvaluePoint, Proof
from exactsel.types import FloatArray, IntArray, StateArray

UNIT = 2.0**-53

BOUNDED_RECONSTRUCTION = 1e4
"""Where columns are nearly dependent, bounds speak of reconstructions with abs(x_jl) ||a_j|| <= this * ||a_l||."""

WELL_CONDITIONED = 1e-8
"""C counts as independent when the Gram matrix of its unit residuals exceeds this times the identity."""

RELIABLE = 1e-4
"""A residual is a direction one can rely upon when at least this share of the column is left."""


@dataclass(frozen=True)
class EigenvalueBound:
    """Eigenvalues of what is left once S is projected out (column subset selection)."""

    name = "eigenvalue"
    family = "css"

    def prepare(self, problem: ColumnSubsetProblem, options: BoundOptions) -> PreparedEigenvalue:
        """Bind to a problem of column subset selection."""
        if problem.family != self.family:
            raise UnsupportedError("the bound 'eigenvalue' is for column subset selection; use --problem css.")
        return PreparedEigenvalue(problem, options)


class PreparedEigenvalue:
    """Bounds nodes one by one, on several threads (the factorisations release the interpreter lock)."""

    def __init__(self, problem: ColumnSubsetProblem, options: BoundOptions) -> None:
        self.problem = problem
        self.options = options
        self.bounded_models_only = False
        """Whether some bound speaks only of reconstructions with moderate coefficients."""
        self._columns = problem.reduced
        self._norms = np.linalg.norm(self._columns, axis=1)
        self._original = _first_copies(problem.AT)
        self._total = problem.squared_norm
        self._rounding = 16.0 * (problem.n + problem.d) * UNIT * self._total

    @property
    def scope(self) -> str:
        """What the bounds are restricted to, in words; empty when they are not."""
        if not self.bounded_models_only:
            return ""
        return f"reconstructions with |x_jl| ||a_j|| <= {BOUNDED_RECONSTRUCTION:g} ||a_l|| (nearly dependent columns)"

    def tighten(
        self, states: StateArray, warm: Sequence[Any], cutoff: float, upper: float, known: FloatArray | None = None
    ) -> Tightened:
        """See :class:`exactsel.bounds.base.PreparedBound`; there is nothing to warm-start."""
        answers = empty_answers(len(states), self.problem.d, self.problem.k)

        def work(row: int) -> None:
            if self.options.stop[0]:
                answers.status[row] = UNFINISHED
            else:
                self._bound(states[row], cutoff, answers, row)

        if self.options.threads > 1 and len(states) > 1:
            with ThreadPoolExecutor(self.options.threads) as pool:
                list(pool.map(work, range(len(states))))
        else:
            for row in range(len(states)):
                work(row)
        proofs: list[Proof] = [EigenvaluePoint()] * len(states)
        return Tightened(answers, proofs, [None] * len(states))

    def _bound(self, state: StateArray, cutoff: float, answers: Answers, row: int) -> None:
        """Bound one node and write its answer."""
        inside, candidates = np.flatnonzero(state == IN), np.flatnonzero(state == FREE)
        places = self.problem.k - inside.size
        answers.iterations[row] = 1
        if places <= 0 or candidates.size <= places:
            chosen = inside if places <= 0 else np.concatenate([inside, candidates])
            span = self._span(chosen)
            left = float(np.sum(span.residual(self._columns) ** 2))
            _write_solved(answers, row, chosen, left - self._margin(span, left))
            return
        span = self._span(inside)
        rest = span.residual(self._columns)
        left = float(np.sum(rest**2))
        margin = self._margin(span, left)
        gains, reliable = self._gains(rest, inside, candidates)
        if places == 1 and reliable.all():
            best = int(np.argmax(gains))
            chosen = np.append(inside, candidates[best])
            _write_solved(answers, row, chosen, left - float(gains[best]) - margin - self._blur(left))
            return
        captured, doubt = self._captured(rest, candidates, places, left)
        bound = left - float(captured.sum()) - margin - doubt
        into = left - gains - float(captured[:-1].sum()) - margin - doubt - self._blur(left)
        answers.bound[row] = bound
        answers.status[row] = CUT if bound >= cutoff else RELAXED
        answers.bound_in[row, candidates] = np.where(reliable, np.maximum(into, bound), bound)
        answers.bound_out[row, candidates] = bound
        answers.x[row, candidates] = gains
        answers.indicator[row, candidates] = np.minimum(1.0, gains / max(float(captured[-1]), 1e-300))
        support = _greedily(rest, inside, candidates, places)
        answers.support[row, : support.size] = support

    def _span(self, chosen: IntArray) -> Span:
        span = span_of(self._columns[chosen])
        if span.skipped > 0.0:
            self.bounded_models_only = True
        return span

    def _margin(self, span: Span, left: float) -> float:
        """What rounding in the span of S may have added to ``left`` = ||E||².

        The span moves by an angle of at most about (rounding) * condition. A skipped column could contribute its
        coefficient times what is left of it.
        """
        size = np.sqrt(left * self._total)
        angle = 8.0 * (span.basis.shape[0] + 8) * UNIT * span.condition
        hidden = 2.0 * BOUNDED_RECONSTRUCTION * (span.skipped + 4 * UNIT * (span.skipped > 0)) * size
        return float(self._rounding + 8.0 * angle * size + 8.0 * angle**2 * self._total + hidden)

    def _blur(self, left: float) -> float:
        """What rounding in a reliable direction may take from its gain."""
        return 32.0 * UNIT / RELIABLE * float(np.sqrt(left * self._total))

    def _gains(self, rest: FloatArray, inside: IntArray, candidates: IntArray) -> tuple[FloatArray, Any]:
        """What each candidate alone would capture, and whether its direction can be relied upon.

        A zero column captures nothing, for sure, and neither does an exact copy of a column in S.
        """
        lengths = np.sum(rest[candidates] ** 2, axis=1)
        norms = self._norms[candidates]
        products = rest[candidates] @ rest.T
        energy = np.sum(products**2, axis=1)
        useless = (norms == 0) | np.isin(self._original[candidates], self._original[inside])
        reliable = useless | (lengths >= (RELIABLE * norms) ** 2)
        gains = np.divide(energy, lengths, out=np.zeros(candidates.size), where=reliable & ~useless)
        return gains, reliable

    def _captured(self, rest: FloatArray, candidates: IntArray, places: int, left: float) -> tuple[FloatArray, float]:
        """The ``places`` largest eigenvalues, largest first, and what rounding in the span of C may hide."""
        distinct = candidates[np.unique(self._original[candidates], return_index=True)[1]]
        directions = rest[distinct]
        lengths = np.linalg.norm(directions, axis=1)
        doubt, restricted = 0.0, rest
        if distinct.size < rest.shape[1] and self._independent(directions, lengths, distinct):
            q = np.linalg.qr(directions.T)[0]
            restricted = rest @ q
            angle = 16.0 * (distinct.size + 8) * UNIT / (RELIABLE * np.sqrt(WELL_CONDITIONED))
            doubt = 8.0 * angle * float(np.sqrt(left * self._total))
        eigenvalues = np.linalg.eigvalsh(restricted.T @ restricted)
        return np.maximum(eigenvalues[::-1][:places], 0.0), doubt

    def _independent(self, directions: FloatArray, lengths: FloatArray, columns: IntArray) -> bool:
        """Whether residuals of columns are far from dependent, so that their span is known well."""
        norms = self._norms[columns]
        if np.any(lengths < RELIABLE * norms) or np.any(norms == 0):
            return False
        units = directions / lengths[:, None]
        try:
            np.linalg.cholesky(units @ units.T - WELL_CONDITIONED * np.eye(columns.size))
        except np.linalg.LinAlgError:
            return False
        return True


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
