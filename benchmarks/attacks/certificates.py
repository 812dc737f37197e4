"""Quadratic loss with each certificate forced on alone, against the exact oracle, every proof checked.

``counted`` and ``walked`` leave the whole search to the kernel that walks and counts, with few places and with many;
``split``, ``relaxed`` and ``fitted`` make the bound of that name do all the work.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.attacks.cases import Case, quiet_problem, random_case
from benchmarks.attacks.judging import Finding, judged
from benchmarks.attacks.oracle import Oracle
from benchmarks.attacks.running import Outcome, kind_of
from benchmarks.attacks.solves import SECONDS

FEW = 4
"""Places up to which everything is counted at once."""


def quadratic_case(seed: int) -> Case:
    """A random problem of quadratic loss, columns one by one."""
    case = random_case(seed, "quadratic")
    return replace(case, labels=None, force_in=(), force_out=()) if case.labels is not None else case


def ways(seed: int, case: Case) -> dict[str, dict[str, Any]]:
    """Options by the name of the certificate that has to do the work."""
    from exactsel.bounds.split import SplitBound

    rng = np.random.default_rng([1401, seed])
    split = SplitBound(steps=int(rng.choice([1, 8, 40])), delta=float(rng.choice([1e-3, 0.01, 0.1])))
    return {
        "counted" if case.k <= FEW else "walked": {},
        "split": {"bound": split, "subtrees": False},
        "relaxed": {"bound": "apg", "subtrees": False},
        "fitted": {"bound": "fit", "subtrees": False},
    }


def certified(seed: int) -> Outcome:
    """One trial: the problem of the seed, solved in every way, each result and each proof judged."""
    from exactsel import solve, verify
    from exactsel.errors import InputError

    case, outcome = quadratic_case(seed), Outcome(seed)
    try:
        problem = quiet_problem(case)
    except InputError as error:
        outcome.counts[f"refused: {kind_of(error)}"] += 1
        return outcome
    oracle = Oracle(case)
    truth = oracle.truth()
    with tempfile.TemporaryDirectory() as folder:
        for name, options in ways(seed, case).items():
            file = Path(folder) / f"{name}.exsel"
            try:
                result = solve(problem, signals=(), proof=file, threads=1, time_limit=SECONDS, **options)
            except InputError as error:
                outcome.counts[f"refused: {name}: {kind_of(error)}"] += 1
                continue
            outcome.counts[f"solved: {name}"] += 1
            outcome.findings += [f._replace(what=f"{name}: {f.what}") for f in judged(result, oracle, truth)]
            verdict = verify(problem, file)
            if not verdict.verified:
                size = (verdict.claimed_lower - verdict.lower) / abs(verdict.claimed_lower or 1.0)
                outcome.findings.append(Finding(f"{name}: proof rejected", size, f"{case.kind}: {verdict.reason}"))
            elif not verdict.valid_for and verdict.lower > truth.high:
                outcome.findings.append(Finding(f"{name}: untrue proof", 1.0, f"{verdict.lower!r}"))
    return outcome
