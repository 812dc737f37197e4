"""The outcome of a shard as a worker sends it: columns of numbers instead of objects, and nothing whoever asked has.

Regions lie one after the other, a row of each array for each. What they take over from the node they are made of is a
number that says so, and what was left open below a node is not sent beside what the kernel wrote down: both come out of
the receiver's own nodes. So reading takes a few operations on arrays, and an object is made of what is committed alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, field, fields
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactsel.bounds.witness import ModelPoint, holds_nothing, is_witness
from exactsel.closers.native import NativeSearch
from exactsel.kernels.node import IN
from exactsel.nodes.left_open import LeftBelow, LeftOpen
from exactsel.nodes.node import Node
from exactsel.nodes.points import Points, can_be_packed
from exactsel.nodes.regions import (
    FailedTrials,
    Fixing,
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
from exactsel.problem.fit import Fit
from exactsel.problem.interface import SubsetProblem
from exactsel.search.layout import refusing_damage, require
from exactsel.search.node_block import arrays_under, bits_of, states_of
from exactsel.search.packed_points import points_from
from exactsel.search.packed_searches import searches_as_arrays, searches_from
from exactsel.search.packed_subtrees import MOST, subtrees_as_arrays, subtrees_from
from exactsel.search.packing import Packed, pack, unpack
from exactsel.types import BoolArray, IntArray
from exactsel.walks.effort import CellCount
from exactsel.walks.relaxation import KernelSearch

VERSION = 5
"""Of the layout."""

KEPT, DIVIDED, SUBTREE, SEARCHED = range(4)
"""What became of a node. Of a subtree searched by the kernel for relaxations that kernel's own record is all that is
sent: what it left open comes out of it."""

NOTHING, PROOF_OF_NODE, WARM_OF_NODE = -1, -2, -3
"""Numbers of objects that are not sent."""


class _Objects:
    """What regions refer to, by number: points first, then the rest."""

    def __init__(self) -> None:
        self.points: dict[int | type, ModelPoint] = {}
        self.others: dict[int | type, Any] = {}

    def add(self, one: Any, node: Node) -> None:
        if one is None or one is node.proof or one is node.warm:
            return
        if isinstance(one, ModelPoint):
            self.points.setdefault(id(one), one)
        else:
            self.others.setdefault(type(one) if holds_nothing(one) else id(one), one)

    def close(self) -> None:
        """Give everything its number."""
        if not can_be_packed(tuple(self.points.values())):
            self.points, self.others = {}, {**self.points, **self.others}
        self._numbers = {key: number for number, key in enumerate((*self.points, *self.others))}

    def number(self, one: Any, node: Node) -> int:
        if one is None:
            return NOTHING
        if one is node.proof:
            return PROOF_OF_NODE
        if one is node.warm:
            return WARM_OF_NODE
        return self._numbers[type(one) if holds_nothing(one) else id(one)]


def packed_round(done: Round) -> Packed:
    """An outcome as plain data.

    Raises
    ------
    exactsel.errors.UnsupportedError
        Where a bound handed on objects other than arrays and points.
    """
    regions = [(region, outcome.node) for outcome in done.outcomes for region in _regions(outcome)]
    results = [one for one in done.outcomes if isinstance(one, SubtreeResult)]
    subtrees = [one for one in results if _kind(one) == SUBTREE]
    objects = _Objects()
    for region, node in regions:
        for one in (region.proof, region.warm, *(fixing.proof for fixing in region.fixings)):
            objects.add(one, node)
    objects.close()
    kept, searches = [*objects.others.values()], [one.told for one in results if isinstance(one.told, KernelSearch)]
    texts = list[str]()
    rest = pack([*kept, *done.models, done.counted])
    reasons = sorted({region.closed for region, _ in regions if region.closed is not None})
    arrays = _outcome_arrays(done.outcomes) | _region_arrays(regions, objects, reasons)
    arrays["round"] = np.array([done.rounded_value, *done.seconds.as_dict().values()])
    arrays |= {f"points.{name}": array for name, array in Points.of([*objects.points.values()]).arrays().items()}
    if searches:
        arrays |= {f"searches.{name}": array for name, array in searches_as_arrays(searches).items()}
    if subtrees:
        texts, those = subtrees_as_arrays(subtrees)
        arrays |= {f"subtrees.{name}": array for name, array in those.items()}
    arrays |= {f"rest.{name}": array for name, array in rest.arrays.items()}
    header = {
        "round": VERSION, "rest": rest.header, "objects": len(kept), "models": len(done.models), "reasons": reasons,
        "searches": len(searches), "subtrees": len(subtrees), "texts": texts, "scope": done.scope,
        "rounded": None if done.rounded is None else list(done.rounded), 
        "failed_trials": list(astuple(done.failed_trials)),
    }  # fmt: skip
    return Packed(header, arrays)


def _kind(outcome: Outcome) -> int:
    if isinstance(outcome, SubtreeResult):
        return SEARCHED if isinstance(outcome.told, KernelSearch) else SUBTREE
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
    return below.left.closed[below.first : below.first + len(below)]


def _region_arrays(
    regions: Sequence[tuple[Region, Node]], objects: _Objects, reasons: Sequence[str]
) -> dict[str, NDArray[Any]]:
    d = regions[0][0].state.size if regions else 0
    visits = [visit for region, _ in regions for visit in region.visits]
    fixings = [(fixing, node) for region, node in regions for fixing in region.fixings]
    place = {None: -1} | {reason: number for number, reason in enumerate(reasons)}
    whole, real, truth = np.int64, np.float64, np.bool_
    return {
        "region.state": bits_of(
            np.array([region.state for region, _ in regions], dtype=np.int8).reshape(len(regions), d)
        ),
        "region.bound": np.array([region.bound for region, _ in regions], dtype=real),
        "region.estimate": np.array([region.estimate for region, _ in regions], dtype=real),
        "region.proof": np.array([objects.number(region.proof, node) for region, node in regions], dtype=whole),
        "region.warm": np.array([objects.number(region.warm, node) for region, node in regions], dtype=whole),
        "region.tight": np.array([region.tight for region, _ in regions], dtype=truth),
        "region.closed": np.array([place[region.closed] for region, _ in regions], dtype=whole),
        "region.visits": np.array([len(region.visits) for region, _ in regions], dtype=whole),
        "region.fixings": np.array([len(region.fixings) for region, _ in regions], dtype=whole),
        "visit.bound": np.array([visit.bound for visit in visits], dtype=real),
        "visit.solved": np.array([visit.solved for visit in visits], dtype=truth),
        "visit.iterations": np.array([visit.iterations for visit in visits], dtype=whole),
        "fixing.column": np.array([fixing.column for fixing, _ in fixings], dtype=whole),
        "fixing.inside": np.array([fixing.inside for fixing, _ in fixings], dtype=truth),
        "fixing.bound": np.array([fixing.bound for fixing, _ in fixings], dtype=real),
        "fixing.proof": np.array([objects.number(fixing.proof, node) for fixing, node in fixings], dtype=whole),
    }


def unpacked_round(packed: Packed, nodes: Sequence[Node], problem: SubsetProblem) -> Round:
    """The outcome for these nodes; a worker's word for what it was given is not asked for.

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
    objects: list[Any] = field(default_factory=list)

    def round(self) -> Round:
        """The outcome."""
        header, problem = self.packed.header, self.problem
        scope, rounded, models = header["scope"], header["rounded"], _whole(header["models"])
        require(isinstance(scope, str), "a scope that is no text")
        require(rounded is None or all(0 <= _whole(unit) < problem.d for unit in rounded), "a model of unknown columns")
        ids = self._column("outcome.id", np.int64)
        require(ids.tolist() == [node.id for node in self.nodes], "outcomes for other nodes")
        rest = unpack(Packed(header["rest"], arrays_under("rest", self.packed)), problem)
        self.points = points_from(arrays_under("points", self.packed), problem.units.columns)
        kept = _whole(header["objects"])
        require(len(rest) == kept + models + 1, "more than it says")
        self.others, fits, counted = rest[:kept], rest[kept:-1], rest[-1]
        require(all(isinstance(fit, Fit) for fit in fits), "models that are none")
        require(counted is None or isinstance(counted, CellCount), "a count that is none")
        require(all(is_witness(one) or isinstance(one, np.ndarray) for one in self.others), "objects of the wrong type")
        require(len(header["failed_trials"]) == len(fields(FailedTrials)), "counts of other things")
        rounded_value, *seconds = self._column("round", np.float64, 4).tolist()
        require(not np.isnan(rounded_value), "a model of no value")
        return Round(
            tuple(fits), tuple(self._outcomes()), scope, Seconds(*seconds),
            None if rounded is None else tuple(rounded), counted, rounded_value,
            FailedTrials(*map(_count, header["failed_trials"])),
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
        parts = self._counts("outcome.regions", count, self._column("region.bound", np.float64).size)
        columns = self._column("columns", np.int64)
        require(bool(np.all((columns >= 0) & (columns < self.problem.d))), "unknown columns")
        chains, chain = self._counts("outcome.chain", count, columns.size), columns.tolist()
        walks = self._column("outcome.unused_walk", np.int64, count).tolist()
        works = self._column("outcome.unused_work", np.float64, count).tolist()
        regions = self._regions([node for node, part in zip(nodes, parts, strict=True) for _ in range(part)])
        found: list[Outcome | None] = []
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
                found.append(NodeKept(node, mine[0], unused, works[at]))
            elif kind == DIVIDED:
                found.append(NodeDivided(node, mine[0], columns_of, tuple(mine[1:-1]), mine[-1], unused, works[at]))
            elif kind == SUBTREE:
                subtrees.append((node, mine))
                found.append(None)
            else:
                require(not mine, "outcomes of other parts")
                below.append(node)
                found.append(None)
        others = {SUBTREE: iter(self._subtrees(subtrees)), SEARCHED: iter(self._searched(below))}
        return [next(others[kind]) if one is None else one for kind, one in zip(kinds.tolist(), found, strict=True)]

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
        left = LeftOpen.below(nodes, searches, overtaken)
        require(bool(np.all(np.isfinite(left[0].left.points.values))), "points that are not finite")
        return [searched(*parts, NativeSearch.name) for parts in zip(nodes, searches, left, strict=True)]

    def _regions(self, nodes: Sequence[Node]) -> list[Region]:
        """The regions, each of the node it is made of."""
        count, d, k = len(nodes), self.problem.d, self.problem.k
        bits = self.packed.arrays["region.state"]
        require(bits.dtype == np.uint8 and bits.shape == (count, 2, -(-d // 8) if count else 0), "states of no regions")
        states = states_of(bits, d if count else 0)
        members = np.count_nonzero(states == IN, axis=1)
        require(bool(np.all(states <= IN) and np.all(members <= k)), "impossible states")
        bounds, estimates = self._bounds("region.bound", count), self._bounds("region.estimate", count)
        proofs = self._found("region.proof", nodes, proving=True)
        warm = self._found("region.warm", nodes, proving=False)
        tight = self._column("region.tight", np.bool_, count).tolist()
        closed = self._reasons(count)
        visits, fixings = self._visits(count), self._fixings(nodes)
        fields = zip(bounds, proofs, warm, tight, visits, fixings, closed, estimates, strict=True)
        return [Region(states[row].copy(), *others) for row, others in enumerate(fields)]

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

    def _found(self, name: str, nodes: Sequence[Node], *, proving: bool) -> list[Any]:
        """The objects with some numbers, those of the nodes among them."""
        numbers = self._column(name, np.int64, len(nodes))
        end = len(self.points) + len(self.others)
        require(bool(np.all((numbers >= WARM_OF_NODE) & (numbers < end))), f"objects that are not there in '{name}'")
        found = []
        for number, node in zip(numbers.tolist(), nodes, strict=True):
            if number == PROOF_OF_NODE:
                found.append(node.proof)
            elif number == WARM_OF_NODE:
                found.append(node.warm)
            else:
                found.append(self._object(number))
        if proving:
            require(all(map(is_witness, found)), "objects of the wrong type as proofs")
        return found

    def _object(self, number: int) -> Any:
        """The object of a number, the same one each time; None where that is negative."""
        if number < 0:
            return None
        if not self.objects:
            self.objects = [None] * len(self.points) + self.others
        if self.objects[number] is None:
            self.objects[number] = self.points.point(number)
        return self.objects[number]

    def _visits(self, count: int) -> list[tuple[Visit, ...]]:
        bounds = self._bounds("visit.bound", self._column("visit.bound", np.float64).size)
        solved = self._column("visit.solved", np.bool_, len(bounds)).tolist()
        iterations = self._column("visit.iterations", np.int64, len(bounds))
        require(not np.any(iterations < 0), "too small numbers in 'visit.iterations'")
        visits = list(map(Visit, bounds, solved, iterations.tolist()))
        return _grouped(visits, self._counts("region.visits", count, len(visits)))

    def _fixings(self, nodes: Sequence[Node]) -> list[tuple[Fixing, ...]]:
        columns: IntArray = self._column("fixing.column", np.int64)
        counts = self._counts("region.fixings", len(nodes), columns.size)
        require(bool(np.all((columns >= 0) & (columns < self.problem.d))), "unknown columns in 'fixing.column'")
        inside = self._column("fixing.inside", np.bool_, columns.size).tolist()
        bounds = self._bounds("fixing.bound", columns.size)
        owners = [node for node, count in zip(nodes, counts, strict=True) for _ in range(count)]
        proofs = self._found("fixing.proof", owners, proving=True)
        return _grouped(list(map(Fixing, columns.tolist(), inside, bounds, proofs)), counts)


def _grouped(things: Sequence[Any], counts: Sequence[int]) -> list[tuple[Any, ...]]:
    """The things one after the other, so many together."""
    left = iter(things)
    return [tuple(islice(left, count)) for count in counts]


def _count(number: Any) -> int:
    require(_whole(number) <= MOST, "an impossible count")
    return int(number)


def _whole(number: Any) -> int:
    require(type(number) is int and number >= 0, "a number that is none")
    return int(number)
