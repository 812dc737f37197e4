"""Conversion of a command line's demands on models (groups, hierarchy, columns, limits) to arguments of a problem."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from exactsel.data.instance import Instance
    from exactsel.problem.interface import SubsetProblem
    from exactsel.problem.regression import Problem


def within_bounds(problem: Problem, arguments: dict[str, Any], instance: Instance) -> SubsetProblem:
    """The problem with the limits on coefficients, and equalities, that the options name."""
    nonnegative, bounds, most = arguments["nonnegative"], arguments["bounds"], arguments["max_coef"]
    texts, total = arguments["equality"], arguments["sum_to"]
    if nonnegative is None and bounds is None and most is None and not texts and total is None:
        return problem
    from exactsel.data.bounds import read_bounds
    from exactsel.data.equalities import read_equality
    from exactsel.problem.boxed import ALL, boxed

    named = ALL if nonnegative is not None and nonnegative.strip() == ALL else columns_in(nonnegative, instance)
    equalities = [read_equality(text) for text in texts or ()]
    return boxed(problem, named, [] if bounds is None else read_bounds(bounds), most, equalities, total)


def groups_in(text: str | None, instance: Instance) -> dict[str, list[int | str]] | None:
    """The groups --groups names, None where it is not given."""
    if text is None:
        return None
    from exactsel.data.group_lists import read_groups

    return read_groups(text, instance.feature_names)


def labels_of_groups(text: str, instance: Instance) -> tuple[str, ...]:
    """The label of the group of each column, as an instance holds it; empty for a column on its own."""
    from exactsel.data.group_lists import read_groups
    from exactsel.problem.groups import labels_of

    labels = labels_of(read_groups(text, instance.feature_names), instance.A.shape[1], instance.feature_names)
    return tuple(label or "" for label in labels)


def constraint_in(arguments: dict[str, Any], instance: Instance) -> dict[str, Any]:
    """The constraint that --hierarchy and --not-both name, as a problem takes it; nothing where neither is given."""
    from exactsel.data.constraint_lines import constraint_options

    return constraint_options(arguments, instance.feature_names)


def columns_in(text: str | None, instance: Instance) -> list[Any]:
    """Columns separated by commas: names, or numbers where no column is called so."""
    from exactsel.data.column_lists import meant

    return [] if text is None else meant([text.strip()] if text.strip() else [], instance.feature_names or ())
