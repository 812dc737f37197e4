"""The history of a search over time, the data of reports and plots.

An observer of the events. It measures the time itself, when an event reaches it; nothing in the search depends on it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from exactsel.closers.base import label_of
from exactsel.nodes.subtree import count_open
from exactsel.search.events import (
    Bounded,
    Discarded,
    Divided,
    Event,
    Finished,
    Fixed,
    IncumbentFound,
    LowerBoundRaised,
    Started,
    SubtreeClosed,
)
from exactsel.search.state import SearchState
from exactsel.to_plain import counted

MOST_POINTS = 2000
"""Points kept; when there are more, every second one is forgotten."""


def closers_text(closers: Mapping[str, Mapping[str, int]]) -> str:
    """What each closer brought (:meth:`History.closers`), in one line."""
    parts = []
    for name, counts in closers.items():
        if name == "bounds":
            labels = {"call": "", "region": " closed", "feature": " fixed"}
            numbers = (counts["calls"], counts["closed"], counts["fixed"])
        else:
            labels = {"subtree": "", "node": "", "region": " left open"}
            numbers = (counts["subtrees"], counts["nodes"], counts["left_open"])
        each = [
            counted(count, what) + more for count, (what, more) in zip(numbers, labels.items(), strict=True) if count
        ]
        parts.append(f"{label_of(name)}: {', '.join(each)}")
    return "; ".join(parts)


@dataclass(frozen=True, slots=True)
class Moment:
    """The two bounds at one moment."""

    seconds: float
    nodes: int
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class Incumbent:
    """A model that was the best so far when it was found."""

    seconds: float
    nodes: int
    value: float
    support: tuple[int, ...]
    source: str


@dataclass
class History:
    """Call it with every event and the state; afterwards read its fields."""

    moments: list[Moment] = field(default_factory=list)
    incumbents: list[Incumbent] = field(default_factory=list)
    closed: Counter[str] = field(default_factory=Counter)
    """Regions closed one by one, by reason (see :class:`exactsel.search.events.Discarded`)."""
    put_in: int = 0
    """Columns fixed to 1 for good because fixing them to 0 was closed, over all nodes."""
    left_out: int = 0
    """Columns fixed to 0 for good because fixing them to 1 was closed, over all nodes."""
    splits: int = 0
    shown: int = 0
    """Regions of :attr:`closed` that a closer of subtrees closed, and showed one by one."""
    calls: int = 0
    """Bound calls made node by node."""
    subtrees: Counter[str] = field(default_factory=Counter)
    """Subtrees dealt with as a whole, by closer (:attr:`exactsel.nodes.regions.SubtreeResult.closer`) ..."""
    subtree_nodes: Counter[str] = field(default_factory=Counter)
    """... and the nodes examined there, ..."""
    left_open: Counter[str] = field(default_factory=Counter)
    """... and the regions that were left open."""
    began: float = field(default_factory=time.perf_counter)

    @property
    def one_pass(self) -> bool:
        """Whether no region has been split since the root was opened, so that no tree has grown."""
        return bool(self.moments) and self.moments[0].nodes == 0 and not self.splits and not self.shown

    def closers(self) -> dict[str, dict[str, int]]:
        """The results of each closer since it began; closers without results are omitted.

        Under ``bounds`` the calls made node by node, the regions closed there and the columns fixed; under the name of
        a closer of subtrees those it dealt with, the nodes it examined and the regions it left open.
        """
        listings = self.closed["listed"]
        bounds = {
            "calls": self.calls,
            "closed": self.closed.total() - self.shown - listings,
            "fixed": self.put_in + self.left_out,
        }
        results = {"bounds": bounds} if any(bounds.values()) else {}
        if listings:
            results["listed"] = {"subtrees": listings, "nodes": 0, "left_open": 0}
        return results | {
            name: {"subtrees": count, "nodes": self.subtree_nodes[name], "left_open": self.left_open[name]}
            for name, count in sorted(self.subtrees.items())
        }

    def __call__(self, event: Event, state: SearchState) -> None:
        """Take note of one event."""
        match event:
            case IncumbentFound(upper, support, _, source):
                self.incumbents.append(Incumbent(self._now(), state.nodes, upper, support, source))
                self._note(state)
            case Started() | LowerBoundRaised() | Finished():
                self._note(state)
            case Discarded(_, _, reason, _, _):
                self.closed[reason] += 1
            case Fixed(_, fixings):
                put_in = int(np.count_nonzero(fixings.included))
                self.put_in += put_in
                self.left_out += len(fixings) - put_in
            case Bounded():
                self.calls += 1
            case Divided():
                self.splits += 1
            case SubtreeClosed(_, _, _, result):
                self.subtrees[result.closer] += 1
                self.subtree_nodes[result.closer] += result.nodes
                open_nodes = count_open(result.children)
                self.left_open[result.closer] += open_nodes
                self.shown += len(result.children) - open_nodes
            case _:
                pass

    def _now(self) -> float:
        return time.perf_counter() - self.began

    def _note(self, state: SearchState) -> None:
        self.moments.append(Moment(self._now(), state.nodes, state.lower, state.upper))
        if len(self.moments) > MOST_POINTS:
            del self.moments[1:-1:2]
