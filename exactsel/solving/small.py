"""The criterion for problems that are begun without the compiler."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from exactsel._jit import interpreted
from exactsel._jit.interpreting import allowance
from exactsel.problem.interface import SubsetProblem, is_problem

P = ParamSpec("P")
T = TypeVar("T")

MOST_ENTRIES = 5_000_000
"""Entries of the data, ..."""

MOST_IN_TURN = 50_000
"""... where the loss is evaluated row by row, ..."""

MOST_COLUMNS = 120
"""... and columns, for which the Python text of kernels terminates soon enough."""

WITHOUT_COMPILER = sys.platform == "emscripten"
"""In a browser nothing is compiled: every problem counts as small, and the allowance has no end."""

if WITHOUT_COMPILER:
    allowance.left = allowance.whole = sys.maxsize


def is_small(problem: SubsetProblem) -> bool:
    """Whether kernels are interpreted as long as the allowance lasts (:mod:`exactsel._jit.interpreting`)."""
    if WITHOUT_COMPILER:
        return True
    columns, loss = problem.units.columns, problem.objective.loss
    in_arrays = loss is None or hasattr(type(loss), "rows_value")
    return columns <= MOST_COLUMNS and problem.n * columns <= (MOST_ENTRIES if in_arrays else MOST_IN_TURN)


def _is_small_table(data: object) -> bool:
    """The same of data from which a problem is yet to be made, with any loss."""
    shape = getattr(data, "shape", None)
    if not isinstance(shape, tuple) or len(shape) != 2:
        return False
    rows, columns = shape
    return bool(columns <= MOST_COLUMNS and rows * columns <= MOST_IN_TURN)


def begun_without_compiler(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function of a small problem interpret the kernels it calls."""

    @wraps(function)
    def begin(*arguments: P.args, **named: P.kwargs) -> T:
        problem = next((each for each in (*arguments, *named.values()) if is_problem(each)), None)
        small = is_small(problem) if problem is not None else any(map(_is_small_table, arguments[:1]))
        with interpreted(small or WITHOUT_COMPILER):
            return function(*arguments, **named)

    return begin
