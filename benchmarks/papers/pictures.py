"""Pictures of several panels under one legend."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

WIDE = 3
"""Panels side by side; further ones go below."""

FEW = 10
"""Whole numbers that lie no further apart are named one by one on an axis."""

LONG = 6
"""Letters of a name on an axis from which on names are turned."""

Style = Literal["marks", "steps", "curve", "level"]

MARKS = "osD^vPX*<>hd"


@dataclass(frozen=True)
class Line:
    """Points, with deviations drawn as bars."""

    x: Sequence[float]
    y: Sequence[float]
    error: Sequence[float] = ()
    style: Style = "marks"
    """A level is a horizontal line through the first point; steps and curves are of many points, without marks."""


@dataclass(frozen=True)
class Panel:
    """One coordinate system. ``ticks`` names positions on the x axis, where x is not a number on a scale."""

    title: str
    x: str
    y: str
    lines: Mapping[str, Line]
    log_x: bool = False
    log_y: bool = False
    ticks: Mapping[float, str] | None = None
    joined: bool = True
    """Points of a line are joined."""


def draw(panels: Sequence[Panel], file: Path) -> None:
    """Draw the panels; a name has the same colour and mark in all of them."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    across = 2 if len(panels) in (2, 4) else min(WIDE, len(panels))
    down = math.ceil(len(panels) / across)
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    figure = Figure(figsize=(4.6 * across, 3.5 * down + 0.25 * math.ceil(len(names) / (2 * across))))
    figure.set_layout_engine("constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(down, across, squeeze=False).ravel()
    for axes, panel in zip(grid, panels, strict=False):
        _draw(axes, panel, names)
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    handles = {label: handle for axes in grid for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    shown = [name for name in names if name in handles]
    figure.legend([handles[name] for name in shown], shown, loc="outside lower center", ncols=2 * across, fontsize=9)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)


def _draw(axes: Any, panel: Panel, names: Sequence[str]) -> None:
    for name, line in panel.lines.items():
        number = names.index(name)
        # Later ones are thinner, so that those below are seen where they coincide.
        width, size = max(0.8, 3.2 - 0.3 * number), max(3.5, 9.0 - 0.7 * number)
        colour, mark = f"C{number % 10}", MARKS[number % len(MARKS)]
        if line.style == "level":
            axes.axhline(line.y[0], linestyle="--", color=colour, label=name)
        elif line.style == "steps":
            axes.step(line.x, line.y, where="post", color=colour, label=name)
        elif line.style == "curve":
            axes.plot(line.x, line.y, color=colour, label=name)
        else:
            joined = {"linewidth": width, "markersize": size, "elinewidth": 1.2}
            apart = {"linestyle": "none", "elinewidth": 1.2, "markersize": 6}
            style = {"marker": mark, "capsize": 2, **(joined if panel.joined else apart)}
            axes.errorbar(line.x, line.y, yerr=_bars(line, panel.log_y), color=colour, label=name, **style)
    axes.set_title(panel.title, fontsize=10)
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
    if panel.log_x:
        axes.set_xscale("log")
        _name_few(axes.xaxis)
    if panel.log_y:
        axes.set_yscale("log")
        _name_few(axes.yaxis)
    if panel.ticks is not None:
        axes.set_xticks(list(panel.ticks), list(panel.ticks.values()))
        if max(map(len, panel.ticks.values())) > LONG:
            axes.tick_params(axis="x", labelrotation=30, labelsize=8)
    elif not panel.log_x and _few_whole_numbers(panel):
        axes.set_xticks(sorted({x for line in panel.lines.values() for x in line.x}))
    axes.grid(alpha=0.3)


def _few_whole_numbers(panel: Panel) -> bool:
    places = {x for line in panel.lines.values() if line.style != "level" for x in line.x}
    return bool(places) and all(float(x).is_integer() for x in places) and max(places) - min(places) <= FEW


def _name_few(axis: Any) -> None:
    """Name the powers of ten, and twice and five times them where there are few powers."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    low, high = axis.get_view_interval()
    short = low > 0.0 and high < 100.0 * low
    axis.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
    axis.set_minor_formatter(StrMethodFormatter("{x:g}") if short else NullFormatter())
    if short:
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))


def _bars(line: Line, log: bool) -> Any:
    """Deviations up and down; on a logarithmic axis no bar reaches below a tenth of its point."""
    if not any(line.error):
        return None
    down = [max(0.0, min(error, 0.9 * y)) if log else error for y, error in zip(line.y, line.error, strict=True)]
    return [down, list(line.error)]
