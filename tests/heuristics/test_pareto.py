"""Pareto optimisation: POSS, PPOSS, POCSS against brute force, their plain twin, and on data as it comes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances_for_heuristics import StopAfter, exponential_decay, make_problem
from own_loss import PseudoHuber
from pareto_cases import ISOLATIONS, assert_valid, method_of, optimum, problem_of, task_of, value_of

from exactsel import registry
from exactsel.errors import InputError, UnsupportedError
from exactsel.problem.column_subset import ColumnSubsetProblem
from exactsel.problem.regression import Problem
from exactsel_heuristics import Context, ForwardSelection, OrthogonalMatchingPursuit
from exactsel_heuristics import _pareto_search as search_module
from exactsel_heuristics._pareto_search import run_synchronously
from exactsel_heuristics.pocss import ParetoColumnSelection
from exactsel_heuristics.poss import ParetoOptimization
from exactsel_heuristics.pposs import AsynchronousParetoOptimization, ParallelParetoOptimization
from exactsel_heuristics.set_function import minimise

METHODS = (ParetoOptimization, ParallelParetoOptimization, AsynchronousParetoOptimization, ParetoColumnSelection)
KINDS = ("quadratic", "logistic", "css")


def assert_same(fast, slow):
    """The compiled search and its plain twin made the same archive, curve and answer."""
    assert [support for support, _ in fast.archive] == [support for support, _ in slow.archive]
    np.testing.assert_allclose([v for _, v in fast.archive], [v for _, v in slow.archive], rtol=1e-9, atol=1e-11)
    assert [count for count, _ in fast.curve] == [count for count, _ in slow.curve]
    np.testing.assert_allclose([v for _, v in fast.curve], [v for _, v in slow.curve], rtol=1e-9, atol=1e-11)
    assert (fast.support, fast.evaluations) == (slow.support, slow.evaluations)


# The twin


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32), d=st.integers(1, 9), processors=st.integers(1, 4),
    isolation=st.sampled_from(list(ISOLATIONS)), data=st.data(),
)  # fmt: skip
def test_the_search_equals_its_slow_twin(kind, seed, d, processors, isolation, data):
    k = data.draw(st.integers(1, d))
    problem = problem_of(kind, seed, 12, d, k)
    options = {"iterations": 80, "processors": processors}
    fast = run_synchronously(task_of(problem), Context(seed=seed), isolation=isolation, **options)
    slow = minimise(
        lambda support: value_of(problem, support), d, k, isolation=ISOLATIONS[isolation], seed=seed, **options
    )  # fmt: skip
    assert_same(fast, slow)


@pytest.mark.parametrize("kind", KINDS)
def test_it_equals_its_twin_over_a_whole_run(kind):
    problem = problem_of(kind, 5, 40, 14, 4)
    fast = run_synchronously(task_of(problem), Context(seed=1))
    assert_same(fast, minimise(lambda support: value_of(problem, support), 14, 4, seed=1))
    assert fast.evaluations == int(2 * math.e * 16 * 14)


# Against brute force


@pytest.mark.parametrize("kind", [*KINDS, "huber"])
def test_the_optimum_is_found_on_nearly_all_tiny_instances(kind):
    found = 0
    for seed in range(12):
        problem = problem_of(kind, seed, 20, 8, 3)
        proposal = method_of(kind, iterations=2000).run(problem, Context(seed=seed))
        assert_valid(problem, proposal)
        found += problem.fit(proposal.support).value <= optimum(problem) * (1 + 1e-9) + 1e-9
    assert found >= 11


@pytest.mark.long
def test_a_loss_of_the_users_own():
    data = make_problem(4, 20, 7, 2, "quadratic", awkward=False)
    problem = Problem(data.A, data.y, 2, loss=PseudoHuber(0.7), lam=0.3)
    fast = run_synchronously(task_of(problem), Context(seed=2), iterations=300)
    assert_same(fast, minimise(lambda support: value_of(problem, support), 7, 2, seed=2, iterations=300))
    assert fast.value == pytest.approx(optimum(problem), rel=1e-9)


def test_minimise_serves_any_set_function():
    weights = {0: 5.0, 3: 2.0, 4: 2.5}
    seen = []

    def covered(support):
        seen.append(support)
        return -sum(weights.get(j, 0.0) for j in support) + 0.1 * len(support)

    best = minimise(covered, 6, 2, seed=1)
    assert best.support == (0, 4)
    assert best.value == pytest.approx(-7.3)
    assert all(support == tuple(sorted(support)) and 1 <= len(support) < 4 for support in seen)
    assert best == minimise(covered, 6, 2, seed=1)
    assert minimise(covered, 6, 0).support == ()
    assert minimise(covered, 6, 2, should_stop=StopAfter(0)).evaluations == 0
    assert minimise(lambda support: math.nan, 6, 2).value == math.inf


# Proposition 1: the Exponential Decay example


def test_the_example_has_the_stated_covariances():
    problem = exponential_decay()
    data = np.column_stack([problem.A, problem.y])
    np.testing.assert_allclose(data.mean(axis=0), 0, atol=1e-14)
    covariance = data.T @ data / len(data)
    np.testing.assert_allclose(np.diag(covariance), 1, rtol=1e-13)
    np.testing.assert_allclose(
        covariance[:3, :3], [[1, 0.03, 0.015], [0.03, 1, 0.5], [0.015, 0.5, 1]], rtol=1e-12, atol=1e-14
    )  # fmt: skip
    np.testing.assert_allclose(covariance[:3, 3] / covariance[0, 3], [1, 1.03, 1.02], rtol=1e-12)


@pytest.mark.parametrize("greedy", [ForwardSelection(), OrthogonalMatchingPursuit()], ids=repr)
def test_greedy_methods_miss_the_optimum_of_the_example(greedy):
    problem = exponential_decay()
    assert problem.fit((0, 2)).value == pytest.approx(optimum(problem), rel=1e-12)
    assert greedy.run(problem, Context()).support == (0, 1)


def test_poss_finds_the_optimum_of_the_example():
    for seed in range(20):
        method = ParetoOptimization(iterations=500, isolation="minimum-index")
        assert method.run(exponential_decay(), Context(seed=seed)).support == (0, 2)


# Every method, on data as it comes


@pytest.mark.smoke
@pytest.mark.parametrize(
    "method",
    [
        ParetoOptimization(),
        ParetoOptimization(isolation="minimum-index"),
        ParallelParetoOptimization(processors=3),
        AsynchronousParetoOptimization(threads=1),
    ],
    ids=repr,
)
@pytest.mark.parametrize(
    ("n", "d", "k"), [(30, 8, 3), (6, 10, 4), (4, 9, 9), (20, 7, 1), (15, 6, 6), (1, 2, 1), (9, 1, 1), (10, 6, 0)]
)
@pytest.mark.parametrize("lam", [0.5, 0.0])
def test_proposals_are_valid_and_reproducible(method, n, d, k, lam):
    for seed in range(2):
        problem = make_problem(seed, n, d, k, "quadratic", lam)
        before = problem.A.copy(), problem.y.copy()
        proposal = method.run(problem, Context(seed=seed))
        assert_valid(problem, proposal)
        assert method.run(problem, Context(seed=seed)) == proposal
        assert np.array_equal(problem.A, before[0])
        assert np.array_equal(problem.y, before[1])


@pytest.mark.parametrize("kind", ["logistic", "css"])
@pytest.mark.parametrize(("n", "d", "k"), [(30, 8, 3), (4, 9, 9), (1, 2, 1), (9, 1, 1), (10, 6, 0)])
def test_proposals_of_other_objectives_are_valid(kind, n, d, k):
    problem = problem_of(kind, 3, n, d, k, awkward=True)
    proposal = method_of(kind).run(problem, Context(seed=2))
    assert_valid(problem, proposal)
    assert method_of(kind).run(problem, Context(seed=2)) == proposal


@pytest.mark.parametrize("A", [np.zeros((5, 3)), np.ones((5, 3))], ids=["zero", "constant"])
def test_degenerate_data(A):
    for y in (np.zeros(5), np.arange(5.0)):
        for lam in (0.0, 0.1):
            problem = Problem(A, y, 2, lam=lam)
            assert_valid(problem, ParetoOptimization().run(problem, Context()))
    problem = ColumnSubsetProblem(A, 2)
    assert_valid(problem, ParetoColumnSelection().run(problem, Context()))


def test_dependent_columns_are_never_taken_together():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 20))
    A = np.column_stack([a, a, b, a + b, 0 * a])
    problem = Problem(A, a + 2 * b + rng.standard_normal(20), 4, lam=0.0)
    assert len(ParetoOptimization().run(problem, Context()).support) == 2
    problem = ColumnSubsetProblem(A, 4)
    selection = ParetoColumnSelection().run(problem, Context())
    assert problem.fit(selection.support).value == pytest.approx(0.0, abs=1e-9)


def test_rows_on_demand_change_nothing(monkeypatch):
    for kind in ("quadratic", "css"):
        module = "_pareto_css" if kind == "css" else "_pareto_quadratic"
        problem = problem_of(kind, 4, 15, 20, 4)
        whole = run_synchronously(task_of(problem), Context())
        monkeypatch.setattr(f"exactsel_heuristics.{module}.GRAM_COLUMNS", 10)
        for room in (2**20, 3 * 8 * 20):
            monkeypatch.setattr("exactsel_heuristics._gram_rows.ROWS_BYTES", room)
            assert_same(run_synchronously(task_of(problem), Context()), whole)


def test_different_seeds_give_different_runs():
    problem = problem_of("quadratic", 0, 30, 12, 4)
    curves = {ParetoOptimization().run(problem, Context(seed=seed)).curve for seed in range(5)}
    assert len(curves) == 5


# Stopping and options


@pytest.mark.parametrize(
    "method",
    [ParetoOptimization(), ParallelParetoOptimization(batch=1), AsynchronousParetoOptimization(threads=1)],
    ids=repr,
)
def test_stopping(method, monkeypatch):
    monkeypatch.setattr(search_module, "PIECE_WORK", 1e5)
    problem = problem_of("quadratic", 3, 30, 12, 5)
    full = method.run(problem, Context())
    at_once = method.run(problem, Context(should_stop=StopAfter(0)))
    assert (at_once.support, at_once.evaluations, at_once.curve) == ((), 0, ())
    for count in (1, 3):
        stop = StopAfter(count)
        proposal = method.run(problem, Context(should_stop=stop))
        assert_valid(problem, proposal)
        assert 0 < proposal.evaluations < full.evaluations
        assert full.curve[: len(proposal.curve)] == proposal.curve
        assert stop.asked_again == 0


@pytest.mark.parametrize("options", [{"iterations": 0}, {"iterations": 2.5}, {"iterations": True}])
def test_bad_numbers_of_iterations_are_refused(options):
    for method in METHODS:
        with pytest.raises(InputError, match=r"^iterations of the method '.*' is .*, but it must be a whole number"):
            method(**options)


def test_other_bad_options_are_refused():
    with pytest.raises(InputError, match=r"^processors of the method 'pposs' is 0, but it must be a whole number"):
        ParallelParetoOptimization(processors=0)
    with pytest.raises(InputError, match=r"^threads of the method 'pposs-async' is -1, but"):
        AsynchronousParetoOptimization(threads=-1)
    with pytest.raises(InputError, match=r"^the isolation function is 'size', but it must be one of constant, minimum"):
        ParetoOptimization(isolation="size")
    with pytest.raises(InputError, match=r"^k is 4 and d is 3, but k must lie between 0 and d"):
        minimise(len, 3, 4)


def test_each_family_has_its_method():
    regression, selection = problem_of("quadratic", 0, 8, 4, 2), problem_of("css", 0, 8, 4, 2)
    for method in (ParetoOptimization(), ParallelParetoOptimization(), AsynchronousParetoOptimization()):
        with pytest.raises(UnsupportedError, match="predicts a target"):
            method.run(selection, Context())
    with pytest.raises(UnsupportedError, match="without a target"):
        ParetoColumnSelection().run(regression, Context())


def test_the_registry_finds_them_by_their_names():
    for method in METHODS:
        assert registry.load("heuristics", method.name) is method
