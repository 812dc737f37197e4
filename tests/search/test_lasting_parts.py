"""Checkpoints write blocks of waiting nodes once: what goes on from them is the same search, and damage is seen."""

import sqlite3

import numpy as np
import pytest
from saved_searches import copied, said

from exactsel import Problem, solve
from exactsel.bounds.witness import ModelPoint
from exactsel.errors import InputError, OutputError
from exactsel.nodes.node import Node
from exactsel.nodes.table import NodeTable
from exactsel.search import checkpoint_parts, frontier
from exactsel.search.block_heap import BlockHeap
from exactsel.search.checkpoint import Checkpoint
from exactsel.search.events import RoundEnded


def hard(seed, d=20):
    rng = np.random.default_rng(seed)
    return Problem(rng.standard_normal((d + 4, d)), rng.standard_normal(d + 4), k=5, lam=0.5)


def rows_of(path):
    connection = sqlite3.connect(path)
    rows = dict(connection.execute("SELECT number, data FROM part").fetchall())
    connection.close()
    return rows


OPTIONS = {"heuristics": (), "subtrees": False, "batch": 4, "signals": ()}


def test_blocks_stay_and_what_goes_on_is_the_same(monkeypatch, tmp_path):
    monkeypatch.setattr(frontier, "MOST_OBJECTS", 12)
    path, copies, before, lasted = tmp_path / "run.ckpt", [], {}, 0

    def look(event, state):
        if isinstance(event, RoundEnded):
            copies.append((copied(path, tmp_path / f"{len(copies)}.ckpt"), rows_of(path)))

    whole = solve(hard(0), checkpoint=path, checkpoint_every=0, callback=look, **OPTIONS)
    assert said(solve(hard(0), **OPTIONS)) == said(whole)
    for _, rows in copies:
        lasted += sum(before.get(number) == data for number, data in rows.items())
        before = rows
    for copy, _ in copies[:: len(copies) // 3]:
        assert said(solve(hard(0), resume=copy, checkpoint_every=0, signals=())) == said(whole)
    assert lasted > 30


def test_a_save_that_fails_forgets_nothing(monkeypatch, tmp_path):
    checkpoint, blocks = Checkpoint.begin(tmp_path / "run.ckpt", {}), [_block([1, 2, 3]), _block([4, 5]), _block([6])]
    checkpoint.save([b"state", *map(_Part, blocks[:2])], {}, {})

    def fails(connection, parts):
        checkpoint_parts.StoredParts.written(checkpoint._parts, connection, parts)
        raise sqlite3.OperationalError("a moment of trouble")

    class Failing(checkpoint_parts.StoredParts):
        written = staticmethod(fails)

    known = checkpoint._parts
    checkpoint._parts = Failing(*known)
    with pytest.raises(OutputError, match="a moment of trouble"):
        checkpoint.save([b"other", *map(_Part, blocks)], {}, {})
    assert list(checkpoint.parts()) == [b"state", *map(bytes, map(_Part, blocks[:2]))]
    checkpoint._parts = known
    checkpoint.save([b"third", _Part(blocks[2]), _Part(blocks[0])], {}, {})
    assert list(checkpoint.parts()) == [b"third", bytes(_Part(blocks[2])), bytes(_Part(blocks[0]))]
    checkpoint.close()


class _Part:
    def __init__(self, block):
        self.block, self.serial = block, block.serial

    def __bytes__(self):
        return repr(self.block.rows["id"].tolist()).encode()


def _block(numbers, bounds=None):
    point = ModelPoint(np.zeros(1, np.int32), np.ones(1))
    bounds = [float(number) for number in numbers] if bounds is None else bounds
    return NodeTable.of([
        Node(number, -1, 0, np.ones(6, np.int8), bound, point, None, True, bound)
        for number, bound in sorted(zip(numbers, bounds, strict=True), key=lambda pair: (pair[1], pair[0]))
    ], 6)  # fmt: skip


@pytest.mark.parametrize("where", ["gone", "changed", "swapped"])
def test_damage_in_a_part_that_lasts_is_seen(where, monkeypatch, tmp_path):
    monkeypatch.setattr(frontier, "MOST_OBJECTS", 12)
    path = tmp_path / "run.ckpt"
    solve(hard(0), checkpoint=path, checkpoint_every=0, node_limit=150, **OPTIONS)
    connection = sqlite3.connect(path)
    numbers = [number for (number,) in connection.execute("SELECT number FROM part ORDER BY number")]
    assert len(numbers) > 2
    one, other = numbers[0], numbers[1]
    if where == "gone":
        connection.execute("DELETE FROM part WHERE number = ?", (one,))
    elif where == "changed":
        connection.execute("UPDATE part SET data = data || x'00' WHERE number = ?", (one,))
    else:
        connection.execute("UPDATE part SET number = -1 WHERE number = ?", (one,))
        connection.execute("UPDATE part SET number = ? WHERE number = ?", (one, other))
        connection.execute("UPDATE part SET number = ? WHERE number = -1", (other,))
    connection.commit()
    connection.close()
    with pytest.raises(InputError, match="is damaged"):
        solve(hard(0), resume=path, signals=())


def test_a_heap_of_blocks_against_a_sorted_list():
    rng = np.random.default_rng(5)
    for _ in range(60):
        heap, known, number = BlockHeap(), [], 0
        for _ in range(int(rng.integers(5, 40))):
            what = rng.integers(0, 4)
            if what == 0 or not known:
                size = int(rng.integers(1, 9))
                bounds = rng.integers(0, 6, size).astype(float).tolist()
                heap.push(_block(list(range(number, number + size)), bounds))
                known = sorted([*known, *zip(bounds, range(number, number + size), strict=True)])
                number += size
            elif what == 3 and rng.integers(0, 2):
                border = (float(rng.integers(0, 7)), int(rng.integers(0, number + 1)))
                heap.drop(border)
                known = [key for key in known if key < border]
            elif what == 3:
                border = (float(rng.integers(0, 7)), int(rng.integers(0, number + 1)))
                cut = sorted((node.bound, node.id) for source in heap.cut(border) for node in source.read())
                assert cut == [key for key in known if key >= border]
                known = [key for key in known if key < border]
            else:
                assert heap.first == known[0]
                node = heap.take()
                assert (node.bound, node.id) == known.pop(0)
            assert len(heap) == len(known) == sum(map(len, heap))
            assert heap.nbytes == sum(reader.nbytes for reader in heap)
            assert bool(heap) == bool(known)
        left = sorted((node.bound, node.id) for source in heap.sources() for node in source.read())
        assert left == known
