"""Quick fits within limits against all choices of what is held at which limit, and against the exact fits."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from boxed_cases import other_case, quadratic_case, random_limits

from exactsel.kernels.box import box_minimum, move_to_fits
from exactsel.kernels.node import FREE, IN, OUT


def smallest_of_all(H, b, lower, upper):
    """The slow twin: every coefficient free, or at one of its limits."""
    best = np.inf
    for kinds in itertools.product((0, 1, 2), repeat=b.size):
        x = np.where(np.array(kinds) == 1, lower, upper)
        free = np.array(kinds) == 0
        if not np.all(np.isfinite(x[~free])):
            continue
        x[free] = np.linalg.solve(H[np.ix_(free, free)], b[free] - H[np.ix_(free, ~free)] @ x[~free])
        if np.all((x >= lower - 1e-9 * np.abs(x)) & (x <= upper + 1e-9 * np.abs(x))):
            x = np.clip(x, lower, upper)
            best = min(best, 0.5 * x @ H @ x - b @ x)
    return best


def programme(seed):
    """Ties, copies, limits of width 0, 1e-12 and 1e12, and at infinity."""
    rng = np.random.default_rng([seed, 83])
    m = int(rng.integers(1, 5))
    A = rng.integers(-2, 3, (6, m)).astype(float) if seed % 2 else rng.standard_normal((6, m))
    if m > 1 and rng.random() < 0.3:
        A[:, 1] = A[:, 0]
    H = A.T @ A + float(rng.choice([1e-3, 0.5])) * np.eye(m)
    b = A.T @ (rng.integers(-3, 4, 6) if seed % 2 else rng.standard_normal(6))
    lower, upper = random_limits(rng, m)
    j, size = int(rng.integers(m)), float(rng.choice([0.0, 1e-12, 1e12, 1.0]))
    lower[j], upper[j] = -size * float(rng.integers(2)), size
    return H, b, lower, upper


@pytest.mark.smoke
def test_the_quadratic_programme_equals_its_slow_twin():
    for seed in range(1500):
        H, b, lower, upper = programme(seed)
        x = np.full(b.size, np.nan)
        assert box_minimum(H, b, lower, upper, x)
        assert np.all((x >= lower) & (x <= upper))
        best = smallest_of_all(H, b, lower, upper)
        assert abs(0.5 * x @ H @ x - b @ x - best) <= 1e-9 * (1.0 + abs(best)), seed


def test_fits_near_a_point_are_those_from_nowhere():
    for seed in range(600):
        H, b, lower, upper = programme(seed)
        rng = np.random.default_rng(seed)
        states = rng.choice([IN, FREE, OUT], size=(3, b.size)).astype(np.int8)
        points = rng.standard_normal((3, b.size)) * 10.0 ** rng.integers(-6, 7)
        move_to_fits(H - 1e-4 * np.eye(b.size), b, 1e-4, lower, upper, states, points)
        for state, x in zip(states, points, strict=True):
            left = np.flatnonzero(state != OUT)
            assert np.all(x[state == OUT] == 0.0)
            assert np.all((x[left] >= lower[left]) & (x[left] <= upper[left]))
            H_left, b_left = H[np.ix_(left, left)], b[left]
            best = smallest_of_all(H_left, b_left, lower[left], upper[left]) if left.size else 0.0
            value = 0.5 * x[left] @ H_left @ x[left] - b_left @ x[left]
            assert abs(value - best) <= 1e-9 * (1.0 + abs(best)), seed


def test_a_singular_matrix_is_told():
    H, limits = np.ones((2, 2)), np.array([1.0, 1.0])
    assert not box_minimum(H, np.ones(2), -limits, limits, np.zeros(2))


@pytest.mark.parametrize(("case", "count"), [(quadratic_case, 120), (other_case, 60)])
def test_quick_objectives_are_those_of_the_fits(case, count):
    for seed in range(count):
        problem = case(seed)
        sets = [s for size in range(problem.d + 1) for s in itertools.combinations(range(problem.d), size)][:30]
        rows = np.full((len(sets), problem.d), -1)
        for row, chosen in zip(rows, sets, strict=True):
            row[: len(chosen)] = chosen
        exact = np.array([problem.fit(chosen).value for chosen in sets])
        np.testing.assert_allclose(problem.objectives(rows), exact, rtol=1e-8, atol=1e-8, err_msg=str(seed))
