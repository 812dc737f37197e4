"""Run another solver on a file of hints.py and print its answer; with the word ``installed``, say which there are.

The interpreter that runs this has the solver, and need not have exactsel.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import resource
import sys
import time
from dataclasses import asdict
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.speed.peers import okridge, penalised
from benchmarks.speed.peers.common import Answer, Peer, Task, Unsuitable, nonzeros


def l0bnb(task: Task) -> Answer:
    """L0BnB, which needs limits: it is not run where none are stated."""
    if task.stated == math.inf:
        raise Unsuitable("no limits are stated")
    return penalised.l0bnb(task)


def okridge_without_limits(task: Task) -> Answer:
    """OKRidge, which needs a ridge and knows no limits."""
    if task.lam == 0.0 or task.stated < math.inf:
        raise Unsuitable("no ridge" if task.lam == 0.0 else "it knows no limits")
    return okridge.okridge(task)


def abess(task: Task) -> Answer:
    """Abess, a heuristic for k columns, without a ridge."""
    import abess as package

    model = package.LinearRegression(support_size=task.k, fit_intercept=False, thread=1, alpha=0.0)
    return Answer(nonzeros(model.fit(task.A, task.y).coef_), None, 0, True)


SOLVERS: dict[str, Peer] = {
    "l0bnb": Peer("l0bnb", ("quadratic",), l0bnb, penalised.compile_l0bnb, penalised=True),
    "el0ps": Peer("el0ps", ("quadratic",), penalised.el0ps, penalised.compile_el0ps, penalised=True),
    "okridge": Peer("okridge", ("quadratic",), okridge_without_limits, okridge.switch_off_collections),
    "abess": Peer("abess", ("quadratic",), abess),
}


def run(name: str, file: str, time_limit: float, rel_gap: float) -> dict[str, Any]:
    """The answer, or why there is none."""
    with np.load(file, allow_pickle=False) as stored:
        task = Task(
            A=stored["A"], y=stored["y"], k=int(stored["k"]), lam=float(stored["lam"]), loss="quadratic",
            delta=math.nan, upper=float(stored["upper"]), start=tuple(map(int, stored["start"])),
            penalty=float(stored["penalty"]), time_limit=time_limit, rel_gap=rel_gap, stated=float(stored["largest"]),
        )  # fmt: skip
    try:
        SOLVERS[name].get_ready(task)
        began = time.process_time()
        answer = SOLVERS[name].solve(task)
    except Unsuitable as reason:
        return {"refused": str(reason)}
    seconds = time.process_time() - began
    unit = 1 if sys.platform == "darwin" else 1024
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
    return {**asdict(answer), "seconds": seconds, "megabytes": megabytes}


def main() -> None:
    """Read the command line, keep what the solver prints out of the answer, print the answer."""
    parser = argparse.ArgumentParser(description="Another solver on one instance.")
    parser.add_argument("solver", choices=["installed", *SOLVERS])
    parser.add_argument("file", nargs="?")
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--rel-gap", type=float, default=1e-4)
    given = parser.parse_args()
    with contextlib.redirect_stdout(io.StringIO()):
        answer: Any
        if given.solver == "installed":
            answer = [name for name, solver in SOLVERS.items() if find_spec(solver.module) is not None]
        else:
            answer = run(given.solver, given.file, given.time_limit, given.rel_gap)
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
