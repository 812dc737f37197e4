"""Portions of work for Pareto optimisation: how long they are, and what the archive begins with."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from exactsel_heuristics._pareto_search import Supports, Task, default_iterations
from exactsel_heuristics.base import Context

ENTERING = 0.5
"""Most of a portion's work that goes into the supports its archive begins with."""

LARGER = 8
"""Sizes above k of which the archive of a portion begins with a support, of each relaxation."""


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
