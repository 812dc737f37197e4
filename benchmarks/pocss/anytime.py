"""Figure 2: the error ratio of POCSS over its running time, beside Greedy and IterFS."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from benchmarks.curves import Curves, Lines
from benchmarks.paper.tables import Row
from benchmarks.pocss.experiments import NEGLIGIBLE, Comparison
from benchmarks.pocss.methods import available, reached
from exactsel import registry
from exactsel.errors import UnsupportedError
from exactsel.problem.column_subset import ColumnSubsetProblem
from exactsel_heuristics.base import Context

BASELINES = ("greedy-css", "iterative-css")

SHARES = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0)
"""Where the curve is shown in the table, as shares of POCSS's theoretical time."""


@dataclass(frozen=True)
class Figure2(Comparison):
    """The mean of the runs of POCSS at shares of its time, and after how many evaluations it is below a baseline."""

    pictures: dict[str, Lines] = field(default_factory=dict, compare=False)
    """Filled with the lines of the figure as the rows are made."""

    @property
    def title(self) -> str:
        """A heading that says what was run."""
        return f"Error ratio of POCSS over time, columns scaled: {self.scaling}"

    def rows(self) -> Iterator[Row]:
        """One row per k."""
        for problem in map(self.problem, self.ks):
            best = problem.objective.best_rank_error(problem.k)
            if best <= NEGLIGIBLE * problem.null_objective:
                raise UnsupportedError(f"{self.data} is skipped at k = {problem.k}: its best error is zero.")
            yield self._row(problem, best)

    def _row(self, problem: ColumnSubsetProblem, best: float) -> Row:
        curves, unit = self._curves(problem), problem.k * problem.d
        end = 2.0 * math.e * problem.k
        baselines = {
            name: reached(problem, name, method, self.seeds_of(name)).mean
            for name, method in available(BASELINES, self.complaints)
        }
        seen = curves.counts >= 0.1 * unit
        self.pictures[f"{self.data}, k = {problem.k}"] = {
            "pocss": (curves.counts[seen] / unit, curves.values.mean(axis=0)[seen] / best),
            **{name: (np.zeros(1), np.array([value / best])) for name, value in baselines.items()},
        }
        return {
            "data": f"{self.data} ({problem.n}, {problem.d})",
            "k": problem.k,
            "runs": len(curves.values),
            **{name: f"{value / best:.3f}" for name, value in baselines.items()},
            **{
                f"pocss, {100 * share:g} % of 2ek²d": f"{curves.at(share * end * unit).mean() / best:.3f}"
                for share in SHARES
            },
            **{
                f"below {name} after, in kd": _time(curves.passing(value) / unit, end)
                for name, value in baselines.items()
            },
        }

    def _curves(self, problem: ColumnSubsetProblem) -> Curves:
        method = registry.load("heuristics", "pocss")
        proposals = [method().run(problem, Context(seed=seed)) for seed in range(self.pocss_seeds)]
        end = max(proposal.evaluations for proposal in proposals)
        return Curves.of([proposal.curve for proposal in proposals], end, problem.null_objective)


def _time(passed: float, end: float) -> str:
    return f"{passed:.3g} ({100.0 * passed / end:.1f} %)" if np.isfinite(passed) else "never"
