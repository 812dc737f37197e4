"""A problem as the data it was given, and back: for whoever is to make the same problem in another process."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from exactsel.data.instance import Instance
from exactsel.problem.boxed import BoxedProblem
from exactsel.problem.column_subset import ColumnSubsetProblem
from exactsel.problem.grouped import GroupedProblem
from exactsel.problem.hierarchy import Hierarchy
from exactsel.problem.interface import SubsetProblem
from exactsel.problem.limits import GroupLimits, limit_options
from exactsel.problem.regression import Problem
from exactsel.types import FloatArray

CSS = "css"
"""What ``loss`` says of column subset selection."""


def given(problem: SubsetProblem) -> tuple[Instance, dict[str, Any]]:
    """The data as they were given, and what else makes the problem."""
    limits = problem.coefficient_bounds
    if limits is not None:
        instance, about = given(problem.without_coefficient_bounds)
        sides = [
            [v if math.isfinite(v) else None for v in side.tolist()]
            for side in (limits.given_lower, limits.given_upper)
        ]
        return instance, about | {"bounds": sides}
    objective, units = problem.objective, problem.units
    entries: dict[str, Any] = {
        "k": problem.k, "loss": CSS, "lam": 0.0, "delta": 1.0, "intercept": False, "scale": False,
        "force_in": list(units.force_in), "force_out": list(units.force_out), "groups": _labels(problem),
        "hierarchy": [], "hierarchy_kind": "strong", "limits": {},
    }  # fmt: skip
    if isinstance(units.constraint, Hierarchy):
        entries["hierarchy_kind"] = units.constraint.kind
        entries["hierarchy"] = [[j, list(map(int, above))] for j, above in enumerate(units.constraint.parents) if above]
    if isinstance(units.constraint, GroupLimits):
        entries["limits"] = limit_options(units)
    if objective is None:
        return Instance(problem.A, np.zeros(problem.n), k=problem.k), entries
    made = objective.preparation
    A, y = (objective.A, objective.y) if made is None else (made.AT.T, made.y)
    weights: FloatArray | None = None if made is None else made.weights
    delta = float(objective.loss_parameters.get("delta", 1.0))
    centred, scaled = (False, False) if made is None else (made.centred, made.scaled)
    entries |= {"loss": objective.loss.name, "lam": objective.asked_lam, "delta": delta}
    entries |= {"intercept": bool(centred), "scale": bool(scaled)}
    held = Instance(
        np.asarray(A), np.asarray(y), k=problem.k, lam=objective.asked_lam, loss=objective.loss.name,
        delta=delta if objective.loss.name == "huber" else None, weights=weights, intercept=bool(centred),
        groups=None if entries["groups"] is None else tuple(entries["groups"]),
    )  # fmt: skip
    return held, entries


def _labels(problem: SubsetProblem) -> list[str] | None:
    """The group of each column, by number, and nothing for one on its own; None where there are no groups."""
    groups = problem.units.groups
    if not groups:
        return None
    labels = [""] * sum(map(len, groups))
    for number, columns in enumerate(groups):
        for j in columns if len(columns) > 1 else ():
            labels[j] = f"g{number}"
    return labels


def made_again(A: FloatArray, y: FloatArray, weights: FloatArray | None, entries: Mapping[str, Any]) -> SubsetProblem:
    """The problem of which :func:`given` has told the data and ``entries``.

    Raises
    ------
    InputError
        Where it cannot be made, as where its loss is not registered here.
    """
    if entries["loss"] == CSS:
        return ColumnSubsetProblem(A, entries["k"])
    demands: dict[str, Any] = {"force_in": entries["force_in"], "force_out": entries["force_out"]}
    if entries["hierarchy"]:
        demands["hierarchy"] = {int(unit): tuple(above) for unit, above in entries["hierarchy"]}
        demands["hierarchy_kind"] = entries["hierarchy_kind"]
    demands |= entries.get("limits", {})
    grouped = entries["groups"] is not None
    plain = Problem.prepared(
        A, y, entries["k"], intercept=entries["intercept"], scale=entries["scale"], weights=weights,
        loss=entries["loss"], lam=entries["lam"], delta=entries["delta"] if entries["loss"] == "huber" else None,
        **({} if grouped else demands),
    )  # fmt: skip
    if grouped:
        plain = GroupedProblem(plain, [label or None for label in entries["groups"]], **demands)
    if not entries.get("bounds"):
        return plain
    lower, upper = entries["bounds"]
    return BoxedProblem(
        plain, [-math.inf if v is None else v for v in lower], [math.inf if v is None else v for v in upper]
    )
