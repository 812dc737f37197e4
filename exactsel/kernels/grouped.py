"""Groups of columns as what is chosen: what accelerated proximal gradient (kernels/apg.py) then does otherwise.

A group counts as one unit of the search: states, places and answers speak of units, data and models of columns. Every
formula of the plain problem holds with q_g = the sum of q_j over the columns of g in place of q_j, for a group adds at
most that much to the conjugate of the ridge. The prox of its relaxation is the plain prox of the groups' lengths, each
group scaled along (Yuan and Lin 2006 do the same with the group lasso).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from exactsel._jit import choose_by_type, njit
from exactsel.kernels.forms import (
    dual_value,
    form_of,
    minimise,
    prox,
    sizes,
    smooth_value,
    write_image,
)
from exactsel.kernels.linalg import dot
from exactsel.kernels.node import CUT, ILL_CONDITIONED
from exactsel.kernels.selection import prox_k_support
from exactsel.rounding import UNIT
from exactsel.types import FloatArray, IntArray


class Groups(NamedTuple):
    """The columns of every unit, one unit after the other: unit g has members[first[g]:first[g + 1]]."""

    members: IntArray
    first: IntArray


class RedundantColumns(NamedTuple):
    """The columns of a node, unit by unit in the node's order: unit i has columns[first[i]:first[i + 1]]."""

    columns: IntArray
    first: IntArray


class GroupedForm(NamedTuple):
    """A node whose units are groups: the form of their columns, and room for one number a unit or column."""

    columns: IntArray
    image_size: int
    first_step: float
    extrapolates: bool
    inner: Any
    first: IntArray
    """As in :class:`RedundantColumns`."""
    q: FloatArray
    lengths: FloatArray
    shrunk: FloatArray


@njit
def spans_of(groups: Groups, units: IntArray) -> RedundantColumns:
    """The columns of some units."""
    first = np.zeros(units.size + 1, dtype=np.int64)
    for i in range(units.size):
        first[i + 1] = first[i] + groups.first[units[i] + 1] - groups.first[units[i]]
    columns = np.empty(first[units.size], dtype=np.int64)
    for i in range(units.size):
        columns[first[i] : first[i + 1]] = groups.members[groups.first[units[i]] : groups.first[units[i] + 1]]
    return RedundantColumns(columns, first)


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
    u: FloatArray, first: IntArray, fixed: int, slots: int, weight: float, guess: float,
    lengths: FloatArray, shrunk: FloatArray, x: FloatArray,
) -> tuple[float, float]:  # fmt: skip
    """:func:`exactsel.kernels.selection.prox_k_support` of the units' lengths, every unit of x along its own u.

    The first ``fixed`` units are S. ``lengths`` and ``shrunk`` receive the units' lengths in u and in x.
    """
    unit_lengths(u, first, lengths)
    norm, level = prox_k_support(lengths, fixed, slots, weight, guess, shrunk)
    for i in range(lengths.size):
        factor = shrunk[i] / lengths[i] if lengths[i] > 0.0 else 0.0
        for j in range(first[i], first[i + 1]):
            x[j] = factor * u[j]
    return norm, level


@choose_by_type("groups")
def node_form(groups: Any, data: Any, units: IntArray) -> Any:
    """The form (kernels/forms.py) of a node with these units; ``groups`` are None where units are columns."""
    return form_of(data, units)


@node_form.register(Groups)
def _grouped_node_form(groups: Any, data: Any, units: IntArray) -> Any:
    spans = spans_of(groups, units)
    inner = form_of(data, spans.columns)
    room, lengths, shrunk = np.empty(spans.columns.size), np.empty(units.size), np.empty(units.size)
    return GroupedForm(spans.columns, inner.image_size, 1.0, False, inner, spans.first, room, lengths, shrunk)


@write_image.register(GroupedForm)
def _grouped_image(form: Any, x: FloatArray, image: FloatArray) -> None:
    write_image(form.inner, x, image)


@dual_value.register(GroupedForm)
def _grouped_dual_value(
    loss: Any, form: Any, x: FloatArray, image: FloatArray, ahead: FloatArray, image_ahead: FloatArray, q: FloatArray,
    v: FloatArray,
) -> float:  # fmt: skip
    base = dual_value(loss, form.inner, ahead, image_ahead, ahead, image_ahead, form.q, v)
    unit_sums(form.q, form.first, q)
    return float(base)


@smooth_value.register(GroupedForm)
def _grouped_smooth_value(loss: Any, form: Any, x: FloatArray, image: FloatArray) -> float:
    return float(smooth_value(loss, form.inner, x, image))


@prox.register(GroupedForm)
def _grouped_prox(
    form: Any, u: FloatArray, fixed: int, slots: int, weight: float, guess: float, x: FloatArray
) -> tuple[float, float]:
    norm, level = prox_units(u, form.first, fixed, slots, weight, guess, form.lengths, form.shrunk, x)
    return norm, level


@sizes.register(GroupedForm)
def _grouped_sizes(form: Any, x: FloatArray) -> FloatArray:
    lengths: FloatArray = form.shrunk
    unit_lengths(x, form.first, lengths)
    return lengths


@minimise.register(GroupedForm)
def _grouped_minimise(
    loss: Any, form: Any, data: Any, lam: float, x: FloatArray, image: FloatArray, stop_above: float
) -> int:
    if minimise(loss, form.inner, data, lam, x, image, stop_above) == ILL_CONDITIONED:
        return ILL_CONDITIONED
    write_image(form.inner, x, image)
    return CUT
