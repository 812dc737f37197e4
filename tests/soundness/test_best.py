"""The best models over all sizes, against every set of columns."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from instances_for_tests import random_case
from likelihoods_by_hand import deviance
from samples import many

from exactsel import ColumnSubsetProblem, Problem, best_model, boxed, verify
from exactsel.errors import InputError, UnsupportedError
from exactsel.studies import best_enumeration, best_list
from exactsel.studies.best_known import KnownModels
from exactsel.studies.size_criterion import SizeCriterion
from exactsel.studies.size_report import SizeStatus

CRITERIA = ("aic", "aicc", "bic", "ebic", "hqic", "custom")
LOSSES = (("quadratic", 0.0), ("quadratic", 0.1), ("huber", 0.01), ("logistic", 0.01))
"""And their ridges."""

LEFT_ALONE = {"signals": (), "threads": 1}


def awkward(seed, loss, lam, n=14, d=5, **demands):
    """A small instance, with columns that are equal, opposite or constant in some of them."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, d))
    if seed % 3 == 0:
        A[:, -1] = A[:, 0]
    if seed % 4 == 1:
        A = np.sign(A)
    if seed % 5 == 2:
        A[:, 1] = 1.0
    y = A[:, :2] @ rng.normal(size=2) + rng.normal(size=n) * (0.2 + seed % 3)
    if loss == "logistic":
        y = np.where(y > 0, 1.0, -1.0)
        y[:2] = (-1.0, 1.0)
    options = {"delta": 1.3} if loss == "huber" else {}
    return Problem.prepared(A, y, d, loss=loss, lam=lam, intercept=bool(seed % 2), **options, **demands)


def criterion(name, problem, objective, size):
    n, d = problem.n, problem.d
    p = (
        size
        + bool(problem.preparation is not None and problem.preparation.centred)
        + (problem.loss.name == "quadratic")
    )
    fit = deviance(problem, objective)
    return {
        "aic": lambda: fit + 2 * p, "aicc": lambda: fit + 2 * p * n / (n - p - 1), "bic": lambda: fit + p * math.log(n),
        "ebic": lambda: fit + p * math.log(n) + 2 * math.log(math.comb(d, size)),
        "hqic": lambda: fit + 2 * p * math.log(math.log(n)), "custom": lambda: fit + 1.5 * p,
    }[name]()  # fmt: skip


def every(name, problem, k_max=None):
    """The criterion of every set of columns."""
    sets = [s for k in range((problem.d if k_max is None else k_max) + 1) for s in combinations(range(problem.d), k)]
    return {s: criterion(name, problem, problem.fit(s).value, len(s)) for s in sets}


def check(problem, name, top, values, **options):
    """Hold what is said against all sets."""
    own = {"penalty": 1.5} if name == "custom" else {}
    found = best_model(problem, criterion=name, top=top, **own, **LEFT_ALONE, **options)
    ordered, tiny = sorted(values.values()), 1e-6
    assert found.reached
    assert found.complete
    assert found.lower <= ordered[0] + 1e-9
    assert found.value == pytest.approx(ordered[0], abs=tiny)
    assert found.absolute_gap <= tiny
    for size in found.sizes:
        least = min(value for s, value in values.items() if len(s) == size.size)
        assert size.lower <= least + 1e-9
        assert size.status is not SizeStatus.OPEN
        assert size.status is SizeStatus.CANNOT_WIN or values[size.support] <= least + 1e-4
        assert size.status is SizeStatus.PROVEN or size.size != found.k
    assert len(found.models) == min(top, len(values))
    for model, value in zip(found.models, ordered, strict=False):
        assert model.criterion == pytest.approx(value, abs=tiny)
        assert values[model.support] == pytest.approx(model.criterion, abs=tiny)
    assert len({model.support for model in found.models}) == len(found.models)
    assert sum(found.weights) == pytest.approx(1.0)
    return found


@pytest.mark.parametrize("name", CRITERIA)
@pytest.mark.parametrize(("loss", "lam"), LOSSES)
def test_the_best_models_are_those_of_trying_every_set(loss, lam, name):
    place, cells = CRITERIA.index(name) + len(CRITERIA) * LOSSES.index((loss, lam)), len(CRITERIA) * len(LOSSES)
    for turn in range(many(1, 3)):
        problem = awkward(place + cells * turn, loss, lam)
        check(problem, name, (1, 4, 40)[(place + turn) % 3], every(name, problem))


@pytest.mark.smoke
def test_one_criterion_against_every_set():
    problem = awkward(1, "quadratic", 0.0)
    found = check(problem, "bic", 5, every("bic", problem))
    assert found.result.reached
    assert found.result._shown == found.support


@pytest.mark.parametrize("demands", [{}, {"force_in": [4]}, {"hierarchy": {1: [2], 3: [4]}}])
def test_the_best_models_of_one_size(demands):
    problem = awkward(4, "quadratic", 0.1, **demands)
    listed = best_model(problem, criterion="bic", k_min=2, k_max=2, top=4, **LEFT_ALONE)
    values = {
        s: problem.fit(s).value
        for s in combinations(range(problem.d), 2)
        if {*problem.units.force_in} <= {*s} and problem.units.completed(s, 2) == s
    }
    assert listed.complete
    assert [model.support for model in listed.models] == sorted(values, key=values.get)[:4]
    assert "no model with 2 features" in listed.claim_text
    assert listed.lower <= listed.value
    least = min(
        problem.fit(s).value
        for k in range(3)
        for s in combinations(range(problem.d), k)
        if {*problem.units.force_in} <= {*s} and problem.units.completed(s, 2) == s
    )
    assert listed.result.lower <= least + 1e-9
    with pytest.raises(InputError, match="the smallest size is 3, but the largest is 2; give a smaller k_min"):
        best_model(problem, k_min=3, k_max=2, **LEFT_ALONE)


@pytest.mark.parametrize("demands", [{}, {"force_in": [4]}, {"hierarchy": {1: [2], 3: [4]}}, {"sum_to": 1.0}])
@pytest.mark.parametrize("k_min", [None, 2, 4])
def test_there_is_a_model_of_the_sizes_though_no_time_is_left(demands, k_min):
    total = {key: demands[key] for key in demands if key == "sum_to"}
    problem = awkward(4, "quadratic", 0.1, **{key: demands[key] for key in demands if key not in total})
    problem = boxed(problem, **total) if total else problem
    best = best_model(problem, k_min=k_min, time_limit=0.0, **LEFT_ALONE)
    assert best.k >= (k_min or 0)
    assert not best.reached
    assert best.value == pytest.approx(best.criterion.value(problem.fit(best.support).value, best.k))


def test_the_price_of_a_smallest_size_that_is_not_empty():
    rng = np.random.default_rng(0)
    y, noise = rng.normal(size=(2, 12))
    A = np.column_stack([y + 10.0 * noise, noise, rng.normal(size=12)])  # the first two fit y only together
    problem = Problem(A, y, 3)
    penalty = 0.6 * problem.null_objective
    best = best_model(problem, criterion="l0", penalty=penalty, k_min=1, **LEFT_ALONE)
    least = min(problem.fit(s).value + penalty * k for k in (1, 2, 3) for s in combinations(range(3), k))
    assert best.support == (0, 1)
    assert best.lower <= least + 1e-9


def test_the_kernel_that_takes_sizes_apart_lists_the_same(monkeypatch):
    monkeypatch.setattr(best_enumeration, "FEW_SETS", 0)
    for seed, (loss, lam) in enumerate(LOSSES):
        problem = awkward(seed + 5, loss, lam, d=6)
        check(problem, "aic", (3, 20, 64)[seed % 3], every("aic", problem))


def test_searches_of_parts_list_the_same(monkeypatch):
    monkeypatch.setattr(best_list, "MANY_SETS", 0)
    monkeypatch.setattr(best_enumeration, "LARGEST", 0)
    for seed, (loss, lam) in enumerate(LOSSES):
        problem = awkward(seed + 9, loss, lam)
        check(problem, "bic", (3, 12, 5, 5)[seed], every("bic", problem))


def test_a_price_that_falls_with_the_size_is_served():
    problem = awkward(1179, "quadratic", 0.0, n=13, d=4)  # its last column is its first: the largest set is cheapest
    found = check(problem, "ebic", 1, every("ebic", problem))
    assert found.k == 4


def test_columns_that_must_or_must_not_be_in():
    problem = awkward(7, "quadratic", 0.0).replace(force_in=[3], force_out=[0])
    values = {s: v for s, v in every("bic", problem).items() if 3 in s and 0 not in s}
    found = check(problem, "bic", 6, values)
    assert found.sizes[0].size == 1
    assert found.sizes[-1].size == 4


def test_a_hierarchy_is_kept():
    plain = awkward(4, "quadratic", 0.1)
    problem = Problem(plain.A, plain.y, 5, lam=0.1, hierarchy={4: [0, 1]})
    values = {s: v for s, v in every("aic", problem).items() if 4 not in s or {0, 1} <= {*s}}
    check(problem, "aic", 30, values)


@pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic"])
def test_no_set_that_breaks_a_demand_is_listed(loss, monkeypatch):
    """Not by listing all sizes together, nor where a parent's coefficient is 0, so that its child is shown alone."""
    monkeypatch.setattr(best_enumeration, "FEW_SETS", 0)
    for seed in range(many(3, 8)):
        for child, parent in ((4, 1), (2, 0)):
            problem = awkward(2 + 5 * seed, loss, 0.1, hierarchy={child: [parent]})  # its column 1 is constant
            values = {s: v for s, v in every("aic", problem).items() if child not in s or parent in s}
            check(problem, "aic", (5, 40)[seed % 2], values)


def test_rows_count_as_often_as_their_weights_say():
    rng = np.random.default_rng(3)
    A, weights = rng.normal(size=(9, 4)), np.array([1, 2, 3, 1, 1, 2, 1, 1, 4.0])
    y = A[:, 0] + rng.normal(size=9)
    twice = np.repeat(np.arange(9), weights.astype(int))
    for name in ("aicc", "bic"):
        weighted = best_model(A, y, criterion=name, weights=weights, intercept=True, **LEFT_ALONE)
        repeated = best_model(A[twice], y[twice], criterion=name, intercept=True, k_max=4, **LEFT_ALONE)
        assert weighted.support == repeated.support
        assert weighted.value == pytest.approx(repeated.value, abs=1e-6)


def test_more_columns_than_rows():
    problem = awkward(8, "quadratic", 0.0, n=6, d=8)
    found = check(problem, "bic", 3, every("bic", problem, k_max=3), k_max=3)
    assert found.sizes[-1].size == 3
    assert best_model(problem, criterion="bic", k_max=2, **LEFT_ALONE).sizes[-1].size == 2
    ridged = awkward(8, "quadratic", 0.1, n=6, d=8)
    check(ridged, "aic", 3, every("aic", ridged))


def test_everything_within_some_distance():
    problem = awkward(10, "quadratic", 0.0)
    values = every("aic", problem)
    best = min(values.values())
    found = best_model(problem, criterion="aic", within=2.0, **LEFT_ALONE)
    assert found.complete
    assert {m.support for m in found.models} == {s for s, value in values.items() if value <= best + 2.0}
    included = found.inclusion(2.0)
    assert included.complete
    assert not found.inclusion(10.0).complete or len(found.models) == sum(v <= best + 10 for v in values.values())
    assert included.counts == {j: sum(j in m.support for m in found.models) for j in included.counts}
    assert found.weights[0] == pytest.approx(
        1.0 / sum(math.exp(-0.5 * (m.criterion - found.value)) for m in found.models)
    )


@pytest.mark.parametrize("limit", [{"time_limit": 0.0}, {"node_limit": 0}])
def test_a_search_without_time_claims_no_more_than_it_knows(limit):
    problem = awkward(12, "logistic", 0.01, n=40, d=8)
    values = every("bic", problem)
    found = best_model(problem, criterion="bic", top=3, signals=(), threads=1, **limit)
    assert found.lower <= min(values.values()) + 1e-9
    assert found.value >= min(values.values()) - 1e-9
    if not found.reached:
        assert found.termination in ("time_limit", "node_limit")


def test_every_size_has_its_proof(tmp_path):
    problem = awkward(2, "quadratic", 0.1)
    found = best_model(problem, criterion="bic", proof=tmp_path, **LEFT_ALONE)
    assert found.reached
    for size in found.sizes:
        checked = verify(problem.replace(k=size.closed_by), size.proof)
        assert checked.verified
        assert size.lower <= found.criterion.value(checked.lower, size.size) + 1e-9


def test_a_function_of_the_size_is_a_price():
    problem = awkward(13, "quadratic", 0.1)
    found = best_model(problem, criterion="custom", penalty=lambda size: 0.0 if size == 2 else 50.0, **LEFT_ALONE)
    assert found.k == 2
    assert found.reached


@pytest.mark.long
def test_thousands_of_awkward_problems(monkeypatch):
    """No bound is above what trying every set gives, and lists that say they are complete are."""
    for seed in range(3000):
        monkeypatch.setattr(best_enumeration, "FEW_SETS", 0 if seed % 2 else 3000)
        rng = np.random.default_rng(seed)
        loss = str(rng.choice(["quadratic", "quadratic", "huber", "logistic"]))
        lam = float(rng.choice([0.0, 0.1])) if loss == "quadratic" else float(rng.choice([0.01, 0.3]))
        case = random_case(seed, loss=loss, lam=lam, d=int(rng.integers(2, 7)))
        intercept = bool(rng.integers(2)) and not (loss == "logistic" and len({*case.y}) < 2)
        problem = Problem.prepared(
            case.A, case.y, case.A.shape[1], loss=loss, lam=lam, delta=case.delta, intercept=intercept
        )
        name, top = CRITERIA[seed % len(CRITERIA)], int(rng.choice([1, 3, 10, 100]))
        own = {"penalty": 1.5} if name == "custom" else {}
        try:
            found = best_model(problem, criterion=name, top=top, **own, **LEFT_ALONE)
        except InputError:
            continue  # too few rows, or an exact fit
        ordered = sorted(every(name, problem, found.sizes[-1].size).values())
        room = 1e-7 * (1.0 + abs(ordered[0]) + problem.n)
        assert found.lower <= ordered[0] + 0.01 * room
        if found.reached and not found.valid_for:
            assert found.value == pytest.approx(ordered[0], abs=room)
        if found.reached and found.complete:
            assert [m.criterion for m in found.models] == pytest.approx(ordered[:top], abs=1e-6 + room)


def refused(problem, **options):
    with pytest.raises(InputError) as caught:
        best_model(problem, **LEFT_ALONE, **options)
    return str(caught.value)


@pytest.mark.smoke
def test_what_cannot_be_served_is_refused_in_one_sentence():
    problem = awkward(1, "quadratic", 0.0)
    assert "did you mean 'bic'" in refused(problem, criterion="bicc")
    assert "penalty" in refused(problem, criterion="custom")
    assert "penalty" in refused(problem, criterion="aic", penalty=2.0)
    assert "AICc is defined up to 10 features" in refused(
        awkward(1, "quadratic", 0.1, d=13), criterion="aicc", k_max=11
    )
    assert "fit every row exactly" in refused(awkward(1, "quadratic", 0.0, n=6, d=8), k_max=7)
    assert "top is 0" in refused(problem, top=0)
    assert "k_max is -1" in refused(problem, k_max=-1)
    assert "within is -1" in refused(problem, within=-1.0)
    assert "no option of a search" in refused(problem, start=[0])
    exact = Problem(np.eye(6)[:, :4], np.eye(6)[:, 1], 3)
    assert "a model of 1 feature fits the target exactly" in refused(exact)
    with pytest.raises(UnsupportedError):
        best_model(ColumnSubsetProblem(problem.A, 2))


def test_what_is_proven_over_sizes_is_said_of_the_result_under_a_constraint(monkeypatch):
    monkeypatch.setattr(best_enumeration, "FEW_SETS", 0)
    rng = np.random.default_rng(8)
    A = rng.standard_normal((60, 6))
    y = A[:, 0] + 0.7 * A[:, 2] + 0.5 * rng.standard_normal(60)
    for demands in ({"groups": [0, 0, 1, 1, 2, 2], "per_group": 1}, {"hierarchy": {4: [0], 5: [0, 1]}}):
        problem = Problem(A, y, k=1, lam=0.1, **demands)
        found = best_model(problem, criterion="ebic", gamma=3.0)
        assert found.complete
        assert found.reached
        assert found.result.reached
        assert found.result.termination.value != "node_limit"
        assert max(report.size for report in found.sizes) == (3 if "groups" in demands else 6)


def test_bounds_over_sizes_allow_for_the_rounding_of_models_of_all_sizes():
    rng = np.random.default_rng(9)
    A = rng.standard_normal((40, 8)) + 1e6
    y = A @ rng.standard_normal(8) + 0.1 * rng.standard_normal(40)
    found = [best_model(Problem.prepared(A, y, k, intercept=True, lam=1e-3)) for k in (1, 8)]
    assert found[0].lower == found[1].lower
    assert found[0].result.lower == found[1].result.lower


@pytest.mark.parametrize("seed", [0, 3, 5])
def test_a_model_of_fewer_columns_does_not_stand_for_a_set(seed, tmp_path):
    """Searches that end with fewer columns than they may have say little of what the best model on more costs."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(80, 14)) + 0.5 * rng.normal(size=(80, 1))
    y = A[:, :6] @ np.array([0.5, 0.45, 0.4, 0.35, 0.3, 0.3]) + rng.normal(size=80)
    problem = Problem.prepared(A, y, 1, loss="huber", lam=0.1)
    found = best_model(problem, criterion="aic", top=30, heuristics=(), proof=tmp_path, **LEFT_ALONE)
    assert found.complete
    for model in found.models:
        assert model.objective == pytest.approx(problem.fit(model.support).value, rel=1e-9)


def test_no_more_is_looked_at_once_the_time_is_over(monkeypatch):
    """But for the best model, which is shown."""
    over, asked = [False], []
    fit = Problem.fit
    monkeypatch.setattr(Problem, "fit", lambda self, columns: asked.append(over[0]) or fit(self, columns))
    known = KnownModels(
        awkward(1, "huber", 0.1), SizeCriterion.of(awkward(1, "huber", 0.1), "bic"), [1, 2], lambda: over[0]
    )
    for number in range(5):
        known.guess((number,), float(number))
    known.firm(2)
    assert len(asked) >= 2
    over[0], before = True, len(asked)
    known.firm(5)
    assert len(asked) == before
    known.firm(5, to_the_end=True)
    assert len(known.models) == 5
