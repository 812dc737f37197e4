"""Run the seeds of a campaign, here or in processes of their own, and add up what they found."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from exactsel_dev.campaigns.processes import tried_in_processes
from exactsel_dev.campaigns.trials import Outcome, Trial

SHOWN = 10
"""Seeds that a summary names of each class."""


@dataclass
class Summary:
    """What a campaign came to."""

    kind: str
    peer: str
    first: int
    count: int
    """Seeds that were to be tried."""
    done: int = 0
    """Seeds that were tried."""
    counts: Counter[str] = field(default_factory=Counter)
    wrong: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """Seeds and details by class."""
    files: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def faults(self) -> int:
        """How many findings there are."""
        return sum(map(len, self.wrong.values()))

    @property
    def tried(self) -> int:
        """Seeds that came to a check: not refused, and served by what they were to be held against."""
        return sum(times for what, times in self.counts.items() if what.startswith("tried"))

    def take(self, outcome: Outcome) -> None:
        """Add what came of a seed."""
        self.done += 1
        self.counts.update(outcome.counts)
        self.files += outcome.files
        for what, detail in outcome.wrong:
            self.wrong.setdefault(what, []).append((outcome.seed, detail))

    def as_dict(self) -> dict[str, Any]:
        """The summary as plain data."""
        return {
            "kind": self.kind, "peer": self.peer or None, "seed": self.first, "count": self.count, "done": self.done,
            "tried": self.tried, "wrong": self.faults, "counts": dict(sorted(self.counts.items())),
            "classes": {
                what: {"times": len(found), "seeds": sorted(seed for seed, _ in found)[:SHOWN], "detail": found[0][1]}
                for what, found in sorted(self.wrong.items())
            },
            "files": self.files, "seconds": round(self.seconds, 1),
        }  # fmt: skip


def never() -> bool:
    """Nobody ends it before its end."""
    return False


def run_campaign(
    trial: Trial,
    first: int,
    count: int,
    jobs: int = 0,
    told: Callable[[Summary, Outcome], None] | None = None,
    stopped: Callable[[], bool] = never,
) -> Summary:
    """Try the seeds from ``first`` on; what is wrong with one stops none of the others.

    Parameters
    ----------
    trial : Trial
    first, count : int
        The seeds.
    jobs : int
        Processes; 0 tries all of them in this one, kernels compiled or not as they are here.
    told : callable, optional
        Called after each seed. Seeds come in any order with more than one process.
    stopped : callable
        Whether to end now, with what there is.

    Returns
    -------
    Summary
        The same for any number of processes, but for the order within it and the time.
    """
    summary = Summary(trial.kind, trial.peer, first, count)
    began = time.perf_counter()
    seeds = range(first, first + count)
    for outcome in tried_in_processes(trial, seeds, jobs, stopped) if jobs else map(trial, seeds):
        summary.take(outcome)
        summary.seconds = time.perf_counter() - began
        if told is not None:
            told(summary, outcome)
        if stopped():
            break
    summary.seconds = time.perf_counter() - began
    return summary
