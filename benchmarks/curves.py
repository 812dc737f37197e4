"""Anytime curves: how good the best model of a random method is after so many evaluations, over several runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from exactsel.types import FloatArray

LANDMARKS = (1, 2, 3, 4, 5, 7, 10, 15, 20, 25, 30, 40, 50, 70, 100, 150, 200, 250, 300, 400)
"""Where curves are shown, in units of k d evaluations, the time of forward selection."""

Curve = Sequence[tuple[int, float]]
"""(evaluations, best objective so far) at each improvement."""


def landmarks(k: int) -> tuple[float, ...]:
    """The landmarks below 2 e k, the theoretical time of the papers in units of k d evaluations, and 2 e k itself."""
    end = 2.0 * math.e * k
    return (*(float(mark) for mark in LANDMARKS if mark < end), end)


def best_at(curve: Curve, evaluations: Sequence[float], start: float) -> FloatArray:
    """The best objective after each number of evaluations, (len(evaluations),); ``start`` before the first model."""
    counts = np.array([count for count, _ in curve], dtype=float)
    values = np.array([start, *(value for _, value in curve)])
    best: FloatArray = values[np.searchsorted(counts, np.asarray(evaluations, dtype=float), side="right")]
    return best


@dataclass(frozen=True)
class Curves:
    """The runs of one method on one problem: objectives (runs, points) after ``counts`` (points,) evaluations."""

    counts: FloatArray
    values: FloatArray

    @classmethod
    def of(cls, curves: Sequence[Curve], end: int, start: float) -> Curves:
        """All runs at every number of evaluations at which one of them improved, and at ``end``."""
        counts = sorted({0, end, *(count for curve in curves for count, _ in curve if count <= end)})
        values = np.array([best_at(curve, counts, start) for curve in curves])
        return cls(np.array(counts, dtype=float), values)

    def at(self, evaluations: float) -> FloatArray:
        """The best objective of every run after so many evaluations, (runs,)."""
        position = int(np.searchsorted(self.counts, evaluations, side="right")) - 1
        values: FloatArray = self.values[:, max(position, 0)]
        return values

    def passing(self, baseline: float) -> float:
        """Evaluations after which the mean of the runs is below ``baseline``; nan where it never is.

        What is equal but for rounding is not below.
        """
        below = np.flatnonzero(self.values.mean(axis=0) < baseline - 1e-9 * abs(baseline))
        return float(self.counts[below[0]]) if below.size else math.nan


Lines = Mapping[str, tuple[FloatArray, FloatArray]]
"""By name the points (x, y) of a line; one point is a level."""


def draw(pictures: Mapping[str, Lines], labels: tuple[str, str], file: Path) -> None:
    """One picture per title, its lines drawn as steps, the axes labelled (x, y)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.0 * len(pictures), 4.0), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (title, lines) in zip(figure.subplots(1, len(pictures), squeeze=False)[0], pictures.items(), strict=True):
        for number, (name, (x, y)) in enumerate(lines.items()):
            colour = f"C{number}"
            if len(x) == 1:
                axes.axhline(float(y[0]), linestyle="--", color=colour, label=name)
            else:
                axes.step(x, y, where="post", color=colour, label=name)
        axes.set(title=title, xlabel=labels[0], ylabel=labels[1])
        axes.legend()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=120)
