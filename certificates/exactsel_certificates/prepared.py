"""Row weights, an intercept and scaling, worked into the data: what is prepared, and how far it is from exact.

The problem as given is, with s_j below,

    minimise over x and c    sum_i w_i l((Ax)_i + c, y_i) + (lam/2) sum_j s_j^2 x_j^2

with c = 0 where there is no intercept, w = 1 where there are no weights. Let m_j be the weighted mean of column j, 0
without intercept; with scaling s_j is the root of the weighted mean of (a_ij - m_j)^2, or 1 where that is zero, and
without scaling it is 1. In x'_j = s_j x_j this is the same problem for prepared columns (a_j - m_j) / s_j. For
quadratic loss the best intercept and the weights are worked in too: rows are multiplied by sqrt(w_i), y is centred, and
c is gone. For the other losses columns are centred only because that makes the numbers better: it changes which c is
best.

Prepared data are doubles, and so not exact. Means are taken off in two passes, each with its rounding error in hand
(the error of a difference of doubles is a double), so that what is left over is small beside what is left, however far
the data are from zero. :class:`Prepared` holds the doubles and upper estimates of how far they are off;
:mod:`exactsel_certificates.transfer` says what that can do to an objective.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from exactsel_certificates.formula import FloatArray
from exactsel_certificates.losses import LOSSES, Loss
from exactsel_certificates.rigorous import TINY, U, gamma
from exactsel_certificates.sums import blocked_roundings, blocked_sums
from exactsel_mapped import column_blocks, is_kept, room_like


@dataclass(frozen=True)
class Prepared:
    """Prepared data, what was done to them, and upper estimates of their errors (lengths of vectors over the rows that
    count; weighted by w where the weights stay with the loss).
    """

    AT: FloatArray
    """(d, n') prepared columns, one a row; only rows that count."""
    y: FloatArray
    """(n',) prepared target."""
    weights: FloatArray | None
    """(n',) weights left to the loss; None for quadratic loss and where there are none."""
    intercept: bool
    """Whether the intercept is left to the loss."""
    centre: FloatArray
    """(2, d) what was taken off the columns, as sums of two doubles."""
    target: tuple[float, float]
    """What was taken off y, as a sum of two doubles."""
    scale: FloatArray
    """(d,) what the columns were divided by."""
    column_error: FloatArray
    """(d,) length of the difference between a column and the exact one."""
    column_rest: FloatArray
    """(d,) how long the part of a column is that an exactly centred one would not have; quadratic loss."""
    target_error: float
    target_rest: float
    scale_error: float
    """How far the scales are off, relatively, at most."""


class _Centred(NamedTuple):
    """Vectors (m, n') without their means, the errors that made, and what was taken off: one and another (m,)."""

    values: FloatArray
    errors: FloatArray
    first: FloatArray
    second: FloatArray


def prepare(
    A: FloatArray,
    y: FloatArray,
    loss: str,
    weights: FloatArray | None = None,
    intercept: bool = False,
    scale: bool = False,
) -> Prepared:
    """Prepare data A (n, d), y (n,) with weights (n,), of which some are positive and none negative.

    For quadratic loss rows of weight zero stay, as zeros; for the others they are removed. Of columns in a file the
    prepared ones are in another, or the same where nothing is done to them.
    """
    formulas, counted = LOSSES.get(loss), None
    quadratic = formulas is not None and formulas.quadratic
    if weights is not None and not quadratic and not np.all(weights > 0):
        counted = weights > 0
        y, weights = y[counted], weights[counted]
    d = A.shape[1]
    centre, sizes = np.zeros((2, d)), np.ones(d)
    error, rest, off = np.zeros(d), np.zeros(d), np.zeros(d)
    as_given = not (intercept or scale or (quadratic and weights is not None)) and counted is None and is_kept(A)
    AT = A.T if as_given else room_like(A, (d, len(y)))
    for block in () if as_given else column_blocks(AT):
        columns = A[:, block].T if counted is None else A[:, block].T[:, counted]
        columns = np.ascontiguousarray(columns, dtype=np.float64)
        centred = _without_means(columns, weights) if intercept else _untouched(columns)
        centre[:, block] = centred.first, centred.second
        if scale:
            sizes[block], off[block] = _sizes(centred, weights, intercept)
        AT[block], error[block] = _worked_in(centred, weights, quadratic, sizes[block])
        if quadratic and intercept:
            rest[block] = _along_intercept(AT[block], weights)
    AT.flags.writeable = False
    target = _prepared_target(np.asarray(y, dtype=np.float64), formulas, weights, intercept)
    values, target_error = _worked_in(target, weights, quadratic, np.ones(1))
    target_rest = _along_intercept(values, weights) if quadratic and intercept else np.zeros(1)
    return Prepared(
        AT, values[0], None if quadratic else weights, intercept and not quadratic, centre,
        (float(target.first[0]), float(target.second[0])), sizes, error, rest,
        float(target_error[0]), float(target_rest[0]), float(off.max(initial=0.0)),
    )  # fmt: skip


def total_weight(n: int, weights: FloatArray | None) -> float:
    """How many rows there are, each counted as often as its weight says."""
    return float(n) if weights is None else float(blocked_sums(weights[None])[0])


def lengths(rows: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Upper estimates of the lengths of rows (m, n), of each entry ``weights`` (n,) times counted."""
    largest = np.max(np.abs(rows), axis=1, initial=0.0)
    unit = np.where(largest > 0, largest, 1.0)
    # Entries far below the largest may vanish when squared; the last term is more than all of them.
    squares = (rows / unit[:, None]) ** 2
    total = blocked_sums(squares if weights is None else squares * weights)
    many = total_weight(rows.shape[1], weights)
    room = 1.0 + gamma(blocked_roundings(rows.shape[1]) + 8)
    return np.asarray(np.where(largest > 0, unit * (np.sqrt(total) + 1e-150 * np.sqrt(many)) * room, 0.0))


def _without_means(rows: FloatArray, weights: FloatArray | None) -> _Centred:
    """Rows (m, n) without their (weighted) means, in two passes."""
    first = _means(rows, weights)
    counted = rows if weights is None else rows[:, weights > 0]
    highest, lowest = counted.max(axis=1), counted.min(axis=1)
    # Within their factor of two differences are exact, so a mean that rounds out of the data's range is brought back.
    first = np.clip(first, lowest, highest)
    once, error_once = _difference(rows, first)
    second = np.where(highest > lowest, _means(once, weights), 0.0)
    twice, error_twice = _difference(once, second)
    return _Centred(twice, error_once + error_twice, first, second)


def _untouched(rows: FloatArray) -> _Centred:
    nothing = np.zeros(len(rows))
    return _Centred(rows, np.zeros((len(rows), 1)), nothing, nothing)


def _means(rows: FloatArray, weights: FloatArray | None) -> FloatArray:
    if weights is None:
        return np.asarray(blocked_sums(rows) / rows.shape[1])
    return np.asarray(blocked_sums(rows * weights) / total_weight(rows.shape[1], weights))


def _difference(rows: FloatArray, taken: FloatArray) -> tuple[FloatArray, FloatArray]:
    """rows - taken (m,), and exactly what that is short of the true difference (Knuth's two-sum)."""
    b = -taken[:, None]
    total = rows + b
    part = total - rows
    return total, (rows - (total - part)) + (b - part)


def _sizes(centred: _Centred, weights: FloatArray | None, without_means: bool) -> tuple[FloatArray, FloatArray]:
    """Roots of the (weighted) mean squares, 1 where a column is zero, and how far they are off, relatively."""
    n = centred.values.shape[1]
    many = total_weight(n, weights)
    # A row of weight zero says nothing, not even that a column is not constant.
    length = lengths(centred.values if weights is None else np.where(weights > 0, centred.values, 0.0), weights)
    zero = length == 0.0
    safe = np.where(zero, 1.0, length)
    sizes = np.where(zero, 1.0, length / np.sqrt(many))
    off = np.full(len(sizes), gamma(2 * blocked_roundings(n) + 32))
    if without_means:
        missed = lengths(centred.errors, weights if centred.errors.shape[1] == n else None) / safe
        sums = blocked_sums(centred.values if weights is None else centred.values * weights)
        rest = 1.001 * np.abs(sums) / (np.sqrt(many) * safe) + gamma(blocked_roundings(n) + 8)
        off += 1.01 * missed + (rest + missed) ** 2
    return sizes, np.where(zero, 0.0, off)


def _worked_in(
    centred: _Centred, weights: FloatArray | None, quadratic: bool, sizes: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The rows of :class:`_Centred` with roots of weights (quadratic loss) and sizes worked in, and their errors."""
    inside = weights is not None and quadratic
    values = centred.values * np.sqrt(weights) if inside and weights is not None else centred.values
    values = values / sizes[:, None]
    roundings = (2 if inside else 0) + (1 if np.any(sizes != 1.0) else 0)
    value_weights = None if quadratic else weights
    error_weights = weights if centred.errors.shape[1] == values.shape[1] else None
    missed = lengths(centred.errors, error_weights) / sizes
    error = 1.001 * (missed + roundings * U * lengths(values, value_weights))
    return values, np.where(error > 0, error + TINY, 0.0)


def _along_intercept(rows: FloatArray, weights: FloatArray | None) -> FloatArray:
    """Upper estimates of how long the part of prepared rows is that lies along the (weighted) intercept."""
    n, length = rows.shape[1], lengths(rows)
    sums = blocked_sums(rows if weights is None else rows * np.sqrt(weights))
    room = gamma(blocked_roundings(n) + 16) * length
    return np.asarray(1.001 * np.abs(sums) / np.sqrt(total_weight(n, weights)) + room)


def _prepared_target(y: FloatArray, loss: type[Loss] | None, weights: FloatArray | None, intercept: bool) -> _Centred:
    row = y[None]
    if not intercept or loss is None or not loss.of_residuals:
        return _untouched(row)
    if loss.quadratic:
        return _without_means(row, weights)
    middle = np.array([weighted_median(y, weights)])
    values, errors = _difference(row, middle)
    return _Centred(values, errors, middle, np.zeros(1))


def weighted_median(values: FloatArray, weights: FloatArray | None = None) -> float:
    """The median of values (n,), each as many times as its weight says."""
    if weights is None:
        return float(np.median(values))
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    lower, upper = np.searchsorted(below, 0.5 * below[-1], "left"), np.searchsorted(below, 0.5 * below[-1], "right")
    return float(0.5 * (values[order[lower]] + values[order[min(upper, len(order) - 1)]]))
