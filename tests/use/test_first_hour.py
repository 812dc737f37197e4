"""What people meet in their first hour: everyday tables, and the mistakes that are made with them."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import exactsel
from exactsel import DataWarning, InputError, Problem, UnsupportedError, solve

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
    with pytest.warns(DataWarning, match="column price holds the same numbers as the target"):
        solve(HOUSES, PRICE, k=1, factors="auto")
    with pytest.warns(DataWarning, match="column 1 holds the same"):
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
    assert "predictions with an offset" in text
    assert "weighted" not in text
    both = Problem.prepared(table, COUNTS, sample_weight=weights, **how)
    assert [both.describe()[name] for name in ("offset", "weights")] == [True, True]
    assert "weighted" in both.objective.text
    least_squares = Problem.prepared(table, PRICE, k=1, offset=np.log(exposure))
    assert [least_squares.describe()[name] for name in ("offset", "weights")] == [True, False]
    assert not Problem.prepared(table, PRICE, k=1).describe()["offset"]
