"""Evaluations and processor time that PPOSS takes to be as good as forward selection, beside POSS."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from benchmarks.differences import p_text, unpaired
from benchmarks.paper.tables import Row
from benchmarks.pposs.cases import Case
from benchmarks.pposs.experiments import forward_value
from exactsel_heuristics._pareto_search import run_synchronously
from exactsel_heuristics._pareto_tasks import regression_task
from exactsel_heuristics.base import Context

METHODS = (
    ("POSS", 1, 1),
    ("PPOSS", 2, None),
    ("PPOSS", 8, None),
    ("PPOSS, batch 1", 8, 1),
    ("PPOSS, batch 166", 8, 166),
)
"""Name, processors and batch; 166 was the batch from the first iteration on before batches grew."""


@dataclass(frozen=True)
class Quality:
    """One thread; a run ends after ``budget`` times the evaluations of the theorem."""

    cases: Sequence[Case]
    seeds: int
    budget: float = 4.0

    @property
    def title(self) -> str:
        """A heading that says what was run."""
        return f"WorkBudget to reach forward selection, mean of {self.seeds} runs"

    def rows(self) -> Iterator[Row]:
        """One row per case and method; the time is that of an offspring times the evaluations needed."""
        for case in self.cases:
            task, target = regression_task(case.problem), forward_value(case) * (1 + 1e-9)
            limit = int(self.budget * 2 * math.e * task.k**2 * task.d)
            poss: list[float] = []
            for name, processors, batch in METHODS:
                needed, cpu = [], []
                for seed in range(-1, self.seeds):
                    began = time.process_time()
                    outcome = run_synchronously(
                        task,
                        Context(seed=1000 + seed),
                        iterations=limit // processors,
                        processors=processors,
                        batch=batch,
                    )
                    took = (time.process_time() - began) / outcome.evaluations
                    if seed >= 0:
                        reached = next((count for count, value in outcome.curve if value <= target), limit)
                        needed.append(float(reached))
                        cpu.append(took * reached)
                mean, poss = fmean(needed), poss or needed
                error = stdev(needed) / math.sqrt(len(needed)) if len(needed) > 1 else 0.0
                yield {
                    "data": case.name, "method": name, "N": processors, "evaluations": f"{mean:,.0f} ± {error:,.0f}",
                    "over POSS": mean / fmean(poss), "ms of CPU": 1e3 * fmean(cpu),
                    "against POSS, Mann-Whitney p": "–" if poss is needed else p_text(unpaired(needed, poss)),
                }  # fmt: skip
