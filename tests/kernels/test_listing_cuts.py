"""Bounds of listed sets from a quadratic function, against exact arithmetic."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from quadratics import exact_minimum, random_quadratic

from exactsel.kernels.listing_cuts import raise_bounds

NEVER = np.zeros(1, dtype=np.bool_)


def random_case(seed):
    """A positive definite q, how many of its columns are no intercept, and sets of those."""
    rng, q = random_quadratic(seed, stream=5)
    m = len(q.h)
    first = m - int(rng.random() < 0.5)
    sets = np.full((12, max(1, first)), -1, dtype=np.int64)
    for row in sets:
        chosen = rng.permutation(first)[: int(rng.integers(0, first + 1))]
        row[rng.permutation(row.size)[: chosen.size]] = chosen
    return rng, q, first, sets


@given(st.integers(0, 10**6))
def test_bounds_of_sets_are_those_of_exact_arithmetic_and_never_above(seed):
    rng, q, first, sets = random_case(seed)
    scale = np.ldexp(1.0, rng.integers(-3, 4, size=q.h.size))
    level, upper = float(rng.normal()), float(10 * rng.normal())
    before = np.where(rng.random(12) < 0.5, -np.inf, 5 * rng.normal(size=12))
    bounds, models = before.copy(), np.full((12, sets.shape[1] + q.h.size - first), np.nan)
    raise_bounds(q, scale, level, upper, sets, first, NEVER, bounds, models)
    raised = 0
    for row, old, new, model in zip(sets, before, bounds, models, strict=True):
        chosen = row[row >= 0]
        columns = [*chosen.tolist(), *range(first, q.h.size)]
        exact = exact_minimum(q.H, q.h, columns) - Fraction(level) + Fraction(upper)
        assert new >= old
        if new > old:
            raised += 1
            assert Fraction(new) <= exact
            assert new >= float(exact) - 1e-7 * (1.0 + abs(float(exact)))
            best = np.linalg.solve(q.H[np.ix_(columns, columns)], q.h[columns]) * scale[columns]
            there = np.append(model[: chosen.size], model[sets.shape[1] :])
            assert np.allclose(there, best, rtol=1e-3, atol=1e-3 * (1 + np.abs(best).max(initial=0.0)))
        else:
            assert np.isnan(model).all()
            assert old >= float(exact) - 1e-7 * (1.0 + abs(float(exact)))
    assert raised >= np.count_nonzero(np.isinf(before)) or q.convexity < 1e-9


def test_nothing_is_raised_once_told_to_stop_nor_where_there_is_no_factorisation():
    _, q, first, sets = random_case(3)
    for stop, matrix in ((np.ones(1, dtype=np.bool_), q.H), (NEVER, -q.H), (NEVER, np.full(q.H.shape, np.nan))):
        bounds, models = np.full(12, -np.inf), np.zeros((12, sets.shape[1] + 1))
        raise_bounds(q._replace(H=matrix), np.ones(q.h.size), 0.0, 1.0, sets, first, stop, bounds, models)
        empty = (first == q.h.size) & (sets < 0).all(axis=1)
        assert np.all(np.isinf(bounds) | (empty & ~stop[0]))
