"""Gurobi, quadratic and Huber loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.speed.peers.common import Answer, Task, Unsuitable, nonzeros

FREE = 200
"""Variables a quadratic model may have under the free licence."""


def perspective(task: Task) -> Answer:
    """A term s per column, x² <= s z, and the valid big-M besides."""
    return _solve(task, "perspective")


def big_m(task: Task) -> Answer:
    """|x| <= M z alone."""
    return _solve(task, "big-m")


def indicator(task: Task) -> Answer:
    """x = 0 where z = 0, told as such; like the ordered sets of Bertsimas and others (2016) it needs no M."""
    return _solve(task, "indicator")


def _solve(task: Task, form: str) -> Answer:
    import gurobipy as gp

    d, M = task.A.shape[1], task.limits
    if form == "perspective" and task.lam == 0.0:
        raise Unsuitable("no ridge term, no perspective")
    if not np.all(np.isfinite(M)):
        raise Unsuitable("no limit of the coefficients is known: lam 0 and dependent columns")
    with gp.Env(params={"OutputFlag": 0}) as env, gp.Model(env=env) as model:
        model.Params.Threads = 1
        model.Params.TimeLimit = task.time_limit
        model.Params.MIPGap = task.rel_gap
        model.Params.MIPGapAbs = task.abs_gap
        x = model.addMVar(d, lb=-M, ub=M)
        z = model.addMVar(d, vtype=gp.GRB.BINARY)
        model.addConstr(z.sum() <= task.k)
        ridge = x @ x
        if form == "indicator":
            for j in range(d):
                model.addConstr((z[j].item() == 0) >> (x[j].item() == 0.0))
        else:
            model.addConstr(x <= M * z)
            model.addConstr(x >= -M * z)
        if form == "perspective":
            s = model.addMVar(d)
            for j in range(d):
                model.addConstr(x[j] * x[j] <= s[j] * z[j])
            ridge = s.sum()
        model.setObjective(_loss(task, model, x) + 0.5 * task.lam * ridge)
        model.update()
        try:
            model.optimize()
        except gp.GurobiError as error:
            if error.errno != gp.GRB.Error.SIZE_LIMIT_EXCEEDED:
                raise
            raise Unsuitable(f"licence: {model.NumVars:,} variables, free are {FREE}") from None
        support = nonzeros(np.where(z.X > 0.5, x.X, 0.0)) if model.SolCount else []
        finished = model.Status == gp.GRB.OPTIMAL
        return Answer(support, float(model.ObjBound), int(model.NodeCount), finished)


def _loss(task: Task, model: Any, x: Any) -> Any:
    """Squares by the Gram matrix; Huber as the least of r²/2 + delta |residual - r| over r, row by row."""
    A, y, n = task.A, task.y, task.A.shape[0]
    if task.loss == "quadratic":
        return 0.5 * (x @ (A.T @ A) @ x) - (A.T @ y) @ x + 0.5 * float(y @ y)
    squared = model.addMVar(n, lb=-float("inf"))
    linear = model.addMVar(n)
    model.addConstr(linear >= y - A @ x - squared)
    model.addConstr(linear >= A @ x + squared - y)
    return 0.5 * (squared @ squared) + task.delta * linear.sum()
