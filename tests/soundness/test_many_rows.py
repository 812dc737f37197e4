"""Nearly exact fits of many rows: what rounding takes of a bound does not grow with them, and the bound holds."""

from __future__ import annotations

import math
import os
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from fractions_of_doubles import exact_optimum

from benchmarks.tall.growth import main as growth
from exactsel import Huber, Problem, solve, verify
from exactsel.bounds.apg import AcceleratedGradientBound
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.fit import FitBound
from exactsel.kernels.linalg import BLOCK
from exactsel_certificates.formula import Instance
from exactsel_certificates.rigorous import RigorousBounds
from exactsel_certificates.standalone import check

SOLVERS = (FitBound(), AcceleratedGradientBound())


def flow(times=1, noise=0.03):
    """y' of the Lorenz system on products of its coordinates, whose large parts cancel; the rows so many times."""
    rng = np.random.default_rng(0)
    x, y, z = rng.standard_normal((3, 250)) * [[8.0], [9.0], [8.0]] + [[0.0], [0.0], [24.0]]
    A = np.column_stack([np.ones(250), x, y, z, x * x, x * y, x * z, y * y, y * z, z * z])
    slope = x * (28.0 - z) - y + noise * rng.standard_normal(250)
    return np.tile(A, (times, 1)), np.tile(slope, times)


def lost(problem, solver):
    """What a bound on all columns misses of the objective, as a part of that of the empty model."""
    bound = solver.prepare(problem, BoundOptions(force_quit=False))
    found = bound.tighten(problem.root_state[None], [None], np.inf, np.inf).answers.bound[0]
    return (problem.fit(range(problem.k)).value - found) / problem.null_objective


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: solver.name)
def test_what_rounding_takes_of_a_bound_does_not_grow_with_the_rows(solver):
    """A hundred times as many rows took a hundred times as much."""
    few, many = (
        lost(Problem(A[:, [1, 2, 6]].copy(), y, 3, lam=0.0), solver) for A, y in (flow(1), flow(100))
    )  # fmt: skip
    assert 0 < few < 1e-11
    assert many < 1.5 * few


@pytest.mark.parametrize(
    ("loss", "adjusted"),
    [("huber", False), ("logistic", False), ("squared_hinge", False), ("poisson", False), ("huber", True)],
)
def test_nor_does_it_with_other_losses_once_there_are_more_rows_than_in_a_block(loss, adjusted):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((BLOCK, 3))
    z = A @ [1.0, -0.5, 0.3]
    y = {"huber": z + 1e-3 * rng.standard_normal(BLOCK), "poisson": rng.poisson(np.exp(z)).astype(float)}.get(
        loss, np.where(z + rng.standard_normal(BLOCK) > 0, 1.0, -1.0)
    )
    share = []
    for times in (1, 16):
        more = {"weights": np.ones(BLOCK * times) * 2.0, "intercept": True} if adjusted else {}
        problem = Problem.prepared(
            np.tile(A, (times, 1)), np.tile(y, times), 3, loss=Huber(1.0) if loss == "huber" else loss,
            lam=1e-3 * times, **more,
        )  # fmt: skip
        fit = problem.fit((0, 1, 2))
        bound = problem.objective.dual_bound(fit.coef, np.full(3, 2, dtype=np.uint8), 3)
        share.append((fit.value - bound) / problem.null_objective)
    assert 0 < share[0] < 1e-10
    assert share[1] < 1.2 * share[0]


@pytest.mark.parametrize("times", [1, 40])
def test_a_nearly_exact_fit_is_proven_whatever_the_rows(tmp_path, times):
    A, y = flow(times)
    file = tmp_path / "p.exsel"
    problem = Problem(A, y, 3, lam=0.0)
    result = solve(problem, proof=file)
    assert result.support == (1, 2, 6)
    assert result.reached
    assert result.absolute_gap <= 1e-11 * result.null_objective
    assert verify(problem, file).verified
    if times == 1:
        assert check(file.read_bytes(), A.tolist(), y.tolist(), 3, "quadratic", 0.0, math.inf) == ""


@pytest.mark.parametrize("rows", [40, 700])
def test_bounds_of_nearly_exact_fits_are_below_the_exact_objective(rows):
    """The search's and the checker's, at points near the best one and far from it."""
    rng = np.random.default_rng(rows)
    for trial in range(6):
        A = rng.standard_normal((rows, 3)) * 10.0 ** rng.uniform(-1, 1, 3)
        A[:, 1] = A[:, 0] * (1.0 + 10.0 ** -rng.integers(1, 4) * rng.standard_normal(rows))
        y = A @ (rng.standard_normal(3) / np.abs(A).max(axis=0)) + 10.0 ** -rng.integers(2, 9) * rng.standard_normal(
            rows
        )
        best = exact_optimum(SimpleNamespace(A=A, y=y, lam=0.0, k=3))
        problem = Problem(A, y, 3, lam=0.0)
        for solver in SOLVERS:
            bound = solver.prepare(problem, BoundOptions(force_quit=False))
            found = bound.tighten(problem.root_state[None], [None], np.inf, np.inf).answers.bound[0]
            assert Fraction(float(found)) <= best, (trial, solver.name)
        plain = RigorousBounds(Instance(A, y, 3, "quadratic", 0.0))
        curvature = np.full(3, 1e-9 * np.linalg.eigvalsh(A.T @ A)[-1])
        x = problem.fit((0, 1, 2)).coef
        for W in (x, x * (1.0 + 1e-9), 0.5 * x, np.zeros(3)):
            base = plain.at_models(W[None], curvature).base[0]
            assert Fraction(float(base)) <= exact_base(A, y, W, curvature)


def exact_base(A, y, W, curvature):
    """||y||^2/2 - (||AW||^2 - sum_j D_j W_j^2)/2."""
    x, total = [Fraction(w) for w in W.tolist()], Fraction(0)
    for row, target in zip(A.tolist(), y.tolist(), strict=True):
        z = sum((Fraction(a) * w for a, w in zip(row, x, strict=True)), Fraction(0))
        total += Fraction(target) ** 2 - z * z
    return (total + sum(Fraction(D) * w * w for D, w in zip(curvature.tolist(), x, strict=True))) / 2


@pytest.mark.skipif("EXACTSEL_DATA" not in os.environ, reason="EXACTSEL_DATA names no folder")
@pytest.mark.parametrize("times", [1, 10, 40])
def test_the_flow_that_was_reported_is_proven(tmp_path, times):
    with np.load(Path(os.environ["EXACTSEL_DATA"]) / "reports" / "lorenz.npz", allow_pickle=False) as arrays:
        problem = Problem(np.tile(arrays["A"], (times, 1)), np.tile(arrays["y"], times), 3, lam=0.0)
    result = solve(problem, proof=tmp_path / "p.exsel")
    assert result.reached
    assert result.upper == pytest.approx(0.4026677403 * times, rel=1e-9)
    assert verify(problem, tmp_path / "p.exsel").verified


def test_the_table_of_the_growth():
    told = CliRunner().invoke(growth, ["--quick"])
    assert told.exit_code == 0
    assert told.output.count("| within_eps | yes |") == 3
