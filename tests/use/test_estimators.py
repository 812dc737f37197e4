"""Estimators on sparse data, with weights of classes, and for more than two classes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

pytest.importorskip("sklearn")

from sklearn import config_context
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from exactsel.errors import InputError
from exactsel.sklearn import (
    BestSubsetClassifier,
    BestSubsetClassifierCV,
    BestSubsetCV,
    BestSubsetRegressor,
    BestSubsetSelector,
    HuberBestSubsetRegressor,
)

RNG = np.random.default_rng(0)
X = np.where(RNG.random((60, 6)) < 0.4, RNG.normal(size=(60, 6)), 0.0)
Y = X @ [2.0, -1.0, 0.0, 0.0, 0.5, 0.0] + 0.1 * RNG.normal(size=60)
LABELS = np.where(Y + RNG.normal(size=60) > 0.3, "yes", "no")


SPARSE = ("csr_matrix", "csc_array", "coo_array")
TAKING_SPARSE = (
    BestSubsetRegressor(k=2), HuberBestSubsetRegressor(k=2), BestSubsetClassifier(k=2), BestSubsetSelector(k=2),
    BestSubsetCV(ks=[1, 2], cv=3), BestSubsetClassifierCV(ks=[1, 2], cv=3),
)  # fmt: skip


@pytest.mark.parametrize(
    ("estimator", "kind"),
    [
        pytest.param(estimator, kind, marks=() if i % 3 == j else pytest.mark.slow)
        for i, estimator in enumerate(TAKING_SPARSE)
        for j, kind in enumerate(SPARSE)
    ],
    ids=lambda given: given if isinstance(given, str) else type(given).__name__,
)
def test_sparse_data_are_the_same_data(estimator, kind):
    made = getattr(sparse, kind)(X)
    y = LABELS if "Classifier" in type(estimator).__name__ else Y
    dense, thin = (type(estimator)(**estimator.get_params()).fit(data, y) for data in (X, made))
    np.testing.assert_array_equal(thin.support_, dense.support_)
    if isinstance(estimator, BestSubsetSelector):
        shown = thin.transform(made)
        np.testing.assert_array_equal(shown.toarray() if sparse.issparse(shown) else shown, dense.transform(X))
    else:
        np.testing.assert_array_equal(thin.coef_, dense.coef_)
        assert (thin.predict(made) == thin.predict(X)).all() or np.allclose(thin.predict(made), thin.predict(X))


def test_a_pipeline_with_categories():
    """OneHotEncoder makes sparse matrices."""
    city = np.where(X[:, 0] > 0, "Rome", np.where(X[:, 1] > 0, "Oslo", "Lima"))
    frame, predicted = pd.DataFrame({"city": city, "size": X[:, 4]}), []
    for threshold in (1.0, 0.0):
        steps = (OneHotEncoder(), ["city"]), (StandardScaler(), ["size"])
        encoded = make_column_transformer(*steps, sparse_threshold=threshold)
        model = make_pipeline(encoded, BestSubsetRegressor(k=2, lam=0.1)).fit(frame, Y)
        assert sparse.issparse(model[0].transform(frame)) == (threshold == 1.0)
        predicted.append(model.predict(frame))
    np.testing.assert_allclose(*predicted, rtol=1e-12)


class TestClassWeights:
    @pytest.mark.parametrize("weights", ["balanced", {"yes": 3.0, "no": 1.0}])
    def test_as_in_scikit_learn(self, weights):
        ours = BestSubsetClassifier(k=6, lam=1.0, class_weight=weights, rel_eps=1e-10).fit(X, LABELS)
        theirs = LogisticRegression(C=1.0, class_weight=weights, tol=1e-10, max_iter=1000).fit(X, LABELS)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-4, atol=1e-5)

    def test_they_multiply_the_weights_of_rows(self):
        rows = RNG.integers(1, 4, 60).astype(float)
        both = BestSubsetClassifier(k=2, class_weight={"yes": 2.0, "no": 1.0}).fit(X, LABELS, sample_weight=rows)
        once = BestSubsetClassifier(k=2).fit(X, LABELS, sample_weight=rows * np.where(LABELS == "yes", 2.0, 1.0))
        np.testing.assert_array_equal(both.coef_, once.coef_)
        assert BestSubsetClassifierCV(ks=[1], cv=2, class_weight="balanced").fit(X, LABELS).k_ == 1


def test_more_classes_one_against_the_rest():
    three = np.digitize(Y, [-0.5, 0.8])
    with pytest.raises(InputError, match=r"sklearn\.multiclass\.OneVsRestClassifier"):
        BestSubsetClassifier(k=2).fit(X, three)
    model = OneVsRestClassifier(BestSubsetClassifier(k=2)).fit(X, three)
    assert model.score(X, three) > 0.6
    assert [len(each.support_) for each in model.estimators_] == [2, 2, 2]


def encoded() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(1)
    city = rng.choice(["Lima", "Oslo", "Rome"], 60)
    frame = pd.DataFrame({"city": city, "size": rng.normal(size=60), "noise": rng.normal(size=60)})
    return frame, frame["size"] + 2.0 * (city == "Oslo") - (city == "Rome") + 0.1 * rng.normal(size=60)


def test_groups_of_what_a_column_transformer_made():
    frame, y = encoded()
    encoder = make_column_transformer((OneHotEncoder(sparse_output=False), ["city"]), remainder="passthrough")
    best = BestSubsetRegressor(k=2, lam=0.1, groups={"city": "*__city_*"})
    model = make_pipeline(encoder.set_output(transform="pandas"), best).fit(frame, y)
    np.testing.assert_array_equal(model[-1].support_, [0, 1, 2, 3])
    assert model[-1].result_.feature_names == ("city", "remainder__size")
    with pytest.raises(InputError, match=r"the pattern '\*town\*' of the group 'city' matches no feature"):
        model.set_params(bestsubsetregressor__groups={"city": ["*town*"]}).fit(frame, y)


@pytest.mark.parametrize("kind", [BestSubsetRegressor, BestSubsetClassifier, BestSubsetSelector])
def test_names_of_the_chosen_columns(kind):
    target = LABELS if kind is BestSubsetClassifier else Y
    model = kind(k=2)
    with pytest.raises(NotFittedError):
        model.get_feature_names_out()
    model.fit(X, target)
    assert model.get_feature_names_out().tolist() == [f"x{j}" for j in model.support_]
    assert model.get_feature_names_out([*"abcdef"]).tolist() == ["abcdef"[j] for j in model.support_]
    model.fit(pd.DataFrame(X, columns=[*"uvwxyz"]), target)
    assert model.get_feature_names_out().tolist() == ["uvwxyz"[j] for j in model.support_]


class TestRouting:
    """Metadata goes where it is asked for, as with scikit-learn's own estimators."""

    PARTS = np.repeat(np.arange(6), 10)

    def test_groups_for_the_splitter(self):
        with config_context(enable_metadata_routing=True):
            model = BestSubsetCV(ks=[1, 2], cv=GroupKFold(3)).fit(X, Y, groups=self.PARTS)
        same = BestSubsetCV(ks=[1, 2], cv=[*GroupKFold(3).split(X, Y, self.PARTS)]).fit(X, Y)
        np.testing.assert_array_equal(model.cv_results_["errors"], same.cv_results_["errors"])

    def test_nowhere_to_send_it(self):
        with pytest.raises(ValueError, match="enable_metadata_routing"):
            BestSubsetCV(ks=[1], cv=GroupKFold(3)).fit(X, Y, groups=self.PARTS)
        with config_context(enable_metadata_routing=True), pytest.raises(TypeError, match="unexpected argument"):
            BestSubsetCV(ks=[1], cv=3).fit(X, Y, colours=self.PARTS)

    def test_weights_through_a_pipeline(self):
        weights = RNG.integers(1, 4, len(X)).astype(float)
        with config_context(enable_metadata_routing=True):
            best = BestSubsetCV(ks=[1, 2], cv=3).set_fit_request(sample_weight=True)
            scaler = StandardScaler().set_fit_request(sample_weight=False)
            model = make_pipeline(scaler, best).fit(X, Y, sample_weight=weights)
        alone = BestSubsetCV(ks=[1, 2], cv=3).fit(StandardScaler().fit_transform(X), Y, sample_weight=weights)
        np.testing.assert_array_equal(model[-1].coef_, alone.coef_)
