"""The benchmark of speed runs at its smallest, judges what it is told, and makes the instances it says."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner, Result
from clocks import HANG

from exactsel.data.generate import hard, quadratic
from exactsel.data.instance import read_instance, write_instance
from exactsel.problem.regression import Problem

ROOT = Path(__file__).resolve().parents[2]

PATIENT = ("--time-limit", str(HANG))


@pytest.fixture
def speed(monkeypatch):
    """The modules; ``benchmarks`` is not an installed package."""
    monkeypatch.syspath_prepend(str(ROOT))
    names = ("commands", "comparison", "hints", "instances", "peers.running", "processes", "profile", "where")
    modules = {name.rpartition(".")[2]: import_module(f"benchmarks.speed.{name}") for name in names}
    return SimpleNamespace(**modules)


@pytest.fixture
def tiny(tmp_path, speed) -> Path:
    """A file with a quadratic instance."""
    makers = {"tiny": lambda: hard(20, 6, 2, rho=0.2)}
    (file,) = speed.instances.write(tmp_path / "tiny", makers)
    return file


@pytest.fixture
def planted(tmp_path, speed) -> Path:
    """A file with a quadratic instance whose two columns stand out, so that a price per column selects them."""
    makers = {"planted": lambda: quadratic(30, 6, 2, 0, lam=0.5, rho=0.2)}
    (file,) = speed.instances.write(tmp_path / "planted", makers)
    return file


def run(speed, arguments: list[str]) -> Result:
    result = CliRunner().invoke(speed.commands.main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def table(text: str) -> list[dict[str, str]]:
    lines = [[cell.strip() for cell in line[1:-1].split("|")] for line in text.splitlines() if line.startswith("|")]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[2:]]


@pytest.fixture
def plain_python(monkeypatch, speed):
    """Processes that solve need not compile anything first, and take the time they need."""
    monkeypatch.setenv("EXACTSEL_JIT", "0")
    monkeypatch.setattr(speed.commands, "QUICK_LIMIT", HANG)


@pytest.mark.usefixtures("plain_python")
def test_compare_writes_a_table_and_a_picture(speed, tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(speed.commands, "installed", lambda python: ("okridge",))
    write_instance(tiny, replace(read_instance(tiny), loss="logistic", y=np.sign(read_instance(tiny).y)))
    out, plot = tmp_path / "new" / "table.md", tmp_path / "new" / "profile.svg"
    files = ["--instances", str(tiny), "--out", str(out), "--plot", str(plot)]
    result = run(speed, ["compare", "--quick", *PATIENT, "--faithful", "--peers", "okridge,gurobi", *files])
    assert "gurobi-bigm is skipped" in result.output
    rows = table(out.read_text(encoding="utf-8"))
    assert [row["solver"] for row in rows] == ["exactsel", "exactsel-faithful", "okridge"]
    assert rows[0]["ratio"] == "1"
    assert rows[0]["objective"] == rows[1]["objective"] != "–"
    assert rows[2]["gap"] == "no logistic loss"
    assert plot.read_text(encoding="utf-8").lstrip().startswith("<?xml")


@pytest.mark.usefixtures("plain_python")
def test_where_accounts_for_the_whole_time(speed, tiny):
    (row,) = table(run(speed, ["where", "--quick", *PATIENT, "--instances", str(tiny)]).output)
    parts = [row[column] for column in (*speed.where.PARTS.values(), "the rest")]
    assert sum(float(part.partition("(")[2].rstrip("%) ")) for part in parts) == pytest.approx(100.0, abs=3.0)
    assert int(row["nodes"]) >= 1


def test_the_quick_instances_are_written_and_found(speed, tmp_path):
    result = run(speed, ["instances", "--quick", str(tmp_path)])
    assert [read_instance(file).loss for file in result.output.split()] == ["quadratic", "huber", "logistic"]
    assert len(speed.instances.find(f"{tmp_path}/h*.npz,{tmp_path}/*", {}, tmp_path)) == 3


def test_an_unknown_instance_or_peer_is_a_sentence(speed, monkeypatch):
    monkeypatch.setattr(speed.commands, "installed", lambda python: ())
    for option, sentence in (("--instances", "'none' is neither an .npz file"), ("--peers", "there is no peer called")):
        result = CliRunner().invoke(speed.commands.main, ["compare", "--quick", option, "none"])
        assert result.exit_code == 2
        assert sentence in result.output


def test_labels_go_on_where_the_noise_of_hard_ends(speed):
    instance = speed.instances.hardlogit(40, 6, 2, 0.2)
    regression = hard(40, 6, 2, speed.instances.HARD_SEED, rho=0.2)
    assert set(instance.y) == {-1.0, 1.0}
    np.testing.assert_allclose(np.linalg.norm(instance.A, axis=0), np.sqrt(40))
    rng = np.random.default_rng(speed.instances.HARD_SEED)
    rng.standard_normal((40, 6)), rng.choice([-1.0, 1.0], 6), rng.permutation(6)
    signal = regression.A @ regression.x_true
    noise = regression.y - signal
    np.testing.assert_allclose(noise / np.std(signal), rng.standard_normal(40), atol=1e-12)


def test_every_instance_of_the_set_has_a_distinct_name(speed, monkeypatch):
    monkeypatch.delenv("EXACTSEL_DATA", raising=False)
    names = list(speed.instances.full())
    assert len(names) == 28
    monkeypatch.setenv("EXACTSEL_DATA", "folder")
    real = {f"{name}_k{k}_lam0" for name, k in speed.instances.REAL}
    labelled = {
        f"{name}_logistic_k{k}_lam{lam}" for name in speed.instances.LABELLED for k in (5, 10) for lam in ("1", "0.001")
    }
    assert set(speed.instances.full()) == {*names, *real, *labelled}
    assert {"diabetes64c_huber_lam0.001_k10", "okr_n500_p500_rho0.9_k10_lam10"} <= set(names)


def test_peers_run_without_exactsel(speed, tiny):
    command = f"import sys, runpy; sys.modules['exactsel'] = None; runpy.run_module({speed.processes.PEERS_MODULE!r})"
    program = f"{command[:-1]}, run_name='__main__')"
    answer = json.loads(
        subprocess.run(
            [sys.executable, "-c", program, "installed"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
    )
    assert set(answer) <= set(speed.running.PEERS)


def test_a_peer_says_why_it_cannot_take_an_instance(speed, tiny):
    huber = tiny.with_name("huber.npz")
    write_instance(huber, speed.instances.quick()["huber_d10_n30_k3"]())
    assert speed.running.run("okridge", str(huber), upper=1.0) == {"refused": "no huber loss"}
    answer = speed.running.run("el0ps", str(tiny), upper=1.0)
    assert answer == {"refused": "no price per column has 2 columns as its optimum"}


@pytest.mark.parametrize("name", ["okridge", "gurobi-perspective", "gurobi-bigm", "scip", "el0ps", "l0bnb"])
@pytest.mark.parametrize("kind", ["quadratic", "huber", "logistic"])
def test_a_peer_that_is_installed_finds_the_optimum(speed, planted, name, kind):
    peer = speed.running.PEERS[name]
    pytest.importorskip(peer.module)
    if kind not in peer.losses:
        pytest.skip("not a loss of this solver")
    quadratic = read_instance(planted)
    changes = {"huber": {"delta": 0.1}, "logistic": {"y": np.sign(quadratic.y), "lam": 1.0}}.get(kind, {})
    write_instance(planted, replace(quadratic, loss=kind, **changes))
    problem = read_instance(planted).problem()
    told = speed.hints.hints(problem, priced=True)
    assert told.penalty is not None
    answer = speed.running.run(name, str(planted), upper=told.upper, start=told.support, penalty=told.penalty)
    best = min(problem.fit(support).value for support in _all_supports(problem))
    assert answer["finished"]
    assert problem.fit(answer["support"]).value == pytest.approx(best, rel=1e-4)
    assert best * (1 - 2e-4) <= answer["lower"] <= best * (1 + 1e-6)


def test_hints_are_a_model_and_a_price_at_which_k_is_best(speed, planted):
    problem = read_instance(planted).problem()
    told = speed.hints.hints(problem, priced=True)
    best = [min(problem.fit(s).value for s in combinations(range(6), size)) for size in range(7)]
    assert told.upper == pytest.approx(best[2])
    value = problem.fit(told.support).value
    assert value <= told.upper <= value * (1 + 1e-11)
    priced = [value + told.penalty * size for size, value in enumerate(best)]
    assert np.argmin(priced) == 2
    assert told.arguments() == (
        "--upper", repr(told.upper), "--support", ",".join(map(str, told.support)), "--penalty", repr(told.penalty),
    )  # fmt: skip
    assert speed.hints.hints(problem, priced=False).penalty is None


@pytest.mark.parametrize(
    ("objectives", "k", "price"),
    [
        ([10.0, 6.0, 4.0, 3.0], 2, 1.5),
        ([10.0, 6.0, 4.0, 3.0], 1, 3.0),
        ([10.0, 6.0, 5.0, 2.0], 2, None),  # the third column is worth more than the second
        ([10.0, 6.0, 4.0, 2.0], 2, None),  # as much: sizes 1 to 3 are equally good at price 2
        ([10.0, 8.0, 7.5, 4.0], 1, None),  # not even three columns on
        ([10.0, 6.0, 4.0], 2, 1.0),  # all columns
        ([10.0, 10.0, 10.0], 1, None),  # no column is worth anything
        ([10.0, 6.0], 0, None),  # any high price would do, but nobody asks
    ],
)
def test_a_price_exists_at_corners_of_the_lower_hull(speed, objectives, k, price):
    assert speed.hints.price(objectives, k) == price


def test_peers_are_told_what_they_can_use(speed, tiny, monkeypatch):
    problem = read_instance(tiny).problem()
    monkeypatch.setattr(speed.comparison, "hints", lambda problem, priced: speed.hints.Hints(1.0, (3,), float(priced)))
    told = speed.comparison.told_to_peers
    assert told(problem, ["exactsel", "okridge", "el0ps"])[-1] == "1.0"
    assert told(problem, ["okridge", "scip"])[-1] == "0.0"
    assert told(problem, ["exactsel"]) == ("--upper", "nan")
    assert told(problem.replace(loss="huber"), ["exactsel", "el0ps", "scip"])[-1] == "0.0"


def test_kept_runs_are_not_made_again(speed, tiny, tmp_path, monkeypatch):
    asked: list[str] = []

    def solved(solver, file, demands, more):
        asked.append(solver.name)
        return {"refused": "no licence"}

    monkeypatch.setattr(speed.comparison, "solved", solved)
    monkeypatch.setattr(speed.commands, "installed", lambda python: ("okridge",))
    kept = tmp_path / "new" / "runs.jsonl"
    arguments = ["compare", "--quick", "--instances", str(tiny), "--runs", str(kept), "--peers"]
    first = run(speed, [*arguments, ""])
    assert table(run(speed, [*arguments, "okridge"]).output)[:1] == table(first.output)
    assert asked == ["exactsel", "okridge"]
    assert [one.refused for one in speed.comparison.read_runs(kept).values()] == ["no licence"] * 2


def test_a_failing_process_is_reported_with_its_last_line(speed):
    solver = speed.processes.Solver("x", (sys.executable, "-c", "import sys; sys.exit('it broke')"))
    demands = speed.processes.Demands(HANG, 1e-6, 1e-4)
    assert speed.processes.solved(solver, Path("x.npz"), demands) == {"refused": "failed: it broke"}


def test_an_interpreter_that_is_not_there_is_a_sentence(speed):
    arguments = ["compare", "--quick", "--peer-python", "/nowhere/python"]
    result = CliRunner().invoke(speed.commands.main, arguments)
    assert result.exit_code == 1
    assert "/nowhere/python cannot be run" in result.output


def test_processes_have_one_thread_and_the_core_that_was_asked_for(speed):
    core = speed.processes.default_core()
    program = "import json, os; print(json.dumps({k: os.environ[k] for k in os.environ if 'THREADS' in k}))"
    solver = speed.processes.Solver("x", (sys.executable, "-c", program))
    answer = speed.processes.solved(solver, Path("x.npz"), speed.processes.Demands(HANG, 1e-6, 1e-4, core))
    assert {answer[name] for name in speed.processes.ONE_THREAD} == {"1"}
    assert speed.processes.default_core() == core


def answer_of(speed, solver, **changes):
    return speed.comparison.Run(
        "one", solver, **{"objective": 2.0, "lower": 2.0, "finished": True, "limit": 60.0, **changes}
    )


def test_ratios_say_what_is_known_of_runs_that_were_cut_short(speed):
    runs = [
        answer_of(speed, "exactsel", seconds=2.0),
        answer_of(speed, "slow", seconds=60.0, lower=1.0, finished=False),
        answer_of(speed, "other", seconds=3.0),
        answer_of(speed, "none", seconds=60.0, lower=None, finished=False),
        answer_of(speed, "larger", seconds=60.0, objective=np.inf, finished=False),
        answer_of(speed, "refusing", refused="no licence"),
    ]
    rows = list(speed.comparison.rows(runs))
    assert [row["ratio"] for row in rows] == ["1", "> 30", "1.5", "> 30", "> 30", "–"]
    assert [row["gap"] for row in rows[1:]] == [
        "50.0 % at the limit of 60 s", "0e+00", "no bound at the limit of 60 s",
        "no model of k columns at the limit of 60 s", "no licence",
    ]  # fmt: skip
    assert speed.comparison._ratio(runs[2], answer_of(speed, "exactsel", seconds=60.0, finished=False)) == "< 0.05"


def test_a_model_with_too_many_columns_has_no_objective(speed, tiny):
    problem = read_instance(tiny).problem()
    answer = {"support": [0, 1, 2], "lower": 0.0, "nodes": 1, "seconds": 1.0, "clock": 1.0, "finished": True}
    assert speed.comparison.run_of("tiny", "x", problem, answer, 60.0).objective == np.inf


def test_a_bound_above_an_objective_is_a_contradiction(speed):
    agreeing = [answer_of(speed, "a"), answer_of(speed, "b", objective=2.0 + 1e-8)]
    assert not list(speed.comparison.contradictions(agreeing))
    (sentence,) = speed.comparison.contradictions(
        [answer_of(speed, "a"), answer_of(speed, "b", objective=1.0, lower=0.5)]
    )
    assert "the bound 2 of a is above the objective 1 of b" in sentence


def test_the_profile_compares_with_the_fastest(speed):
    runs = [
        answer_of(speed, "a", seconds=2.0),
        answer_of(speed, "b", seconds=1.0),
        answer_of(speed, "c", seconds=9.0, finished=False),
    ]
    runs.append(speed.comparison.Run("one", "d", refused="no huber loss"))
    profile = {name: list(values) for name, values in speed.profile.ratios(runs).items()}
    assert profile == {"a": [2.0], "b": [1.0], "c": [np.inf], "d": []}


def _all_supports(problem: Problem):
    return combinations(range(problem.d), problem.k)
