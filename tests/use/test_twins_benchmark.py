"""The benchmark of parallel loops runs at its smallest, and its loops give what their twins give."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from pareto_cases import problem_of

from exactsel._jit import available_threads
from exactsel_heuristics._pareto_search import run_synchronously
from exactsel_heuristics._pareto_tasks import regression_task
from exactsel_heuristics.base import Context

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))


def test_the_quick_run_writes_its_tables(tmp_path):
    from benchmarks.twins.commands import main

    out = tmp_path / "new" / "twins.md"
    result = CliRunner().invoke(main, ["--quick", "--out", str(out)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    first, second = out.read_text(encoding="utf-8").split("### ")[1:]
    rows = [[line for line in table.splitlines() if line.startswith("|")] for table in (first, second)]
    assert len(rows[0]) == 2 + 1 + 5 * min(2, available_threads())
    assert any("gram_objectives | not called" not in line and "gram_objectives" in line for line in rows[1])
    assert any("walk_subtrees" in line for line in rows[1])


def test_a_parallel_loop_shares_batches_as_the_team_does():
    from benchmarks.twins.in_loop import in_parallel_loop

    task = regression_task(problem_of("quadratic", 1, 30, 12, 3))
    team = run_synchronously(task, Context(seed=3), iterations=200, processors=4, threads=2, batch=20)
    for threads in (1, 2):
        assert in_parallel_loop(task, 3, 200, 4, 20, min(threads, available_threads())) == list(team.archive)


def test_copies_have_the_type_of_what_they_copy():
    from benchmarks.twins.loops import copied

    matrix = np.asfortranarray(np.ones((3, 2)))
    matrix.flags.writeable = False
    copy = copied((matrix, 1))[0]
    assert copy.flags.f_contiguous
    assert not copy.flags.writeable
    assert copy is not matrix
