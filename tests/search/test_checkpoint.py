"""Searches that are saved as they go: from any round they go on to the same end, and nothing else is taken for one."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from every_search import SEARCHES, every_second
from samples import many
from saved_searches import PARTS, copied, said

from exactsel import InputError, Problem, solve, verify
from exactsel.errors import OutputError, OutputWarning, UnsupportedError
from exactsel.proofs.instance import instance_of
from exactsel.search.checkpoint import Checkpoint
from exactsel.search.events import RoundEnded
from exactsel.solving import checkpointing
from exactsel.solving.status import status_of


def provable(problem):
    try:
        instance_of(problem)
    except UnsupportedError:
        return False
    return True


def saved_at_every_round(problem, options, tmp_path, **more):
    """The result, and a copy of the checkpoint after each round."""
    path, copies = tmp_path / "run.ckpt", []

    def look(event, state):
        if isinstance(event, RoundEnded):
            copies.append(copied(path, tmp_path / f"{len(copies)}.ckpt"))

    result = solve(
        problem, checkpoint=path, checkpoint_every=0, callback=look, signals=(), **{"batch": 2, **options}, **more
    )
    return result, copies


@pytest.mark.parametrize("kind", every_second(0, smoke=4))
def test_from_any_round_to_the_same_end(kind, kernels_at_once, tmp_path):
    make, options = SEARCHES[kind]
    gone_on = 0
    for seed in range(900, 900 + many(1, 2)):
        problem, folder = make(seed), tmp_path / str(seed)
        folder.mkdir()
        proof = folder / "run.exsel" if provable(problem) else None
        whole, copies = saved_at_every_round(problem, options, folder, proof=proof)
        plain = solve(
            problem, signals=(), **{"batch": 2, **options}, proof=None if proof is None else folder / "other.exsel"
        )
        assert said(plain) == said(whole), "saving changes nothing"
        for path in copies[:: max(1, len(copies) // 4)]:
            other = None if proof is None else path.with_suffix(".exsel")
            again = solve(problem, resume=path, proof=other, signals=())
            assert said(again) == said(whole)
            assert proof is None or verify(problem, other).verified
            gone_on += 1
    assert gone_on > many(0, 1)


@pytest.mark.parametrize("ahead", [1, 2])
def test_a_round_that_was_begun_ahead_is_begun_again(ahead, kernels_at_once, monkeypatch, tmp_path):
    monkeypatch.setattr("exactsel.search.engine.AHEAD", ahead)
    make, options = SEARCHES["huber, default"]
    begun = 0
    for seed in range(900, 900 + many(2, 4)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        whole, copies = saved_at_every_round(make(seed), options, folder, threads=2)
        for path in copies:
            checkpoint = Checkpoint.open(path, writing=False)
            begun += json.loads(checkpoint._rows("SELECT text FROM saved")[0][0])["progress"]["open"] > 0
            checkpoint.close()
            assert said(solve(make(seed), resume=path, signals=(), threads=1)) == said(whole)
    assert begun > 3


def stopped(tmp_path, **options):
    """A search with something left to do, its problem and its checkpoint."""
    problem, path = SEARCHES["quadratic, no walks"][0](900), tmp_path / "run.ckpt"
    result = solve(
        problem, checkpoint=path, node_limit=6, heuristics="none", subtrees=False, batch=2, rel_eps=1e-9, signals=(),
        **options,
    )  # fmt: skip
    assert result.termination == "node_limit"
    return problem, path


def test_limits_may_change_and_nothing_else(tmp_path):
    problem, path = stopped(tmp_path)
    whole = solve(problem, heuristics="none", subtrees=False, batch=2, rel_eps=1e-9, signals=())
    for options, sentence in (
        ({"seed": 3}, r"begun with seed = 0, and what decides on the tree stays; leave seed out"),
        ({"batch": 5}, r"begun with batch = 2"),
        ({"heuristics": "poss"}, r"begun with heuristics = \[\]"),
        ({"subtrees": True}, r"begun with subtrees = False"),
        ({"proof": tmp_path / "p.exsel"}, r"begun without a proof, so none can be had"),
        ({"record": True}, r"begun without a trace, a recheck and a record"),
        ({"trace": tmp_path / "t.jsonl"}, r"begun without a trace"),
        ({"start": (0,)}, r"has its models already"),
        ({"checkpoint": tmp_path / "other.ckpt"}, r"continues in the checkpoint it resumes from"),
    ):
        with pytest.raises(InputError, match=sentence):
            solve(problem, resume=path, **options)
    for other, sentence in (
        (problem.replace(k=2), r"is about k = 3, but it is 2 here; only limits may change"),
        (problem.replace(lam=7.0), r"is about lam = 0\.05, but it is 7\.0 here"),
        (Problem(problem.A, problem.y + 1.0, 3, lam=0.05), r"is about other data; give the instance it was begun with"),
    ):
        with pytest.raises(InputError, match=sentence):
            solve(other, resume=path)
    wider = solve(problem, resume=path, rel_eps=0.5, signals=())
    assert wider.termination == "gap_closed"
    assert wider.nodes < whole.nodes
    assert wider.upper >= whole.upper * (1 - 1e-9) >= wider.lower * (1 - 1e-9)
    again = solve(problem, resume=path, rel_eps=1e-9, threads=2, memory_limit=100.0, signals=())
    assert again.upper == whole.upper
    assert again.reached


def test_a_file_is_not_written_over(tmp_path):
    problem, path = stopped(tmp_path)
    with pytest.raises(InputError, match=r"run\.ckpt exists already; resume it, choose another name"):
        solve(problem, checkpoint=path)
    with pytest.raises(InputError, match=r"there is no checkpoint .*none\.ckpt; give the file that checkpoint named"):
        solve(problem, resume=tmp_path / "none.ckpt")
    with pytest.raises(InputError, match="there is no such folder"):
        solve(problem, checkpoint=tmp_path / "no" / "run.ckpt")
    with pytest.raises(InputError, match=r"checkpoint_every is -1, but it must be a number of seconds from 0 on"):
        solve(problem, checkpoint=tmp_path / "new.ckpt", checkpoint_every=-1)
    assert not (tmp_path / "new.ckpt").exists()


def test_what_is_no_checkpoint_is_refused(tmp_path):
    problem, path = stopped(tmp_path)
    text = tmp_path / "text.ckpt"
    text.write_text("nothing of this kind" * 100)
    with pytest.raises(InputError, match=r"text\.ckpt is no checkpoint, or a damaged one"):
        solve(problem, resume=text)
    foreign = tmp_path / "foreign.ckpt"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE about (id INTEGER)")
    connection.close()
    with pytest.raises(InputError, match=r"is a database, but no checkpoint of exactsel"):
        solve(problem, resume=foreign)
    newer = copied(path, tmp_path / "newer.ckpt")
    connection = sqlite3.connect(newer)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(InputError, match=r"is a checkpoint of layout 99, but this version of exactsel reads layout 2"):
        solve(problem, resume=newer)


def test_damage_is_refused_or_changes_nothing(tmp_path):
    problem, path = stopped(tmp_path, proof=tmp_path / "run.exsel")
    whole = solve(problem, resume=copied(path, tmp_path / "whole.ckpt"), signals=())
    data, refused, rng = path.read_bytes(), 0, np.random.default_rng(0)
    connection = sqlite3.connect(path)
    stored = [blob for table in ("part", "spool") for (blob,) in connection.execute(f"SELECT data FROM {table}")]
    connection.close()
    included = {data.find(blob[:24]) + 12 for blob in stored if len(blob) > 24}
    assert len(included) > 3
    assert min(included) > 12
    for place in [*included, *rng.integers(0, len(data), 40).tolist()]:
        damaged = bytearray(data)
        damaged[place] ^= 1 << int(rng.integers(8))
        other = tmp_path / "damaged.ckpt"
        for part in PARTS:
            Path(f"{other}{part}").unlink(missing_ok=True)
        other.write_bytes(damaged)
        try:
            again = solve(problem, resume=other, proof=tmp_path / "other.exsel", signals=())
        except InputError:
            refused += 1
        else:
            assert place not in included
            assert said(again) == said(whole)
    assert refused > len(included)
    for size in (0, 100, len(data) // 2):
        (tmp_path / "short.ckpt").write_bytes(data[:size])
        with pytest.raises(InputError):
            solve(problem, resume=tmp_path / "short.ckpt", signals=())


def test_whoever_takes_over_writes_alone(tmp_path):
    problem, path = stopped(tmp_path)
    first, second = Checkpoint.open(path), Checkpoint.open(path)
    first.go_on()
    first.note({})
    second.go_on()
    with pytest.raises(OutputError, match=r"another process uses .*run\.ckpt; what follows here is not saved"):
        first.note({})
    with pytest.raises(OutputError, match="another process uses"):
        first.save([b"nothing"], {}, {})
    second.close()
    first.close()
    assert solve(problem, resume=path, signals=()).reached


def test_somebody_at_work_is_not_disturbed(tmp_path):
    problem, path = stopped(tmp_path)
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as other:
        checkpoint = Checkpoint.open(path)
        checkpoint.go_on()
        checkpoint.note({})
        text = json.loads(checkpoint._rows("SELECT text FROM owner")[0][0]) | {"process": other.pid}
        checkpoint._connection.execute("UPDATE owner SET text = ?", (json.dumps(text),))
        with pytest.raises(InputError, match=rf"process {other.pid} uses .*; end it first"):
            solve(problem, resume=path)
        checkpoint._connection.close()
        other.communicate()
    assert solve(problem, resume=path, signals=()).reached


def test_a_full_disk_costs_the_checkpoint_alone(tmp_path, monkeypatch):
    save, saved = Checkpoint.save, []

    def full(self, *arguments):
        saved.append(1)
        if len(saved) > 2:
            raise OutputError("the checkpoint cannot be written (disk full).")
        save(self, *arguments)

    monkeypatch.setattr(Checkpoint, "save", full)
    problem = SEARCHES["quadratic, no walks"][0](900)
    options = {"heuristics": "none", "subtrees": False, "batch": 2, "signals": ()}
    with pytest.warns(OutputWarning, match=r"\(disk full\)\. The search continues without it\."):
        result = solve(problem, checkpoint=tmp_path / "run.ckpt", checkpoint_every=0, **options)
    assert result.reached
    assert len(saved) == 3
    monkeypatch.undo()
    again = solve(problem, resume=tmp_path / "run.ckpt", signals=())
    assert said(again) == said(result), "what was saved before is there"


def test_a_transaction_that_fails_leaves_the_state_of_before(tmp_path):
    problem, path = stopped(tmp_path)
    whole = solve(problem, resume=copied(path, tmp_path / "whole.ckpt"), signals=())
    checkpoint = Checkpoint.open(path)
    checkpoint.go_on()

    def parts():
        yield b"one"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        checkpoint.save(parts(), {"pieces": b"more"}, {})
    checkpoint.close()
    assert said(solve(problem, resume=path, signals=())) == said(whole)


def test_states_are_saved_as_often_as_was_asked_for(tmp_path, clock, monkeypatch):
    times, save = [], checkpointing.Checkpointer._save

    def noted(self, *arguments):
        times.append(clock.time)
        save(self, *arguments)

    monkeypatch.setattr(checkpointing.Checkpointer, "_save", noted)
    problem = SEARCHES["quadratic, no walks"][0](900)

    def look(event, state):
        clock.time += 4.0 if isinstance(event, RoundEnded) else 0.0

    result = solve(
        problem, checkpoint=tmp_path / "run.ckpt", checkpoint_every=10.0, heuristics="none", subtrees=False, batch=1,
        callback=look, signals=(),
    )  # fmt: skip
    assert result.reached
    assert len(times) > 3
    assert all(later - earlier >= 10.0 for earlier, later in pairwise(times[:-1]))
    assert all(later - earlier <= 16.0 for earlier, later in pairwise(times))


@pytest.mark.smoke
def test_the_status_of_a_search(tmp_path):
    problem, path = stopped(tmp_path)
    status = status_of(path)
    assert (status.run, status.process, status.progress["ended"]) == ("node_limit", None, "node_limit")
    upper, lower = status.progress["upper"], status.progress["lower"]
    assert status.gap == (upper - lower) / upper > 0
    assert status.as_dict()["settings"]["rel_eps"] == 1e-9
    json.dumps(status.as_dict(), allow_nan=False)
    texts = dict(status.lines())
    assert texts["run"] == "node_limit: the node limit was reached"
    assert texts["problem"] == f"quadratic, n={problem.n}, d={problem.d}, k=3, lam=0.05"
    seen = []
    solve(problem, resume=path, callback=lambda event, state: seen.append(status_of(path).progress), signals=())
    assert seen[-1]["ended"] == "tree_exhausted"
    assert [told["nodes"] for told in seen] == sorted(told["nodes"] for told in seen)


KILLED = """
import os, signal, sys
import numpy as np
from exactsel import Problem, solve
from exactsel.search.events import RoundEnded

path, resumed, rounds, proof = sys.argv[1], sys.argv[2] == "resume", int(sys.argv[3]), sys.argv[4]
rng = np.random.default_rng(4)
A = rng.standard_normal((25, 14)) + 0.7 * rng.standard_normal((25, 1))
problem = Problem(A, A[:, :4].sum(axis=1) + 2.0 * rng.standard_normal(25), 4, loss="huber", lam=0.3)
left = rounds

def look(event, state):
    global left
    if isinstance(event, RoundEnded):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

more = {"resume": path} if resumed else {
    "checkpoint": path, "proof": proof, "heuristics": "none", "batch": 4, "subtrees": False,
}
result = solve(problem, callback=look, checkpoint_every=0, **more)
print(result.tree_hash, result.upper.hex(), result.lower.hex(), result.claim.value, result.proof)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal")
def test_killed_again_and_again(tmp_path):
    def run(path, resumed, rounds, proof):
        words = [sys.executable, "-c", KILLED, str(path), "resume" if resumed else "begin", str(rounds), str(proof)]
        return subprocess.run(
            words, capture_output=True, text=True, check=False, env=os.environ | {"EXACTSEL_JIT": "0"}
        )

    whole = run(tmp_path / "whole.ckpt", False, 0, tmp_path / "whole.exsel")
    assert whole.returncode == 0, whole.stderr
    path, proof, kills = tmp_path / "run.ckpt", tmp_path / "run.exsel", 0
    ended = run(path, False, 3, proof)
    while ended.returncode == -signal.SIGKILL and kills < 100:
        kills += 1
        ended = run(path, True, 6, proof)
    assert ended.returncode == 0, ended.stderr
    assert kills >= 2
    assert ended.stdout.split()[:4] == whole.stdout.split()[:4]
    assert Path(ended.stdout.split()[4]) == proof
    namespace = {}
    exec(KILLED.partition("left = rounds")[0].replace("sys.argv[", "['', '', '', '0', '']["), namespace)
    assert verify(namespace["problem"], proof).verified
