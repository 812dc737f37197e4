"""The cross-validation of estimators: each parameter about the problem, against problems stated in full."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from stated import Stated
from stated_cases import NAMES, base, weights_of_rows

pytest.importorskip("sklearn")

from sklearn.model_selection import KFold
from sklearn.utils.class_weight import compute_sample_weight

from exactsel.sklearn import BestSubsetClassifierCV, BestSubsetCV

STEERING = {"cv", "verbose", "rel_eps", "time_limit", "solver_options", "ks", "hierarchy_kind"}
"""Parameters of how it is found; ``hierarchy_kind`` goes with ``hierarchy``."""

BALANCED = compute_sample_weight("balanced", base("logistic")[1])
PARENTS = {0: (2,), 3: (1,)}

Case = tuple[dict[str, Any], np.ndarray | None, dict[str, Any]]

REGRESSION: dict[str, Case] = {
    "lams": ({}, None, {}),
    "fit_intercept": ({"fit_intercept": False}, None, {"intercept": False}),
    "standardize": ({"standardize": True}, weights_of_rows(), {"scale": True, "weights": weights_of_rows()}),
    "sample_weight": ({}, weights_of_rows(), {"weights": weights_of_rows()}),
    "loss": ({"loss": "huber", "delta": 0.6}, weights_of_rows(),
             {"loss": "huber", "delta": 0.6, "weights": weights_of_rows()}),
    "positive": ({"positive": True}, None, {"lower": np.zeros(4), "upper": np.full(4, np.inf)}),
    "hierarchy": ({"hierarchy": PARENTS}, None, {"parents": PARENTS}),
    "not_both": ({"not_both": [(0, 1)]}, None, {"not_both": ((0, 1),)}),
    "groups": ({"groups": ["g", "g", None, None]}, None, {"groups": ((0, 1), (2,), (3,))}),
}  # fmt: skip
"""By parameter: what is given, sample weights, and what they state."""

CLASSES: dict[str, Case] = {
    "lams": ({}, None, {}),
    "fit_intercept": ({"fit_intercept": False}, None, {"intercept": False}),
    "standardize": ({"standardize": True}, None, {"scale": True}),
    "loss": ({"loss": "squared_hinge"}, None, {"loss": "squared_hinge"}),
    "class_weight": ({"class_weight": "balanced"}, None, {"weights": BALANCED}),
    "sample_weight": ({"class_weight": "balanced"}, weights_of_rows(), {"weights": BALANCED * weights_of_rows()}),
    "positive": ({"positive": True}, None, {"lower": np.zeros(4), "upper": np.full(4, np.inf)}),
    "hierarchy": ({"hierarchy": PARENTS}, None, {"parents": PARENTS}),
    "not_both": ({"not_both": [(0, 1)]}, None, {"not_both": ((0, 1),)}),
    "groups": ({"groups": ["g", "g", None, None]}, None, {"groups": ((0, 1), (2,), (3,))}),
}


def check(estimator: Any, stated: Stated, weights: np.ndarray | None) -> None:
    """Errors of held-out rows, the choice, and the model on all rows."""
    lams, ks, folds = (0.7, 0.1), (1, 2), [*KFold(3).split(stated.A)]
    made = type(estimator)(**{**estimator.get_params(), "lams": lams, "ks": ks, "cv": KFold(3), "rel_eps": 1e-10})
    made.fit(stated.A, stated.y, weights)
    told = made.cv_results_
    found = {(lam, k): error for lam, k, error in zip(told["lam"], told["k"], told["mean_error"], strict=True)}
    expected = {(lam, k): np.mean(replace(stated, lam=lam).held_out(folds, k)) for lam in lams for k in ks}
    assert found == pytest.approx(expected, rel=1e-5)
    assert (made.lam_, made.k_) == min(expected, key=lambda pair: expected[pair])
    whole = replace(stated, lam=made.lam_)
    assert made.objective_ == pytest.approx(whole.best(made.k_), rel=1e-6)
    coef, c = np.ravel(made.coef_), float(np.ravel(made.intercept_)[0])
    assert whole.objective(coef, c) == pytest.approx(whole.best(made.k_), rel=1e-6)


@pytest.mark.parametrize("name", REGRESSION)
def test_regressions(name: str) -> None:
    given, weights, states = REGRESSION[name]
    A, y = base()
    check(BestSubsetCV(**given), Stated(A, y, NAMES, **{"intercept": True, **states}), weights)


@pytest.mark.parametrize("name", CLASSES)
def test_classes(name: str) -> None:
    given, weights, states = CLASSES[name]
    A, y = base("logistic")
    stated = Stated(A, y, NAMES, **{"loss": "logistic", "intercept": True, **states})
    check(BestSubsetClassifierCV(**given), stated, weights)


@pytest.mark.parametrize(("estimator", "cases"), [(BestSubsetCV, REGRESSION), (BestSubsetClassifierCV, CLASSES)])
def test_no_parameter_is_without_a_case(estimator: Any, cases: dict[str, Case]) -> None:
    # Factors, which need a frame, are tried in test_factors_of_estimators.py.
    tried = {name for given, _, _ in cases.values() for name in given} | {"lams", "sample_weight", "factors"}
    assert {*estimator().get_params()} - STEERING <= tried
