"""Batches of PPOSS with quadratic loss in a parallel loop of numba: the other way to share them, to be timed."""

from __future__ import annotations

from typing import Any

import numpy as np

from exactsel._jit import njit, parallel_section, prange
from exactsel.types import FloatArray, IntArray
from exactsel_heuristics._gram_rows import GramRows
from exactsel_heuristics._pareto_archive import Archive
from exactsel_heuristics._pareto_kernels import Plan
from exactsel_heuristics._pareto_layout import Members, Scratch, new_members, new_scratch
from exactsel_heuristics._pareto_quadratic import QuadraticObjective
from exactsel_heuristics._pareto_search import Task, _archive, _plan
from exactsel_heuristics._pareto_teams import Islands, evolve, merge, new_islands, start_island
from exactsel_heuristics.base import Context


@njit(parallel=True)
def run_in_parallel_loop(
    left: FloatArray, right: FloatArray, rows: FloatArray, row_of: IntArray, used: IntArray, diagonal: FloatArray,
    sparse: Any, file: Any, b: FloatArray, constant: float, lam: float, plan: Plan, members: Members, order: IntArray,
    live: IntArray, islands: Islands, offspring: Members, scratch: Scratch, end: int, batch: int, record: FloatArray,
) -> None:  # fmt: skip
    """``run_islands`` with the same batch throughout."""
    processors, iteration = offspring.values.size, 0
    while iteration < end:
        last = min(end, iteration + batch)
        for p in prange(processors):
            # Put together here: numba hands threads no tuple that holds tuples.
            mine = QuadraticObjective(
                GramRows(left, right, rows, row_of, used, diagonal, sparse, file), b, constant, lam
            )
            shared = Archive(members, order, live)
            start_island(shared, islands, p)
            evolve(mine, plan, shared, islands, offspring, scratch, p, iteration, last)
        objective = QuadraticObjective(
            GramRows(left, right, rows, row_of, used, diagonal, sparse, file), b, constant, lam
        )
        archive = Archive(members, order, live)
        for p in range(processors):
            merge(objective, plan, archive, islands, p, scratch.limits[p], record, last * processors)
        iteration = last


def in_parallel_loop(
    task: Task, seed: int, iterations: int, processors: int, batch: int, threads: int
) -> list[tuple[tuple[int, ...], float]]:
    """The archive that PPOSS with this batch ends with."""
    plan = _plan(task, Context(seed=seed), "constant")
    archive = _archive(task, plan, processors, processors)
    islands = new_islands(processors, task.largest, archive.order.size, plan.key)
    offspring = new_members(processors, task.largest, task.rows)
    scratch = new_scratch(processors, task.largest, task.rows)
    record = np.zeros((iterations * processors + 1, 2))
    record[0, 0] = np.inf
    ours = task.objective
    with parallel_section(threads):
        run_in_parallel_loop(
            *ours.gram, ours.b, ours.constant, ours.lam, plan, archive.members, archive.order, archive.live, islands,
            offspring, scratch, iterations, batch, record,
        )  # fmt: skip
    supports = archive.members.supports
    return [
        (tuple(supports[slot, 2 : 2 + supports[slot, 0]].tolist()), float(archive.members.values[slot]))
        for slot in archive.order[: archive.live[0]]
    ]
