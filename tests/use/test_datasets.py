"""The shipped data as X and y, and rows held out along a path of them."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from exactsel import DataWarning, InputError, Problem, UnsupportedError, best_model, datasets, load, solve, solve_path
from exactsel.data.shipped import folder, shipped


def test_each_is_its_file():
    assert datasets.names() == [one.file.stem for one in shipped()]
    for name in datasets.names():
        data = datasets.load(name)
        assert len(data.feature_names) == data.data.shape[1]
        assert len(data.target) == len(data.data)
        assert "Licence: " in data.description
        assert name in str(data)
        assert data.as_dict()["k"] == data.k


def test_solved_as_the_file_is():
    data = datasets.load("diabetes")
    expected = solve(load(folder() / "diabetes.npz"))
    found = solve(data.data, data.target, data.k, lam=data.lam, fit_intercept=False)
    assert found.upper == pytest.approx(expected.upper, rel=1e-12)
    assert found.feature_names == expected.feature_names


def test_a_table():
    X, y = datasets.load("cars.csv")
    assert (X.shape, y.name) == ((406, 8), "mpg")
    with pytest.warns(DataWarning, match="left out"):
        result = solve(X, y, 2, missing="drop-rows", drop=["name", "model year", "origin"])
    with pytest.warns(DataWarning):
        table = load(
            folder() / "cars.csv", target="mpg", k=2, missing="drop-rows", drop=["name", "model year", "origin"]
        )
    assert result.upper == pytest.approx(solve(table).upper, rel=1e-12)


def test_what_is_not_there():
    with pytest.raises(InputError, match=r"no data set 'diabets'; did you mean 'diabetes'; those there are: "):
        datasets.load("diabets")
    with pytest.raises(InputError, match="no data set 7; those there are"):
        datasets.load(7)


def test_without_pandas_instances_are_arrays(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    X, y = datasets.load("twins")
    assert (type(X), type(y)) == (np.ndarray, np.ndarray)
    with pytest.raises(UnsupportedError, match="needs pandas"):
        datasets.load("cars")


class TestHeldOut:
    RNG = np.random.default_rng(3)
    X = RNG.standard_normal((18, 4))
    Y = 5.0 + X @ [2.0, -1.0, 0.2, 0.0] + RNG.standard_normal(18)

    def errors_by_hand(self, folds, k, result):
        """Half the mean squared error of least squares on the best k columns of each training part."""
        found = []
        for train, held in folds:
            chosen = [*solve(self.X[train], self.Y[train], k).support]
            design = np.column_stack([np.ones(18), self.X[:, chosen]])
            fit, *_ = np.linalg.lstsq(design[train], self.Y[train], rcond=None)
            found.append(0.5 * np.mean((self.Y[held] - design[held] @ fit) ** 2))
        return found

    def test_leaving_one_out(self):
        path = solve_path(self.X, self.Y, cv="loo")
        folds = [(np.delete(np.arange(18), i), np.array([i])) for i in range(18)]
        by_hand = np.array([self.errors_by_hand(folds, k, path) for k in (1, 2, 3, 4)])
        np.testing.assert_allclose(np.sort(path.validation.errors[:, 0], axis=0), np.sort(by_hand.T, axis=0), rtol=1e-6)
        mean, error = by_hand.mean(axis=1), by_hand.std(axis=1, ddof=1) / np.sqrt(18)
        best = int(np.argmin(mean))
        assert path.best_cv.problem["k"] == best + 1
        within = np.flatnonzero(mean <= mean[best] + error[best])
        assert path.one_standard_error.problem["k"] == within[0] + 1 <= best + 1
        assert path.best["cv_error"] is path.best_cv

    def test_any_problem_and_any_folds(self):
        from sklearn.model_selection import KFold

        splitter = KFold(3)
        parts = list(splitter.split(self.X))
        stated = Problem.prepared(self.X, self.Y, 2, fit_intercept=True, groups=["g", "g", "h", "i"])
        grouped = solve_path(stated, cv=splitter)
        assert grouped.validation.errors.shape == (3, 1, 2)
        same = solve_path(self.X, self.Y, 2, groups=["g", "g", "h", "i"], cv=parts)
        np.testing.assert_array_equal(same.validation.errors, grouped.validation.errors)
        limited = solve_path(self.X, self.Y, 2, positive=True, lam=0.1, cv=3)
        assert all(np.all(result.coef >= 0.0) for result in limited.results)
        assert limited.validation.errors.shape == (3, 1, 2)

    def test_the_table_shows_them(self):
        path = solve_path(self.X, self.Y, 3, lams=[0.0, 1.0], cv=3)
        assert list(path.to_frame())[:9] == ["k", "lam", "objective", "gap", "claim", "aic", "bic", "ebic", "cv_error"]
        assert "cv_error" in str(path)
        assert "bic" in path._repr_html_()
        assert solve_path(self.X, self.Y, 3).best["bic"].support == best_model(self.X, self.Y, k_max=3).support
        with pytest.raises(InputError, match="no held-out errors; solve it with cv=5"):
            _ = solve_path(self.X, self.Y, 2).best_cv

    @pytest.mark.parametrize("cv", ["most", 1, 31, [], [1, 2], 2.5])
    def test_folds_that_are_none(self, cv):
        with pytest.raises(InputError):
            solve_path(self.X, self.Y, 2, cv=cv)
