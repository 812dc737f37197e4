"""The folder ``instances/``: the manifest tells the truth, the script makes the files, each file makes its point."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from exactsel import ColumnSubsetProblem, solve
from exactsel.data import load, read_columns
from exactsel.data.instance import read_instance
from exactsel.studies.heuristics import make, names
from exactsel_heuristics.base import Context

tomllib = pytest.importorskip("tomllib")

FOLDER = Path(__file__).resolve().parents[2] / "instances"
MANIFEST = tomllib.loads((FOLDER / "MANIFEST.toml").read_text(encoding="utf-8"))["instance"]
TINY = [entry for entry in MANIFEST if entry["known_by"] == "brute force over all supports"]

RANDOM = {"poss", "pposs", "exchange", "two-stage", "pocss"}
"""Methods that draw lots, judged by their median over SEEDS seeds."""
SEEDS = 9

every = pytest.mark.parametrize("entry", MANIFEST, ids=lambda entry: entry["file"])
tiny = pytest.mark.parametrize("entry", TINY, ids=lambda entry: entry["file"])


def problem_of(entry):
    problem = load(FOLDER / entry["file"])
    return ColumnSubsetProblem(problem.A, problem.k) if entry.get("problem") == "css" else problem


def best_supports(problem) -> tuple[float, list[list[int]]]:
    """The optimum and all optimal supports with at most k columns, none of which could be left out."""
    supports = [s for size in range(problem.k + 1) for s in combinations(range(problem.d), size)]
    values = [problem.fit(support).value for support in supports]
    optimum = min(values)
    return optimum, [list(s) for s, value in zip(supports, values, strict=True) if value <= optimum + 1e-12]


def forward(problem) -> list[int]:
    chosen: list[int] = []
    for _ in range(problem.k):
        others = [j for j in range(problem.d) if j not in chosen]
        chosen.append(min(others, key=lambda j: problem.fit([*chosen, j]).value))
    return chosen


def test_every_file_is_listed():
    assert sorted(entry["file"] for entry in MANIFEST) == sorted(path.name for path in FOLDER.glob("*.npz"))
    assert len(TINY) == 9


def test_the_table_is_what_the_manifest_says():
    """It is for everything a first file of one's own may hold."""
    (entry,) = tomllib.loads((FOLDER / "MANIFEST.toml").read_text(encoding="utf-8"))["table"]
    path = FOLDER / entry["file"]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == entry["sha256"]
    columns = {column.name: column for column in read_columns(path)}
    assert {columns["origin"].kind, columns["model year"].kind} == {"text", "dates"}
    assert (columns["mpg"].missing, columns["horsepower"].missing) == (8, 6)
    assert len(columns["name"].texts) == entry["rows"] == 406
    assert all(entry[key] for key in ("point", "origin", "licence"))


@every
def test_manifest_agrees_with_the_file(entry):
    path = FOLDER / entry["file"]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == entry["sha256"]
    instance = read_instance(path)
    assert instance.A.shape == (entry["n"], entry["d"])
    facts = (instance.k, instance.lam, instance.loss, instance.delta)
    assert facts == (entry["k"], entry["lam"], entry["loss"], entry.get("delta"))
    assert len(instance.feature_names) == entry["d"]
    assert all(entry[key] for key in ("point", "origin", "licence"))


@every
def test_the_listed_supports_reach_the_optimum(entry):
    problem = problem_of(entry)
    for support in entry["supports"]:
        assert len(support) <= problem.k
        assert problem.fit(support).value == pytest.approx(entry["optimum"], rel=1e-11)


@tiny
def test_brute_force_agrees(entry):
    problem = load(FOLDER / entry["file"])
    assert problem.n <= 16
    assert problem.d <= 10
    optimum, supports = best_supports(problem)
    assert optimum == pytest.approx(entry["optimum"], rel=1e-11)
    assert supports == entry["supports"]


@pytest.mark.parametrize("entry", [entry for entry in MANIFEST if entry not in TINY], ids=lambda entry: entry["file"])
def test_the_search_proves_the_larger_ones(entry):
    result = solve(problem_of(entry))
    assert result.upper == pytest.approx(entry["optimum"], rel=1e-9)
    assert result.lower == pytest.approx(entry["optimum"], rel=1e-5)


@pytest.mark.parametrize(
    ("entry", "method"),
    [
        pytest.param(entry, method, id=f"{entry['file']}-{method}")
        for entry in MANIFEST
        for method in entry.get("fails", ())
    ],
)
def test_methods_said_to_fail_do_fail(entry, method):
    """Their own answer, refitted exactly, is clearly worse than the optimum; with most seeds, if it has any."""
    problem = problem_of(entry)
    seeds = range(SEEDS if method in RANDOM else 1)
    supports = [make(method).run(problem, Context(seed=seed)).support for seed in seeds]
    values = [problem.fit(support).value for support in supports]
    assert min(values) > entry["optimum"] * (1.0 - 1e-9)
    assert np.median(values) > 1.01 * entry["optimum"]


def test_every_method_fails_somewhere():
    """Each built-in method has its instance; the asynchronous POSS is pposs with an answer that may vary."""
    failing = {method for entry in MANIFEST for method in entry.get("fails", ())}
    assert failing >= set(names()) - {"pposs-async", "islands"}


def test_the_script_makes_the_folder(tmp_path, monkeypatch):
    pytest.importorskip("sklearn")
    spec = importlib.util.spec_from_file_location("make_instances", FOLDER / "make_instances.py")
    script = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, script)
    spec.loader.exec_module(script)
    script.main(tmp_path)
    remade = tomllib.loads((tmp_path / "MANIFEST.toml").read_text(encoding="utf-8"))["instance"]
    assert [entry["file"] for entry in remade] == [entry["file"] for entry in MANIFEST]
    for new, old in zip(remade, MANIFEST, strict=True):
        if old in TINY:
            assert new == old
        else:
            # The last digits depend on the version of scikit-learn.
            assert {**new, "sha256": ""} == {**old, "sha256": ""}
        ours, theirs = read_instance(tmp_path / new["file"]), read_instance(FOLDER / old["file"])
        np.testing.assert_allclose(ours.A, theirs.A, rtol=0, atol=1e-13)
        np.testing.assert_allclose(ours.y, theirs.y, rtol=0, atol=1e-13)


def test_greedy_falls_into_the_trap():
    problem = load(FOLDER / "greedy-trap.npz")
    best = problem.fit([0, 1]).value
    chosen = forward(problem)
    assert chosen[0] == 2
    assert problem.fit(chosen).value > 100 * best
    correlation = np.abs(problem.A.T @ problem.y) / np.linalg.norm(problem.A, axis=0)
    assert np.argmax(correlation) == 2


def test_greedy_takes_the_middle_of_the_exponential_decay():
    problem = load(FOLDER / "exponential-decay.npz")
    assert forward(problem) == [1, 0]
    assert best_supports(problem)[1] == [[0, 2]]


def test_twins_are_twins():
    problem = load(FOLDER / "twins.npz")
    np.testing.assert_array_equal(problem.A[:, 1], problem.A[:, 3])
    assert best_supports(problem)[1] == [[0, 1], [0, 3]]


@pytest.mark.parametrize(
    ("file", "own", "quadratic"), [("outlier.npz", [0, 2], [0, 1]), ("labels.npz", [0, 1], [1, 3])]
)
def test_the_loss_decides_the_columns(file, own, quadratic):
    assert best_supports(load(FOLDER / file))[1] == [own]
    assert best_supports(load(FOLDER / file, loss="quadratic"))[1] == [quadratic]
