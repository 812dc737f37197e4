"""Columns of very different magnitude: the campaign of benchmarks/attacks, its problems, oracles and judges, a sample.

What is known of tables of users is in test_magnitude_reports.py.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from samples import kernels_of_its_own, many, sample
from scipy.optimize import minimize

from exactsel import best_model, solve
from exactsel.errors import InputError

ROOT = Path(__file__).resolve().parents[2]

MODULES = ("cases", "commands", "enclosures", "magnitude_cases", "magnitude_doors", "magnitudes", "oracle", "running",
           "solves")  # fmt: skip

EACH = many(5, 10)
"""Seeds of one test."""


@pytest.fixture
def attacks(monkeypatch):
    """The modules; ``benchmarks`` is not an installed package."""
    monkeypatch.syspath_prepend(str(ROOT))
    return SimpleNamespace(**{name: import_module(f"benchmarks.attacks.{name}") for name in MODULES})


# The campaign


@pytest.mark.parametrize("part", sample(25, 200, smoke=3))
def test_nothing_said_is_wrong_whatever_columns_are_measured_in(attacks, part):
    findings = []
    for seed in range(part * EACH, (part + 1) * EACH):
        outcome = attacks.running.guarded(attacks.magnitudes.attempted, seed)
        findings += [(seed, finding[0], finding[2]) for finding in outcome.findings]
    assert findings == []


@pytest.mark.parametrize("seed", [5071, 5082, 5104, kernels_of_its_own(21303), 21718, 40739])
def test_seeds_that_once_found_something(attacks, seed):
    """Fits whose large coefficients cancel each other, and cost next to nothing; judges that were too strict."""
    assert attacks.running.guarded(attacks.magnitudes.attempted, seed).findings == []


def test_the_command_writes_its_tables(attacks, tmp_path, monkeypatch):
    log = tmp_path / "found.jsonl"
    command = ["magnitudes", "--count", "3", "--processes", "1", "--log", str(log)]
    result = CliRunner().invoke(attacks.commands.main, command)
    assert result.exit_code == bool(log.read_text(encoding="utf-8")), result.output
    assert "### magnitudes: 3 trials" in result.output
    assert "### magnitudes: not proven" in result.output
    assert "| ratio from | " in result.output
    told = CliRunner().invoke(attacks.commands.main, ["magnitudes", "--only", "2"], catch_exceptions=False)
    assert told.exit_code == 0
    assert "Case(" in told.output
    assert "--- multiplied" in told.output
    monkeypatch.setattr(attacks.commands, "QUICK", 2)
    quick = CliRunner().invoke(attacks.commands.main, ["magnitudes", "--quick", "--processes", "1"])
    assert "### magnitudes: 2 trials" in quick.output


def test_the_table_counts_by_ratio_loss_and_ridge(attacks):
    cells = Counter()
    for ratio, reached in ((1.0, True), (1e5, False), (1e5, True), (1e40, False)):
        case = attacks.cases.Case(np.array([[1.0, ratio], [0.5, ratio]]), np.zeros(2), 1, "quadratic")
        cells.update(attacks.magnitudes.cell(attacks.magnitude_cases.Stretched(case, case, "", (0, 0)), reached))
    rows = attacks.magnitudes.table(cells)
    assert [[*row.values()] for row in rows] == [["1e0", "0 of 1"], ["1e4", "1 of 2"], ["1e30", "1 of 1"]]
    assert [*rows[0]] == ["ratio from", "quadratic, lam = 0"]


# The problems


def test_a_seed_is_a_problem_and_all_kinds_occur(attacks):
    pairs = [attacks.magnitude_cases.stretched(seed) for seed in range(600)]
    cases = [pair.case for pair in pairs]
    assert attacks.magnitude_cases.stretched(9).case.text() == cases[9].text()
    assert {case.loss for case in cases} == set(attacks.magnitude_cases.LOSSES)
    assert {case.lam == 0 for case in cases if case.loss in attacks.magnitude_cases.RIDGELESS} == {True, False}
    assert {pair.style for pair in pairs} == set(attacks.magnitude_cases.STYLES)
    decades = {pair.decades for pair in pairs}
    assert min(decades) == 0
    assert max(decades) >= 28
    words = {"demands", "groups", "per group", "hierarchy", "signs", "limits", "duplicates", "constant", "sums"}
    assert {word for word in words if any(word in case.kind for case in cases)} == words
    occurs = {
        "k = 1": any(case.k == 1 for case in cases),
        "all columns": any(case.k == case.d for case in cases),
        "fewer rows": any(len(case.y) < case.d for case in cases),
        "weights": any(case.weights is not None and np.any(case.weights == 0) for case in cases),
        "offset": any(case.offset is not None for case in cases),
        "intercept": any(case.intercept for case in cases),
        "many rows": any(len(case.y) > 20 for case in cases),
    }
    assert all(occurs.values()), occurs


def test_powers_of_two_round_nothing_and_leave_the_truth_as_it_is(attacks):
    compared = 0
    for seed in range(many(30, 120)):
        pair = attacks.magnitude_cases.stretched(seed)
        if not pair.same:
            continue
        assert np.array_equal(np.ldexp(pair.case.A, -np.array(pair.powers)), pair.plain.A)
        try:
            delta = attacks.solves.delta_of(attacks.cases.quiet_problem(pair.plain))
        except InputError:
            continue
        one, other = (attacks.oracle.Oracle(case, delta).truth() for case in (pair.plain, pair.case))
        assert max(one.low, other.low) <= min(one.high, other.high)
        compared += 1
    assert compared > 5


# The oracles


def by_scipy(case, columns):
    """The smallest objective on some columns, in doubles, columns (and their ridges) even, and within limits."""
    A = case.A[:, columns]
    size = np.sqrt(np.square(A).sum(axis=0) + case.lam)
    w = np.ones(len(case.y)) if case.weights is None else case.weights
    off = np.zeros(len(case.y)) if case.offset is None else case.offset
    limits = [(-np.inf, np.inf)] * len(columns)
    if case.lower is not None:
        limits = [(case.lower[j] * s, case.upper[j] * s) for j, s in zip(columns, size, strict=True)]
    ridge = case.lam / size**2

    def objective(u):
        x, level = (u[:-1], u[-1]) if case.intercept else (u, 0.0)
        z = (A / size) @ x + level + off
        rows = {
            "poisson": lambda: np.exp(z) - case.y * z + np.where(case.y > 0, case.y * np.log(np.maximum(case.y, 1)), 0)
            - case.y,
            "squared_hinge": lambda: np.maximum(0, 1 - case.y * z) ** 2,
            "logistic": lambda: np.logaddexp(0, -case.y * z),
            "quadratic": lambda: (z - case.y) ** 2 / 2,
        }  # fmt: skip
        return float(w @ rows[case.loss]()) + 0.5 * float(ridge @ x**2)

    start = np.zeros(len(columns) + case.intercept)
    bounds = [*limits, (-np.inf, np.inf)] if case.intercept else limits
    return minimize(objective, start, bounds=bounds, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9}).fun


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("loss", ["quadratic", "logistic", "squared_hinge", "poisson"])
def test_oracles_agree_with_a_general_solver(attacks, loss, limited):
    for seed in range(many(3, 8)):
        rng = np.random.default_rng([seed, 3])
        A = rng.standard_normal((10, 3))
        y = {"poisson": rng.poisson(1.5, 10).astype(float), "quadratic": rng.standard_normal(10)}
        target = y.get(loss, np.where(np.arange(10) % 2 == 0, 1.0, -1.0))
        powers = np.array([1.0, 2.0**20, 2.0**-30])
        limits = {}
        if limited:
            limits = {"lower": (0.0, -(2.0**-22), -math.inf), "upper": (math.inf, 0.0, 2.0**28)}
        case = attacks.cases.Case(
            A * powers, target, 2, loss, 0.3, intercept=bool(seed % 2), weights=rng.integers(0, 3, 10) + 0.5,
            offset=np.round(rng.standard_normal(10), 1) if loss == "poisson" else None, **limits,
        )  # fmt: skip
        oracle = attacks.oracle.Oracle(case)
        for support, (low, high) in oracle.values(oracle.supports(2)).items():
            assert 0 <= high - low <= high / 10**15
            assert float(high) == pytest.approx(by_scipy(case, list(support)), rel=1e-6)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "poisson"])
def test_the_objective_of_a_model_is_that_of_its_predictions(attacks, loss):
    rng = np.random.default_rng(4)
    A = rng.standard_normal((9, 2)) * [1e9, 1e-9]
    y = rng.poisson(1.0, 9).astype(float) if loss == "poisson" else np.where(np.arange(9) < 4, 1.0, -1.0)
    case = attacks.cases.Case(A, y, 2, loss, 0.5)
    coef = [0.4e-9, -0.7e9]
    low, high = attacks.oracle.Oracle(case).objective(coef)
    z = A @ coef
    rows = {
        "poisson": np.exp(z) - y * z + np.where(y > 0, y * np.log(np.maximum(y, 1)), 0) - y,
        "squared_hinge": np.maximum(0, 1 - y * z) ** 2,
        "logistic": np.logaddexp(0, -y * z),
    }[loss]
    assert 0 <= high - low <= high / 10**15
    assert float(low) == pytest.approx(float(rows.sum()) + 0.25 * float(np.square(coef).sum()), rel=1e-12)


# The judges can say no


def known(attacks):
    """A case with its oracle and a result that is right."""
    rng = np.random.default_rng(2)
    A = rng.integers(-3, 4, (9, 3)).astype(float)
    case = attacks.cases.Case(A, A @ [1.0, 0.0, 2.0] + rng.integers(-1, 2, 9), 2, "quadratic", 0.5)
    return case, attacks.oracle.Oracle(case), solve(case.problem(), threads=1, signals=())


def test_a_model_that_is_worse_than_a_known_fit_is_found(attacks):
    case, oracle, result = known(attacks)
    fits = attacks.magnitudes.fits
    assert [*fits(result.upper, result.support, oracle)] == []
    (found,) = fits(result.upper * (1 + 1e-7), result.support, oracle)
    assert found.what == "worse than the fit on its own support"
    (found,) = fits(float(oracle.empty), (), oracle)
    assert found.what == "worse than a single column"
    (found,) = fits(float(oracle.empty) * 1.01, (), oracle)
    assert found.what == "worse than the empty model"
    assert [*fits(float(oracle.empty), (), oracle, known=())] == []
    assert [*attacks.magnitudes.trivial(result)] == []
    (found,) = attacks.magnitudes.trivial(dataclasses.replace(result, lower=-1e-300))
    assert found.what == "lower below zero"
    assert case.k == 2


def test_fits_by_coefficients_that_no_double_tells_are_not_asked_for(attacks):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((6, 2))
    copied = np.column_stack([A, A[:, 0] * (1 + 2.0**-50 * (np.arange(6) % 2))])
    case = attacks.cases.Case(copied, rng.standard_normal(6), 2, "quadratic")
    oracle = attacks.oracle.Oracle(case)
    assert [s for s in ((), (0,), (0, 1), (0, 2), (1, 2)) if not oracle.tame(s)] == [(0, 2)]
    worse = float(oracle.values([(0,)])[0,][1]) * (1 + 1e-12)
    assert [*attacks.magnitudes.fits(worse, (0, 2), oracle, known=())] == []
    assert [*attacks.magnitudes.fits(2 * worse, (0,), oracle, known=())] != []


def test_a_list_that_is_wrong_is_found(attacks):
    case, oracle, _ = known(attacks)
    found = best_model(case.problem(), k_max=2, top=3, threads=1, signals=())
    listed = attacks.magnitude_doors.listed

    def said(**changes):
        return {finding.what for finding in listed(dataclasses.replace(found, **changes), case, 2, oracle)}

    first, *rest = found.models
    assert said() == set()
    assert said(models=tuple(rest)) == {"a complete list misses a model"}
    assert said(models=tuple(rest), complete=False) == set()
    assert said(lower=found.value + 1e-3) == {"lower above a model's criterion"}
    worse = dataclasses.replace(first, objective=first.objective * (1 + 1e-6))
    assert said(models=(worse, *rest)) == {"a listed model is worse than its fit"}
    better = dataclasses.replace(first, objective=first.objective * (1 - 1e-6))
    assert said(models=(better, *rest)) == {"objective below the truth"}


def test_records_that_differ_beyond_units_are_found(attacks):
    unlike = attacks.magnitude_doors.unlike
    powers = np.array([3, -2])
    first = {"coef": np.array([8.0, 1.0]), "upper": 1.0, "support": (0, 1), "p values": np.array([0.5, math.nan])}
    same = {**first, "coef": np.array([1.0, 4.0])}
    assert [*unlike(first, same, powers)] == []
    for name, value in (
        ("coef", np.array([1.0, np.nextafter(4.0, 5.0)])),
        ("upper", math.nextafter(1.0, 2.0)),
        ("support", (0,)),
        ("p values", np.array([0.25, math.nan])),
    ):
        (found,) = unlike(first, {**same, name: value}, powers)
        assert found.what == f"{name} differs"


@pytest.mark.untrue
def test_a_bound_that_is_too_large_is_found(attacks, monkeypatch):
    real = solve

    def untrue(problem, *arguments, **options):
        result = real(problem, *arguments, **options)
        return dataclasses.replace(result, lower=math.nextafter(result.upper * (1 + 1e-12), math.inf))

    monkeypatch.setattr("exactsel.solve", untrue)
    whats = set()
    for seed in range(12):
        whats |= {finding[0] for finding in attacks.running.guarded(attacks.magnitudes.attempted, seed).findings}
    assert any("lower above the truth" in what for what in whats)
