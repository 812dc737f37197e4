"""The problem: an objective, the units that are chosen, and the largest number of them; and how to speak about one."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, TypeVar

from exactsel.errors import InputError
from exactsel.problem.capabilities import (
    COEFFICIENT_BOUNDS,
    COEFFICIENTS,
    GROUPS,
    RECONSTRUCTION,
    SINGLE_COLUMNS,
    Capability,
)
from exactsel.problem.checks import checked_k
from exactsel.problem.equality_start import admissible_support
from exactsel.problem.fit import Fit
from exactsel.problem.preparing import Preparation
from exactsel.problem.searched import to_search_with
from exactsel.problem.subset_objective import SubsetObjective
from exactsel.problem.units import Units, ascending
from exactsel.to_plain import html_table
from exactsel.types import FloatArray, IntArray, StateArray

if TYPE_CHECKING:
    from exactsel.problem.coefficient_bounds import CoefficientBounds
    from exactsel.problem.column_subset import ColumnSubsetProblem
    from exactsel.problem.regression import Problem

Self = TypeVar("Self", bound="SubsetProblem")


class SubsetProblem:
    """Choose at most k of d units, which are columns or groups of columns, for the smallest objective; frozen.

    :class:`exactsel.Problem`, :class:`exactsel.GroupedProblem` and :class:`exactsel.ColumnSubsetProblem` make them.
    """

    objective: SubsetObjective
    """What is minimised, coefficient bounds included; the same whatever is demanded of the choice."""
    units: Units
    """What is chosen, and what is demanded of the choice."""
    k: int
    """The largest number of units in a model."""
    d: int
    """Number of units: of columns, or of groups where these are chosen."""
    n: int
    """Number of rows."""
    capabilities: Capability
    """Its properties, see :meth:`has`."""
    feature_names: tuple[str, ...] | None
    valid_for: str
    """The models in words that bounds are about, where the data do not limit coefficients; else empty."""
    first_support: tuple[int, ...] | None = None
    """Units a search begins with where the empty model is not admissible; None where it is, or force_in's are."""
    _of_units: tuple[str, ...] = ("feature_names", "force_in", "force_out")
    """What :meth:`replace` changes of the units; all but k and these is the objective's."""

    @classmethod
    def of(cls: type[Self], objective: SubsetObjective, units: Units, k: int) -> Self:
        """The problem of choosing at most k of these units, k being known to be no more than there are."""
        problem = object.__new__(cls)
        problem._settle(objective, units, k)
        return problem

    @classmethod
    def held(cls: type[Self], objective: SubsetObjective, units: Units, k: int) -> Self:
        """The same where the objective is the one to search with as it is."""
        problem = object.__new__(cls)
        problem._hold(objective, units, k)
        return problem

    def _settle(self, objective: SubsetObjective, units: Units, k: int) -> None:
        """Store the parts, and freeze."""
        units.check(k)
        self._hold(to_search_with(objective, units, k), units, k)

    def _hold(self, objective: SubsetObjective, units: Units, k: int) -> None:
        """Store the parts, and freeze; the objective is one to search with."""
        self.objective, self.units, self.k = objective, units, k
        self.capabilities = objective.capabilities | (GROUPS if units.grouped else SINGLE_COLUMNS)
        self.d, self.n, self.AT = units.d, objective.n, objective.AT
        self.feature_names, self.valid_for = units.names, objective.valid_for
        self.force_in, self.force_out = units.force_in, units.force_out
        if objective.coefficient_bounds is not None and objective.equalities is not None:
            self.first_support = admissible_support(self, k)
        self._frozen = True

    def __setattr__(self, name: str, value: object) -> None:
        if getattr(self, "_frozen", False):
            kind = type(self).__name__
            raise AttributeError(f"a {kind} is frozen; make a new one instead of changing '{name}'.")
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        objective = self.objective
        ridge = "" if objective.loss is None else f", lam={objective.asked_lam:g}"
        about = f"{objective.loss_text}, " * bool(objective.loss_text) + f"n={self.n}, {self._size}, k={self.k}{ridge}"
        return f"{type(self).__name__}({about}{self._within})"

    def _repr_html_(self) -> str:
        rows = [("minimise", self.objective_text), ("data", f"{self.n} rows, {self._size}"), ("k", str(self.k))]
        return html_table(rows)

    @property
    def _size(self) -> str:
        noun = "column" if self.has(RECONSTRUCTION) else self.units.noun
        return f"{self.d} {noun}s" + f" of {self.units.columns} features" * self.units.grouped

    @property
    def _within(self) -> str:
        return "" if self.coefficient_bounds is None else f", {self.coefficient_bounds.text}"

    def has(self, needed: Capability) -> bool:
        """Whether the problem has all of these properties."""
        return needed in self.capabilities

    @property
    def kind(self) -> str:
        """What files and reports call it: ``regression``, ``grouped``, ``boxed`` or ``css``."""
        return "boxed" if self.has(COEFFICIENT_BOUNDS) else "grouped" if self.units.grouped else self.objective.kind

    @property
    def preparation(self) -> Preparation | None:
        """What was done to the data before, see :meth:`exactsel.Problem.prepared`."""
        return self.objective.preparation

    @property
    def A(self) -> FloatArray:
        """The data (n, columns) as given, read-only; what is searched is ``AT`` (columns, n)."""
        return self.objective.A if self.preparation is None else self.preparation.AT.T

    @property
    def infimum(self) -> float:
        """A number no objective is below, or -inf."""
        return self.objective.infimum

    @property
    def null_objective(self) -> float:
        """The size of the objective of the empty model: the scale on which small differences are judged.

        The rows of equalities have no part in it.
        """
        bounds = self.coefficient_bounds
        equalities = None if bounds is None else bounds.equalities
        return self.objective.at_zero if equalities is None else equalities.null_objective

    @property
    def coefficient_bounds(self) -> CoefficientBounds | None:
        """Between what the coefficients of a model must lie; None where they are free, or where there are none."""
        return self.objective.coefficient_bounds

    @cached_property
    def _free(self: Self) -> Self:
        return self.held(self.objective.free, self.units, self.k)

    @property
    def without_coefficient_bounds(self: Self) -> Self:
        """The problem with free coefficients, where every model costs the same; itself where there are no bounds."""
        return self if self.coefficient_bounds is None else self._free

    @cached_property
    def fewest(self) -> int:
        """The least number of units of an admissible model that is known."""
        fewest = len(self.first_support or ())
        while fewest > 0:
            try:
                fewest = len(admissible_support(self, fewest - 1))
            except InputError:
                break
        return fewest

    @property
    def root_state(self) -> StateArray:
        """What is decided before the search begins, (d,): units in, out, or free (exactsel.kernels.node)."""
        region = self.units.region(self.k)
        assert region is not None  # checked when the problem was made
        return region

    @property
    def objective_text(self) -> str:
        """What is minimised, for people."""
        limit = f", x on at most k of {self.d} {self.units.noun}s of features" if self.units.grouped else ""
        return self.objective.text + limit + self._within

    @cached_property
    def hash(self) -> str:
        """sha256 over everything that defines the problem (names excluded)."""
        return self.objective.hash_with(**{"k": self.k} | self.units.entries())

    def fit(self, columns: Iterable[int]) -> Fit:
        """The best admissible model on ``columns`` only, from the data; where groups are chosen, on these groups."""
        chosen = ascending(columns)
        held = self.units.columns_of(chosen)
        return self.units.fitted(chosen, self.objective.fit(held))

    def objectives(self, supports: IntArray, threads: int | None = None) -> FloatArray:
        """Minimal objective on each support (a row of numbers padded with -1), quick rather than exact.

        nan where that fails: :meth:`fit` handles such supports. ``threads`` share the work, all cores by default.
        """
        return self.objective.minima(self.units.in_columns(supports), threads)

    def solved_from_data(self, state: StateArray, allowed: IntArray) -> tuple[float, FloatArray] | None:
        """A bound of a convex region, whose models may have the units ``allowed``, and the model that proves it.

        None where the data say no more than the kernels do.
        """
        return None

    def replace(self: Self, **changes: Any) -> Self:
        """A copy with some of k, of feature_names where columns are chosen, and of what else defines it changed.

        What was worked out from the data alone is kept.
        """
        k = checked_k(changes.pop("k", self.k), self.units.columns)
        demanded = {name: changes.pop(name) for name in self._of_units if name in changes}
        objective, units = self.objective.replace(**changes), self.units.replace(**demanded)
        return self.of(objective, units, units.limited(k))

    def describe(self) -> dict[str, Any]:
        """The problem as plain data, without its arrays. Where groups are chosen, ``d`` counts them."""
        return {
            "problem": self.kind, "n": self.objective.observations, "d": self.d, "k": self.k,
            **self.objective.describe(), "problem_hash": self.hash, "feature_names": self.feature_names,
        }  # fmt: skip


def is_problem(value: object) -> TypeGuard[SubsetProblem]:
    """Whether a value is a problem, and not data from which to make one."""
    return isinstance(value, SubsetProblem)


def is_regression(problem: SubsetProblem, needed: Capability = COEFFICIENTS) -> TypeGuard[Problem]:
    """Whether its models have coefficients, and predict a target; and whether it has all that is ``needed``."""
    return problem.has(COEFFICIENTS | needed)


def is_column_subset(problem: SubsetProblem) -> TypeGuard[ColumnSubsetProblem]:
    """Whether its models are selections without coefficients."""
    return problem.has(RECONSTRUCTION)


class Statement(Protocol):
    """How to say things about one problem."""

    def upper(self, fit: Fit) -> float:
        """No smaller than the objective of the model as it is shown."""
        ...

    def upper_of(self, coef: FloatArray) -> float:
        """The same for coefficients (d,) of the columns as given."""
        ...

    def lower(self, bound: float, upper: float, valid_for: str) -> float:
        """No larger than the objective of any model, where ``bound`` is that for the numbers searched.

        At most ``upper``, which a model is known to reach. With a ``valid_for`` both speak of the models in it.
        """
        ...

    def needed(self, value: float, valid_for: str) -> float:
        """The bound for the numbers searched that shows a model to cost no less than ``value``; inf where none does."""
        ...

    def taken(self, value: float) -> float:
        """How much larger than ``value`` that bound is, about; 0 where there is none."""
        ...
