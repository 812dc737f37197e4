"""Greedy RLS: forward selection by the leave-one-out error of ridge regression, in linear time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from exactsel.errors import InputError, UnsupportedError
from exactsel.problem.design import SparseColumns
from exactsel.problem.mapped_columns import MappedColumns
from exactsel.types import FloatArray, IntArray
from exactsel_heuristics._greedy_rls_selection import LeaveOneOutSelection
from exactsel_heuristics._greedy_rls_sparse import (
    MappedLeaveOneOutSelection,
    OnDemandSelection,
    SparseLeaveOneOutSelection,
)
from exactsel_heuristics.base import Context, Proposal, regression

if TYPE_CHECKING:
    from exactsel.problem.interface import SubsetProblem
    from exactsel.problem.regression import Problem

SELECTION_WORK, STEP_WORK = 4.0, 3e5
"""Multiplications of a step, for each entry of the data, and as many as it takes time besides."""

WEIGHTS = (-5.0, 0.5)
"""Powers of ten, times the mean squared length of a column: the ridge weights that portions of work try."""

CRITERIA = ("squared", "zero-one")


@dataclass(frozen=True)
class GreedyRegularizedLeastSquares:
    """Greedy forward selection by leave-one-out error (Pahikkala, Airola and Salakoski 2010, Algorithm 3).

    Starting from the empty model, each step adds the column with which ridge regression (regularised least squares,
    RLS) has the smallest sum of leave-one-out losses; k steps take O(k n d + k³) time. Columns are added also when that
    makes the error larger, until there are k; :attr:`Proposal.criterion` holds where it was smallest.

    The leave-one-out predictions are always those of the squared loss, for every loss of the problem: y is taken as a
    number, labels as -1 and +1. The caller refits the support under the problem's own loss.

    With lam = 0 the criterion is the limit lam -> 0, the leave-one-out error of ordinary least squares (PRESS). It
    exists only while the columns stay independent without any one row. A column for which it does not exist is not
    added. Nor is, with any lam, one for which rounding hides it: where a leverage comes within 1e-10 of 1, or lam and
    what the column adds to the others are no more than 1e-12 of its squared norm. The selection ends when no other
    column is left, with fewer than k.

    Parameters
    ----------
    criterion : {"squared", "zero-one"}
        The loss of a leave-one-out prediction. ``"zero-one"`` counts wrong signs and needs labels -1 and +1; a
        prediction of zero counts as wrong. Equal counts are decided by the squared loss, and equal squared losses by
        the lower column.
    lam : float, optional
        Ridge weight of the leave-one-out fits, not negative; the problem's when not given. The factor ½ that the
        problem has on both terms makes no difference: it is the lambda of the paper.

    References
    ----------
    T. Pahikkala, A. Airola and T. Salakoski, Linear time feature selection for regularized least-squares.
    arXiv:1003.3570, 2010; Speeding up greedy forward selection for regularized least-squares. ICMLA 2010.
    """

    name: ClassVar[str] = "greedy-rls"
    portions: ClassVar[bool] = True
    first_share: ClassVar[float] = 0.005
    criterion: str = "squared"
    lam: float | None = None

    def __post_init__(self) -> None:
        _check_criterion(self.criterion)
        if self.lam is not None:
            _check_lam(self.lam)

    def run(self, problem: SubsetProblem, context: Context) -> Proposal:
        """Select up to k columns, deterministically.

        Where ``work`` is limited, other ridge weights are tried at random, and the best support of all is the answer.
        ``path`` holds the columns in the order taken, ``criterion`` the sum of leave-one-out losses after each step.
        :class:`UnsupportedError` for column subset selection, and for the zero-one criterion when y is not -1 and +1.
        """
        problem = regression(problem, self.name)
        labels = self.criterion == "zero-one"
        if labels:
            _check_labels(problem.y)
        if not math.isinf(context.work):
            return self._best_of_ridges(problem, context, labels)
        selection = self._select(problem, context, problem.lam if self.lam is None else self.lam, labels)
        return Proposal.of(selection.path, selection.evaluations, path=selection.path, criterion=selection.errors)

    @staticmethod
    def _select(
        problem: Problem, context: Context, lam: float, labels: bool
    ) -> LeaveOneOutSelection | OnDemandSelection:
        selection: LeaveOneOutSelection | OnDemandSelection
        if isinstance(problem.AT, SparseColumns):
            selection = SparseLeaveOneOutSelection(problem.AT, problem.y, lam, labels)
        elif isinstance(problem.AT, MappedColumns):
            selection = MappedLeaveOneOutSelection(problem.AT, problem.y, lam, labels)
        else:
            selection = LeaveOneOutSelection(problem.AT, problem.y, lam, labels, context.threads)
        selection.extend(problem.k, context.should_stop)
        return selection

    def _best_of_ridges(self, problem: Problem, context: Context, labels: bool) -> Proposal:
        """A portion: as many selections as the work allows, each with another ridge weight, and the best refit."""
        rng, weight = context.rng(), problem.lam if self.lam is None else self.lam
        # The weight itself comes first, in the first portion; then weights up to some of a column's squared length.
        ridges = [] if context.supports else [weight]
        usual = float(np.mean(problem.norms**2))
        best: tuple[int, ...] = ()
        least, evaluations, work = problem.null_objective, 0, context.work
        while work > 0.0 and not context.should_stop():
            work -= max(problem.k, 1) * (SELECTION_WORK * problem.n * problem.d + STEP_WORK)
            if work < 0.0:
                break
            lam = ridges.pop() if ridges else usual * 10.0 ** rng.uniform(*WEIGHTS)
            selection = self._select(problem, context, lam, labels)
            evaluations += selection.evaluations
            value = problem.fit(selection.path).value
            if value < least:
                best, least = tuple(selection.path), value
        return Proposal.of(best, evaluations)


@dataclass(frozen=True)
class SelectionPath:
    """What greedy RLS selected.

    Attributes
    ----------
    columns : array (m,) of int
        The columns in the order of selection.
    errors : array (m,)
        Sum of the leave-one-out losses after each step.
    coefficients : array (m, m)
        Row t holds the ridge coefficients of columns[: t + 1], followed by zeros.
    """

    columns: IntArray
    errors: FloatArray
    coefficients: FloatArray


def select_path(
    AT: ArrayLike,
    y: ArrayLike,
    lam: float,
    k: int,
    criterion: str = "squared",
    threads: int | None = None,
) -> SelectionPath:
    """Greedy RLS on plain arrays, with the model of every step.

    Parameters
    ----------
    AT : array (d, n)
        The data, transposed: one row per column of A.
    y : array (n,)
        Target; labels -1 and +1 for the zero-one criterion.
    lam : float
        Ridge weight, not negative; 0 as in :class:`GreedyRegularizedLeastSquares`.
    k : int
        Number of columns to select; more than d is taken as d.
    criterion : {"squared", "zero-one"}
    threads : int, optional
        Threads that share the work, all cores by default; they do not change the result.

    Returns
    -------
    SelectionPath

    Raises
    ------
    InputError
        When the criterion is unknown, lam negative, or the shapes do not fit.
    UnsupportedError
        For the zero-one criterion when y is not -1 and +1.
    """
    _check_criterion(criterion)
    _check_lam(lam)
    matrix = np.ascontiguousarray(AT, dtype=np.float64)
    target = np.ascontiguousarray(y, dtype=np.float64)
    if matrix.ndim != 2 or target.shape != matrix.shape[1:]:
        raise InputError(
            f"AT has shape {matrix.shape} and y {target.shape}, but (d, n) and (n,) were expected; transpose the data."
        )
    if criterion == "zero-one":
        _check_labels(target)
    selection = LeaveOneOutSelection(matrix, target, lam, criterion == "zero-one", threads)
    selection.extend(k)
    return SelectionPath(
        np.array(selection.path, dtype=np.int64), np.array(selection.errors), selection.coefficients_by_step()
    )


def _check_criterion(criterion: str) -> None:
    if criterion not in CRITERIA:
        raise InputError(
            f"the criterion of greedy-rls is {criterion!r}, but a leave-one-out loss was expected; give 'squared' or "
            f"'zero-one'."
        )


def _check_lam(lam: float) -> None:
    if not (math.isfinite(lam) and lam >= 0.0):
        raise InputError(
            f"lam of greedy-rls is {lam:g}, but the ridge weight must be a finite number that is not negative; give "
            f"one, or leave it out to take the problem's."
        )


def _check_labels(y: FloatArray) -> None:
    other = y[np.abs(y) != 1.0]
    if other.size:
        raise UnsupportedError(
            f"greedy-rls with the zero-one criterion needs labels -1 and +1, but y holds {other[0]:g}; recode y, or "
            f"take the squared criterion."
        )
