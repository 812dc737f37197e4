"""Counting by cells against plain Python and brute force, on small awkward problems of two values a column."""

import math
import signal
from collections import defaultdict
from fractions import Fraction
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from restricted_problems import RESTRICTIONS, D, K, least_of
from samples import many

from exactsel.bounds.base import BoundOptions
from exactsel.closers.base import Task
from exactsel.closers.below_minorant import EnumeratePatterns
from exactsel.closers.visit import Interrupted
from exactsel.enumeration import patterns
from exactsel.enumeration.pattern_classes import classes_of, level_of, supports_of
from exactsel.enumeration.patterns import PatternEnumerator, by_cells, count_work, sets_left
from exactsel.enumeration.work_budget import WholeProblemAttempt, WorkBudget
from exactsel.kernels.cell_counting import cell_bounds, write_set
from exactsel.nodes.node import root_node
from exactsel.nodes.regions import RoundWork, as_region
from exactsel.problem.regression import Problem
from exactsel.proofs.verify import verify
from exactsel.solving import choose
from exactsel.solving.api import solve
from exactsel_certificates.container import COUNTED, read_proof

CAMPAIGN = 300

GO = np.zeros(1, dtype=np.bool_)


def all_counted(counter, nodes, work, work_budget):
    tasks = [Task(node, as_region(node)) for node in nodes]
    if counter is not None:
        EnumeratePatterns(counter).close(tasks, work, work_budget)
    return {task.node.id: task.outcome for task in tasks if task.outcome is not None}


def of_two_values(seed):
    """A small problem with copies, complements, constant columns, equal rows, weights, an intercept, demands."""
    rng = np.random.default_rng([11, seed])
    n, d = int(rng.integers(4, 40)), int(rng.integers(2, 9))
    bits = rng.random((n, d)) < rng.choice([0.1, 0.3, 0.5, 0.8], size=d)
    for j in range(1, d):
        kind = rng.random()
        if kind < 0.2:
            bits[:, j] = bits[:, rng.integers(j)] ^ (rng.random() < 0.5)
        elif kind < 0.3:
            bits[:, j] = rng.random() < 0.5
    if rng.random() < 0.3:
        bits[n // 2 :] = bits[: n - n // 2]
    score = bits @ rng.normal(size=d) * 2 + rng.choice([0.1, 1.0]) * rng.logistic(size=n)
    y = np.where(score > np.median(score), 1.0, -1.0)
    y[:2] = 1.0, -1.0
    A = bits.astype(float)
    if rng.random() < 0.5:
        A = A * rng.choice([1.0, -3.0, 0.1], size=d) + rng.choice([0.0, 0.3, -7.0], size=d)
    weights = None if rng.random() < 0.6 else rng.choice([0.0, 1.0, 2.0, 5.0], size=n)
    if weights is not None:
        weights[:2] = 1.0
    demands = {}
    if rng.random() < 0.25:
        demands["force_in"] = [int(rng.integers(d))]
        if rng.random() < 0.5:
            A[:, demands["force_in"][0]] = np.round(rng.normal(size=n), 1)
    elif rng.random() < 0.25 and d > 2:
        demands["force_out"] = [int(rng.integers(d))]
        A[:, demands["force_out"][0]] = rng.normal(size=n)
    problem = Problem.prepared(
        A, y, int(rng.integers(1, d + 1)), loss="logistic", weights=weights, lam=float(10.0 ** rng.uniform(-4, 0.5)),
        intercept=bool(rng.random() < 0.4), scale=bool(rng.random() < 0.3), **demands,
    )  # fmt: skip
    return rng, problem


def slow_bound(problem, columns):
    """The sum over cells, with a dictionary."""
    weights = np.ones(problem.n) if problem.weights is None else problem.weights
    cells = defaultdict(lambda: [0.0, 0.0])
    for row in range(problem.n):
        cells[tuple(problem.AT[list(columns), row])][int(problem.y[row] > 0)] += weights[row]
    mixed = [(p, m) for p, m in cells.values() if p > 0 and m > 0]
    return math.fsum(p * math.log1p(m / p) + m * math.log1p(p / m) for p, m in mixed)


def demanded(problem):
    """The columns that are always in, the free ones, and the places there are for these."""
    state = problem.root_state
    fixed, free = np.flatnonzero(state == 2).tolist(), np.flatnonzero(state == 1).tolist()
    return fixed, free, min(problem.k - len(fixed), len(free))


def all_fits(problem):
    """Every set of columns that fills all places, and its best model."""
    fixed, free, slots = demanded(problem)
    return {tuple(sorted((*fixed, *chosen))): problem.fit((*fixed, *chosen)) for chosen in combinations(free, slots)}


def countable(problem):
    """Whether the whole of it can be counted."""
    return PatternEnumerator.serves(problem) and math.isfinite(PatternEnumerator(problem, BoundOptions(1)).work)


def check_sums(seed):
    """Hold sums, and the list of sets within a level, against plain Python."""
    rng, problem = of_two_values(seed)
    if not countable(problem):
        return False
    classes = classes_of(problem, problem.root_state)
    fixed, free, slots = demanded(problem)
    m = len(classes.members)
    assert sorted([*classes.constant, *(j for one in classes.members for j in one)]) == free == classes.columns
    for size in range(min(m, 4) + 1):
        sets = np.array(list(combinations(range(m), size)), dtype=np.int64).reshape(math.comb(m, size), size)
        bounds = np.empty(len(sets))
        cell_bounds(classes.data, classes.cells, sets, GO, bounds)
        for row, bound in zip(sets.tolist(), bounds, strict=True):
            columns = [*fixed, *(int(rng.choice(classes.members[c])) for c in row)]
            assert bound == pytest.approx(slow_bound(problem, columns), rel=1e-9, abs=1e-9)
    slow = {columns: slow_bound(problem, columns) for columns in all_fits(problem)}
    values = sorted(slow.values())
    upper = float(rng.choice(values)) + float(rng.choice([0.0, 1e-6, 0.1]))
    size = min(slots, m)
    left = sets_left(classes, size, slots, upper, 10**6, BoundOptions(1))
    supports = supports_of(classes, left, slots, upper, 10**6, GO)
    listed = {tuple(row) for row in supports.tolist()}
    assert len(listed) == len(supports)
    assert listed >= {columns for columns, bound in slow.items() if bound < upper}
    assert all(slow[columns] <= upper + 1e-9 for columns in listed)
    return True


@pytest.mark.smoke
def test_sums_over_cells_and_lists_of_sets_are_what_plain_python_says():
    assert sum(check_sums(seed) for seed in range(CAMPAIGN)) > CAMPAIGN // 2


@pytest.mark.long
def test_sums_over_cells_of_thousands_of_problems():
    assert sum(check_sums(seed) for seed in range(CAMPAIGN, 6000)) > 2000


def check_bound(seed):
    """Hold bound and model of a count against the best model of every set."""
    rng, problem = of_two_values(seed)
    if not countable(problem):
        return False
    fits = sorted(all_fits(problem).values(), key=lambda fit: fit.value)
    given = fits[int(rng.integers(len(fits)))] if rng.random() < 0.5 else fits[0]
    assert all(slow_bound(problem, c) <= fit.value * (1 + 1e-12) for c, fit in all_fits(problem).items())
    listed = by_cells(problem, classes_of(problem, problem.root_state), given.value, 1e9, BoundOptions(1))
    best = fits[0].value
    assert listed is not None
    assert best * (1.0 - 1e-9) <= listed.bound <= best
    if given.value > best * (1.0 + 1e-9):
        assert listed.fit is not None
        assert listed.fit.value == pytest.approx(best, rel=1e-9)
    return True


@pytest.mark.smoke
def test_a_count_bounds_the_problem_by_its_best_model_whatever_it_was_given():
    assert sum(check_bound(seed) for seed in range(CAMPAIGN)) > CAMPAIGN // 2


@pytest.mark.long
def test_a_count_bounds_thousands_of_problems():
    assert sum(check_bound(seed) for seed in range(CAMPAIGN, 6000)) > 2000


def test_with_little_room_a_count_gives_up_or_begins_again_from_a_better_model(monkeypatch):
    monkeypatch.setattr(patterns, "ROOM", 4)
    monkeypatch.setattr(patterns, "SHORTEST", 3)
    monkeypatch.setattr(patterns, "MOST_PROMISING", 2)
    given_up = improved = exact = 0
    for seed in range(CAMPAIGN):
        _, problem = of_two_values(seed)
        if not countable(problem):
            continue
        fits = sorted(all_fits(problem).values(), key=lambda fit: fit.value)
        classes = classes_of(problem, problem.root_state)
        listed = by_cells(problem, classes, fits[-1].value, 0.0, BoundOptions(1))
        if listed is None:
            given_up += 1
        elif listed.bound == -math.inf:
            improved += 1
            assert fits[0].value * (1 - 1e-9) <= listed.fit.value < fits[-1].value
        else:
            exact += 1
            assert fits[0].value * (1.0 - 1e-9) <= listed.bound <= fits[0].value
    assert min(given_up, improved, exact) > 5


@given(st.lists(st.tuples(st.integers(0, 10**5), st.integers(0, 10**5)), min_size=1, max_size=16))
def test_the_level_has_room_for_the_rounding_of_a_sum(cells):
    """Exact logarithms are those of fractions, summed in exact arithmetic from doubles with an error of their own."""
    rows = sum(p + m for p, m in cells)
    x = np.arange(rows + 1, dtype=np.float64)
    table = x * np.log(np.maximum(x, 1.0))
    computed = 0.0
    for p, m in cells:
        computed += table[p + m] - table[p] - table[m]
    mixed = [(p, m) for p, m in cells if p * m]
    exact = sum((p * Fraction(math.log1p(m / p)) + m * Fraction(math.log1p(p / m)) for p, m in mixed), Fraction(0))
    level = level_of(SimpleNamespace(data=SimpleNamespace(table=table), cells=len(cells)), float(exact), 0)
    assert computed <= level + 1e-15 * float(exact)
    assert computed >= float(exact) - (level - float(exact)) - 1e-15 * float(exact)
    assert level <= float(exact) * (1 + 1e-15) + 1e-13 * table[-1] + 1e-300


def test_sets_have_the_numbers_they_were_given():
    ways = np.array([[math.comb(i, a) for a in range(4)] for i in range(8)], dtype=np.int64)
    made = []
    for number in range(math.comb(7, 3)):
        out = np.empty(3, dtype=np.int64)
        write_set(number, ways, out)
        made.append(tuple(out.tolist()))
    assert sorted(made) == list(combinations(range(7), 3))


def forced(monkeypatch):
    """Count at once, and list nothing by a minorant."""
    monkeypatch.setattr(patterns, "WAIT", 0.0)
    monkeypatch.setattr(patterns, "LOOK", -1)
    monkeypatch.setattr(patterns, "SHORTEST", 10**5)
    monkeypatch.setattr(choose, "listable", lambda problem: False)


@pytest.mark.smoke
def test_a_search_that_counts_finds_what_brute_force_finds(monkeypatch):
    forced(monkeypatch)
    used = 0
    for seed in range(many(40, 120)):
        _, problem = of_two_values(seed)
        result = solve(problem, rel_eps=0.0)
        best = min(fit.value for fit in all_fits(problem).values())
        assert result.upper == pytest.approx(best, rel=1e-9)
        assert result.lower <= best * (1 + 1e-12)
        if countable(problem):
            used += 1
            assert set(result.history.closed) == {"listed"}
            assert "cells" in result.settings["method"]
            assert result.reached
    assert used > many(16, 50)


def admissible(kind, seed):
    """A problem of two values in every column under a restriction, and what its best model costs."""
    rng = np.random.default_rng([5, seed])
    n = int(rng.integers(6, 40))
    bits = rng.random((n, D)) < rng.choice([0.2, 0.5, 0.7], size=D)
    bits[:, 5], bits[:, 7] = bits[:, 0] ^ (seed % 2 == 0), True
    score = bits[:, :3] @ np.array([1.5, 1.0, rng.choice([0.8, -0.8])]) - 1.0
    y = np.where(score + rng.choice([0.1, 0.6]) * rng.logistic(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    free = Problem(bits.astype(float), y, K, loss="logistic", lam=float(10.0 ** rng.uniform(-3, 0)))
    problem = RESTRICTIONS[kind](free)
    return problem, least_of(problem).value


@pytest.mark.parametrize("kind", RESTRICTIONS)
def test_restrictions_dispose_of_what_a_count_leaves(monkeypatch, kind):
    """With the proof that every search in the tests must come to."""
    forced(monkeypatch)
    used = 0
    for seed in range(many(3, 60)):
        problem, best = admissible(kind, seed)
        result = solve(problem, rel_eps=0.0, signals=())
        used += "listed" in result.history.closed
        assert result.upper == pytest.approx(best, rel=1e-8)
        assert result.lower <= best * (1.0 + 1e-12)
    assert used > 0


def larger(rows=600, columns=14, k=4, noise=0.2, share=0.3):
    """A problem that the relaxation does not solve at its root."""
    rng = np.random.default_rng(3)
    A = (rng.random((rows, columns)) < share).astype(float)
    y = np.where(A[:, 0] + A[:, 1] * A[:, 2] - 0.7 + noise * rng.logistic(size=rows) > 0, 1.0, -1.0)
    return Problem(A, y, k, loss="logistic", lam=1e-3)


def test_threads_and_rounds_make_no_difference(monkeypatch):
    forced(monkeypatch)
    problem = larger()
    one, two = (solve(problem, rel_eps=0.0, threads=threads) for threads in (1, 2))
    assert set(one.history.closed) == {"listed"}
    assert (one.tree_hash, one.lower, one.support) == (two.tree_hash, two.lower, two.support)
    monkeypatch.setattr(patterns, "LOOK", 100)
    later = solve(problem, rel_eps=0.0)
    assert later.upper == one.upper
    monkeypatch.undo()
    assert solve(problem, rel_eps=0.0).upper == pytest.approx(one.upper, rel=1e-9)


def test_who_wants_to_replay_a_search_or_counts_its_nodes_gets_no_count(monkeypatch, tmp_path):
    forced(monkeypatch)
    problem = larger()
    others = [{"record": True}, {"details": True}, {"node_limit": 1000}, {"batch": 4}, {"bound": "apg"}]
    others += [{"subtrees": False}, {"trace": tmp_path / "t.jsonl"}]
    for options in others:
        result = solve(problem, rel_eps=1e-6, **options)
        assert "listed" not in result.history.closed
        assert "cells" not in result.settings["method"]


def test_a_proof_of_a_count_is_one_word(monkeypatch, tmp_path):
    """Also after the search has closed some regions, and points of these were written; stopped with others open."""
    forced(monkeypatch)
    monkeypatch.setattr(patterns, "LOOK", 0)
    problem, path, seen = larger(240, 20, noise=1.0, share=0.5), tmp_path / "p.exsel", []

    def look(event, state):
        if math.isfinite(state.counted.bound) and not seen:
            seen.append(state.proven)
            signal.raise_signal(signal.SIGINT)

    result = solve(problem, rel_eps=1e-9, proof=path, callback=look)
    assert seen[0] * (1.0 - 1e-9) <= result.lower <= result.upper, "but for what preparing the data rounds"
    assert "listed" in result.history.closed
    proof = read_proof(path)
    assert proof.tree.tolist() == [COUNTED]
    assert proof.point_size.size == 0
    assert verify(problem, path).verified
    # What a reader could not count again is not counted.
    monkeypatch.setattr("exactsel_certificates.estimate.countable", lambda *sizes: False)
    again = solve(problem, rel_eps=1e-3, proof=path)
    assert "listed" not in again.history.closed
    assert verify(problem, path).verified


def test_a_count_that_is_told_to_stop_claims_nothing():
    problem = larger()
    counter = PatternEnumerator(problem, BoundOptions(1, stop=np.ones(1, dtype=np.bool_)))
    node = root_node(problem.root_state, 0.0)
    assert all_counted(None, [node], RoundWork(1e9), WorkBudget()) == {}
    with pytest.raises(Interrupted):
        all_counted(counter, [node], RoundWork(1e9), WorkBudget(iterations=10**9))
    counter = PatternEnumerator(problem, BoundOptions(1))
    best = solve(problem, rel_eps=0.0).upper
    (outcome,) = all_counted(counter, [node], RoundWork(best), WorkBudget(iterations=10**9)).values()
    assert outcome.region.closed == "listed"
    assert best * (1 - 1e-9) <= outcome.region.bound <= best


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_the_work_of_a_count_is_known_beforehand(size):
    rng = np.random.default_rng(0)
    A = (rng.random((3000, 40)) < rng.uniform(0.05, 0.5, size=40)).astype(float)
    problem = Problem(A, np.where(rng.random(3000) < 0.4, 1.0, -1.0), size, loss="logistic", lam=1.0)
    classes = classes_of(problem, problem.root_state)
    assert len(classes.members) == 40
    work = count_work(classes, size)
    assert 0 < work < math.inf
    done = np.zeros(32)
    if size < 2:
        return

    def noted(*arguments, keep=patterns.count_sets):
        keep(*arguments)
        done[:] += arguments[-1]

    original, patterns.count_sets = patterns.count_sets, noted
    try:
        assert len(sets_left(classes, size, size, 0.1, 10**6, BoundOptions(1))) == 0
    finally:
        patterns.count_sets = original
    assert done.sum() <= work <= 3.0 * done.sum()


def test_what_cannot_be_counted():
    rng = np.random.default_rng(0)
    A, y = (rng.random((50, 6)) < 0.4).astype(float), np.where(rng.random(50) < 0.5, 1.0, -1.0)
    three = A.copy()
    three[3, 2] = 0.5
    assert PatternEnumerator.serves(Problem(A, y, 3, loss="logistic", lam=1.0))
    others = [
        Problem(three, y, 3, loss="logistic", lam=1.0),
        Problem(A, y, 3, loss="huber", delta=1.0, lam=1.0),
        Problem(A, y, 3, lam=1.0),
        Problem(A, y, 2, loss="logistic", lam=1.0, groups={"a": [0, 1]}),
        Problem(A, y, 2, loss="logistic", lam=1.0, hierarchy={"2": ["0"]}),
        Problem.prepared(A, y, 3, loss="logistic", lam=1.0, weights=np.full(50, 0.3)),
    ]
    assert not any(PatternEnumerator.serves(problem) for problem in others)
    everything = PatternEnumerator(Problem(A, y, 6, loss="logistic", lam=1.0), BoundOptions(1))
    assert everything.work == math.inf
    hasty = PatternEnumerator(Problem(A, y, 3, loss="logistic", lam=1.0), BoundOptions(1, seconds=1e-9))
    assert hasty.work == math.inf
    assert hasty.explore(1e9, 10**6, WholeProblemAttempt()) == (None, WholeProblemAttempt())
