"""What is interpreted in the place of kernels with long loops is the same as their own text."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from own_loss import PseudoHuber
from samples import examples

from exactsel import Huber, Logistic, Poisson, Problem, Quadratic, SquaredHinge, _jit
from exactsel.enumeration.closed_form import walk_data
from exactsel.kernels import (
    leaf_candidate,
    leaf_closing,
    leaf_fit,
    leaf_rows,
    levels,
    linalg,
    listing,
    minorant,
    rows,
    triples,
)
from exactsel.kernels.counting import count_workspace, eliminate
from exactsel.losses.adjusted import adjusted
from exactsel.losses.base import curvature_known

pytestmark = pytest.mark.skipif(not _jit.ENABLED, reason="every kernel's own text runs")

LABELLED = (Logistic, SquaredHinge)

SEEDS = st.integers(0, 2**32)


def both(kernel, *arguments):
    """What the two return, and their arguments afterwards."""
    outcomes = []
    for text in (kernel.py_func, kernel.text):
        copies = [value.copy() if isinstance(value, np.ndarray) else value for value in arguments]
        with np.errstate(all="ignore"):
            outcomes.append((text(*copies), [value for value in copies if isinstance(value, np.ndarray)]))
    assert kernel.text is not kernel.py_func
    return outcomes


def agree(kernel, *arguments):
    (value, arrays), (other, others) = both(kernel, *arguments)
    assert (value is None) == (other is None)
    if value is not None:
        np.testing.assert_allclose(other, value, rtol=1e-9, atol=1e-10)
    for array, another in zip(arrays, others, strict=True):
        np.testing.assert_allclose(another, array, rtol=1e-8, atol=1e-9 * abs(array).max(initial=1.0))


@given(SEEDS)
def test_vectors(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 40))
    a, b, c, d, v = rng.standard_normal((5, n))
    agree(linalg.dot, a, b)
    agree(linalg.add_scaled, v, float(rng.standard_normal()), a)
    agree(linalg.add_four, v, np.array([a, b, c, d, v]), rng.integers(0, 5, 4), rng.standard_normal(4))
    agree(linalg.four_dots, a, b, c, d, v, np.empty(4) * 0.0)
    for loss in (Huber(0.5), *(adjusted(Huber(0.5), None, levelled, n) for levelled in (False, True))):
        agree(rows.scale_column, loss, a, abs(b), np.zeros(n))
        agree(rows.scale_column, loss, a, np.zeros(n), np.zeros(n))


def room_for(rng, m):
    """A symmetric matrix, nearly always of correlations, and memory for what is said of it."""
    X = rng.standard_normal((m + int(rng.integers(1, 6)), m)) + rng.choice([0.0, 1.0, 3.0]) * rng.standard_normal(
        (1, m)
    )
    M = X.T @ X * 10.0 ** rng.integers(-3, 4)
    for j in np.flatnonzero(rng.random(m) < 0.1):
        M[j, j] = np.inf
    if rng.random() < 0.2:
        M[m - 1, 0] = M[0, m - 1] = np.nan
    return M, triples.triple_workspace(m + 3)


@given(SEEDS)
@examples(200, 400)
def test_triples(seed):
    """All three texts leave the same marks; where they round otherwise a margin of the numbers compared decides."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 30))
    M, room = room_for(rng, m)
    copies = [type(room)(*(array.copy() for array in room)) for _ in range(2)]
    texts = [
        [getattr(getattr(triples, name), text) for name in ("_cosines", "_closer_look", "_left", "_four_clear")]
        for text in ("py_func", "text")
    ]
    with np.errstate(all="ignore"):
        for (cosines, *_), here in zip(texts, copies, strict=True):
            cosines(M, m, here)
            here.reach[:m] = 0.0
        np.testing.assert_array_equal(copies[0].cosines[:m], copies[1].cosines[:m])
        np.testing.assert_array_equal(copies[0].scale[:m], copies[1].scale[:m])
        for l in range(m - 1):
            counts = [look(l, m, here) for (_, look, *_), here in zip(texts, copies, strict=True)]
            assert counts[0] == counts[1]
            np.testing.assert_array_equal(copies[0].rows[: counts[0]], copies[1].rows[: counts[0]])
            np.testing.assert_array_equal(copies[0].reach[:m], copies[1].reach[:m])
            if counts[0]:
                wanted = (l + triples.LANES - 1) // triples.LANES * triples.LANES
                distinct = [left(l, wanted, here) for (_, _, left, _), here in zip(texts, copies, strict=True)]
                clear = [
                    [four(l, wanted, at, counts[0], here) for at in range(0, counts[0], 4)]
                    for (*_, four), here in zip(texts, copies, strict=True)
                ]
                assert distinct[0] == distinct[1]
                assert clear[0] == clear[1]


@given(SEEDS)
@examples(100, 200)
def test_elimination(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(3, 20)), int(rng.integers(2, 12))
    A = rng.standard_normal((n, d))
    if rng.random() < 0.3:
        A[:, -1] = A[:, 0]
    problem = Problem(A, rng.standard_normal(n), min(d, 3), lam=float(rng.choice([0.1, 1e-9])))
    data = walk_data(problem, None)
    rooms = [count_workspace(d), count_workspace(d)]
    order, included = rng.permutation(d), int(rng.integers(0, d))
    level = float(rng.random()) * data.constant
    answers = []
    for text, room in zip((eliminate.py_func, eliminate.text), rooms, strict=True):
        room.order[:d] = order
        with np.errstate(all="ignore"):
            answers.append(text(data, included, d, level, 1e-12, room))
    assert answers[0] == answers[1]
    if answers[0]:
        left = np.tril_indices(d - included)
        scale = abs(rooms[0].M[: d - included, : d - included][left]).max(initial=1.0)
        np.testing.assert_allclose(
            rooms[1].M[: d - included, : d - included][left], rooms[0].M[: d - included, : d - included][left],
            rtol=1e-9, atol=1e-10 * scale,
        )  # fmt: skip
    assert eliminate.text(data, included, d, level, np.inf, rooms[1]) is False


LOSSES = (Quadratic(), Huber(0.5), Logistic(), Poisson(), SquaredHinge(), PseudoHuber(0.7))


@given(SEEDS, st.sampled_from(LOSSES), st.booleans())
def test_rows_of_losses(seed, loss, intercept):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    z = 10.0 ** rng.integers(-2, 4) * rng.standard_normal(n)
    y = np.where(np.arange(n) % 2, 1.0, -1.0) if isinstance(loss, LABELLED) else rng.standard_normal(n)
    y = rng.poisson(2.0, n).astype(float) if isinstance(loss, Poisson) else y
    if isinstance(loss, Poisson):
        z = np.clip(z, -700.0, 310.0)
    if isinstance(loss, Logistic):
        agree(levels.logistic_rows, z, y, np.zeros(n), np.zeros(n))
    out = np.zeros(n)
    agree(levels.rows_in_turn, loss, z, y, out, np.zeros(n))
    agree(levels.bends_in_turn, loss, z, y, False, out)
    agree(levels.bends_in_turn, loss, z, y, True, out)
    agree(rows.sum_in_turn, loss, z, y)
    agree(rows.slopes_in_turn, loss, z, y, out)
    agree(minorant.rows_at, loss, z, y, out, out, out)
    if curvature_known(loss):
        spread = abs(z) * rng.random(n)
        agree(minorant.curvatures_on, loss, z - spread, z + 0.5 * spread, z, y, out)
    agree(rows._part_of_sum, z, y, out, z)
    agree(rows._sum, z)
    agree(levels._raise, z, 0.3)
    agree(levels._scale_sides, z, 0.3, 0.7)
    agree(levels._weigh, abs(y), z, out)
    if isinstance(loss, PseudoHuber | Quadratic):
        return
    loss = adjusted(loss, 1.0 + rng.random(n), intercept, n)
    values, slopes = np.zeros(n), np.zeros(n)
    levels.plain_rows(loss, z, y, values, slopes)
    agree(levels.sides, loss, z, y, slopes)
    agree(levels._steepness, loss, z, y)
    agree(levels._extent, loss, z, y)
    agree(levels._both_sides, loss, z, y, values, slopes)


@given(SEEDS, st.integers(0, 9))
def test_the_last_place(seed, k):
    """Sums over rows for the sets that one or two more columns make."""
    rng = np.random.default_rng(seed)
    n, weights = int(rng.integers(2, 30)), 1.0 + rng.random(40)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    fit = leaf_fit.empty_fit.py_func(np.arange(k), np.zeros(k), weights[:n], bool(rng.integers(2)))
    fit = fit._replace(**{name: rng.random(getattr(fit, name).shape) for name in (
        "included", "z", "weights", "roots", "upward", "downward", "thirds", "fourths", "of_pi", "of_rest",
    )}, b=-y * weights[:n] * rng.random(n))  # fmt: skip
    first, second, r = rng.standard_normal((3, n))
    out = np.zeros(n)
    agree(leaf_rows._step_rows, y, fit._replace(rows=np.ones(n)), first, second, 0.3, -0.2, out)
    agree(leaf_rows._step_weighted_rows, y, fit, first, second, 0.3, -0.2, 0.1, out)
    agree(leaf_rows._sums_of_step, y, fit, first, second, 0.3, -0.2, 0.1)
    agree(leaf_rows._sizes_of_rows, fit, first)
    agree(leaf_candidate._residual, fit, rng.standard_normal(fit.x.size), first, out)
    agree(leaf_candidate._moments, fit, r, out, out, out)
    agree(leaf_candidate.largest, abs(r))
    agree(leaf_closing._eight_dots, first, second, r, y, first, r, np.zeros((2, 6)), 2)
    agree(linalg.extrapolate, out, first, second, 0.7)
    sums = [text(fit._replace(weights=w)) for text, w in
            zip((leaf_fit._bends.py_func, leaf_fit._bends.text), (out, r), strict=True)]  # fmt: skip
    np.testing.assert_allclose(sums[0], sums[1], rtol=1e-12)
    np.testing.assert_allclose(out, r, rtol=1e-12)


@given(SEEDS)
def test_listing(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 12))
    A = rng.standard_normal((m + 3, m))
    H, h, x = A.T @ A, rng.standard_normal(m), 10.0 ** rng.integers(-3, 3) * rng.standard_normal(m)
    q = listing.Quadratic(H, h, np.sqrt(H.diagonal()), 0.1)
    columns, count = rng.permutation(m), int(rng.integers(0, m + 1))
    agree(listing.lowest, q, columns, count, x)
    agree(listing._inverse, H, columns, count, np.zeros((m, m)))
    flags = rng.integers(0, 3, m).astype(np.int8)
    agree(listing.without, np.linalg.inv(H), x, flags, int(rng.integers(m)), np.zeros((m, m)), np.zeros(m))
    exact = lowest_exactly(q, columns[:count], x)
    assert listing.lowest.text(q, columns, count, x) <= exact


def lowest_exactly(q, columns, x):
    """The formula of both in fractions, which neither must exceed: q over models on the columns is at least that."""
    H = [[Fraction(q.H[a, b]) for b in columns] for a in columns]
    h, xs = [Fraction(q.h[a]) for a in columns], [Fraction(value) for value in x[: len(columns)]]
    v = [sum((p * z for p, z in zip(row, xs, strict=True)), Fraction(0)) - b for row, b in zip(H, h, strict=True)]
    value = sum((z * (w - b) for z, w, b in zip(xs, v, h, strict=True)), Fraction(0)) / 2
    lengths = [Fraction(q.lengths[a]) for a in columns]
    rest = sum(((w / length) ** 2 for w, length in zip(v, lengths, strict=True)), Fraction(0))
    return value - rest / 2 / Fraction(q.convexity)
