"""Residuals of a matrix after projection on chosen columns, with a bound on their rounding.

Rounding. Everything is computed on orthogonal factors, so errors are absolute, in units of ||A||², except that the span
of nearly dependent columns is known badly: each bound gives up what the measured condition allows for. No direction is
ever dropped from the span of C: where C is nearly dependent the eigenvalues of all of E E' are taken. A column of S
that is nearly a combination of others counts as one; the bound then speaks of reconstructions whose coefficients are
not absurdly large, and says so.
"""

from __future__ import annotations

import math

import numpy as np

from exactsel.algebra.projection import Span, span_of
from exactsel.problem.column_subset import ColumnSubsetProblem
from exactsel.rounding import UNIT
from exactsel.types import BoolArray, FloatArray, IntArray

BOUNDED_RECONSTRUCTION = 1e4
"""Where columns are nearly dependent, bounds speak of reconstructions with abs(x_jl) ||a_j|| <= this * ||a_l||."""

CONDITIONS = (1e-2, 1e-4, 1e-6, 1e-8)
"""C counts as independent when the Gram matrix of its unit residuals exceeds one of these times the identity."""

RELIABLE = 1e-7
"""A direction one can rely upon is turned by rounding by no more than this angle."""


class Residuals:
    """Bound to one problem; regions are given by what is in, and ``rest`` (d, m) is what that leaves of each column."""

    def __init__(self, problem: ColumnSubsetProblem) -> None:
        self.columns = problem.objective.reduced
        self.norms = np.linalg.norm(self.columns, axis=1)
        self.original = _first_copies(problem.AT)
        self.total = problem.null_objective
        self.unit = (8.0 + float(np.sqrt(problem.n + problem.d))) * UNIT
        """What the rotation in `reduced` and later sums do to a column, relative to its length."""
        self._rounding = 16.0 * (problem.n + problem.d) * UNIT * self.total

    def span(self, chosen: IntArray) -> Span:
        """The span of some columns; copies are recognised in the data, as the rotation may have made them differ."""
        return span_of(self.columns[np.unique(self.original[chosen])])

    def angle(self, span: Span) -> float:
        """By how much rounding may have turned the span of S."""
        return float((span.basis.shape[0] + 4) * self.unit * span.condition)

    def margin(self, angle: float, rss: float, skipped: float = 0.0) -> float:
        """What rounding in the span of S, turned by an ``angle``, may have added to ``rss`` = ||E||², or to what is
        captured of it.

        Turning the span by an angle moves E by no more than the angle times ||A||. A skipped column could contribute
        its coefficient times what is left of it.
        """
        size = float(np.sqrt(rss * self.total))
        hidden = 2.0 * BOUNDED_RECONSTRUCTION * (skipped + 4 * UNIT * (skipped > 0)) * size
        return float(self._rounding + 4.0 * angle * size + 2.0 * angle**2 * self.total + hidden)

    def angles(self, rest: FloatArray, angle: float) -> FloatArray:
        """By how much rounding may have turned each column's residual, (d,): its error over its length."""
        lengths = np.linalg.norm(rest, axis=1)
        error = (angle + 2.0 * self.unit) * self.norms
        angles: FloatArray = np.full(lengths.size, np.inf)
        np.divide(error, lengths, out=angles, where=lengths > 0)
        return angles

    def gains(
        self, rest: FloatArray, included: IntArray, candidates: IntArray, angles: FloatArray
    ) -> tuple[FloatArray, BoolArray]:
        """The most each candidate alone can capture, and whether that is known well.

        A zero column captures nothing, for sure, and neither does an exact copy of a column in S.
        """
        lengths = np.sum(rest[candidates] ** 2, axis=1)
        energy = np.sum((rest[candidates] @ rest.T) ** 2, axis=1)
        useless = (self.norms[candidates] == 0) | np.isin(self.original[candidates], self.original[included])
        reliable = useless | (angles[candidates] <= RELIABLE)
        usable = reliable & ~useless
        gains = np.divide(energy, lengths, out=np.zeros(candidates.size), where=usable)
        gains[usable] += 3.0 * angles[candidates][usable] * float(np.sum(rest**2))
        return gains, reliable

    def captured(
        self, rest: FloatArray, candidates: IntArray, slots: int, angles: FloatArray
    ) -> tuple[FloatArray, float]:
        """The ``slots`` largest eigenvalues, largest first, and the share of ||E||² rounding in span E_C may hide."""
        distinct = candidates[np.unique(self.original[candidates], return_index=True)[1]]
        doubt, restricted = 0.0, rest
        if distinct.size < rest.shape[1]:
            angle = _span_angle(rest[distinct], angles[distinct])
            if angle <= RELIABLE:
                restricted = rest @ np.linalg.qr(rest[distinct].T)[0]
                # Directions turned by an angle capture at most 2 angle ||E||² more, to first order.
                doubt = 3.0 * angle
        eigenvalues = np.linalg.eigvalsh(restricted.T @ restricted)
        return np.maximum(eigenvalues[::-1][:slots], 0.0), doubt


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
