"""Counts of regions with five places (enumeration/minors.py).

Each candidate in turn is fixed to 1, and four places are counted.

The last candidate of the order comes first. Once (S + i, the candidates before it) is counted it is fixed to 0: the
open part is again the region over the first candidates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

from exactsel.enumeration.minors_open import Left, OpenAfterMinors, with_equal
from exactsel.kernels.node import IN, OUT
from exactsel.types import IntArray, StateArray


class Counter(Protocol):
    """What counts regions with a place less."""

    def candidates(self, state: StateArray) -> tuple[IntArray, dict[int, list[int]]]:
        """The candidates of a region in order, and those equal to one of them."""
        ...

    def count_region(
        self, state: StateArray, upper: float, tolerance: Callable[[float], float]
    ) -> OpenAfterMinors | None:
        """Count on in a region; None where rounding leaves too little to be said."""
        ...

    def work(self, state: StateArray) -> float:
        """What counting a region takes."""
        ...


def one_by_one(
    counter: Counter, most: float, state: StateArray, upper: float, tolerance: Callable[[float], float]
) -> OpenAfterMinors | None:
    """Count on in a region until so much work is done, one candidate at least; None where there is none."""
    counted, equal = counter.candidates(state)
    if counted.size == 0:
        return None
    open_sets, best, threshold, done, rest = dict[int, "Left | None"](), None, math.inf, 0.0, counted.size
    child = state.copy()
    while rest > 0 and (rest == counted.size or done < most):
        rest -= 1
        column = int(counted[rest])
        child[column] = IN
        done += counter.work(child)
        open_sets[column], outcomes = _included(counter, child, upper, tolerance)
        for count in outcomes:
            threshold = min(threshold, count.threshold)
            upper, best = count.upper, best if count.best is None else count.best
        child[[column, *equal.get(column, ())]] = OUT
    return OpenAfterMinors(with_equal(open_sets, equal), rest, min(threshold, upper), upper, best)


def _included(
    counter: Counter, child: StateArray, upper: float, tolerance: Callable[[float], float]
) -> tuple[Left | None, list[OpenAfterMinors]]:
    """The rest of a region once all of it is counted (None: all), and the outcome of each call."""
    included: Left = {}
    outcomes: list[OpenAfterMinors] = []
    state = child.copy()
    while True:
        count = counter.count_region(state, upper, tolerance)
        if count is None:
            return None, outcomes
        outcomes.append(count)
        included |= count.left
        upper = count.upper
        if count.rest == 0:
            return included, outcomes
        state[list(count.left)] = OUT
