"""Orthogonal matching pursuit: add the column along which the objective falls most steeply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from exactsel.errors import TimeLimitError
from exactsel_heuristics._limits import open_downhill
from exactsel_heuristics.base import Context, Proposal, with_coefficients

if TYPE_CHECKING:
    from exactsel.problem.interface import SubsetProblem

FLAT = 1e-9
"""Times 1 + ||grad P(0)||: below this a gradient entry is the rounding left over by the refit."""


@dataclass(frozen=True)
class OrthogonalMatchingPursuit:
    """Orthogonal matching pursuit for general losses (Pati et al. 1993; Elenberg et al. 2018).

    Each of at most k steps adds the column with the largest gradient entry in absolute value, then refits all
    coefficients on the support. Within limits of coefficients a column counts whose coefficient may go downhill.

    Parameters
    ----------
    scaled : bool
        Divide each gradient entry by the norm of its column, so that the units of the columns do not matter.

    References
    ----------
    E. R. Elenberg, R. Khanna, A. G. Dimakis and S. Negahban, Restricted strong convexity implies weak submodularity.
    Annals of Statistics 46(6B), 2018.
    """

    name: ClassVar[str] = "omp"
    scaled: bool = False

    def run(self, problem: SubsetProblem, context: Context) -> Proposal:
        """Select up to k columns, deterministically; fewer when the gradient vanishes on all others."""
        served = with_coefficients(problem, self.name)
        objective = served.objective
        norms = np.where(objective.norms > 0.0, objective.norms, 1.0)
        support: list[int] = []
        gradient = objective.gradient(np.zeros(objective.d))
        evaluations = 0
        while len(support) < served.k and not context.should_stop():
            steep = (np.abs(gradient) > FLAT * objective.gradient_scale * norms / norms.max()) & open_downhill(
                served, gradient
            )
            steepness = np.where(steep, np.abs(gradient), 0.0)
            steepness[support] = 0.0
            best = int(np.argmax(steepness / norms if self.scaled else steepness))
            if steepness[best] == 0.0:
                break
            support.append(best)
            if len(support) < served.k:
                try:
                    gradient = objective.gradient(served.fit(support).coef)
                except TimeLimitError:
                    break  # in the middle of a pass: the columns so far are a model
                evaluations += 1
        return Proposal.of(support, evaluations)
