"""What the options of the commands do to data are arguments of ``solve(X, y, k)``: the same problems."""

from __future__ import annotations

import numpy as np
import pytest

from exactsel import InputError, Problem, best_model, boxed, load, solve

pandas = pytest.importorskip("pandas")

RNG = np.random.default_rng(12)
N = 40
FRAME = pandas.DataFrame({"a": RNG.normal(size=N), "b": RNG.normal(size=N), "kind": list("uvwx") * (N // 4)})
Y = 1.5 * FRAME["a"] - FRAME["b"] + 2.0 * (FRAME["kind"] == "w") + 0.3 * RNG.normal(size=N)
NUMBERS = FRAME[["a", "b"]].assign(c=RNG.normal(size=N), d=RNG.normal(size=N))
GAPS = NUMBERS.mask((RNG.random((N, 4)) < 0.15) & np.array([True, False, True, False]))
TOLD = pytest.mark.filterwarnings("ignore:in .*(missing values|left out)")


def test_signs_and_bounds():
    plain = Problem.prepared(NUMBERS, Y, 2, intercept=True)
    for limits in ({"nonnegative": "all"}, {"nonnegative": ["b"]}, {"bounds": [("a", -1.0, 1.0)]}):
        result = solve(NUMBERS, Y, 2, **limits)
        assert result.upper == solve(boxed(plain, **limits)).upper
        assert result.upper > solve(NUMBERS, Y, 2).upper
    assert np.all(solve(NUMBERS, Y, 3, nonnegative="all").coef >= 0.0)
    assert np.all(best_model(NUMBERS, Y, nonnegative="all").result.coef >= 0.0)


def test_categories_become_groups():
    result = solve(FRAME, Y, 2, factors="auto")
    table = load(FRAME.assign(y=Y), factors=["kind"], k=2)
    assert result.upper == solve(table).upper
    assert result.feature_names == solve(table).feature_names


@TOLD
@pytest.mark.parametrize("way", ["drop-rows", "drop-columns", "mean", "median", "mean-indicator"])
def test_gaps(way):
    weights, offset = RNG.choice([0.5, 1.0, 2.0], N), RNG.normal(size=N)
    held = GAPS.assign(y=Y)
    result = solve(GAPS, Y, 2, missing=way)
    assert result.upper == solve(load(held, missing=way, k=2)).upper
    assert solve(GAPS, Y, 2, missing=way, weights=weights).upper == pytest.approx(
        solve(load(held, missing=way, k=2, weights=weights)).upper, rel=1e-12
    )
    assert solve(GAPS, Y, 2, missing=way, offset=offset).upper == pytest.approx(
        solve(GAPS, Y - offset, 2, missing=way).upper, rel=1e-12
    )
    array = solve(GAPS.to_numpy(), Y.to_numpy(), 2, missing=way)
    assert array.upper == result.upper


@TOLD
def test_rows_without_a_target_are_left_out():
    y = Y.mask(np.arange(N) % 7 == 3)
    kept = y.notna().to_numpy()
    result = solve(NUMBERS, y, 2, missing="drop-rows")
    assert result.problem["n"] == kept.sum()
    assert result.upper == pytest.approx(solve(NUMBERS[kept], y[kept], 2).upper, rel=1e-12)


def test_two_classes_of_texts():
    words = np.where(Y.median() < Y, "yes", "no")
    with pytest.warns(UserWarning, match="'no' is read as -1 and 'yes' as \\+1"):
        result = solve(FRAME, words, 1, factors=["kind"], loss="logistic", lam=0.5)
    assert result.reached


def test_what_does_not_fit_is_refused():
    with pytest.raises(InputError, match="must be one of drop-rows"):
        solve(GAPS, Y, 2, missing="somehow")
    with pytest.raises(InputError, match="has no column called 'sort'"):
        solve(FRAME, Y, 2, factors=["sort"])
    with pytest.raises(InputError, match=r"^y has the shape \(39,\), but 40 numbers were expected"):
        solve(GAPS.to_numpy(), Y.to_numpy()[1:], 2, missing="mean")
    with pytest.raises(InputError, match="'nonnegative' is part of a problem"):
        solve(Problem(NUMBERS, Y, 2), nonnegative="all")


def test_an_offset_is_a_column_by_name():
    rng = np.random.default_rng(4)
    frame = pandas.DataFrame(rng.normal(size=(50, 4)), columns=["a", "b", "c", "o"])
    y = frame["a"] - frame["b"] + frame["o"] + 0.1 * rng.normal(size=50)
    named = solve(frame, y, 2, offset="o")
    apart = solve(frame[["a", "b", "c"]], y, 2, offset=frame["o"])
    assert named.feature_names == apart.feature_names == ("a", "b")
    assert named.upper == apart.upper
    categories = frame.assign(c=np.where(frame["c"] > 0, "yes", "no"))
    coded = solve(categories, y, 1, offset="o", factors="auto")
    assert coded.upper == solve(categories.drop(columns="o"), y, 1, offset=frame["o"], factors="auto").upper
    with pytest.raises(InputError, match="no column called 'oo'"):
        solve(frame, y, 2, offset="oo")
