"""Run the compiled loops of Pareto optimisation in pieces, between which the caller may stop them."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from exactsel._jit import available_threads, loss_session
from exactsel.errors import InputError
from exactsel.types import FloatArray, IntArray
from exactsel_heuristics._pareto_archive import Archive, enlarged, new_archive
from exactsel_heuristics._pareto_kernels import (
    BEST,
    EVALUATIONS,
    Plan,
    choose_parent,
    create_some,
    run_serial,
    update,
    work_alone,
)
from exactsel_heuristics._pareto_layout import FIRST, SIZE, Members, Scratch, new_members, new_scratch
from exactsel_heuristics._pareto_random import skipping_rate
from exactsel_heuristics.base import Context, Proposal

ISOLATIONS = ("constant", "minimum-index")

SHARED_WORK = 2e6
"""Rough number of operations in an iteration (about a millisecond) from which on it pays to wake threads for it."""

PIECE_WORK = 2e8
"""Rough number of operations between two questions whether to stop (about a tenth of a second)."""


@dataclass(frozen=True)
class Task:
    """What is optimised: ``objective`` over supports of at most k of d columns.

    ``empty_rows`` (3, n) are the rows of the empty support (n = 0 where the objective keeps none), ``work`` the rough
    number of operations one evaluation costs, and ``loss`` the loss of the problem.
    """

    objective: Any
    loss: Any
    d: int
    k: int
    empty_rows: FloatArray
    work: float

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

    @property
    def proposal(self) -> Proposal:
        """The answer of a heuristic."""
        return Proposal.of(self.support, self.evaluations, curve=self.curve)


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


def default_iterations(d: int, k: int, processors: int = 1) -> int:
    """floor(2 e k^2 d / processors): what the theorems of the papers ask for."""
    return int(2.0 * math.e * k * k * d / processors)


def key_of(context: Context) -> int:
    """The key of all random choices of a run."""
    return int(context.rng().integers(2**63))


def _plan(task: Task, context: Context, isolation: str) -> Plan:
    return Plan(key_of(context), task.d, task.k, task.largest, skipping_rate(task.d), isolation == "minimum-index")


def _archive(task: Task, plan: Plan, spare: int) -> Archive:
    # One member per size under a constant isolation function; with more groups the archive grows on the way.
    group = task.d if plan.by_minimum else 0
    archive = new_archive(task.largest + 1 + spare, task.largest, task.rows, group)
    archive.members.rows[0] = task.empty_rows
    return archive


def run_synchronously(
    task: Task, context: Context, *, iterations: int | None = None, processors: int = 1, threads: int | None = 1,
    isolation: str = "constant",
) -> Outcome:  # fmt: skip
    """POSS (one processor) and PPOSS: each iteration makes ``processors`` offspring of one parent.

    Parameters
    ----------
    task : Task
    context : Context
        Asked whether to stop before each piece of the run.
    iterations : int, optional
        :func:`default_iterations` when None.
    processors, threads : int
        The answer depends on ``processors`` alone; None is all threads there are. Threads share the work of an
        iteration only where there is enough of it.
    isolation : str
        One of :data:`ISOLATIONS`.
    """
    if task.k == 0:
        return Outcome()
    end = default_iterations(task.d, task.k, processors) if iterations is None else iterations
    plan = _plan(task, context, isolation)
    archive, curve = _archive(task, plan, processors), Curve()
    offspring = new_members(processors, task.largest, task.rows)
    scratch, kept = new_scratch(processors, task.largest, task.rows), np.zeros(processors, np.int64)
    team = available_threads() if threads is None else threads
    shared = team > 1 and processors > 1 and processors * task.work >= SHARED_WORK
    piece = int(np.clip(PIECE_WORK / (task.work * processors), 1, max(1, 16384 // processors)))
    iteration = 0
    while iteration < end and not context.should_stop():
        stop, record = min(end, iteration + piece), curve.record(piece * processors)
        with loss_session(task.loss), ThreadPoolExecutor(team) as pool:
            while iteration < stop:
                arguments = (task.objective, plan, archive, offspring, scratch, kept, iteration, stop, record)
                iteration = _run_shared(pool, team, *arguments) if shared else run_serial(*arguments)
                if iteration < stop:
                    archive = enlarged(archive)
        curve.extend(record)
    return _outcome(archive, task.k, iteration * processors, curve)


def _run_shared(
    pool: ThreadPoolExecutor, team: int, objective: Any, plan: Plan, archive: Archive, offspring: Members,
    scratch: Scratch, kept: IntArray, first: int, end: int, record: FloatArray,
) -> int:  # fmt: skip
    """``run_serial`` with the offspring of an iteration shared among the threads; the same result."""
    for iteration in range(first, end):
        if archive.live[0] + offspring.values.size > archive.order.size:
            return iteration
        slot, ticket = choose_parent(plan, archive, iteration), np.zeros(1, np.int64)
        arguments = (objective, plan, archive, slot, offspring, scratch, iteration, ticket)
        jobs = [pool.submit(create_some, *arguments) for _ in range(team - 1)]
        create_some(*arguments)
        for job in jobs:
            job.result()
        update(objective, plan, archive, offspring, kept, iteration, record)
    return end


def run_without_waiting(
    task: Task, context: Context, *, iterations: int | None = None, threads: int | None = None,
    isolation: str = "constant",
) -> Outcome:  # fmt: skip
    """Asynchronous PPOSS: ``threads`` workers (None: one per core) share an archive and an iteration counter."""
    if task.k == 0:
        return Outcome()
    end = default_iterations(task.d, task.k) if iterations is None else iterations
    plan = _plan(task, context, isolation)
    workers = available_threads() if threads is None else threads
    archive, curve = _archive(task, plan, workers), Curve()
    parents, offspring = (new_members(workers, task.largest, task.rows) for _ in range(2))
    scratch = new_scratch(workers, task.largest, task.rows)
    # Apart, so that changing one does not take the other out of the other cores' caches.
    counter, lock = np.zeros(64, np.int64), np.zeros(64, np.int64)
    piece = int(np.clip(workers * PIECE_WORK / task.work, workers, 16384))
    while counter[0] < end and not context.should_stop():
        stop, record = min(end, int(counter[0]) + piece), curve.record(piece)
        with loss_session(task.loss), ThreadPoolExecutor(workers) as pool:
            while counter[0] < stop:
                worker = partial(work_alone, task.objective, plan, archive, parents, offspring, scratch)
                jobs = [pool.submit(worker, p, counter, stop, lock, record) for p in range(workers)]
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
