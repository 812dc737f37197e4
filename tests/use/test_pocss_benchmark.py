"""The benchmark of column subset selection runs at its smallest, and its printed figures have their places."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner, Result
from matrices import optimum, slow_value
from scipy.stats import rankdata

from exactsel import registry
from exactsel.problem.column_subset import ColumnSubsetProblem
from exactsel_heuristics.approx_svd import ApproximateSvdSelection
from exactsel_heuristics.base import Context
from exactsel_heuristics.greedy_css import GreedyColumnSelection
from exactsel_heuristics.iterative_css import IterativeColumnSelection
from exactsel_heuristics.pocss import ParetoColumnSelection
from exactsel_heuristics.two_stage import TwoStageColumnSelection

ROOT = Path(__file__).resolve().parents[2]


WITHOUT_POCSS = "two-stage,approx-svd,greedy-css,iterative-css"  # its kernels take half a minute to compile


@pytest.fixture
def benchmark_modules(monkeypatch):
    """The modules of the benchmark; ``benchmarks`` is not an installed package."""
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.pocss import anytime, commands, data, experiments, methods, published

    modules = {"commands": commands, "data": data, "experiments": experiments, "methods": methods}
    return SimpleNamespace(**modules, anytime=anytime, published=published)


def run_command(modules, *arguments) -> Result:
    result = CliRunner().invoke(modules.commands.main, [str(part) for part in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def cells(table: str) -> list[list[str]]:
    """The rows of a Markdown table without its heading."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.mark.parametrize(("command", "rows"), [("table1", 8), ("figure1", 2), ("exact", 2)])
def test_a_command_writes_its_table(benchmark_modules, tmp_path, command, rows):
    file = tmp_path / "table.md"
    result = run_command(benchmark_modules, command, "--quick", "--methods", WITHOUT_POCSS, "--out", file)
    table = file.read_text(encoding="utf-8")
    assert len(cells(table)) == rows
    assert table in result.output
    assert list(tmp_path.iterdir()) == [file]


def test_the_exact_table_proves_its_optima(benchmark_modules, tmp_path):
    file = tmp_path / "table.md"
    run_command(benchmark_modules, "exact", "--quick", "--methods", "greedy-css", "--out", file)
    A = benchmark_modules.data.unit(benchmark_modules.data.generated())
    for k, row in zip((1, 2), cells(file.read_text(encoding="utf-8")), strict=True):
        assert row[2] in ("optimal", "within_eps")
        assert float(row[3]) == pytest.approx(optimum(A, k), rel=1e-6)
        greedy = GreedyColumnSelection().run(ColumnSubsetProblem(A, k), Context()).support
        assert float(row[-1].removesuffix(" %")) == pytest.approx(
            100.0 * (slow_value(A, greedy) / optimum(A, k) - 1.0), abs=6e-4
        )


def test_missing_data_and_methods_are_left_out_in_a_sentence(benchmark_modules, tmp_path, monkeypatch):
    def load(kind, name):
        if name == "pocss":
            raise ImportError("no such module")
        return registry.load(kind, name)

    monkeypatch.setattr(benchmark_modules.methods, "registry", SimpleNamespace(load=load))
    monkeypatch.delenv("EXACTSEL_DATA", raising=False)
    file = tmp_path / "table.md"
    result = run_command(benchmark_modules, "figure1", "--quick", "--methods", "greedy-css,pocss", "--out", file)
    assert "pocss is left out: no such module" in result.output
    assert all(len(row) == 3 for row in cells(file.read_text(encoding="utf-8")))
    result = run_command(benchmark_modules, "table1", "--data", "sonar", "--out", tmp_path / "none.md")
    assert "sonar is skipped: EXACTSEL_DATA does not name a folder" in result.output
    assert not (tmp_path / "none.md").exists()


def test_an_unknown_method_is_refused(benchmark_modules, tmp_path):
    arguments = ["table1", "--methods", "best", "--out", str(tmp_path / "table.md")]
    result = CliRunner().invoke(benchmark_modules.commands.main, arguments)
    assert result.exit_code == 2
    assert "'best' is not one of two-stage" in result.output


def test_scalings(benchmark_modules):
    A = benchmark_modules.data.generated()
    for name, scale in benchmark_modules.data.SCALINGS.items():
        lengths = np.linalg.norm(scale(A), axis=0)
        assert lengths[3] == pytest.approx(1.0 if name == "unit" else 0.0, abs=1e-12), "the constant column"
        np.testing.assert_allclose(np.delete(lengths, 3), 1.0)
    symmetric = np.delete(benchmark_modules.data.symmetric(A), 3, axis=1)
    np.testing.assert_allclose(symmetric.max(axis=0), -symmetric.min(axis=0))


def test_the_printed_figures_have_their_places(benchmark_modules):
    figure = benchmark_modules.published.figure
    assert (figure("sonar", 50, "greedy-css"), figure("dna", 50, "pocss")) == ("2.852", "1.311 ± 0.000")
    assert (figure("sonar", 60, "greedy-css"), figure("generated", 50, "pocss")) == ("–", "–")
    assert (figure("Com Cri", 50, "WA*"), figure("s-emg", 50, "approx-svd")) == ("1.203", "1.226")
    assert list(benchmark_modules.published.SHAPES) == list(benchmark_modules.published.TABLE_1)


def test_the_printed_figures_have_the_printed_ranks(benchmark_modules):
    """The last row of table 1, the mean rank of every method, follows from the ten others."""
    table = benchmark_modules.published.TABLE_1.values()
    means = np.array([[float(cell.split()[0]) for cell in row] for row in table])
    assert means.shape == (10, 6)
    ranks = np.mean([rankdata(row) for row in means], axis=0)
    np.testing.assert_allclose(ranks, np.array(benchmark_modules.published.AVERAGE_RANK, dtype=float), atol=0.051)


def test_pocss_over_time_says_what_shorter_runs_say(benchmark_modules, tmp_path, monkeypatch):
    figure2 = benchmark_modules.anytime.Figure2("generated", (4,), pocss_seeds=3)
    (row,) = figure2.rows()
    problem = figure2.problem(4)
    best, end = problem.objective.best_rank_error(4), 2.0 * np.e * 4 * 4 * 20
    for share in (0.1, 0.5, 1.0):
        method = ParetoColumnSelection(iterations=int(share * end))
        values = [problem.fit(method.run(problem, Context(seed=seed)).support).value for seed in range(3)]
        assert row[f"pocss, {100 * share:g} % of 2ek²d"] == f"{np.mean(values) / best:.3f}"
    greedy = problem.fit(GreedyColumnSelection().run(problem, Context()).support).value
    assert row["greedy-css"] == f"{greedy / best:.3f}"
    plot = tmp_path / "curves.png"
    run_command(benchmark_modules, "figure2", "--quick", "--out", tmp_path / "table.md", "--plot", plot)
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_any_matrix_of_a_folder_is_compared(benchmark_modules, tmp_path, monkeypatch):
    """Under the spelling of the file; columns are scaled as the paper says unless told otherwise."""
    monkeypatch.delenv("EXACTSEL_DATA", raising=False)
    A = np.random.default_rng(0).standard_normal((30, 60)) + 1.0
    np.savez(tmp_path / "Scene.npz", A=A)
    np.savez(tmp_path / "ours.npz", A=A)
    arguments = ["table1", "--folder", tmp_path, "--methods", "greedy-css", "--k", "20,50", "--out", tmp_path / "t.md"]
    output = run_command(benchmark_modules, *arguments).output
    assert "Error ratios, columns scaled: unit" in output
    rows = cells((tmp_path / "t.md").read_text(encoding="utf-8"))
    assert [(row[0], row[1], row[6]) for row in rows] == [
        ("scene (30, 60)", "20", "–"),
        ("scene (30, 60)", "50", "1.548"),
    ]
    assert "madelon is skipped: there is no" in output
    run_command(benchmark_modules, *arguments, "--k", "4", "--first-rows", "12")
    assert cells((tmp_path / "t.md").read_text(encoding="utf-8"))[0][0] == "scene (12, 60)"
    run_command(benchmark_modules, *arguments, "--data", "all")
    rows = cells((tmp_path / "t.md").read_text(encoding="utf-8"))
    assert [row[0] for row in rows] == ["Scene (30, 60)"] * 2 + ["ours (30, 60)"] * 2


@pytest.mark.skipif("EXACTSEL_DATA" not in os.environ, reason="EXACTSEL_DATA does not name the folder with sonar.npz")
def test_sonar_gives_the_figures_of_the_paper(benchmark_modules):
    """Table 1, sonar, to the printed digits; two-stage leaves its factorisation open."""
    problem = benchmark_modules.experiments.Table1("sonar", (50,), scaling="symmetric").problem(50)
    best = problem.objective.best_rank_error(50)
    ratio = {
        h.name: problem.fit(h.run(problem, Context()).support).value / best
        for h in (
            GreedyColumnSelection(),
            IterativeColumnSelection(),
            ApproximateSvdSelection(),
            TwoStageColumnSelection(),
        )
    }
    assert ratio["greedy-css"] == pytest.approx(2.852, abs=5e-4)
    assert ratio["approx-svd"] == pytest.approx(2.860, abs=5e-4)
    assert ratio["iterative-css"] == pytest.approx(2.524, abs=5e-4)
    assert ratio["two-stage"] == pytest.approx(2.656, abs=5e-3)
