"""The best models over all sets of terms of several columns, against every set of terms."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from likelihoods_by_hand import deviance
from samples import many

from exactsel import Problem, best_model, boxed
from exactsel.errors import InputError, UnsupportedError
from exactsel.solving.likelihood import Likelihood
from exactsel.studies import best_terms
from exactsel.studies.size_report import SizeStatus

LEFT_ALONE = {"signals": (), "threads": 1}

CRITERIA = ("aic", "bic", "ebic", "aicc", "hqic", "cp", "adjr2")
LOSSES = ("quadratic", "huber", "logistic", "poisson", "squared_hinge")
SHAPES = ((2, 1, 1), (3, 2, 1), (2, 2, 1, 1), (1, 3, 1, 1), (2, 2), (4, 1), (1, 2, 1, 2))


def random_terms(seed, loss, lam):
    """A small instance of terms of one to four columns, some of them equal, some under a hierarchy."""
    rng = np.random.default_rng([17, seed])
    shape = SHAPES[seed % len(SHAPES)]
    d, n = sum(shape), int(rng.integers(sum(shape) + 6, 30))
    A = rng.normal(size=(n, d)) if seed % 3 else np.round(rng.normal(size=(n, d)))
    if seed % 4 == 1 and lam > 0:
        A[:, -1] = A[:, 0]
    z = A[:, :2] @ rng.normal(size=2) + rng.normal(size=n) * (0.3 + seed % 2)
    y = {"poisson": rng.poisson(np.exp(np.clip(z, -3, 2))).astype(float), "quadratic": z, "huber": z}.get(
        loss, np.where(z > np.median(z), 1.0, -1.0)
    )
    labels = [t for t, width in enumerate(shape) for _ in range(width)]
    options = {"delta": 1.3} if loss == "huber" else {}
    hierarchy = {len(shape) - 1: [0, 1][: 1 + seed % 2]} if seed % 5 == 2 and len(shape) > 2 else None
    kind = ("strong", "weak")[seed % 2]
    return Problem.prepared(
        A, y, len(shape), loss=loss, lam=lam, intercept=bool(seed % 2), groups=labels, hierarchy=hierarchy,
        hierarchy_kind=kind, **options,
    )  # fmt: skip


def criterion(name, problem, objective, df, terms):
    n, d = problem.n, problem.d
    fixed = int(problem.preparation is not None and problem.preparation.centred)
    if name == "cp":
        full = 2.0 * problem.fit(range(d)).value / (n - fixed - problem.units.columns)
        return 2.0 * objective / full - n + 2 * (df + fixed)
    if name == "adjr2":
        return objective / (n - df - fixed) / (problem.fit(()).value / (n - fixed)) - 1.0
    p = df + fixed + (problem.loss.name == "quadratic")
    by_hand = problem.loss.name in ("quadratic", "logistic", "huber")
    fit = deviance(problem, objective) if by_hand else Likelihood.of(problem).deviance(objective)
    sets = np.log(float(np.prod([(d - i) / (i + 1) for i in range(terms)])))
    price = {"aic": 2 * p, "aicc": 2 * p * n / (n - p - 1), "hqic": 2 * p * np.log(np.log(n))}
    return fit + price.get(name, p * np.log(n) + (2 * sets if name == "ebic" else 0.0))


def every(name, problem, k_max=None):
    """The criterion of every set of terms that the hierarchy allows."""
    values = {}
    for k in range((problem.d if k_max is None else k_max) + 1):
        for terms in combinations(range(problem.d), k):
            if problem.units.constraint is None or problem.units.completed(terms, max(k, 1)) == terms:
                df = sum(len(problem.groups[g]) for g in terms)
                values[terms] = criterion(name, problem, problem.fit(terms).value, df, k)
    return values


def hold(problem, name, **options):
    """Hold the best models and what is proven of them against every set of terms."""
    values = every(name, problem, options.get("k_max"))
    found = best_model(problem, criterion=name, **options, **LEFT_ALONE)
    ordered, tiny = sorted(values.values()), 1e-6 if name != "adjr2" else 1e-9
    assert found.reached
    assert found.complete
    assert found.lower <= ordered[0] + 1e-9
    assert found.value == pytest.approx(ordered[0], abs=tiny)
    listed = options.get("top", 1)
    if "within" in options:
        listed = max(listed, sum(value <= ordered[0] + options["within"] - tiny for value in ordered))
    assert len(found.models) >= min(listed, len(values))
    for model, value in zip(found.models, ordered, strict=False):
        assert model.criterion == pytest.approx(value, abs=tiny)
        assert values[model.support] == pytest.approx(model.criterion, abs=tiny)
        assert model.df == sum(len(problem.groups[g]) for g in model.support)
    for size in found.sizes:
        own = [v for s, v in values.items() if sum(len(problem.groups[g]) for g in s) == size.size]
        assert size.lower <= min(own, default=np.inf) + 1e-9
        assert size.status is not SizeStatus.OPEN
        assert size.status is SizeStatus.CANNOT_WIN or values[size.support] <= min(own) + 1e-4
        assert size.status is SizeStatus.PROVEN or size.size != found.best.df
    assert {*found.result.support} <= {*found.support}
    assert found.result.lower <= found.result.upper


def campaign(seeds):
    for seed in seeds:
        loss = LOSSES[seed % len(LOSSES)]
        lam = (0.0, 0.1, 0.01)[seed % 3] if loss == "quadratic" else 0.05
        likelihoods = CRITERIA if loss == "quadratic" and lam == 0.0 else CRITERIA[:5]
        name = likelihoods[(seed // 5) % len(likelihoods)]
        more = [{}, {"top": 3}, {"within": 6.0}, {"k_max": 2}][(seed // 3) % 4]
        hold(random_terms(seed, loss, lam), name, **more)


def test_small_problems_against_every_set_of_terms():
    campaign(range(many(16, 25)))


def test_bounds_by_columns_chosen_one_by_one(monkeypatch):
    monkeypatch.setattr(best_terms, "MANY_OPEN", 1)
    campaign(range(600, 600 + many(10, 15)))


@pytest.mark.slow
def test_hundreds_of_bounds_by_columns_chosen_one_by_one(monkeypatch):
    monkeypatch.setattr(best_terms, "MANY_OPEN", 1)
    campaign(range(615, 900))


def test_many_terms_of_two_columns():
    rng = np.random.default_rng(1)
    A = rng.normal(size=(150, 24))
    y = A[:, 0] + 0.6 * A[:, 9] + rng.normal(size=150)
    found = best_model(A, y, groups=[j // 2 if j < 20 else j for j in range(24)], **LEFT_ALONE)
    assert found.reached
    best = min(
        150 * (np.log(4 * np.pi * half_rss(A, y, columns) / 150) + 1) + (len(columns) + 2) * np.log(150)
        for k in range(4)
        for terms in combinations(range(14), k)
        for columns in [[j for t in terms for j in ((2 * t, 2 * t + 1) if t < 10 else (t + 10,))]]
    )
    assert found.value <= best + 1e-6
    assert len(found.support) > 3 or found.value == pytest.approx(best, abs=1e-6)


@pytest.mark.slow
def test_hundreds_of_problems_against_every_set_of_terms():
    campaign(range(25, 500))


def half_rss(A, y, columns):
    M = np.column_stack([np.ones(len(y)), A[:, columns]])
    return 0.5 * float(np.sum((y - M @ np.linalg.lstsq(M, y, rcond=None)[0]) ** 2))


@pytest.mark.parametrize("n", [12, 40])
def test_without_a_ridge_columns_may_depend_on_each_other(n):
    """More columns than rows, and one column the sum of two others."""
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, 14 if n == 12 else 6))
    A[:, 5] = A[:, 4] + A[:, 0]
    y = A[:, 0] + rng.normal(size=n)
    groups = [j // 2 for j in range(A.shape[1])]
    values = []
    for k in range(4):
        for terms in combinations(range(max(groups) + 1), k):
            columns = [j for j, g in enumerate(groups) if g in terms]
            value = half_rss(A, y, columns)
            values.append(n * (np.log(4 * np.pi * value / n) + 1) + (len(columns) + 2) * np.log(n))
    found = best_model(A, y, groups=groups, k_max=3, **LEFT_ALONE)
    assert found.value == pytest.approx(min(values), abs=1e-6)
    assert found.lower <= min(values) + 1e-9
    assert found.reached
    assert found.complete


def test_what_is_said_after_no_time_holds():
    rng = np.random.default_rng(2)
    A = rng.normal(size=(90, 24))
    y = A[:, 0] + rng.normal(size=90)
    for limit in (0.0, 0.2):
        found = best_model(A, y, groups=[j // 2 for j in range(24)], time_limit=limit, heuristics=(), signals=())
        assert found.lower <= found.value
        assert found.reached or found.termination == "time_limit"
    whole = best_model(A, y, groups=[j // 2 for j in range(24)], signals=())
    assert whole.lower >= found.lower - 1e-6
    assert whole.value <= found.value + 1e-9


def test_least_squares_criteria_of_columns():
    for seed in (0, 21, 42):
        problem = random_terms(seed, "quadratic", 0.0)
        alone = Problem.prepared(problem.A, problem.target, problem.units.columns, intercept=True)
        for name in ("cp", "adjr2"):
            found = best_model(alone, criterion=name, top=4, **LEFT_ALONE)
            sets = [s for k in range(alone.d + 1) for s in combinations(range(alone.d), k)]
            ordered = sorted(criterion(name, alone, alone.fit(s).value, len(s), len(s)) for s in sets)
            assert [model.criterion for model in found.models] == pytest.approx(ordered[:4], abs=1e-7)
            assert found.reached
            assert found.complete


def test_what_cp_and_adjusted_r2_do_not_serve():
    with pytest.raises(InputError, match=r"Cp is of least squares, but lam is 0\.1; give lam=0, or take bic"):
        best_model(random_terms(3, "quadratic", 0.1), criterion="cp")
    with pytest.raises(UnsupportedError, match="adjusted R² is of least squares, but the loss is huber"):
        best_model(random_terms(3, "huber", 0.1), criterion="adjr2")
    rng = np.random.default_rng(1)
    with pytest.raises(InputError, match='leave none over or depend on each other; take criterion="bic", or drop'):
        best_model(rng.normal(size=(6, 8)), rng.normal(size=6), criterion="cp")
    with pytest.raises(UnsupportedError, match="proof over all sizes is for features chosen one by one"):
        best_model(random_terms(0, "quadratic", 0.0), proof="folder")
    with pytest.raises(UnsupportedError, match="k_min over all sizes is for features chosen one by one"):
        best_model(random_terms(0, "quadratic", 0.0), k_min=1)


@pytest.mark.filterwarnings("ignore")
def test_lists_of_bounded_terms_miss_none_that_was_met_in_two_parts():
    """A model that another part met counts once: counted twice, it made the threshold of a list too low."""
    for seed in range(many(5, 8)):
        rng = np.random.default_rng([71, seed])
        A = rng.normal(size=(14, 5))
        y = A[:, 0] - 0.5 * A[:, 3] + rng.normal(size=14)
        free = Problem(A, y, 1, lam=0.01, groups={"a": [0, 2], "b": [1, 4], "c": [3]})
        problem = boxed(free, bounds=[(3, 0, None)]) if seed % 4 else boxed(free, max_coef=0.7)
        sets = [S for size in range(4) for S in combinations(range(3), size)]
        for top in (2, 3, 4, 6):
            found = best_model(problem, criterion="aic", k_max=3, top=top, **LEFT_ALONE)
            values = {S: found.criterion.value(problem.fit(S).value, sum(len(free.groups[g]) for g in S)) for S in sets}
            assert found.complete
            np.testing.assert_allclose(
                [model.criterion for model in found.models], sorted(values.values())[:top], rtol=0, atol=1e-6
            )
