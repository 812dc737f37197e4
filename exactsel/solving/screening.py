"""Solve problems whose data are not held as a table: bound each column, and search those that may be in a better model.

A good model comes from heuristics over all columns. Lower bounds of the models that use a given column
(:mod:`exactsel.bounds.column_bounds`) then say which columns no better model has. The others become a table, and what
is left is a problem like any other. No model costs less than the smaller of the lower bound of that search and the
smallest bound of a column outside the table. So any choice of columns is sound: where too many are left, those of the
lowest bounds are searched first, then more of them, as long as time and memory allow.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from exactsel.algebra.threads import one_thread
from exactsel.bounds.column_bounds import ColumnBounds, column_bounds
from exactsel.bounds.working_set import many_columns
from exactsel.deadlines import within
from exactsel.errors import InputError, TimeLimitError, UnsupportedError
from exactsel.interrupts import dispensable
from exactsel.problem.fit import Fit
from exactsel.problem.model import Model, PreparedModel
from exactsel.problem.regression import Problem
from exactsel.problem.some_columns import on_some_columns, refuse_unlimited
from exactsel.proofs.statement import statement_of
from exactsel.search.memory import MEBIBYTE
from exactsel.search.watch import Watch
from exactsel.solving.checkpointing import SearchMode
from exactsel.solving.outcome import Termination, claim_of
from exactsel.solving.result import Result
from exactsel.solving.run import Files
from exactsel.solving.screened_search import TableSearches, memory_of_data
from exactsel.solving.settings import Settings
from exactsel.solving.solver import HEURISTICS_SHARE
from exactsel.start.heuristic import Context
from exactsel.start.models import given_support, starting_models
from exactsel.start.portfolio import AUTO
from exactsel.types import IntArray

FIRST_COLUMNS, GROWTH, LEAST_GROWTH = 250, 4, 1.05
"""Columns of the first table, besides the model's own, and how many times more the next one has, and at least has."""

TABLES, PART_FOR_TABLES = 6, 0.25
"""Tables, of n x m and of m x m numbers, that a search of m columns holds at a time, at most; the part of the memory
limit that they may take, the rest being for open nodes."""

TABLES_WITHIN_LIMITS, PASSES_WITHIN_LIMITS = 4, 100.0
"""Within limits, and with many more columns than rows: tables of n x m numbers, and passes over them that a search
begins with; it makes no table of m x m numbers (:mod:`exactsel.bounds.working_set`)."""

PRODUCTS, PART_FOR_TABLE = 2e9, 0.6
"""Multiplications a second at the start of a search of m columns, n m^2 and some m^3 of them; the part of the remaining
time that it may take, for it seldom reads the clock."""

PART_FOR_BOUNDS = 0.25
"""Part of the time left that gradient steps towards a dual vector may take."""

KEPT_TO_SAY = 0.05
"""Part of the time limit that is kept for saying what has been found."""

BEGUN_WITH = ("forward",)
"""What looks for a model in place of the usual portfolio, most of which the search of the table runs anyway."""


class _Found(NamedTuple):
    """What is known before a table is made."""

    fit: Fit
    source: str
    begun: Fit
    """The model that the bounds are made from."""
    bounds: ColumnBounds
    seconds: dict[str, float]


def solve_screened(
    problem: Problem, settings: Settings, *, start: Sequence[int] | None, signals: Sequence[int],
    searches: TableSearches | None = None,
) -> Result:  # fmt: skip
    """Solve a problem whose data are not held as a table; ``searches`` run what is to write files.

    Raises
    ------
    InputError
        Where the columns of one model do not fit into the memory limit.
    """
    refuse_unlimited(problem)
    began = time.perf_counter()
    limit = settings.time_limit
    with Watch(None if limit is None else (1.0 - KEPT_TO_SAY) * limit, signals) as watch:
        fit, source = problem.fit(problem.force_in), "empty model"
        if searches is not None and searches.fit is not None:
            fit, source = searches.fit, "given"
        else:
            if start is not None:
                fit, source = problem.fit(given_support(start, problem)), "given"
            part = None if limit is None else HEURISTICS_SHARE * limit
            deadline = within(limit)
            with Watch(part, signals) as inner, dispensable(), suppress(TimeLimitError), deadline:
                names = BEGUN_WITH if settings.heuristics == AUTO else settings.heuristics
                context = Context(settings.seed, should_stop=lambda: inner.stopped, threads=settings.threads)
                for better, name in starting_models(problem, names, fit, context):
                    fit, source = better, name
        seconds = {"heuristics": time.perf_counter() - began}
        return search_screened(problem, settings, fit, source, watch, seconds, signals, searches=searches)


def search_screened(
    problem: Problem, settings: Settings, fit: Fit, source: str, watch: Watch, seconds: dict[str, float],
    signals: Sequence[int], grows: bool = True, searches: TableSearches | None = None,
) -> Result:  # fmt: skip
    """Bounds, then searches of more and more columns, until they are closed or the watch has stopped.

    ``grows`` says whether there is more than one table.
    """
    refuse_beyond(problem, settings)
    began = time.perf_counter()
    part = PART_FOR_BOUNDS * watch.time_left
    steps_end, end = (None if np.isinf(rest) else rest for rest in (part, watch.time_left))
    with one_thread(), Watch(steps_end, signals) as steps, within(end):
        bounds = column_bounds(problem, fit.coef, lambda: steps.stopped or watch.stopped, fit.value, FIRST_COLUMNS)
    state = _Found(fit, source, fit, bounds, seconds | {"prepare": time.perf_counter() - began})
    most, size = most_columns(problem, settings), FIRST_COLUMNS
    searches = TableSearches(problem, Files(), SearchMode(True, False, False), {}) if searches is None else searches
    proof, best = searches.proof, None
    size = searches.size or size
    while True:
        columns = searches.columns
        if columns is None:
            columns = _chosen(problem, settings, state, 0 if watch.stopped else min(size, most))
        result = _searched(problem, settings, state, columns, size, watch, signals, searches)
        if best is not None and proof is None:
            # Lower bounds from every table concern all columns.
            result = result._claiming(min(max(result.lower, best.lower), result.upper))
        if best is None or proof is None or result.upper - result.lower < best.upper - best.lower:
            best = result if proof is None else proof.take(state.bounds, columns, result)
        rest = _left_out(state, columns)
        done = result.claim.reached or rest >= result.upper or columns.size >= min(problem.d, most)
        if done or not grows or watch.stopped or result.termination is not Termination.MEMORY_LIMIT:
            return _timed(best, watch)
        if result.upper < state.fit.value:
            state = state._replace(fit=problem.fit(result.support), source=result.source)
        # What the last table took says more of the next one than a constant does.
        speed = max(PRODUCTS, _work_of(problem, columns.size) / max(result.times["total"], 1e-3))
        size = min(GROWTH * size, _affordable(problem, PART_FOR_TABLE * watch.time_left * speed))
        if min(size, most) < LEAST_GROWTH * columns.size:
            return replace(best, termination=Termination.TIME_LIMIT)


def _work_of(problem: Problem, size: int) -> float:
    """Multiplications that the search of a table of so many columns begins with, roughly."""
    if problem.coefficient_bounds is not None and many_columns(problem.n, size):
        return PASSES_WITHIN_LIMITS * size * problem.n
    return float(size) ** 2 * (problem.n + 4.0 * size)


def _affordable(problem: Problem, work: float) -> int:
    """Columns of a table whose search begins with no more multiplications than that, roughly."""
    if _work_of(problem, problem.d) <= work:
        return problem.d
    low, high = 1, problem.d
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _work_of(problem, middle) <= work else (low, middle)
    return low


def most_columns(problem: Problem, settings: Settings) -> int:
    """Columns of a table that a search may be given within its memory limit."""
    room = PART_FOR_TABLES * max(0.0, _memory_left(problem, settings)) * MEBIBYTE / (8.0 * TABLES)
    n = float(problem.n)
    most = int(min(problem.d, 0.5 * (np.sqrt(n * n + 4.0 * room) - n)))
    wide = int(min(problem.d, room * TABLES / (TABLES_WITHIN_LIMITS * n)))
    return wide if problem.coefficient_bounds is not None and many_columns(problem.n, wide) else most


def _memory_left(problem: Problem, settings: Settings) -> float:
    """MiB of the memory limit that the data, and a pass over them, leave."""
    return settings.memory_limit - memory_of_data(problem)


def refuse_beyond(problem: Problem, settings: Settings) -> None:
    """:class:`InputError` where not even the columns of one model fit into the memory limit."""
    if most_columns(problem, settings) < max(problem.k, 1):
        raise InputError(
            f"a table of {problem.k} features of {problem.n} rows, and what a search makes of it, takes more than the "
            f"{max(0.0, _memory_left(problem, settings)):.3g} MiB that the data leave of the memory limit of "
            f"{settings.memory_limit:g} MiB; raise the limit, or keep fewer rows."
        )


def _chosen(problem: Problem, settings: Settings, state: _Found, size: int) -> IntArray:
    """The columns to search: the model's own, and up to ``size`` of those that may be in a better one."""
    allowed, order = state.bounds.with_column, np.argsort(state.bounds.with_column, kind="stable")
    tolerance = settings.tolerance.of(problem)
    cutoff = state.fit.value - tolerance.absolute(state.fit.value)
    needed = order[: int(np.count_nonzero(allowed < cutoff))]
    support = {*state.fit.columns.tolist(), *problem.force_in}
    support = support or {int(order[0])}  # a table has a column
    chosen = [*support, *(j for j in needed[: size + len(support)].tolist() if j not in support)]
    return np.array(sorted(chosen[: max(size, len(support))]), dtype=np.int64)


def _left_out(state: _Found, columns: IntArray) -> float:
    """The smallest bound of a column outside; inf where there is none that a model may use."""
    others = state.bounds.with_column.copy()
    others[columns] = np.inf
    return float(others.min(initial=np.inf))


def _searched(
    problem: Problem, settings: Settings, state: _Found, columns: IntArray, size: int, watch: Watch,
    signals: Sequence[int], searches: TableSearches,
) -> Result:  # fmt: skip
    """The result of a search of some columns, said of all."""
    inner = on_some_columns(problem, columns, searches.names_columns)
    start = np.searchsorted(columns, state.fit.columns).tolist()
    remaining = None if settings.time_limit is None else max(0.0, watch.time_left)
    chosen = replace(
        settings, time_limit=remaining, heuristics=AUTO if settings.heuristics == AUTO else (),
        memory_limit=_memory_left(problem, settings),
    )  # fmt: skip
    began = time.perf_counter()
    result = searches.run(inner, columns, size, state.begun.support, chosen, start, signals)
    outside = _left_out(state, columns)
    lower = max(state.bounds.lower, min(result.lower, outside))
    ended = result.termination
    if outside < result.lower and ended not in (Termination.TIME_LIMIT, Termination.INTERRUPTED):
        ended = Termination.MEMORY_LIMIT  # of more columns
    return _of_all(problem, state, columns, replace(result, termination=ended), lower, time.perf_counter() - began)


def _of_all(
    problem: Problem, state: _Found, columns: IntArray, result: Result, lower: float, seconds: float
) -> Result:  # fmt: skip
    """A result on some of the columns as one on all of them."""
    upper, support = result.upper, tuple(int(j) for j in columns[list(result.support)])
    fit = problem.fit(support)
    above = statement_of(problem).upper(fit)
    upper, lower = above, min(lower, above)
    claim = claim_of(upper, lower, result.tolerance)
    ended = result.termination
    if claim.reached and ended is Termination.MEMORY_LIMIT:
        ended = Termination.GAP_CLOSED
    times = {**result.times, **state.seconds}
    times["total"] = seconds + sum(state.seconds.values())
    model = Model.of(problem, fit.coef)
    return replace(
        result, upper=upper, lower=lower, support=support, prepared=PreparedModel.of(problem, fit.coef), claim=claim,
        termination=ended, source=state.source if result.source == "given" else result.source, times=times,
        problem=problem.describe(), model=model, history=None, events=None, null_objective=problem.null_objective,
        settings={**result.settings, "method": _method(problem, columns, result)}, _kept=None,
    )  # fmt: skip


def _method(problem: Problem, columns: IntArray, result: Result) -> str:
    return f"{columns.size} of {problem.d} features by {result.settings['method']}, the others by bounds of their own"


def _timed(result: Result, watch: Watch) -> Result:
    """The result, which says that it was interrupted or out of time where it was."""
    if result.claim.reached or watch.reason is None:
        return result
    return replace(result, termination=Termination(watch.reason))


def refuse_files(**options: object) -> None:
    """:class:`UnsupportedError` for what a search of some columns cannot do yet."""
    for name, value in options.items():
        if value:
            raise UnsupportedError(
                f"{name} is given, but sparse data that stay sparse are searched by parts of their features, which "
                f"have no {name}; leave it out, or keep so few features that a table of them is made."
            )
