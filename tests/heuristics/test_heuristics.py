"""Heuristics: valid and reproducible proposals on data as it comes, stopping on request, and what they share."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass

import numpy as np
import pytest
from instances_for_heuristics import StopAfter, each_loss, make_problem, planted_problem

from exactsel import registry
from exactsel.errors import UnsupportedError
from exactsel.problem.regression import Problem
from exactsel_heuristics import (
    Context,
    DualIterativeHardThresholding,
    ForwardSelection,
    HardThresholdingPursuit,
    Heuristic,
    OrthogonalMatchingPursuit,
    Proposal,
    SwapLocalSearch,
)
from exactsel_heuristics._scoring import evaluate, guaranteed_decrease, largest, padded

HEURISTICS = (
    ForwardSelection(),
    OrthogonalMatchingPursuit(),
    OrthogonalMatchingPursuit(scaled=True),
    HardThresholdingPursuit(),
    DualIterativeHardThresholding(max_steps=60),
    SwapLocalSearch(),
)
LOSSES = ("quadratic", "huber", "logistic")
each_heuristic = pytest.mark.parametrize("heuristic", HEURISTICS, ids=repr)


def assert_valid(problem, proposal):
    assert isinstance(proposal, Proposal)
    assert len(proposal.support) <= problem.k
    assert list(proposal.support) == sorted(set(proposal.support))
    assert all(type(j) is int and 0 <= j < problem.d for j in proposal.support)
    assert proposal.evaluations >= 0
    empty = problem.fit(()).value
    assert problem.fit(proposal.support).value <= empty + 1e-9 * (1.0 + abs(empty))


# The interface


def test_every_heuristic_follows_the_interface():
    for heuristic in HEURISTICS:
        assert isinstance(heuristic, Heuristic)
        assert is_dataclass(heuristic)
        assert heuristic == type(heuristic)(**{f.name: getattr(heuristic, f.name) for f in fields(heuristic)})


def test_the_registry_finds_them_by_their_names():
    for heuristic in HEURISTICS:
        assert registry.load("heuristics", heuristic.name) is type(heuristic)


def test_the_plug_in_of_the_documentation_works():
    @dataclass(frozen=True)
    class LargestCorrelations:
        name = "largest-correlations"

        def run(self, problem, context):
            scores = np.abs(problem.gradient(np.zeros(problem.d)))
            return Proposal.of(np.argsort(-scores, kind="stable")[: problem.k], evaluations=0)

    assert isinstance(LargestCorrelations(), Heuristic)
    problem, planted = planted_problem("quadratic")
    assert LargestCorrelations().run(problem, Context()).support == planted


def test_a_context_gives_equal_random_numbers_for_equal_seeds():
    assert Context(seed=5).rng().random() == Context(seed=5).rng().random()
    assert Context(seed=5).rng().random() != Context(seed=6).rng().random()


def test_a_proposal_sorts_its_columns():
    assert Proposal.of(np.array([3, 1, 3]), 2) == Proposal((1, 3), 2)


# Every heuristic, on data as it comes


@pytest.mark.smoke
@each_heuristic
@each_loss
@pytest.mark.parametrize(
    ("n", "d", "k"), [(30, 8, 3), (6, 10, 4), (4, 9, 9), (20, 7, 1), (15, 6, 6), (1, 2, 1), (10, 6, 0)]
)
def test_proposals_are_valid_and_reproducible(heuristic, loss, n, d, k):
    for seed in range(3):
        problem = make_problem(seed, n, d, k, loss)
        before = problem.A.copy(), problem.y.copy()
        proposal = heuristic.run(problem, Context(seed=seed))
        assert_valid(problem, proposal)
        assert heuristic.run(problem, Context(seed=seed)) == proposal
        assert np.array_equal(problem.A, before[0])
        assert np.array_equal(problem.y, before[1])


@each_heuristic
@pytest.mark.parametrize(("n", "d", "k"), [(30, 8, 3), (6, 10, 4), (5, 8, 8), (20, 7, 1)])
def test_proposals_without_a_ridge(heuristic, n, d, k):
    problem = make_problem(7, n, d, k, lam=0.0)
    if heuristic.name == "dual-iht":
        with pytest.raises(UnsupportedError, match="lam is 0"):
            heuristic.run(problem, Context())
    else:
        assert_valid(problem, heuristic.run(problem, Context()))


@each_heuristic
@pytest.mark.parametrize("A", [np.zeros((5, 3)), np.ones((5, 3))], ids=["zero", "constant"])
def test_degenerate_data(heuristic, A):
    for y in (np.zeros(5), np.arange(5.0)):
        assert_valid(problem := Problem(A, y, 2, lam=0.1), heuristic.run(problem, Context()))


@each_heuristic
@each_loss
def test_the_planted_support_is_found(heuristic, loss):
    problem, planted = planted_problem(loss)
    assert heuristic.run(problem, Context()).support == planted


@each_heuristic
@each_loss
def test_stopping_at_once(heuristic, loss):
    problem = make_problem(3, 30, 12, 5, loss)
    stop = StopAfter(0)
    proposal = heuristic.run(problem, Context(should_stop=stop))
    assert_valid(problem, proposal)
    assert proposal.support == ()
    # Swap asks twice, once through the forward selection it starts from.
    assert stop.asked_again <= 1


@each_heuristic
@each_loss
def test_stopping_later(heuristic, loss):
    problem = make_problem(3, 30, 12, 5, loss)
    full = heuristic.run(problem, Context())
    for count in (1, 2, 4):
        stop = StopAfter(count)
        proposal = heuristic.run(problem, Context(should_stop=stop))
        assert_valid(problem, proposal)
        assert len(proposal.support) > 0
        assert proposal.evaluations <= full.evaluations
        assert stop.asked_again <= 1


# What they share


def test_largest_prefers_lower_columns_among_equals():
    assert largest(np.array([1.0, 3.0, 1.0, 1.0]), 2).tolist() == [0, 1]
    assert largest(np.array([1.0, 2.0]), 5).tolist() == [0, 1]


@each_loss
def test_the_guaranteed_decrease_is_a_lower_bound(loss):
    problem = make_problem(1, 20, 8, 3, loss)
    fit = problem.fit((0, 2))
    for j, promised in enumerate(guaranteed_decrease(problem, problem.gradient(fit.coef))):
        assert problem.fit((0, 2, j)).value <= fit.value - promised + 1e-9


def test_evaluate_stops_between_batches(monkeypatch):
    monkeypatch.setattr("exactsel_heuristics._scoring.BATCH_WORK", 1.0)
    problem = make_problem(0, 10, 6, 2, lam=0.0)
    supports = padded([(0,)] * 16 + [(0, 1)] * 16, 2)
    values, count = evaluate(problem, supports, StopAfter(0))
    assert count == 16
    assert np.all(np.isfinite(values[:16]))
    assert np.all(values[16:] == np.inf)
    values, count = evaluate(problem, supports, lambda: False)
    assert count == 32
    assert np.all(values[16:] == np.inf), "duplicate columns are numerically dependent"
