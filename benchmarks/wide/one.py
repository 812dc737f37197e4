"""Solve one instance, read from a JSON file, and print what that took: ``python -m benchmarks.wide.one FILE``."""

from __future__ import annotations

import argparse
import json
import re
import resource
import sys
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.folder import MissingData
from benchmarks.wide.instances import Instance, from_plain
from exactsel import heuristics, solve
from exactsel.observers.history import closers_text
from exactsel.to_plain import finite

UNIT = 1 if sys.platform == "darwin" else 1024
"""Bytes of the unit in which the system gives the largest memory."""


def peak() -> float:
    """The largest memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT / 1e6


class AnonymousMemory:
    """The largest memory of this process that is none of a file's pages, in MB, looked at many times a second.

    None where the system does not tell.
    """

    def __init__(self) -> None:
        self.most: float | None = None
        self._ended = threading.Event()
        self._watching = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> AnonymousMemory:
        self._watching.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._watching.join()

    def _watch(self) -> None:
        status = Path("/proc/self/status")
        while status.exists():
            found = re.search(r"RssAnon:\s+(\d+) kB", status.read_text(encoding="utf-8"))
            if found is not None:
                self.most = max(self.most or 0.0, float(found[1]) * 1024 / 1e6)
            if self._ended.wait(0.02):
                return


def measured(instance: Instance, most: float, rel_gap: float) -> dict[str, Any]:
    """What solving takes: everything between the arrays and the answer, on one thread."""
    options = {"threads": 1, "time_limit": most, "rel_eps": rel_gap}
    problem, method = instance.problem(), getattr(instance, "method", "")
    if (small := instance.small()) is not None:
        solve(small.problem(), **options)
    before, began, clock = peak(), time.process_time(), time.perf_counter()
    with AnonymousMemory() as anonymous:
        result = heuristics.run(method, problem, **options) if method else solve(problem, **options)
    return {
        "seconds": time.process_time() - began,
        "clock": time.perf_counter() - clock,
        "parts": result.times,
        "megabytes": peak(),
        "megabytes_of_data": before,
        "megabytes_beside_files": anonymous.most,
        "gap": finite(result.gap),
        "objective": finite(result.upper),
        "lower": finite(result.lower),
        "support": [int(j) for j in result.support],
        "nodes": result.nodes,
        "claim": str(result.claim.value),
        "closed_by": closers_text(result.settings["closers"]),
        "method": result.settings["method"],
        "finished": result.reached,
        "termination": str(result.termination.value),
    }


def main() -> None:
    """Read the command line, solve, print."""
    parser = argparse.ArgumentParser(description="exactsel on one instance.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--rel-gap", type=float, default=1e-6)
    given = parser.parse_args()
    instance = from_plain(json.loads(given.file.read_text(encoding="utf-8")))
    try:
        answer = measured(instance, given.time_limit, given.rel_gap)
    except MissingData as reason:
        answer = {"refused": str(reason)}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
