"""POSS: subset selection by Pareto optimisation of the objective and the size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from exactsel_heuristics._pareto_search import check_isolation, check_options, run_synchronously
from exactsel_heuristics._pareto_tasks import portion_of, regression_task
from exactsel_heuristics.base import Context, Proposal, with_coefficients

if TYPE_CHECKING:
    from exactsel.problem.regression import Problem


@dataclass(frozen=True)
class ParetoOptimization:
    """Subset selection by Pareto optimisation (Qian, Yu and Zhou 2015, Algorithm 2).

    An archive holds supports none of which is worse in objective and size than another. Each iteration takes one at
    random, flips every column with probability 1/d, and enters the result unless it is dominated; supports of 2k
    columns and more are worthless. The answer is the best member of at most k columns.

    An offspring is evaluated by updating its parent's fit: in O(m^2) for quadratic loss, in a few passes over the
    data for others, where m < 2k is the size of the support. Supports found again, and those with numerically
    dependent columns, are not evaluated but count.

    Parameters
    ----------
    iterations : int, optional
        Number of supports generated; floor(2 e k^2 d) when None, the number in the paper's guarantee.
    isolation : str
        ``"constant"`` compares all supports, ``"minimum-index"`` those with the same smallest column (with it POSS
        is sure to find the optimum of the Exponential Decay class, Theorem 2, given time).

    References
    ----------
    C. Qian, Y. Yu and Z.-H. Zhou, Subset selection by Pareto optimization. NeurIPS 2015.
    """

    name: ClassVar[str] = "poss"
    portions: ClassVar[bool] = True
    first_share: ClassVar[float] = 0.01
    iterations: int | None = None
    isolation: str = "constant"

    def __post_init__(self) -> None:
        check_options(self.name, self.iterations)
        check_isolation(self.isolation)

    def run(self, problem: Problem, context: Context) -> Proposal:
        """Search for ``iterations`` iterations; the empty support when stopped at once.

        Where the context's ``work`` is limited, iterations end with that, and the archive begins with its supports.
        """
        problem = with_coefficients(problem, self.name)
        task = regression_task(problem)
        iterations, starts = portion_of(task, context, self.iterations)
        outcome = run_synchronously(task, context, iterations=iterations, isolation=self.isolation, supports=starts)
        return outcome.proposal(problem.k)
