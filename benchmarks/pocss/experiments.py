"""The rows of each table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.differences import p_text, unpaired
from benchmarks.paper.tables import Row
from benchmarks.pocss.data import SCALINGS, matrix
from benchmarks.pocss.methods import ALL, Reached, available, reached
from benchmarks.pocss.published import NOTHING, figure
from exactsel import solve
from exactsel.errors import UnsupportedError
from exactsel.problem.column_subset import ColumnSubsetProblem

NEGLIGIBLE = 1e-12
"""Times ||A||_F²: a best rank-k error up to this is rounding, and the error ratio has no meaning."""


@dataclass(frozen=True)
class Comparison:
    """What all tables share: a data set, its scaling, the methods and the seeds of random ones."""

    data: str
    ks: tuple[int, ...]
    scaling: str = "unit"
    methods: tuple[str, ...] = ALL
    seeds: int = 10
    pocss_seeds: int = 10
    complaints: list[str] = field(default_factory=list, compare=False)
    folder: Path | None = None
    first: int | None = None
    """Only so many rows of the file, from its first."""

    @property
    def title(self) -> str:
        """A heading that says what was run."""
        raise NotImplementedError

    def rows(self) -> Iterator[Row]:
        """The rows of the table, each as soon as it is there."""
        raise NotImplementedError

    def problem(self, k: int) -> ColumnSubsetProblem:
        """The scaled matrix with at most k columns to choose."""
        A = SCALINGS[self.scaling](matrix(self.data, self.folder)[: self.first])
        return ColumnSubsetProblem(A, min(k, A.shape[1]))

    def reached(self, problem: ColumnSubsetProblem) -> dict[str, Reached]:
        """What each method reaches; a sentence in ``complaints`` for one that gives up."""
        results = {}
        for name, method in available(self.methods, self.complaints):
            try:
                results[name] = reached(problem, name, method, self.seeds_of(name))
            except UnsupportedError as reason:
                self.complaints.append(f"{self.data}: {reason}")
        return results

    def seeds_of(self, method: str) -> int:
        """Number of runs of a random method."""
        return self.pocss_seeds if method == "pocss" else self.seeds


class Table1(Comparison):
    """Error ratios beside those of the paper."""

    @property
    def title(self) -> str:
        """A heading that says what was run."""
        return f"Error ratios, columns scaled: {self.scaling}"

    def rows(self) -> Iterator[Row]:
        """One row per k and method."""
        for problem in map(self.problem, self.ks):
            best = problem.objective.best_rank_error(problem.k)
            meaningful = best > NEGLIGIBLE * problem.null_objective
            results = self.reached(problem)
            for name, result in results.items():
                yield {
                    "data": f"{self.data} ({problem.n}, {problem.d})",
                    "k": problem.k,
                    "method": name,
                    "runs": len(result.values),
                    "error ratio": result.over(best) if meaningful else NOTHING,
                    "best run": f"{min(result.values) / best:.3f}" if meaningful else NOTHING,
                    "paper": figure(self.data, problem.k, name),
                    "seconds a run": f"{result.seconds:.3g}",
                    "against pocss, Mann-Whitney p": _p(result, results.get("pocss")),
                }


def _p(result: Reached, pocss: Reached | None) -> str:
    return "–" if pocss is None or result is pocss else p_text(unpaired(result.values, pocss.values))


class Figure1(Comparison):
    """Error ratios over k."""

    @property
    def title(self) -> str:
        """A heading that says what was run."""
        return f"Error ratios over k, columns scaled: {self.scaling}"

    def rows(self) -> Iterator[Row]:
        """One row per k that leaves columns out."""
        d = self.problem(1).d
        for k in (k for k in self.ks if k < d):
            problem = self.problem(k)
            best = problem.objective.best_rank_error(k)
            results = self.reached(problem)
            yield {"data": self.data, "k": k} | {
                name: results[name].over(best) if name in results else NOTHING
                for name, _ in available(self.methods, self.complaints)
            }


@dataclass(frozen=True)
class Exact(Comparison):
    """Small k solved exactly, and by how much each method misses the optimum."""

    time_limit: float = 60.0

    @property
    def title(self) -> str:
        """A heading that says what was run."""
        return f"Mean excess over the optimum, columns scaled: {self.scaling}, limit {self.time_limit:g} s"

    def rows(self) -> Iterator[Row]:
        """One row per k."""
        for problem in map(self.problem, self.ks):
            result = solve(problem, time_limit=self.time_limit, threads=1)
            runs = self.reached(problem)
            # A run that was cut short proves no optimum; the best selection anyone found then stands in for it.
            best = min([result.upper, *(min(run.values) for run in runs.values())])
            mark = "" if result.reached else "≥ "
            yield {
                "data": self.data,
                "k": problem.k,
                "claim": result.claim.value,
                "best objective": f"{best:.6f}",
                "proven lower bound": f"{result.lower:.6f}",
                "nodes": result.nodes,
                "seconds": f"{result.time:.3g}",
                **{
                    name: f"{mark}{100.0 * max(0.0, runs[name].mean / best - 1.0):.3f} %" if name in runs else NOTHING
                    for name, _ in available(self.methods, self.complaints)
                },
            }
