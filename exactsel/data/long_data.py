"""Rows read once, in blocks, and kept as a triangular factor: a small instance with the same objective.

Of the matrix [1 | A | y], each row times the root of its weight, the factor R is kept; the ones with an intercept only.
Below its first row stands the problem for the best intercept: ||A'x - y'|| for (A', y') the rest of R is the sum of
squares of all rows. With an intercept the first rows' means are taken off before, so that columns far from zero lose
nothing. How far all this is off is summed up column by column on the way (:mod:`exactsel.algebra.rotation`).
"""

from __future__ import annotations

import math
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from exactsel._jit import available_threads
from exactsel.algebra.rotation import ROOM, Factor, Held, column_lengths, factorised, merged, to_hold_against
from exactsel.algebra.threads import one_thread
from exactsel.errors import InputError
from exactsel.problem.reduction import Reduction
from exactsel.rounding import UNIT
from exactsel.types import FloatArray

ROWS_PER_COLUMN, MOST_ENTRIES, LEAST_ROWS_PER_COLUMN = 64, 2**22, 4
"""Rows that are factorised at once, a column; less where that were more entries, but not less than the last."""

TOGETHER = 8
"""Factors that are merged into one."""


class Reduced(NamedTuple):
    """What is left of the rows."""

    A: FloatArray
    """(r, d), r = min(rows, d + 1) or so."""
    y: FloatArray
    """(r,)"""
    reduction: Reduction


class Reducer:
    """Takes rows in blocks of any size, in order; the result depends on neither these nor the threads.

    Parameters
    ----------
    d : int
        Number of columns.
    intercept : bool
        Whether models have an unpenalised intercept.
    threads : int, optional
        All cores by default; each works on some rows of its own, with one BLAS thread.
    """

    def __init__(self, d: int, *, intercept: bool = False, threads: int | None = None) -> None:
        self._width, self._intercept = d + 1 + int(intercept), intercept
        fits = min(ROWS_PER_COLUMN * self._width, MOST_ENTRIES // self._width)
        self._rows = max(LEAST_ROWS_PER_COLUMN * self._width, fits)
        self._part = self._empty()
        self._shift = None if intercept else np.zeros(d + 1)
        self._held: Held | None = None
        self._levels: list[list[Factor]] = []
        self._threads = threads or available_threads()
        self._pool = ThreadPoolExecutor(self._threads)
        self._waiting: deque[Future[Factor]] = deque()
        self._seen, self._weights = 0, list[float]()

    def take(self, A: FloatArray, y: FloatArray, weights: FloatArray | None = None) -> None:
        """Take the rows A (m, d), y (m,), with weights (m,) that are not negative; all finite."""
        self._seen += len(A)
        self._weights.append(float(len(A)) if weights is None else math.fsum(weights))
        if len(self._weights) > 1000:
            self._weights = [math.fsum(self._weights)]
        for first in range(0, len(A), self._rows):
            # In pieces, so that no copy of a large block is made.
            piece = slice(first, first + self._rows)
            if weights is None:
                self._put(A[piece], y[piece], None)
            else:
                counted = first + np.flatnonzero(weights[piece] > 0)
                self._put(A[counted], y[counted], np.sqrt(weights[counted]))

    def end(self) -> Reduced:
        """The few rows that stand for all.

        Raises
        ------
        InputError
            When there were no rows, or none that counts.
        """
        self._flush()
        self._collect(0)
        factors = [part for level in reversed(self._levels) for part in level]
        if not factors:
            what = "all rows have the weight 0" if self._seen else "there are no rows"
            raise InputError(f"{what}, so there is nothing to fit; give at least one row that counts.")
        with one_thread():
            whole = merged(factors)
        return self._answer(np.triu(whole.R), whole.error)

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(cancel_futures=True)

    def _answer(self, R: FloatArray, error: FloatArray) -> Reduced:
        diagonal = np.diagonal(R)
        R = np.vstack([R[: diagonal.size] * np.where(diagonal < 0, -1.0, 1.0)[:, None], R[diagonal.size :]]) + 0.0
        weight, means = math.fsum(self._weights), None
        if self._intercept:
            assert self._shift is not None
            means = self._shift + R[0, 1:] / R[0, 0]
            # The best intercept is off, too, by the error of the column of ones.
            lengths = column_lengths(R)[1:] + error[1:]
            error = (error[1:] + error[0] * lengths / (R[0, 0] * (1.0 - 1e-12) - error[0])) * ROOM
            R = R[1:, 1:]
        if not len(R):
            R = np.zeros((1, error.size))
        return Reduced(R[:, :-1].copy(), R[:, -1].copy(), Reduction(self._seen, weight, error, means))

    def _empty(self) -> _Part:
        return _Part(np.empty((self._rows, self._width)), np.empty(self._rows), 0, False)

    def _put(self, A: FloatArray, y: FloatArray, roots: FloatArray | None) -> None:
        done = 0
        while done < len(A):
            part = self._part
            room = min(len(A) - done, self._rows - part.filled)
            here, into = slice(done, done + room), slice(part.filled, part.filled + room)
            part.rows[into, : self._width - A.shape[1] - 1] = 1.0
            part.rows[into, self._width - A.shape[1] - 1 : -1] = A[here]
            part.rows[into, -1] = y[here]
            part.roots[into] = 1.0 if roots is None else roots[here]
            self._part = part._replace(filled=part.filled + room, weighted=part.weighted or roots is not None)
            done += room
            if self._part.filled == self._rows:
                self._flush()

    def _flush(self) -> None:
        """Hand over what has come together; the first rows are waited for, as all others are compared with them."""
        part = self._part
        if not part.filled:
            return
        self._part = self._empty()
        if self._shift is None:
            self._shift = _middles(part.rows[: part.filled, 1:])
        has_factors = bool(self._waiting or self._levels)
        self._waiting.append(self._pool.submit(_factor_of, part, self._shift, self._held))
        if not has_factors:
            self._collect(0)
            self._held = to_hold_against(self._levels[0][0].R)
        self._collect(self._threads)

    def _collect(self, limit: int) -> None:
        """Put factors where they belong until no more than ``limit`` are waited for."""
        while len(self._waiting) > limit:
            factor, level = self._waiting.popleft().result(), 0
            while True:
                if level == len(self._levels):
                    self._levels.append([])
                self._levels[level].append(factor)
                if len(self._levels[level]) < TOGETHER:
                    break
                with one_thread():
                    factor = merged(self._levels[level])
                self._levels[level] = []
                level += 1


class _Part(NamedTuple):
    """Rows that are factorised at once."""

    rows: FloatArray
    """(m, w)"""
    roots: FloatArray
    """(m,) of the weights."""
    filled: int
    weighted: bool


def _middles(rows: FloatArray) -> FloatArray:
    """Means of the columns of rows (m, w), within their range: of a constant column that constant."""
    return np.asarray(np.clip(rows.mean(axis=0), rows.min(axis=0), rows.max(axis=0)))


def _factor_of(part: _Part, shift: FloatArray, held: Held | None) -> Factor:
    """The factor of some rows, what preparing them rounds taken into its error."""
    with one_thread():
        B, roundings = part.rows[: part.filled], 0
        if shift.any():
            B[:, B.shape[1] - shift.size :] -= shift
            roundings += 1
        lost = np.zeros(B.shape[1])
        if part.weighted:
            lost = np.where(B.any(axis=0), 1e-150 * len(B), 0.0)  # more than what vanishes beside a small weight
            B *= part.roots[: part.filled, None]
            roundings += 2
        factor = factorised(B, held)
        if roundings:
            lost = lost + roundings * ROOM * UNIT * column_lengths(B)
        return Factor(factor.R, (factor.error + lost) * ROOM)
