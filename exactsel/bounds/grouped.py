"""Perspective bound over groups of columns (kernels/grouped.py): formula (2), or (3) with a curvature, by group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactsel._jit import loss_session, parallel_section
from exactsel.algebra.curvature import affordable
from exactsel.bounds.apg import AcceleratedGradientBound, curvature_of, curved_data
from exactsel.bounds.base import BoundOptions, PreparedBound, Tightened, stack_points
from exactsel.bounds.witness import CurvedPoint, ModelPoint
from exactsel.errors import UnsupportedError
from exactsel.kernels.apg import GramData, RawData
from exactsel.kernels.grouped import apg_grouped
from exactsel.kernels.node import empty_answers
from exactsel.problem.grouped import GroupedProblem
from exactsel.types import FloatArray, StateArray


@dataclass(frozen=True)
class GroupedBound(AcceleratedGradientBound):
    """Minimise the perspective relaxation over groups; every iterate's dual vector is a bound.

    The options are those of :class:`exactsel.bounds.apg.AcceleratedGradientBound`.
    """

    name = "grouped"
    family = "grouped"

    def prepare(self, problem: Any, options: BoundOptions) -> PreparedBound:
        """Bind to a ``GroupedProblem`` with lam > 0, or of quadratic loss and independent columns."""
        if not isinstance(problem, GroupedProblem):
            raise UnsupportedError(f"the bound '{self.name}' is for problems with --groups; use --bound auto.")
        inner, curvature = problem.inner, None
        if self.curvature and inner.is_quadratic and affordable(inner.d, options.seconds) is not None:
            curvature = curvature_of(inner, inner.hessian, options)
        if curvature is None and inner.lam == 0:
            raise UnsupportedError(
                "groups need curvature, but lam is 0 and the columns are (nearly) dependent; give a positive --lam, or "
                "leave one column of each one-hot block out (--drop COLUMN=VALUE)."
            )
        return PreparedGrouped(self, problem, options, curvature)


class PreparedGrouped(PreparedBound):
    """Bound to one problem: its rows, or for quadratic loss the Gram matrix, with a curvature if there is one."""

    def __init__(
        self, solver: GroupedBound, problem: GroupedProblem, options: BoundOptions, curvature: FloatArray | None
    ) -> None:
        self.problem, self.options, self.curvature = problem, options, curvature
        inner = problem.inner
        self._data: GramData | RawData
        if curvature is not None:
            self._data, lipschitz = curved_data(inner, inner.hessian, curvature)
            self._lam, self._root = 1.0, np.sqrt(curvature)
        else:
            self._data = inner.gram if inner.is_quadratic else inner.raw
            self._lam, self._root = inner.lam, np.ones(inner.d)
            lipschitz = inner.spectral_norm_squared * inner.loss.smoothness
        self.rules = solver.rules(inner, lipschitz)

    def tighten(
        self, states: StateArray, warm: Sequence[Any], cutoff: float, upper: float, known: FloatArray | None = None
    ) -> Tightened:
        """See :class:`exactsel.bounds.base.PreparedBound`; ``states`` (B, groups)."""
        if known is None:
            known = np.full(len(states), -np.inf)
        problem, options, inner = self.problem, self.options, self.problem.inner
        answers, points = empty_answers(len(states), problem.d, problem.k), np.zeros((len(states), inner.d))
        starts = stack_points(warm if options.warm_start else [None] * len(states), inner.d) * self._root
        target = cutoff if options.force_quit else np.inf
        with loss_session(inner.loss), parallel_section(options.threads):
            apg_grouped(
                inner.row_loss, self._data, problem.spans, self._lam, problem.k, self.rules,
                states, starts, target, known, options.stop, answers, points,
            )  # fmt: skip
        # Lengths of groups are in the kernel's variables; that is good enough for what they are for: to branch.
        found = [self._as_point(point) for point in points / self._root]
        return Tightened(answers, found, found)

    def _as_point(self, x: FloatArray) -> ModelPoint:
        point = ModelPoint.from_dense(x)
        return point if self.curvature is None else CurvedPoint(point.index, point.value, self.curvature)
