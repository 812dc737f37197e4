"""The solvers by name, and how one of them is run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.speed.peers import gurobi, leaps, okridge, penalised, scip
from benchmarks.speed.peers.common import Peer, Task, Unsuitable

PEERS: dict[str, Peer] = {
    "okridge": Peer("okridge", ("quadratic",), okridge.okridge, okridge.switch_off_collections),
    "okridge-released": Peer("okridge", ("quadratic",), okridge.okridge),
    "gurobi-perspective": Peer("gurobipy", ("quadratic", "huber"), gurobi.perspective),
    "gurobi-bigm": Peer("gurobipy", ("quadratic", "huber"), gurobi.big_m),
    "gurobi-indicator": Peer("gurobipy", ("quadratic", "huber"), gurobi.indicator),
    "scip": Peer("pyscipopt", ("quadratic", "huber", "logistic"), scip.scip),
    "el0ps": Peer("el0ps", ("quadratic", "logistic"), penalised.el0ps, penalised.compile_el0ps, penalised=True),
    "l0bnb": Peer("l0bnb", ("quadratic",), penalised.l0bnb, penalised.compile_l0bnb, penalised=True),
    "leaps": Peer("leaps", ("quadratic",), leaps.leaps, installed=leaps.present),
}
"""Solvers by name."""


def run(
    name: str,
    file: str,
    *,
    upper: float,
    start: tuple[int, ...] = (),
    penalty: float | None = None,
    time_limit: float = 60.0,
    rel_gap: float = 1e-4,
    abs_gap: float = 0.0,
) -> dict[str, Any]:
    """Read the instance, run the solver and report; why not, where it cannot be run."""
    peer = PEERS[name]
    with np.load(file, allow_pickle=False) as stored:
        task = Task(
            A=np.ascontiguousarray(stored["A"], float),
            y=np.asarray(stored["y"], float).ravel(),
            k=int(stored["k"]),
            lam=float(stored["lam"]),
            loss=str(stored["loss"]) if "loss" in stored else "quadratic",
            delta=float(stored["delta"]) if "delta" in stored else float("nan"),
            upper=upper,
            start=start,
            penalty=float("nan") if penalty is None else penalty,
            time_limit=time_limit,
            rel_gap=rel_gap,
            abs_gap=abs_gap,
        )
    if task.loss not in peer.losses:
        return {"refused": f"no {task.loss} loss"}
    if peer.penalised and penalty is None:
        return {"refused": f"no price per column has {task.k} columns as its optimum"}
    try:
        peer.get_ready(task)
        began, began_clock = time.process_time(), time.perf_counter()
        answer = peer.solve(task)
    except Unsuitable as reason:
        return {"refused": str(reason)}
    seconds, clock = time.process_time() - began, time.perf_counter() - began_clock
    seconds = seconds if answer.seconds is None else answer.seconds
    clock = clock if answer.clock is None else answer.clock
    return {**asdict(answer), "seconds": seconds, "clock": clock}


def installed() -> Iterator[str]:
    """The solvers that are there."""
    for name, peer in PEERS.items():
        if peer.present():
            yield name
