"""Paths and lists of close models that are saved as they go: from any moment they go on to the same end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from every_search import SEARCHES
from samples import many
from sequences import KINDS, ONE_BY_ONE, listed, problem_of, said, told, wide_tau

from exactsel import InputError, Problem, near_optimal, solve, solve_path
from exactsel.errors import OutputError, OutputWarning
from exactsel.search.checkpoint import Checkpoint
from exactsel.search.events import RoundEnded
from exactsel.solving.status import status_of
from exactsel.studies import pool_search
from exactsel.studies.sequence_file import SequenceFile
from exactsel.to_plain import counted


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """Listings look at few regions at a time, so that there is something to break off."""
    monkeypatch.setattr(pool_search, "BATCH", 3)


@pytest.fixture
def copies(monkeypatch, tmp_path):
    """What a process killed right after each save would leave behind."""
    made, write = [], SequenceFile._write

    def copying(self, *arguments):
        write(self, *arguments)
        made.append(tmp_path / f"{len(made)}.ckpt")
        for part in ("", "-wal"):
            if Path(f"{self.file.path}{part}").exists():
                shutil.copy(f"{self.file.path}{part}", f"{made[-1]}{part}")

    monkeypatch.setattr(SequenceFile, "_write", copying)
    return made


@pytest.mark.parametrize("kind", [pytest.param(KINDS[0], marks=pytest.mark.smoke), *KINDS[1:]])
def test_from_any_moment_of_a_path_to_the_same_end(kind, copies, tmp_path):
    problem = problem_of(kind)
    options = {**SEARCHES[kind][1], "batch": 2, "signals": ()}
    whole = solve_path(problem, near=0.2, checkpoint=tmp_path / "run.ckpt", checkpoint_every=0, **options)
    assert whole.complete
    made = [*copies]
    assert len(made) > 12
    for file in made[:: max(1, len(made) // many(5, 8))]:
        assert said(solve_path(problem, resume=file, signals=())) == said(whole)


def test_from_any_moment_of_a_list_to_the_same_end(copies, tmp_path):
    problem = problem_of("quadratic, no walks")
    whole = near_optimal(
        problem, tau=wide_tau(problem), checkpoint=tmp_path / "run.ckpt", checkpoint_every=0, **ONE_BY_ONE
    )
    assert listed(whole) == listed(near_optimal(problem, tau=wide_tau(problem), **ONE_BY_ONE))
    for file in [*copies][::4]:
        near = near_optimal(problem, resume=file, signals=())
        assert listed(near) == listed(whole)
        assert told(near.result) == told(whole.result)


@pytest.mark.smoke
def test_what_is_done_is_not_done_again(tmp_path, monkeypatch):
    problem, file = problem_of("quadratic, no walks"), tmp_path / "run.ckpt"
    options = {"heuristics": "none", "subtrees": False, "batch": 1, "signals": ()}
    whole = solve_path(problem, near=0.2, checkpoint=file, **options)
    rounds = []
    further = solve_path(
        problem.replace(k=4), ks=[1, 2, 3, 4], resume=file, signals=(),
        callback=lambda event, state: rounds.append(state.nodes) if isinstance(event, RoundEnded) else None,
    )  # fmt: skip
    assert len(rounds) == further.results[3].nodes
    assert said(further)[0][:3] == said(whole)[0]
    assert said(further) == said(solve_path(problem.replace(k=4), near=0.2, **options))
    assert said(whole.resume(signals=())) == said(further), "a path that was saved goes on in its file"
    for result, before in zip(further.results, whole.results, strict=False):
        assert result.as_dict() == before.as_dict()
        assert result.model.coef.tobytes() == before.model.coef.tobytes()


def test_searches_with_a_gap_go_on_first_and_a_finer_tolerance_is_served(tmp_path):
    problem, file = problem_of("quadratic, no walks"), tmp_path / "run.ckpt"
    part = solve_path(problem, near=0.2, checkpoint=file, node_limit=2, rel_eps=0.3, **ONE_BY_ONE)
    assert not part.reached
    assert [r._kept for r in part.results] == [None] * 3, "states are in the file, not in memory"
    path = part.resume(node_limit=5, signals=()).resume(signals=())
    assert path.reached
    assert path.complete
    fine = path.resume(rel_eps=1e-9, signals=())
    whole = solve_path(problem, near=0.2, rel_eps=1e-9, **ONE_BY_ONE)
    assert [r.upper for r in fine.results] == [pytest.approx(r.upper, rel=1e-9) for r in whole.results]
    assert [[m.support for m in n.models] for n in fine.near] == [[m.support for m in n.models] for n in whole.near]
    listless = solve_path(problem, checkpoint=tmp_path / "other.ckpt", **ONE_BY_ONE)
    assert listless.near is None
    later = solve_path(problem, near=0.2, resume=tmp_path / "other.ckpt", signals=())
    assert [len(n.models) for n in later.near] == [len(n.models) for n in whole.near]


def test_what_may_change_and_what_not(tmp_path):
    problem = problem_of("quadratic, no walks")
    path, near, single = tmp_path / "path.ckpt", tmp_path / "near.ckpt", tmp_path / "solve.ckpt"
    solve_path(problem, ks=[1, 3], near=0.1, checkpoint=path, node_limit=2, **ONE_BY_ONE)
    tau = wide_tau(problem)
    near_optimal(problem, tau=tau, checkpoint=near, node_limit=2, **ONE_BY_ONE)
    solve(problem, checkpoint=single, node_limit=2, **ONE_BY_ONE)
    for call, sentence in (
        (
            lambda: solve(problem, resume=path),
            r"path\.ckpt was begun by exactsel.solve_path; resume it by that command",
        ),
        (lambda: solve_path(problem, resume=single), r"solve\.ckpt was begun by exactsel.solve;"),
        (lambda: solve_path(problem, resume=near), r"near\.ckpt was begun by exactsel.near_optimal"),
        (lambda: near_optimal(problem, resume=path), r"path\.ckpt was begun by exactsel.solve_path"),
        (
            lambda: solve_path(problem, ks=[1, 2], resume=path),
            r"is about k = 3 too, which is not among what is asked for",
        ),
        (lambda: solve_path(problem, near=0.5, resume=path), r"begun with near=0\.1; leave it out"),
        (lambda: near_optimal(problem, tau=0.5, resume=near), r"begun with tau=.*; leave it out"),
        (lambda: solve_path(problem, resume=path, seed=3), r"begun with seed = 0, and what decides on the tree stays"),
        (lambda: solve_path(problem, resume=path, trace="t"), r"trace is given, but searches that share a checkpoint"),
        (lambda: solve_path(problem, resume=path, sed=3), r"'sed' is no option of a search; did you mean 'seed'"),
        (lambda: solve_path(problem, resume=path, checkpoint=near), "continues in the checkpoint it resumes from"),
        (lambda: solve_path(problem, checkpoint=path), r"path\.ckpt exists already; resume it"),
        (lambda: solve_path(problem.replace(lam=7.0), resume=path), r"is about lam = 0\.05, but it is 7\.0 here"),
        (lambda: near_optimal(problem.replace(k=2), resume=near), r"is about k = 3, but it is 2 here"),
        (lambda: near_optimal(problem), "tau, how far above the best objective a model may be, is missing"),
    ):
        with pytest.raises(InputError, match=sentence):
            call()
    again = near_optimal(problem, tau=tau, resume=near, cap=1, signals=())
    assert again.termination == "cap"
    assert again.resume(cap=100, signals=()).complete
    grown = solve_path(problem, ks=[1, 2, 3], resume=path, signals=())
    assert [r.problem["k"] for r in grown.results] == [1, 2, 3]
    assert grown.complete


def test_damage_is_refused_or_changes_nothing(tmp_path):
    problem, file = problem_of("quadratic, no walks"), tmp_path / "run.ckpt"
    solve_path(problem, near=0.2, checkpoint=file, node_limit=4, **ONE_BY_ONE)
    whole = solve_path(problem, resume=shutil.copy(file, tmp_path / "whole.ckpt"), signals=())
    data, refused, rng = file.read_bytes(), 0, np.random.default_rng(0)
    connection = sqlite3.connect(file)
    stored = [blob for (blob,) in connection.execute("SELECT data FROM chunk")]
    connection.close()
    included = [at + 12 for blob in stored if (at := data.find(blob[:24])) >= 0]
    assert len(included) > 3
    for place in [*included, *rng.integers(0, len(data), many(16, 40)).tolist()]:
        damaged = bytearray(data)
        damaged[place] ^= 1 << int(rng.integers(8))
        other = tmp_path / "damaged.ckpt"
        for part in ("", "-wal", "-shm"):
            Path(f"{other}{part}").unlink(missing_ok=True)
        other.write_bytes(damaged)
        try:
            again = solve_path(problem, resume=other, signals=())
        except InputError:
            refused += 1
        else:
            assert said(again) == said(whole)
    assert refused > 5


def test_a_full_disk_costs_the_checkpoint_alone(tmp_path, monkeypatch):
    save, saved = Checkpoint.save, []

    def full(self, *arguments):
        saved.append(1)
        if len(saved) > 9:
            raise OutputError("the checkpoint cannot be written (disk full).")
        save(self, *arguments)

    problem, file = problem_of("quadratic, no walks"), tmp_path / "run.ckpt"
    monkeypatch.setattr(Checkpoint, "save", full)
    with pytest.warns(OutputWarning, match=r"\(disk full\)\. The search continues without it\."):
        path = solve_path(problem, near=0.2, checkpoint=file, checkpoint_every=0, **ONE_BY_ONE)
    assert path.complete
    assert len(saved) == 10
    monkeypatch.undo()
    assert said(solve_path(problem, resume=file, signals=()))[0] == said(path)[0], "what was saved before is there"


@pytest.mark.smoke
def test_the_status_of_a_path_and_of_a_list(tmp_path):
    problem, file = problem_of("quadratic, no walks"), tmp_path / "run.ckpt"
    seen = []

    def look(event, state):
        if isinstance(event, RoundEnded):
            seen.append(status_of(file))

    path = solve_path(problem, near=0.2, checkpoint=file, callback=look, checkpoint_every=0, **ONE_BY_ONE)
    assert {status.run for status in seen} == {"broken off"}, "this process is nobody else"
    assert [status.progress["place"] for status in seen] == sorted(status.progress["place"] for status in seen)
    assert any(", gap " in value and "nodes, " in value for _, value in seen[-1].lines())
    status = status_of(file)
    assert status.run == "complete"
    steps = [value for name, value in status.lines() if name == "step"]
    assert len(steps) == 3
    assert steps[0].startswith("k=1, lam=0.05: upper ")
    assert steps[0].endswith(f" {counted(len(path.near[0].models), 'close model')}, complete")
    json.dumps(status.as_dict(), allow_nan=False)
    near = tmp_path / "near.ckpt"
    near_optimal(problem, tau=0.2, checkpoint=near, node_limit=2, **ONE_BY_ONE)
    texts = dict(status_of(near).lines())
    assert texts["proven"] == "0 of 1 problem"
    assert texts["run"] == "limits: a limit left some of it open; resume goes on with it"
    assert texts["step"].endswith("node_limit; 0 close models, not complete, node_limit")


KILLED = """
import os, signal, sys
import numpy as np
from exactsel import Problem, near_optimal, solve_path
from exactsel.search.checkpoint import Checkpoint
from exactsel.studies import pool_search

what, path, resumed, saves, inside = *sys.argv[1:3], sys.argv[3] == "resume", int(sys.argv[4]), sys.argv[5] == "1"
rng = np.random.default_rng(4)
A = rng.standard_normal((25, 10)) + 0.7 * rng.standard_normal((25, 1))
problem = Problem(A, A[:, :4].sum(axis=1) + 2.0 * rng.standard_normal(25), 3, loss="huber", lam=0.3)
pool_search.BATCH = 4
save, left = Checkpoint.save, saves

def killing(self, parts, *more):
    global left
    left -= 1
    if left:
        return save(self, parts, *more)
    if inside:  # in the middle of the transaction
        more = ({"name": Killer(10)}, *more[1:])
    save(self, parts, *more)
    os.kill(os.getpid(), signal.SIGKILL)

class Killer(bytes):
    def __len__(self):
        os.kill(os.getpid(), signal.SIGKILL)

Checkpoint.save = killing
more = {"resume": path} if resumed else {"checkpoint": path, "heuristics": "none", "batch": 4, "subtrees": False}
if what == "path":
    found = solve_path(problem, near=0.1, checkpoint_every=0, **more)
    results, lists = found.results, found.near
else:
    found = near_optimal(problem, tau=20.0, checkpoint_every=0, **more)
    results, lists = [found.result], [found]
for result in results:
    print(result.tree_hash, result.nodes, result.upper.hex(), result.lower.hex(), result.claim.value)
for near in lists:
    print(near.termination, near.regions, [(m.support, m.value.hex()) for m in near.models])
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal")
@pytest.mark.parametrize("what", ["path", "near"])
def test_killed_again_and_again(what, tmp_path):
    def run(path, resumed, saves, included):
        words = [what, str(path), "resume" if resumed else "begin", str(saves), str(included)]
        return subprocess.run(
            [sys.executable, "-c", KILLED, *words], capture_output=True, text=True, check=False,
            env=os.environ | {"EXACTSEL_JIT": "0"},
        )  # fmt: skip

    whole = run(tmp_path / "whole.ckpt", False, 0, 0)
    assert whole.returncode == 0, whole.stderr
    path, kills, rng = tmp_path / "run.ckpt", 0, np.random.default_rng(1)
    ended = run(path, False, 3, 0)
    while ended.returncode == -signal.SIGKILL and kills < 60:
        kills += 1
        ended = run(path, True, int(rng.integers(10, 24)), kills % 2)
    assert ended.returncode == 0, ended.stderr
    assert kills >= 2
    assert ended.stdout == whole.stdout


def test_killed_before_anything_is_saved(tmp_path, monkeypatch):
    problem, file = problem_of("quadratic, no walks"), tmp_path / "run.ckpt"

    def killed(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save", killed)
        with pytest.raises(KeyboardInterrupt):
            solve_path(problem, near=0.2, checkpoint=file, **ONE_BY_ONE)
    assert said(solve_path(problem, resume=file, signals=())) == said(solve_path(problem, near=0.2, **ONE_BY_ONE))


def test_a_wide_problem_spills_into_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr("exactsel.search.spilling.FEWEST", 2)
    monkeypatch.setattr("exactsel.search.spilling.CHUNK", 4)
    rng = np.random.default_rng(1)
    A = rng.standard_normal((30, 14)) + 0.7 * rng.standard_normal((30, 1))
    problem = Problem(A, A[:, :4].sum(axis=1) + 4.0 * rng.standard_normal(30), 5, loss="huber", lam=3.0)
    options = {"heuristics": "none", "subtrees": False, "batch": 1, "signals": ()}
    whole = solve_path(problem, ks=[4, 5], **options)
    assert max(result.nodes for result in whole.results) > 40
    part = solve_path(
        problem, ks=[4, 5], checkpoint=tmp_path / "run.ckpt", checkpoint_every=0, memory_limit=0.003, node_limit=25,
        **options,
    )  # fmt: skip
    spilled = [len(record["search"]["spilled"]) for record in saved_records(tmp_path / "run.ckpt")]
    assert min(spilled) > 0, "the case to be tested"
    path = part.resume(signals=())
    assert [told(result)[2:] for result in path.results] == [told(result)[2:] for result in whole.results]


def saved_records(file):
    checkpoint = Checkpoint.open(file, writing=False)
    try:
        return checkpoint.saved()["course"]["records"]
    finally:
        checkpoint.close()
