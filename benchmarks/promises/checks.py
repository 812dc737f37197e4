"""One search held against others."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from benchmarks.promises.runs import ProblemSequence, follow
from exactsel import Problem, solve
from exactsel.errors import UnsupportedError

BOUNDS = ("apg", "split", "fit", "pdal", "supergradient")

TIMES, BEFORE, SLACK = 3.0, 2.5e9, 0.01
"""The search may take so many times the work of the best bound alone, and this much (half a second) for what it tries
before it knows anything; then its lower bound is nowhere lower by more than this part of the objective."""


class Shortfall(NamedTuple):
    """How far a search fell short at worst, as parts of the best objective; below zero where it was ahead."""

    of_bounds: float
    """Of the best single bound, ..."""
    which: str
    """... and which one that was."""
    of_none: float
    """Of itself without any incumbent, where it knew a good one from the beginning."""
    wasted: float
    """Part of its work that went into walks and trials whose results were not used."""


def shortfall(make: Callable[[], Problem], most: float, before: float = BEFORE) -> Shortfall:
    """Follow a problem's searches: the default one, each single bound up to ``most`` multiplications, and two more.

    The search may take ``before`` multiplications besides, less where it tries little at first.
    """
    auto = follow(make(), TIMES * most + before)
    worst, which = -np.inf, ""
    for name in BOUNDS:
        try:
            alone = follow(make(), most, bound=name)
        except UnsupportedError:
            continue
        short = _short(auto, alone, most, TIMES, before)
        if short > worst:
            worst, which = short, name
    best = solve(make(), node_limit=200).support
    known, none = follow(make(), most + before, start=best), follow(make(), most, heuristics=())
    return Shortfall(worst, which, _short(known, none, most, 1.0, before), auto.wasted)


def _short(ours: ProblemSequence, other: ProblemSequence, most: float, times: float, before: float) -> float:
    work = np.geomspace(most / 100, most, 20)
    least = min(ours.upper, other.upper)
    return max(min(other.at(w), least) - ours.at(times * w + before) for w in work.tolist()) / abs(least)
