"""Every solver on every instance: the rows of the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.paper.tables import Row, shown
from benchmarks.speed.processes import Demands, Solver, solved
from exactsel.instance import read_instance
from exactsel.problem import Problem

REFERENCE = "exactsel"
"""The solver the others' times are divided by."""

SLACK = 1e-7
"""A bound may exceed another solver's objective by this much, relatively, before that counts as a contradiction."""


@dataclass(frozen=True)
class Run:
    """One solver on one instance, or why it was not run."""

    instance: str
    solver: str
    refused: str = ""
    objective: float = float("inf")
    """Recomputed from the support; inf without a model, and for one with more than k columns."""
    lower: float | None = None
    nodes: int = 0
    seconds: float = 0.0
    clock: float = 0.0
    finished: bool = False

    @property
    def gap(self) -> float | None:
        """Relative gap between the recomputed objective and the solver's own bound."""
        if self.lower is None or self.objective == float("inf"):
            return None
        return (self.objective - self.lower) / max(1e-12, abs(self.objective))


def runs_of(file: Path, solvers: Sequence[Solver], demands: Demands) -> Iterator[Run]:
    """One instance with one solver after the other."""
    problem = read_instance(file).problem()
    for solver in solvers:
        yield run_of(file.stem, solver.name, problem, solved(solver, file, demands))


def run_of(instance: str, solver: str, problem: Problem, answer: dict[str, Any]) -> Run:
    """Judge an answer: the objective is that of the support, fitted anew."""
    if "refused" in answer:
        return Run(instance, solver, refused=answer["refused"])
    support = answer["support"]
    objective = problem.fit(support).value if len(support) <= problem.k else float("inf")
    return Run(
        instance,
        solver,
        objective=objective,
        lower=answer["lower"],
        nodes=answer["nodes"],
        seconds=answer["seconds"],
        clock=answer["clock"],
        finished=answer["finished"],
    )


def rows(runs: Sequence[Run], time_limit: float) -> Iterator[Row]:
    """The table; ratios are to exactsel on the same instance."""
    reference = {run.instance: run for run in runs if run.solver == REFERENCE}
    for run in runs:
        yield {
            "instance": run.instance,
            "solver": run.solver,
            **_cells(run, time_limit),
            "ratio": _ratio(run, reference.get(run.instance)),
        }


def _cells(run: Run, time_limit: float) -> Row:
    if run.refused:
        return {"objective": "–", "gap": run.refused, "nodes": "–", "CPU s": "–", "clock s": "–"}
    gap = "no bound" if run.gap is None else _small(run.gap)
    return {
        "objective": "–" if run.objective == float("inf") else f"{run.objective:.10g}",
        "gap": gap if run.finished else f"{gap} at the limit of {time_limit:g} s",
        "nodes": run.nodes,
        "CPU s": run.seconds,
        "clock s": run.clock,
    }


def _small(gap: float) -> str:
    return f"{100.0 * gap:.1f} %" if gap >= 1e-3 else f"{max(0.0, gap):.0e}"


def _ratio(run: Run, reference: Run | None) -> str:
    """Processor time over that of exactsel, as far as it is known from runs that were cut short."""
    if run.refused or reference is None or reference.refused or not (run.finished or reference.finished):
        return "–"
    sign = "" if run.finished and reference.finished else ("< " if run.finished else "> ")
    return sign + shown(run.seconds / max(1e-6, reference.seconds))


def contradictions(runs: Sequence[Run]) -> Iterator[str]:
    """A sentence for every bound above an objective that another solver, or the same one, reached."""
    for run in runs:
        for other in runs:
            if run.instance != other.instance or run.lower is None:
                continue
            if run.lower > other.objective + SLACK * max(1e-12, abs(other.objective)):
                yield (
                    f"{run.instance}: the bound {run.lower:.10g} of {run.solver} is above the objective "
                    f"{other.objective:.10g} of {other.solver}."
                )
