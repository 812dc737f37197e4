"""The whole state of a search: open nodes, incumbent, and the smallest bound discarded below it."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from exactsel.closers.visit import Reached
from exactsel.enumeration.work_budget import Phase, SubtreeRecord, WholeProblemAttempt, WorkBudget
from exactsel.nodes.node import Node
from exactsel.nodes.regions import Fixings, Seconds
from exactsel.nodes.sizes import node_bytes
from exactsel.nodes.table import NodeTable
from exactsel.problem.fit import Fit
from exactsel.problem.interface import Statement
from exactsel.search.frontier import BestFirst, Frontier, open_nodes
from exactsel.search.memory import MemoryGuard
from exactsel.search.reserve import Reserve
from exactsel.start.primal_heuristics import Portions


class Stated(NamedTuple):
    """A model and what may be said of it."""

    fit: Fit
    upper: float
    """No smaller than its objective, for the data as given."""
    source: str


class Begun(NamedTuple):
    """A round that has been begun, and what it was begun with."""

    nodes: tuple[Node, ...]
    upper: float
    work_budget: WorkBudget


@dataclass
class SearchState:
    """The state from which a search can be resumed; nothing else in a search outlives a round."""

    frontier: Frontier
    incumbent: Fit
    source: str
    """The source of the incumbent."""
    problem_hash: str
    """Of the problem these nodes are regions of."""
    min_pruned_bound: float = math.inf
    """The smallest bound among everything discarded: it limits the lower bound where it lies below ``upper``."""
    reserve: Reserve = field(default_factory=Reserve)
    """What of that may be opened again, for a finer tolerance."""
    proven: float = -math.inf
    """A bound shown before regions were opened again, or of the whole problem at once."""
    next_id: int = 1
    nodes: int = 0
    bound_calls: int = 0
    iterations: int = 0
    depth: int = 0
    discarded: int = 0
    valid_for: str = ""
    """A restriction, in words, under which a bound met so far holds; it outlives the search that met it."""
    walks: SubtreeRecord = field(default_factory=SubtreeRecord)
    """What walking whole subtrees has brought (see enumeration/work_budget.py)."""
    phase: Phase = field(default_factory=Phase)
    """Whether the end is in sight (see enumeration/work_budget.py)."""
    portions: Portions = field(default_factory=Portions)
    """What heuristics beside the search have been given, and what they handed on."""
    statement: Statement | None = None
    """What may be said of the data as given; None where the numbers searched are what is spoken of."""
    in_flight: list[Node] = field(default_factory=list)
    """Nodes taken from the frontier whose round is not committed yet, in the order in which that will be done."""
    begun: tuple[Begun, ...] = ()
    """Rounds that are under way, the first one first: broken off, they can be begun again as they were."""
    rounds: int = 0
    """Rounds that have been committed."""
    counted: WholeProblemAttempt = field(default_factory=WholeProblemAttempt)
    """The outcome of counting all sets by their cells, or of bounds of clusters."""
    unit: float = 1.0
    """A power of two near the empty model's objective: so the tree hash is the same for the data in any units."""
    reached: Node | None = field(default=None, repr=False)
    """The root at the bound its call was broken off at."""
    guard: MemoryGuard = field(default_factory=MemoryGuard)
    """Which order the open nodes are kept in while they take too much memory."""
    seconds: Seconds = field(default_factory=Seconds)
    """Time that went into the rounds of the current search."""
    objects_bytes: int = 0
    """Estimated memory of the open nodes while they are in a frontier that does not estimate it."""
    reported: float = -math.inf
    """The bound when it was last compared."""
    highest: float = field(default=-math.inf, repr=False)
    """The highest :attr:`floor` so far (see invariants.py)."""
    pushed: int = field(default=0, repr=False)
    """How many nodes the frontier was given, less those it has given back."""
    opened: list[Node | NodeTable] | None = field(default=None, repr=False)
    """The nodes opened since an observer last read them; None without an observer."""
    stated: Stated | None = field(default=None, repr=False)
    """The model with the strongest statements; None until it is needed."""
    digest: bytes = field(default=hashlib.sha256().digest(), repr=False)
    """sha256 over the digest before and what was committed last: one that can be saved, and gone on from."""

    def begin(self, memory_limit: float, node_limit: int | None) -> None:
        """Begin or resume a search: nodes of a round that cannot be begun again as it was are open again.

        With a limit on nodes a round is begun with what that leaves, which may be another number now.
        """
        if node_limit is not None or not self.can_begin_again:
            self.put_back()
        self.guard.limit = memory_limit
        self.seconds, self.reached = Seconds(), None
        self.pushed, self.highest = len(self.frontier), -math.inf
        self.reported = self.bound

    def end(self) -> None:
        """The search has ended: sort open nodes into the frontier's order."""
        self._go_on_with(self.guard.release(self.frontier))

    def relieve_memory(self) -> None:
        """Switch to the order that suits the memory the open nodes take."""
        self._go_on_with(self.guard.choose(self.frontier, self.open_bytes))

    def _go_on_with(self, frontier: Frontier) -> None:
        if frontier is not self.frontier:
            self.frontier = frontier
            self.objects_bytes = 0 if isinstance(frontier, BestFirst) else sum(map(node_bytes, frontier))

    @property
    def open_bytes(self) -> int:
        """Estimated memory of the open nodes (see memory.py)."""
        return self.frontier.size if isinstance(self.frontier, BestFirst) else self.objects_bytes

    def push(self, node: Node) -> None:
        """Open a node."""
        self.frontier.push(node)
        self._note_opened(node)
        self._note_bytes(node, 1)

    def push_table(self, table: NodeTable) -> None:
        """Open nodes of which objects are made when they are taken, where the frontier can wait for that."""
        if isinstance(self.frontier, BestFirst):
            self.frontier.push_table(table)
            self._note_opened(table, len(table))
            return
        for node in table:
            self.push(node)

    def _note_opened(self, nodes: Node | NodeTable, count: int = 1) -> None:
        self.pushed += count
        if self.opened is not None:
            self.opened.append(nodes)

    def take(self, count: int) -> list[Node]:
        """The next nodes of the frontier; they are in flight until their round is committed."""
        taken = self.frontier.take(count)
        self.in_flight = self.in_flight + taken
        self.pushed -= len(taken)
        for node in taken:
            self._note_bytes(node, -1)
        return taken

    def _note_bytes(self, node: Node, sign: int) -> None:
        if not isinstance(self.frontier, BestFirst):
            self.objects_bytes += sign * node_bytes(node)

    @property
    def can_begin_again(self) -> bool:
        """Whether the nodes in flight are just those of rounds under way, which no limit on nodes was part of."""
        if not self.begun or any(batch.work_budget.left is not None for batch in self.begun):
            return False
        return list(map(id, self.in_flight)) == [id(node) for batch in self.begun for node in batch.nodes]

    def note_reached(self, reached: Reached | None) -> None:
        """The bound call of the root was broken off at a bound: that one is shown until the call continues."""
        if reached is None or self.nodes > 0 or len(self.in_flight) != 1 or len(self.frontier) > 0:
            return
        root = self.in_flight[0]
        if reached.bound > root.bound and np.array_equal(reached.state, root.state):
            self.reached = replace(root, bound=reached.bound, proof=reached.proof)
            self.valid_for = reached.valid_for or self.valid_for

    def put_back(self) -> None:
        """Open the nodes in flight again: their round was not carried out."""
        for node in self.in_flight:
            self.push(node)
        self.in_flight, self.begun = [], ()

    def open_nodes(self) -> Sequence[Node]:
        """The open nodes, nodes in flight first; node objects of the frontier may be created on demand."""
        if self.reached is not None:
            return (self.reached,)
        return open_nodes(self.frontier, self.in_flight)

    @property
    def open_count(self) -> int:
        """How many nodes are open, those in flight among them."""
        return len(self.frontier) + len(self.in_flight)

    def prune(self, cutoff: float) -> Iterator[Node]:
        """Take out the open nodes whose bound reaches ``cutoff``, smallest first.

        Where that breaks off, those not seen have been taken out all the same: the bound counts them at the cutoff.
        """
        try:
            for node in self.frontier.prune(cutoff):
                self._note_bytes(node, -1)
                self.pushed -= 1
                yield node
        except BaseException:
            self.drop(cutoff, None)
            raise

    def drop(self, bound: float, again: Callable[[], Node | None] | None) -> None:
        """A region was closed at a bound; ``again`` makes the node to open where a finer tolerance requires it.

        It makes none where the region holds no model.
        """
        self.min_pruned_bound = min(self.min_pruned_bound, bound)
        if bound < self.value:
            node = None if again is None else again()
            if again is None or node is not None:
                self.reserve.close(bound, node)

    def reopen(self, cutoff: float) -> bool:
        """Open again what was closed below a cut-off; False, and nothing is done, where not all of it is known."""
        if self.reserve.outside < cutoff:
            return False
        self.proven, again = self.bound, self.reserve.take_below(cutoff)
        for node in again:
            self.push(replace(node, id=self.next_id, parent=node.id))
            self.next_id += 1
        self.min_pruned_bound = self.reserve.lower()
        self.record(b"opened again", len(again), values=(cutoff,))
        return True

    @property
    def value(self) -> float:
        """Objective of the incumbent, as the search compares it."""
        return self.incumbent.value

    @property
    def bound(self) -> float:
        """A bound no model's objective is below for the numbers searched; valid at any moment, also inside a round."""
        return min(self.value, max(self.proven, self.floor))

    @property
    def floor(self) -> float:
        """The smallest bound of all regions, closed or open: what they say without the incumbent."""
        flying = min((node.bound for node in self.in_flight), default=math.inf)
        if self.reached is not None:
            flying = self.reached.bound
        return min(self.min_pruned_bound, self.frontier.lower(), flying)

    def bound_has_risen(self) -> bool:
        """Whether the bound is higher than at the last call."""
        before, self.reported = self.reported, max(self.reported, self.bound)
        return self.reported > before

    def take_over(self, fit: Fit, source: str) -> None:
        """Make a model the incumbent."""
        before = self.stated or self._state_of(self.incumbent, self.source)
        self.incumbent, self.source = fit, source
        self.reserve.forget_from(fit.value)
        # Where rounding is large the model that looks best need not be the one of which the most can be said.
        self.stated = min(before, self._state_of(fit, source), key=lambda stated: stated.upper)

    @property
    def shown(self) -> Stated:
        """The model to show: the incumbent, or an earlier one where rounding leaves less to say of the incumbent."""
        if self.stated is None:
            self.stated = self._state_of(self.incumbent, self.source)
        return self.stated

    def _state_of(self, fit: Fit, source: str) -> Stated:
        return Stated(fit, fit.value if self.statement is None else self.statement.upper(fit), source)

    @property
    def upper(self) -> float:
        """What the model shown costs at most, for the data as given."""
        return self.shown.upper

    @property
    def lower(self) -> float:
        """A bound no model's objective is below for the data as given; valid at any moment."""
        return self.bound if self.statement is None else self.statement.lower(self.bound, self.upper, self.valid_for)

    @property
    def absolute_gap(self) -> float:
        """upper - lower."""
        return self.upper - self.lower

    @property
    def tree_hash(self) -> str:
        """sha256 over everything committed so far, in order."""
        return self.digest.hex()

    def record_fixings(self, node: int, fixings: Fixings) -> None:
        """Add the columns fixed in a node to the tree hash."""
        sides = 2 * fixings.columns + fixings.included
        numbers = np.concatenate([[float(node)], sides, fixings.bounds / self.unit]).astype("<f8")
        self.digest = hashlib.sha256(self.digest + b"fixed" + numbers.tobytes()).digest()

    def record(self, kind: bytes, *numbers: float, values: Sequence[float] = ()) -> None:
        """Add one committed fact to the tree hash: whole numbers, and objective values, which are taken in ``unit``."""
        entries = [*numbers, *(value / self.unit for value in values)]
        self.digest = hashlib.sha256(self.digest + kind + struct.pack(f"<{len(entries)}d", *entries)).digest()
