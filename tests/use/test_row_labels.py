"""Targets, weights and offsets whose rows are labelled in another way than those of the data: refused in every door."""

from __future__ import annotations

import numpy as np
import pytest

from exactsel import Instance, Problem, certify, gram, load, solve
from exactsel.errors import InputError
from exactsel.problem.row_labels import check_rows
from exactsel.studies.crossval import cross_validate

pandas = pytest.importorskip("pandas")

RNG = np.random.default_rng(2)
LABELS = ["k", "a", "q", "d", "w", "c", "z", "b"]
X = pandas.DataFrame(RNG.standard_normal((8, 3)), columns=["u", "v", "w"], index=LABELS)
Y = X["u"] - 2 * X["w"]
WEIGHTS = pandas.Series(np.arange(1.0, 9.0), index=LABELS)

SHUFFLED = "the same labels as those of the data, but in another order; give {0}.loc.X.index., or {0}.to_numpy"
OTHER = "other labels .such as 'other'. than those of the data .such as '[kc]'.; choose the same rows of both"


def shuffled(series):
    return series.sort_index()


def renamed(series):
    return series.rename({"c": "other", "k": "other"})


def _estimator(name: str, **options):
    sklearn = pytest.importorskip("exactsel.sklearn")
    return getattr(sklearn, name)(**options)


def _classes(y):
    return (y > 0).astype(int) if isinstance(y, pandas.Series) else (np.asarray(y) > 0).astype(int)


def _scored(y=Y, weights=None):
    return _estimator("BestSubsetRegressor", k=1).fit(X, Y).score(X, y, weights)


DOORS = {
    "Problem": ("y", lambda y=Y, weights=None: Problem(X, y, 1)),
    "prepared": ("y", lambda y=Y, weights=None: Problem.prepared(X, y, 1, weights=weights)),
    "prepared, weights": ("sample_weight", lambda y=Y, weights=None: Problem.prepared(X, y, 1, weights=weights)),
    "prepared, offset": ("offset", lambda y=Y, weights=None: Problem.prepared(X, y, 1, offset=weights)),
    "solve": ("y", lambda y=Y, weights=None: solve(X, y, 1)),
    "solve, weights": ("sample_weight", lambda y=Y, weights=None: solve(X, y, 1, weights=weights)),
    "Instance": ("y", lambda y=Y, weights=None: Instance(X, y).problem(k=1)),
    "Instance, weights": ("weights", lambda y=Y, weights=None: Instance(X, y, weights=weights).problem(k=1)),
    "Instance.problem": ("sample_weight", lambda y=Y, weights=None: Instance(X, y).problem(k=1, weights=weights)),
    "Instance.problem, offset": ("offset", lambda y=Y, weights=None: Instance(X, y).problem(k=1, offset=weights)),
    "load": ("sample_weight", lambda y=Y, weights=None: load(X, target="u", k=1, weights=weights)),
    "load, offset": ("offset", lambda y=Y, weights=None: load(X, target="u", k=1, offset=weights)),
    "gram": ("y", lambda y=Y, weights=None: gram(X, y, k=1)),
    "gram, weights": ("sample_weight", lambda y=Y, weights=None: gram(X, y, weights=weights, k=1)),
    "gram, blocks": ("y", lambda y=Y, weights=None: gram([(X, y)], k=1)),
    "regressor": ("y", lambda y=Y, weights=None: _estimator("BestSubsetRegressor", k=1).fit(X, y, weights)),
    "regressor, weights": (
        "sample_weight", lambda y=Y, weights=None: _estimator("BestSubsetRegressor", k=1).fit(X, y, weights),
    ),
    "classifier": ("y", lambda y=Y, weights=None: _estimator("BestSubsetClassifier", k=1).fit(X, _classes(y))),
    "selector": ("y", lambda y=Y, weights=None: _estimator("BestSubsetSelector", k=1).fit(X, y)),
    "cross-validated": ("y", lambda y=Y, weights=None: _estimator("BestSubsetCV", ks=[1], cv=2).fit(X, y)),
    "score": ("y", _scored),
    "score, weights": ("sample_weight", _scored),
}  # fmt: skip


@pytest.mark.parametrize("door", DOORS)
class TestDoors:
    def test_labels_in_another_order(self, door):
        name, call = DOORS[door]
        changed = {"y": shuffled(Y)} if name == "y" else {"weights": shuffled(WEIGHTS)}
        with pytest.raises(InputError, match=SHUFFLED.format(name)):
            call(**changed)

    def test_other_labels(self, door):
        name, call = DOORS[door]
        changed = {"y": renamed(Y)} if name == "y" else {"weights": renamed(WEIGHTS)}
        with pytest.raises(InputError, match=OTHER):
            call(**changed)

    @pytest.mark.parametrize("way_on", ["loc", "to_numpy", "list", "default labels", "polars"])
    def test_the_ways_on(self, door, way_on):
        name, call = DOORS[door]
        ways = {
            "loc": lambda series: shuffled(series).loc[X.index],
            "to_numpy": lambda series: series.to_numpy(),
            "list": lambda series: series.tolist(),
            "default labels": lambda series: series.reset_index(drop=True),
            "polars": lambda series: pytest.importorskip("polars").Series(series.tolist()),
        }
        call(**({"y": ways[way_on](Y)} if name == "y" else {"weights": ways[way_on](WEIGHTS)}))


class TestDefaultLabels:
    """Labels 0, 1, 2 and so on say nothing, unless the others are the same numbers in another order."""

    def test_after_some_rows_have_been_chosen(self):
        chosen = X.reset_index(drop=True)[[i % 3 > 0 for i in range(8)]]
        check_rows(chosen, y=pandas.Series(np.zeros(len(chosen))))
        check_rows(chosen.reset_index(drop=True), y=pandas.Series(np.zeros(len(chosen)), index=chosen.index))

    def test_rows_that_have_been_shuffled(self):
        mixed = X.reset_index(drop=True).sample(frac=1.0, random_state=1)
        with pytest.raises(InputError, match="in another order"):
            check_rows(mixed, y=Y.reset_index(drop=True))
        with pytest.raises(InputError, match="in another order"):
            check_rows(mixed.reset_index(drop=True), y=pandas.Series(np.zeros(8), index=mixed.index))

    def test_two_subsets_of_the_same_rows(self):
        whole = X.reset_index(drop=True)
        with pytest.raises(InputError, match="other labels"):
            check_rows(whole[2:6], y=whole["u"][3:7])

    def test_without_a_frame_weights_are_compared_with_the_target(self):
        with pytest.raises(InputError, match=r"same labels as those of y, but.*give sample_weight.loc\[y.index\]"):
            Problem.prepared(X.to_numpy(), Y, 1, weights=shuffled(WEIGHTS))

    @pytest.mark.parametrize("labels", [[1, 1, 2], ["a", 1, None], [(1, 2), (3, 4), (5, 6)], [1.5, np.nan, 2.0]])
    def test_odd_labels(self, labels):
        index = pandas.Index(labels, tupleize_cols=False)
        check_rows(pandas.DataFrame({"a": [1, 2, 3]}, index=index), y=pandas.Series([1, 2, 3], index=index))
        with pytest.raises(InputError):
            check_rows(
                pandas.DataFrame({"a": [1, 2, 3]}, index=index), y=pandas.Series([1, 2, 3], index=["x", "y", "z"])
            )

    def test_other_numbers_of_rows_are_refused_where_rows_are_counted(self):
        with pytest.raises(InputError, match="8 rows but y has 7 entries"):
            Problem(X, Y[:7], 1)


def test_cross_validation_of_arrays():
    options = {"cv": [(np.arange(4), np.arange(4, 8))], "ks": [1], "lams": [0.0]}
    with pytest.raises(InputError, match="same labels as those of y"):
        cross_validate(X.to_numpy(), Y, weights=shuffled(WEIGHTS), **options)


class TestCoefficients:
    def test_in_another_order(self):
        coef = pandas.Series([-2.0, 0.0, 1.0], index=["w", "v", "u"])
        with pytest.raises(InputError, match="labelled by the features, but in another order"):
            certify(Problem(X, Y, 2), coef=coef)
        assert certify(Problem(X, Y, 2), coef=coef.loc[X.columns]).value < 1e-20

    @pytest.mark.parametrize("index", [["u", "v", "w"], [0, 1, 2], ["one", "two", "three"]])
    def test_by_position(self, index):
        assert certify(Problem(X, Y, 2), coef=pandas.Series([1.0, 0.0, -2.0], index=index)).value < 1e-20
