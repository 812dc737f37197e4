"""SCIP and Gurobi: the problem as a mixed-integer program, without a big M.

A unit's columns are zero where its binary variable is: an indicator, not a bound on coefficients that somebody would
have to know. Huber's loss of a residual r is the least of e²/2 + delta |r - e| over e, so it is quadratic too.
"""

from __future__ import annotations

import math
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from exactsel.testing.instances import TinyInstance
from exactsel_dev.campaigns.peers import Said
from exactsel_dev.campaigns.whole_numbers import WholeData

CHOSEN = 0.5
"""Binary variables come back as doubles."""

GAP = 1e-7
"""Relative, at which a run ends; a finer one SCIP does not always come to."""

SECONDS = 20.0
"""A run that is not done then is no answer that contradicts anything: its bounds still hold."""


def _serves(instance: TinyInstance) -> bool:
    return instance.loss in ("quadratic", "huber")


def _demands(instance: TinyInstance, z: list[Any]) -> list[Any]:
    """Constraints on the binary variables, in any modelling language that knows sums and comparisons."""
    found = [sum(z) <= instance.k]
    found += [z[unit] == 1 for unit in instance.force_in]
    found += [z[unit] == 0 for unit in instance.force_out]
    found += [z[i] + z[j] <= 1 for i, j in instance.not_both]
    for unit, above in instance.hierarchy:
        if instance.hierarchy_kind == "strong":
            found += [z[unit] <= z[parent] for parent in above]
        elif above:
            found.append(z[unit] <= sum(z[parent] for parent in above))
    return found


def _parts(instance: TinyInstance) -> tuple[Any, Any, Any]:
    """Row weights, and the ridge of each column."""
    weights = np.ones(instance.n) if instance.weights is None else instance.weights
    data = WholeData(instance)
    return weights, instance.lam * np.array([float(data.squared_scale(j)) for j in range(instance.d)]), instance.delta


def _stated(instance: TinyInstance, x: list[Any], level: object, residual: list[Any], inner: list[Any]) -> list[Any]:
    """What ties the variables of rows to the coefficients; with Huber loss ``inner`` is what counts squared."""
    found = []
    for i in range(instance.n):
        fitted = sum(float(instance.A[i, j]) * x[j] for j in range(instance.d)) + level
        found.append(fitted - float(instance.y[i]) == residual[i] + inner[i])
    return found


class Scip:
    """SCIP through pyscipopt."""

    name = "scip"

    def missing(self) -> str:
        """See :class:`exactsel_dev.campaigns.peers.Peer`."""
        return "" if find_spec("pyscipopt") else "pyscipopt is not installed; run: pip install pyscipopt."

    def serves(self, instance: TinyInstance) -> bool:
        """See :class:`exactsel_dev.campaigns.peers.Peer`."""
        return _serves(instance)

    def solve(self, instance: TinyInstance) -> Said:
        """See :class:`exactsel_dev.campaigns.peers.Peer`."""
        model = import_module("pyscipopt").Model()
        model.hideOutput()
        model.setParam("limits/gap", GAP)
        model.setParam("limits/time", SECONDS)

        def free() -> Any:
            return model.addVar(lb=None, ub=None)

        x, z = [free() for _ in range(instance.d)], [model.addVar(vtype="B") for _ in instance.units]
        for unit, columns in enumerate(instance.units):
            for j in columns:
                model.addConsIndicator(x[j] <= 0, binvar=z[unit], activeone=False)
                model.addConsIndicator(-x[j] <= 0, binvar=z[unit], activeone=False)
        for demand in _demands(instance, z):
            model.addCons(demand)
        weights, ridge, delta = _parts(instance)
        inner, rows = [free() for _ in range(instance.n)], range(instance.n)
        huber = instance.loss == "huber"
        up = [model.addVar(lb=0.0, ub=None) if huber else 0.0 for _ in rows]
        down = [model.addVar(lb=0.0, ub=None) if huber else 0.0 for _ in rows]
        level = free() if instance.intercept else 0.0
        for tie in _stated(instance, x, level, [up[i] - down[i] for i in rows], inner):
            model.addCons(tie)
        cost = model.addVar(lb=0.0, ub=None)
        squares = sum(float(weights[i]) / 2 * inner[i] * inner[i] for i in rows)
        squares += sum(float(ridge[j]) / 2 * x[j] * x[j] for j in range(instance.d) if ridge[j])
        model.addCons(squares <= cost)
        outer = sum(delta * float(weights[i]) * (up[i] + down[i]) for i in rows) if huber else 0.0
        model.setObjective(cost + outer, "minimize")
        model.optimize()
        if not model.getNSols():
            return Said((), math.inf, float(model.getDualbound()), False)
        chosen = tuple(unit for unit, one in enumerate(z) if model.getVal(one) > CHOSEN)
        done = model.getStatus() in ("optimal", "gaplimit")
        return Said(chosen, float(model.getObjVal()), float(model.getDualbound()), done)


class Gurobi:
    """Gurobi through gurobipy, with whatever licence there is: the one that comes with it takes tiny problems."""

    name = "gurobi"

    def missing(self) -> str:
        """See :class:`exactsel_dev.campaigns.peers.Peer`."""
        if not find_spec("gurobipy"):
            return "gurobipy is not installed; run: pip install gurobipy."
        module = import_module("gurobipy")
        try:
            module.Env(params={"OutputFlag": 0}).dispose()
        except module.GurobiError as error:
            return f"Gurobi finds no licence ({error}); install one."
        return ""

    def serves(self, instance: TinyInstance) -> bool:
        """See :class:`exactsel_dev.campaigns.peers.Peer`."""
        return _serves(instance)

    def solve(self, instance: TinyInstance) -> Said:
        """See :class:`exactsel_dev.campaigns.peers.Peer`."""
        module = import_module("gurobipy")
        with module.Env(params={"OutputFlag": 0, "Threads": 1}) as environment, module.Model(env=environment) as model:
            model.setParam("MIPGap", GAP)
            model.setParam("TimeLimit", SECONDS)
            huber, rows = instance.loss == "huber", range(instance.n)

            def free() -> Any:
                return model.addVar(lb=-math.inf)

            x, z = [free() for _ in range(instance.d)], [model.addVar(vtype="B") for _ in instance.units]
            inner = [free() for _ in rows]
            up, down = ([model.addVar() if huber else 0.0 for _ in rows] for _ in range(2))
            level = free() if instance.intercept else 0.0
            for unit, columns in enumerate(instance.units):
                for j in columns:
                    model.addGenConstrIndicator(z[unit], False, x[j], "=", 0.0)
            ties = _stated(instance, x, level, [up[i] - down[i] for i in rows], inner)
            for constraint in (*_demands(instance, z), *ties):
                model.addConstr(constraint)
            weights, ridge, delta = _parts(instance)
            cost = sum(weights[i] / 2 * inner[i] * inner[i] for i in rows)
            cost += sum(ridge[j] / 2 * x[j] * x[j] for j in range(instance.d))
            cost += sum(delta * weights[i] * (up[i] + down[i]) for i in rows)
            model.setObjective(cost)
            model.optimize()
            if not model.SolCount:
                return Said((), math.inf, float(model.ObjBound), False)
            chosen = tuple(unit for unit, one in enumerate(z) if one.X > CHOSEN)
            return Said(chosen, float(model.ObjVal), float(model.ObjBound), model.Status == module.GRB.OPTIMAL)
