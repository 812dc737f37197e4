"""Time limits for work that can only end itself: files that are read, passes over data.

The owner of a limit sets it once, around a call; code that reads or multiplies a block at a time checks it between two
blocks.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real

from exactsel import clock
from exactsel.errors import TimeLimitError, option

LAST_PASS = 1.0
"""Seconds after the end of a time limit in which current work may complete: a pass over the data, a small file that is
read."""


class _Ends(threading.local):
    """The ends of the time limits this thread is within, and their seconds; the innermost is last."""

    def __init__(self) -> None:
        self.open: list[tuple[float, float]] = []


_ends = _Ends()


@contextmanager
def within(seconds: object) -> Iterator[None]:
    """A block in which :func:`ask` raises soon after so many seconds, or never where None.

    The function that takes the limit refuses other values that are no number of seconds.
    """
    if not (isinstance(seconds, Real) and float(seconds) >= 0.0):
        yield
        return
    _ends.open.append((clock.now() + float(seconds) + LAST_PASS, float(seconds)))
    try:
        yield
    finally:
        _ends.open.pop()


def ask() -> None:
    """Raise where a time limit is over.

    Raises
    ------
    TimeLimitError
        In one sentence, for a caller without a result yet; a caller with one continues from there.
    """
    if not _ends.open:
        return
    end, seconds = min(_ends.open)
    if clock.now() >= end:
        raise TimeLimitError(
            f"the time limit of {seconds:.3g} s ended while the data were read, before there was a model; give a "
            f"longer {option('time_limit')}, or data that are read faster (.npz, .npy)."
        )
