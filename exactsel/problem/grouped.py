"""Group selection: at most k groups of columns, of any number of columns each.

    minimise  P(x) = L(Ax) + (lam/2) ||x||^2   over x whose columns belong to at most k groups

The columns a categorical variable was encoded in are one choice, not many. A column that no group names is a group of
its own. What the search chooses are the groups: its supports, states and k speak of them, coefficients of columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from exactsel.problem.constraints import under
from exactsel.problem.groups import GroupedFit, GroupedUnits, GroupSpec, one_by_one
from exactsel.problem.regression import Problem

__all__ = ["GroupSpec", "GroupedFit", "GroupedProblem"]


class GroupedProblem(Problem):
    """Best-subset selection where groups of columns count once.

    Where each group is one column the problem is that of choosing columns one by one.

    Groups are numbered from 0 in the order of their first columns. Wherever people name what is chosen (force_in, a
    support to certify), numbers count groups, and a name may be that of a group or of one of its columns.

    Parameters
    ----------
    problem : Problem
        Data, loss and lam; its k counts groups here, and columns it demands or forbids stand for their groups.
    groups : mapping of str to sequence of (int or str), or sequence of labels
        The columns of each group by number or name; or one label per column, None for a column on its own.
    force_in, force_out : sequence of int or str, optional
        Further groups that every model holds, or none may hold.
    hierarchy, hierarchy_kind : optional
        Groups chosen only together with others, as for :class:`exactsel.Problem`.
    not_both : sequence of pairs, optional
        Groups that exclude each other, as for :class:`exactsel.Problem`.

    Raises
    ------
    InputError
        For an unknown column, a column in two groups, an empty group, or a group called like a column outside it.
    """

    def __init__(
        self,
        problem: Problem,
        groups: GroupSpec,
        *,
        force_in: Sequence[int | str] = (),
        force_out: Sequence[int | str] = (),
        hierarchy: Mapping[Any, Any] | None = None,
        hierarchy_kind: str = "strong",
        not_both: Iterable[Any] | None = None,
    ) -> None:
        units = GroupedUnits.of_columns(problem.units, groups, force_in, force_out)
        arguments = {"hierarchy": hierarchy, "hierarchy_kind": hierarchy_kind, "not_both": not_both}
        units = one_by_one(under(units, arguments))
        self._settle(problem.objective, units, units.limited(problem.k))
