"""The trace of a search: one JSON object a line, written as the search goes.

Every line has ``event``, ``time`` (seconds since the trace began), ``lower`` and ``upper`` (of the whole search at that
moment; null where infinite). Columns and nodes are numbers from 0; node 0 is the root. The other fields:

=================  ================================================================================================
``run``            first line: ``schema``, ``version``, ``problem`` (as in the result), ``objective``, ``settings``
``started``        ``open``: the open nodes' numbers
``incumbent``      a better model: ``support``, ``coef`` (of the support), ``names`` (or null), ``source``
``bounded``        a bound call: ``node``, ``bound``, ``solved`` (one convex problem, solved), ``iterations``
``fixed``          a column decided for good: ``node``, ``column``, ``included``, ``bound`` (of the child closed by it)
``divided``        ``node``, ``columns``, ``children``, ``rest``: child i has columns[i] in and those before it out, the
                   rest has all of them out
``discarded``      a node closed: ``node``, ``reason``, ``bound``
``subtree``        a closer dealt with a subtree: ``node``, ``closer``, ``nodes``, ``min_pruned_bound``, ``open``
(nodes left),
                   ``counted`` (the part of all there is to be counted that is done; or null)
``raised``         the lower bound of the search rose
``round``          all events of a round were reported: ``round``, how many have ended
``finished``       ``termination``, ``open``: how many nodes are open
``result``         last line: ``result``, the JSON object of the command line
=================  ================================================================================================

The columns in and out at a node follow from ``divided`` and ``fixed`` on the way from the root.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from exactsel._version import __version__
from exactsel.errors import InputError, OutputWarning, warn
from exactsel.files import is_special, open_special, unwritten
from exactsel.problem.interface import SubsetProblem
from exactsel.search.events import (
    Bounded,
    Discarded,
    Divided,
    Event,
    Finished,
    Fixed,
    IncumbentFound,
    LowerBoundRaised,
    RoundEnded,
    Started,
    SubtreeClosed,
)
from exactsel.search.state import SearchState
from exactsel.to_plain import finite, writable

SCHEMA = "exactsel-trace-1"


class Trace:
    """An observer of a search that writes its trace; call it with every event.

    Parameters
    ----------
    file : path
        Replaced if it exists. A line is complete as soon as it is in the file.

    Raises
    ------
    InputError
        When the file cannot be opened. Where it can no longer be written to later on, ``failure`` says why and nothing
        more is written, for no search ends for want of a trace; a warning says so at the end.
    """

    def __init__(self, file: str | os.PathLike[str]) -> None:
        self.failure: InputError | None = None
        self._file = file
        try:
            stream = open_special(file) if is_special(file) else Path(file).open("wb")  # noqa: SIM115 (see __exit__)
        except OSError as error:
            raise unwritten(file, error, "the trace ") from None
        self._stream: IO[str] = io.TextIOWrapper(stream, encoding="utf-8", newline="\n", write_through=True)
        self._began = time.perf_counter()
        self._names: tuple[str, ...] | None = None

    def begin(self, problem: SubsetProblem, settings: Mapping[str, Any]) -> None:
        """Write the first line."""
        described = problem.describe()
        self._names = described["feature_names"]
        entries = {key: writable(value) for key, value in settings.items()}
        self._write(
            "run", None, None, schema=SCHEMA, version=__version__, problem=described,
            objective=problem.objective_text, settings=entries,
        )  # fmt: skip

    def __call__(self, event: Event, state: SearchState) -> None:
        """Write one event."""
        kind, fields = self._described(event)
        self._write(kind, state.lower, state.upper, **fields)

    def end(self, lower: float, upper: float, result: Mapping[str, Any]) -> None:
        """Write the last line."""
        self._write("result", lower, upper, result=result)

    def __enter__(self) -> Trace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._stream.close()
        except OSError as trouble:
            self._fail(trouble)
        if self.failure is not None:
            warn(str(self.failure), OutputWarning)

    def _described(self, event: Event) -> tuple[str, dict[str, Any]]:
        match event:
            case Started(open_nodes):
                return "started", {"open": [node.id for node in open_nodes]}
            case IncumbentFound(_, support, coef, source):
                values = [float(coef[j]) for j in support] if coef.size else None
                names = None if self._names is None else [self._names[j] for j in support]
                return "incumbent", {"support": list(support), "coef": values, "names": names, "source": source}
            case Bounded(node, bound, solved, iterations):
                return "bounded", {
                    "node": node, "bound": finite(bound), "solved": bool(solved), "iterations": int(iterations),
                }  # fmt: skip
            case Fixed(node, fixings):
                return "fixed", {
                    "node": node, "columns": fixings.columns.tolist(), "included": fixings.included.tolist(),
                    "bounds": [finite(bound) for bound in fixings.bounds.tolist()],
                }  # fmt: skip
            case Divided(node, columns, children, rest):
                chain = [int(column) for column in columns]
                return "divided", {"node": node, "columns": chain, "children": list(children), "rest": rest}
            case Discarded(node, _, reason, bound, _):
                return "discarded", {"node": node, "reason": reason, "bound": finite(bound)}
            case SubtreeClosed(node, open_ids, _, result):
                counted = None if result.fraction is None else float(result.fraction)
                return "subtree", {
                    "node": node, "closer": result.closer, "nodes": int(result.nodes),
                    "min_pruned_bound": finite(result.min_pruned_bound), "open": list(open_ids), "counted": counted,
                }  # fmt: skip
            case LowerBoundRaised(_):
                return "raised", {}
            case RoundEnded(number):
                return "round", {"round": number}
            case Finished(termination, open_nodes):
                return "finished", {"termination": termination, "open": len(open_nodes)}

    def _write(self, kind: str, lower: float | None, upper: float | None, **fields: object) -> None:
        line = {
            "event": kind, "time": round(time.perf_counter() - self._began, 6),
            "lower": None if lower is None else finite(lower), "upper": None if upper is None else finite(upper),
            **fields,
        }  # fmt: skip
        if self.failure is not None:
            return
        try:
            self._stream.write(json.dumps(line, allow_nan=False) + "\n")
            self._stream.flush()
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        self.failure = self.failure or unwritten(self._file, error, "the rest of the trace ")
        with contextlib.suppress(OSError):
            self._stream.close()
