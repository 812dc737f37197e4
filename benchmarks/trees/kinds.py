"""Runs of every kind of problem and restriction: what the other cases leave out.

Limits on coefficients, limits on groups, hierarchies, wide data, offsets, every loss, and rounds that are divided.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.speed.instances import HARD_SEED
from exactsel import Problem
from exactsel.problem.boxed import boxed
from exactsel.types import FloatArray

LOSSES = ("quadratic", "huber", "logistic", "poisson", "squared_hinge")


def kinds() -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """A name, what makes the problem, and the settings of each run."""
    for loss in ("poisson", "squared_hinge"):
        yield f"rows of {loss}", lambda loss=loss: made(loss), {}
        yield f"rows of {loss}, divided", lambda loss=loss: made(loss), {"shard": 2, "batch": 8}
    for loss in LOSSES:
        yield f"signs, {loss}", lambda loss=loss: boxed(made(loss), positive=True), {}
        yield f"groups of one, {loss}", lambda loss=loss: made(loss, groups=[[j] for j in range(14)]), {}
        yield f"one of a pair, {loss}", lambda loss=loss: made(loss, **PAIRS), {}
        yield f"hierarchy, {loss}", lambda loss=loss: made(loss, hierarchy=PARENTS), {}
    yield "bounds nobody meets", lambda: boxed(made("quadratic"), bounds=[(j, -1e6, 1e6) for j in range(14)]), {}
    yield "signs, no ridge", lambda: boxed(made("quadratic", lam=0.0), positive=True), {}
    yield "signs in groups", lambda: boxed(made("huber", groups=THREES), positive=True), {"node_limit": 200}
    yield "one of a pair, no ridge", lambda: made("quadratic", lam=0.0, **PAIRS), {}
    yield (
        "an offset, poisson",
        lambda: Problem.prepared(*rows("poisson"), 3, loss="poisson", lam=0.1, offset=OFFSET),
        {},
    )
    yield "an offset, quadratic", lambda: Problem.prepared(*rows("quadratic"), 3, lam=0.1, offset=OFFSET), {}
    yield "wide, counted", lambda: wide(3), {}
    yield "wide, four places", lambda: wide(4), {"node_limit": 50}
    yield "wide, signs", lambda: boxed(wide(2), positive=True), {"node_limit": 20}
    yield "wide, one of a pair", lambda: wide(2, groups=(np.arange(450) // 2).tolist(), per_group=1), {"node_limit": 20}
    yield "rounds divided, quadratic", lambda: made("quadratic", d=40), {"shard": 4, "batch": 16, "subtrees": False}


THREES = (np.arange(14) // 3).tolist()
PAIRS = {"groups": (np.arange(14) // 2).tolist(), "per_group": 1}
PARENTS = {j: [j - 7] for j in range(7, 14)}
OFFSET = np.linspace(-0.5, 0.5, 60)


def rows(loss: str, d: int = 14) -> tuple[FloatArray, FloatArray]:
    """Sixty rows of correlated columns, and a target of the loss."""
    rng = np.random.default_rng([HARD_SEED, d])
    A = rng.normal(size=(60, d)) + 0.7 * rng.normal(size=(60, 1))
    z = A[:, :4] @ np.array([0.6, -0.5, 0.4, 0.3]) + 0.5 * rng.normal(size=60)
    if loss == "poisson":
        return A, rng.poisson(np.exp(np.clip(z, -3.0, 3.0))).astype(float)
    return A, np.where(z > 0, 1.0, -1.0) if loss in ("logistic", "squared_hinge") else z


def made(loss: str, lam: float = 0.1, d: int = 14, **more: Any) -> Problem:
    """A small problem of this loss."""
    return Problem(*rows(loss, d), 4, loss=loss, lam=lam, **more)


def wide(k: int, **more: Any) -> Problem:
    """More columns than rows."""
    rng = np.random.default_rng([HARD_SEED, k])
    A = rng.normal(size=(60, 450)) + rng.normal(size=(60, 1))
    return Problem(A, A[:, :k] @ rng.normal(size=k) + 0.3 * rng.normal(size=60), k, lam=1.0, **more)
