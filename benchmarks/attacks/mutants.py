"""Damaged proofs against both checkers, and problems outside the domain.

Much damage is harmless, so a mutant may well be accepted. What is accepted must be true: the claimed lower bound not
above the optimum of the data as given, which an exact oracle knows, and the claimed upper bound not below it.
"""

from __future__ import annotations

import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.attacks.cases import Case, quiet_problem
from benchmarks.attacks.honest import awkward_case, second_opinion
from benchmarks.attacks.judging import Finding
from benchmarks.attacks.oracle import Oracle, Truth
from benchmarks.attacks.running import Outcome, kind_of
from benchmarks.attacks.solves import delta_of, options_of

EACH = 50
"""Mutants of one proof."""

SECOND = 0.1
"""Of them those that the checker in plain fractions is asked about."""

SMALL = 60
"""Entries of A up to which it is."""

EXACT_LIMIT = 1e6
"""Multiplications in exact arithmetic for one mutant: what would be established with more would be true as well."""


class Subject(NamedTuple):
    """An honest proof to damage; ``high`` is what the damage that claims too much is measured by."""

    instance: Any
    data: bytes
    low: float
    high: float


def damaged_proofs(seed: int) -> Outcome:
    """One trial: the proof of one problem, damaged many times."""
    from corrupted import damaged

    from exactsel import solve
    from exactsel.errors import InputError
    from exactsel.proofs.writer import instance_of

    case, outcome = awkward_case(seed), Outcome(seed)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.exsel"
        try:
            problem = quiet_problem(case)
            solve(problem, proof=file, signals=(), **options_of(seed, case))
        except InputError as error:
            outcome.counts[f"refused: {kind_of(error)}"] += 1
            return outcome
        data = file.read_bytes()
    delta = delta_of(problem)
    truth = Oracle(case, delta).truth()
    low, high = (float(end) if end < Fraction(10) ** 300 else 1e300 for end in (truth.low, truth.high))
    subject = Subject(instance_of(problem), data, low, high)
    rng = np.random.default_rng([1207, seed])
    for _ in range(EACH):
        mutant, kind = damaged(rng, subject)
        one_mutant(mutant, kind, subject, case, delta, truth, rng, outcome)
    return outcome


def one_mutant(
    data: bytes, kind: str, subject: Subject, case: Case, delta: float | None, truth: Truth, rng: Any, outcome: Outcome
) -> None:
    """What both checkers say of one damaged file."""
    verdict = _first_opinion(data, subject.instance, kind, outcome)
    if verdict is not None and not verdict.valid_for:
        claims = (verdict.claimed_lower, verdict.claimed_upper) if verdict.verified else (verdict.lower, verdict.upper)
        what = "false accept" if verdict.verified else "untrue, though rejected"
        outcome.findings += untrue(f"{what}, {kind}", *claims, truth)
    if case.A.size <= SMALL and rng.random() < SECOND:
        _second_opinion(data, kind, case, delta, truth, outcome)


def untrue(what: str, lower: float, upper: float, truth: Truth) -> list[Finding]:
    """Whether bounds are bounds."""
    found = []
    if np.isfinite(lower) and Fraction(lower) > truth.high:
        found.append(Finding(what, 1.0, f"{lower!r} is above the optimum"))
    if np.isfinite(upper) and Fraction(upper) < truth.low:
        found.append(Finding(what, 1.0, f"{upper!r} is below the optimum"))
    return found


def _first_opinion(data: bytes, instance: Any, kind: str, outcome: Outcome) -> Any:
    from exactsel_certificates.checking import verify
    from exactsel_certificates.container import MalformedError, parse_proof

    try:
        verdict = verify(parse_proof(data), instance, exact_limit=EXACT_LIMIT)
    except MalformedError:
        outcome.counts["mutants: malformed"] += 1
        return None
    except Exception as error:
        outcome.findings.append(Finding(f"exception {type(error).__name__}, {kind}", 1.0, str(error)[:200]))
        outcome.counts["mutants: exception"] += 1
        return None
    outcome.counts[f"mutants: {'accepted' if verdict.verified else 'rejected'}"] += 1
    return verdict


def _second_opinion(data: bytes, kind: str, case: Case, delta: float | None, truth: Truth, outcome: Outcome) -> None:
    from exactsel_certificates.container import MalformedError, parse_proof
    from exactsel_certificates.standalone import Malformed

    try:
        said = second_opinion(case, delta, data)
    except Malformed:
        outcome.counts["second checker: malformed"] += 1
        return
    except Exception as error:
        outcome.findings.append(Finding(f"second: exception {type(error).__name__}, {kind}", 1.0, str(error)[:200]))
        return
    if said is None:
        return
    outcome.counts[f"second checker: {'rejected' if said else 'accepted'}"] += 1
    if said:
        return
    try:
        proof = parse_proof(data)
    except MalformedError:
        outcome.findings.append(Finding(f"the second accepts what is malformed to the first, {kind}", 1.0, ""))
        return
    if not proof.valid_for:
        outcome.findings += untrue(f"second: false accept, {kind}", proof.lower, proof.upper, truth)
