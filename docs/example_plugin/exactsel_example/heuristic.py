"""A heuristic: the k columns most correlated with the target."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from exactsel_heuristics.base import Proposal, regression


@dataclass(frozen=True)
class Screening:
    """Sure independence screening (Fan and Lv 2008); ``power`` weighs the columns' norms."""

    name: ClassVar[str] = "screening"
    power: float = 1.0

    def run(self, problem, context):
        """Score each column by itself; no support is refitted."""
        problem = regression(problem, self.name)
        norms = np.linalg.norm(problem.AT, axis=1)
        scores = np.abs(problem.gradient(np.zeros(problem.d))) / np.where(norms > 0, norms, 1.0) ** self.power
        return Proposal.of(np.argsort(-scores, kind="stable")[: problem.k], evaluations=0)
