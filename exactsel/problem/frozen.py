"""What all problems have in common, whatever is minimised: units, k, what it is like; nothing of it can be changed."""

from __future__ import annotations

from typing import Any, ClassVar

from exactsel.problem.box_limits import CoefficientBounds
from exactsel.problem.capabilities import SINGLE_COLUMNS, Capability
from exactsel.problem.units import Units
from exactsel.types import StateArray


class FrozenProblem:
    """Base of the classes of problems; see :class:`exactsel.problem.interface.SubsetProblem`."""

    units: Units
    k: int
    coefficient_bounds: CoefficientBounds | None = None
    """None where coefficients are free, or where there are none."""
    _of_models: ClassVar[Capability]
    """What its models are like, whatever the units."""

    def __setattr__(self, name: str, value: Any) -> None:
        if getattr(self, "_frozen", False):
            kind = type(self).__name__
            raise AttributeError(f"a {kind} is frozen; make a new one instead of changing '{name}'.")
        super().__setattr__(name, value)

    def has(self, needed: Capability) -> bool:
        """Whether the problem has all of these properties."""
        return needed in (self._of_models if self.units.grouped else self._of_models | SINGLE_COLUMNS)

    @property
    def root_state(self) -> StateArray:
        """What is decided before the search begins, (d,): units in, out, or free (exactsel.kernels.node)."""
        region = self.units.region(self.k)
        assert region is not None  # checked when the problem was made
        return region
