"""Regions closed by strong columns: never one that holds a model below the level, here and by both checkers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from corrupted import check
from recorded import refused, second_opinion
from samples import many

from exactsel import solve, verify
from exactsel.bounds.base import never_stop
from exactsel.closers.base import Task
from exactsel.closers.strong import CloseByStrong
from exactsel.closers.visit import Interrupted
from exactsel.enumeration import strong
from exactsel.enumeration.cosine_graphs import graphs
from exactsel.enumeration.like_columns import LikeColumns
from exactsel.enumeration.products import Products
from exactsel.enumeration.strong import StrongColumns
from exactsel.enumeration.weak_columns import TooMuchAlikeError, WeakColumns
from exactsel.enumeration.work_budget import WorkBudget
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.nodes.node import root_node
from exactsel.nodes.regions import RoundWork, as_region
from exactsel.nodes.tolerance import Tolerance
from exactsel.problem.regression import Problem
from exactsel.proofs.instance import instance_of
from exactsel_certificates.container import CLOSE, FIRST_LIKE, FIRST_STRONG, read_proof, written
from exactsel_certificates.rigorous import RigorousBounds
from exactsel_certificates.standalone.losses import LOSSES
from exactsel_certificates.standalone.regression import Regression
from exactsel_certificates.standalone.strong import StrongColumns as Exactly
from exactsel_certificates.strong import StrongColumns as Checked
from exactsel_dev.reference.semidefinite import strong_bound


def data(rng, n, d):
    """Nearly orthogonal columns as a rule, now and then whole numbers, copies, sums, zeros, and other units."""
    kind = rng.integers(4)
    A = rng.integers(-2, 3, size=(n, d)).astype(float) if kind == 0 else rng.normal(size=(n, d))
    if kind == 1:
        A = np.linalg.qr(rng.normal(size=(max(n, d), max(n, d))))[0][:n, :d] + 0.02 * rng.normal(size=(n, d))
    for change in rng.choice(7, size=rng.integers(0, 3), replace=False):
        j, i = rng.integers(d), rng.integers(d)
        other = A[:, i]
        A[:, j] = (other, -other, np.zeros(n), np.ones(n), other + A[:, 0], 1e5 * A[:, j], 1e-5 * A[:, j])[change]
    y = A @ np.where(rng.random(d) < 0.4, rng.choice([-1.0, 1.0], d), 0.0) + 10.0 ** rng.integers(-3, 1) * rng.normal(
        size=n
    )
    return A, y


def problem_of(rng):
    n, d = int(rng.integers(3, 30)), int(rng.integers(2, 10))
    A, y = data(rng, n, d)
    return Problem(A, y, int(rng.integers(1, min(4, d) + 1)), lam=float(rng.choice([0.0, 0.0, 1e-3, 1.0])))


def models_of(problem, state):
    """The objective of every set of columns of a region."""
    included, free = np.flatnonzero(state == IN).tolist(), np.flatnonzero(state == FREE).tolist()
    for size in range(problem.k - len(included) + 1):
        for chosen in combinations(free, size):
            yield problem.fit([*included, *chosen]).value


def region_of(rng, problem):
    """A state, and strong columns that hold its S."""
    state = np.full(problem.d, FREE, dtype=np.int8)
    order = rng.permutation(problem.d)
    included = order[: rng.integers(0, problem.k + 1)]
    state[included] = IN
    state[order[len(included) : len(included) + rng.integers(0, 3)]] = OUT
    strong = np.unique([*included, *order[rng.integers(0, problem.d) :][: rng.integers(0, 4)]]).astype(np.int64)
    return state, strong


def closed_here(problem, state, strong, level):
    slots = problem.k - int(np.count_nonzero(state == IN))
    length = np.sqrt(np.diagonal(problem.hessian))
    strong = strong[length[strong] > 0]
    weak = np.setdiff1d(np.flatnonzero((state == FREE) & (length > 0)), strong)
    try:
        columns = WeakColumns(Products(problem), strong, weak, max(1, slots))
    except (np.linalg.LinAlgError, TooMuchAlikeError):
        return False
    mask = state[strong] == IN if slots == 0 else state[strong] != OUT
    below = columns.below(mask, level)
    return below is not None and LikeColumns(columns, next(graphs(columns))).holds(below, slots)


@pytest.mark.parametrize("cases", [80, pytest.param(20_000, marks=pytest.mark.slow)])
def test_no_region_with_a_model_below_the_level_is_closed(cases):
    rng, closed, agreed = np.random.default_rng(3), 0, 0
    for _ in range(cases):
        problem = problem_of(rng)
        state, strong = region_of(rng, problem)
        best = min(models_of(problem, state))
        if best <= 1e-9 * problem.null_objective:
            continue
        level = best * (1.0 - 10.0 ** -rng.integers(0, 9))
        assert not closed_here(problem, state, strong, best * (1.0 + 1e-6))
        mine = closed_here(problem, state, strong, level)
        closed += mine
        instance = instance_of(problem)
        for at, expected in ((level * (1.0 - 1e-8), mine), (best * (1.0 + 1e-6), False)):
            theirs = Checked(RigorousBounds(instance), at).closes(state.astype(np.uint8), strong)
            exact = Exactly(_regression(problem), Fraction(at)).closes(*_sets(state), strong.tolist())
            bound = strong_bound(instance, *map(sorted, _sets(state)), strong.tolist())
            if not expected and at > best:
                assert not theirs
                assert not exact
                # The slow twin allows for no rounding.
                assert bound <= best * (1.0 + 1e-9) + 1e-10 * problem.null_objective
            elif expected:
                agreed += theirs and exact and bound >= at * (1.0 - 1e-6)
    assert closed > 0.15 * cases
    assert agreed >= 0.98 * closed


def _sets(state):
    return {*np.flatnonzero(state == IN).tolist()}, {*np.flatnonzero(state == FREE).tolist()}


def _regression(problem):
    instance = instance_of(problem)
    return Regression(instance.A.tolist(), instance.y.tolist(), problem.k, LOSSES["quadratic"](1.0), problem.lam)


def dominance(problem, strong, weak, slots):
    """D in double precision, from an inverse."""
    H = problem.hessian / np.outer(*[np.sqrt(np.diagonal(problem.hessian))] * 2)
    M = (
        H[np.ix_(weak, weak)]
        - H[np.ix_(weak, strong)] @ np.linalg.inv(H[np.ix_(strong, strong)]) @ H[np.ix_(strong, weak)]
    )
    squares = np.diagonal(M)
    cosines = np.sort(np.abs(M) / np.sqrt(np.outer(squares, squares)) - np.eye(len(weak)), axis=1)[:, ::-1]
    sums = np.cumsum(np.column_stack([np.zeros(len(weak)), cosines]), axis=1)
    return squares[:, None] * (1.0 - sums[:, :slots])


@pytest.mark.parametrize(("n", "d"), [(300, 80), (80, 300)])
@pytest.mark.parametrize("lam", [0.0, 5.0])
def test_single_precision_says_nearly_as_much_and_no_more(n, d, lam):
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-4, 5, d)
    problem, strong = Problem(A, rng.normal(size=n), 3, lam=lam), np.arange(0, d, 17)
    weak = np.setdiff1d(np.arange(d), strong)
    exactly = dominance(problem, strong, weak, 2)
    columns = WeakColumns(Products(problem), strong, weak, 2)
    found = (1.0 - LikeColumns(columns, next(graphs(columns)))._sums) / columns._inverse[:, None] ** 2
    assert np.all(found <= exactly)
    assert np.all(found >= exactly - 1e-3)
    assert np.all(found > 0.0)


@pytest.fixture
def asked_always(monkeypatch):
    monkeypatch.setattr(StrongColumns, "is_quick", staticmethod(lambda problem: True))


@pytest.mark.parametrize("cases", [40, pytest.param(4_000, marks=pytest.mark.slow)])
def test_searches_end_with_the_best_model(asked_always, cases):
    rng, worked = np.random.default_rng(5), 0
    for _ in range(cases):
        problem = problem_of(rng)
        best = min(models_of(problem, np.full(problem.d, FREE, dtype=np.int8)))
        result = solve(problem)
        assert result.claim in ("optimal", "within_eps")
        assert result.lower <= best * (1.0 + 1e-9) + 1e-12 * problem.null_objective
        assert result.upper <= best * (1.0 + 1e-6) + 1e-9 * problem.null_objective
        worked += "strong" in result.settings["closers"]
    assert worked > 0.3 * cases


def test_parts_divide_the_region_and_what_is_closed_holds_no_better_model():
    rng, found = np.random.default_rng(6), 0
    for _ in range(60):
        problem = problem_of(rng)
        state = np.full(problem.d, FREE, dtype=np.int8)
        best, support = min((problem.fit(chosen).value, chosen) for chosen in combinations(range(problem.d), problem.k))
        level = min(best, min(models_of(problem, state))) * (1.0 - 1e-7)
        parts = StrongColumns(problem, support, never_stop()).divide(state, support, level)
        if parts is None or level <= 0:
            continue
        found += 1
        seen = [tuple(chosen) for part in parts for chosen in _supports(problem, part.state)]
        assert sorted(seen) == sorted(_supports(problem, state))
        used = np.diagonal(problem.hessian) > 0
        for part in parts:
            single = np.count_nonzero(part.state == IN) == problem.k or not np.any(used & (part.state == FREE))
            assert single or part.proof is not None
    assert found > 20


def test_what_is_given_up_half_way_leaves_no_part_out(monkeypatch):
    rng, found = np.random.default_rng(6), 0
    for _ in range(many(60, 600)):
        problem = problem_of(rng)
        state = np.full(problem.d, FREE, dtype=np.int8)
        best, support = min((problem.fit(chosen).value, chosen) for chosen in combinations(range(problem.d), problem.k))
        level = min(best, min(models_of(problem, state))) * (1.0 - 1e-7)
        monkeypatch.undo()
        whole = StrongColumns(problem, support, never_stop()).divide(state, support, level)
        nodes = 0 if whole is None else 2 * len(whole) - 1
        for most in range(max(1, nodes - 4), nodes):
            monkeypatch.setattr(strong, "MOST_NODES", most)
            parts = StrongColumns(problem, support, never_stop()).divide(state, support, level)
            if parts is not None:  # with other columns as the strong ones
                seen = [tuple(chosen) for part in parts for chosen in _supports(problem, part.state)]
                assert sorted(seen) == sorted(_supports(problem, state))
            found += 1
    assert found > 20


def _supports(problem, state):
    included, free = np.flatnonzero(state == IN).tolist(), np.flatnonzero(state == FREE).tolist()
    sizes = range(problem.k - len(included) + 1)
    return [tuple(sorted([*included, *chosen])) for size in sizes for chosen in combinations(free, size)]


def orthogonal(n, d, k):
    rng = np.random.default_rng(8)
    A = rng.normal(size=(n, d))
    return Problem(A, A[:, :k].sum(axis=1) + 0.3 * rng.normal(size=n), k, lam=0.1)


def test_a_forged_claim_is_rejected_by_both_checkers(asked_always, tmp_path):
    problem, path = orthogonal(200, 30, 3), tmp_path / "p.exsel"
    result = solve(problem, proof=path)
    assert "strong" in result.settings["closers"]
    assert verify(problem, path).verified
    proof, instance = read_proof(path), instance_of(problem)
    assert second_opinion(problem, written(proof)) == ""
    at_once = np.array([proof.tree[proof.tree & 7 == 7][0], CLOSE], dtype=np.int32)
    none = np.where(proof.tree & 7 == 7, 8 * (FIRST_STRONG + 7) + 7, proof.tree).astype(np.int32)
    for changed in (replace(proof, lower=proof.upper), replace(proof, tree=at_once), replace(proof, tree=none)):
        assert not check(written(changed), instance).verified
        assert refused(second_opinion(problem, written(changed)))


def test_a_pass_that_is_told_to_stop_claims_nothing(asked_always):
    problem = orthogonal(200, 30, 3)
    stop = np.ones(1, dtype=np.bool_)
    strong = StrongColumns(problem, (0, 1, 2), stop)
    assert strong.divide(problem.root_state, (0, 1, 2), problem.fit((0, 1, 2)).value * (1 - 1e-6)) is None
    assert strong.stopped
    with pytest.raises(Interrupted):
        CloseByStrong(problem, Tolerance().of(problem), strong).close(
            [Task(node := root_node(problem.root_state, 0.0), as_region(node))], RoundWork(1e9), WorkBudget()
        )


@pytest.mark.parametrize("seed", range(12))
def test_an_intercept_weights_and_forced_columns(asked_always, seed, tmp_path):
    rng = np.random.default_rng([9, seed])
    n, d = int(rng.integers(6, 40)), int(rng.integers(5, 9))
    A, y = data(rng, n, d)
    ways = {"force_in": [1]} if seed % 3 == 0 else {"force_out": [2]} if seed % 3 == 1 else {}
    weights = rng.integers(1, 4, size=n).astype(float) if seed % 2 else None
    lam = (0.01, 1.0)[seed % 2]
    problem = Problem.prepared(A, y + 2.0, 3, lam=lam, intercept=True, weights=weights, **ways)
    best = min(models_of(problem, problem.root_state))
    result = solve(problem, proof=tmp_path / "p.exsel", signals=())
    assert result.lower <= best * (1.0 + 1e-9) + 1e-12 * problem.null_objective
    assert result.upper <= best * (1.0 + 1e-6) + 1e-9 * problem.null_objective
    assert verify(problem, tmp_path / "p.exsel").verified


def correlated(n, d, rho):
    """Columns each of which is like the one before, and a target of three of them."""
    rng = np.random.default_rng(10)
    A = rng.normal(size=(n, d))
    for j in range(1, d):
        A[:, j] = rho * A[:, j - 1] + np.sqrt(1.0 - rho**2) * A[:, j]
    return A, A[:, [5, 25, 45]].sum(axis=1) + 0.5 * rng.normal(size=n)


@pytest.mark.parametrize("weights", [None, 2.0])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("lam", [0.0, 1.0])
def test_correlated_columns_are_closed_and_proven(asked_always, lam, intercept, weights, tmp_path):
    A, y = correlated(300, 60, 0.6)
    weights = None if weights is None else np.where(np.arange(300) % 2, weights, 1.0)
    problem, path = Problem.prepared(A, y, 3, lam=lam, intercept=intercept, weights=weights), tmp_path / "p.exsel"
    result = solve(problem, proof=path, signals=())
    assert result.claim == "within_eps"
    assert "strong" in result.settings["closers"]
    words = read_proof(path).tree
    assert np.any((words & 7 == 7) & (words >= 8 * FIRST_LIKE))
    assert verify(problem, path).verified


def test_wide_data_with_an_intercept_and_no_ridge_speak_of_bounded_models(asked_always, tmp_path):
    A, y = correlated(150, 200, 0.4)
    problem, path = Problem.prepared(A + 3.0, y + 1.0, 3, lam=0.0, intercept=True), tmp_path / "p.exsel"
    result = solve(problem, proof=path, signals=())
    assert result.claim == "within_eps"
    assert result.valid_for.startswith("models with")
    assert verify(problem, path).verified


def test_a_column_without_a_slope_keeps_a_region_open():
    """Its cosines with the others sum up to more than 1, so it may take from what they cost."""
    a, p, q = 0.69, 0.04, 0.72
    A = np.array([[1.0, a, a], [0.0, p, p], [0.0, q, -q]])
    problem = Problem(A, np.array([0.0, 1.0, 0.0]), 3, lam=2.0**-14)
    state, best = problem.root_state, problem.fit((0, 1, 2)).value
    assert not closed_here(problem, state, np.zeros(0, dtype=np.int64), best * 1.05)
