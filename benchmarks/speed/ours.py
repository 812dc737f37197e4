"""Solve one instance with exactsel in a process of its own and print one line of JSON, in the form of peers/.

python -m benchmarks.speed.ours MODE FILE --time-limit 60 --rel-gap 1e-6
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.speed.instances import small
from exactsel import solve
from exactsel.data.instance import Instance, read_instance
from exactsel.solving.result import Result
from exactsel.to_plain import finite

MODES: Mapping[str, Mapping[str, Any]] = {
    "exactsel": {},
    "exactsel-faithful": {"tree": "state-space", "bound": "pdal", "heuristics": ()},
}
"""Settings by the name they have in the tables: what exactsel does when nothing is said, and the paper's algorithm."""


WARM_UP_NODES = 200
"""Nodes of the small instance; with half as many the kernels that search below a node are not called for Huber loss."""


def warm_up(instance: Instance, options: Mapping[str, Any]) -> None:
    """Load every kernel: those of the root on the instance itself, the rest on a small one with dozens of nodes."""
    solve(instance.problem(), threads=1, node_limit=1, **options)
    solve(small(instance.loss).problem(), threads=1, node_limit=WARM_UP_NODES, **options)


def timed(instance: Instance, options: Mapping[str, Any]) -> dict[str, Any]:
    """Solve, with everything between the arrays and the answer in the time: curvature, heuristics, search."""
    began, began_clock = time.process_time(), time.perf_counter()
    result = solve(instance.problem(), threads=1, **options)
    return {
        **summary(result),
        "seconds": time.process_time() - began,
        "clock": time.perf_counter() - began_clock,
    }


def summary(result: Result) -> dict[str, Any]:
    """What the tables need of a result."""
    return {
        "support": [int(j) for j in result.support],
        "lower": finite(result.lower),
        "nodes": result.nodes,
        "finished": result.reached,
        "bound_calls": result.bound_calls,
        "iterations": result.iterations,
        "parts": result.times,
    }


def main() -> None:
    """Read the command line, warm up, solve, print."""
    parser = argparse.ArgumentParser(description="exactsel on one instance.")
    parser.add_argument("mode", choices=list(MODES))
    parser.add_argument("file", type=Path)
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--rel-gap", type=float, default=1e-6)
    given = parser.parse_args()
    instance = read_instance(given.file)
    warm_up(instance, MODES[given.mode])
    options = {"time_limit": given.time_limit, "rel_eps": given.rel_gap, **MODES[given.mode]}
    print(json.dumps(timed(instance, options)))


if __name__ == "__main__":
    main()
