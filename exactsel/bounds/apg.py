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

from exactsel._jit import loss_session, parallel_section
from exactsel.algebra.curvature import affordable, best_curvature
from exactsel.algebra.spectrum import largest_eigenvalue
from exactsel.bounds.base import BoundOptions, BoundSolver, PreparedBound, Tightened, sparse_points, stack_points
from exactsel.bounds.kernel_form import KernelForm
from exactsel.bounds.witness import CurvedPoint, ModelPoint
from exactsel.errors import UnsupportedError
from exactsel.kernels.apg import GramData, Rules, apg_data, apg_gram
from exactsel.kernels.node import empty_answers
from exactsel.problem.regression import Problem
from exactsel.types import FloatArray, StateArray

WORTHWHILE = 1.5
"""Geometric mean of D_j / lam above which the curvature is used (2 and more on Diabetes, 5 on harder instances; 1 to
1.3 where the ridge alone was better)."""

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

    def rules(self, problem: Problem, lipschitz: float) -> Rules:
        """When a node's iteration ends."""
        wide = problem.is_quadratic and problem.d > WIDE
        polish = min(self.polish, WIDE_POLISH) if wide else self.polish
        return Rules(lipschitz, self.max_iterations, self.accuracy, polish, self.progress)

    def prepare(self, problem: Problem, options: BoundOptions) -> PreparedBound:
        """Bind to a problem with lam > 0, or of quadratic loss and independent columns."""
        if self.curvature and problem.is_quadratic and affordable(problem.d, options.seconds) is not None:
            hessian = problem.hessian
            curvature = curvature_of(problem, hessian, options) if may_gain(problem) else None
            if curvature is not None and gains(curvature, problem.lam):
                return PreparedCurved(self, problem, options, hessian, curvature)
        if problem.lam == 0:
            raise UnsupportedError(
                "the bound 'apg' needs curvature, but lam is 0 and the columns are (nearly) dependent; "
                "use --bound fit, or give a positive --lam."
            )
        return PreparedAcceleratedGradient(self, problem, options)


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
        curvature = best_curvature(hessian, problem.n, options.seconds, lambda: bool(stop[0]))
        if stop[0]:
            return curvature  # cut short: good enough for now, not worth keeping
        problem.shared[key] = curvature
    known: FloatArray | None = problem.shared[key]
    return known


def curved_data(problem: Problem, hessian: FloatArray, curvature: FloatArray) -> tuple[GramData, float]:
    """The problem in the variables sqrt(D) x, where formula (3) is (2) with lam = 1, and its Lipschitz constant."""
    root = np.sqrt(curvature)
    M = (hessian - np.diag(curvature)) / np.outer(root, root)
    gram = problem.gram
    # Every entry of the scaled matrix was rounded a few times more; norms bound its entries as they do those of G.
    norms = np.sqrt((gram.norms**2 + problem.lam) / curvature)
    data = GramData(M, gram.b / root, gram.constant, gram.rows + 8, norms)
    return data, max(largest_eigenvalue(M) * (1.0 + 1e-9), 1e-300)


class PreparedCurved(PreparedBound):
    """Quadratic loss, with the curvature of all columns."""

    curvature: FloatArray

    def __init__(
        self,
        solver: AcceleratedGradientBound,
        problem: Problem,
        options: BoundOptions,
        hessian: FloatArray,
        curvature: FloatArray,
    ) -> None:
        self.problem = problem
        self.options = options
        self.curvature = curvature
        self._root = np.sqrt(curvature)
        self._data, lipschitz = curved_data(problem, hessian, curvature)
        self.rules = solver.rules(problem, lipschitz)

    @property
    def kernel_form(self) -> KernelForm:
        """See :class:`exactsel.bounds.kernel_form.Relaxation`."""
        return KernelForm(self.problem.loss, self._data, 1.0, self.rules, self._root)

    def as_point(self, x: FloatArray) -> CurvedPoint:
        """See :class:`exactsel.bounds.kernel_form.Relaxation`."""
        point = ModelPoint.from_dense(x)
        return CurvedPoint(point.index, point.value, self.curvature)

    def tighten(
        self, states: StateArray, warm: Sequence[Any], cutoff: float, upper: float, known: FloatArray | None = None
    ) -> Tightened:
        """See :class:`exactsel.bounds.base.PreparedBound`."""
        if known is None:
            known = np.full(len(states), -np.inf)
        problem, options = self.problem, self.options
        answers = empty_answers(len(states), problem.d, problem.k)
        starts = stack_points(warm if options.warm_start else [None] * len(states), problem.d) * self._root
        target = cutoff if options.force_quit else np.inf
        with parallel_section(options.threads):
            apg_gram(self._data, 1.0, problem.k, self.rules, states, starts, target, known, options.stop, answers)
        answers.point[:] /= self._root
        answers.x[:] /= self._root
        points = [CurvedPoint(p.index, p.value, self.curvature) for p in sparse_points(answers)]
        return Tightened(answers, points, points)


class PreparedAcceleratedGradient(PreparedBound):
    """The curvature of the ridge alone: Gram kernel for quadratic loss, data kernel for every other."""

    def __init__(self, solver: AcceleratedGradientBound, problem: Problem, options: BoundOptions) -> None:
        self.problem = problem
        self.options = options
        lipschitz = problem.spectral_norm_squared * problem.loss.smoothness
        self.rules = solver.rules(problem, lipschitz)

    @property
    def kernel_form(self) -> KernelForm:
        """See :class:`exactsel.bounds.kernel_form.Relaxation`."""
        problem = self.problem
        data = problem.gram if problem.is_quadratic else problem.raw
        return KernelForm(problem.row_loss, data, problem.lam, self.rules, np.ones(problem.d))

    def as_point(self, x: FloatArray) -> ModelPoint:
        """See :class:`exactsel.bounds.kernel_form.Relaxation`."""
        return ModelPoint.from_dense(x)

    def tighten(
        self, states: StateArray, warm: Sequence[Any], cutoff: float, upper: float, known: FloatArray | None = None
    ) -> Tightened:
        """See :class:`exactsel.bounds.base.PreparedBound`."""
        if known is None:
            known = np.full(len(states), -np.inf)
        problem, options = self.problem, self.options
        answers = empty_answers(len(states), problem.d, problem.k)
        starts = stack_points(warm if options.warm_start else [None] * len(states), problem.d)
        target = cutoff if options.force_quit else np.inf
        with loss_session(problem.loss), parallel_section(options.threads):
            if problem.is_quadratic:
                apg_gram(
                    problem.gram, problem.lam, problem.k, self.rules,
                    states, starts, target, known, options.stop, answers,
                )  # fmt: skip
            else:
                apg_data(
                    problem.row_loss, problem.raw, problem.lam, problem.k, self.rules,
                    states, starts, target, known, options.stop, answers,
                )  # fmt: skip
        points = sparse_points(answers)
        return Tightened(answers, points, points)
