"""Searches inside the kernel under restrictions: no set below the threshold is closed, no other model taken over."""

from __future__ import annotations

import math

import numpy as np
import pytest
from conformance import CONSTRAINTS, Kind, again
from promised import (
    a_search_goes_on_from_its_checkpoint,
    both_checkers_accept_the_proof,
    every_lower_bound_holds,
    found,
    optimum_is_that_of_brute_force,
    searched,
    the_record_proves_the_bound,
    threads_change_nothing,
)
from regions import random_state, supports_of
from samples import kernels_of_its_own, many, whole

from exactsel import Problem, Settings, boxed, solve
from exactsel.bounds.base import BoundOptions
from exactsel.enumeration import native
from exactsel.enumeration import work_budget as subtrees
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.nodes.node import is_convex
from exactsel.problem.capabilities import COEFFICIENT_BOUNDS
from exactsel.solving.choose import methods_for

LOSSES = ("huber", "logistic", "poisson", "squared_hinge")
RESTRICTED = [name for name in CONSTRAINTS if name != "none" and not name.startswith("groups")]
PROMISES = (
    optimum_is_that_of_brute_force,
    every_lower_bound_holds,
    both_checkers_accept_the_proof,
    the_record_proves_the_bound,
    threads_change_nothing,
    a_search_goes_on_from_its_checkpoint,
)


@pytest.fixture
def eager(monkeypatch):
    """Let the kernel search below every node, from the first round on, a few nodes at a time."""
    monkeypatch.setattr(subtrees, "SUBSEARCH_SHARE", 1e9)
    monkeypatch.setattr(subtrees, "LEAST_SUBSEARCH", 1)
    monkeypatch.setattr(subtrees, "MOST_SUBSEARCH", 3)
    searched.cache_clear()
    yield
    searched.cache_clear()


def is_usual(loss, within_limits):
    """Whether the kernel is compiled each time: of rarer losses, with limits for one and without for another."""
    return within_limits if loss == "poisson" else not within_limits if loss == "squared_hinge" else True


def crossed(losses, names, with_limits):
    """Each with each; slow where the kernel is compiled for nothing else."""
    for loss in losses:
        for name in names:
            usual = is_usual(loss, with_limits(name))
            yield (loss, name) if usual else kernels_of_its_own(loss, name)


@pytest.mark.parametrize(
    ("loss", "constraint"), [*crossed(LOSSES, RESTRICTED, lambda name: "limits" in name or "signs" in name)]
)
def test_every_promise_holds(loss, constraint, eager, tmp_path):
    at = LOSSES.index(loss) + RESTRICTED.index(constraint)
    ridge = "no ridge" if at % 4 == 0 and loss != "squared_hinge" else ("ridge", "little ridge")[at % 2]
    kind = Kind(loss, constraint, ridge, "plain", "no models at first")
    below = found(kind).settings["closers"].get("below")
    assert below or found(kind).nodes <= 1
    for number, promise in enumerate(PROMISES):
        if number < 3 or (number + at) % 3 == 0:
            promise(kind, tmp_path)


def drawn(seed):
    """A small problem of some loss under some restriction, and what the best model on each of its sets costs."""
    rng = np.random.default_rng([90, seed])
    loss, d, k = LOSSES[seed % 4], int(rng.integers(5, 8)), int(rng.integers(2, 4))
    A = rng.normal(size=(18, d)) + rng.normal(size=(18, 1))
    z = A @ rng.normal(size=d) + rng.normal(size=18)
    y = z if loss == "huber" else np.where(z > 0, 1.0, -1.0)
    if loss == "poisson":
        y = rng.poisson(np.exp(np.clip(z, -2.0, 2.0))).astype(float)
    problem = Problem(A, y, k, loss=loss, lam=float(10.0 ** rng.uniform(-2, 0.5)))
    which = seed // 4 % 4
    if which == 0:
        problem = boxed(problem, positive=rng.permutation(d)[: d // 2 + 1].tolist())
    elif which == 1:
        problem = boxed(problem, bounds=[(j, -0.3, float(rng.uniform(0.05, 0.4))) for j in range(d)])
    elif which == 2:
        problem = problem.limited((rng.permutation(d) // 2).tolist(), 1)
    else:
        order = rng.permutation(d).tolist()
        hierarchy = {order[0]: [order[1]], order[2]: order[3:5]}
        problem = Problem(A, y, k, loss=loss, lam=problem.lam, hierarchy=hierarchy)
    return rng, problem


def searcher_of(problem):
    methods, options = methods_for(problem, Settings()), BoundOptions(threads=1)
    return methods.native(problem, methods.bound.prepare(problem, options), options)


def admissible(problem, state):
    """What the best model costs on every set of a region that is admissible."""
    units, k = problem.units, problem.k
    sets = [some for some in supports_of(state, k) if units.completed(some, k) == some]
    return {some: problem.fit(some).value for some in sets}


def holds(states, support, k):
    """Whether a region left open holds a set."""
    members = list(support)
    return any(
        np.all(state[members] != OUT) and np.count_nonzero(state == IN) + np.count_nonzero(state[members] == FREE) <= k
        for state in states
    )


def closed_below(problem, state, values, upper, tolerance, budget):
    """Sets that a search has closed although they cost less than its threshold, and the search."""
    search = searcher_of(problem).explore(state[None], [None], np.zeros(1), upper, tolerance, budget)[0]
    met = math.inf if search.support is None else values.get(search.support, math.inf)
    room = 1e-7 * (1.0 + abs(min(values.values())))
    lost = [
        some for some, value in values.items()
        if value < min(met, upper) - tolerance - room and not holds(search.open_states, some, problem.k)
    ]  # fmt: skip
    return lost, search


def test_no_set_below_the_threshold_is_closed():
    left = taken = 0
    for seed in range(many(50, 640)):
        rng, problem = drawn(seed)
        if not whole() and not is_usual(problem.loss.name, problem.has(COEFFICIENT_BOUNDS)):
            continue
        state = problem.units.implied(random_state(rng, problem), problem.k)
        if state is None or is_convex(state, problem.k):
            continue
        values = admissible(problem, state)
        if not values:
            continue
        best = min(values.values())
        upper = [math.inf, best * (1 + 1e-9) + 1e-9, float(np.quantile([*values.values()], 0.3)) + 1e-9][seed % 3]
        tolerance, budget = float(rng.choice([1e-9, 1e-3])) * best, int(rng.choice([2, 5, 300]))
        lost, search = closed_below(problem, state, values, upper, tolerance, budget)
        assert not lost, seed
        sliver = 1e-10 * (1.0 + abs(best))
        for some, value in values.items():
            if not holds(search.open_states, some, problem.k):
                assert search.min_pruned_bound <= value + sliver, (seed, some)
        for region in search.open_regions():
            assert problem.units.implied(region.state, problem.k) is not None, seed
            assert region.bound <= min(admissible(problem, region.state).values(), default=math.inf) + sliver, seed
        left += len(search.open_states) > 0
        if search.support is not None:
            taken += 1
            assert values[search.support] < upper, seed
    assert left > many(2, 50)
    assert taken > many(7, 150)


@pytest.mark.untrue
def test_a_model_that_is_not_admissible_is_not_taken_over(monkeypatch):
    """Were closing at once to take over what it meets, sets that are better than the best admissible one are lost."""

    def lost():
        count = 0
        for seed in range(1, 160, 4):
            _, problem = drawn(seed)
            state, k = problem.root_state, problem.k
            state[np.flatnonzero(state == FREE)[0]] = IN
            state = problem.units.implied(state, k)
            values = {} if state is None or is_convex(state, k) else admissible(problem, state)
            if values:
                upper = 1.01 * min(values.values())
                count += bool(closed_below(problem, state, values, upper, 1e-9 * upper, 300)[0])
        return count

    assert lost() == 0
    monkeypatch.setattr(native, "is_restricted", lambda problem: False)
    assert lost() > 0


def hard(loss, restricted):
    """Columns that have much in common and nothing to say: some hundred nodes."""
    rng = np.random.default_rng(6)
    A = rng.standard_normal((80, 24)) + 0.5 * rng.standard_normal((80, 1))
    y = rng.standard_normal(80)
    y = y if loss == "huber" else np.abs(np.round(2 * y)) if loss == "poisson" else np.where(y > 0, 1.0, -1.0)
    return restricted(Problem(A, y, 5, loss=loss, lam=1.0))


def with_a_parent(problem):
    """One column that is not in the best model needs one that is."""
    best = solve(problem, signals=()).support
    child = min({*range(24)} - {*best})
    return again(problem, hierarchy={child: [best[0]]})


NOBODY_MEETS = {
    "limits": lambda problem: boxed(problem, bounds=[(j, -1e6, 1e6) for j in range(24)]),
    "five of a group": lambda problem: problem.limited([0] * 12 + [*range(1, 13)], 5),
    "a parent": with_a_parent,
}


@pytest.mark.parametrize(
    ("loss", "restriction"),
    [
        *crossed([loss for loss in LOSSES if loss != "poisson"], NOBODY_MEETS, lambda name: name == "limits"),
        *(kernels_of_its_own("poisson", name) for name in NOBODY_MEETS),
    ],
)
def test_a_restriction_nobody_meets_leaves_the_search_as_it_is(loss, restriction):
    free, under = (hard(loss, way) for way in (lambda problem: problem, NOBODY_MEETS[restriction]))
    plain, found_under = (solve(problem, threads=1, signals=(), node_limit=100_000) for problem in (free, under))
    assert found_under.support == plain.support
    assert found_under.settings["closers"]["below"]["nodes"] > 0
    assert found_under.nodes <= 1.2 * plain.nodes + 20
    assert found_under.iterations <= 1.2 * plain.iterations + 200
