"""Columns that are long beside the ridge (not quadratic loss): brute force, both checkers, and what limits them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from samples import many, sample
from scipy.optimize import minimize

from exactsel import Problem, solve, verify
from exactsel.problem.long_columns import with_long_columns_divided
from exactsel.problem.model import prepared_coef, searched_coef
from exactsel.proofs.instance import instance_of
from exactsel_certificates.container import read_proof
from exactsel_certificates.formula import Instance, objective
from exactsel_certificates.radii import LONG, radii
from exactsel_certificates.regions import FIRST_POINT, RegressionRegions
from exactsel_certificates.standalone.limits import sizes
from exactsel_certificates.standalone.losses import LOSSES as EXACT
from exactsel_certificates.standalone.regression import Regression
from exactsel_certificates.walk import Leaves

ROOT = Path(__file__).resolve().parents[2]
LOSSES = ("huber", "logistic", "poisson", "squared_hinge")


@pytest.fixture
def attacks(monkeypatch):
    """The modules; ``benchmarks`` is not an installed package."""
    monkeypatch.syspath_prepend(str(ROOT))
    modules = ("cases", "honest", "judging", "magnitude_cases", "oracle", "solves")
    return SimpleNamespace(**{name: import_module(f"benchmarks.attacks.{name}") for name in modules})


def long_case(attacks, seed):
    """A problem with a ridge, some columns of which are up to 10^15 times as long as others."""
    rng = np.random.default_rng([1410, seed])
    loss, d = LOSSES[seed % 4], int(rng.integers(2, 5))
    n = int(rng.integers(3, 14))
    case = attacks.cases.Case(*_data(attacks, rng, loss, n, d), k=int(rng.integers(1, d + 1)), loss=loss, lam=1.0)
    case = replace(
        case, lam=float(10.0 ** rng.uniform(-8, 2)), intercept=bool(rng.random() < 0.6),
        A=case.A * 10.0 ** rng.choice([0, 0, 3, 6, 9, 12, 15], d),
        delta=float(10.0 ** rng.uniform(-1, 1)) if loss == "huber" else None,
    )  # fmt: skip
    if rng.random() < 0.3:
        case = replace(case, weights=np.where(np.arange(n) < 2, 1.0, rng.integers(0, 4, n).astype(float)))
    if rng.random() < 0.3:
        case = replace(case, force_out=(0,), k=min(case.k, d - 1))
    elif rng.random() < 0.3:
        case = replace(case, force_in=(int(rng.integers(d)),))
    elif rng.random() < 0.3 and d > 2:
        labels = (0, 0, *range(1, d - 1))
        case = replace(case, labels=labels, k=min(case.k, d - 1))
    return case


def _data(attacks, rng, loss, n, d):
    A, _ = attacks.magnitude_cases._columns(rng, n, d, independent=False)
    return A, attacks.magnitude_cases._target(rng, A, loss)


def look_at(attacks, seed, tmp_path):
    """Whether columns were divided, and whether there is hardly a gap; what is said is true, by both checkers."""
    case = long_case(attacks, seed)
    problem = attacks.cases.quiet_problem(case)
    oracle = attacks.oracle.Oracle(case, attacks.solves.delta_of(problem))
    file = tmp_path / "run.exsel"
    result, truth = solve(problem, proof=file, threads=1), oracle.truth()
    assert [*attacks.judging.judged(result, oracle, truth)] == [], seed
    verdict = verify(problem, file)
    assert verdict.verified, (seed, verdict.reason)
    assert Fraction(verdict.lower) <= truth.high, seed
    said = attacks.honest.second_opinion(case, attacks.solves.delta_of(problem), file.read_bytes())
    # What a nearly exact fit costs the second checker knows to a few digits only.
    assert said in ("", None) or result.upper < 1e-12 * problem.null_objective, (seed, said)
    divided = problem.objective.ridge_limits is not None
    if divided:
        assert problem.objective.asked_lam == problem.lam == case.lam
    # Long columns that depend on each other, or separate the classes, are limited by the ridge alone.
    return divided, result.claim.reached or result.absolute_gap <= 1e-6 * problem.null_objective


@pytest.mark.parametrize("part", sample(3, 400, smoke=1))
def test_searches_and_proofs_agree_with_brute_force(attacks, part, tmp_path):
    divided, closed = zip(*(look_at(attacks, seed, tmp_path) for seed in range(8 * part, 8 * part + 8)), strict=True)
    assert sum(divided) >= 1
    assert sum(closed) >= 4


@pytest.mark.parametrize("seed", sample(12, 12))
def test_no_model_that_counts_has_larger_coefficients(attacks, seed):
    case = long_case(attacks, seed)
    A, y, delta = case.A, case.y, 1.0 if case.delta is None else case.delta
    instance = Instance(A, y, A.shape[1], case.loss, case.lam, delta, intercept=case.intercept)
    found = radii(instance, np.zeros(A.shape[1]))
    units = np.maximum(np.linalg.norm(A, axis=0), 1e-9)
    slow = Regression(A.tolist(), y.tolist(), A.shape[1], EXACT[case.loss](delta), case.lam, level=case.intercept)
    limits = found.size, np.array([float(size) for size in sizes(slow, {})])
    for size in limits:
        for j in np.flatnonzero(size)[:: many(3, 1)]:
            for sign in (1.0, -1.0):
                # Nothing at the limit costs less than the level.
                def cost(rest, j=j, at=sign * size[j]):
                    return min(objective(instance, np.insert(rest, j, at * units[j]) / units), 1e100)

                start = np.zeros(A.shape[1] - 1)
                best = minimize(cost, start, method="Nelder-Mead").fun if start.size else cost(start)
                assert best >= found.level / 1.1 * (1.0 - 1e-9)


def test_long_columns_are_limited_by_more_than_the_ridge():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 4)) * [1.0, 1e12, 1.0, 1e6]
    y = np.where(A[:, 0] + rng.standard_normal(30) > 0, 1.0, -1.0)
    found = radii(Instance(A, y, 4, "logistic", 1.0, 1.0), np.zeros(4))
    ridge, long = np.sqrt(2 * found.level), np.linalg.norm(A, axis=0) ** 2 >= LONG
    assert np.all(found.size[~long] >= ridge)
    assert np.all(found.size[long] * np.linalg.norm(A, axis=0)[long] < 1e3)


@pytest.mark.parametrize(("loss", "ratio"), [*zip(LOSSES, [2.0**-5, 2.0**-30, 2.0**-12, 1.0], strict=True)])
def test_one_of_two_long_columns_that_say_the_same_is_proven(attacks, loss, ratio, tmp_path):
    rng = np.random.default_rng(3)
    column = np.round(1e12 * rng.standard_normal(16) / 2**30) * 2**30
    A = np.column_stack([column, ratio * column, rng.standard_normal(16)])
    y = np.where(column + 1e12 * rng.standard_normal(16) < 0, 0.0 if loss == "poisson" else -1.0, 1.0)
    case = attacks.cases.Case(A, y, 1, loss, 1e-3, 1.0 if loss == "huber" else None, intercept=True)
    problem, file = attacks.cases.quiet_problem(case), tmp_path / "run.exsel"
    result = solve(problem, proof=file, threads=1)
    assert result.claim.reached
    assert verify(problem, file).verified
    assert attacks.honest.second_opinion(case, case.delta, file.read_bytes()) == ""


@pytest.mark.parametrize("size", [1e100, 1e200, 1e300, -1e300])
def test_limits_around_a_point_beyond_doubles_are_those_of_the_ridge(size):
    A, y = [[1e6, 1.0], [1e6, -2.0], [-2e6, 0.5], [3e6, 0.1]], [1.0, -1.0, 1.0, -1.0]
    found = sizes(Regression(A, y, 2, EXACT["squared_hinge"](1.0), 1e-3), {0: Fraction(size)})
    assert all(bool(v * v >= 2 * 4 / Fraction(1e-3)) for v in found)


def test_even_columns_are_left_alone():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((50, 5))
    y = np.where(A[:, 0] + rng.standard_normal(50) > 0, 1.0, -1.0)
    for lam in (1e-3, 1.0):
        problem = Problem.prepared(A, y, 2, loss="logistic", lam=lam, intercept=True)
        assert problem.objective.ridge_limits is None
        assert problem.objective.divisors is None


def test_what_is_known_goes_with_k_and_another_ridge():
    rng = np.random.default_rng(2)
    A = rng.standard_normal((40, 5)) * [1.0, 1e12, 1.0, 1e9, 1.0]
    y = np.where(A[:, 0] + rng.standard_normal(40) > 0, 1.0, -1.0)
    problem = Problem(A, y, 3, loss="logistic", lam=1.0)
    assert problem.objective.ridge_limits is not None
    assert with_long_columns_divided(problem.objective, problem.units, 2) is problem.objective
    assert problem.replace(k=2).objective is problem.objective
    assert problem.replace(k=4).objective.ridge_limits.most == 4
    assert problem.replace(lam=2.0).lam == problem.replace(lam=2.0).objective.asked_lam == 2.0
    assert problem.replace(loss="quadratic", lam=0.0).lam == 0.0
    assert np.array_equal(problem.A, A)
    assert problem.hash == Problem(A, y, 3, loss="logistic", lam=1.0).hash
    coef = np.array([0.5, 1e-12, 0.0, 0.0, 1.0])
    assert np.array_equal(prepared_coef(problem, searched_coef(problem, coef)), coef)


@pytest.mark.parametrize("seed", sample(12, 12))
def test_signs_and_limits_go_with_limits_from_dual_vectors(attacks, seed, tmp_path):
    rng = np.random.default_rng([1411, seed])
    case = replace(long_case(attacks, seed), force_out=(), force_in=(), labels=None)
    sizes = np.maximum(np.abs(case.A).max(axis=0), 1.0)
    lower, upper = -rng.choice([0.0, 0.3, np.inf], case.d) / sizes, rng.choice([0.5, np.inf], case.d) / sizes
    lower[0] = 0.0
    case = replace(case, lower=tuple(lower.tolist()), upper=tuple(upper.tolist()))
    problem, file = attacks.cases.quiet_problem(case), tmp_path / "run.exsel"
    result, oracle = solve(problem, proof=file), attacks.oracle.Oracle(case, attacks.solves.delta_of(problem))
    truth = oracle.truth()
    assert [*attacks.judging.judged(result, oracle, truth)] == []
    verdict = verify(problem, file)
    assert verdict.verified, verdict.reason
    assert Fraction(verdict.lower) <= truth.high
    said = attacks.honest.second_opinion(case, attacks.solves.delta_of(problem), file.read_bytes())
    assert said in ("", None) or result.upper < 1e-12 * problem.null_objective, said
    assert problem.replace(k=1).k == 1
    assert problem.replace(lam=3.0).lam == 3.0


def test_no_bound_is_above_the_level_its_limits_are_about(attacks, tmp_path):
    """Limits say nothing of models that cost more than the level, and neither may bounds that rest on them."""
    rng = np.random.default_rng(5)
    A = rng.standard_normal((12, 3)) * [1.0, 1e9, 1e9]
    y = np.where(rng.standard_normal(12) > 0, 1.0, -1.0)
    problem, file = Problem(A, y, 1, loss="logistic", lam=1.0), tmp_path / "run.exsel"
    assert problem.objective.ridge_limits is not None
    solve(problem, proof=file)
    regions = RegressionRegions(instance_of(problem).plain, read_proof(file), 0.0)
    assert regions.most == problem.objective.ridge_limits.limits.level
    states = np.zeros((1, 3), dtype=np.uint8)
    leaves = Leaves(states, np.full(1, FIRST_POINT, dtype=np.int64))
    bound = float(regions.bounds(leaves)[0])
    assert 0.0 < bound < regions.most
    regions.most = 0.5 * bound
    assert regions.bounds(leaves)[0] == 0.5 * bound
