"""The work budget of subtree enumeration, and the record of what it closed.

Two kernels can search by themselves. The one on the perspective relaxation (kernels/native_search.py) does what the
search
does, only without Python between the nodes: it may take a fixed part of all the work so far, so that the order of
the search stays close to best first. The other walks depth first in closed form (quadratic loss):

A walk is a thousand times cheaper a node than the search's own rounds, but it cannot follow the better bound, so it
pays where the subtree is small. This is not known beforehand. So it is tried, with a budget, at nodes with ever fewer
places left; a number of places at which walks do not finish is given up, and what went into unfinished walks may never
exceed what went into useful work. Work is counted, not timed: the same search does the same everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

FIRST_TRIES, WASTED = 1e9, 0.1
"""Work that walks may waste before anything useful is known (about a quarter of a second), and the part of the useful
work that they may waste besides."""

WALK_WORK = 3e7
"""Work of one walk ..."""

FIRST_WORK = 4e8
"""... and of the first, which may be the whole search ..."""

SHARE, WASTE = 1 / 4, 2.0
"""... or this part of the useful work so far less so many times the wasted, where that is more."""

MORE_WORK = 2.0
"""With so many times the work a number of places that failed is tried again."""

MOST_NODES = 200_000
"""Of one walk."""

FEW_PLACES, TYPICAL_WORK, LOOK_AGAIN = 3, 4e6, 128
"""With more places left than these, and usual walks that take more work than this, a node is not walked: the better
bound divides it first (measured: a third less time on the hardest instance). Every so many nodes one is walked all the
same, to see whether that has changed."""

MOST_IN_VAIN, RECENT = 0.5, 16
"""Part of the walks of few places, of some so many, that may close nothing: with more a bound call comes first. Where a
restriction binds, a walk without it seldom ends."""

MOST_COUNTED, QUICKLY_COUNTED = 3e7, 1e6
"""Sets of columns counted before a bound call that takes eigenvalues (some 10 ms), or one of iterations only."""

WORTH_KEEPING = 0.1
"""Part of the supports of a region that an unfinished walk may leave open for its outcome to be used: the open part is
cut up by the weaker bound, and a worse start than the region itself."""

MOST_COLUMNS = 400
"""With more columns than this setting up a walk costs more than many rounds."""

SURER = 0.75
"""What a walk that finished leaves of the failure rate with so many places left."""

PATIENCE = 8
"""Walks that must finish with one place less before a number of places that failed is tried again."""


@dataclass
class SubtreeRecord:
    """Counts of the walks so far; part of the search's state."""

    useful: float = 0.0
    """Work in bound calls and in walks that finished."""
    wasted: float = 0.0
    """Work in walks that did not."""
    failures: dict[int, int] = field(default_factory=dict)
    """Walks that did not finish, by places left."""
    successes: dict[int, int] = field(default_factory=dict)
    """Walks that finished, by places left, since the last failure with one place more."""
    typical: dict[int, float] = field(default_factory=dict)
    """Work of a walk, by places left: the mean with older walks counting ever less."""
    given: dict[int, float] = field(default_factory=dict)
    """The most work offered that did not suffice, by places left."""
    passed_over: dict[int, int] = field(default_factory=dict)
    """Nodes not walked because walks with so many places left take too long, or closed nothing."""
    in_vain: float = 0.0
    """Part of the walks of few places that did not finish, older ones counting ever less."""
    failure_rate: dict[int, float] = field(default_factory=dict)
    """How likely a walk is not to finish, by places left: half the way up with one that did not, down with one that
    did; 1 where none is known."""

    def copy(self) -> SubtreeRecord:
        """The counts as they are now: a round that has been begun knows of nothing that is committed after it."""
        return SubtreeRecord(
            self.useful, self.wasted, {**self.failures}, {**self.successes}, {**self.typical}, {**self.given},
            {**self.passed_over}, self.in_vain, {**self.failure_rate},
        )  # fmt: skip

    @property
    def begun(self) -> bool:
        """Whether a subtree has been walked before."""
        return bool(self.failures or self.successes)

    def wants(self, slots: int, columns: int) -> bool:
        """Whether to walk the subtree of a node with this many places left over this many columns."""
        if columns > MOST_COLUMNS or self.allowance < 0.0:
            return False
        again = self.work >= MORE_WORK * self.given.get(slots, math.inf)
        if not again and self._takes_long(slots) and self.passed_over.get(slots, 0) % LOOK_AGAIN:
            return False
        # What fails at few places fails at more.
        hardest = min((r for r in self.failures if r <= slots and not self._may_try_again(r)), default=None)
        return hardest is None

    def wants_unbounded(self, slots: int, columns: int, costly: bool) -> bool:
        """Whether to walk the subtree of such a node before a bound call, which may be a costly one, is made."""
        if slots <= FEW_PLACES:
            if self._seldom_finish and self.passed_over.get(FEW_PLACES, 0) % LOOK_AGAIN:
                return False
            return supports(slots, columns) <= (MOST_COUNTED if costly else QUICKLY_COUNTED)
        return not self.begun and self.wants(slots, columns)

    @property
    def work(self) -> float:
        """What one walk may take: more, the longer the search takes anyway."""
        if not self.begun:
            return FIRST_WORK
        return max(WALK_WORK, min(SHARE * (self.useful - WASTE * self.wasted), self.allowance))

    @property
    def allowance(self) -> float:
        """Work that walks may still waste."""
        return WASTED * self.useful + FIRST_TRIES - self.wasted

    def expected_waste(self, slots: int) -> float:
        """Work that a walk with so many places left is expected to waste."""
        return self.failure_rate.get(slots, 1.0) * self.work

    def _may_try_again(self, slots: int) -> bool:
        failures = self.failures[slots]
        if self.work >= MORE_WORK * self.given.get(slots, math.inf):
            return True
        return self.successes.get(slots - 1, 0) >= PATIENCE << min(failures - 1, 10)

    def _takes_long(self, slots: int) -> bool:
        return slots > FEW_PLACES and self.typical.get(slots, 0.0) > max(TYPICAL_WORK, self.work / 2)

    @property
    def _seldom_finish(self) -> bool:
        """Whether walks of few places are skipped, most of the time."""
        return self.in_vain > MOST_IN_VAIN or self.allowance < 0.0

    def expected(self, slots: int, columns: int, iterations: float) -> float:
        """About the work there is below a node with so many places left over so many columns, bound call included.

        A walk of which nothing is known yet counts with all that it may take.
        """
        call = (iterations + 1.0) * columns**2
        if self.wants_unbounded(slots, columns, costly=False) or self.wants(slots, columns):
            return call + self.typical.get(slots, self.work)
        return call

    def note_no_walk(self, slots: int) -> None:
        """Enter an open node that was not walked."""
        if slots <= FEW_PLACES and self._seldom_finish:
            slots = FEW_PLACES
        elif not self._takes_long(slots):
            return
        self.passed_over[slots] = self.passed_over.get(slots, 0) + 1

    def note_walk(self, slots: int, columns: int, work: float, finished: bool) -> None:
        """Enter the outcome of one walk, and what it took besides setting it up."""
        work, offered = work + columns**2, self.work
        before = self.typical.get(slots)
        self.typical[slots] = work if before is None else before + (work - before) / 8
        self.passed_over[max(slots, FEW_PLACES)] = 1
        if slots <= FEW_PLACES:
            self.in_vain += ((not finished) - self.in_vain) / RECENT
        rate = self.failure_rate.get(slots, 1.0)
        self.failure_rate[slots] = SURER * rate if finished else 0.5 * (1.0 + rate)
        if finished:
            self.useful += work
            self.successes[slots] = self.successes.get(slots, 0) + 1
        else:
            self.wasted += work
            self.failures[slots] = self.failures.get(slots, 0) + 1
            self.given[slots] = max(offered, self.given.get(slots, 0.0))
            self.successes[slots - 1] = 0

    def note_count(self, work: float) -> None:
        """Enter a part of a count."""
        self.useful += work

    def note_bound(self, work: float) -> None:
        """Enter a bound call."""
        self.useful += work


def bound_work(columns: int, rows: int, iterations: int) -> float:
    """Multiplications of a bound call of so many iterations, by the products of columns or by the rows."""
    return float(iterations + 1) * columns * min(columns, rows)


SUBSEARCH_SHARE = 1 / 16
"""Nodes one search inside the kernel may bound, as a part of all nodes bounded so far ..."""

MOST_SUBSEARCH, LEAST_SUBSEARCH = 256, 2
"""... no more than this, and none at all below that; ..."""

SUBSEARCH_WORK = 5e7
"""... and no more multiplications than this, so that a signal or a limit is soon obeyed (about 20 ms)."""

HORIZON, HORIZON_PART = 2048, 2
"""How many open nodes the next rounds of a long search will take, or one part in so many of them: the bound of the last
is the horizon of the searches inside the kernel, so that the order stays best first (measured: from 10 parts to 2 the
gap after so many seconds is the same, and with fewer parts there is less Python)."""

HORIZON_AGE = 1 / 16
"""A horizon is used until so many more nodes have been bounded, as a part of all."""

LONG_FROM, LONG_GROWTH = 8192, 1.25
"""A search is long when, this many nodes on, the open ones have grown by this factor since half as many (with 8,192 and
65,536: logistic 100 x 100, k 8 is open at 3 to 4 % and at 14 % after 12 s, 200 x 100 at 10.6 and 12.2, while Huber loss
that ends after 76,000 nodes takes 5.2 and 4.4 s)."""


@dataclass
class Phase:
    """Whether the end of the search is in sight; part of its state.

    As long as it is, subtrees are searched to their end, which is quickest. A search that will not end soon is about
    the bound it reaches: then the order must be best first, and nodes are bounded more thoroughly.
    """

    long: bool = False
    mark: int = LONG_FROM // 2
    """Nodes at which to look again."""
    open_at_mark: int = 0
    """Nodes that were open when that was last done."""
    horizon: float = -math.inf
    """Of a long search (:data:`HORIZON`) ..."""
    horizon_until: int = 0
    """... and the nodes at which it is looked for again."""

    def horizon_at(self, nodes: int, new_horizon: Callable[[], float]) -> float:
        """The horizon after so many nodes: the one in use, or a ``new_horizon``, which takes time."""
        if nodes >= self.horizon_until:
            self.horizon, self.horizon_until = new_horizon(), nodes + int(nodes * HORIZON_AGE)
        return self.horizon

    def note(self, nodes: int, open_nodes: int) -> None:
        """Enter how far the search is."""
        if nodes < self.mark:
            return
        if self.mark >= LONG_FROM and open_nodes > LONG_GROWTH * self.open_at_mark:
            self.long = True
        self.mark *= 2
        self.open_at_mark = open_nodes


class WholeProblemAttempt(NamedTuple):
    """What has been tried of the whole problem at once; part of the state of a search.

    For logistic loss counts of all sets by their cells (enumeration/patterns.py), for quadratic loss bounds of clusters
    (enumeration/clusters.py).
    """

    after: float = 0.0
    """Multiplications the search must have spent before it is tried again."""
    bound: float = -math.inf
    """No model is below this; -infinity as long as a count has not completed."""


@dataclass(frozen=True)
class WorkBudget:
    """What the search has spent so far, and what it may still spend."""

    nodes: int = 0
    bound_calls: int = 0
    iterations: int = 0
    horizon: float = math.inf
    """Bound of the open nodes that come next, in a long search; what lies above is left to later rounds."""
    left: int | None = None
    """Nodes the limit leaves, besides those taken; None where there is none."""
    walks: SubtreeRecord | None = None
    """What walking subtrees in closed form has brought; None: walk none."""
    counted: WholeProblemAttempt = field(default_factory=WholeProblemAttempt)
    """What counting all sets by their cells, or bounds of clusters, have."""
    divides_from: float = math.inf
    """Work to be expected below a node from which on it is divided, not walked."""

    def subsearch_budget(self, iteration_cost: float, searches: int) -> int:
        """Nodes each of ``searches`` searches inside the kernel may bound; 0: there should be none."""
        cost = iteration_cost * (2.0 + self.iterations / max(1, self.bound_calls))
        budget = int(min(MOST_SUBSEARCH, self.nodes * SUBSEARCH_SHARE, SUBSEARCH_WORK / cost))
        if self.left is not None:
            budget = min(budget, (self.left + searches) // searches)
        return budget if budget >= LEAST_SUBSEARCH else 0


def supports(slots: int, columns: int) -> int:
    """Ways to fill the places from the columns still free, ``slots`` or fewer of them."""
    return sum(math.comb(columns, size) for size in range(slots + 1))


def walk_budget(columns: int, work: float) -> int:
    """Nodes one walk of so much work over this many columns may take, most of them with fewer."""
    return int(min(MOST_NODES, 8 * work / max(1, columns) ** 2))
