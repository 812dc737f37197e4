"""The columns of the data, each stored whole or by its non-zero entries, and products with them.

One type serves dense, sparse and mixed data, so that no kernel is compiled twice. Where all columns are whole, what
runs is what :mod:`exactsel.kernels.linalg` does with a matrix, to the last bit. The rounding allowance of a bound
(:mod:`exactsel.kernels.dual`) counts as many additions as there are rows, and sums over non-zero entries have fewer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exactsel._jit import njit
from exactsel.kernels.linalg import (
    BLOCK,
    add_four,
    add_scaled,
    combine_rows,
    correlate,
    four_long_dots,
    long_dot,
    multiply_rows,
    predict,
)
from exactsel.types import FloatArray, IntArray


class Columns(NamedTuple):
    """The d columns of A (n, d).

    Few arrays, packed tightly: everything that kernels pass to each other costs them time.
    """

    whole: FloatArray
    """(columns stored whole, n)."""
    where: IntArray
    """(d, 5) what :data:`PLACE` and the following name."""
    rows: NDArray[np.uint32]
    """The rows with an entry, column by column, ascending in each."""
    values: FloatArray
    """For every column stored by its entries, or of two values, its base, and then the value of all entries, or those
    of each."""


PLACE, FIRST, END, VALUES, EQUAL = 0, 1, 2, 3, 4
"""In ``where``: the row of ``whole`` a column stands in, or -1; the first of its entries and the one after the last;
where in ``values`` its base stands and its entries follow; whether one value serves them all, as it does for every
column of two values.

The *base* is what a column holds everywhere, its entries being added to that. It is not zero only where the loss has an
intercept: dual vectors then sum to zero, and products with them omit it."""


class RawData(NamedTuple):
    """The data themselves: the parts of their :class:`Columns`, y, and the columns' norms as they are stored.

    Flat, for numba hands threads no tuple that holds tuples; kernels take the columns by :func:`columns_of`.
    """

    whole: FloatArray
    where: IntArray
    rows: NDArray[np.uint32]
    values: FloatArray
    y: FloatArray
    norms: FloatArray

    @property
    def AT(self) -> Columns:
        """The columns; not for kernels."""
        return Columns(*self[:-2])


@njit
def columns_of(data: RawData) -> Columns:
    """The columns of the data."""
    return Columns(data.whole, data.where, data.rows, data.values)


@njit(inline=True)
def all_whole(AT: Columns) -> bool:
    """Whether every column is stored whole: ``AT.whole`` is the transposed matrix then."""
    return bool(AT.whole.shape[0] == AT.where.shape[0])


@njit
def entries_dot(AT: Columns, j: int, b: FloatArray) -> float:
    """a_j'b of a column stored by its entries, without its base, in blocks of these."""
    first, at, step = AT.where[j, FIRST], AT.where[j, VALUES] + 1, 1 - AT.where[j, EQUAL]
    count, total = AT.where[j, END] - first, 0.0
    for begin in range(0, count, BLOCK):
        rows = AT.rows[first + begin : first + min(count, begin + BLOCK)]
        total += _some_entries_dot(rows, AT.values[at + step * begin :], step, b)
    return total


@njit
def _some_entries_dot(rows: IntArray, values: FloatArray, step: int, b: FloatArray) -> float:
    """Of a block, in four sums, so that no addition waits for another."""
    count = rows.size
    one, two, three, four = 0.0, 0.0, 0.0, 0.0
    in_fours = count - count % 4
    for t in range(0, in_fours, 4):
        one += values[step * t] * b[rows[t]]
        two += values[step * (t + 1)] * b[rows[t + 1]]
        three += values[step * (t + 2)] * b[rows[t + 2]]
        four += values[step * (t + 3)] * b[rows[t + 3]]
    for t in range(in_fours, count):
        one += values[step * t] * b[rows[t]]
    return (one + two) + (three + four)


@njit
def centred_dot(AT: Columns, i: int, j: int, n: int) -> float:
    """a_i'a_j of columns of n rows stored by entries with a value each, whose bases are their negative means."""
    s, t, total = AT.where[i, FIRST], AT.where[j, FIRST], 0.0
    at_s, at_t = AT.where[i, VALUES] + 1 - s, AT.where[j, VALUES] + 1 - t
    while s < AT.where[i, END] and t < AT.where[j, END]:
        if AT.rows[s] == AT.rows[t]:
            total += AT.values[at_s + s] * AT.values[at_t + t]
            s += 1
            t += 1
        elif AT.rows[s] < AT.rows[t]:
            s += 1
        else:
            t += 1
    return float(total - n * AT.values[AT.where[i, VALUES]] * AT.values[AT.where[j, VALUES]])


@njit
def centred_products(AT: Columns, i: int, out: FloatArray) -> None:
    """A'a_i (d,) of such columns. Less its mean a_i sums to zero, so the means of the others make no difference."""
    work = np.full(AT.whole.shape[1], AT.values[AT.where[i, VALUES]])
    add_entries(AT, i, 1.0, work)
    for j in range(out.size):
        out[j] = entries_dot(AT, j, work)


@njit
def add_entries(AT: Columns, j: int, scale: float, out: FloatArray) -> None:
    """Add scale a_j to out, for a column stored by its entries, without its base."""
    first, at, step = AT.where[j, FIRST], AT.where[j, VALUES] + 1, 1 - AT.where[j, EQUAL]
    for t in range(AT.where[j, END] - first):
        out[AT.rows[first + t]] += scale * AT.values[at + step * t]


@njit
def column_dot(AT: Columns, j: int, b: FloatArray) -> float:
    """a_j'b, without the column's base."""
    return float(entries_dot(AT, j, b) if AT.where[j, PLACE] < 0 else long_dot(AT.whole[AT.where[j, PLACE]], b))


@njit
def add_column(AT: Columns, j: int, scale: float, out: FloatArray) -> None:
    """Add scale a_j to out, without the column's base."""
    if AT.where[j, PLACE] < 0:
        add_entries(AT, j, scale, out)
    else:
        add_scaled(out, scale, AT.whole[AT.where[j, PLACE]])


@njit
def write_column(AT: Columns, j: int, weights: FloatArray, out: FloatArray) -> None:
    """out = diag(weights) a_j, without the column's base."""
    out[:] = 0.0
    add_column(AT, j, 1.0, out)
    for row in range(out.size):
        out[row] *= weights[row]


@njit
def _combine_columns(AT: Columns, columns: IntArray, x: FloatArray, out: FloatArray) -> None:
    shift = 0.0
    for i in range(columns.size):
        if AT.where[columns[i], PLACE] < 0:
            shift += x[i] * AT.values[AT.where[columns[i], VALUES]]
    out[:] = shift
    which, scales, waiting = np.empty(4, dtype=np.int64), np.empty(4), 0
    for i in range(columns.size):
        if x[i] != 0.0:
            place = AT.where[columns[i], PLACE]
            if place < 0:
                add_entries(AT, columns[i], x[i], out)
                continue
            which[waiting], scales[waiting] = place, x[i]
            waiting += 1
            if waiting == 4:
                add_four(out, AT.whole, which, scales)
                waiting = 0
    for i in range(waiting):
        add_scaled(out, scales[i], AT.whole[which[i]])


@njit
def _multiply_columns(AT: Columns, columns: IntArray, b: FloatArray, out: FloatArray) -> None:
    which, into, four, waiting = np.empty(4, dtype=np.int64), np.empty(4, dtype=np.int64), np.empty(4), 0
    for i in range(columns.size):
        place = AT.where[columns[i], PLACE]
        if place < 0:
            out[i] = entries_dot(AT, columns[i], b)
            continue
        which[waiting], into[waiting] = place, i
        waiting += 1
        if waiting == 4:
            four_long_dots(AT.whole[which[0]], AT.whole[which[1]], AT.whole[which[2]], AT.whole[which[3]], b, four)
            for t in range(4):
                out[into[t]] = four[t]
            waiting = 0
    for t in range(waiting):
        out[into[t]] = long_dot(AT.whole[which[t]], b)


@predict.register(Columns)
def _predict_columns(AT: Any, columns: IntArray, x: FloatArray, out: FloatArray) -> None:
    # Decided here, in the caller's code: handing on the whole tuple costs more than short dense products do.
    if all_whole(AT):
        combine_rows(AT.whole, columns, x, out)
    else:
        _combine_columns(AT, columns, x, out)


@correlate.register(Columns)
def _correlate_columns(AT: Any, columns: IntArray, b: FloatArray, out: FloatArray) -> None:
    if all_whole(AT):
        multiply_rows(AT.whole, columns, b, out)
    else:
        _multiply_columns(AT, columns, b, out)


@njit
def _add_products(
    AT: Columns, columns: IntArray, sparse: IntArray, weights: FloatArray, stop: Any, H: FloatArray
) -> bool:
    """Add A_S'WA_S of the columns at the positions ``sparse``, an outer product for every row; False after a stop.

    The entries are sorted by rows first. Column by column it would take half a gathering for every pair of columns.
    """
    n = weights.size
    begin = np.zeros(n + 2, dtype=np.int64)
    for s in range(sparse.size):
        j = columns[sparse[s]]
        for t in range(AT.where[j, FIRST], AT.where[j, END]):
            begin[np.int64(AT.rows[t]) + 2] += 1
    for i in range(n):
        begin[i + 2] += begin[i + 1]
    where, value = np.empty(begin[n + 1], dtype=np.int64), np.empty(begin[n + 1])
    for s in range(sparse.size):
        j = columns[sparse[s]]
        first, at, step = AT.where[j, FIRST], AT.where[j, VALUES] + 1, 1 - AT.where[j, EQUAL]
        for t in range(first, AT.where[j, END]):
            row = np.int64(AT.rows[t])
            where[begin[row + 1]] = sparse[s]
            value[begin[row + 1]] = AT.values[at + step * (t - first)]
            begin[row + 1] += 1
    for i in range(n):
        if i % 1024 == 0 and stop[0]:
            return False
        for t in range(begin[i], begin[i + 1]):
            weighted = weights[i] * value[t]
            for u in range(begin[i], t + 1):
                H[where[t], where[u]] += weighted * value[u]
    return True


@njit
def mixed_gram(
    AT: Columns, columns: IntArray, weights: FloatArray, levelled: bool, lam: float, stop: Any, H: FloatArray
) -> bool:
    """Lower triangle of A_S'WA_S + lam I, W = diag(w) or, ``levelled``, diag(w) - ww'/sum(w); False after a stop.

    Products with a whole column are taken from its weighted mean; those of two sparse columns, which have few entries
    and so small means, are corrected afterwards.
    """
    m, total, count = columns.size, 0.0, 0
    means, sparse, scaled = np.zeros(m), np.empty(m, dtype=np.int64), np.empty(weights.size)
    for row in range(weights.size):
        total += weights[row]
    for i in range(m):
        j = columns[i]
        if AT.where[j, PLACE] < 0:
            sparse[count] = i
            count += 1
        if levelled and total > 0.0:
            means[i] = column_dot(AT, j, weights) / total
        H[i, : i + 1] = 0.0
    sparse = sparse[:count]
    for i in range(m):
        if stop[0]:
            return False
        place = AT.where[columns[i], PLACE]
        if place >= 0:
            for row in range(weights.size):
                scaled[row] = weights[row] * (AT.whole[place, row] - means[i])
            _multiply_columns(AT, columns[: i + 1], scaled, H[i, : i + 1])
            for s in range(count):
                if sparse[s] > i:
                    H[sparse[s], i] = entries_dot(AT, columns[sparse[s]], scaled)
    if not _add_products(AT, columns, sparse, weights, stop, H):
        return False
    for s in range(count):
        for t in range(s + 1):
            H[sparse[s], sparse[t]] -= total * means[sparse[s]] * means[sparse[t]]
    for i in range(m):
        H[i, i] += lam
    return True
