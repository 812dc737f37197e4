"""What somebody asks for in one call: a problem made before, or data and what to choose from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from exactsel.data.beside import instance_of_data
from exactsel.data.tables import Coding
from exactsel.errors import InputError, did_you_mean, warn_of_data
from exactsel.problem.boxed import boxed
from exactsel.problem.interface import SubsetProblem
from exactsel.problem.preparing import AUTO, needs_all_levels
from exactsel.problem.regression import Problem
from exactsel.problem.targets import better_loss
from exactsel.solving.settings import settings_of


class UnknownOptionError(InputError, TypeError):
    """A keyword nothing is called by."""


OF_TABLES = ("factors", "missing", "formula")
"""What is done to columns of data first, see :func:`exactsel.load`."""

OF_COEFFICIENTS = ("nonnegative", "bounds")
"""Limits on coefficients, see :func:`exactsel.boxed`."""

OF_PROBLEM = (
    "intercept", "scale", "weights", "offset", *(Problem.__init__.__kwdefaults__ or {}), *OF_TABLES, *OF_COEFFICIENTS,
)  # fmt: skip
"""What else data need to become a problem, see :meth:`exactsel.Problem.prepared`."""


def problem_asked(data: Any, y: Any, k: int | None, options: Mapping[str, Any]) -> tuple[SubsetProblem, dict[str, Any]]:
    """The problem, and the options that are left for the search.

    Raises
    ------
    InputError
        For data without a target, a target beside a problem, and words that neither a problem nor a search knows.
    """
    known = hasattr(data, "units")
    others = [name for name in options if name not in settings_of() and (known or name not in OF_PROBLEM)]
    if others:
        raise UnknownOptionError(_unknown(others[0], known))
    if known:
        if y is not None or k is not None:
            raise InputError("a problem was given, which has its own y and k; change those with problem.replace(k=5).")
        return data, dict(options)
    if y is None and options.get("formula") is None:
        raise InputError(
            "data were given without a target; call solve(X, y, k=5), or solve(ColumnSubsetProblem(X, k=5)) for "
            "columns that stand for all others."
        )
    chosen = {name: value for name, value in options.items() if name in OF_PROBLEM}
    left = {name: value for name, value in options.items() if name not in OF_PROBLEM}
    limits = {name: chosen.pop(name) for name in OF_COEFFICIENTS if name in chosen}
    problem = _problem_of(data, y, k, chosen)
    if "loss" not in chosen and (hint := better_loss(problem.target if y is None else y)) is not None:
        warn_of_data(hint.arguments())
    return boxed(problem, **limits) if limits else problem, left


def _problem_of(data: Any, y: Any, k: int | None, chosen: dict[str, Any]) -> Problem:
    """The problem of data, their columns encoded and filled first where that is asked for."""
    if not any(chosen.get(name) for name in OF_TABLES):
        plain = {name: value for name, value in chosen.items() if name not in OF_TABLES}
        return Problem.prepared(data, y, k, **{"intercept": AUTO, **plain})  # type: ignore[arg-type]
    all_levels = needs_all_levels(chosen.get("intercept"), chosen.get("loss"))
    how = {
        "coding": Coding(chosen.pop("factors", ()), all_levels, chosen.pop("formula", None)),
        "missing": chosen.pop("missing", None),
    }
    beside = {name: chosen.pop(name, None) for name in ("weights", "offset", "feature_names")}
    instance, chosen["offset"] = instance_of_data(data, y, **how, **beside)
    if instance.groups is not None or chosen.get("groups") is not None or chosen.get("per_group") is not None:
        return instance.grouped_problem(k=k, **chosen)
    alone = {name: value for name, value in chosen.items() if name not in ("groups", "per_group")}
    return instance.problem(k=k, **alone)


def _unknown(name: str, known: bool) -> str:
    if known and name in OF_PROBLEM:
        return f"{name!r} is part of a problem and not of a search; make the problem with it."
    words = [*settings_of(), *(() if known else OF_PROBLEM)]
    return f"{name!r} is no option of a search{did_you_mean(name, words)}; its options are: {', '.join(words)}."
