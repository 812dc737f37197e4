"""Heuristics within limits of coefficients: steps against all candidates, answers against the best model."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from boxed_cases import allowed_sets, other_case, quadratic_case, smallest_on
from samples import kernels_of_its_own, whole

from exactsel import Problem, boxed, registry
from exactsel.errors import WrongFamilyError
from exactsel.problem.boxed import with_bounds
from exactsel.problem.capabilities import COEFFICIENT_BOUNDS
from exactsel.start.models import starting_models
from exactsel.start.portfolio import AUTO
from exactsel.testing.cases import awkward_problems
from exactsel_heuristics import (
    Context,
    ForwardBackward,
    ForwardSelection,
    HardThresholdingPursuit,
    IterativeHardThresholding,
    OrthogonalMatchingPursuit,
    ParallelParetoOptimization,
    ParetoOptimization,
    SwapLocalSearch,
)
from exactsel_heuristics._limits import sizes, within
from exactsel_heuristics._scoring import guaranteed_decrease, largest

SERVING = (
    ForwardSelection(), SwapLocalSearch(), OrthogonalMatchingPursuit(), HardThresholdingPursuit(),
    IterativeHardThresholding(), IterativeHardThresholding(normalised=True), ParetoOptimization(iterations=60),
    ParallelParetoOptimization(iterations=20, processors=3),
)  # fmt: skip


def cases(count):
    """Quadratic problems and those of other losses, without demands, which heuristics leave to others."""
    for seed in range(count):
        problem = quadratic_case(seed)
        if not problem.force_in and not problem.force_out:
            yield seed, problem
        if seed % 4 == 0:
            yield seed, other_case(seed // 4)


def compiled_for(problem):
    """The methods that are compiled for it each time: for each other loss Pareto optimisation takes long to compile.

    Other tests have it for those left out here.
    """
    left_out = {"huber": 2, "logistic": 1}.get(problem.objective.loss.name, 0)
    return SERVING if whole() else SERVING[: len(SERVING) - left_out]


def room(problem):
    return 1e-8 * (1.0 + problem.null_objective)


@pytest.mark.smoke
def test_each_step_forward_is_the_best_one():
    for seed, problem in cases(160):
        before: tuple[int, ...] = ()
        for k in range(1, problem.k + 1):
            support = ForwardSelection().run(problem.replace(k=k), Context()).support
            assert {*before} <= {*support}, seed
            reachable = [smallest_on(problem, {*before, j}) for j in range(problem.d)]
            assert problem.fit(support).value <= min(reachable) + room(problem), seed
            before = support


def test_no_single_exchange_improves_what_swap_ends_at():
    for seed, problem in cases(120):
        support = SwapLocalSearch().run(problem, Context()).support
        value = problem.fit(support).value
        for leaving, entering in itertools.product((None, *support), range(problem.d)):
            near = {*support, entering} - {leaving}
            if len(near) <= problem.k:
                assert value <= smallest_on(problem, near) + room(problem), (seed, leaving, entering)


def test_proposals_are_models_within_the_limits_and_none_is_better_than_the_best():
    for seed, problem in cases(25):
        best = min(smallest_on(problem, chosen) for chosen in allowed_sets(problem))
        for method in compiled_for(problem):
            support = method.run(problem, Context(seed=seed)).support
            assert len(support) <= problem.k
            fit = problem.fit(support)
            assert problem.coefficient_bounds.admit(fit.coef)
            assert best - room(problem) <= fit.value <= problem.null_objective + room(problem), (seed, method)


def test_the_curve_of_poss_ends_at_the_objective_of_its_answer():
    for seed, problem in cases(25):
        if problem.objective.loss.name == "huber" and not whole():
            continue
        found = ParetoOptimization(iterations=200).run(problem, Context(seed=seed))
        if found.curve:
            assert found.curve[-1][1] == pytest.approx(problem.fit(found.support).value, rel=1e-7, abs=1e-7), seed


def test_a_projection_is_the_nearest_point_of_few_columns_within_the_limits():
    for seed, problem in cases(30):
        point = np.random.default_rng(seed).normal(size=problem.d) * 2.0
        kept = largest(sizes(problem, point), problem.k)
        near, bounds = np.zeros(problem.d), problem.coefficient_bounds
        near[kept] = within(problem, point)[kept]
        distances = []
        for chosen in itertools.combinations(range(problem.d), problem.k):
            other = np.zeros(problem.d)
            other[list(chosen)] = np.clip(point, bounds.lower, bounds.upper)[list(chosen)]
            distances.append(np.sum((other - point) ** 2))
        assert np.sum((near - point) ** 2) <= min(distances) * (1.0 + 1e-12), seed


def test_a_decrease_that_is_guaranteed_is_there():
    for seed, problem in cases(30):
        if problem.objective.loss.name == "poisson":
            continue  # its curvature has no limit, and what is said of it is a guess
        zero = np.zeros(problem.d)
        gained = guaranteed_decrease(problem, problem.objective.gradient(zero))
        assert np.all(gained >= 0.0)
        for j in range(problem.d):
            assert problem.fit([j]).value <= problem.objective(zero) - gained[j] + room(problem), seed


@pytest.mark.parametrize(
    "loss", ["quadratic", "huber", "logistic", *map(kernels_of_its_own, ("poisson", "squared_hinge"))]
)
def test_limits_that_limit_nothing_change_no_answer(loss):
    rng = np.random.default_rng(5)
    A, z = rng.standard_normal((40, 9)), rng.standard_normal(40)
    z += A[:, 0] - A[:, 3]
    y = {"quadratic": z, "huber": z, "poisson": rng.poisson(np.exp(np.clip(z, -2, 2))).astype(float)}
    problem = Problem(A, y.get(loss, np.sign(z)), 3, loss=loss, lam=0.1)
    wide = with_bounds(problem, np.full(9, -1e12), np.full(9, 1e12))
    for method in SERVING:
        if "pposs" in method.name:
            continue
        assert method.run(wide, Context()).support == method.run(problem, Context()).support, method


def test_short_lists_hold_the_columns_that_gain_most():
    rng = np.random.default_rng(6)
    A = rng.standard_normal((60, 12))
    y = np.sign(2.0 * A[:, 1] - 2.0 * A[:, 2] + A[:, 5] + 0.3 * rng.standard_normal(60))
    problem = boxed(Problem(A, y, 2, loss="logistic", lam=0.1), "all")
    for method in (ForwardSelection, SwapLocalSearch):
        short = method(shortlist=3, exhaustive=0).run(problem, Context(start=(0, 4)))
        whole = method().run(problem, Context(start=(0, 4)))
        assert short.support == whole.support
        assert short.evaluations < whole.evaluations


@pytest.mark.parametrize(("d", "k"), [(2, 0), (2, 1), (4, 2), (3, 3)])
def test_a_portion_of_work_begins_no_oftener_than_there_are_supports(d, k):
    rng = np.random.default_rng(d)
    problem = boxed(Problem(rng.standard_normal((8, d)), rng.standard_normal(8), k, lam=0.3), "all")
    found = SwapLocalSearch().run(problem, Context(work=1e9))
    assert found.evaluations <= (math.comb(d, k) + 1) * (2 + (d + 1) * d * d)


def test_the_conformance_kit_knows_limits():
    """All registered methods are tried on them (tests/use/test_methods.py); those that know limits refuse none."""
    bounded = [problem for _, problem in awkward_problems() if problem.has(COEFFICIENT_BOUNDS)]
    assert {problem.objective.loss.name for problem in bounded} == {"quadratic", "logistic"}
    assert {problem.units.grouped for problem in bounded} == {False, True}
    for name in ("forward", "swap", "omp", "htp", "iht", "poss", "pposs"):
        method = registry.load("heuristics", name)()
        for problem in bounded:
            if not problem.units.grouped or name in ("forward", "swap"):
                assert len(method.run(problem, Context(should_stop=lambda: True)).support) <= problem.k


def test_a_search_begins_with_the_models_of_heuristics():
    problem = boxed(Problem(np.eye(6), np.array([3.0, -5.0, 2.0, 1.0, 0.5, 0.1]), 2, lam=0.1), "all")
    found = list(starting_models(problem, AUTO, problem.fit(()), Context()))
    assert [(fit.support, name) for fit, name in found] == [((0, 2), "forward")]


def test_methods_that_do_not_know_limits_say_which_ones_do():
    problem = boxed(Problem(np.eye(3), np.ones(3), 1, lam=0.1), "all")
    with pytest.raises(WrongFamilyError, match="'foba' does not know signs or bounds of coefficients; use forward"):
        ForwardBackward().run(problem, Context())
