"""Ways to close regions that know no restrictions, on restricted problems: every loss x restriction x ridge.

Held against brute force over all admissible supports; every search is verified by its proof besides (conftest.py).
"""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from samples import sample

from exactsel import Problem, solve
from exactsel.errors import ExactselError
from exactsel.problem.boxed import boxed
from exactsel.problem.restrictions import is_restricted, proposed, without_restrictions
from exactsel.solving.choose import methods_for
from exactsel.solving.outcome import Claim
from exactsel.solving.settings import Settings

LOSSES = ("quadratic", "huber", "logistic", "poisson", "squared_hinge")
D, K = 9, 3


def limited(problem, rng):
    return boxed(problem, bounds=[(j, -1e6, 1e6) for j in range(D)])


def tight(problem, rng):
    return boxed(problem, bounds=[(j, -rng.uniform(0, 0.3), rng.uniform(0, 0.3)) for j in range(D)])


def signs(problem, rng):
    return boxed(problem, positive=[int(j) for j in rng.choice(D, 5, replace=False)])


def one_of_each(problem, rng):
    return problem.limited((np.arange(D) // 2).tolist(), 1)


def with_parents(problem, rng):
    return again(problem, hierarchy={8: [0], 7: [1, 2]})


def forced(problem, rng):
    return boxed(again(problem, must_have=(4,), must_not=(1,)), positive=True)


def signs_and_limits(problem, rng):
    return boxed(problem.limited((np.arange(D) // 3).tolist(), 1), positive=True)


def again(problem, **more):
    return Problem(problem.A, problem.y, problem.k, loss=problem.loss, lam=problem.lam, **more)


RESTRICTIONS = (limited, tight, signs, one_of_each, with_parents, forced, signs_and_limits)


def rows(loss, seed):
    """Data with ties, copies and a column of another magnitude in some seeds."""
    rng = np.random.default_rng([42, seed])
    A = rng.normal(size=(30, D)) + rng.normal(size=(30, 1))
    if seed % 3 == 1:
        A = np.round(A)
        A[:, 3] = 0.0
    if seed % 3 == 2:
        A[:, 2] *= 1e4
        A[:, 6] = A[:, 5]
    z = A[:, :3] @ rng.normal(size=3) / (1.0 + 1e4 * (seed % 3 == 2)) + rng.normal(size=30)
    if loss == "poisson":
        return A, rng.poisson(np.exp(np.clip(z, -2, 2))).astype(float) + 1.0
    return A, np.where(z > 0, 1.0, -1.0) if loss in ("logistic", "squared_hinge") else z


def best(problem):
    """The least objective over all admissible supports; what the root decides is kept to."""
    state, least = problem.root_state, np.inf
    must, may = np.flatnonzero(state == 2), np.flatnonzero(state == 1)
    for size in range(K - must.size + 1):
        for more in itertools.combinations(may.tolist(), size):
            support = tuple(sorted((*must.tolist(), *more)))
            if problem.units.completed(support, K) == support:
                least = min(least, problem.fit(support).value)
    return least


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("restriction", RESTRICTIONS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("seed", sample(9, 300))
def test_the_best_admissible_model_is_found_and_proven(loss, restriction, seed):
    lam = (0.5, 0.0, 1e-3)[seed // 3 % 3]
    if lam == 0.0 and loss == "squared_hinge":
        lam = 1e-3
    rng = np.random.default_rng(seed)
    try:
        problem = restriction(Problem(*rows(loss, seed), K, loss=loss, lam=lam), rng)
        result = solve(problem, heuristics=() if seed % 2 else "auto")
    except ExactselError:
        assert lam == 0.0  # counts or classes that some columns tell apart: the message names them
        return
    least, room = best(problem), 1e-6 * max(1.0, abs(result.upper))
    assert result.lower <= least + room
    assert result.upper <= least + room or result.claim == Claim.BOUNDED


def test_the_problem_without_restrictions_keeps_its_regions_and_objective():
    rng = np.random.default_rng(0)
    plain = Problem(*rows("quadratic", 0), K, lam=0.5)
    for restriction in RESTRICTIONS:
        problem = restriction(plain, rng)
        free = without_restrictions(problem)
        assert is_restricted(problem)
        assert not is_restricted(free)
        assert free.k == problem.k
        assert free.d == problem.d
        fit = proposed(problem, (0, 5))
        assert fit is None or free.fit(fit.support).value <= fit.value + 1e-9


@pytest.mark.parametrize("loss", LOSSES)
def test_a_restriction_nobody_meets_costs_no_more_nodes(loss):
    plain = Problem(*rows(loss, 0), K, loss=loss, lam=0.5)
    free, under = solve(plain), solve(limited(plain, None))
    assert under.support == free.support
    assert under.nodes <= 1.2 * free.nodes + 20


@pytest.mark.parametrize("d", [20, 450])
def test_no_walk_or_count_speaks_of_other_models_than_bounds_in_a_box(d):
    """With lam = 0 and dependent columns these are about smaller models; one claim has one scope."""
    rng = np.random.default_rng(d)
    problem = boxed(Problem(rng.normal(size=(12, d)), rng.normal(size=12), 2, lam=0.0), positive=True)
    methods, blind = methods_for(problem, Settings()), SimpleNamespace(curvature=None)
    assert methods.walker(problem, blind, None) is None
    assert methods.counter(problem, blind, None) is None
