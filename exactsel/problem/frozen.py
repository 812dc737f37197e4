"""The immutable base class of all problems: units, k and capabilities, for every objective."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from exactsel.problem.capabilities import (
    COEFFICIENT_BOUNDS,
    COEFFICIENTS,
    FREE_COEFFICIENTS,
    GROUPS,
    SINGLE_COLUMNS,
    Capability,
)
from exactsel.problem.constraints import NAMES
from exactsel.problem.objective import Objective
from exactsel.problem.offsets import has_offset
from exactsel.problem.preparing import Preparation
from exactsel.problem.units import Units
from exactsel.types import FloatArray, StateArray

if TYPE_CHECKING:
    from exactsel.problem.coefficient_bounds import CoefficientBounds


GivenBounds: TypeAlias = tuple[FloatArray, FloatArray]
"""Lower and upper bounds of coefficients (columns,) of the columns as they were given, read-only."""


class FrozenProblem:
    """Base of the classes of problems; see :class:`exactsel.problem.interface.SubsetProblem`."""

    units: Units
    """What is chosen, and what is demanded of the choice."""
    k: int
    """The largest number of units in a model."""
    d: int
    """Number of units: of columns, or of groups where these are chosen."""
    n: int
    """Number of rows."""
    coefficient_bounds: CoefficientBounds | None = None
    """None where coefficients are free, or where there are none."""
    first_support: tuple[int, ...] | None = None
    """Units a search begins with where the empty model is not admissible; None where it is, or force_in's are."""
    _of_models: Capability
    """The capabilities of its models, for any kind of units."""

    def __setattr__(self, name: str, value: object) -> None:
        if getattr(self, "_frozen", False):
            kind = type(self).__name__
            raise AttributeError(f"a {kind} is frozen; make a new one instead of changing '{name}'.")
        super().__setattr__(name, value)

    @property
    def fewest(self) -> int:
        """The least number of units of an admissible model that is known."""
        return 0

    def has(self, needed: Capability) -> bool:
        """Whether the problem has all of these properties."""
        return needed in (self._of_models | (GROUPS if self.units.grouped else SINGLE_COLUMNS))

    @property
    def root_state(self) -> StateArray:
        """What is decided before the search begins, (d,): units in, out, or free (exactsel.kernels.node)."""
        region = self.units.region(self.k)
        assert region is not None  # checked when the problem was made
        return region


class FrozenRegression(FrozenProblem):
    """Base of the problems whose models have coefficients."""

    objective: Objective
    """P; calling it with coefficients of all columns (columns,) gives its value, whether or not they are admissible."""

    def _keep(self, objective: Objective, units: Units, k: int, bounds: GivenBounds | None) -> None:
        """Store the parts."""
        self.objective, self.units, self.k = objective, units, k
        self._of_models = COEFFICIENTS | (FREE_COEFFICIENTS if bounds is None else COEFFICIENT_BOUNDS)
        if bounds is not None:
            from exactsel.problem.coefficient_bounds import CoefficientBounds

            self.coefficient_bounds = CoefficientBounds(objective, *bounds)
        self.d, self.n, self.AT = units.d, objective.n, objective.AT
        self.feature_names, self.valid_for = units.names, objective.valid_for
        self.force_in, self.force_out = units.force_in, units.force_out

    @property
    def preparation(self) -> Preparation | None:
        """What was done to the data before, see :meth:`exactsel.Problem.prepared`."""
        return self.objective.preparation

    @property
    def A(self) -> FloatArray:
        """The data (n, columns) as given, read-only; what is searched is ``AT`` (columns, n)."""
        return self.objective.A if self.preparation is None else self.preparation.AT.T

    @property
    def target(self) -> FloatArray:
        """What is predicted (n,), as given but for labels, which are -1 and +1, and what an offset takes off it."""
        return self.objective.y if self.preparation is None else self.preparation.y

    @property
    def lam(self) -> float:
        """The ridge weight that is searched with; a small one may stand for none."""
        return self.objective.lam

    @property
    def null_objective(self) -> float:
        """The size of the objective of the empty model: the scale on which small differences are judged.

        The rows of equalities have no part in it.
        """
        bounds = self.coefficient_bounds
        equalities = None if bounds is None else bounds.equalities
        return self.objective.at_zero if equalities is None else equalities.null_objective

    @property
    def given_bounds(self) -> GivenBounds | None:
        """The coefficient bounds as they were given; None where coefficients are free."""
        bounds = self.coefficient_bounds
        return None if bounds is None else (bounds.given_lower, bounds.given_upper)

    @cached_property
    def hash(self) -> str:
        """sha256 over everything that defines the problem (names excluded)."""
        bounds = self.coefficient_bounds
        limited = {} if bounds is None or bounds.none else {"bounds": bounds.entry()}
        return self.objective.hash_with(**{"k": self.k} | self.units.entries() | limited)

    @property
    def kind(self) -> str:
        """What files and reports call it: ``regression``, ``grouped`` or ``boxed``."""
        return "boxed" if self.has(COEFFICIENT_BOUNDS) else "grouped" if self.units.grouped else "regression"

    def describe(self) -> dict[str, Any]:
        """The problem as plain data, without its arrays. Where groups are chosen, ``d`` counts them."""
        objective, made, bounds = self.objective, self.preparation, self.coefficient_bounds
        met, tall = objective.equalities, objective.tall
        return {
            "problem": self.kind, "n": objective.observations, "d": self.d, "k": self.k, "loss": objective.loss.name,
            "loss_parameters": objective.loss_parameters, "lam": objective.asked_lam, "problem_hash": self.hash,
            "feature_names": self.feature_names, "force_in": self.force_in, "force_out": self.force_out,
            "intercept": made is not None and made.centred, "scale": made is not None and made.scaled,
            "weights": made is not None and made.weighted, "offset": has_offset(objective),
            "bounds": None if bounds is None or bounds.none else bounds.describe(), **dict.fromkeys(NAMES),
            **self.units.describe(), "equalities": None if met is None else met.describe(),
            "tall": None if tall is None else tall.describe(),
        }  # fmt: skip
