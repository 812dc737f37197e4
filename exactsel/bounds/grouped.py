"""Perspective bound over groups of columns (kernels/grouped.py): formula (2), or (3) with a curvature, by group."""

from __future__ import annotations

from dataclasses import dataclass

from exactsel.algebra.dependent import dependent_columns
from exactsel.bounds.apg import AcceleratedGradientBound, PreparedPerspective
from exactsel.bounds.base import BoundOptions, PreparedBound
from exactsel.errors import UnsupportedError, option
from exactsel.problem.capabilities import FREE_COEFFICIENTS, GROUPED_REGRESSION
from exactsel.problem.model import listed
from exactsel.problem.regression import Problem

SHOWN = 3
"""Columns named in a message."""


@dataclass(frozen=True)
class GroupedBound(AcceleratedGradientBound):
    """Minimise the perspective relaxation over groups; every iterate's dual vector is a bound.

    The options are those of :class:`exactsel.bounds.apg.AcceleratedGradientBound`.
    """

    name = "grouped"
    needs = GROUPED_REGRESSION

    def prepare(self, problem: Problem, options: BoundOptions) -> PreparedBound:
        """Bind to a problem of groups with lam > 0, or of quadratic loss and independent columns."""
        if not (problem.has(FREE_COEFFICIENTS) and problem.units.grouped):
            raise UnsupportedError(
                f"the bound '{self.name}' is for problems with groups; use {option('bound', 'auto')}."
            )
        curvature = self.known_curvature(problem.inner, options)
        if curvature is None and problem.lam == 0:
            columns = dependent_columns(problem.inner.AT)
            named = listed(columns[:SHOWN], problem.inner.feature_names) + (", ..." if len(columns) > SHOWN else "")
            which = f", such as {named}" if columns else ""
            raise UnsupportedError(
                f"{problem.units.noun}s need curvature, but lam is 0 and the features are (nearly) dependent{which}; "
                f"give a small ridge ({option('lam', 1e-6)}), or leave out what is constant or depends on others "
                f"({option('drop')})."
            )
        return PreparedPerspective(self, problem, options, curvature, problem.inner, problem.units.spans)
