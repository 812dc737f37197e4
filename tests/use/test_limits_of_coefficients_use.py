"""What is said of models within limits of coefficients: comparisons of methods, and summaries."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from exactsel import Problem, best_model, boxed, heuristics, solve
from exactsel.cli.main import cli
from exactsel.errors import InputError, UnsupportedError
from exactsel.problem.boxed import with_bounds
from exactsel.studies.compare import compare

QUIET = {"signals": (), "threads": 1}
TINY = 1e-10
"""A ridge that no digit shown tells of."""


def data(loss="quadratic", n=80, d=6, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, d))
    z = 0.8 * A[:, 0] - 0.9 * A[:, 1] + 0.5 * A[:, 2] + rng.normal(size=n)
    return A, {"quadratic": z, "logistic": np.sign(z), "poisson": rng.poisson(np.exp(0.5 * z)).astype(float)}[loss]


@pytest.fixture
def sm():
    return pytest.importorskip("statsmodels.api")


def test_methods_that_know_limits_are_compared_with_certified_gaps():
    A, y = data(d=10)
    problem = boxed(Problem(A, y, 4, lam=0.5), "all")
    compared = compare(problem, methods="all", **QUIET)
    methods = {row.method: row for row in compared.rows}
    assert {*methods} == {"forward", "swap", "omp", "htp", "iht", "poss", "pposs"}
    assert compared.result.absolute_gap <= 1e-6 * compared.result.upper
    for row in compared.rows:
        assert row.lower <= row.value
        assert row.value >= compared.result.upper - 1e-9
        assert problem.coefficient_bounds.admit(problem.fit(row.support).coef)
    assert methods["swap"].value <= methods["forward"].value
    with pytest.raises(UnsupportedError, match="'exchange' does not know signs or bounds of coefficients; use forward"):
        compare(problem, methods="exchange", **QUIET)


def test_a_method_alone_is_bounded():
    A, y = data()
    problem = boxed(Problem(A, y, 3, lam=0.5), (), [(0, -0.1, 0.1)])
    found = heuristics.run("swap", problem, signals=())
    assert found.lower <= found.upper
    assert found.coef[0] in (0.0, 0.1)


def test_limits_are_a_list_of_triples_and_no_mapping():
    A, y = data()
    with pytest.raises(InputError, match=r"the bounds are a mapping, .* write \[\(feature, lower, upper\), ...\]"):
        boxed(Problem(A, y, 3, lam=0.5), (), {0: (-1.0, 1.0)})


@pytest.mark.parametrize("loss", ["quadratic", "logistic", "poisson"])
@pytest.mark.parametrize("intercept", [True, False])
def test_where_no_limit_is_met_a_summary_is_that_of_the_textbook(loss, intercept, sm):
    A, y = data(loss)
    problem = Problem.prepared(A, y, 3, loss=loss, lam=TINY, intercept=intercept)
    within = with_bounds(problem, np.full(6, -10.0), np.full(6, 10.0))
    result = solve(within, **QUIET)
    told, free = result.summary(), solve(problem, **QUIET).summary()
    exog = A[:, list(result.support)]
    exog = sm.add_constant(exog) if intercept else exog
    family = {"logistic": sm.families.Binomial(), "poisson": sm.families.Poisson()}
    target = (y > 0).astype(float) if loss == "logistic" else y
    fit = sm.OLS(y, exog).fit() if loss == "quadratic" else sm.GLM(target, exog, family=family[loss]).fit(tol=1e-12)
    rows = told.parameters
    np.testing.assert_allclose([row.coef for row in rows], fit.params, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose([row.error for row in rows], fit.bse, rtol=1e-5)
    np.testing.assert_allclose([row.p_value for row in rows], fit.pvalues, rtol=1e-3, atol=1e-12)
    assert told.df_residual == fit.df_resid
    assert told.deviance == pytest.approx(free.deviance)
    assert (told.aic, told.df_model) == (pytest.approx(free.aic), free.df_model)
    assert any("account for the limits" in text for text in told.warnings)
    assert not any("At a limit" in text for text in told.warnings)


@pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic", "poisson"])
@pytest.mark.parametrize("options", [{}, {"intercept": True, "weights": np.arange(1.0, 81.0)}, {"scale": True}])
def test_where_no_limit_is_met_a_summary_is_that_of_the_same_model_without_limits(loss, options):
    A, y = data("quadratic" if loss == "huber" else loss)
    problem = Problem.prepared(A, y, 3, loss=loss, lam=0.3, **options)
    free = solve(problem, **QUIET).summary()
    signs = [(j, -np.inf, 0.0) if x < 0 else (j, 0.0, np.inf) for j, x in enumerate(problem.fit(range(6)).coef)]
    told = solve(boxed(problem, (), signs), **QUIET).summary()
    assert [row.column for row in told.parameters] == [row.column for row in free.parameters]
    for name in ("coef", "error", "statistic", "p_value", "low", "high"):
        ours = [getattr(row, name) for row in told.parameters]
        np.testing.assert_allclose(ours, [getattr(row, name) for row in free.parameters], rtol=1e-5, atol=1e-9)
    for name in (
        "deviance",
        "null_deviance",
        "dispersion",
        "aic",
        "bic",
        "r2",
        "r2_adjusted",
        "mcfadden",
        "df_residual",
    ):
        assert getattr(told, name) == pytest.approx(getattr(free, name), nan_ok=True)


@pytest.mark.parametrize("loss", ["quadratic", "logistic"])
def test_a_coefficient_at_a_limit_has_no_standard_error_and_the_others_those_of_their_fit(loss, sm):
    A, y = data(loss)
    problem = Problem.prepared(A, y, 3, loss=loss, lam=TINY, intercept=True, feature_names=[*"abcdef"])
    result = solve(boxed(problem, (), [("a", 0.0, 0.2), ("b", -0.3, 0.0)]), **QUIET)
    assert {0, 1} <= {*result.support}
    told = result.summary()
    by_name = {row.name: row for row in told.parameters}
    assert (by_name["a"].coef, by_name["b"].coef) == (0.2, -0.3)
    for name in "ab":
        row = by_name[name]
        assert np.all(np.isnan([row.error, row.statistic, row.p_value, row.low, row.high]))
    known = 0.2 * A[:, 0] - 0.3 * A[:, 1]
    third = next(j for j in result.support if j > 1)
    exog = sm.add_constant(A[:, [third]])
    if loss == "quadratic":
        fit = sm.OLS(y - known, exog).fit()
    else:
        fit = sm.GLM((y > 0).astype(float), exog, family=sm.families.Binomial(), offset=known).fit(tol=1e-12)
    free = [by_name["(intercept)"], by_name["abcdef"[third]]]
    np.testing.assert_allclose([row.coef for row in free], fit.params, rtol=1e-5)
    np.testing.assert_allclose([row.error for row in free], fit.bse, rtol=1e-5)
    assert told.df_residual == fit.df_resid == 78
    assert told.df_model == 3
    assert any(text.startswith("At a limit, and so without standard errors: a, b.") for text in told.warnings)
    assert told.as_dict()["parameters"][1]["error"] is None
    assert "nan" in str(told)


def test_statsmodels_is_asked_only_where_it_would_fit_the_same_model():
    A, y = data()
    with pytest.raises(UnsupportedError, match="statsmodels fits without a ridge"):
        solve(boxed(Problem(A, y, 2, lam=0.1), "all"), **QUIET).to_statsmodels()


def test_all_coefficients_at_limits_leave_nothing_to_estimate():
    A, y = data()
    result = solve(boxed(Problem(A, y, 2, lam=0.1), (), [(j, -0.01, 0.01) for j in range(6)]), **QUIET)
    told = result.summary()
    assert told.df_residual == 80
    assert all(np.isnan(row.error) for row in told.parameters)
    assert "depend on each other" not in str(told)


def test_the_commands(tmp_path):
    A, y = data()
    path = tmp_path / "data.npz"
    np.savez(path, A=A, y=y, k=3, lam=0.5, feature_names=np.array([*"abcdef"]))

    def run(*arguments):
        done = CliRunner().invoke(cli, [str(each) for each in arguments])
        assert done.exit_code == 0, done.output
        return done.stdout

    told = json.loads(run("compare", path, "--nonnegative", "all", "--json"))
    assert "forward" in [row["method"] for row in told["methods"]]
    assert told["exact"]["quality"]["r2"] > 0.2
    assert json.loads(run("solve", path, "--method", "swap", "--nonnegative", "all", "--json"))["method"] == "swap"
    assert "account for the limits" in run("best", path, "--nonnegative", "all", "--summary")
    within = boxed(Problem(A, y, 3, lam=0.5), "all")
    assert best_model(within, **QUIET).summary().parameters[0].error > 0


def test_bounds_of_a_column_that_is_not_there():
    problem = Problem(np.eye(3), np.ones(3), 1, lam=1.0)
    with pytest.raises(InputError) as told:
        boxed(problem, bounds=[("nope", 0.0, 1.0)])
    assert str(told.value) == "bounds names 'nope', but no feature is called that; give the feature's number."


def test_none_is_no_limit():
    A, y = np.random.default_rng(3).normal(size=(20, 3)), np.arange(20.0)
    problem = Problem(A, y, 2, lam=1.0)
    none = boxed(problem, bounds=[(0, None, 0.5), (1, 0.0, None)])
    assert none.hash == boxed(problem, bounds=[(0, -np.inf, 0.5), (1, 0.0, np.inf)]).hash
