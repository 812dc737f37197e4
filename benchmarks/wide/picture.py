"""Time and memory over the number of columns, as a picture that is the same for the same runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from benchmarks.wide.runs import Run

ROWS = 1000
"""Of every instance in the picture."""

COLOURS = ("#0b6e99", "#b3541e", "#566072")


def lines(runs: Iterable[Run]) -> dict[str, list[tuple[int, float, float, bool]]]:
    """By series (p, seconds, MB, whether it was solved to the end), ascending."""
    found: dict[str, list[tuple[int, float, float, bool]]] = {}
    for run in runs:
        if (series := run["instance"]["series"]) and "refused" not in run:
            point = (run["instance"]["p"], run["seconds"], run["megabytes"], run["finished"])
            found.setdefault(series, []).append(point)
    return {series: sorted(points) for series, points in found.items()}


def draw(runs: Iterable[Run], file: Path) -> None:
    """Write the picture; runs that a limit ended are hollow."""
    import matplotlib
    from matplotlib.figure import Figure

    kept = list(runs)
    with matplotlib.rc_context({"svg.hashsalt": "exactsel", "font.family": "sans-serif"}):
        figure = Figure(figsize=(9.0, 3.8), layout="constrained")
        panels = figure.subplots(1, 2)
        for colour, (series, points) in zip(COLOURS, lines(kept).items(), strict=False):
            columns = [point[0] for point in points]
            for axes, which in zip(panels, (1, 2), strict=True):
                axes.plot(columns, [point[which] for point in points], color=colour, label=series)
                for point in points:
                    face = colour if point[3] else "white"
                    axes.plot(point[0], point[which], marker="o", color=colour, markerfacecolor=face)
        for axes, label in zip(panels, ("seconds of processor time", "largest memory, MB"), strict=True):
            axes.set(xscale="log", yscale="log", xlabel=f"columns ({ROWS:,} rows)", ylabel=label)
            axes.grid(alpha=0.3)
        widest = sorted({point[0] for points in lines(kept).values() for point in points})
        panels[1].plot(widest, [8e-6 * ROWS * p for p in widest], "--", color=COLOURS[-1], label="A in doubles")
        panels[1].legend(fontsize=8)
        file.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(file, metadata={"Date": None, "Creator": None}, facecolor="white")
