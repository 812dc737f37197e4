"""Triples that are cleared in single precision: against determinants in fractions, and against eigenvalues."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import examples

from exactsel.kernels.triples import LANES, triple_workspace, triples_clear

SEEDS = st.integers(0, 10**7)


def matrix_with(rng, m):
    """A symmetric matrix with a positive diagonal, often just singular somewhere, or with nearly equal columns."""
    basis = rng.standard_normal((m, int(rng.integers(1, m + 4))))
    if m > 1 and rng.random() < 0.5:  # near-duplicates, and minus them
        for _ in range(int(rng.integers(1, 4))):
            i, j = rng.integers(m, size=2)
            distance = float(rng.choice([0.0, 1e-16, 1e-9, 1e-7, 1e-6, 1e-4, 1e-2]))
            basis[i] = rng.choice([-1.0, 1.0]) * basis[j] + distance * rng.standard_normal(basis.shape[1])
    M = basis @ basis.T
    if rng.random() < 0.5 and m > 2:  # a triple on the edge of being positive semidefinite
        i = int(rng.integers(m))
        step = float(rng.choice([0.0, 1e-16, 1e-14, 1e-10, 1e-6, 1e-5, 1e-3]))
        M[i, i] *= 1.0 - step
    M += float(rng.choice([0.0, -1e-6, 1e-6, -0.05, 0.1, 1.0])) * np.diag(np.diagonal(M))
    scale = np.exp(rng.choice([0.0, 3.0, 100.0]) * rng.standard_normal(m))
    return M * np.outer(scale, scale)


def exactly_semidefinite(M, chosen):
    """Whether all principal minors of the numbers as they are, at most three columns of them, are at least 0."""
    H = {(i, j): Fraction(float(M[max(i, j), min(i, j)])) for i in chosen for j in chosen}
    for i, j in combinations(chosen, 2):
        if H[i, i] * H[j, j] < H[i, j] ** 2:
            return False
    if len(chosen) == 3:
        i, j, l = chosen
        determinant = (
            H[i, i] * (H[j, j] * H[l, l] - H[j, l] ** 2)
            - H[i, j] * (H[i, j] * H[l, l] - H[j, l] * H[i, l])
            + H[i, l] * (H[i, j] * H[j, l] - H[j, j] * H[i, l])
        )
        return determinant >= 0
    return True


@given(SEEDS)
@examples(300, 600)
def test_what_is_cleared_is_positive_semidefinite_in_fractions(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 9))
    M = matrix_with(rng, m)
    if np.diagonal(M).min() <= 0.0 or not np.isfinite(M).all():
        return
    if triples_clear(M, m, triple_workspace(m)):
        sizes = (2, 3)
        assert all(exactly_semidefinite(M, chosen) for size in sizes for chosen in combinations(range(m), size))


@given(SEEDS)
@examples(100, 200)
def test_one_bad_triple_or_pair_among_many_columns_is_never_cleared(seed):
    """Whatever its place, and however little it is off: more columns than fit into one vector."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(3, 3 * LANES))
    M = np.eye(m) + 0.1 * (lambda basis: basis @ basis.T / m)(rng.standard_normal((m, m)))
    i, j, l = sorted(rng.permutation(m)[:3].tolist())
    angles = rng.uniform(0.3, 1.4, 2)
    off = float(rng.choice([1e-12, 1e-9, 1e-7, 1e-5, 1e-2]))
    c = {(i, j): np.cos(angles[0]), (j, l): np.cos(angles[1]), (i, l): np.cos(angles.sum() + off)}
    for (p, q), cosine in c.items():
        M[p, q] = M[q, p] = cosine * np.sqrt(M[p, p] * M[q, q])
    assert not exactly_semidefinite(M, (i, j, l))
    assert not triples_clear(M, m, triple_workspace(m))
    M[i, l] = M[l, i] = np.cos(angles[0]) * np.cos(angles[1]) * np.sqrt(M[i, i] * M[l, l])
    p, q = (i, l) if rng.random() < 0.5 else (i, j)
    M[p, q] = M[q, p] = (1.0 + off) * np.sqrt(M[p, p] * M[q, q])
    assert not triples_clear(M, m, triple_workspace(m))


@pytest.mark.smoke
@given(SEEDS)
@examples(100, 200)
def test_what_is_far_from_singular_is_cleared(seed):
    """The slow twin the other way: nothing is left to the slow count that need not be."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 30))
    M = matrix_with(rng, m) if rng.random() < 0.5 else np.corrcoef(rng.standard_normal((m + 1, m + 3)))[:m, :m]
    scale = np.sqrt(np.diagonal(M).clip(1e-300))
    unit = M / np.outer(scale, scale)
    sets = [chosen for size in (2, 3) for chosen in combinations(range(m), size)]
    smallest = min((np.linalg.eigvalsh(unit[np.ix_(chosen, chosen)])[0] for chosen in sets), default=1.0)
    if np.diagonal(M).min() > 0.0 and np.isfinite(M).all() and smallest > 1e-9:
        assert triples_clear(M, m, triple_workspace(m))


def test_columns_taken_out_are_not_looked_at():
    M = np.array([[1.0, 0.0, 0.0], [5.0, np.inf, 0.0], [0.2, 7.0, 1.0]])
    assert triples_clear(M, 3, triple_workspace(3))
    M[1, 1] = 1.0
    assert not triples_clear(M, 3, triple_workspace(3))
    assert triples_clear(M[:1, :1], 1, triple_workspace(1))


def test_a_room_used_before_makes_no_difference():
    room, rng = triple_workspace(40), np.random.default_rng(1)
    for m in (40, 3, 17, 16, 2, 33, 1):
        basis = rng.standard_normal((m, m + 5))
        M = basis @ basis.T
        assert triples_clear(M, m, room) == triples_clear(M, m, triple_workspace(m))
