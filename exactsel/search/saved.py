"""The complete state of a search as plain data, from which another process can resume it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from exactsel.enumeration.work_budget import Phase, SubtreeRecord, WholeProblemAttempt, WorkBudget
from exactsel.errors import InputError
from exactsel.nodes.node import Node
from exactsel.nodes.regions import Seconds
from exactsel.nodes.table import NodeTable
from exactsel.problem.fit import Fit
from exactsel.problem.interface import Statement, SubsetProblem
from exactsel.search.frontier import BestFirst, DepthFirst, Frontier
from exactsel.search.layout import refusing_damage, require
from exactsel.search.memory import MemoryGuard
from exactsel.search.packed_bytes import from_bytes, to_bytes
from exactsel.search.packed_nodes import nodes_from, packed_nodes
from exactsel.search.packing import RECORDS, Packed, arrays_under, fields_of, pack, under, unpack
from exactsel.search.reserve import Kept, Reserve
from exactsel.search.spilling import Room, Spilling
from exactsel.search.state import Begun, SearchState, Stated
from exactsel.start.primal_heuristics import Portions
from exactsel.types import FloatArray, IntArray

COUNTED = (
    "min_pruned_bound:f proven:f next_id:i nodes:i bound_calls:i iterations:i depth:i discarded:i unit:f reported:f "
    "rounds:i"
)
"""Fields of a state that are numbers."""

AS_THEY_ARE = f"{COUNTED} incumbent:r source:t valid_for:t walks:r phase:r seconds:r portions:r counted:r"
"""Fields of a state that are saved as they are."""


MOST = 2**53
"""The largest count."""

NODES_IN_PART = 4096
"""Nodes of a frontier that are packed together."""

TAKEN = "taken"
"""In the header of a state: how many nodes of each block that follows are no longer open."""


@dataclass(frozen=True)
class _SavedState:
    """A :class:`exactsel.search.state.SearchState` without what the problem and the settings say anyhow."""

    min_pruned_bound: float
    proven: float
    next_id: int
    nodes: int
    bound_calls: int
    iterations: int
    depth: int
    discarded: int
    unit: float
    reported: float
    rounds: int
    incumbent: Fit
    source: str
    valid_for: str
    walks: SubtreeRecord
    phase: Phase
    seconds: Seconds
    portions: Portions
    counted: WholeProblemAttempt
    uppers: FloatArray
    """What each of the rounds that are begun was begun with, ..."""
    efforts: tuple[WorkBudget, ...]
    """... both."""
    relieving: bool
    """Whether the search goes depth-first for the sake of memory."""
    digest: str
    stated: Stated | None
    closed_at: FloatArray
    """The bounds at which the regions were closed that a finer tolerance opens again, ..."""
    outside: float
    """... and the smallest bound of those that are not here."""


_STATE = RECORDS | {
    Stated: "fit:r upper:f source:t",
    _SavedState: f"{AS_THEY_ARE} uppers:r efforts:m relieving:b digest:t stated:r closed_at:r outside:f",
}


def pack_state(state: SearchState) -> Packed:
    """Everything needed to resume later but the nodes that wait in the frontier, for which see :func:`state_parts`.

    Raises
    ------
    UnsupportedError
        Where the bound hands on objects other than arrays and points.
    """
    fields = {name: getattr(state, name) for name, _ in fields_of(AS_THEY_ARE)}
    reserve, rounds = state.reserve.kept, state.begun if state.can_begin_again else ()
    nodes = [*state.in_flight, *(entry.node for entry in reserve)]
    saved = _SavedState(
        **fields, uppers=np.array([entry.upper for entry in rounds], dtype=np.float64),
        efforts=tuple(entry.work_budget for entry in rounds), relieving=state.guard.usual is not None,
        digest=state.tree_hash, stated=state.stated, outside=state.reserve.outside,
        closed_at=np.array([entry.closed_at for entry in reserve], dtype=np.float64),
    )  # fmt: skip
    rest, held = pack([saved], _STATE), Packed({}, {})
    if nodes:
        held = packed_nodes(NodeTable.of(nodes, nodes[0].state.size))
    header = {
        "problem_hash": state.problem_hash, "state": rest.header, "nodes": held.header,
        "in_flight": len(state.in_flight), "begun": [len(entry.nodes) for entry in rounds],
    }  # fmt: skip
    return Packed(header, under("state", rest.arrays) | under("nodes", held.arrays))


def unpack_state(
    packed: Packed, problem: SubsetProblem, frontier: Frontier, statement: Statement | None = None
) -> SearchState:
    """The state that was packed; ``frontier``, an empty one of the kind it had, is to be given its nodes.

    Raises
    ------
    InputError
        When it belongs to another problem, was packed in another layout, or is damaged.
    """
    with refusing_damage():
        if packed.header.get("problem_hash") != problem.hash:
            raise InputError("the packed search belongs to another problem; give the one it was made for.")
        roots = unpack(Packed(packed.header["state"], arrays_under("state", packed)), problem, _STATE)
        require(len(roots) == 1 and isinstance(roots[0], _SavedState), "something else than a state at its root")
        saved: _SavedState = roots[0]
        _check_types(saved)
        _check_numbers(saved)
        in_flight, reserved, rounds = _nodes(packed, problem, saved)
        digest = bytes.fromhex(saved.digest)
        require(len(digest) == hashlib.sha256().digest_size, "a digest of another length")
    guard = MemoryGuard(usual=frontier) if saved.relieving else MemoryGuard()
    used: Frontier = DepthFirst() if saved.relieving else frontier
    return SearchState(
        frontier=used, problem_hash=problem.hash, statement=statement, in_flight=in_flight, guard=guard,
        digest=digest, stated=saved.stated,
        begun=rounds,
        reserve=Reserve(tuple(map(Kept, saved.closed_at.tolist(), reserved)), saved.outside),
        **{name: getattr(saved, name) for name, _ in fields_of(AS_THEY_ARE)},
    )  # fmt: skip


def _nodes(
    packed: Packed, problem: SubsetProblem, saved: _SavedState
) -> tuple[list[Node], list[Node], tuple[Begun, ...]]:
    """The nodes in flight, those of the reserve, and the rounds that the nodes in flight are in."""
    count, sizes = packed.header["in_flight"], packed.header["begun"]
    require(all(type(size) is int and size >= 0 for size in (count, *sizes)), "no numbers of nodes")
    held = Packed(packed.header["nodes"], arrays_under("nodes", packed))
    nodes = [*nodes_from(held, problem, in_best_first_order=False)] if count + saved.closed_at.size else []
    require(len(nodes) == count + saved.closed_at.size, "regions closed at no bounds")
    require(sum(sizes) in (0, count) and len(sizes) == len(saved.efforts), "other rounds than were begun")
    in_flight = nodes[:count]
    ids = [node.id for node in in_flight]
    require(len(set(ids)) == len(ids), "nodes that are there twice")
    require(max(ids, default=0) < saved.next_id, "nodes of impossible numbers")
    rest, efforts = iter(in_flight), zip(saved.uppers.tolist(), saved.efforts, strict=True)
    rounds = [Begun(tuple(islice(rest, size)), *with_) for size, with_ in zip(sizes, efforts, strict=True)]
    return in_flight, nodes[count:], tuple(rounds)


@dataclass(frozen=True, slots=True)
class TablePart:
    """A part of a state that lasts: a table does not change, only what is still open of it."""

    table: NodeTable

    @property
    def serial(self) -> int:
        """The same as long as the part is."""
        return self.table.serial

    def __bytes__(self) -> bytes:
        return to_bytes(packed_nodes(self.table), level=0)


def state_parts(state: SearchState) -> Iterator[bytes | TablePart]:
    """A state in parts of which none is large: first all but the frontier's nodes, then these."""
    packed, frontier = pack_state(state), state.frontier
    blocks = list(frontier.blocks()) if isinstance(frontier, BestFirst) else []
    yield to_bytes(Packed(packed.header | {TAKEN: [taken for _, taken in blocks]}, packed.arrays))
    yield from (TablePart(table) for table, _ in blocks)
    nodes = frontier.objects() if isinstance(frontier, BestFirst) else iter(frontier)
    while part := list(islice(nodes, NODES_IN_PART)):
        yield bytes(TablePart(NodeTable.of(part, part[0].state.size)))


def chunks_of(state: SearchState, room: Room) -> list[int]:
    """The chunks of nodes that belong to a state and are in this room."""
    frontier = state.frontier
    return frontier.chunks if isinstance(frontier, Spilling) and frontier.room is room else []


def state_from_parts(
    parts: Iterable[bytes], problem: SubsetProblem, frontier: Frontier, statement: Statement | None = None,
    room: Room | None = None, chunks: Sequence[int] = (),
) -> SearchState:  # fmt: skip
    """The state of :func:`state_parts`, see :func:`unpack_state`; some of its nodes are in ``chunks`` of a room."""
    others, ids = map(from_bytes, parts), _Ids()
    with refusing_damage():
        first = next(others, None)
        require(first is not None, "no state in it")
        assert first is not None
        state = unpack_state(first, problem, frontier, statement)
        taken_of = first.header.get(TAKEN)
        require(isinstance(taken_of, list), "no count of the nodes taken")
        assert isinstance(taken_of, list)
        taken = iter(taken_of)
        ids.add([node.id for node in state.in_flight])
        for part in others:
            table = _open_rows(nodes_from(part, problem), next(taken, 0), state.next_id)
            ids.add(table.rows["id"])
            state.push_table(table)
        if room is not None and chunks:
            require(isinstance(state.frontier, BestFirst), "nodes on the disk of a search that leaves none there")
            assert isinstance(state.frontier, BestFirst)
            spilling = state.frontier = Spilling.of(state.frontier, room, problem)
            for number in chunks:
                ids.add(spilling.adopt(number, state.next_id))
        ids.check()
    return state


class _Ids:
    """The numbers of the open nodes, wherever they are: each is there once."""

    def __init__(self) -> None:
        self._parts: list[IntArray] = []

    def add(self, numbers: Sequence[int] | IntArray) -> None:
        """Some of them."""
        self._parts.append(np.array(numbers, dtype=np.int64))

    def check(self) -> None:
        """Refuse nodes that are open twice."""
        numbers = np.sort(np.concatenate(self._parts))
        require(bool(np.all(np.diff(numbers) > 0)), "nodes that are there twice")


def _open_rows(table: NodeTable, taken: object, next_id: int) -> NodeTable:
    """What is open of a table of which so many nodes have been taken."""
    require(type(taken) is int and 0 <= taken < len(table), "more nodes taken than there were")
    assert isinstance(taken, int)
    require(int(table.rows["id"].max()) < next_id, "nodes of impossible numbers")
    return table.part(taken, len(table)) if taken else table


def _check_types(saved: _SavedState) -> None:
    """Refuse a state whose parts are not what they should be."""
    texts, stated = [saved.source, saved.valid_for, saved.digest], saved.stated
    models = [saved.incumbent]
    if stated is not None:
        require(isinstance(stated, Stated), "something else than a model stated")
        models.append(stated.fit)
        texts.append(stated.source)
    require(all(isinstance(fit, Fit) for fit in models), "something else than a model as its best one")
    require(all(isinstance(text, str) for text in texts), "no text where there must be one")
    parts = (
        (saved.walks, SubtreeRecord), (saved.phase, Phase), (saved.seconds, Seconds),
        (saved.counted, WholeProblemAttempt),
    )  # fmt: skip
    require(isinstance(saved.portions, Portions), "parts of the wrong types")
    require(all(isinstance(part, cls) for part, cls in parts), "parts of the wrong types")
    require(all(isinstance(work_budget, WorkBudget) for work_budget in saved.efforts), "a round that is none")
    for bounds in (saved.closed_at, saved.uppers):
        require(isinstance(bounds, np.ndarray) and bounds.ndim == 1, "numbers in another form")
    require(saved.uppers.size == len(saved.efforts), "a round that is none")


def _check_numbers(saved: _SavedState) -> None:
    """Refuse a state whose numbers cannot be those of a search."""
    whole = [getattr(saved, name) for name, kind in fields_of(COUNTED) if kind == "i"]
    walks, phase = saved.walks, saved.phase
    whole += [
        saved.portions.number,
        phase.mark,
        phase.open_at_mark,
        phase.horizon_until,
        *walks.successes.values(),
        *walks.passed_over.values(),
    ]
    require(min(whole) >= 0 and min(walks.failures.values(), default=1) >= 1, "counts below zero")
    require(max(whole) <= MOST, "counts that no search comes to")
    compared = [
        saved.min_pruned_bound,
        saved.proven,
        saved.outside,
        *saved.closed_at.tolist(),
        saved.reported,
        phase.horizon,
    ]
    compared += [saved.portions.due, walks.useful, walks.wasted]
    compared += saved.counted
    compared += [] if saved.stated is None else [saved.stated.upper]
    compared += saved.uppers.tolist()
    require(not any(map(math.isnan, compared)), "a bound or a count that is nan")
    require(math.isfinite(saved.unit) and saved.unit > 0.0, "an impossible unit")
