"""Searches whose nodes begin at Newton fits: against brute force, with proofs; and when nodes do begin there."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from checked_solve import checked_solve
from free_rows import free_case
from instances_for_tests import optimum_of, random_case
from recorded import replayed, second_opinion
from regions import random_state, region_values
from samples import sample

from exactsel import Problem, Settings, solve, verify
from exactsel.bounds import apg, newton_fit
from exactsel.bounds.apg import AcceleratedGradientBound
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.pointwise import bound_at_model
from exactsel.enumeration import work_budget
from exactsel.kernels.columns import RawData
from exactsel.kernels.node import FREE, IN, OUT, UNFINISHED
from exactsel.solving.solver import Search

LOSSES = ("huber", "logistic")


@pytest.fixture(params=["fit", "relaxation"])
def fitting(monkeypatch, request):
    """Every node of a problem with rows begins at its fit, or at the relaxation, whatever the decision would be."""
    monkeypatch.setattr(apg, "exceeds_fit", lambda *given: request.param == "relaxation")
    monkeypatch.setattr(apg, "may_lead", lambda problem, data: isinstance(data, RawData))
    monkeypatch.setattr(apg, "leading_fit", lambda problem, perspective, stop: np.zeros(problem.d))


@pytest.fixture
def eager(monkeypatch):
    """The kernel searches below every node, from the first round on."""
    monkeypatch.setattr(work_budget, "SUBSEARCH_SHARE", 1e9)
    monkeypatch.setattr(work_budget, "LEAST_SUBSEARCH", 1)


def small_ridge(seed, loss):
    return random_case(seed, loss=loss, lam=float(10.0 ** np.random.default_rng(seed).uniform(-4, 0)))


def prepared(problem, **options):
    return AcceleratedGradientBound().prepare(problem, BoundOptions(**options))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("block", sample(3, 10, smoke=1))
def test_bounds_hold_and_are_no_less_than_the_fits(block, loss, fitting):
    """Of regions and of what children inherit; and each is what its point proves."""
    relaxed = 0
    for seed in range(40 * block, 40 * block + 40):
        case = free_case(seed, loss) if seed % 2 else small_ridge(seed, loss)
        problem = case.problem()
        if problem.k == 0:
            continue
        rng = np.random.default_rng([5, seed])
        state = random_state(rng, problem)
        values = region_values(problem, state)
        best = min(values.values())
        sliver = 1e-9 * (1.0 + abs(best))
        cutoff = float(rng.choice([np.inf, 1.3 * best, 0.5 * best]))
        start = [None, apg.ModelPoint.from_dense(rng.standard_normal(problem.d))][rng.integers(2)]
        told = prepared(problem).tighten(state[None], [start], cutoff, np.inf)
        bound, answers = float(told.answers.bound[0]), told.answers
        assert bound <= best + sliver, seed
        proven = bound_at_model(problem, state, told.proofs[0].dense(problem.d))
        rounding = 1e-15 * float(np.linalg.norm(problem.AT, axis=1).max())
        assert bound <= proven + 1e-11 * (1.0 + abs(proven)) + rounding, seed
        if answers.iterations[0] == 0:
            continue  # a convex region
        relaxed += 1
        if cutoff == np.inf:
            least = problem.fit(np.flatnonzero(state != OUT)).value
            assert bound >= least - 1e-6 * (1.0 + abs(least)), seed
        support = set(answers.support[0][answers.support[0] >= 0].tolist())
        assert set(np.flatnonzero(state == IN)) <= support <= set(np.flatnonzero(state != OUT))
        assert len(support) <= problem.k
        for j in np.flatnonzero(state == FREE):
            without = min((value for chosen, value in values.items() if j not in chosen), default=math.inf)
            having = min((value for chosen, value in values.items() if j in chosen), default=math.inf)
            assert answers.bound_out[0, j] <= without + sliver, seed
            assert answers.bound_in[0, j] <= having + sliver, seed
    assert relaxed >= 8


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", sample(15, 80, smoke=4))
def test_searches_against_brute_force(seed, loss, fitting, tmp_path):
    case, path = free_case(seed, loss), tmp_path / "run.exsel"
    demands = {"force_in": [case.A.shape[1] - 1]} if seed % 5 == 0 else {}
    problem = case.problem(**demands)
    result = solve(problem, proof=path, signals=(), rel_eps=1e-9, threads=1)
    last = case.A.shape[1] - 1
    supports = [chosen for chosen in combinations(range(last + 1), case.k) if not demands or last in chosen]
    best = min(case.best_on(chosen) for chosen in supports)
    assert result.upper == pytest.approx(best, rel=1e-7, abs=1e-9)
    assert result.lower <= best + 1e-9 * (1.0 + best)
    verdict = verify(problem, path)
    assert verdict.verified, verdict.reason
    assert second_opinion(problem, path.read_bytes()) == ""


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("block", sample(2, 8))
def test_searches_inside_the_kernel(block, loss, fitting, eager, monkeypatch):
    for seed in range(910_000 + 20 * block, 910_020 + 20 * block):
        case = small_ridge(seed, loss)
        monkeypatch.setattr(work_budget, "MOST_SUBSEARCH", int(np.random.default_rng(seed).choice([1, 3, 256])))
        checked_solve(case, {"rel_eps": 1e-9})


def correlated(loss, lam, n=120, d=16, k=4, **changes):
    """Columns so alike that the gradient method takes thousands of iterations where the ridge is small."""
    rng = np.random.default_rng(4)
    A = rng.standard_normal((n, d)) + 6.0 * rng.standard_normal((n, 1))
    A *= 10.0 ** np.linspace(0, 1, d)
    y = A[:, 0] - 0.8 * A[:, 5] + 0.3 * A[:, 9] + 2.0 * rng.standard_normal(n)
    if loss == "logistic":
        y = np.where(y > np.median(y) + 1.0, 1.0, -1.0)
    return Problem.prepared(A, y, k, loss=loss, lam=lam, **changes)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", [False, True])
class TestWhatLeads:
    """The decision at the root."""

    def test_the_fit_leads_where_the_ridge_is_small(self, loss, intercept):
        problem = correlated(loss, 1e-4, intercept=intercept)
        with_fits, without = prepared(problem), prepared(problem)
        assert with_fits.begins_at_fits()
        without._decided = True
        roots = problem.root_state[None]
        better = with_fits.tighten(roots, [None], np.inf, np.inf).answers.bound[0]
        assert better > without.tighten(roots, [None], np.inf, np.inf).answers.bound[0]

    def test_the_relaxation_leads_where_columns_differ_and_the_ridge_is_large(self, loss, intercept):
        rng = np.random.default_rng(1)
        A = rng.standard_normal((100, 40))
        y = A @ rng.standard_normal(40) + 3.0 * rng.standard_normal(100)
        y = np.sign(y) if loss == "logistic" else y
        problem = Problem.prepared(A, y, 5, loss=loss, lam=5.0, intercept=intercept)
        assert not prepared(problem).begins_at_fits()
        assert "Newton" not in solve(problem, signals=(), node_limit=1).settings["method"]

    def test_a_decision_cut_short_is_not_kept(self, loss, intercept):
        problem = correlated(loss, 1e-4, intercept=intercept)
        stop = np.ones(1, dtype=np.bool_)
        bound = prepared(problem, stop=stop)
        assert np.all(bound.tighten(problem.root_state[None], [None], np.inf, np.inf).answers.status == UNFINISHED)
        stop[0] = False
        assert bound.begins_at_fits()

    def test_the_tree_does_not_depend_on_threads(self, loss, intercept):
        problem = correlated(loss, 1e-4, k=6, intercept=intercept)
        one, two = (solve(problem, threads=threads, signals=(), details=True) for threads in (1, 2))
        assert one.tree_hash == two.tree_hash
        assert "begun at the Newton fit" in one.settings["method"]
        assert one.reached

    def test_every_event_is_proven(self, loss, intercept):
        problem = correlated(loss, 1e-4, intercept=intercept)
        search, events = Search(problem, Settings(rel_eps=1e-9), signals=(), details=True), []
        for event in search:
            events.append(event)
        result = search.result(events)
        assert result.reached
        replayed(problem, result, events, search.state)


def separable(lam, n=60, d=24, k=4):
    """0/1 columns that tell the classes apart, so that what a model costs is nearly all its ridge."""
    rng = np.random.default_rng(8)
    A = (rng.random((n, d)) < 0.4).astype(float)
    A[:, 7] = A[:, 3]
    y = np.where(A[:, 0] + A[:, 3] - 1.3 * A[:, 5] > 0.4, 1.0, -1.0)
    return Problem(A, y, k, loss="logistic", lam=lam)


class TestNewtonStepsOnTheRelaxation:
    """Where the relaxation of the root exceeds its fit."""

    def test_they_lead_where_the_ridge_is_most_of_the_objective(self):
        problem = separable(1e-3)
        with_newton, with_fits = prepared(problem), prepared(problem)
        assert with_newton.begins_at_fits()
        assert with_newton.second_order
        assert with_fits.begins_at_fits()
        with_fits.second_order = False
        roots, solvers = problem.root_state[None], (with_newton, with_fits)
        newton, fit = (solver.tighten(roots, [None], np.inf, np.inf) for solver in solvers)
        assert newton.answers.bound[0] > 1.2 * fit.answers.bound[0]

    def test_fits_lead_where_the_relaxation_says_no_more(self):
        bound = prepared(correlated("logistic", 1e-6))
        assert bound.begins_at_fits()
        assert not bound.second_order

    def test_a_search_of_few_nodes_proves_the_optimum(self, tmp_path):
        problem, path = separable(1e-3), tmp_path / "run.exsel"
        result = solve(problem, proof=path, signals=(), rel_eps=1e-9, threads=1)
        best = min(problem.fit(chosen).value for chosen in combinations(range(problem.d), problem.k))
        assert result.upper == pytest.approx(best, rel=1e-7)
        assert result.lower <= best * (1.0 + 1e-9)
        assert verify(problem, path).verified
        assert second_opinion(problem, path.read_bytes()) == ""


def test_not_over_more_columns_than_rows():
    rng = np.random.default_rng(0)
    problem = Problem(rng.standard_normal((8, 20)), rng.standard_normal(8), 3, loss="huber", lam=1e-6)
    assert not newton_fit.may_lead(problem, problem.raw)
    assert not prepared(problem).begins_at_fits()


def test_brute_force_on_a_problem_that_decides_for_fits():
    decided = 0
    for seed in range(60):
        case = random_case(seed, loss=LOSSES[seed % 2], lam=1e-3, n=12, d=5)
        if case.k and prepared(case.problem()).begins_at_fits():
            decided += 1
            result = solve(case.problem(), rel_eps=1e-9, signals=())
            optimum = optimum_of(case)
            assert result.lower <= optimum.ceiling
            assert result.upper >= optimum.low - 1e-9 * (1.0 + abs(optimum.low))
    assert decided >= 3
