"""Run the compiled loops of Pareto optimisation in pieces, between which the caller may stop them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from exactsel._jit import available_threads, working_threads
from exactsel.errors import InputError
from exactsel.types import FloatArray, IntArray
from exactsel_heuristics._pareto_archive import Archive, enlarged, new_archive
from exactsel_heuristics._pareto_kernels import (
    BEST,
    EVALUATIONS,
    Plan,
    enter_given,
    run_alone,
    run_serial,
    work_alone,
)
from exactsel_heuristics._pareto_layout import FIRST, SIZE, Members, Scratch, new_members, new_scratch
from exactsel_heuristics._pareto_objective import ParetoObjective
from exactsel_heuristics._pareto_random import skipping_rate
from exactsel_heuristics._pareto_teams import (
    BATCH,
    NO_LIMIT,
    RETURN_ABOVE,
    RETURN_BELOW,
    new_islands,
    new_schedule,
    own_slots,
    run_islands,
    run_team,
    work_on_island,
)
from exactsel_heuristics._pareto_threads import CELLS, stop_flag, together
from exactsel_heuristics.base import Context, Proposal

if TYPE_CHECKING:
    from exactsel.losses.base import Loss
    from exactsel.losses.quadratic import Quadratic

Supports = Sequence[tuple[int, ...]]

ISOLATIONS = ("constant", "minimum-index")

SHARED_WORK = 5e4
"""Rough number of operations between merges (some 30 microseconds) from which on it pays that threads share them."""

TURNS_WORK = 5e4
"""Rough number of operations of a batch of all processors below which they take turns, as POSS does."""

BATCH_WORK = 1e6
"""Rough number of operations of a processor's largest batch, where no batch size is given."""

ISLAND_BYTES = 2**28
"""Most memory for what the processors find."""

TOO_SMALL = 8
"""Threads that share batches part again once a batch has an eighth of the work from which on they share it."""

MOST_ISLAND_BYTES, LONGEST_BATCH = 2**32, 2e9
"""The same where a batch size is given, and the rough number of operations of all processors between merges then."""

PIECE_WORK = 2e8
"""Rough number of operations of a thread between two questions whether to stop (about a tenth of a second)."""

MOST_RECORDED = 1 << 17
"""Offspring between two such questions: each may be an improvement to be recorded."""


@dataclass(frozen=True)
class Task:
    """What is optimised: ``objective`` over supports of at most k of d columns.

    ``empty_rows`` (3, n) are the rows of the empty support (n = 0 where the objective keeps none), ``work`` the rough
    number of operations one evaluation costs, ``reading`` what it takes besides where columns stay in a file, on which
    nothing but questions whether to stop depends, ``steps`` how many times ``work`` it takes in a portion of work, and
    ``loss`` the loss of the problem.
    """

    objective: ParetoObjective
    loss: Loss | Quadratic
    d: int
    k: int
    empty_rows: FloatArray
    work: float
    reading: float = 0.0
    steps: float = 1.0

    @property
    def rows(self) -> int:
        """How many entries the vectors have that a member keeps."""
        return int(self.empty_rows.shape[1])

    @property
    def largest(self) -> int:
        """Supports of 2k and more columns are worthless."""
        return min(2 * self.k - 1, self.d)


@dataclass(frozen=True)
class Outcome:
    """The best feasible support and its value (inf for the empty one), what it took, and the final archive."""

    support: tuple[int, ...] = ()
    value: float = math.inf
    evaluations: int = 0
    curve: tuple[tuple[int, float], ...] = ()
    archive: tuple[tuple[tuple[int, ...], float], ...] = ()

    def proposal(self, k: int) -> Proposal:
        """The answer of a heuristic that may choose k columns; ``others`` is the rest of the archive that may be."""
        others = [support for support, _ in self.archive if 0 < len(support) <= k and support != self.support]
        return Proposal.of(self.support, self.evaluations, curve=self.curve, others=others)


@dataclass
class Curve:
    """The anytime curve, put together piece by piece."""

    best: float = math.inf
    points: list[tuple[int, float]] = field(default_factory=list)

    def record(self, room: int) -> FloatArray:
        """An empty record for the next piece, see :func:`~exactsel_heuristics._pareto_kernels.note`."""
        record = np.zeros((room + 1, 2))
        record[0, BEST] = self.best
        return record

    def extend(self, record: FloatArray) -> None:
        """Take over what a piece recorded; asynchronous workers may report late, so counts are made ascending."""
        self.best = float(record[0, BEST])
        for row in record[1 : 1 + int(record[0, EVALUATIONS])]:
            last = self.points[-1][0] if self.points else 0
            self.points.append((max(last, int(row[EVALUATIONS])), float(row[BEST])))


def check_options(method: str, iterations: int | None, **at_least_one: int | None) -> None:
    """Refuse numbers that make no sense; None is always allowed."""
    for name, value in {"iterations": iterations, **at_least_one}.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1):
            raise InputError(f"{name} of the method '{method}' is {value!r}, but it must be a whole number, 1 or more.")


def check_isolation(isolation: str) -> None:
    """Refuse unknown isolation functions."""
    if isolation not in ISOLATIONS:
        raise InputError(
            f"the isolation function is '{isolation}', but it must be one of {', '.join(ISOLATIONS)}; for one of your "
            "own use exactsel_heuristics.set_function.minimise."
        )


def check_batch(method: str, batch: int | None, isolation: str) -> None:
    """Refuse batches where supports are compared within groups only: islands have one place for each size."""
    if batch is not None and batch > 1 and isolation != "constant":
        raise InputError(
            f"batch of the method '{method}' is {batch}, but with the isolation function '{isolation}' every offspring "
            f"is merged at once; leave batch out."
        )


def default_iterations(d: int, k: int, processors: int = 1) -> int:
    """floor(2 e k^2 d / processors), the number in the theorems of the papers."""
    return int(2.0 * math.e * k * k * d / processors)


def key_of(context: Context) -> int:
    """The key of all random choices of a run."""
    return int(context.rng().integers(2**63))


def _plan(task: Task, context: Context, isolation: str) -> Plan:
    return Plan(key_of(context), task.d, task.k, task.largest, skipping_rate(task.d), isolation == "minimum-index")


def _archive(task: Task, plan: Plan, spare: int, islands: int = 0) -> Archive:
    # One member per size under a constant isolation function; with more groups the archive grows on the way.
    group = task.d if plan.by_minimum else 0
    more = own_slots(islands, task.largest)
    archive = new_archive(task.largest + 1 + spare, task.largest, task.rows, group, more)
    archive.members.rows[0] = task.empty_rows
    return archive


def run_synchronously(
    task: Task, context: Context, *, iterations: int | None = None, processors: int = 1, threads: int | None = 1,
    isolation: str = "constant", supports: Sequence[tuple[int, ...]] = (), batch: int | None = 1,
) -> Outcome:  # fmt: skip
    """POSS (one processor) and PPOSS: each iteration makes ``processors`` offspring of one parent.

    Parameters
    ----------
    task : Task
    context : Context
        Called before each piece of the run, to decide whether to stop.
    iterations : int, optional
        Offspring of each processor; :func:`default_iterations` when None.
    processors, threads : int
        The answer depends on ``processors`` alone; None is all threads there are. Threads share the work of an
        iteration only where there is enough of it.
    isolation : str
        One of :data:`ISOLATIONS`.
    supports : sequence of tuple of int
        Supports the archive begins with, besides the empty one; each counts as an evaluation.
    batch : int, optional
        Offspring of each processor between merges of what they found; 1 is the paper's algorithm. None: one at first,
        and up to :func:`largest_batch` as fewer of them enter the archive.
    """
    if task.k == 0:
        return Outcome()
    end = default_iterations(task.d, task.k, processors) if iterations is None else iterations
    plan = _plan(task, context, isolation)
    offspring = new_members(processors, task.largest, task.rows)
    scratch, survivors = new_scratch(processors, task.largest, task.rows), np.zeros(processors, np.int64)
    largest = largest_batch(task, processors, isolation) if batch is None else _affordable(task, processors, batch)
    between = processors * task.work * largest
    team = min(processors, available_threads() if threads is None else threads) if between >= SHARED_WORK else 1
    team = working_threads(team)
    archive, curve = _archive(task, plan, processors, processors if largest > 1 else 0), Curve()
    entered = _enter(task, plan, archive, offspring, scratch, supports, context, curve)
    islands = new_islands(processors, task.largest, archive.order.size, plan.key) if largest > 1 else None
    schedule = _schedule(task, processors, batch, largest, end)
    piece = _piece(task, team, processors * largest) * largest
    iteration = 0
    while iteration < end and not context.should_stop():
        stop_at, record = min(end, iteration + piece), curve.record((piece + largest) * processors)
        with stop_flag(context, math.inf if task.reading else between) as stop:
            while iteration < stop_at and not stop[0]:
                arguments: tuple[Any, ...] = (task.objective, plan, archive)
                if islands is not None:
                    run = partial(run_islands, *arguments, islands, offspring, scratch)
                    iteration = _batches(run, team, iteration, stop_at, schedule, record, _shared(task, processors))
                    continue
                if team > 1:
                    run = partial(run_team, *arguments, offspring, scratch, survivors)
                    iteration = together(run, team, iteration, stop_at, record, stop)
                elif processors == 1:
                    iteration = run_alone(*arguments, offspring, scratch, iteration, stop_at, record, stop)
                else:
                    iteration = run_serial(*arguments, offspring, scratch, survivors, iteration, stop_at, record, stop)
                if iteration < stop_at:
                    archive = enlarged(archive)
        curve.extend(record)
    return _outcome(archive, task.k, entered + iteration * processors, curve)


def _piece(task: Task, team: int, offspring: int) -> int:
    """Batches of so many offspring in all between two questions whether to stop."""
    pieces = PIECE_WORK * team / (offspring * (task.work + task.reading))
    return int(np.clip(pieces, 1, max(1, MOST_RECORDED // offspring)))


def _schedule(task: Task, processors: int, batch: int | None, largest: int, end: int) -> IntArray:
    """Batches that grow from one offspring, or that keep the requested size."""
    if batch is not None:
        return new_schedule(largest, largest, 0, end)
    return new_schedule(1, largest, _shared(task, processors, TURNS_WORK), end)


def _shared(task: Task, processors: int, work: float | None = None) -> int:
    """The smallest batch of which all processors have this much work, as much as threads share unless it is given."""
    return math.ceil((SHARED_WORK if work is None else work) / (processors * task.work))


def _batches(
    run: Callable[..., int], team: int, first: int, stop_at: int, schedule: IntArray, record: FloatArray, shared: int
) -> int:
    """Batches on one thread while they are short, on the team from ``shared`` offspring of a processor on."""
    together_now = team > 1 and schedule[BATCH] >= shared
    schedule[RETURN_BELOW] = shared // TOO_SMALL if together_now else 0
    schedule[RETURN_ABOVE] = NO_LIMIT if together_now or team == 1 else shared - 1
    if together_now:
        return together(run, team, first, stop_at, schedule, record)
    return run(first, stop_at, schedule, record, np.zeros(CELLS, np.int64), 0, 1)


def largest_batch(task: Task, processors: int, isolation: str = "constant") -> int:
    """Most offspring of each processor between merges: one, unless evaluations are short beside a merge.

    A caller that requests a stop must not wait for more than a piece either, and the results of the processors must fit
    in memory.
    """
    if processors == 1 or isolation != "constant" or _held(task, processors) > ISLAND_BYTES:
        return 1
    return max(1, int(min(BATCH_WORK, PIECE_WORK / processors) / task.work))


def _held(task: Task, processors: int) -> int:
    """Bytes of the members that processors find, and as many of the archive that asynchronous ones still read."""
    w = task.largest
    return 16 * processors * (w + 2) * (w * (w + 1) + 3 * task.rows)


def _affordable(task: Task, processors: int, batch: int) -> int:
    """The requested batch, or as much of it as is made between two reads of the stop flag.

    Raises
    ------
    InputError
        Where what batches find would take too much memory.
    """
    if batch > 1 and _held(task, processors) > MOST_ISLAND_BYTES:
        raise InputError(
            f"with {processors} processors and supports of up to {task.largest} features what batches "
            f"find would take {_held(task, processors) / 2**30:.0f} GiB; give fewer processors, or "
            f"batch=1."
        )
    return min(batch, max(1, int(LONGEST_BATCH / (task.work * processors))))


def _enter(
    task: Task, plan: Plan, archive: Archive, offspring: Members, scratch: Scratch,
    supports: Sequence[tuple[int, ...]], context: Context, curve: Curve,
) -> int:  # fmt: skip
    """Let the archive begin with some supports; how many there are."""
    starts = [support for support in map(sorted, supports) if len(support) <= task.largest]
    if not starts or context.should_stop():
        return 0
    rows, record = np.full((len(starts), task.largest), -1, dtype=np.int64), curve.record(len(starts))
    for row, support in zip(rows, starts, strict=True):
        row[: len(support)] = support
    enter_given(task.objective, plan, archive, offspring, scratch, rows, record)
    curve.extend(record)
    return len(starts)


def run_without_waiting(
    task: Task, context: Context, *, iterations: int | None = None, threads: int | None = None,
    isolation: str = "constant", batch: int | None = None,
) -> Outcome:  # fmt: skip
    """Asynchronous PPOSS: ``threads`` workers (None: one per core) share an archive and an iteration counter.

    Each makes a batch of offspring before it merges what it found, see :func:`run_synchronously`; with one, and by
    default where evaluations take long, it copies its parent only. One worker is POSS.
    """
    if task.k == 0:
        return Outcome()
    end = default_iterations(task.d, task.k) if iterations is None else iterations
    plan = _plan(task, context, isolation)
    # Plain Python has no atomic operations.
    workers = working_threads(available_threads() if threads is None else threads)
    if workers == 1 and batch in (None, 1):
        return run_synchronously(task, context, iterations=end, isolation=isolation)
    largest = largest_batch(task, workers, isolation) if batch is None else _affordable(task, workers, batch)
    # Every island may read other members, and each needs a free slot.
    spare, islanders = (workers, 0) if largest == 1 else (1 + workers * (task.largest + 1), workers)
    archive, curve = _archive(task, plan, spare, islanders), Curve()
    parents, offspring = (new_members(workers, task.largest, task.rows) for _ in range(2))
    islands = new_islands(workers, task.largest, archive.order.size, plan.key) if largest > 1 else None
    # With less to do a worker would often wait for the lock.
    smallest = max(1, int(SHARED_WORK / task.work)) if batch is None else largest
    schedules = [new_schedule(min(smallest, largest), largest, 0, end) for _ in range(workers)]
    scratch = new_scratch(workers, task.largest, task.rows)
    # Apart, so that changing one does not take the other out of the other cores' caches.
    counter, lock = np.zeros(64, np.int64), np.zeros(64, np.int64)
    piece = int(np.clip(workers * PIECE_WORK / (task.work + task.reading), workers, MOST_RECORDED))
    room = piece + workers * largest
    while counter[0] < end and not context.should_stop():
        stop, record = min(end, int(counter[0]) + piece), curve.record(room)
        with ThreadPoolExecutor(workers) as pool:
            while counter[0] < stop:
                if islands is None:
                    worker = partial(work_alone, task.objective, plan, archive, parents, offspring, scratch)
                    jobs = [pool.submit(worker, p, counter, stop, lock, record) for p in range(workers)]
                else:
                    worker = partial(work_on_island, task.objective, plan, archive, islands, offspring, scratch)
                    jobs = [pool.submit(worker, p, counter, stop, schedules[p], lock, record) for p in range(workers)]
                for job in jobs:
                    job.result()
                counter[0] = min(counter[0], stop)
                if archive.live[0] >= archive.order.size:
                    archive = enlarged(archive)
        curve.extend(record)
    return _outcome(archive, task.k, int(counter[0]), curve)


def _outcome(archive: Archive, k: int, evaluations: int, curve: Curve) -> Outcome:
    members = archive.members
    live: list[tuple[tuple[int, ...], float]] = []
    for slot in archive.order[: archive.live[0]]:
        row = members.supports[slot]
        live.append((tuple(row[FIRST : FIRST + row[SIZE]].tolist()), float(members.values[slot])))
    support, value = best_feasible(live, k)
    return Outcome(support, value, evaluations, tuple(curve.points), tuple(live))


def best_feasible(archive: list[tuple[tuple[int, ...], float]], k: int) -> tuple[tuple[int, ...], float]:
    """The member of smallest value among those of at most k columns, the oldest of several."""
    return min((member for member in archive if len(member[0]) <= k), key=lambda member: member[1])
