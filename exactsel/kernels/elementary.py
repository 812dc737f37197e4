"""exp and log1p on whole arrays, in a form the compiler turns into vector instructions.

A call of the library's exp for every entry would be most of the cost of a logistic bound. Both functions are good to
a few units in the last place, which the allowance of a bound for rounding (:mod:`exactsel.kernels.dual`) covers.
"""

from __future__ import annotations

import numpy as np

from exactsel._jit import njit
from exactsel.types import FloatArray

_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""ln 2 in two parts: any multiple of the first by an integer of this range is exact."""

_INTEGERS = 6755399441055744.0
"""1.5 * 2^52: added to a small number, it leaves that number's nearest integer in the lowest bits."""

_FARTHEST = 708.0
"""exp(-t) is taken as zero beyond, where it would be no normal number."""


@njit
def _exp_near_zero(r: float) -> float:
    """Taylor's series of exp, written out: on |r| <= ln(2)/2 the remainder is below the rounding."""
    high = 1 / 40320 + r * (
        1 / 362880 + r * (1 / 3628800 + r * (1 / 39916800 + r * (1 / 479001600 + r * (1 / 6227020800))))
    )
    low = 1 / 6 + r * (1 / 24 + r * (1 / 120 + r * (1 / 720 + r * (1 / 5040 + r * high))))
    return 1.0 + r * (1.0 + r * (0.5 + r * low))


@njit
def _artanh_over_s(q: float) -> float:
    """artanh(s)/s as a series in q = s^2 <= 1/9, written out as far as it counts."""
    high = 1 / 21 + q * (1 / 23 + q * (1 / 25 + q * (1 / 27 + q * (1 / 29 + q * (1 / 31 + q * (1 / 33))))))
    low = 1 / 9 + q * (1 / 11 + q * (1 / 13 + q * (1 / 15 + q * (1 / 17 + q * (1 / 19 + q * high)))))
    return 1.0 + q * (1 / 3 + q * (1 / 5 + q * (1 / 7 + q * low)))


@njit
def exp_of_minus_size(t: FloatArray, out: FloatArray) -> None:
    """out = exp(-|t|) by exp(-|t|) = 2^m exp(r), |r| <= ln(2)/2; no NaN in t."""
    powers = np.empty(t.size)
    for i in range(t.size):
        size = min(abs(t[i]), _FARTHEST)
        shifted = _INTEGERS - size * _LOG2_E
        power = shifted - _INTEGERS
        powers[i] = shifted
        out[i] = (-size - power * _LN2_HIGH) - power * _LN2_LOW
    bits = powers.view(np.int64)
    for i in range(t.size):
        bits[i] = (bits[i] + 1023) << 52
    for i in range(t.size):
        out[i] = _exp_near_zero(out[i]) * powers[i] if abs(t[i]) <= _FARTHEST else 0.0


@njit
def log1p_of_part(e: float) -> float:
    """log(1 + e) for 0 <= e <= 1, by log(1 + e) = 2 artanh(e / (2 + e))."""
    s = e / (2.0 + e)
    return float(2.0 * s * _artanh_over_s(s * s))
