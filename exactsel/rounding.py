"""The unit roundoff of doubles, from which every allowance for rounding is built."""

from __future__ import annotations

UNIT = 2.0**-53
"""Half the distance from 1 to the next double: one rounding changes a number by at most this part of it."""
