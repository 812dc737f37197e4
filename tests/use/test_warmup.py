"""Compiling ahead."""

from __future__ import annotations

import pytest

from exactsel import _jit
from exactsel._jit import cache_paths, interpreting
from exactsel.studies import warmup
from exactsel.studies.warmup import MORE, USUAL, Warmed, small_problem, warm, warm_up

pytestmark = pytest.mark.skipif(not _jit.ENABLED, reason="nothing is compiled")


@pytest.mark.parametrize("kind", ["quadratic", "css"])
def test_what_a_kind_needs_is_called(kind, monkeypatch):
    solved = []
    monkeypatch.setattr(warmup, "solve", lambda problem, **options: solved.append((problem.kind, options)))
    warm(kind)
    assert len(solved) == 2
    assert {family for family, _ in solved} == {"css" if kind == "css" else "regression"}
    assert solved[1][1]["node_limit"] == warmup.NODES


def test_every_method_is_run_on_a_problem_it_serves(monkeypatch):
    ran = []
    monkeypatch.setattr(warmup, "run", lambda method, problem, **options: ran.append((method, problem.kind)))
    warm("methods")
    assert {method for method, _ in ran} == set(warmup.names())


def test_each_kind_in_a_process_of_its_own():
    """One that does not exist ends with an error, the others are told all the same."""
    told = {warmed.kind: warmed for warmed in warm_up(("nonsense",), 1)}
    assert "nonsense" in told["nonsense"].error


def test_the_command_lists_what_is_done(run, monkeypatch):
    asked, remembered = [], []

    def warmed(kinds, processes):
        asked.append((kinds, processes))
        return iter([Warmed(kind, 1.0, "no room" if kind == "css" else "") for kind in kinds])

    monkeypatch.setattr(warmup, "warm_up", warmed)
    monkeypatch.setattr("exactsel._jit.cache_paths.remember_warmup", lambda: remembered.append(1))
    shown = run("dev", "warmup")
    assert shown.code == 0
    assert shown.out.splitlines()[0].startswith(f"1/{len(USUAL)}  {USUAL[0]}")
    shown = run("dev", "warmup", "--all", "--processes", 2)
    assert shown.code == 1
    assert "no room" in shown.out
    assert asked == [(USUAL, None), (USUAL + MORE, 2)]
    assert remembered == [1]


def test_later_processes_know_of_a_warmup(monkeypatch, tmp_path):
    """It decides how much is interpreted; what happens to be compiled does not."""
    tmp_path.chmod(0o700)
    monkeypatch.setenv("EXACTSEL_CACHE_DIR", str(tmp_path))
    assert not cache_paths.warmed_up()
    allowances = [interpreting._Allowance(), interpreting._Allowance()]
    allowances[0].begin()
    cache_paths.remember_warmup()
    assert cache_paths.warmed_up()
    for each in allowances:
        each.begin()
    assert [each.left for each in allowances] == [interpreting.ALLOWANCE, interpreting.WARMED_UP]


def test_where_nothing_can_be_kept_it_says_so(run, monkeypatch):
    monkeypatch.setattr("exactsel._jit.cache_paths.cache_folder", lambda: None)
    shown = run("dev", "warmup")
    assert shown.code == 1
    assert "EXACTSEL_CACHE_DIR" in shown.err


@pytest.mark.parametrize("kind", [kind for kind in (*USUAL, *MORE) if kind != "methods"])
def test_every_kind_has_a_problem_that_can_be_solved(kind):
    """Counts that were all rounded to 0 let the whole command fail."""
    problem = small_problem(kind)
    assert problem.null_objective > 0.0
    assert problem.d > problem.k
