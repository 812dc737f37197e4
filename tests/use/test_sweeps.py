"""Sweeps: their rows, their store, kills, and what is gone on with."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import exactsel
from exactsel.data.instance import Instance, write_instance
from exactsel.errors import ExactselError, InputError, OutputError
from exactsel.search.watch import Watch
from exactsel.studies.sweeps import plan, sweep
from exactsel.studies.sweeps import run as running
from exactsel.studies.sweeps import store as storing
from exactsel.studies.sweeps.store import Store
from exactsel.studies.sweeps.table import COLUMNS, table_bytes

ROOT = Path(__file__).resolve().parents[2]
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux for a process's children")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(1)
    A, names = rng.standard_normal((12, 5)), ("a", "b", "c", "d", "e")
    y = A[:, 1] - A[:, 3] + 0.1 * rng.standard_normal(12)
    write_instance(tmp_path / "one.npz", Instance(A, y, k=2, lam=0.1, feature_names=names))
    write_instance(tmp_path / "two.npz", Instance(A + 1, y, k=2, lam=0.1))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def config(**table):
    return {"sweep": [{"instances": "*.npz", "node_limit": 50, "k": [1, 2], "method": ["solve", "omp"], **table}]}


def plain(rows):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


def noted(store):
    lines = Path(store).read_bytes().splitlines()[1:]
    return Counter(json.loads(line.partition(b" ")[2])["key"] for line in lines)


@pytest.fixture
def ran(monkeypatch):
    """The jobs that are run in this process, in order."""
    done, perform = [], running.perform

    def counted(job, signals):
        done.append(job.key)
        return perform(job, signals)

    monkeypatch.setattr(running, "perform", counted)
    return done


def test_a_row_says_what_a_solve_says(folder):
    found = sweep(config(seed=3), "t.csv", jobs=0)
    assert (len(found.rows), found.run, found.missing, found.interrupted) == (8, 8, 0, False)
    row = next(row for row in found.rows if (row["instance"], row["k"], row["method"]) == ("one.npz", 2, "solve"))
    result = exactsel.solve(exactsel.load("one.npz"), node_limit=50, threads=1, seed=row["rng_seed"])
    for name in ("upper", "lower", "gap", "absolute_gap", "claim", "termination", "nodes", "tree_hash"):
        assert row[name] == getattr(result, name), name
    assert json.loads(row["support"]) == list(result.support)
    assert json.loads(row["names"]) == list(result.feature_names)
    assert (row["n"], row["d"], row["loss"], row["lam"], row["seed"], row["error"]) == (12, 5, "quadratic", 0.1, 3, "")
    assert {*row} == {*COLUMNS}


def test_a_heuristic_has_the_gap_the_command_heuristic_shows(folder):
    (row,) = sweep(config(instances="one.npz", k=2, method="omp"), "t.csv", jobs=0).rows
    result = exactsel.heuristics.run("omp", exactsel.load("one.npz"), threads=1, seed=row["rng_seed"])
    assert (row["upper"], row["lower"], row["claim"]) == (result.upper, result.lower, result.claim)


def test_other_problems_and_those_refused(folder):
    tables = [
        {"instances": "one.npz", "problem": "css", "k": 2, "method": ["solve", "greedy-css", "omp"]},
        {"instances": "one.npz", "loss": ["huber", "logistic"], "lam": [0.5], "intercept": True, "force_in": ["a"]},
        {"instances": "one.npz", "k": 2, "force_in": ["zz"]},
    ]
    found = sweep({"defaults": {"node_limit": 20}, "sweep": tables}, "t.csv", jobs=0)
    assert [row["status"] for row in found.rows] == ["done", "done", "refused", "done", "refused", "refused"]
    assert [row["loss"] for row in found.rows[:4]] == [None, None, None, "huber"]
    assert 0 in json.loads(found.rows[3]["support"])
    refused = [row for row in found.rows if row["status"] == "refused"]
    assert all(row["error"].endswith(".") and row["upper"] is None for row in refused)
    assert (found.count("refused"), found.reached) == (3, False)


def test_one_process_two_and_this_one_come_to_the_same_table(folder):
    tables = {}
    for jobs in (0, 1, 2):
        found = sweep(config(seed=[0], method=["solve", "poss"]), f"{jobs}.csv", jobs=jobs)
        assert found.run == len(found.rows) == 8
        tables[jobs] = plain(found.rows)
    assert tables[0] == tables[1] == tables[2]


def test_what_is_done_is_not_done_again_and_a_changed_config_keeps_what_applies(folder, ran):
    sweep(config(), "t.csv", jobs=0)
    before = Path("t.csv").read_bytes()
    assert sweep(config(), "t.csv", jobs=0).run == 0
    assert Path("t.csv").read_bytes() == before
    found = sweep(config(k=[2, 3]), "t.csv", jobs=0)
    assert (found.before, found.run, len(found.rows)) == (4, 4, 8)
    assert {row["k"] for row in found.rows} == {2, 3}
    assert len(ran) == len({*ran}) == 12
    assert {*noted("t.csv.store").values()} == {1}


def test_an_instance_that_changes_is_run_again_and_meanwhile_is_refused(folder, ran):
    sweep(config(instances="one.npz"), "t.csv", jobs=0)
    write_instance("one.npz", Instance(np.eye(5), np.ones(5), k=1, lam=0.1))
    assert sweep(config(instances="one.npz"), "t.csv", jobs=0).run == 4

    def change(found, job, record):
        write_instance("two.npz", Instance(2 * np.eye(5), np.ones(5), k=1, lam=0.1))
        from exactsel.studies.sweeps import performing

        performing._read.clear()

    found = sweep(config(instances="two.npz"), "t.csv", jobs=0, progress=change)
    assert [row["status"] for row in found.rows] == ["done", "failed", "failed", "failed"]
    assert "has changed since the sweep began" in found.rows[1]["error"]


def test_a_pattern_does_not_mean_what_the_sweep_writes(folder):
    Path("data.csv").write_text("p,q,y\n1,2,3\n2,1,4\n4,4,1\n")
    asked = config(instances="*.csv*", k=1, lam=1.0, method="omp")
    assert [sweep(asked, "t.csv", jobs=0).run for _ in range(2)] == [1, 0]


def test_failed_jobs_are_run_again_only_when_asked(folder, monkeypatch):
    from exactsel.studies.sweeps import performing

    with monkeypatch.context() as patch:
        patch.setattr(performing, "solve", lambda *_, **__: 1 // 0)
        found = sweep(config(method="solve"), "t.csv", jobs=0)
    assert {row["error"] for row in found.rows} == {"ZeroDivisionError: integer division or modulo by zero"}
    assert (found.count("failed"), sweep(config(method="solve"), "t.csv", jobs=0).run) == (4, 0)
    found = sweep(config(method="solve"), "t.csv", jobs=0, retry=True)
    assert (found.run, found.count("done"), found.count("failed")) == (4, 4, 0)


def test_an_interrupt_ends_it_with_the_table(folder, ran):
    found = sweep(config(), "t.csv", jobs=0, progress=lambda *_: os.kill(os.getpid(), signal.SIGINT))
    assert (found.interrupted, found.run, found.missing) == (True, 1, 7)
    assert len(Path("t.csv").read_text().splitlines()) == 2
    found = sweep(config(), "t.csv", jobs=0)
    assert (found.interrupted, found.before, found.run) == (False, 1, 7)
    assert len({*ran}) == len(ran) == 8


def test_an_interrupt_while_instances_are_hashed_ends_it_at_once(folder):
    with Watch(None, (signal.SIGINT,)):
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            sweep(config(), "t.csv", jobs=0)
    assert not Path("t.csv").exists()


def test_a_job_stopped_by_the_compiler_is_run_again(monkeypatch):
    from exactsel import interrupts
    from exactsel.studies.sweeps.performing import AGAIN, _in_time

    waited, runs, stopped = [0.0], [], exactsel.Termination.TIME_LIMIT
    monkeypatch.setattr(interrupts, "waited", lambda: waited[0])

    def run(seconds):
        runs.append(1)
        waited[0] += seconds(len(runs))
        return SimpleNamespace(termination=stopped)

    _in_time(lambda: run(lambda count: 3.0 if count < 4 else 0.0), 1.0)
    assert len(runs) == 4
    _in_time(lambda: run(lambda count: 3.0), 1.0)
    assert len(runs) == 4 + AGAIN
    _in_time(lambda: run(lambda count: 3.0), None)
    assert len(runs) == 5 + AGAIN


FRAGILE = """
import hashlib, os, pathlib, sys, time
from exactsel.processes import serve
from exactsel.studies.sweeps.jobs import Job, canonical
from exactsel.studies.sweeps.performing import trouble
def answer(line):
    job = Job.from_line(line)
    if job.seed == 1 or (job.seed == 2 and not pathlib.Path(job.key).exists()):
        pathlib.Path(job.key).touch()
        os.kill(os.getpid(), 9)
    if job.seed == 3:
        time.sleep(10**6)
    return canonical(trouble("refused", "in vain."))
serve(answer)
"""


def test_processes_that_die_or_hang_cost_their_own_job_only(folder, monkeypatch):
    monkeypatch.setattr(running, "command_for_jobs", lambda: [sys.executable, "-c", FRAGILE])
    tables = [
        {"instances": "one.npz", "seed": [0, 1, 2, 4, 5]},
        {"instances": "one.npz", "seed": [3], "give_up_after": 0.3},
    ]
    found = sweep({"sweep": tables}, "t.csv", jobs=2)
    said = {row["seed"]: (row["status"], row["error"]) for row in found.rows}
    assert {said[seed] for seed in (0, 2, 4, 5)} == {("refused", "in vain.")}
    assert said[1] == ("failed", "the process died 2 times, the last time with exit code -9.")
    assert said[3] == ("failed", "no answer came within 0.3 seconds, 2 times.")


def test_processes_that_cannot_begin_are_no_fault_of_the_jobs(folder, monkeypatch):
    monkeypatch.setattr(running, "command_for_jobs", lambda: [sys.executable, "-c", "raise SystemExit(5)"])
    with pytest.raises(ExactselError, match=r"cannot begin \(exit code 5\)"):
        sweep(config(), "t.csv", jobs=2)
    assert not noted("t.csv.store")


@LINUX
def test_kills_lose_no_job_and_repeat_none(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *sys.path]))
    from benchmarks.sweeps.kills import run

    tally = run(20, 1, 3, tmp_path, tell=False)
    assert (tally.jobs, tally.kills, len(tally.kept)) == (20, 1, 1)
    assert (tally.repeated, tally.lost, tally.orphans, tally.same, tally.wrong) == (0, 0, 0, True, [])


# The store


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    file = tmp_path_factory.mktemp("store") / "t.store"
    store = Store.open(file)
    for number in range(5):
        store.add(f"key{number}", {"status": "done", "row": {"upper": number / 7}})
    store.close()
    return file


def test_a_store_is_what_was_noted(kept):
    read = Store.read(kept)
    assert read.damaged == 0
    assert [read.records[f"key{number}"]["row"]["upper"] for number in range(5)] == [number / 7 for number in range(5)]


@given(cut=st.integers(0, 10**4))
def test_a_line_that_was_cut_short_is_cut_off(kept, cut, tmp_path_factory):
    data, file = kept.read_bytes(), tmp_path_factory.mktemp("cut") / "t.store"
    file.write_bytes(data[: cut % len(data)])
    store = Store.open(file)
    whole = max(0, data[: cut % len(data)].count(b"\n") - 1)
    assert [*store.records] == [f"key{number}" for number in range(whole)]
    store.add("more", {"status": "done", "row": {}})
    store.close()
    assert ([*Store.read(file).records][-1], Store.read(file).damaged) == ("more", 0)


@given(place=st.integers(0, 10**4), value=st.integers(1, 255))
def test_a_damaged_line_counts_for_nothing(kept, place, value, tmp_path_factory):
    data = bytearray(kept.read_bytes())
    data[place % len(data)] ^= value
    file = tmp_path_factory.mktemp("damaged") / "t.store"
    file.write_bytes(data)
    whole = Store.read(kept).records
    try:
        read = Store.read(file)
    except InputError:
        assert place % len(data) <= data.find(b"\n") or b"\n" not in data
        return
    assert all(whole[key] == record for key, record in read.records.items())
    assert len(read.records) >= 3


@pytest.mark.parametrize(
    "record",
    [
        {"key": 1, "status": "done", "row": {}}, {"key": "k"}, {"key": "k", "status": "done", "row": []},
        {"key": "k", "status": "odd", "row": {}}, {"key": "k", "status": "done", "row": {"more": 1}},
        {"key": "k", "status": "done", "row": {"upper": "1"}}, {"key": "k", "status": "done", "row": {"nodes": 0.5}},
        {"key": "k", "status": "done", "row": {"claim": {}}}, {"key": "k", "status": "done", "row": {"reached": 1}},
    ],
)  # fmt: skip
def test_a_line_that_no_job_writes_counts_for_nothing(record, tmp_path):
    file = tmp_path / "t.csv.store"
    Store.open(file).close()
    with file.open("ab") as stream:
        for line in (record, {"key": "sound", "status": "done", "row": {"upper": 1.5}}):
            text = json.dumps(line).encode()
            stream.write(hashlib.sha256(text).hexdigest().encode() + b" " + text + b"\n")
    read = Store.read(file)
    assert ([*read.records], read.damaged) == (["sound"], 1)


def test_a_damaged_line_is_run_again(folder, run):
    Path("c.toml").write_text("[[sweep]]\ninstances = 'one.npz'\nk = [1, 2]\nnode_limit = 9\n")
    assert sweep("c.toml", jobs=0).run == 2
    rows = Path("c.csv").read_text()
    store = Path("c.csv.store")
    store.write_bytes(store.read_bytes().replace(b'"done"', b'"dome"', 1))
    found = sweep("c.toml", jobs=0)
    assert (found.damaged, found.before, found.run) == (1, 1, 1)
    assert plain(csv.DictReader(rows.splitlines())) == plain(csv.DictReader(Path("c.csv").read_text().splitlines()))
    store.write_bytes(b"something else\n")
    shown = run("dev", "sweep", "c.toml")
    assert (shown.code, "is no store of a sweep" in shown.err) == (2, True)


def test_two_at_once_are_refused(folder, run):
    Path("c.toml").write_text("[[sweep]]\ninstances = 'one.npz'\nnode_limit = 9\n")
    store = Store.open("c.csv.store")
    shown = run("dev", "sweep", "c.toml")
    assert (shown.code, shown.err) == (
        2, "Error: another sweep uses c.csv.store; wait until it has ended, or give another --out.\n",
    )  # fmt: skip
    assert "1 job, 0 run before, 1 to run" in run("dev", "sweep", "c.toml", "--dry-run").out
    store.close()
    assert sweep("c.toml", jobs=0).run == 1


def test_a_full_disk_leaves_what_was_noted(folder, monkeypatch):
    write = os.write

    def full(descriptor, data):
        if noted("t.csv.store").total() >= 2:
            write(descriptor, bytes(data[:10]))
            raise OSError(28, "No space left on device")
        return write(descriptor, data)

    with monkeypatch.context() as patch:
        patch.setattr(storing.os, "write", full)
        with pytest.raises(OutputError, match="No space left"):
            sweep(config(), "t.csv", jobs=0)
    assert len(Path("t.csv").read_text().splitlines()) == 3
    found = sweep(config(), "t.csv", jobs=0)
    assert (found.before, found.run, found.damaged) == (2, 6, 0)


# The table and the command


def test_a_table_can_be_parquet(folder):
    parquet = pytest.importorskip("pyarrow.parquet")
    found = sweep(config(), "t.parquet", jobs=0)
    table = parquet.read_table("t.parquet")
    assert table.column_names == [*COLUMNS]
    assert table.column("upper").to_pylist() == [row["upper"] for row in found.rows]
    assert Path("t.parquet").read_bytes() == table_bytes(found.rows, "t.parquet")


def test_tables_that_cannot_be_written(folder):
    for out, said in (("t.xlsx", "ends in .csv or .parquet"), ("no/t.csv", "there is no such folder")):
        with pytest.raises(InputError, match=said):
            sweep(config(), out)
    with pytest.raises(InputError, match="no table is named"):
        sweep(config())
    with pytest.raises(InputError, match="a number of processes"):
        sweep(config(), "t.csv", jobs=-1)
    Path("data.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="is there already and no sweep's"):
        sweep(config(), "data.csv")
    assert not [*folder.glob("*.store")]


def test_the_command_runs_lists_and_sums_up(folder, run):
    Path("c.toml").write_text("[[sweep]]\ninstances = 'one.npz'\nloss = ['quadratic', 'logistic']\nnode_limit = 9\n")
    assert plan("c.toml").missing == 2
    shown = run("dev", "sweep", "c.toml", "--dry-run", "--json")
    assert [job["status"] for job in shown.json["listed"]] == ["missing", "missing"]
    assert sorted(path.name for path in folder.iterdir()) == ["c.toml", "one.npz", "two.npz"]
    shown = run("dev", "sweep", "c.toml")
    assert shown.code == 1
    assert "sweep      2 jobs: 0 run before, 2 now" in shown.out
    assert "refused: solve one.npz loss=logistic seed=0: " in shown.err
    shown = run("dev", "sweep", "c.toml", "--json", "--quiet")
    assert (shown.json["before"], shown.json["run"], len(shown.json["rows"]), shown.err) == (2, 0, 2, "")
    assert (
        "done     solve one.npz loss=quadratic seed=0\nrefused  solve one.npz loss=logistic"
        in run("dev", "sweep", "c.toml", "--dry-run").out
    )
    Path("c.toml").write_text("[[sweep]]\ninstances = 'one.npz'\nloss = 'quadratic'\nnode_limit = 9\n")
    assert run("dev", "sweep", "c.toml").code == 0
