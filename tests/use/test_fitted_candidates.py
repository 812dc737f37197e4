"""Fitted estimators as candidates of certify: pipelines, searches over parameters, and what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from exactsel import InputError, Problem, certify

pytest.importorskip("sklearn")

from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import RandomForestRegressor
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.linear_model import Lasso, LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from exactsel.sklearn import BestSubsetRegressor

RNG = np.random.default_rng(6)
FRAME = pd.DataFrame(RNG.normal(size=(30, 4)), columns=["a", "b", "c", "d"])
X = FRAME.to_numpy()
Y = X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + RNG.normal(size=30)
POLYNOMIAL = make_pipeline(PolynomialFeatures(2, include_bias=False), StandardScaler(), Lasso(alpha=0.3)).fit(FRAME, Y)


def least(columns, k):
    """The smallest objective of any k of these columns with an intercept."""
    ones = np.ones((len(columns), 1))
    return min(
        0.5 * np.linalg.lstsq(np.hstack([ones, columns[:, chosen]]), Y, rcond=None)[1][0]
        for chosen in itertools.combinations(range(columns.shape[1]), k)
    )


def test_a_pipeline_is_its_last_step_on_transformed_data():
    certified = certify(FRAME, Y, candidate=POLYNOMIAL)
    columns = POLYNOMIAL[:-1].transform(FRAME)
    last = certify(columns, Y, candidate=POLYNOMIAL[-1])
    assert (certified.support, certified.value, certified.lower) == (last.support, last.value, last.lower)
    size = len(certified.support)
    assert certified.value - certified.absolute_gap <= least(columns, size) <= certified.value + 1e-9
    assert certified.result.problem["feature_names"][4:6] == ("a^2", "a b")
    assert "a b" in str(certified)
    features = "among models of the 14 features that the steps before Lasso give"
    assert features in certified.claim_text
    assert features in certified.result.claim_text


def test_a_step_that_selects_features_limits_the_claim():
    chain = make_pipeline(StandardScaler(), SelectKBest(f_regression, k=2), LinearRegression()).fit(FRAME, Y)
    certified = certify(FRAME, Y, candidate=chain)
    assert certified.reached
    assert "among models of the 2 features that the steps before LinearRegression give" in certified.claim_text
    names = certified.result.problem["feature_names"]
    assert list(names) == list(chain[:-1].get_feature_names_out())


class Nameless(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        self.columns_ = 2
        return self

    def transform(self, X):
        return np.asarray(X)[:, : self.columns_]


def test_names_are_those_of_the_steps_the_data_or_the_options():
    unnamed = make_pipeline(Nameless(), Lasso(alpha=0.01)).fit(X, Y)
    assert certify(X, Y, candidate=unnamed).result.problem["feature_names"] is None
    given = certify(X, Y, candidate=unnamed, feature_names=["first", "second"])
    assert given.result.problem["feature_names"] == ("first", "second")
    framed = make_pipeline(StandardScaler().set_output(transform="pandas"), Lasso(alpha=0.01)).fit(FRAME, Y)
    assert certify(FRAME, Y, candidate=framed).result.problem["feature_names"] == ("a", "b", "c", "d")


def test_pipelines_of_one_step_inside_others_and_of_a_search():
    alone = Pipeline([("lasso", Lasso(alpha=0.1))]).fit(FRAME, Y)
    plain = certify(FRAME, Y, candidate=alone[-1])
    assert certify(FRAME, Y, candidate=alone).claim_text == plain.claim_text
    nested = Pipeline([("scale", StandardScaler()), ("model", Pipeline([("lasso", Lasso(alpha=0.1))]))]).fit(FRAME, Y)
    assert "the 4 features that the step before Pipeline gives" in certify(FRAME, Y, candidate=nested).claim_text
    deep = Pipeline([("scale", StandardScaler()), ("model", make_pipeline(PolynomialFeatures(2), Lasso(alpha=0.3)))])
    names = certify(FRAME, Y, candidate=deep.fit(FRAME, Y)).result.problem["feature_names"]
    assert names[:3] == ("1", "x0", "x1")
    assert len(names) == 15
    search = GridSearchCV(POLYNOMIAL, {"lasso__alpha": [0.3]}, cv=2).fit(FRAME, Y)
    assert certify(FRAME, Y, candidate=search).value == certify(FRAME, Y, candidate=POLYNOMIAL).value


def test_messages_and_what_they_advise():
    chain = make_pipeline(StandardScaler(), Lasso(alpha=0.1))
    for model in (Lasso(), SelectKBest(), BestSubsetRegressor(k=2), chain, RandomForestRegressor()):
        with pytest.raises(InputError, match="is not fitted; call fit first"):
            certify(FRAME, Y, candidate=model)
    chain[-1].fit(X, Y)
    with pytest.raises(InputError, match="a Pipeline, is not fitted; call fit first"):
        certify(FRAME, Y, candidate=chain)
    chain.fit(FRAME, Y)
    with pytest.raises(InputError, match=r"the first argument is a Pipeline, .*certify\(X, y, candidate=model\)"):
        certify(chain, FRAME, Y)
    with pytest.raises(InputError, match=r"holds no data for its steps; call certify\(X, y, candidate=model\)"):
        certify(Problem(X, Y, 2), candidate=chain)
    assert certify(FRAME, Y, candidate=chain).support
    forest = RandomForestRegressor(2, random_state=0).fit(X, Y)
    with pytest.raises(InputError, match=r"RandomForestRegressor, which has neither .*support=\[0, 2\]"):
        certify(FRAME, Y, candidate=forest)
    with pytest.raises(InputError, match="order"):
        certify(FRAME, pd.Series(Y, index=range(29, -1, -1)), candidate=chain)
