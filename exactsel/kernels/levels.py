"""Rows under weights and an unpenalised intercept: values, slopes, curvatures and the dual value of an adjusted loss.

The intercept is minimised out: with c such that sum_i w_i l'(z_i + c) = 0, the gradient in z is w_i l'(z_i + c). The
level c is found by a safeguarded Newton iteration in one variable and *added to z in place*: predictions that differ by
a constant mean the same, and a caller that continues from z starts next to the level. Any level gives a valid dual
vector (see :func:`adjusted_dual`), a good one a tight bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exactsel._jit import choose_by_type, in_numpy, njit
from exactsel.kernels.elementary import exp_of_minus_size, log1p_of_part
from exactsel.kernels.in_arrays import of_rows
from exactsel.kernels.linalg import BLOCK, sum_roundings
from exactsel.kernels.loss import point_curvature, point_derivative, point_majorizer, point_value
from exactsel.losses.logistic import AdjustedLogistic, Logistic
from exactsel.losses.poisson import AdjustedPoisson, Poisson
from exactsel.rounding import UNIT
from exactsel.types import FloatArray

LEVEL_STEPS = 200

BALANCED = 1e-13
"""Part of the slopes' total size at which their sum counts as zero: a bound loses about as much."""

NEAR = 0.5
"""The same part below which Newton's step is tried."""

FLAT = 1e-3
"""Slope, times the size of the numbers, below which the ratio of the sides does not locate the level."""

TOO_SMALL = 1e-200
"""Where one side's slopes sum to less than this the dual vector is zero instead: underflow may be in the sum."""

LOGISTIC = (Logistic, AdjustedLogistic)

POISSON = (Poisson, AdjustedPoisson)


@njit
def logistic_rows(z: FloatArray, y: FloatArray, values: FloatArray, slopes: FloatArray) -> None:
    """log(1 + exp(-y z)) and its derivative in z."""
    for i in range(z.size):
        values[i] = -y[i] * z[i]
    exp_of_minus_size(values, slopes)
    for i in range(z.size):
        t, e = values[i], slopes[i]
        values[i] = max(t, 0.0) + log1p_of_part(e)
        slopes[i] = -y[i] * ((1.0 if t >= 0.0 else e) / (1.0 + e))


@in_numpy(logistic_rows)
def _logistic_in_arrays(z: FloatArray, y: FloatArray, values: FloatArray, slopes: FloatArray) -> None:
    values[:], slopes[:] = Logistic.rows_value(None, z, y), Logistic.rows_derivative(None, z, y)


@njit
def rows_in_turn(loss: Any, z: FloatArray, y: FloatArray, values: FloatArray, slopes: FloatArray) -> None:
    """The value and the derivative of every row, one after the other."""
    for i in range(z.size):
        values[i] = point_value(loss, z[i], y[i])
        slopes[i] = point_derivative(loss, z[i], y[i])


@in_numpy(rows_in_turn)
def _rows_in_arrays(loss: Any, z: FloatArray, y: FloatArray, values: FloatArray, slopes: FloatArray) -> None:
    values[:], slopes[:] = of_rows(loss, "value", z, y), of_rows(loss, "derivative", z, y)


@njit
def bends_in_turn(loss: Any, z: FloatArray, y: FloatArray, majorise: bool, out: FloatArray) -> None:
    """The curvature of every row, or that of a quadratic above it, one after the other."""
    for i in range(z.size):
        out[i] = point_majorizer(loss, z[i], y[i]) if majorise else point_curvature(loss, z[i], y[i])


@in_numpy(bends_in_turn)
def _bends_in_arrays(loss: Any, z: FloatArray, y: FloatArray, majorise: bool, out: FloatArray) -> None:
    out[:] = of_rows(loss, "majorizer" if majorise else "curvature", z, y)


@choose_by_type("loss")
def plain_rows(loss: Any, z: FloatArray, y: FloatArray, values: FloatArray, slopes: FloatArray) -> None:
    """Write l(z_i, y_i) and its derivative in z_i of every row, of a loss without weights or intercept."""
    rows_in_turn(loss, z, y, values, slopes)


@plain_rows.register(*LOGISTIC)
def _logistic_rows(loss: Any, z: FloatArray, y: FloatArray, values: FloatArray, slopes: FloatArray) -> None:
    logistic_rows(z, y, values, slopes)


@choose_by_type("loss")
def row_bend(loss: Any, z: float, y: float, slope: float) -> float:
    """l''(z, y) of a row whose ``slope`` is known: for logistic loss that saves an exponential."""
    return point_curvature(loss, z, y)


@row_bend.register(*LOGISTIC)
def _bend_of_slope(loss: Any, z: float, y: float, slope: float) -> float:
    return abs(slope) * (1.0 - abs(slope))


@choose_by_type("loss")
def reach(loss: Any, y: float) -> float:
    """How far from zero the prediction may be that suits a target best: y itself, or its label's margin."""
    return abs(y)


@reach.register(*POISSON)
def _reach_of_count(loss: Any, y: float) -> float:
    # One more, for where counts are 0 and 1 alone no prediction of 0 suits them.
    return float(1.0 + np.log(max(y, 1.0)))


@choose_by_type("loss")
def off_scale(loss: Any, z: float, y: float, slope: float) -> float:
    """On what scale a prediction is off that has just the slope and the value that are computed at z."""
    return abs(z) + abs(y) + abs(slope)


@off_scale.register(*POISSON)
def _off_scale_of_count(loss: Any, z: float, y: float, slope: float) -> float:
    return float(abs(z) + reach(loss, y) + 2.0)  # not that of the count, whose square would be far more than the loss


@njit
def sides(loss: Any, z: FloatArray, y: FloatArray, slopes: FloatArray) -> tuple[float, float, float, float]:
    """The sizes of the weighted slopes that are positive, of those that are not, and the curvatures of both."""
    plus, minus, bend_plus, bend_minus = 0.0, 0.0, 0.0, 0.0
    for i in range(z.size):
        slope = loss.weights[i] * slopes[i]
        bend = loss.weights[i] * row_bend(loss, z[i], y[i], slopes[i])
        if slope > 0.0:
            plus, bend_plus = plus + slope, bend_plus + bend
        else:
            minus, bend_minus = minus - slope, bend_minus + bend
    return plus, minus, bend_plus, bend_minus


@in_numpy(sides)
def _sides_in_arrays(loss: Any, z: FloatArray, y: FloatArray, slopes: FloatArray) -> tuple[float, float, float, float]:
    sizes = abs(slopes)
    bends = sizes * (1.0 - sizes) if type(loss) in LOGISTIC else of_rows(loss, "curvature", z, y)
    weighted, bends = loss.weights * slopes, loss.weights * bends
    up = weighted > 0.0
    return (
        float(weighted[up].sum()), float(-weighted[~up].sum()), float(bends[up].sum()), float(bends[~up].sum())
    )  # fmt: skip


@njit
def _steepness(loss: Any, z: FloatArray, y: FloatArray) -> float:
    """The curvature of a quadratic above the sum of all rows."""
    total = 0.0
    for i in range(z.size):
        total += loss.weights[i] * point_majorizer(loss, z[i], y[i])
    return total


@in_numpy(_steepness)
def _steepness_in_arrays(loss: Any, z: FloatArray, y: FloatArray) -> float:
    return float(loss.weights @ of_rows(loss, "majorizer", z, y))


@njit
def _extent(loss: Any, z: FloatArray, y: FloatArray) -> float:
    """How far apart a prediction and the best one for its target may be."""
    scale = 0.0
    for i in range(z.size):
        scale = max(scale, abs(z[i]) + reach(loss, y[i]))
    return scale


@in_numpy(_extent)
def _extent_in_arrays(loss: Any, z: FloatArray, y: FloatArray) -> float:
    return float(np.max(abs(z) + _reaches(loss, y), initial=0.0))


def _reaches(loss: Any, y: FloatArray) -> FloatArray:
    """:func:`reach` of every row."""
    return 1.0 + np.log(np.maximum(y, 1.0)) if type(loss) in POISSON else abs(y)


@njit
def _raise(z: FloatArray, step: float) -> None:
    """Add a constant to all predictions."""
    for i in range(z.size):
        z[i] += step


@in_numpy(_raise)
def _raise_in_arrays(z: FloatArray, step: float) -> None:
    z += step


@njit
def _far_step(
    loss: Any, z: FloatArray, y: FloatArray, plus: float, minus: float, bend_plus: float, bend_minus: float,
    scale: float,
) -> float:  # fmt: skip
    """A step from far away: Newton's on log(plus / minus), which for logistic loss is nearly linear.

    Where that is flat, or goes less far, a quadratic that lies above the loss is minimised instead.
    """
    total = _steepness(loss, z, y)
    step = (minus - plus) / total if total > 0.0 else 0.0
    if plus > 0.0 and minus > 0.0 and scale * (bend_plus / plus + bend_minus / minus) > FLAT:
        straight = -np.log(plus / minus) / (bend_plus / plus + bend_minus / minus)
        step = straight if abs(straight) > abs(step) else step
    return float(step)


@njit
def find_level(loss: Any, z: FloatArray, y: FloatArray, values: FloatArray, slopes: FloatArray) -> float:
    """Add to z the constant that makes the weighted slopes sum to zero, and return it.

    ``values`` and ``slopes`` receive those of the rows at the new z, without the weights. Steps of a model of the loss
    alternate with halving the bracket where they get no further.
    """
    moved, low, high, previous, last, halved = 0.0, -np.inf, np.inf, np.inf, 0.0, False
    scale = _extent(loss, z, y)
    for _ in range(LEVEL_STEPS):
        plain_rows(loss, z, y, values, slopes)
        plus, minus, bend_plus, bend_minus = sides(loss, z, y, slopes)
        rest, bend = plus - minus, bend_plus + bend_minus
        if abs(rest) <= BALANCED * (plus + minus):
            break
        if rest > 0.0:
            high = moved
        else:
            low = moved
        near = abs(rest) <= NEAR * (plus + minus) and bend > 0.0
        step = -rest / bend if near else _far_step(loss, z, y, plus, minus, bend_plus, bend_minus, scale)
        finest = 4 * UNIT * (scale + abs(moved))
        if near and abs(step) <= finest:
            break
        if low == -np.inf or high == np.inf:
            # Each at least twice the last, so that no long way is gone in small steps, and at first none too far.
            size = max(2.0 * last, min(abs(step), 2.0 * scale), finest)
            step = size if rest < 0.0 else -size
        elif (
            not low < moved + step < high
            or (abs(rest) > 0.5 * previous and not halved)
            # Heavy rows without a slope make a step short that says nothing of how far the level is.
            or (not near and abs(step) <= finest)
        ):
            halved, step = True, 0.5 * low + 0.5 * high - moved
        else:
            halved = False
        previous = abs(rest)
        last = abs(step)
        if last <= 0.25 * finest:
            break
        moved += step
        _raise(z, step)
    return moved


@njit
def _weigh(weights: FloatArray, values: FloatArray, slopes: FloatArray) -> None:
    """Multiply by the weights of rows."""
    for i in range(weights.size):
        values[i] *= weights[i]
        slopes[i] *= weights[i]


@in_numpy(_weigh)
def _weigh_in_arrays(weights: FloatArray, values: FloatArray, slopes: FloatArray) -> None:
    values *= weights
    slopes *= weights


@njit
def adjusted_rows(loss: Any, z: FloatArray, y: FloatArray, values: FloatArray, slopes: FloatArray) -> None:
    """Weighted values and slopes of every row; levels z where there is an intercept."""
    if loss.levelled:
        find_level(loss, z, y, values, slopes)
    else:
        plain_rows(loss, z, y, values, slopes)
    _weigh(loss.weights, values, slopes)


@njit
def adjusted_bends(loss: Any, z: FloatArray, y: FloatArray, majorise: bool, out: FloatArray) -> None:
    """Weighted curvatures of every row, or those of a quadratic above the loss; levels z."""
    if loss.levelled:
        find_level(loss, z, y, np.empty(z.size), np.empty(z.size))
    bends_in_turn(loss, z, y, majorise, out)
    _weigh(loss.weights, out, np.empty(z.size))


@njit
def _both_sides(
    loss: Any, z: FloatArray, y: FloatArray, values: FloatArray, b: FloatArray
) -> tuple[float, float, float, float, float, float]:
    """Weigh the slopes b; the sums of w (value - slope z), of the sizes these are judged by, and of the slopes, first
    of all over the rows whose slopes are positive, then over the others: (plus, minus, plus_size, ...).
    """
    plus, minus, plus_size, minus_size, plus_sum, minus_sum = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for first in range(0, z.size, BLOCK):
        up, down, up_size, down_size, up_sum, down_sum = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(first, min(first + BLOCK, z.size)):
            weight, slope = loss.weights[i], b[i]
            term = weight * (values[i] - slope * z[i])
            size = weight * (abs(values[i]) + abs(slope) * off_scale(loss, z[i], y[i], slope))
            b[i] = weight * slope
            if slope > 0.0:
                up, up_size, up_sum = up + term, up_size + size, up_sum + b[i]
            else:
                down, down_size, down_sum = down + term, down_size + size, down_sum - b[i]
        plus, plus_size, plus_sum = plus + up, plus_size + up_size, plus_sum + up_sum
        minus, minus_size, minus_sum = minus + down, minus_size + down_size, minus_sum + down_sum
    return plus, minus, plus_size, minus_size, plus_sum, minus_sum


@in_numpy(_both_sides)
def _both_sides_in_arrays(
    loss: Any, z: FloatArray, y: FloatArray, values: FloatArray, b: FloatArray
) -> tuple[float, float, float, float, float, float]:
    up, terms, scale = b > 0.0, loss.weights * (values - b * z), abs(z) + 2.0 + _reaches(loss, y)
    if type(loss) not in POISSON:
        scale = abs(z) + abs(y) + abs(b)
    sizes = loss.weights * (abs(values) + abs(b) * scale)
    b *= loss.weights
    return (
        float(terms[up].sum()), float(terms[~up].sum()), float(sizes[up].sum()), float(sizes[~up].sum()),
        float(b[up].sum()), float(-b[~up].sum()),
    )  # fmt: skip


@njit
def _scale_sides(b: FloatArray, plus_part: float, minus_part: float) -> None:
    """Multiply the entries above zero by one number and the others by another."""
    for i in range(b.size):
        b[i] *= plus_part if b[i] > 0.0 else minus_part


@in_numpy(_scale_sides)
def _scale_sides_of_array(b: FloatArray, plus_part: float, minus_part: float) -> None:
    b *= np.where(b > 0.0, plus_part, minus_part)


@njit
def adjusted_dual(loss: Any, z: FloatArray, y: FloatArray, b: FloatArray) -> tuple[float, int]:
    """A dual vector b from any z, a lower estimate of -L*(b), and how many roundings an entry of b may hold.

    With g_i = l'(z_i) the vector w_i g_i is the gradient, and -L*(b) the sum of w_i (l(z_i) - g_i z_i). With an
    intercept b must sum to zero exactly. So b is *defined* as that vector with the side (its positive entries, or its
    negative ones) of larger sum multiplied by t = the smaller sum / the larger, an exact real number. t is in [0, 1],
    l* is convex and -l*(0) = inf l >= 0 for the losses that may have an intercept, hence
    -l*(t g) >= t (-l*(g)): only t times that side's part counts. The floats written to b, and t itself, are off by what
    the roundings of two sums and 8 more can do, which the estimate gives up; which side is the larger may be misjudged
    only where both agree to that many.
    """
    n, many = z.size, sum_roundings(z.size)
    values = np.empty(n)
    if loss.levelled:
        find_level(loss, z, y, values, b)
    else:
        plain_rows(loss, z, y, values, b)
    plus, minus, plus_size, minus_size, plus_sum, minus_sum = _both_sides(loss, z, y, values, b)
    if not loss.levelled:
        return plus + minus - (many + 36) * UNIT * (plus_size + minus_size), many + 20
    smaller = min(plus_sum, minus_sum)
    if smaller <= TOO_SMALL:
        b[:] = 0.0
        return 0.0, many
    part = smaller / max(plus_sum, minus_sum)
    plus_part, minus_part = (part, 1.0) if plus_sum > minus_sum else (1.0, part)
    _scale_sides(b, plus_part, minus_part)
    size = plus_part * plus_size + minus_part * minus_size
    return plus_part * plus + minus_part * minus - (3 * many + 64) * UNIT * size, 3 * many + 48
