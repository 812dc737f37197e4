"""Random solves against exact oracles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.attacks.cases import Case, quiet_problem, random_case
from benchmarks.attacks.judging import judged, shown
from benchmarks.attacks.oracle import Oracle
from benchmarks.attacks.running import Outcome, kind_of

SECONDS = 900.0
"""No solve of this size takes that long, kernels compiled and all; one that does is a finding."""


def options_of(seed: int, case: Case) -> dict[str, Any]:
    """Options of the solve: mostly the defaults, at times any that can serve the problem, at times few nodes."""
    from checked_solve import random_options

    rng = np.random.default_rng([1202, seed])
    chosen: dict[str, Any] = {}
    if rng.random() < 0.25:
        chosen = random_options(seed, replace(case, loss="quadratic") if case.loss == "css" else case)
        plain = case.loss == "quadratic" or (case.weights is None and not case.intercept)
        if case.loss == "css" or case.labels is not None or not plain:
            chosen["bound"] = "auto"
        if case.loss == "css":
            chosen |= {"branching": "auto", "heuristics": ()}
    if rng.random() < 0.05:
        chosen["node_limit"] = int(rng.integers(0, 6))
    if rng.random() < 0.1:
        chosen["rel_eps"] = float(rng.choice([0.0, 1e-9, 1e-3]))
    return {**chosen, "threads": 1, "time_limit": SECONDS}


def delta_of(problem: Any) -> float | None:
    """The Huber threshold a problem came to."""
    return problem.objective.loss_parameters.get("delta")


def solved(seed: int) -> Outcome:
    """One trial: the problem of the seed, solved and judged; now and then through another door as well."""
    from benchmarks.attacks.doors import through_doors
    from exactsel import solve
    from exactsel.errors import InputError

    case, outcome = random_case(seed), Outcome(seed)
    try:
        problem = quiet_problem(case)
        result = solve(problem, signals=(), **options_of(seed, case))
    except InputError as error:
        outcome.counts[f"refused: {kind_of(error)}"] += 1
        return outcome
    outcome.counts[f"solved: {case.loss}"] += 1
    oracle = Oracle(case, delta_of(problem))
    truth = oracle.truth()
    outcome.counts["interval wider than 1e-15"] += truth.loose
    outcome.counts["with a scope"] += bool(result.valid_for)
    outcome.counts["nothing left to search, and an honest gap"] += result.termination.value == "precision_limit"
    outcome.findings += judged(result, oracle, truth)
    through_doors(seed, case, problem, oracle, truth, outcome)
    return outcome


def told(seed: int) -> str:
    """The case of a seed in full, its options, its result and the truth."""
    from exactsel import solve
    from exactsel.errors import InputError

    case = random_case(seed)
    options = options_of(seed, case)
    lines = [case.text(), f"options {options}"]
    try:
        problem = quiet_problem(case)
        result = solve(problem, signals=(), **options)
    except InputError as error:
        return "\n".join([*lines, f"refused: {error}"])
    oracle = Oracle(case, delta_of(problem))
    truth = oracle.truth()
    lines += [str(result), f"coef         {None if result.model is None else result.model.coef.tolist()}"]
    lines += [f"truth        {shown(truth.low)} to {shown(truth.high)}, empty model {shown(oracle.empty)}"]
    return "\n".join(lines)
