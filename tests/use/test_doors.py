"""Every verb takes a problem, or data: by one function, with the same words, defaults and answers."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import exactsel
from exactsel import (
    DataWarning,
    ExactselWarning,
    InputError,
    Problem,
    best_model,
    boxed,
    certify,
    compare,
    cross_validate,
    gram,
    heuristics,
    load,
    near_optimal,
    solve,
    solve_path,
)

RNG = np.random.default_rng(41)
N, D, K = 40, 5, 2
X = RNG.standard_normal((N, D))
Y = 4.0 + X @ [2.0, 0.0, -1.0, 0.3, 0.0] + 0.5 * RNG.standard_normal(N)
W = RNG.choice([0.5, 1.0, 2.0], N)
NAMES = list("abcde")
FRAME = pd.DataFrame(X, columns=NAMES)

VERBS = {
    "solve": lambda *given, **options: solve(*given, **options).upper,
    "best_model": lambda X, *given, **options: best_model(X, *given[:1], **options).value,
    "solve_path": lambda *given, **options: [each.upper for each in solve_path(*given, **options).results],
    "near_optimal": lambda *given, **options: [m.value for m in near_optimal(*given, tau=20.0, **options).models],
    "certify": lambda *given, **options: certify(*given, support=[0, 1], **options).value,
    "compare": lambda *given, **options: [
        row.value for row in compare(*given, methods="forward,swap", **options).rows
    ],
    "heuristics.run": lambda *given, **options: heuristics.run("forward", *given, **options).upper,
    "cross_validate": lambda *given, **options: cross_validate(*given, cv=3, **options).mean,
}  # fmt: skip
"""A figure or two that each gives."""

each_verb = pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)


@pytest.mark.smoke
@each_verb
@pytest.mark.parametrize("data", [X, FRAME, sparse.csr_array(X)], ids=["array", "frame", "sparse"])
def test_data_and_their_problem_give_the_same(verb, data):
    stated = Problem.prepared(X, Y, K, fit_intercept=True)
    np.testing.assert_allclose(verb(data, Y, K), verb(stated), rtol=1e-9)


@each_verb
def test_every_verb_knows_what_can_be_said_of_a_problem(verb):
    options = {
        "lam": 0.3, "fit_intercept": True, "standardize": True, "sample_weight": W, "force_out": ["e"], "positive":
        ["b"]
    }  # fmt: skip
    prepared = Problem.prepared(FRAME, Y, K, **{name: options[name] for name in options if name != "positive"})
    np.testing.assert_allclose(verb(FRAME, Y, K, **options), verb(boxed(prepared, positive=["b"])), rtol=1e-9)


@each_verb
def test_losses_and_offsets(verb):
    offset = 0.1 * RNG.standard_normal(N)
    stated = Problem.prepared(X, Y, K, fit_intercept=True, loss="huber", lam=0.5, delta=1.0, offset=offset)
    given = verb(X, Y, K, loss="huber", lam=0.5, delta=1.0, offset=offset)
    np.testing.assert_allclose(given, verb(stated), rtol=1e-7)


@each_verb
def test_columns_are_encoded_and_filled(verb):
    frame = FRAME.assign(kind=list("uvwx") * (N // 4))
    frame.loc[3, "a"] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        asked = {"factors": ["kind"], "missing": "drop-rows", "lam": 0.1, "drop": ["e"]}
        if verb is VERBS["best_model"]:
            asked |= {"per_group": 1}  # a criterion prices columns
        table = load(frame.assign(y=Y), k=K, **asked)
        np.testing.assert_allclose(verb(frame, Y, K, **asked), verb(table), rtol=1e-9)


@each_verb
def test_the_same_by_another_word(verb):
    named = {"fit_intercept": False, "standardize": True, "sample_weight": W, "positive": ["a"], "lam": 0.5}
    other = {"intercept": False, "scale": True, "weights": W, "nonnegative": ["a"], "lam": 0.5}
    np.testing.assert_array_equal(verb(FRAME, Y, K, **named), verb(FRAME, Y, K, **other))
    with pytest.raises(InputError, match="sample_weight and weights are both given, but mean the same; give sample_w"):
        verb(X, Y, K, sample_weight=W, weights=W)


@each_verb
def test_words_of_the_search_too(verb):
    np.testing.assert_array_equal(verb(X, Y, K, random_state=3, n_jobs=1), verb(X, Y, K, seed=3, threads=1))
    with pytest.raises(InputError, match="random_state and seed are both given"):
        verb(X, Y, K, random_state=3, seed=3)
    verb(X, Y, K, n_jobs=-1)


@pytest.mark.parametrize(
    "read",
    [
        lambda **options: Problem.prepared(X, Y, K, **options),
        lambda **options: load(FRAME.assign(y=Y), k=K, **options),
        lambda **options: exactsel.Instance(X, Y).problem(k=K, **options),
        lambda **options: gram(X, Y, **options).problem(k=K),
    ],
)
def test_what_reads_data_knows_both_words(read):
    by_name, by_word = read(sample_weight=W, fit_intercept=True), read(weights=W, intercept=True)
    assert by_name.hash == by_word.hash != read(fit_intercept=True).hash
    with pytest.raises(InputError, match="fit_intercept and intercept are both given"):
        read(fit_intercept=True, intercept=True)


@each_verb
def test_what_does_not_go_together_is_one_sentence(verb):
    with pytest.raises(InputError, match="data were given without a target"):
        verb(X)
    stated = Problem(X, Y, K)
    with pytest.raises(InputError, match="a problem was given, which has its own y and k"):
        verb(stated, Y)
    with pytest.raises(InputError, match="'sample_weight' is part of a problem and not of a search"):
        verb(stated, sample_weight=W)


@each_verb
def test_an_unknown_word_is_named(verb):
    with pytest.raises(InputError, match=r"no option '?sampel_weight|'sampel_weight' is no option .*did you mean"):
        verb(X, Y, K, sampel_weight=W)


@each_verb
def test_warnings_name_the_callers_line(verb):
    counts = RNG.poisson(2.0, N).astype(float)
    huge = X.copy()
    huge[0, 0] = np.nan
    for data, target, options in ((X, counts, {}), (huge, Y, {"missing": "mean"})):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            verb(data, target, K, **options)
        assert caught
        for warning in caught:
            assert warning.filename == __file__
            assert issubclass(warning.category, ExactselWarning)


def test_files_that_cannot_be_written_and_estimators_name_it_too(tmp_path):
    from exactsel.sklearn import BestSubsetCV, BestSubsetRegressor

    large = np.full(N, 2**53 + 1, dtype=np.int64) + 10**12 * np.arange(N)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        BestSubsetRegressor(k=2).fit(FRAME.assign(a=large), Y)
        BestSubsetCV(ks=[1], cv=2, time_limit=0.0).fit(X, Y)
        load(FRAME.assign(y=Y, a=large), k=2)
        Problem(X, Y, 9)
    assert len(caught) >= 3
    assert {warning.filename for warning in caught} == {__file__}


@each_verb
def test_progress_with_the_gap_on_stderr(verb, capsys):
    verb(X, Y, K, verbose=1)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "gap" in captured.err
    verb(X, Y, K)
    assert capsys.readouterr().err == ""
    with pytest.raises(InputError, match="verbose is 'much', but 0"):
        verb(X, Y, K, verbose="much")


def test_one_line_for_a_size_and_for_a_fold(capsys):
    solve_path(X, Y, 3, cv=4, verbose=1)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in lines] == ["k", "1", "2", "3", *["fold"] * 4]
    best_model(X, Y, verbose=1)
    lines = capsys.readouterr().err.splitlines()
    assert {line.split()[0] for line in lines} == {"k", *"012345"}


def test_progress_goes_silent_where_stderr_has_gone(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert solve_path(X, Y, 2, verbose=1).reached


def test_an_option_of_a_method_that_a_problem_has_too():
    stated = Problem.prepared(X, Y, K, fit_intercept=True, lam=0.5)
    assert heuristics.run("greedy-rls", stated, lam=2.0).method_options["lam"] == 2.0
    of_data = heuristics.run("greedy-rls", X, Y, K, lam=0.5)
    assert (of_data.problem["lam"], of_data.method_options["lam"]) == (0.5, None)


def test_what_is_public_is_there():
    for name in ("solve", "best_model", "solve_path", "near_optimal", "certify", "compare", "cross_validate"):
        assert name in exactsel.__all__
        assert callable(getattr(exactsel, name))
    assert {"heuristics", "datasets"} <= {*exactsel.__all__}


def test_a_candidate_without_k_is_compared_with_models_as_large():
    from sklearn.linear_model import Lasso

    lasso = Lasso(alpha=0.5).fit(X, Y)
    certified = certify(X, Y, candidate=lasso)
    assert certified.result.problem["k"] == np.count_nonzero(lasso.coef_)
    assert certify(FRAME, Y, support=["a", "c", "d"]).result.problem["k"] == 3
    assert certify(X, Y, support=np.array([True, False, True, False, False])).result.problem["k"] == 2
    with pytest.raises(InputError, match="give exactly one candidate, by name"):
        certify(Problem(X, Y, 2), [0, 2])


def test_results_hold_no_helpers():
    path, near = solve_path(X, Y, 2), near_optimal(X, Y, 2, tau=1.0)
    for result in (path, near):
        assert not [name for name in dir(result) if name in ("kept", "state", "course")]
    assert path.resume(k=3).results[-1].problem["k"] == 3
    assert near.resume().complete
