"""Section 4.2: the MIP solvers beside the search, each in a process of its own and on one thread."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.paper.runs import EXACT
from benchmarks.speed.peers.running import PEERS
from benchmarks.speed.processes import Demands, Failed, installed, peer, solved
from exactsel.problem.regression import Problem

SCIP = "SCIP"

MIP: dict[str, str] = {
    "Gurobi, indicators": "gurobi-indicator",
    "Gurobi, perspective": "gurobi-perspective",
    SCIP: "scip",
}
"""Columns of the table, and the solvers as benchmarks.speed calls them. SCIP, too, gets the perspective."""


@dataclass(frozen=True)
class MipRun:
    """What a MIP solver answered; ``refused`` says why there is no answer."""

    value: float = np.inf
    nodes: int = 0
    seconds: float = 0.0
    solved: bool = False
    refused: str = ""


def solvers(python: str = sys.executable, names: Sequence[str] = tuple(MIP)) -> tuple[tuple[str, ...], list[str]]:
    """Those of the MIP solvers that an interpreter has, and a sentence for each that it lacks."""
    try:
        present = installed(python)
    except Failed as failure:
        return (), [f"The MIP solvers are skipped: {python} cannot list them ({failure})."]
    missing = {PEERS[MIP[name]].module for name in names if MIP[name] not in present}
    said = [
        f"{module} is skipped: {python} does not have it; pip install {module} there." for module in sorted(missing)
    ]
    return tuple(name for name in names if MIP[name] in present), said


def mip_run(problem: Problem, name: str, python: str, *, eps: float, limit: float, upper: float) -> MipRun:
    """Solve with a MIP solver until objective and bound differ by at most ``eps``.

    Parameters
    ----------
    problem : Problem
        With quadratic loss.
    name : str
        A key of ``MIP``.
    python : str
        The interpreter that has the solver.
    eps : float
        The permitted error.
    limit : float
        Seconds on the clock.
    upper : float
        The objective of some model with k columns: it limits the coefficients, which big-M needs.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "problem.npz"
        np.savez(file, A=problem.A, y=problem.y, k=problem.k, lam=problem.lam, loss="quadratic")
        demands = Demands(time_limit=limit, rel_gap=EXACT, peer_rel_gap=EXACT)
        answer = solved(peer(MIP[name], python), file, demands, ("--upper", repr(upper), "--abs-gap", repr(eps)))
    if "refused" in answer:
        return MipRun(refused=answer["refused"])
    support = answer["support"]
    value = problem.fit(support).value if support and len(support) <= problem.k else np.inf
    return MipRun(float(value), answer["nodes"], answer["seconds"], answer["finished"])
