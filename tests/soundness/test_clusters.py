"""Bounds by clusters of columns: against brute force over all supports, and all unions of clusters."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from samples import sample
from saved_searches import copied

from exactsel import InputError, Problem, solve
from exactsel.bounds.apg import AcceleratedGradientBound
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.fit import BOUNDED_MODELS
from exactsel.enumeration import clusters, work_budget
from exactsel.enumeration.clusters import ClusterBound, greedy_gain, merges
from exactsel.enumeration.work_budget import WholeProblemAttempt
from exactsel.problem import redundant_columns
from exactsel.search.events import RoundEnded
from exactsel.solving.settings import Settings
from exactsel.solving.solver import Search

ROWS = 350
"""So many that searches of these tests write no proof unless they are asked to."""

ENOUGH = 1e12
"""Multiplications after which it is tried, whatever the constants."""


def like_columns(rng: np.random.Generator) -> tuple[Problem, float]:
    """Columns near each other, copies (negative ones too) where there is a ridge, and the least objective."""
    d, factors = int(rng.integers(4, 9)), int(rng.integers(1, 4))
    n = int(rng.integers(3, 25))
    lam = float(rng.choice([0.0, 1e-3, 0.1])) if n > d + 2 else float(rng.choice([1e-3, 0.1]))
    of = rng.standard_normal((n, factors)) @ rng.standard_normal((factors, d))
    A = of + 10.0 ** rng.integers(-4, 1) * rng.standard_normal((n, d))
    if lam > 0.0 and rng.random() < 0.5:
        A[:, d - 1] = A[:, 0] * rng.choice([-1.0, 1.0])
        A[:, d - 2] = 1.0
    if rng.random() < 0.4:
        A *= 10.0 ** rng.integers(-6, 7, d)
    y = A @ (rng.standard_normal(d) / np.linalg.norm(A, axis=0)) + 10.0 ** rng.integers(-3, 1) * rng.standard_normal(n)
    k = int(rng.integers(1, d))
    problem = Problem(A, y, k, lam=lam)
    return problem, min(union_value(problem, support) for support in combinations(range(d), k))


def union_value(problem: Problem, columns: tuple[int, ...]) -> float:
    """The least objective on some columns, by orthogonal factors."""
    A, lam = problem.AT[list(columns)].T, problem.lam
    lengths = np.linalg.norm(A, axis=0)
    rows, target = np.vstack([A, math.sqrt(lam) * np.eye(len(columns))]) / lengths, np.append(problem.y, 0.0 * lengths)
    rest = target - rows @ np.linalg.lstsq(rows, target, rcond=1e-14)[0]
    return float(0.5 * rest @ rest)


def walker_of(problem: Problem) -> ClusterBound | None:
    curvature = AcceleratedGradientBound().prepare(problem, BoundOptions()).curvature
    curvature = np.full(problem.d, problem.lam) if curvature is None and problem.lam > 0.0 else curvature
    return None if curvature is None or not ClusterBound.serves(problem) else ClusterBound(
        problem, curvature, BoundOptions()
    )  # fmt: skip


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(clusters, "FIRST", 1.0)
    monkeypatch.setattr(clusters, "PART_ALIKE", 0.0)
    monkeypatch.setattr(clusters, "FEWEST_PLACES", 1)
    monkeypatch.setattr(clusters, "NEARLY_CLOSED", 1e-4)


@pytest.mark.parametrize("seed", sample(20, 300))
def test_no_bound_is_above_the_optimum(seed):
    rng, raised = np.random.default_rng([seed, 451]), 0
    for _ in range(10):
        problem, best = like_columns(rng)
        enumeration = walker_of(problem)
        if enumeration is None:
            continue
        for upper in (best, best + 0.5 * (problem.gram.constant - best)):
            bound = enumeration.explore(upper, 0.0, ENOUGH, WholeProblemAttempt()).bound
            assert bound <= best + 1e-9 * problem.gram.constant
            raised += bound > 0.0
    assert raised >= 2


@pytest.mark.parametrize("seed", sample(20, 300))
def test_a_level_is_proven_of_all_unions_or_the_best_union_is(seed):
    rng = np.random.default_rng([seed, 452])
    for _ in range(5):
        problem, best = like_columns(rng)
        enumeration = walker_of(problem)
        if enumeration is None or problem.d - problem.k < 2:
            continue
        labels = enumeration.labels(problem.k + 1)
        sets = combinations(range(problem.k + 1), problem.k)
        unions = [union_value(problem, tuple(np.flatnonzero(np.isin(labels, chosen)))) for chosen in sets]
        for level in (0.5 * min(unions), 0.5 * (min(unions) + problem.gram.constant)):
            proven, work = enumeration._prove(problem.k + 1, level, ENOUGH)
            assert work > 0.0
            slack = 1e-8 * problem.gram.constant
            assert proven is None or proven <= min(level, min(unions) + slack, best + slack)
            # What eliminations cannot tell from rounding is not proven.
            if min(unions) > 1e-3 * problem.gram.constant and proven is not None and proven > 0.0:
                assert proven >= min(level, min(unions)) - 1e-6 * problem.gram.constant


def dependent_columns(rng: np.random.Generator) -> tuple[Problem, float]:
    """Whole-number sums, differences and copies among other columns, and the least objective."""
    d, n = int(rng.integers(5, 10)), int(rng.integers(12, 25))
    A = rng.standard_normal((n, d)) + rng.choice([0.0, 2.0]) * rng.standard_normal((n, 1))
    for column in rng.permutation(d)[: int(rng.integers(1, 3))]:
        others = rng.permutation(np.delete(np.arange(d), column))[: int(rng.integers(1, 4))]
        A[:, column] = A[:, others] @ rng.choice([-2.0, -1.0, 1.0, 3.0], others.size)
        if np.linalg.norm(A[:, column]) < 1e-8:  # of nothing but itself, by way of the others
            A[:, column] = rng.standard_normal(n)
    if rng.random() < 0.4:
        A *= 2.0 ** rng.integers(-20, 21, d)
    y = A @ (rng.standard_normal(d) / np.linalg.norm(A, axis=0)) + 10.0 ** rng.integers(-3, 1) * rng.standard_normal(n)
    problem = Problem(A, y, int(rng.integers(1, d - 1)))
    return problem, min(union_value(problem, support) for support in combinations(range(d), problem.k))


@pytest.mark.parametrize("seed", sample(20, 600))
def test_no_bound_of_dependent_columns_is_above_the_optimum(seed, monkeypatch):
    """And each column left out lies in the span of its cluster, whatever the number of clusters."""
    monkeypatch.setattr(redundant_columns, "MOST_TAKING_PART", 0.8)
    rng, raised = np.random.default_rng([seed, 453]), 0
    for _ in range(20):
        problem, best = dependent_columns(rng)
        enumeration = ClusterBound.of(problem, None, BoundOptions()) if ClusterBound.serves(problem) else None
        if enumeration is None:
            continue
        assert enumeration.valid_for == BOUNDED_MODELS
        kept = np.setdiff1d(np.arange(problem.d), list(enumeration._left_out))
        for clusters_wanted in range(1, problem.d + 1):
            labels = enumeration.labels(clusters_wanted)
            for column in enumeration._left_out:
                same = kept[labels[kept] == labels[column]]
                own = problem.AT[column]
                rest = own - problem.AT[same].T @ np.linalg.lstsq(problem.AT[same].T, own, rcond=None)[0]
                assert np.linalg.norm(rest) <= 1e-10 * np.linalg.norm(own)
        for upper in (best, best + 0.5 * (problem.gram.constant - best)):
            bound = enumeration.explore(upper, 0.0, ENOUGH, WholeProblemAttempt()).bound
            assert bound <= best + 1e-9 * problem.gram.constant
            raised += bound > 0.0
    assert raised >= 2


def test_merges_are_those_of_average_linkage():
    """Against its definition: the pair of clusters whose members are nearest in the mean."""
    for seed in range(20):
        points = np.random.default_rng(seed).standard_normal((9, 3))
        D = np.linalg.norm(points[:, None] - points, axis=2)
        there = {j: [j] for j in range(9)}
        for kept, gone in merges(D):
            mean = {(i, j): D[np.ix_(there[i], there[j])].mean() for i, j in combinations(sorted(there), 2)}
            assert mean[kept, gone] == pytest.approx(min(mean.values()))
            there[kept] += there.pop(gone)
        assert list(there) == [0]


def test_the_greedy_gain_is_that_of_its_union():
    rng = np.random.default_rng(3)
    A, y = rng.standard_normal((30, 8)), rng.standard_normal(30)
    labels = np.array([0, 1, 1, 2, 3, 3, 3, 4])
    values = [
        0.5 * y @ y - union_value(Problem(A, y, 2), tuple(np.flatnonzero((labels == g) | (labels == h))))
        for g, h in combinations(range(5), 2)
    ]
    gain = greedy_gain(A.T @ A, A.T @ y, labels, 2)
    assert np.min(np.abs(np.array(values) - gain)) < 1e-10
    alone = max(0.5 * y @ y - union_value(Problem(A, y, 2), tuple(np.flatnonzero(labels == g))) for g in range(5))
    assert greedy_gain(A.T @ A, A.T @ y, labels, 1) == pytest.approx(alone)


def alike(seed: int, d: int = 24) -> Problem:
    """Triples of nearly equal columns."""
    rng = np.random.default_rng(seed)
    base = rng.standard_normal((ROWS, d // 3)) @ (np.eye(d // 3) + 0.3)
    A = np.repeat(base, 3, axis=1) + 0.15 * rng.standard_normal((ROWS, d))
    return Problem(A, A @ rng.standard_normal(d) + 9.0 * rng.standard_normal(ROWS), 5)


def test_a_search_takes_the_bound_over(monkeypatch):
    """It is the same search with any number of threads, and its claim holds."""
    monkeypatch.setattr(clusters, "SHARE", 1e6)
    for name in ("FIRST_TRIES", "FIRST_WORK", "WALK_WORK"):  # no walk is to be the whole search
        monkeypatch.setattr(work_budget, name, 1e4)
    plain = alike(0)
    best = min(plain.objectives(np.array(list(combinations(range(plain.d), plain.k))), 1))
    hashes = set()
    for threads in (1, 2):
        search = Search(alike(0), Settings(threads=threads), signals=(), listing=True)
        result = search.run()
        assert search.state.counted.after > 0.0
        assert search.state.proven == search.state.counted.bound > 0.0
        assert result.lower <= best * (1.0 + 1e-9)
        assert result.upper == pytest.approx(best)
        hashes.add((result.tree_hash, search.state.proven))
    assert len(hashes) == 1


def test_a_search_over_dependent_columns_says_which_models_a_bound_is_about(monkeypatch):
    monkeypatch.setattr(clusters, "SHARE", 1e6)
    for name in ("FIRST_TRIES", "FIRST_WORK", "WALK_WORK"):
        monkeypatch.setattr(work_budget, name, 1e4)
    plain = alike(2)
    A = plain.AT.T.copy()
    A[:, 3] = A[:, 0] - A[:, 1]
    problem = Problem(A, plain.y, plain.k)
    best = min(union_value(problem, support) for support in combinations(range(problem.d), problem.k))
    search = Search(problem, Settings(), signals=(), listing=True)
    result = search.run()
    assert search.state.proven == search.state.counted.bound > 0.0
    assert search.state.valid_for == BOUNDED_MODELS
    assert result.lower <= best * (1.0 + 1e-9)


def test_a_saved_search_goes_on_with_the_bound(tmp_path, monkeypatch):
    """From any round to the same end; with a proof, which has no words for it, not at all."""
    monkeypatch.setattr(clusters, "SHARE", 1e6)
    for name in ("FIRST_TRIES", "FIRST_WORK", "WALK_WORK"):
        monkeypatch.setattr(work_budget, name, 1e4)
    plain, path, copies = alike(0), tmp_path / "run.ckpt", []
    best = min(plain.objectives(np.array(list(combinations(range(plain.d), plain.k))), 1))

    def look(event, state):
        if isinstance(event, RoundEnded) and state.proven > state.floor:
            copies.append(copied(path, tmp_path / f"{len(copies)}.ckpt"))

    options = {"checkpoint": path, "checkpoint_every": 0, "callback": look, "signals": ()}
    whole = solve(alike(0), **options)
    assert copies, "the bound of the whole problem was ahead of the open nodes at some time"
    for copy in copies[:: max(1, len(copies) // 3)]:
        again = solve(alike(0), resume=copy, signals=())
        assert (again.tree_hash, again.lower, again.upper) == (whole.tree_hash, whole.lower, whole.upper)
        assert again.lower <= best * (1.0 + 1e-9)
        with pytest.raises(InputError):
            solve(alike(0), resume=copy, proof=tmp_path / "run.exsel", signals=())


def test_searches_that_write_proofs_do_without(tmp_path, monkeypatch):
    monkeypatch.setattr(ClusterBound, "explore", lambda *_: pytest.fail("no proof has words for clusters"))
    solve(alike(1), proof=tmp_path / "run.exsel", signals=())


def test_what_it_does_not_serve():
    A, y = np.random.default_rng(0).standard_normal((20, 6)), np.arange(20.0)
    assert ClusterBound.serves(Problem(A, y, 4))
    assert not ClusterBound.serves(Problem(A, y, 4, force_in=[1]))
    assert not ClusterBound.serves(Problem(A, y, 2, groups=[0, 0, 1, 1, 2, 2]))
    assert not ClusterBound.serves(Problem(A, np.sign(y - 9.5), 4, lam=1.0, loss="logistic"))
    assert not ClusterBound.serves(Problem(A, y, 6))
