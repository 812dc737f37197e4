"""Greedy RLS in progress: what Algorithm 3 of the paper keeps between its steps, and one step."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from exactsel._jit import available_threads, parallel_section
from exactsel.kernels.linalg import dot, predict
from exactsel.types import FloatArray
from exactsel_heuristics._greedy_rls_kernels import SMALLEST_SLACK, UNDECIDED, score_additions
from exactsel_heuristics.base import never

WORTH_SHARING = 200_000
"""Entries of A (about a tenth of a millisecond per step) from which on threads share the work."""


class LeaveOneOutSelection:
    """Greedy RLS in progress.

    With M = I - (hat matrix of the ridge fit on the path), column a_i has the row c_i = M a_i of the cache and the
    pivot s_i = lam + a_i'M a_i. The paper's G, a and d are M, residual and slack, each divided by lam; without that
    factor lam = 0 needs no other formula.

    The update of the cache by a column just added is put off until the next step scores the candidates, so that one
    pass over the matrix does both.

    The updated pivot of a column that nearly depends on the path is small, with a rounding error relative to its first
    value, and what is divided by it would spoil all that follows. The pivot of the column to be added is therefore
    computed again as s = ||c||² + lam (1 + ||beta||²), where beta are the ridge coefficients of that column on
    the path: nothing cancels in it. That is O(m²) at m columns, which only counts when k exceeds n by far. The
    candidates are compared by the updated pivots.

    Parameters
    ----------
    AT : array (d, n)
        The data, transposed; a copy of the same size is made.
    y : array (n,)
    lam : float
    labels : bool
        Whether the criterion is the number of wrong signs; y is -1 and +1 then.
    threads : int, optional

    Attributes
    ----------
    path : list of int
        The columns selected, in order.
    errors : list of float
        The criterion after each step.
    evaluations : int
        Number of candidates scored.
    coefficients : array (len(path),)
        The ridge coefficients on ``path``.
    residual, slack : array (n,)
        y minus the fit, and 1 - leverage, of the ridge fit on ``path``; residual / slack are the leave-one-out errors.
    """

    def __init__(self, AT: FloatArray, y: FloatArray, lam: float, labels: bool, threads: int | None = None) -> None:
        d, n = AT.shape
        self._AT, self._y = AT.view(), y.view()
        # numba compiles again for writable arrays, and a problem's are not.
        self._AT.flags.writeable = self._y.flags.writeable = False
        self._lam, self._labels = float(lam), labels
        self._threads = (threads or available_threads()) if n * d >= WORTH_SHARING else 1
        self._cache: FloatArray = np.empty((d, n))
        self._added: FloatArray = np.zeros(n)
        self._usable = np.ones(d, dtype=np.bool_)
        self._pivot, self._correlation, self._least_pivot = np.empty(d), np.empty(d), np.empty(d)
        self._squared, self._wrong = np.empty(d), np.empty(d)
        self._projections: list[FloatArray] = []
        self._directions: FloatArray = np.zeros((8, 8))
        self._steps: list[float] = []
        self.residual: FloatArray = y.copy()
        self.slack: FloatArray = np.ones(n)
        self.coefficients: FloatArray = np.zeros(0)
        self.path: list[int] = []
        self.errors: list[float] = []
        self.evaluations = 0

    def extend(self, k: int, should_stop: Callable[[], bool] = never) -> None:
        """Add columns until there are k, none can be added, or ``should_stop`` says so."""
        while len(self.path) < min(k, len(self._AT)) and not should_stop():
            self._score()
            best = self._best()
            while math.isfinite(self._squared[best]) and not self._add(best):
                self._squared[best] = np.inf
                best = self._best()
            if not math.isfinite(self._squared[best]):
                break

    def coefficients_by_step(self) -> FloatArray:
        """The ridge coefficients on the first t + 1 columns in row t, followed by zeros; (len(path), len(path))."""
        m = len(self.path)
        coefficients: FloatArray = np.cumsum(self._directions[:m, :m] * np.array(self._steps)[:, None], axis=0)
        return coefficients

    def _score(self) -> None:
        """Score every addition; this also brings the cache up to date."""
        projection = np.empty(len(self._AT))
        added = self.path[-1] if self.path else -1
        factor = self._AT[added] if self._lam > 0.0 else self._added.view()
        factor.flags.writeable = False
        with parallel_section(self._threads):
            score_additions(
                self._AT, self._y, self._lam, self._labels, added, factor, self._added,
                self._usable, self.residual, self.slack, self._cache, self._pivot, self._correlation,
                self._least_pivot, projection, self._squared, self._wrong,
            )  # fmt: skip
        if self.path:
            self._projections.append(projection)
        self.evaluations += len(self._AT) - len(self.path)

    def _best(self) -> int:
        """The column of smallest criterion; ties as documented, an infinite squared loss when nothing can be added."""
        if not self._labels:
            return int(np.argmin(self._squared))
        counts = np.where(np.isfinite(self._squared), self._wrong, np.inf)
        return int(np.argmin(np.where(counts == counts.min(), self._squared, np.inf)))

    def _add(self, best: int) -> bool:
        """Add a column; False, and nothing happens, when a leave-one-out error is lost to rounding after all."""
        c, beta = self._cache[best], self._on_path(best)
        pivot = dot(c, c) + self._lam * (1.0 + dot(beta, beta))
        slack = self.slack - c**2 / pivot
        if not slack.min() > SMALLEST_SLACK:
            return False
        correlation = dot(c, self.residual) + self._lam * dot(beta, self.coefficients)
        step = correlation / pivot
        self.slack = slack
        self.residual -= step * c
        self.coefficients = np.append(self.coefficients - step * beta, step)
        self._pivot[best], self._correlation[best], self._usable[best] = pivot, correlation, False
        self._added[:] = c
        self._remember(beta, step)
        self.path.append(best)
        self.errors.append(self._error())
        return True

    def _on_path(self, i: int) -> FloatArray:
        """The ridge coefficients (len(path),) of column i on the path."""
        m = len(self.path)
        weights, beta = np.array([projection[i] for projection in self._projections]), np.zeros(m)
        # A compiled sum: that of a threaded library may depend on the number of its threads.
        predict(self._directions, np.arange(m), weights, beta)
        return beta

    def _remember(self, beta: FloatArray, step: float) -> None:
        """Keep in which direction the coefficients moved, a column's own minus those of the path on it, and how far."""
        m = len(self._steps)
        if m == len(self._directions):
            larger = np.zeros((2 * m, 2 * m))
            larger[:m, :m] = self._directions
            self._directions = larger
        self._directions[m, :m], self._directions[m, m] = -beta, 1.0
        self._steps.append(step)

    def _error(self) -> float:
        errors = self.residual / self.slack
        return float(np.sum(self._y * (self._y - errors) <= UNDECIDED) if self._labels else np.sum(errors**2))
