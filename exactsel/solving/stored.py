"""Results as plain data from which another process makes them again: what a checkpoint of several searches holds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from exactsel.problem.capabilities import COEFFICIENTS
from exactsel.problem.interface import SubsetProblem, is_regression
from exactsel.problem.model import Model, PreparedModel, column_ratio, preparation_of, searched_coef
from exactsel.search.json_shapes import (
    among,
    digest,
    entries,
    hexadecimal,
    maybe,
    number,
    plain,
    row,
    several,
    table,
    text,
    whole,
)
from exactsel.search.layout import require
from exactsel.solving.checkpoint_shapes import SETTINGS
from exactsel.solving.likelihood import likelihood_of
from exactsel.solving.outcome import Claim, Termination, claim_of
from exactsel.solving.quality import quality_of
from exactsel.solving.result import Result
from exactsel.to_plain import writable

AS_THEY_ARE = (
    "nodes", "bound_calls", "iterations", "open_nodes", "source", "times", "tree_hash", "valid_for",
)  # fmt: skip
"""Fields of a result that JSON holds."""

NUMBERS = ("upper", "lower", "null_objective")
"""Those that may be infinite, and of which every bit counts."""

CLOSE_ENOUGH = 1e-6
"""Times the objective, or a thousandth of the empty model's: how far what is stored of a model may be from what it
costs, worked out again."""

_CHOICES = {"kernels": text, "method": text, "closers": table(table(whole()))}
STORED = entries({
    "nodes": whole(), "bound_calls": whole(), "iterations": whole(), "open_nodes": whole(), "source": text,
    "times": plain(), "tree_hash": digest, "valid_for": text, "upper": hexadecimal(), "lower": hexadecimal(),
    "null_objective": hexadecimal(finite=True), "claim": among(*(each.value for each in Claim)),
    "termination": among(*(each.value for each in Termination)), "support": several(whole(), different=True),
    "entries": whole(), "coef": several(row(whole(), hexadecimal(finite=True))),
    "settings": entries(SETTINGS | _CHOICES | {
        "eps": number(0.0), "rel_eps": number(0.0), "memory_limit": maybe(number(0.0)),
    }),
})  # fmt: skip
"""What a stored result looks like."""


def as_stored(result: Result) -> dict[str, Any]:
    """A result as JSON holds it, without events and history, and without what follows from the problem."""
    used = np.flatnonzero(result.prepared.coef)
    return {
        **{name: getattr(result, name) for name in AS_THEY_ARE},
        **{name: getattr(result, name).hex() for name in NUMBERS},
        "claim": result.claim.value, "termination": result.termination.value, "support": list(result.support),
        "entries": len(result.prepared.coef),
        "coef": [[int(j), float(result.prepared.coef[j]).hex()] for j in used],
        "settings": {name: writable(value) for name, value in result.settings.items()},
    }  # fmt: skip


def from_stored(stored: dict[str, Any], problem: SubsetProblem) -> Result:
    """The result again, for the problem it is of; call it where damage is refused.

    Its bound is believed. Its model is not: what that costs is worked out again, and so is what may be claimed.
    """
    columns = problem.units.columns if problem.has(COEFFICIENTS) else 0
    used = [j for j, _ in stored["coef"]]
    require(stored["entries"] == columns and all(j < columns for j in used), "coefficients of other features")
    require(len({*used}) == len(used), "coefficients of other features")
    coef = np.zeros(columns)
    for j, value in stored["coef"]:
        coef[j] = float.fromhex(value)
    settings = dict(stored["settings"])
    settings["memory_limit"] = math.inf if settings["memory_limit"] is None else settings["memory_limit"]
    numbers: dict[str, Any] = {name: float.fromhex(stored[name]) for name in NUMBERS}
    _check_model(stored["support"], coef, numbers, problem)
    model = Model.of(problem, searched_coef(problem, coef))
    result = Result(
        **{name: stored[name] for name in AS_THEY_ARE}, **numbers,
        claim=Claim(stored["claim"]), termination=Termination(stored["termination"]),
        support=tuple(stored["support"]), prepared=PreparedModel(coef, preparation_of(problem)), settings=settings,
        problem=problem.describe(),
        model=model, quality=quality_of(problem, model), _likelihood=likelihood_of(problem),
        _column_ratio=column_ratio(problem),
    )  # fmt: skip
    require(result.claim is claim_of(result.upper, result.lower, result.tolerance), "a claim beyond its bounds")
    return result


def _check_model(support: list[int], coef: np.ndarray, numbers: dict[str, float], problem: SubsetProblem) -> None:
    """Refuse a model that costs something else than is stored."""
    null, upper, lower = problem.null_objective, numbers["upper"], numbers["lower"]
    require(len(support) <= problem.k and all(j < problem.d for j in support), "a model of other features")
    require(abs(numbers["null_objective"] - null) <= CLOSE_ENOUGH * abs(null), "another empty model")
    require(lower <= upper, "a lower bound above what the model costs")
    if not math.isfinite(upper):
        return
    if not is_regression(problem):
        value = problem.fit(support).value
    else:
        value = problem.objective(searched_coef(problem, coef))
        included = {int(j) for j in problem.units.columns_of(support)}
        require({*np.flatnonzero(coef).tolist()} <= included, "coefficients outside the model")
    off = CLOSE_ENOUGH * max(abs(value), 1e-3 * abs(null))
    require(value - upper <= off, "a model that costs more than it says")
