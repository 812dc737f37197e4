"""The scikit-learn estimators: scikit-learn's own checks, brute force, and pipelines with names."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest
from samples import kernels_of_its_own, sample

from exactsel import Problem, solve
from exactsel.errors import InputError, UnsupportedError
from exactsel.problem.preparing import Preparation
from exactsel.studies import crossval
from exactsel.studies.crossval import cross_validate, random_folds

pytest.importorskip("sklearn")

from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from sklearn.metrics import mean_poisson_deviance
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import _get_feature_names

import exactsel.sklearn as estimators
from exactsel.sklearn import (
    BestSubsetClassifier,
    BestSubsetClassifierCV,
    BestSubsetCV,
    BestSubsetRegressor,
    BestSubsetSelector,
    HuberBestSubsetRegressor,
    PoissonBestSubsetRegressor,
)

# One of scikit-learn's checks has more columns than rows, where the default sizes would mean minutes of exact search.
ALL = [
    getattr(estimators, name)(**({"ks": [1, 2], "cv": 2} if name.endswith("CV") else {"k": 2}))
    for name in estimators.__all__
] + [BestSubsetClassifier(k=2, loss="squared_hinge")]


def listed(mark):
    """The same cases as a list: older versions of scikit-learn hand over a generator, which pytest gives up on."""
    names, cases = mark.args
    return pytest.mark.parametrize(names, [slow_at_times(*case) for case in cases], **mark.kwargs)


def slow_at_times(estimator, check):
    """What the checks of one classifier and one regressor have seen of a class, those of other losses seldom add to."""
    others = (PoissonBestSubsetRegressor, HuberBestSubsetRegressor, estimators.BestSubsetClassifierCV, BestSubsetCV)
    again = isinstance(estimator, others) or getattr(estimator, "loss", "") == "squared_hinge"
    kept = any(
        word in str(check) for word in ("check_estimators_dtypes", "check_n_features_in_after_fitting", "weight")
    )
    if isinstance(estimator, PoissonBestSubsetRegressor) and "weight_equivalence" in str(check):
        return kernels_of_its_own(estimator, check)
    return pytest.param(estimator, check, marks=pytest.mark.slow) if again and not kept else (estimator, check)


@listed(parametrize_with_checks(ALL))
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def data(seed: int, n: int = 25, d: int = 7, shift: float = 3.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * rng.uniform(0.1, 10.0, d) + shift * rng.standard_normal(d)
    y = X @ (rng.standard_normal(d) * (rng.random(d) < 0.5)) + rng.standard_normal(n) + 5.0
    return X, y


def best_least_squares(X, y, k):
    """The best support of k columns with an intercept, by trying all of them."""
    fits = []
    for chosen in itertools.combinations(range(X.shape[1]), k):
        fit = LinearRegression().fit(X[:, chosen], y)
        fits.append((0.5 * float(np.sum((y - fit.predict(X[:, chosen])) ** 2)), chosen, fit))
    return min(fits, key=lambda found: found[0])


class TestBruteForce:
    @pytest.mark.parametrize("seed", sample(4, 12, smoke=1))
    @pytest.mark.parametrize("standardize", [False, True])
    def test_least_squares_with_an_intercept(self, seed, standardize):
        X, y = data(seed)
        k = 1 + seed % 4
        value, chosen, fit = best_least_squares(X, y, k)
        model = BestSubsetRegressor(k, standardize=standardize, rel_eps=1e-9).fit(X, y)
        assert model.objective_ == pytest.approx(value, rel=1e-8)
        assert tuple(model.support_) == chosen
        np.testing.assert_allclose(model.coef_[list(chosen)], fit.coef_, rtol=1e-6)
        assert model.intercept_ == pytest.approx(fit.intercept_, rel=1e-6)
        assert model.lower_bound_ <= value * (1 + 1e-12)
        np.testing.assert_allclose(model.predict(X), fit.predict(X[:, chosen]), rtol=1e-6)

    @pytest.mark.parametrize("seed", sample(6, 6))
    def test_ridge_with_an_intercept(self, seed):
        X, y = data(seed)
        values = {}
        for chosen in itertools.combinations(range(X.shape[1]), 2):
            fit = Ridge(alpha=2.0).fit(X[:, chosen], y)
            residual = y - fit.predict(X[:, chosen])
            values[chosen] = 0.5 * residual @ residual + fit.coef_ @ fit.coef_
        model = BestSubsetRegressor(2, lam=2.0).fit(X, y)
        assert tuple(model.support_) == min(values, key=values.get)
        assert model.objective_ == pytest.approx(min(values.values()), rel=1e-6)

    @pytest.mark.parametrize("seed", sample(2, 6))
    @pytest.mark.parametrize("intercept", [False, True])
    def test_logistic(self, seed, intercept):
        X, y = data(seed, shift=0.0)
        X /= X.std(axis=0)
        labels = np.where(y > np.median(y), "yes", "no")
        values = {}
        for chosen in itertools.combinations(range(X.shape[1]), 2):
            fit = LogisticRegression(C=1.0, fit_intercept=intercept, tol=1e-10, max_iter=1000)
            fit.fit(X[:, chosen], labels)
            margins = np.where(labels == "yes", 1, -1) * fit.decision_function(X[:, chosen])
            values[chosen] = np.logaddexp(0.0, -margins).sum() + 0.5 * float(np.sum(fit.coef_**2))
        model = BestSubsetClassifier(2, fit_intercept=intercept).fit(X, labels)
        assert tuple(model.support_) == min(values, key=values.get)
        assert model.objective_ == pytest.approx(min(values.values()), rel=1e-6)
        assert set(model.predict(X)) <= {"yes", "no"}
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
        assert np.array_equal(model.predict_proba(X)[:, 1] > 0.5, model.predict(X) == "yes")

    def test_squared_hinge(self):
        X, y = data(1, shift=0.0)
        X /= X.std(axis=0)
        labels, values = np.where(y > np.median(y), "yes", "no"), {}
        for chosen in itertools.combinations(range(X.shape[1]), 2):
            fit = LinearSVC(C=0.5, fit_intercept=False, dual=False, tol=1e-10, max_iter=10000).fit(X[:, chosen], labels)
            margins = np.where(labels == "yes", 1, -1) * fit.decision_function(X[:, chosen])
            values[chosen] = np.sum(np.maximum(0.0, 1.0 - margins) ** 2) + float(np.sum(fit.coef_**2))
        model = BestSubsetClassifier(2, lam=2.0, loss="squared_hinge", fit_intercept=False).fit(X, labels)
        assert tuple(model.support_) == min(values, key=values.get)
        assert model.objective_ == pytest.approx(min(values.values()), rel=1e-6)
        assert not hasattr(model, "predict_proba")
        assert "share_right" in model.result_.as_dict()["quality"]
        chosen = BestSubsetClassifierCV(ks=[1, 2], cv=2, loss="squared_hinge").fit(X, labels)
        assert chosen.k_ in (1, 2)

    @pytest.mark.parametrize("intercept", [False, True])
    def test_poisson(self, intercept):
        rng = np.random.default_rng(2)
        X = rng.standard_normal((40, 6))
        y = rng.poisson(np.exp(0.5 + 0.6 * X[:, 0] - 0.4 * X[:, 3]))
        values, n = {}, len(y)
        for chosen in itertools.combinations(range(6), 2):
            fit = PoissonRegressor(alpha=2.0 / n, fit_intercept=intercept, tol=1e-10, max_iter=1000)
            fit.fit(X[:, chosen], y)
            values[chosen] = 0.5 * n * mean_poisson_deviance(y, fit.predict(X[:, chosen])) + float(np.sum(fit.coef_**2))
        model = PoissonBestSubsetRegressor(2, lam=2.0, fit_intercept=intercept).fit(X, y)
        assert tuple(model.support_) == min(values, key=values.get)
        assert model.objective_ == pytest.approx(min(values.values()), rel=1e-6)
        np.testing.assert_allclose(model.predict(X), np.exp(X @ model.coef_ + model.intercept_))
        quality = model.result_.as_dict()["quality"]
        assert quality["rms_residual"] == pytest.approx(np.sqrt(np.mean((y - model.predict(X)) ** 2)))
        alone = np.full(n, y.mean() if intercept else 1.0)
        explained = 1.0 - mean_poisson_deviance(y, model.predict(X)) / mean_poisson_deviance(y, alone)
        assert quality["deviance_explained"] == pytest.approx(explained)

    @pytest.mark.parametrize("seed", sample(4, 4))
    def test_huber_is_the_raw_solve(self, seed):
        X, y = data(seed)
        result = solve(Problem(X, y, 3, loss="huber", lam=1.0))
        plain = {"fit_intercept": False}
        for model in (HuberBestSubsetRegressor(3, **plain), BestSubsetRegressor(3, loss="huber", **plain)):
            model.fit(X, y)
            assert (tuple(model.support_), model.claim_) == (result.support, result.claim.value)
            np.testing.assert_array_equal(model.coef_, result.coef)
            assert model.intercept_ == 0.0


class TestPipelines:
    def test_names_scaling_and_intercept_give_the_raw_solve(self):
        pd = pytest.importorskip("pandas")
        X, y = data(3)
        names = [f"column {j}" for j in range(X.shape[1])]
        piped = make_pipeline(StandardScaler(), BestSubsetRegressor(3, lam=0.5)).set_output(transform="pandas")
        piped.fit(pd.DataFrame(X, columns=names), pd.Series(y))
        model = piped[-1]
        assert list(model.feature_names_in_) == names
        assert model.result_.feature_names == tuple(names[j] for j in model.support_)
        scaled = (X - X.mean(axis=0)) / X.std(axis=0)
        raw = solve(Problem(scaled, y - y.mean(), 3, lam=0.5))
        assert tuple(model.support_) == raw.support
        np.testing.assert_allclose(model.coef_, raw.coef, rtol=1e-7, atol=1e-10)
        alone = BestSubsetRegressor(3, lam=0.5, standardize=True).fit(X, y)
        np.testing.assert_allclose(alone.coef_ * X.std(axis=0), raw.coef, rtol=1e-7, atol=1e-10)
        np.testing.assert_allclose(alone.predict(X), piped.predict(pd.DataFrame(X, columns=names)), rtol=1e-8)

    @pytest.mark.parametrize("library", ["pandas", "polars"])
    def test_selector_keeps_names(self, library):
        made = pytest.importorskip(library)
        X, y = data(4)
        frame = made.DataFrame({f"c{j}": X[:, j] for j in range(X.shape[1])})
        if _get_feature_names(frame) is None:
            pytest.skip(f"this scikit-learn knows no columns of this {library}, whatever the estimator")
        selector = BestSubsetSelector(2).set_output(transform=library)
        kept = selector.fit(frame, y).transform(frame)
        assert list(kept.columns) == [f"c{j}" for j in selector.support_] == list(selector.get_feature_names_out())
        np.testing.assert_array_equal(selector.get_support(indices=True), selector.support_)

    def test_selector_of_classes(self):
        X, y = data(5)
        labels = np.where(y > np.median(y), "b", "a")
        selector = BestSubsetSelector(2, loss="logistic").fit(X, labels)
        np.testing.assert_array_equal(selector.support_, BestSubsetClassifier(2).fit(X, labels).support_)

    def test_grid_search(self):
        X, y = data(6)
        search = GridSearchCV(BestSubsetRegressor(), {"k": [1, 2, 3], "lam": [0.0, 1.0]}, cv=3).fit(X, y)
        assert search.best_estimator_.get_support().sum() <= 3
        assert len(cross_val_score(BestSubsetRegressor(2), X, y, cv=3)) == 3


class TestChoosing:
    @pytest.mark.parametrize("standardize", [False, True])
    def test_errors_are_those_of_single_estimators(self, standardize):
        X, y = data(7, n=30)
        folds = KFold(4, shuffle=True, random_state=1)
        ks, lams = [1, 3, 2], [0.1, 5.0]
        chosen = BestSubsetCV(ks, lams, cv=folds, standardize=standardize).fit(X, y)
        table = chosen.cv_results_
        for k, lam, errors in zip(table["k"], table["lam"], table["errors"].T, strict=True):
            single = BestSubsetRegressor(int(k), lam, standardize=standardize)
            expected = -0.5 * cross_val_score(single, X, y, cv=folds, scoring="neg_mean_squared_error")
            np.testing.assert_allclose(errors, expected, rtol=1e-5)
        assert (
            table["mean_error"].min() == table["mean_error"][(table["k"] == chosen.k_) & (table["lam"] == chosen.lam_)]
        )
        again = BestSubsetRegressor(chosen.k_, chosen.lam_, standardize=standardize).fit(X, y)
        np.testing.assert_allclose(chosen.coef_, again.coef_, rtol=1e-6)
        assert chosen.cv_proven_

    def test_classes(self):
        X, y = data(8, n=40)
        labels = np.where(y > np.median(y), 1, 0)
        chosen = BestSubsetClassifierCV([1, 2], [1.0, 10.0], cv=3, standardize=True).fit(X, labels)
        assert chosen.k_ in (1, 2)
        assert chosen.lam_ in (1.0, 10.0)
        assert chosen.score(X, labels) > 0.6

    def test_among_equals_the_smaller_model(self):
        X, y = data(9)
        X[:, 1:] = X[:, :1]
        found = cross_validate(
            X, y, cv=random_folds(len(y), 5), ks=[1, 2, 3], lams=[1.0], loss="quadratic", intercept=True
        )
        assert found.errors.shape == (5, 1, 3)
        assert found.best[1] >= 1

    def test_folds(self):
        folds = random_folds(11, 3, seed=2)
        assert sorted(np.concatenate([held for _, held in folds])) == list(range(11))
        assert all(not {*train} & {*held} and len(train) + len(held) == 11 for train, held in folds)
        with pytest.raises(InputError, match="12 folds were asked for with 11 rows"):
            random_folds(11, 12)
        with pytest.raises(InputError, match="there are no folds"):
            cross_validate(np.ones((2, 1)), np.ones(2), cv=[], ks=[1], lams=[1.0])


@pytest.mark.parametrize("model", [HuberBestSubsetRegressor, BestSubsetClassifier, BestSubsetRegressor])
def test_intercept_and_weights(model):
    """A shift of the columns changes the intercept alone, and a weight of 2 is the row twice."""
    X, y = data(1)
    target = np.sign(y - y.mean()) if model is BestSubsetClassifier else y
    weights = np.arange(len(y)) % 3
    fitted = model(2, 0.5).fit(X, target, sample_weight=weights)
    for other in (
        model(2, 0.5).fit(X + 100.0, target, weights),
        model(2, 0.5).fit(np.repeat(X, weights, axis=0), np.repeat(target, weights)),
    ):
        np.testing.assert_allclose(other.coef_, fitted.coef_, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(np.ravel(other.intercept_), np.ravel(fitted.intercept_), rtol=1e-5, atol=1e-8)


class TestRefused:
    def test_words(self):
        X, y = data(1)
        with pytest.raises(InputError, match="loss is 'absolute', but this estimator knows quadratic and huber"):
            BestSubsetRegressor(loss="absolute").fit(X, y)
        with pytest.raises(InputError, match="fit_intercept is 'maybe', but it must be True, False or 'auto'"):
            BestSubsetRegressor(fit_intercept="maybe").fit(X, y)
        with pytest.raises(InputError, match="lam is -1, but the ridge weight must be"):
            HuberBestSubsetRegressor(lam=-1.0).fit(X, y)
        with pytest.raises(InputError, match=r"k is 2\.5, but the number of features must be a whole number"):
            BestSubsetRegressor(2.5).fit(X, y)
        with pytest.raises(InputError, match="Only binary classification is supported"):
            BestSubsetClassifier().fit(X, np.arange(len(y)) % 3)

    def test_no_scikit_learn(self, monkeypatch):
        for name in [name for name in sys.modules if name.startswith("exactsel.sklearn")]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "sklearn", None)
        with pytest.raises(UnsupportedError, match=r"need scikit-learn; run: pip install 'exactsel\[data\]'"):
            __import__("exactsel.sklearn")


class TestPreparation:
    def test_constant_columns_stay_unscaled(self):
        A = np.column_stack([np.full(9, 0.1), np.arange(9.0), np.zeros(9)])
        made = Preparation.of(A, np.arange(9.0), centre=True, scale=True)
        np.testing.assert_array_equal(made.scale == 1.0, [True, False, True])
        np.testing.assert_allclose(made.made.AT[1].std(), 1.0)

    def test_undone(self):
        X, y = data(2)
        made = Preparation.of(X, y, centre=True, scale=True)
        coef = np.arange(7.0)
        undone, intercept = made.undo(coef)
        np.testing.assert_allclose(X @ undone + intercept, coef @ made.made.AT + sum(made.made.target))


class TestTotalTimeLimit:
    """A cross-validation ends, whatever the data; its limit is for all problems together."""

    @pytest.fixture
    def wide(self):
        rng = np.random.default_rng(0)
        return rng.standard_normal((24, 40)), rng.standard_normal(24)

    def test_shares_of_what_is_left(self, wide, monkeypatch):
        """Time passes by the clock of the test alone: each fold's path takes ten seconds."""
        now, limits = [0.0], []
        path = crossval.solve_path

        def slow(problem, ks, lams, **options):
            limits.append(options["time_limit"])
            now[0] += 10.0
            return path(problem, ks=ks, lams=lams, node_limit=1)

        monkeypatch.setattr(crossval, "solve_path", slow)
        monkeypatch.setattr("exactsel.clock._read", lambda: now[0])
        folds = crossval.random_folds(24, 3, 0)
        found = crossval.cross_validate(*wide, cv=folds, ks=[1, 2], lams=[1.0, 0.1], total=65.0)
        assert limits == [65.0 / 13, 55.0 / 9, 45.0 / 5]
        assert not found.proven

    def test_with_too_little_it_says_so(self, wide, capsys):
        model = BestSubsetCV(ks=[1, 12], time_limit=0.0, cv=2, verbose=1)
        with pytest.warns(ConvergenceWarning, match="the time limit was reached, .*larger time_limit or rel_eps"):
            model.fit(*wide)
        assert not model.cv_proven_
        assert model.result_.termination == "time_limit"
        told = capsys.readouterr().out.splitlines()
        assert [line.partition(":")[0] for line in told] == ["fold 1 of 2", "fold 2 of 2"]
        assert "of 2 models proven best" in told[0]

    def test_the_reason_told_is_the_true_one(self, wide):
        model = BestSubsetCV(ks=[12], lams=[0.1], cv=2, solver_options={"node_limit": 1})
        with pytest.warns(ConvergenceWarning, match="the node limit was reached, and the model is not proven best"):
            model.fit(*wide)
        model = BestSubsetCV(ks=[12], lams=[0.1], cv=2, solver_options={"time_limit": 0.0})
        with pytest.warns(ConvergenceWarning, match=r"the time limit was reached, .*solver_options\['time_limit'\]"):
            model.fit(*wide)

    def test_without_a_limit_and_with_one_for_each(self, wide, monkeypatch):
        seen = []

        def noting(*arguments, total, **options):
            seen.append((total, options.get("time_limit")))
            return crossval.cross_validate(*arguments, total=total, **options)

        monkeypatch.setattr("exactsel.sklearn.crossval.cross_validate", noting)
        for options in ({"time_limit": None}, {"solver_options": {"time_limit": 40.0}}, {}):
            BestSubsetCV(ks=[1], cv=2, **options).fit(*wide)
        assert seen == [(None, None), (None, 40.0), (60.0, None)]
