"""The benchmark of column subset selection runs at its smallest, and its printed figures have their places."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner, Result
from matrices import optimum, slow_value

from exactsel import registry
from exactsel.problem.column_subset import ColumnSubsetProblem
from exactsel_heuristics.approx_svd import ApproximateSvdSelection
from exactsel_heuristics.base import Context
from exactsel_heuristics.greedy_css import GreedyColumnSelection
from exactsel_heuristics.iterative_css import IterativeColumnSelection
from exactsel_heuristics.two_stage import TwoStageColumnSelection

ROOT = Path(__file__).resolve().parents[2]


WITHOUT_POCSS = "two-stage,approx-svd,greedy-css,iterative-css"  # its kernels take half a minute to compile


@pytest.fixture
def benchmark_modules(monkeypatch):
    """The modules of the benchmark; ``benchmarks`` is not an installed package."""
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.pocss import commands, data, experiments, methods, published

    return SimpleNamespace(commands=commands, data=data, experiments=experiments, methods=methods, published=published)


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
    A = benchmark_modules.data.symmetric(benchmark_modules.data.generated())
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


@pytest.mark.skipif("EXACTSEL_DATA" not in os.environ, reason="EXACTSEL_DATA does not name the folder with sonar.npz")
def test_sonar_gives_the_figures_of_the_paper(benchmark_modules):
    """Table 1, sonar, to the printed digits; two-stage leaves its factorisation open."""
    problem = benchmark_modules.experiments.Table1("sonar", (50,)).problem(50)
    best = problem.best_rank_error(50)
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
