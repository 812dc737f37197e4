"""Huber and logistic loss without a ridge where the data do not limit coefficients: claims about bounded models.

All columns together separate the classes, or depend on each other, though a few of them do neither.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from fractions import Fraction as F

import numpy as np
import pytest
from fits_for_tests import slow_fit
from recorded import second_opinion
from samples import many, sample
from scipy.optimize import linprog

from exactsel import GroupedProblem, InputError, Problem, best_model, certify, near_optimal, solve, solve_path
from exactsel.problem import infinitesimal_ridge
from exactsel.problem.infinitesimal_ridge import SCOPE
from exactsel.proofs.instance import instance_of
from exactsel_certificates.checking import verify
from exactsel_certificates.container import read_proof
from exactsel_certificates.radii import MODEL_RADIUS, within_scope
from exactsel_certificates.standalone import LOSSES, limits, regression


def separate(A, y, intercept):
    """Whether columns separate the classes, and completely, by linear programs of their own."""
    B = (np.column_stack([A, np.ones(len(A))]) if intercept else A) * y[:, None]
    n, m = B.shape
    if not m:
        return False, False
    B = B / np.maximum(np.abs(B).max(axis=0), 1e-300)
    some = linprog(-B.sum(axis=0), A_ub=-B, b_ub=np.zeros(n), bounds=[(-1e3, 1e3)] * m)
    every = linprog(
        [*np.zeros(m), -1.0], A_ub=np.hstack([-B, np.ones((n, 1))]), b_ub=np.zeros(n),
        bounds=[*[(-1e3, 1e3)] * m, (0, 1)],
    )  # fmt: skip
    return -some.fun > 1e-6, -every.fun > 1e-6


def random_case(seed):
    """A small problem, mostly one whose columns together separate the classes or depend on each other."""
    rng = np.random.default_rng(seed)
    loss = ("huber", "logistic")[seed % 2]
    n, d = int(rng.integers(8, 22)), int(rng.integers(3, 8))
    A = rng.standard_normal((n, d))
    if rng.random() < 0.25:
        A = np.round(A)
    if rng.random() < 0.2:
        A = A * 10.0 ** rng.integers(-5, 6, size=d)
    if loss == "logistic":
        y = np.where(A[:, 0] / np.abs(A[:, 0]).max() + rng.standard_normal(n) > 0, 1.0, -1.0)
        y[:2] = 1.0, -1.0
    else:
        y = A[:, 0] / np.abs(A[:, 0]).max() + rng.standard_normal(n)
    if loss == "huber" or rng.random() < 0.4:
        A = np.column_stack([A, A[:, 0] + A[:, 1], -A[:, 0]])
    d = A.shape[1]
    options = {
        "loss": loss, "lam": 0.0, "intercept": bool(rng.random() < 0.5), "scale": bool(rng.random() < 0.2),
        "weights": rng.uniform(0.3, 3.0, n) if rng.random() < 0.4 else None,
        "force_out": (1,) if rng.random() < 0.3 else (), "force_in": (2,) if rng.random() < 0.2 else (),
    }  # fmt: skip
    k = int(rng.integers(len(options["force_in"]), 4))
    return A, y, k, options | ({"delta": float(rng.uniform(0.2, 2.0))} if loss == "huber" else {})


def truth(A, y, k, options):
    """The least objective of all sets that have a best model, and of those that have none but an infimum."""
    w = np.ones(len(y)) if options["weights"] is None else options["weights"]
    attained, infimum = np.inf, np.inf
    allowed = [j for j in range(A.shape[1]) if j not in options["force_out"]]
    for chosen in itertools.combinations(allowed, min(k, len(allowed))):
        if not {*options["force_in"]} <= {*chosen}:
            continue
        B = A[:, list(chosen)]
        value = slow_fit(B, y, options["loss"], options.get("delta", np.inf), options["intercept"], w)
        if options["loss"] == "logistic" and separate(B, y, options["intercept"])[0]:
            infimum = min(infimum, value)
        else:
            attained = min(attained, value)
    return attained, infimum


def look_at(seed, tmp_path):
    """What became of a case; all that is said of it is true."""
    A, y, k, options = random_case(seed)
    attained, infimum = truth(A, y, k, options)
    best, file = min(attained, infimum), tmp_path / f"{seed}.exsel"
    try:
        problem = Problem.prepared(A, y, k, **options)
        result = solve(problem, proof=file, threads=1)
    except InputError as error:
        named = re.search(r"features? ([\d, ]+) separate", str(error))
        columns = [int(j) for j in named[1].split(",")] if named else []
        assert len(columns) <= k
        assert not {*columns} & {*options["force_out"]}
        assert separate(A[:, columns], y, options["intercept"])[0]
        assert infimum <= attained * (1.0 + 1e-6) + 1e-9, "then there is no best model"
        assert not file.exists()
        return "refused"
    assert attained <= infimum * (1.0 + 1e-6), "then there is a best model"
    assert result.lower <= best * (1.0 + 1e-10)
    assert result.upper == pytest.approx(best, rel=1e-7)
    assert result.upper - result.lower <= 2e-6 * max(best, 0.01 * problem.null_objective)
    verdict = verify(read_proof(file), instance_of(problem))
    assert verdict.verified, verdict.reason
    assert verdict.lower <= best * (1.0 + 1e-10)
    assert bool(verdict.valid_for) == bool(result.valid_for)
    assert second_opinion(problem, file.read_bytes()) == ""
    return result.valid_for


@pytest.mark.parametrize("chunk", range(many(2, 60)))
def test_searches_and_proofs_agree_with_brute_force(chunk, tmp_path):
    outcomes = [look_at(seed, tmp_path) for seed in range(10 * chunk, 10 * chunk + 10)]
    assert SCOPE in outcomes, "what is to be tested"


def dependent_problem(k=2, **options):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((30, 8))
    A[:, 7] = A[:, 0] + A[:, 1]
    y = A[:, 0] - A[:, 2] + 0.5 * rng.standard_normal(30)
    return Problem.prepared(A, y, k, loss="huber", lam=0, delta=0.5, intercept=True, **options)


def wide_problem(k=2, **options):
    """Any twelve columns separate the twelve rows; no two do."""
    rng = np.random.default_rng(8)
    A = rng.standard_normal((12, 16))
    y = np.where(np.arange(12) % 2 == 0, 1.0, -1.0)
    return Problem(A, y, k, loss="logistic", lam=0, **options)


@pytest.mark.parametrize("make", [dependent_problem, wide_problem])
def test_the_condition_is_said_wherever_a_bound_is(make, tmp_path):
    problem = make()
    result = solve(problem, proof=tmp_path / "proof.exsel")
    assert result.valid_for == SCOPE
    assert f"for {SCOPE}" in str(result)
    assert result.as_dict()["valid_for"] == SCOPE
    assert certify(problem, support=result.support).result.valid_for == SCOPE
    assert near_optimal(problem, tau=1e-3).valid_for == SCOPE
    assert all(step.valid_for == SCOPE for step in solve_path(problem, ks=[1, 2]).results)
    assert best_model(problem, k_max=2).valid_for == SCOPE
    proof = read_proof(tmp_path / "proof.exsel")
    assert (proof.limit_point.size, proof.valid_for) == (1, "bounded models")
    assert verify(proof, instance_of(problem)).valid_for == "models with |x_j| ||a_j|| <= 10000 ||y||"


@pytest.mark.parametrize("make", [dependent_problem, wide_problem])
def test_a_claim_about_all_models_is_not_accepted(make, tmp_path):
    """The same file without its scope, and with a higher claim: neither checker believes it."""
    problem, file = make(), tmp_path / "proof.exsel"
    solve(problem, proof=file)
    proof, data = read_proof(file), file.read_bytes()
    assert verify(proof, instance_of(problem)).verified
    assert second_opinion(problem, data) == ""
    unscoped = verify(replace(proof, valid_for=""), instance_of(problem))
    assert not unscoped.verified
    assert unscoped.lower == 0.0
    plain = data.replace(b'"valid_for": "bounded models"', b'"valid_for":               ""')
    assert len(plain) == len(data)
    assert plain != data
    assert second_opinion(problem, plain).startswith("only 0.0 is proven")
    high = proof.lower * (1.0 + 1e-4)
    assert not verify(replace(proof, lower=high, upper=max(high, proof.upper)), instance_of(problem)).verified
    assert second_opinion(problem, data.replace(proof.lower.hex().encode(), high.hex().encode())) != ""


@pytest.mark.parametrize("seed", sample(20, 20))
def test_both_checkers_speak_of_no_fewer_models_than_they_say(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(3, 9)), int(rng.integers(1, 4))
    A, weights = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-8, 9, d), rng.uniform(0.1, 5.0, n)
    level, loss = bool(seed % 2), ("huber", "logistic")[seed % 3 == 0]
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0) if loss == "logistic" else 50.0 + rng.standard_normal(n)
    delta = {"delta": 1.0} if loss == "huber" else {}
    problem = Problem.prepared(A, y, d, loss=loss, lam=1.0, weights=weights, intercept=level, **delta)
    prepared = instance_of(problem).plain
    first = within_scope(replace(prepared, lam=0.0)).size
    second = limits.sizes_in_scope(
        regression.Regression(A.tolist(), y.tolist(), d, LOSSES[loss](1.0), 0.0, weights.tolist(), level)
    )
    for j in range(d):
        w, a, t = ([F(float(v)) for v in values] for values in (weights, A[:, j], y))
        mean = sum(p * q for p, q in zip(w, a, strict=True)) / sum(w) if level else F(0)
        square = sum(p * (q - mean) ** 2 for p, q in zip(w, a, strict=True))
        middle = sum(p * q for p, q in zip(w, t, strict=True)) / sum(w) if level and loss == "huber" else F(0)
        target = sum(p * (q - middle) ** 2 for p, q in zip(w, t, strict=True))
        exact = F(MODEL_RADIUS) ** 2 * target / square
        assert F(float(first[j])) ** 2 >= exact
        assert second[j] ** 2 >= exact


def test_only_columns_a_model_may_use_are_looked_at():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 4))
    y = np.where(A[:, 0] + rng.standard_normal(40) > 0, 1.0, -1.0)
    A = np.column_stack([A, y * rng.uniform(1.0, 2.0, 40)])
    with pytest.raises(InputError, match="feature 4 separates the two classes completely"):
        Problem(A, y, 2, loss="logistic", lam=0)
    barred = Problem(A, y, 2, loss="logistic", lam=0, force_out=[4])
    result = solve(barred)
    assert result.valid_for == ""
    assert result.upper == pytest.approx(solve(Problem(A[:, :4], y, 2, loss="logistic", lam=0)).upper)


@pytest.mark.parametrize("complete", [True, False])
def test_columns_that_separate_are_named_where_the_search_meets_them(complete, monkeypatch, tmp_path):
    """Columns 2 and 5 do it together; the linear program over all columns finds others."""
    rng = np.random.default_rng(4)
    A, y = rng.standard_normal((14, 9)), np.where(np.arange(14) % 2 == 0, 1.0, -1.0)
    A[:, 5] = y * rng.uniform(0.5, 1.0, 14) - A[:, 2]
    if not complete:
        A[:2, [2, 5]] = [[1.0, 1.0 - 1.0 - 1.0], [2.0, -2.0]]
    monkeypatch.setattr(infinitesimal_ridge, "refuse_separated", lambda *arguments: None)
    problem = Problem(A, y, 2, loss="logistic", lam=0)
    how = "completely" if complete else "quasi-completely"
    with pytest.raises(InputError, match=f"features 2, 5 separate the two classes {how}.*give a positive lam"):
        solve(problem, proof=tmp_path / "proof.exsel")
    assert not list(tmp_path.iterdir()), "nothing half-written is left"
    with pytest.raises(InputError, match="features 2, 5 separate"):
        certify(problem, support=[2, 5])
    without = solve(problem.replace(force_out=[5]))
    assert without.claim.reached


def test_a_column_that_separates_in_part_does_no_harm_where_another_is_better():
    rng = np.random.default_rng(5)
    A, y = rng.standard_normal((60, 4)), np.where(np.arange(60) % 2 == 0, 1.0, -1.0)
    A[:, 1] = y + 0.8 * rng.standard_normal(60)
    A[:, 3] = 0.0
    A[:2, 3] = y[:2]
    result = solve(Problem(A, y, 1, loss="logistic", lam=0))
    assert result.support == (1,)
    assert result.valid_for == SCOPE
    with pytest.raises(InputError, match="feature 3 separates the two classes quasi-completely"):
        solve(Problem(A, y, 3, loss="logistic", lam=0))


@pytest.mark.parametrize("loss", ["huber", "logistic"])
def test_groups_and_hierarchies(loss, tmp_path):
    rng = np.random.default_rng(11)
    A = rng.standard_normal((24, 6))
    A[:, 4] = A[:, 0] - A[:, 1]
    y = A[:, 0] + rng.standard_normal(24)
    y = np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y
    delta = {"delta": 0.7} if loss == "huber" else {}
    base = Problem(A, y, 2, loss=loss, lam=0, **delta)
    grouped = GroupedProblem(base, {"a": [0, 1], "b": [2, 3]})
    related = Problem(A, y, 2, loss=loss, lam=0, hierarchy={3: [2], 4: [0]}, **delta)
    for problem, sets in (
        (grouped, [[*a, *b] for a, b in itertools.combinations([(0, 1), (2, 3), (4,), (5,)], 2)]),
        (related, [(i, j) for i, j in itertools.combinations(range(6), 2) if {3: 2, 4: 0}.get(i, j) in (i, j)]),
    ):
        file = tmp_path / "proof.exsel"
        result = solve(problem, proof=file)
        assert result.valid_for == SCOPE
        values = [
            slow_fit(A[:, list(s)], y, loss, delta.get("delta", np.inf), False, np.ones(24))
            for s in sets if problem is grouped or all({3: 2, 4: 0}.get(j, j) in s for j in s)
        ]  # fmt: skip
        assert result.lower <= min(values) * (1 + 1e-10)
        assert result.upper == pytest.approx(min(values), rel=1e-7)
        assert verify(read_proof(file), instance_of(problem)).verified


def test_another_k_is_another_condition():
    """What is taken off a bound is that of k columns: for more of them it is more."""
    few, more = dependent_problem(1), dependent_problem(1).replace(k=4)
    assert more.objective.ridge_limits.most == 4
    assert (
        more.objective.ridge_limits.taken
        > 0.5 * more.lam * 4 * 0.9 * np.min(more.objective.ridge_limits.limits.size) ** 2
    )
    assert few.objective.ridge_limits.most == 1
    assert more.replace(k=2).objective is more.objective
    assert few.hash == dependent_problem(1).hash
