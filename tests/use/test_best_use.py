"""``exactsel best``, its tables, the estimators that choose a size by a criterion, and the summary of a model."""

from __future__ import annotations

import json
import math
import sys
from types import ModuleType

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

import exactsel
from exactsel import Problem, best_model, solve
from exactsel.cli.main import cli
from exactsel.errors import InputError, UnsupportedError
from exactsel.studies.size_report import SizeStatus

QUIET = {"signals": (), "threads": 1}


def data(n=40, d=5, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, d)) + 3.0
    return A, A[:, 0] - 2.0 * A[:, 3] + rng.normal(size=n)


@pytest.fixture
def file(tmp_path):
    A, y = data()
    path = tmp_path / "data.npz"
    np.savez(path, A=A, y=y, feature_names=np.array(["a", "b", "c", "d", "e"]))
    return str(path)


def run(*arguments):
    return CliRunner().invoke(cli, [str(each) for each in arguments])


def test_the_command_says_what_is_proven(file):
    said = run("best", file, "--intercept", "--top", 4, "--summary")
    assert said.exit_code == 0
    assert "claim        Optimal: no model with 0 to 5 features has a lower BIC (relative tolerance 1e-9" in said.output
    assert "4 models; no other has a BIC below" in said.output
    assert "do not account for the selection" in said.output
    assert "a, d" in said.output


def test_sizes_are_proven_or_cannot_win_or_are_open(file, tmp_path):
    found = best_model(exactsel.Problem.prepared(*data(), 5, intercept=True), **QUIET)
    statuses = {size.size: size.status for size in found.sizes}
    assert statuses[2] is SizeStatus.PROVEN
    assert statuses[0] is SizeStatus.CANNOT_WIN  # by the bound of a larger size
    assert found.sizes[0].criterion - found.sizes[0].lower > 1.0
    page = tmp_path / "best.html"
    said = run("best", file, "--intercept", "--report", page).output
    assert "cannot win" in said
    for text in (said, page.read_text()):
        assert "proven: the model shown is the best of its size, within the tolerance" in text
        assert "cannot win: no model of this size beats the best of all; its own best model may be another" in text
        assert "open: " not in text
    plain = json.loads(run("best", file, "--intercept", "--json").output)
    assert [size["status"] for size in plain["sizes"]] == [status.value for status in statuses.values()]
    late = run("best", file, "--intercept", "--time-limit", 0)
    assert "open: a model of this size may beat the best of all" in late.output


def test_the_command_shows_the_coefficients_of_the_best_model(file):
    for more in ([], ["--sum-to", 1]):
        said = run("best", file, "--intercept", *more)
        assert "feature  name" in said.output
        assert "coefficient\n" in said.output
    assert "coefficients sum to 1" in said.output


def test_the_command_in_plain_data(file):
    said = json.loads(
        run("best", file, "--intercept", "--criterion", "aic", "--within", 3, "--summary", "--json").output
    )
    A, y = data()
    found = best_model(A, y, criterion="aic", within=3.0, intercept=True, **QUIET)
    assert said["support"] == list(found.support)
    assert said["value"] == pytest.approx(found.value)
    assert [m["support"] for m in said["models"]] == [list(m.support) for m in found.models]
    assert [size["k"] for size in said["sizes"]] == [0, 1, 2, 3, 4, 5]
    assert said["summary"]["aic"] == pytest.approx(found.value)
    assert said["inclusion"][0]["within"] == 2.0


def test_the_command_refuses_in_one_sentence(file):
    for more in (["-k", 2, "--k-max", 3], ["--criterion", "custom"], ["--problem", "css"]):
        said = run("best", file, *more)
        assert said.exit_code == 2 or isinstance(said.exception, exactsel.ExactselError)


def test_a_price_of_columns_on_the_command_line(file):
    said = run("best", file, "--intercept", "--lam", 0.1, "--criterion", "l0", "--penalty", 5)
    assert said.exit_code == 0
    assert "no model with 0 to 5 features has a lower penalised objective" in said.output or "within" in said.output
    assert "relative gap" in said.output
    asked = ("best", file, "--lam", 0.1, "--criterion", "l0", "--penalty", 5, "--top", 3, "--json")
    plain = json.loads(run(*asked).output)
    assert plain["penalty"] == 5.0
    assert plain["gap"] <= 1e-6
    assert plain["up_to"] == 5
    assert plain["models"][0]["weight"] is None
    assert not plain["inclusion"]
    for more in (["--criterion", "l0"], ["--criterion", "l0", "--penalty", -1], ["--penalty", 1]):
        said = run("best", file, *more)
        assert said.exit_code == 2 or isinstance(said.exception, exactsel.ExactselError)


def test_the_path_over_the_price_is_that_of_each_price():
    A, y = data(d=6)
    path = exactsel.solve_path(A, y, ks=range(1, 7), lam=0.5, intercept=True, signals=(), threads=1)
    ranges = path.penalty_ranges
    assert [part.low for part in ranges] == [part.high for part in ranges[1:]] + [0.0]
    assert ranges[0].high == math.inf
    for part in ranges:
        assert part.gap < 1e-6
        for price in (part.low + 1e-6 * (1 + part.low), min(part.high * (1 - 1e-6), 2 * part.low + 1.0)):
            found = best_model(A, y, criterion="l0", penalty=price, lam=0.5, intercept=True, **QUIET)
            assert found.value == pytest.approx(part.objective + price * part.size, rel=1e-6)
    with pytest.raises(InputError, match="one ridge weight"):
        _ = exactsel.solve_path(A, y, ks=[1, 2], lams=[0.1, 1.0], signals=(), threads=1).penalty_ranges


def test_the_command_shows_the_path_over_the_price(file):
    said = run("path", file, "--k-max", 3, "--lam", 0.1, "--criterion", "l0")
    assert said.exit_code == 0
    assert "lam0 from" in said.output
    plain = json.loads(run("path", file, "--k-max", 3, "--lam", 0.1, "--criterion", "l0", "--json").output)
    assert plain["penalty_ranges"][0]["high"] is None
    assert plain["penalty_ranges"][-1]["low"] == 0.0


def test_an_estimator_takes_a_price_of_columns():
    from exactsel.sklearn import BestSubsetRegressor

    A, y = data()
    model = BestSubsetRegressor(k=5, lam=0.1, criterion="l0", penalty=5.0).fit(A, y)
    assert model.get_support(indices=True).tolist() == [0, 3]
    assert model.criterion_ == pytest.approx(model.objective_ + 10.0)
    with pytest.raises(InputError, match="there is no criterion"):
        BestSubsetRegressor(k=5, penalty=5.0).fit(A, y)
    with pytest.raises(InputError, match="lam0 in P"):
        BestSubsetRegressor(k=5, criterion="l0").fit(A, y)


def least_squares(A, y, weights=None):
    X = np.column_stack([np.ones(len(y)), A])
    w = np.ones(len(y)) if weights is None else weights
    inverse = np.linalg.inv(X.T @ (w[:, None] * X))
    x = inverse @ X.T @ (w * y)
    left = w.sum() - X.shape[1]
    variance = w @ (y - X @ x) ** 2 / left
    return x, np.sqrt(variance * np.diag(inverse)), left, variance


@pytest.mark.smoke
def test_a_summary_is_that_of_least_squares():
    A, y = data()
    result = solve(A, y, 2, intercept=True, **QUIET)
    found = result.summary()
    x, errors, left, variance = least_squares(A[:, list(result.support)], y)
    assert [row.coef for row in found.parameters] == pytest.approx(x.tolist())
    assert [row.error for row in found.parameters] == pytest.approx(errors.tolist())
    assert (found.df_residual, found.dispersion) == (left, pytest.approx(variance))
    assert found.null_deviance == pytest.approx(np.sum((y - y.mean()) ** 2))
    assert found.r2 == pytest.approx(1 - found.deviance / found.null_deviance)
    assert [row.p_value for row in found.parameters] == pytest.approx(
        (2 * stats.t.sf(np.abs(x / errors), left)).tolist()
    )
    half = stats.t.ppf(0.975, left) * errors
    assert [row.low for row in found.parameters] == pytest.approx((x - half).tolist())
    density = stats.norm.logpdf(y, A[:, list(result.support)] @ x[1:] + x[0], math.sqrt(found.deviance / 40))
    assert found.log_likelihood == pytest.approx(density.sum())
    assert found.bic == pytest.approx(-2 * density.sum() + 4 * math.log(40))
    assert "do not account for the selection" in str(found)
    assert len(found.warnings) == 1


def test_weights_count_rows():
    A, y = data(12)
    weights = np.tile([1.0, 2.0, 3.0], 4)
    result = solve(A, y, 2, intercept=True, weights=weights, **QUIET)
    x, errors, left, _ = least_squares(A[:, list(result.support)], y, weights)
    found = result.summary()
    assert [row.error for row in found.parameters] == pytest.approx(errors.tolist())
    assert found.df_residual == left
    assert found.parameters[0].coef == pytest.approx(x[0])


def test_a_logistic_summary_has_the_errors_of_the_information_matrix():
    A, y = data(60)
    labels = np.where(y > np.median(y), 1.0, -1.0)
    result = solve(A, labels, 2, loss="logistic", lam=0.5, intercept=True, scale=True, **QUIET)
    found, inside = result.summary(level=0.9), list(result.support)
    X, model = np.column_stack([np.ones(60), A[:, inside]]), result.model
    p = 1.0 / (1.0 + np.exp(-(A @ model.coef + model.intercept)))
    information = X.T @ ((p * (1 - p))[:, None] * X)
    hessian = np.linalg.inv(information + np.diag([0.0, *(0.5 * result.prepared.preparation.scale[inside] ** 2)]))
    errors = np.sqrt(np.diag(hessian @ information @ hessian))
    assert [row.error for row in found.parameters] == pytest.approx(errors.tolist())
    assert found.deviance == pytest.approx(-2 * np.sum(np.log(np.where(labels > 0, p, 1 - p))))
    assert found.null_deviance == pytest.approx(2 * 60 * math.log(2))
    assert found.mcfadden == pytest.approx(1 - found.deviance / found.null_deviance)
    assert any("shrinks" in warning for warning in found.warnings)
    assert found.parameters[1].high - found.parameters[1].low == pytest.approx(2 * stats.norm.ppf(0.95) * errors[1])


def test_a_huber_summary_with_no_outliers_is_a_sandwich():
    A, y = data(50)
    result = solve(A, y, 2, loss="huber", delta=1e3, lam=1e-9, intercept=True, **QUIET)
    X = np.column_stack([np.ones(50), A[:, list(result.support)]])
    inverse, residual = np.linalg.inv(X.T @ X), y - result.predict(A)
    errors = np.sqrt(np.diag(inverse @ (X.T @ ((residual**2 * 50 / 47)[:, None] * X)) @ inverse))
    assert [row.error for row in result.summary().parameters] == pytest.approx(errors.tolist(), rel=1e-6)


def test_what_a_summary_cannot_say_is_said():
    A, y = data()
    result = solve(np.column_stack([A[:, 0], A[:, 0], A[:, 3]]), y, 3, force_in=[0, 1], lam=0.0, **QUIET)
    assert all(math.isnan(row.error) for row in result.summary().parameters)
    assert any("depend on each other" in warning for warning in result.summary().warnings)
    few = solve(A[:3], y[:3], 3, lam=1e-3, **QUIET).summary()
    assert any("no more rows" in warning for warning in few.warnings)
    json.loads(few.to_json())
    with pytest.raises(InputError, match="level"):
        result.summary(level=1.0)
    with pytest.raises(UnsupportedError):
        solve(exactsel.ColumnSubsetProblem(A, 2), **QUIET).summary()


def test_a_result_from_elsewhere_needs_its_problem():
    import copy

    A, y = data()
    problem = Problem.prepared(A, y, 2, intercept=True)
    result = copy.copy(solve(problem, **QUIET))
    object.__setattr__(result, "kept", None)
    with pytest.raises(InputError, match=r"result.summary\(problem\)"):
        result.summary()
    assert result.summary(problem).df_model == 2
    with pytest.raises(InputError, match="5"):
        result.summary(Problem(A[:, :3], y, 2))


def test_statsmodels_is_asked_for_the_same_model(monkeypatch):
    asked = {}

    class OLS:
        def __init__(self, y, exog):
            asked.update(y=y, exog=exog)

        def fit(self):
            return "fitted"

    pytest.importorskip("pandas")
    api, package = ModuleType("statsmodels.api"), ModuleType("statsmodels")
    api.OLS, package.api = OLS, api
    monkeypatch.setitem(sys.modules, "statsmodels", package)
    monkeypatch.setitem(sys.modules, "statsmodels.api", api)
    A, y = data()
    result = solve(A, y, 2, intercept=True, **QUIET)
    assert result.to_statsmodels() == "fitted"
    assert list(asked["exog"].columns) == ["(intercept)", "x0", "x3"]
    with pytest.raises(UnsupportedError, match="ridge"):
        solve(A, y, 2, lam=1.0, **QUIET).to_statsmodels()


def test_statsmodels_agrees():
    pytest.importorskip("statsmodels")
    A, y = data()
    result = solve(A, y, 2, intercept=True, **QUIET)
    theirs, ours = result.to_statsmodels(), result.summary()
    assert theirs.bse.tolist() == pytest.approx([row.error for row in ours.parameters])


def test_without_statsmodels_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "statsmodels", None)
    A, y = data()
    with pytest.raises(UnsupportedError, match="pip install statsmodels"):
        solve(A, y, 2, **QUIET).to_statsmodels()


def test_an_estimator_chooses_its_size_by_a_criterion():
    from exactsel.sklearn import BestSubsetClassifier, BestSubsetRegressor

    A, y = data()
    found = BestSubsetRegressor(k=4, criterion="bic", solver_options=QUIET).fit(A, y)
    best = best_model(A, y, criterion="bic", k_max=4, intercept=True, **QUIET)
    assert found.support_.tolist() == list(best.support)
    assert found.k_ == best.k
    assert found.criterion_ == pytest.approx(best.value)
    assert found.predict(A) == pytest.approx(best.result.predict(A))
    labels = np.where(y > np.median(y), "yes", "no")
    chosen = BestSubsetClassifier(k=3, criterion="aic", lam=0.1, solver_options=QUIET).fit(A, labels)
    assert 0 < chosen.k_ <= 3
    with pytest.raises(InputError, match="criterion is 'mdl'"):
        BestSubsetRegressor(criterion="mdl", solver_options=QUIET).fit(A, y)


def test_adjusted_r2_weighs_no_models(file, tmp_path):
    A, y = data()
    assert best_model(A, y, criterion="adjr2", top=3).weights == ()
    page = tmp_path / "best.html"
    screen = run("best", str(file), "--criterion", "adjr2", "--lam", "0", "--top", "3", "--report", str(page)).output
    assert "adjusted R²" in screen
    assert "weight" not in screen
    assert "in how many" not in screen
    assert "weight" not in page.read_text().partition("The list")[2].partition("Which features")[0]
    found = json.loads(run("best", str(file), "--criterion", "adjr2", "--lam", "0", "--top", "3", "--json").stdout)
    assert [model["weight"] for model in found["models"]] == [None] * 3
    assert found["inclusion"] == []


def test_a_list_is_a_frame():
    A, y = data()
    best = best_model(A, y, top=3, feature_names=list("abcde"))
    frame = best.to_frame()
    assert frame["bic"].tolist() == [model.criterion for model in best.models]
    assert frame["columns"][0] == [best.result.problem["feature_names"][j] for j in best.support]
    assert frame["weight"].tolist() == list(best.weights)
