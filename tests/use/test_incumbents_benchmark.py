"""``python -m benchmarks.incumbents fifty``: variants of the portfolio, and the tables."""

from __future__ import annotations

from click.testing import CliRunner

from benchmarks.incumbents.commands import main
from benchmarks.incumbents.fifty import REAL, generated
from benchmarks.incumbents.generators import ALL, Run, run, variants
from benchmarks.incumbents.who import METHODS, read_runs, report
from exactsel import solve


def test_there_are_fifty_problems():
    assert len(generated()) + sum(len(sizes) for losses in REAL.values() for sizes in losses.values()) == 50


def test_the_command_writes_tables_and_does_not_run_again(tmp_path):
    runs, out = tmp_path / "runs.jsonl", tmp_path / "page.md"
    options = ["fifty", "--quick", "--problems", "overlap*", "--runs", str(runs), "--out", str(out)]
    done = CliRunner().invoke(main, options, catch_exceptions=False)
    assert done.exit_code == 0
    lines = runs.read_text()
    assert CliRunner().invoke(main, options, catch_exceptions=False).exit_code == 0
    assert runs.read_text() == lines
    assert "| overlap, k = 2 | 11.68331 | forward |" in out.read_text()
    known = read_runs(runs)
    assert {ALL, "without exchange", "only poss"} <= known["overlap, k = 2"].keys()


def test_a_variant_changes_who_searches_and_leaves_the_default_as_it_was():
    problem = generated()["overlap, k = 2"]()
    before = solve(problem, node_limit=5, signals=()).source
    only = run(problem, "only greedy-rls", 1.0, 60.0, 0)
    assert {source for source, *_ in only.found} <= {"greedy-rls", "search"}
    assert set(variants(problem)) >= {f"without {name}" for name in METHODS[::2]}
    assert solve(problem, node_limit=5, signals=()).source == before


def test_the_table_tells_who_is_missed():
    whole = Run(ALL, 1.0, 0.5, "poss", 2e9, 1.0, 5e9, 3.0, (("forward", 2.0, 0.0, 0.1), ("poss", 1.0, 2e9, 1.0)))
    without = Run("without poss", 1.5, 0.5, "swap", 3e9, 1.0, 5e9, 3.0, (("swap", 1.5, 3e9, 1.0),))
    text = report({"a problem": {ALL: whole, "without poss": without}})
    assert "| a problem | 1 | poss | 2.0e+09 | 1 | 0 |" in text
    assert "+50 %" in text
    brings = next(line for line in text.splitlines() if line.startswith("| poss |"))
    assert [cell.strip() for cell in brings.split("|")[2:-1]] == ["1", "1", "1", "1", "0", "0"]
