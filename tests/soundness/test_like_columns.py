"""Weak columns that are like each other, taken together: never less than what some of them take off a fit."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from exactsel import _jit
from exactsel.bounds.base import never_stop
from exactsel.enumeration.cosine_graphs import graph_above, graphs
from exactsel.enumeration.cosines import LeftColumns, tournament
from exactsel.enumeration.like_columns import LikeColumns, factors, partitions
from exactsel.enumeration.products import Products
from exactsel.enumeration.weak_columns import TooMuchAlikeError, WeakColumns
from exactsel.kernels import connected
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.problem.regression import Problem
from exactsel.proofs.instance import instance_of
from exactsel_certificates.rigorous import RigorousBounds
from exactsel_certificates.standalone.losses import LOSSES
from exactsel_certificates.standalone.regression import Regression
from exactsel_certificates.standalone.strong import StrongColumns as Exactly
from exactsel_certificates.strong import StrongColumns as Checked
from exactsel_dev.reference.semidefinite import strong_bound


def correlated(rng, n, d):
    """Neighbours alike, blocks of equal correlation, or anything; now and then copies, sums, and other units."""
    A, rho = rng.normal(size=(n, d)), rng.choice([0.0, 0.3, 0.5, 0.7, 0.9])
    kind = rng.integers(3)
    if kind == 0:
        for j in range(1, d):
            A[:, j] = rho * A[:, j - 1] + np.sqrt(1.0 - rho**2) * A[:, j]
    if kind == 1:
        blocks = np.repeat(rng.normal(size=(n, d)), rng.integers(2, 5), axis=1)[:, :d]
        A = np.sqrt(1.0 - rho) * A + np.sqrt(rho) * blocks
    for change in rng.choice(6, size=rng.integers(0, 3), replace=False):
        i, j, m = rng.choice(d, size=3, replace=False)
        noise = 10.0 ** rng.integers(-9, 0) * rng.normal(size=n)
        A[:, j] = (A[:, i], -A[:, i], A[:, i] + A[:, m], A[:, i] + noise, A[:, j] * 1e6, A[:, j] * 1e-6)[change]
    return A


def drawn(rng):
    n, d = int(rng.integers(12, 300)), int(rng.integers(6, 12))
    A = correlated(rng, n, d)
    y = A @ (rng.normal(size=d) * (rng.random(d) < 0.4)) + 10.0 ** rng.integers(-2, 2) * rng.normal(size=n)
    lam = float(rng.choice([0.0, 0.0, 0.1, 10.0]))
    return Problem(A, y, int(rng.integers(1, 6)), lam=lam)


def weak_of(rng, problem):
    """Some strong columns and all others; None where these are too much alike, or columns are zero."""
    if not np.all(np.any(problem.A, axis=0)):
        return None
    strong = np.sort(rng.choice(problem.d, size=rng.integers(0, 3), replace=False)).astype(np.int64)
    weak = np.setdiff1d(np.arange(problem.d), strong)
    try:
        return WeakColumns(Products(problem), strong, weak, problem.k, most_alike=problem.d)
    except (np.linalg.LinAlgError, TooMuchAlikeError):
        return None


def cosines_left(problem, weak):
    """The slow twin of what elimination leaves, by an inverse; None where that is not to be trusted."""
    strong, rest = weak.strong, weak.weak
    length = np.sqrt(np.einsum("ij,ij->j", problem.A, problem.A) + problem.lam)
    unit = problem.A / length
    H = unit.T @ unit + np.diag(problem.lam / length**2)
    if len(strong) and np.linalg.cond(H[np.ix_(strong, strong)]) > 1e6:
        return None
    M = H[np.ix_(rest, rest)] - H[np.ix_(rest, strong)] @ np.linalg.solve(
        H[np.ix_(strong, strong)], H[np.ix_(strong, rest)]
    )
    length = np.sqrt(np.diagonal(M))
    return M / np.outer(length, length)


@pytest.mark.parametrize("cases", [150, pytest.param(30_000, marks=pytest.mark.slow)])
def test_no_set_of_weak_columns_gains_more_than_its_bound(cases):
    rng, finite, ratios = np.random.default_rng(11), 0, []
    for _ in range(cases):
        problem = drawn(rng)
        weak = weak_of(rng, problem)
        if weak is None or not weak.known.all():
            continue
        bound = LikeColumns(weak, graph_above(weak, float(rng.uniform(0.05, 0.9))))
        included = rng.random(len(weak.strong)) < 0.6
        values = [
            problem.fit(chosen).value for chosen in combinations(weak.strong[included].tolist(), int(included.sum()))
        ]
        below = weak.below(included, 0.9 * values[0])
        if below is None or not bound.listed:
            continue
        C = cosines_left(problem, weak)
        if C is None:
            continue
        for count in range(1, weak.slots + 1):
            gains = bound._gains(below)
            cheap = bound._worst(gains, below, count)
            while bound._look_closer(worst := bound._worst(gains, below, count), gains, count):
                pass
            assert worst.gain <= cheap.gain
            most = max(
                below.u[list(chosen)] @ np.linalg.solve(C[np.ix_(chosen, chosen)], below.u[list(chosen)])
                if np.linalg.cond(C[np.ix_(chosen, chosen)]) < 1e9 else 0.0
                for chosen in combinations(range(len(weak.weak)), count)
            )  # fmt: skip
            assert most <= worst.gain * (1.0 + 1e-7)
            assert bound._least(gains, below, count) <= worst.gain
            if np.isfinite(worst.gain):
                finite += 1
                ratios.append(worst.gain / max(most, 1e-300))
    assert finite > cases
    assert np.median(ratios) < 1.5


def test_sets_and_their_likeness_are_those_of_a_slow_twin():
    rng = np.random.default_rng(12)
    for _ in range(15):
        problem = drawn(rng)
        weak = weak_of(rng, problem)
        if weak is None or not weak.known.all() or weak.slots < 2:
            continue
        tau = float(rng.uniform(0.1, 0.6))
        bound, C = LikeColumns(weak, graph_above(weak, tau)), cosines_left(problem, weak)
        if C is None:
            continue
        touching = np.abs(C) >= tau
        for m in range(2, weak.slots + 1):
            expected = [chosen for chosen in combinations(range(len(C)), m) if _connected(touching, chosen)]
            sets = bound._sets.get(m)
            assert sorted(tuple(sorted(row)) for row in ([] if sets is None else sets.members.tolist())) == expected
            if sets is None:
                continue
            before, finite = sets.likeness.copy(), np.flatnonzero(np.isfinite(sets.spread))
            if m < weak.slots:
                bound._look(m, finite)
            for row in finite.tolist():
                chosen = sets.members[row]
                inverse = np.linalg.inv(C[np.ix_(chosen, chosen)])
                assert 1.0 <= np.linalg.norm(inverse, 2) <= sets.spread[row] * (1.0 + 1e-8)
                others = np.flatnonzero(~touching[chosen].any(axis=0))
                like = np.sort(np.einsum("ij,ik,kj->j", C[np.ix_(chosen, others)], inverse, C[np.ix_(chosen, others)]))
                exactly = np.cumsum(np.append(0.0, like[::-1]))
                for q in range(weak.slots - m + 1):
                    assert exactly[min(q, len(like))] <= sets.likeness[row, q] * (1.0 + 1e-9)
                    assert sets.likeness[row, q] <= before[row, q]


def _connected(touching, chosen):
    reached, waiting = {chosen[0]}, [chosen[0]]
    while waiting:
        i = waiting.pop()
        new = [j for j in chosen if touching[i, j] and j not in reached]
        reached.update(new)
        waiting += new
    return len(reached) == len(chosen)


def test_kernels_interpreted_and_compiled_list_the_same():
    if not _jit.ENABLED:
        pytest.skip("every kernel's own text runs")
    problem = drawn(np.random.default_rng(13))
    weak = WeakColumns(Products(problem), np.zeros(0, dtype=np.int64), np.arange(problem.d), 3, most_alike=99)
    graph, found = graph_above(weak, 0.2), []
    for kernel in (connected.connected_sets, connected.connected_sets.text):
        counts, first = np.zeros(4, dtype=np.int64), np.array([0, 0, 0, 200])
        sets = np.zeros(5_000, dtype=np.int32)
        found.append((kernel(graph.starts, graph.neighbours, 3, 999, counts, first, sets, never_stop()), counts, sets))
    assert found[0][0] == found[1][0]
    assert np.array_equal(found[0][1], found[1][1])
    assert np.array_equal(found[0][2], found[1][2])


def test_graphs_grow_and_none_has_a_cosine_at_its_threshold():
    rng = np.random.default_rng(14)
    A = correlated(rng, 200, 120)
    problem = Problem(A, rng.normal(size=200), 4, lam=0.0)
    weak = WeakColumns(Products(problem), np.zeros(0, dtype=np.int64), np.arange(120), 4, most_alike=999)
    found = list(graphs(weak))
    edges = [graph.neighbours.size for graph in found]
    assert edges == sorted(set(edges))
    assert edges[0] == 0
    for graph in found[1:]:
        assert np.min(np.abs(weak.sizes - graph.tau)) >= 4e-7
        assert graph.neighbours.size == np.count_nonzero(weak.sizes >= graph.tau)


def test_lists_do_not_depend_on_threads_and_are_those_of_a_sort(monkeypatch):
    monkeypatch.setattr("exactsel.enumeration.cosines.BLOCK", 16)
    rng = np.random.default_rng(15)
    for shape in ((40, 90), (150, 90)):
        problem = Problem(rng.normal(size=shape), rng.normal(size=shape[0]), 3, lam=1.0)
        X, inverse = np.zeros((0, 90)), np.ones(90)
        left = LeftColumns(Products(problem), np.arange(90), X, inverse)
        table = np.empty((90, 90), dtype=np.float32)
        found = [left.largest(7, never_stop(), threads, table) for threads in (1, 2, 3)]
        for sizes, others in found[1:]:
            assert np.array_equal(sizes, found[0][0])
            assert np.array_equal(others, found[0][1])
        sizes, others = found[0]
        H = problem.hessian / np.sqrt(np.outer(np.diagonal(problem.hessian), np.diagonal(problem.hessian)))
        np.fill_diagonal(H, 0.0)
        np.fill_diagonal(table, 0.0)
        assert np.allclose(np.sort(np.abs(H), axis=1)[:, -7:], sizes, atol=1e-6)
        assert np.allclose(np.abs(np.take_along_axis(H, others.astype(np.int64), axis=1)), sizes, atol=1e-6)
        assert np.allclose(table, H, atol=1e-6)


@pytest.mark.parametrize("players", range(9))
def test_in_a_tournament_every_pair_meets_once_and_nobody_is_in_two_places(players):
    rounds = list(tournament(players))
    met = sorted(tuple(sorted(pair)) for pairs in rounds for pair in pairs)
    assert met == [(i, j) for i in range(players) for j in range(i, players)]
    for pairs in rounds:
        seen = [i for pair in pairs for i in {*pair}]
        assert len(seen) == len({*seen})


def test_partitions_and_weights():
    assert partitions(4, 4) == ((4,), (3, 1), (2, 2), (2, 1, 1), (1, 1, 1, 1))
    assert partitions(3, 1) == ((1, 1, 1),)
    assert np.array_equal(factors((3,), (5.0,)), [0.0])
    assert np.allclose(factors((1, 1, 1), (1.0, 1.0, 1.0)), 2.0)
    assert np.all(factors((2, 1), (np.inf, 1.0)) == np.inf)
    x, y = factors((2, 1), (3.0, 1.0))
    assert x * y == pytest.approx(3.0)  # of two parts the weights only shift how much each of them gives


def case_of(rng):
    """A region of a small problem with strong columns, and a threshold."""
    n, d = int(rng.integers(4, 80)), int(rng.integers(5, 9))
    A = correlated(rng, n, d)
    y = A @ np.where(rng.random(d) < 0.4, 1.0, 0.0) + 10.0 ** rng.integers(-2, 1) * rng.normal(size=n)
    problem = Problem(A, y, int(rng.integers(2, 5)), lam=float(rng.choice([0.0, 0.0, 1e-2, 1.0])))
    state = np.full(d, FREE, dtype=np.int8)
    order = rng.permutation(d)
    state[order[: rng.integers(0, 2)]] = IN
    state[order[2 : 2 + rng.integers(0, 2)]] = OUT
    strong = np.unique(np.append(np.flatnonzero(state == IN), order[4 : 4 + rng.integers(0, 3)]))
    return problem, state, strong, float(rng.uniform(0.1, 0.9))


def closed_here(problem, state, strong, tau, level):
    slots = problem.k - int(np.count_nonzero(state == IN))
    weak = np.setdiff1d(np.flatnonzero(state == FREE), strong)
    try:
        columns = WeakColumns(Products(problem), strong, weak, slots, most_alike=99)
    except (np.linalg.LinAlgError, TooMuchAlikeError):
        return False
    below = columns.below(state[strong] != OUT, level)
    return below is not None and LikeColumns(columns, graph_above(columns, tau)).holds(below, slots)


def models_of(problem, state):
    included, free = np.flatnonzero(state == IN).tolist(), np.flatnonzero(state == FREE).tolist()
    sizes = range(problem.k - len(included) + 1)
    return [problem.fit([*included, *chosen]).value for size in sizes for chosen in combinations(free, size)]


@pytest.mark.parametrize("cases", [60, pytest.param(6_000, marks=pytest.mark.slow)])
def test_no_region_with_a_better_model_is_closed_here_or_by_a_checker(cases):
    rng, closed, agreed = np.random.default_rng(16), 0, 0
    for _ in range(cases):
        problem, state, strong, tau = case_of(rng)
        best = min(models_of(problem, state))
        if best <= 1e-9 * problem.null_objective:
            continue
        instance = instance_of(problem)
        S, C = ({*np.flatnonzero(state == kind).tolist()} for kind in (IN, FREE))
        regression = Regression(
            instance.A.tolist(), instance.y.tolist(), problem.k, LOSSES["quadratic"](1.0), problem.lam
        )

        def said(at, problem=problem, state=state, strong=strong, tau=tau, instance=instance, S=S, C=C, r=regression):
            return (
                Checked(RigorousBounds(instance), at).closes(state.astype(np.uint8), strong, tau),
                Exactly(r, Fraction(at)).closes(S, C, strong.tolist(), Fraction(tau)),
                strong_bound(instance, sorted(S), sorted(C), strong.tolist(), tau),
            )

        first, second, bound = said(best * (1.0 + 1e-6))
        assert not closed_here(problem, state, strong, tau, best * (1.0 + 1e-6))
        assert not first
        assert not second
        # The slow twin allows for no rounding.
        assert bound <= best * (1.0 + 1e-9) + 1e-10 * problem.null_objective
        level = best * rng.choice([0.3, 0.6, 0.9, 1.0 - 1e-7])
        if closed_here(problem, state, strong, tau, level):
            closed += 1
            first, second, bound = said(level)
            agreed += first and second and bound >= level * (1.0 - 1e-6)
    assert closed > 0.1 * cases
    assert agreed >= 0.98 * closed
