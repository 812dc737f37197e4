"""The work limit of a check: work is counted as it is done, and the check ends at a limit (FORMAT.md, *Work*).

A file of a few bytes can demand more work than any machine does in a year: sets to count, points to evaluate, fits in
exact arithmetic. Work is counted in elementary operations, about multiplications of doubles. Loops subtract their work
from the budget of the check they belong to before they do it, and read the clock meanwhile; outside of a check nothing
is limited.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Count = TypeVar("Count", float, "NDArray[np.float64]")
"""A number, or one for each of several regions."""

EXACT = 200.0
"""Elementary operations in the time of one multiplication in exact arithmetic."""

STEP = 200.0
"""The same for one step of a loop of the interpreter."""

MATRIX = 4.0
"""Multiplications of a product of matrices in the time of one by itself."""


class TooMuchWorkError(Exception):
    """The check has reached its limit; the text names the limit in one sentence."""


@dataclass
class Budget:
    """What one check may take, and has taken so far."""

    limit: float = math.inf
    """Elementary operations."""
    seconds: float = math.inf
    now: Callable[[], float] = time.monotonic
    """The clock."""
    spent: float = 0.0
    refused: bool = False
    """Whether something was left undone that might have shown more."""
    began: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = self.now()

    def spend(self, operations: float) -> None:
        """Take operations off before they are done."""
        if not self.spent + operations <= self.limit:
            raise TooMuchWorkError(f"the proof asks for more than {self.limit:.3g} elementary operations")
        self.spent += operations
        if self.seconds < math.inf and self.now() - self.began > self.seconds:
            raise TooMuchWorkError(f"the check has taken more than {self.seconds:g} seconds")


_current: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def within(budget: Budget) -> Iterator[Budget]:
    """A block whose work is subtracted from a budget."""
    token = _current.set(budget)
    try:
        yield budget
    finally:
        _current.reset(token)


def spend(operations: float) -> None:
    """Take operations off the budget of the check this belongs to, if it belongs to one."""
    budget = _current.get()
    if budget is not None:
        budget.spend(operations)


def look() -> None:
    """Read the clock, in the middle of work that has been subtracted already."""
    spend(0.0)


def refuse() -> None:
    """Note that something is left undone that might have shown more."""
    budget = _current.get()
    if budget is not None:
        budget.refused = True


class ExactWork:
    """Multiplications that exact arithmetic may take still."""

    def __init__(self, budget: float) -> None:
        self.left = budget

    def allows(self, multiplications: float) -> bool:
        """Whether so many are left; if so, they are taken off."""
        if multiplications > self.left:
            refuse()
            return False
        self.left -= multiplications
        spend(EXACT * multiplications)
        return True


def sets_of(m: int, r: int) -> float:
    """How many sets of at most r there are of m columns; one where one elimination shows all."""
    total, sets = 1.0, 1.0
    for q in range(min(m, r) if r < m else 0):
        sets *= (m - q) / (q + 1)
        total += sets
        if total > 1e300:
            break
    return total


def of_counting(s: int, m: int, r: int) -> float:
    """What counting the sets of at most r of m columns takes, with s columns besides that are eliminated first."""
    return sets_of(m, r) + (s + 1.0) * m * (m + s) + float(s) ** 3 + 64.0


def of_patterns(n: int, m: int, r: int) -> float:
    """What summing over the covariate patterns of n rows and all sets of r of m columns takes (patterns.py)."""
    total, prefixes = 64.0 * STEP + n * (64.0 * (m + 1.0) + m * m / 4.0), 1.0
    for t in range(1, r - 1):
        prefixes *= (m - t + 1) / t
        parts = min(2.0**t, n)
        # The last of t columns is far to the right, on the average, and half the rows at most hold its rarer value.
        total += prefixes * (2.0 * STEP * (parts + 16.0) + m * m * (n / 4.0 + 2.0 * parts) / ((t + 1) * (t + 2)))
        if total > 1e300:
            break
    return total + 40.0 * min(2.0 ** (r - 1), n) * sets_of(m, r)


def of_points(points: int, regions: int, n: int, d: int) -> float:
    """What evaluating points and bounding regions at them takes, with n rows and d columns."""
    return 4.0 * points * n * d + 16.0 * regions * d


def of_selections(regions: int, n: int, d: int) -> float:
    """What singular values of what is left of A take."""
    return 24.0 * regions * n * d * min(n, d)


def of_fits(fits: int, m: int) -> float:
    """What solving systems of m columns takes."""
    return fits * (m**3 / 3.0 + 64.0 * m)


def of_pairs(s: int, m: int, r: int, n: int, d: int) -> float:
    """Multiplications to go through the selections of r of m columns beside s; all pairs of a region at once."""
    pairs = 64.0 * STEP + 4.0 * n * d * (s + r + 1.0) + m * float(d) * (n + m) + 32.0 * m * m
    return sets_of(m, max(0, r - 2)) * pairs


def of_leaves(n: int, s: int, m: Count, r: int) -> Count:
    """What looking at the last r (at most two) of m columns beside s takes, with n rows (leaf_regions.py)."""
    pairs = m * (m * (n + s) / MATRIX + 48.0 * m) if r > 1 else 0.0
    return 256.0 * STEP + n * (m * (20.0 + (2.0 * s + 2.0) / MATRIX) + (s + 4.0) ** 2) + pairs
