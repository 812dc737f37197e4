"""The campaigns where Huber and logistic loss have no ridge: what is drawn, the truth about it, and planted faults."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from equal_instances import same
from fits_for_tests import slow_fit
from samples import many, sample
from scipy.optimize import linprog

from exactsel.problem import infinitesimal_ridge
from exactsel.testing.instances import TinyInstance
from exactsel.testing.solving import Refused, solved
from exactsel_dev.campaigns import random_instances, trials
from exactsel_dev.campaigns.brute_force import Truth
from exactsel_dev.campaigns.existence import dependent, separated, separated_completely
from exactsel_dev.campaigns.random_instances import random_instance
from exactsel_dev.campaigns.random_ridgeless import without_ridge
from exactsel_dev.campaigns.refusals import refusal, unlimited
from exactsel_dev.campaigns.ridgeless_fits import optimum
from exactsel_dev.campaigns.trials import BRUTE_FORCE, METAMORPHIC, Trial
from exactsel_dev.campaigns.whole_numbers import WholeData


def ridgeless(first, count):
    """Seeds of instances of these losses without a ridge, and the instances."""
    made = ((seed, random_instance(seed)) for seed in range(first, first + count))
    return [(seed, one) for seed, one in made if one.loss in ("huber", "logistic") and one.lam == 0]


def test_a_fair_share_has_no_ridge_and_all_others_are_what_they_were(monkeypatch):
    made = [random_instance(seed) for seed in range(300)]
    monkeypatch.setattr(random_instances, "without_ridge", lambda rng, instance: instance)
    before = [random_instance(seed) for seed in range(300)]
    free = [one.loss in ("huber", "logistic") and one.lam == 0 for one in made]
    assert all(same(*pair) for pair, changed in zip(zip(made, before, strict=True), free, strict=True) if not changed)
    assert not any(one.lam == 0 for one in before if one.loss in ("huber", "logistic"))
    for loss in ("huber", "logistic"):
        share = np.mean([changed for one, changed in zip(made, free, strict=True) if one.loss == loss])
        assert 0.3 < share < 0.7
    assert without_ridge(np.random.default_rng(0), TinyInstance(np.eye(2), np.ones(2), 1, lam=1.0)).lam == 1.0


@pytest.mark.parametrize("seed", sample(40, 40))
def test_the_truth_is_that_of_fits_that_know_nothing_of_it(seed):
    rng = np.random.default_rng(seed)
    loss, n, d = ("huber", "logistic")[seed % 2], int(rng.integers(8, 16)), int(rng.integers(1, 5))
    A = rng.standard_normal((n, d)) if rng.random() < 0.7 else rng.integers(-2, 3, (n, d)).astype(float)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0) if loss == "logistic" else 3.0 * rng.standard_normal(n)
    delta = float(rng.uniform(0.1, 3.0))
    weights = rng.uniform(0.2, 3.0, n) if rng.random() < 0.4 else None
    instance = TinyInstance(A, y, d, loss, 0.0, delta, weights, bool(rng.random() < 0.5))
    data = WholeData(instance)
    if separated(data, range(d)) if loss == "logistic" else dependent(data, range(d)):
        return
    low, high = optimum(data, [range(d)])
    fitted = slow_fit(A, y, loss, delta, instance.intercept, np.ones(n) if weights is None else weights)
    assert 0 <= high - low <= 1e-15 * high
    assert float(high) <= fitted * (1 + 1e-12)
    assert float(low) == pytest.approx(fitted, rel=1e-6)


def test_intervals_are_narrow_where_there_is_a_best_model():
    truths = [Truth(one) for _, one in ridgeless(0, many(150, 3000)) if one.admissible]
    there = [one for one in truths if not one.separated and not one.dependent]
    plain = [one for one in there if np.abs(one.instance.A).max() < 1e3]
    assert len(plain) > 10
    assert not any(one.loose for one in plain)


def by_linear_program(A, y, intercept):
    """Whether columns separate the classes, and completely, in doubles."""
    B = (np.column_stack([A, np.ones(len(A))]) if intercept else A) * y[:, None]
    n, m = B.shape
    box = [(-1e3, 1e3)] * m
    some = linprog(-B.sum(axis=0), A_ub=-B, b_ub=np.zeros(n), bounds=box)
    every = linprog(
        [*np.zeros(m), -1.0], A_ub=np.hstack([-B, np.ones((n, 1))]), b_ub=np.zeros(n), bounds=[*box, (0, 1)]
    )
    return -some.fun > 1e-6, -every.fun > 1e-6


@pytest.mark.parametrize("seed", sample(60, 60))
def test_separation_is_what_linear_programs_say_and_dependence_what_ranks_say(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 14)), int(rng.integers(1, 5))
    A = rng.integers(-2, 3, (n, d)).astype(float) if seed % 2 else rng.standard_normal((n, d))
    y = np.where(A[:, 0] + rng.standard_normal(n) * (seed % 3) >= 0, 1.0, -1.0)
    y[0] = -y[-1]
    intercept = bool(rng.random() < 0.5)
    data = WholeData(TinyInstance(A, y, d, "logistic", intercept=intercept))
    assert (separated(data, range(d)), separated_completely(data, range(d))) == by_linear_program(A, y, intercept)
    kept = A[:, np.ptp(A, axis=0) > 0 if intercept else np.any(A, axis=0)]
    design = np.column_stack([kept, np.ones(n)]) if intercept else kept
    assert dependent(data, range(d)) == (np.linalg.matrix_rank(design) < design.shape[1] if design.size else False)


# What is refused


def table():
    """Column 1 separates the classes completely, column 2 in part, the others not."""
    rng = np.random.default_rng(3)
    A, y = rng.standard_normal((12, 4)), np.where(np.arange(12) % 2 == 0, 1.0, -1.0)
    A[:, 1] = y * rng.uniform(1, 2, 12)
    A[:, 2] = np.where(np.arange(12) == 2, y, 0.0)
    return Truth(TinyInstance(A, y, 2, "logistic"))


def test_a_refusal_that_is_not_so_is_noticed():
    truth, noted = table(), []
    with pytest.raises(Refused) as refused:
        solved(truth.instance)
    assert refusal(str(refused.value), truth, noted) is None
    assert noted == ["noted: no ridge, refused: the classes are separated"]
    says = "lam is 0, but {} separate the two classes {}, so that"
    assert refusal(says.format("features 0, 1", "completely"), truth, noted) is None
    assert refusal(says.format("feature 2", "quasi-completely"), truth, noted) is None
    for named, how in (
        ("features 0, 3", "quasi-completely"),
        ("feature 2", "completely"),
        ("the intercept", "completely"),
    ):
        assert refusal(says.format(named, how), truth, noted)[0].what.startswith("features that are said to separate")
    assert refusal("lam is 0, which nobody likes", truth, noted)[0].what == "refuses lam = 0 for a reason that is none"
    assert refusal("something else", truth, noted) is None


def test_a_refusal_without_need_is_counted_and_a_solve_without_a_solution_is_a_fault():
    truth, noted = table(), []
    fine = Truth(replace(truth.instance, loss="huber"))
    said = "lam is 0, but the data hardly limit the coefficients of models"
    assert refusal(said, fine, noted) is None
    copied = Truth(replace(fine.instance, A=fine.instance.A[:, [0, 1, 2, 0]]))
    assert refusal(said, copied, noted) is None
    assert refusal(said, truth, noted) is None
    kinds = ["nearly dependent", "columns are dependent", "the classes are separated, which it does not see"]
    assert noted == [f"noted: no ridge, refused: {kind}" for kind in kinds]
    assert unlimited(fine, "") == unlimited(truth, "bounded models") == unlimited(copied, "bounded models") == []
    assert unlimited(truth, "")[0].what == "solved without a ridge, but the classes are separated"
    assert unlimited(copied, "")[0].what == "solved without a ridge, but columns are dependent"
    assert unlimited(Truth(replace(copied.instance, y=np.zeros(12))), "") == []


# Samples, and planted bugs


@pytest.mark.parametrize("kind", [BRUTE_FORCE, METAMORPHIC])
def test_a_sample(kind):
    outcomes = [Trial(kind)(seed) for seed, _ in ridgeless(500, many(36, 2000))]
    assert [outcome for outcome in outcomes if outcome.wrong] == []
    tried = sum(any(count.startswith("tried") for count in outcome.counts) for outcome in outcomes)
    assert tried > 0.4 * len(outcomes)


@pytest.mark.untrue
def test_a_ridge_that_is_not_taken_off_is_found(monkeypatch):
    made = infinitesimal_ridge.without_ridge

    def careless(objective, *rest):
        found = made(objective, *rest)
        return replace(found, ridge_limits=found.ridge_limits._replace(taken=0.0))

    monkeypatch.setattr("exactsel.problem.searched.without_ridge", careless)
    monkeypatch.setattr(infinitesimal_ridge, "SHARE", 1e-6)
    wrong = (what for seed, _ in ridgeless(0, 200) for what, _ in Trial(BRUTE_FORCE)(seed).wrong)
    assert "lower above the optimum" in wrong


# What campaigns found


@pytest.mark.parametrize("seed", [1589, 1585, 2252])
def test_what_was_found_stays_mended(seed):
    """A linear program that came to no end (1589), and columns of zeros alone, which were called dependent."""
    outcome = trials.Trial(BRUTE_FORCE)(seed)
    assert outcome.wrong == []
    assert not any("does not see" in count or "nearly" in count for count in outcome.counts)


@pytest.mark.parametrize("seed", sample(11, 11))
def test_well_conditioned_columns_are_never_too_dependent_for_huber_loss(seed):
    rng = np.random.default_rng(seed)
    n, d = 11, 5
    A, y = rng.standard_normal((n, d)), rng.standard_normal(n)
    y[rng.random(n) < 0.3] += 100.0
    instance = TinyInstance(A, y, 2, "huber", delta=float(10.0 ** rng.uniform(-2, 0)), intercept=seed % 2 == 0)
    truth, result = Truth(instance), solved(instance)
    assert result.lower <= truth.high
    assert result.upper >= truth.low
    assert result.upper - result.lower <= 1e-6 * result.upper
