"""Groups of columns that are chosen together: at most k groups, whatever the number of their columns.

    minimise  P(x) = L(Ax) + (lam/2) ||x||^2   over x whose columns belong to at most k groups

The columns a categorical variable was encoded in are one choice, not many. A column that no group names is a group of
its own. What the search chooses are the groups: its supports, states and k speak of them, coefficients of columns.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from exactsel.errors import InputError
from exactsel.kernels.grouped import Groups
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.problem.checks import checked_k
from exactsel.problem.fit import Fit
from exactsel.problem.preparing import Preparation
from exactsel.problem.regression import Problem
from exactsel.types import FloatArray, IntArray, StateArray

GroupSpec = Mapping[str, Sequence[int | str]] | Sequence[Any]
"""Names of groups with their columns, or one label per column (columns of equal label are a group)."""


@dataclass(frozen=True)
class GroupedFit(Fit):
    """A minimiser on the columns of some groups: ``columns`` are numbers of groups, ``coef`` is one per column."""

    unit_of: IntArray

    @property
    def support(self) -> tuple[int, ...]:
        """Groups with a non-zero coefficient, ascending."""
        return tuple(int(g) for g in np.unique(self.unit_of[np.flatnonzero(self.coef)]))


class GroupedProblem:
    """Best-subset selection where groups of columns count once.

    Groups are numbered from 0 in the order of their first columns. Wherever people name what is chosen (must_have, a
    support to certify), numbers count groups, and a name may be that of a group or of one of its columns.

    Parameters
    ----------
    problem : Problem
        Data, loss and lam; its k counts groups here, and columns it demands or forbids stand for their groups.
    groups : mapping of str to sequence of (int or str), or sequence of labels
        The columns of each group by number or name; or one label per column, None for a column on its own.
    must_have, must_not : sequence of int or str, optional
        Further groups that every model holds, or none may hold.

    Raises
    ------
    InputError
        For an unknown column, a column in two groups, an empty group, or a group called like a column outside it.
    """

    family = "grouped"

    def __init__(
        self,
        problem: Problem,
        groups: GroupSpec,
        *,
        must_have: Sequence[int | str] = (),
        must_not: Sequence[int | str] = (),
    ) -> None:
        named = _named_groups(groups, problem)
        self._settle(problem, named, 0, (), ())  # which group a column is in says what the demands mean
        inside, outside = (
            {*(self.unit_of[j] for j in own), *(_unit(entry, self, which) for entry in given)}
            for own, given, which in (
                (problem.must_have, must_have, "must_have"), (problem.must_not, must_not, "must_not"),
            )
        )  # fmt: skip
        self._settle(problem, named, problem.k, inside, outside)
        self._frozen = True

    def _settle(
        self, problem: Problem, named: dict[str, tuple[int, ...]], k: int, inside: Iterable[Any], outside: Iterable[Any]
    ) -> None:
        self.inner: Problem = problem.replace(k=problem.d, must_have=(), must_not=())
        """The problem of all columns, without a limit: data, loss, lam."""
        self.n = problem.n
        self.named = named
        self.groups: tuple[tuple[int, ...], ...] = _partition(named, problem.d)
        """The columns of every group, columns on their own included."""
        self.unit_of: IntArray = np.empty(problem.d, dtype=np.int64)
        """The group of every column (d,)."""
        for g, columns in enumerate(self.groups):
            self.unit_of[list(columns)] = g
        self.d = len(self.groups)
        if k > self.d:
            warnings.warn(f"k = {k} is more than the {self.d} groups; using k = {self.d}.", stacklevel=3)
        self.k = min(k, self.d)
        self.feature_names: tuple[str, ...] | None = _unit_names(named, self.groups, problem.feature_names)
        """Names of the groups; a column on its own has its own name."""
        self.must_have = tuple(sorted(int(g) for g in inside))
        self.must_not = tuple(sorted(int(g) for g in outside))
        _check_demands(self)

    def __setattr__(self, name: str, value: Any) -> None:
        if getattr(self, "_frozen", False):
            raise AttributeError(f"a GroupedProblem is frozen; make a new one instead of changing '{name}'.")
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        return (
            f"GroupedProblem({self.inner.loss_text}, n={self.n}, {self.d} groups of {self.inner.d} columns, "
            f"k={self.k}, lam={self.lam:g})"
        )

    @property
    def lam(self) -> float:
        """Ridge weight."""
        return self.inner.lam

    @property
    def is_quadratic(self) -> bool:
        """Whether the loss is the built-in quadratic one."""
        return self.inner.is_quadratic

    @property
    def infimum(self) -> float:
        """A number no objective is below, -inf if the loss knows none."""
        return self.inner.infimum

    @property
    def null_objective(self) -> float:
        """The size of the objective of the empty model."""
        return self.inner.null_objective

    @property
    def weights(self) -> FloatArray | None:
        """Row weights of the loss (n,), see :class:`exactsel.Problem`."""
        return self.inner.weights

    @property
    def intercept(self) -> bool:
        """Whether the loss has an unpenalised intercept, see :class:`exactsel.Problem`."""
        return self.inner.intercept

    def as_given(self, x: ArrayLike) -> tuple[FloatArray, float]:
        """The model x of all columns for the data as they were given: coefficients and intercept."""
        return self.inner.as_given(x)

    @property
    def preparation(self) -> Preparation | None:
        """What was done to the data before, see :meth:`exactsel.Problem.prepared`."""
        return self.inner.preparation

    @property
    def objective_text(self) -> str:
        """What is minimised, for people."""
        return f"{self.inner.objective_text}, x on at most k of {self.d} groups of columns"

    @property
    def root_state(self) -> StateArray:
        """What is decided before the search begins, one entry per group."""
        state = np.full(self.d, FREE, dtype=np.int8)
        state[list(self.must_have)], state[list(self.must_not)] = IN, OUT
        return state

    @cached_property
    def spans(self) -> Groups:
        """The groups in the form kernels take."""
        first = np.concatenate([[0], np.cumsum([len(columns) for columns in self.groups])]).astype(np.int64)
        return Groups(np.array([j for columns in self.groups for j in columns], dtype=np.int64), first)

    @cached_property
    def hash(self) -> str:
        """sha256 over everything that defines the problem (names excluded)."""
        more: dict[str, Any] = {"k": self.k, "groups": self.groups}
        if self.must_have or self.must_not:
            more |= {"must_have": self.must_have, "must_not": self.must_not}
        return self.inner.hash_with(**more)

    def columns_of(self, units: Iterable[int]) -> IntArray:
        """The columns of some groups, ascending."""
        return np.array(sorted(j for g in units for j in self.groups[int(g)]), dtype=np.int64)

    def objective(self, x: ArrayLike) -> float:
        """P(x) for a coefficient vector of all columns, computed from the data."""
        return self.inner.objective(x)

    def fit(self, columns: Iterable[int]) -> GroupedFit:
        """The exact minimiser over models on the columns of some groups (``columns`` are numbers of groups)."""
        units = np.unique(np.fromiter(columns, dtype=np.int64))
        fit = self.inner.fit(self.columns_of(units))
        return GroupedFit(units, fit.coef, fit.value, fit.gradient_norm, self.unit_of)

    def objectives(self, supports: IntArray, threads: int | None = None) -> FloatArray:
        """Minimal objective on each set of groups (a row of their numbers padded with -1), as for a Problem."""
        rows = [self.columns_of(row[row >= 0]) for row in np.asarray(supports, dtype=np.int64)]
        padded = np.full((len(rows), max((row.size for row in rows), default=0)), -1, dtype=np.int64)
        for given, row in zip(padded, rows, strict=True):
            given[: row.size] = row
        return self.inner.objectives(padded, threads)

    def describe(self) -> dict[str, Any]:
        """The problem as plain data: ``d`` counts groups, and ``groups`` says which columns each of them has."""
        return self.inner.describe() | {
            "problem": self.family, "d": self.d, "k": self.k, "problem_hash": self.hash,
            "feature_names": self.feature_names, "must_have": self.must_have, "must_not": self.must_not,
            "columns": self.inner.d, "groups": self.groups, "column_names": self.inner.feature_names,
        }  # fmt: skip

    def replace(self, **changes: Any) -> GroupedProblem:
        """A copy with some of k, lam, loss, delta changed; k counts groups."""
        k = checked_k(changes.pop("k", self.k), self.inner.d)
        for name in ("feature_names", "must_have", "must_not"):
            if name in changes:
                raise TypeError(f"GroupedProblem.replace changes no {name!r}")
        replaced = GroupedProblem.__new__(GroupedProblem)
        replaced._settle(self.inner.replace(**changes), self.named, k, self.must_have, self.must_not)
        replaced._frozen = True
        return replaced


def _named_groups(groups: GroupSpec, problem: Problem) -> dict[str, tuple[int, ...]]:
    """The groups people named, each with its columns ascending."""
    if isinstance(groups, Mapping):
        named = {str(name): [_column(entry, problem, str(name)) for entry in held] for name, held in groups.items()}
    else:
        named = _by_labels(groups, problem.d)
    owner: dict[int, str] = {}
    for name, columns in named.items():
        if not name.isprintable():
            raise InputError(f"the group name {name!r} holds a line break or control character; rename the group.")
        if not columns:
            raise InputError(f"the group '{name}' has no columns; leave it out, or name its columns.")
        for j in columns:
            if j in owner:
                again = "twice in" if owner[j] == name else f"in '{owner[j]}' and in"
                raise InputError(f"column {_shown(j, problem)} is {again} the group '{name}'; name it once.")
            owner[j] = name
    for name in named:
        foreign = [j for j, known in enumerate(problem.feature_names or ()) if known == name and owner.get(j) != name]
        if foreign:
            raise InputError(f"the group '{name}' is called like a column outside it; give the group another name.")
    return {name: tuple(sorted(columns)) for name, columns in named.items()}


def _by_labels(labels: Sequence[Any], d: int) -> dict[str, list[int]]:
    if isinstance(labels, str) or len(labels) != d:
        found = "a text" if isinstance(labels, str) else f"{len(labels)} labels"
        raise InputError(f"groups is {found}, but {d} columns need one label each; or give names with their columns.")
    named: dict[str, list[int]] = {}
    for j, label in enumerate(labels):
        if label is not None:
            named.setdefault(str(label), []).append(j)
    return named


def _column(entry: int | str, problem: Problem, group: str) -> int:
    """The number of a column named in a group."""
    if isinstance(entry, str):
        found = [j for j, name in enumerate(problem.feature_names or ()) if name == entry]
        if len(found) != 1:
            what = "no column is" if not found else f"{len(found)} columns are"
            raise InputError(f"the group '{group}' names {entry!r}, but {what} called that; correct the name.")
        return found[0]
    if isinstance(entry, bool) or not isinstance(entry, int | np.integer) or not 0 <= entry < problem.d:
        raise InputError(
            f"the group '{group}' names column {entry!r}, but the columns are numbered 0 to {problem.d - 1}."
        )
    return int(entry)


def _shown(j: int, problem: Problem) -> str:
    return f"'{problem.feature_names[j]}'" if problem.feature_names else str(j)


def _partition(named: dict[str, tuple[int, ...]], d: int) -> tuple[tuple[int, ...], ...]:
    """All groups, columns on their own included, in the order of their first columns."""
    taken = {j for columns in named.values() for j in columns}
    return tuple(sorted([*named.values(), *((j,) for j in range(d) if j not in taken)]))


def _unit_names(
    named: dict[str, tuple[int, ...]], groups: Sequence[tuple[int, ...]], names: Sequence[str] | None
) -> tuple[str, ...]:
    called = {columns: name for name, columns in named.items()}
    return tuple(called.get(columns) or (names[columns[0]] if names else f"column {columns[0]}") for columns in groups)


def _unit(entry: int | str, problem: GroupedProblem, which: str) -> int:
    """The group somebody means."""
    if isinstance(entry, str):
        found = units_called(problem, entry)
        if len(found) != 1:
            what = "no group or column is" if not found else f"{len(found)} are"
            raise InputError(f"{which} names {entry!r}, but {what} called that; give the number of the group.")
        return found[0]
    if isinstance(entry, bool) or not isinstance(entry, int | np.integer) or not 0 <= entry < problem.d:
        raise InputError(f"{which} names group {entry!r}, but the groups are numbered 0 to {problem.d - 1}.")
    return int(entry)


def units_called(problem: GroupedProblem, name: str) -> list[int]:
    """The groups of this name, or that hold a column of this name."""
    own = [g for g, known in enumerate(problem.feature_names or ()) if known == name]
    held = [j for j, known in enumerate(problem.inner.feature_names or ()) if known == name]
    return own or sorted({int(problem.unit_of[j]) for j in held})


def _check_demands(problem: GroupedProblem) -> None:
    both = sorted({*problem.must_have} & {*problem.must_not})
    names = problem.feature_names or ()
    if both:
        raise InputError(f"the group '{names[both[0]]}' is in must_have and in must_not; leave it in one of them.")
    if len(problem.must_have) > problem.k:
        count = len(problem.must_have)
        raise InputError(f"must_have names {count} groups, but k is {problem.k}; raise k or name at most {problem.k}.")
