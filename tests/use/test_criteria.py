"""Choosing a size: criteria by their formulas, held-out errors by hand, and what `exactsel path` shows of them."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner
from samples import sample
from scipy.optimize import minimize
from scipy.special import xlogy

from exactsel import ColumnSubsetProblem, Problem, best_model, solve, solve_path
from exactsel.cli.main import cli
from exactsel.errors import InputError
from exactsel.studies.criteria import Compared, information
from exactsel.studies.crossval import cross_validate, random_folds


@pytest.fixture
def problem():
    rng = np.random.default_rng(2)
    A = rng.standard_normal((60, 8))
    y = A @ [3.0, -2.0, 1.5, 0, 0, 0, 0, 0] + rng.standard_normal(60)
    return Problem(A, y, 6, lam=0.0, feature_names=list("abcdefgh"))


def test_least_squares(problem):
    for result in solve_path(problem).results:
        used = list(result.support)
        fit, *_ = np.linalg.lstsq(problem.A[:, used], problem.y, rcond=None)
        residual = problem.y - problem.A[:, used] @ fit
        deviance = 60 * (math.log(2 * math.pi * (residual @ residual) / 60) + 1)  # R's -2 logLik(lm(y ~ 0 + ...))
        k, found = len(used), information(result)
        assert found["aic"] == pytest.approx(deviance + 2 * (k + 1), abs=1e-6)
        assert found["bic"] == pytest.approx(deviance + (k + 1) * math.log(60), abs=1e-6)
        assert found["ebic"] == pytest.approx(found["bic"] + 2 * math.log(math.comb(8, k)), abs=1e-6)


@pytest.mark.parametrize("loss", ["quadratic", "logistic", "poisson", "huber"])
def test_there_is_one_bic(problem, loss):
    """Of a path, of the best model over all sizes, of a result and of its summary."""
    targets = {"logistic": np.sign(problem.y), "poisson": np.floor(np.abs(problem.y))}
    problem = Problem.prepared(
        problem.A, targets.get(loss, problem.y), 4, loss=loss, lam=0.0 if loss == "quadratic" else 0.3, intercept=True
    )
    best = best_model(problem, k_max=4)
    path = Compared(solve_path(problem, ks=[0, 1, 2, 3, 4]))
    assert path.best["bic"].support == best.support
    assert path.row(path.best["bic"])["bic"] == pytest.approx(best.value, abs=1e-6)
    result = solve(problem.replace(k=best.k))
    assert result.bic == pytest.approx(best.value, abs=1e-6)
    assert result.summary().bic == pytest.approx(best.value, abs=1e-6)
    assert result.summary().aic == pytest.approx(result.aic, abs=1e-6)


def test_the_ridge_term_is_part_of_the_likelihood(problem):
    labels = Problem(problem.A, np.sign(problem.y), 3, lam=2.0, loss="logistic")
    result = solve_path(labels, ks=[3]).results[0]
    margins = labels.y * (labels.A @ result.coef)
    assert information(result)["aic"] == pytest.approx(
        2 * np.logaddexp(0, -margins).sum() + 2.0 * result.coef @ result.coef + 6, rel=1e-9
    )


def test_where_there_is_no_likelihood(problem):
    nothing = {"aic": None, "bic": None, "ebic": None}
    hinge = Problem(problem.A, np.sign(problem.y), 2, lam=1.0, loss="squared_hinge")
    assert information(solve_path(hinge, ks=[2]).results[0]) == nothing
    assert information(solve_path(ColumnSubsetProblem(problem.A, 2), ks=[2]).results[0]) == nothing
    exact = Problem(np.eye(3), [1.0, 0.0, 0.0], 1, lam=0.0)
    assert set(information(solve_path(exact).results[0])) == {*nothing}


def test_they_find_the_planted_size(problem):
    folds = random_folds(problem.n, 5)
    path = solve_path(problem)
    validation = cross_validate(problem.A, problem.y, cv=folds, ks=range(1, 7), lams=[0.0], intercept=False)
    best = Compared(path, validation).best
    assert best["bic"].problem["k"] == best["ebic"].problem["k"] == 3
    assert best["bic"].support == (0, 1, 2)
    assert validation.best[1] == best["cv_error"].problem["k"] >= 3
    by_hand = []
    for train, held in folds:
        fit, *_ = np.linalg.lstsq(problem.A[np.ix_(train, [0, 1, 2])], problem.y[train], rcond=None)
        by_hand.append(0.5 * np.mean((problem.y[held] - problem.A[np.ix_(held, [0, 1, 2])] @ fit) ** 2))
    np.testing.assert_allclose(validation.errors[:, 0, 2], by_hand, rtol=1e-6)
    np.testing.assert_allclose(validation.standard_error[0, 2], np.std(by_hand, ddof=1) / math.sqrt(5), rtol=1e-6)


@pytest.mark.parametrize("seed", sample(4, 4))
def test_each_fold_is_prepared_by_its_training_rows(seed):
    """Intercept, scaling, weights and demands, against a fit by hand on the rows of each training part."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((30, 4)) * [1, 10, 100, 1] + 5
    y = A @ [1.0, 0.3, 0.01, 0] + 20 + rng.standard_normal(30)
    weights = rng.choice([0.0, 1.0, 2.5], 30) if seed % 2 else None
    folds, w = random_folds(30, 3, seed), np.ones(30) if weights is None else weights
    found = cross_validate(
        A, y, cv=folds, ks=[2], lams=[0.7], intercept=True, scale=True, weights=weights, force_in=[0], force_out=[1]
    )
    for (train, held), (error,) in zip(folds, found.errors[:, 0], strict=True):
        means = np.average(A[train], axis=0, weights=w[train])
        sizes = np.sqrt(np.average((A[train] - means) ** 2, axis=0, weights=w[train]))
        tried = {}
        for other in (2, 3):
            X = ((A - means) / sizes)[:, [0, other]]
            X = np.column_stack([X, np.ones(30)])
            normal = X[train].T @ (w[train, None] * X[train]) + np.diag([0.7, 0.7, 0.0])
            x = np.linalg.solve(normal, X[train].T @ (w[train] * y[train]))
            value = w[train] @ (y[train] - X[train] @ x) ** 2 + 0.7 * x[:2] @ x[:2]
            tried[value] = 0.5 * w[held] @ (y[held] - X[held] @ x) ** 2 / w[held].sum()
        assert error == pytest.approx(tried[min(tried)], rel=1e-5)


def poisson_fit(X, y, offset, weights, lam, penalised):
    """Coefficients that minimise the Poisson loss of rows with offsets and a ridge on the first ``penalised``."""

    def cost(x):
        z = X @ x + offset
        return weights @ (np.exp(z) - y * z) + 0.5 * lam * x[:penalised] @ x[:penalised]

    def slope(x):
        ridge = np.where(np.arange(len(x)) < penalised, lam * x, 0.0)
        return X.T @ (weights * (np.exp(X @ x + offset) - y)) + ridge

    return minimize(cost, np.zeros(X.shape[1]), jac=slope, method="BFGS", options={"gtol": 1e-9}).x


@pytest.mark.parametrize("loss", ["quadratic", "huber", "poisson"])
@pytest.mark.parametrize("weighted", [False, True])
def test_an_offset_counts_in_the_folds(loss, weighted):
    """Against fits by hand: an offset that explains nearly all, and hides the column that matters."""
    rng = np.random.default_rng(4)
    A, offset = rng.standard_normal((45, 2)), rng.normal(0.0, 2.0, 45)
    weights = rng.choice([0.5, 1.0, 3.0], 45) if weighted else None
    w, mean = np.ones(45) if weights is None else weights, 0.5 + 0.6 * A[:, 0] + offset
    y = rng.poisson(np.exp(mean)).astype(float) if loss == "poisson" else mean + 0.1 * rng.standard_normal(45)
    folds = random_folds(45, 3)
    options = {"delta": 1e3} if loss == "huber" else {}
    found = cross_validate(
        A,
        y,
        cv=folds,
        ks=[2],
        lams=[0.4],
        loss=loss,
        intercept=True,
        weights=weights,
        offset=offset,
        rel_eps=1e-10,
        **options,
    )
    X = np.column_stack([A, np.ones(45)])
    for (train, held), (error,) in zip(folds, found.errors[:, 0], strict=True):
        if loss == "poisson":
            x = poisson_fit(X[train], y[train], offset[train], w[train], 0.4, 2)
            z = X[held] @ x + offset[held]
            rows = np.exp(z) - y[held] * z + xlogy(y[held], y[held]) - y[held]
        else:  # within so large a threshold Huber loss is quadratic
            normal = X[train].T @ (w[train, None] * X[train]) + np.diag([0.4, 0.4, 0.0])
            x = np.linalg.solve(normal, X[train].T @ (w[train] * (y - offset)[train]))
            rows = 0.5 * (y[held] - offset[held] - X[held] @ x) ** 2
        assert error == pytest.approx(w[held] @ rows / w[held].sum(), rel=1e-5)


def test_labels_of_zeros_and_ones_are_read_in_held_out_rows_too():
    rng = np.random.default_rng(5)
    A, y = rng.standard_normal((40, 2)), np.where(rng.random(40) < 0.5, 1.0, 0.0)
    with pytest.warns(UserWarning, match="reads them as -1 and"):
        found = cross_validate(A, y, cv=random_folds(40, 4), ks=[1, 2], lams=[1.0], loss="logistic")
    same = cross_validate(A, 2 * y - 1, cv=random_folds(40, 4), ks=[1, 2], lams=[1.0], loss="logistic")
    np.testing.assert_array_equal(found.errors, same.errors)


@pytest.mark.filterwarnings("ignore:in the data, missing values are filled in")
@pytest.mark.parametrize("way", ["mean", "median"])
def test_gaps_are_filled_by_rows_as_often_as_they_count(way):
    """Of a fold's training rows: a weight of 3 is the row three times, one of 0 none at all."""
    rng = np.random.default_rng(6)
    A = np.where(rng.random((24, 3)) < 0.2, np.nan, rng.standard_normal((24, 3)))
    y, weights = rng.standard_normal(24), rng.integers(0, 4, 24).astype(float)
    weights[[0, 12]] = 1.0
    A[weights == 0] *= 1e6
    halves = [(np.arange(12), np.arange(12, 24)), (np.arange(12, 24), np.arange(12))]
    times = np.repeat(np.arange(24), weights.astype(int))
    repeated = [(np.flatnonzero(np.isin(times, train)), np.flatnonzero(np.isin(times, held))) for train, held in halves]
    found = cross_validate(A, y, cv=halves, ks=[2], lams=[0.5], weights=weights, missing=way, rel_eps=1e-10)
    same = cross_validate(A[times], y[times], cv=repeated, ks=[2], lams=[0.5], missing=way, rel_eps=1e-10)
    np.testing.assert_allclose(found.errors, same.errors, rtol=1e-7)


def test_a_fold_that_measures_nothing_is_refused():
    A, y, weights = np.eye(6), np.arange(6.0), np.array([1.0, 1, 1, 1, 0, 0])
    folds = [(np.arange(4), np.arange(4, 6))]
    with pytest.raises(InputError, match="only rows of weight 0"):
        cross_validate(A, y, cv=folds, ks=[1], lams=[1.0], weights=weights)


class TestCommandLine:
    def call(self, *arguments):
        return CliRunner().invoke(cli, list(map(str, arguments)), catch_exceptions=False, standalone_mode=False)

    @pytest.fixture
    def file(self, tmp_path, problem):
        np.savez(tmp_path / "d.npz", A=problem.A, y=problem.y, lam=0.5, feature_names=np.array(list("abcdefgh")))
        return tmp_path / "d.npz"

    def test_table(self, file):
        lines = self.call("path", file, "--k-max", 4, "--cv", 4).stdout.splitlines()
        assert lines[0].split()[7:] == ["AIC", "BIC", "EBIC", "held-out", "loss", "support"]
        assert lines[3].endswith("  a, b, c")
        assert "BIC is smallest at k = 3" in lines
        assert "smallest model within one standard error of the smallest held-out loss at k = 3" in lines
        each = self.call("path", file, "--k-max", 1, "--cv", "loo").stdout.splitlines()
        assert each[0] == lines[0]
        assert any(line.startswith("smallest model within one standard error") for line in each)
        with pytest.raises(InputError, match="--cv is 'many', but a number of folds was expected, or loo"):
            self.call("path", file, "--k-max", 2, "--cv", "many")
        several = self.call("path", file, "--k-max", 3, "--lams", "1,10").stdout
        assert "BIC is smallest at k = 3, lam = 1\n" in several
        assert "held-out" not in several

    def test_a_size_that_is_not_proven_best_may_hide_a_better_model(self, file):
        lines = self.call("path", file, "--ks", "3", "--node-limit", 0, "--heuristic", "none").stdout.splitlines()
        assert "BIC is smallest at k = 3, among the models found" in lines

    def test_json(self, file):
        plain = json.loads(self.call("path", file, "--ks", "2,3", "--lams", "1,10", "--cv", 3, "--json").stdout)
        rows = plain["results"]
        assert [(row["lam"], row["k"]) for row in rows] == [(10.0, 2), (10.0, 3), (1.0, 2), (1.0, 3)]
        best = min(rows, key=lambda row: row["cv_error"])
        assert plain["best"]["cv_error"] == {"k": best["k"], "lam": best["lam"], "support": best["support"]}
        assert all(row["cv_standard_error"] > 0 for row in rows)

    def test_preparations_and_demands_hold_in_the_folds(self, tmp_path):
        rng = np.random.default_rng(1)
        A = rng.standard_normal((40, 4)) * [1, 10, 100, 1] + 5
        y, weights = A @ [1.0, 0.3, 0.01, 0] + rng.standard_normal(40), rng.uniform(0.5, 2, 40)
        np.savez(tmp_path / "d.npz", A=A, y=y, lam=0.5, feature_names=np.array(list("abcd")))
        np.savetxt(tmp_path / "w.txt", weights)
        options = ["--intercept", "--scale", "--force-in", "d", "--weights", tmp_path / "w.txt", "--seed", 3]
        run = self.call("path", tmp_path / "d.npz", "--k-max", 3, "--cv", 4, *options, "--json")
        expected = cross_validate(
            A, y, cv=random_folds(40, 4, 3), ks=[1, 2, 3], lams=[0.5], intercept=True, scale=True,
            weights=np.loadtxt(options[5]), force_in=[3],
        )  # fmt: skip
        errors = [row["cv_error"] for row in json.loads(run.stdout)["results"]]
        np.testing.assert_allclose(errors, expected.mean[0], rtol=1e-12)

    @pytest.mark.parametrize("loss", ["quadratic", "poisson"])
    @pytest.mark.parametrize("as_column", [False, True])
    def test_an_offset_holds_in_the_folds(self, tmp_path, loss, as_column):
        rng = np.random.default_rng(2)
        A, offset = rng.standard_normal((40, 3)), rng.normal(0.0, 2.0, 40)
        mean = 0.3 + 0.5 * A[:, 0] + offset
        y = rng.poisson(np.exp(mean)).astype(float) if loss == "poisson" else mean + 0.1 * rng.standard_normal(40)
        table, names = (np.column_stack([A, offset]), "abco") if as_column else (A, "abc")
        np.savez(tmp_path / "d.npz", A=table, y=y, lam=0.5, loss=loss, feature_names=np.array(list(names)))
        np.savetxt(tmp_path / "o.txt", offset)
        given = ["--offset", "o" if as_column else tmp_path / "o.txt", "--intercept"]
        run = self.call("path", tmp_path / "d.npz", "--k-max", 2, "--cv", 4, *given, "--json")
        expected = cross_validate(
            A,
            y,
            cv=random_folds(40, 4),
            ks=[1, 2],
            lams=[0.5],
            loss=loss,
            intercept=True,
            offset=np.loadtxt(tmp_path / "o.txt"),
        )
        errors = [row["cv_error"] for row in json.loads(run.stdout)["results"]]
        np.testing.assert_allclose(errors, expected.mean[0], rtol=1e-9)

    @pytest.mark.parametrize(("ending", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
    def test_plot(self, file, tmp_path, ending, magic):
        pytest.importorskip("matplotlib")
        picture = tmp_path / f"path.{ending}"
        self.call("path", file, "--k-max", 2, "--cv", 2, "--lams", "1,10", "--near", 0.1, "--plot", picture)
        assert picture.read_bytes().startswith(magic)

    def test_what_is_wrong(self, file, tmp_path):
        for arguments, said in (
            (("--plot", tmp_path / "path.bmp"), r"must have a name that ends in \.png, \.svg or \.pdf"),
            (("--cv", 1), "1 folds were asked for with 60 rows"),
            (("--cv", 3, "--problem", "css"), "column subset selection has no target to predict"),
        ):
            with pytest.raises(InputError, match=said):
                self.call("path", file, "--k-max", 2, *arguments)
