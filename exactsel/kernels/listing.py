"""All sets of columns on which a quadratic function comes down to a level: depth first, in closed form.

The function is q(x) = x'Hx/2 - h'x with H positive definite, and sets have at most so many free columns. At a node (S,
C) with r places, K, the inverse of H on S and C, and the fit x = K h are kept up to date: fixing column j to 0 costs
x_j^2 / (2 K_jj) and is a rank-one downdate (as in kernels/subtree.py). That is a guide. What is closed is closed by

    q(z) >= q(x) - v' H^-1 v / 2 >= q(x) - sum_j v_j^2 / (2 w H_jj),   v = Hx - h,   on the columns of z and x,

which holds at any x where H - w diag(H) is positive semidefinite; evaluated anew each time, rounding taken off. What
cannot be closed is divided, and a set that cannot be shown to stay above the level is listed. With three places
left, or less, the sets are counted first (kernels/listing_count.py; ten to twenty times fewer nodes and less time).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactsel._jit import in_numpy, njit
from exactsel.kernels.counting import count_workspace
from exactsel.kernels.listing_count import NOT_COUNTED, count_data, suspected_sets
from exactsel.kernels.listing_record import Decisions, begin, close, close_last_slot, divide, end, note
from exactsel.kernels.moves import PUT_IN
from exactsel.kernels.subtree_record import COUNTED
from exactsel.rounding import UNIT
from exactsel.types import BoolArray, FloatArray, IntArray, StateArray

COMPLETE, TOO_LONG, TOO_MUCH_WORK, STOPPED = 0, 1, 2, 3

OUT, FREE, IN = 0, 1, 2
"""As in kernels/node.py, for the columns of this kernel."""

COUNTED_PLACES = 3
"""Up to so many places left are counted (measured: with four a fifth less nodes and a quarter more time)."""


class Quadratic(NamedTuple):
    """q(x) = x'Hx/2 - h'x."""

    H: FloatArray
    """(m, m) positive definite."""
    h: FloatArray
    """(m,)"""
    lengths: FloatArray
    """(m,) roots of H's diagonal."""
    convexity: float
    """A w > 0 with H - w diag(H) positive semidefinite."""


@njit
def lowest(q: Quadratic, columns: IntArray, count: int, x: FloatArray) -> float:
    """A lower bound of q over models on ``columns[:count]``, from any x (count,) there: the formula above."""
    size = 0.0
    for a in range(count):
        size += q.lengths[columns[a]] * abs(x[a])
    part = (count + 16) * UNIT
    value, rounding, rest = 0.0, 0.0, 0.0
    for a in range(count):
        j = columns[a]
        product = 0.0
        for b in range(count):
            product += q.H[j, columns[b]] * x[b]
        v = product - q.h[j]
        off = part * (q.lengths[j] * size + abs(q.h[j]))
        value += 0.5 * x[a] * (v - q.h[j])
        rounding += abs(x[a]) * (off + part * (abs(v) + abs(q.h[j])))
        far = (abs(v) + off) / q.lengths[j]
        rest += far * far
    return value - rounding - 0.501 * rest / q.convexity


@in_numpy(lowest)
def _lowest_in_arrays(q: Quadratic, columns: IntArray, count: int, x: FloatArray) -> float:
    chosen, x = columns[:count], x[:count]
    lengths, h, part = q.lengths[chosen], q.h[chosen], (count + 16) * UNIT
    v = q.H[np.ix_(chosen, chosen)] @ x - h
    off = part * (lengths * (lengths @ abs(x)) + abs(h))
    rounding = abs(x) @ (off + part * (abs(v) + abs(h)))
    far = (abs(v) + off) / lengths
    return float(0.5 * (x @ (v - h)) - rounding - 0.501 * (far @ far) / q.convexity)


@njit
def _inverse(H: FloatArray, columns: IntArray, count: int, out: FloatArray) -> None:
    """Write the inverse of H on ``columns[:count]`` (Gauss-Jordan: H is positive definite)."""
    for a in range(count):
        for b in range(count):
            out[a, b] = H[columns[a], columns[b]]
    for p in range(count):
        pivot = 1.0 / out[p, p]
        out[p, p] = 1.0
        for b in range(count):
            out[p, b] *= pivot
        for a in range(count):
            if a != p:
                factor = out[a, p]
                out[a, p] = 0.0
                for b in range(count):
                    out[a, b] -= factor * out[p, b]


@in_numpy(_inverse)
def _inverse_in_arrays(H: FloatArray, columns: IntArray, count: int, out: FloatArray) -> None:
    out[:count, :count] = np.linalg.inv(H[np.ix_(columns[:count], columns[:count])])


@njit
def without(K: FloatArray, X: FloatArray, flags: StateArray, chosen: int, new_K: FloatArray, new_X: FloatArray) -> None:
    """Inverse and minimiser without a column, of rows that are not OUT in ``flags``; minimisers of all."""
    scale = 1.0 / K[chosen, chosen]
    for a in range(X.size):
        factor = K[a, chosen] * scale
        new_X[a] = X[a] - factor * X[chosen]
        if flags[a] != OUT:
            for b in range(X.size):
                new_K[a, b] = K[a, b] - factor * K[chosen, b]


@in_numpy(without)
def _without_in_arrays(
    K: FloatArray, X: FloatArray, flags: StateArray, chosen: int, new_K: FloatArray, new_X: FloatArray
) -> None:
    factors = K[:, chosen] / K[chosen, chosen]
    new_X[:] = X - factors * X[chosen]
    kept = flags != OUT
    new_K[kept] = K[kept] - np.outer(factors[kept], K[chosen])


@njit
def _write(found: IntArray, row: int, columns: IntArray, count: int, last: int) -> None:
    found[row, :] = -1
    for a in range(count):
        found[row, a] = columns[a]
    if last >= 0:
        found[row, count] = last


@njit
def _leaves(
    q: Quadratic, flags: StateArray, slots: int, threshold: float, found: IntArray, known: int, made: Decisions
) -> tuple[int, float]:  # fmt: skip
    """List the sets of a node that has one place left, or none (``slots`` 0), or a place for every column (-1).

    The number of sets listed in all, more than there is room for where they are too many; and the multiplications.
    """
    m = q.h.size
    columns, count = np.empty(m, dtype=np.int64), 0
    for j in range(m):
        if flags[j] == IN or (slots < 0 and flags[j] == FREE):
            columns[count] = j
            count += 1
    K, x = np.empty((count, count)), np.zeros(count + 1)
    _inverse(q.H, columns, count, K)
    for a in range(count):
        for b in range(count):
            x[a] += K[a, b] * q.h[columns[b]]
    work = float(count * count * (count + 2))
    if slots <= 0:
        if lowest(q, columns, count, x) > threshold:
            close(made, -1)
            return known, work
        if known < len(found):
            _write(found, known, columns, count, -1)
        close(made, known)
        return known + 1, work
    guide, first, others = 0.0, known, 0
    for a in range(count):
        guide -= 0.5 * q.h[columns[a]] * x[a]
    moved, shift, last = np.empty(count + 1), np.empty(count), np.empty(m, dtype=np.int64)
    for j in range(m):
        if flags[j] != FREE:
            continue
        work += 2.0 * (count + 1) * (count + 1)
        slope, pivot = q.h[j], q.H[j, j]
        for a in range(count):
            slope -= q.H[columns[a], j] * x[a]
            shift[a] = 0.0
            for b in range(count):
                shift[a] += K[a, b] * q.H[columns[b], j]
            pivot -= shift[a] * q.H[columns[a], j]
        closed = False
        if pivot > 0.0 and guide - 0.5 * slope * slope / pivot > threshold:
            step = slope / pivot
            for a in range(count):
                moved[a] = x[a] - step * shift[a]
            moved[count] = step
            columns[count] = j
            closed = lowest(q, columns, count + 1, moved) > threshold
        if closed:
            others += 1
            continue
        if known < len(found):
            _write(found, known, columns, count, j)
        last[known - first] = j
        known += 1
    close_last_slot(made, last, known - first, first, others)
    return known, work


@njit
def _take_in(
    q: Quadratic, K: FloatArray, x: FloatArray, flags: StateArray, value: float, threshold: float, slots: int,
    made: Decisions,
) -> tuple[int, int, int, float]:  # fmt: skip
    """Fix to 1 the columns that are in every set.

    Returns the places left, the free columns, the costliest of them, and the work.
    """
    m = q.h.size
    columns, moved = np.empty(m, dtype=np.int64), np.empty(m)
    free, chosen, most, work = 0, -1, -1.0, 0.0
    for j in range(m):
        if flags[j] != FREE:
            continue
        cost = 0.5 * x[j] * x[j] / K[j, j]
        if value + cost > threshold:
            count, step = 0, x[j] / K[j, j]
            for a in range(m):
                if a != j and flags[a] != OUT:
                    columns[count], moved[count] = a, x[a] - step * K[a, j]
                    count += 1
            work += float(count * count)
            if lowest(q, columns, count, moved) > threshold:
                flags[j] = IN
                slots -= 1
                if slots < 0:
                    break
                note(made, 8 * j + PUT_IN)
                continue
        free += 1
        if cost > most:
            chosen, most = j, cost
    return slots, free, chosen, work


@njit
def _write_suspects(flags: StateArray, undecided: IntArray, count: int, slots: int, found: IntArray, known: int) -> int:
    """List the sets a count suspects: the columns fixed to 1, and so many others. The number of sets listed in all."""
    for s in range(count):
        if known < len(found):
            found[known, :] = -1
            at = 0
            for j in range(flags.size):
                if flags[j] == IN:
                    found[known, at] = j
                    at += 1
            for a in range(slots):
                found[known, at + a] = undecided[s, a]
        known += 1
    return known


@njit
def list_sets(
    q: Quadratic, included: StateArray, slots: int, threshold: float, budget: float, stop: BoolArray, found: IntArray,
    made: Decisions,
) -> tuple[int, int, int, float]:  # fmt: skip
    """List every set of columns on which q is at most ``threshold``.

    A set holds those fixed to 1 at first and at most ``slots`` others.

    ``included`` (m,) is IN or FREE. Rows of ``found`` (cap, m at most) receive the sets, padded with -1; a set stands
    for
    its subsets as well. What is decided goes into ``made``, if that has room for any words. Returns how it ended, the
    number of sets, of nodes, and the multiplications done. Only where it says COMPLETE has every set that is not listed
    (nor within one that is) been shown to stay above the level.
    """
    m = q.h.size
    K, X = np.empty((m + 2, m, m)), np.zeros((m + 2, m))
    flags = np.empty((m + 2, m), dtype=np.int8)
    values, left = np.empty(m + 2), np.empty(m + 2, dtype=np.int64)
    _inverse(q.H, np.arange(m), m, K[0])
    for a in range(m):
        for b in range(m):
            X[0, a] += K[0, a, b] * q.h[b]
        flags[0, a] = included[a]
    values[0], left[0] = -0.5 * np.sum(q.h * X[0]), slots
    data, room = count_data(q.H, q.h, q.lengths), count_workspace(m)
    top, nodes, known, work = 0, 0, 0, float(m * m * m)
    while top >= 0:
        if stop[0]:
            return STOPPED, known, nodes, work
        if work > budget:
            return TOO_MUCH_WORK, known, nodes, work
        nodes += 1
        work += float(m * m)
        begin(made, known, np.sum(flags[top] == FREE), left[top])
        r, free, chosen, more = _take_in(q, K[top], X[top], flags[top], values[top], threshold, left[top], made)
        work += more
        if r < 0:
            close(made, -1)
            end(made, known)
            top -= 1
            continue
        counted = NOT_COUNTED
        if 0 < r < free and r <= COUNTED_PLACES:
            size = np.sum(flags[top] == IN) + free
            work += 0.5 * size * size * size
            counted = suspected_sets(data, flags[top], r, threshold, room)
        # Sets that are listed are written down one decision after the other.
        if counted == 0 or (counted > 0 and made.words.size == 0):
            known = _write_suspects(flags[top], room.undecided, counted, r, found, known)
            if known > len(found):
                return TOO_LONG, known, nodes, work
            note(made, COUNTED)
            end(made, known)
            top -= 1
            continue
        if r <= 1 or free <= r:
            known, more = _leaves(q, flags[top], -1 if free <= r else r, threshold, found, known, made)
            work += more
            if known > len(found):
                return TOO_LONG, known, nodes, work
            end(made, known)
            top -= 1
            continue
        if chosen < 0:
            return TOO_MUCH_WORK, known, nodes, work  # numbers that are none, which more work would not mend
        divide(made, chosen)
        out = top + 1
        flags[out] = flags[top]
        flags[out, chosen] = OUT
        without(K[top], X[top], flags[out], chosen, K[out], X[out])
        values[out] = values[top] + 0.5 * X[top, chosen] * X[top, chosen] * (1.0 / K[top, chosen, chosen])
        left[out] = r
        flags[top, chosen] = IN
        left[top] = r - 1
        top = out
    return COMPLETE, known, nodes, work
