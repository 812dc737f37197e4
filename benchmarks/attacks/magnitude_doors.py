"""The other doors, for columns of any magnitude: what each says must be true, and the same in other units."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.attacks.cases import Case
from benchmarks.attacks.doors import through_certify, through_estimator, through_near, through_path
from benchmarks.attacks.honest import second_opinion
from benchmarks.attacks.judging import SCALE, Finding, beyond, judged, shown
from benchmarks.attacks.magnitude_cases import Stretched
from benchmarks.attacks.magnitudes import FIT, NODES, SECONDS, about, fits
from benchmarks.attacks.oracle import Oracle, Truth
from benchmarks.attacks.running import Outcome, kind_of
from benchmarks.attacks.solves import delta_of

METHODS = ("forward", "swap", "exchange", "foba", "greedy-rls", "rfe", "omp", "htp", "iht", "dual-iht", "poss", "pposs",
           "islands", "lasso", "mcp", "scad", "newton-swap")  # fmt: skip

NO_WORSE = ("forward", "swap", "exchange")
"""Methods that look at every single column, and keep the best."""

QUIET: dict[str, Any] = {"threads": 1, "signals": (), "time_limit": SECONDS, "node_limit": NODES}

TOP = 3

ROUNDED = 1e-9
"""Of a criterion, and of the objective behind it: no difference."""


class Asked(NamedTuple):
    """A problem that goes through a door, and the seed of what is asked."""

    seed: int
    case: Case
    problem: Any

    @property
    def rng(self) -> Any:
        """The same for a problem in other units."""
        return np.random.default_rng([1242, self.seed])


Record = dict[str, Any]
"""What was said: numbers and words, ``coef`` and ``error`` by column."""

Door = Callable[[Asked], tuple[Record, Callable[[Oracle, Truth], Iterator[Finding]]]]
"""Asks, and returns what was said and who judges it."""


def through_a_door(pair: Stretched, plain: Any, problem: Any, outcome: Outcome) -> None:
    """Through one of the doors, the plain problem as well where both must say the same."""
    from exactsel.errors import InputError

    rng = np.random.default_rng([1243, outcome.seed])
    names = list(DOORS)
    name = names[int(rng.choice(len(names), p=[share for share, _ in DOORS.values()]))]
    door = DOORS[name][1]
    try:
        first = door(Asked(outcome.seed, pair.plain, plain))[0] if pair.same else None
    except (InputError, Elsewhere) as error:
        outcome.counts[f"{name} refused: {kind_of(error)}"] += 1
        return
    try:
        record, judge = door(Asked(outcome.seed, pair.case, problem))
    except (InputError, Elsewhere) as error:
        outcome.counts[f"{name} refused: {kind_of(error)}"] += 1
        if first is not None:
            detail = f"{about(pair)}: {error}"[:300]
            outcome.findings.append(Finding(f"{name}: refused in other units only", 1.0, detail))
        return
    outcome.counts[f"through {name}"] += 1
    oracle = Oracle(pair.case, delta_of(problem))
    found = [*judge(oracle, oracle.truth())]
    if first is not None:
        outcome.counts[f"{name}: compared with the same in other units"] += 1
        found += unlike(first, record, np.array(pair.powers))
    outcome.findings += [Finding(f"{name}: {f.what}", f.size, f"{about(pair)}: {f.detail}"[:400]) for f in found]


class Elsewhere(Exception):
    """The problem is none for this door."""


def unlike(first: Record, second: Record, powers: Any) -> Iterator[Finding]:
    """What differs between two records beyond the units of columns."""
    for name, before in first.items():
        after = second[name]
        if name in ("coef", "error"):
            before = np.ldexp(before, -powers)
        if not _equal(before, after):
            size = 1.0
            if isinstance(before, float) and isinstance(after, float) and math.isfinite(before) and before:
                size = abs(after - before) / abs(before)
            yield Finding(f"{name} differs", size, f"{_brief(before)} and {_brief(after)}")


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other, equal_nan=True)
    return one == other or (one != one and other != other)


def _brief(value: Any) -> str:
    return repr(value.tolist() if isinstance(value, np.ndarray) else value)[:120]


def said(result: Any) -> Record:
    """What a result says."""
    return {
        "claim": result.claim.value, "support": result.support, "upper": result.upper, "lower": result.lower,
        "gap": result.gap, "nodes": result.nodes, "tree_hash": result.tree_hash, "coef": result.model.coef,
        "intercept": result.model.intercept,
    }  # fmt: skip


def heuristic(asked: Asked) -> tuple[Record, Callable[[Oracle, Truth], Iterator[Finding]]]:
    """An approximate method by its name."""
    from exactsel import heuristics

    method = str(asked.rng.choice(METHODS))
    result = heuristics.run(method, asked.problem, threads=1, signals=(), time_limit=SECONDS)
    record = {f"{method}: {name}": value for name, value in said(result).items() if name not in ("coef", "tree_hash")}
    record |= {f"{method}: evaluations": result.evaluations, f"{method}: best_support": result.best_support}

    def judge(oracle: Oracle, truth: Truth) -> Iterator[Finding]:
        case = asked.case  # where columns go together, exchanging one at a time need not come to every column
        known = () if method not in NO_WORSE or case.per_group is not None or case.hierarchy else None
        for f in (*judged(result, oracle, truth), *fits(result.upper, result.support, oracle, known)):
            yield Finding(f"{method}: {f.what}", f.size, f.detail)

    return record, judge


def certify(asked: Asked) -> tuple[Record, Callable[[Oracle, Truth], Iterator[Finding]]]:
    """A support, whose best coefficients are asked for."""
    from exactsel import certify as ask

    free = [u for u in range(len(asked.case.units)) if u not in {*asked.case.force_in, *asked.case.force_out}]
    many = int(asked.rng.integers(0, max(0, min(asked.case.k - len(asked.case.force_in), len(free))) + 1))
    chosen = (int(u) for u in asked.rng.permutation(free)[:many])
    support = tuple(sorted((*asked.case.force_in, *chosen)))
    if not asked.case.admits(support):
        raise Elsewhere("the support drawn is not admissible")
    found = ask(asked.problem, support=support, **QUIET)
    record = {"claim": found.claim.value, "value": found.value, "lower": found.lower, "coef": found.model.coef,
              "absolute_gap": found.absolute_gap}  # fmt: skip

    def judge(oracle: Oracle, truth: Truth) -> Iterator[Finding]:
        yield from through_certify(asked.rng, asked.case, asked.problem, oracle, truth)
        high = oracle.values([support])[support][1]
        fine = FIT * max(high, SCALE * oracle.empty)
        for name, value in (("value", Fraction(found.value)), ("coefficients", oracle.objective(found.model.coef)[0])):
            if value - high > fine and oracle.tame(support):
                size = beyond(value - high, max(high, SCALE * oracle.empty))
                yield Finding(f"the best {name} are not", size, f"{support}: {shown(value)}, the fit is {shown(high)}")

    return record, judge


def best(asked: Asked) -> tuple[Record, Callable[[Oracle, Truth], Iterator[Finding]]]:
    """The best models over all sizes by a criterion, and a list of the next."""
    from exactsel import best_model

    criterion = str(asked.rng.choice(["bic", "aic", "ebic"]))
    k_max = int(asked.rng.integers(1, asked.case.k + 1)) if not asked.case.force_in else asked.case.k
    found = best_model(asked.problem, criterion=criterion, k_max=k_max, top=TOP, **QUIET)
    models = [(model.support, model.criterion, model.objective) for model in found.models]
    record = {"models": models, "lower": found.lower, "threshold": found.threshold, "complete": found.complete,
              "claim": found.claim.value}  # fmt: skip

    def judge(oracle: Oracle, truth: Truth) -> Iterator[Finding]:
        return listed(found, asked.case, k_max, oracle)

    return record, judge


def listed(found: Any, case: Case, k_max: int, oracle: Oracle) -> Iterator[Finding]:
    """A list of best models: none is missing where it is complete, none below ``lower``, each as good as its fit."""
    given = {model.support: model for model in found.models}
    measure = found.criterion
    values = oracle.values([s for size in range(k_max + 1) for s in oracle.of_size(size)])
    for support, (low, high) in values.items():
        size = len([j for u in support for j in case.units[u]])
        if low <= 0 or high <= FIT * oracle.empty or not oracle.tame(support):
            continue  # an exact fit: what rounding leaves of it is anybody's guess
        at = replace(measure, beyond=size - len(support)).value(float(high), size)
        room = ROUNDED * (1.0 + abs(at)) + measure.likelihood.rows * float((high - low) / high)
        detail = f"{support}: {at!r}, threshold {found.threshold!r}, lower {found.lower!r}"
        if found.complete and support not in given and at < found.threshold - room and not found.valid_for:
            yield Finding("a complete list misses a model", (found.threshold - at) / (1.0 + abs(at)), detail)
        if not found.valid_for and at < found.lower - room:
            yield Finding("lower above a model's criterion", (found.lower - at) / (1.0 + abs(at)), detail)
        if support in given:
            objective = Fraction(given[support].objective)
            if objective < low:
                yield Finding("objective below the truth", beyond(low - objective, low), detail)
            if objective - high > FIT * max(high, SCALE * oracle.empty):
                yield Finding("a listed model is worse than its fit", beyond(objective - high, high), detail)


def near(asked: Asked) -> tuple[Record, Callable[[Oracle, Truth], Iterator[Finding]]]:
    """Every set of k units within some distance of the best."""
    from exactsel import near_optimal, solve

    upper = solve(asked.problem, **QUIET).upper
    tau = float(asked.rng.random()) * (1.0 + upper)
    found = near_optimal(asked.problem, tau=tau, cap=10_000, **QUIET)
    record = {"models": [(model.support, model.value) for model in found.models], "complete": found.complete,
              "threshold": found.threshold}  # fmt: skip

    def judge(oracle: Oracle, truth: Truth) -> Iterator[Finding]:
        yield from through_near(asked.rng, asked.case, asked.problem, oracle, truth)
        for model in found.models:
            high = oracle.values([model.support])[model.support][1]
            fine = FIT * max(high, SCALE * oracle.empty)
            if Fraction(model.value) - high > fine and oracle.tame(model.support):
                size = beyond(Fraction(model.value) - high, high)
                detail = f"{model.support}: {model.value!r}, {shown(high)}"
                yield Finding("a listed model is worse than its fit", size, detail)

    return record, judge


def path(asked: Asked) -> tuple[Record, Callable[[Oracle, Truth], Iterator[Finding]]]:
    """The best model of every size."""
    from exactsel import solve_path

    found = solve_path(asked.problem, ks=range(max(1, len(asked.case.force_in)), asked.case.k + 1), **QUIET)
    record = {f"{place}": [value for name, value in said(r).items() if name not in ("coef", "tree_hash")]
              for place, r in enumerate(found.results)}  # fmt: skip
    return record, lambda oracle, truth: through_path(asked.rng, asked.case, asked.problem, oracle, truth)


def validation(asked: Asked) -> tuple[Record, Callable[[Oracle, Truth], Iterator[Finding]]]:
    """Cross-validated errors."""
    from exactsel.studies.crossval import cross_validate, random_folds

    case, n = asked.case, len(asked.case.y)
    if case.offset is not None or case.labels is not None or case.hierarchy or case.lower is not None or n < 6:
        raise Elsewhere("not asked with these constraints, or with few rows")
    found = cross_validate(
        case.A, case.y, cv=random_folds(n, 3, asked.seed), ks=range(len(case.force_in), case.k + 1), lams=[case.lam],
        loss=case.loss, delta=case.delta, intercept=case.intercept, weights=case.weights, force_in=case.force_in,
        force_out=case.force_out, threads=1, total=SECONDS,
    )  # fmt: skip

    def judge(oracle: Oracle, truth: Truth) -> Iterator[Finding]:
        if not np.all(np.isfinite(found.errors)) and case.loss != "poisson":
            yield Finding("errors are no numbers", math.inf, repr(found.errors.tolist()))

    return {"errors": found.errors}, judge


def estimator(asked: Asked) -> tuple[Record, Callable[[Oracle, Truth], Iterator[Finding]]]:
    """The estimators of scikit-learn's kind."""
    from exactsel import sklearn

    case = asked.case
    if case.offset is not None or case.lower is not None or case.force_in or case.force_out:
        raise Elsewhere("not asked with these constraints")
    shared: dict[str, Any] = {
        "k": case.k, "lam": case.lam, "fit_intercept": case.intercept, "groups": case.labels, "loss": case.loss,
        "per_group": case.per_group, "solver_options": {"threads": 1, "signals": ()},
    }  # fmt: skip
    if case.hierarchy or case.loss == "poisson":
        raise Elsewhere("not asked with a hierarchy or counts")
    labelled = case.loss in ("logistic", "squared_hinge")
    if labelled:
        made: Any = sklearn.BestSubsetClassifier(**shared)
    else:
        made = sklearn.BestSubsetRegressor(delta=delta_of(asked.problem), **shared)
    made.fit(case.A, case.y, case.weights)
    record = {"coef": np.ravel(made.coef_), "objective": made.objective_, "lower": made.lower_bound_}

    def judge(oracle: Oracle, truth: Truth) -> Iterator[Finding]:
        yield from judged(made.result_, oracle, truth)
        yield from fits(made.objective_, made.result_.support, oracle)
        if case.loss != "squared_hinge" and case.per_group is None:
            yield from through_estimator(asked.rng, case, asked.problem, oracle, truth)

    return record, judge


def summary(asked: Asked) -> tuple[Record, Callable[[Oracle, Truth], Iterator[Finding]]]:
    """Standard errors and tests of the best model."""
    from exactsel import solve

    result = solve(asked.problem, **QUIET)
    found = result.summary(asked.problem)
    error = np.zeros(asked.case.d)
    for row in found.parameters:
        if row.column is not None:
            error[row.column] = row.error
    record = {
        "error": error, "statistics": np.array([row.statistic for row in found.parameters]),
        "p values": np.array([row.p_value for row in found.parameters]), "bic": found.bic, "r2": found.r2,
        "warnings": found.warnings,
    }  # fmt: skip

    def judge(oracle: Oracle, truth: Truth) -> Iterator[Finding]:
        yield from judged(result, oracle, truth)

    return record, judge


def proof(asked: Asked) -> tuple[Record, Callable[[Oracle, Truth], Iterator[Finding]]]:
    """A proof, through both checkers."""
    from exactsel import solve, verify

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.exsel"
        result = solve(asked.problem, proof=file, **QUIET)
        verdict, data = verify(asked.problem, file), file.read_bytes()
    record = {"verified": verdict.verified, "lower": verdict.lower, **said(result)}

    def judge(oracle: Oracle, truth: Truth) -> Iterator[Finding]:
        yield from judged(result, oracle, truth)
        if not verdict.verified:
            yield Finding("rejected", 1.0, verdict.reason)
        if not verdict.valid_for and Fraction(verdict.lower) > truth.high:
            yield Finding("establishes what is not so", 1.0, f"{verdict.lower!r} above {shown(truth.high)}")
        if asked.rng.random() < 0.5 and asked.case.offset is None:
            answer = second_opinion(asked.case, oracle.delta, data)
            if answer:
                yield Finding("rejected by the second checker", 1.0, answer)

    return record, judge


def tall(asked: Asked) -> tuple[Record, Callable[[Oracle, Truth], Iterator[Finding]]]:
    """Rows that are read in blocks, and reduced."""
    from exactsel import gram, solve

    case = asked.case
    if case.loss != "quadratic" or case.offset is not None or case.labels or case.hierarchy or case.lower is not None:
        raise Elsewhere("not asked with these constraints, or this loss")
    made = gram(case.A, case.y, weights=case.weights, intercept=case.intercept, k=case.k, lam=case.lam)
    result = solve(made.problem(force_in=case.force_in, force_out=case.force_out), **QUIET)
    rows = result.full_data
    record = said(result) | {"upper of all rows": rows.upper, "lower of all rows": rows.lower}

    def judge(oracle: Oracle, truth: Truth) -> Iterator[Finding]:
        if not rows.valid_for and Fraction(rows.lower) > truth.high:
            yield Finding("lower above the truth", 1.0, f"{rows.lower!r} above {shown(truth.high)}")
        if Fraction(rows.upper) < truth.low:
            yield Finding("upper below the truth", 1.0, f"{rows.upper!r} below {shown(truth.low)}")
        yield from fits(rows.upper, result.support, oracle)

    return record, judge


DOORS: dict[str, tuple[float, Door]] = {
    "heuristic": (0.3, heuristic), "certify": (0.1, certify), "best": (0.13, best), "near": (0.09, near),
    "path": (0.06, path), "validation": (0.06, validation), "estimator": (0.08, estimator),
    "summary": (0.04, summary), "proof": (0.08, proof), "tall": (0.06, tall),
}  # fmt: skip
"""Each with its share of the trials."""
