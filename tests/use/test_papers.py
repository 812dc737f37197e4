"""One command a paper: each writes its exhibits as data, text and picture; differences are tested by ranks."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from matrices import optimum, slow_value
from scipy.stats import mannwhitneyu, wilcoxon

from exactsel.problem.column_subset import ColumnSubsetProblem
from exactsel.problem.regression import Problem
from exactsel_heuristics.base import Context

ROOT = Path(__file__).resolve().parents[2]

EXHIBITS = {
    "000": ["table-1", "table-2", "figure-1", "figure-3", "figure-2", "figure-4", "optima"],
    "001": ["theorem-1", "theorem-2", "figure-1", "effort"],
    "002": ["figure-2", "figure-3", "figure-4", "figure-5", "figure-6", "figure-7"],
    "003": ["table-1", "figure-1", "figure-2"],
    "004": ["table-1", "figures-1-and-2", "figure-3", "figures-4-to-9", "figures-10-to-15"],
}

LISTS = {"table-1"}
"""Exhibits without a picture, where no other paper has one of this name."""


@pytest.fixture
def papers(monkeypatch):
    """The modules of the benchmark; ``benchmarks`` is not an installed package."""
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.delenv("EXACTSEL_DATA", raising=False)
    from benchmarks import differences
    from benchmarks.paper import mip, real
    from benchmarks.papers import commands, exhibit, pictures
    from benchmarks.pocss import weighted

    modules = {"differences": differences, "mip": mip, "real": real, "commands": commands, "exhibit": exhibit}
    return SimpleNamespace(**modules, pictures=pictures, weighted=weighted)


def run(papers, *arguments) -> str:
    result = CliRunner().invoke(papers.commands.main, [str(part) for part in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def check_exhibits(folder: Path, names: list[str], output: str) -> None:
    index = (folder / "index.md").read_text(encoding="utf-8")
    for name in names:
        text = (folder / f"{name}.md").read_text(encoding="utf-8")
        assert text.startswith("**The paper:** ")
        assert f"({name}.md)" in index
        assert f"{name}: " in output
        with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        lines = [line for line in text.splitlines() if line.startswith("|")]
        assert len(lines) == len(rows) + 2
        picture = folder / f"{name}.png"
        assert picture.exists() == (f"({name}.png)" in text)
        assert not picture.exists() or picture.read_bytes().startswith(b"\x89PNG")
    with_picture = {file.stem for file in folder.glob("*.png")}
    assert with_picture >= {name for name in names if name not in LISTS}


@pytest.mark.parametrize("paper", ["000", "001", "003", "004"])
def test_a_paper_becomes_data_text_and_pictures(papers, tmp_path, paper):
    output = run(papers, paper, "--quick", "--out", tmp_path)
    check_exhibits(tmp_path / paper, EXHIBITS[paper], output)
    assert not list(tmp_path.rglob(".*")), "a temporary file was left"


@pytest.mark.slow
def test_the_best_first_search_paper_becomes_data_text_and_pictures(papers, tmp_path):
    output = run(papers, "002", "--quick", "--out", tmp_path)
    check_exhibits(tmp_path / "002", EXHIBITS["002"], output)
    assert "housing is skipped: EXACTSEL_DATA does not name a folder" in output


def test_one_exhibit_is_measured_alone(papers, tmp_path):
    output = run(papers, "002", "--quick", "--only", "figure-5", "--out", tmp_path)
    check_exhibits(tmp_path / "002", ["figure-5"], output)
    assert len(list((tmp_path / "002").glob("*.png"))) == 1


def test_solvers_that_are_missing_are_left_out_in_a_sentence(papers, monkeypatch):
    monkeypatch.setattr(papers.mip, "installed", lambda python: ("scip", "leaps"))
    assert papers.mip.solvers("python") == (
        ("SCIP",),
        ["gurobipy is skipped: python does not have it; pip install gurobipy there."],
    )
    monkeypatch.undo()
    monkeypatch.syspath_prepend(str(ROOT))
    none, (sentence,) = papers.mip.solvers("/no/such/python")
    assert none == ()
    assert sentence.startswith("The MIP solvers are skipped: /no/such/python cannot list them (")


def test_mip_solvers_stand_beside_the_search(papers, monkeypatch):
    """Their absolute gap is the permitted error; SCIP runs only where Gurobi's licence ends."""
    asked = []

    def solved(solver, file, demands, more):
        asked.append((solver.name, more[more.index("--abs-gap") + 1], demands.time_limit))
        with np.load(file) as stored:
            assert (int(stored["k"]), float(stored["lam"])) == (2, 0.1)
        if solver.name == "gurobi-perspective" and refuse:
            return {"refused": "licence: 309 variables, free are 200"}
        if solver.name == "gurobi-indicator" and refuse:
            return {"refused": "licence: 206 variables, free are 200"}
        return {"support": [0, 1], "nodes": 7, "seconds": 0.5, "finished": True, "lower": 0.0}

    monkeypatch.setattr(papers.mip, "solved", solved)
    monkeypatch.setattr(papers.real, "diabetes", lambda: (np.eye(8, 3) + 0.1, np.arange(8.0)))
    for refuse, scip in ((False, "–"), (True, "0.5")):
        asked.clear()
        experiment = papers.real.Real("diabetes", True, (2,), (0.1,), (0.0, 0.01), 60.0, mip=tuple(papers.mip.MIP))
        rows = list(experiment.rows())
        assert [row["SCIP: seconds"] for row in rows] == [scip] * 2
        assert {eps for _, eps, _ in asked} == {"0.0", "0.01"}
        assert {limit for _, _, limit in asked} == {60.0}
        assert ("scip", "0.01", 60.0) in asked or not refuse
    assert rows[0]["Gurobi, indicators: seconds"] == "licence: 206 variables, free are 200"


@pytest.mark.parametrize("name", ["Gurobi, indicators", "Gurobi, perspective", "SCIP"])
def test_a_mip_solver_finds_the_optimum(papers, name):
    pytest.importorskip({"SCIP": "pyscipopt"}.get(name, "gurobipy"))
    rng = np.random.default_rng(0)
    problem = Problem(rng.standard_normal((20, 6)), rng.standard_normal(20), 2, lam=0.1)
    best = min(problem.fit([i, j]).value for i in range(6) for j in range(i))
    run = papers.mip.mip_run(problem, name, papers.real.sys.executable, eps=0.0, limit=60.0, upper=2.0 * best)
    assert run.solved
    assert run.value == pytest.approx(best, rel=1e-6)


def test_rank_tests_are_those_of_their_definition(papers):
    rng = np.random.default_rng(0)
    first, second = rng.normal(0.0, 1.0, 12), rng.normal(0.6, 1.0, 12)
    assert papers.differences.paired(first, second) == pytest.approx(wilcoxon(first, second).pvalue)
    assert papers.differences.unpaired(first, second) == pytest.approx(mannwhitneyu(first, second).pvalue)
    assert papers.differences.paired(first, first + 1e-12) == 1.0
    assert papers.differences.unpaired([2.0, 2.0], [2.0, 2.0, 2.0]) == 1.0
    assert math.isnan(papers.differences.paired([1.0], [2.0]))
    assert math.isnan(papers.differences.unpaired([1.0], [2.0, 3.0]))
    assert [papers.differences.p_text(p) for p in (math.nan, 1e-5, 0.0314, 1.0)] == ["–", "< 0.001", "0.031", "1.000"]
    # Five pairs that all differ one way: of 32 orders of signs two are as extreme.
    assert papers.differences.paired([1.0, 2.0, 3.0, 4.0, 5.0], [0.0] * 5) == pytest.approx(2 / 32)


def test_the_number_in_a_cell(papers):
    from benchmarks.paper.tables import AtLeast, Spread

    cells = {"**0.4242**": 0.4242, "≥ 1,234.5": 1234.5, "0.3 ± 0.1": 0.3, "1e-05": 1e-5, 7: 7.0}
    cells |= {"–": math.nan, "licence: 206 variables": math.nan}
    for cell, value in cells.items():
        assert papers.exhibit.number(cell) == pytest.approx(value, nan_ok=True)
    assert papers.exhibit.number(Spread(2.0, 0.5)) == 2.0
    assert papers.exhibit.number(AtLeast(3.0)) == 3.0
    assert [papers.exhibit.deviation(cell) for cell in (Spread(2.0, 0.5), "0.3 ± 0.1", "0.3", 1)] == [
        0.5,
        0.1,
        0.0,
        0.0,
    ]


def matrices(rng: np.random.Generator):
    """Plain ones, with duplicate, negative and constant columns, fewer rows than columns, unlike magnitudes."""
    for n, d in ((6, 4), (8, 5), (3, 6)):
        A = rng.standard_normal((n, d))
        yield A
        twin = A.copy()
        twin[:, 1], twin[:, 2] = twin[:, 0], -twin[:, 0]
        yield twin
        constant = A.copy()
        constant[:, 0] = 0.0
        constant[:, 1] = 1.0
        yield constant
        yield A * np.geomspace(1.0, 1e4, d)


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.slow] * (seed > 3)) for seed in range(40)])
def test_weighted_a_star_keeps_its_promise(papers, seed):
    """With weight 0 the first selection taken is optimal; else its error is within the bound."""
    for A in matrices(np.random.default_rng(seed)):
        for k in range(1, A.shape[1] + 1):
            best, total = optimum(A, k), float(np.sum(A**2))
            gain = float(np.sum(np.linalg.svd(A, compute_uv=False)[:k] ** 2))
            for weight in (0.0, 0.5, 1.0):
                answer = papers.weighted.WeightedAStar(weight).run(ColumnSubsetProblem(A, k), Context()).support
                assert len(answer) <= k
                value = slow_value(A, answer)
                assert value <= best + weight * gain + 1e-9 * total
                assert weight > 0.0 or value == pytest.approx(best, abs=1e-9 * total)


def test_weighted_a_star_ends_with_the_first_selection_it_takes(papers):
    """Orthogonal columns: each step takes the longest that is left, and nothing else is opened."""
    A = np.diag([1.0, 5.0, 2.0, 4.0, 3.0])
    answer = papers.weighted.WeightedAStar().run(ColumnSubsetProblem(A, 3), Context())
    assert sorted(answer.support) == [1, 3, 4]
    assert answer.evaluations < 5 + 4 + 3, "keys of selections that stay behind are not computed"


def test_weighted_a_star_that_gives_up_is_left_out_in_a_sentence(papers, monkeypatch):
    from benchmarks.pocss import experiments, methods

    monkeypatch.setattr(methods, "WeightedAStar", lambda: papers.weighted.WeightedAStar(limit=2))
    comparison = experiments.Figure1("generated", (4,), methods=("greedy-css", "WA*"))
    (row,) = comparison.rows()
    assert row["WA*"] == "–"
    assert comparison.complaints == [
        "generated: WA* is left out at k = 4: no selection of k columns came first in 2 keys."
    ]
