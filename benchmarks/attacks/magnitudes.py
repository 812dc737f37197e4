"""Columns of very different magnitude: the same problem with columns in other units, and the truth about it.

At lam = 0 each column may be multiplied by a power of two of its own: that rounds nothing and changes no model, so all
that is said must come out the same, bit for bit, coefficients divided. Powers of ten, and powers of two beside a ridge,
make another problem: then the truth is held against what is said, and fits against exact ones.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.attacks.cases import Case, quiet_problem
from benchmarks.attacks.judging import SCALE, Finding, beyond, judged, shown
from benchmarks.attacks.magnitude_cases import LOSSES, STYLES, Stretched, stretched
from benchmarks.attacks.oracle import Oracle
from benchmarks.attacks.rational import Support
from benchmarks.attacks.running import Outcome, kind_of
from benchmarks.attacks.solves import delta_of, options_of
from benchmarks.attacks.units import differences

SECONDS, NODES = 300.0, 2000
"""Of a solve, kernels compiled and all; one that takes so many nodes counts as not proven."""

PATIENCE = 120.0
"""Of a trial with its oracle."""

FIT = Fraction(1, 10**9)
"""Times the larger of an objective and a hundredth of the empty model's: what a fit may be above the best there is."""

TIGHT = 1e-6
"""The largest relative tolerance of runs that must have looked at each column alone, unless they were within it."""

BINS = 2
"""Decades of one line of the table."""

MOST_DECADES = 30
"""The last line holds all from here on."""


def attempted(seed: int) -> Outcome:
    """One trial: the problem of the seed, and the same with its columns multiplied."""
    from benchmarks.attacks.magnitude_doors import through_a_door
    from exactsel.errors import InputError

    outcome, pair = Outcome(seed), stretched(seed)
    try:
        plain = quiet_problem(pair.plain)
    except InputError as error:
        outcome.counts[f"refused: {kind_of(error)}"] += 1
        return outcome
    try:
        problem = quiet_problem(pair.case)
    except InputError as error:
        _refused(pair, error, outcome)
        return outcome
    try:
        with patience(PATIENCE):
            if _solved(pair, plain, problem, outcome):
                through_a_door(pair, plain, problem, outcome)
    except OutOfPatience:
        outcome.counts[f"given up after {PATIENCE:g} s"] += 1
    return outcome


class OutOfPatience(Exception):
    """A trial took too long: nearly always its oracle, in fractions of thousands of digits."""


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Give up after some seconds."""

    def give_up(_number: int, _frame: Any) -> None:
        raise OutOfPatience

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def _refused(pair: Stretched, error: Exception, outcome: Outcome) -> None:
    """A refusal of the multiplied problem alone."""
    outcome.counts[f"refused with its columns multiplied: {kind_of(error)}"] += 1
    if pair.same:
        outcome.findings.append(Finding("refused in other units only", 1.0, f"{about(pair)}: {error}"[:300]))


def _solved(pair: Stretched, plain: Any, problem: Any, outcome: Outcome) -> bool:
    """Solve and judge; whether there was an answer."""
    from exactsel import solve
    from exactsel.errors import InputError

    options = choices_of(outcome.seed, pair.case)
    try:
        first = solve(plain, signals=(), **options) if pair.same else None
    except InputError as error:
        outcome.counts[f"refused: {kind_of(error)}"] += 1
        return False
    try:
        result = solve(problem, signals=(), **options)
    except InputError as error:
        _refused(pair, error, outcome)
        return False
    oracle = Oracle(pair.case, delta_of(problem))
    truth = oracle.truth()
    outcome.counts[f"solved: {pair.case.loss}, {ridge(pair.case)}"] += 1
    outcome.counts["interval wider than 1e-15"] += truth.loose
    outcome.counts[f"stopped after {NODES} nodes"] += result.termination.value == "node_limit"
    outcome.cells.update(cell(pair, result.claim.reached))
    # A wide tolerance that the empty model meets is no reason to look at any other.
    wide = options.get("eps", 0.0) > 0.0 or options.get("rel_eps", 0.0) > TIGHT
    known = [()] if wide else None
    outcome.findings += [
        Finding(f.what, f.size, f"{about(pair)}: {f.detail}")
        for f in [*judged(result, oracle, truth), *trivial(result), *fits(result.upper, result.support, oracle, known)]
    ]
    if first is not None:
        outcome.counts["compared with the same in other units"] += 1
        outcome.findings += differences(pair.plain, first, result, 0, np.array(pair.powers), 0)
    return True


def choices_of(seed: int, case: Case) -> dict[str, Any]:
    """Options of the solve: the defaults, for most."""
    rng = np.random.default_rng([1241, seed])
    chosen: dict[str, Any] = {}
    varied = case.loss == "quadratic" or (case.lam > 0 and case.loss in ("huber", "logistic"))
    if rng.random() < 0.15 and varied and case.lower is None:
        chosen = options_of(seed, case)
    elif rng.random() < 0.1:
        chosen = {"heuristics": ()}
    return {**chosen, "threads": 1, "time_limit": SECONDS, "node_limit": NODES}


def fits(upper: float, support: Support, oracle: Oracle, known: Iterable[Support] | None = None) -> Iterator[Finding]:
    """The model is no worse than exact fits on its own support, and on others: none, and each column, by default."""
    case = oracle.case
    if known is None:
        known = [(), *(tuple(sorted({u, *case.force_in})) for u in range(len(case.units)))]
    admitted = sorted({s for s in known if len(s) <= case.k and case.admits(s)} - {tuple(support)})
    for chosen, (_, high) in oracle.values([tuple(support), *admitted]).items():
        excess = Fraction(upper) - high if np.isfinite(upper) else Fraction(2) ** 1100
        single = chosen not in ((), tuple(support))
        allowed = Fraction(TIGHT) * high if single else Fraction(0)
        if excess > max(allowed, FIT * max(high, SCALE * oracle.empty)) and oracle.tame(chosen):
            name = "the fit on its own support" if chosen == tuple(support) else "a single column"
            size = beyond(excess, max(high, SCALE * oracle.empty))
            yield Finding(f"worse than {name if chosen else 'the empty model'}", size,
                          f"upper {upper!r} on {tuple(support)}, the fit on {chosen} is {shown(high)}")  # fmt: skip
            return


def trivial(result: Any) -> Iterator[Finding]:
    """No loss here is ever below zero, so no lower bound need be."""
    if result.lower < 0:
        yield Finding("lower below zero", min(-result.lower / (abs(result.upper) or 1.0), 1e300), repr(result.lower))


def about(pair: Stretched) -> str:
    """The kind of a problem, for people."""
    case = pair.case
    extra = [word for word, there in (("intercept", case.intercept), ("weights", case.weights is not None)) if there]
    return f"{', '.join([case.loss, ridge(case), case.kind, *extra])}, {pair.powers}"


def ridge(case: Case) -> str:
    """Whether there is one."""
    return "lam > 0" if case.lam else "lam = 0"


def cell(pair: Stretched, reached: bool) -> Counter[tuple[str, ...]]:
    """Where a solve counts in the table of what is not proven."""
    at = (str(min(pair.decades, MOST_DECADES) // BINS * BINS), pair.case.loss, ridge(pair.case))
    return Counter({(*at, "tried"): 1, (*at, "not proven"): int(not reached)})


def table(cells: Counter[tuple[str, ...]]) -> list[dict[str, Any]]:
    """Not proven of how many tried, by the ratio of the sizes of columns, loss and ridge."""
    kinds = [(loss, lam) for loss in LOSSES for lam in ("lam = 0", "lam > 0")]
    kinds = [kind for kind in kinds if any(at[1:3] == kind for at in cells)]
    rows = []
    for decade in sorted({int(at[0]) for at in cells}):
        row = {"ratio from": f"1e{decade}"}
        for loss, lam in kinds:
            tried, not_proven = (cells[str(decade), loss, lam, what] for what in ("tried", "not proven"))
            row[f"{loss}, {lam}"] = f"{not_proven} of {tried}" if tried else ""
        rows.append(row)
    return rows


def told(seed: int) -> str:
    """The problem of a seed in full, its results and the truth."""
    from exactsel import solve
    from exactsel.errors import InputError

    pair = stretched(seed)
    options = choices_of(seed, pair.case)
    lines = [pair.case.text(), f"{pair.style} {pair.powers}, options {options}"]
    for name, case in (("as made", pair.plain), ("multiplied", pair.case)):
        try:
            problem = quiet_problem(case)
            result = solve(problem, signals=(), **options)
        except InputError as error:
            lines.append(f"{name}: refused: {error}")
            continue
        oracle = Oracle(case, delta_of(problem))
        truth = oracle.truth()
        lines += [f"--- {name}", str(result), f"coef         {result.model.coef.tolist()}"]
        lines.append(f"truth        {shown(truth.low)} to {shown(truth.high)}, empty model {shown(oracle.empty)}")
    return "\n".join(lines)


__all__ = ["STYLES", "attempted", "cell", "choices_of", "fits", "table", "told"]
