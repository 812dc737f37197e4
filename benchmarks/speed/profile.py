"""A performance profile: the share of instances a solver has solved within a multiple of the fastest solver's time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.speed.comparison import Run
from exactsel.types import FloatArray

SHORTEST = 1e-3
"""Seconds below which solvers count as equally fast."""


def ratios(runs: Sequence[Run]) -> Mapping[str, FloatArray]:
    """Per solver, ascending: its processor time over the fastest one's, inf for what it did not solve.

    Instances that nobody solved are left out, since they tell no solver from another, and for each solver those that
    it does not take (another loss, no licence).
    """
    best: dict[str, float] = {}
    for run in runs:
        if run.finished:
            best[run.instance] = min(best.get(run.instance, np.inf), max(SHORTEST, run.seconds))
    times = {(run.solver, run.instance): max(SHORTEST, run.seconds) for run in runs if run.finished}
    taken: dict[str, list[str]] = {run.solver: [] for run in runs}
    for run in runs:
        if not run.refused and run.instance in best:
            taken[run.solver].append(run.instance)
    return {
        solver: np.sort([times.get((solver, instance), np.inf) / best[instance] for instance in names])
        for solver, names in taken.items()
    }


def draw(runs: Sequence[Run], file: Path) -> None:
    """Write the picture; its format follows from the file's name."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 4.0), layout="constrained")
    axes = figure.add_subplot()
    profile = ratios(runs)
    finite = [value for values in profile.values() for value in values if np.isfinite(value)]
    most = 2.0 * max(finite, default=1.0)
    for solver, values in profile.items():
        reached = values[np.isfinite(values)]
        count = max(1, len(values))
        steps = np.arange(len(reached) + 1) / count
        name = f"{solver} ({len(values)})"
        axes.step([1.0, *reached, most], [*steps, steps[-1]], where="post", label=name)
    axes.set(
        xscale="log",
        xlim=(1.0, most),
        ylim=(0.0, 1.02),
        xlabel="processor time over that of the fastest solver",
        ylabel="share of the instances it takes that are solved",
    )
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right upper")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file)
