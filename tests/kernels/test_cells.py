"""Rows counted together: the cells from their definition, and fits on them against fits on all rows."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactsel.kernels.cells import MOST_COLUMNS, cells_of, has_cells, row_codes
from exactsel.kernels.columns import EQUAL, write_column
from exactsel.kernels.dual import dual_at_point, node_bound
from exactsel.kernels.refit import newton_bounds, newton_objectives, newton_refit, quick_refit
from exactsel.losses import Huber, Logistic
from exactsel.losses.adjusted import adjusted
from exactsel.problem import storing
from exactsel.problem.storing import stored_columns

seeds = st.integers(0, 10**6)


def drawn(seed, levelled):
    """Columns of two values, sparse and not, labels, and the loss."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 300)), int(rng.integers(1, 8))
    A = np.where(rng.random((n, d)) < rng.uniform(0, 1, d), rng.choice([1.0, 2.5, 0.0], d), rng.choice([0.0, -1.0], d))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storing, "LEAST_ROWS", 1)
        stored, norms = stored_columns(np.ascontiguousarray(A.T), levelled)
    y = np.where(rng.random(n) < rng.uniform(0.1, 0.9), 1.0, -1.0)
    y[:2] = 1.0, -1.0
    y.flags.writeable = False  # as a problem's are, for which the kernels have been compiled
    weighted = levelled or rng.random() < 0.5
    w = rng.choice([0.5, 1.0, 3.0], n) if weighted else np.ones(n)
    loss = adjusted(Logistic(), w, levelled, n) if weighted else Logistic()
    return A, y, w, loss, stored, norms


@given(seeds, st.booleans())
def test_cells_from_their_definition(seed, levelled):
    A, y, w, loss, stored, _ = drawn(seed, levelled)
    n, d = A.shape
    assert np.all(stored.where[:, EQUAL] == 1)
    columns = np.random.default_rng(seed).permutation(d)
    wanted = Counter()
    for row, label, weight in zip(A[:, columns], y, w, strict=True):
        wanted[(*row, label)] += weight
    cells, labels, weights = cells_of(stored, y, columns, getattr(loss, "weights", np.empty(0)))
    found = {(*cells[:, i], labels[i]): weights[i] for i in range(labels.size)}
    assert len(found) == labels.size
    assert dict(wanted) == pytest.approx(found)
    assert len(set(row_codes(stored, columns, n))) == len({tuple(row) for row in A})


def test_cells_need_columns_of_two_values_and_many_rows():
    rng = np.random.default_rng(0)
    A = (rng.random((60_000, MOST_COLUMNS + 2)) < 0.1) * 1.0
    A[:, -1] = rng.standard_normal(len(A))
    stored, _ = stored_columns(np.ascontiguousarray(A.T), False)
    assert has_cells(stored, np.arange(MOST_COLUMNS), 60_000)
    assert not has_cells(stored, np.arange(MOST_COLUMNS), 10_000)
    assert not has_cells(stored, np.arange(MOST_COLUMNS + 1), 60_000)
    assert not has_cells(stored, np.array([0, MOST_COLUMNS + 1]), 60_000)
    A[0, 0], A[59_999, 1] = 0.5, 0.5  # three values, sparse or not
    stored, _ = stored_columns(np.ascontiguousarray(A[:, :4].T), False)
    assert stored.where[:, EQUAL].tolist() == [0, 0, 1, 1]


@given(seeds, st.booleans())
def test_the_same_model(seed, levelled):
    _, y, _, loss, stored, norms = drawn(seed, levelled)
    columns = np.arange(len(norms))
    slow, fast, z = np.zeros(columns.size), np.zeros(columns.size), np.empty(y.size)
    value = newton_refit(loss, stored, y, 0.4, columns, 0.0, slow, z)[0]
    assert quick_refit(loss, stored, y, 0.4, columns, 0.0, fast, np.inf)[0] == pytest.approx(value, rel=1e-11)
    np.testing.assert_allclose(fast, slow, rtol=1e-5, atol=1e-6)
    # Many supports at once, and their bounds, which are those of all rows whatever the fits say.
    supports = np.array([columns, np.append(columns[1:], -1)])
    values, bounds, models = np.empty(2), np.empty(2), np.zeros(supports.shape)
    newton_objectives(loss, stored, y, 0.4, supports, 0.0, values)
    assert values[0] == pytest.approx(value, rel=1e-11)
    newton_bounds(loss, stored, y, norms, 0.4, supports, 0.0, np.inf, np.zeros(1, dtype=np.bool_), bounds, models)
    assert np.all(bounds <= values * (1 + 1e-12))
    assert np.all(bounds >= values * (1 - 1e-9))
    b, q, v = np.empty(y.size), np.empty(columns.size), np.empty(columns.size)
    base = dual_at_point(loss, stored, y, norms, columns, z, b, q, v)
    assert bounds[0] == pytest.approx(node_bound(base, q, columns.size, 0, 0.4, np.empty(1)), rel=1e-9)


def test_it_goes_no_further_than_it_must():
    _, y, _, loss, stored, norms = next(case for case in map(drawn, range(99), [False] * 99) if len(case[1]) > 250)
    columns = np.arange(len(norms))
    best = quick_refit(loss, stored, y, 0.4, columns, 0.0, np.zeros(columns.size), np.inf)[0]
    early, norm = quick_refit(loss, stored, y, 0.4, columns, 0.0, np.zeros(columns.size), 0.5 * best)
    assert early >= best
    assert norm > 0.0


def test_other_losses_have_no_cells():
    A, y, _, _, stored, norms = drawn(5, False)
    columns, value = np.arange(len(norms)), np.empty(1)
    newton_objectives(Huber(1.0), stored, y, 0.4, columns[None, :], 0.0, value)
    x, z = np.zeros(columns.size), np.empty(y.size)
    assert value[0] == newton_refit(Huber(1.0), stored, y, 0.4, columns, 0.0, x, z)[0]
    column = np.empty(y.size)
    write_column(stored, 0, np.ones(y.size), column)
    np.testing.assert_array_equal(column, A[:, 0])
