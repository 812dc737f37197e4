"""Capabilities of problems, which methods require by name in place of a class."""

from __future__ import annotations

from enum import Flag, auto


class Capability(Flag):
    """A property of a problem; several are joined by ``|``."""

    COEFFICIENTS = auto()
    """Models have coefficients, and predict a target."""
    FREE_COEFFICIENTS = auto()
    """They have, and no coefficient has a bound, so that formulas for free coefficients hold."""
    COEFFICIENT_BOUNDS = auto()
    """Coefficients have signs, bounds or equalities."""
    QUADRATIC_LOSS = auto()
    """The loss is the built-in quadratic one."""
    RECONSTRUCTION = auto()
    """Models have no coefficients: their columns span the others as well as they can (column subset selection)."""
    SINGLE_COLUMNS = auto()
    """Columns are chosen one by one, not in groups."""
    GROUPS = auto()
    """Groups of columns are chosen."""


COEFFICIENTS, FREE_COEFFICIENTS = Capability.COEFFICIENTS, Capability.FREE_COEFFICIENTS
COEFFICIENT_BOUNDS, RECONSTRUCTION = Capability.COEFFICIENT_BOUNDS, Capability.RECONSTRUCTION
QUADRATIC_LOSS = Capability.QUADRATIC_LOSS
SINGLE_COLUMNS, GROUPS = Capability.SINGLE_COLUMNS, Capability.GROUPS
CLOSED_FORM = FREE_COEFFICIENTS | QUADRATIC_LOSS
"""Quadratic loss and free coefficients: the Gram matrix says everything."""

PLAIN_REGRESSION = FREE_COEFFICIENTS | SINGLE_COLUMNS
"""Single columns with free coefficients, which most formulas are about."""

GROUPED_REGRESSION = FREE_COEFFICIENTS | GROUPS
"""Groups of columns with free coefficients."""


def within_bounds(free: Capability) -> Capability:
    """The properties of an objective whose coefficients are free, when they have bounds."""
    return free & ~FREE_COEFFICIENTS | COEFFICIENT_BOUNDS
