"""What a proof costs beside the search it is of."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.speed.instances import diabetes_huber, hardlogit
from exactsel import Problem, load, solve, verify
from exactsel.data.generate import diabetes


def problems(sonar: Path | None) -> Iterator[tuple[str, Problem, dict[str, Any]]]:
    """Name, problem and options."""
    yield "diabetes, quadratic, k 10, lam 0.01", diabetes(k=10, lam=0.01).problem(), {}
    yield "the same, points only", diabetes(k=10, lam=0.01).problem(), {"subtrees": False}
    yield "diabetes, huber, k 5, lam 0.001", diabetes_huber(5, 0.001).problem(), {}
    yield "diabetes, huber, k 10, lam 0.01", diabetes_huber(10, 0.01).problem(), {}
    instance = diabetes(k=5, lam=1.0)
    labels = np.where(instance.y > np.median(np.asarray(instance.y)), 1.0, -1.0)
    yield "diabetes above the median, logistic, k 5", Problem(instance.A, labels, 5, loss="logistic", lam=0.002), {}
    yield "hardlogit d 100, n 200, k 5", hardlogit(200, 100, 5, 0.2).problem(), {}
    if sonar is not None:
        yield "sonar, quadratic, k 8, lam 0", load(sonar, k=8, lam=0.0, loss="quadratic"), {}


def costs(sonar: Path | None, limit: float) -> Iterator[dict[str, Any]]:
    """A row for each problem."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.exsel"
        for name, problem, options in problems(sonar):
            solve(problem, node_limit=2, **options)
            began = time.perf_counter()
            plain = solve(problem, time_limit=limit, **options)
            solving = time.perf_counter() - began
            result = solve(problem, time_limit=limit, proof=file, **options)
            began = time.perf_counter()
            verdict = verify(problem, file)
            checking = time.perf_counter() - began
            writing = result.times["proof"]
            yield {
                "problem": name, "nodes": plain.nodes, "regions": verdict.regions, "verified": verdict.verified,
                "kB": round(file.stat().st_size / 1000), "bytes per region": file.stat().st_size // verdict.regions,
                "solve s": round(solving, 2), "write s": round(writing, 3), "check s": round(checking, 2),
                "write %": round(100 * writing / solving, 1), "check %": round(100 * checking / solving, 1),
            }  # fmt: skip
