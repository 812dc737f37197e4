"""What fills gaps goes by the weights of the rows: a weight of 3 is the row three times, one of 0 is no such row."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from exactsel import load
from exactsel.data import read_data
from exactsel.data.missing import middle_of
from exactsel.errors import InputError
from exactsel.studies.crossval import cross_validate

RNG = np.random.default_rng(3)
N = 14
WEIGHTS = np.array([0, 3, 1, 2, 0, 1, 4, 1, 2, 1, 0, 3, 1, 2])
X = np.round(RNG.normal(0.0, 10.0, (N, 3)), 2)
Y = np.round(X @ [1.0, -2.0, 0.5] + RNG.normal(0.0, 1.0, N), 2)
GAPS = RNG.random((N, 3)) < 0.25
GAPS[:, 2] = [i in (0, 4) for i in range(N)]
"""The last column lacks values in rows of weight 0 alone."""

WAYS = ("mean", "median", "mean-indicator", "drop-rows", "drop-columns")

pytestmark = pytest.mark.filterwarnings("ignore:in .*(missing values are filled in|left out, as|rows are left out)")


def text(weights: np.ndarray) -> str:
    """The table with each row as many times as its weight says."""
    rows = [["" if gap else str(x) for x, gap in zip(X[i], GAPS[i], strict=True)] for i in range(N)]
    lines = [",".join([*rows[i], str(Y[i])]) for i in range(N) for _ in range(weights[i])]
    return "\n".join(["a,b,c,y", *lines]) + "\n"


def files(folder: Path) -> tuple[Path, Path, Path]:
    """The table, its weights, and the table with repeated rows."""
    table, counts, repeated = folder / "t.csv", folder / "w.txt", folder / "repeated.csv"
    table.write_text(text(np.ones(N, dtype=int)))
    counts.write_text("\n".join(map(str, WEIGHTS)))
    repeated.write_text(text(WEIGHTS))
    return table, counts, repeated


@pytest.mark.parametrize("way", WAYS)
class TestRepeatedRows:
    def test_the_command(self, tmp_path, run, way):
        table, counts, repeated = files(tmp_path)
        options = ["-k", 1, "--intercept", "--missing", way, "--json", "--quiet"]
        weighted, plain = (run("solve", *more, *options) for more in ([table, "--weights", counts], [repeated]))
        assert weighted.code == plain.code == 0, weighted.err + plain.err
        for name in ("upper", "lower", "coef", "intercept"):
            np.testing.assert_allclose(weighted.json[name], plain.json[name], rtol=1e-9, atol=1e-9, err_msg=name)
        assert weighted.json["feature_names"] == plain.json["feature_names"]

    @pytest.mark.parametrize("door", ["file", "frame", "read_data"])
    def test_python(self, tmp_path, way, door):
        table, _, repeated = files(tmp_path)
        if door == "read_data":
            weighted, plain = read_data(table, missing=way, weights=WEIGHTS), read_data(repeated, missing=way)
            A, B, counts = weighted.A, plain.A, weighted.weights
        else:
            pandas = pytest.importorskip("pandas")
            read = pandas.read_csv if door == "frame" else lambda file: file
            weighted = load(read(table), missing=way, weights=WEIGHTS, k=1)
            plain, made = load(read(repeated), missing=way, k=1), weighted.preparation
            A, B, counts = made.AT.T, plain.A, made.weights
        np.testing.assert_allclose(np.repeat(A, counts.astype(int), axis=0), B, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("way", ["mean", "median"])
class TestMiddles:
    def test_fractions_count_as_their_multiples_do(self, way):
        values = np.where(GAPS, np.nan, X)
        for factor in (0.25, 0.5, 8.0):
            np.testing.assert_array_equal(
                middle_of(values, way, WEIGHTS * factor), middle_of(values, way, 1.0 * WEIGHTS)
            )

    def test_many_columns_against_repeated_rows(self, way):
        rng = np.random.default_rng(9)
        for _ in range(200):
            n = int(rng.integers(1, 9))
            values = rng.integers(-3, 4, (n, 3)).astype(float)
            values[rng.random((n, 3)) < 0.3] = np.nan
            weights = rng.integers(0, 4, n)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                repeated = np.repeat(values, weights, axis=0)
                expected = np.array([
                    0.0 if np.isnan(column).all() else (np.nanmedian if way == "median" else np.nanmean)(column)
                    for column in repeated.T
                ])  # fmt: skip
            np.testing.assert_allclose(middle_of(values, way, weights.astype(float)), expected, rtol=1e-14, atol=1e-15)

    def test_a_row_of_weight_0_changes_nothing(self, way):
        values = np.array([[1.0], [2.0], [np.nan], [1e9]])
        assert middle_of(values, way, np.array([1.0, 1.0, 1.0, 0.0])) == 1.5


def test_a_fold_fills_by_the_weights_of_its_rows():
    values = np.where(GAPS, np.nan, X)
    order = np.repeat(np.arange(N), WEIGHTS)
    train, held_out = np.arange(1, N, 2), np.arange(0, N, 2)
    places = [np.flatnonzero(np.isin(order, rows)) for rows in (train, held_out)]
    options = {"ks": [1], "lams": [0.0], "intercept": True, "missing": "median"}
    one = cross_validate(values, Y, cv=[(train, held_out)], weights=WEIGHTS, **options)
    other = cross_validate(values[order], Y[order], cv=[tuple(places)], **options)
    np.testing.assert_allclose(one.errors, other.errors, rtol=1e-9)


class TestRowsThatAreLeftOut:
    """Rows without a target are left out whatever the way, and their weights with them."""

    TABLE = "a,b,y\n1,2,3\n2,,4\n4,4,\n5,2,7\n"

    def test_weights_may_be_given_for_all_rows_or_for_those_left(self, tmp_path):
        (tmp_path / "t.csv").write_text(self.TABLE)
        found = [read_data(tmp_path / "t.csv", missing="mean", weights=w) for w in ([1, 3, 50, 2], [1, 3, 2])]
        for instance in found:
            np.testing.assert_array_equal(instance.weights, [1, 3, 2])
            np.testing.assert_array_equal(instance.A[:, 1], [2.0, 2.0, 2.0])

    @pytest.mark.parametrize("weights", [[1, 2], [1, 2, 3, 4, 5]])
    def test_other_numbers_of_weights_are_refused(self, tmp_path, weights):
        (tmp_path / "t.csv").write_text(self.TABLE)
        with pytest.raises(InputError, match=r"there are \d weights for [34] rows.*give one number per row"):
            read_data(tmp_path / "t.csv", missing="mean", weights=weights)
        (tmp_path / "t.csv").write_text(self.TABLE.replace("4,4,\n", "4,4,1\n"))
        with pytest.raises(InputError, match=r"there are \d weights for 4 rows; give one number per row"):
            read_data(tmp_path / "t.csv", missing="median", weights=weights)


def test_a_category_lacks_values_only_where_rows_count(tmp_path):
    (tmp_path / "t.csv").write_text("c,y\nu,1\n,2\nv,3\nu,4\n")
    with pytest.warns(UserWarning, match="or as 'missing'"):
        found = read_data(tmp_path / "t.csv", missing="mean", factors=["c"], weights=[1, 2, 1, 1])
    assert found.feature_names == ("c[u]", "c[v]")


def test_convert_stores_the_weights_of_the_rows_it_keeps(tmp_path, run):
    table, counts, _ = files(tmp_path)
    table.write_text(table.read_text().replace(f",{Y[1]}\n", ",\n"))
    assert run("data", "convert", table, tmp_path / "t.npz", "--missing", "mean", "--weights", counts).code == 0
    instance = read_data(tmp_path / "t.npz")
    np.testing.assert_array_equal(instance.weights, np.delete(WEIGHTS, 1))
