"""Problems outside the domain of FORMAT.md, with proofs that were honest before the problem was changed.

Each is asked about three times: with the claims of the honest proof, with claims that would be true of nearly anything
(at least 0, at most 1e300), and with a lower bound ten times too large. None may be accepted, whatever is claimed. The
checker that needs the standard library alone has forged problems of its own (``standalone-mutants --forged``).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.attacks.cases import Case, quiet_problem, random_case
from benchmarks.attacks.judging import Finding
from benchmarks.attacks.running import Outcome, kind_of

NO_NUMBERS = (float("nan"), float("inf"), -float("inf"))

TINY = (5e-324, 1e-300, 1e-70)
"""Positive, and too small for what doubles allow for underflow."""


def forgeries(rng: Any, instance: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and changes, each of which takes the problem out of the domain in one way."""
    n, d = instance.A.shape
    row, column = int(rng.integers(n)), int(rng.integers(d))
    odd = float(rng.choice([*NO_NUMBERS, 1e300, -1.7e308]))
    yield f"A holds {odd}", dict(A=_with(instance.A, (row, column), odd))
    tiny = instance.A.copy()
    tiny[:, column] = float(rng.choice(TINY)) * rng.choice([1.0, -1.0], n)
    yield "A has a column near underflow", dict(A=tiny)
    for k in (-1, d + 1, 1.5, None, float("nan")):
        yield f"k is {k}", dict(k=k)
    if not hasattr(instance, "y"):
        return
    yield f"y holds {odd}", dict(y=_with(instance.y, row, odd))
    yield "y is too long", dict(y=np.append(instance.y, 1.0))
    yield "y is a table", dict(y=np.column_stack([instance.y, instance.y]))
    for lam in (*NO_NUMBERS, -1.0, 1e300, *TINY):
        yield f"lam is {lam}", dict(lam=lam)
    yield "an unknown loss", dict(loss="absolute")
    yield from _rows(rng, instance, row)
    many = len(instance.groups) or d
    for wrong in ((many,), (-1,), (0.5,), ("0",)):
        yield f"force_in is {wrong}", dict(force_in=wrong)
        yield f"force_out is {wrong}", dict(force_out=wrong)
    for groups in (((0,),), ((0, 0), tuple(range(1, d))), ((-1,), tuple(range(d))), (tuple(range(d + 1)),)):
        if sorted(j for group in groups for j in group) != list(range(d)):
            yield f"groups are {groups}", dict(groups=groups)


def _rows(rng: Any, instance: Any, row: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """What is wrong with a loss, its labels, its threshold or its weights."""
    n = len(instance.y)
    if instance.loss == "huber":
        for delta in (0.0, -1.0, *NO_NUMBERS, 1e300, *TINY):
            yield f"delta is {delta}", dict(delta=delta)
    if instance.loss == "logistic":
        for label in (0.0, 2.0, -0.5):
            yield f"a label is {label}", dict(y=_with(instance.y, row, label))
    weights = rng.uniform(0.5, 2.0, n)
    for weight in (-1.0, *NO_NUMBERS, 1e300, *TINY):
        yield f"a weight is {weight}", dict(weights=_with(weights, row, weight))
    yield "too few weights", dict(weights=weights[:-1])
    yield "no weight at all", dict(weights=np.zeros(n))
    yield "intercept is no truth value", dict(intercept="no")


def _with(array: Any, place: Any, value: float) -> Any:
    changed = array.copy()
    changed[place] = value
    return changed


def plain_case(seed: int) -> Case:
    """A problem of the solves, with nothing done to its data, so that each forgery is the only thing wrong."""
    case = random_case(seed)
    return replace(case, intercept=False, scale=False, weights=None, labels=None, force_in=(), force_out=())


def forged(seed: int) -> Outcome:
    """One trial: every forgery of one problem."""
    from exactsel import solve
    from exactsel.errors import InputError
    from exactsel.proofs.writer import instance_of
    from exactsel_certificates.container import read_proof

    case, outcome = plain_case(seed), Outcome(seed)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.exsel"
        try:
            problem = quiet_problem(case)
            solve(problem, proof=file, signals=(), threads=1)
        except InputError as error:
            outcome.counts[f"refused: {kind_of(error)}"] += 1
            return outcome
        proof = read_proof(file)
    rng = np.random.default_rng([1208, seed])
    sound = instance_of(problem)
    for name, changes in forgeries(rng, sound):
        try:
            instance = replace(sound, **changes)
        except (TypeError, ValueError):
            outcome.counts["forged problems, not even made"] += 1
            continue
        for lower, upper in ((proof.lower, proof.upper), (0.0, 1e300), (10 * proof.lower + 1.0, 1e300)):
            about = {"n": instance.A.shape[0], "d": instance.A.shape[1], "k": instance.k}
            about |= {"loss": instance.loss, "groups": len(instance.groups) or None} if case.loss != "css" else {}
            _ask(name, instance, replace(proof, lower=lower, upper=upper, **about), outcome)
    return outcome


def _ask(name: str, instance: Any, proof: Any, outcome: Outcome) -> None:
    """Twice, for the first answer may tell the hash that the file should have."""
    from exactsel_certificates.checking import verify
    from exactsel_certificates.container import MalformedError

    outcome.counts["forged problems with a claim"] += 1
    try:
        verdict = verify(proof, instance, exact_limit=1e6)
        if verdict.problem_hash:
            verdict = verify(replace(proof, problem_hash=verdict.problem_hash), instance, exact_limit=1e6)
    except MalformedError:
        return
    except Exception as error:
        outcome.findings.append(Finding(f"exception {type(error).__name__}", 1.0, f"{name}: {error}"[:200]))
        return
    if verdict.verified:
        outcome.findings.append(Finding(f"accepted: {name}", 1.0, f"lower {verdict.claimed_lower!r}"))
