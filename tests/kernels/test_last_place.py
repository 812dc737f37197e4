"""Regions with one or two places left, closed at once: the pieces against slow twins, the whole against brute force."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances_for_tests import random_case
from regions import region_values
from samples import examples, sample

from exactsel import Problem
from exactsel.bounds.apg import AcceleratedGradientBound
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.witness import LeafFits
from exactsel.kernels import leaf_closing
from exactsel.kernels.apg import Perspective
from exactsel.kernels.leaf_candidate import add_candidate, empty_candidates
from exactsel.kernels.leaf_closing import close_last_slots, products_of_two
from exactsel.kernels.leaf_cost import cost_of_one, costs_of_pairs, margins_of, steps_of_pair
from exactsel.kernels.leaf_fit import EXTREME, REACH, empty_fit, fit_small
from exactsel.kernels.leaf_rows import bound_at_step
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.losses import Huber
from exactsel.losses.logistic import AdjustedLogistic
from exactsel.proofs.evaluating import Claim, Evaluator
from exactsel.proofs.writer import CLAIM_MARGIN

STOP = np.zeros(1, dtype=np.bool_)


def perspective_of(problem):
    return AcceleratedGradientBound().prepare(problem, BoundOptions(threads=1)).kernel_form.perspective


def prepared(rng, A, y, k, lam):
    """A problem with row weights, an intercept, both or neither."""
    weights = rng.choice([0.01, 0.5, 1.0, 3.0, 50.0], y.size) if rng.random() < 0.4 else None
    if rng.random() < 0.5:
        return Problem.prepared(A, y, k, loss="logistic", lam=lam, weights=weights, intercept=True)
    if weights is None:
        return Problem(A, y, k, loss="logistic", lam=lam)
    return Problem.prepared(A, y, k, loss="logistic", lam=lam, weights=weights)


def parts_of(loss, n):
    """Row weights, whether there is an intercept, and the loss without it."""
    if isinstance(loss, AdjustedLogistic):
        return loss.weights, loss.levelled, AdjustedLogistic(loss.weights, False)
    return np.ones(n), False, loss


def conjugate(b, y, rows):
    """L*(b) by its definition."""
    total = 0.0
    for v, p in zip(rows.tolist(), (-y * b / rows).tolist(), strict=True):
        total += v * ((p * math.log(p) if p > 0 else 0.0) + ((1 - p) * math.log1p(-p) if p < 1 else 0.0))
    return total


def formula_2(data, lam, b, columns, rows):
    """What the dual vector b says of models on ``columns``, as it is written down."""
    return -conjugate(b, data.y, rows) - np.sum((data.whole[columns] @ b) ** 2) / (2 * lam)


class Beside:
    """A fit on some columns and all others as candidates, with everything once more in plain numpy."""

    def __init__(self, seed, extreme=1.0):
        rng = np.random.default_rng(seed)
        n, d, size = int(rng.integers(4, 40)), int(rng.integers(3, 9)), int(rng.integers(0, 3))
        A = rng.standard_normal((n, d)) * rng.choice([0.3, 1.0, 3.0]) * extreme
        if rng.random() < 0.4:
            A[:, -1] = A[:, 0] * rng.choice([1.0, -2.0, 1.0 + 1e-9])
        if rng.random() < 0.2:
            A[:, rng.integers(d)] = rng.choice([0.0, 1.0])
        y = np.where(rng.random(n) < rng.choice([0.1, 0.5]), 1.0, -1.0)
        y[:2] = 1.0, -1.0
        self.lam = float(10.0 ** rng.uniform(-4, 1))
        problem = prepared(rng, A, y, size + 1, self.lam)
        self.perspective = perspective_of(problem)
        self.data = data = self.perspective.data
        self.rows, self.levelled, flat = parts_of(self.perspective.loss, n)
        self.fit = empty_fit(np.arange(size), np.zeros(size), self.rows, self.levelled)
        self.bound, self.base = fit_small(
            flat, data.AT, data.y, data.norms, self.lam, 0.3 * problem.null_objective, self.fit
        )
        self.found, self.pool = empty_candidates(d - size, n, size, self.fit.x.size), np.arange(size, d)
        self.fits = self.bound > -np.inf
        if self.fits:
            room = np.empty((4, n))
            for at, column in enumerate(self.pool.tolist()):
                slope = float(data.whole[column] @ self.fit.b)
                length = float(np.linalg.norm(self.fit.b))
                add_candidate(data.AT, data.norms, self.lam, self.fit, column, slope, length, self.found, at, room)
            self.margins = margins_of(self.fit, n, self.lam)

    def says(self, b, columns):
        """Formula (2) of b, made to sum to zero where there is an intercept."""
        if self.levelled:
            b = b - self.fit.weights * (math.fsum(b) / self.fit.weights.sum())
        return formula_2(self.data, self.lam, b, columns, self.rows)

    def twin(self, chosen, together=False):
        """Steps, t, the sum that is taken off without margins, and the longest step, of candidates ``chosen``.

        The longest step is the sum of each candidate's; with ``together`` that of any row.
        """
        fit, data, lam = self.fit, self.data, self.lam
        pi = -data.y * fit.b / self.rows
        part = np.minimum(1.0, 1.0 / (REACH * np.maximum(pi, 1 - pi)))
        part[np.minimum(pi, 1 - pi) <= EXTREME] = 0.0
        w = self.rows * pi * (1 - pi) * part
        assert np.allclose(w, fit.weights, rtol=1e-12, atol=0)
        included, others = data.whole[fit.columns].T, data.whole[self.pool[list(chosen)]].T
        ridge = lam * np.eye(fit.x.size)
        if self.levelled:
            included, ridge[-1, -1] = np.column_stack([included, np.ones(w.size)]), 0.0
        H = included.T @ (w[:, None] * included) + ridge
        moves = np.linalg.solve(H, included.T @ (w[:, None] * others))
        r = others - included @ moves
        bends = r.T @ (w[:, None] * r) + moves.T @ ridge @ moves + lam * np.eye(len(chosen))
        steps = -np.linalg.solve(bends, others.T @ fit.b)
        cubes = self.rows * pi * (1 - pi) * part**3 * abs(2 * pi - 1) * abs(r.T) ** 3
        third = np.sum(np.sum(cubes, axis=1) ** (1 / 3) * abs(steps))
        weight = self.rows * pi * (1 - pi) * part**4 * ((1 - pi) ** 3 + pi**3)
        fourth = np.sum(np.sum(weight * r.T**4, axis=1) ** 0.25 * abs(steps))
        toward = data.y[:, None] * part[:, None] * r * steps
        if together:
            toward = toward.sum(axis=1, keepdims=True)
        reach = np.sum(np.max(np.maximum((1 - pi)[:, None] * toward, -pi[:, None] * toward), axis=0))
        gain = 0.5 * steps @ bends @ steps
        cost = gain + third**3 / 6 + fourth**4 * (1 / 12 + reach / 20 + reach**2 / 5)
        return steps, w * (r @ steps), cost, reach, bends


@examples(150, 300)
@given(st.integers(0, 10**6))
def test_the_cost_of_a_pair_is_that_of_its_twin_and_proves_no_more_than_formula_2(seed):
    beside = Beside(seed)
    if not beside.fits:
        return
    count, found = len(beside.pool), beside.found
    products, costs = np.empty((2, count)), np.empty(count)
    for i in range(1, count):
        products_of_two(found.scaled, i, products)
        assert np.allclose(products[0, :i], found.scaled[:i] @ found.scaled[i], rtol=1e-9, atol=1e-12)
        if i + 1 < count:
            assert np.allclose(products[1, : i + 1], found.scaled[: i + 1] @ found.scaled[i + 1], rtol=1e-9, atol=1e-12)
        costs_of_pairs(found, beside.margins, products[0], i, costs)
        for j in range(i):
            steps, change, twin, reach, bends = beside.twin((i, j))
            if np.linalg.cond(bends) < 1e6:
                assert np.allclose(steps_of_pair(found, i, j, products[0, j]), steps, rtol=1e-6, atol=1e-9)
                if abs(reach - 1) > 1e-5:
                    assert np.isfinite(costs[j]) == (reach < 1)
                if reach < 1 - 1e-5:
                    assert costs[j] >= twin * (1 - 1e-6)
                    assert costs[j] <= twin * (1 + 1e-6) + 1e-3 * (abs(beside.bound) + 1)
            if np.isfinite(costs[j]):
                columns = np.append(beside.fit.columns, beside.pool[[i, j]])
                says = beside.says(beside.fit.b + change, columns)
                assert np.linalg.cond(bends) > 1e6 or beside.bound - costs[j] <= says + 1e-9 * (1 + abs(says))


@examples(150, 300)
@given(st.integers(0, 10**6))
def test_the_cost_of_one_candidate(seed):
    beside = Beside(seed)
    if not beside.fits:
        return
    for i in range(len(beside.pool)):
        cost, step = cost_of_one(beside.found, beside.margins, i)
        steps, change, twin, reach, _ = beside.twin((i,))
        assert np.isclose(step, steps[0], rtol=1e-6, atol=1e-9)
        if reach < 1 - 1e-5:
            assert cost <= twin * (1 + 1e-6) + 1e-3 * (abs(beside.bound) + 1)
            columns = np.append(beside.fit.columns, beside.pool[i])
            says = beside.says(beside.fit.b + change, columns)
            assert beside.bound - cost <= says + 1e-12 * (1 + abs(says))
        elif reach > 1 + 1e-5:
            assert cost == np.inf


def test_the_cost_of_one_candidate_is_seldom_much_too_large():
    """Where chances are near 0 or 1 it may be: then what rows can do at worst is far from what they do."""
    tight = []
    for beside in map(Beside, range(200)):
        for i in range(len(beside.pool) if beside.fits else 0):
            cost, _ = cost_of_one(beside.found, beside.margins, i)
            _, change, twin, reach, _ = beside.twin((i,))
            if reach < 0.3:
                says = beside.says(beside.fit.b + change, np.append(beside.fit.columns, beside.pool[i]))
                tight.append(beside.bound - cost >= says - 0.6 * twin - 1e-3 * (abs(beside.bound) + 1))
    assert len(tight) > 200
    assert np.mean(tight) > 0.98


@examples(200, 400)
@given(st.integers(0, 10**6), st.floats(-6.0, 6.0), st.floats(-6.0, 6.0), st.sampled_from([1.0, 4.0]))
def test_a_set_looked_at_row_by_row(seed, d, e, extreme):
    """Any step will do, however long: formula (2) of the dual vector written says as much, and not much more."""
    beside = Beside(seed, extreme)
    if not beside.fits or len(beside.pool) < 2:
        return
    data, fit, rows = beside.data, beside.fit, beside.rows
    columns, b = np.append(fit.columns, beside.pool[:2]), np.empty(data.y.size)
    proven = bound_at_step(
        beside.perspective.loss, data.AT, data.y, data.norms, beside.lam, fit, beside.base, beside.found, 0, 1, d, e,
        columns, b,
    )  # fmt: skip
    if proven == -np.inf:
        assert beside.levelled
        return
    says = beside.says(b, columns)
    assert np.all((-data.y * b >= 0) & (-data.y * b <= rows))
    assert not beside.levelled or abs(math.fsum(b)) <= 1e-7 * fit.weights.sum()
    assert proven <= says + 1e-12 * (1 + abs(says))
    pi, change = -data.y * fit.b / rows, abs(b - fit.b) / rows
    u = np.maximum(change / np.maximum(pi, EXTREME), change / np.maximum(1 - pi, EXTREME))
    if u.max() < 1e-3:
        assert proven >= says - 1e-9 * (1 + abs(says))
    assert proven >= says - np.sum(rows * (0.25 * u**3 + u**4)) - 1e-6 * (1 + abs(says))


def random_region(seed):
    """A problem and one of its regions with one or two places left."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 9))
    case = random_case(seed, loss="logistic", lam=float(10.0 ** rng.uniform(-6, 1.5)), n=int(rng.integers(2, 15)), d=d)
    slots = int(rng.integers(1, 3))
    included = int(rng.integers(0, 3))
    case.y[:2] = 1.0, -1.0
    problem = prepared(rng, case.A, case.y, min(d, included + slots), case.lam)
    state = np.full(problem.d, FREE, dtype=np.int8)
    order = rng.permutation(problem.d)
    state[order[: problem.k - min(slots, problem.k)]] = IN
    free = np.flatnonzero(state == FREE)
    state[free[rng.random(free.size) < 0.1]] = OUT
    return rng, problem, state


def ended(problem, state, best, tolerance, start=None, stop=STOP, adopts=True):
    perspective = perspective_of(problem)
    included, pool = np.flatnonzero(state == IN), np.flatnonzero(state == FREE)
    start = np.zeros(problem.d) if start is None else start
    return close_last_slots(
        perspective.loss, Perspective(*perspective), included, pool, problem.k - included.size, start, best, tolerance,
        1e-8 * problem.gradient_scale, adopts, stop,
    )  # fmt: skip


def test_a_stop_while_candidates_are_looked_at(monkeypatch):
    monkeypatch.setattr(leaf_closing, "_gather", lambda *arguments: (-1, np.inf))
    kernel = getattr(leaf_closing.close_slots, "py_func", leaf_closing.close_slots)
    rng = np.random.default_rng(0)
    problem = Problem(rng.standard_normal((30, 8)), rng.choice([-1.0, 1.0], 30), 2, loss="logistic", lam=0.1)
    perspective, none = perspective_of(problem), np.array([], dtype=np.int64)
    ending = kernel(
        Perspective(*perspective), perspective.loss, np.ones(30), none, np.arange(8), 2, np.zeros(8),
        0.5 * problem.null_objective, 1e-6, 1e-8, True, STOP.copy(),
    )  # fmt: skip
    assert not ending.closed
    assert ending.bound == -np.inf


def check_region(seed):
    """Close one random region; whether that worked."""
    rng, problem, state = random_region(seed)
    if not 0 < problem.k - np.count_nonzero(state == IN) < np.count_nonzero(state == FREE):
        return None
    values = region_values(problem, state)
    least = min(values.values())
    best = [least * (1 + 1e-9), 0.999 * least, 0.9 * least, 1.01 * least, 2 * least + 1, math.inf][rng.integers(6)]
    tolerance = float(rng.choice([1e-9, 1e-6, 1e-3])) * max(1e-3, abs(least))
    start, adopts = rng.standard_normal(problem.d) * rng.choice([0.0, 0.1, 3.0]), seed % 4 > 0
    ending = ended(problem, state, best, tolerance, start, adopts=adopts)
    if ending.closed:
        assert ending.bound <= least + 1e-13 * (1 + abs(least)), seed
        assert ending.bound >= min(best, ending.value if adopts else math.inf) - tolerance, seed
        assert adopts or least >= best - tolerance, "a set below the threshold is closed"
    if ending.value < np.inf:
        assert ending.value < best, seed
        support = ending.support[ending.support >= 0]
        assert np.all(state[support] != OUT), seed
        exact = problem.fit(tuple(support.tolist())).value
        assert exact - 1e-10 * (1 + exact) <= ending.value, seed
        assert not ending.closed or ending.value <= exact + tolerance + 1e-6 * problem.null_objective, seed
    if ending.closed:
        check_proven(problem, state, ending.bound)
    return ending.closed


def check_proven(problem, state, level):
    """The checker closes the region by itself at this bound."""
    claim = Claim(state.tobytes(), LeafFits(), level, 0, 0)
    margin = CLAIM_MARGIN * level + 1e-12 * problem.null_objective
    assert Evaluator(problem).short([claim], [margin], bounded=False) is None


@pytest.mark.parametrize("block", sample(3, 40, smoke=1))
def test_regions_against_brute_force(block):
    outcomes = [check_region(seed) for seed in range(900_000 + 250 * block, 900_250 + 250 * block)]
    assert sum(outcome is True for outcome in outcomes) > 60
    assert any(outcome is False for outcome in outcomes)


def test_other_losses_are_left_alone():
    rng = np.random.default_rng(1)
    problem = Problem(rng.standard_normal((20, 6)), rng.standard_normal(20), 2, loss=Huber(1.0), lam=0.1)
    ending = ended(problem, np.array([2, 1, 1, 1, 1, 1], dtype=np.int8), 1.0, 1e-6)
    assert not ending.closed
    assert ending.iterations == 0


def test_told_to_stop_nothing_is_closed():
    _, problem, state = random_region(900_001)
    values = region_values(problem, state)
    assert ended(problem, state, min(values.values()), 1e-6).closed
    assert not ended(problem, state, min(values.values()), 1e-6, stop=np.ones(1, dtype=np.bool_)).closed


def test_every_pair_counts():
    """One pair is far better than all others: it is found, and the region closed below it."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((60, 12))
    y = np.where(A[:, 4] - A[:, 9] + 0.1 * rng.standard_normal(60) > 0, 1.0, -1.0)
    problem = Problem(A, y, 2, loss="logistic", lam=0.5)
    state = np.full(12, FREE, dtype=np.int8)
    best = min(problem.fit(pair).value for pair in combinations(range(12), 2) if pair != (4, 9))
    ending = ended(problem, state, best, 1e-6)
    assert sorted(ending.support[ending.support >= 0].tolist()) == [4, 9]
    assert ending.closed
    assert ending.value - 1e-6 <= ending.bound <= problem.fit((4, 9)).value


@pytest.mark.parametrize("seed", sample(4, 4))
def test_columns_stored_by_their_entries(seed, monkeypatch):
    """They end as whole ones do, but for rounding."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((60, 9))
    A[:, ::2] = rng.random((60, 5)) < 0.15
    y = np.where(A[:, 0] - A[:, 1] + rng.standard_normal(60) > 0.3, 1.0, -1.0)
    state = np.array([IN] + [FREE] * 8, dtype=np.int8)
    endings = []
    for rows in (10**9, 1):
        monkeypatch.setattr("exactsel.problem.storing.LEAST_ROWS", rows)
        problem = Problem.prepared(A, y, 3, loss="logistic", lam=0.3, intercept=bool(seed % 2))
        assert (perspective_of(problem).data.rows.size > 0) == (rows == 1)
        endings.append(ended(problem, state, problem.fit((0, 1, 3)).value, 1e-6))
    assert endings[0].closed
    assert endings[1].closed
    assert endings[0].bound == pytest.approx(endings[1].bound, rel=1e-9)
    assert endings[0].support.tolist() == endings[1].support.tolist()


@pytest.mark.parametrize("seed", sample(6, 6))
def test_ill_scaled_columns(seed):
    """Columns of very different lengths, far from zero, and some equal: what is closed is closed soundly."""
    rng = np.random.default_rng(seed)
    A = np.column_stack(
        [2e5 * rng.random(40), 1e6 + (rng.random(40) < 0.5), rng.random((40, 3)), 1e-4 * rng.random(40)]
    )
    A = np.column_stack([A, A[:, 0], 3.0 * A[:, 2]])
    y = np.where(A[:, 0] / 1e5 + rng.standard_normal(40) > 1.0, 1.0, -1.0)
    for intercept in (True, False):
        problem = Problem.prepared(A, y, 3, loss="logistic", lam=1e-3, intercept=intercept)
        for included in range(8):
            state = np.full(8, FREE, dtype=np.int8)
            state[included] = IN
            least = min(region_values(problem, state).values())
            for best in (least, 0.9 * least):
                ending = ended(problem, state, best, 1e-6 * least)
                assert not ending.closed or ending.bound <= least + 1e-12 * (1 + least)
