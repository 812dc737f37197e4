"""Other solvers beside exactsel: two programs that share no line must not contradict each other.

What a peer chooses is refitted exactly, so exactsel's lower bound is held against it without a tolerance. What a peer
says of objectives is in doubles, and right within its own tolerances; there :data:`TOLERANCE` is allowed for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple, Protocol

import numpy as np

from exactsel.solving.result import Result
from exactsel.testing.instances import TinyInstance
from exactsel.testing.solving import Finding, Refused, solved
from exactsel_dev.campaigns.brute_force import Truth
from exactsel_dev.campaigns.judging import judged, shown

STREAM = 2205
"""Part of each seed."""

TOLERANCE = 1e-4
"""Relative to the empty model's objective: what a peer may be off by."""


class Said(NamedTuple):
    """A peer's answer."""

    chosen: tuple[int, ...]
    """Units."""
    upper: float
    lower: float
    """What it proves, -inf where it proves nothing."""
    optimal: bool
    """Whether it calls its model optimal."""


class Peer(Protocol):
    """Another solver."""

    name: str

    def missing(self) -> str:
        """Why it is not available, in one sentence; empty where it is."""
        ...

    def serves(self, instance: TinyInstance) -> bool:
        """Whether it solves this problem."""
        ...

    def solve(self, instance: TinyInstance) -> Said:
        """Its answer."""
        ...


def known_peers() -> dict[str, Peer]:
    """Every peer there is a way to ask, by name."""
    from exactsel_dev.campaigns.mixed_integer import Gurobi, Scip
    from exactsel_dev.campaigns.specialised import LmSubsets, OkRidge

    peers: tuple[Peer, ...] = (Scip(), Gurobi(), OkRidge(), LmSubsets())
    return {peer.name: peer for peer in peers}


def instance_for_peers(seed: int) -> TinyInstance:
    """The instance of a seed: well scaled, so that a disagreement is no matter of tolerances."""
    rng = np.random.default_rng([STREAM, seed])
    loss = str(rng.choice(["quadratic", "quadratic", "huber"]))
    n, d = int(rng.integers(8, 15)), int(rng.integers(2, 8))
    A = rng.standard_normal((n, d)) + float(rng.choice([0.0, 0.5, 2.0])) * rng.standard_normal((n, 1))
    A = np.round(A, int(rng.choice([0, 1, 3])))
    if d > 2 and rng.random() < 0.15:
        A[:, 1] = A[:, 0]
    y = np.round(A @ (rng.standard_normal(d) * (rng.random(d) < 0.6)) + rng.standard_normal(n), 3)
    y[rng.random(n) < 0.1] += 10.0 * (loss == "huber")
    ridge = [0.01, 0.1, 1.0, 10.0] if loss == "huber" else [0.0, 0.01, 0.1, 1.0, 10.0]
    k = int(rng.integers(1, d + 1))
    weights = rng.integers(1, 5, n) / 2.0 if rng.random() < 0.15 else None
    instance = TinyInstance(
        A, y, k, loss, float(rng.choice(ridge)), float(rng.choice([0.3, 1.0, 3.0])), weights,
        bool(rng.random() < 0.3), False, settings={"threads": 1},
    )  # fmt: skip
    return _with_demands(rng, instance)


def _with_demands(rng: np.random.Generator, instance: TinyInstance) -> TinyInstance:
    """At times with demands, groups or a hierarchy, which other programs state in other ways."""
    made = instance
    if rng.random() < 0.1 and instance.lam > 0:
        made = replace(made, groups=tuple(f"g{int(g)}" for g in rng.integers(0, instance.d, instance.d)))
        made = replace(made, k=min(made.k, len(made.units)))
    units = [int(u) for u in rng.permutation(len(made.units))]
    if rng.random() < 0.15 and made.k > 1:
        made = replace(made, force_in=tuple(units[:1]), force_out=tuple(units[1:2]))
    if rng.random() < 0.15:
        parents = ((u, {int(p) for p in rng.integers(0, len(units), 2)} - {u}) for u in sorted(units))
        edges = tuple((u, tuple(sorted(above))) for u, above in parents if above and rng.random() < 0.5)
        related = replace(made, hierarchy=edges, hierarchy_kind=str(rng.choice(["strong", "weak"])))
        made = related if related.admissible else made
    return made


def disagreements(instance: TinyInstance, peer: Peer) -> list[Finding] | None:
    """Where a peer and exactsel contradict each other; None where one of them does not serve the problem."""
    if not peer.serves(instance) or not instance.admissible:
        return None
    try:
        result = solved(instance)
    except Refused:
        return None
    truth = Truth(instance)
    return [*judged(result, truth), *compared(result, peer.solve(instance), truth, peer.name)]


def compared(result: Result, said: Said, truth: Truth, name: str) -> Iterator[Finding]:
    """What of a result a peer's answer contradicts."""
    instance = truth.instance
    room = TOLERANCE * max(float(truth.empty), abs(result.upper))
    if not any(set(said.chosen) <= chosen for chosen in instance.admissible):
        yield Finding(f"{name}: chooses what is not allowed", f"{said.chosen} with k {instance.k}")
        return
    cost = _cost(truth, said.chosen)
    if math.isfinite(result.lower) and Fraction(result.lower) > cost and not result.valid_for:
        yield Finding(f"{name}: has a model below lower", f"lower {result.lower!r}, its {said.chosen}: {shown(cost)}")
    if said.lower > result.upper + room:
        yield Finding(f"{name}: proves that upper is too small", f"upper {result.upper!r}, its bound {said.lower!r}")
    if result.claim.value == "optimal" and result.upper > float(cost) + room:
        yield Finding(f"{name}: has a better model", f"upper {result.upper!r}, its {said.chosen}: {shown(cost)}")
    if said.optimal and said.upper > result.upper + room:
        yield Finding(f"{name}: calls a worse model optimal", f"upper {result.upper!r}, its model {said.upper!r}")
    if said.optimal and said.upper < result.lower - room:
        yield Finding(f"{name}: says it is below lower", f"lower {result.lower!r}, its model {said.upper!r}")


def _cost(truth: Truth, chosen: tuple[int, ...]) -> Fraction:
    """The best objective on what a peer chose."""
    columns = truth.instance.columns_of(frozenset(chosen))
    return truth.cost(columns) if truth.instance.loss == "quadratic" else truth.upper_on(columns)
