"""The outcome of a shard as a worker sends it: columns of numbers instead of objects, without what the receiver has.

Regions lie one after the other, a row of each array for each. What they take over from the node they are made of is a
number that says so, and what was left open below a node is not sent beside what the kernel wrote down: both come out of
the receiver's own nodes. So reading takes a few operations on arrays, and an object is made of what is committed alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactsel.closers.native import NativeSearch
from exactsel.enumeration.native import NativeTree
from exactsel.enumeration.work_budget import WholeProblemAttempt
from exactsel.nodes.left_open import LeftBelow, left_below
from exactsel.nodes.node import Node
from exactsel.nodes.objects import MadeObjects
from exactsel.nodes.regions import (
    FailedTrials,
    Fixing,
    Fixings,
    NodeDivided,
    NodeKept,
    Outcome,
    Region,
    Round,
    Seconds,
    SubtreeResult,
    Visit,
)
from exactsel.nodes.subtree import searched
from exactsel.nodes.table import NodeTable
from exactsel.problem.fit import Fit
from exactsel.problem.interface import SubsetProblem
from exactsel.search.layout import refusing_damage, require
from exactsel.search.packed_nodes import NAMED, check_proofs, packed_nodes, regions_from
from exactsel.search.packed_searches import searches_as_arrays, searches_from
from exactsel.search.packed_subtrees import MOST, subtrees_as_arrays, subtrees_from
from exactsel.search.packing import Packed, arrays_under, pack, under, unpack
from exactsel.types import BoolArray, IntArray

VERSION = 7
"""Of the layout."""

KEPT, DIVIDED, SUBTREE, SEARCHED = range(4)
"""What became of a node. Of a subtree searched by the kernel for relaxations that kernel's own record is all that is
sent: what it left open comes out of it."""


def packed_round(done: Round) -> Packed:
    """An outcome as plain data.

    Raises
    ------
    exactsel.errors.UnsupportedError
        Where a bound handed on objects other than arrays and points.
    """
    regions = [region for outcome in done.outcomes for region in _regions(outcome)]
    results = [result for result in done.outcomes if isinstance(result, SubtreeResult)]
    subtrees = [result for result in results if _kind(result) == SUBTREE]
    searches = [result.expansion for result in results if isinstance(result.expansion, NativeTree)]
    fixings = [fixing for region in regions for fixing in region.fixings]
    table, proofs = _as_table(regions, fixings, _known([outcome.node for outcome in done.outcomes]))
    texts, held, rest = list[str](), packed_nodes(table, NAMED), pack([*done.models, done.counted])
    reasons = sorted({region.closed for region in regions if region.closed is not None})
    arrays = _outcome_arrays(done.outcomes) | _region_arrays(regions, reasons) | _fixing_arrays(fixings, proofs)
    arrays["round"] = np.array([done.rounded_value, *done.seconds.as_dict().values()])
    arrays |= under("regions", held.arrays)
    if searches:
        arrays |= under("searches", searches_as_arrays(searches))
    if subtrees:
        texts, those = subtrees_as_arrays(subtrees)
        arrays |= under("subtrees", those)
    arrays |= under("rest", rest.arrays)
    header = {
        "round": VERSION, "rest": rest.header, "regions": held.header, "models": len(done.models), "reasons": reasons,
        "searches": len(searches), "subtrees": len(subtrees), "texts": texts, "valid_for": done.valid_for,
        "rounded": None if done.rounded is None else list(done.rounded), "relaxed": list(done.relaxed),
        "failed_trials": list(astuple(done.failed_trials)),
    }  # fmt: skip
    return Packed(header, arrays)


def _kind(outcome: Outcome) -> int:
    if isinstance(outcome, SubtreeResult):
        return SEARCHED if isinstance(outcome.expansion, NativeTree) else SUBTREE
    return KEPT if isinstance(outcome, NodeKept) else DIVIDED


def _regions(outcome: Outcome) -> tuple[Region, ...]:
    """Those that are sent."""
    if _kind(outcome) == SEARCHED:
        return ()
    if isinstance(outcome, NodeKept):
        return (outcome.region,)
    rest = (outcome.rest,) if isinstance(outcome, NodeDivided) else ()
    return (outcome.region, *outcome.children, *rest)


def _outcome_arrays(outcomes: Sequence[Outcome]) -> dict[str, NDArray[Any]]:
    walks = [getattr(outcome, "unused_walk", None) for outcome in outcomes]
    chains = [outcome.columns if isinstance(outcome, NodeDivided) else () for outcome in outcomes]
    subtrees = [outcome for outcome in outcomes if isinstance(outcome, SubtreeResult)]
    flags = [_closed_flags(outcome) for outcome in subtrees if _kind(outcome) == SEARCHED]
    return {
        "outcome.id": np.array([outcome.node.id for outcome in outcomes], dtype=np.int64),
        "outcome.kind": np.array([_kind(outcome) for outcome in outcomes], dtype=np.int64),
        "outcome.regions": np.array([len(_regions(outcome)) for outcome in outcomes], dtype=np.int64),
        "outcome.chain": np.array([len(chain) for chain in chains], dtype=np.int64),
        "outcome.unused_walk": np.array([-1 if walk is None else walk for walk in walks], dtype=np.int64),
        "outcome.unused_work": np.array([getattr(outcome, "unused_work", 0.0) for outcome in outcomes]),
        "columns": np.array([column for chain in chains for column in chain], dtype=np.int64),
        "overtaken": np.concatenate([np.zeros(0, dtype=np.bool_), *flags]),
    }


def _closed_flags(outcome: SubtreeResult) -> BoolArray:
    """Which of the regions left open below a node a model has overtaken since."""
    below = outcome.children
    if not isinstance(below, LeftBelow):
        return np.array([region.closed is not None for region in below], dtype=np.bool_)
    return below.overtaken


def _known(nodes: Sequence[Node]) -> list[Any]:
    """The entries that are not sent, since the receiver has the nodes."""
    return [entry for node in nodes for entry in (node.proof, node.warm)]


def _as_table(
    regions: Sequence[Region], fixings: Sequence[Fixing], known_objects: Sequence[Any]
) -> tuple[NodeTable, list[int]]:
    """The regions, and the numbers in that table of what proves the fixings."""
    nodes = [
        Node(0, -1, 0, part.state, part.bound, part.proof, part.warm, part.tight, part.estimate) for part in regions
    ]  # fmt: skip
    return NodeTable.with_more(
        nodes, nodes[0].state.size if nodes else 0, [part.proof for part in fixings], known_objects
    )


def _region_arrays(regions: Sequence[Region], reasons: Sequence[str]) -> dict[str, NDArray[Any]]:
    visits = [visit for region in regions for visit in region.visits]
    place = {None: -1} | {reason: number for number, reason in enumerate(reasons)}
    whole, real, truth = np.int64, np.float64, np.bool_
    return {
        "region.closed": np.array([place[region.closed] for region in regions], dtype=whole),
        "region.visits": np.array([len(region.visits) for region in regions], dtype=whole),
        "region.fixings": np.array([len(region.fixings) for region in regions], dtype=whole),
        "visit.bound": np.array([visit.bound for visit in visits], dtype=real),
        "visit.solved": np.array([visit.solved for visit in visits], dtype=truth),
        "visit.iterations": np.array([visit.iterations for visit in visits], dtype=whole),
    }


def _fixing_arrays(fixings: Sequence[Fixing], proofs: Sequence[int]) -> dict[str, NDArray[Any]]:
    together = Fixings.of(fixings)
    return {
        "fixing.column": together.columns, "fixing.included": together.included, "fixing.bound": together.bounds,
        "fixing.proof": np.array(proofs, dtype=np.int64),
    }  # fmt: skip


def unpacked_round(packed: Packed, nodes: Sequence[Node], problem: SubsetProblem) -> Round:
    """The outcome for these nodes; the worker's statement of its input is not used.

    Raises
    ------
    exactsel.errors.InputError
        Where it is none, or damaged.
    """
    with refusing_damage():
        require(packed.header.get("round") == VERSION, "no outcome of a round of this version")
        return _Reading(packed, nodes, problem).round()


@dataclass
class _Reading:
    """An outcome that is being read, and believed in nothing."""

    packed: Packed
    nodes: Sequence[Node]
    problem: SubsetProblem

    def round(self) -> Round:
        """The outcome."""
        header, problem = self.packed.header, self.problem
        valid_for, rounded, models = header["valid_for"], header["rounded"], _whole(header["models"])
        require(isinstance(valid_for, str), "a scope that is no text")
        relaxed = header["relaxed"]
        require(all(0 <= _whole(unit) < problem.d for unit in (*(rounded or ()), *relaxed)), "unknown columns")
        ids = self._column("outcome.id", np.int64)
        require(ids.tolist() == [node.id for node in self.nodes], "outcomes for other nodes")
        rest = unpack(Packed(header["rest"], arrays_under("rest", self.packed)), problem)
        require(len(rest) == models + 1, "more than it says")
        fits, counted = rest[:-1], rest[-1]
        require(all(isinstance(fit, Fit) for fit in fits), "models that are none")
        require(counted is None or isinstance(counted, WholeProblemAttempt), "a count that is none")
        require(len(header["failed_trials"]) == len(fields(FailedTrials)), "counts of other things")
        rounded_value, *seconds = self._column("round", np.float64, 4).tolist()
        require(not np.isnan(rounded_value), "a model of no value")
        return Round(
            tuple(fits), tuple(self._outcomes()), valid_for, Seconds(*seconds),
            None if rounded is None else tuple(rounded), counted, rounded_value,
            FailedTrials(*map(_count, header["failed_trials"])), tuple(relaxed),
        )  # fmt: skip

    def _column(self, name: str, kind: type, size: int | None = None) -> NDArray[Any]:
        array = self.packed.arrays[name]
        sound = array.dtype == kind and array.ndim == 1 and size in (None, array.size)
        require(sound, f"no array '{name}' of the type and size it should have")
        return array

    def _counts(self, name: str, rows: int, total: int) -> list[int]:
        """How many things each of some rows has, of so many things in all."""
        counts: list[int] = self._column(name, np.int64, rows).tolist()
        require(all(count >= 0 for count in counts) and sum(counts) == total, f"other numbers of things in '{name}'")
        return counts

    def _outcomes(self) -> list[Outcome]:
        nodes, count = self.nodes, len(self.nodes)
        kinds = self._column("outcome.kind", np.int64, count)
        require(bool(np.all((kinds >= KEPT) & (kinds <= SEARCHED))), "outcomes of no kind")
        parts = self._counts("outcome.regions", count, self._column("region.closed", np.int64).size)
        columns = self._column("columns", np.int64)
        require(bool(np.all((columns >= 0) & (columns < self.problem.d))), "unknown columns")
        chains, chain = self._counts("outcome.chain", count, columns.size), columns.tolist()
        walks = self._column("outcome.unused_walk", np.int64, count).tolist()
        works = self._column("outcome.unused_work", np.float64, count).tolist()
        regions = self._regions(sum(parts))
        outcomes: list[Outcome | None] = []
        below: list[Node] = []
        subtrees: list[tuple[Node, Sequence[Region]]] = []
        first = column = 0
        for at, (node, kind) in enumerate(zip(nodes, kinds.tolist(), strict=True)):
            mine, first = regions[first : first + parts[at]], first + parts[at]
            columns_of, column = tuple(chain[column : column + chains[at]]), column + chains[at]
            unused = None if walks[at] < 0 else walks[at]
            require(len(mine) >= (1, 2, 1, 0)[kind] and (kind == DIVIDED or not columns_of), "outcomes of other parts")
            if kind == KEPT:
                require(len(mine) == 1, "outcomes of other parts")
                outcomes.append(NodeKept(node, mine[0], unused, works[at]))
            elif kind == DIVIDED:
                outcomes.append(NodeDivided(node, mine[0], columns_of, tuple(mine[1:-1]), mine[-1], unused, works[at]))
            elif kind == SUBTREE:
                subtrees.append((node, mine))
                outcomes.append(None)
            else:
                require(not mine, "outcomes of other parts")
                below.append(node)
                outcomes.append(None)
        others = {SUBTREE: iter(self._subtrees(subtrees)), SEARCHED: iter(self._searched(below))}
        return [
            next(others[kind]) if outcome is None else outcome
            for kind, outcome in zip(kinds.tolist(), outcomes, strict=True)
        ]

    def _subtrees(self, parts: Sequence[tuple[Node, Sequence[Region]]]) -> list[SubtreeResult]:
        """What closers brought that dealt with subtrees, each made of a node, its region and the children."""
        require(_whole(self.packed.header["subtrees"]) == len(parts), "other numbers of subtrees")
        texts = self.packed.header["texts"]
        return subtrees_from(texts, arrays_under("subtrees", self.packed), self.problem, parts) if parts else []

    def _searched(self, nodes: Sequence[Node]) -> list[SubtreeResult]:
        """What the kernel did below these nodes, with the regions it left open."""
        require(_whole(self.packed.header["searches"]) == len(nodes), "other numbers of searches")
        searches = searches_from(arrays_under("searches", self.packed), self.problem) if nodes else []
        overtaken, left_open = self._column("overtaken", np.bool_), sum(len(search.open_bounds) for search in searches)
        require(overtaken.size == left_open and len(searches) == len(nodes), "other regions left open")
        if not nodes:
            return []
        open_regions = left_below(nodes, searches, overtaken)
        require(bool(np.all(np.isfinite(open_regions[0].table.objects.points.values))), "points that are not finite")
        return [searched(*parts, NativeSearch.name) for parts in zip(nodes, searches, open_regions, strict=True)]

    def _regions(self, count: int) -> list[Region]:
        """The regions of all outcomes."""
        if not count:
            return []
        known_objects = _known(self.nodes)
        held = Packed(self.packed.header["regions"], arrays_under("regions", self.packed))
        table = regions_from(held, self.problem, known_objects)
        require(len(table) == count, "other numbers of regions")
        objects = MadeObjects(table.objects, known_objects)
        nodes = (table.node(row, objects) for row in range(count))
        more = zip(nodes, self._visits(count), self._fixings(count, table, objects), self._reasons(count), strict=True)
        return [
            Region(node.state, node.bound, node.proof, node.warm, node.tight, visits, fixings, closed, node.estimate)
            for node, visits, fixings, closed in more
        ]

    def _bounds(self, name: str, count: int) -> list[float]:
        bounds = self._column(name, np.float64, count)
        require(not np.any(np.isnan(bounds)), f"a bound that is nan in '{name}'")
        numbers: list[float] = bounds.tolist()
        return numbers

    def _reasons(self, count: int) -> list[str | None]:
        reasons, codes = self.packed.header["reasons"], self._column("region.closed", np.int64, count)
        require(all(isinstance(reason, str) for reason in reasons), "reasons that are no texts")
        require(bool(np.all((codes >= -1) & (codes < len(reasons)))), "reasons that are not there")
        return [None if code < 0 else reasons[code] for code in codes.tolist()]

    def _visits(self, count: int) -> list[tuple[Visit, ...]]:
        bounds = self._bounds("visit.bound", self._column("visit.bound", np.float64).size)
        solved = self._column("visit.solved", np.bool_, len(bounds)).tolist()
        iterations = self._column("visit.iterations", np.int64, len(bounds))
        require(not np.any(iterations < 0), "too small numbers in 'visit.iterations'")
        visits = list(map(Visit, bounds, solved, iterations.tolist()))
        return _grouped(visits, self._counts("region.visits", count, len(visits)))

    def _fixings(self, count: int, table: NodeTable, objects: MadeObjects) -> list[Fixings]:
        columns: IntArray = self._column("fixing.column", np.int64)
        counts = self._counts("region.fixings", count, columns.size)
        require(bool(np.all((columns >= 0) & (columns < self.problem.d))), "unknown columns in 'fixing.column'")
        included = self._column("fixing.included", np.bool_, columns.size).tolist()
        bounds = self._bounds("fixing.bound", columns.size)
        proofs = self._column("fixing.proof", np.int64, columns.size)
        check_proofs(proofs, table.objects, _known(self.nodes))
        witnesses = [objects[number] for number in proofs.tolist()]
        fixings = _grouped(list(map(Fixing, columns.tolist(), included, bounds, witnesses)), counts)
        return [Fixings.of(some) for some in fixings]


def _grouped(things: Sequence[Any], counts: Sequence[int]) -> list[tuple[Any, ...]]:
    """The things one after the other, so many together."""
    iterator = iter(things)
    return [tuple(islice(iterator, count)) for count in counts]


def _count(number: object) -> int:
    count = _whole(number)
    require(count <= MOST, "an impossible count")
    return count


def _whole(number: object) -> int:
    whole = number if type(number) is int else -1
    require(whole >= 0, "a number that is none")
    return whole
