"""Best models, lists and summaries of Huber and logistic loss with lam = 0, against fits that know no ridge at all."""

from __future__ import annotations

import contextlib
import math
from itertools import combinations

import numpy as np
import pytest
from fits_for_tests import slow_fit
from samples import many

from exactsel import Problem, best_model, near_optimal, solve
from exactsel.errors import InputError
from exactsel.studies import best_enumeration

ALONE = {"signals": (), "threads": 1}
DELTA = 1.3


def made(seed, loss, d=5):
    """Data of awkward units that nothing separates as a rule, and the objective of every set of columns."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(30, d)) * 10.0 ** rng.integers(-3, 4, d)
    if seed % 3 == 0:
        A[:, 0] = np.sign(A[:, 0])
    weights = rng.integers(1, 4, 30).astype(float) if seed % 2 else np.ones(30)
    z = A[:, 0] / np.std(A[:, 0]) - A[:, 1] / np.std(A[:, 1])
    y = z + rng.normal(size=30) if loss == "huber" else np.where(z + 2.0 * rng.logistic(size=30) > 0, 1.0, -1.0)
    intercept = seed % 4 < 2
    sets = [s for k in range(d + 1) for s in combinations(range(d), k)]
    objectives = {s: slow_fit(A[:, list(s)], y, loss, DELTA, intercept, weights) for s in sets}
    options = {"delta": DELTA} if loss == "huber" else {}
    problem = Problem.prepared(A, y, d, loss=loss, lam=0.0, intercept=intercept, weights=weights, **options)
    return problem, objectives, intercept, weights.sum()


def cases(seeds, loss):
    """Those of them that have a fit on all columns; the others are refused, and looked at elsewhere."""
    found = []
    for seed in seeds:
        with contextlib.suppress(InputError):
            found.append(made(seed, loss))
    assert len(found) > len(seeds) // 2
    return found


def check_best(case, top):
    problem, objectives, intercept, rows = case
    normal = math.sqrt(2 * math.pi) * math.erf(DELTA / math.sqrt(2)) + 2 / DELTA * math.exp(-(DELTA**2) / 2)
    constant = 2 * rows * math.log(normal) if problem.loss.name == "huber" else 0.0
    values = {s: 2 * value + constant + (len(s) + intercept) * math.log(rows) for s, value in objectives.items()}
    found = best_model(problem, criterion="bic", top=top, **ALONE)
    ordered, tiny = sorted(values.values()), 1e-6
    assert found.reached
    assert found.complete
    assert found.lower <= ordered[0] + 1e-9
    assert found.value == pytest.approx(ordered[0], abs=tiny)
    for size in found.sizes:
        assert size.lower <= min(value for s, value in values.items() if len(s) == size.size) + 1e-9
    assert [model.criterion for model in found.models] == pytest.approx(ordered[:top], abs=tiny)
    for model in found.models:
        assert values[model.support] == pytest.approx(model.criterion, abs=tiny)


@pytest.mark.parametrize("loss", ["huber", "logistic"])
def test_the_best_models_are_those_of_trying_every_set(loss, monkeypatch):
    tried = cases(range(many(4, 6)), loss)
    for few in (0, best_enumeration.FEW_SETS):
        monkeypatch.setattr(best_enumeration, "FEW_SETS", few)
        for case in tried:
            check_best(case, top=7)


@pytest.mark.long
@pytest.mark.parametrize("few", [0, best_enumeration.FEW_SETS])
@pytest.mark.parametrize("loss", ["huber", "logistic"])
def test_hundreds_more(loss, few, monkeypatch):
    monkeypatch.setattr(best_enumeration, "FEW_SETS", few)
    for case in cases(range(6, 300), loss):
        check_best(case, top=12)


@pytest.mark.parametrize("loss", ["huber", "logistic"])
def test_lists_of_one_size_hold_all_and_nothing_else(loss):
    for problem, objectives, *_ in cases(range(many(4, 6)), loss):
        values = {s: value for s, value in objectives.items() if len(s) == 2}
        best = min(values.values())
        near = near_optimal(problem.replace(k=2), tau=0.1 * best, **ALONE)
        assert near.complete
        listed = {model.support: model.value for model in near.models}
        edge = 1e-6 * best
        assert {s for s, v in values.items() if v < 1.1 * best - edge} <= listed.keys()
        assert all(values[s] <= 1.1 * best + edge for s in listed)
        assert all(listed[s] == pytest.approx(values[s], rel=1e-8) for s in listed)


@pytest.mark.parametrize("loss", ["huber", "logistic"])
def test_a_summary_speaks_of_no_ridge(loss):
    problem, objectives, *_ = made(1, loss)
    result = solve(problem.replace(k=2), **ALONE)
    summary = result.summary()
    assert not any("ridge" in note for note in summary.warnings)
    if loss == "logistic":
        assert summary.deviance == pytest.approx(2 * objectives[result._shown])


def separated_by_three(seed=1):
    """Classes that three columns separate, and no two of them."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(25, 5))
    return A, np.where(A[:, 0] + A[:, 1] + A[:, 2] > 0, 1.0, -1.0)


@pytest.mark.parametrize("k_max", [1, 2])
def test_larger_models_that_separate_do_no_harm(k_max):
    A, y = separated_by_three()
    sets = [s for k in range(k_max + 1) for s in combinations(range(5), k)]
    ones = np.ones(len(y))
    values = {s: 2 * slow_fit(A[:, list(s)], y, "logistic", 0.0, True, ones) for s in sets}
    best = min(value + (len(s) + 1) * math.log(len(y)) for s, value in values.items())
    for found in (
        best_model(A, y, loss="logistic", lam=0.0, k_max=k_max, **ALONE),
        best_model(Problem.prepared(A, y, 1, loss="logistic", lam=0.0, intercept=True), k_max=k_max, **ALONE),
    ):
        assert found.value == pytest.approx(best, abs=1e-6)
        assert found.lower <= best + 1e-9
        assert found.reached
    with pytest.raises(InputError, match="separate the two classes"):
        best_model(A, y, loss="logistic", lam=0.0, **ALONE)


@pytest.mark.parametrize("groups", [None, [0, 0, 1, 2]])
def test_a_rare_level_that_is_not_in_the_best_model_is_no_reason_to_refuse(groups):
    """One row alone tells its level: the best model with it has no coefficients, but others are better by far."""
    rng = np.random.default_rng(0)
    A = np.column_stack([rng.normal(size=(60, 3)), np.arange(60) == 7])
    y = np.where(A[:, 0] + rng.logistic(size=60) > 0, 1.0, -1.0)
    labels = [0, 1, 2, 3] if groups is None else groups
    values = []
    for k in range(max(labels) + 2):
        for terms in combinations(range(max(labels) + 1), k):
            columns = [j for j in range(4) if labels[j] in terms and j < 3]
            held = np.arange(60) != 7 if labels[3] in terms else np.full(60, True)
            fit = slow_fit(A[held][:, columns], y[held], "logistic", DELTA, True, np.ones(held.sum()))
            df = sum(label in terms for label in labels)
            values.append(2.0 * fit + (df + 1) * math.log(60))
    found = best_model(A, y, loss="logistic", lam=0.0, groups=groups, **ALONE)
    assert found.reached
    assert found.value == pytest.approx(min(values), abs=1e-5)
    assert found.lower <= min(values) + 1e-9
    assert 3 not in found.result.columns


def test_the_columns_of_the_best_model_that_separate_the_classes_are_named():
    rng = np.random.default_rng(1)
    flag = (np.arange(60) < 25).astype(float)
    A = np.column_stack([rng.normal(size=(60, 3)), flag])
    y = np.where((flag > 0) | (rng.random(60) < 0.3), 1.0, -1.0)
    for groups in (None, {"pair": ["a", "b"]}):
        with pytest.raises(InputError, match="feature flag separates the two classes quasi-completely"):
            best_model(A, y, loss="logistic", lam=0.0, groups=groups, feature_names=["a", "b", "c", "flag"], **ALONE)
