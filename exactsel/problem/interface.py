"""The problem as the search sees it: a limit on the number of columns, and the evaluation of a choice of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from exactsel.problem.capabilities import Capability
from exactsel.problem.fit import Fit
from exactsel.problem.objective import Objective
from exactsel.problem.units import Units
from exactsel.types import FloatArray, IntArray, StateArray

if TYPE_CHECKING:
    from exactsel.problem.coefficient_bounds import CoefficientBounds


class SubsetProblem(Protocol):
    """Choose at most k of d units, which are columns or groups of columns: :class:`exactsel.Problem` and
    :class:`exactsel.ColumnSubsetProblem`.
    """

    units: Units
    """What is chosen, and what is demanded of the choice."""
    n: int
    d: int
    k: int
    feature_names: tuple[str, ...] | None
    first_support: tuple[int, ...] | None
    """Units a search begins with where the empty model is not admissible."""
    valid_for: str
    """The models in words that bounds are about, where the data do not limit coefficients; else empty."""

    @property
    def fewest(self) -> int:
        """The least number of units of an admissible model that is known."""
        ...

    @property
    def objective(self) -> Objective | None:
        """What is minimised, over admissible coefficients; None where a model has none (column subset selection).

        Formulas for free coefficients hold where the problem has FREE_COEFFICIENTS.
        """
        ...

    @property
    def coefficient_bounds(self) -> CoefficientBounds | None:
        """Between what the coefficients of a model must lie; None where they are free, or where there are none."""
        ...

    @property
    def without_coefficient_bounds(self) -> SubsetProblem:
        """The problem with free coefficients; itself where there are no bounds."""
        ...

    @property
    def A(self) -> FloatArray:
        """The data (n, columns), read-only."""
        ...

    @property
    def infimum(self) -> float:
        """A number no objective is below, -inf if none is known."""
        ...

    @property
    def null_objective(self) -> float:
        """The size of the objective of the empty model: the scale on which small differences are judged."""
        ...

    @property
    def root_state(self) -> StateArray:
        """What is decided before the search begins, (d,): columns in, out, or free (exactsel.kernels.node)."""
        ...

    @property
    def hash(self) -> str:
        """sha256 over everything that defines the problem (names excluded)."""
        ...

    @property
    def objective_text(self) -> str:
        """What is minimised, for people."""
        ...

    def has(self, needed: Capability) -> bool:
        """Whether the problem has all of these properties."""
        ...

    def fit(self, columns: Iterable[int]) -> Fit:
        """The best model on ``columns``, computed from the data."""
        ...

    def objectives(self, supports: IntArray, threads: int | None = None) -> FloatArray:
        """Objectives of many supports (rows padded with -1), quick rather than exact; nan where that fails."""
        ...

    def solved_from_data(self, state: StateArray, allowed: IntArray) -> tuple[float, FloatArray] | None:
        """A bound of a convex region, whose models may have the units ``allowed``, and the model that proves it.

        None where the data say no more than the kernels do.
        """
        ...

    def replace(self, **changes: Any) -> SubsetProblem:
        """The same problem but for ``changes``, by the names of its arguments; nothing is copied."""
        ...

    def describe(self) -> dict[str, Any]:
        """The problem as plain data, without its arrays."""
        ...


def is_problem(value: object) -> TypeGuard[SubsetProblem]:
    """Whether a value is a problem, and not data from which to make one."""
    return hasattr(value, "units")


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
