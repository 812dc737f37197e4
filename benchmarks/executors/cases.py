"""Searches of known difficulty for executors; large ones take a minute or so in one process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from exactsel import Problem
from exactsel.types import FloatArray

OPTIONS: dict[str, Any] = {"heuristics": (), "rel_eps": 1e-6, "signals": (), "threads": 1}


def _alike(rng: np.random.Generator, n: int, d: int, share: float) -> FloatArray:
    own: FloatArray = rng.standard_normal((n, d)) * np.sqrt(1 - share)
    return own + np.sqrt(share) * rng.standard_normal((n, 1))


def _case(loss: str, n: int, d: int, k: int, lam: float, noise: float, **more: Any) -> Problem:
    rng = np.random.default_rng(1)
    A = _alike(rng, n, d, 0.5)
    y = A[:, :8].sum(axis=1) + noise * rng.standard_normal(n)
    return Problem(A, np.sign(y) if loss == "logistic" else y, k, lam=lam, loss=loss, **more)


LARGE: dict[str, Callable[[], Problem]] = {
    "quadratic": lambda: _case("quadratic", 60, 130, 8, 1.0, 4.0),
    "huber": lambda: _case("huber", 90, 90, 9, 0.5, 4.0, delta=1.0),
    "logistic": lambda: _case("logistic", 130, 90, 8, 0.3, 8.0),
}
LONG: dict[str, Callable[[], Problem]] = {
    "quadratic": lambda: _case("quadratic", 60, 136, 8, 1.0, 4.0),
    "huber": lambda: _case("huber", 1600, 60, 8, 1.0, 31.0, delta=1.0),
    "logistic": lambda: _case("logistic", 4000, 60, 8, 1.0, 50.0),
}
"""Searches that take one worker more than a minute, to compare two with it: a bound call takes long, or a walk does."""

SMALL: dict[str, Callable[[], Problem]] = {
    "quadratic": lambda: _case("quadratic", 40, 60, 7, 1.0, 4.0),
    "huber": lambda: _case("huber", 60, 40, 6, 0.5, 3.0, delta=1.0),
    "logistic": lambda: _case("logistic", 80, 40, 6, 0.5, 3.0),
}
CASES = {"small": SMALL, "large": LARGE, "long": LONG}
