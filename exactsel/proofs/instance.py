"""The problem in the form the checker of proofs takes it."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from exactsel.errors import UnsupportedError, either
from exactsel.losses.base import curvature_known
from exactsel.losses.huber import Huber
from exactsel.losses.logistic import Logistic
from exactsel.losses.poisson import Poisson
from exactsel.losses.quadratic import Quadratic
from exactsel.losses.squared_hinge import SquaredHinge
from exactsel.problem.design import SparseColumns, refuse_design
from exactsel.problem.interface import SubsetProblem, is_regression
from exactsel.problem.objective import Objective
from exactsel.problem.units import Units
from exactsel_certificates.checking import AnyInstance, SearchedInstance
from exactsel_certificates.constraint import Constraint
from exactsel_certificates.constraints import constraint_of
from exactsel_certificates.entries import Entries, SparseInstance
from exactsel_certificates.formula import Box, ColumnInstance, Instance
from exactsel_certificates.given import GivenInstance
from exactsel_certificates.losses.base import MINORANTS, Loss
from exactsel_certificates.radii import within_box

CHECKABLE: tuple[type, ...] = (Quadratic, Huber, Logistic, SquaredHinge, Poisson)
"""Losses the checker knows."""


@runtime_checkable
class Checkable(Protocol):
    """A loss that brings formulas for a checker of proofs, so that a proof file can speak of it."""

    name: str

    def checked_by(self) -> Loss:
        """The formulas, with the same name and parameters (``certificates/exactsel_certificates/losses/base.py``)."""
        ...


def searched_instance_of(problem: SubsetProblem) -> SearchedInstance:
    """The problem on the numbers that are searched: prepared data, columns of even length, a vanishing ridge."""
    instance, objective = instance_of(problem), problem.objective
    if objective.preparation is None or isinstance(instance, ColumnInstance):
        return instance
    if not isinstance(instance, GivenInstance):
        chosen = {entry.name: getattr(instance, entry.name) for entry in fields(Instance)}
        instance = GivenInstance(**chosen)
    instance.take(objective.preparation.made)
    searched = replace(instance.plain, lam=objective.lam)
    # Where the ridge all but vanishes, what is known of coefficients is part of the limits that are searched within.
    limits = problem.coefficient_bounds
    return searched if limits is None or limits.none else replace(searched, box=Box(limits.lower, limits.upper))


def take_prepared(instance: GivenInstance, objective: Objective) -> None:
    """Have the instance believe the prepared data, and what is known of coefficients.

    Where columns are long beside a ridge it is the prepared data as they were before these were divided: the ridge of
    the instance is about those.
    """
    prep, ridge_limits = objective.preparation, objective.ridge_limits
    limits = None if ridge_limits is None else ridge_limits.limits
    if (
        limits is not None
        and objective.divisors is not None
        and objective.asked_lam > 0.0
        and objective.before is not None
    ):
        prep, limits = objective.before.preparation, limits._replace(size=limits.size / objective.divisors)
    if prep is not None:
        instance.take(prep.made)
    if limits is not None:
        instance.limit(limits)
    if instance.box is not None and instance.loss == "quadratic" and instance.lam == 0:
        radii = within_box(instance.plain, scoped=False)
        within = within_box(instance.plain, scoped=True) if radii is None else radii
        assert within is not None  # the scope limits every column
        instance.limit(within, scoped=radii is None)


def checked_instance_of(problem: SubsetProblem) -> AnyInstance:
    """The same, sparse data that stay sparse by their entries; a table that stays in its file is refused."""
    objective = problem.objective
    if not is_regression(problem) or not problem.objective.on_demand:
        return instance_of(problem)
    objective = problem.objective
    prep, units = objective.preparation, problem.units
    AT: Any = objective.AT if prep is None else prep.AT
    if not isinstance(AT, SparseColumns):
        refuse_design(AT, "a table of the data")
    formulas = _formulas(objective)
    box = _given_box(problem)
    entries = Entries(AT.starts, AT.rows.astype(np.int64), AT.values, AT.shape[1])
    return SparseInstance(
        entries, objective.y if prep is None else prep.y, problem.k, lam=objective.asked_lam, force_in=units.force_in,
        force_out=units.force_out, intercept=prep is not None and prep.centred, box=box, **formulas,
    )  # fmt: skip


def _given_box(problem: SubsetProblem) -> Box | None:
    limits = problem.coefficient_bounds
    return None if limits is None or limits.none else Box(limits.given_lower, limits.given_upper)


def _formulas(objective: Objective) -> dict[str, Any]:
    """The loss as the checker takes it; :class:`UnsupportedError` for one that it cannot know."""
    loss, parameters = objective.loss, objective.loss_parameters
    if type(loss) in CHECKABLE:
        return {"loss": loss.name, "delta": parameters.get("delta", np.inf)}
    if not isinstance(loss, Checkable):
        names = ", ".join(each.name for each in CHECKABLE)  # type: ignore[attr-defined]
        raise UnsupportedError(
            f"the checker does not know the loss '{loss.name}', and proofs, rechecks and workers rely on it; leave "
            f"out {either('proof, recheck and executor', '--proof, --recheck and --executor')}, use one of {names}, or "
            "give the loss a method checked_by."
        )
    if loss.name in {each.name for each in CHECKABLE}:  # type: ignore[attr-defined]
        raise UnsupportedError(
            f"'{loss.name}' is the name of a loss that the checker knows, and this loss is another one; rename it."
        )
    twin = loss.checked_by()
    if twin.name != loss.name or dict(twin.parameters) != parameters:
        raise UnsupportedError(
            f"checked_by of '{loss.name}' returns '{twin.name}' with parameters {dict(twin.parameters)}, but the name "
            f"and the parameters {parameters} of the loss were expected; return formulas of the same loss."
        )
    if curvature_known(loss) and MINORANTS not in twin.serves:
        raise UnsupportedError(
            f"'{loss.name}' has point_curvature_on, but its formulas for a checker serve no minorants; give "
            f"them curvature_on and MINORANTS, or leave point_curvature_on out."
        )
    return {"loss": loss.name, "plugin": twin}


def _checked_constraint(units: Units) -> Constraint | None:
    """The constraint on which units go together, as the checker takes it."""
    if units.constraint is None:
        return None
    constraints = [constraint_of(name, entry) for name, entry in units.constraint.entry().items()]
    if len(constraints) != 1 or constraints[0] is None:
        raise UnsupportedError("a proof file cannot speak of this constraint, which its checker does not know.")
    return constraints[0]


def instance_of(problem: SubsetProblem) -> SearchedInstance:
    """The problem, with the data as they were given; :class:`UnsupportedError` where the checker cannot know it."""
    box = _given_box(problem)
    if not is_regression(problem):
        return ColumnInstance(problem.A, problem.k)
    objective = problem.objective
    formulas = _formulas(objective)
    refuse_design(objective.AT, "a table of the data")
    units, prep = problem.units, objective.preparation
    chosen: dict[str, Any] = {
        "k": problem.k, "lam": objective.asked_lam, **formulas,
        "force_in": units.force_in, "force_out": units.force_out, "groups": units.groups, "box": box,
        "hierarchy": _checked_constraint(units),
    }  # fmt: skip
    if prep is None:
        return Instance(objective.A, objective.y, **chosen)
    if not prep.asked and objective.ridge_limits is None and objective.equalities is None:
        return Instance(prep.AT.T, prep.y, **chosen)
    return GivenInstance(
        prep.AT.T, prep.y, **chosen, weights=prep.weights, intercept=prep.centred, scale=prep.scaled,
        equalities=objective.equalities,
    )  # fmt: skip
