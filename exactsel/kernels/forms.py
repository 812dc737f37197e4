"""Data of a node for accelerated proximal gradient (kernels/apg.py), from the data's rows or from their Gram matrix.

A *form* is a node's share of the data, with room to work in. The *image* of a model x is Ax for rows and A'Ax in Gram
form: values, gradients and dual vectors at x follow from it in O(n) or O(m), and the images of two models give that of
any point on the line through them. Where groups are chosen, kernels/grouped.py puts a third form around these two.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from exactsel._jit import choose_by_type, njit
from exactsel.kernels.columns import Columns, columns_of
from exactsel.kernels.dual import dual_at_point, dual_from_gram
from exactsel.kernels.linalg import combine_rows, correlate, dot, predict, symmetric_times_sparse
from exactsel.kernels.node import CUT, ILL_CONDITIONED, SOLVED
from exactsel.kernels.refit import gram_refit, newton_refit
from exactsel.kernels.rows import total_value
from exactsel.kernels.selection import prox_k_support
from exactsel.types import FloatArray, IntArray

LONG_STEP = 4.0
"""Steps on rows begin this many times as long as the Lipschitz constant calls for, which is that of all columns at the
largest curvature of the loss, and are halved when they overshoot. That cannot make a bound wrong, since any point gives
one (measured: half the iterations for logistic loss)."""

GATHERED = 4
"""Multiplications along memory that take as long as fetching one number from elsewhere."""


class GramData(NamedTuple):
    """What the quadratic loss needs of the data: G = A'A, b = A'y, ||y||^2/2, column norms, and how exact these are."""

    G: FloatArray
    b: FloatArray
    constant: float
    roundings: int
    """An entry of G is off by this many times UNIT times the norms of its two columns at most; so are those of b, and
    twice ``constant``, as if y were one more column."""
    norms: FloatArray
    AT: FloatArray
    """(d, n) A transposed where it is smaller than G and G is A'A as it stands; else (0, n)."""


class RowsForm(NamedTuple):
    """A node of any loss: all of the data, and which of their columns are the node's."""

    columns: IntArray
    image_size: int
    first_step: float
    """In units of 1 / Lipschitz constant; steps longer than 1 are checked."""
    extrapolates: bool
    """Whether the image of the point ahead is extrapolated, or computed anew."""
    AT: Columns
    y: FloatArray
    norms: FloatArray
    b: FloatArray
    """(n,) the dual vector of the last :func:`dual_value`."""
    values: FloatArray
    slopes: FloatArray


class GramForm(NamedTuple):
    """A node of quadratic loss: the whole Gram matrix, and room for the node's own part of it."""

    columns: IntArray
    image_size: int
    first_step: float
    extrapolates: bool
    G: FloatArray
    """(d, d) of all columns."""
    AT: FloatArray
    """As in :class:`GramData`."""
    part: FloatArray
    """(m, m) the node's part of G, once ``spent`` says that it was copied; no memory is touched before."""
    spent: IntArray
    """(1,) multiplications that the part would have saved so far; :data:`COPIED` once it is there."""
    room: FloatArray
    """(d,) for an image on all columns, or for predictions."""
    b: FloatArray
    constant: float
    roundings: int
    norms: FloatArray


COPIED = -1


@choose_by_type("data")
def form_of(data: Any, columns: IntArray) -> Any:
    """The form of a node with these columns."""
    n = data.y.size
    return RowsForm(
        columns, n, LONG_STEP, True, columns_of(data), data.y, data.norms, np.empty(n), np.empty(n), np.empty(n)
    )  # fmt: skip


@form_of.register(GramData)
def _gram_form(data: Any, columns: IntArray) -> Any:
    m = columns.size
    b, norms = np.empty(m), np.empty(m)
    for i in range(m):
        b[i] = data.b[columns[i]]
        norms[i] = data.norms[columns[i]]
    part, spent, room = np.empty((m, m)), np.zeros(1, dtype=np.int64), np.empty(data.b.size)
    return GramForm(
        columns, m, 1.0, True, data.G, data.AT, part, spent, room, b, data.constant, data.roundings, norms
    )  # fmt: skip


BY_DATA, BY_WHOLE, BY_PART = 0, 1, 2
"""How an image is found: as A'(Ax); from the columns of G that x uses, all their length; from the node's part of G."""


@njit
def way_of_image(x: FloatArray, d: int, n: int, spent: IntArray) -> int:
    """The way to the image of x that takes the least work, as counted in multiplications.

    n is 0 where A is not available. The node's part of G is copied before more than a quarter of what copying costs has
    gone into doing without it: few iterations, or few columns fixed to 0, never need it.
    """
    m, used = x.size, 0
    for i in range(m):
        if x[i] != 0.0:
            used += 1
    copied = spent[0] == COPIED
    if n > 0 and n * (m + used) < used * (m if copied else d):
        return BY_DATA
    if copied:
        return BY_PART
    more = used * (d - m) + GATHERED * m
    if spent[0] + more > m * m:
        return BY_PART
    spent[0] += more
    return BY_WHOLE


@njit
def copy_part(G: FloatArray, columns: IntArray, part: FloatArray) -> None:
    """part = G[columns][:, columns]."""
    for i in range(columns.size):
        row = G[columns[i]]
        for j in range(columns.size):
            part[i, j] = row[columns[j]]


@choose_by_type("form")
def write_image(form: Any, x: FloatArray, image: FloatArray) -> None:
    """Compute the image of x."""
    predict(form.AT, form.columns, x, image)


@write_image.register(GramForm)
def _gram_image(form: Any, x: FloatArray, image: FloatArray) -> None:
    # Every way is within what kernels/dual.py allows for; the last two give the same to the last bit.
    way = way_of_image(x, form.G.shape[0], form.AT.shape[1] if form.AT.size > 0 else 0, form.spent)
    if way == BY_DATA:
        predictions = form.room[: form.AT.shape[1]]
        predict(form.AT, form.columns, x, predictions)
        correlate(form.AT, form.columns, predictions, image)
    elif way == BY_WHOLE:
        combine_rows(form.G, form.columns, x, form.room)
        for i in range(image.size):
            image[i] = form.room[form.columns[i]]
    else:
        if form.spent[0] != COPIED:
            copy_part(form.G, form.columns, form.part)
            form.spent[0] = COPIED
        symmetric_times_sparse(form.part, x, image)


@choose_by_type("form")
def dual_value(
    loss: Any, form: Any, x: FloatArray, image: FloatArray, ahead: FloatArray, image_ahead: FloatArray, q: FloatArray,
    v: FloatArray,
) -> float:  # fmt: skip
    """``base`` and q of formula (2) at the dual vector of :func:`proven_by`; v, the gradient of the loss ``ahead``.

    With an intercept ``image_ahead`` comes back levelled, see :mod:`exactsel.kernels.levels`.
    """
    return float(dual_at_point(loss, form.AT, form.y, form.norms, form.columns, image_ahead, form.b, q, v))


@dual_value.register(GramForm)
def _gram_dual_value(
    loss: Any, form: Any, x: FloatArray, image: FloatArray, ahead: FloatArray, image_ahead: FloatArray, q: FloatArray,
    v: FloatArray,
) -> float:  # fmt: skip
    for i in range(v.size):
        v[i] = image_ahead[i] - form.b[i]
    return float(dual_from_gram(image, form.b, form.constant, form.roundings, form.norms, x, q))


@choose_by_type("form")
def proven_by(form: Any, x: FloatArray, ahead: FloatArray) -> FloatArray:
    """The point whose gradient is the dual vector of :func:`dual_value`: where the gradient is needed anyway."""
    return ahead


@proven_by.register(GramForm)
def _gram_proven_by(form: Any, x: FloatArray, ahead: FloatArray) -> FloatArray:
    return x  # costs O(m) more, and its image was computed, not extrapolated


@choose_by_type("form")
def smooth_value(loss: Any, form: Any, x: FloatArray, image: FloatArray) -> float:
    """L at x; with an intercept ``image`` comes back levelled."""
    return float(total_value(loss, image, form.y, form.values, form.slopes))


@smooth_value.register(GramForm)
def _gram_smooth_value(loss: Any, form: Any, x: FloatArray, image: FloatArray) -> float:
    return float(form.constant + 0.5 * dot(x, image) - dot(x, form.b))


@choose_by_type("form")
def value_ahead(loss: Any, form: Any, base: float, ahead: FloatArray, image_ahead: FloatArray) -> float:
    """L at the point ``ahead`` whose :func:`dual_value` is ``base``."""
    return float(smooth_value(loss, form, ahead, image_ahead))


@value_ahead.register(RowsForm)
def _rows_value_ahead(loss: Any, form: Any, base: float, ahead: FloatArray, image_ahead: FloatArray) -> float:
    return float(base + dot(form.b, image_ahead))  # Fenchel's equality


@choose_by_type("form")
def prox(
    form: Any, u: FloatArray, fixed: int, slots: int, weight: float, guess: float, x: FloatArray
) -> tuple[float, float]:
    """:func:`exactsel.kernels.selection.prox_k_support` of what is chosen, columns or groups of them."""
    norm, level = prox_k_support(u, fixed, slots, weight, guess, x)
    return norm, level


@choose_by_type("form")
def sizes(form: Any, x: FloatArray) -> FloatArray:
    """Of what is chosen: coefficients of columns, or lengths of groups."""
    return x


@choose_by_type("form")
def stalled(form: Any, best: float, iterations: int) -> bool:
    """Whether steps bring bounds no further although the relaxation is not solved, as it lacks some restriction."""
    return False


@choose_by_type("form")
def minimise(loss: Any, form: Any, data: Any, lam: float, x: FloatArray, image: FloatArray, stop_above: float) -> int:
    """Overwrite the start x by the best model on all columns of the form, and ``image`` by its image.

    Returns ILL_CONDITIONED where that failed. Otherwise what a node is called whose bound reaches the cut-off
    ``stop_above``: SOLVED, or CUT where x may then not be the minimiser.
    """
    newton_refit(loss, form.AT, form.y, lam, form.columns, 0.0, x, image, stop_above)
    return CUT


@minimise.register(GramForm)
def _gram_minimise(
    loss: Any, form: Any, data: Any, lam: float, x: FloatArray, image: FloatArray, stop_above: float
) -> int:
    if not gram_refit(data.G, data.b, data.constant, lam, form.columns, x) > -np.inf:
        return ILL_CONDITIONED
    write_image(form, x, image)
    return SOLVED
