"""Run a compiled loop on several threads at once, and stop it from outside."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np

from exactsel._jit import new_flag
from exactsel.types import BoolArray
from exactsel_heuristics.base import Context

LONG = 1e9
"""Rough number of operations of an iteration (half a second) from which on the stop flag is read inside."""

LOOKS = 0.05
"""Seconds between two such looks."""

CELLS = 256
"""Of a team, see :mod:`exactsel_heuristics._pareto_teams`."""


def together(run: Callable[..., int], team: int, first: int, end: int, *more: object) -> int:
    """Call a loop of a team on as many threads: run(first, end, *more, cells, member, team); what it returns."""
    cells = np.zeros(CELLS, np.int64)
    # Compiled before any thread waits: an interrupt of the compiler must not leave the others waiting.
    run(end, end, *more, cells, 0, 1)
    # No thread enters the loop, where all wait for all, before every thread is there.
    all_here, ready = threading.Event(), [False]

    def join(member: int) -> None:
        all_here.wait()
        if ready[0]:
            run(first, end, *more, cells, member, team)

    with ThreadPoolExecutor(max(1, team - 1)) as pool:
        try:
            jobs = [pool.submit(join, member) for member in range(1, team)]
            ready[0] = True
        finally:
            all_here.set()
        reached = run(first, end, *more, cells, 0, team)
        for job in jobs:
            job.result()
    return reached


@contextmanager
def stop_flag(context: Context, work: float) -> Iterator[BoolArray]:
    """A flag (1,) that turns true once the context says stop, where an iteration takes so much work that it matters."""
    flag, over = new_flag(), threading.Event()
    if work < LONG:
        yield flag
        return

    def look() -> None:
        while not over.wait(LOOKS):
            if context.should_stop():
                flag[0] = True
                return

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield flag
    finally:
        over.set()
        watcher.join()
