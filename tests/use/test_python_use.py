"""What a session in Python meets: data instead of problems, misspelt words, results shown, models kept."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import polars as pl
import pytest
from own_loss import PseudoHuber
from scipy import sparse

import exactsel
from exactsel import (
    ColumnSubsetProblem,
    InputError,
    Logistic,
    Model,
    Problem,
    Settings,
    UnsupportedError,
    best_model,
    solve,
)
from exactsel.errors import did_you_mean
from exactsel.problem import preparing

RNG = np.random.default_rng(0)
A = RNG.standard_normal((40, 5)) * [1.0, 10.0, 100.0, 1.0, 1.0] + 3.0
Y = A @ [1.0, 0.2, 0.03, 0.0, 0.0] + 7.0 + 0.1 * RNG.standard_normal(40)
NAMES = ["age", "Salary", "a, b", "<b>", "rooms"]
FRAME = pd.DataFrame(A, columns=NAMES)


@pytest.fixture(scope="module")
def fitted():
    return solve(Problem.prepared(FRAME, Y, 3, intercept=True, scale=True))


class TestPredicting:
    """A frame's columns are found by name: the order of the columns must not change a prediction."""

    @pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
    def test_any_order_and_other_columns(self, fitted, frame):
        expected = A @ fitted.model.coef + fitted.model.intercept
        np.testing.assert_allclose(fitted.predict(FRAME), expected)
        table = {name: A[:, NAMES.index(name)] for name in reversed(NAMES)}
        np.testing.assert_allclose(fitted.predict(frame({"text": ["x"] * 40, **table})), expected)
        np.testing.assert_allclose(fitted.predict(A), expected)
        np.testing.assert_allclose(fitted.predict(sparse.csr_array(A)), expected)

    def test_only_the_columns_of_the_model_are_needed(self, fitted):
        chosen = FRAME[[NAMES[j] for j in fitted.support]]
        np.testing.assert_allclose(fitted.predict(chosen), fitted.predict(A))

    def test_what_does_not_fit_is_refused(self, fitted):
        assert NAMES[1] in fitted.feature_names
        with pytest.raises(InputError, match=r"needs the column 'Salary', but no column .* did you mean 'salary'"):
            fitted.predict(FRAME.rename(columns={"Salary": "salary"}))
        with pytest.raises(InputError, match=r"holds 2 columns called 'Salary'"):
            fitted.predict(pd.concat([FRAME, FRAME[["Salary"]]], axis=1))
        with pytest.raises(InputError, match="the model has 5 features"):
            fitted.predict(A[:, :4])
        with pytest.raises(InputError, match=r"in the rows to predict, column Salary .1 missing. has missing values"):
            fitted.predict(FRAME.assign(Salary=[np.nan, *A[1:, 1]]))

    def test_without_names_a_frame_is_taken_by_position(self):
        result = solve(Problem(A, Y, 2))
        np.testing.assert_allclose(result.predict(FRAME), A @ result.coef)

    def test_groups_and_an_empty_model(self):
        result = solve(Problem(FRAME, Y, 1, groups={"both": ["age", "Salary"]}))
        np.testing.assert_allclose(result.predict(FRAME[NAMES[::-1]]), A @ result.model.coef)
        empty = solve(Problem.prepared(FRAME, Y, 0, intercept=True))
        np.testing.assert_allclose(empty.predict(FRAME), np.full(40, Y.mean()))
        assert empty.coefficients() == {}

    def test_names_that_are_not_one_columns_own(self):
        result = solve(Problem(A, Y, 2, feature_names=["x", "x", "x", "x", "x"]))
        assert list(result.coefficients()) == list(result.support)
        with pytest.raises(InputError, match="the model has several features called 'x'"):
            result.predict(pd.DataFrame(A[:, :1], columns=["x"]))
        np.testing.assert_allclose(result.predict(A), A @ result.coef)

    def test_a_selection_has_nothing_to_predict_with(self):
        result = solve(ColumnSubsetProblem(A, 2))
        with pytest.raises(UnsupportedError, match="column subset selection has no coefficients"):
            result.predict(A)


class TestModels:
    def test_coefficients_by_name(self, fitted):
        series = fitted.to_series()
        assert list(series.index) == ["(intercept)", *fitted.feature_names]
        assert series["(intercept)"] == fitted.model.intercept
        assert fitted.coefficients() == {NAMES[j]: fitted.model.coef[j] for j in fitted.support}
        unnamed = solve(Problem(A, Y, 2))
        assert list(unnamed.coefficients()) == list(unnamed.support)

    def test_saved_and_loaded_to_the_last_bit(self, fitted, tmp_path):
        fitted.model.save(tmp_path / "model.json")
        loaded = Model.load(tmp_path / "model.json")
        assert loaded.coef.tolist() == fitted.model.coef.tolist()
        assert (loaded.intercept, loaded.names) == (fitted.model.intercept, fitted.model.names)
        np.testing.assert_array_equal(loaded.predict(FRAME), fitted.predict(FRAME))

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (b"\x80\x04", "holds no model"),
            (b"{}", "holds no model"),
            (b"[" * 10**5, "holds no model"),
            (b'{"exactsel_model": 2}', "holds a model of format 2, but one of format 1"),
            (b'{"exactsel_model": 1, "coef": [1, "x"], "intercept": 0, "names": null}', "a damaged model"),
            (b'{"exactsel_model": 1, "coef": [NaN], "intercept": 0, "names": null}', "a damaged model"),
            (b'{"exactsel_model": 1, "coef": 3, "intercept": 0, "names": null}', "a damaged model"),
            (b'{"exactsel_model": 1, "coef": [1], "intercept": 0, "names": ["a", "b"]}', "a damaged model"),
        ],
    )
    def test_other_files_are_refused(self, content, said, tmp_path):
        (tmp_path / "x.json").write_bytes(content)
        with pytest.raises(InputError, match=said):
            Model.load(tmp_path / "x.json")
        with pytest.raises(InputError, match=r"cannot be read .No such file"):
            Model.load(tmp_path / "none.json")


class TestDataInsteadOfAProblem:
    def test_it_is_the_same_problem(self, fitted):
        direct = solve(FRAME, Y, k=3, scale=True, rel_eps=1e-6)
        assert (direct.upper, direct.lower, direct.feature_names) == (fitted.upper, fitted.lower, fitted.feature_names)
        assert solve(sparse.csr_array(A), Y, 2, intercept=False).upper == solve(Problem(A, Y, 2)).upper

    def test_models_of_data_have_an_intercept(self):
        result = solve(A, Y, 2)
        assert result.upper == solve(Problem.prepared(A, Y, 2, intercept=True)).upper
        assert abs(np.mean(Y - result.predict(A))) < 1e-12
        assert "no intercept" not in str(result.quality)
        assert solve(A, Y, 2, intercept=False).model.intercept is None
        assert best_model(A, Y).result.model.intercept is not None
        assert solve(Problem(A, Y, 2)).model.intercept is None

    def test_losses_that_know_no_intercept_have_none(self, monkeypatch):
        monkeypatch.setattr(preparing, "can_be_adjusted", lambda kind: False)
        # Without a search, which takes kernels of its own for each loss.
        options = {"loss": PseudoHuber(1.0), "lam": 1.0, "heuristics": "none", "node_limit": 0}
        assert solve(A, Y, 1, **options).model.intercept is None
        with pytest.raises(UnsupportedError, match="is not declared to take an unpenalised intercept"):
            solve(A, Y, 1, **options, intercept=True)

    def test_a_problem_shows_the_data_as_given(self):
        for problem in (Problem(A, Y, 2), Problem.prepared(A, Y, 2, intercept=True, scale=True)):
            np.testing.assert_array_equal(problem.A, A)
            np.testing.assert_array_equal(problem.target, Y)

    def test_options_of_both_kinds(self):
        result = solve(FRAME, Y, 2, loss="huber", lam=0.5, delta=2.0, force_out=["age"], time_limit=60.0)
        assert result.problem["loss_parameters"] == {"delta": 2.0}
        assert result.settings["time_limit"] == 60.0
        assert "age" not in result.feature_names

    @pytest.mark.parametrize(
        ("arguments", "options", "said"),
        [
            ((A,), {"k": 2}, "data were given without a target; call solve.X, y, k=5."),
            ((A, Y), {}, "k, the largest number of features in the model, is missing; give k=5, say"),
            ((A, Y, 2), {"timelimit": 3}, "'timelimit' is no option of a search; did you mean 'time_limit'; its"),
            ((A, Y, 2), {"lambda_": 3}, "'lambda_' is no option"),
            ((Problem(A, Y, 2),), {"timelimit": 3}, "did you mean 'time_limit'"),
            ((Problem(A, Y, 2),), {"lam": 3}, "'lam' is part of a problem and not of a search"),
            ((Problem(A, Y, 2), Y), {}, "a problem was given, which has its own y and k"),
        ],
    )
    def test_what_does_not_fit(self, arguments, options, said):
        with pytest.raises(InputError, match=said):
            solve(*arguments, **options)

    def test_an_unknown_word_is_a_type_error_too(self):
        with pytest.raises(TypeError, match="did you mean"):
            exactsel.certify(Problem(A, Y, 2), support=[0], nodelimit=3)


class TestLabels:
    """Logistic loss takes what the command line takes for labels."""

    @pytest.mark.parametrize(
        ("y", "said"),
        [
            ([0, 1, 1, 0], "0 and 1; logistic loss reads them as -1 and"),
            ([False, True, True, False], "0 and 1"),
            (["no", "yes", "yes", "no"], "'no' is read as -1 and 'yes' as"),
            (np.array(["a\x1b", "b", "b", "a\x1b"], dtype=object), r"'a\\x1b' is read as -1"),
            (pd.Series(["no", "yes", "yes", "no"], dtype="category"), "'no' is read as -1"),
        ],
    )
    def test_read_with_a_warning(self, y, said):
        with pytest.warns(UserWarning, match=said):
            made = Problem(A[:4], y, 2, loss="logistic", lam=0.5)
        np.testing.assert_array_equal(made.y, [-1.0, 1.0, 1.0, -1.0])
        with pytest.warns(UserWarning, match=said):
            prepared = Problem.prepared(A[:4], y, 2, loss=Logistic(), lam=0.5, intercept=True)
        np.testing.assert_array_equal(prepared.y, made.y)

    @pytest.mark.parametrize("y", [["a", "b", "c", "a"], ["a", "a", "a", "a"], ["a", "b", None, "a"]])
    def test_other_texts_are_no_labels(self, y):
        with pytest.raises(InputError, match=r"^y is not numeric"):
            Problem(A[:4], y, 2, loss="logistic", lam=0.5)


class Balanced(HTMLParser):
    """Fails where a tag is closed that is not open."""

    def __init__(self):
        super().__init__()
        self.open, self.texts = [], []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


class TestShown:
    def test_results_in_a_line(self, fitted):
        assert repr(fitted).startswith("<Result optimal: upper=")
        assert "Salary: 0.2" in repr(fitted)
        assert "\n" not in repr(fitted)
        near = exactsel.near_optimal(Problem(A, Y, 2), tau=0.1)
        assert repr(near).startswith("<NearOptimal ")
        assert repr(exactsel.certify(Problem(A, Y, 2), support=[0, 1])).startswith("<Certified ")

    def test_paths_as_tables(self):
        path = exactsel.solve_path(Problem(FRAME, Y, 3), ks=[1, 2])
        lines = str(path).splitlines()
        assert lines[0].split() == ["k", "lam", "objective", "gap", "claim", "aic", "bic", "ebic", "features"]
        assert [line.split()[0] for line in lines[1:]] == ["1", "2"]
        assert repr(path) == "<SolutionPath of 2 problems, all proven>"
        assert solve(ColumnSubsetProblem(A, 1)).upper == pytest.approx(
            float(str(exactsel.solve_path(ColumnSubsetProblem(A, 1))).splitlines()[1].split()[1])
        )

    @pytest.mark.parametrize("what", ["result", "path", "selection", "problem", "matrix"])
    def test_notebooks_get_tables_in_which_names_are_harmless(self, what, fitted):
        shown = {
            "result": lambda: fitted, "path": lambda: exactsel.solve_path(Problem(FRAME, Y, 5), ks=[5]),
            "selection": lambda: solve(ColumnSubsetProblem(FRAME, 5)),
            "problem": lambda: Problem(FRAME, Y, 5), "matrix": lambda: ColumnSubsetProblem(FRAME, 5),
        }[what]()  # fmt: skip
        html = shown._repr_html_()
        parser = Balanced()
        parser.feed(html)
        assert not parser.open
        assert "<b>" not in html
        if what in ("path", "selection"):
            assert any("<b>" in text for text in parser.texts)

    def test_json_has_no_need_of_it(self, fitted):
        assert json.loads(fitted.to_json())["claim"] == "optimal"


class TestLossesByName:
    """What is registered needs no object where its parameters have defaults."""

    def named(self, monkeypatch, defaults):
        class WithDefaults(PseudoHuber):
            _field_defaults = defaults

            def __new__(cls, **given):
                return PseudoHuber(**{**defaults, **given})

        monkeypatch.setattr("exactsel.registry.load", lambda kind, name: WithDefaults)
        return Problem(A, Y, 2, loss="pseudo-huber", lam=1.0)

    def test_defaults_are_taken(self, monkeypatch):
        assert self.named(monkeypatch, {"width": 2.5}).loss_parameters == {"width": 2.5}

    def test_what_must_be_given_is_named(self, monkeypatch):
        with pytest.raises(InputError, match="parameters width, of which width must be given; pass a loss object"):
            self.named(monkeypatch, {})


@pytest.mark.parametrize(
    ("name", "known", "said"),
    [
        ("salary", ["Salary", "age"], "; did you mean 'Salary'"), ("slary", ["Salary"], "; did you mean 'Salary'"),
        ("x", ["Salary", "age"], ""), (3, ["Salary"], ""), ("a", [], ""),
    ],
)  # fmt: skip
def test_did_you_mean(name, known, said):
    assert did_you_mean(name, known) == said


def test_unknown_names_of_plug_ins_and_columns():
    with pytest.raises(InputError, match=r"no loss called 'hubr'; known are: .*; did you mean 'huber'"):
        Problem(A, Y, 2, loss="hubr", lam=1)
    with pytest.raises(InputError, match="did you mean 'Salary'"):
        Problem(FRAME, Y, 2, force_in=["salary"])
    with pytest.raises(InputError, match="no column called 'salary'; did you mean 'Salary'"):
        exactsel.load(FRAME.assign(y=Y), target="salary", k=2)
    assert Settings().time_limit is None
