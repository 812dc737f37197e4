"""Counts divided into parts, whoever carries these out: the tree is the same, and what is left out is found out."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from executors_for_tests import Here, same
from samples import sample

from exactsel import Problem, solve
from exactsel.bounds.base import BoundOptions
from exactsel.enumeration import minors
from exactsel.enumeration.minors import MinorTest
from exactsel.enumeration.minors_parts import ROOM, Part, Piece
from exactsel.errors import InputError, WorkerWarning
from exactsel.kernels.wide import OVERFLOW
from exactsel.search import count_parts
from exactsel.search.count_parts import CountParts, part_bytes, pieces_bytes, pieces_from_bytes
from exactsel.search.events import SubtreeClosed
from exactsel.search.packed_bytes import from_bytes
from exactsel.search.pool import Pool
from exactsel.solving.processes import ProcessExecutor

SHARDED = {"shard": 4, "batch": 16, "heuristics": (), "signals": ()}


@pytest.fixture(autouse=True)
def few_columns_are_many(monkeypatch):
    monkeypatch.setattr(minors, "FEWEST", 5)
    monkeypatch.setattr(minors, "WORK", 30.0)
    monkeypatch.setattr(minors, "WORTH_SENDING", 0.0)


def awkward(seed):
    """A small problem with more columns than rows and, as a rule, columns that are equal, or nearly so."""
    rng = np.random.default_rng(seed)
    d, n, k = int(rng.integers(12, 20)), int(rng.integers(3, 10)), 2 + seed % 3
    A = rng.standard_normal((n, d))
    if seed % 4 == 1:
        A = rng.integers(-1, 2, (n, d)).astype(float)
    elif seed % 4 == 2:
        A[:, 1], A[:, 2] = A[:, 0] + 1e-9 * A[:, 1], A[:, 3] + A[:, 4]
    elif seed % 4 == 3:
        A[:, d // 2 :] = A[:, : d - d // 2]
    y = A[:, :3] @ [1.0, -1.0, 0.5] + rng.choice([0.0, 0.1, 1.0]) * rng.standard_normal(n)
    return Problem(A, y, k=k, lam=float(rng.choice([0.0, 1e-3, 0.5])))


def least(problem):
    """The smallest objective of any model, set by set."""
    matrix = np.vstack([problem.AT.T, np.sqrt(problem.lam) * np.eye(problem.d)])
    target = np.concatenate([problem.y, np.zeros(problem.d)])
    best = 0.5 * float(target @ target)
    for columns in combinations(range(problem.d), problem.k):
        part = matrix[:, list(columns)]
        residual = target - part @ np.linalg.lstsq(part, target, rcond=1e-13)[0]
        best = min(best, 0.5 * float(residual @ residual))
    return best


@pytest.mark.parametrize("block", sample(4, 4))
def test_whoever_counts_the_tree_is_the_same_and_the_bound_holds(block, kernels_at_once, monkeypatch):
    everything_is_counted_again(monkeypatch)
    parts = 0
    for seed in range(12 * block, 12 * block + 12):
        problem, here = awkward(seed), Here()
        serial = solve(problem, executor="serial", **SHARDED)
        assert same(solve(problem, executor=here, **SHARDED), serial), seed
        null = 0.5 * float(problem.y @ problem.y)
        assert serial.lower <= least(problem) + 1e-9 * null, seed
        assert serial.upper <= least(problem) + 1e-6 * null, seed
        parts += here.given
    assert parts > 30


def everything_is_counted_again(monkeypatch):
    monkeypatch.setattr(CountParts.__init__, "__defaults__", (1,))


def larger_count(k):
    rng = np.random.default_rng(4)
    A = rng.standard_normal((15, 420))
    return Problem(A, A[:, :2].sum(axis=1) + 0.3 * rng.standard_normal(15), k=k, lam=0.2)


def test_processes_of_which_one_is_killed(monkeypatch):
    """With three places; these processes have more columns than others are for, and so no patch."""
    monkeypatch.setattr(minors, "WORK", 3e5)
    problem, fractions, killed = larger_count(3), [], []
    executor = ProcessExecutor(2)
    serial = solve(problem, executor="serial", **SHARDED)

    def kill(event, state):
        if isinstance(event, SubtreeClosed):
            fractions.append(event.result.fraction)
            if not killed and executor.processes:
                killed.append(executor.processes[0])
                os.kill(killed[0], signal.SIGKILL)

    result = solve(problem, executor=executor, callback=kill, **SHARDED)
    assert same(result, serial)
    assert killed
    assert len(fractions) > 1
    assert fractions == sorted(fractions)


def test_a_count_goes_on_from_a_checkpoint_with_another_executor(tmp_path, monkeypatch):
    monkeypatch.setattr(minors, "WORK", 3e4)
    problem, ends = larger_count(3), []
    for name, first, second in (("one", Here(), "serial"), ("other", "serial", Here())):
        file = tmp_path / name
        begun = solve(problem, executor=first, checkpoint=file, **{**SHARDED, "node_limit": 200})
        assert begun.termination.value == "node_limit"
        ends.append(solve(problem, executor=second, resume=file, signals=()))
    assert same(*ends)
    assert ends[0].claim.value == "optimal"


def counted(k=3, first=0):
    """A part of a count with what comes of it, and who counted."""
    problem = larger_count(k)
    enumeration = MinorTest(problem, BoundOptions(threads=1), parts=3)
    level = 0.9 * least_of_some(problem)
    region = enumeration._region(problem.root_state, level)
    part = enumeration._parts_of(region)[first]
    return enumeration, part, enumeration.count(part), region


def least_of_some(problem):
    return min(problem.fit(np.array([0, 1, j])).value for j in range(2, 40))


@pytest.mark.parametrize("k", [3, 4])
def test_pieces_survive_the_way(k):
    _, part, pieces, _ = counted(k)
    assert from_bytes(part_bytes(part)).header[count_parts.COUNT] == [part.first, part.last, part.size]
    back = pieces_from_bytes(pieces_bytes(pieces), part)
    assert [piece.pivot for piece in back] == [piece.pivot for piece in pieces] == list(part.pivots)
    for piece, other in zip(pieces, back, strict=True):
        assert piece.definite == other.definite
        assert all(np.array_equal(getattr(piece, name), getattr(other, name)) for name in ("failing", "found", "rows"))


def test_a_part_of_something_else_is_not_counted():
    enumeration, part, _, _ = counted()
    for other in (replace(part, last=10_000), replace(part, size=3), replace(part, pivots=(3,))):
        with pytest.raises(InputError, match="no part of a count"):
            enumeration.count(other)


@pytest.mark.parametrize("k", [3, 4])
def test_pieces_that_cannot_be_are_refused(k):
    _, part, pieces, _ = counted(k)
    blocks = len(pieces[0].found)
    top = 8 * (part.first if k == 3 else 0)
    one_more = np.r_[pieces[0].found[0] + 1, pieces[0].found[1:]]
    for spoilt in (
        {"found": pieces[0].found[1:]},
        {"found": np.full(blocks, ROOM + 1)},
        {"found": np.full(blocks, -2)},
        {"found": one_more},
        {"found": one_more, "rows": np.vstack([[top + 8, 1, 0], pieces[0].rows])},
        {"found": one_more, "rows": np.vstack([[top + 1, top + 1, 0], pieces[0].rows])},
        {"pivot": 7},
    ):
        with pytest.raises(InputError, match="damaged"):
            pieces_from_bytes(pieces_bytes([replace(pieces[0], **spoilt), *pieces[1:]]), part)
    with pytest.raises(InputError, match="damaged"):
        pieces_from_bytes(pieces_bytes(pieces[1:]), part)


def test_more_may_be_named_and_less_not():
    none, rows = np.empty(0, dtype=np.int64), np.array([[9, 3, 1], [17, 2, -1]])
    mine = Piece(20, True, none, np.array([0, 1, 1]), rows)
    more = Piece(
        20, True, np.array([2]), np.array([0, 2, OVERFLOW]), np.vstack([[9, 4, 2], rows[0], [[16, 1, 0]] * ROOM])
    )
    assert mine.admits(mine, 0)
    assert more.admits(mine, 0)
    assert not mine.admits(more, 0)
    assert not mine.admits(replace(mine, found=np.array([0, 1, OVERFLOW]), rows=more.rows[1:]), 0)
    assert not replace(mine, found=np.array([0, 1, 0]), rows=rows[:1]).admits(mine, 0)
    assert replace(mine, definite=False).admits(mine, 0)
    assert not mine.admits(replace(mine, definite=False), 0)
    assert more.admits(Piece(20, True, none, np.array([1]), rows[:1]), 1), "a block counted alone"


@pytest.mark.parametrize("k", [3, 4])
def test_a_worker_that_closes_what_is_open_is_found_out(k, kernels_at_once, monkeypatch):
    """One that says of every part that nothing is below the level, where the best model is."""
    everything_is_counted_again(monkeypatch)
    problem = larger_count(k)

    def lie(number, answer):
        packed = from_bytes(answer)
        if count_parts.COUNT not in packed.header:
            return answer
        heads = packed.arrays["heads"]
        ends = np.cumsum(heads[:, 3])
        pieces = [
            Piece(int(head[0]), True, np.empty(0, dtype=np.int64), np.zeros(blocks.size, dtype=np.int64),
                  np.empty((0, 3), dtype=np.int64))
            for head, blocks in zip(heads, np.split(packed.arrays["found"], ends[:-1]), strict=True)
        ]  # fmt: skip
        return pieces_bytes(pieces)

    with pytest.warns(WorkerWarning, match="leaves out a set of features"):
        result = solve(problem, executor=Here(lie), **SHARDED)
    assert result.termination.value == "worker_failure"
    assert result.lower <= least_of_some(problem)


def test_what_is_counted_again_is_a_share(kernels_at_once):
    """One block in so many, and no more work than that."""
    enumeration, part, _, region = counted()
    here, again = Here(), []
    here.submit = lambda shard: _Answered(pieces_bytes(enumeration.count(part)))

    def count(asked: Part):
        again.append(asked)
        return enumeration._count_part(region, asked)

    parts = CountParts(Pool(here, larger_count(3), lambda nodes, done: "", lambda: False), 4)
    list(parts([part] * 40, count))
    blocks = 40 * (part.last - part.first)
    assert 0 < len(again) < blocks
    assert all(asked.last == asked.first + 1 for asked in again)


class _Answered:
    def __init__(self, answer):
        self.answer = answer

    def result(self, timeout):
        return self.answer
