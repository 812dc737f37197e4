"""SCIP, with a term s per column, x² <= s z, and the valid big-M besides."""

from __future__ import annotations

from typing import Any

from benchmarks.speed.peers.common import Answer, Task, Unsuitable


def scip(task: Task) -> Answer:
    """Solve with a single thread."""
    import pyscipopt as ps

    d, M = task.A.shape[1], task.limits.tolist()
    if task.largest == float("inf"):
        raise Unsuitable("no limit of the coefficients is known: lam 0 and dependent columns")
    model = ps.Model()
    model.hideOutput()
    model.setParam("limits/time", task.time_limit)
    model.setParam("limits/gap", task.rel_gap)
    model.setParam("limits/absgap", task.abs_gap)
    model.setParam("parallel/maxnthreads", 1)
    model.setParam("lp/threads", 1)
    x = [model.addVar(lb=-M[j], ub=M[j]) for j in range(d)]
    z = [model.addVar(vtype="B") for _ in range(d)]
    s = [model.addVar() for _ in range(d)]
    model.addCons(ps.quicksum(z) <= task.k)
    for j in range(d):
        model.addCons(x[j] <= M[j] * z[j])
        model.addCons(x[j] >= -M[j] * z[j])
        model.addCons(x[j] * x[j] <= s[j] * z[j])
    model.setObjective(_LOSSES[task.loss](task, model, x) + 0.5 * task.lam * ps.quicksum(s))
    model.optimize()
    support = [j for j in range(d) if model.getVal(z[j]) > 0.5] if model.getNSols() else []
    return Answer(support, float(model.getDualbound()), int(model.getNTotalNodes()), model.getStatus() != "timelimit")


def _products(task: Task, x: list[Any]) -> list[Any]:
    import pyscipopt as ps

    return [ps.quicksum(float(a) * v for a, v in zip(row, x, strict=True)) for row in task.A]


def _quadratic(task: Task, model: Any, x: list[Any]) -> Any:
    rows = [model.addVar(lb=None) for _ in task.y]
    for row, product, target in zip(rows, _products(task, x), task.y, strict=True):
        model.addCons(row == float(target) - product)
    return _half_squares(model, rows)


def _huber(task: Task, model: Any, x: list[Any]) -> Any:
    """The least of r²/2 + delta |residual - r| over r, row by row."""
    import pyscipopt as ps

    squared = [model.addVar(lb=None) for _ in task.y]
    linear = [model.addVar() for _ in task.y]
    for i, product in enumerate(_products(task, x)):
        rest = float(task.y[i]) - product - squared[i]
        model.addCons(linear[i] >= rest)
        model.addCons(linear[i] >= -rest)
    return _half_squares(model, squared) + task.delta * ps.quicksum(linear)


def _logistic(task: Task, model: Any, x: list[Any]) -> Any:
    """A row's loss f >= log(1 + exp(w)), written as the convex exp(w - f) + exp(-f) <= 1."""
    import pyscipopt as ps

    losses = [model.addVar() for _ in task.y]
    for i, product in enumerate(_products(task, x)):
        w = model.addVar(lb=None)
        model.addCons(w == -float(task.y[i]) * product)
        model.addCons(ps.exp(w - losses[i]) + ps.exp(-losses[i]) <= 1.0)
    return ps.quicksum(losses)


def _half_squares(model: Any, values: list[Any]) -> Any:
    import pyscipopt as ps

    total = model.addVar()
    model.addCons(total >= 0.5 * ps.quicksum(value * value for value in values))
    return total


_LOSSES = {"quadratic": _quadratic, "huber": _huber, "logistic": _logistic}
