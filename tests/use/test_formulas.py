"""Formulas: terms, their heredity, and what formulas may not do, from the text to the result."""

from __future__ import annotations

import json
from itertools import combinations

import numpy as np
import pytest

from exactsel import InputError, best_model, load, solve
from exactsel.cli.main import main

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulaic")

RNG = np.random.default_rng(23)
N = 60
FRAME = pandas.DataFrame(
    {
        "age": RNG.normal(size=N),
        "bmi": RNG.normal(size=N),
        "bp": RNG.normal(size=N),
        "site": RNG.choice(["u", "v", "w"], N),
        "not used": [None] * N,
    }
)
FRAME["y"] = FRAME["age"] * (1.0 + FRAME["bmi"]) + (FRAME["site"] == "w") + 0.4 * RNG.normal(size=N)
TEXT = "y ~ (age + bmi + bp)^2 + C(site) + I(age**2)"
SITES = pandas.get_dummies(FRAME["site"]).to_numpy(dtype=float)[:, 1:]
TERMS = {
    "age": FRAME[["age"]],
    "bmi": FRAME[["bmi"]],
    "bp": FRAME[["bp"]],
    "C(site)": SITES,
    "I(age ** 2)": FRAME["age"] ** 2,
    "age:bmi": FRAME["age"] * FRAME["bmi"],
    "age:bp": FRAME["age"] * FRAME["bp"],
    "bmi:bp": FRAME["bmi"] * FRAME["bp"],
}
PARENTS = {
    "I(age ** 2)": {"age"},
    "age:bmi": {"age", "bmi"},
    "age:bp": {"age", "bp"},
    "bmi:bp": {"bmi", "bp"},
}


def half_rss(terms):
    parts = [np.ones(N), *(np.asarray(TERMS[name], dtype=float) for name in terms)]
    matrix, y = np.column_stack(parts), FRAME["y"].to_numpy()
    return 0.5 * float(np.sum((y - matrix @ np.linalg.lstsq(matrix, y, rcond=None)[0]) ** 2)), matrix.shape[1]


def allowed(k):
    """Every set of k terms with all parents."""
    return [terms for terms in combinations(TERMS, k) if all(PARENTS.get(name, set()) <= {*terms} for name in terms)]


def test_the_best_terms_that_keep_heredity():
    for k in range(1, 6):
        result = solve(FRAME, formula=TEXT, k=k)
        assert set(result.problem["feature_names"]) == {*TERMS}
        assert result.reached
        best = min(half_rss(terms)[0] for size in range(1, k + 1) for terms in allowed(size))
        assert result.upper == pytest.approx(best, rel=1e-9)


def test_the_best_by_a_criterion():
    values = []
    for k in range(len(TERMS) + 1):
        for terms in allowed(k):
            value, columns = half_rss(terms)
            values.append(N * (np.log(4 * np.pi * value / N) + 1) + (columns + 1) * np.log(N))
    found = best_model(FRAME, formula=TEXT, top=5, signals=())
    assert [model.criterion for model in found.models] == pytest.approx(sorted(values)[:5], abs=1e-7)
    assert found.reached
    assert found.complete


def test_the_command_line_says_the_same(tmp_path, capsys):
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    for words, found in (
        (["solve", "-k", "3"], solve(FRAME, formula=TEXT, k=3).upper),
        (["best"], best_model(FRAME, formula=TEXT, signals=()).value),
    ):
        with pytest.raises(SystemExit) as ended:
            main([words[0], str(tmp_path / "t.csv"), "--formula", TEXT, *words[1:], "--json"])
        assert ended.value.code == 0
        told = json.loads(capsys.readouterr().out)
        assert told["upper" if words[0] == "solve" else "value"] == pytest.approx(found, rel=1e-12)


def test_an_intercept_is_the_formulas():
    with_one = solve(FRAME, formula="y ~ age + bmi", k=2)
    without = solve(FRAME, formula="y ~ 0 + age + bmi", k=2)
    assert with_one.problem["intercept"]
    assert not without.problem["intercept"]
    assert without.upper == solve(FRAME, formula="y ~ age + bmi - 1", k=2).upper
    assert without.upper == solve(FRAME, formula="y ~ age + bmi", k=2, intercept=False).upper
    assert load(FRAME, formula="y ~ site - 1", k=1).describe()["column_names"] == ("site[u]", "site[v]", "site[w]")


def test_names_parents_and_the_dot():
    told = load(FRAME.drop(columns="not used"), formula="y ~ .", k=4).describe()
    assert told["feature_names"] == ("age", "bmi", "bp", "site")
    told = load(FRAME, formula="~ age*bmi*bp + I(age**2) + I(age**3) + site:age", target="y", k=3).describe()
    names = told["feature_names"]
    parents = {names[j]: {names[i] for i in above} for j, above in told["hierarchy"]["parents"]}
    assert parents["age:bmi:bp"] == {"age:bmi", "age:bp", "bmi:bp"}
    assert parents["I(age ** 3)"] == {"I(age ** 2)"}
    assert parents["I(age ** 2)"] == {"age"}
    free = load(FRAME, formula=TEXT, k=3, hierarchy={})
    assert free.describe()["hierarchy"] is None


def test_weights_an_offset_and_gaps_go_with_it():
    weights, offset = RNG.choice([0.5, 1.0, 2.0], N), RNG.normal(size=N)
    plain = FRAME[["age", "bmi"]].assign(**{"age:bmi": FRAME["age"] * FRAME["bmi"]})
    for more in ({"weights": weights}, {"offset": offset}):
        one = solve(FRAME, formula="y ~ age*bmi", k=3, **more)
        assert one.upper == pytest.approx(solve(plain, FRAME["y"], 3, **more).upper, rel=1e-12)
    gaps = FRAME.assign(age=FRAME["age"].where(np.arange(N) % 7 != 0))
    with pytest.raises(InputError, match=r"column age \(9 missing\) has missing values"):
        solve(gaps, formula="y ~ age*bmi", k=2)
    with pytest.warns(UserWarning, match="9 of 60 rows are left out"):
        result = solve(gaps, formula="y ~ age*bmi", k=2, missing="drop-rows")
    kept = np.arange(N) % 7 != 0
    assert result.upper == pytest.approx(solve(FRAME[kept], formula="y ~ age*bmi", k=2).upper, rel=1e-12)


def test_a_target_beside_a_formula():
    result = solve(FRAME.drop(columns="y"), FRAME["y"], 2, formula="~ age + bmi + bp")
    assert result.upper == solve(FRAME, formula="y ~ age + bmi + bp", k=2).upper
    labels = FRAME.assign(y=np.where(FRAME["y"] > 0, "yes", "no"))
    with pytest.warns(UserWarning, match="'no' is read as -1"):
        assert solve(labels, formula="y ~ age + site", k=1, loss="logistic", lam=0.1).reached
    with pytest.raises(InputError, match="begin the formula with ~"):
        load(FRAME, formula="y ~ age", target="bmi", k=1)
    with pytest.raises(InputError, match="begin the formula with ~"):
        solve(FRAME.drop(columns="y"), FRAME["y"], 2, formula="y ~ age + bmi")


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("y ~ __import__('os').system('true')", "is no formula|which formulas may not"),
        ("y ~ I(__import__('os').getpid())", "which formulas may not"),
        ("y ~ np.load('x')", "which formulas may not"),
        ("y ~ I(age.__class__)", "which formulas may not"),
        ("y ~ I([x for x in age])", "which formulas may not"),
        ("y ~ {(lambda: age)()}", "which formulas may not"),
        ("y ~ I(9**9**9**9)", "which formulas may not"),
        ("y ~ poly(age, 1000000)", "which formulas may not"),
        ("y ~ eval('age')", "which formulas may not"),
        ("y ~ lag(age)", "which formulas may not"),
        ("y ~ bmi + offset(age)", 'holds an offset, .* leave it out and give offset="age"'),
        ("y ~ bmi + offset(log(age))", r"leave it out and give a column of log\(age\) as offset"),
        ("y ~ factor(site)", r"holds factor\(site\), which is C\(site\) here"),
        ("y ~ wage", "names 'wage', but no column is called that; did you mean 'age'"),
        ("y ~ age +", "is no formula"),
        ("y ~ age | bmi", "several parts"),
        ("3 ~ age", "but a column or an expression of columns was expected"),
        ("log(y) ~ age", "has no finite value in"),
        ("log(y) ~ y + age", "has 'y' on both sides"),
        ("poly(age, 2) ~ bmi", "has 2 columns, but one was expected"),
        ("log(wage) ~ bmi", "names 'wage', but no column is called that; did you mean 'age'"),
        ("log(site) ~ bmi", r"column site \(.*\) holds text"),
        ("y ^ 2 ~ bmi", r"holds y \^ 2, which is y\*\*2 here"),
        ("y ~ 1", "no term beside the intercept"),
    ],
)
def test_what_is_no_formula_is_refused(text, match):
    with pytest.raises(InputError, match=match):
        solve(FRAME, formula=text, k=1)


def test_the_left_side_is_any_expression_of_columns():
    frame = FRAME.assign(pay=np.exp(FRAME["y"]), half=2.0)
    for text, values in (
        ("log(pay)", FRAME["y"]), ("pay / half - 1", frame["pay"] / 2.0 - 1.0), ("np.sqrt(pay)", frame["pay"] ** 0.5),
    ):  # fmt: skip
        for more in ({}, {"loss": "huber", "delta": 0.7, "lam": 0.1}):
            result = solve(frame, formula=f"{text} ~ age*bmi + site", k=4, **more)
            expected = solve(frame.assign(z=values), formula="z ~ age*bmi + site", k=4, **more)
            assert result.upper == pytest.approx(expected.upper, rel=1e-12)
            assert result.predict(frame) == pytest.approx(result.fittedvalues, abs=1e-9)
            assert result.problem["left_side"] == text
            assert f"the target is {text}" in str(result)
            assert ("target", text) in result.summary().facts()
    assert "the target is" not in str(expected)
    dot = frame[["age", "bmi", "pay", "half"]]
    assert load(dot, formula="log(pay / half) ~ .", k=1).feature_names == ("age", "bmi")


def test_rows_without_a_left_side_are_left_out():
    frame = FRAME.assign(pay=np.exp(FRAME["y"]).where(np.arange(N) % 9 != 0))
    with pytest.raises(InputError, match="the target log\\(pay\\) has 7 missing values"):
        solve(frame, formula="log(pay) ~ age", k=1)
    with pytest.warns(UserWarning, match="7 of 60 rows are left out"):
        result = solve(frame, formula="log(pay) ~ age", k=1, missing="drop-rows")
    kept = FRAME[np.arange(N) % 9 != 0]
    assert result.upper == pytest.approx(solve(kept, formula="y ~ age", k=1).upper, rel=1e-12)


def test_the_left_side_on_the_command_line(tmp_path, run):
    FRAME.assign(pay=np.exp(FRAME["y"])).to_csv(tmp_path / "t.csv", index=False)
    told = run("solve", tmp_path / "t.csv", "--formula", "log(pay) ~ age*bmi", "-k", 3)
    assert told.code == 0
    assert "predicts log(pay)" in told.out
    assert (
        run("solve", tmp_path / "t.csv", "--formula", "log(pay) ~ age", "-k", 1, "--json").json["left_side"]
        == "log(pay)"
    )


def test_formulas_are_of_tables(tmp_path):
    np.savez(tmp_path / "i.npz", A=np.eye(3), y=np.ones(3))
    with pytest.raises(InputError, match="formula is for tables with named columns"):
        load(tmp_path / "i.npz", formula="y ~ a", k=1)


@pytest.mark.parametrize("power", ["30", "1000000", "9" * 40])
def test_powers_of_terms_are_multiplied_until_no_new_term_comes(power):
    plain = solve(FRAME, formula="y ~ (age + bmi + bp)^3", k=4)
    assert solve(FRAME, formula=f"y ~ (age + bmi + bp)**{power}", k=4).support == plain.support
    assert solve(FRAME, formula=f"y ~ age**{power}", k=1).feature_names == ("age",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("y ~ " + "*".join(f"v{j}" for j in range(40)), "at most 10000 products of terms can be served"),
        ("y ~ (age + bmi)^1.5", "takes '1.5' for a power of terms, but a whole number from 1 was expected"),
        ("y ~ bs(age, df=10**8)", "which formulas may not"),
        ("y ~ bs(age, df=5 * 30)", "which formulas may not"),
        ("y ~ I('a' * 10**10)", "which formulas may not"),
        ("y ~ bs(age, knots=[0.0] * 10**9)", "which formulas may not"),
        ("y ~ I(age + ((((9**100)**100)**100)**100)**100)", "which formulas may not"),
        ("y ~ I(age @ bmi)", r"holds 'age @ bmi', which formulas may not"),
        ("y ~ y + age", "has 'y' on both sides; leave it out on the right"),
    ],
)
def test_what_would_take_all_memory_or_time_is_refused_beforehand(text, said):
    with pytest.raises(InputError, match=said):
        solve(FRAME, formula=text, k=1)


def test_knots_are_in_units_of_their_column():
    frame = FRAME.assign(weight=1000.0 * (3.0 + FRAME["age"]))
    text = "y ~ bs(weight, knots=[2500, 3500]) + bmi"
    assert "bmi" in solve(frame, formula=text, k=2).feature_names


def test_a_message_shows_no_more_of_a_formula_than_is_read():
    with pytest.raises(InputError) as caught:
        solve(FRAME, formula="y ~ " + "a" * 100_000, k=1)
    assert len(str(caught.value)) < 300
