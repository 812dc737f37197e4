"""Messages are in the words of the door they come through: arguments in Python, options on the command line."""

from __future__ import annotations

import ast
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import exactsel
from exactsel import ColumnSubsetProblem, InputError, Problem, best_model, load, near_optimal, solve, solve_path
from exactsel.cli.main import cli
from exactsel.errors import at_command_line, option

RNG = np.random.default_rng(7)
N = 12
A, Y = RNG.standard_normal((N, 3)), RNG.standard_normal(N)
SIGNS = np.where(Y > 0, 1.0, -1.0)
FRAME = pd.DataFrame(A, columns=["a", "b c", "d"]).assign(
    kind=list("uvw") * 4, day=pd.to_datetime(["2020-01-01"] * N), gap=[np.nan, *Y[1:]], y=Y
)
FLAG = re.compile(r"--[a-z]")
BUILT = re.compile(r"--[a-z]|(^|\s)--$")
"""Also the beginning of an option whose name is put in."""

PROVOKED = {
    "text": (lambda: load(FRAME[["a", "kind", "y"]], k=1), 'factors="auto"', "--factors auto"),
    "a name with a blank": (lambda: load(FRAME[["b c", "y"]].assign(**{"b c": "u"}), k=1), 'drop=["b c"]', "'b c'"),
    "dates": (lambda: load(FRAME[["a", "day", "y"]], k=1), 'drop=["day"]', "--drop day"),
    "gaps": (lambda: load(FRAME[["a", "gap", "y"]], k=1), 'missing="mean"', "--missing mean"),
    "gaps of rows": (lambda: load(FRAME[["a", "gap", "y"]], k=1), 'missing="drop-rows"', "--missing drop-rows"),
    "a way that is none": (lambda: load(FRAME[["a", "y"]], k=1, missing="no"), "missing is 'no'", "--missing is"),
    "a target with gaps": (
        lambda: load(FRAME[["a", "gap"]], k=1, target="gap"), 'missing="drop-rows"', "--missing drop-rows"
    ),
    "an encoding": (lambda: load("x.csv", encoding=3), "encoding is 3", "--encoding is 3"),
    "a decimal mark": (lambda: load("x.csv", decimal="!"), "decimal is '!'", "--decimal is"),
    "no target": (lambda: load(FRAME[["a"]], k=1), "with target, or call", "--target, or give --problem css"),
    "a ridge that is missing": (
        lambda: Problem(A, SIGNS, 1, loss="logistic"), "give lam=0 for none, as in R, or lam=1 to", "--lam 1 to"
    ),
    "a ridge that is needed": (
        lambda: Problem(A, SIGNS, 1, loss="squared_hinge", lam=0.0), "give a positive lam for", "a positive --lam for"
    ),
    "separated classes": (
        lambda: solve(Problem(np.sign(Y)[:, None], SIGNS, 1, loss="logistic", lam=0.0)), "positive lam, or", "--lam, or"
    ),
    "a threshold": (lambda: Problem(A, Y, 1, loss="huber", delta=-1.0), "give delta.", "give --delta."),
    "no scale": (lambda: Problem(A, np.ones(N), 1, loss="huber"), "give delta.", "give --delta."),
    "a threshold for nobody": (lambda: Problem(A, Y, 1, delta=1.0), 'loss="huber" or', "--loss huber or"),
    "dependent groups": (
        lambda: solve(Problem(A[:, [0, 0, 1]], Y, 1, groups=["g", "g", "h"])), "a small ridge (lam=1e-6)", "--lam 1e-6"
    ),
    "a bound of another loss": (
        lambda: solve(Problem(A, SIGNS, 1, loss="logistic", lam=1.0), bound="fit"), 'use bound="apg"', "--bound apg"
    ),
    "a bound of another family": (lambda: solve(Problem(A, Y, 1), bound="grouped"), 'bound="auto"', "--bound auto"),
    "a method of another family": (
        lambda: exactsel.heuristics.run("greedy-css", Problem(A, Y, 1)), "a ColumnSubsetProblem", "--problem css"
    ),
    "a tree without workers": (
        lambda: solve(Problem(A, Y, 1), tree="state-space", executor="processes"), 'tree="binary"', "--tree binary"
    ),
    "a scheduler": (lambda: solve(A, Y, 1, executor="serial", scheduler="tcp://x"), 'executor="dask"', "--executor"),
    "a setting": (lambda: solve(A, Y, 1, time_limit=-1.0), "set time_limit.", "set --time-limit."),
    "no tau": (lambda: near_optimal(A, Y, 1), "give tau.", "give --within."),
    "a share": (lambda: solve_path(A, Y, near=-1.0), "near is -1.0, but", "--near is -1.0, but"),
    "a cap": (lambda: near_optimal(A, Y, 1, tau=1.0, cap=0), "raise cap.", "raise --cap."),
    "no models": (lambda: best_model(A, Y, top=0), "give top=1, say", "--top 1, say"),
    "a distance": (lambda: best_model(A, Y, within=-1.0), "correct within.", "correct --within."),
    "too large sizes": (lambda: best_model(A[:4], Y[:4], k_max=3), "smaller k_max", "smaller --k-max"),
    "an exposure and a scale": (
        lambda: Problem.prepared(A, np.abs(Y), 1, loss="poisson", lam=1.0, offset=Y, standardize=True),
        "standardize does not go", "--scale does not go",
    ),
    "no groups": (lambda: exactsel.Instance(A, Y).grouped_problem(k=1), "give groups, or use", "give --groups."),
    "no checkpoint": (lambda: solve(A, Y, 1, resume="nothing.ckpt"), "that checkpoint named", "--checkpoint named"),
    "a shipped file": (lambda: load("no/diabetes.npz"), "exactsel.datasets.copy_to", "exactsel data instances --copy"),
}  # fmt: skip
"""What is raised, and what it says in Python and on the command line."""


@pytest.mark.parametrize(("provoke", "python", "command"), PROVOKED.values(), ids=PROVOKED)
def test_errors_are_in_the_readers_words(provoke, python, command):
    with pytest.raises(InputError) as caught:
        provoke()
    assert python in str(caught.value)
    assert not FLAG.search(str(caught.value).replace("exactsel data instances --copy", ""))
    with at_command_line(), pytest.raises(InputError) as caught:
        provoke()
    assert command in str(caught.value)


def test_the_command_line_names_options(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FRAME[["a", "gap", "y"]].to_csv("gaps.csv", index=False)
    done = CliRunner().invoke(cli, ["solve", "gaps.csv", "-k", "1"])
    assert "--missing mean" in str(done.exception)
    FRAME[["a", "d"]].assign(y=(Y > 0).astype(float)).to_csv("classes.csv", index=False)
    done = CliRunner().invoke(cli, ["solve", "classes.csv", "-k", "1"])
    assert "give --loss logistic --lam 0, or --loss quadratic to keep it" in done.stderr
    with pytest.warns(exactsel.DataWarning, match='give loss="logistic", lam=0, or loss="quadratic" to keep it'):
        solve(A, (Y > 0).astype(float), 1)
    with pytest.raises(InputError, match='missing="mean"'):  # the door is closed again
        load("gaps.csv", k=1)


def test_what_results_advise(tmp_path):
    result = solve(Problem.prepared(A, Y, 2, fit_intercept=True), proof=tmp_path / "p.exsel")
    assert "check it with: exactsel.verify(problem, " in str(result)
    assert not FLAG.search(str(result))
    with at_command_line():
        assert re.search(r"check it with: exactsel verify \S+ INSTANCE --intercept", str(result))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solve(ColumnSubsetProblem(A, 1))


@pytest.mark.parametrize(
    ("name", "value", "python", "command"),
    [
        ("missing", "mean", 'missing="mean"', "--missing mean"),
        ("sample_weight", None, "sample_weight", "--weights"),
        ("fit_intercept", False, "fit_intercept=False", "--no-intercept"),
        ("standardize", True, "standardize=True", "--scale"),
        ("lam", 1e-6, "lam=1e-6", "--lam 1e-6"),
        ("drop", ["a", "b c"], 'drop=["a", "b c"]', "--drop 'a,b c'"),
        ("decimal", ",", 'decimal=","', "--decimal ','"),
        ("drop", ["$x"], 'drop=["$x"]', "--drop '$x'"),
        ("force_in", ['a"b'], "force_in=['a\"b']", "--force-in 'a\"b'"),
    ],
)
def test_an_option(name, value, python, command):
    assert option(name, value) == python
    with at_command_line():
        assert option(name, value) == command


SOURCES = [
    path
    for path in sorted(Path(exactsel.__file__).parent.rglob("*.py"))
    if path.relative_to(Path(exactsel.__file__).parent).parts[0] != "cli" and path.name != "errors.py"
]
KEPT = {
    "data/cells.py": 1,  # a cell without a value
    "solving/settings.py": 1,  # what the command line calls a setting
}


def test_no_text_of_the_package_holds_an_option():
    """But for what errors.py makes of them, the second argument of ``either``, and docstrings."""
    assert len(SOURCES) > 100
    for path in SOURCES:
        found = options_in(path)
        assert len(found) == KEPT.get(path.relative_to(Path(exactsel.__file__).parent).as_posix(), 0), (path, found)


def options_in(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    allowed = {
        id(part)
        for node in ast.walk(tree)
        for part in (
            ast.walk(node.args[1])
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "either"
            else [node.value]
            if isinstance(node, ast.Expr)
            else []
        )
    }
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and BUILT.search(node.value)
        and id(node) not in allowed
    ]  # fmt: skip
