"""Kernels that other processes compile are those a search calls."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from exactsel import ColumnSubsetProblem, GroupedProblem, Problem, _jit, solve
from exactsel.cli.compiling import Compiling
from exactsel.kernels.apg import relax_nodes
from exactsel.kernels.listing import list_sets
from exactsel.kernels.native_search import native_search
from exactsel.kernels.subtree import walk_subtrees
from exactsel.solving.small import is_small
from exactsel.studies import background_compile

if not _jit.ENABLED:
    pytest.skip("nothing is compiled", allow_module_level=True)

KERNELS = {each.py_func.__name__: each for each in (relax_nodes, list_sets, native_search, walk_subtrees)}
KINDS = [(kind, name) for kind, names in background_compile.LARGEST.items() for name in names]
INTERCEPT = [(f"{kind}-intercept", name) for kind, name in KINDS]


def large(kind):
    """A problem of a kind that is not begun without the compiler, and needs its largest kernels."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(900, 60))
    y = A[:, :3].sum(axis=1) + (8.0 if kind.startswith("logistic") else 1.0) * rng.normal(size=900)
    loss, _, intercept = kind.partition("-")
    target = np.sign(y) if loss == "logistic" else y
    problem = Problem.prepared(A, target, 4, loss=loss, lam=1.0, intercept=bool(intercept))
    assert not is_small(problem)
    assert background_compile.kind_of(problem) == (loss if loss == "quadratic" else kind)
    return problem


@pytest.mark.parametrize(
    ("kind", "name"), [*KINDS, *(pytest.param(*each, marks=pytest.mark.slow) for each in INTERCEPT)]
)
def test_the_types_are_those_of_larger_problems(kind, name, monkeypatch):
    monkeypatch.setattr("exactsel.solving.small.MOST_COLUMNS", 50)
    assert solve(large(kind), heuristics=("forward",), rel_eps=1e-4).claim != "bounded"
    compiled = KERNELS[name].compiled
    before = [*compiled.signatures]
    background_compile.compile_one(kind, name)
    assert [*compiled.signatures] == before
    assert before


def test_nothing_else_is_compiled(tmp_path):
    program = (
        "from exactsel._jit import tell_of_compiling\n"
        "from exactsel.studies.background_compile import compile_one\n"
        "tell_of_compiling(print, lambda name, seconds: None)\n"
        "compile_one('quadratic', 'loss_value')"
    )
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ,
                          "EXACTSEL_CACHE_DIR": str(tmp_path)}, capture_output=True, text=True, check=True)  # fmt: skip
    assert done.stdout.split() == ["loss_value"]
    assert [file.name.split("-")[0] for file in tmp_path.rglob("*.nbi")] == ["rows.loss_value"]


def test_unusual_problems_have_no_kind():
    A, y = np.eye(4), np.arange(4.0)
    plain = Problem(A, y, 2)
    assert background_compile.kind_of(plain) == "quadratic"
    weighted = Problem.prepared(A, y, 2, loss="huber", lam=1.0, weights=np.arange(1.0, 5.0))
    for problem in (ColumnSubsetProblem(A, 2), GroupedProblem(plain, ["a", "a", "b", "b"]), weighted):
        assert background_compile.kind_of(problem) is None


@pytest.fixture
def helpers(monkeypatch):
    monkeypatch.setattr(background_compile, "_helpers", made := [])
    monkeypatch.setattr(background_compile, "available_threads", lambda: 8)
    yield made
    background_compile._end_helpers()


def test_helpers_end_with_the_process_that_began_them(helpers, monkeypatch):
    monkeypatch.setattr(background_compile, "LARGEST", {"quadratic": ("no_such_kernel",)})
    slow = "import time; from exactsel.studies import ahead as a; a.threading.Thread(target=a._end_with_parent).start()"
    real = subprocess.Popen
    monkeypatch.setattr(background_compile.subprocess, "Popen", lambda _, **how: real(
        [sys.executable, "-c", f"{slow}; time.sleep(600)"], **how))  # fmt: skip
    problem = Problem(np.eye(4), np.arange(4.0), 2)
    assert background_compile.begin(problem) == ("no_such_kernel",)
    assert background_compile.begin(problem) == ()
    (helper,) = helpers
    helper.stdin.close()
    assert helper.wait(60) == 1


def test_who_waits_is_told_once(helpers, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(background_compile, "begin", lambda problem: asked.append(problem) or ("walk_subtrees",))
    told = Compiling(problem := Problem(np.eye(4), np.arange(4.0), 2), quiet=False, searches=True)
    told.ended("loaded", 3.0)
    told.begun("newton_refit")
    told.begun("walk_subtrees")
    told.ended("newton_refit", 2.25)
    told.ended("loss_value", 0.5)
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "compiling kernels, once (this can take a minute, walk_subtrees in the background) ...",
        "  newton_refit 2.2 s",
    ]
    assert asked == [problem]
    Compiling(problem, quiet=True, searches=True).begun("newton_refit")
    assert asked == [problem, problem]
    Compiling(problem, quiet=True, searches=False).begun("newton_refit")
    assert asked == [problem, problem]
    assert capsys.readouterr().err == ""
