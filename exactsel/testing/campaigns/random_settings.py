"""Settings for a tiny instance: at times the defaults, else every plug-in that serves it and every switch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from exactsel.testing.campaigns.instances import CSS, TinyInstance

T = TypeVar("T")

TOLERANCES = ((0.0, 0.0), (0.0, 1e-6), (0.1, 0.0), (0.0, 0.1), (1e4, 0.0), (0.0, 1e-9))
"""Pairs of ``eps`` and ``rel_eps``."""


def random_settings(rng: np.random.Generator, instance: TinyInstance) -> TinyInstance:
    """The same instance with settings."""
    settings: dict[str, Any] = {"threads": 1}
    chance = rng.random()
    if chance < 0.6:
        settings |= drawn(rng, instance)
    if chance < 0.15:
        settings |= only_the_search(rng)
    if rng.random() < 0.06:
        settings["node_limit"] = int(rng.integers(0, 6))
    if rng.random() < 0.1:
        settings["rel_eps"] = _pick(rng, (0.0, 1e-9, 1e-3))
    return replace(instance, settings=settings)


def only_the_search(rng: np.random.Generator) -> dict[str, Any]:
    """Settings that leave the optimum to be found node by node; tiny instances are mostly solved before that."""
    return {"heuristics": "none", "subtrees": False, "batch": int(rng.integers(1, 4)), "eps": 0.0, "rel_eps": 0.0}


def drawn(rng: np.random.Generator, instance: TinyInstance) -> dict[str, Any]:
    """Any settings that can serve the instance."""
    eps, rel_eps = _pick(rng, TOLERANCES)
    trees = ("binary",) if instance.constraint else ("binary", "binary", "state-space")
    settings = {
        "tree": _pick(rng, trees),
        "bound": _pick(rng, bounds_for(instance)),
        "branching": _pick(rng, ("auto",) if instance.loss == CSS else ("auto", "half", "largest", "costliest")),
        "frontier": _pick(rng, ("best-first", "best-first", "depth-first", "weighted")),
        "heuristics": _pick(rng, ("none", "none", "auto") if instance.loss == CSS else ("none", "forward", "auto")),
        "batch": _pick(rng, (None, 1, 2, 7, 64)),
        "threads": _pick(rng, (1, 1, 1, 2)),
        "warm_start": bool(rng.random() < 0.8),
        "force_quit": bool(rng.random() < 0.8),
        "subtrees": bool(rng.random() < 0.7),
        "eps": eps,
        "rel_eps": rel_eps,
    }
    return {name: value for name, value in settings.items() if value is not None}


def bounds_for(instance: TinyInstance) -> tuple[str, ...]:
    """Names of bounds, those that take many steps named less often."""
    if instance.loss == CSS or instance.groups:
        return ("auto",)
    adjusted = instance.loss != "quadratic" and (instance.weights is not None or instance.intercept)
    ridge: tuple[str, ...] = ("apg", "apg") if adjusted else ("apg", "apg", "supergradient", "pdal")
    ridge = () if instance.lam == 0 and instance.loss == "quadratic" else ridge
    return ("auto",) * 4 + ridge + (("fit", "split") if instance.loss == "quadratic" else ())


def _pick(rng: np.random.Generator, choices: Sequence[T]) -> T:
    return choices[int(rng.integers(len(choices)))]
