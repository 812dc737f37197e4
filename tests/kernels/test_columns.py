"""Columns stored by their entries against plain numpy with the whole matrix, and bounds from them against fractions."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import examples

from exactsel.kernels.columns import (
    EQUAL,
    PLACE,
    add_column,
    column_dot,
    columns_of,
    mixed_gram,
    write_column,
)
from exactsel.kernels.dual import dual_at_point
from exactsel.kernels.linalg import correlate, predict
from exactsel.kernels.newton_fit import fit_hessian
from exactsel.kernels.refit import newton_refit
from exactsel.kernels.rows import weighted_gram
from exactsel.losses import Huber, Logistic
from exactsel.losses.adjusted import adjusted
from exactsel.problem import storing
from exactsel.problem.storing import stored_columns

NEVER = np.zeros(1, dtype=np.bool_)

seeds = st.integers(0, 10**6)


def drawn(seed, levelled=False, n=None):
    """Data of every kind side by side, and their columns as they are stored when there may be many rows."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 60)) if n is None else n, int(rng.integers(1, 14))
    filled = rng.random((n, d)) < rng.choice([0.0, 0.02, 0.1, 0.2, 0.3, 1.0], d)
    A = filled * np.where(rng.random(d) < 0.5, rng.choice([1.0, -3.0, 0.1], d), rng.standard_normal((n, d)))
    A = A * 10.0 ** rng.integers(-3, 4, d)
    if levelled:
        A = A - rng.choice([0.0, 0.3, 1e3], d) * np.where(rng.random(d) < 0.5, 1.0, A.mean(axis=0))
    if d > 1 and rng.random() < 0.3:
        A[:, -1] = A[:, 0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storing, "LEAST_ROWS", 1)
        stored, norms = stored_columns(np.ascontiguousarray(A.T), levelled)
    columns = rng.permutation(d)[: int(rng.integers(0, d + 1))]
    return SimpleNamespace(rng=rng, A=A, stored=stored, norms=norms, columns=columns, n=n, d=d)


def sizes(case, columns):
    """The length of every column as given and as stored: what rounding errors are measured by."""
    return np.maximum(np.linalg.norm(case.A[:, columns], axis=0), case.norms[columns]) + 1e-300


def test_every_kind_of_column_is_met():
    kinds = set()
    for seed in range(30):
        for levelled in (False, True):
            case = drawn(seed, levelled)
            for row in case.stored.where:
                based = row[PLACE] < 0 and case.stored.values[row[3]] != 0.0
                kinds.add((bool(row[PLACE] < 0), bool(row[EQUAL]), bool(based)))
    by_entries = {(True, equal, based) for equal in (False, True) for based in (False, True)}
    assert kinds == {(False, False, False), (False, True, False), *by_entries}


@given(seeds, st.booleans())
def test_what_is_stored_is_what_was_given(seed, levelled):
    case = drawn(seed, levelled)
    ones = np.ones(case.n)
    for j in range(case.d):
        column, base = np.empty(case.n), 0.0
        write_column(case.stored, j, ones, column)
        if case.stored.where[j, PLACE] < 0:
            base = case.stored.values[case.stored.where[j, 3]]
        assert levelled or base == 0.0
        np.testing.assert_allclose(column + base, case.A[:, j], rtol=4e-16, atol=4e-16 * abs(base))
        assert Fraction(float(case.norms[j])) ** 2 >= sum((Fraction(float(v)) ** 2 for v in column), Fraction(0))


@given(seeds, st.booleans())
def test_products(seed, levelled):
    case = drawn(seed, levelled)
    x = case.rng.standard_normal(case.columns.size) * (case.rng.random(case.columns.size) < 0.7)
    image, b = np.empty(case.n), case.rng.standard_normal(case.n)
    predict(case.stored, case.columns, x, image)
    wanted = case.A[:, case.columns] @ x
    np.testing.assert_allclose(image, wanted, rtol=0, atol=1e-13 * (np.abs(x) @ sizes(case, case.columns) + 1e-300))
    if levelled:
        b -= b.mean()
    v = np.empty(case.columns.size)
    correlate(case.stored, case.columns, b, v)
    room = 1e-13 * sizes(case, case.columns) * (np.linalg.norm(b) + 1.0) * (1.0 + 1e3 * levelled)
    np.testing.assert_array_less(np.abs(v - case.A[:, case.columns].T @ b), room)
    for i, j in enumerate(case.columns):
        assert column_dot(case.stored, j, b) == pytest.approx(v[i], abs=room[i])
        added = b.copy()
        add_column(case.stored, j, 2.0, added)
        moved = added - b - 2.0 * case.A[:, j]
        np.testing.assert_allclose(
            moved, moved[0] if levelled else 0.0, atol=1e-12 * (1.0 + np.abs(case.A[:, j]).max())
        )


@given(seeds)
def test_whole_columns_are_a_matrix(seed):
    """To the last bit: dense data have the trees they always had."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 40)), int(rng.integers(1, 12))
    A = rng.standard_normal((n, d))
    AT = np.ascontiguousarray(A.T)
    stored, _ = stored_columns(AT, bool(seed % 2))
    assert stored.whole is AT
    columns, x, b = rng.permutation(d)[: int(rng.integers(1, d + 1))], rng.standard_normal(d), rng.standard_normal(n)
    results = []
    for data in (stored, AT):
        image, v, H = np.empty(n), np.empty(columns.size), np.zeros((columns.size, columns.size))
        predict(data, columns, x[: columns.size], image)
        correlate(data, columns, b, v)
        weighted_gram(Logistic(), data, columns, np.abs(b), 0.5, H)
        results.append((image, v, H))
    for mine, theirs in zip(*results, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@given(seeds, st.booleans(), st.booleans())
def test_the_hessian(seed, levelled, many):
    """From its definition."""
    case = drawn(seed, levelled, n=400 if many else None)
    w = case.rng.random(case.n) * (case.rng.random(case.n) < 0.9)
    loss = adjusted(Logistic(), None, True, case.n) if levelled else Logistic()
    m = case.columns.size
    W = np.diag(w) - (np.outer(w, w) / w.sum() if levelled and w.sum() > 0 else 0.0)
    wanted = np.tril(case.A[:, case.columns].T @ W @ case.A[:, case.columns] + 0.25 * np.eye(m))
    room = 1e-11 * np.outer(sizes(case, case.columns), sizes(case, case.columns)) + 1e-15
    plain, polled, single = np.full((m, m), 7.0), np.full((m, m), 7.0), np.full((m, m), 7.0)
    weighted_gram(loss, case.stored, case.columns, w, 0.25, plain)
    assert fit_hessian(loss, case.stored, case.columns, w, 0.25, NEVER, polled)
    assert mixed_gram(case.stored, case.columns, w, levelled, 0.25, NEVER, single)
    for H in (plain, polled, single):
        np.testing.assert_array_less(np.abs(np.tril(H) - wanted), room)


def test_the_hessian_obeys_the_stop_flag():
    case = next(case for case in (drawn(seed, n=400) for seed in range(100)) if case.columns.size > 6)
    H = np.zeros((case.columns.size, case.columns.size))
    assert not mixed_gram(case.stored, case.columns, np.ones(case.n), False, 1.0, np.ones(1, dtype=np.bool_), H)


@examples(60, 120)
@given(seeds, st.booleans(), st.booleans())
def test_no_dual_value_is_too_large(seed, huber, levelled):
    """q is at least the square of A'b in fractions: of b itself, or of what b stands for where it must sum to zero."""
    case = drawn(seed, levelled)
    loss = Huber(1.3) if huber else Logistic()
    y = case.rng.standard_normal(case.n) if huber else np.where(case.rng.random(case.n) < 0.4, 1.0, -1.0)
    y.flags.writeable = False  # as a problem's are, for which the kernels have been compiled
    made = adjusted(loss, case.rng.uniform(0.1, 3.0, case.n), True, case.n) if levelled else loss
    z, columns = 3.0 * case.rng.standard_normal(case.n), np.arange(case.d)
    b, q, v = np.empty(case.n), np.empty(case.d), np.empty(case.d)
    dual_at_point(made, case.stored, y, case.norms, columns, z, b, q, v)
    exact = [Fraction(float(value)) for value in b]
    if levelled:  # the side of larger sum, shrunk until both are equal
        plus = sum((value for value in exact if value > 0), Fraction(0))
        minus = -sum((value for value in exact if value < 0), Fraction(0))
        if not plus or not minus:
            return
        shares = (minus / plus, Fraction(1)) if plus > minus else (Fraction(1), plus / minus)
        exact = [value * (shares[0] if value > 0 else shares[1]) for value in exact]
    for j in columns:
        product = sum((Fraction(float(a)) * value for a, value in zip(case.A[:, j], exact, strict=True)), Fraction(0))
        assert Fraction(float(q[j])) >= product**2


@examples(60, 120)
@given(seeds, st.booleans())
def test_the_best_model_on_some_columns(seed, levelled):
    case = drawn(seed, levelled, n=50)
    y = np.where(case.rng.random(50) < 0.4, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    y.flags.writeable = False
    loss = adjusted(Logistic(), None, True, 50) if levelled else Logistic()
    values = []
    for data in (case.stored, stored_columns(np.ascontiguousarray(case.A.T), levelled)[0]):
        x, z = np.zeros(case.columns.size), np.empty(50)
        values.append(newton_refit(loss, data, y, 0.3, case.columns, 0.0, x, z)[0])
    assert values[0] == pytest.approx(values[1], rel=1e-9)


def test_kernels_take_the_columns_from_the_data():
    case = drawn(3)
    data = storing.raw_data(np.ascontiguousarray(case.A.T), np.zeros(case.n), False)
    for part, same in zip(columns_of(data), data.AT, strict=True):
        np.testing.assert_array_equal(part, same)
