"""Watching a search: the trace, the callbacks and the generator tell the same story as the result."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from exactsel import ColumnSubsetProblem, Problem, ProgressLog, Search, Settings, load, solve
from exactsel.cli.main import cli
from exactsel.errors import InputError
from exactsel.observers.trace import SCHEMA

DIABETES = Path(__file__).resolve().parents[2] / "instances" / "diabetes.npz"

FIELDS = {
    "run": {"schema", "version", "problem", "objective", "settings"}, "started": {"open"},
    "incumbent": {"support", "coef", "names", "source"}, "bounded": {"node", "bound", "solved", "iterations"},
    "fixed": {"node", "columns", "included", "bounds"}, "divided": {"node", "columns", "children", "rest"},
    "discarded": {"node", "reason", "bound"},
    "subtree": {"node", "closer", "nodes", "min_pruned_bound", "open", "counted"}, "raised": set(), "round": {"round"},
    "finished": {"termination", "open"},
    "result": {"result"},
}  # fmt: skip


def problems():
    rng = np.random.default_rng(3)
    A = rng.standard_normal((30, 10))
    y = A[:, :4] @ [1.0, -1.0, 0.5, 0.5] + rng.standard_normal(30)
    yield Problem(A, y, 3, lam=0.1, feature_names=[f"c{j}" for j in range(10)])
    yield Problem(A, y, 3, lam=1.0, loss="huber", delta=0.5)
    yield Problem(A, np.sign(y), 3, lam=1.0, loss="logistic")
    yield ColumnSubsetProblem(A, 3)


def lines_of(path: Path) -> list[dict]:
    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    return [json.loads(line, parse_constant=refuse) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.smoke
@pytest.mark.parametrize("problem", [*problems()], ids=str)
@pytest.mark.parametrize("options", [{}, {"subtrees": False}, {"details": True}, {"tree": "state-space"}], ids=str)
class TestTrace:
    def test_every_line_has_the_documented_fields(self, tmp_path, problem, options):
        if problem.kind == "css":
            options = {name: value for name, value in options.items() if name != "tree"}
        result = solve(problem, trace=tmp_path / "run.jsonl", **options)
        lines = lines_of(tmp_path / "run.jsonl")
        for line in lines:
            assert {*line} == {"event", "time", "lower", "upper"} | FIELDS[line["event"]]
        assert (lines[0]["event"], lines[0]["schema"], lines[-1]["event"]) == ("run", SCHEMA, "result")
        assert lines[0]["problem"]["problem_hash"] == problem.hash
        assert lines[-1]["result"]["tree_hash"] == result.tree_hash
        assert [line["time"] for line in lines] == sorted(line["time"] for line in lines)
        included = lines[1:-1]
        uppers = [line["upper"] for line in included]
        lowers = [-np.inf if line["lower"] is None else line["lower"] for line in included]
        assert uppers == sorted(uppers, reverse=True)
        assert all(low <= up for low, up in zip(lowers, uppers, strict=True))
        assert (uppers[-1], lowers[-1]) == (result.upper, result.lower)
        models = [line for line in included if line["event"] == "incumbent"]
        assert tuple(models[-1]["support"]) == result.support
        if problem.feature_names:
            assert models[-1]["names"] == [problem.feature_names[j] for j in result.support]

    def test_nodes_add_up(self, tmp_path, problem, options):
        """Every node that is opened is closed, divided, walked or open at the end."""
        if problem.kind == "css":
            options = {name: value for name, value in options.items() if name != "tree"}
        solve(problem, trace=tmp_path / "run.jsonl", node_limit=20, **options)
        born, ended, left = set(), set(), None
        for line in lines_of(tmp_path / "run.jsonl"):
            match line["event"]:
                case "started":
                    born |= {*line["open"]}
                case "divided":
                    born |= {*line["children"], line["rest"]}
                    ended.add(line["node"])
                case "subtree":
                    ended.add(line["node"])
                    ended -= {*line["open"]}
                    born |= {*line["open"]}
                case "discarded":
                    ended.add(line["node"])
                case "finished":
                    left = line["open"]
        assert len(born - ended) == left


class TestCallbacks:
    def test_they_see_what_the_result_says(self):
        problem = load(DIABETES, k=4)
        models, bounds, everything = [], [], []
        result = solve(
            problem,
            on_incumbent=lambda event, state: models.append((event.upper, event.support, state.upper)),
            on_bound=lambda event, state: bounds.append((event.lower, state.lower)),
            callback=lambda event, _: everything.append(event),
        )
        assert models[-1] == (result.upper, result.support, result.upper)
        assert [upper for upper, _, _ in models] == sorted((upper for upper, _, _ in models), reverse=True)
        assert bounds[-1] == (result.lower, result.lower)
        assert [lower for lower, _ in bounds] == sorted(lower for lower, _ in bounds)
        assert len(everything) > len(models) + len(bounds)

    def test_the_generator_can_be_left(self):
        search = Search(load(DIABETES, k=6), Settings(subtrees=False))
        for _ in search:
            if search.state.nodes >= 5:
                break
        result = search.result()
        assert result.termination == "interrupted"
        assert result.lower <= solve(load(DIABETES, k=6)).upper <= result.upper

    def test_an_error_in_a_callback_reaches_the_caller_and_closes_the_trace(self, tmp_path):
        def stop(event, state):
            raise RuntimeError("enough")

        with pytest.raises(RuntimeError, match="enough"):
            solve(load(DIABETES, k=4), on_incumbent=stop, trace=tmp_path / "run.jsonl")
        assert [line["event"] for line in lines_of(tmp_path / "run.jsonl")] == ["run", "incumbent"]


class TestCommandLine:
    def test_trace(self, tmp_path):
        file = tmp_path / "run.jsonl"
        shown = CliRunner().invoke(cli, ["solve", str(DIABETES), "--trace", str(file), "--json", "--quiet"])
        assert lines_of(file)[-1]["result"]["support"] == json.loads(shown.stdout)["support"]

    def test_a_trace_that_cannot_be_written(self, tmp_path):
        with pytest.raises(InputError, match=r"the trace .* cannot be written \(No such file"):
            solve(load(DIABETES), trace=tmp_path / "nowhere" / "run.jsonl")


def test_progress_table_in_any_stream():
    stream = io.StringIO()
    result = solve(load(DIABETES, k=4), callback=ProgressLog(stream, interval=0.0))
    rows = stream.getvalue().splitlines()
    assert result.reached
    assert len({len(row) for row in rows}) == 1, "all rows are aligned"
    assert all(row.isprintable() for row in rows)
