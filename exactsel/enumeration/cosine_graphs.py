"""Graphs of weak columns that touch where their cosine is large, by how many connected sets these have."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exactsel.enumeration.weak_columns import WeakColumns
from exactsel.kernels.connected import connected_sets
from exactsel.types import IntArray

LARGEST = 12
"""Places up to which columns are taken together at all."""

MOST_NUMBERS = 60_000_000
"""Numbers that are kept of all connected sets."""

MORE_SETS = 4, 64, 1024
"""Connected sets, by the weak columns there are: each graph that is tried has as many at most."""

GAP = 1e-6
"""Between the cosines below and above the threshold: more than they are off as a rule."""

WINDOW = 0.1
"""Part of the edges that may be dropped for the sake of a wide gap."""


class Graph(NamedTuple):
    """Which columns touch each other."""

    tau: float
    """Columns touch where the size of their cosine is no less; infinite where none do."""
    starts: IntArray
    neighbours: NDArray[np.int32]


def graphs(weak: WeakColumns) -> Iterator[Graph]:
    """One without edges, then some with more and more of them."""
    count, most = len(weak.weak), weak.slots
    yield Graph(math.inf, np.zeros(count + 1, dtype=np.int64), np.zeros(0, dtype=np.int32))
    if not 2 <= most <= LARGEST:
        return
    # Where a list has an end, it is unknown which columns touch below it.
    end = float(np.max(weak.sizes[:, 0])) if weak.kept < count - 1 else 0.0
    falling = -np.sort(-weak.sizes[(weak.sizes > end) & (weak.others > np.arange(count)[:, None])].astype(np.float64))
    done = 0
    for more in MORE_SETS:
        edges = _edges_for(weak, falling, end, more * count)
        if edges > done:
            yield graph_above(weak, _threshold(falling, end, edges))
            done = edges


def _edges_for(weak: WeakColumns, falling: NDArray[np.float64], end: float, limit: int) -> int:
    """The most edges whose graph has so many connected sets at most, and a gap below the last one."""
    low, high = 0, min(len(falling), limit)
    while low < high:
        edges = (low + high + 1) // 2
        graph = graph_above(weak, float(falling[edges - 1]))
        counts, nothing = np.zeros(weak.slots + 1, dtype=np.int64), np.zeros(0, dtype=np.int32)
        fits = connected_sets(graph.starts, graph.neighbours, weak.slots, limit, counts, counts, nothing, weak.stop)
        if fits and numbers_of(counts) <= MOST_NUMBERS:
            low = edges
        else:
            high = edges - 1
    return _before_gap(falling, end, low)


def _before_gap(falling: NDArray[np.float64], end: float, edges: int) -> int:
    """As many edges or a few less, with the widest gap below the last of them; 0 where there is none."""
    gaps = falling[:edges] - np.append(falling, end)[1 : edges + 1]
    for first in (int((1.0 - WINDOW) * edges), 0):
        if gaps.size and np.max(gaps[first:]) >= GAP:
            return first + int(np.argmax(gaps[first:])) + 1
    return 0


def _threshold(falling: NDArray[np.float64], end: float, edges: int) -> float:
    """In the middle of the gap."""
    return float(falling[edges - 1] + (falling[edges] if edges < len(falling) else end)) / 2.0


def graph_above(weak: WeakColumns, tau: float) -> Graph:
    """Columns touch where the size of their cosine is no less than ``tau``."""
    rows, places = np.nonzero(weak.sizes >= np.float64(tau))  # as doubles, like those that count neighbours
    neighbours = weak.others[rows, places]
    edges = neighbours >= 0
    starts = np.zeros(len(weak.weak) + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows[edges], minlength=len(weak.weak)), out=starts[1:])
    return Graph(tau, starts, np.ascontiguousarray(neighbours[edges]))


def numbers_of(counts: IntArray) -> float:
    """Numbers that are kept of so many sets of each size."""
    sizes = np.arange(len(counts))
    return float(np.sum(counts * (sizes * (sizes + 1) // 2 + sizes + len(counts) + 2)))
