"""Hard thresholding pursuit: a gradient step, the k largest coefficients, a refit, and again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from exactsel.errors import InputError
from exactsel_heuristics._limits import sizes
from exactsel_heuristics._scoring import largest
from exactsel_heuristics._scoring import smoothness as steepest
from exactsel_heuristics.base import Context, Proposal, at_least, with_coefficients

if TYPE_CHECKING:
    from exactsel.problem.interface import SubsetProblem

LONGEST = 4.0
"""The longest step, in units of 1 / (smoothness max ||a_j||^2 + lam), the exact step along the longest column."""


@dataclass(frozen=True)
class HardThresholdingPursuit:
    """Hard thresholding pursuit (Foucart 2011; Yuan, Li and Zhang 2014, 2016), with lengthening steps.

    From x = 0: take a gradient step, keep the k entries of largest absolute value, refit on that support. The step
    length starts at the papers' safe 1 / (smoothness ||A||_2^2 + lam). On correlated columns that is so short that the
    first support already repeats. Whenever a support comes back, the search therefore returns to the best one and
    continues with a longer step, up to four times the step that suits a single column. The best support met is
    returned. Within limits of coefficients the step is projected on the models that keep to them.

    Parameters
    ----------
    lengthen : float
        Factor by which the step grows, above 1; ``inf`` stops at the first repeated support, as in the papers.
    max_steps : int
        Limit on the number of steps.

    References
    ----------
    X.-T. Yuan, P. Li and T. Zhang, Gradient hard thresholding pursuit for sparsity-constrained optimization. ICML
    2014; and Exact recovery of hard thresholding pursuit. NeurIPS 2016.
    """

    name: ClassVar[str] = "htp"
    lengthen: float = 2.0
    max_steps: int = 200

    def __post_init__(self) -> None:
        """Raise :class:`InputError` unless the step really grows."""
        at_least(self.name, "max_steps", self.max_steps, 1)
        if not self.lengthen > 1.0:
            raise InputError(f"lengthen is {self.lengthen:g}, but the step must grow; give a factor above 1.")

    def run(self, problem: SubsetProblem, context: Context) -> Proposal:
        """Iterate until the support repeats with the longest step, deterministically."""
        served = with_coefficients(problem, self.name)
        objective = served.objective
        lam = objective.lam
        length = 1.0 / (objective.steepness * objective.spectral_norm_squared + lam)
        longest = LONGEST / max(steepest(served) * float(objective.norms.max()) ** 2 + lam, 1e-300)
        current = best = served.fit(())
        seen: set[tuple[int, ...]] = set()
        for _ in range(self.max_steps):
            if context.should_stop():
                break
            columns = largest(sizes(served, current.coef - length * objective.gradient(current.coef)), served.k)
            key = tuple(columns.tolist())
            # Coming back to any earlier support, not just the last one, means a cycle.
            if key in seen:
                current, length = best, self.lengthen * length
                if length > longest:
                    break
                continue
            seen.add(key)
            current = served.fit(columns)
            if current.value < best.value:
                best = current
        return Proposal.of(best.columns, len(seen))
