"""Hold a result against the truth: every promise of docs/reference/results.md that is not kept is a finding.

Nothing is asked of a result beyond what it says: the words are worked out anew from the numbers, by other code.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from exactsel.solving.result import Result
from exactsel.testing.instances import CSS
from exactsel.testing.solving import Finding
from exactsel_dev.campaigns.brute_force import SCALE, Truth

OPTIMAL, NOISE = Fraction(1, 10**9), Fraction(1, 10**11)
"""A gap is optimal within OPTIMAL times upper, or NOISE times the empty model's objective."""

ROOM = 1 + Fraction(1, 10**6)
"""How far a tolerance, which is worked out in doubles, may be exceeded."""

FAR = Fraction(1, 10**6)
"""Times the size of what is summed up: an upper bound further above its model than this is not that model's."""

ENDS = {"gap_closed", "tree_exhausted", "precision_limit"}
"""Ways to end that need no limit."""


def judged(result: Result, truth: Truth) -> list[Finding]:
    """Everything wrong with a result."""
    if any(map(math.isnan, (result.lower, result.upper))) or not math.isfinite(result.upper):
        return [Finding("a bound is no number", f"lower {result.lower!r}, upper {result.upper!r}")]
    findings = [*_bounds(result, truth), *_support(result, truth), *_words(result, truth)]
    value = _value(result, truth)
    if value is None:
        return [*findings, Finding("a coefficient is no number", repr(result.coef.tolist()))]
    return [*findings, *_model(result, truth, value)]


def _bounds(result: Result, truth: Truth) -> Iterator[Finding]:
    """lower <= optimum <= upper, without a tolerance; a scope speaks of some models only."""
    upper = Fraction(result.upper)
    if upper < truth.low:
        yield Finding("upper below the optimum", f"upper {result.upper!r}, optimum {shown(truth.low)}")
    if result.lower == -math.inf or (math.isfinite(result.lower) and Fraction(result.lower) <= truth.high):
        return
    if result.valid_for:
        best = truth.best_in_scope() if truth.instance.loss == "quadratic" else None
        if best is None or Fraction(result.lower) <= best:
            return
    yield Finding("lower above the optimum", f"lower {result.lower!r}, optimum {shown(truth.high)}")


def _support(result: Result, truth: Truth) -> Iterator[Finding]:
    """The model is on an admissible set, and the support is that of its coefficients."""
    instance, support = truth.instance, set(result.support)
    if instance.loss != CSS:
        coef = _coefficients(result)
        used = {u for u, columns in enumerate(instance.units) if any(coef[j] for j in columns)}
        if used - support:
            yield Finding("support is not that of the coefficients", f"{sorted(support)}, but {sorted(used)}")
        support |= used
    if not any(support <= chosen for chosen in instance.admissible):
        yield Finding("the model breaks a demand", f"support {sorted(support)} with k {instance.k}")


def _coefficients(result: Result) -> list[float]:
    return [float(x) for x in result.coef]


def _value(result: Result, truth: Truth) -> Fraction | None:
    """What the shown model costs; None where it is no model."""
    if truth.instance.loss == CSS:
        return truth.cost(result.support)
    coef = _coefficients(result)
    return truth.of_model(coef) if all(map(math.isfinite, coef)) else None


def _model(result: Result, truth: Truth, value: Fraction) -> Iterator[Finding]:
    """``upper`` belongs to the shown model, which is as good as the claim says."""
    upper = Fraction(result.upper)
    about = f"upper {result.upper!r}, its model costs {shown(value)}"
    if upper < value:
        yield Finding("upper below its model", about)
    elif upper - value > FAR * max(value, truth.empty) and upper - value > _rounding(result, truth):
        yield Finding("upper is not its model's", about)
    if result.valid_for or truth.loose:
        return
    excess = value - truth.high
    about = f"the model costs {shown(value)}, the best {shown(truth.high)}"
    fine = OPTIMAL * max(truth.high, SCALE * truth.empty) * ROOM
    if result.claim.value == "optimal" and excess > fine:
        yield Finding("called optimal, but is not", about)
    if result.claim.value == "within_eps" and excess > max(_asked(result, value), fine) * ROOM:
        yield Finding("called within eps, but is not", about)


def _rounding(result: Result, truth: Truth) -> Fraction:
    """What rounding of the largest terms may add to an upper bound: offsets cancel, their rounding does not."""
    instance = truth.instance
    if instance.loss == CSS:
        return FAR * truth.empty
    coef = _coefficients(result)
    size = max(float(abs(instance.A[i]) @ [abs(x) for x in coef]) + abs(float(instance.y[i])) for i in truth.data.rows)
    weight = 1.0 if instance.weights is None else float(instance.weights.max())
    return Fraction(min(1e-12 * instance.n * weight * size, 1e300)) * Fraction(max(size, 1.0))


def _asked(result: Result, upper: Fraction) -> Fraction:
    """The gap that was asked for."""
    settings, null = result.settings, Fraction(result.null_objective)
    relative = Fraction(settings["rel_eps"]) * max(Fraction(1, 10**12) * null, abs(upper))
    return max(Fraction(settings["eps"]), relative, NOISE * max(abs(upper), null))


def _words(result: Result, truth: Truth) -> Iterator[Finding]:
    """Claim and termination follow from the bounds, the settings and what is left open."""
    claim, ending = result.claim.value, result.termination.value
    if not math.isfinite(result.lower):
        proven = "heuristic_only"
    else:
        upper, null = Fraction(result.upper), Fraction(result.null_objective)
        gap = upper - Fraction(result.lower)
        optimal = gap <= max(OPTIMAL * abs(upper), NOISE * null) * ROOM
        proven = "optimal" if optimal else "within_eps" if gap <= _asked(result, upper) * ROOM else "bounded"
    order = ("heuristic_only", "bounded", "within_eps", "optimal")
    if order.index(claim) > order.index(proven):
        yield Finding("claims more than its bounds", f"{claim}, but {result.lower!r} to {result.upper!r} is {proven}")
    allowed = ENDS | ({"node_limit"} if "node_limit" in truth.instance.settings else set())
    if ending not in allowed:
        yield Finding(f"ended as {ending}", "nobody asked for that")
    if ending == "gap_closed" and claim not in ("optimal", "within_eps"):
        yield Finding("gap_closed, but it is not", f"{claim}, {result.lower!r} to {result.upper!r}")
    if ending == "tree_exhausted" and result.open_nodes:
        yield Finding("tree_exhausted, but it is not", f"{result.open_nodes} nodes are open")


def shown(value: Fraction) -> str:
    """A number for people, however large or small."""
    try:
        return repr(float(value))
    except OverflowError:
        return "more than any double"
