"""``exactsel solve`` with several targets says what ``solve_targets`` does."""

from __future__ import annotations

import json

import numpy as np
import pytest

from exactsel import solve_targets

pandas = pytest.importorskip("pandas")

RNG = np.random.default_rng(8)
N = 40
X = pandas.DataFrame(RNG.normal(size=(N, 5)), columns=list("abcde"))
Y = pandas.DataFrame(
    {
        "u": X["a"] - X["c"] + 0.3 * RNG.normal(size=N),
        "v": X["a"] + 0.5 * X["e"] + 0.3 * RNG.normal(size=N),
        "w, x": X["b"] + RNG.normal(size=N),
    }
)
ALL = ("--target", "u", "--target", "v", "--target", "w, x")


@pytest.fixture
def file(tmp_path):
    pandas.concat([X, Y], axis=1).to_csv(tmp_path / "t.csv", index=False, float_format="%.17g")
    return tmp_path / "t.csv"


@pytest.mark.parametrize("shared", [False, True])
def test_it_is_what_python_says(file, run, shared):
    flag = ["--shared"] if shared else []
    told = run("solve", file, *ALL, "-k", 2, "--quiet", "--json", *flag)
    expected = solve_targets(X, Y, 2, shared=shared, signals=())
    assert told.code == 0
    assert told.json["targets"] == ["u", "v", "w, x"]
    assert told.json["supports"] == [list(support) for support in expected.supports]
    assert told.json["coef"] == pytest.approx(expected.coef, rel=1e-9)
    assert told.json["intercept"] == pytest.approx(expected.intercept, rel=1e-9)
    assert told.json["upper"] == pytest.approx(expected.upper, rel=1e-12)
    assert len(told.json["results"]) == (1 if shared else 3)


def test_a_table_for_each_target(file, run):
    told = run("solve", file, "--target", "u,v", "--drop", '"w, x"', "-k", 2, "--quiet")
    assert told.code == 0
    first, second = told.out.split("target v")
    assert first.startswith("target u\n")
    assert "  a  " in first
    assert "  e  " in second
    assert told.out.count("Optimal: no model with at most 2 features has a lower objective") == 2
    together = run("solve", file, "--target", "u, v", "--drop", '"w, x"', "-k", 2, "--shared", "--quiet").out
    assert together.count("Optimal: no model with at most 2 features has a lower objective") == 1
    assert "all targets on the same features: sum of objectives" in together


def test_a_list_and_the_option_again_say_the_same(file, run):
    listed = run("solve", file, "--target", 'u,v,"w, x"', "-k", 1, "--quiet", "--json").json
    again = run("solve", file, *ALL, "-k", 1, "--quiet", "--json").json
    assert (listed["targets"], listed["coef"]) == (again["targets"], again["coef"])
    one = run("solve", file, "--target", "w, x", "--drop", "u,v", "-k", 1, "--quiet", "--json")
    assert one.json["upper"] == pytest.approx(again["results"][2]["upper"], rel=1e-12)


def test_options_of_data_and_problem_go_with_them(file, run, tmp_path):
    np.savetxt(tmp_path / "weights.txt", RNG.uniform(0.5, 2.0, N))
    more = ["--weights", tmp_path / "weights.txt", "--lam", 0.3, "--force-in", "d", "--force-out", "a", "--scale"]
    weights = np.loadtxt(tmp_path / "weights.txt")
    how = {"sample_weight": weights, "lam": 0.3, "force_in": ["d"], "force_out": ["a"], "standardize": True}
    for flag, shared in (([], False), (["--shared"], True)):
        told = run("solve", file, *ALL, "-k", 2, "--quiet", "--json", *more, *flag)
        expected = solve_targets(X, Y, 2, shared=shared, signals=(), **how)
        assert told.json["coef"] == pytest.approx(expected.coef, rel=1e-7)
    huber = run("solve", file, *ALL, "-k", 2, "--quiet", "--json", "--loss", "huber", "--lam", 0.1).json
    assert huber["upper"] == pytest.approx(solve_targets(X, Y, 2, loss="huber", lam=0.1, signals=()).upper, rel=1e-6)


def test_a_target_may_be_a_file(file, run, tmp_path):
    np.savetxt(tmp_path / "v2.txt", Y["v"], fmt="%.17g")
    words = ["-k", 2, "--quiet", "--json", "--drop", 'v,"w, x"']
    told = run("solve", file, "--target", "u", "--target", tmp_path / "v2.txt", *words).json
    assert told["supports"] == [list(s) for s in solve_targets(X, Y[["u", "v"]], 2, signals=()).supports]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            ["--shared", "--groups", "g=a,b"],
            "--groups is given, but models with the same features take only --intercept, ",
        ),
        (["--shared", "--loss", "huber"], "minimise squared errors; leave --loss out, or --shared"),
        (["--shared", "--nonnegative", "all"], "--nonnegative is given, but models with the same features"),
        (["--proof", "p.proof"], "--proof is about one search, but there are several targets"),
        (["--checkpoint", "c"], "--checkpoint is about one search"),
        (["--target", "u"], "the target u is given twice"),
        (["--target", "nix"], "no column called 'nix'"),
        (["--problem", "css"], "column subset selection has no targets"),
        (["--formula", "a ~ b"], "but a target is given, too"),
    ],
)
def test_what_cannot_be_is_said_in_words_of_the_command_line(file, run, more, said):
    told = run("solve", file, *ALL, "-k", 2, "--quiet", *more)
    assert told.code == 2
    assert said in told.err
    assert "--feature-names" not in told.err


def test_one_target_is_one(file, run):
    told = run("solve", file, "--target", "u", "--shared", "-k", 1)
    assert (told.code, "--shared is about several targets" in told.err) == (2, True)
    told = run("best", file, *ALL)
    assert (told.code, "3 targets are given, but solve alone takes several" in told.err) == (2, True)


def test_models_of_coded_tables_predict_for_all_targets():
    frame = X.assign(kind=np.where(X["a"] > 0.0, "high", "low"))
    models = solve_targets(frame, Y, 2, factors="auto", signals=())
    fitted = np.column_stack([result.fittedvalues for result in models.results])
    assert models.predict(frame) == pytest.approx(fitted, abs=1e-9)
    assert json.loads(models.to_json())["claim_text"].count("terms") == 3
