"""Models with factors or a formula predict from rows as the table has them, through every door."""

from __future__ import annotations

import json

import numpy as np
import pytest

from exactsel import InputError, Model, best_model, near_optimal, solve, solve_path
from exactsel.problem.coded_formula import formulaic_state, plain_state

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulaic")

RNG = np.random.default_rng(11)
N = 90
FRAME = pandas.DataFrame(
    {
        "age": RNG.normal(50.0, 9.0, N),
        "bmi": RNG.normal(size=N),
        "doors": RNG.choice([2, 3, 4], N),
        "city": RNG.choice(["Aachen", "Bonn", "Ulm"], N),
        "not used": [None] * N,
    }
)
SIGNAL = 0.05 * (FRAME["age"] - 50.0) + FRAME["bmi"] * (FRAME["city"] == "Ulm") + 0.5 * (FRAME["doors"] == 3)
FRAME["y"] = SIGNAL + 0.3 * RNG.normal(size=N)
FRAME["class"] = np.where(SIGNAL + RNG.normal(size=N) > 0.0, 1.0, -1.0)
FRAME["count"] = RNG.poisson(np.exp(0.3 * SIGNAL)).astype(float)
LOSSES = {
    "y": ({"lam": 0.01}, lambda z: z),
    "class": ({"loss": "logistic", "lam": 0.1}, lambda z: 1.0 / (1.0 + np.exp(-z))),
    "count": ({"loss": "poisson", "lam": 0.1}, np.exp),
}
TEXTS = (
    "age*city + poly(bmi, 3) + C(doors) + I(age**2)",
    "bs(age, df=4) + center(bmi):city + scale(bmi) + doors",
    "C(city, contr.sum):age + cr(bmi, df=4) + standardize(age) + C(doors):bmi",
)
RAW = FRAME[["age", "bmi", "doors", "city"]]
NEW = {"age": [40.0, 61.0], "bmi": [0.5, -1.0], "doors": [3, 2], "city": ["Ulm", "Bonn"]}


@pytest.mark.parametrize(
    ("target", "intercept", "standardize"),
    [  # every two of them together
        ("y", True, True), ("y", False, False), ("class", True, False), ("class", False, True),
        ("count", True, True), ("count", False, False),
    ],
)  # fmt: skip
def test_predictions_of_the_rows_of_the_fit_are_the_fitted_values(target, intercept, standardize, tmp_path):
    more, link = LOSSES[target]
    more = {**more, "fit_intercept": intercept, "standardize": standardize}
    results = [solve(FRAME, formula=f"{target} ~ {text}", k=3, **more) for text in TEXTS]
    results.append(solve(RAW, FRAME[target], 3, factors=["city", "doors"], **more))
    for result in results:
        assert link(result.predict(RAW)) == pytest.approx(result.fittedvalues, abs=1e-9)
        assert result.model.predict(RAW.iloc[::-1])[::-1] == pytest.approx(result.predict(RAW), abs=1e-12)
        result.model.save(tmp_path / "m.json")
        assert np.array_equal(Model.load(tmp_path / "m.json").predict(RAW), result.predict(RAW))
        assert json.loads(result.to_json())["coding"]["columns"]


def test_every_door_predicts():
    text = "y ~ age*city + C(doors)"
    at_most = solve(FRAME, formula=text, k=3).predict(RAW)
    path = solve_path(FRAME, formula=text, k=3, signals=())
    assert path.results[-1].predict(RAW) == pytest.approx(at_most, abs=1e-9)
    best = best_model(FRAME, formula=text, criterion="bic", signals=())
    assert best.result.predict(RAW) == pytest.approx(best.result.fittedvalues, abs=1e-9)
    factors = best_model(RAW, FRAME["y"], factors="auto", signals=())
    assert factors.result.predict(RAW) == pytest.approx(factors.result.fittedvalues, abs=1e-9)
    assert near_optimal(FRAME, formula=text, k=2, tau=0.1, signals=()).models


@pytest.mark.parametrize("how", [{"factors": "auto"}, {"formula": "~ age*bmi + city + C(doors)"}])
def test_any_kind_of_table_will_do(how):
    model = solve(RAW, FRAME["y"], 4, **how).model
    expected = model.predict(pandas.DataFrame(NEW))
    polars = pytest.importorskip("polars")
    assert model.predict(polars.DataFrame(NEW)) == pytest.approx(expected)
    assert model.predict(NEW) == pytest.approx(expected)
    assert model.predict({name: values[0] for name, values in NEW.items()}) == pytest.approx(expected[:1])
    assert model.predict(pandas.DataFrame(NEW).astype({"city": "category"})) == pytest.approx(expected)


def test_only_the_columns_of_chosen_terms_are_needed():
    for how in ({"factors": "auto"}, {"formula": "~ age + bmi + city + log(doors)"}):
        result = solve(RAW, FRAME["y"], 1, **how)
        (needed,) = result.feature_names
        assert result.predict({needed: FRAME[needed]}) == pytest.approx(result.predict(RAW), abs=1e-12)
        with pytest.raises(InputError, match=f"the model needs the column '{needed}', but no column of the 1"):
            result.predict({"other": FRAME[needed]})


def test_a_level_that_no_row_of_the_fit_has_is_refused_by_name():
    by_factors = solve(RAW, FRAME["y"], 4, factors=["city", "doors"])
    for result in (by_factors, solve(FRAME, formula="y ~ city + age:city + bmi", k=3)):
        with pytest.raises(InputError, match="the factor city has the level Rom, which no row of the fit has"):
            result.predict({**NEW, "city": ["Ulm", "Rom"]})
        with pytest.raises(InputError, match="the factor city has 1 missing values"):
            result.predict({**NEW, "city": ["Ulm", None]})
        with pytest.raises(InputError, match=r"the factor city has the level 3.0, .* its levels are Aachen, Bonn, Ulm"):
            result.predict({**NEW, "city": [3, 4]})
    with pytest.raises(InputError, match="the factor doors has the level 7"):
        by_factors.predict({**NEW, "doors": [3, 7]})
    with pytest.raises(InputError, match=r"a factor of C\(doors\) has the level 7, which no row of the fit has"):
        solve(FRAME, formula="y ~ C(doors)", k=1).predict({"doors": [7, 3]})


def test_rows_a_formula_has_no_value_for_are_refused():
    result = solve(FRAME, formula="y ~ log(age)", k=1)
    with pytest.raises(InputError, match=r"the term log\(age\) has no finite value in row 1 of the rows to predict"):
        result.predict({"age": [1.0, 0.0]})
    with pytest.raises(InputError, match=r"in the rows to predict, column age \(1 missing\) has missing values"):
        result.predict({"age": [1.0, None]})
    spline = solve(FRAME, formula="y ~ bs(age, df=4)", k=1)
    with pytest.raises(InputError, match="cannot be evaluated for the rows to predict"):
        spline.predict({"age": [1e6]})


def test_a_level_left_out_counts_as_the_reference():
    result = solve(RAW, FRAME["y"], 3, factors="auto", drop=["city[Ulm]"])
    assert result.predict(RAW) == pytest.approx(result.fittedvalues, abs=1e-12)


def test_an_offset_is_no_column_of_the_model():
    frame = FRAME.assign(known=RNG.normal(size=N))
    result = solve(frame, formula="y ~ age + city", k=2, offset="known")
    assert result.predict(RAW) + frame["known"].to_numpy() == pytest.approx(result.fittedvalues, abs=1e-9)


def test_a_large_power_of_whole_numbers_is_one_of_doubles():
    frame = pandas.DataFrame({"a": RNG.integers(1, 90, N), "y": FRAME["y"]})
    result = solve(frame, formula="y ~ I(a**12)", k=1, standardize=True)
    assert result.predict(frame) == pytest.approx(result.fittedvalues, abs=1e-9)
    assert result.coef[0] == pytest.approx(np.polyfit(frame["a"].astype(float) ** 12, FRAME["y"], 1)[0], rel=1e-6)


def test_a_state_is_plain_data_or_refused(tmp_path):
    state = {"knots": [1.0, np.float64(2.0)], "norms": {0: np.float64(1.5), 1: 2}, "at": np.array([1.0]), "by": None}
    plain = json.loads(json.dumps(plain_state(state)))
    back = formulaic_state(plain)
    assert (back["knots"], back["norms"], back["by"]) == ([1.0, 2.0], {0: 1.5, 1: 2}, None)
    assert np.array_equal(back["at"], [1.0])
    for odd in (object(), {"a": lambda: 1}, float("nan"), [b"x"]):
        with pytest.raises(TypeError):
            plain_state(odd)


def test_a_state_that_cannot_be_written_is_refused_where_it_is_needed(tmp_path, monkeypatch):
    def refuse(value):
        raise TypeError

    monkeypatch.setattr("exactsel.problem.coded_formula.plain_state", refuse)
    result = solve(FRAME, formula="y ~ center(bmi)", k=1)
    with pytest.raises(InputError, match=r"what center\(bmi\) has found .* cannot be evaluated for other rows"):
        result.predict(RAW)
    with pytest.raises(InputError, match=r"what center\(bmi\) has found .* cannot be written"):
        result.model.save(tmp_path / "m.json")


def test_a_damaged_or_hostile_model_is_refused(tmp_path):
    file = tmp_path / "m.json"
    solve(FRAME, formula="y ~ poly(bmi, 2) + city", k=2).model.save(file)
    sound = json.loads(file.read_bytes())
    coding = sound["coding"]
    wrong = [
        {**coding, "columns": coding["columns"][1:]}, {**coding, "columns": [{"formula": 99}] * len(coding["columns"])},
        {**coding, "formula": {**coding["formula"], "state": {"poly(bmi, 2)": {"pickle": "x"}}}},
        {**coding, "factors": [1]}, {**coding, "factors": {"city": {"levels": [[]], "reference": None}}}, 3,
        {**coding, "columns": [{"column": "city", "level": "u"}] * len(coding["columns"])},
    ]  # fmt: skip
    for held in wrong:
        file.write_text(json.dumps({**sound, "coding": held}))
        with pytest.raises(InputError, match="is a damaged model"):
            Model.load(file)
    text = "__import__('os').system('true')"
    file.write_text(json.dumps({**sound, "coding": {**coding, "formula": {**coding["formula"], "text": text}}}))
    with pytest.raises(InputError, match=r"is no formula|which formulas may not"):
        Model.load(file).predict(RAW)


def test_a_mapping_goes_with_names_alone():
    named = solve(RAW[["age", "bmi"]], FRAME["y"], 2)
    assert named.predict({"bmi": FRAME["bmi"], "age": FRAME["age"]}) == pytest.approx(named.fittedvalues, abs=1e-9)
    with pytest.raises(InputError, match="the model has no names of features"):
        solve(RAW[["age", "bmi"]].to_numpy(), FRAME["y"], 2).predict({"age": [1.0]})
    with pytest.raises(InputError, match="column 'bmi' has the shape"):
        named.predict({"age": [1.0, 2.0], "bmi": [1.0]})
