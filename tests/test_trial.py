"""The short search without curvature that comes before one with it: as sound, one tree, one record."""

from __future__ import annotations

import pytest
from checked_solve import checked_solve
from instances_for_tests import random_case

from exactsel import trial
from exactsel.problem import Problem
from exactsel.search.events import Finished, Started
from exactsel.settings import Settings
from exactsel.solving import solve
from exactsel.trial import wants_trial


@pytest.fixture(params=[0.0, 0.6, 10.0], ids=["given up", "as usual", "never given up"])
def tried(request, monkeypatch):
    """Trials on instances of any size."""
    monkeypatch.setattr(trial, "MOST_COLUMNS", 0)
    monkeypatch.setattr(trial, "FIRST", 2)
    monkeypatch.setattr(trial, "MOST", 7)
    monkeypatch.setattr(trial, "FEW_OPEN", request.param)


def test_a_search_that_begins_with_a_trial_is_sound_and_told_once(tried):
    for seed in range(860_000, 860_060):
        case = random_case(seed, loss="quadratic", lam=(0.01, 0.3, 3.0)[seed % 3])
        options = {"rel_eps": (0.0, 1e-6)[seed % 2], "batch": (None, 1, 3)[seed % 3], "heuristics": ()}
        solved = [checked_solve(case, options | {"threads": threads}) for threads in (1, 2)]
        assert solved[0].result.tree_hash == solved[1].result.tree_hash
        assert [isinstance(event, Started) for event in solved[0].events].count(True) == 1
        assert [isinstance(event, Finished) for event in solved[0].events].count(True) == 1


def test_a_node_limit_holds_and_no_curvature_is_made_for_nothing(tried):
    case = random_case(860_101, loss="quadratic", lam=0.02, d=8, n=9)
    for limit in range(1, 12):
        result = solve(case.problem(), node_limit=limit, heuristics="none", subtrees=True, threads=1, batch=1)
        assert result.nodes <= limit
        if limit <= 2 and not result.reached:
            assert "ridge" in result.settings["method"]


def test_only_the_default_search_over_hundreds_of_columns_begins_so(rng_matrix):
    problem = Problem(rng_matrix, rng_matrix[:, 0], 3, lam=1.0)
    assert wants_trial(problem, Settings())
    for settings in (Settings(bound="apg"), Settings(subtrees=False), Settings(tree="state-space")):
        assert not wants_trial(problem, settings)
    assert not wants_trial(Problem(rng_matrix[:, :100], rng_matrix[:, 0], 3, lam=1.0), Settings())
    assert not wants_trial(Problem(rng_matrix, rng_matrix[:, 0], 3, lam=1.0, loss="huber"), Settings())


@pytest.fixture
def rng_matrix():
    """450 columns."""
    import numpy as np

    return np.random.default_rng(4).standard_normal((40, 450))
