"""Column subset selection by sparse approximation of the singular value decomposition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from exactsel_heuristics._projection import Projection
from exactsel_heuristics._singular import leading_singular_vectors
from exactsel_heuristics.base import Context, Proposal, column_subset
from exactsel_heuristics.greedy_css import greedy_path

if TYPE_CHECKING:
    from exactsel.problem.interface import SubsetProblem


@dataclass(frozen=True)
class ApproximateSvdSelection:
    """Greedy approximation of the scaled leading left singular vectors (Civril and Magdon-Ismail 2012).

    With A_k = U Σ V' the best approximation of rank k, each of at most k steps adds the column of A that lowers ||UΣ -
    S S⁺ UΣ||_F² most; the columns are normalised after each projection. It differs from greedy selection in its target,
    UΣ (n, k) in place of A (n, d), and ignores the rest A - A_k.

    References
    ----------
    A. Civril and M. Magdon-Ismail, Column subset selection via sparse approximation of SVD. Theoretical Computer
    Science 421, 2012.
    """

    name: ClassVar[str] = "approx-svd"

    def run(self, problem: SubsetProblem, context: Context) -> Proposal:
        """Select up to k columns, deterministically; fewer when UΣ is reproduced already.

        ``path`` holds the columns in the order taken, ``criterion`` the method's own ||UΣ - S S⁺ UΣ||_F² after each
        step.
        """
        problem = column_subset(problem, self.name)
        if problem.k == 0 or context.should_stop():
            return Proposal.of((), 0)
        leading = leading_singular_vectors(problem)
        target = leading.values[:, None] * leading.left
        return greedy_path(Projection(problem.objective.reduced, target), problem, context)
