"""The paper's simple alternative to PDAL: projected supergradient ascent (see kernels/supergradient.py)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exactsel.bounds.base import BoundOptions, BoundSolver
from exactsel.bounds.pdal import PreparedDual, check_lam, check_smooth
from exactsel.errors import UnsupportedError, option
from exactsel.kernels.pdal import DualRules
from exactsel.kernels.supergradient import supergradient_data
from exactsel.losses.base import DUAL_FUNCTIONS
from exactsel.problem.regression import Problem


@dataclass(frozen=True)
class SupergradientBound(BoundSolver):
    """Maximise the bound over dual vectors by supergradient ascent (the paper's Algorithm 5, appendix B).

    Kept for the comparison the paper makes: the bound is not smooth, so the ascent may stop well below its maximum,
    and a search then visits more nodes. Step sizes, accuracy and the limit on iterations are ours, because the text
    of the paper we have lost its own.
    """

    accuracy: float = 1e-5
    """Stop when one iteration changes the bound by at most this fraction of the best objective known."""
    max_iterations: int = 5000

    name = "supergradient"

    def prepare(self, problem: Problem, options: BoundOptions) -> PreparedDual:
        """Bind to a problem with lam > 0 whose loss knows its conjugate."""
        check_lam(problem, self.name)
        check_smooth(problem, self.name)
        missing = [name for name in DUAL_FUNCTIONS if not hasattr(problem.loss, name)]
        if missing:
            raise UnsupportedError(
                f"the bound 'supergradient' needs the conjugate of the loss, but {problem.loss.name} lacks "
                f"{', '.join(missing)}; use {option('bound', 'apg')}."
            )
        smoothness, square = problem.loss.smoothness, problem.spectral_norm_squared
        rules = DualRules(float(np.sqrt(square)), smoothness, self.max_iterations, self.accuracy)
        root = np.zeros(1 + problem.n)
        root[0] = 1.0 + smoothness * square / problem.lam
        return PreparedDual(problem, options, supergradient_data, rules, root)
