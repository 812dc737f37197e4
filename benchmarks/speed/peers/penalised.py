"""Solvers that take a price per column instead of their number: El0ps and L0BnB.

A bound on P(x) + penalty ||x||₀ over all x is, less penalty times k, one on P(x) over the models of at most k columns.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.speed.peers.common import Answer, Task, Unsuitable, nonzeros

SMALL_GAP = 1e-2
"""Gap asked for when a solver is only to compile itself."""


def el0ps(task: Task) -> Answer:
    """El0ps. pybnb's gap is relative to the larger of 1 and its objective; the demand is rescaled."""
    whole = task.upper + task.penalty * task.k
    solver = _recording(task.time_limit, task.rel_gap * task.upper / max(1.0, whole))
    coef = solver.solve(*_el0ps_terms(task), np.asfortranarray(task.A), task.penalty).x
    results = solver.results
    finished = str(results.termination_condition) in ("optimality", "queue_empty")
    return _answer(task, nonzeros(coef), float(results.bound), int(results.nodes), finished)


def compile_el0ps(task: Task) -> None:
    """Its classes are compiled per loss, in every process: solve a small problem, and the root of this one."""
    if task.lam == 0.0:
        raise Unsuitable("no ridge term")
    rng = np.random.default_rng(0)
    A = np.asfortranarray(rng.standard_normal((40, 20)))
    signs = np.where(A[:, 0] + 0.5 * rng.standard_normal(40) < 0.0, -1.0, 1.0)
    small = replace(task, A=A, y=signs, k=1, upper=20.0, penalty=1.0, rel_gap=SMALL_GAP)
    _recording(20.0, SMALL_GAP).solve(*_el0ps_terms(small), A, small.penalty)
    solver = _recording(20.0, SMALL_GAP, node_limit=1)
    solver.solve(*_el0ps_terms(task), np.asfortranarray(task.A), task.penalty)


def _el0ps_terms(task: Task) -> tuple[Any, Any]:
    from el0ps.datafit import Leastsquares, Logistic
    from el0ps.penalty import BigmL2norm, L2norm

    losses, ridge = {"quadratic": Leastsquares, "logistic": Logistic}, 0.5 * task.lam
    return losses[task.loss](task.y), L2norm(ridge) if task.stated == math.inf else BigmL2norm(task.stated, ridge)


def _recording(time_limit: float, gap: float, **limits: int) -> Any:
    """Its solver; it leaves the lower bound out of what it returns, so keep what it made that from."""
    from el0ps.solver import BnbSolver

    class Recording(BnbSolver):
        results: Any = None

        def package_results(self, problem: Any, results: Any) -> Any:
            self.results = results
            return super().package_results(problem, results)

    return Recording(time_limit=time_limit, relative_gap=gap, **limits)


def l0bnb(task: Task) -> Answer:
    """L0BnB, from a model we know. Its gap is relative to the penalised objective; the demand is rescaled."""
    from l0bnb import BNBTree

    if task.largest == math.inf:
        raise Unsuitable("no limit of the coefficients is known: lam 0 and dependent columns")
    gap = task.rel_gap * task.upper / (task.upper + task.penalty * task.k)
    start = np.zeros(task.A.shape[1])
    start[list(task.start)] = 1.0  # it looks at the columns only
    weights = (task.penalty, 0.5 * task.lam, task.largest)
    tree = BNBTree(task.A, task.y)
    found = tree.solve(*weights, gap_tol=gap, warm_start=start if task.start else None, time_limit=task.time_limit)
    emptied = tree.bfs_queue.empty() and tree.dfs_queue.empty()
    finished = bool(emptied or found.gap <= gap)
    own = found.cost - max(found.gap, gap) * abs(found.cost)
    # It has no bound on what an empty queue leaves out, which its tolerances keep within the gap asked for.
    lower = found.cost - gap * abs(found.cost) if emptied else own
    return _answer(task, nonzeros(found.beta), float(lower), int(tree.number_of_nodes), finished)


def compile_l0bnb(task: Task) -> None:
    """Solve two small problems; its kernels name ``np.Inf``, which numpy 2 no longer has."""
    if not hasattr(np, "Inf"):
        np.Inf = np.inf  # noqa: NPY201
    from l0bnb import BNBTree

    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 20))
    y = A[:, :3].sum(axis=1) + rng.standard_normal(40)
    for ridge, largest in ((0.1, 3.0), (0.001, 0.1)):
        BNBTree(A, y).solve(1.0, ridge, largest, gap_tol=SMALL_GAP, time_limit=20.0)


def _answer(task: Task, support: list[int], lower: float, nodes: int, finished: bool) -> Answer:
    if finished and len(support) != task.k:
        raise Unsuitable(f"at {task.penalty:.4g} a column its optimum has {len(support)} columns")
    return Answer(support, lower - task.penalty * task.k, nodes, finished)
