"""What people meet in their first hour: everyday tables, and the mistakes that are made with them."""

from __future__ import annotations

import json
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import exactsel
from exactsel import DataWarning, InputError, Problem, UnsupportedError, solve
from exactsel.cli.main import main
from exactsel.errors import did_you_mean

N = 40
RNG = np.random.default_rng(3)
SIZE, AGE = RNG.normal(90.0, 30.0, N).round(1), RNG.integers(0, 99, N).astype(float)
HOUSES = pd.DataFrame(
    {
        "size": SIZE, "age": AGE, "city": ["Bern", "Genf", "Basel", "Chur"] * (N // 4), 
        "price": 2000.0 * SIZE - 800.0 * AGE + RNG.normal(0.0, 9.0, N),
    }
)  # fmt: skip
X, PRICE = HOUSES.drop(columns="price"), HOUSES["price"]
COUNTS = RNG.poisson(np.exp(0.02 * (SIZE - 90.0)))


def test_dates_beside_gaps_are_refused_in_a_sentence():
    frame = X.assign(sold=pd.date_range("2020-01-01", periods=N), age=[np.nan, *AGE[1:]])
    with pytest.warns(DataWarning, match="1 of 40"), pytest.raises(InputError, match=r"sold holds dates; .*drop="):
        solve(frame, PRICE, k=2, factors="auto", missing="drop-rows")
    with pytest.warns(DataWarning, match="1 of 40 rows"):
        result = solve(frame, PRICE, k=2, factors="auto", missing="drop-rows", drop=["sold"])
    assert result.feature_names == ("size", "age")


def test_a_constant_column_beside_factors_and_an_intercept_is_left_out():
    frame = X.assign(one=1.0)
    with pytest.warns(DataWarning, match="column one has one value and is left out"):
        result = solve(frame, PRICE, k=2, factors="auto")
    assert result.feature_names == ("size", "age")
    assert "one" not in result.column_names
    np.testing.assert_allclose(result.predict(frame), PRICE, atol=50.0)
    alone = solve(frame, PRICE, k=1, factors="auto", fit_intercept=False, lam=0.1)
    assert "one" in alone.column_names


def test_a_constant_offset_stays_beside_factors():
    frame = X.assign(exposure=0.5)
    result = solve(frame, COUNTS, k=1, factors="auto", loss="poisson", lam=0.01, offset="exposure")
    assert result.reached


@pytest.mark.parametrize("beside", [{"one": 1.0}, {"twice": 2.0 * SIZE}])
def test_dependent_terms_are_named(beside):
    frame = HOUSES.assign(**beside)
    name = next(iter(beside))
    formula = f"price ~ C(city) + size + age + {name}"
    with pytest.raises(UnsupportedError, match=rf"dependent, such as ({name}|size); .*leave out"):
        solve(frame, formula=formula, k=2)


def test_the_target_among_the_columns_is_told():
    with pytest.warns(DataWarning, match="feature price holds the same numbers as the target"):
        solve(HOUSES, PRICE, k=1, factors="auto")
    with pytest.warns(DataWarning, match="feature 1 holds the same"):
        exactsel.solve_path(np.column_stack([AGE, PRICE]), PRICE, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solve(X[["size", "age"]], PRICE, k=1)


def test_an_offset_is_called_an_offset():
    weights = np.arange(1.0, N + 1.0)
    table, exposure = X[["size", "age"]], RNG.uniform(0.5, 2.0, N)
    how = {"k": 1, "loss": "poisson", "lam": 0.01, "offset": np.log(exposure), "fit_intercept": True}
    problem = Problem.prepared(table, COUNTS, **how)
    text = str(solve(problem)) + problem.objective.text
    assert "a given offset is added to each prediction" in text
    assert "weighted" not in text
    both = Problem.prepared(table, COUNTS, sample_weight=weights, **how)
    assert [both.describe()[name] for name in ("offset", "weights")] == [True, True]
    assert "weighted" in both.objective.text
    least_squares = Problem.prepared(table, PRICE, k=1, offset=np.log(exposure))
    assert [least_squares.describe()[name] for name in ("offset", "weights")] == [True, False]
    assert not Problem.prepared(table, PRICE, k=1).describe()["offset"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"family": "gaussian"}, "'family' is no option here; give loss, which is quadratic for gaussian"),
        ({"target": "price"}, r"'target' is no option here; give the numbers to predict, as in solve\(X, y, k=5\)"),
        ({"loss": "gaussian"}, "no loss called 'gaussian'; .*; 'gaussian' is 'quadratic' here"),
        ({"loss": "binomial"}, "'binomial' is 'logistic' here"),
        ({"loss": "poisson"}, "give lam=0 for none, as in R, or lam=1 to begin with"),
        ({"factors": "auto", "offset": [-np.inf] * N}, "^offset holds 40 infinite values, as the logarithm of an expo"),
        ({"factors": "auto", "offset": [0.0] * 3}, r"^offset has the shape \(3,\), but 40 numbers"),
    ],
)
def test_words_of_other_programs_are_answered(options, sentence):
    with pytest.raises(InputError, match=sentence):
        solve(X if "factors" in options else X[["size", "age"]], COUNTS * 1.5, k=1, **options)


def test_targets_that_are_none_are_refused_by_their_name():
    with pytest.raises(InputError, match=r"^y has the shape \(3,\), but 40 numbers were expected"):
        solve(X, PRICE.to_numpy()[:3], k=1, factors="auto")
    with pytest.raises(InputError, match=r"^y has the shape \(40, 2\), .*; solve_targets takes several targets"):
        solve(X, np.column_stack([PRICE, AGE]), k=1, factors="auto")
    with pytest.raises(InputError, match="the target holds text with 4 different values"):
        solve(X, X["city"], k=1, factors="auto")
    classes = ["no", "yes"] * (N // 2)
    with pytest.raises(InputError, match=r'^y is not numeric; .*, or give loss="logistic" for two classes'):
        solve(X[["size", "age"]], classes, k=1)
    with pytest.warns(DataWarning, match="text"):
        assert solve(X[["size", "age"]], classes, k=1, loss="logistic", lam=0.1).gap <= 1e-6
    with pytest.raises(InputError, match=r'^A is not numeric; .*, or give a data frame with factors="auto"'):
        solve(X.to_numpy(), PRICE, k=1)


def test_the_loss_proposed_for_counts_needs_no_ridge():
    counts = np.random.default_rng(5).poisson(2.0, N)
    with pytest.warns(DataWarning, match='give loss="poisson", lam=0, or'):
        solve(X[["size", "age"]], counts, k=1)
    assert solve(X[["size", "age"]], counts, k=1, loss="poisson", lam=0).reached


def test_rows_of_text_without_names_are_refused_by_a_model_with_factors():
    result = solve(X, PRICE, k=2, factors="auto")
    for rows in (X.to_numpy(), [[90.0, 3.0, "Bern"]]):
        with pytest.raises(InputError, match=r"rows to predict hold text, .* give a data frame"):
            result.predict(rows)


def test_validation_errors_are_printed_as_a_table():
    errors = exactsel.cross_validate(X, PRICE, 2, factors="auto")
    lines = str(errors).splitlines()
    assert lines[0].split() == ["k", "lam", "held-out", "loss", "standard", "error"]
    assert [line.split()[0] for line in lines[1:3]] == ["1", "2"]
    assert lines[3].startswith("k = 2, lam = 0: the smallest size")
    assert repr(errors) == "<ValidationErrors of 5 folds, 1 lam, 2 sizes>"


def test_a_perfect_fit_has_no_sign():
    result = solve(X[["size", "age"]], np.full(N, 5.0), k=1)
    assert "-0" not in str(result)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["solv", "x.csv"], "No such command 'solv'; did you mean 'solve'"),
        (["solve", "x.csv", "--family", "gaussian"], "No such option '--family'; it is --loss here."),
        (["best", "x.csv", "--must-have", "size"], "No such option '--must-have'; it is --force-in here."),
        (["solve", "x.csv", "--confint"], "No such option '--confint'; it is --summary here."),
        (["compare", "x.csv", "--methods", "omp"], "No such option '--methods'; it is --heuristic here."),
        (["path", "x.csv", "--summary"], "'--summary'; exactsel solve -k K --summary prints the summary of one model."),
        (["path", "x.csv", "--confint"], "'--confint'; exactsel solve -k K --summary prints the summary of one model."),
        (["best", "houses.csv", "--target", "pirce"], "no column called 'pirce'; did you mean 'price'"),
        (["path", "houses.csv", "--target", "price", "--criterion", "bic"], "use exactsel best --criterion bic for"),
        (
            ["solve", "houses.csv", "--target", "price", "--drop", "city", "-k", "1", "--summary", "--level", "95"],
            "--level is 95.0, but it must be between 0 and 1; give 0.95",
        ),
        (
            ["best", "houses.csv", "--target", "price", "--drop", "city", "--level", "0.9"],
            "--level is about the intervals of --summary, which is not given; add --summary",
        ),
        (
            ["solve", "houses.csv", "--target", "price", "--method", "omp", "--summary"],
            "--summary is about one optimal model; leave out --method",
        ),
        (
            ["certify", "houses.csv", "--target", "price", "--drop", "city", "--support", "sizes"],
            "called 'sizes'; did you mean 'size'; give a number",
        ),
        (
            ["best", "houses.csv"],
            "no column is called y; name the target with --target, unless columns are chosen without one. Column city",
        ),
    ],
)
def test_slips_on_the_command_line_are_answered(arguments, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    HOUSES.to_csv("houses.csv", index=False)
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--not-both", "bmj,age"], "--not-both names 'bmj', but no feature is called that; did you mean 'bmi'"),
        (["--force-in", "bmj"], "--force-in names 'bmj', but no feature is called that; did you mean 'bmi'"),
        (["--force-out", "bmj"], "--force-out names 'bmj', but no feature is called that; did you mean 'bmi'"),
        (["--nonnegative", "bmj"], "--nonnegative names 'bmj', but no feature is called that; did you mean 'bmi'"),
        (["--bounds", "bounds.csv"], "--bounds names 'bmj', but no feature is called that; did you mean 'bmi'"),
        (["--equality", "bmj=1"], "--equality names 'bmj', but no feature is called that; did you mean 'bmi'"),
        (["--hierarchy", "parents.txt"], "--hierarchy names 'bmj', but no feature is called that; did you mean 'bmi'"),
        (["--groups", "g=bmj,age"], "'g' names 'bmj', but no feature is called that; did you mean 'bmi'"),
        (["--groups", "g=bmi,age", "--force-in", "bmj"], "no group or feature is called that; did you mean 'bmi'"),
        (["--groups", "size=bmi,age", "--not-both", "siez,map"], "called that; did you mean 'size'"),
        (["--force-in", "age,bmi,map"], "--force-in names 3 features, but k is 2; raise k or name at most 2"),
        (["--force-in", "age", "--force-out", "age"], "feature 0 is in --force-in and in --force-out; leave it in one"),
    ],
)
def test_every_option_suggests_the_feature_that_is_meant(options, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("age,bmi,map,y\n1,2,3,4\n2,1,5,3\n0,2,2,1\n5,5,1,2\n")
    Path("bounds.csv").write_text("bmj,0,1\n")
    Path("parents.txt").write_text("bmj: age\n")
    with pytest.raises(SystemExit) as ended:
        main(["solve", "t.csv", "-k", "2", *options])
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["path", "--criterion", "l0", "--lams", "1,0.1"],
            "one ridge weight, but there are 2; give one, as --lams 0.1.",
        ),
        (["path", "--criterion", "l0", "--problem", "css"], "but column subset selection has none; give a regression."),
        (["path", "--plot", "path.png"], "pictures need matplotlib; run: pip install"),
        (["path", "--cv", "loo", "--weights", "weights.txt"], "a fold holds out only rows of weight 0"),
        (["solve", "--method", "omp", "--level", "0.9"], "--level is about one optimal model; leave out --method"),
        (
            ["best", "--criterion", "objective", "--within", "1", "--level", "0.9"],
            "but --level is given; leave it out.",
        ),
    ],
)
def test_refusals_come_before_the_search(arguments, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    HOUSES[["size", "age", "price"]].to_csv("houses.csv", index=False)
    np.savetxt("weights.txt", np.arange(float(N)))
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setattr("exactsel.studies.path.solve_path", None)
    command, *options = arguments
    target = [] if "css" in options else ["--target", "price"]
    with pytest.raises(SystemExit) as ended:
        main([command, "houses.csv", *target, "-k", "2", *options])
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, "")
    assert sentence in said.err


def test_a_slip_in_a_short_name_is_answered():
    assert did_you_mean("mgp", ["weight", "mpg"]) == "; did you mean 'mpg'"
    assert did_you_mean("xyz", ["weight", "mpg"]) == ""


def test_solve_shows_intervals_of_a_level(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    HOUSES.to_csv("houses.csv", index=False)
    arguments = ["solve", "houses.csv", "--target", "price", "--drop", "city", "-k", "1", "--quiet", "--summary"]
    with pytest.raises(SystemExit):
        main([*arguments, "--level", "0.9"])
    assert "90 % interval" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main([*arguments, "--json"])
    assert json.loads(capsys.readouterr().out)["summary"]["level"] == 0.95


def test_wide_data_are_told_to_limit_the_sizes_and_then_are_solved():
    rng = np.random.default_rng(2)
    A = rng.normal(size=(12, 20))
    y = 3.0 * A[:, 4] + 0.1 * rng.normal(size=12)
    with pytest.raises(InputError, match=r"a model of \d+ features fits .* exactly.* give k_max=\d+, say") as error:
        exactsel.best_model(A, y)
    limit = int(re.search(r"k_max=(\d+)", str(error.value))[1])
    assert 4 in exactsel.best_model(A, y, k_max=limit).support


def test_certify_compares_with_models_of_the_candidates_size(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    HOUSES.to_csv("houses.csv", index=False)
    with pytest.raises(SystemExit):
        main(["certify", "houses.csv", "--target", "price", "--factors", "auto", "--support", "size,city"])
    assert "all models of at most k = 2 terms" in capsys.readouterr().out


def test_all_products_of_ten_columns_are_read_with_their_parents():
    names = list("abcdefghij")
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(12, 10)), columns=names).assign(y=np.arange(12.0))
    problem = exactsel.load(table, formula=f"y ~ {'*'.join(names)}", k=2, lam=1.0)
    assert problem.d == 2**10 - 1
    kept = dict(problem.describe()["hierarchy"]["parents"])
    sets = [frozenset(name.split(":")) for name in problem.feature_names]
    for child, whole in enumerate(sets):
        wanted = {j for j, part in enumerate(sets) if part < whole and len(part) == len(whole) - 1}
        assert set(kept.get(child, ())) == wanted


def test_powers_and_logarithms_as_in_r_are_answered():
    with pytest.raises(InputError, match=r"holds size \^ 2, which is size\*\*2 here; write that"):
        solve(HOUSES, formula="price ~ age + I(size^2)", k=1)
    with pytest.raises(InputError, match=r"add a column of the logarithms of age to the table, .*drop=\[\"age\"\]"):
        solve(X, COUNTS, k=1, factors="auto", loss="poisson", lam=0.1, offset="log(age)")
