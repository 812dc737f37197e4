"""Eigenvectors in single precision: what scipy says, with and without the routine found, and from several threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import examples

from exactsel.algebra import eigenvectors
from exactsel.algebra.eigenvectors import smallest_eigenvectors


def some_matrix(seed, m):
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((m, int(rng.integers(1, 2 * m + 1))))
    return half @ half.T / m - 0.3 * float(rng.integers(0, 2)) * np.eye(m)


@pytest.mark.parametrize("found", [True, False])
@given(st.integers(0, 10**6), st.integers(1, 40))
@examples(60, 120)
def test_the_twin_in_double_precision(found, seed, m):
    matrix = some_matrix(seed, m)
    exact = np.linalg.eigvalsh(matrix)
    below = float(exact[seed % m]) + 1e-3
    with pytest.MonkeyPatch.context() as patch:
        if not found:
            patch.setattr(eigenvectors, "_routine", lambda: None)
        values, vectors = smallest_eigenvectors(matrix, below)
    size = 1.0 + np.abs(matrix).max() * m
    clear = np.abs(exact - below) > 1e-5 * size
    if clear.all():
        assert values.size == np.count_nonzero(exact < below)
    assert np.allclose(values, exact[: values.size], atol=1e-5 * size)
    assert np.allclose(vectors.T @ vectors, np.eye(values.size), atol=1e-4)
    assert np.allclose(matrix @ vectors, vectors * values, atol=1e-5 * size)


def test_the_same_from_several_threads():
    matrices = [some_matrix(seed, 60) for seed in range(12)]
    alone = [smallest_eigenvectors(matrix, 0.1) for matrix in matrices]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda matrix: smallest_eigenvectors(matrix, 0.1), matrices))
    for one, other in zip(alone, together, strict=True):
        assert np.array_equal(one[0], other[0])
        assert np.array_equal(one[1], other[1])
