"""Squared hinge and Poisson loss on random tiny instances against every support, as exactsel dev fuzz does."""

from __future__ import annotations

from itertools import count, islice

import numpy as np
import pytest

from exactsel import Problem
from exactsel.bounds.apg import AcceleratedGradientBound
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.witness import ModelPoint
from exactsel_dev.campaigns.random_instances import random_instance
from exactsel_dev.campaigns.trials import Trial


def wrong(loss, first, many):
    """What is found on so many instances of this loss, from a seed on."""
    seeds = islice((seed for seed in count(first) if random_instance(seed).loss == loss), many)
    return [(seed, found) for seed in seeds if (found := Trial("brute-force", "", None)(seed).wrong)]


@pytest.mark.parametrize("loss", ["squared_hinge", "poisson"])
def test_against_every_support(loss):
    assert wrong(loss, 0, 12) == []


@pytest.mark.parametrize("seed", [3040210, 3046990, 3088524, 3113685, 3157640, 3524190, 3527268])
def test_what_the_campaign_has_found(seed):
    assert Trial("brute-force", "", None)(seed).wrong == []


def test_the_small_ridge_goes_by_the_units():
    """Without a ridge one is searched with that is small beside the objective, however large the numbers are."""
    assert Trial("metamorphic", "", None)(5023198).wrong == []


def test_a_start_at_which_the_loss_overflows():
    """That of a larger region, whose columns cancel: without one of them no step leads back."""
    problem = random_instance(3113685).problem()
    model = np.array([-14464.87439857, -34415.52819895, 37928.44418555, 10951.8945867])
    start = ModelPoint(np.array([0, 2, 3, 4], dtype=np.int32), model)
    prepared = AcceleratedGradientBound().prepare(problem, BoundOptions(1))
    for state in ([1, 0, 0, 1, 1], [0, 0, 0, 2, 0]):
        answers = prepared.tighten(np.array([state], dtype=np.int8), [start], 4.45, 4.45, np.zeros(1)).answers
        assert np.abs(answers.x).max() < 1e6
        assert -1.0 < answers.bound[0] < 4.46


@pytest.mark.parametrize("weights", [None, [0.5, 2.0, 1.0]])
@pytest.mark.parametrize("y", [(0, 0, 1), (1, 1, 0), (0, 3, 0)])
def test_the_intercept_of_few_counts(y, weights):
    """Without columns it is the logarithm of the mean, also where a prediction of 0 suits most rows."""
    problem = Problem.prepared(
        np.eye(3), np.array(y, float), 1, loss="poisson", lam=1.0, intercept=True, weights=weights
    )
    mean = np.average(y, weights=weights)
    assert problem.objective.as_given(np.zeros(3))[1] == pytest.approx(np.log(mean), abs=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("loss", ["squared_hinge", "poisson"])
def test_against_every_support_thousands_of_times(loss):
    assert wrong(loss, 100_000, 3000) == []
