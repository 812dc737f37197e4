"""Section 4.1, figure 3: the time of greedy RLS over the number of rows, against what the memory allows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.greedy_rls.bandwidth import measure
from benchmarks.paper.tables import Row
from exactsel_heuristics.greedy_rls import select_path


@dataclass(frozen=True)
class Scaling:
    """Parameters: normal data, each run ``repeats`` times, the shortest time counts."""

    rows_: Sequence[int] = (1000, 2000, 5000, 10000, 20000, 50000)
    columns: int = 1000
    k: int = 50
    threads: Sequence[int] = (1, 2)
    criterion: str = "squared"
    repeats: int = 3
    entries: int = 30_000_000
    seed: int = 0

    @property
    def title(self) -> str:
        """A heading that says what was run."""
        return f"Scaling: {self.columns:,} columns, k = {self.k}, criterion {self.criterion}"

    def rows(self) -> Iterator[Row]:
        """One row per number of threads and of rows, and the exponent of growth after the last."""
        select_path(np.eye(8, 60), np.ones(60), 1.0, 2, self.criterion)
        for threads in self.threads:
            seconds = []
            for n in self.rows_:
                # Measured each time: what other processes leave of the memory's speed changes by the minute.
                bandwidth = measure(threads, self.entries)
                seconds.append(self._seconds(n, threads))
                yield self._row(n, threads, bandwidth, seconds[-1], exponent(self.rows_[: len(seconds)], seconds))

    def _seconds(self, n: int, threads: int) -> float:
        rng = np.random.default_rng(self.seed)
        AT = rng.standard_normal((self.columns, n))
        y = np.sign(rng.standard_normal(n))
        times = []
        for _ in range(self.repeats):
            start = time.perf_counter()
            select_path(AT, y, 1.0, self.k, self.criterion, threads=threads)
            times.append(time.perf_counter() - start)
        return min(times)

    def _row(self, n: int, threads: int, bandwidth: float, seconds: float, growth: float) -> Row:
        paper, ours = (moved(n, self.columns, self.k, passes) / bandwidth for passes in (3, 2))
        return {
            "threads": threads,
            "rows": n,
            "seconds": seconds,
            "ns per entry and step": seconds / (n * self.columns * self.k) * 1e9,
            "GB/s measured": bandwidth / 1e9,
            "limit s (3 passes)": paper,
            "time / limit": seconds / paper,
            "limit s (2 passes)": ours,
            "time / that limit": seconds / ours,
            "exponent so far": growth,
        }


def moved(n: int, d: int, k: int, passes: int) -> float:
    """Bytes that k steps move, 8 n d k times the passes over a matrix of n d numbers in one step.

    Three passes (read A, read and write the cache matrix) as in the paper's Algorithm 3, done in one sweep; two (read
    and write the cache matrix) in this implementation, which reads A once, for the first step.
    """
    return 8.0 * n * d * k * passes


def exponent(rows: Sequence[int], seconds: Sequence[float]) -> float:
    """The power of the number of rows with which time grows, by least squares on logarithms; nan from one run."""
    if len(rows) < 2:
        return float("nan")
    return float(np.polyfit(np.log(rows), np.log(seconds), 1)[0])
