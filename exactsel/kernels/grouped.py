"""Accelerated proximal gradient where what is chosen are groups of columns, for any loss and in Gram form.

A group counts as one unit of the search: states, places and answers speak of units, data and models of columns. Every
formula of the plain problem holds with q_g = the sum of q_j over the columns of g in place of q_j, for a group adds at
most that much to the conjugate of the ridge. The prox of its relaxation is the plain prox of the groups' lengths, each
group scaled along (Yuan and Lin 2006 do the same with the group lasso).

The loop is that of :mod:`exactsel.kernels.apg`. What the data are, rows or their Gram matrix, is hidden behind the four
functions at the top; ``image`` is Ax for rows and A'Ax in Gram form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from exactsel._jit import njit, overload, prange
from exactsel.kernels.apg import GramData, Rules, extrapolate, settled, turns_back
from exactsel.kernels.dual import dual_at_point, dual_from_gram, node_bound
from exactsel.kernels.linalg import dot, predict, symmetric_times_sparse
from exactsel.kernels.node import (
    CUT,
    ILL_CONDITIONED,
    UNFINISHED,
    Answers,
    is_convex,
    node_columns,
    solved_columns,
    write_relaxed,
    write_solved,
)
from exactsel.kernels.refit import gram_refit, newton_refit
from exactsel.kernels.rows import total_value
from exactsel.kernels.selection import prox_k_support
from exactsel.rounding import UNIT
from exactsel.types import BoolArray, FloatArray, IntArray, StateArray


class Groups(NamedTuple):
    """The columns of every unit, one unit after the other: unit g has members[first[g]:first[g + 1]]."""

    members: IntArray
    first: IntArray


class Spans(NamedTuple):
    """The columns of a node, unit by unit in the node's order: unit i has columns[first[i]:first[i + 1]]."""

    columns: IntArray
    first: IntArray


def local_data(data: Any, columns: IntArray) -> Any:
    """What the node's own columns need of the data."""
    return _gram_local(data, columns) if isinstance(data, GramData) else data


def image_of(data: Any, columns: IntArray, x: FloatArray) -> FloatArray:
    """The image of a model on ``columns``; ``data`` are the node's."""
    return _gram_image(data, columns, x) if isinstance(data, GramData) else _raw_image(data, columns, x)


def dual_at(
    loss: Any, data: Any, columns: IntArray, x: FloatArray, image: FloatArray, q: FloatArray, v: FloatArray
) -> float:
    """``base`` and q of formula (2) at the model's own dual vector, and v, the gradient of the loss."""
    at = _gram_dual if isinstance(data, GramData) else _raw_dual
    return float(at(loss, data, columns, x, image, q, v))


def smooth_value(loss: Any, data: Any, x: FloatArray, image: FloatArray) -> float:
    """L at the model."""
    return float((_gram_value if isinstance(data, GramData) else _raw_value)(loss, data, x, image))


def minimiser(loss: Any, data: Any, lam: float, columns: IntArray, x: FloatArray, hopeless: float) -> bool:
    """Overwrite the start x by the best model on ``columns`` (``data`` are all of them); whether that worked."""
    return bool(
        (_gram_minimiser if isinstance(data, GramData) else _raw_minimiser)(loss, data, lam, columns, x, hopeless)
    )


def _gram_local(data: Any, columns: IntArray) -> Any:
    m = columns.size
    G, b, norms = np.empty((m, m)), np.empty(m), np.empty(m)
    for i in range(m):
        for j in range(m):
            G[i, j] = data.G[columns[i], columns[j]]
        b[i] = data.b[columns[i]]
        norms[i] = data.norms[columns[i]]
    return GramData(G, b, data.constant, data.rows, norms)


def _same(data: Any, columns: IntArray) -> Any:
    return data


def _gram_image(data: Any, columns: IntArray, x: FloatArray) -> FloatArray:
    image = np.empty(x.size)
    symmetric_times_sparse(data.G, x, image)
    return image


def _raw_image(data: Any, columns: IntArray, x: FloatArray) -> FloatArray:
    image = np.empty(data.y.size)
    predict(data.AT, columns, x, image)
    return image


def _gram_dual(
    loss: Any, data: Any, columns: IntArray, x: FloatArray, image: FloatArray, q: FloatArray, v: FloatArray
) -> float:
    for i in range(x.size):
        v[i] = image[i] - data.b[i]
    return float(dual_from_gram(image, data.b, data.constant, data.rows, data.norms, x, q))


def _raw_dual(
    loss: Any, data: Any, columns: IntArray, x: FloatArray, image: FloatArray, q: FloatArray, v: FloatArray
) -> float:
    return float(dual_at_point(loss, data.AT, data.y, data.norms, columns, image, np.empty(data.y.size), q, v))


def _gram_value(loss: Any, data: Any, x: FloatArray, image: FloatArray) -> float:
    return float(data.constant + 0.5 * dot(x, image) - dot(x, data.b))


def _raw_value(loss: Any, data: Any, x: FloatArray, image: FloatArray) -> float:
    return float(total_value(loss, image, data.y, np.empty(data.y.size), np.empty(data.y.size)))


def _gram_minimiser(loss: Any, data: Any, lam: float, columns: IntArray, x: FloatArray, hopeless: float) -> bool:
    return bool(gram_refit(data.G, data.b, data.constant, lam, columns, x) > -np.inf)


def _raw_minimiser(loss: Any, data: Any, lam: float, columns: IntArray, x: FloatArray, hopeless: float) -> bool:
    newton_refit(loss, data.AT, data.y, lam, columns, 0.0, x, np.empty(data.y.size), hopeless)
    return True


def _is_gram(data: Any) -> bool:
    """Whether the compiler's type of ``data`` is that of a Gram matrix."""
    return bool(data.instance_class is GramData)


@overload(local_data)
def _choose_local(data: Any, columns: IntArray) -> Callable[..., Any]:
    return _gram_local if _is_gram(data) else _same


@overload(image_of)
def _choose_image(data: Any, columns: IntArray, x: FloatArray) -> Callable[..., Any]:
    return _gram_image if _is_gram(data) else _raw_image


@overload(dual_at)
def _choose_dual(
    loss: Any, data: Any, columns: IntArray, x: FloatArray, image: FloatArray, q: FloatArray, v: FloatArray
) -> Callable[..., Any]:
    return _gram_dual if _is_gram(data) else _raw_dual


@overload(smooth_value)
def _choose_value(loss: Any, data: Any, x: FloatArray, image: FloatArray) -> Callable[..., Any]:
    return _gram_value if _is_gram(data) else _raw_value


@overload(minimiser)
def _choose_minimiser(
    loss: Any, data: Any, lam: float, columns: IntArray, x: FloatArray, hopeless: float
) -> Callable[..., Any]:
    return _gram_minimiser if _is_gram(data) else _raw_minimiser


@njit
def spans_of(groups: Groups, units: IntArray) -> Spans:
    """The columns of some units."""
    first = np.zeros(units.size + 1, dtype=np.int64)
    for i in range(units.size):
        first[i + 1] = first[i] + groups.first[units[i] + 1] - groups.first[units[i]]
    columns = np.empty(first[units.size], dtype=np.int64)
    for i in range(units.size):
        columns[first[i] : first[i + 1]] = groups.members[groups.first[units[i]] : groups.first[units[i] + 1]]
    return Spans(columns, first)


@njit
def unit_sums(q: FloatArray, first: IntArray, totals: FloatArray) -> None:
    """Sums of the non-negative q over the columns of every unit, rounded upwards."""
    for i in range(totals.size):
        total = 0.0
        for j in range(first[i], first[i + 1]):
            total += q[j]
        size = first[i + 1] - first[i]
        totals[i] = total * (1.0 + (size + 2) * UNIT) if size > 1 else total


@njit
def unit_lengths(x: FloatArray, first: IntArray, lengths: FloatArray) -> None:
    """Euclidean lengths of x in every unit."""
    for i in range(lengths.size):
        part = x[first[i] : first[i + 1]]
        lengths[i] = abs(part[0]) if part.size == 1 else dot(part, part) ** 0.5


@njit
def prox_units(
    u: FloatArray, first: IntArray, fixed: int, places: int, weight: float, guess: float,
    lengths: FloatArray, shrunk: FloatArray, x: FloatArray,
) -> tuple[float, float]:  # fmt: skip
    """:func:`exactsel.kernels.selection.prox_k_support` of the units' lengths, every unit of x along its own u.

    The first ``fixed`` units are S. ``lengths`` and ``shrunk`` receive the units' lengths in u and in x.
    """
    unit_lengths(u, first, lengths)
    norm, level = prox_k_support(lengths, fixed, places, weight, guess, shrunk)
    for i in range(lengths.size):
        factor = shrunk[i] / lengths[i] if lengths[i] > 0.0 else 0.0
        for j in range(first[i], first[i + 1]):
            x[j] = factor * u[j]
    return norm, level


@njit
def grouped_node(
    loss: Any, data: Any, groups: Groups, lam: float, k: int, rules: Rules, state: StateArray, start: FloatArray,
    cutoff: float, known: float, stop: BoolArray, answers: Answers, points: FloatArray, row: int,
) -> None:  # fmt: skip
    """Bound one node: the state says what is known of each unit, ``start`` and ``points[row]`` hold models (d,)."""
    units, fixed = node_columns(state)
    if is_convex(units, fixed, k):
        _solve_convex(loss, data, groups, lam, solved_columns(units, fixed, k), start, cutoff, answers, points, row)
        return
    spans = spans_of(groups, units)
    columns, first = spans.columns, spans.first
    m, count, places = columns.size, units.size, k - fixed
    here = local_data(data, columns)
    x, q, v, sums = np.empty(m), np.empty(m), np.empty(m), np.empty(count)
    for i in range(m):
        x[i] = start[columns[i]]
    w, new, u, point, point_sums = x.copy(), x.copy(), np.empty(m), x.copy(), np.zeros(count)
    lengths, shrunk, ranked = np.empty(count), np.empty(count), np.empty(places + 1)
    best, relaxation, point_base, level, t = -np.inf, np.inf, -np.inf, 0.0, 1.0
    step = 1.0 / rules.lipschitz
    iterations = 0
    finished = True
    while True:
        base = dual_at(loss, here, columns, w, image_of(here, columns, w), q, v)
        unit_sums(q, first, sums)
        bound = node_bound(base, sums, fixed, places, lam, ranked)
        if bound > best:
            best, point_base = bound, base
            point[:] = w
            point_sums[:] = sums
        if best >= cutoff or iterations >= rules.max_iterations or settled(best, relaxation, cutoff, known, rules):
            break
        if stop[0]:
            finished = False
            break
        iterations += 1
        for i in range(m):
            u[i] = w[i] - step * v[i]
        norm, level = prox_units(u, first, fixed, places, step * lam, level, lengths, shrunk, new)
        value = smooth_value(loss, here, new, image_of(here, columns, new))
        relaxation = min(relaxation, value + 0.5 * lam * norm)
        if turns_back(w, new, x):
            t = 1.0
            w[:] = new
        else:
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
            extrapolate(w, new, x, (t - 1.0) / following)
            t = following
        x[:] = new
    unit_lengths(x, first, shrunk)
    write_relaxed(answers, row, units, fixed, k, lam, point_base, point_sums, shrunk, shrunk, cutoff)
    for i in range(m):
        points[row, columns[i]] = point[i]
    answers.iterations[row] = iterations
    if not finished:
        answers.status[row] = UNFINISHED


@njit
def _solve_convex(
    loss: Any, data: Any, groups: Groups, lam: float, units: IntArray, start: FloatArray, cutoff: float,
    answers: Answers, points: FloatArray, row: int,
) -> None:  # fmt: skip
    """Bound a node that holds one convex problem, the one on all columns of ``units``."""
    spans = spans_of(groups, units)
    columns, first = spans.columns, spans.first
    m, count = columns.size, units.size
    x, q, v, sums, lengths = np.empty(m), np.empty(m), np.empty(m), np.empty(count), np.empty(count)
    for i in range(m):
        x[i] = start[columns[i]]
    if not minimiser(loss, data, lam, columns, x, cutoff + 1e-12 * abs(cutoff)):
        answers.status[row] = ILL_CONDITIONED
        return
    here = local_data(data, columns)
    base = dual_at(loss, here, columns, x, image_of(here, columns, x), q, v)
    unit_sums(q, first, sums)
    bound = node_bound(base, sums, count, 0, lam, np.empty(1))
    unit_lengths(x, first, lengths)
    write_solved(answers, row, units, lengths, bound)
    for i in range(m):
        points[row, columns[i]] = x[i]
    if bound >= cutoff:
        answers.status[row] = CUT  # perhaps before x was the minimiser


@njit(parallel=True)
def apg_grouped(
    loss: Any, data: Any, groups: Groups, lam: float, k: int, rules: Rules, states: StateArray, starts: FloatArray,
    cutoff: float, known: FloatArray, stop: BoolArray, answers: Answers, points: FloatArray,
) -> None:  # fmt: skip
    """Bound every node (a row of ``states`` (B, units)), warm-started from ``starts`` (B, d).

    ``data`` are :class:`~exactsel.kernels.apg.GramData` (quadratic loss) or
    :class:`~exactsel.kernels.apg.RawData`. ``points`` (B, d) receives the models that prove the bounds; the models in
    ``answers`` are the lengths of their units.
    """
    for row in prange(states.shape[0]):
        grouped_node(
            loss, data, groups, lam, k, rules, states[row], starts[row], cutoff, known[row], stop, answers, points, row
        )
