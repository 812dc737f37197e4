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
from exactsel_heuristics._pareto_layout import CACHE_LINES, NO_LARGER, SMALLER, Members, Scratch
from exactsel_heuristics._pareto_random import random_bits

COUNT, GENERATION, TICKET, SLOT = 0, 64, 128, 192
"""Places in the cells (256,) a team shares, in different cache lines: threads at the barrier, barriers passed, the next
processor, and the parent's slot."""

SPINS = 100
"""Looks at the barrier before a thread lets others run: there may be more threads than cores."""

ISLAND_STREAM = 3
"""Of the random numbers that make a processor's key."""


class Islands(NamedTuple):
    """An archive of its own for each of p processors, in the slots behind those of the archive they share.

    An island begins with the slots of the shared archive, which it reads and never writes, and enters what it finds in
    ``width`` + 2 slots of its own: so many hold a member for each size, the empty support, and a newcomer.

    ``order`` (p, slots) lists slots, the live ones first; ``counts`` (p, CACHE_LINES): see :data:`LIVE`; ``readers``
    (slots of the archive,): how many islands read a slot.
    """

    order: IntArray
    counts: IntArray
    readers: IntArray


LIVE, LISTED = 0, 1
"""Places in ``Islands.counts``: the live slots, and all that an island lists."""


def own_slots(processors: int, width: int) -> int:
    """Slots behind the archive that islands need."""
    return processors * (width + 2)


def new_islands(processors: int, width: int, slots: int) -> Islands:
    """Islands beside an archive of ``slots`` slots."""
    return Islands(
        np.zeros((processors, 2 * (width + 2)), np.int64),
        np.zeros((processors, CACHE_LINES), np.int64),
        np.zeros(slots, np.int64),
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
def island(archive: Archive, islands: Islands, p: int) -> Archive:
    """The archive of processor p."""
    return Archive(archive.members, islands.order[p], islands.counts[p])


@njit
def start_island(archive: Archive, islands: Islands, p: int) -> None:
    """Let processor p begin with the members of the archive, and note that it reads them."""
    order, count = islands.order[p], archive.live[0]
    own = order.size // 2
    for q in range(count):
        order[q] = archive.order[q]
    for q in range(own):
        order[count + q] = islands.readers.size + p * own + q
    islands.counts[p, LIVE], islands.counts[p, LISTED] = count, count + own


@njit
def count_readers(islands: Islands, p: int, change: int) -> None:
    """Add ``change`` to the readers of the archive's slots that island p lists; one thread at a time."""
    for q in range(islands.counts[p, LISTED]):
        if islands.order[p, q] < islands.readers.size:
            islands.readers[islands.order[p, q]] += change


@njit
def first_free(archive: Archive, islands: Islands, shared: bool) -> int:
    """Move a slot that may be written to the first place behind the live ones, and return it.

    That is one of the archive which no island reads, or one of an island that is not the archive's.
    """
    order, place = archive.order, archive.live[0]
    q, slots = place, islands.readers.size
    while (islands.readers[order[q]] > 0) if shared else (order[q] < slots):
        q += 1
    slot = order[q]
    order[q], order[place] = order[place], slot
    return slot


@njit
def evolve(
    objective: Any, plan: Plan, archive: Archive, islands: Islands, offspring: Members, scratch: Scratch, p: int,
    first: int, end: int,
) -> None:  # fmt: skip
    """POSS on the island of processor p, iterations ``first`` to ``end`` - 1."""
    key, own = random_bits(plan.key, p, ISLAND_STREAM, 0), island(archive, islands, p)
    here = Plan(key, plan.d, plan.k, plan.largest, plan.rate, plan.by_minimum)
    for iteration in range(first, end):
        slot = choose_parent(here, own, iteration)
        if not propose(here, own, own.members, slot, offspring, scratch, p, iteration, 1):
            continue
        if assess(objective, own.members, slot, offspring, scratch, p):
            remove_dominated(own, offspring, p)
            # Not `insert`: rows of Gram matrices are computed by one thread at a time, and in an order that does not
            # depend on the threads, because entries of (i, j) and of (j, i) may round differently. The merge does it.
            copy_member(offspring, p, own.members, first_free(own, islands, False))
            own.live[0] += 1


@njit
def merge(
    objective: Any, plan: Plan, archive: Archive, islands: Islands, p: int, limits: FloatArray, record: FloatArray,
    evaluations: int,
) -> None:  # fmt: skip
    """Enter what processor p has found, unless it is dominated in the archive."""
    own, members = island(archive, islands, p), archive.members
    for q in range(own.live[0]):
        slot = own.order[q]
        if slot < islands.readers.size or survey(archive, members, slot, limits):
            continue
        if members.values[slot] <= limits[NO_LARGER] and members.values[slot] < limits[SMALLER]:
            remove_dominated(archive, members, slot)
            first_free(archive, islands, True)
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
            start_island(archive, islands, p)
            evolve(objective, plan, archive, islands, offspring, scratch, p, iteration, last)
        meet(cells, team)
        if member == 0:
            for p in range(processors):
                merge(objective, plan, archive, islands, p, scratch.limits[p], record, last * processors)
        iteration = last
    return end


@njit
def work_on_island(
    objective: Any, plan: Plan, archive: Archive, islands: Islands, offspring: Members, scratch: Scratch, p: int,
    counter: IntArray, end: int, batch: int, lock: IntArray, record: FloatArray,
) -> None:  # fmt: skip
    """A worker of asynchronous PPOSS with batches: nobody waits but for the lock, under which islands are merged.

    The archive has so many slots that one is free beside those that all islands may read.
    """
    while True:
        first = atomic_add(counter, 0, batch)
        if first >= end:
            return
        last = min(end, first + batch)
        acquire(lock)
        start_island(archive, islands, p)
        count_readers(islands, p, 1)
        release(lock)
        evolve(objective, plan, archive, islands, offspring, scratch, p, first, last)
        acquire(lock)
        count_readers(islands, p, -1)
        merge(objective, plan, archive, islands, p, scratch.limits[p], record, last)
        release(lock)
