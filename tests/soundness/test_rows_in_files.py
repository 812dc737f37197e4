"""Columns that stay in their file: the answers are those of the same numbers in memory, and no block is left out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from samples import sample

import exactsel
import exactsel_mapped as mapped
from exactsel.bounds import minorant as minorants
from exactsel.data.instance import Instance, read_instance, write_instance
from exactsel.kernels.refit import newton_refit
from exactsel.problem import objective as objectives
from exactsel.problem import rows as row_sums
from exactsel.problem.storing import stored_columns
from exactsel_certificates import minorant as checked_minorants
from exactsel_certificates import sums
from exactsel_certificates.given import GivenInstance, objective_above
from exactsel_certificates.prepared import prepare
from exactsel_certificates.rigorous import RigorousBounds
from exactsel_mapped import is_kept, is_mapped

LOSSES = ("quadratic", "huber", "logistic")


def random_instance(seed, loss):
    """Few rows, some twice, with copies and constants among the columns; with weights, some zero, and intercept."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(3, 14)), int(rng.integers(1, 6))
    A = rng.integers(-3, 4, (n, d)) * float(rng.choice([1.0, 0.1, 1e4]))
    if d > 2:
        A[:, 1] = A[:, 0]
        A[:, 2] = rng.integers(0, 3)
    y = A.sum(axis=1) / max(1.0, np.abs(A).max()) + rng.standard_normal(n)
    if loss == "logistic":
        y = np.where(y > 0, 1.0, -1.0)
        y[:2] = -1.0, 1.0
    weights = None
    if rng.random() < 0.5:
        weights = rng.integers(0, 3, n).astype(float)
        weights[:2] = 1.0
    k, intercept = int(rng.integers(1, d + 1)), bool(rng.random() < 0.5)
    delta = 1.0 if loss == "huber" else None
    return Instance(A, y, k=k, lam=0.3, loss=loss, delta=delta, weights=weights, intercept=intercept)


def in_a_file(instance, folder):
    """The same, its rows taken in blocks of three."""
    file, step = folder / "rows.npz", 3

    def blocks():
        for first in range(0, len(instance.A), step):
            part = slice(first, first + step)
            both = (instance.A[part], instance.y[part])
            yield both if instance.weights is None else (*both, instance.weights[part])

    exactsel.gram(
        blocks(), k=instance.k, lam=instance.lam, loss="huber", intercept=instance.intercept, delta=instance.delta,
        out=file,
    )  # fmt: skip
    return read_instance(file)


def said(result):
    return result.support, result.upper, result.lower, result.coef.tolist(), result.claim


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", sample(12, 12))
def test_what_is_said_is_what_is_said_of_the_numbers_in_memory(tmp_path, loss, seed):
    instance = random_instance(seed, loss)
    stored = in_a_file(instance, tmp_path)
    scale = seed % 3 == 0
    near, far = instance.problem(scale=scale), stored.problem(loss=loss, delta=instance.delta, scale=scale)
    assert is_kept(stored.A)
    assert is_kept(far.A)
    assert far.hash == near.hash
    one, other = exactsel.solve(near), exactsel.solve(far)
    assert said(one) == said(other)
    for problem, name in ((near, "near"), (far, "far")):
        exactsel.solve(problem, proof=tmp_path / f"{name}.exsel")
    assert (tmp_path / "near.exsel").read_bytes() == (tmp_path / "far.exsel").read_bytes()
    one, other = (exactsel.verify(problem, tmp_path / "near.exsel") for problem in (near, far))
    assert one.verified
    assert other.verified
    assert {file.name for file in tmp_path.iterdir()} == {"rows.npz", "near.exsel", "far.exsel"}
    assert other.lower <= best_of(instance, scale) * (1.0 + 1e-9) + 1e-12


def best_of(instance, scale):
    """The optimum, by fits of all sets of columns."""
    problem = instance.problem(scale=scale)
    sets = itertools.combinations(range(problem.d), problem.k)
    return min(problem.fit(list(columns)).value for columns in sets)


@pytest.mark.parametrize("loss", ["huber", "logistic"])
@pytest.mark.parametrize("seed", sample(6, 6))
def test_sums_over_rows_are_of_all_rows_however_few_are_summed_at_a_time(tmp_path, monkeypatch, loss, seed):
    instance = random_instance(100 + seed, loss)
    problem = instance.problem()
    whole = exactsel.solve(problem)
    monkeypatch.setattr(sums, "BLOCK", 2)
    monkeypatch.setattr(mapped, "AT_ONCE", 5)
    monkeypatch.setattr(checked_minorants, "BLOCK", 3)
    monkeypatch.setattr(objectives, "ROWS_AT_ONCE", 2)
    monkeypatch.setattr(row_sums, "BLOCK", 2)
    monkeypatch.setattr(row_sums, "PART", 4)
    parts = exactsel.solve(instance.problem(), proof=tmp_path / "p.exsel")
    assert parts.upper == pytest.approx(whole.upper, rel=1e-9)
    assert parts.lower <= best_of(instance, False) * (1.0 + 1e-12) + 1e-12
    assert parts.lower == pytest.approx(whole.lower, rel=1e-8)
    assert exactsel.verify(problem, tmp_path / "p.exsel").verified


@pytest.mark.parametrize("loss", ["huber", "logistic"])
def test_the_checker_finds_the_same_few_rows_at_a_time(monkeypatch, loss):
    for seed in range(20):
        instance = random_instance(seed, loss)
        given = GivenInstance(
            instance.A, instance.y, instance.k, loss, 0.3, instance.delta or np.inf, weights=instance.weights,
            intercept=instance.intercept,
        )  # fmt: skip
        coef = np.random.default_rng(seed).standard_normal(instance.A.shape[1])
        found = []
        for many in (65_536, 2):
            monkeypatch.setattr(sums, "BLOCK", many)
            bounds = RigorousBounds(given.plain)
            slopes = bounds.gradients(coef[None])
            found.append((objective_above(given, coef), *bounds.at_duals(slopes)))
        for one, other in zip(*found, strict=True):
            assert one == pytest.approx(other, rel=1e-10, abs=1e-12)


def test_a_minorant_sums_all_rows(monkeypatch):
    problem = exactsel.Problem(*data(300), 2, loss="logistic", lam=0.1)
    whole = minorants.minorant(problem.objective, 1e3, np.zeros(4))
    monkeypatch.setattr(row_sums, "BLOCK", 16)
    monkeypatch.setattr(row_sums, "PART", 64)
    parts = minorants.minorant(problem.objective, 1e3, np.zeros(4))
    assert whole is not None
    assert parts is not None
    assert parts.threshold == pytest.approx(whole.threshold, rel=1e-9)
    assert pytest.approx(whole.quadratic.H, rel=1e-9) == parts.quadratic.H


def data(n):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((n, 4))
    return A, np.where(A[:, 0] + rng.standard_normal(n) > 0, 1.0, -1.0)


@pytest.mark.parametrize("levelled", [False, True])
def test_sparse_columns_lie_in_a_file_too(tmp_path, levelled):
    rng = np.random.default_rng(0)
    A = np.column_stack([
        rng.standard_normal(600), rng.random(600) < 0.1, np.where(rng.random(600) < 0.1, rng.standard_normal(600), 0.0),
        2.0 + (rng.random(600) < 0.2), np.ones(600),
    ])  # fmt: skip
    y = np.where(A[:, 0] + rng.standard_normal(600) > 0, 1.0, -1.0)
    write_instance(tmp_path / "in.npz", Instance(A, y, k=2, lam=1.0, loss="logistic", intercept=levelled))
    stored = in_a_file(read_instance(tmp_path / "in.npz"), tmp_path)
    near = stored_columns(np.ascontiguousarray(A.T), levelled)
    far = stored_columns(stored.A.T, levelled)
    assert all(np.array_equal(one, other) for one, other in zip(near[0], far[0], strict=True))
    assert np.array_equal(near[1], far[1])
    assert all(is_mapped(part) for part in (far[0].whole, far[0].rows, far[0].values))
    assert not far[0].whole.flags.writeable
    problems = read_instance(tmp_path / "in.npz").problem(), stored.problem(loss="logistic")
    one, other = map(exactsel.solve, problems)
    assert said(one) == said(other)
    signatures = len(newton_refit.signatures) if hasattr(newton_refit, "signatures") else 0
    problems[1].fit([0, 1])
    assert signatures == (len(newton_refit.signatures) if hasattr(newton_refit, "signatures") else 0)


def test_untouched_columns_are_prepared_where_they_are(tmp_path):
    stored = in_a_file(random_instance(4, "huber"), tmp_path)
    made = prepare(stored.A, np.asarray(stored.y), "huber")
    assert np.shares_memory(made.AT, stored.A)
    assert not made.column_error.any()
    centred = prepare(stored.A, np.asarray(stored.y), "huber", intercept=True)
    assert is_mapped(centred.AT)
    assert not np.shares_memory(centred.AT, stored.A)
    in_memory = prepare(np.array(stored.A), np.asarray(stored.y), "huber", intercept=True)
    assert np.array_equal(centred.AT, in_memory.AT)
    assert np.array_equal(centred.column_error, in_memory.column_error)
