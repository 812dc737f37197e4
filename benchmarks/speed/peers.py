"""Other exact solvers: run one of them on one instance and print one line of JSON.

    PYTHON peers.py installed
    PYTHON peers.py okridge FILE --time-limit 60 --rel-gap 1e-4

This file runs in the interpreter that has the solvers, not in exactsel's, so it needs numpy and the solver only.
Everything is said on the scale of exactsel, P(x) = L(Ax) + lam/2 ||x||². ``seconds`` is the processor time and
``clock`` that on the wall, from the arrays to the answer; ``lower`` is null when the solver has no bound to show.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Task:
    """One instance and what is asked of the solver."""

    A: Any
    y: Any
    k: int
    lam: float
    time_limit: float
    rel_gap: float


@dataclass(frozen=True)
class Answer:
    """What a solver found and proved; ``finished`` when it stopped by itself."""

    support: list[int]
    lower: float | None
    nodes: int
    finished: bool


class Unsuitable(Exception):
    """The solver cannot take this instance; the text says why."""


@dataclass(frozen=True)
class Peer:
    """A solver: the module it needs, the losses it serves, how to run it and how to get it ready before that."""

    module: str
    losses: tuple[str, ...]
    solve: Callable[[Task], Answer]
    get_ready: Callable[[], None] = lambda: None


def switch_off_collections() -> None:
    """OKRidge as released collects garbage about three times a node, which says nothing about its method."""
    import okridge.node
    import okridge.solvers
    import okridge.tree

    for module in (okridge.tree, okridge.node, okridge.solvers):
        module.gc = SimpleNamespace(collect=lambda: 0)


def okridge(task: Task) -> Answer:
    """OKRidge. Its objective is 2P - y'y, and so is what its gap is relative to; the demand is rescaled."""
    from okridge.tree import BNBTree

    constant = float(task.y @ task.y)
    value = forward(task)
    gap = task.rel_gap * 2.0 * value / abs(2.0 * value - constant)
    tree = BNBTree(task.A, task.y, lambda2=task.lam)
    upper, coef, own_gap, lower, _ = tree.solve(k=task.k, gap_tol=gap, time_limit=task.time_limit)
    # When its queue is empty it gives the upper bound as the lower one, though it drops nodes within the gap asked for.
    finished = bool(own_gap <= gap)
    lower = min(lower, upper - gap * abs(upper)) if finished else lower
    known = lower > -sys.maxsize / 2
    shifted = float(lower + constant) / 2.0 if known else None
    return Answer(_nonzeros(coef), shifted, int(tree.number_of_nodes), finished)


def gurobi_perspective(task: Task) -> Answer:
    """Gurobi with a term s per column, x² <= s z, and the valid big-M besides."""
    return _gurobi(task, perspective=True)


def gurobi_big_m(task: Task) -> Answer:
    """Gurobi with |x| <= M z alone."""
    return _gurobi(task, perspective=False)


GUROBI_FREE = 200
"""Variables a quadratic model may have under Gurobi's free licence."""


def _gurobi(task: Task, perspective: bool) -> Answer:
    import gurobipy as gp

    A, y, d = task.A, task.y, task.A.shape[1]
    with gp.Env(params={"OutputFlag": 0}) as env, gp.Model(env=env) as model:
        model.Params.Threads = 1
        model.Params.TimeLimit = task.time_limit
        model.Params.MIPGap = task.rel_gap
        # A model better than forward selection's has lam/2 x² <= P <= its objective, column by column.
        M = math.sqrt(2.0 * forward(task) / task.lam)
        x = model.addMVar(d, lb=-M, ub=M)
        z = model.addMVar(d, vtype=gp.GRB.BINARY)
        model.addConstr(z.sum() <= task.k)
        model.addConstr(x <= M * z)
        model.addConstr(x >= -M * z)
        loss = 0.5 * (x @ (A.T @ A) @ x) - (A.T @ y) @ x + 0.5 * float(y @ y)
        if perspective:
            s = model.addMVar(d)
            for j in range(d):
                model.addConstr(x[j] * x[j] <= s[j] * z[j])
            model.setObjective(loss + 0.5 * task.lam * s.sum())
        else:
            model.setObjective(loss + 0.5 * task.lam * (x @ x))
        try:
            model.optimize()
        except gp.GurobiError as error:
            if error.errno != gp.GRB.Error.SIZE_LIMIT_EXCEEDED:
                raise
            count = (3 if perspective else 2) * d
            raise Unsuitable(f"licence: {count} variables, free are {GUROBI_FREE}") from None
        support = _nonzeros(np.where(z.X > 0.5, x.X, 0.0)) if model.SolCount else []
        finished = model.Status == gp.GRB.OPTIMAL
        return Answer(support, float(model.ObjBound), int(model.NodeCount), finished)


PEERS: dict[str, Peer] = {
    "okridge": Peer("okridge", ("quadratic",), okridge, switch_off_collections),
    "okridge-released": Peer("okridge", ("quadratic",), okridge),
    "gurobi-perspective": Peer("gurobipy", ("quadratic",), gurobi_perspective),
    "gurobi-bigm": Peer("gurobipy", ("quadratic",), gurobi_big_m),
}
"""Solvers by name."""


def forward(task: Task) -> float:
    """Objective of the model of forward selection (quadratic loss), by normal equations."""
    gram, products = task.A.T @ task.A + task.lam * np.eye(task.A.shape[1]), task.A.T @ task.y
    chosen: list[int] = []
    coef = np.zeros(0)
    for _ in range(task.k):
        slope = products - gram[:, chosen] @ coef
        gain = slope * slope / np.diag(gram)
        gain[chosen] = -1.0
        chosen.append(int(np.argmax(gain)))
        coef = np.linalg.solve(gram[np.ix_(chosen, chosen)], products[chosen])
    return 0.5 * float(task.y @ task.y - products[chosen] @ coef)


def _nonzeros(coef: Any) -> list[int]:
    return [int(j) for j in np.flatnonzero(np.abs(coef) > 1e-9)]


def run(name: str, file: str, time_limit: float, rel_gap: float) -> dict[str, Any]:
    """Read the instance, run the solver and report; why not, where it cannot be run."""
    peer = PEERS[name]
    with np.load(file, allow_pickle=False) as stored:
        loss = str(stored["loss"]) if "loss" in stored else "quadratic"
        task = Task(
            np.ascontiguousarray(stored["A"], float),
            np.asarray(stored["y"], float).ravel(),
            int(stored["k"]),
            float(stored["lam"]),
            time_limit,
            rel_gap,
        )
    if loss not in peer.losses:
        return {"refused": f"no {loss} loss"}
    peer.get_ready()
    began, began_clock = time.process_time(), time.perf_counter()
    try:
        answer = peer.solve(task)
    except Unsuitable as reason:
        return {"refused": str(reason)}
    seconds, clock = time.process_time() - began, time.perf_counter() - began_clock
    return {**asdict(answer), "seconds": seconds, "clock": clock}


def installed() -> Iterator[str]:
    """The solvers whose module this interpreter has."""
    for name, peer in PEERS.items():
        if find_spec(peer.module) is not None:
            yield name


def main() -> None:
    """Read the command line, keep whatever the solver prints out of the answer, print the answer."""
    parser = argparse.ArgumentParser(description="One other solver on one instance.")
    parser.add_argument("peer", choices=["installed", *PEERS])
    parser.add_argument("file", nargs="?")
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--rel-gap", type=float, default=1e-4)
    given = parser.parse_args()
    with contextlib.redirect_stdout(io.StringIO()):
        answer: Any
        if given.peer == "installed":
            answer = list(installed())
        else:
            answer = run(given.peer, given.file, given.time_limit, given.rel_gap)
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
