"""Proximal operators and selections against slow twins, against cvxpy, and on awkward numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import examples

from exactsel.kernels.selection import prox_k_support, relaxed_indicators, top_sum, water_level
from exactsel.kernels.topk_prox import prox_conjugate, prox_top_k

cp = pytest.importorskip("cvxpy")

TIES = (0.0, 0.5, 1.0, 1.0, 2.0, -1.0, -2.0, 1e-9, 1e9)
SCALES = (1e-150, 1e-8, 1.0, 1e8, 1e150)

entries = st.one_of(st.sampled_from(TIES), st.floats(-1e3, 1e3).map(lambda value: round(value, 6)))
vectors = st.builds(
    lambda values, scale: np.array(values) * scale, st.lists(entries, min_size=1, max_size=7), st.sampled_from(SCALES)
)
weights = st.one_of(st.sampled_from([1e-12, 1e-3, 1.0, 50.0, 1e9]), st.floats(1e-3, 1e3))
quickly = examples(300, 600)


def random_cases(count, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        d = int(rng.integers(1, 9))
        u = rng.standard_normal(d) * rng.choice([0.1, 1.0, 5.0])
        if rng.random() < 0.4:
            u = np.round(u)
        yield u, int(rng.integers(1, d + 1)), float(10 ** rng.uniform(-2, 1.5))


# Slow twins


def slow_prox_top_k(u, slots, weight):
    """The best of all vectors with a plateau: the minimiser is one of them."""
    order = np.argsort(-np.abs(u), kind="stable")
    p = np.abs(u)[order]
    best, best_cost = None, np.inf
    for first in range(slots + 1):
        for last in range(slots - 1, p.size):
            w = p.copy()
            w[:first] = p[:first] / (1.0 + weight)
            plateau = slice(first, last + 1)
            if last >= first:
                w[plateau] = p[plateau].sum() / (last - first + 1 + weight * (slots - first))
            cost = 0.5 * np.sum((w - p) ** 2) + 0.5 * weight * np.sum(np.sort(w**2)[::-1][:slots])
            if cost < best_cost:
                best, best_cost = w, cost
    result = np.empty(p.size)
    result[order] = best
    return np.where(u < 0, -result, result)


def slow_water_level(u, slots, shift):
    """Interpolate between the breakpoints of the piecewise linear sum."""
    size = np.abs(u[u != 0.0])
    if size.size <= slots:
        return np.inf
    breakpoints = np.sort(np.concatenate([[0.0], shift / size, (1.0 + shift) / size]))
    sums = [np.clip(s * size - shift, 0.0, 1.0).sum() for s in breakpoints]
    right = next(i for i, total in enumerate(sums) if total >= slots * (1 - 1e-14))
    left = right - 1
    share = min(1.0, (slots - sums[left]) / (sums[right] - sums[left]))
    return breakpoints[left] + share * (breakpoints[right] - breakpoints[left])


def indicators_at(level, u, shift):
    return np.where(u == 0.0, 0.0, 1.0) if level == np.inf else np.clip(level * np.abs(u) - shift, 0.0, 1.0)


def slow_prox_k_support(u, fixed, slots, weight):
    z = np.ones(u.size)
    z[fixed:] = indicators_at(slow_water_level(u[fixed:], slots, weight), u[fixed:], weight)
    return u * z / (z + weight)


def slow_squared_norm(x, slots):
    """Squared k-support norm: ones on the first a entries, the rest of z proportional to |x|, the best such a."""
    p = np.sort(np.abs(x))[::-1]
    p = p[p > 0.0]
    if p.size <= slots:
        return float(p @ p)
    feasible = [a for a in range(slots) if p[a] * (slots - a) <= p[a:].sum() * (1 + 1e-12)]
    return min(float(p[:a] @ p[:a] + p[a:].sum() ** 2 / (slots - a)) for a in feasible)


def run_top_k(u, slots, weight):
    out = np.empty(u.size)
    prox_top_k(u, slots, weight, out)
    return out


def run_k_support(u, fixed, slots, weight, guess=0.0):
    x = np.empty(u.size)
    norm, level = prox_k_support(u, fixed, slots, weight, guess, x)
    return x, norm, level


def assert_close(actual, expected, scale, rel=1e-9):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=rel * scale)


# The squared top-r norm


@pytest.mark.smoke
def test_prox_top_k_equals_its_slow_twin():
    for u, slots, weight in random_cases(400):
        assert_close(run_top_k(u, slots, weight), slow_prox_top_k(u, slots, weight), 1.0 + np.abs(u).max(), 1e-7)


@quickly
@given(u=vectors, weight=weights, data=st.data())
def test_prox_top_k_equals_its_slow_twin_on_awkward_numbers(u, weight, data):
    slots = data.draw(st.integers(1, u.size))
    scale = np.abs(u).max()
    if scale == 0.0:
        assert np.all(run_top_k(u, slots, weight) == 0.0)
        return
    # The twin compares costs, which overflow where the kernel does not: scaling commutes with the prox.
    expected = slow_prox_top_k(u / scale, slots, weight) * scale
    actual = run_top_k(u, slots, weight)
    # Costs that differ in the 16th digit leave eight digits of the minimiser.
    assert_close(actual, expected, scale, 1e-7)
    assert np.all(np.abs(actual) <= np.abs(u))
    assert np.all(np.sign(actual) * np.sign(u) >= 0.0)


def test_prox_top_k_equals_cvxpy():
    for u, slots, weight in random_cases(30, seed=1):
        w = cp.Variable(u.size)
        cost = 0.5 * cp.sum_squares(w - u) + 0.5 * weight * cp.sum_largest(cp.square(w), slots)
        cp.Problem(cp.Minimize(cost)).solve(solver=cp.CLARABEL)
        assert_close(run_top_k(u, slots, weight), w.value, 1.0 + np.abs(u).max(), 1e-4)


@quickly
@given(u=vectors, weight=weights, data=st.data())
def test_prox_top_k_ignores_order_and_signs(u, weight, data):
    slots = data.draw(st.integers(1, u.size))
    order = np.array(data.draw(st.permutations(range(u.size))))
    signs = np.array(data.draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=u.size, max_size=u.size)))
    scale = np.abs(u).max()
    assert_close(run_top_k(signs * u[order], slots, weight), signs * run_top_k(u, slots, weight)[order], scale, 1e-12)


# The squared k-support norm


@quickly
@given(u=vectors, weight=weights, data=st.data())
def test_prox_k_support_equals_its_slow_twin(u, weight, data):
    fixed = data.draw(st.integers(0, u.size - 1))
    slots = data.draw(st.integers(1, u.size - fixed))
    x, norm, level = run_k_support(u, fixed, slots, weight)
    scale = np.abs(u).max()
    assert_close(x, slow_prox_k_support(u, fixed, slots, weight), scale, 1e-9)
    if 1e-100 < scale < 1e100:
        # The value that comes along is the norm at x; z near 0 or 1 makes both formulas lose some digits.
        expected = float(x[:fixed] @ x[:fixed]) + slow_squared_norm(x[fixed:], slots)
        assert norm == pytest.approx(expected, rel=1e-6, abs=1e-300)
    # Any guess leads to the same answer.
    for guess in (level, 1e-3 * level, 1e3 * level):
        assert_close(run_k_support(u, fixed, slots, weight, guess)[0], x, scale, 1e-9)


def test_prox_k_support_equals_cvxpy():
    rng = np.random.default_rng(2)
    for u, slots, weight in random_cases(30, seed=2):
        fixed = int(rng.integers(0, u.size))
        slots = min(slots, u.size - fixed)
        x, z, t = cp.Variable(u.size), cp.Variable(u.size), cp.Variable(u.size)
        cost = 0.5 * weight * cp.sum(t) + 0.5 * cp.sum_squares(x - u)
        cone = cp.SOC(t + z, cp.vstack([2 * x, t - z]), axis=0)
        limits = [z >= 0, z <= 1, cp.sum(z[fixed:]) <= slots]
        cp.Problem(cp.Minimize(cost), [cone, *limits]).solve(solver=cp.CLARABEL)
        assert_close(run_k_support(u, fixed, slots, weight)[0], x.value, 1.0 + np.abs(u).max(), 1e-4)


@quickly
@given(u=vectors, lam=weights, step=weights, data=st.data())
def test_the_two_proxes_agree(u, lam, step, data):
    """By Moreau's identity the paper's prox of the top-r norm gives the prox of its conjugate, computed directly."""
    fixed = data.draw(st.integers(0, u.size - 1))
    slots = data.draw(st.integers(1, u.size - fixed))
    out = np.empty(u.size)
    prox_conjugate(u, fixed, slots, step, lam, out)
    assert_close(out, run_k_support(u, fixed, slots, step * lam)[0], np.abs(u).max(), 1e-9)


def test_prox_conjugate_without_candidates():
    out = np.empty(2)
    prox_conjugate(np.array([3.0, -1.0]), 2, 0, 0.5, 4.0, out)
    assert_close(out, [1.0, -1.0 / 3.0], 1.0)


# Selections


@quickly
@given(u=vectors, shift=weights, data=st.data())
def test_water_level_equals_its_slow_twin(u, shift, data):
    slots = data.draw(st.integers(1, u.size))
    start = data.draw(st.integers(0, u.size - 1))
    level, expected = water_level(u, start, slots, shift, 0.0), slow_water_level(u[start:], slots, shift)
    # With plateaus in the sum the level is not unique; the indicators are.
    assert (level == np.inf) == (expected == np.inf)
    assert_close(indicators_at(level, u[start:], shift), indicators_at(expected, u[start:], shift), 1.0 + shift, 1e-11)


@quickly
@given(x=vectors, data=st.data())
def test_relaxed_indicators_attain_the_norm(x, data):
    fixed = data.draw(st.integers(0, x.size - 1))
    slots = data.draw(st.integers(1, x.size - fixed))
    z = np.empty(x.size)
    relaxed_indicators(x, fixed, slots, z)
    assert np.all(z[:fixed] == 1.0)
    tail, part = x[fixed:], z[fixed:]
    assert_close(part, indicators_at(slow_water_level(tail, slots, 0.0), tail, 0.0), 1.0)
    assert np.all((part >= 0.0) & (part <= 1.0))
    assert part.sum() <= slots * (1 + 1e-9)
    scale = np.abs(tail).max()
    if scale > 0.0:
        used = part > 0.0
        value = float(np.sum((tail[used] / scale) ** 2 / part[used]))
        assert value == pytest.approx(slow_squared_norm(tail / scale, slots), rel=1e-6)


@quickly
@given(values=vectors, data=st.data())
def test_top_sum_equals_sorting(values, data):
    start = data.draw(st.integers(0, values.size - 1))
    slots = data.draw(st.integers(0, values.size + 1))
    ranked = np.empty(slots + 1)
    total = top_sum(values, start, slots, ranked)
    descending = np.sort(values[start:])[::-1]
    padded = np.full(slots + 1, -np.inf)
    padded[: descending.size] = descending[: slots + 1]
    assert np.array_equal(ranked, padded)
    assert total == pytest.approx(descending[:slots].sum(), rel=1e-12, abs=1e-9 * np.abs(values).max())
