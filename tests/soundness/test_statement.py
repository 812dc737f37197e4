"""What is said of the data as given: bounds against exact optima, proofs bound to the data, and no units anywhere."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import exactly
import numpy as np
import pytest
import tiny_problems
from instances_for_tests import LOSSES, random_case
from own_loss import PseudoHuber
from recorded import second_opinion
from samples import many, sample

from exactsel import Claim, ColumnSubsetProblem, Problem, certify, near_optimal, solve, solve_path, verify
from exactsel.proofs.instance import instance_of
from exactsel.proofs.statement import statement_of
from exactsel.studies.compare import compare
from exactsel.studies.heuristics import run
from exactsel_certificates.given import exactly_above

KEPT = 1 + Fraction(1, 10**11)


def far_problem(seed, loss):
    """A problem with weights, an intercept or scaling, far from zero; for exactsel, and as plain data."""
    rng = np.random.default_rng([46, seed])
    n, d = int(rng.integers(4, 10)), int(rng.integers(2, 5))
    A = rng.standard_normal((n, d)) + rng.choice([0.0, 1.0, -1.0], d) * 10.0 ** rng.uniform(0, 13, d)
    y = rng.standard_normal(n) * 10.0 ** rng.uniform(-3, 3) + rng.choice([0.0, 1.0]) * 10.0 ** rng.uniform(0, 13)
    if loss == "logistic":
        y = np.where(np.arange(n) % 2, 1.0, -1.0)
    weights = rng.choice([0.3, 1.0, 2.0], n) if rng.random() < 0.5 else None
    level, scale = bool(rng.random() < 0.8), bool(rng.random() < 0.5)
    lam, k = float(10.0 ** rng.uniform(-3, 1)), int(rng.integers(1, d + 1))
    delta = float(10.0 ** rng.uniform(-1, 1)) if loss == "huber" else None
    problem = Problem.prepared(A, y, k, loss=loss, lam=lam, delta=delta, intercept=level, scale=scale, weights=weights)
    return problem, exactly.stated(A, y, k, loss, lam, delta, weights, level, scale)


def holds(upper, told, coef):
    """No smaller than what the model costs, and hardly larger."""
    exact = exactly.objective(told, coef)
    return exact * (1 - exactly.CLOSE) <= upper <= exact * KEPT + Fraction(1e-289)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("chunk", sample(1, 8, smoke=1))
def test_bounds_against_exact_optima(loss, chunk):
    for seed in range(20 * chunk, 20 * (chunk + 1)):
        problem, told = far_problem(seed, loss)
        result = solve(problem, signals=(), threads=1)
        best = tiny_problems.optimum(told)
        assert result.lower <= best.value, seed
        if loss == "quadratic":
            assert result.upper >= best.value, seed
        assert holds(result.upper, told, result.model.coef), seed


@pytest.mark.parametrize("loss", LOSSES)
def test_every_door_says_no_less_than_its_models_cost(loss):
    for seed in range(100, 104):
        problem, told = far_problem(seed, loss)
        best = tiny_problems.optimum(told).value
        result = solve(problem, signals=(), threads=1)
        certified = certify(problem, candidate=[0], signals=())
        assert holds(certified.value, told, problem.as_given(certified.prepared.coef)[0])
        given = certify(problem, coef=certified.coef, signals=())
        assert holds(given.value, told, given.coef)
        one = run("forward", problem)
        assert holds(one.upper, told, one.model.coef)
        for row in compare(problem, methods=["forward", "omp"] if loss == "quadratic" else ["forward"]).rows:
            assert holds(row.value, told, problem.as_given(problem.fit(row.support).coef)[0])
            assert row.value >= best * (1 - exactly.CLOSE)
        for near in near_optimal(problem, tau=0.1 * result.upper, signals=()).models:
            assert holds(near.value, told, problem.as_given(problem.fit(near.support).coef)[0])
        (on_path,) = solve_path(problem, ks=[problem.k], lams=[problem.lam]).results
        assert holds(on_path.upper, told, on_path.model.coef)
        for claimed in (result, certified, given, one, on_path):
            assert claimed.lower <= best


def test_an_offset_of_two_to_the_52(tmp_path):
    """The mean of y is no double. What was solved then had an optimum two hundred times too large."""
    A = np.array([[0.0], [1.0], [0.0], [1.0], [2.0]])
    y = 2.0**52 + np.array([1.0, 2.0, 1.0, 2.0, 3.0])
    problem = Problem.prepared(A, y, 1, lam=0.001, intercept=True)
    told = exactly.stated(A, y, 1, lam=0.001, level=True)
    best = tiny_problems.optimum(told).value
    assert float(best) == pytest.approx(0.00049982149232)
    result = solve(problem, proof=tmp_path / "run.exsel", signals=())
    assert result.lower <= best <= result.upper <= best * KEPT
    assert result.lower >= best * (1 - Fraction(1, 10**6))
    assert result.reached
    assert verify(problem, tmp_path / "run.exsel").verified
    assert second_opinion(problem, (tmp_path / "run.exsel").read_bytes()) == ""


@pytest.mark.parametrize("size", [1e-6, 1e-20, 1e20])
def test_small_and_large_targets(size):
    """Floors such as 1e-9 would call any model of an objective of 1e-11 optimal."""
    for seed in range(many(6, 12)):
        rng = np.random.default_rng([47, seed])
        A = rng.standard_normal((12, 6))
        y = size * (A @ rng.standard_normal(6) + rng.standard_normal(12))
        told = exactly.stated(A, y, 3, lam=0.01)
        best = tiny_problems.optimum(told).value
        for options in ({}, {"heuristics": "none", "subtrees": False}, {"heuristics": "none", "bound": "apg"}):
            result = solve(Problem(A, y, 3, lam=0.01), signals=(), threads=1, **options)
            assert result.reached
            assert result.lower <= best <= result.upper
            asked = 1e-9 if result.claim is Claim.OPTIMAL else 1e-6
            assert result.upper <= best * (1 + Fraction(1.01 * asked)) + Fraction(1e-12 * result.null_objective)
        few = solve(Problem(A, y, 3, lam=0.01), signals=(), heuristics="none", node_limit=0)
        assert few.claim is Claim.BOUNDED
        assert few.gap > 1e-6


def in_units(case, m, p):
    """The same problem with y in units of 2^-m and A in units of 2^-p."""
    if case.loss == "logistic":
        return replace(case, A=case.A * 2.0**p, lam=case.lam * 4.0**p)
    delta = None if case.delta is None else case.delta * 2.0**m
    return replace(case, A=case.A * 2.0**p, y=case.y * 2.0**m, lam=case.lam * 4.0**p, delta=delta)


def told_by(result, m):
    """What must not depend on units, and what must only be multiplied."""
    same = (result.tree_hash, result.claim, result.termination, result.gap, result.support, result.nodes)
    return same, (result.upper / 4.0**m, result.lower / 4.0**m)


@pytest.mark.parametrize("chunk", sample(4, 20))
def test_nothing_depends_on_units(chunk):
    for seed in range(50 * chunk, 50 * (chunk + 1)):
        case, rng = random_case(600_000 + seed, d=6), np.random.default_rng([48, seed])
        m, p = (int(rng.integers(-60, 61)) for _ in range(2))
        options = {"threads": 1, "signals": (), "rel_eps": float(rng.choice([0.0, 1e-6, 1e-2]))}
        here, there = solve(case.problem(), **options), solve(in_units(case, m, p).problem(), **options)
        if here.upper < 1e-250:
            continue  # an allowance for underflow is all there is
        scale = 0 if case.loss == "logistic" else m
        assert told_by(here, 0) == told_by(there, scale), (seed, case.kind, case.loss, m, p)


@pytest.mark.parametrize("loss", ["quadratic", "huber"])
def test_nothing_prepared_depends_on_units(loss):
    for seed in range(25):
        rng = np.random.default_rng([49, seed])
        A, y, weights = rng.standard_normal((10, 5)) + 3.0, rng.standard_normal(10) + 7.0, rng.uniform(0.5, 2.0, 10)
        m, p = (int(rng.integers(-60, 61)) for _ in range(2))
        told = []
        for i, j in ((0, 0), (m, p)):
            problem = Problem.prepared(
                A * 2.0**j, y * 2.0**i, 2, loss=loss, lam=0.1 * 4.0**j, delta=2.0**i if loss == "huber" else None,
                intercept=True, weights=weights,
            )  # fmt: skip
            told.append(told_by(solve(problem, signals=(), threads=1), i))
        assert told[0] == told[1], (seed, m, p)


@pytest.mark.parametrize("loss", LOSSES)
def test_proofs_are_bound_to_the_data_as_given(loss, tmp_path):
    rng = np.random.default_rng(8)
    A, y, weights = rng.standard_normal((15, 4)) + 5.0, rng.standard_normal(15) + 1e6, rng.uniform(0.5, 2.0, 15)
    if loss == "logistic":
        y = np.where(y > np.median(y), 1.0, -1.0)
    asked = {"loss": loss, "lam": 0.2, "intercept": True, "scale": True, "weights": weights}
    file = tmp_path / "run.exsel"
    problem = Problem.prepared(A, y, 2, **asked)
    result = solve(problem, proof=file, signals=())
    verdict = verify(problem, file)
    assert verdict.verified
    assert result.lower <= verdict.lower <= verdict.upper <= result.upper
    delta = {"delta": problem.loss_parameters["delta"]} if loss == "huber" else {}
    others = {
        "another offset of a column": (A + np.array([0.0, 1.0, 0.0, 0.0]), y, asked),
        "other weights": (A, y, {**asked, "weights": 2.0 * weights}),
        "a weight": (A, y, {**asked, "weights": np.where(np.arange(15) == 3, 0.25, weights)}),
        "no weights": (A, y, {**asked, "weights": None}),
        "no intercept": (A, y, {**asked, "intercept": False}),
        "no scaling": (A, y, {**asked, "scale": False}),
        "prepared data": (problem.A, problem.y, {"loss": loss, "lam": 0.2}),
    }
    if loss != "logistic":
        others["another offset of y"] = (A, y + 1.0, asked)
    for what, (matrix, target, options) in others.items():
        other = Problem.prepared(matrix, target, 2, **options, **delta)
        judged = verify(other, file)
        assert not judged.verified, what
        assert "another problem" in judged.reason, (what, judged.reason)
        assert second_opinion(other, file.read_bytes()) != "", what


def test_a_loss_the_checker_does_not_know_is_spoken_of_with_care():
    """Nothing is proven of it, but what is said allows for rounding."""
    problem = Problem(np.eye(6)[:, :4] + 0.1, np.arange(6.0), 2, loss=PseudoHuber(1.0), lam=0.3)
    fit = problem.fit([0, 2])
    statement = statement_of(problem)
    assert fit.value < statement.upper(fit) <= fit.value * (1 + 1e-13)
    assert statement.upper_of(fit.coef) == statement.upper(fit)
    assert statement.lower(1.0, 2.0, "") == 1.0
    assert statement.lower(3.0, 2.0, "") == 2.0
    assert statement.needed(1.5, "") == 1.5


def test_what_is_said_of_a_selection():
    """Column subset selection: no smaller than what the columns leave of the others, exactly."""
    A = np.random.default_rng(3).integers(-3, 4, (6, 4)).astype(float)
    problem = ColumnSubsetProblem(A, 2)
    statement, told = statement_of(problem), exactly.stated(A, np.zeros(6), loss="")
    for columns in ([0], [1, 3], [0, 2]):
        exact = tiny_problems.columns_left(told, columns).value
        assert exact <= statement.upper(problem.fit(columns)) <= exact * KEPT
        chosen = np.zeros(4)
        chosen[columns] = 1.0
        assert statement.upper_of(chosen) == statement.upper(problem.fit(columns))


@pytest.mark.parametrize("loss", LOSSES)
def test_thin_margins_are_settled_exactly(loss):
    """A model whose residuals are far smaller than the data: doubles tell little, fractions all."""
    rng = np.random.default_rng(11)
    A = rng.standard_normal((8, 3)) + 1e9
    y = A @ np.array([1.0, -2.0, 0.0]) if loss != "logistic" else np.where(np.arange(8) % 2, 1.0, -1.0)
    lam, delta = 1e-3, 1.0 if loss == "huber" else None
    problem = Problem.prepared(A, y, 2, loss=loss, lam=lam, delta=delta, scale=True)
    told = exactly.stated(A, y, 2, loss, lam, delta, scale=True)
    coef = problem.as_given(problem.fit([0, 1]).coef)[0]
    said = statement_of(problem).upper_of(coef)
    assert holds(said, told, coef)
    assert said <= exactly_above(instance_of(problem), coef) * (1 + 1e-11)


@pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic"])
@pytest.mark.parametrize("lam", [0.0, 0.1])
def test_ordinary_data_lose_nothing_that_matters(loss, lam):
    """Far from zero, with a constant column and an empty one, whatever is asked for: the claim is what it was."""
    if loss != "quadratic" and lam == 0.0:
        pytest.skip("only quadratic loss may do without a ridge")
    rng = np.random.default_rng(7)
    A = rng.standard_normal((40, 6)) + 3.0
    A[:, 2], A[:, 4] = 0.0, 5.0
    y = A[:, 0] - A[:, 3] + rng.standard_normal(40) + 100.0
    y = np.sign(y - np.median(y) + 1e-9) if loss == "logistic" else y
    for flags in range(8):
        weights = rng.uniform(0.5, 2.0, 40) if flags & 4 else None
        made = Problem.prepared(
            A, y, 3, loss=loss, lam=lam, intercept=bool(flags & 1), scale=bool(flags & 2), weights=weights
        )
        result = solve(made, signals=(), threads=1, rel_eps=0.0)
        assert result.claim.value == "optimal", (flags, result)


@pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic"])
def test_what_is_said_does_not_depend_on_what_was_said_before(loss):
    """On shared data for other sizes, ridges and demands, to the last bit; fits too."""
    for seed in range(12):
        shared, _ = far_problem(seed, loss)
        for number, k in enumerate([*range(1, shared.d + 1), *range(shared.d, 0, -1)]):
            changes = {"k": k, "lam": shared.lam * (1 + number % 2), "force_out": [0] if number % 3 == 1 else []}
            again, alone = shared.replace(**changes), far_problem(seed, loss)[0].replace(**changes)
            told, anew = statement_of(again), statement_of(alone)
            for columns in ((), range(1, min(k, shared.d - 1) + 1)):
                fit, same = again.fit(columns), alone.fit(columns)
                np.testing.assert_array_equal(fit.coef, same.coef)
                assert fit.value == same.value
                for _ in range(2):
                    assert told.upper(fit) == anew.upper(same)
                    for valid_for in ("", "bounded"):
                        given = 0.9 * fit.value, told.upper(fit), valid_for
                        assert told.lower(*given) == anew.lower(*given)
                        assert told.needed(fit.value, valid_for) == anew.needed(fit.value, valid_for)
