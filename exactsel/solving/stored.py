"""Results as plain data from which another process makes them again: what a checkpoint of several searches holds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from exactsel.plain import writable
from exactsel.problem.interface import SubsetProblem
from exactsel.problem.model import Model, column_ratio, preparation_of, searched_coef
from exactsel.solving.quality import quality_of
from exactsel.solving.result import Claim, Result, Termination

AS_THEY_ARE = (
    "nodes", "bound_calls", "iterations", "open_nodes", "source", "times", "tree_hash", "scope",
)  # fmt: skip
"""Fields of a result that JSON holds."""

NUMBERS = ("upper", "lower", "null_objective")
"""Those that may be infinite, and of which every bit counts."""


def as_stored(result: Result) -> dict[str, Any]:
    """A result as JSON holds it, without events and history, and without what follows from the problem."""
    used = np.flatnonzero(result.coef)
    return {
        **{name: getattr(result, name) for name in AS_THEY_ARE},
        **{name: getattr(result, name).hex() for name in NUMBERS},
        "claim": result.claim.value, "termination": result.termination.value, "support": list(result.support),
        "entries": len(result.coef), "coef": [[int(j), float(result.coef[j]).hex()] for j in used],
        "settings": {name: writable(value) for name, value in result.settings.items()},
    }  # fmt: skip


def from_stored(stored: dict[str, Any], problem: SubsetProblem) -> Result:
    """The result again, for the problem it is of; call it where damage is refused, as it believes what it is told."""
    coef = np.zeros(stored["entries"])
    for j, value in stored["coef"]:
        coef[j] = float.fromhex(value)
    settings = dict(stored["settings"])
    settings["memory_limit"] = math.inf if settings["memory_limit"] is None else settings["memory_limit"]
    model = Model.of(problem, searched_coef(problem, coef))
    numbers: dict[str, Any] = {name: float.fromhex(stored[name]) for name in NUMBERS}
    return Result(
        **{name: stored[name] for name in AS_THEY_ARE}, **numbers,
        claim=Claim(stored["claim"]), termination=Termination(stored["termination"]),
        support=tuple(stored["support"]), coef=coef, settings=settings, problem=problem.describe(),
        preparation=preparation_of(problem), model=model, quality=quality_of(problem, model),
        column_ratio=column_ratio(problem),
    )  # fmt: skip
