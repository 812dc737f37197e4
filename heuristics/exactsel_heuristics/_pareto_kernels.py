"""The compiled loops of Pareto optimisation: POSS and synchronous PPOSS in one, asynchronous PPOSS in another.

What several threads do together is in :mod:`exactsel_heuristics._pareto_teams`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactsel._jit import atomic_add, atomic_swap, njit, yield_thread
from exactsel.types import BoolArray, FloatArray, IntArray
from exactsel_heuristics._pareto_archive import (
    Archive,
    copy_member,
    insert,
    keep_undominated,
    remove_dominated,
    survey,
)
from exactsel_heuristics._pareto_layout import (
    ADDS,
    COLUMNS,
    COUNTS,
    DROPS,
    FIRST,
    GROUP,
    NO_LARGER,
    SIZE,
    SMALLER,
    Members,
    Scratch,
)
from exactsel_heuristics._pareto_objective import ParetoObjective, flipped_value, settled_value
from exactsel_heuristics._pareto_random import plan_flips, uniform


class Plan(NamedTuple):
    """What stays the same during a run: ``rate`` as in ``next_flip``, ``largest`` size of a support."""

    key: int
    d: int
    k: int
    largest: int
    rate: float
    by_minimum: bool


BEST, EVALUATIONS = 0, 1


@njit
def note(record: FloatArray, plan: Plan, offspring: Members, p: int, evaluations: int) -> None:
    """Enter a new member of the archive in the anytime curve, if it is the best feasible one.

    Row 0 of ``record`` (room + 1, 2) holds the best feasible value and the number of improvements so far, the rows
    after it each improvement: its value, and the number of evaluations it took.
    """
    if offspring.supports[p, SIZE] <= plan.k and offspring.values[p] < record[0, BEST]:
        record[0, BEST] = offspring.values[p]
        number = int(record[0, EVALUATIONS]) + 1
        # There is a row for every evaluation of a piece, but asynchronous workers may repeat a few.
        if number < record.shape[0]:
            record[0, EVALUATIONS] = float(number)
            record[number, BEST], record[number, EVALUATIONS] = offspring.values[p], float(evaluations)


@njit(inline=True)
def propose(
    plan: Plan, archive: Archive, source: Members, slot: int, offspring: Members, scratch: Scratch, p: int,
    iteration: int, stream: int,
) -> bool:  # fmt: skip
    """Flip the columns of a parent; True when the offspring is worth evaluating.

    It is not when it is empty, too large, or in the archive already.
    """
    m, flips, target = source.supports[slot, SIZE], scratch.flips[p], offspring.supports[p]
    support = source.supports[slot, FIRST : FIRST + m]
    drops, adds = plan_flips(plan.key, iteration, stream, plan.d, plan.rate, support, flips[DROPS], flips[ADDS])
    size = m - drops + adds
    if size == 0 or size > plan.largest or drops + adds == 0:
        return False
    flips[COUNTS, DROPS], flips[COUNTS, ADDS] = drops, adds
    filled, dropped, added = FIRST, 0, 0
    for place in range(m + 1):
        while added < adds and (place == m or flips[ADDS, added] < support[place]):
            target[filled] = flips[ADDS, added]
            filled, added = filled + 1, added + 1
        if place == m:
            break
        if dropped < drops and flips[DROPS, dropped] == place:
            dropped += 1
        else:
            target[filled] = support[place]
            filled += 1
    target[SIZE] = size
    target[GROUP] = target[FIRST] if plan.by_minimum else 0
    return not survey(archive, offspring, p, scratch.limits[p])


@njit(inline=True)
def assess(
    objective: ParetoObjective, source: Members, slot: int, offspring: Members, scratch: Scratch, p: int
) -> bool:
    """Evaluate a proposal; unless it is dominated, compute its factor, write its value, and return True."""
    no_larger, smaller = scratch.limits[p, NO_LARGER], scratch.limits[p, SMALLER]
    value = flipped_value(objective, source, slot, scratch, p, no_larger)
    # An infinite value is worse than nothing: such supports never enter.
    if value <= no_larger and value < smaller:
        value = settled_value(objective, offspring, p, scratch, p)
        if value <= no_larger and value < smaller:
            # Written for few offspring only: values of different processors share cache lines.
            offspring.values[p] = value
            return True
    return False


@njit
def create_some(
    objective: ParetoObjective, plan: Plan, archive: Archive, slot: int, offspring: Members, scratch: Scratch,
    iteration: int, ticket: IntArray, stop: BoolArray,
) -> None:  # fmt: skip
    """A thread's share of an iteration's offspring, one per processor: those whose number it draws from ``ticket``.

    Their values are infinite before. Once ``stop`` is set the rest of them is not made.
    """
    while not stop[0]:
        p = atomic_add(ticket, 0, 1)
        if p >= offspring.values.size:
            return
        if propose(plan, archive, archive.members, slot, offspring, scratch, p, iteration, p + 1):
            assess(objective, archive.members, slot, offspring, scratch, p)


@njit(inline=True)
def choose_parent(plan: Plan, archive: Archive, iteration: int) -> int:
    """The slot of a random member."""
    return int(archive.order[int(uniform(plan.key, iteration, 0, 0) * archive.live[0])])


@njit
def update(
    objective: ParetoObjective,
    plan: Plan,
    archive: Archive,
    offspring: Members,
    kept: IntArray,
    iteration: int,
    record: FloatArray,
) -> None:
    """The accelerated archive update of PPOSS (section 3.4).

    Each processor has compared its offspring with the archive already. What is left is to reduce those that passed
    to their largest undominated subset, and to remove the members it dominates.
    """
    processors = offspring.values.size
    count = keep_undominated(offspring, kept, processors)
    for number in range(count):
        remove_dominated(archive, offspring, kept[number])
    for number in range(count):
        insert(objective, archive, offspring, kept[number])
        note(record, plan, offspring, kept[number], iteration * processors + kept[number] + 1)


@njit
def enter_given(
    objective: ParetoObjective, plan: Plan, archive: Archive, offspring: Members, scratch: Scratch, given: IntArray,
    record: FloatArray,
) -> None:  # fmt: skip
    """Enter the supports in the rows of ``given`` (r, w), ascending and padded with -1, unless they are dominated."""
    limits = scratch.limits[0]
    for row in range(given.shape[0]):
        size = 0
        while size < given.shape[1] and given[row, size] >= 0:
            offspring.supports[0, FIRST + size] = given[row, size]
            size += 1
        if size == 0 or size > plan.largest or archive.live[0] >= archive.order.size:
            continue
        offspring.supports[0, SIZE] = size
        offspring.supports[0, GROUP] = given[row, 0] if plan.by_minimum else 0
        if survey(archive, offspring, 0, limits):
            continue
        # Newton begins at zero: there is no parent whose fit it could begin at.
        scratch.flips[0, COLUMNS] = -1
        offspring.factors[0] = 0.0
        offspring.rows[0] = 0.0
        value = settled_value(objective, offspring, 0, scratch, 0)
        if value <= limits[NO_LARGER] and value < limits[SMALLER]:
            offspring.values[0] = value
            remove_dominated(archive, offspring, 0)
            insert(objective, archive, offspring, 0)
            note(record, plan, offspring, 0, row + 1)


@njit
def run_serial(
    objective: ParetoObjective, plan: Plan, archive: Archive, offspring: Members, scratch: Scratch, kept: IntArray,
    first: int, end: int, record: FloatArray, stop: BoolArray,
) -> int:  # fmt: skip
    """Iterations ``first`` to ``end`` - 1 on one thread; returns the next one, earlier when the archive is full."""
    ticket = np.zeros(1, dtype=np.int64)
    for iteration in range(first, end):
        if archive.live[0] + offspring.values.size > archive.order.size:
            return iteration
        slot = choose_parent(plan, archive, iteration)
        ticket[0] = 0
        offspring.values[:] = np.inf
        create_some(objective, plan, archive, slot, offspring, scratch, iteration, ticket, stop)
        update(objective, plan, archive, offspring, kept, iteration, record)
    return end


@njit
def run_alone(
    objective: ParetoObjective, plan: Plan, archive: Archive, offspring: Members, scratch: Scratch, first: int,
    end: int, record: FloatArray, stop: BoolArray,
) -> int:  # fmt: skip
    """``run_serial`` with one processor, POSS, without what only several need; the same result.

    Ends early where ``stop`` is set.
    """
    for iteration in range(first, end):
        if stop[0] or archive.live[0] >= archive.order.size:
            return iteration
        slot = choose_parent(plan, archive, iteration)
        if not propose(plan, archive, archive.members, slot, offspring, scratch, 0, iteration, 1):
            continue
        if assess(objective, archive.members, slot, offspring, scratch, 0):
            remove_dominated(archive, offspring, 0)
            insert(objective, archive, offspring, 0)
            note(record, plan, offspring, 0, iteration + 1)
    return end


@njit
def acquire(lock: IntArray) -> None:
    """Wait for the lock; others may run meanwhile, for there may be more threads than cores."""
    spins = 0
    while atomic_swap(lock, 0, 1) != 0:
        spins += 1
        if spins > 100:
            yield_thread()


@njit
def release(lock: IntArray) -> None:
    """Let others have the lock."""
    atomic_swap(lock, 0, 0)


@njit
def work_alone(
    objective: ParetoObjective, plan: Plan, archive: Archive, parents: Members, offspring: Members, scratch: Scratch,
    p: int, counter: IntArray, end: int, lock: IntArray, record: FloatArray,
) -> None:  # fmt: skip
    """A worker of asynchronous PPOSS: iterations until the shared counter reaches ``end`` or the archive is full.

    The archive is read and changed under the lock only, the offspring is evaluated outside it.
    """
    while True:
        iteration = atomic_add(counter, 0, 1)
        if iteration >= end:
            return
        acquire(lock)
        if archive.live[0] >= archive.order.size:
            release(lock)
            atomic_add(counter, 0, -1)
            return
        copy_member(archive.members, choose_parent(plan, archive, iteration), parents, p)
        proposed = propose(plan, archive, parents, p, offspring, scratch, p, iteration, 1)
        release(lock)
        if not proposed:
            continue
        if not assess(objective, parents, p, offspring, scratch, p):
            continue
        acquire(lock)
        limits = scratch.limits[p]
        known = survey(archive, offspring, p, limits)
        if not known and offspring.values[p] <= limits[NO_LARGER] and offspring.values[p] < limits[SMALLER]:
            remove_dominated(archive, offspring, p)
            # Others may have filled the archive meanwhile; it is enlarged before the next piece.
            if archive.live[0] < archive.order.size:
                insert(objective, archive, offspring, p)
                note(record, plan, offspring, p, iteration + 1)
        release(lock)
