"""Recursive feature elimination: fit, delete the column of smallest weight, and again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from exactsel.algebra.threads import one_thread
from exactsel.errors import InputError
from exactsel_heuristics._rfe_fits import fits_of
from exactsel_heuristics._scoring import largest, steepest_columns
from exactsel_heuristics.base import Context, Proposal, regression

if TYPE_CHECKING:
    from exactsel.problem.interface import SubsetProblem
    from exactsel.problem.regression import Problem


@dataclass(frozen=True)
class RecursiveFeatureElimination:
    """Recursive feature elimination (Guyon, Weston, Barnhill and Vapnik 2002) with the problem's own loss and ridge.

    Starting from all columns, fit and delete the column whose coefficient is smallest in absolute value, until k are
    left. Without a ridge dependent columns have no unique coefficients; they then get those of smallest norm, on
    columns scaled to unit norm. Coefficients are compared as they are, so the answer depends on the units of the
    columns; standardise them beforehand, or set ``scaled``.

    Parameters
    ----------
    step : float
        Share of the remaining columns deleted per round, at least 0 and below 1; one column at the least.
    scaled : bool
        Compare abs(x_j) ||a_j|| instead of abs(x_j), so that the units of the columns do not matter when lam = 0.

    References
    ----------
    I. Guyon, J. Weston, S. Barnhill and V. Vapnik, Gene selection for cancer classification using support vector
    machines. Machine Learning 46, 2002.
    """

    name: ClassVar[str] = "rfe"
    step: float = 0.0
    scaled: bool = False

    def __post_init__(self) -> None:
        """Raise :class:`InputError` unless ``step`` is a share."""
        if not 0.0 <= self.step < 1.0:
            raise InputError(
                f"step is {self.step:g}, but it is the share of features to delete per round; give a number from 0 "
                "(one feature at a time) to below 1."
            )

    def run(self, problem: SubsetProblem, context: Context) -> Proposal:
        """Delete all but k columns, deterministically.

        When stopped early, the k columns of largest weight in the last fit are the answer; before the first fit those a
        single coefficient of which would gain most, and none after an immediate stop.
        """
        problem = regression(problem, self.name)
        if problem.k == 0 or context.should_stop():
            return Proposal.of((), 0)
        with one_thread():  # many small systems, on which threads of BLAS only get in each other's way
            return self._eliminate(problem, context)

    def _eliminate(self, problem: Problem, context: Context) -> Proposal:
        model = fits_of(problem, context.should_stop)
        units = problem.norms if self.scaled else np.ones(problem.d)
        answer, fits = steepest_columns(problem), 0
        while True:
            coef = model.coef()
            if coef is None:
                break
            weights = np.abs(coef) * units[model.columns]
            fits += 1
            answer = model.columns[largest(weights, problem.k)]
            excess = weights.size - problem.k
            if excess <= 0 or context.should_stop():
                break
            count = min(excess, max(1, int(self.step * weights.size)))
            model.delete(np.sort(np.argsort(weights, kind="stable")[:count]))
        return Proposal.of(answer, fits)
