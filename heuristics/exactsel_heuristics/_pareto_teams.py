"""Threads that run Pareto optimisation together and stay in compiled code, from one merge of the archive to the next.

Threads are Python's (:mod:`exactsel_heuristics._pareto_search`), which run side by side in compiled code and meet at a
barrier of atomic operations: numba's own parallel loops do not take nested tuples, and waking threads for each
iteration would cost more than most iterations do.

Synchronous PPOSS comes in two kinds. With one offspring a processor between merges it is the paper's algorithm. Where
one evaluation takes less than a barrier, every processor makes a batch of offspring: it runs POSS on a copy of the
archive of its own, an island, and the islands are merged in the order of their numbers. Either way random numbers
belong to (processor, iteration), so the result is the same for any number of threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from exactsel._jit import atomic_add, njit, yield_thread
from exactsel.types import BoolArray, FloatArray, IntArray
from exactsel_heuristics._pareto_archive import Archive, copy_member, insert, remove_dominated, survey
from exactsel_heuristics._pareto_kernels import (
    Plan,
    acquire,
    assess,
    choose_parent,
    create_some,
    note,
    propose,
    release,
    update,
)
from exactsel_heuristics._pareto_layout import NO_LARGER, SMALLER, Members, Scratch
from exactsel_heuristics._pareto_random import random_bits

COUNT, GENERATION, TICKET, SLOT = 0, 64, 128, 192
"""Places in the cells (256,) a team shares, in different cache lines: threads at the barrier, barriers passed, the next
processor, and the parent's slot."""

SPINS = 100
"""Looks at the barrier before a thread lets others run: there may be more threads than cores."""

ISLAND_STREAM = 3
"""Of the random numbers that make a processor's key."""


class Islands(NamedTuple):
    """An archive of its own for each of p processors: the arrays of :class:`Members` with one dimension more in front.

    ``order`` (p, slots) and ``live`` (p, 1) as in :class:`~exactsel_heuristics._pareto_archive.Archive`.
    """

    supports: IntArray
    values: FloatArray
    factors: FloatArray
    rows: FloatArray
    order: IntArray
    live: IntArray


def new_islands(processors: int, width: int, n: int) -> Islands:
    """Empty islands, with a slot for each size, the empty support, and a newcomer."""
    slots = width + 2
    return Islands(
        np.zeros((processors, slots, 2 + width), np.int64),
        np.full((processors, slots), np.inf),
        np.zeros((processors, slots, width + 1, width)),
        np.zeros((processors, slots, 3, n)),
        np.tile(np.arange(slots), (processors, 1)),
        np.zeros((processors, 1), np.int64),
    )


@njit
def meet(cells: IntArray, team: int) -> None:
    """Wait until all threads of the team are here."""
    generation = atomic_add(cells, GENERATION, 0)
    if atomic_add(cells, COUNT, 1) == team - 1:
        atomic_add(cells, COUNT, -team)
        atomic_add(cells, GENERATION, 1)
        return
    spins = 0
    while atomic_add(cells, GENERATION, 0) == generation:
        spins += 1
        if spins > SPINS:
            yield_thread()


@njit
def run_team(
    objective: Any, plan: Plan, archive: Archive, offspring: Members, scratch: Scratch, kept: IntArray,
    first: int, end: int, record: FloatArray, stop: BoolArray, cells: IntArray, member: int, team: int,
) -> int:  # fmt: skip
    """``run_serial`` by a team of threads, of which this is number ``member``; the same result."""
    for iteration in range(first, end):
        if member == 0:
            full = archive.live[0] + offspring.values.size > archive.order.size
            cells[SLOT] = -1 if full else choose_parent(plan, archive, iteration)
            cells[TICKET] = 0
            offspring.values[:] = np.inf
        meet(cells, team)
        if cells[SLOT] < 0:
            return iteration
        ticket = cells[TICKET : TICKET + 1]
        create_some(objective, plan, archive, cells[SLOT], offspring, scratch, iteration, ticket, stop)
        meet(cells, team)
        if member == 0:
            update(objective, plan, archive, offspring, kept, iteration, record)
    return end


@njit
def island(islands: Islands, p: int) -> Archive:
    """The archive of processor p."""
    members = Members(islands.supports[p], islands.values[p], islands.factors[p], islands.rows[p])
    return Archive(members, islands.order[p], islands.live[p])


@njit
def settle(archive: Archive, own: Archive) -> None:
    """Make ``own`` a copy of the archive; there must be a slot for each of its members."""
    count = archive.live[0]
    for q in range(count):
        copy_member(archive.members, archive.order[q], own.members, own.order[q])
    own.live[0] = count


@njit
def evolve(
    objective: Any, plan: Plan, own: Archive, offspring: Members, scratch: Scratch, p: int, first: int, end: int
) -> None:
    """POSS on the island of processor p, iterations ``first`` to ``end`` - 1."""
    key = random_bits(plan.key, p, ISLAND_STREAM, 0)
    here = Plan(key, plan.d, plan.k, plan.largest, plan.rate, plan.by_minimum)
    for iteration in range(first, end):
        slot = choose_parent(here, own, iteration)
        if not propose(here, own, own.members, slot, offspring, scratch, p, iteration, 1):
            continue
        assess(objective, own.members, slot, offspring, scratch, p)
        if offspring.values[p] < np.inf:
            remove_dominated(own, offspring, p)
            copy_member(offspring, p, own.members, own.order[own.live[0]])
            own.live[0] += 1


@njit
def merge(
    objective: Any, plan: Plan, archive: Archive, own: Archive, limits: FloatArray, record: FloatArray, evaluations: int
) -> None:
    """Enter what an island holds and the archive does not, unless it is dominated there."""
    members = own.members
    for q in range(own.live[0]):
        slot = own.order[q]
        if survey(archive, members, slot, limits):
            continue
        value = members.values[slot]
        if value < np.inf and value <= limits[NO_LARGER] and value < limits[SMALLER]:
            remove_dominated(archive, members, slot)
            if archive.live[0] < archive.order.size:
                insert(objective, archive, members, slot)
                note(record, plan, members, slot, evaluations)


@njit
def run_islands(
    objective: Any, plan: Plan, archive: Archive, islands: Islands, offspring: Members, scratch: Scratch,
    first: int, end: int, batch: int, record: FloatArray, cells: IntArray, member: int, team: int,
) -> int:  # fmt: skip
    """Iterations ``first`` to ``end`` - 1 of every processor, ``batch`` of them between merges, by a team."""
    processors, iteration = offspring.values.size, first
    while iteration < end:
        last = min(end, iteration + batch)
        if member == 0:
            cells[TICKET] = 0
        meet(cells, team)
        while True:
            p = atomic_add(cells, TICKET, 1)
            if p >= processors:
                break
            own = island(islands, p)
            settle(archive, own)
            evolve(objective, plan, own, offspring, scratch, p, iteration, last)
        meet(cells, team)
        if member == 0:
            for p in range(processors):
                own = island(islands, p)
                merge(objective, plan, archive, own, scratch.limits[p], record, last * processors)
        iteration = last
    return end


@njit
def work_on_island(
    objective: Any, plan: Plan, archive: Archive, islands: Islands, offspring: Members, scratch: Scratch, p: int,
    counter: IntArray, end: int, batch: int, lock: IntArray, record: FloatArray,
) -> None:  # fmt: skip
    """A worker of asynchronous PPOSS with batches: nobody waits but for the lock, under which islands are merged."""
    own = island(islands, p)
    while True:
        first = atomic_add(counter, 0, batch)
        if first >= end:
            return
        last = min(end, first + batch)
        acquire(lock)
        settle(archive, own)
        release(lock)
        evolve(objective, plan, own, offspring, scratch, p, first, last)
        acquire(lock)
        merge(objective, plan, archive, own, scratch.limits[p], record, last)
        release(lock)
