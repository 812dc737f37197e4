"""The progress table of a search, on a stream of its own (stderr), so that stdout stays data.

A row is written for every better model and otherwise every ``interval`` seconds. Plain text, no control characters:
it reads the same in a terminal, a pipe and a log file.
"""

from __future__ import annotations

import io
import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, TextIO

import numpy as np

from exactsel.errors import escaped, option
from exactsel.nodes.tolerance import relative_gap
from exactsel.observers.history import closers_text
from exactsel.observers.terminal import fitting, terminal_width
from exactsel.problem.capabilities import CLOSED_FORM, SINGLE_COLUMNS
from exactsel.problem.interface import SubsetProblem, is_regression
from exactsel.problem.model import demands_text
from exactsel.search.events import Event, Finished, IncumbentFound, Started, SubtreeClosed
from exactsel.search.state import SearchState
from exactsel.to_plain import log10_choices

if TYPE_CHECKING:
    from exactsel.solving.result import Result

WIDTHS = {"source": 13, "nodes": 9, "open": 9, "depth": 6, "lower": 14, "upper": 14, "gap": 9, "time": 8}
LESS_IMPORTANT = ("depth", "open", "nodes", "source")
"""Columns dropped, in this order, in a terminal that is too narrow for all."""

ROWS_PER_HEADER = 20


class ProgressLog:
    """An observer of a search: call it with every event. It falls silent where its stream can no longer be written."""

    def __init__(self, stream: TextIO, interval: float = 5.0) -> None:
        self._stream: TextIO = stream
        self._interval = interval
        self._began = self._last = time.perf_counter()
        self._rows = 0
        self._counted = ""
        self._null = 0.0
        self._columns = fitting(WIDTHS, LESS_IMPORTANT, terminal_width(stream))

    def begin(self, problem: SubsetProblem, version: str, tolerance: str) -> None:
        """Say what is being solved, and on which scale."""
        rows, size = problem.objective.observations, f"d={problem.d} k={problem.k}"
        self._write(f"exactsel {version}   n={rows} {size}   {_count(problem)} supports")
        self._write(f"minimise {problem.objective_text}")
        demands = demands_text(problem.describe())
        if demands:
            self._write(f"constraints  {demands}")
        self._null = problem.null_objective
        self._write(f"gap = (upper - lower) / |upper|   {tolerance}")
        if lacks_intercept(problem):
            self._write(
                f"note: y is far from 0 on average, and the model has no intercept; {option('fit_intercept', True)} "
                "adds "
                f"one"
            )

    def note(self, text: str) -> None:
        """One line of talk."""
        self._write(text)

    def __call__(self, event: Event, state: SearchState) -> None:
        """Write a row when one is due."""
        if isinstance(event, SubtreeClosed) and event.result.fraction is not None:
            self._counted = f"counted {100 * event.result.fraction:.0f}%"
        if isinstance(event, IncumbentFound):
            self._row(event.source, state)
        elif isinstance(event, Started | Finished) or time.perf_counter() - self._last >= self._interval:
            self._row(self._counted, state)

    def end(self, result: Result, verify: str | None = None) -> None:
        """The closing report; ``verify`` is the command that checks the proof, if there is one."""
        self._write("")
        for line in str(result).splitlines():
            self._write(line if verify is None or not line.startswith("proof ") else f"proof        {result.proof}")
        if verify is not None:
            self._write(f"check it     {verify}")
        if result.quality is not None:
            self._write(f"fit          {result.quality}")
        self._write(f"method       {result.settings['method']}")
        if result.settings["closers"]:
            self._write(f"closers      {closers_text(result.settings['closers'])}")
        self._write(f"time         {times_text(result.times)}")

    def _row(self, source: str, state: SearchState) -> None:
        if self._rows % ROWS_PER_HEADER == 0:
            self._write(" ".join(f"{name:>{WIDTHS[name]}}" for name in self._columns))
        self._rows += 1
        self._last = time.perf_counter()
        open_nodes = state.open_count
        gap = relative_gap(state.absolute_gap, state.upper, self._null)
        entries = {
            "source": source, "nodes": str(state.nodes), "open": str(open_nodes), "depth": str(state.depth),
            "lower": f"{state.lower:.8g}", "upper": f"{state.upper:.8g}", "gap": f"{gap:.2e}",
            "time": f"{self._last - self._began:.1f}s",
        }  # fmt: skip
        self._write(" ".join(f"{entries[name]:>{WIDTHS[name]}}" for name in self._columns))

    def _write(self, line: str) -> None:
        try:
            self._stream.write(escaped(line) + "\n")
            self._stream.flush()
        except (OSError, ValueError):  # a full disk, a reader that has gone, a stream that was closed
            self._stream = io.StringIO()


def times_text(times: Mapping[str, float]) -> str:
    """Where the seconds went; the parts before the bracket add up to the total, those in it are of the search."""
    included = "   ".join(f"{name} {times[name]:.2f}" for name in ("bound", "refit", "subtrees") if name in times)
    steps = {name: times[name] for name in ("prepare", "heuristics", "search") if name in times}
    steps["other"] = max(0.0, times["total"] - sum(steps.values()))
    text = "   ".join(f"{name} {seconds:.2f}" for name, seconds in steps.items())
    compiling = f"   compiling, in all of these: {times['compile']:.2f}" if times.get("compile", 0.0) >= 0.01 else ""
    return f"{times['total']:.2f} s: {text}{f'   (search: {included})' if included else ''}{compiling}"


def lacks_intercept(problem: SubsetProblem) -> bool:
    """Whether this looks like a regression whose intercept has been forgotten."""
    if not is_regression(problem, CLOSED_FORM | SINGLE_COLUMNS) or problem.objective.on_demand:
        return False
    objective = problem.objective
    prepared = objective.preparation is not None and objective.preparation.centred
    constant = bool(np.any(np.ptp(objective.AT, axis=1) == 0))  # one of these may serve as an intercept
    return not (prepared or constant) and bool(abs(objective.y.mean()) > objective.y.std())


def _count(problem: SubsetProblem) -> str:
    """The number of supports of size k, also where no float can hold it."""
    digits = log10_choices(problem.d, problem.k)
    exact = digits < 300
    return f"{math.comb(problem.d, problem.k):.3g}" if exact else f"{10 ** (digits % 1):.2f}e+{int(digits)}"
