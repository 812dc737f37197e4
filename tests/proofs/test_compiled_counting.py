"""The checker's compiled count: the answers of the one in numpy, never too much, and margins that are needed."""

from __future__ import annotations

import random
from fractions import Fraction as F
from itertools import combinations

import numpy as np
import pytest
from counted import first_says, random_file
from hypothesis import given
from hypothesis import strategies as st
from samples import examples, many, sample
from tiny_problems import optimum, random_case

from exactsel_certificates import counting, semidefinite
from exactsel_certificates.exact import ExactBounds
from exactsel_certificates.formula import Instance
from exactsel_certificates.polishing import Polisher
from exactsel_certificates.rigorous import RigorousBounds
from exactsel_certificates.semidefinite import Semidefinite

compiled = pytest.importorskip("exactsel_certificates.compiled")
pytestmark = pytest.mark.skipif(not hasattr(compiled.count, "py_func"), reason="compiling is turned off")


@pytest.fixture
def always(monkeypatch):
    """Counts are compiled however small they are."""
    monkeypatch.setattr(semidefinite, "compiled", lambda sets, regions: compiled.count)


def instance_like_benchmarks(rng, widest=24):
    """Few rows or many, lam 0 or not, copies, columns of zeros, nearly dependent and integer columns."""
    n, d = int(rng.integers(2, 40)), int(rng.integers(1, widest))
    A = rng.standard_normal((n, d)) + rng.choice([0.0, 1.0]) * rng.standard_normal((n, 1))
    if rng.random() < 0.3:
        A = rng.integers(-1, 2, (n, d)).astype(float)
    for kind in rng.integers(0, 4, 2):
        if d > 1 and kind == 1:
            A[:, -1] = A[:, 0] * float(rng.choice([1.0, -4.0, 3.0]))
        elif d > 1 and kind == 2:
            A[:, -1] = A[:, 0] + 10.0 ** rng.uniform(-9, -2) * A[:, -1]
        elif kind == 3:
            A[:, int(rng.integers(d))] = 0.0
    y = rng.standard_normal(n) if rng.random() < 0.7 else A @ rng.standard_normal(d) + 0.1 * rng.standard_normal(n)
    lam = float(rng.choice([0.0, 0.0, 0.1, 3.0]))
    return Instance(A, y, int(rng.integers(1, min(d, 6) + 1)), "quadratic", lam)


def regions_of(rng, instance, count=12):
    """States in the order of a walk: neighbours share most of what they have decided."""
    d, state = instance.A.shape[1], np.ones(instance.A.shape[1], dtype=np.uint8)
    states = []
    for _ in range(count):
        for j in rng.integers(0, d, int(rng.integers(1, 4))):
            state[j] = rng.choice([0, 1, 1, 2])
        state[np.flatnonzero(state == 2)[instance.k :]] = 1
        states.append(state.copy())
    return np.array(states)


@pytest.mark.smoke
@examples(80, 300)
@given(st.integers(0, 2**32))
def test_the_same_regions_are_closed(seed):
    rng = np.random.default_rng(seed)
    instance = instance_like_benchmarks(rng)
    states = regions_of(rng, instance)
    c = 0.5 * float(instance.y @ instance.y)
    for level in c * np.array(
        [*rng.uniform(0, 1, 2), *(1 - 10.0 ** rng.uniform(-5, 0, 2)), 10.0 ** rng.uniform(-3, 0)]
    ):
        at = Semidefinite(RigorousBounds(instance), float(level), 1e12, rng.permutation(instance.A.shape[1])[:3])
        if not at.usable:
            continue
        expected = at._counted_in_tables(states, instance.k)
        found = np.zeros(len(states), dtype=np.bool_)
        rooms = np.array([at.room(size) for size in range(instance.k + 1)])
        compiled.count(at.Q, at.diagonal, rooms, at.alike, states[:, at.order], instance.k, found)
        np.testing.assert_array_equal(found, expected)
        parts = [np.array([*at._by_pivots(state)]) for state in states[:2]]
        for whole, each in zip(expected, parts, strict=False):
            slots = instance.k - np.sum(each == 2, axis=1)
            if np.all(slots >= 0):
                assert not whole or np.all(at._counted_in_tables(each, instance.k))


@pytest.mark.smoke
def test_every_triple_is_looked_at():
    """One set of three is below the level, wherever it stands among more columns than are looked at together."""
    rng = np.random.default_rng(3)
    X = np.linalg.qr(rng.standard_normal((90, 70)))[0]
    slots = [
        [70 - 1, 1, 0],
        [5, 4, 3],
        [8, 7, 6],
        [33, 32, 31],
        *(rng.permutation(70)[:3].tolist() for _ in range(200)),
    ]
    for k in (3, 4):
        for chosen in slots if k == 3 else slots[:20]:
            order = np.concatenate([chosen, np.setdiff1d(np.arange(70), chosen)])
            A = np.empty((90, 70))
            A[:, order] = X
            # Any two of the three say next to nothing of y, and what a fourth one adds is less than a hundredth.
            A[:, chosen[2]] = -A[:, chosen[0]] - A[:, chosen[1]] + 1e-2 * X[:, 2]
            y = X[:, 2] + 0.01 * rng.standard_normal(90)
            instance = Instance(A, y, k, "quadratic", 0.0)
            best = 0.5 * float(np.linalg.lstsq(A[:, chosen], y, rcond=None)[1][0])
            for level, closed in ((1.1 * best, False), (0.8 * best, True)):
                at = Semidefinite(RigorousBounds(instance), level, 1e12, rng.permutation(70)[:9])
                found = np.zeros(1, dtype=np.bool_)
                rooms = np.array([at.room(size) for size in range(k + 1)])
                states = np.ones((1, 70), dtype=np.uint8)
                compiled.count(at.Q, at.diagonal, rooms, at.alike, states, k, found)
                assert found[0] == closed, (chosen, k)


@pytest.mark.smoke
@pytest.mark.parametrize(("d", "k"), [(6, 1), (6, 2), (7, 3), (7, 4), (8, 6)])
@pytest.mark.parametrize("fixed", [0, 1])
def test_the_one_set_below_the_level_is_found_wherever_it_stands(d, k, fixed):
    """For each set of k columns a target of which these, and no others, leave least; the level is between."""
    rng = np.random.default_rng(d + k)
    A = rng.standard_normal((40, d))
    for chosen in combinations(range(d), k):
        y = A[:, chosen] @ rng.choice([-1.0, 1.0], k) + 0.1 * rng.standard_normal(40)
        instance = Instance(A, y, k, "quadratic", 0.0)
        state = np.ones((1, d), dtype=np.uint8)
        state[0, chosen[: fixed * (k > 1)]] = 2
        sets = [each for each in combinations(range(d), k) if {*np.flatnonzero(state[0] == 2)} <= {*each}]
        values = sorted((float(least(instance, each)), each) for each in sets)
        assert values[0][1] == chosen
        for level, closed in ((0.5 * (values[0][0] + values[1][0]), False), (values[0][0] * (1 - 1e-9), True)):
            at = Semidefinite(RigorousBounds(instance), level, 1e12, np.arange(0))
            found = np.zeros(1, dtype=np.bool_)
            rooms = np.array([at.room(size) for size in range(k + 1)])
            compiled.count(at.Q, at.diagonal, rooms, at.alike, state, k, found)
            assert found[0] == closed == at._counted_in_tables(state, k)[0]


def test_what_was_eliminated_with_another_margin_is_not_kept():
    states, passed = np.array([[2, 0], [2, 1]], dtype=np.uint8), np.zeros(2, dtype=np.bool_)
    diagonal, rooms = np.array([1.0, 10.0, 1.0]), np.array([0.0, 0.0, 1.5])
    compiled.count(np.diag(diagonal), diagonal, rooms, np.arange(2), states, 2, passed)
    assert passed.tolist() == [True, False]


def least(instance, columns):
    return Polisher(ExactBounds(instance)).least_squares([*columns])


def held_above(seeds, monkeypatch, spare=None):
    """How often regions of all sizes are closed at a level their best model is just below of; and just above."""
    wrong, right = 0, 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(8, 30)), int(rng.integers(3, 8))
        A = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-4, 4, d) ** (seed % 2)
        if seed % 4 > 1:
            A[:, -1] = A[:, 0] + 10.0 ** rng.uniform(-7, -2) * A[:, -1]
        y = A @ rng.standard_normal(d) + 10.0 ** rng.uniform(-3, 0) * rng.standard_normal(n)
        k = int(rng.integers(1, d))
        instance = Instance(A, y, k, "quadratic", float(rng.choice([0.0, 1e-6, 1.0])))
        value = min(least(instance, chosen) for chosen in combinations(range(d), k))
        states = np.ones((1, d), dtype=np.uint8)
        for size in (-16, -15, -14, -13, -12, -11, -9, -6):
            for more in (1, -1):
                level = float(value * (1 + more * F(1, 10**-size)))
                at = Semidefinite(RigorousBounds(instance), level, 1e12, np.arange(0))
                if spare is not None:
                    monkeypatch.setattr(at, "room", lambda m, more=0.0: spare)
                holds = bool(at.counted(states, k)[0])
                wrong += holds and F(level) > value
                right += holds
    return wrong, right


@pytest.mark.smoke
@pytest.mark.parametrize("chunk", sample(2, 10))
def test_nothing_is_closed_just_above_its_best_model(chunk, always, monkeypatch):
    wrong, right = held_above(range(60 * chunk, 60 * chunk + 60), monkeypatch)
    assert wrong == 0
    assert right > 100


def test_without_the_margin_it_would_be(always, monkeypatch):
    assert held_above(range(120), monkeypatch, spare=0.0)[0] > 0


def passes(a, b, c):
    """Whether one triple passes in single precision, whatever else there is being zero."""
    q = np.zeros((8, 8), dtype=np.float32)
    q[4, 1], q[4, 0], q[1, 0] = a, b, c
    q = q + q.T
    np.fill_diagonal(q, compiled.OWN)
    row = q[4].copy()
    row[4:] = np.nan
    with np.errstate(all="ignore"):
        p = np.sqrt(compiled.TOP - row * row)
        return bool(compiled._rows_hold.py_func(q, row, p, 0, 4))


def definite(a, b, c):
    a, b, c = F(a), F(b), F(c)
    return max(abs(a), abs(b)) <= 1 and (c - a * b) ** 2 <= (1 - a * a) * (1 - b * b)


def thin_triples(count):
    """Cosines of three angles of which one is nearly the sum of the others, or all together nearly a turn."""
    rng = np.random.default_rng(7)
    for _ in range(count):
        first, second = rng.uniform(0, np.pi, 2) ** rng.choice([1, 1, 3], 2) / np.pi ** rng.choice([0, 0, 1, 2])
        third = first + second + float(rng.choice([0, 1])) * rng.uniform(-1, 1) * 10.0 ** rng.uniform(-9, -5)
        yield rng.permutation(np.cos([first, second, third])).tolist()


@pytest.mark.smoke
def test_single_precision_never_passes_what_is_not_definite():
    passed = 0
    for a, b, c in thin_triples(1500):
        if passes(a, b, c):
            passed += 1
            assert definite(a, b, c)
    assert passes(0.5, 0.5, 0.5)
    assert not passes(np.nan, 0.0, 0.0)
    assert not passes(0.0, 0.0, np.nan)
    assert not passes(1.5, 0.0, 0.0)
    assert not passes(1.5, 1.5, 1.5)
    assert not passes(0.0, 0.0, 1.0)


@pytest.mark.parametrize(("top", "allowed"), [(1.0, 2.0**-30), (1.0, 0.0), (1.0 - 2.0**-21, -(2.0**-19))])
def test_without_its_allowances_it_would(top, allowed, monkeypatch):
    monkeypatch.setattr(compiled, "TOP", np.float32(top))
    monkeypatch.setattr(compiled, "ALLOWED", np.float32(allowed))
    assert any(passes(*each) and not definite(*each) for each in thin_triples(1500))


@pytest.mark.parametrize("chunk", sample(3, 20, smoke=1))
def test_no_forged_claim_is_verified(chunk, always):
    """Trees of any shape over tiny problems, claims just above the truth and far above it."""
    proven = 0
    for seed in range(chunk * 100, chunk * 100 + many(36, 100)):
        rng = random.Random(seed)
        case = random_case(rng, "quadratic", widest=6)
        best = optimum(case)
        file = random_file(rng, case, fits=rng.random() < 0.5)
        if best.value <= 0:
            continue
        for more in (F(1, 10**9), F(1, 10**6), F(1, 100), F(1)):
            verdict = first_says(case, file, lower=float(best.value * (1 + more)) + 1e-300, upper=1e300)
            assert not verdict.verified, (seed, more)
            assert F(verdict.lower) <= best.value, (seed, more)
        proven += first_says(case, file, lower=float(best.value * (1 - F(1, 10**9))), upper=1e300).verified
    assert proven > 10


def test_when_it_is_used(monkeypatch):
    monkeypatch.setattr(counting._Work, "asked_for", 0.0)
    monkeypatch.setattr(counting._Work, "seconds", 0.0)
    monkeypatch.setenv("EXACTSEL_JIT", "0")
    assert counting.compiled(1e300, 10) is None
    monkeypatch.delenv("EXACTSEL_JIT")
    counting._twin.cache_clear()
    assert counting.compiled(1e300, 10) is compiled.count
    monkeypatch.setattr(counting, "_twin", lambda: (compiled.count, False))
    monkeypatch.setattr(counting._Work, "asked_for", 0.0)
    assert counting.compiled(1.0, 1) is None
    # A little at a time, as by whoever looks at what workers answer: in the end it pays as well.
    few = 0.3 * counting.COMPILED_FROM
    assert [counting.compiled(few, 0) for _ in range(4)] == [None, None, None, compiled.count]
    monkeypatch.setattr(counting._Work, "asked_for", 0.0)
    # What has taken long pays, however few sets it was.
    ticks = iter((1.0, 1.0 + 0.75 * counting.COMPILING) * 2)
    monkeypatch.setattr(counting, "_processor_time", lambda: next(ticks))
    for answer in (None, compiled.count):
        with counting.without_twin():
            pass
        assert counting.compiled(1.0, 1) is answer
    monkeypatch.setattr(counting._Work, "seconds", 0.0)
    monkeypatch.setattr(counting, "_twin", lambda: (compiled.count, True))
    assert counting.compiled(1.0, 1) is compiled.count
    monkeypatch.setattr(counting, "_twin", lambda: (None, True))
    assert counting.compiled(1e300, 1) is None
