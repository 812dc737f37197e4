"""The work limit of a check, for the second checker: operations on fractions are tallied as they are done.

A few bytes can demand more work than a user waits for. One operation is about one of a fraction of 512 binary digits,
or what the interpreter does in that time; each loop first tallies the work of one round.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

WORD = 512
"""Binary digits that are as quick as one."""


class Beyond(Exception):
    """True or not, this checker cannot say."""


class TooMuch(Beyond):
    """It would take longer than it may."""


class _Tally(threading.local):
    done, most, until, left = 0.0, math.inf, math.inf, False
    clock: Callable[[], float] = staticmethod(time.monotonic)


_tally = _Tally()


@contextmanager
def at_most(operations: float, seconds: float, clock: Callable[[], float]) -> Iterator[None]:
    """A block that does no more than so many operations, and takes no more than so many seconds."""
    before = vars(_tally).copy()
    _tally.done, _tally.most, _tally.left = 0.0, operations, False
    _tally.clock = clock
    _tally.until = clock() + seconds if seconds < math.inf else math.inf
    try:
        yield
    finally:
        vars(_tally).clear()
        vars(_tally).update(before)


def tally(operations: float, digits: int = 0) -> None:
    """Count operations on numbers of so many binary digits; :class:`TooMuch` where they are too many."""
    _tally.done += operations * (1 + digits // WORD)
    if not _tally.done <= _tally.most:
        raise TooMuch(f"the proof asks for more than {_tally.most:.3g} operations")
    if _tally.until < math.inf and _tally.clock() > _tally.until:
        raise TooMuch("the check has taken as long as it may")


def combinations_of(m: int, r: int) -> float:
    """How many sets of r there are of m, up to 1e300."""
    total = 1.0
    for i in range(min(r, m - r)):
        total = total * (m - i) / (i + 1)
        if total > 1e300:
            break
    return total


def leave_undone() -> None:
    """Note that something is not tried, for it takes too long, that might have shown more."""
    _tally.left = True


def left_undone() -> bool:
    """Whether there was anything of that kind."""
    return _tally.left
