"""Perspective bound by accelerated proximal gradient: the default for lam > 0 (see kernels/apg.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactsel._jit import loss_session, parallel_section
from exactsel.bounds.base import BoundOptions, Tightened, sparse_points, stack_points
from exactsel.errors import UnsupportedError
from exactsel.kernels.apg import Rules, apg_data, apg_gram
from exactsel.kernels.node import empty_answers
from exactsel.problem import Problem
from exactsel.types import FloatArray, StateArray


@dataclass(frozen=True)
class AcceleratedGradientBound:
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

    name = "apg"

    def prepare(self, problem: Problem, options: BoundOptions) -> PreparedAcceleratedGradient:
        """Bind to a problem with lam > 0."""
        if problem.lam == 0:
            raise UnsupportedError(
                "the bound 'apg' divides by lam, which is 0 here; use --bound fit, or give a positive --lam."
            )
        return PreparedAcceleratedGradient(self, problem, options)


class PreparedAcceleratedGradient:
    """Calls the Gram kernel for quadratic loss and the data kernel for every other."""

    def __init__(self, solver: AcceleratedGradientBound, problem: Problem, options: BoundOptions) -> None:
        self.problem = problem
        self.options = options
        lipschitz = problem.spectral_norm_squared * problem.loss.smoothness
        self.rules = Rules(lipschitz, solver.max_iterations, solver.accuracy, solver.polish, solver.progress)

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
                    problem.gram,
                    problem.lam,
                    problem.k,
                    self.rules,
                    states,
                    starts,
                    target,
                    known,
                    options.stop,
                    answers,
                )
            else:
                apg_data(
                    problem.loss, problem.raw, problem.lam, problem.k, self.rules,
                    states, starts, target, known, options.stop, answers,
                )  # fmt: skip
        points = sparse_points(answers)
        return Tightened(answers, points, points)
