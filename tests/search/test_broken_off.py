"""A root whose bound call is broken off: what it had come to is shown, and is forgotten when the search goes on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pytest
from clocks import Clock
from samples import many, sample

from exactsel import Problem
from exactsel.bounds.apg import AcceleratedGradientBound
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.split import SplitBound
from exactsel.kernels.node import FREE, UNFINISHED
from exactsel.solving.settings import Settings
from exactsel.solving.solver import Search

LOSSES = ("quadratic", "huber", "logistic", "poisson", "squared_hinge")


class CountedFlag(np.ndarray):
    """A stop flag that is up from the n-th time on that it is looked at."""

    def __new__(cls, looks):
        flag = np.zeros(1, dtype=np.bool_).view(cls)
        flag.left = looks
        return flag

    def __array_finalize__(self, made_from):
        self.left = getattr(made_from, "left", 0)

    def __getitem__(self, at):
        self.left -= 1
        return self.left < 0


@dataclass(frozen=True)
class BrokenOff:
    """A bound one of whose calls is broken off after it has come to something."""

    clock: Clock
    call: int = 1
    name: str = "broken off"

    def prepare(self, problem, options):
        return PreparedBrokenOff(self, options, AcceleratedGradientBound().prepare(problem, options))


class PreparedBrokenOff:
    def __init__(self, bound, options, inner):
        self.bound, self.options, self.inner, self.left = bound, options, inner, bound.call

    def tighten(self, states, *arguments):
        self.left -= 1
        result = self.inner.tighten(states, *arguments)
        if self.left == 0:
            self.bound.clock.jump()
            self.options.stop[0] = True
            result.answers.status[:] = UNFINISHED
        return result


def problem_of(loss, seed, n=14, d=8):
    """Columns of very different magnitude, one of them twice."""
    rng = np.random.default_rng([seed, LOSSES.index(loss)])
    A = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-2, 3, d)
    A[:, -1] = A[:, 0]
    z = A[:, 0] / np.linalg.norm(A[:, 0]) + 0.3 * rng.normal(size=n)
    y = {"poisson": rng.poisson(np.exp(z)).astype(float)}.get(
        loss, z if loss in LOSSES[:2] else np.where(z > 0, 1.0, -1.0)
    )
    return Problem(A, y, int(rng.integers(1, 4)), loss=loss, lam=10.0 ** rng.integers(-3, 2))


def best_of(problem):
    sizes = range(problem.k + 1)
    return min(problem.fit(support).value for size in sizes for support in combinations(range(problem.d), size))


@pytest.mark.parametrize("loss", LOSSES)
def test_what_the_root_had_come_to_is_shown_and_then_forgotten(loss, clock):
    shown = 0
    tried = many(6, 12)
    for seed in range(tried):
        problem, settings = problem_of(loss, seed), Settings(time_limit=10.0, heuristics=(), subtrees=False)
        search = Search(problem, replace(settings, bound=BrokenOff(clock)), signals=())
        result = search.run()
        assert (result.termination, result.nodes) == ("time_limit", 0)
        best = best_of(problem)
        assert result.lower <= best * (1 + 1e-9)
        shown += result.lower > 0.3 * best
        plain = replace(settings, time_limit=None, bound="apg")
        gone_on, at_once = (Search(problem, plain, state=state, signals=()) for state in (search.state, None))
        assert gone_on.run().claim is at_once.run().claim
        assert gone_on.state.reached is None
        assert gone_on.state.tree_hash == at_once.state.tree_hash
    assert shown > tried // 3


@pytest.mark.parametrize("seed", sample(4, 4))
def test_levels_of_the_split_are_shown_as_they_are_reached(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(24, 12)) @ np.diag(10.0 ** rng.integers(-1, 2, 12))
    A /= np.linalg.norm(A, axis=0)
    problem = Problem(A, A @ rng.choice([-1.0, 1.0], 12) + 0.5 * rng.normal(size=24), 4, lam=1e-4)
    best, bounds = best_of(problem), []
    for looks in range(0, 400, many(16, 8)):
        options = BoundOptions(stop=CountedFlag(looks), thorough=True)
        told = (
            SplitBound()
            .prepare(problem, options)
            .tighten(np.full((1, 12), FREE, dtype=np.int8), [None], 1.001 * best, 1.001 * best)
        )
        bounds.append(float(told.answers.bound[0]))
        finished = told.answers.status[0] != UNFINISHED
        if finished:
            break
    assert max(bounds) <= best * (1 + 1e-9)
    assert bounds == sorted(bounds)
    assert len(set(bounds[:-1])) > 2


def test_a_region_that_is_not_the_root_raises_nothing(clock):
    problem = problem_of("logistic", 2, n=30)
    search = Search(problem, Settings(time_limit=10.0, bound=BrokenOff(clock, 2), subtrees=False, batch=1), signals=())
    assert search.run().termination == "time_limit"
    assert search.state.nodes == 1
    assert search.state.reached is None
