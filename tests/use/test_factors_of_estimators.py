"""Factors in the estimators: coded for the fit, and for every other frame."""

from __future__ import annotations

import numpy as np
import pytest

from exactsel import InputError, solve

pandas = pytest.importorskip("pandas")
pytest.importorskip("sklearn")

from sklearn.base import clone  # noqa: E402

from exactsel.sklearn import (  # noqa: E402
    BestSubsetClassifier,
    BestSubsetClassifierCV,
    BestSubsetCV,
    BestSubsetRegressor,
    BestSubsetSelector,
    PoissonBestSubsetRegressor,
)

RNG = np.random.default_rng(4)
N = 80
X = pandas.DataFrame(
    {"age": RNG.normal(size=N), "bmi": RNG.normal(size=N), "city": RNG.choice(["Aachen", "Bonn", "Ulm"], N), "y": 1.0}
)
X["y"] = RNG.normal(size=N)
SIGNAL = X["age"] + 1.5 * (X["city"] == "Ulm")
TARGETS = {
    "numbers": SIGNAL + 0.3 * RNG.normal(size=N),
    "classes": np.where(SIGNAL + RNG.normal(size=N) > 0.4, "yes", "no"),
    "counts": RNG.poisson(np.exp(0.4 * SIGNAL)),
}
ESTIMATORS = [
    (BestSubsetRegressor(2, factors="auto"), "numbers"),
    (BestSubsetRegressor(3, factors=["city"], fit_intercept=False, standardize=True, lam=0.1), "numbers"),
    (BestSubsetRegressor(4, factors="auto", criterion="bic"), "numbers"),
    (BestSubsetClassifier(2, factors="auto"), "classes"),
    (PoissonBestSubsetRegressor(2, factors="auto"), "counts"),
    (BestSubsetCV(ks=[1, 2], cv=3, factors="auto"), "numbers"),
    (BestSubsetClassifierCV(ks=[1, 2], cv=3, factors="auto"), "classes"),
]


@pytest.mark.parametrize(("estimator", "target"), ESTIMATORS)
def test_predictions_of_the_rows_of_the_fit_are_the_fitted_values(estimator, target):
    y = TARGETS[target]
    fitted = clone(estimator).fit(X, y)
    expected = fitted.result_.fittedvalues
    if target == "classes":
        assert fitted.predict_proba(X)[:, 1] == pytest.approx(expected, abs=1e-9)
        assert {*fitted.predict(X)} <= {"no", "yes"}
    else:
        assert fitted.predict(X) == pytest.approx(expected, abs=1e-9)
    assert fitted.result_._noun == "term"
    assert fitted.predict(X.iloc[::-1]).tolist() == fitted.predict(X).tolist()[::-1]
    with pytest.raises(InputError, match="the factor city has the level Rom, which no row of the fit has"):
        fitted.predict(X.assign(city="Rom"))


def test_it_is_the_model_of_solve():
    fitted = BestSubsetRegressor(2, factors="auto").fit(X, TARGETS["numbers"])
    expected = solve(X, TARGETS["numbers"], 2, factors="auto")
    assert fitted.objective_ == pytest.approx(expected.upper, rel=1e-9)
    assert fitted.get_feature_names_out().tolist() == ["age", "city[Bonn]", "city[Ulm]"]
    again = clone(fitted).set_params(factors=None).fit(X[["age", "bmi"]], TARGETS["numbers"])
    assert again.predict(X[["age", "bmi"]]) == pytest.approx(again.result_.fittedvalues, abs=1e-9)


def test_a_selector_codes_what_it_transforms():
    selector = BestSubsetSelector(1, factors="auto").fit(X, 2.0 * (X["city"] == "Ulm") + 0.1 * X["bmi"])
    coded = np.column_stack([X["city"] == "Bonn", X["city"] == "Ulm"]).astype(float)
    assert np.array_equal(selector.transform(X), coded)


def test_what_cannot_be_is_said():
    with pytest.raises(InputError, match="factors are for data frames"):
        BestSubsetRegressor(1, factors="auto").fit(X[["age"]].to_numpy(), TARGETS["numbers"])
    with pytest.raises(InputError, match="groups are given beside factors"):
        BestSubsetRegressor(1, factors="auto", groups=[None] * 4).fit(X, TARGETS["numbers"])


def test_texts_and_missing_values_are_refused_with_what_helps():
    with pytest.raises(InputError, match=r"X holds the text '.*', but .* give factors='auto'"):
        BestSubsetRegressor(2).fit(X, TARGETS["numbers"])
    texts = ["yes" if number > 0 else "no" for number in TARGETS["numbers"]]
    with pytest.raises(InputError, match=r"^y holds text, .* take BestSubsetClassifier"):
        BestSubsetRegressor(1).fit(X[["age"]], texts)
    assert BestSubsetClassifier(1).fit(X[["age"]], texts).predict(X[["age"]])[0] in ("yes", "no")
    with pytest.raises(InputError, match=r"missing values in age, but an estimator takes none"):
        BestSubsetRegressor(2, factors="auto").fit(X.assign(age=[np.nan, *X["age"][1:]]), TARGETS["numbers"])
