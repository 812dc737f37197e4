"""Adaptive forward-backward greedy selection (FoBa): add a column, then delete those that have become cheap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from exactsel.errors import InputError
from exactsel.problem.capabilities import CLOSED_FORM
from exactsel.problem.regression import Problem
from exactsel.types import FloatArray
from exactsel_heuristics._scoring import evaluate, guaranteed_decrease, padded, smallest_decrease
from exactsel_heuristics.base import Context, Proposal, regression

if TYPE_CHECKING:
    from exactsel.problem.fit import Fit
    from exactsel.problem.interface import SubsetProblem


ROUNDING = 1e-15
"""Eigenvalues of a scaled Gram matrix below this are rounding."""

ROTATED = 4e9
"""Multiplications (half a second) that rotating the data to d + 1 rows may take."""


@dataclass(frozen=True)
class ForwardBackward:
    """Adaptive forward-backward greedy selection (Zhang 2008, algorithm FoBa).

    A forward step adds the column whose coefficient alone promises the largest decrease, g_j^2 / (2 (smoothness
    ||a_j||^2 + lam)), and refits; on columns of equal norm that is orthogonal matching pursuit. Let delta_m be what
    the last forward step to m columns gained. While the cheapest deletion among the m columns present costs at most
    ``nu`` delta_m, that column is deleted. The path ends after ``steps`` k additions and deletions, or when no column
    gains anything; the last active set of k columns is the answer (Qian, Yu and Zhou 2015, section 5), and where
    there never was one, the last one of the largest size below k.

    Parameters
    ----------
    nu : float
        Share of a forward gain that a deletion may cost, above 0 and below 1.
    steps : int
        Length of the path in units of k, at least 1.
    refit : bool
        Price a deletion by what it costs after all other coefficients are refitted. False: by what it costs to set
        the coefficient to zero and leave the others alone, as in the algorithm of 2008.

    References
    ----------
    T. Zhang, Adaptive forward-backward greedy algorithm for sparse learning with linear models. NIPS 2008.
    C. Qian, Y. Yu and Z.-H. Zhou, Subset selection by Pareto optimization. NIPS 2015.
    """

    name: ClassVar[str] = "foba"
    nu: float = 0.5
    steps: int = 5
    refit: bool = True

    def __post_init__(self) -> None:
        """Raise :class:`InputError` for options the method does not end or begin with."""
        if not 0.0 < self.nu < 1.0:
            raise InputError(
                f"nu is {self.nu:g}, but it is the share of a forward gain a deletion may cost; give one in (0, 1)."
            )
        if self.steps < 1:
            raise InputError(f"steps is {self.steps}, but the path needs k steps to reach k features; give at least 1.")

    def run(self, problem: SubsetProblem, context: Context) -> Proposal:
        """Follow the path and select up to k columns, deterministically; fewer when no further one helps."""
        problem = regression(problem, self.name)
        small = problem.n * problem.d**2 <= ROTATED and not problem.objective.on_demand
        if problem.has(CLOSED_FORM) and problem.n > problem.d + 1 and small:
            # The same problem on d + 1 rows, on which the many refits are cheap.
            problem = Problem(*problem.reduced, problem.k, lam=problem.lam)
        decrease = smallest_decrease(problem)
        fit = problem.fit(())
        # By size: the last active set, and what the last forward step to it gained.
        last: dict[int, Fit] = {0: fit}
        gained: dict[int, float] = {}
        budget, evaluations = self.steps * problem.k, 0
        while budget > 0 and not context.should_stop():
            longer, fits = _forward(problem, fit, decrease)
            budget, evaluations = budget - 1, evaluations + fits
            if longer is None:
                break
            size = longer.columns.size
            gained[size] = fit.value - longer.value
            fit = last[size] = longer
            # A single column is never cheap: deleting it costs at least the gain of the first forward step.
            while budget > 0 and fit.columns.size > 1 and not context.should_stop():
                costs, count = self._deletion_costs(problem, fit, context)
                evaluations += count
                cheapest = int(np.argmin(costs))
                if not costs[cheapest] <= self.nu * gained[fit.columns.size]:
                    break
                fit = problem.fit(np.delete(fit.columns, cheapest))
                last[fit.columns.size] = fit
                budget, evaluations = budget - 1, evaluations + 1
        return Proposal.of(last[max(size for size in last if size <= problem.k)].columns, evaluations)

    def _deletion_costs(self, problem: Problem, fit: Fit, context: Context) -> tuple[FloatArray, int]:
        """By how much deleting each column of an active set of m lifts the objective, (m,); how many were refitted."""
        coef = fit.coef[fit.columns]
        if not self.refit:
            zeroed = [problem.objective(np.where(np.arange(problem.d) == j, 0.0, fit.coef)) for j in fit.columns]
            return np.array(zeroed) - fit.value, 0
        if problem.has(CLOSED_FORM):
            columns = problem.AT[fit.columns]
            inverse = _inverse_diagonal(columns @ columns.T + problem.lam * np.eye(coef.size))
            return coef**2 / (2.0 * inverse), coef.size
        supports = padded([np.delete(fit.columns, i).tolist() for i in range(coef.size)], coef.size)
        values, count = evaluate(problem, supports, context.should_stop)
        return values - fit.value, count


def _forward(problem: Problem, fit: Fit, decrease: float) -> tuple[Fit | None, int]:
    """The refit with the column of largest guaranteed decrease, and the number of refits.

    Columns that look promising but gain nothing (their score is what rounding left over, because they depend on the
    active set) are skipped; None when nothing is left.
    """
    scores = guaranteed_decrease(problem, problem.gradient(fit.coef))
    scores[fit.columns] = 0.0
    fits = 0
    for best in np.argsort(-scores, kind="stable"):
        if not scores[best] > decrease:
            break
        longer = problem.fit([*fit.columns, best])
        fits += 1
        if longer.value < fit.value - decrease:
            return longer, fits
    return None, fits


def _inverse_diagonal(H: FloatArray) -> FloatArray:
    """Diagonal of the inverse of a positive definite matrix, (m,); huge where a column depends on others."""
    scale = np.sqrt(np.diagonal(H))
    values, vectors = np.linalg.eigh(H / np.outer(scale, scale))
    inverse: FloatArray = (vectors**2 / np.maximum(values, ROUNDING)).sum(axis=1) / scale**2
    return inverse
