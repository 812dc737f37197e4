"""The objective to search with in place of the one given: in units in which one tolerance serves all columns."""

from __future__ import annotations

from exactsel.errors import UnsupportedError, option
from exactsel.losses.huber import Huber
from exactsel.losses.quadratic import Quadratic
from exactsel.problem.column_scales import with_even_columns
from exactsel.problem.design import refuse_design
from exactsel.problem.infinitesimal_ridge import without_ridge
from exactsel.problem.long_columns import with_long_columns_divided
from exactsel.problem.objective import Objective
from exactsel.problem.subset_objective import SubsetObjective
from exactsel.problem.units import Units


def to_search_with(objective: SubsetObjective, units: Units, k: int) -> SubsetObjective:
    """The objective on columns in units of their own, for models of at most k of the units.

    Raises as :func:`exactsel.problem.infinitesimal_ridge.without_ridge` where there is no ridge.
    """
    if not isinstance(objective, Objective):
        return objective  # its columns are in no other units
    searched = _free_to_search_with(objective.free, units, k)
    return objective if searched is objective.free else searched.within(objective.coefficient_bounds)


def _free_to_search_with(objective: Objective, units: Units, k: int) -> Objective:
    """The same of an objective without coefficient bounds, which say nothing of units."""
    if objective.on_demand:
        if units.grouped or units.constraint is not None:
            refuse_design(objective.AT, "a table of the features of groups or of a hierarchy")
        if objective.lam == 0.0 and not isinstance(objective.loss, Quadratic | Huber):
            # Some k columns may separate the classes, or the rows without counts: then no model is the best one.
            raise UnsupportedError(
                f"{option('lam')} is 0, which with {objective.loss.name} loss data that are held as no table cannot be "
                f"served with; give a positive {option('lam')}."
            )
        return with_even_columns(objective) if objective.lam == 0.0 else objective
    if objective.asked_lam > 0.0:
        return with_long_columns_divided(objective, units, k)
    return with_even_columns(objective) if objective.is_quadratic else without_ridge(objective, units, k)
