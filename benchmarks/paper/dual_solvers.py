"""Appendix B: the search with PDAL against the search with supergradient ascent (SGA)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.differences import p_text, paired
from benchmarks.paper.runs import FAITHFUL, Options, Run, calls, check_agreement, seconds, solved, synthetic, timed
from benchmarks.paper.runs import warm_up as compile_kernels
from benchmarks.paper.tables import Row

SOLVERS: dict[str, Options] = {"PDAL": FAITHFUL, "SGA": {**FAITHFUL, "bound": "supergradient"}}


@dataclass(frozen=True)
class DualSolvers:
    """Parameters."""

    loss: str
    ks: Sequence[int]
    n: int
    d: int
    lam: float
    instances: int
    limit: float
    seed: int = 0

    @property
    def title(self) -> str:
        """A heading that says what was run."""
        return (
            f"PDAL and supergradient ascent: {self.loss}, n = {self.n}, d = {self.d}, lam = {self.lam:g}, "
            f"{self.instances} instances per k, limit {self.limit:g} s"
        )

    def rows(self) -> Iterator[Row]:
        """One row per k."""
        compile_kernels([self.loss], SOLVERS.values())
        for k in self.ks:
            yield self._row(k)

    def _row(self, k: int) -> Row:
        runs: dict[str, list[Run]] = {name: [] for name in SOLVERS}
        for number in range(self.instances):
            problem = synthetic(self.loss, self.n, self.d, k, self.seed + number, self.lam).problem()
            for name, mode in SOLVERS.items():
                runs[name].append(timed(problem, mode, limit=self.limit))
            check_agreement(problem, runs["PDAL"][-1], runs["SGA"][-1])
        row: Row = {"k": k}
        for name, made in runs.items():
            row |= {f"{name}: solved": solved(made), f"{name}: calls": calls(made), f"{name}: seconds": seconds(made)}
        fewer = sum(p.calls < s.calls for p, s in zip(runs["PDAL"], runs["SGA"], strict=True) if p.solved and s.solved)
        pdal, sga = runs["PDAL"], runs["SGA"]
        return row | {
            "PDAL needs fewer calls": f"{fewer}/{self.instances}",
            "calls, Wilcoxon p": p_text(paired([run.calls for run in pdal], [run.calls for run in sga])),
            "seconds, Wilcoxon p": p_text(paired([run.seconds for run in pdal], [run.seconds for run in sga])),
        }
