"""Tables as people have them, whose columns are of very different size: a time in nanoseconds, people, money, 0 and 1.

Right values are exact fits of all supports in fractions. Columns multiplied by powers of ten state the same problem at
lam = 0, so answers must be as good as those for columns of one size.
"""

from __future__ import annotations

import json
import os
from fractions import Fraction
from importlib import import_module
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from exactsel import Problem, best_model, certify, heuristics, solve, solve_path
from exactsel.cli.main import cli
from exactsel.errors import UnsupportedError
from exactsel.sklearn import BestSubsetRegressor
from exactsel.solving.outcome import Claim

ROOT = Path(__file__).resolve().parents[2]

TS = ("ts", "promo", "price", "temp", "noise")
GAP = ("year", "pop", "gdpPercap", "gdp", "europe", "africa")

BY_OBJECTIVE = ("forward", "swap", "exchange", "foba", "greedy-rls", "poss", "pposs", "newton-swap")
"""Methods that choose by what columns do to the objective: what a column is measured in is nothing to them."""

BY_SIZE = ("rfe", "omp", "iht", "htp", "lasso")
"""Methods that choose by the sizes of gradients or coefficients, too."""


@pytest.fixture
def attacks(monkeypatch):
    """Oracles of the campaigns; ``benchmarks`` is not an installed package."""
    monkeypatch.syspath_prepend(str(ROOT))
    return SimpleNamespace(**{name: import_module(f"benchmarks.attacks.{name}") for name in ("cases", "oracle")})


def sales():
    """A time in nanoseconds beside a column of 0 and 1, as of a shop that prices and promotes."""
    rng = np.random.default_rng(7)
    n = 60
    time = 1_672_531_200_000_000_000 + 518_400_000_000_000 * np.arange(n)
    promo, price = (rng.random(n) < 0.3).astype(float), rng.uniform(9.0, 12.0, n)
    temp, noise = rng.normal(15.0, 4.0, n), rng.standard_normal(n)
    y = 40.0 + 6.0 * promo - 2.0 * price + 0.3 * temp + 1e-17 * (time - time[0]) + 2.0 * rng.standard_normal(n)
    return np.column_stack([time.astype(float), promo, price, temp, noise]), y


def countries():
    """People and money beside two columns of 0 and 1."""
    rng = np.random.default_rng(8)
    n = 90
    year, pop = 1952.0 + 5.0 * (np.arange(n) % 12), np.round(np.exp(rng.normal(16.0, 1.5, n)))
    money = np.round(np.exp(rng.normal(8.5, 1.0, n)), 4)
    part = np.arange(n) % 3
    europe, africa = (part == 0).astype(float), (part == 1).astype(float)
    y = 60.0 + 0.2 * (year - 1980.0) + 1e-4 * money - 12.0 * africa + 6.0 * europe + 3.0 * rng.standard_normal(n)
    return np.column_stack([year, pop, money, money * pop, europe, africa]), y


TABLES = {"sales": (sales, TS), "countries": (countries, GAP)}


def fits(attacks, A, y, k):
    """Half the residual sum of squares of every set of k columns beside an intercept, exactly."""
    oracle = attacks.oracle.Oracle(attacks.cases.Case(A, y, k, "quadratic", intercept=True))
    return {support: low for support, (low, _) in oracle.values([*combinations(range(A.shape[1]), k)]).items()}


def agrees(value, exact):
    """Whether a number that is shown is the exact one, to what rounding may do."""
    return exact * (1 - Fraction(1, 10**12)) <= Fraction(value) <= exact * (1 + Fraction(1, 10**8))


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("table", TABLES)
def test_the_best_model_is_found_and_proven(attacks, table, k):
    A, y = TABLES[table][0]()
    exact = fits(attacks, A, y, k)
    result = solve(Problem.prepared(A, y, k, intercept=True))
    best = min(exact, key=exact.get)
    assert result.support == best
    assert agrees(result.upper, exact[best])
    assert 0 < Fraction(result.lower) <= exact[best]
    assert result.claim is Claim.OPTIMAL


@pytest.mark.parametrize("table", TABLES)
def test_the_best_model_of_all_sizes_is_found_and_proven(attacks, table):
    A, y = TABLES[table][0]()
    found = best_model(Problem.prepared(A, y, 4, intercept=True), k_max=4)
    exact = {s: v for k in range(5) for s, v in fits(attacks, A, y, k).items()}
    best = min(exact, key=lambda s: found.criterion.value(float(exact[s]), len(s)))
    assert found.reached
    assert found.support == best
    assert found.value == pytest.approx(found.criterion.value(float(exact[best]), len(best)), rel=1e-9)


@pytest.mark.parametrize("table", TABLES)
def test_best_coefficients_are_the_best(attacks, table):
    A, y = TABLES[table][0]()
    for k in (1, 2, 3):
        exact = fits(attacks, A, y, k)
        problem = Problem.prepared(A, y, k, intercept=True)
        for support in exact:
            found = certify(problem, support=support)
            assert agrees(found.value, exact[support]), support
            fitted = A @ found.model.coef + found.model.intercept
            assert float(np.sum((y - fitted) ** 2)) / 2 == pytest.approx(float(exact[support]), rel=1e-6), support
            assert found.lower > 0


@pytest.mark.parametrize("table", TABLES)
def test_a_path_has_the_best_model_of_every_size(attacks, table):
    A, y = TABLES[table][0]()
    for result in solve_path(Problem.prepared(A, y, 4, intercept=True), ks=range(1, 5)).results:
        exact = fits(attacks, A, y, result.problem["k"])
        assert result.support == min(exact, key=exact.get)


@pytest.mark.parametrize("table", TABLES)
def test_criteria_and_cross_validation_are_not_smallest_at_no_column(table, tmp_path):
    made, names = TABLES[table]
    A, y = made()
    file = tmp_path / "table.csv"
    rows = [",".join(map(repr, map(float, (*row, value)))) for row, value in zip(A, y, strict=True)]
    file.write_text("\n".join([",".join((*names, "y")), *rows]) + "\n", encoding="utf-8")
    command = ["path", str(file), "--target", "y", "--k-max", "4", "--intercept", "--cv", "5", "--json"]
    said = CliRunner().invoke(cli, command)
    assert said.exit_code == 0, said.output
    answer = json.loads(said.stdout)
    assert {name: chosen["k"] > 0 for name, chosen in answer["best"].items()} == dict.fromkeys(answer["best"], True)
    scaled = json.loads(CliRunner().invoke(cli, [*command, "--scale"]).stdout)
    for row, same in zip(answer["results"], scaled["results"], strict=True):
        assert row["support"] == same["support"]
        for name in ("aic", "bic", "ebic", "cv_error"):
            assert row[name] == pytest.approx(same[name], rel=1e-7), name


@pytest.mark.parametrize("table", TABLES)
def test_the_estimator_fits_its_columns(attacks, table):
    A, y = TABLES[table][0]()
    for k in (1, 2, 3):
        exact = fits(attacks, A, y, k)
        made = BestSubsetRegressor(k=k, lam=0.0).fit(A, y)
        assert tuple(np.flatnonzero(made.coef_)) == min(exact, key=exact.get)
        left = float(np.sum((y - made.predict(A)) ** 2)) / 2
        assert left == pytest.approx(float(min(exact.values())), rel=1e-6)


@pytest.mark.parametrize("method", [*BY_OBJECTIVE, *BY_SIZE])
@pytest.mark.parametrize("table", TABLES)
def test_a_method_chooses_columns_and_fits_them(attacks, table, method):
    A, y = TABLES[table][0]()
    found = heuristics.run(method, Problem.prepared(A, y, 2, intercept=True), threads=1, seed=3)
    exact = fits(attacks, A, y, len(found.support))
    assert found.support
    assert agrees(found.upper, exact[found.support])
    if method in BY_OBJECTIVE:
        even = (A - A.mean(axis=0)) / 2.0 ** np.round(np.log2(A.std(axis=0)))
        same = heuristics.run(method, Problem.prepared(even, y, 2, intercept=True), threads=1, seed=3)
        assert found.upper <= same.upper * (1 + 1e-8)


# Columns of one kind, multiplied


def two_columns(ratio, seed):
    """Two columns, one multiplied, and what both explain."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((40, 2))
    return A * [1.0, ratio], A @ [1.0, 2.0] + rng.standard_normal(40)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("ratio", [1e8, 1e10, 1e12, 1e15])
def test_two_columns_and_an_intercept_are_proven_at_any_ratio(attacks, ratio, k):
    for seed in range(3):
        A, y = two_columns(ratio, seed)
        exact = fits(attacks, A, y, k)
        result = solve(Problem.prepared(A, y, k, intercept=True))
        assert result.support == min(exact, key=exact.get)
        assert agrees(result.upper, min(exact.values()))
        assert Fraction(result.lower) <= min(exact.values())
        assert result.claim is Claim.OPTIMAL


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_complete_list_misses_no_model(attacks, place, intercept):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        A, y = rng.integers(-3, 4, (12, 3)).astype(float), rng.integers(-3, 4, 12).astype(float)
        A[:, place] *= 1e12
        found = best_model(Problem.prepared(A, y, 3, lam=1e-3, intercept=intercept), k_max=1, top=3)
        oracle = attacks.oracle.Oracle(attacks.cases.Case(A, y, 1, "quadratic", 1e-3, intercept=intercept))
        values = oracle.values([(), (0,), (1,), (2,)])
        criteria = {s: found.criterion.value(float(low), len(s)) for s, (low, _) in values.items()}
        listed = {model.support: model.criterion for model in found.models}
        assert found.complete
        missing = [s for s in criteria if s not in listed and criteria[s] < found.threshold - 1e-9]
        assert missing == [], (seed, criteria, listed)
        assert listed == pytest.approx({s: criteria[s] for s in listed}, rel=1e-9)


@pytest.mark.parametrize("loss", ["huber", "logistic", "squared_hinge", "poisson"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("ratio", [1e10, 1e12])
def test_no_lower_bound_is_below_zero(loss, intercept, ratio):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((60, 4))
        z = A @ [1.0, 2.0, 0.0, 1.0] + rng.standard_normal(60)
        y = {"huber": z + 30.0 * (rng.random(60) < 0.1), "poisson": rng.poisson(np.exp(np.clip(z, -3, 3)))}
        target = np.asarray(y.get(loss, np.where(z > 0, 1.0, -1.0)), dtype=float)
        problem = Problem.prepared(A * [1.0, ratio, 1.0, 1.0], target, 2, lam=1e-6, loss=loss, intercept=intercept)
        result = solve(problem, node_limit=50)
        assert 0 <= result.lower <= result.upper


# The tables themselves


@pytest.fixture
def reports():
    """The folder of tables of users."""
    folder = Path(os.environ.get("EXACTSEL_DATA", "")) / "reports"
    if not (folder / "ts.csv").is_file():
        pytest.skip("EXACTSEL_DATA names no folder with reports")
    return folder


RIGHT = {
    "ts.csv": (887.307, 360.311, 228.434, 224.790),
    "gap.csv": (86668.004, 59708.412, 48993.679, 43118.370),
}
"""The best objective with 1 to 4 columns and an intercept."""


@pytest.mark.parametrize("name", RIGHT)
def test_the_tables_of_users_are_proven(reports, name):
    target = {"ts.csv": "sales", "gap.csv": "lifeExp"}[name]
    for k, value in enumerate(RIGHT[name], start=1):
        command = ["solve", str(reports / name), "--target", target, "--k", str(k), "--intercept", "--json"]
        said = CliRunner().invoke(cli, command)
        assert said.exit_code == 0, said.output
        answer = json.loads(said.stdout)
        assert answer["upper"] == pytest.approx(value, abs=6e-4)
        assert answer["claim"] == "optimal"


def test_the_best_size_of_the_countries(reports):
    command = ["best", str(reports / "gap.csv"), "--target", "lifeExp", "--intercept", "--json"]
    said = CliRunner().invoke(cli, command)
    assert said.exit_code == 0, said.output
    assert json.loads(said.stdout)["value"] == pytest.approx(11566.884538, abs=1e-6)


def test_a_method_that_has_no_use_without_a_ridge_says_so():
    A, y = sales()
    with pytest.raises(UnsupportedError, match="lam is 0"):
        heuristics.run("dual-iht", Problem.prepared(A, y, 2, intercept=True))
