"""The same problem in other units: y times 2^m, A times 2^p, lam and delta accordingly, for powers up to 300.

Multiplying by a power of two rounds nothing, so everything must come out the same, bit for bit, but for what has a
unit: objectives are multiplied by 4^m (column subset selection: 4^p; logistic loss: nothing), coefficients by 2^(m-p).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.attacks.cases import Case, quiet_problem, scaled, unscaled_case
from benchmarks.attacks.judging import Finding
from benchmarks.attacks.running import Outcome, kind_of
from benchmarks.attacks.solves import options_of

SAME = ("claim", "termination", "support", "nodes", "tree_hash", "gap", "source", "valid_for")
"""What has no unit."""


def powers_of(seed: int) -> tuple[int, int]:
    """The powers m and p of a seed."""
    rng = np.random.default_rng([1203, seed])
    most = int(rng.choice([20, 100, 300], p=[0.4, 0.3, 0.3]))
    m, p = (int(v) for v in rng.integers(-most, most + 1, 2))
    return (m, 0) if rng.random() < 0.25 else (0, p) if rng.random() < 0.25 else (m, p)


def compared(seed: int) -> Outcome:
    """One trial: the problem of the seed, and the same in other units."""
    from exactsel import solve
    from exactsel.errors import InputError

    outcome, case, (m, p) = Outcome(seed), unscaled_case(seed), powers_of(seed)
    options = {"eps": 0.0, **options_of(seed, case)}
    rise = 0 if case.loss == "logistic" else 2 * p if case.loss == "css" else 2 * m
    try:
        first = solve(quiet_problem(case), signals=(), **options)
    except InputError as error:
        outcome.counts[f"refused as given: {kind_of(error)}"] += 1
        return outcome
    try:
        options["eps"] = math.ldexp(options["eps"], rise)
        second = solve(quiet_problem(scaled(case, m, p)), signals=(), **options)
    except InputError as error:
        outcome.counts[f"refused in other units: {kind_of(error)}"] += 1
        return outcome
    outcome.counts[f"compared: {case.loss}"] += 1
    outcome.findings += differences(case, first, second, 0 if case.loss == "logistic" else m, p, rise)
    return outcome


def differences(case: Case, first: Any, second: Any, m: int, p: int, rise: int) -> Iterator[Finding]:
    """What differs beyond the units."""
    at = f"m {m}, p {p}, {case.loss}{', intercept' * case.intercept}{', scale' * case.scale}"
    for name in SAME:
        before, after = getattr(first, name), getattr(second, name)
        if before != after:
            yield Finding(f"{name} differs", 1.0, f"{at}: {before!r} and {after!r}"[:200])
    for name in ("upper", "lower"):
        before, after = getattr(first, name), getattr(second, name)
        if math.ldexp(before, rise) != after:
            size = abs(math.ldexp(after, -rise) - before) / (abs(before) or 1.0) if abs(rise) < 900 else 1.0
            yield Finding(f"{name} differs", size, f"{at}: {before!r} and {math.ldexp(after, -rise)!r} times 2^{rise}")
    if case.loss == "css":
        return
    if not np.array_equal(np.ldexp(first.model.coef, m - p), second.model.coef):
        yield Finding("coefficients differ", 1.0, at)
    before, after = first.model.intercept, second.model.intercept
    if before is not None and math.ldexp(before, m) != after:
        yield Finding("intercept differs", 1.0, f"{at}: {before!r} and {after!r}")
