"""Honest proofs: what a run writes must be accepted, by both checkers.

The problems are those of the solves, and on purpose many of the kinds whose proofs have been rejected: nearly dependent
columns, row weights far apart, margins as thin as rounding.
"""

from __future__ import annotations

import inspect
import tempfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.attacks.cases import Case, quiet_problem, random_case
from benchmarks.attacks.judging import Finding
from benchmarks.attacks.oracle import Oracle
from benchmarks.attacks.running import Outcome, kind_of
from benchmarks.attacks.solves import delta_of, options_of

SMALL = 200
"""Entries of A up to which the checker in plain fractions is asked as well."""

SHARE = 0.25
"""Of the small proofs those it is asked about: fractions take their time."""


def awkward_case(seed: int) -> Case:
    """A problem of the solves, or one whose proofs have thin margins."""
    rng = np.random.default_rng([1205, seed])
    kind = rng.random()
    if kind < 0.55:
        return random_case(seed)
    if kind < 0.7:
        return _near_selection(rng)
    if kind < 0.85:
        return _far_weights(rng, seed)
    return _thin_margin(rng)


def _near_selection(rng: Any) -> Case:
    """Column subset selection among columns a hair apart."""
    n, d = int(rng.integers(3, 13)), int(rng.integers(3, 8))
    A = rng.standard_normal((n, d))
    for j in range(1, d):
        if rng.random() < 0.5:
            A[:, j] = A[:, int(rng.integers(j))] + float(10.0 ** rng.uniform(-12, -3)) * A[:, j]
    return Case(A, np.zeros(n), int(rng.integers(1, d + 1)), "css", kind="near selection")


def _far_weights(rng: Any, seed: int) -> Case:
    """Huber or logistic loss with row weights up to 1e8 apart and a small threshold."""
    case = random_case(seed, str(rng.choice(["huber", "logistic"])))
    delta = float(10.0 ** rng.uniform(-4, 0)) if case.loss == "huber" else None
    weights = 10.0 ** rng.uniform(-4, 4, len(case.y))
    return replace(case, weights=weights, delta=delta, kind=f"{case.kind}, far weights")


def _thin_margin(rng: Any) -> Case:
    """Quadratic loss, hardly any ridge, large noise, places for nearly all of more columns than rows."""
    n, d = int(rng.integers(2, 8)), int(rng.integers(3, 9))
    A = rng.standard_normal((n, d)) * rng.choice([1.0, 1e6, 1e-6], d, p=[0.7, 0.2, 0.1])
    y = rng.standard_normal(n) * float(rng.choice([1.0, 1e3, 1e6]))
    k = int(rng.integers(max(1, d - 3), d + 1))
    lam = float(rng.choice([0.0, 10.0 ** rng.uniform(-9, -4)], p=[0.3, 0.7]))
    return Case(A, y, k, "quadratic", lam, intercept=bool(rng.random() < 0.3), kind="thin margin")


def checked(seed: int) -> Outcome:
    """One trial: solve with a proof, and have it checked."""
    from exactsel import solve, verify
    from exactsel.errors import InputError

    case, outcome = awkward_case(seed), Outcome(seed)
    rng = np.random.default_rng([1206, seed])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.exsel"
        try:
            problem = quiet_problem(case)
            result = solve(problem, proof=file, signals=(), **options_of(seed, case))
        except InputError as error:
            outcome.counts[f"refused: {kind_of(error)}"] += 1
            return outcome
        verdict, data = verify(problem, file), file.read_bytes()
    outcome.counts[f"proofs: {case.loss}"] += 1
    if not verdict.verified:
        size = (verdict.claimed_lower - verdict.lower) / abs(verdict.claimed_lower or 1.0)
        outcome.findings.append(Finding(f"rejected, {case.loss}", size, f"{case.kind}: {verdict.reason}"))
    if verdict.verified and verdict.claimed_lower < result.lower * (1 - 2e-9):
        outcome.counts["the proof claims less than the result, by more than 2e-9"] += 1
    if not verdict.valid_for:
        truth = Oracle(case, delta_of(problem)).truth()
        if Fraction(verdict.lower) > truth.high:
            outcome.findings.append(Finding("untrue", 1.0, f"{verdict.lower!r} above {float(truth.high)!r}"))
    if case.A.size <= SMALL and rng.random() < SHARE:
        said = second_opinion(case, delta_of(problem), data)
        outcome.counts["asked the second checker" if said is not None else "beyond the second checker"] += 1
        if said:
            outcome.findings.append(Finding(f"rejected by the second, {case.loss}", 1.0, f"{case.kind}: {said}"))
    return outcome


def second_opinion(case: Case, delta: float | None, data: bytes) -> str | None:
    """What the second checker says of a proof about the data as given: empty when it accepts; None if it cannot say."""
    from exactsel_certificates.standalone import Beyond, check

    prepared = case.intercept or case.scale or case.weights is not None
    if prepared and "scale" not in inspect.signature(check).parameters:
        return None  # it takes the data as prepared only
    options: dict[str, Any] = {"scale": True} if case.scale else {}
    # Groups of one column each are the plain problem, and so is its proof.
    groups: Any = case.units if case.labels is not None and any(len(unit) > 1 for unit in case.units) else ()
    if case.per_group is not None:
        groups, options["per_group"] = replace(case, per_group=None).units, case.per_group
    if case.hierarchy:
        options["hierarchy"] = case.hierarchy
    if case.lower is not None:
        options["bounds"] = (case.lower, case.upper)
    loss = "" if case.loss == "css" else case.loss
    try:
        return check(
            data, case.A.tolist(), case.y.tolist(), case.k, loss, case.lam, 1.0 if delta is None else delta,
            case.force_in, case.force_out, None if case.weights is None else case.weights.tolist(), case.intercept,
            groups, **options,
        )  # fmt: skip
    except Beyond:
        return None
