"""Conversion of a problem to the data and entries it was made from, and back, to rebuild it in another process."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from exactsel.data.instance import Instance
from exactsel.problem.boxed import with_bounds
from exactsel.problem.column_subset import ColumnSubsetProblem
from exactsel.problem.constraints import asked_again
from exactsel.problem.grouped import GroupedProblem
from exactsel.problem.interface import SubsetProblem, is_regression
from exactsel.problem.regression import Problem
from exactsel.registry import has_delta
from exactsel.types import FloatArray
from exactsel_certificates.equalities import Equalities

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
        met = problem.objective.equalities
        equality_entries = {} if met is None else {"equalities": [part.tolist() for part in met]}
        return instance, about | {"bounds": sides} | equality_entries
    units = problem.units
    entries: dict[str, Any] = {
        "k": problem.k, "loss": CSS, "lam": 0.0, "delta": 1.0, "intercept": False, "scale": False,
        "force_in": list(units.force_in), "force_out": list(units.force_out), "groups": _labels(problem),
        "constraint": asked_again(units),
    }  # fmt: skip
    if not is_regression(problem):
        return Instance(problem.A, np.zeros(problem.n), k=problem.k), entries
    objective, preparation = problem.objective, problem.preparation
    A, y = (objective.A, objective.y) if preparation is None else (preparation.AT.T, preparation.y)
    weights: FloatArray | None = None if preparation is None else preparation.weights
    delta = float(objective.loss_parameters.get("delta", 1.0))
    centred, scaled = (False, False) if preparation is None else (preparation.centred, preparation.scaled)
    entries |= {"loss": objective.loss.name, "lam": objective.asked_lam, "delta": delta}
    entries |= {"intercept": bool(centred), "scale": bool(scaled)}
    held = Instance(
        np.asarray(A), np.asarray(y), k=problem.k, lam=objective.asked_lam, loss=objective.loss.name,
        delta=delta if "delta" in objective.loss_parameters else None, weights=weights, intercept=bool(centred),
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
    """The problem whose data and ``entries`` :func:`given` returned.

    Raises
    ------
    InputError
        Where it cannot be made, as where its loss is not registered here.
    """
    if entries["loss"] == CSS:
        return ColumnSubsetProblem(A, entries["k"])
    demands: dict[str, Any] = {"force_in": entries["force_in"], "force_out": entries["force_out"]}
    demands |= entries["constraint"]
    grouped = entries["groups"] is not None
    plain = Problem.prepared(
        A, y, entries["k"], intercept=entries["intercept"], scale=entries["scale"], weights=weights,
        loss=entries["loss"], lam=entries["lam"], delta=entries["delta"] if has_delta(entries["loss"]) else None,
        **({} if grouped else demands),
    )  # fmt: skip
    if grouped:
        plain = GroupedProblem(plain, [label or None for label in entries["groups"]], **demands)
    if not entries.get("bounds"):
        return plain
    lower, upper = entries["bounds"]
    met = entries.get("equalities")
    return with_bounds(
        plain, [-math.inf if v is None else v for v in lower], [math.inf if v is None else v for v in upper],
        None if met is None else Equalities(*(np.array(part, dtype=np.float64) for part in met)),
    )  # fmt: skip
