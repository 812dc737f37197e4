"""Appendix C: warm start and force-quit, each on and off, in faithful mode."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.differences import p_text, paired
from benchmarks.paper.runs import FAITHFUL, Options, Run, calls, check_agreement, seconds, solved, synthetic, timed
from benchmarks.paper.runs import warm_up as compile_kernels
from benchmarks.paper.tables import Row, Spread

VARIANTS: dict[str, Options] = {
    "neither": {"warm_start": False, "force_quit": False},
    "warm start": {"warm_start": True, "force_quit": False},
    "force-quit": {"warm_start": False, "force_quit": True},
    "both": {"warm_start": True, "force_quit": True},
}


@dataclass(frozen=True)
class Ablation:
    """Parameters."""

    ds: Sequence[int]
    n: int
    k: int
    lam: float
    instances: int
    limit: float
    seed: int = 0

    @property
    def title(self) -> str:
        """A heading that says what was run."""
        return (
            f"Ablation: huber, n = {self.n}, k = {self.k}, lam = {self.lam:g}, {self.instances} instances per d, "
            f"limit {self.limit:g} s"
        )

    def rows(self) -> Iterator[Row]:
        """Four rows per d."""
        compile_kernels(["huber"], [FAITHFUL])
        for d in self.ds:
            yield from self._rows(d)

    def _rows(self, d: int) -> Iterator[Row]:
        runs: dict[str, list[Run]] = {name: [] for name in VARIANTS}
        for number in range(self.instances):
            problem = synthetic("huber", self.n, d, self.k, self.seed + number, self.lam).problem()
            for name, switches in VARIANTS.items():
                runs[name].append(timed(problem, {**FAITHFUL, **switches}, limit=self.limit))
                check_agreement(problem, runs["neither"][-1], runs[name][-1])
        for name, made in runs.items():
            yield {
                "d": d,
                "accelerated by": name,
                "solved": solved(made),
                "calls": calls(made),
                "iterations": Spread.of([run.iterations for run in made], not all(run.solved for run in made)),
                "seconds": seconds(made),
                "iterations against both, Wilcoxon p": p_text(_iterations_p(made, runs["both"])),
            }


def _iterations_p(made: Sequence[Run], both: Sequence[Run]) -> float:
    return math.nan if made is both else paired([run.iterations for run in made], [run.iterations for run in both])
