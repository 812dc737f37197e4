"""Random small problems whose columns are multiplied: by powers of two of their own, or by powers of ten."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.attacks.cases import Array, Case

LOSSES = ("quadratic", "huber", "logistic", "squared_hinge", "poisson")

RIDGELESS = ("quadratic", "huber", "logistic")
"""Losses that take lam = 0."""

OFFSETS = ("quadratic", "huber", "poisson")
"""Losses that take an offset."""

SPREADS = (1, 3, 5, 7, 9, 11, 13, 15)
"""Largest power of ten of a problem's columns, either way."""

STYLES = ("own powers of two", "powers of ten")


@dataclass(frozen=True)
class Stretched:
    """A problem, and the same with its columns multiplied."""

    plain: Case
    case: Case
    style: str
    powers: tuple[int, ...]
    """Of two or ten, one for each column."""

    @property
    def same(self) -> bool:
        """Whether the two are one problem in other units, so that everything must come out the same."""
        return self.style == STYLES[0] and self.case.lam == 0

    @property
    def decades(self) -> int:
        """How many decades apart the sizes of the columns are that say anything."""
        A = self.case.A
        if self.case.weights is not None:
            A = A[self.case.weights > 0]
        sizes = np.ptp(A, axis=0) if self.case.intercept else np.abs(A).max(axis=0)
        sizes = sizes[sizes > 0]
        return int(math.log10(sizes.max() / sizes.min()) + 1e-9) if sizes.size else 0


def stretched(seed: int) -> Stretched:
    """The two problems of a seed."""
    rng = np.random.default_rng([1240, seed])
    plain = plain_case(rng)
    style = STYLES[int(rng.integers(2))]
    spread = int(rng.choice(SPREADS))
    if style == STYLES[0]:
        most = int(spread * math.log2(10))
        powers = rng.integers(-most, most + 1, plain.d)
        if rng.random() < 0.3:  # one column beside all others
            powers = np.where(np.arange(plain.d) == rng.integers(plain.d), most * int(rng.choice([-1, 1])), 0)
        factors = np.ldexp(1.0, powers)
    else:
        powers = rng.integers(-spread, spread + 1, plain.d)
        if rng.random() < 0.3:
            powers = np.where(np.arange(plain.d) == rng.integers(plain.d), spread * int(rng.choice([-1, 1])), 0)
        factors = 10.0**powers
    return Stretched(plain, multiplied(plain, factors, style), style, tuple(int(p) for p in powers))


def multiplied(case: Case, factors: Array, style: str) -> Case:
    """The problem with columns multiplied, and limits of coefficients divided."""
    limits: dict[str, Any] = {}
    if case.lower is not None and case.upper is not None:
        for name, values in (("lower", case.lower), ("upper", case.upper)):
            limits[name] = tuple(float(value / factor) for value, factor in zip(values, factors, strict=True))
    return replace(case, A=case.A * factors, kind=f"{case.kind}, {style}", **limits)


def plain_case(rng: Any) -> Case:
    """A problem whose columns are of about one size."""
    loss = str(rng.choice(LOSSES, p=[0.4, 0.18, 0.16, 0.12, 0.14]))
    free = loss in RIDGELESS and rng.random() < (0.6 if loss == "quadratic" else 0.5)
    d = int(rng.integers(2, 7 if loss == "quadratic" else 5))
    n = int(rng.integers(3, 13) if loss == "quadratic" or not free else rng.integers(d + 4, 15))
    if rng.random() < 0.2:  # what rounding is allowed for grows with the rows
        n = int(rng.integers(20, 61) if loss == "quadratic" else rng.integers(15, 31))
    A, kind = _columns(rng, n, d, independent=free and loss != "quadratic" and rng.random() < 0.8)
    y = _target(rng, A, loss)
    k = int(rng.choice([1, d, rng.integers(1, d + 1)], p=[0.25, 0.2, 0.55]))
    lam = 0.0 if free else float(10.0 ** rng.uniform(-7, 2))
    delta = None
    if loss == "huber" and rng.random() < 0.7:
        delta = float(10.0 ** rng.uniform(-1.5, 1) * (np.ptp(y) or 1.0))
    case = Case(A, y, k, loss, lam, delta, kind=kind, intercept=bool(rng.random() < 0.5))
    if rng.random() < 0.25:
        weights = rng.integers(1, 4, n).astype(float) if rng.random() < 0.5 else rng.uniform(0.2, 3.0, n)
        weights[rng.random(n) < 0.15] = 0.0
        case = replace(case, weights=weights if np.any(weights > 0) else np.ones(n))
    if rng.random() < 0.25 and loss in OFFSETS:
        case = replace(case, offset=np.round(rng.standard_normal(n), 2))
    return _constrained(rng, case) if rng.random() < 0.35 else case


def _columns(rng: Any, n: int, d: int, independent: bool) -> tuple[Array, str]:
    kinds = ["gaussian", "whole", "binary", "correlated"]
    kinds += [] if independent else ["duplicates", "constant", "sums"]
    kind = str(rng.choice(kinds))
    A = rng.standard_normal((n, d))
    if kind in ("whole", "duplicates", "sums"):
        A = rng.integers(-3, 4, (n, d)).astype(float)
    elif kind == "binary":
        A = rng.integers(0, 2, (n, d)).astype(float)
    elif kind == "correlated":
        A = rng.standard_normal((n, 1)) + float(rng.choice([1.0, 0.3, 1e-2])) * A
    if kind == "duplicates":
        for j in range(1, d):
            if rng.random() < 0.5:
                A[:, j] = rng.choice([1.0, -1.0, 2.0]) * A[:, rng.integers(0, j)]
    elif kind == "constant":
        A[:, int(rng.integers(d))] = rng.choice([1.0, -3.0, 0.0])
    elif kind == "sums":
        A[:, -1] = A[:, : max(1, d // 2)].sum(axis=1)
    return A, kind


def _target(rng: Any, A: Array, loss: str) -> Array:
    n, d = A.shape
    signal = A @ (rng.standard_normal(d) * (rng.random(d) < 0.6))
    noise = float(rng.choice([1.0, 0.3, 1e-3])) * rng.standard_normal(n)
    if loss in ("logistic", "squared_hinge"):
        labels = np.where(signal + 2.0 * rng.standard_normal(n) >= 0, 1.0, -1.0)
        labels[0] = -labels[1]
        return labels
    if loss == "poisson":
        counts = rng.poisson(np.exp(np.clip(0.5 * signal, -3.0, 2.5))).astype(float)
        counts[0] += 1.0
        return counts
    if rng.random() < 0.3:
        return rng.integers(-3, 4, n).astype(float)
    y = signal + noise
    if loss == "huber":
        y = y + np.where(rng.random(n) < 0.25, rng.choice([-30.0, 30.0], n), 0.0)
    return np.asarray(y)


def _constrained(rng: Any, case: Case) -> Case:
    """One constraint, or demands."""
    d = case.d
    kind = str(rng.choice(["demands", "groups", "per group", "hierarchy", "signs", "limits"]))
    case = replace(case, kind=f"{case.kind}, {kind}")
    if kind == "demands":
        order = [int(j) for j in rng.permutation(d)]
        included = int(rng.integers(0, min(case.k, 2) + 1))
        outside = int(rng.integers(0, min(2, d - included) + 1))
        return replace(
            case,
            force_in=tuple(sorted(order[:included])),
            force_out=tuple(sorted(order[included : included + outside])),
        )
    if kind in ("groups", "per group"):
        labels = tuple(None if rng.random() < 0.2 else f"g{int(rng.integers(max(1, d // 2 + 1)))}" for _ in range(d))
        if not any(labels):
            labels = ("g0", *labels[1:])
        if kind == "per group":
            return replace(case, labels=labels, per_group=1)
        grouped = replace(case, labels=labels)
        return replace(grouped, k=min(case.k, len(grouped.units)))
    if kind == "hierarchy":
        child = int(rng.integers(1, d))
        parents = tuple(sorted({int(j) for j in rng.integers(0, child, 2)}))
        return replace(case, hierarchy=((child, parents),))
    if kind in ("signs", "limits") and case.loss != "quadratic" and case.lam == 0:  # which is not offered
        case = replace(case, lam=float(10.0 ** rng.uniform(-7, 2)))
    if kind == "signs":
        return replace(case, lower=(0.0,) * d, upper=(math.inf,) * d)
    lower = tuple(float(rng.choice([-math.inf, 0.0, -0.5])) for _ in range(d))
    upper = tuple(float(rng.choice([math.inf, 0.25, 1.0])) for _ in range(d))
    return replace(case, lower=(0.0, *lower[1:]), upper=upper)
