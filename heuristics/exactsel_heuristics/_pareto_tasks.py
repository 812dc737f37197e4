"""From a problem to what the kernels of Pareto optimisation need of it, and portions of work: how long, from where."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from exactsel.losses.quadratic import Quadratic
from exactsel.problem.boxed_fit import in_closed_form
from exactsel.problem.capabilities import CLOSED_FORM, QUADRATIC_LOSS
from exactsel.problem.mapped_columns import MappedColumns
from exactsel_heuristics._pareto_boxed import boxed_loss_objective, boxed_quadratic_objective, boxed_rows_objective
from exactsel_heuristics._pareto_css import column_subset_objective
from exactsel_heuristics._pareto_loss import empty_rows, loss_objective
from exactsel_heuristics._pareto_quadratic import quadratic_objective
from exactsel_heuristics._pareto_search import Supports, Task, default_iterations
from exactsel_heuristics.base import Context

if TYPE_CHECKING:
    from exactsel.problem.column_subset import ColumnSubsetProblem
    from exactsel.problem.regression import Problem

OVERHEAD = 300.0
"""Rough number of operations of an iteration besides evaluation."""

ROW_WORK = 60.0
"""Rough number of operations that a loss takes at one row, with its derivative."""

ENTRY_OF_FILE = 10.0
"""Rough number of operations as long as reading an entry of a column from a table in its file takes, row by row."""

NEWTON_STEPS = 5.0
"""Of a fit within limits that does not begin at another one."""

LOSS_STEPS = 4.0
"""Times what is said of an evaluation under another loss that one takes, on many instances: chord and Newton steps."""

ENTERING = 0.5
"""Most of a portion's work that goes into the supports its archive begins with."""

LARGER = 8
"""Sizes above k of which the archive of a portion begins with a support, of each relaxation."""

NO_ROWS = np.zeros((3, 0))


def regression_task(problem: Problem) -> Task:
    """The minimal P of a support, in Gram form for quadratic loss and from the data for others."""
    if problem.coefficient_bounds is not None:
        return _task_within_limits(problem)
    return _task_of_free_coefficients(problem)


def _task_of_free_coefficients(problem: Problem) -> Task:
    width = max(1, min(2 * problem.k - 1, problem.d))
    if problem.has(CLOSED_FORM):
        work = OVERHEAD + 4.0 * width**2
        reading = ENTRY_OF_FILE * width * problem.n if isinstance(problem.AT, MappedColumns) else 0.0
        return Task(quadratic_objective(problem), problem.loss, problem.d, problem.k, NO_ROWS, work, reading)
    work = OVERHEAD + problem.n * (ROW_WORK + 4.0 * width)
    rows = empty_rows(problem)
    return Task(loss_objective(problem), problem.loss, problem.d, problem.k, rows, work, steps=LOSS_STEPS)


def _task_within_limits(problem: Problem) -> Task:
    width, loss = max(1, min(2 * problem.k - 1, problem.d)), problem.objective.loss
    if in_closed_form(problem.objective):
        work = OVERHEAD + 2.0 * width**3
        return Task(boxed_quadratic_objective(problem), loss, problem.d, problem.k, NO_ROWS, work)
    if problem.has(QUADRATIC_LOSS):
        # Of sparse columns entries are made one by one; others wait for rows of members.
        work = OVERHEAD + 2.0 * width**3
        reading = ENTRY_OF_FILE * width * problem.n if isinstance(problem.AT, MappedColumns) else 0.0
        return Task(boxed_rows_objective(problem), loss, problem.d, problem.k, NO_ROWS, work, reading)
    work = OVERHEAD + NEWTON_STEPS * problem.n * (ROW_WORK + float(width) ** 2)
    return Task(boxed_loss_objective(problem), loss, problem.d, problem.k, NO_ROWS, work)


def column_subset_task(problem: ColumnSubsetProblem) -> Task:
    """The part of the matrix that a selection leaves unexplained."""
    width = max(1, min(2 * problem.k - 1, problem.d))
    ours = Quadratic()  # type: ignore[call-arg]
    return Task(column_subset_objective(problem), ours, problem.d, problem.k, NO_ROWS, OVERHEAD + 8.0 * width**2)


def portion_of(task: Task, context: Context, iterations: int | None, processors: int = 1) -> tuple[int, Supports]:
    """The iterations of a run that may have a limit on its work, and the supports it begins with."""
    allowed = default_iterations(task.d, task.k, processors) if iterations is None else iterations
    if math.isinf(context.work):
        return allowed, ()
    known = dict.fromkeys([*([context.start] if context.start else []), *_larger(task, context), *context.supports])
    entering = task.steps * task.largest**2 * (task.largest + task.rows)
    given = tuple(known)[: max(1, int(ENTERING * context.work / entering))]
    work = context.work - len(given) * entering
    return max(1, int(work / (task.steps * task.work * processors))), given


def _larger(task: Task, context: Context) -> Iterator[tuple[int, ...]]:
    """Supports of more than k columns: those of largest coefficients in relaxations, in a few sizes."""
    sizes = np.unique(np.linspace(task.k + 1, task.largest, LARGER).astype(np.int64)) if task.k > 1 else ()
    for columns in context.relaxed:
        yield from (tuple(sorted(columns[:size])) for size in sizes if size <= len(columns))
