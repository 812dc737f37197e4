"""From a problem to what the exchange kernels need of it, and many descents on threads."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from exactsel._jit import available_threads, working_threads
from exactsel.errors import UnsupportedError
from exactsel.kernels.file_columns import no_file
from exactsel.kernels.node import FREE, IN
from exactsel.problem.design import SparseColumns
from exactsel.problem.mapped_columns import MappedColumns
from exactsel.problem.storing import columns_by_entries, columns_of_none
from exactsel.types import BoolArray, FloatArray, IntArray
from exactsel_heuristics._exchange_kernels import Exchanged, LeastSquares, Reconstruction, descend_some

if TYPE_CHECKING:
    from exactsel.problem.column_subset import ColumnSubsetProblem
    from exactsel.problem.regression import Problem

GRAM_COLUMNS = 4000
"""With more columns than this the d x d Gram matrix is not formed; its rows are computed as they are needed."""

IMPROVEMENT = 1e-10
"""Share of the empty model's objective by which an exchange must lower it, so that rounding cannot make a circle."""

SHARED_WORK = 2e6
"""Multiplications (about a millisecond) from which on it pays to wake threads."""

START_WORK = 5e4
"""As many multiplications as it takes time to draw a start."""

NOTHING = np.zeros((0, 0))
NOTHING.flags.writeable = False  # as the data are, so that there is one kind to compile


@dataclass(frozen=True)
class Descents:
    """Exchange descents on one objective.

    Parameters
    ----------
    objective : LeastSquares or Reconstruction
    forced, allowed : array (d,) of bool
        Columns every support holds, and columns that may join.
    k : int
        Most columns.
    least : float
        The decrease of the objective that counts as one.
    join_work : float
        Multiplications it takes to let a column join, besides those for each column chosen already ...
    step_work : float
        ... and those for each of these.
    """

    objective: Exchanged
    forced: BoolArray
    allowed: BoolArray
    k: int
    least: float
    join_work: float
    step_work: float

    @property
    def d(self) -> int:
        """Columns there are."""
        return int(self.allowed.size)

    @property
    def typical_work(self) -> float:
        """Multiplications of a usual descent: three rounds over the support."""
        return START_WORK + 3.0 * self._round_work

    @property
    def _round_work(self) -> float:
        # Half of the columns chosen again to begin with, on the average, then one leaving and one joining k times.
        return 1.5 * self.k * (self.join_work + self.k * self.step_work)

    def run(self, starts: IntArray, threads: int | None = None) -> tuple[IntArray, FloatArray, IntArray]:
        """Descend from each row of ``starts`` (r, k), padded with -1.

        Returns
        -------
        supports : array (r, k) of int
            In no order, padded with -1.
        explained : array (r,)
            By how much each lowers the objective of the empty model.
        rounds : array (r,) of int
            How many rounds over the support it took.
        """
        count = len(starts)
        supports, explained, rounds = starts.copy(), np.empty(count), np.empty(count, np.int64)
        team = min(count, working_threads(available_threads() if threads is None else threads))
        if team * SHARED_WORK > count * self.typical_work:
            team = 1

        def share(first: int) -> None:
            descend_some(
                self.objective, supports, self.forced, self.allowed, self.least, explained, rounds, first, team
            )

        with np.errstate(all="ignore"):
            if team == 1:
                share(0)
            else:
                with ThreadPoolExecutor(team) as pool:
                    list(pool.map(share, range(team)))
        return supports, explained, rounds

    def work_of(self, rounds: IntArray) -> float:
        """Multiplications so many rounds took."""
        return START_WORK * rounds.size + float(np.sum(rounds)) * self._round_work

    def evaluations_of(self, rounds: IntArray) -> int:
        """The number of supports whose objective the rounds computed."""
        return int(np.sum(rounds)) * self.k * max(self.d - self.k, 0)


def least_squares_descents(problem: Problem) -> Descents:
    """On a problem with quadratic loss."""
    lam, d, sparse, file = problem.lam, problem.d, columns_of_none(problem.n), no_file(problem.n)
    if isinstance(problem.AT, SparseColumns):
        G, AT, b, sparse = np.zeros((0, 0)), NOTHING, problem.AT @ problem.y, columns_by_entries(problem.AT)
        diagonal, join_work = problem.AT.squares() + lam, 4.0 * d + problem.AT.values.size
    elif isinstance(problem.AT, MappedColumns):
        G, AT, b, file = np.zeros((0, 0)), NOTHING, problem.AT @ problem.y, problem.AT.for_kernels
        diagonal, join_work = problem.AT.squares() + lam, (4.0 + problem.n) * d
    elif d <= GRAM_COLUMNS:
        data = problem.gram
        G, b, AT = data.G + lam * np.eye(d), data.b, NOTHING
        diagonal, join_work = np.diagonal(G).copy(), 4.0 * d
    else:
        G, AT, b = np.zeros((0, 0)), problem.AT, problem.AT @ problem.y
        diagonal, join_work = np.einsum("ij,ij->i", AT, AT) + lam, (4.0 + problem.n) * d
    objective = LeastSquares(G, AT, diagonal, lam, np.array(b), sparse, file)
    least = IMPROVEMENT * abs(problem.null_objective)
    state = problem.root_state
    return Descents(objective, state == IN, state == FREE, problem.k, least, join_work, 4.0 * d)


def descents_on_form(problem: Problem, H: FloatArray, h: FloatArray) -> Descents:
    """On a quadratic model x'Hx/2 - h'x of the problem's objective, H (d, d) positive semidefinite."""
    objective = LeastSquares(
        np.ascontiguousarray(H), NOTHING, np.diagonal(H).copy(), problem.lam, np.array(h), columns_of_none(problem.n),
        no_file(problem.n),
    )  # fmt: skip
    state, d = problem.root_state, problem.d
    least = IMPROVEMENT * abs(problem.null_objective)
    return Descents(objective, state == IN, state == FREE, problem.k, least, 4.0 * d, 4.0 * d)


def reconstruction_descents(problem: ColumnSubsetProblem) -> Descents:
    """On a problem of column subset selection; :class:`UnsupportedError` above 4,000 columns."""
    d = problem.d
    if d > GRAM_COLUMNS:
        raise UnsupportedError(
            f"exchange forms the Gram matrix of {GRAM_COLUMNS} columns at most, but there are {d}; use iterative-css."
        )
    G = problem.objective.gram
    objective = Reconstruction(np.array(G), G @ G, np.diagonal(G).copy())
    none = np.zeros(d, dtype=bool)
    return Descents(objective, none, ~none, problem.k, IMPROVEMENT * problem.null_objective, 8.0 * d, 10.0 * d)


def padded_rows(supports: Sequence[Sequence[int]], k: int) -> IntArray:
    """Supports as the rows of one array (r, k), padded with -1."""
    rows = np.full((len(supports), k), -1, dtype=np.int64)
    for row, support in zip(rows, supports, strict=True):
        row[: min(k, len(support))] = support[:k]
    return rows
