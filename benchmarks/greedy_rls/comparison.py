"""Section 4.1, figures 1 and 2: greedy RLS against the low-rank updated LS-SVM (Algorithm 2)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.greedy_rls.reference import low_rank_update
from benchmarks.greedy_rls.scaling import exponent
from benchmarks.paper.tables import Row
from exactsel_heuristics.greedy_rls import select_path

Outcome = tuple[list[int], float]
"""The path and the seconds."""


@dataclass(frozen=True)
class Comparison:
    """Parameters; both methods run on one thread. Of ``repeats`` runs of greedy RLS the shortest counts."""

    rows_: Sequence[int] = (250, 500, 1000, 2000)
    columns: int = 40
    k: int = 10
    repeats: int = 5
    seed: int = 0

    @property
    def title(self) -> str:
        """A heading that says what was run."""
        return f"Against the low-rank updated LS-SVM: {self.columns} columns, k = {self.k}, one thread"

    def rows(self) -> Iterator[Row]:
        """One row per number of rows."""
        select_path(np.eye(8, 60), np.ones(60), 1.0, 2)
        times: tuple[list[float], list[float]] = ([], [])
        for n in self.rows_:
            fast, slow = self._run(n)
            times[0].append(fast[1])
            times[1].append(slow[1])
            seen = self.rows_[: len(times[0])]
            yield {
                "rows": n,
                "same path": "yes" if fast[0] == slow[0] else "NO",
                "greedy RLS s": times[0][-1],
                "exponent": exponent(seen, times[0]),
                "low-rank LS-SVM s": times[1][-1],
                "its exponent": exponent(seen, times[1]),
                "ratio": times[1][-1] / times[0][-1],
            }

    def _run(self, n: int) -> tuple[Outcome, Outcome]:
        rng = np.random.default_rng(self.seed)
        A = rng.standard_normal((n, self.columns))
        y = A @ rng.standard_normal(self.columns) + rng.standard_normal(n)
        AT = np.ascontiguousarray(A.T)
        return (
            timed(self.repeats, lambda: select_path(AT, y, 1.0, self.k, threads=1).columns.tolist()),
            timed(1, lambda: low_rank_update(A, y, 1.0, self.k, "squared")[0]),
        )


def timed(repeats: int, call: Callable[[], list[int]]) -> Outcome:
    """What a call returns, and the shortest time in seconds of some repeats."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - start)
    return result, min(times)
