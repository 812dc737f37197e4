"""Hold a result against the truth: every promise that is not kept is a finding, with its size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from benchmarks.attacks.oracle import Oracle, Truth

OPTIMAL = Fraction(1, 10**9)
"""A model called optimal is no worse than this times the optimum, or the next constant times the empty model's."""

SCALE = Fraction(1, 100)
"""What counts of the empty model's objective."""

LONG = 30.0
"""Seconds; a limit below this may end a method and the search after it."""

ROOM = 1 + Fraction(1, 10**6)
"""How far a tolerance, which a program computes in doubles, may be exceeded."""


class Finding(NamedTuple):
    """A promise that was not kept."""

    what: str
    """The class it belongs to."""
    size: float
    """By how much, relative to the larger of the two numbers where there are two."""
    detail: str


def beyond(much: Fraction, of: Fraction) -> float:
    """The excess as a share."""
    return min(float(much / abs(of)), 1e300) if of else math.inf


def shown(value: Fraction | float) -> str:
    """A number for people, however large or small."""
    try:
        return repr(float(value))
    except OverflowError:
        return "more than any double"


def not_below(lower: float, truth: Truth, oracle: Oracle, valid_for: str, k: int | None) -> Iterator[Finding]:
    """``lower`` may not exceed the optimum; with a scope not that among the models of the scope."""
    if math.isnan(lower):
        yield Finding("lower is no number", math.inf, "")
        return
    if lower == -math.inf or Fraction(lower) <= truth.high:
        return
    if valid_for:
        if oracle.case.loss != "quadratic":
            return
        best = oracle.bounded_truth(k)
        if best is None or Fraction(lower) <= best:
            return
    excess = Fraction(lower) - truth.high
    name = "lower above the truth" + (" (in scope)" if valid_for else "")
    yield Finding(name, beyond(excess, Fraction(lower)), f"lower {lower!r}, truth {shown(truth.high)}")


def not_above(upper: float, truth: Truth) -> Iterator[Finding]:
    """``upper`` may not be less than the optimum."""
    if math.isnan(upper):
        yield Finding("upper is no number", math.inf, "")
    elif math.isfinite(upper) and Fraction(upper) < truth.low:
        size = beyond(truth.low - Fraction(upper), truth.low)
        yield Finding("upper below the truth", size, f"upper {upper!r}, truth {shown(truth.low)}")


OFFSET = 1e-13
"""Of the empty model's objective: what is said with an offset is about y - o, or counts over exposures, in doubles."""


def kept(upper: float, coef: Sequence[float], oracle: Oracle) -> Iterator[Finding]:
    """``upper`` bounds the objective of the coefficients that are shown."""
    if not all(math.isfinite(x) for x in coef):
        yield Finding("coefficients are no numbers", math.inf, repr(list(coef)))
        return
    value = oracle.objective(coef)[0]
    room = 0 if oracle.case.offset is None else Fraction(OFFSET) * oracle.empty
    if math.isfinite(upper) and Fraction(upper) + room < value:
        size = beyond(value - Fraction(upper), value)
        yield Finding("upper below its model", size, f"upper {upper!r}, its coefficients cost {shown(value)}")


def admissible(coef: Sequence[float], support: Sequence[int], oracle: Oracle, k: int) -> Iterator[Finding]:
    """At most k units, none that is forbidden, and the support is that of the coefficients."""
    case = oracle.case
    used = {u for u, columns in enumerate(case.units) if any(coef[j] for j in columns)}
    if used - set(support):
        yield Finding("support is not that of the coefficients", 1.0, f"{support} but {sorted(used)}")
    if len({*support, *used, *case.force_in}) > k or {*support, *used} & set(case.force_out):
        yield Finding("model breaks the limits", 1.0, f"support {support}, k {k}")


def judged(result: Any, oracle: Oracle, truth: Truth, k: int | None = None) -> list[Finding]:
    """Everything wrong with a result of ``solve``."""
    case, k = oracle.case, oracle.case.k if k is None else k
    findings = [*not_below(result.lower, truth, oracle, result.valid_for, k), *not_above(result.upper, truth)]
    if case.loss == "css":
        if len(result.support) > k:
            findings.append(Finding("model breaks the limits", 1.0, f"support {result.support}, k {k}"))
        value = oracle.values([tuple(result.support)])[tuple(result.support)][0]
        if math.isfinite(result.upper) and Fraction(result.upper) < value:
            size = beyond(value - Fraction(result.upper), value)
            findings.append(Finding("upper below its model", size, f"upper {result.upper!r}, truth {shown(value)}"))
    else:
        coef = [float(x) for x in result.coef]
        findings += kept(result.upper, coef, oracle)
        findings += admissible(coef, result.support, oracle, k)
        value = oracle.objective(coef)[0] if all(map(math.isfinite, coef)) else None
    if value is not None:
        findings += words(result, value, oracle, truth)
    if case.offset is None:
        return findings
    room = OFFSET * float(oracle.empty)
    return [f for f in findings if f.what[:5] not in ("upper", "lower") or f.size * abs(result.upper) > room]


def words(result: Any, value: Fraction, oracle: Oracle, truth: Truth) -> Iterator[Finding]:
    """Claim and termination say no more than is true."""
    if result.valid_for or truth.loose:
        return
    excess = value - truth.high
    fine = OPTIMAL * max(truth.high, SCALE * oracle.empty)
    asked = max(Fraction(result.settings["eps"]), Fraction(result.settings["rel_eps"]) * value, fine) * ROOM
    claim, termination = result.claim.value, result.termination.value
    size = beyond(excess, max(truth.high, SCALE * oracle.empty))
    about = f"the model costs {shown(value)}, the best {shown(truth.high)}"
    if claim == "optimal" and excess > fine * ROOM:
        yield Finding("called optimal, but is not", size, about)
    if claim == "within_eps" and excess > asked:
        yield Finding("called within eps, but is not", size, about)
    if termination == "gap_closed" and (excess > asked or claim not in ("optimal", "within_eps")):
        yield Finding("stopped as gap_closed, but the model is worse", size, about)
    expected = {"gap_closed", "tree_exhausted", "precision_limit", "node_limit"}
    limit = result.settings.get("time_limit")
    if limit is not None and limit < LONG:
        expected.add("time_limit")
    if termination not in expected:
        yield Finding(f"ended as {termination}", 1.0, about)
