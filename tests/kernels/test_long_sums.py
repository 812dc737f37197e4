"""Sums over many rows: whatever they are off by in fractions is less than what is allowed for, which stops growing."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exactsel.algebra.extended import BLOCK, ROUNDINGS, blocked_products, inner_products, rounded_products
from exactsel.kernels.dual import dual_at_vector
from exactsel.kernels.linalg import BLOCK as ROWS
from exactsel.kernels.linalg import correlate, sum_roundings
from exactsel.kernels.rows import lower_sum
from exactsel.losses.huber import Huber
from exactsel.problem.storing import stored_columns
from exactsel.rounding import UNIT
from exactsel_certificates.rigorous import gamma
from exactsel_certificates.sums import blocked_roundings, blocked_sums, careful_products, product_roundings, products


def exact_products(vectors):
    """Inner products as fractions."""
    rows = [[Fraction(value) for value in row] for row in vectors.tolist()]
    return [[sum((a * b for a, b in zip(u, v, strict=True)), Fraction(0)) for v in rows] for u in rows]


def awkward_vectors(rng, m, n):
    """Of very different magnitude, spiky, empty, nearly alike, cancelling."""
    vectors = rng.standard_normal((m, n)) * 10.0 ** rng.uniform(-6, 6, (m, n))
    vectors[rng.random((m, n)) < 0.2] = 0.0
    vectors[0] *= 10.0 ** rng.uniform(-120, 120)
    vectors[1] = vectors[0] * (1.0 + 1e-12 * rng.standard_normal(n))
    vectors[2] = 0.0
    vectors[3] = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    return vectors


def farthest(found, vectors):
    """How many roundings of the product of two lengths an entry is off by, at most."""
    exact, most = exact_products(vectors), 0.0
    for i, row in enumerate(exact):
        for j, value in enumerate(row):
            off = abs(Fraction(float(found[i, j])) - value)
            size = exact[i][i] * exact[j][j]
            if size == 0:
                assert off == 0
            else:
                most = max(most, math.sqrt(off * off / size) / UNIT)
    return most


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([1, 2, 7, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 3]))
def test_products_are_rounded_once(seed, n):
    rng = np.random.default_rng(seed)
    vectors = awkward_vectors(rng, 5, n)
    found = rounded_products(vectors[:-1], vectors[-1])
    assert np.array_equal(found, found.T)
    assert farthest(found, vectors) <= ROUNDINGS


@pytest.mark.parametrize("n", [3, BLOCK, 3 * BLOCK + 1])
def test_products_of_many_vectors_are_formed_in_blocks(n):
    vectors = awkward_vectors(np.random.default_rng(n), 5, n)
    assert farthest(blocked_products(vectors[:-1], vectors[-1]), vectors) <= min(n, BLOCK) + 2


def test_how_exact_products_are_does_not_depend_on_the_rows():
    rng = np.random.default_rng(0)
    for m in (3, 600):
        roundings = {inner_products(rng.standard_normal((m, n)), np.ones(n))[1] for n in (2 * BLOCK, 8 * BLOCK)}
        assert len(roundings) == 1
        assert roundings.pop() <= BLOCK + 2


def test_many_blocks_lose_nothing():
    """The worst case for sums in a row: everything cancels but the last entries."""
    n = 200 * BLOCK
    big = np.where(np.arange(n) % 2 == 0, 1e8, 1e8 + 1.0)
    signs = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    found = rounded_products(big[None], signs)
    assert found[0, 1] == -n / 2
    assert found[0, 0] == n / 2 * (1e16 + (1e8 + 1.0) ** 2)


@pytest.mark.parametrize(("n", "filled"), [(ROWS - 1, 1.0), (ROWS, 1.0), (3 * ROWS + 5, 1.0), (15 * ROWS, 0.1)])
def test_correlations_are_off_by_no_more_roundings_than_are_counted(n, filled):
    rng = np.random.default_rng(n)
    AT = rng.standard_normal((2, n)) * 10.0 ** rng.uniform(-3, 3, (2, n))
    AT[0, rng.random(n) > filled] = 0.0
    b = rng.standard_normal(n)
    data, _ = stored_columns(AT, False)
    assert (data.rows.size > ROWS) == (filled < 1.0), "columns by their entries, in more than one block"
    v, columns = np.empty(2), np.arange(2)
    correlate(data, columns, b, v)
    for j in columns:
        terms = [Fraction(p) * Fraction(q) for p, q in zip(AT[j].tolist(), b.tolist(), strict=True)]
        most = sum_roundings(n) * UNIT * float(sum(map(abs, terms)))
        assert abs(Fraction(float(v[j])) - sum(terms)) <= most


@pytest.mark.parametrize("n", [ROWS, 3 * ROWS + 5])
def test_a_lower_sum_is_below_the_sum(n):
    rng = np.random.default_rng(n)
    values, z, y, b = rng.standard_normal((4, n)) * 10.0 ** rng.uniform(-4, 4, (4, n))
    exact = sum(
        (
            Fraction(p) - Fraction(q) * Fraction(r)
            for p, q, r in zip(*(v.tolist() for v in (values, b, z)), strict=True)
        ),
        Fraction(0),
    )
    low = lower_sum(values, z, y, b)
    sizes = float(np.sum(np.abs(values) + np.abs(b) * (np.abs(z) + np.abs(y) + np.abs(b))))
    assert 0 < exact - Fraction(low) <= 2.1 * (sum_roundings(n) + 32) * UNIT * sizes


def test_roundings_of_rows_stop_growing():
    assert [sum_roundings(n) for n in (1, 442, ROWS)] == [1, 442, ROWS], "as before where rows are few"
    assert sum_roundings(1_000_000) < ROWS + 250


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([1, 64, 65, 511, 513, 1600]))
def test_the_checkers_sums_are_off_by_no_more_roundings_than_it_counts(seed, n):
    rng = np.random.default_rng(seed)
    left, right = rng.standard_normal((2, n)), rng.standard_normal((n, 2)) * 10.0 ** rng.uniform(-5, 5, (n, 2))
    found, sums, (careful, many) = products(left, right), blocked_sums(left), careful_products(left, right)
    for i in range(2):
        rows = [Fraction(value) for value in left[i].tolist()]
        room = gamma(blocked_roundings(n)) * float(np.sum(np.abs(left[i])))
        assert abs(Fraction(float(sums[i])) - sum(rows)) <= room
        for j in range(2):
            exact = sum(a * Fraction(b) for a, b in zip(rows, right[:, j].tolist(), strict=True))
            room = gamma(product_roundings(n)) * float(np.abs(left[i]) @ np.abs(right[:, j])) * (1 + 1e-9)
            assert abs(Fraction(float(found[i, j])) - exact) <= room
            room *= gamma(many) / gamma(product_roundings(n))
            assert abs(Fraction(float(careful[i, j])) - exact) <= room


def test_the_checkers_roundings_grow_with_the_root_of_the_rows():
    for n in (1, 300, 512):
        assert product_roundings(n) <= n + 1
    assert product_roundings(10_000) < 550
    assert product_roundings(1_000_000) < 2_010
    A = np.ones((50_000, 2))
    assert careful_products(A.T, A)[1] == careful_products(A[:100].T, A[:100])[1] == 66, "these do not"


def test_the_conjugate_in_blocks_is_below_the_exact_one():
    rng = np.random.default_rng(3)
    n = 2 * ROWS + 9
    loss, y = Huber(1.0), rng.standard_normal(n)
    b = rng.uniform(-1.0, 1.0, n)
    data, norms = stored_columns(rng.standard_normal((2, n)), False)
    q, v = np.empty(2), np.empty(2)
    base = dual_at_vector(loss, data, y, norms, np.arange(2), b, q, v)
    pairs = [(Fraction(p), Fraction(t)) for p, t in zip(b.tolist(), y.tolist(), strict=True)]
    exact = -sum((p * p / 2 + p * t for p, t in pairs), Fraction(0))
    sizes = float(np.sum(np.abs(b * (b / 2 + y)) + np.abs(b) * (np.abs(y) + np.abs(b))))
    assert 0 < exact - Fraction(base) <= 2.1 * (sum_roundings(n) + 32) * UNIT * sizes
