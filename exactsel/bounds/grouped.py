"""Perspective bound over groups of columns (kernels/grouped.py): formula (2), or (3) with a curvature, by group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from exactsel.bounds.apg import AcceleratedGradientBound, PreparedPerspective
from exactsel.bounds.base import BoundOptions, PreparedBound
from exactsel.errors import UnsupportedError, option


@dataclass(frozen=True)
class GroupedBound(AcceleratedGradientBound):
    """Minimise the perspective relaxation over groups; every iterate's dual vector is a bound.

    The options are those of :class:`exactsel.bounds.apg.AcceleratedGradientBound`.
    """

    name = "grouped"
    family = "grouped"

    def prepare(self, problem: Any, options: BoundOptions) -> PreparedBound:
        """Bind to a problem of groups with lam > 0, or of quadratic loss and independent columns."""
        if problem.family != self.family:
            raise UnsupportedError(
                f"the bound '{self.name}' is for problems with groups; use {option('bound', 'auto')}."
            )
        curvature = self.known_curvature(problem.inner, options)
        if curvature is None and problem.lam == 0:
            raise UnsupportedError(
                f"{problem.units.noun}s need curvature, but lam is 0 and the columns are (nearly) dependent; give a "
                f"small ridge ({option('lam', 1e-6)}), or leave out what depends on others."
            )
        return PreparedPerspective(self, problem, options, curvature, problem.inner, problem.units.spans)
