"""Threads that run Pareto optimisation together and stay in compiled code, from one merge of the archive to the next.

Threads are Python's (:mod:`exactsel_heuristics._pareto_search`), which run side by side in compiled code and meet at a
barrier of atomic operations: numba's own parallel loops do not take nested tuples, and waking threads for each
iteration would cost more than most iterations do.

Synchronous PPOSS comes in two kinds. With one offspring a processor between merges it is the paper's algorithm. Where
one evaluation takes less than a barrier, every processor makes a batch of offspring: it runs POSS on an archive of its
own, an island, which begins with the members of the shared one, and the islands are merged in the order of their
numbers. Either way random numbers belong to (processor, iteration), so that the number of threads changes no result.
"""

from __future__ import annotations

from typing import NamedTuple

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
from exactsel_heuristics._pareto_objective import ParetoObjective
from exactsel_heuristics._pareto_random import random_bits

COUNT, GENERATION, TICKET, SLOT = 0, 64, 128, 192
"""Places in the cells (256,) a team shares, in different cache lines: threads at the barrier, barriers passed, the next
processor, and the parent's slot."""

SPINS = 100
"""Reads of the barrier before a thread lets others run: there may be more threads than cores."""

BATCH, SMALLEST, LARGEST, SHARED, RETURN_BELOW, RETURN_ABOVE, END = 0, 1, 2, 3, 4, 5, 6
"""Places of a schedule (CACHE_LINES,): the batch, its limits, the smallest that processors share (they take turns in
smaller ones), the limits outside which a team returns because another number of threads is better then, and the number
of iterations of the run, which alone cuts a batch short."""

ISLAND_STREAM = 3
"""Of the random numbers that make a processor's key."""


class Islands(NamedTuple):
    """An archive of its own for each of p processors, in the slots behind those of the archive they share.

    An island begins with the slots of the shared archive, which it reads and never writes, and enters what it finds in
    ``width`` + 2 slots of its own: so many hold a member for each size, the empty support, and a newcomer.

    ``order`` (p, slots) lists slots, the live ones first; ``counts`` (p, CACHE_LINES): see :data:`LIVE`; ``keys`` (p,)
    of their random numbers; ``readers`` (slots of the archive,): how many islands read a slot.
    """

    order: IntArray
    counts: IntArray
    keys: IntArray
    readers: IntArray


LIVE, LISTED, USED, TAKEN = 0, 1, 2, 3
"""Places in ``Islands.counts``: the live slots, all that an island lists, its own among these, and how many threads
have requested it since the last merge: the first has it."""


NO_LIMIT = 2**62
"""More than any batch."""


def new_schedule(smallest: int, largest: int, shared: int, end: int) -> IntArray:
    """Batches that begin with the smallest, of a run of ``end`` iterations."""
    schedule = np.zeros(CACHE_LINES, np.int64)
    schedule[[BATCH, SMALLEST, LARGEST, SHARED, RETURN_ABOVE]] = smallest, smallest, largest, shared, NO_LIMIT
    schedule[END] = end
    return schedule


def own_slots(processors: int, width: int) -> int:
    """Slots behind the archive that islands need."""
    return processors * (width + 2)


def new_islands(processors: int, width: int, slots: int, key: int) -> Islands:
    """Islands beside an archive of ``slots`` slots."""
    return Islands(
        np.zeros((processors, 2 * (width + 2)), np.int64),
        np.zeros((processors, CACHE_LINES), np.int64),
        np.array([random_bits(key, p, ISLAND_STREAM, 0) for p in range(processors)], np.int64),
        np.zeros(slots, np.int64),
    )


@njit
def meet(cells: IntArray, team: int) -> None:
    """Wait until all threads of the team are here."""
    if team == 1:
        return
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
    objective: ParetoObjective, plan: Plan, archive: Archive, offspring: Members, scratch: Scratch, kept: IntArray,
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
    count = archive.live[0]
    for q in range(count):
        islands.order[p, q] = archive.order[q]
    islands.counts[p, LIVE], islands.counts[p, LISTED], islands.counts[p, USED] = count, count, 0


@njit
def count_readers(islands: Islands, p: int, change: int) -> None:
    """Add ``change`` to the readers of the archive's slots that island p lists; one thread at a time."""
    for q in range(islands.counts[p, LISTED]):
        if islands.order[p, q] < islands.readers.size:
            islands.readers[islands.order[p, q]] += change


@njit
def free_own_slot(islands: Islands, p: int) -> int:
    """List a slot of island p first behind the live ones, and return it; those of the archive are not its to write."""
    order, counts = islands.order[p], islands.counts[p]
    place, own = counts[LIVE], order.size // 2
    if counts[USED] < own:
        q, slot = counts[LISTED], islands.readers.size + p * own + counts[USED]
        counts[LISTED] += 1
        counts[USED] += 1
    else:
        q = place
        while order[q] < islands.readers.size:
            q += 1
        slot = order[q]
    order[q] = order[place]
    order[place] = slot
    return int(slot)


@njit
def free_slot(archive: Archive, islands: Islands) -> None:
    """List a slot of the archive that no island reads first behind the live ones."""
    order, place = archive.order, archive.live[0]
    q = place
    while islands.readers[order[q]] > 0:
        q += 1
    slot = order[q]
    order[q] = order[place]
    order[place] = slot


@njit
def evolve(
    objective: ParetoObjective, plan: Plan, archive: Archive, islands: Islands, offspring: Members, scratch: Scratch,
    p: int, first: int, end: int,
) -> None:  # fmt: skip
    """POSS on the island of processor p, iterations ``first`` to ``end`` - 1."""
    own = island(archive, islands, p)
    here = Plan(islands.keys[p], plan.d, plan.k, plan.largest, plan.rate, plan.by_minimum)
    for iteration in range(first, end):
        slot = choose_parent(here, own, iteration)
        if not propose(here, own, own.members, slot, offspring, scratch, p, iteration, 1):
            continue
        if assess(objective, own.members, slot, offspring, scratch, p):
            remove_dominated(own, offspring, p)
            # Not `insert`: rows of Gram matrices are computed by one thread at a time, and in an order that does not
            # depend on the threads, because entries of (i, j) and of (j, i) may round differently. The merge does it.
            copy_member(offspring, p, own.members, free_own_slot(islands, p))
            own.live[0] += 1


@njit
def merge(
    objective: ParetoObjective, plan: Plan, archive: Archive, islands: Islands, p: int, limits: FloatArray,
    record: FloatArray, evaluations: int,
) -> int:  # fmt: skip
    """Enter what processor p has found, unless it is dominated in the archive; how many members enter."""
    if islands.counts[p, USED] == 0:
        return 0
    own, members, entered = island(archive, islands, p), archive.members, 0
    for q in range(own.live[0]):
        slot = own.order[q]
        if slot < islands.readers.size or survey(archive, members, slot, limits):
            continue
        if members.values[slot] <= limits[NO_LARGER] and members.values[slot] < limits[SMALLER]:
            remove_dominated(archive, members, slot)
            free_slot(archive, islands)
            insert(objective, archive, members, slot)
            note(record, plan, members, slot, evaluations)
            entered += 1
    return entered


@njit
def adapt_batch(schedule: IntArray, entered: int) -> None:
    """Double the batch after a merge that changed nothing, halve it after one that let several members in.

    Between two merges an island does not know what the others find. Where about one member enters a merge, it
    misses next to nothing by that.
    """
    batch = schedule[BATCH]
    if entered == 0:
        batch *= 2
    elif entered > 1:
        batch //= 2
    schedule[BATCH] = min(max(batch, schedule[SMALLEST]), schedule[LARGEST])


@njit
def take_turns(
    objective: ParetoObjective, plan: Plan, archive: Archive, offspring: Members, scratch: Scratch, first: int,
    end: int, record: FloatArray,
) -> int:  # fmt: skip
    """POSS itself for offspring ``first`` to ``end`` - 1 of all processors; how many members enter."""
    entered = 0
    for number in range(first, end):
        slot = choose_parent(plan, archive, number)
        if not propose(plan, archive, archive.members, slot, offspring, scratch, 0, number, 1):
            continue
        if assess(objective, archive.members, slot, offspring, scratch, 0):
            remove_dominated(archive, offspring, 0)
            insert(objective, archive, offspring, 0)
            note(record, plan, offspring, 0, number + 1)
            entered += 1
    return entered


@njit
def run_islands(
    objective: ParetoObjective, plan: Plan, archive: Archive, islands: Islands, offspring: Members, scratch: Scratch,
    first: int, end: int, schedule: IntArray, record: FloatArray, cells: IntArray, member: int, team: int,
) -> int:  # fmt: skip
    """Iterations of every processor from ``first`` on, a batch of them between merges, by a team.

    Returns the next iteration: the first after a batch that is ``end`` or more, or earlier, see :data:`BATCH`.
    """
    processors, iteration = offspring.values.size, first
    while iteration < end:
        if member == 0:
            islands.counts[:, TAKEN] = 0
        meet(cells, team)
        if not schedule[RETURN_BELOW] <= schedule[BATCH] <= schedule[RETURN_ABOVE]:
            break
        last = min(schedule[END], iteration + schedule[BATCH])
        if schedule[BATCH] < schedule[SHARED]:
            meet(cells, team)
            if member == 0:
                turns = iteration * processors, last * processors
                entered = take_turns(objective, plan, archive, offspring, scratch, turns[0], turns[1], record)
                adapt_batch(schedule, entered)
            iteration = last
            continue
        for number in range(processors):
            # First those that it had in the last batch, which are in its core's caches, then what others have left.
            p = (member * processors // team + number) % processors
            if atomic_add(islands.counts[p], TAKEN, 1) > 0:
                continue
            start_island(archive, islands, p)
            evolve(objective, plan, archive, islands, offspring, scratch, p, iteration, last)
        meet(cells, team)
        if member == 0:
            entered = 0
            for p in range(processors):
                entered += merge(objective, plan, archive, islands, p, scratch.limits[p], record, last * processors)
            adapt_batch(schedule, entered)
        iteration = last
    return iteration


@njit
def work_on_island(
    objective: ParetoObjective, plan: Plan, archive: Archive, islands: Islands, offspring: Members, scratch: Scratch,
    p: int, counter: IntArray, end: int, schedule: IntArray, lock: IntArray, record: FloatArray,
) -> None:  # fmt: skip
    """A worker of asynchronous PPOSS with batches: it waits only for the lock under which islands are merged.

    The archive has so many slots that one is free beside those that all islands may read.
    """
    while True:
        first = atomic_add(counter, 0, schedule[BATCH])
        if first >= end:
            return
        last = min(end, first + schedule[BATCH])
        acquire(lock)
        start_island(archive, islands, p)
        count_readers(islands, p, 1)
        release(lock)
        evolve(objective, plan, archive, islands, offspring, scratch, p, first, last)
        acquire(lock)
        count_readers(islands, p, -1)
        entered = merge(objective, plan, archive, islands, p, scratch.limits[p], record, last)
        release(lock)
        adapt_batch(schedule, entered)
