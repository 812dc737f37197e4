"""The other doors: path, near, certify, compare, heuristics and the estimators, held against the same truth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.attacks.cases import Case
from benchmarks.attacks.judging import SCALE, Finding, admissible, beyond, judged, kept, not_below, shown, words
from benchmarks.attacks.oracle import Oracle, Truth
from benchmarks.attacks.running import Outcome, kind_of

METHODS = ("forward", "omp", "htp", "dual-iht", "swap", "foba", "rfe", "iht", "poss", "greedy-rls")
SELECTIONS = ("greedy-css", "iterative-css", "two-stage", "approx-svd", "pocss")

QUIET: dict[str, Any] = {"threads": 1, "signals": (), "time_limit": 60.0}

SLACK = Fraction(1, 10**8)
"""A list may hold models this much above its threshold, relative to what the objectives are about."""


def through_doors(seed: int, case: Case, problem: Any, oracle: Oracle, truth: Truth, outcome: Outcome) -> None:
    """Through one of the doors, for a share of the seeds."""
    from exactsel.errors import InputError

    rng = np.random.default_rng([1204, seed])
    chances: dict[str, tuple[float, Callable[..., Iterator[Finding]]]] = {
        "path": (0.08, through_path), "near": (0.1, through_near), "certify": (0.08, through_certify),
        "heuristic": (0.04, through_heuristic), "compare": (0.01, through_compare),
        "estimator": (0.06, through_estimator),
    }  # fmt: skip
    draw = rng.random()
    for name, (share, door) in chances.items():
        if draw < share:
            try:
                found = list(door(rng, case, problem, oracle, truth))
            except InputError as error:
                outcome.counts[f"{name} refused: {kind_of(error)}"] += 1
                return
            outcome.counts[f"through {name}"] += 1
            outcome.findings += [Finding(f"{name}: {f.what}", f.size, f.detail) for f in found]
            return
        draw -= share


def through_path(rng: Any, case: Case, problem: Any, oracle: Oracle, truth: Truth) -> Iterator[Finding]:
    """The best model of every size."""
    from exactsel import solve_path

    path = solve_path(problem, ks=range(max(1, len(case.force_in)), case.k + 1) or [case.k], **QUIET)
    for result in path.results:
        k = result.problem["k"]
        yield from judged(result, oracle, oracle.truth(k), k)


def through_near(rng: Any, case: Case, problem: Any, oracle: Oracle, truth: Truth) -> Iterator[Finding]:
    """Every set of exactly k units this close to the best, with a threshold that often lies right at one of them."""
    from exactsel import near_optimal

    supports = [s for s in oracle.supports(case.k) if len(s) == case.k]
    values = oracle.values(supports)
    tau = float(rng.random()) * min(float(oracle.empty), 1e300)
    if values and rng.random() < 0.7:
        high = list(values.values())[int(rng.integers(len(values)))][1]
        tau = float(max(high - truth.low, Fraction(0)))
        tau = tau if Fraction(tau) >= high - truth.low else float(np.nextafter(tau, np.inf))
    near = near_optimal(problem, tau=tau, cap=10_000, **QUIET)
    listed = {model.support: model.value for model in near.models}
    yield from judged(near.result, oracle, truth)
    if not near.complete or near.valid_for:
        return
    slack = SLACK * max(truth.high, Fraction(tau), SCALE * oracle.empty)
    for support, (low, high) in values.items():
        within = high <= truth.low + Fraction(tau)
        if within and support not in listed:
            size = beyond(truth.low + Fraction(tau) - high, truth.high)
            yield Finding("a model is missing", size, f"{support}: {shown(high)}, threshold {near.threshold!r}")
        if support in listed and low > Fraction(near.threshold) + slack:
            yield Finding("lists a model too many", beyond(low, truth.high), f"{support}: {shown(low)}")
        if support in listed and Fraction(listed[support]) < low:
            size = beyond(low - Fraction(listed[support]), low)
            yield Finding("value below the truth", size, f"{support}: {listed[support]!r}, truth {shown(low)}")
    for support in set(listed) - set(values):
        yield Finding("lists a model that is not admissible", 1.0, f"{support}")


def _some_support(rng: Any, case: Case) -> tuple[int, ...]:
    free = [u for u in range(len(case.units)) if u not in {*case.force_in, *case.force_out}]
    many = int(rng.integers(0, max(0, min(case.k - len(case.force_in), len(free))) + 1))
    chosen = {*case.force_in, *(int(u) for u in rng.permutation(free)[:many])}
    for child, parents in reversed(case.hierarchy):
        if not chosen.issuperset(parents) and child not in case.force_in:
            chosen.discard(child)
    support = tuple(sorted(chosen))
    return support if case.admits(support) else tuple(sorted(case.force_in))


def through_certify(rng: Any, case: Case, problem: Any, oracle: Oracle, truth: Truth) -> Iterator[Finding]:
    """A support, or coefficients, that somebody has."""
    from exactsel import certify

    support = _some_support(rng, case)
    plain = not (case.intercept or case.scale or case.weights is not None) and case.loss != "css"
    if plain and rng.random() < 0.5:
        coef = np.zeros(case.d)
        columns = [j for u in support for j in case.units[u]]
        coef[columns] = rng.standard_normal(len(columns)) / np.maximum(np.abs(case.A).max(axis=0)[columns], 1e-60)
        if case.lower is not None and case.upper is not None:
            coef = np.clip(coef, case.lower, case.upper)
        certified = certify(problem, coef=coef, **QUIET)
    else:
        certified = certify(problem, support=support, **QUIET)
    yield from judged(certified.result, oracle, truth)
    yield from not_below(certified.lower, truth, oracle, certified.result.valid_for, case.k)
    yield from _candidate(certified, support, oracle, truth)


def _candidate(certified: Any, support: tuple[int, ...], oracle: Oracle, truth: Truth) -> Iterator[Finding]:
    """The value of a candidate bounds its objective, and its claim is true."""
    if certified.model is None:
        value = oracle.values([support])[support][0]
        if Fraction(certified.value) < value:
            yield Finding("value below its model", beyond(value - Fraction(certified.value), value), shown(value))
    else:
        coef = [float(x) for x in certified.model.coef]
        yield from kept(certified.value, coef, oracle)
        value = oracle.objective(coef)[0]
    result = certified.result
    about = SimpleNamespace(claim=certified.claim, termination=SimpleNamespace(value="node_limit"),
    valid_for=result.valid_for,
                            settings=result.settings)  # fmt: skip
    yield from words(about, value, oracle, truth)


def through_heuristic(rng: Any, case: Case, problem: Any, oracle: Oracle, truth: Truth) -> Iterator[Finding]:
    """An approximate method, with the bound of the root or of a short search."""
    from exactsel import heuristics

    method = str(rng.choice(SELECTIONS if case.loss == "css" else METHODS))
    limit = None if rng.random() < 0.5 else 20.0
    yield from judged(heuristics.run(method, problem, threads=1, time_limit=limit, signals=()), oracle, truth)


def through_compare(rng: Any, case: Case, problem: Any, oracle: Oracle, truth: Truth) -> Iterator[Finding]:
    """Several methods beside the exact search."""
    from exactsel.studies.compare import compare

    methods = SELECTIONS[:2] if case.loss == "css" else METHODS[:3]
    compared = compare(problem, methods=methods, threads=1, signals=())
    yield from judged(compared.result, oracle, truth)
    for row in compared.rows:
        low = oracle.values([row.support])[row.support][0]
        if Fraction(row.value) < low:
            yield Finding("value below the truth", beyond(low - Fraction(row.value), low), f"{row.method}")


def through_estimator(rng: Any, case: Case, problem: Any, oracle: Oracle, truth: Truth) -> Iterator[Finding]:
    """The estimators of scikit-learn's kind."""
    from exactsel import sklearn

    if case.loss == "css" or case.force_in or case.force_out:
        return
    shared: dict[str, Any] = {
        "k": case.k, "lam": case.lam, "fit_intercept": case.intercept, "standardize": case.scale,
        "groups": case.labels, "solver_options": {"threads": 1, "signals": ()},
    }  # fmt: skip
    if case.loss == "logistic":
        if len(set(case.y.tolist())) < 2:
            return
        made: Any = sklearn.BestSubsetClassifier(**shared)
    else:
        made = sklearn.BestSubsetRegressor(loss=case.loss, delta=oracle.delta, **shared)
    made.fit(case.A, case.y, case.weights)
    coef = [float(x) for x in np.ravel(made.coef_)]
    yield from judged(made.result_, oracle, truth)
    yield from not_below(made.lower_bound_, truth, oracle, made.result_.valid_for, case.k)
    yield from kept(made.objective_, coef, oracle)
    yield from admissible(coef, made.result_.support, oracle, case.k)
