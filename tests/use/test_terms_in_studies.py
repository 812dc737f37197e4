"""Terms of several columns in cross-validation and in the estimators."""

from __future__ import annotations

import numpy as np
import pytest

from exactsel import InputError, Problem, best_model, solve
from exactsel.studies.crossval import cross_validate, random_folds

RNG = np.random.default_rng(5)
N = 50
LEVELS = RNG.integers(0, 3, N)
A = np.column_stack([RNG.normal(size=(N, 3)), LEVELS == 1, LEVELS == 2]).astype(float)
Y = A[:, 0] + 1.5 * A[:, 3] - A[:, 4] + 0.4 * RNG.normal(size=N)
GROUPS = [None, None, None, "kind", "kind"]
QUIET = {"signals": ()}


def by_hand(k, folds, A=A):
    """The mean squared error, halved, of the best model of each fold, by least squares."""
    errors = []
    for train, held_out in folds:
        problem = Problem.prepared(A[train], Y[train], k, groups=GROUPS, intercept=True, lam=1e-9)
        model = solve(problem, **QUIET).model
        errors.append(0.5 * np.mean((Y[held_out] - model.predict(A[held_out])) ** 2))
    return errors


def test_terms_are_held_out():
    folds = random_folds(N, 4, 1)
    found = cross_validate(A, Y, cv=folds, ks=[1, 2, 9], lams=[0.0], groups=GROUPS, **QUIET)
    assert found.ks == (1, 2, 4)
    for place, k in enumerate(found.ks):
        assert found.errors[:, 0, place] == pytest.approx(by_hand(k, folds), rel=1e-5)


def test_a_level_no_training_row_has_is_left_out():
    rare = A.copy()
    rare[:, 4] = 0.0
    rare[3, 4], rare[3, 3] = 1.0, 0.0
    folds = random_folds(N, 4, 1)
    found = cross_validate(rare, Y, cv=folds, ks=[2], lams=[0.0], groups=GROUPS, **QUIET)
    assert found.proven
    assert found.errors[:, 0, 0] == pytest.approx(by_hand(2, folds, rare), rel=1e-5)


def test_where_no_training_row_has_the_reference_another_level_takes_its_place():
    lone = A.copy()
    lone[LEVELS == 0, 3] = 1.0
    lone[7, 3:] = 0.0
    folds = random_folds(N, 4, 1)
    found = cross_validate(lone, Y, cv=folds, ks=[1, 2, 4], lams=[0.0], groups=GROUPS, **QUIET)
    assert found.proven
    for place, k in enumerate(found.ks):
        expected = []
        for train, held_out in folds:
            coded = lone if 7 in train else np.delete(lone, 3, axis=1)
            groups = GROUPS if 7 in train else None
            model = solve(Problem.prepared(coded[train], Y[train], k, groups=groups, intercept=True), **QUIET).model
            expected.append(0.5 * np.mean((Y[held_out] - model.predict(coded[held_out])) ** 2))
        assert found.errors[:, 0, place] == pytest.approx(expected, rel=1e-6)


def test_a_fold_whose_columns_depend_on_each_other_is_named():
    rows = A[:40].copy()
    rows[:, 1] = rows[:, 0]
    rows[39, 1] += 1.0
    folds = [(np.arange(39), np.arange(39, 40))]
    with pytest.raises(InputError, match="with the training rows of fold 1 alone, groups need curvature"):
        cross_validate(rows, Y[:40], cv=folds, ks=[2], lams=[0.0], groups=GROUPS, **QUIET)


def test_estimators_price_terms():
    pytest.importorskip("sklearn")
    from exactsel.sklearn import BestSubsetCV, BestSubsetRegressor

    found = BestSubsetRegressor(k=4, criterion="bic", groups=GROUPS, solver_options=QUIET).fit(A, Y)
    best = best_model(Problem.prepared(A, Y, 4, groups=GROUPS, intercept=True), criterion="bic", **QUIET)
    assert found.criterion_ == pytest.approx(best.value)
    assert found.support_.tolist() == list(best.result.columns)
    assert found.k_ == best.k == 2
    adjusted = BestSubsetRegressor(k=4, criterion="adjr2", groups=GROUPS, solver_options=QUIET).fit(A, Y)
    assert adjusted.result_.quality.adjusted == pytest.approx(adjusted.criterion_)
    chosen = BestSubsetCV(groups=GROUPS, hierarchy={"kind": [0]}, solver_options=QUIET, cv=4).fit(A, Y)
    assert chosen.cv_results_["k"].tolist() == [1, 2, 3, 4]
    assert {3, 4} <= {*chosen.support_.tolist()}
