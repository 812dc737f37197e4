"""Perspective bound by accelerated proximal gradient: the default for lam > 0 (see kernels/apg.py).

For quadratic loss the ridge is not all the curvature there is. With D > 0 such that M = A'A + lam I - diag(D) is
positive semidefinite, every point x and g = Mx - b give the bound

    c - x'Mx/2 - (1/2) ( sum_{j in S} g_j^2/D_j  +  the r largest g_j^2/D_j, j in C ),                (3)

of which formula (2) is the case D = lam. In the variables u = sqrt(D) x that *is* formula (2) with lam = 1 and the
Gram matrix D^(-1/2) M D^(-1/2), so the same kernel serves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactsel._jit import parallel_section
from exactsel.algebra.curvature import affordable, best_curvature
from exactsel.algebra.spectrum import largest_eigenvalue
from exactsel.bounds.base import BoundOptions, BoundSolver, PreparedBound, Tightened, stack_points
from exactsel.bounds.kernel_form import KernelForm
from exactsel.bounds.newton_fit import beginning_at_fits, exceeds_fit, leading_fit, may_lead
from exactsel.bounds.witness import CurvedPoint, ModelPoint
from exactsel.errors import UnsupportedError, option
from exactsel.kernels.apg import Perspective, Rules, relax_nodes
from exactsel.kernels.columns import RawData
from exactsel.kernels.forms import GramData
from exactsel.kernels.grouped import Groups
from exactsel.kernels.node import UNFINISHED, empty_answers
from exactsel.problem.capabilities import CLOSED_FORM, QUADRATIC_LOSS
from exactsel.problem.kept import kept
from exactsel.problem.regression import Problem
from exactsel.types import FloatArray, StateArray

WORTHWHILE = 1.5
"""Geometric mean of D_j / lam above which the curvature is used (2 and more on Diabetes, 5 on harder instances; 1 to
1.3 where the ridge alone was better)."""

SHORTEST = 2.0**-40
"""Part of the first step to which steps may be shortened where the loss may be as steep as it likes (Poisson loss)."""

THOROUGH_ITERATIONS, THOROUGH_ACCURACY = 5000, 1e-5
"""Of a bound that will be shown: its last thousandth of a per cent takes more iterations than all that is before it."""

WIDE, WIDE_POLISH = 400, 0.1
"""Over more columns than this a quadratic relaxation is polished more: nothing but the bound closes regions there
(measured: the same time where the search ends, and the gap .61 for .69 where it does not)."""


@dataclass(frozen=True)
class AcceleratedGradientBound(BoundSolver):
    """Minimise the perspective relaxation; every iterate's dual vector is a bound."""

    max_iterations: int = 200
    accuracy: float = 1e-9
    """Relative gap at which a relaxation counts as solved."""
    polish: float = 4.0
    """Branch once the relaxation's own gap is at most this many times what is missing to the cut-off: measured on
    Diabetes and harder instances, 4 needs fewer nodes and a third of the iterations of 0.1."""

    progress: float = 0.9
    """... and at most this part of what the relaxation can add to the bound the node came with (on wide data a
    relaxation stopped earlier can be worse than that bound)."""

    curvature: bool = True
    """Quadratic loss: use all the curvature of A'A, not that of the ridge alone."""

    name = "apg"
    adjusted_rows = True

    def rules(self, problem: Problem, lipschitz: float, thorough: bool = False) -> Rules:
        """When a node's iteration ends."""
        floor = 1.0 if np.isfinite(problem.loss.smoothness) else SHORTEST
        if thorough:
            iterations = max(self.max_iterations, THOROUGH_ITERATIONS)
            return Rules(lipschitz, iterations, max(self.accuracy, THOROUGH_ACCURACY), 0.0, 0.0, floor)
        wide = problem.has(QUADRATIC_LOSS) and problem.d > WIDE
        polish = min(self.polish, WIDE_POLISH) if wide else self.polish
        return Rules(lipschitz, self.max_iterations, self.accuracy, polish, self.progress, floor)

    def prepare(self, problem: Problem, options: BoundOptions) -> PreparedBound:
        """Bind to a problem with lam > 0, or of quadratic loss and independent columns."""
        curvature = self.known_curvature(problem, options) if may_gain(problem) else None
        if curvature is not None and not gains(curvature, problem.lam):
            curvature = None
        if curvature is None and problem.lam == 0:
            raise UnsupportedError(
                "the bound 'apg' needs curvature, but lam is 0 and the features are (nearly) dependent; "
                f"use {option('bound', 'fit')}, or give a positive {option('lam')}."
            )
        return self.with_curvature(problem, options, curvature)

    def with_curvature(self, problem: Problem, options: BoundOptions, curvature: FloatArray | None) -> PreparedBound:
        """Bind to a problem whose curvature is known, of all columns or of those that bounds will need."""
        return PreparedAcceleratedGradient(self, problem, options, curvature, problem, None)

    def known_curvature(self, problem: Problem, options: BoundOptions) -> FloatArray | None:
        """The curvature of all columns, where it can be used and is affordable."""
        served = self.curvature and problem.has(QUADRATIC_LOSS)
        if not served or affordable(problem.d, options.seconds) is None:
            return None
        return curvature_of(problem, problem.hessian, options)


def may_gain(problem: Problem) -> bool:
    """Whether some curvature may be more than that of the ridge.

    Not where columns outnumber rows: for Av = 0, ||v|| = 1 the sum of D_j v_j^2 can be no more than lam.
    """
    return problem.lam == 0 or problem.d < problem.n


def gains(curvature: FloatArray, lam: float) -> bool:
    """Whether a curvature is so much more than that of the ridge that worse conditioning is worth it."""
    return lam == 0 or float(np.mean(np.log(curvature / lam))) > math.log(WORTHWHILE)


def curvature_of(problem: Problem, hessian: FloatArray, options: BoundOptions) -> FloatArray | None:
    """D, computed once for all problems on the same data with the same lam."""
    key = ("curvature", problem.lam, affordable(problem.d, options.seconds))
    if key not in problem.shared:
        stop = options.stop
        curvature = best_curvature(hessian, problem.gram.roundings, options.seconds, lambda: bool(stop[0]))
        if stop[0]:
            return curvature  # cut short: good enough for now, not worth keeping
        problem.shared[key] = curvature
    cached: FloatArray | None = problem.shared[key]
    return cached


def curved_data(
    problem: Problem, curvature: FloatArray, hessian: FloatArray | None = None
) -> tuple[GramData, float]:  # fmt: skip
    """The problem in the variables sqrt(D) x, where formula (3) is (2) with lam = 1, and its Lipschitz constant.

    ``hessian`` is what the curvature is of, where that is not all of the objective's.
    """
    root, gram = np.sqrt(curvature), problem.gram

    def scaled() -> tuple[FloatArray, float]:
        whole = problem.hessian if hessian is None else hessian
        M = (whole - np.diag(curvature)) / np.outer(root, root)
        return M, max(largest_eigenvalue(M) * (1.0 + 1e-9), 1e-300)

    key = (problem.lam, curvature.tobytes())
    M, lipschitz = kept(problem, "curved", key, scaled) if hessian is None else scaled()
    # Every entry of the scaled matrix was rounded a few times more; norms bound its entries as they do those of G.
    norms = np.sqrt((gram.norms**2 + problem.lam) / curvature)
    data = GramData(M, gram.b / root, gram.constant, gram.roundings + problem.k + 24, norms, gram.AT[:0])
    return data, lipschitz


class PreparedPerspective(PreparedBound):
    """Bound to one problem: its rows, or for quadratic loss the Gram matrix, with a curvature if there is one."""

    def __init__(
        self, solver: AcceleratedGradientBound, problem: Problem, options: BoundOptions, curvature: FloatArray | None,
        inner: Problem, groups: Groups | None, hessian: FloatArray | None = None,
    ) -> None:  # fmt: skip
        """``hessian`` is what the curvature is of, where that is not all of the objective's (bounds/spectral.py)."""
        self.problem, self.options, self.curvature = problem, options, curvature
        data: GramData | RawData = inner.gram if inner.has(CLOSED_FORM) else inner.raw
        lam, scale, lipschitz = inner.lam, np.ones(inner.d), 0.0
        if curvature is None:
            lipschitz = inner.spectral_norm_squared * inner.objective.steepness
        else:
            data, lipschitz = curved_data(inner, curvature, hessian)
            lam, scale = 1.0, np.sqrt(curvature)
        self.rules = solver.rules(inner, lipschitz, options.thorough)
        self._root_fit: FloatArray | None = None
        self.second_order = False
        self._decided = not may_lead(problem, data)
        self._form = KernelForm(Perspective(inner.row_loss, data, groups, lam, problem.k, self.rules), scale)

    def begins_at_fits(self) -> bool:
        """See :class:`exactsel.bounds.kernel_form.Relaxation`."""
        if not self._decided:
            perspective, stop = self._form.perspective, self.options.stop
            self._root_fit = leading_fit(self.problem, perspective, stop)
            fit = self._root_fit
            self.second_order = fit is not None and exceeds_fit(self.problem, perspective, fit, stop)
            self._decided = not self.options.stop[0]
        return self._root_fit is not None

    @property
    def detail(self) -> str:
        """See :class:`exactsel.bounds.base.PreparedBound`."""
        if self.second_order:
            return "solved by Newton's method"
        return "" if self._root_fit is None else "begun at the Newton fit on the features left"

    def as_point(self, x: FloatArray) -> ModelPoint:
        """See :class:`exactsel.bounds.kernel_form.Relaxation`."""
        point = ModelPoint.from_dense(x)
        return point if self.curvature is None else CurvedPoint(point.index, point.value, self.curvature)

    def tighten(
        self, states: StateArray, warm: Sequence[Any], cutoff: float, upper: float, known: FloatArray | None = None
    ) -> Tightened:
        """See :class:`exactsel.bounds.base.PreparedBound`."""
        if known is None:
            known = np.full(len(states), -np.inf)
        problem, options, (perspective, scale) = self.problem, self.options, self._form
        answers = empty_answers(len(states), problem.d, problem.k)
        starts = stack_points(warm if options.warm_start else [None] * len(states), scale.size) * scale
        if self.begins_at_fits():
            perspective = beginning_at_fits(perspective, self.second_order)
            starts[[memory is None for memory in warm]] = self._root_fit
        points = answers.point if perspective.groups is None else np.zeros_like(starts)
        target = cutoff if options.force_quit else np.inf
        with parallel_section(options.threads):
            relax_nodes(*perspective, states, starts, target, known, options.stop, answers, points)
        if not self._decided:
            answers.status[:] = UNFINISHED
        points /= scale
        if perspective.groups is None:
            # Lengths of groups stay in the kernel's variables; that is good enough for what they are for: to branch.
            answers.x[:] /= scale
        models = [self.as_point(point) for point in points]
        return Tightened(answers, models, models)


class PreparedAcceleratedGradient(PreparedPerspective):
    """Of single columns: its kernel can also search by itself."""

    @property
    def kernel_form(self) -> KernelForm:
        """See :class:`exactsel.bounds.kernel_form.Relaxation`."""
        return self._form
