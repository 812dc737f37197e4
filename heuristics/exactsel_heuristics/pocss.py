"""POCSS: column subset selection by Pareto optimisation of the reconstruction error and the size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from exactsel_heuristics._pareto_search import check_options, run_synchronously
from exactsel_heuristics._pareto_tasks import column_subset_task, portion_of
from exactsel_heuristics.base import Context, Proposal, column_subset

if TYPE_CHECKING:
    from exactsel.problem.column_subset import ColumnSubsetProblem


@dataclass(frozen=True)
class ParetoColumnSelection:
    """Column subset selection by Pareto optimisation (Feng, Qian and Tang 2019, Algorithm 1).

    An archive holds selections none of which is worse in reconstruction error and size than another. Each iteration
    takes one at random, flips every column with probability 1/d, and enters the result unless it is dominated. As in
    the paper's experiments, selections of 2k columns and more are rejected.

    A flip costs O(m^2) from the Gram matrix, m < 2k being the size of the selection, where the update of the
    pseudo-inverse in the paper (Lemmas 1 to 4) costs O(n d).

    Parameters
    ----------
    iterations : int, optional
        Number of selections generated; floor(2 e k^2 d) when None.

    References
    ----------
    C. Feng, C. Qian and K. Tang, Unsupervised feature selection by Pareto optimization. AAAI 2019.
    """

    name: ClassVar[str] = "pocss"
    portions: ClassVar[bool] = True
    first_share: ClassVar[float] = 0.005
    iterations: int | None = None

    def __post_init__(self) -> None:
        check_options(self.name, self.iterations)

    def run(self, problem: ColumnSubsetProblem, context: Context) -> Proposal:
        """Search for ``iterations`` iterations; the empty selection when stopped at once.

        Where the context's ``work`` is limited, iterations end with that, and the archive begins with its supports.
        """
        problem = column_subset(problem, self.name)
        task = column_subset_task(problem)
        iterations, starts = portion_of(task, context, self.iterations)
        return run_synchronously(task, context, iterations=iterations, supports=starts).proposal(problem.k)
