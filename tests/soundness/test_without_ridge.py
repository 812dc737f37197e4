"""Huber and logistic loss with lam = 0: limits of coefficients, separated classes (brute force: test_conformance)."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from prepared_cases import ridgeless_fit, ridgeless_problem, ridgeless_rows
from samples import many, sample

from exactsel import Problem, solve
from exactsel.errors import InputError
from exactsel.problem.infinitesimal_ridge import without_ridge
from exactsel.proofs.instance import instance_of
from exactsel.types import FloatArray
from exactsel_certificates.checking import verify
from exactsel_certificates.container import read_proof
from exactsel_certificates.formula import Instance, objective
from exactsel_certificates.given import GivenInstance
from exactsel_certificates.radii import radii
from exactsel_certificates.standalone.checking import check
from exactsel_certificates.standalone.limits import sizes
from exactsel_certificates.standalone.losses import LOSSES
from exactsel_certificates.standalone.regression import Regression


def brute_force(given: dict[str, Any]) -> float:
    """The least objective of all supports of at most k columns."""
    sets = itertools.combinations(range(given["A"].shape[1]), min(given["k"], given["A"].shape[1]))
    return min(ridgeless_fit(given, chosen) for chosen in sets)


@pytest.mark.parametrize("seed", sample(30, 30))
def test_no_model_that_counts_has_larger_coefficients(seed: int) -> None:
    given = ridgeless_rows(2 * seed + seed % 2)
    A, y, rng = given["A"], given["y"], np.random.default_rng(seed)
    instance = Instance(
        A, y, A.shape[1], given["loss"], 0.0, given["delta"], weights=None, intercept=given["intercept"]
    )
    found = radii(instance, np.zeros(A.shape[1]))
    if found is None:
        return
    for _ in range(many(60, 200)):
        x = rng.normal(size=A.shape[1]) * found.size
        # As far out as a model costs no more than the level.
        low, high = 0.0, 1e3
        for _ in range(40):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if objective(instance, middle * x) <= found.level else (low, middle)
        reached = np.abs(low * x)
        assert np.all(reached[found.size > 0] <= found.size[found.size > 0] * (1.0 + 1e-9))


def separated_cases() -> list[tuple[FloatArray, FloatArray, bool, str]]:
    """Twenty tables whose columns separate the classes, with how."""
    cases = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(12, 60)), int(rng.integers(1, 7))
        A, intercept, complete = rng.normal(size=(n, d)), bool(seed % 3), seed % 2 == 0
        y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
        j = int(rng.integers(d))
        if complete and d > 1 and seed % 4 == 0:
            # Two columns together.
            i = (j + 1) % d
            A[:, i] = y * rng.uniform(0.5, 1.0, size=n) - A[:, j]
        elif complete:
            A[:, j] = y * rng.uniform(0.5, 2.0, size=n) * 10.0 ** rng.integers(-3, 4)
        else:
            # Some rows of one class alone have anything there; the others are as they come.
            A[:, j] = 0.0
            A[np.flatnonzero(y > 0)[: n // 6], j] = 1.0
            A = np.vstack([A, np.hstack([-A[:, :j], A[:, [j]] * 0.0, -A[:, j + 1 :]])])
            y = np.concatenate([y, y])
        cases.append((A, y, intercept, "completely" if complete else "quasi-completely"))
    return cases


@pytest.mark.parametrize(("A", "y", "intercept", "how"), separated_cases())
def test_separated_classes_are_answered_by_a_sentence(A: FloatArray, y: FloatArray, intercept: bool, how: str) -> None:
    with pytest.raises(InputError, match=r"separates? the two classes") as raised:
        solve(Problem.prepared(A, y, min(2, A.shape[1]), loss="logistic", lam=0.0, intercept=intercept))
    said = str(raised.value)
    assert f" {how}" in said or how == "quasi-completely"
    assert "give a positive lam" in said


def test_the_columns_that_separate_are_named() -> None:
    rng = np.random.default_rng(5)
    A, y = rng.normal(size=(40, 5)), np.where(np.arange(40) % 2 == 0, 1.0, -1.0)
    A[:, 3] = 0.0
    A[[0, 2, 4], 3] = 1.0
    with pytest.raises(InputError, match=r"feature 3 separates the two classes quasi-completely \(3 of 40 rows"):
        solve(Problem(A, y, 2, loss="logistic", lam=0.0))


def test_a_ridge_put_in_later_is_one_on_the_columns_as_they_are() -> None:
    rng = np.random.default_rng(7)
    A = rng.normal(size=(50, 4)) * [1.0, 100.0, 0.01, 1.0]
    y = np.where(A[:, 0] + rng.normal(size=50) > 0, 1.0, -1.0)
    problem = Problem(A, y, 2, loss="logistic", lam=0.0)
    assert problem.describe()["lam"] == 0.0
    ridged, same = problem.replace(lam=0.5), Problem(A, y, 2, loss="logistic", lam=0.5)
    assert ridged.hash == same.hash
    assert solve(ridged).support == solve(same).support
    assert problem.replace(k=3).hash == Problem(A, y, 3, loss="logistic", lam=0.0).hash


def test_what_is_taken_off_covers_the_ridge() -> None:
    rng = np.random.default_rng(8)
    A, y = rng.normal(size=(60, 5)), rng.normal(size=60)
    objective_before = Problem(A, y, 2, loss="huber", lam=1.0, delta=1.0).objective
    free = without_ridge(objective_before.replace(lam=0.0))
    assert free.ridge_limits is not None
    sizes = free.ridge_limits.limits.size
    assert free.ridge_limits.taken >= 0.5 * free.lam * float(sizes @ sizes)
    assert free.ridge_limits.taken <= 1e-8 * free.at_zero


def test_the_file_names_the_point_of_its_limits(tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    A, y = rng.normal(size=(30, 4)), rng.normal(size=30)
    problem = Problem(A, y, 2, loss="huber", lam=0.0)
    solve(problem, proof=tmp_path / "proof.exsel")
    proof = read_proof(tmp_path / "proof.exsel")
    assert len(proof.limit_point) == 1


@pytest.mark.parametrize("loss", ["huber", "logistic"])
@pytest.mark.parametrize("weights", [None, [1e30, 1e-30, 0.0, 1.0]])
def test_limits_at_the_edges_of_the_domain(loss: str, weights: list[float] | None) -> None:
    """Whatever the numbers are, limits are found or they are not."""
    labels = [1.0, -1.0, 1.0, -1.0]
    for columns in ([[1e60, 1e-60], [-1e60, 0.0], [3.0, -1e-60], [-2.0, 1e-60]], [[1.0, 2.0]] * 4, [[0.0, 0.0]] * 4):
        y = labels if loss == "logistic" else [1e60, -1e60, 1e-60, 0.0]
        for delta in (1e-60, 1.0, 1e60):
            r = Regression(columns, y, 1, LOSSES[loss](delta), 0.0, weights, True)
            assert len(sizes(r, {})) in (0, 2)
            made = None if weights is None else np.array(weights)
            given = GivenInstance(np.array(columns), np.array(y), 1, loss, 0.0, delta, weights=made, intercept=True)
            found = radii(given.plain, np.zeros(2))
            assert found is None or np.all(found.size >= 0.0)


def test_a_file_without_limits_proves_nothing(tmp_path: Path) -> None:
    rng = np.random.default_rng(10)
    A, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    problem = Problem(A, y, 3, loss="huber", lam=0.0)
    solve(problem, proof=tmp_path / "proof.exsel")
    proof = read_proof(tmp_path / "proof.exsel")
    assert verify(proof, instance_of(problem)).verified
    assert verify(replace(proof, limit_point=np.array([99], np.int32)), instance_of(problem)).lower == 0.0
    assert not verify(replace(proof, lower=proof.upper * 1.001), instance_of(problem)).verified


def with_telling_column(seed: int) -> dict[str, Any]:
    """A random case, and before its columns one that separates the classes, or one that two others make."""
    given = ridgeless_rows(seed)
    A, y = given["A"], given["y"]
    more = y * (1.0 + np.arange(len(y)) % 3) if given["loss"] == "logistic" else A[:, 0] + A[:, -1]
    return given | {"A": np.column_stack([more, A]), "k": min(given["k"], 2)}


@pytest.mark.parametrize("seed", sample(24, 24))
def test_searches_and_proofs_without_an_excluded_column_agree_with_brute_force(seed: int, tmp_path: Path) -> None:
    given = with_telling_column(seed)
    problem = ridgeless_problem(given, force_out=[0])
    if problem is None:  # what is left has no best model either
        assert ridgeless_problem(given | {"A": given["A"][:, 1:]}) is None
        return
    file = tmp_path / "proof.exsel"
    result, best = solve(problem, proof=file, threads=1), brute_force(given | {"A": given["A"][:, 1:]})
    assert result.lower <= best * (1.0 + 1e-12) + 1e-300
    assert best * (1.0 - 1e-9) <= result.upper
    assert result.upper - result.lower <= 2e-6 * max(best, 0.01 * problem.null_objective)
    verdict = verify(read_proof(file), instance_of(problem))
    assert verdict.verified, verdict.reason
    assert verdict.lower <= best * (1.0 + 1e-12) + 1e-300
    if given["A"].size <= 80:
        weights = None if given["weights"] is None else given["weights"].tolist()
        delta = given["delta"] if given["loss"] == "huber" else 1.0
        rest = {"weights": weights, "level": given["intercept"], "scale": given["scale"], "force_out": [0]}
        A, y = given["A"].tolist(), given["y"].tolist()
        assert check(file.read_bytes(), A, y, problem.k, given["loss"], 0.0, delta, **rest) == ""


def separated() -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(3)
    y = np.where(np.arange(60) % 2 == 0, 1.0, -1.0)
    return np.column_stack([2.0 * y, rng.normal(size=(60, 3))]), y


def test_a_column_that_separates_is_refused_again_once_it_may_be_chosen() -> None:
    A, y = separated()
    problem = Problem(A, y, 2, loss="logistic", lam=0.0, force_out=[0])
    alone = Problem(A[:, 1:], y, 2, loss="logistic", lam=0.0)
    assert solve(problem).upper == pytest.approx(solve(alone).upper, rel=1e-9)
    assert problem.replace(force_out=[0, 1]).force_out == (0, 1)
    with pytest.raises(InputError, match="feature 0 separates the two classes completely"):
        problem.replace(force_out=[1])


def test_a_group_that_separates_may_be_excluded() -> None:
    A, y = separated()
    groups = {"telling": [0, 1], "other": [2], "third": [3]}
    with pytest.raises(InputError, match="feature 0 separates"):
        Problem(A, y, 1, groups=groups, loss="logistic", lam=0.0)
    problem = Problem(A, y, 1, groups=groups, loss="logistic", lam=0.0, force_out=["telling"])
    alone = Problem(A[:, 2:], y, 1, loss="logistic", lam=0.0)
    assert solve(problem).upper == pytest.approx(solve(alone).upper, rel=1e-9)
