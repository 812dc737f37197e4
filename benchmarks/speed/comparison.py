"""Every solver on every instance: the rows of the table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.paper.tables import Row, shown
from benchmarks.speed.hints import hints
from benchmarks.speed.peers.running import PEERS
from benchmarks.speed.processes import Demands, Solver, solved
from exactsel.data.instance import read_instance
from exactsel.problem.regression import Problem

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
    limit: float = 0.0
    """Seconds on the clock it was allowed."""

    @property
    def gap(self) -> float | None:
        """Relative gap between the recomputed objective and the solver's own bound."""
        if self.lower is None or self.objective == float("inf"):
            return None
        return (self.objective - self.lower) / max(1e-12, abs(self.objective))


Kept = Mapping[tuple[str, str], Run]
"""Earlier runs, by instance and solver."""


def runs_of(file: Path, solvers: Sequence[Solver], demands: Demands, kept: Kept) -> Iterator[Run]:
    """One instance with one solver after the other; those kept from earlier are not run again."""
    problem = read_instance(file).problem()
    missing = [solver.name for solver in solvers if (file.stem, solver.name) not in kept]
    told = told_to_peers(problem, missing)
    for solver in solvers:
        if solver.name in missing:
            answer = solved(solver, file, demands, told if solver.name in PEERS else ())
            yield run_of(file.stem, solver.name, problem, answer, demands.time_limit)
        else:
            yield kept[file.stem, solver.name]


def told_to_peers(problem: Problem, names: Sequence[str]) -> tuple[str, ...]:
    """Options for the peers among the solvers, as far as these can use them."""
    peers = [PEERS[name] for name in names if name in PEERS and problem.loss.name in PEERS[name].losses]
    if not peers:
        return ("--upper", "nan")
    return hints(problem, any(peer.penalised for peer in peers)).arguments()


def read_runs(file: Path) -> Kept:
    """The runs kept in a file of one line of JSON each, the last where there are several; none without the file."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    runs = [Run(**json.loads(line)) for line in lines]
    return {(run.instance, run.solver): run for run in runs}


def keep_run(file: Path, run: Run) -> None:
    """Add a run to such a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as opened:
        opened.write(json.dumps(asdict(run)) + "\n")


def run_of(instance: str, solver: str, problem: Problem, answer: dict[str, Any], limit: float) -> Run:
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
        limit=limit,
    )


def rows(runs: Sequence[Run]) -> Iterator[Row]:
    """The table; ratios are to exactsel on the same instance."""
    reference = {run.instance: run for run in runs if run.solver == REFERENCE}
    for run in runs:
        yield {
            "instance": run.instance,
            "solver": run.solver,
            **_cells(run),
            "ratio": _ratio(run, reference.get(run.instance)),
        }


def _cells(run: Run) -> Row:
    if run.refused:
        return {"objective": "–", "gap": run.refused, "nodes": "–", "CPU s": "–", "clock s": "–"}
    missing = "no bound" if run.lower is None else "no model of k columns"
    gap = missing if run.gap is None else _small(run.gap)
    return {
        "objective": "–" if run.objective == float("inf") else f"{run.objective:.10g}",
        "gap": gap if run.finished else f"{gap} at the limit of {run.limit:g} s",
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
