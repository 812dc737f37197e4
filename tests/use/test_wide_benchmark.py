"""The benchmark of many columns runs at its smallest, makes the instances it says, and draws what it measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from clocks import HANG

from benchmarks.speed.processes import Demands
from benchmarks.wide import __main__ as commands
from benchmarks.wide import hints, instances, one, peers, picture, runs
from benchmarks.wide.designs import Design
from benchmarks.wide.stored import Sparse
from exactsel import Problem, solve

TINY = Design("tiny", 20, 30, 2, lam=0.1, times=1.5, series="tiny")


@pytest.fixture
def plain_python(monkeypatch):
    """Processes that solve need not compile anything first."""
    monkeypatch.setenv("EXACTSEL_JIT", "0")


@pytest.mark.usefixtures("plain_python")
def test_runs_are_kept_and_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(commands, "INSTANCES", {"tiny": TINY})
    file, svg = tmp_path / "runs.json", tmp_path / "picture.svg"
    done = CliRunner().invoke(commands.main, ["--only", "t*", "--most", str(HANG), "--json", str(file)])
    assert done.exit_code == 0, done.output
    (run,) = runs.read_runs(file).values()
    assert run["claim"] == "optimal"
    assert run["finished"]
    assert run["megabytes"] >= run["megabytes_of_data"] > 0
    assert run["support"] == list(solve(TINY.problem()).support)
    assert run["closed_by"]
    assert "| tiny | " in done.output
    pytest.importorskip("matplotlib")
    drawn = CliRunner().invoke(commands.main, ["picture", str(file), str(svg)])
    assert drawn.exit_code == 0, drawn.output
    assert "tiny" in svg.read_text(encoding="utf-8")


def test_an_unknown_name_is_refused():
    done = CliRunner().invoke(commands.main, ["--only", "nothing"])
    assert done.exit_code == 2
    assert "there are: ridge-1500" in done.output


@pytest.mark.usefixtures("plain_python")
def test_peers_that_are_missing_are_named(monkeypatch):
    monkeypatch.setattr(peers, "DESIGNS", {"tiny": TINY})
    monkeypatch.setattr(peers, "installed", lambda python: [])
    done = CliRunner().invoke(commands.main, ["peers", "--most", str(HANG)])
    assert done.exit_code == 0, done.output
    assert "l0bnb is skipped" in done.output
    assert "| tiny | exactsel, penalised | " in done.output


def test_installed_is_what_the_interpreter_has():
    assert set(peers.installed(sys.executable)) <= set(peers.NAMES)


def test_instances_survive_being_written():
    for instance in instances.INSTANCES.values():
        assert instances.from_plain(json.loads(json.dumps(instances.to_plain(instance)))) == instance


def test_a_design_is_what_it_says():
    design = Design("d", 4000, 12, 3, rho=0.6, unit=True, times=2.0, lam=0.5)
    A, y = design.data()
    assert A.shape == (4000, 12)
    assert A.flags.f_contiguous
    assert np.array_equal(A, design.data()[0])
    assert np.linalg.norm(A, axis=0) == pytest.approx(np.ones(12))
    assert y @ y == pytest.approx(1.0)
    expected = 0.6 ** np.abs(np.subtract.outer(np.arange(12), np.arange(12)))
    assert np.abs(A.T @ A - expected).max() < 0.06
    fit = Problem(A, y, 3, lam=0.5).fit(design.support)
    assert design.max_coef(A, y) == pytest.approx(2.0 * np.abs(fit.coef).max())
    explained = 1.0 - 2.0 * Problem(A, y, 3, lam=0.0).fit(design.support).value
    assert explained == pytest.approx(5.0 / 6.0, abs=0.02)


def test_a_sparse_table_is_made_of_ones():
    table = Sparse("s", 60, 200, 2, 0.05)
    problem = table.problem()
    assert problem.d == 200
    assert set(np.unique(problem.A)) == {0.0, 1.0}


def test_the_price_keeps_the_model():
    design = Design("d", 60, 12, 3, lam=0.5)
    A, y = design.data()
    problem = Problem(A, y, 3, lam=0.5)
    price, best = hints.price(problem, A, design.support), problem.fit(design.support).value
    others = [*(set(design.support) - {j} for j in design.support)]
    others += [{*design.support, j} for j in set(range(12)) - set(design.support)]
    assert all(problem.fit(sorted(s)).value + price * len(s) >= best + 3 * price for s in others)


def test_a_data_set_that_is_missing_is_reported(tmp_path, monkeypatch):
    monkeypatch.setenv("EXACTSEL_DATA", str(tmp_path))
    run = runs.run(instances.INSTANCES["riboflavin-k4"], Demands(1.0, 1e-6, 1e-6))
    assert "there is no" in run["refused"]
    assert "there is no" in runs.row(run)["gap"]


def test_lines_of_the_picture_are_the_series():
    run = {"instance": instances.to_plain(TINY), "seconds": 1.0, "megabytes": 2.0, "finished": True}
    wider = {**run, "instance": {**run["instance"], "p": 10}}
    without = {**run, "instance": {**run["instance"], "series": ""}}
    assert picture.lines([run, wider, without]) == {"tiny": [(10, 1.0, 2.0, True), (30, 1.0, 2.0, True)]}


def test_memory_is_counted_in_megabytes():
    assert 20 < one.peak() < 100_000


def test_gaps_are_told_with_the_limit_that_left_them():
    assert runs.gap_text(1e-9, True, 60.0) == "0"
    assert runs.gap_text(0.5, False, 60.0) == "50 % at the limit of 60 s"
    assert runs.gap_text(None, True, 60.0) == "no bound"


ROOT = Path(__file__).resolve().parents[2]


def test_the_page_names_instances_that_exist():
    text = (ROOT / "docs/development/wide-data.md").read_text(encoding="utf-8")
    for name in instances.INSTANCES:
        assert f"`{name}`" in text, name
