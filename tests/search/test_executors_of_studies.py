"""Paths, cross-validations and lists of close models with executors: what they come to is the same."""

from __future__ import annotations

import json
import os
import signal

import numpy as np
import pytest
from executors_for_tests import Here, larger, same

from exactsel import near_optimal, solve, solve_path
from exactsel.cli.main import main
from exactsel.errors import InputError
from exactsel.solving.executors import Workers, in_shards
from exactsel.solving.processes import ProcessExecutor
from exactsel.studies.crossval import cross_validate, random_folds

KS = (2, 4, 5)


def all_same(path, other):
    return len(path.results) == len(other.results) and all(map(same, path.results, other.results))


@pytest.fixture(scope="module")
def serial():
    problem, options = larger()
    return solve_path(problem, ks=KS, executor="serial", signals=(), **options)


def test_each_search_of_a_path_is_that_of_a_solve(serial):
    problem, options = larger()
    start = serial.results[1].support
    alone = solve(problem.replace(k=5), executor="serial", start=start, signals=(), **options)
    assert same(alone, serial.results[2])


def test_a_path_on_an_executor(serial, tmp_path):
    problem, options = larger()
    here = Here()
    assert all_same(solve_path(problem, ks=KS, executor=here, signals=(), **options), serial)
    assert here.given > 0
    assert here.closed == len(KS)
    saved = solve_path(problem, ks=KS, executor=Here(), checkpoint=tmp_path / "path.ckpt", signals=(), **options)
    assert all_same(saved, serial)


def test_a_path_in_processes_of_which_one_is_killed(serial):
    problem, options = larger()
    executor, killed = ProcessExecutor(2), []

    def kill(event, state):
        if not killed and executor.processes:
            killed.append(executor.processes[0])
            os.kill(killed[0], signal.SIGKILL)

    path = solve_path(problem, ks=KS[1:], executor=executor, signals=(), on_bound=kill, **options)
    assert path.results[0].upper == serial.results[1].upper
    assert path.results[1].lower <= serial.results[2].upper
    assert all_same(path, solve_path(problem, ks=KS[1:], executor="serial", signals=(), **options))
    assert killed


def test_a_path_goes_on_with_another_executor(serial, tmp_path):
    problem, options = larger()
    here, ends = Here(), []
    for name, executors in (("one", (Here(), "serial")), ("other", ("serial", here))):
        file = tmp_path / name
        first = solve_path(problem, ks=KS, executor=executors[0], checkpoint=file, signals=(), node_limit=60, **options)
        assert not first.reached
        ends.append(solve_path(problem, resume=file, executor=executors[1], signals=()))
    assert all_same(*ends)
    assert here.given > 0
    assert [result.support for result in ends[0].results] == [result.support for result in serial.results]


def test_a_path_that_had_no_shards_takes_no_executor(tmp_path):
    problem, options = larger()
    file = tmp_path / "path.ckpt"
    del options["shard"]
    solve_path(problem, ks=[2], checkpoint=file, signals=(), **options)
    with pytest.raises(InputError, match="begun without an executor"):
        solve_path(problem, resume=file, executor=Here(), signals=())
    with pytest.raises(InputError, match="only the executor dask"):
        solve_path(problem, ks=[2], executor="processes", scheduler="tcp://nowhere:1", signals=())


def test_shards_belong_to_the_settings_once_there_are_workers():
    assert in_shards({"shard": None}, Workers("serial"), resumed=False) == {"shard": 32}
    assert in_shards({"shard": 5}, Workers("serial"), resumed=False) == {"shard": 5}
    assert in_shards({}, Workers("serial"), resumed=True) == in_shards({}, Workers(), resumed=False) == {}


def test_a_list_of_close_models(tmp_path):
    problem, options = larger()
    problem, tau = problem.replace(k=4), 0.5
    expected = near_optimal(problem, tau=tau, executor="serial", signals=(), **options)
    here = Here()
    near = near_optimal(problem, tau=tau, executor=here, signals=(), **options)
    saved = near_optimal(problem, tau=tau, executor=Here(), checkpoint=tmp_path / "n.ckpt", signals=(), **options)
    assert here.given > 0
    for other in (near, saved):
        assert same(other.result, expected.result)
        assert (other.models, other.complete) == (expected.models, True)


def test_a_cross_validation():
    problem, options = larger()
    data = (problem.A, problem.y)
    options |= {
        "cv": random_folds(len(problem.y), 2),
        "ks": [2, 4],
        "lams": [0.5],
        "loss": "huber",
        "delta": 1.0,
        "signals": (),
    }
    serial, here = cross_validate(*data, executor="serial", **options), Here()
    found = cross_validate(*data, executor=here, **options)
    assert here.given > 0
    assert np.array_equal(found.errors, serial.errors)
    assert found.proven


@pytest.mark.parametrize("command", ["path", "best"])
def test_on_the_command_line(command, tmp_path, capsys):
    problem, _ = larger()
    file = tmp_path / "data.npz"
    np.savez(file, A=problem.A, y=problem.y, k=3, lam=0.5, loss="huber", delta=1.0)
    rest = ["--shard", "4", "--batch", "16", "--no-subtrees", "--json"]
    rest += ["--ks", "2", "--cv", "2"] if command == "path" else ["--criterion", "objective", "--within", "0.1"]
    said = []
    for workers in (["--executor", "serial"], ["--executor", "processes", "--workers", "1"]):
        with pytest.raises(SystemExit) as ended:
            main([command, str(file), *workers, *rest])
        assert ended.value.code == 0
        said.append(json.loads(capsys.readouterr().out))
    for result, other in zip(*(one.get("results", [one.get("optimum")]) for one in said), strict=True):
        assert result["tree_hash"] == other["tree_hash"]
    names = ("validation", "models")
    assert [said[0].get(name) for name in names] == [said[1].get(name) for name in names]
