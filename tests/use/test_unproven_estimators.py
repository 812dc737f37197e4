"""Estimators whose search ends with a gap: one warning for each fit, with the gap and what to do."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.exceptions import ConvergenceWarning

from exactsel.sklearn import (
    BestSubsetClassifier,
    BestSubsetCV,
    BestSubsetRegressor,
    BestSubsetSelector,
    HuberBestSubsetRegressor,
    PoissonBestSubsetRegressor,
)
from exactsel.solving.outcome import Termination, per_cent

RNG = np.random.default_rng(4)
X = RNG.normal(size=(30, 12))
Y = X[:, 0] + X[:, 3] + RNG.normal(size=30)
TARGETS = {BestSubsetClassifier: Y > 0.0, PoissonBestSubsetRegressor: RNG.poisson(np.exp(0.2 * Y))}
STOPPED = {"node_limit": 0, "heuristics": ()}


def said(estimator, y=Y):
    """The warnings of one fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(X, y)
    assert all(warning.category is ConvergenceWarning for warning in caught)
    assert all(warning.filename == __file__ for warning in caught)
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("make", [BestSubsetRegressor, BestSubsetSelector, HuberBestSubsetRegressor, *TARGETS])
def test_each_estimator_warns_once_and_only_with_a_gap(make):
    y = TARGETS.get(make, Y)
    limited = make(k=2, lam=0.1, solver_options=STOPPED)
    (message,) = said(limited, y)
    assert limited.claim_ == "bounded"
    assert message == (
        f"the node limit was reached, and the model is not proven best (its gap is {per_cent(limited.gap_)}); "
        f"give a larger solver_options['node_limit'] or rel_eps."
    )
    assert said(limited.set_params(rel_eps=1.5 * limited.gap_), y) == []  # the hint works
    assert said(limited.set_params(rel_eps=1e-6, solver_options={"node_limit": 10**6}), y) == []
    assert limited.result_.reached


def test_the_option_that_sets_the_limit_is_named():
    assert "the time limit was reached" in (message := said(BestSubsetRegressor(k=6, time_limit=0.0))[0])
    assert message.endswith("give a larger time_limit or rel_eps.")
    asked = {"time_limit": 0.0, "rel_eps": 1e-8}
    (message,) = said(BestSubsetRegressor(k=6, solver_options=asked))
    assert message.endswith("give a larger solver_options['time_limit'] or solver_options['rel_eps'].")


def test_a_criterion_has_a_gap_of_its_own():
    model = BestSubsetRegressor(k=6, criterion="bic", solver_options={"node_limit": 1, "subtrees": False})
    (message,) = said(model)
    shown = float(re.search(r"\(its BIC has a gap of (\S+)\)", message)[1])
    assert model.best_models_.absolute_gap <= shown <= 1.01 * model.best_models_.absolute_gap
    assert "(no lower bound is known)" in said(model.set_params(solver_options=STOPPED))[0]
    assert said(BestSubsetRegressor(k=6, criterion="bic")) == []
    assert said(model.set_params(criterion=None, k=2, solver_options=None)) == []


def test_all_folds_together_have_one_warning():
    (message,) = said(BestSubsetCV(ks=[1, 6], lams=[0.1, 1.0], cv=3, solver_options=STOPPED))
    assert message.startswith(f"{Termination.NODE_LIMIT.sentence}, and the model is not proven best (its gap is ")
    assert message.endswith("give a larger solver_options['node_limit'] or rel_eps, or give fewer ks.")
