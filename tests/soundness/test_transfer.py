"""From prepared data to data as given: thousands of tiny problems whose optima are known exactly on both sides."""

from __future__ import annotations

import math
from fractions import Fraction

import exactly
import numpy as np
import pytest
import tiny_problems
from samples import sample

from exactsel_certificates.given import GivenInstance

LOSSES = ("quadratic", "huber", "logistic")
ROUNDED = 1 - Fraction(1, 2**52)


def random_given(rng, loss):
    """A problem with weights, an intercept, scaling or several of these, with offsets up to 1e15."""
    n, d = int(rng.integers(1, 7)), int(rng.integers(1, 4))
    A = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-3, 3, d)
    y = rng.standard_normal(n) * 10.0 ** rng.uniform(-6, 3)
    if rng.random() < 0.4:
        A, y = np.round(A), np.round(y)
    if d > 1 and rng.random() < 0.2:
        A[:, 1] = A[:, 0]
    A = A + rng.choice([0.0, 1.0, -1.0], d) * 10.0 ** rng.uniform(0, 15, d)
    y = y + rng.choice([0.0, 0.0, 1.0]) * 10.0 ** rng.uniform(0, 15)
    if loss == "logistic":
        y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    weights = rng.choice([0.0, 0.3, 1.0, 2.0, 50.0], n) if rng.random() < 0.5 else None
    if weights is not None:
        weights[rng.integers(n)] = 0.7
    lam = 0.0 if loss == "quadratic" and rng.random() < 0.2 else float(10.0 ** rng.uniform(-4, 2))
    delta = float(10.0 ** rng.uniform(-2, 2)) if loss == "huber" else math.inf
    intercept, scale = bool(rng.random() < 0.7), bool(rng.random() < 0.5)
    if loss == "logistic" and np.unique(y if weights is None else y[weights > 0]).size < 2:
        intercept = False
    return GivenInstance(
        A, y, int(rng.integers(1, d + 1)), loss, lam, delta, weights=weights, intercept=intercept, scale=scale
    )


def given_case(instance):
    about = (instance.A, instance.y, instance.k, instance.loss, instance.lam, instance.delta, instance.weights)
    return exactly.stated(*about, instance.intercept, instance.scale)


def prepared_case(instance):
    plain = instance.plain
    return exactly.stated(plain.A, plain.y, plain.k, plain.loss, plain.lam, plain.delta, plain.weights, plain.intercept)


def below(value):
    """The largest double that is no larger."""
    return -exactly.above(-value)


@pytest.mark.parametrize("chunk", sample(4, 40, smoke=1))
def test_lower_bounds(chunk):
    """The exact optimum of the prepared numbers becomes a bound that the exact optimum as given is not below."""
    kept = 0
    for seed in range(250 * chunk, 250 * (chunk + 1)):
        rng = np.random.default_rng([42, seed])
        instance = random_given(rng, "quadratic")
        best = tiny_problems.optimum(given_case(instance))
        bound = below(tiny_problems.optimum(prepared_case(instance)).value)
        upper = exactly.above(best.value * Fraction(rng.choice([1.0, 1.0, 2.0])))
        scopes = (False, True) if tiny_problems.within_scope(given_case(instance), best) else (False,)
        for bounded in scopes:
            lower = instance.transfer.lower(bound, upper, bounded)
            assert lower <= best.value, (seed, bounded)
            assert lower <= upper
            kept += bool(best.value > 0 and lower >= best.value * (1 - Fraction(1, 10**6)))
    assert kept > 100, "a bound of nothing is no bound"


@pytest.mark.parametrize("chunk", range(2))
def test_needed_inverts_lower(chunk):
    found = 0
    for seed in range(500 * chunk, 500 * (chunk + 1)):
        rng = np.random.default_rng([43, seed])
        instance = random_given(rng, str(rng.choice(LOSSES)))
        upper = float(10.0 ** rng.uniform(-6, 6))
        claim = upper * float(rng.choice([0.0, 0.3, 1.0 - 1e-9, 1.0]))
        for bounded in (False, True):
            needed = instance.transfer.needed(claim, upper, bounded)
            if math.isinf(needed):
                continue
            found += claim > 0
            assert needed >= claim
            assert instance.transfer.lower(needed, upper, bounded) >= claim
            less = claim - 3 * (needed - claim) if needed > claim else math.nextafter(claim, -math.inf)
            assert instance.transfer.lower(less, upper, bounded) <= claim, "and little less does not do"
    assert found > 300


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("chunk", sample(1, 20))
def test_upper_bounds(loss, chunk):
    """What a model costs for the prepared numbers becomes no less than what it costs as given."""
    for seed in range(100 * chunk, 100 * (chunk + 1)):
        rng = np.random.default_rng([44, seed])
        instance = random_given(rng, loss)
        x = rng.standard_normal(instance.A.shape[1]) * 10.0 ** rng.uniform(-6, 3)
        x[rng.random(x.size) < 0.3] = 0.0
        value = exactly.above(exactly.objective(prepared_case(instance), x * instance.prepared.scale))
        exact = exactly.objective(given_case(instance), x)
        assert instance.transfer.upper(value, x) >= exact * (1 - exactly.CLOSE), seed
        assert Fraction(exactly.above(instance.exact_objective(x.tolist()))) >= exact * (1 - exactly.CLOSE), seed


@pytest.mark.parametrize("loss", LOSSES)
def test_tame_data_lose_next_to_nothing(loss):
    for seed in range(40):
        rng = np.random.default_rng([45, seed])
        A, y = rng.standard_normal((12, 3)) + 2.0, rng.standard_normal(12)
        y = np.sign(y) if loss == "logistic" else y
        instance = GivenInstance(A, y, 2, loss, 0.5, 1.0, weights=rng.uniform(0.5, 2.0, 12), intercept=True, scale=True)
        x = rng.standard_normal(3)
        value = exactly.above(exactly.objective(prepared_case(instance), x * instance.prepared.scale))
        assert value <= instance.transfer.upper(value, x) <= value * (1 + 1e-11)
        for bounded in (False, True):
            assert value >= instance.transfer.lower(value, value, bounded) >= value * (1 - 1e-11)


def test_nothing_prepared_is_nothing_lost():
    instance = GivenInstance(np.eye(3), np.arange(3.0), 1, "quadratic", 1.0)
    assert instance.transfer.exact
    assert instance.transfer.lower(0.7, 1.0, False) == 0.7
    assert instance.transfer.lower(1.7, 1.0, False) == 1.0
    assert instance.transfer.needed(0.7, 1.0, False) == 0.7


def test_where_nothing_is_certain_nothing_is_said():
    """Offsets that leave no digit of the data, and lam = 0: any bound may be wrong by all of it."""
    A = 1e15 + np.array([[0.0, 0.125], [0.125, 0.0], [0.0, 0.0]])
    instance = GivenInstance(A / 3.0, 1e15 + np.arange(3.0) / 3.0, 1, "quadratic", 0.0, intercept=True)
    lower = instance.transfer.lower(1e-30, 1.0, False)
    assert lower == 0.0
    assert (
        instance.transfer.needed(1e-30, 1.0, False) == math.inf or instance.transfer.needed(1e-30, 1.0, False) > 1e-30
    )


def test_what_costs_more_than_nothing_needs_more_than_a_hair():
    """A bound of nearly zero for prepared data says nothing of a model that may cost nothing for the data as given."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((6, 2)) + 1e9
    about = GivenInstance(A, A[:, 0] - 1e9, 1, "quadratic", 0.1, intercept=True)
    smallest = math.nextafter(0.0, 1.0)
    needed = about.transfer.needed(smallest, 1.0, False)
    assert smallest < needed < math.inf
    assert about.transfer.lower(needed, 1.0, False) >= smallest
    assert about.transfer.lower(smallest, 1.0, False) == 0.0
