"""The arguments of one call that state a problem: an existing problem, or data and the columns to choose from.

Every verb goes through :func:`problem_asked`, so that each takes data by the same words and with the same defaults.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from exactsel.arguments import by_name, every_core
from exactsel.data.beside import instance_of_data
from exactsel.data.instance import Instance
from exactsel.data.missing import KEPT
from exactsel.data.tables import Coding
from exactsel.deadlines import within
from exactsel.errors import DataWarning, InputError, did_you_mean, warn_of_data
from exactsel.problem.boxed import boxed
from exactsel.problem.interface import SubsetProblem, is_problem
from exactsel.problem.preparing import AUTO, needs_all_levels
from exactsel.problem.regression import Problem
from exactsel.problem.targets import advice_on_copies, better_loss, copies_of
from exactsel.solving.settings import settings_of
from exactsel.types import FloatArray


class UnknownOptionError(InputError, TypeError):
    """A keyword nothing is called by."""


OF_TABLES = ("factors", "missing", "formula", "drop")
"""What is done to columns of data first, see :func:`exactsel.load`."""

OF_COEFFICIENTS = ("positive", "bounds", "max_coef", "equalities", "sum_to")
"""Limits on coefficients, and equalities, see :func:`exactsel.boxed`."""

OF_PROBLEM = (
    "fit_intercept", "standardize", "sample_weight", "offset", *(Problem.__init__.__kwdefaults__ or {}), *OF_TABLES,
    *OF_COEFFICIENTS,
)  # fmt: skip
"""What else data need to become a problem, see :meth:`exactsel.Problem.prepared`."""

OF_GROUPS = ("groups", "per_group")

OF_SEARCH = {"random_state": "seed", "n_jobs": "threads"}
"""Fields of :class:`exactsel.Settings` that have another name in the arguments of a verb."""


EVERY_COLUMN = 2**31
"""More columns than there are, for calls that concern models of all sizes."""


ELSEWHERE = {
    "target": "give the numbers to predict, as in solve(X, y, k=5), or a formula, as in formula='y ~ .'",
    "family": "give loss, which is quadratic for gaussian, logistic for binomial, or poisson",
    "alpha": "the ridge weight is called lam, and the loss is a sum over rows",
    "C": "the ridge weight is called lam, and is 1/C",
    "nvmax": "the largest number of features is called k",
    "must_have": "the features of every model are called force_in",
    "must_not": "the features of no model are called force_out",
}
"""What other programs and earlier days call things, and what that is here."""


def problem_asked(
    data: object, y: ArrayLike | None, k: int | None, options: Mapping[str, Any], *,
    known: Collection[str] | None = None, at_most: int | None = None,
) -> tuple[SubsetProblem, dict[str, Any]]:  # fmt: skip
    """The problem, and the options that are left for the search.

    Parameters
    ----------
    data : problem; or array, sparse matrix or data frame (n, d)
    y, k : array (n,), int, optional
        Of data.
    options : mapping
        Of a problem (:data:`OF_PROBLEM`) and of the search.
    known : collection of str, optional
        What the verb calls its other options; the fields of :class:`exactsel.Settings` by default.
    at_most : int, optional
        The k of data where none is given, or as many columns as there are.

    Raises
    ------
    InputError
        For data without a target, a target beside a problem, and words that neither a problem nor a search knows.
    """
    has_problem, words = is_problem(data), settings_of() if known is None else known
    named = by_name(options)
    chosen = {name: value for name, value in named.items() if name in OF_PROBLEM}
    settings = {OF_SEARCH.get(name, name): value for name, value in named.items() if name not in OF_PROBLEM}
    if "n_jobs" in named:
        settings["threads"] = every_core(settings["threads"])
    others = [name for name in options if by_name({name: 0}).keys() <= chosen.keys()] if has_problem else []
    others += [name for name in settings if name not in words]
    if others:
        raise UnknownOptionError(_unknown(others[0], has_problem, words))
    if is_problem(data):
        if y is not None or k is not None:
            raise InputError("a problem was given, which has its own y and k; change those with problem.replace(k=5).")
        return data, settings
    if y is None and named.get("formula") is None:
        raise InputError(
            "data were given without a target; call solve(X, y, k=5), or solve(ColumnSubsetProblem(X, k=5)) for "
            "columns that stand for all others."
        )
    with warnings.catch_warnings(), within(settings.get("time_limit")):
        if k is None and at_most is not None:
            warnings.filterwarnings("ignore", message=r"k = \d+ is more than", category=DataWarning)
            k = at_most
        problem = _problem_of(data, y, k, chosen)
    if "loss" not in chosen and (hint := better_loss(problem.target if y is None else y)) is not None:
        warn_of_data(hint.advice)
    if copies := _copies_of_target(problem, y):
        warn_of_data(advice_on_copies(copies))
    return problem, settings


class Gaps(NamedTuple):
    """Entries that are missing and are filled in."""

    A: FloatArray
    """(n, d), nan where there is no entry."""
    way: str
    """``mean`` or ``median``."""


def gaps_asked(data: object, y: ArrayLike | None, options: Mapping[str, Any]) -> Gaps | None:
    """The table of :func:`problem_asked` before its gaps are filled in; None where none are."""
    named = by_name(options)
    way = named.get("missing")
    if is_problem(data) or way not in KEPT:
        return None
    chosen = {name: value for name, value in named.items() if name in OF_PROBLEM}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # all has been said of the problem
        instance, _ = _instance_of(data, y, chosen | {"missing": KEPT[way]})
    return Gaps(instance.A, way.partition("-")[0])


def _problem_of(data: object, y: ArrayLike | None, k: int | None, chosen: dict[str, Any]) -> Problem:
    """The problem for data, their columns encoded and imputed first where the options request it."""
    limits = {name: chosen.pop(name) for name in OF_COEFFICIENTS if name in chosen}
    problem = _unlimited(data, y, k, chosen)
    return boxed(problem, **limits) if any(map(_is_asked, limits.values())) else problem


def _unlimited(data: object, y: ArrayLike | None, k: int | None, chosen: dict[str, Any]) -> Problem:
    if not (any(_is_asked(chosen.get(name)) for name in OF_TABLES) or isinstance(chosen.get("offset"), str)):
        plain = {name: value for name, value in chosen.items() if name not in OF_TABLES}
        return Problem.prepared(data, y, k, **{"fit_intercept": AUTO, **plain})
    instance, chosen = _instance_of(data, y, chosen)
    if instance.groups is not None or chosen.get("groups") is not None or chosen.get("per_group") is not None:
        return instance.grouped_problem(k=k, **chosen)
    return instance.problem(k=k, **{name: value for name, value in chosen.items() if name not in OF_GROUPS})


def _copies_of_target(problem: Problem, y: ArrayLike | None) -> list[str]:
    """The columns that are the target, by name: most often it was left among them."""
    before, names = problem.preparation, problem.units.column_names
    copies = copies_of(problem.target if y is None else y, problem.AT if before is None else before.AT)
    return [str(j) if names is None else names[j] for j in copies]


def _is_asked(value: object) -> bool:
    return not (value is None or value is False or (isinstance(value, tuple | list) and not value))


def _instance_of(data: object, y: ArrayLike | None, chosen: dict[str, Any]) -> tuple[Instance, dict[str, Any]]:
    """The data as an instance, and what is left to say of its problem."""
    options = dict(chosen)
    all_levels = needs_all_levels(options.get("fit_intercept"), options.get("loss"))
    coding = Coding(options.pop("factors", ()), all_levels, options.pop("formula", None))
    how = {"coding": coding, "missing": options.pop("missing", None), "drop": options.pop("drop", ())}
    beside = {name: options.pop(name, None) for name in ("sample_weight", "offset", "feature_names")}
    instance, options["offset"] = instance_of_data(data, y, **how, **beside)
    return instance, options


def _unknown(name: str, has_problem: bool, names: Collection[str]) -> str:
    if has_problem and by_name({name: 0}).keys() <= {*OF_PROBLEM}:
        return f"{name!r} is part of a problem and not of a search; make the problem with it."
    if name in ELSEWHERE and name not in names:
        return f"{name!r} is no option here; {ELSEWHERE[name]}."
    words = [*names, *(() if has_problem else OF_PROBLEM)]
    if name in ELSEWHERE:
        return f"{name!r} is no option here; {ELSEWHERE[name]}."
    return f"{name!r} is no option of a search{did_you_mean(name, words)}; its options are: {', '.join(words)}."
