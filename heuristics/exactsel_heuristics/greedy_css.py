"""Greedy column subset selection: add the column that lowers the objective most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from exactsel_heuristics._projection import Projection, smallest_decrease, whole_matrix
from exactsel_heuristics.base import Context, Proposal, column_subset

if TYPE_CHECKING:
    from exactsel.problem.column_subset import ColumnSubsetProblem
    from exactsel.problem.interface import SubsetProblem


@dataclass(frozen=True)
class GreedyColumnSelection:
    """Greedy selection (Farahat, Ghodsi and Kamel 2011; guarantee by Bhaskara et al. 2016).

    Starting from no column, each of at most k steps adds the column that lowers ||A - S S⁺ A||_F² most. All columns
    are scored at once by the recursion of the source, so a step costs O(d min(n, d)).

    References
    ----------
    A. K. Farahat, A. Ghodsi and M. S. Kamel, An efficient greedy method for unsupervised feature selection. ICDM 2011.
    A. Bhaskara, A. Rostamizadeh, J. Altschuler, M. Zadimoghaddam, T. Fu and V. Mirrokni, Greedy column subset
    selection: new bounds and distributed algorithms. ICML 2016.
    """

    name: ClassVar[str] = "greedy-css"

    def run(self, problem: SubsetProblem, context: Context) -> Proposal:
        """Select up to k columns, deterministically; fewer when no further one lowers the objective.

        ``path`` holds the columns in the order taken, ``criterion`` the objective after each step.
        """
        problem = column_subset(problem, self.name)
        if problem.k == 0 or context.should_stop():
            return Proposal.of((), 0)
        return greedy_path(whole_matrix(problem), problem, context)


def greedy_path(projection: Projection, problem: ColumnSubsetProblem, context: Context) -> Proposal:
    """Add the column of largest gain, up to k columns, while there is a gain.

    The ``projection`` is changed in place; ``criterion`` is its value after each step.
    """
    decrease, evaluations = smallest_decrease(problem), 0
    criterion: list[float] = []
    while len(projection.columns) < problem.k and not context.should_stop():
        gains = projection.gains()
        evaluations += problem.d - len(projection.columns)
        best = int(np.argmax(gains))
        if not gains[best] > decrease or not projection.add(best):
            break
        criterion.append(projection.value)
    if not projection.columns and context.should_stop():
        # Preparing took all the time: the columns that gain most alone are better than none.
        return Proposal.of(np.sort(np.argsort(-projection.gains(), kind="stable")[: problem.k]), evaluations)
    return Proposal.of(projection.columns, evaluations, path=projection.columns, criterion=criterion)
