"""Doubles as integers times a common power of two, and fractions as decimals."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

DIGITS = 50

BITS = 120
"""Binary digits of a gradient of the losses with logarithms in their conjugates."""


IntegerArray: TypeAlias = NDArray[np.object_]
"""Of Python's whole numbers, which have no largest."""


class Scaled(NamedTuple):
    """The numbers ``values`` * 2^exponent; ``values`` holds Python integers."""

    values: IntegerArray
    exponent: int

    def at(self, exponent: int) -> IntegerArray:
        """The integers for a smaller exponent."""
        integers: IntegerArray = self.values * (1 << (self.exponent - exponent))
        return integers


def scaled(numbers: object) -> Scaled:
    """Doubles as integers times a common power of two."""
    array = np.asarray(numbers, dtype=np.float64)
    mantissa, exponents = np.frexp(array)
    integers = (mantissa * 2.0**53).astype(np.int64)
    shifts = exponents.astype(np.int64) - 53
    lowest = int(shifts[integers != 0].min()) if np.any(integers) else 0
    values = np.empty(array.shape, dtype=object)
    for place, (m, e) in enumerate(zip(integers.ravel().tolist(), shifts.ravel().tolist(), strict=True)):
        values.flat[place] = m << (e - lowest) if m else 0
    return Scaled(values, lowest)


def weights_of(weights: object | None, n: int) -> Scaled:
    """Row weights (n,), or ones where there are none."""
    return Scaled(np.array([1] * n, dtype=object), 0) if weights is None else scaled(weights)


def fraction_of(integer: int, exponent: int) -> Fraction:
    """integer * 2^exponent."""
    return Fraction(integer, 1 << -exponent) if exponent < 0 else Fraction(integer << exponent)


def decimal_of(value: Fraction) -> Decimal:
    """The value to the digits of the context."""
    return Decimal(value.numerator) / Decimal(value.denominator)
