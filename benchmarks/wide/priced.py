"""Solve the penalised form of an instance: ``python -m benchmarks.wide.priced FILE --penalty PRICE``."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from benchmarks.wide.instances import Instance, from_plain
from benchmarks.wide.one import peak
from exactsel import best_model
from exactsel.to_plain import finite


def measured(instance: Instance, penalty: float, most: float, rel_gap: float) -> dict[str, Any]:
    """What the best model over all sizes takes; its bound less the price of k columns is one for k columns."""
    options: dict[str, Any] = {
        "criterion": "l0", "penalty": penalty, "threads": 1, "time_limit": most, "rel_eps": rel_gap,
    }  # fmt: skip
    if (small := instance.small()) is not None:
        best_model(small.problem(), **options)
    problem = instance.problem()
    began = time.process_time()
    found = best_model(problem, **options)
    seconds = time.process_time() - began
    return {
        "seconds": seconds,
        "megabytes": peak(),
        "support": [int(j) for j in found.support],
        "lower": finite(found.lower - penalty * instance.k),
        "nodes": found.shared_nodes + sum(size.nodes for size in found.sizes),
        "finished": bool(found.gap <= 1e-4),
    }


def main() -> None:
    """Read the command line, solve, print."""
    parser = argparse.ArgumentParser(description="exactsel on the penalised form of one instance.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--penalty", type=float, required=True)
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--rel-gap", type=float, default=1e-6)
    given = parser.parse_args()
    instance = from_plain(json.loads(given.file.read_text(encoding="utf-8")))
    print(json.dumps(measured(instance, given.penalty, given.time_limit, given.rel_gap)))


if __name__ == "__main__":
    main()
