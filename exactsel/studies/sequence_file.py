"""A checkpoint of a problem sequence: the results of its steps, and the state of the current search or solution pool.

Of each step the file holds a record, plain data: its result, and where the states of its search and its pool are.
The state of the current step is the file's own. The state of a step that has ended is moved into chunks, where it stays
until the step is resumed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from exactsel.bounds.witness import InfimumPoint
from exactsel.errors import InputError
from exactsel.nodes.node import Node
from exactsel.nodes.table import NodeTable
from exactsel.problem.interface import SubsetProblem
from exactsel.proofs.statement import statement_of
from exactsel.search.checkpoint import Checkpoint
from exactsel.search.checkpoint_parts import Lasting
from exactsel.search.frontier import Frontier
from exactsel.search.layout import refusing_damage, require
from exactsel.search.packed_bytes import from_bytes, to_bytes
from exactsel.search.packed_nodes import nodes_from, packed_nodes
from exactsel.search.saved import NODES_IN_PART, state_from_parts
from exactsel.search.state import SearchState
from exactsel.solving.result import Result
from exactsel.solving.stored import CLOSE_ENOUGH, as_stored
from exactsel.studies.pool_search import NearModel, SolutionPool
from exactsel.to_plain import finite

SEARCH, LISTING = "search", "listing"

Record: TypeAlias = dict[str, Any]
"""Of a step: ``changes``, ``result``, and under ``search`` and ``listing`` None or ``parts`` (numbers of chunks; None
where they are the file's own), ``spilled`` (chunks of open nodes) and ``plain`` (what else belongs to it)."""


class SequenceFile:
    """An open checkpoint of a sequence, a :class:`exactsel.solving.checkpointing.Store` for the step at ``place``.

    Parameters
    ----------
    file : Checkpoint
        Which this process writes.
    records : list of dict
        One for each step.
    asked : dict
        The options besides the steps.
    seconds : float
        What the runs before took.
    """

    def __init__(self, file: Checkpoint, records: list[Record], request: dict[str, Any], seconds: float = 0.0) -> None:
        self.file, self.records, self.asked = file, records, request
        self.place = 0
        self.lost = False
        """Whether the disk is full, or another process writes the file: nothing is saved then."""
        self._before, self._began = seconds, time.perf_counter()
        self._last: dict[str, Any] = {}

    # --- a room for open nodes, and what saves a search ---

    def add_chunk(self, data: bytes, keys: bytes) -> int:
        """Store nodes."""
        return self.file.add_chunk(data, keys)

    def chunk(self, number: int) -> bytes:
        """Nodes stored before."""
        return self.file.chunk(number)

    def keys(self, number: int) -> bytes:
        """What their order is."""
        return self.file.keys(number)

    def drop_chunk(self, number: int) -> None:
        """Nothing: see :meth:`exactsel.search.checkpoint.Checkpoint.drop_chunk`."""

    def save(
        self, parts: Iterable[bytes | Lasting], spooled: Mapping[str, bytes], about: Mapping[str, Any],
        chunks: Iterable[int] = (),
    ) -> None:  # fmt: skip
        """Save the search of the step; it has none of a proof."""
        progress = about["progress"]
        self.keep(SEARCH, parts, progress, progress["ended"] is not None, spilled=chunks)

    def note(self, progress: Mapping[str, Any]) -> None:
        """Write the progress."""
        self.file.note(self._status(progress, None))

    # --- the sequence ---

    def keep(
        self, kind: str, parts: Iterable[bytes | Lasting], progress: Mapping[str, Any], ended: bool, *,
        spilled: Iterable[int] = (), plain: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """Save the state of the step's search or pool; :class:`OutputError` as the file has it."""
        try:
            numbers = [self.file.add_chunk(bytes(part), b"") for part in parts] if ended else None
        except InputError:
            self.lost = True
            raise
        self.records[self.place][kind] = {"parts": numbers, "spilled": [*spilled], "plain": plain}
        self._write(() if ended else parts, progress)

    def settle(self, result: Result) -> None:
        """Save the result of the step."""
        self.records[self.place]["result"] = as_stored(result)
        self._write((), self._last)

    def end(self, how: str) -> None:
        """Save that the sequence is over, in a word."""
        self._write((), self._last, how)

    def _write(self, parts: Iterable[bytes | Lasting], progress: Mapping[str, Any], ended: str | None = None) -> None:
        self._last = dict(progress)
        reported, sequence = self._status(progress, ended), {"records": self.records, "asked": self.asked}
        try:
            self.file.save(parts, {}, {"proof": None, "progress": reported, "course": sequence}, self._chunks())
            self.file.note(reported)
        except InputError:
            self.lost = True
            raise

    def _chunks(self) -> Iterator[int]:
        for record in self.records:
            for kind in (SEARCH, LISTING):
                if record[kind] is not None:
                    yield from record[kind]["parts"] or ()
                    yield from record[kind]["spilled"]

    def _status(self, progress: Mapping[str, Any], ended: str | None) -> dict[str, Any]:
        steps = [
            {**record["changes"], **_said(record["result"]), **_listed(record[LISTING])} for record in self.records
        ]
        seconds = self._before + time.perf_counter() - self._began
        return {**progress, "seconds": seconds, "ended": ended, "place": self.place, "steps": steps}

    def collect(self) -> None:
        """Move the state of the current step into chunks, so that other steps can be resumed before it."""
        for record in self.records:
            for kind in (SEARCH, LISTING):
                if record[kind] is not None and record[kind]["parts"] is None:
                    record[kind]["parts"] = [self.file.add_chunk(part, b"") for part in self.file.parts()]

    def search_at(self, place: int, problem: SubsetProblem, frontier: Frontier) -> SearchState | None:
        """The state of a step's search; None where it has not begun."""
        entry = self.records[place][SEARCH]
        if entry is None:
            return None
        parts = map(self.file.chunk, entry["parts"])
        return state_from_parts(parts, problem, frontier, statement_of(problem), self, entry["spilled"])

    def pool_at(self, place: int, problem: SubsetProblem) -> tuple[SolutionPool, str] | None:
        """The state of a step's pool, and why it ended; None where it has not begun."""
        entry = self.records[place][LISTING]
        if entry is None:
            return None
        return pool_from(map(self.file.chunk, entry["parts"]), entry["plain"], problem), entry["plain"]["termination"]

    def close(self) -> None:
        """Close the file to writing."""
        self.file.close()


def record_of(changes: Mapping[str, Any]) -> Record:
    """Of a step that has not begun."""
    return {"changes": dict(changes), "result": None, SEARCH: None, LISTING: None}


def pool_parts(pool: SolutionPool) -> Iterator[bytes]:
    """The open regions of a pool, as nodes, in parts none of which is large."""
    no_witness = InfimumPoint()
    for first in range(0, len(pool.open), NODES_IN_PART):
        part = enumerate(pool.open[first : first + NODES_IN_PART], first)
        nodes = [Node(at, -1, 0, region, -math.inf, no_witness, warm) for at, (region, warm) in part]
        yield to_bytes(packed_nodes(NodeTable.of(nodes, nodes[0].state.size)))


def pool_plain(pool: SolutionPool, termination: str) -> dict[str, Any]:
    """The rest of it, as JSON holds it."""
    return {
        "best": pool.best.hex(), "tau": float(pool.tau).hex(), "regions": pool.regions, "termination": termination,
        "found": [[list(model.support), float(model.value).hex()] for model in pool.found],
        "undecided": [list(support) for support in pool.undecided], "restriction": pool.restriction,
    }  # fmt: skip


def pool_from(parts: Iterable[bytes], plain: Mapping[str, Any], problem: SubsetProblem) -> SolutionPool:
    """The pool again.

    Raises
    ------
    InputError
        Where it is damaged.
    """
    with refusing_damage():
        nodes = [node for part in parts for node in nodes_from(from_bytes(part), problem)]
        models = [NearModel(_set(support, problem), float.fromhex(value)) for support, value in plain["found"]]
        undecided = [_set(support, problem) for support in plain["undecided"]]
        best, tau = float.fromhex(plain["best"]), float.fromhex(plain["tau"])
        require(math.isfinite(tau) and not math.isnan(best), "a bound or a count that is nan")
        return SolutionPool(
            problem, best, tau, [(node.state, node.warm) for node in nodes], models, int(plain["regions"]), undecided,
            str(plain["restriction"]),
        )  # fmt: skip


def check_values(pool: SolutionPool, result: Result, problem: SubsetProblem) -> None:
    """Refuse a list whose models cost something else than it says, or whose best one does not go with the result."""
    scale = CLOSE_ENOUGH * max(abs(pool.best), 1e-3 * abs(problem.null_objective))
    if math.isfinite(pool.best):
        require(result.lower - scale <= pool.best <= result.upper + scale, "another best model than that of its list")
    for model in pool.found:
        off = abs(problem.fit(model.support).value - model.value)
        require(off <= CLOSE_ENOUGH * max(abs(model.value), 1e-3 * abs(problem.null_objective)), "another objective")


def _set(support: Sequence[int], problem: SubsetProblem) -> tuple[int, ...]:
    columns = tuple(int(j) for j in support)
    sound = len({*columns}) == problem.k and all(0 <= j < problem.d for j in columns)
    require(sound, "a set of features that is none")
    return columns


def _said(stored: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a status says of a result."""
    if stored is None:
        return {}
    bounds = {name: finite(float.fromhex(stored[name])) for name in ("upper", "lower")}
    return bounds | {name: stored[name] for name in ("claim", "termination", "support")}


def _listed(entry: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a status says of a list."""
    if entry is None:
        return {}
    plain = entry["plain"]
    return {"models": len(plain["found"]), "regions": plain["regions"], "listing": plain["termination"]}
