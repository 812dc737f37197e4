"""Capabilities of problems, which methods require by name in place of a class."""

from __future__ import annotations

from enum import Flag, auto


class Capability(Flag):
    """A property of a problem; several are joined by ``|``."""

    COEFFICIENTS = auto()
    """Models have coefficients, and predict a target."""
    FREE_COEFFICIENTS = auto()
    """They have, and no coefficient has a bound, so that formulas for free coefficients hold."""
    SINGLE_COLUMNS = auto()
    """Columns are chosen one by one, not in groups."""


COEFFICIENTS, FREE_COEFFICIENTS = Capability.COEFFICIENTS, Capability.FREE_COEFFICIENTS
SINGLE_COLUMNS = Capability.SINGLE_COLUMNS
PLAIN_REGRESSION = FREE_COEFFICIENTS | SINGLE_COLUMNS
"""Single columns with free coefficients, which most formulas are about."""
