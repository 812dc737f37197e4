"""The rows of a loss other than the quadratic one, for methods that need all columns at once: Newton's, minorants.

Columns are multiplied by powers of two, so that their lengths are between one half and one, and an intercept is one
more column, of equal entries and without ridge. The data are read in blocks of rows; nothing of their size is
kept. Several threads take different blocks, whose sums are added in the order of the rows: the result is that of one
thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from types import TracebackType
from typing import TypeVar

import numpy as np
from numpy.linalg import LinAlgError

from exactsel._jit import working_threads
from exactsel.algebra import dense
from exactsel.algebra.elimination import gamma
from exactsel.kernels.levels import find_level
from exactsel.kernels.minorant import curvatures_on, rows_at
from exactsel.problem.objective import Objective
from exactsel.rounding import UNIT
from exactsel.types import BoolArray, FloatArray

BLOCK = 8192
"""Rows summed at a time."""

PART = 16 * BLOCK
"""Rows that are evaluated by one thread at a time."""

AT_ONCE, COLUMNS = 2e9, 128
"""Multiplications (a tenth of a second) up to which a block is multiplied in one go; columns at a time above that."""

NEWTON_STEPS = 60

CONVERGED = 1e-11
"""Part of the objective that a Newton step must promise for another to be made."""


Made = TypeVar("Made")


class Unusable(Exception):
    """The rows cannot give the requested quantity: a singular matrix, or a stop."""


class Rows:
    """The rows of an objective, its columns scaled; a context where several threads are to work on them."""

    def __init__(
        self,
        objective: Objective,
        stop: BoolArray | None = None,
        threads: int = 1,
        should_stop: Callable[[], bool] | None = None,
    ) -> None:
        self.stop = np.zeros(1, dtype=np.bool_) if stop is None else stop
        self._should_stop = should_stop
        self.loss, self.y, self.weights = objective.loss, objective.y, objective.weights
        self.n = objective.n
        # A column of zeros is as long as its ridge: nothing may depend on the units of the data.
        norms = np.where(objective.norms > 0.0, objective.norms, np.sqrt(objective.lam) or 1.0)
        scale: FloatArray = np.ldexp(1.0, -np.frexp(norms)[1])
        ridge = objective.lam * scale * scale
        self._AT, self._scales = objective.AT, scale
        self.one = 2.0 ** -np.round(0.5 * np.log2(self.n)) if objective.intercept else 0.0
        """The entries of the intercept's column; 0 where there is none."""
        if objective.intercept:
            scale, ridge = np.append(scale, self.one), np.append(ridge, 0.0)
        self.scale, self.ridge, self.m = scale, ridge, len(scale)
        self._threads, self._stack = threads, ExitStack()
        self._pool: ThreadPoolExecutor | None = None
        self.empty: BoolArray = np.ones(self.n, dtype=np.bool_)
        """(n,) rows without an entry."""
        squares = np.zeros(self.m)
        for first, (empty, part) in zip(self._firsts(), self._blocks(_sizes), strict=True):
            self.empty[first : first + BLOCK] = empty
            squares += part
        self.lengths: FloatArray = np.sqrt(squares) * (1.0 + (self.n + 8) * UNIT)
        """(m,) of the columns, rounded upwards."""
        self.error = 1.1 * gamma(min(BLOCK, self.n) + self.n / BLOCK + self.m + 64)
        """What a sum of products over rows is off by, as a part of the lengths."""

    def __enter__(self) -> Rows:
        if (threads := working_threads(self._threads)) > 1 and self.n > BLOCK:
            self._pool = self._stack.enter_context(ThreadPoolExecutor(threads, "exactsel-rows"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool = None
        self._stack.close()

    def model(self, coef: FloatArray, objective: Objective) -> FloatArray:
        """(m,) the coefficients (d,) of the data for these columns, with the best intercept."""
        if objective.intercept:
            z, spare = coef @ objective.AT, np.empty((2, self.n))
            coef = np.append(coef, find_level(objective.row_loss, z, self.y, spare[0], spare[1]))
        return np.asarray(coef / self.scale)

    def block(self, first: int) -> FloatArray:
        """(m, BLOCK at most) the scaled columns on some rows."""
        part = self._AT[:, first : first + BLOCK] * self._scales[:, None]
        return np.vstack([part, np.full(part.shape[1], self.one)]) if self.one else part

    def predictions(self, x: FloatArray) -> FloatArray:
        """Ax."""
        z, coef = np.zeros(self.n), x[: len(self._scales)] * self._scales

        def write(rows: slice) -> None:
            np.matmul(coef, self._AT[:, rows], out=z[rows])

        self._in_parts(write)
        if self.one:
            z += x[-1] * self.one
        return z

    def at(self, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Value, slope and bend of every row, weights included."""
        values, slopes, bends = np.zeros(self.n), np.zeros(self.n), np.zeros(self.n)

        def write(rows: slice) -> None:
            rows_at(self.loss, z[rows], self.y[rows], values[rows], slopes[rows], bends[rows])
            if self.weights is not None:
                for array in (values, slopes, bends):
                    array[rows] *= self.weights[rows]

        self._in_parts(write)
        return values, slopes, bends

    def curvatures(self, low: FloatArray, high: FloatArray, z: FloatArray) -> FloatArray:
        """w: the curvature of every row on its interval, weights included."""
        out = np.empty(self.n)

        def write(rows: slice) -> None:
            curvatures_on(self.loss, low[rows], high[rows], z[rows], self.y[rows], out[rows])
            if self.weights is not None:
                out[rows] *= self.weights[rows]
                out[rows] *= 1.0 - 4 * UNIT

        self._in_parts(write)
        return out

    @property
    def parts(self) -> list[slice]:
        """The rows, as many at a time as one thread evaluates: what is made of them is small beside vectors of all."""
        return [slice(first, first + PART) for first in range(0, self.n, PART)]

    @property
    def stopped(self) -> bool:
        """Whether the flag is set, or the stop callback returns true."""
        return bool(self.stop[0]) or (self._should_stop is not None and self._should_stop())

    def go_on(self) -> None:
        """:class:`Unusable` once it is to stop."""
        if self.stopped:
            raise Unusable

    def gram(self, w: FloatArray) -> FloatArray:
        """B diag(w) B' + ridge, B the scaled columns."""
        H: FloatArray = np.diag(self.ridge)
        for part in self._blocks(lambda block, rows: self._products_of(block * w[rows], block)):
            H += part
        return np.asarray(0.5 * (H + H.T))

    def products(self, u: FloatArray) -> FloatArray:
        """B u."""
        total = np.zeros(self.m)
        for part in self._blocks(lambda block, rows: block @ u[rows]):
            total += part
        return total

    def half_widths(self, factor: FloatArray) -> FloatArray:
        """(n,) sqrt(a_i' H^-1 a_i), for the upper triangular ``factor`` R of H = R'R.

        By the inverse of R, since products leave other threads alone; it is as far off as its condition has it.
        """
        inverse = dense.solve_triangular(factor, np.eye(self.m), check_finite=False).T

        def widths(block: FloatArray, rows: slice) -> FloatArray:
            solved = inverse @ block
            return np.asarray(np.sqrt(np.einsum("ij,ij->j", solved, solved)))

        lengths = np.empty(self.n)
        for first, part in zip(self._firsts(), self._blocks(widths), strict=True):
            lengths[first : first + BLOCK] = part
        return lengths

    def _in_parts(self, write: Callable[[slice], None]) -> None:
        """Have every row written, by all threads; the parts are the same for any number of them."""
        parts = self.parts
        list(map(write, parts) if self._pool is None else self._pool.map(write, parts))

    def _products_of(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Left times the transpose of right; many columns are multiplied in blocks, so that a stop acts soon."""
        if left.size * len(right) <= AT_ONCE:
            return left @ right.T
        products = np.empty((len(left), len(right)))
        for first in range(0, len(left), COLUMNS):
            self.go_on()
            np.matmul(left[first : first + COLUMNS], right.T, out=products[first : first + COLUMNS])
        return products

    def _firsts(self) -> range:
        return range(0, self.n, BLOCK)

    def _blocks(self, work: Callable[[FloatArray, slice], Made]) -> Iterator[Made]:
        """What ``work`` makes of each block and the rows it is for, in order."""

        def done(first: int) -> Made:
            self.go_on()
            with np.errstate(over="ignore", invalid="ignore"):
                return work(self.block(first), slice(first, first + BLOCK))

        if self._pool is None:
            yield from map(done, self._firsts())
            return
        futures: deque[Future[Made]] = deque()
        for first in self._firsts():
            futures.append(self._pool.submit(done, first))
            # Results wait for their turn: without a limit they would fill the memory.
            if len(futures) > 2 * self._threads:
                yield futures.popleft().result()
        while futures:
            yield futures.popleft().result()


def _sizes(block: FloatArray, rows: slice) -> tuple[BoolArray, FloatArray]:
    """Which rows of a block have no entry, and the sums of squares of its columns."""
    return ~np.any(block != 0.0, axis=0), np.einsum("ij,ij->i", block, block)


def fit_all(rows: Rows, start: FloatArray) -> tuple[FloatArray, float]:
    """The minimiser of P over all columns, nearly (Newton's method with halved steps), and P there.

    Raises
    ------
    Unusable
        Where a Newton step is not to be had.
    """

    def value_at(x: FloatArray) -> float:
        return float(rows.at(rows.predictions(x))[0].sum() + 0.5 * (rows.ridge * x) @ x)

    x, value = start, value_at(start)
    for _ in range(NEWTON_STEPS):
        _, slopes, bends = rows.at(rows.predictions(x))
        gradient = rows.products(slopes) + rows.ridge * x
        H = rows.gram(bends)
        # Rows without bend (Huber) may leave columns that nothing holds: a little curvature for those.
        H[np.diag_indices(len(H))] += 1e-10 * np.trace(H) / len(H)
        rows.go_on()
        try:
            step = np.linalg.solve(H, gradient)
        except LinAlgError:
            raise Unusable from None
        decrease, part = float(gradient @ step), 1.0
        if not decrease > CONVERGED * abs(value):
            break
        while (trial := value_at(x - part * step)) > value - 0.1 * part * decrease and part > 1e-6:
            part *= 0.5
        if not trial < value:
            break
        x, value = x - part * step, trial
    return x, value


def known_fit(objective: Objective, rows: Rows | None = None) -> tuple[FloatArray, float]:
    """:func:`fit_all` from the empty model on, computed once for all callers on the same data."""
    loss = (objective.loss.name, *objective.loss_parameters.items())
    key = ("full fit", loss, objective.lam, objective.intercept, objective.weights is None)
    if key not in objective.shared:
        rows = rows or Rows(objective)
        objective.shared[key] = fit_all(rows, rows.model(np.zeros(objective.d), objective))
    fit: tuple[FloatArray, float] = objective.shared[key]
    return fit
