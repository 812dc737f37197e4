"""What every objective offers: data of columns, and the smallest value on a set of them.

What belongs to one kind of objective alone, as a ridge or a preparation, is None or 0 in the others.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from exactsel.problem.design import is_design
from exactsel.types import FloatArray, IntArray

if TYPE_CHECKING:
    from exactsel.losses.base import Loss
    from exactsel.problem.capabilities import Capability
    from exactsel.problem.coefficient_bounds import CoefficientBounds
    from exactsel.problem.fit import Fit
    from exactsel.problem.preparing import Preparation
    from exactsel.problem.reduction import Reduction
    from exactsel.problem.ridge_limits import RidgeLimits
    from exactsel_certificates.equalities import Equalities

Self = TypeVar("Self", bound="SubsetObjective")


class SubsetObjective:
    """Base of the objectives: :class:`exactsel.problem.objective.Objective` of models with coefficients, and
    :class:`exactsel.problem.reconstruction.Reconstruction` of selections.
    """

    kind: ClassVar[str]
    """What files and reports call a problem with it."""
    AT: FloatArray
    """The transposed data (d, n), so that a column of A is contiguous; read-only."""
    loss: Loss | None
    """The loss of a row; None where there is no target."""
    lam: float
    """Ridge weight; where :attr:`before` has none a very small one that stands for none."""
    preparation: Preparation | None
    """What was done to the data before, see :meth:`exactsel.Problem.prepared`."""
    reduction: Reduction | None
    """The rows that these stand for, where they have been reduced, see :mod:`exactsel.problem.reduction`."""
    ridge_limits: RidgeLimits | None
    """What is known where the ridge costs more than the one given, see :mod:`exactsel.problem.infinitesimal_ridge` and
    :mod:`exactsel.problem.long_columns`."""
    before: SubsetObjective | None
    """The objective on columns as they were, where they have been divided by :attr:`divisors`."""
    divisors: FloatArray | None
    """(d,) the powers of two that columns are divided by, see :mod:`exactsel.problem.column_scales`; None where they
    are not."""
    equalities: Equalities | None
    """Linear equalities that the last rows stand for, see :mod:`exactsel.problem.equalities`."""
    coefficient_bounds: CoefficientBounds | None
    """Between what coefficients must lie; None where they are free, or where there are none."""

    @property
    def capabilities(self) -> Capability:
        """What its models are."""
        raise NotImplementedError

    @property
    def free(self: Self) -> Self:
        """The objective without coefficient bounds; itself where there are none."""
        return self

    def within(self: Self, bounds: CoefficientBounds | None) -> Self:
        """The same with these bounds of coefficients, in the place of those there are."""
        assert bounds is None  # selections have no coefficients
        return self

    @property
    def A(self) -> FloatArray:
        """The data (n, d) as they are searched, read-only."""
        return self.AT.T

    @property
    def d(self) -> int:
        """Number of columns."""
        return len(self.AT)

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.AT.shape[1])

    @property
    def observations(self) -> int:
        """Number of rows of the data, without those of equalities."""
        return self.n - (0 if self.equalities is None else self.equalities.right.size)

    @property
    def on_demand(self) -> bool:
        """Whether the data are not held as a table (:mod:`exactsel.problem.design`)."""
        return is_design(self.AT)

    @property
    def asked_lam(self) -> float:
        """The ridge weight of the problem as it was given."""
        return self.lam if self.before is None else self.before.lam

    @property
    def valid_for(self) -> str:
        """The models in words that bounds are about, where the data do not limit coefficients; else empty."""
        return "" if self.ridge_limits is None else self.ridge_limits.valid_for

    @property
    def loss_parameters(self) -> dict[str, float]:
        """Parameters of the loss by name, e.g. ``{"delta": 1.345}``."""
        return {}

    @property
    def loss_text(self) -> str:
        """The loss as shown to people, e.g. ``huber(delta=1.345)``."""
        return ""

    @property
    def infimum(self) -> float:
        """A number no value is below, -inf if none is known."""
        raise NotImplementedError

    @cached_property
    def at_zero(self) -> float:
        """The size of the value of the empty model: the scale on which small differences are judged."""
        raise NotImplementedError

    @cached_property
    def shortest_share(self) -> float:
        """Length of the shortest column that is not zero, as a part of that of the longest, in units that matter."""
        return 1.0

    @property
    def text(self) -> str:
        """The formula, for people."""
        raise NotImplementedError

    def fit(self, columns: IntArray) -> Fit:
        """The best model on ``columns`` (ascending, distinct), computed from the data."""
        raise NotImplementedError

    def minima(self, supports: IntArray, threads: int | None = None) -> FloatArray:
        """The smallest value on each set of columns (rows padded with -1), quick rather than exact; nan where that
        fails.
        """
        raise NotImplementedError

    def replace(self, **changes: object) -> SubsetObjective:
        """The objective with some of its parts changed; what was worked out from the data alone is kept."""
        raise NotImplementedError

    def hash_with(self, **entries: object) -> str:
        """sha256 over all that defines the objective, and ``entries``."""
        raise NotImplementedError

    def describe(self) -> dict[str, Any]:
        """The loss and lam as plain data."""
        return {}
