"""Progress of a verb on stderr from Python (``verbose=1``), a line for each step that is done.

In a notebook it stands below the cell.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from exactsel.arguments import shown
from exactsel.errors import InputError, escaped

if TYPE_CHECKING:
    from exactsel.solving.result import Result

Say = Callable[[str], None]

SIZES = f"{'k':>4} {'lam':>9} {'objective':>14} {'gap':>9} {'claim':<11} {'nodes':>9} {'time':>8}"
"""The head of :func:`size_line`."""


def teller(verbose: object) -> Say | None:
    """What writes a line to stderr; None where nothing is to be said.

    Raises
    ------
    InputError
        Where ``verbose`` is neither a switch nor a number from 0 on.
    """
    if not isinstance(verbose, int) or verbose < 0:
        raise InputError(f"verbose is {shown(verbose)}, but 0 (say nothing) or 1 (show progress) was expected.")
    return say if verbose else None


def say(line: str) -> None:
    """One line on stderr; nothing where that is no more."""
    try:
        sys.stderr.write(escaped(line) + "\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return


def size_line(result: Result) -> str:
    """One problem of several: its size, the best objective, and what is proven."""
    lam = result.problem.get("lam")
    return (
        f"{result.problem['k']:>4} {'-' if lam is None else format(lam, '.4g'):>9} {result.upper:>14.8g} "
        f"{result.gap:>9.2e} {result.claim.value:<11} {result.nodes:>9} {result.time:>7.1f}s"
    )


class Sizes:
    """Says one line for each result of a course, under a head."""

    def __init__(self, tell: Say) -> None:
        self._tell, self._headed = tell, False

    def __call__(self, result: Result) -> None:
        """Say what has come of one problem."""
        if not self._headed:
            self._tell(SIZES)
        self._headed = True
        self._tell(size_line(result))


def sizes_said(verbose: object) -> Sizes | None:
    """What says the results of a course; None where nothing is to be said."""
    tell = teller(verbose)
    return None if tell is None else Sizes(tell)


class Since:
    """Says lines with the seconds since the first."""

    def __init__(self, tell: Say) -> None:
        self._tell, self._began = tell, time.perf_counter()

    def __call__(self, line: str) -> None:
        """Say a line."""
        self._tell(f"{line}   {time.perf_counter() - self._began:.1f} s so far")
