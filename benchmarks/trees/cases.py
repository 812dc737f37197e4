"""The runs: every instance of the repository under many settings, every kind of problem, and ten big instances."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.speed.instances import HARD_SEED, diabetes_huber, full, hardlogit, small
from benchmarks.trees.kinds import kinds
from exactsel import ColumnSubsetProblem, GroupedProblem, InputError, Problem, load

INSTANCES = Path(__file__).resolve().parents[2] / "instances"

BIG: dict[str, dict[str, Any]] = {
    "diabetes64c_lam0.01_k10": {},
    "diabetes64c_lam0.001_k10": {},
    "diabetes64c_huber_lam0.01_k5": {},
    "diabetes64c_huber_lam0.01_k10": {"node_limit": 20_000},
    "hard_d100_n200_k5_rho0.7_lam0.01": {},
    "hard_d100_n200_k10_rho0.7_lam0.01": {"node_limit": 20_000},
    "hardlogit_d50_n100_k10_rho0.7_lam1": {},
    "hardlogit_d100_n200_k5_rho0.7_lam1": {"node_limit": 30_000},
    "okr_n500_p500_rho0.5_k10_lam10": {},
    "okr_n1000_p500_rho0.5_k10_lam0.1": {},
}
"""Ten of the instances of ``benchmarks.speed``; a limit of nodes keeps the longest short."""

LOSSES = ("quadratic", "huber", "logistic")

VARIED: tuple[dict[str, Any], ...] = (
    {},
    {"subtrees": False},
    {"bound": "apg"},
    {"bound": "pdal"},
    {"bound": "supergradient"},
    {"bound": "fit"},
    {"tree": "state-space", "bound": "pdal"},
    {"frontier": "depth-first"},
    {"frontier": "weighted"},
    {"branching": "largest"},
    {"branching": "costliest"},
    {"node_limit": 7},
    {"batch": 1},
    {"heuristics": ()},
    {"threads": 2},
)


class Case(NamedTuple):
    """One run."""

    name: str
    make: Callable[[], Any]
    """Makes the problem."""
    options: dict[str, Any]


def cases(quick: bool) -> Iterator[Case]:
    """All runs, or the small ones only."""
    for file in sorted(INSTANCES.glob("*.npz")):
        for options in VARIED[:1] if file.stem == "diabetes" else VARIED:
            yield Case(file.stem + _told(options), lambda file=file: load(file), options)
    for loss, options in product(LOSSES, VARIED):
        yield Case(f"small {loss}" + _told(options), lambda loss=loss: small(loss).problem(), options)
    yield from _families()
    yield from (Case(*kind) for kind in kinds())
    if not quick:
        made = full()
        for name, options in BIG.items():
            yield Case(name + _told(options), lambda name=name: made[name]().problem(), options)


def _told(options: dict[str, Any]) -> str:
    return "".join(f" {name}={value}" for name, value in options.items())


def _families() -> Iterator[Case]:
    """Groups, column subset selection, demands, prepared data, no ridge, dependent columns."""
    groups = np.arange(64) // 4
    for loss, k in product(("quadratic", "huber"), (3, 5)):
        yield Case(
            f"diabetes {loss} in groups of four, k={k}",
            lambda loss=loss, k=k: GroupedProblem(_diabetes(loss).replace(k=k), groups.tolist()), {},
        )  # fmt: skip
    yield Case("labels in groups", lambda: GroupedProblem(_logit(), (np.arange(20) // 3).tolist()), {})
    for k in (2, 4, 6):
        yield Case(
            f"columns of diabetes, k={k}",
            lambda k=k: ColumnSubsetProblem(load(INSTANCES / "diabetes.npz").A[:, :24], k),
            {},
        )
    yield Case("no ridge", lambda: _diabetes("quadratic").replace(lam=0.0), {"node_limit": 2000})
    yield Case("dependent columns, no ridge", _dependent, {})
    yield Case("demands", _demanding, {})
    for loss in LOSSES:
        yield Case(f"prepared {loss}", lambda loss=loss: _prepared(loss), {})
        yield Case(
            f"prepared {loss} in groups",
            lambda loss=loss: GroupedProblem(_prepared(loss), (np.arange(20) // 2).tolist()),
            {"node_limit": 100},
        )


def _diabetes(loss: str) -> Problem:
    return load(INSTANCES / "diabetes.npz") if loss == "quadratic" else diabetes_huber(5, 0.01).problem()


def _logit() -> Problem:
    return hardlogit(60, 20, 3, 0.7).problem()


def _dependent() -> Problem:
    A = np.random.default_rng(HARD_SEED).integers(-2, 3, (30, 12)).astype(float)
    A = np.column_stack([A, A[:, :4] + A[:, 4:8], A[:, 0] - A[:, 11]])
    return Problem(A, A[:, 1] - A[:, 13] + np.arange(30) % 7, 4, lam=0.0)


def _demanding() -> Problem:
    whole = _diabetes("quadratic")
    return Problem(whole.A, whole.y, 6, lam=whole.lam, force_in=(0, 9), force_out=(2, 3))


def _prepared(loss: str) -> Problem:
    whole = small(loss)
    rng = np.random.default_rng(1)
    return Problem.prepared(
        whole.A, whole.y, 4, loss=loss, lam=0.5, intercept=True, scale=True, weights=rng.uniform(0.5, 2.0, len(whole.A))
    )


def refused(error: InputError) -> dict[str, Any]:
    """What is written down where a run is refused: that it was, and how."""
    return {"refused": str(error)}
