"""The benchmark of parallel Pareto optimisation runs at its smallest and leaves its tables."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from exactsel._jit import available_threads

ROOT = Path(__file__).resolve().parents[2]


def test_the_quick_run_writes_its_tables(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.pposs.commands import main

    out = tmp_path / "new" / "pposs.md"
    result = CliRunner().invoke(main, ["--quick", "--out", str(out)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    text = out.read_text(encoding="utf-8")
    tables = text.split("### ")[1:]
    assert [table.split(":")[0].split(",")[0] for table in tables] == [
        "Evaluations a second over threads",
        "Figure 1",
        "WorkBudget to reach forward selection",
        "Cost of one evaluation",
        "Threads",
        "Iterations needed over virtual processors",
    ]
    rows = [[line for line in table.splitlines() if line.startswith("|")] for table in tables]
    assert len(rows[0]) == 2 + 3 * 3
    assert len(rows[1]) == 2 + available_threads()
    assert len(rows[2]) == 2 + 5
    assert len(rows[3]) == 2 + 2
    assert len(rows[5]) == 2 + 3
    assert all(name in text for name in ("POSS", "PPOSS-asy", "logistic, random 100 x 12, k = 2"))
