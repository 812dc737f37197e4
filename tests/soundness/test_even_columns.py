"""Columns of even length: the same search in any units at lam = 0, and what goes by column where there is a ridge."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from exact_fits import exact_fit
from samples import sample

from exactsel import Problem, best_model, near_optimal, solve, verify
from exactsel.algebra.curvature import balanced_curvature, has_curvature, uniform_curvature
from exactsel.problem.boxed import boxed
from exactsel.problem.column_scales import with_even_columns
from exactsel.problem.model import prepared_coef, searched_coef
from exactsel.problem.reduction import Reduction
from exactsel.report.path import path_table
from exactsel.solving.outcome import Termination
from exactsel.studies.best_known import KnownModels
from exactsel.studies.criteria import Compared
from exactsel.studies.path import SolutionPath
from exactsel_certificates.formula import Instance
from exactsel_certificates.rigorous import leaves_convex


def table(seed, n=20, d=5):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    return A, A[:, 0] - A[:, 1] + 0.5 * rng.standard_normal(n), 2.0 ** rng.integers(-60, 60, d)


def told(result):
    return result.tree_hash, result.nodes, result.claim, result.upper, result.lower, result.support, result.source


@pytest.mark.parametrize("seed", sample(6, 6))
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["quadratic", "huber"])
def test_powers_of_two_change_neither_tree_nor_proof(loss, intercept, seed, tmp_path):
    A, y, units = table(seed)
    found = []
    for scale in (np.ones(5), units):
        problem = Problem.prepared(A * scale, y, 3, loss=loss, lam=0.0, intercept=intercept, delta=None)
        result = solve(problem, proof=tmp_path / "run.exsel")
        verdict = verify(problem, tmp_path / "run.exsel")
        assert verdict.verified, verdict
        found.append((told(result), verdict.lower, (result.coef * scale).tolist(), result.model.intercept))
    assert found[0] == found[1]


@pytest.mark.parametrize("seed", sample(6, 6))
def test_limits_of_coefficients_are_in_the_units_of_the_table(seed, tmp_path):
    A, y, units = table(seed)
    found = []
    for scale in (np.ones(5), units):
        limits = [(j, -0.5 / scale[j], 0.75 / scale[j]) for j in range(3)]
        problem = boxed(Problem.prepared(A * scale, y, 3, intercept=True), bounds=limits)
        result = solve(problem, proof=tmp_path / "run.exsel")
        assert verify(problem, tmp_path / "run.exsel").verified
        assert all(low <= result.model.coef[j] <= high for j, low, high in limits)
        found.append((told(result), (result.coef * scale).tolist()))
    assert found[0] == found[1]


def test_coefficients_go_there_and_back():
    A, y, units = table(0)
    problem = Problem(A * units, y, 2)
    coef = np.array([0.3, 0.0, -1e-7, 2.0, 0.0])
    assert np.array_equal(prepared_coef(problem, searched_coef(problem, coef)), coef)
    assert with_even_columns(problem.objective) is problem.objective
    means = problem.norms / np.sqrt(20)
    assert np.all((means > 0.7) & (means < 1.42))
    assert problem.replace(lam=1.0).lam == 1.0
    assert np.array_equal(problem.replace(lam=1.0).A, A * units)


@pytest.mark.parametrize("n", [20, 4])
def test_another_ridge_finds_the_same_gram_matrix(n):
    A, y, units = table(2, n=n)
    problem = Problem(A * units, y, 2)
    kept = problem.gram
    found, anew = problem.replace(lam=0.5).gram, Problem(A * units, y, 2, lam=0.5).gram
    assert all(np.array_equal(one, other) for one, other in zip(found, anew, strict=True))
    assert kept is problem.gram


def test_another_ridge_keeps_the_rows_that_reduced_ones_stand_for():
    A, y, _ = table(2)
    problem = Problem(A, y, 2).standing_for(Reduction(100, 100.0, np.full(6, 1e-9)))
    assert problem.replace(lam=0.5).objective.reduction is problem.objective.reduction


@pytest.mark.parametrize("make", [balanced_curvature, uniform_curvature])
def test_curvature_of_columns_of_any_length(make):
    A, _, _ = table(3, n=30)
    units = 10.0 ** np.array([-9, 0, 9, 4, -4])
    H = (A * units).T @ (A * units)
    assert has_curvature(H, 30)
    D = make(H, 30)
    assert D is not None
    assert leaves_convex(Instance(A * units, np.ones(30), 5, "quadratic", 0.0), D)
    # As much of each column as where all are of one length, but for what Newton's method stops at.
    share = D / units**2 / make(A.T @ A, 30)
    assert np.all((share > 0.2) & (share < 5.0))
    assert not leaves_convex(Instance(A * units, np.ones(30), 5, "quadratic", 0.0), D * np.array([1, 1, 1, 1, 1e3]))


@pytest.mark.parametrize("seed", sample(20, 20))
@pytest.mark.parametrize("lam", [0.0, 1e-3])
def test_a_fit_is_as_good_as_one_by_orthogonal_factors(lam, seed):
    rng = np.random.default_rng(seed)
    A = rng.integers(-9, 10, (12, 4)) * 10.0 ** rng.integers(-12, 12, 4)
    A[:, 3] = A[:, 2] * (1.0 + 1e-6 * rng.standard_normal(12)) if seed % 2 else A[:, 3]
    problem = Problem(A, rng.integers(-9, 10, 12).astype(float), 4, lam=lam)
    for columns in ([0], [1, 2], [2, 3], [0, 1, 2, 3]):
        lengths = np.sqrt(np.sum(problem.AT.T[:, columns] ** 2, axis=0) + problem.lam)
        matrix = np.vstack([problem.AT.T[:, columns], np.sqrt(problem.lam) * np.eye(len(columns))]) / lengths
        coef, target = np.zeros(4), np.append(problem.y, np.zeros(len(columns)))
        coef[columns] = np.linalg.lstsq(matrix, target, rcond=1e-13)[0] / lengths
        value = problem.fit(columns).value
        room = (1e-9 if seed % 2 else 1e-12) * problem.null_objective
        assert value <= problem.objective(coef) + room
        # Of nearly equal columns rounded coefficients alone cost more than the exact ones, and sums are rounded.
        least = float(exact_fit(problem, columns))
        assert least - room <= value <= least + room


class TestAdvice:
    @staticmethod
    def problem(**options):
        # Of two long columns that are the same a ridge alone says how large coefficients are.
        A, y, _ = table(3)
        A[:, 0] *= 1e15
        A[:, 1] = A[:, 0]
        return Problem.prepared(A, y, 2, intercept=True, loss="huber", lam=1e-3, **options)

    def test_it_says_what_to_do_and_that_helps(self):
        result = solve(self.problem())
        assert result.termination is Termination.PRECISION_LIMIT
        assert result.lower >= 0.0
        assert "standardize=True" in result.advice
        assert f"advice       {result.advice}" in str(result)
        assert result.as_dict()["advice"] == result.advice
        again = solve(self.problem(scale=True))
        assert again.reached
        assert again.advice == ""

    def test_on_the_command_line(self, tmp_path, capsys):
        from exactsel.cli.main import main

        A, y, _ = table(3)
        A[:, 0] *= 1e15
        A[:, 1] = A[:, 0]
        file = tmp_path / "uneven.csv"
        rows = [",".join(map(repr, map(float, (*row, target)))) for row, target in zip(A, y, strict=True)]
        file.write_text("\n".join(["a,b,c,d,e,y", *rows]))
        command = ["solve", str(file), "--target", "y", "-k", "2", "--loss", "huber", "--lam", "1e-3", "--intercept"]
        for more, code in ((), 1), (("--scale",), 0):
            with pytest.raises(SystemExit) as ended:
                main([*command, *more])
            assert ended.value.code == code
            assert ("--scale" in capsys.readouterr().err) == (code == 1)

    def test_lists_and_paths_say_it_too(self):
        A, y, _ = table(3)
        A[:, 0] *= 1e15
        problem = Problem.prepared(A, y, 2, intercept=True, loss="huber", lam=1e-3)
        assert problem.objective.ridge_limits is not None
        result = replace(solve(problem), termination=Termination.PRECISION_LIMIT)
        assert result._column_ratio > 1e14
        best = best_model(problem, top=2)
        assert "advice" not in str(best)
        assert f"advice       {result.advice}" in str(replace(best, termination="precision_limit"))
        near = near_optimal(problem, tau=0.1)
        assert f"advice       {result.advice}" in str(replace(near, termination="precision", complete=False))
        assert f"advice: {result.advice}" in path_table(Compared(SolutionPath((result, result))))


def test_a_fit_that_is_too_bad_makes_a_list_incomplete():
    A, y, _ = table(1)
    problem = Problem(A, y, 1, lam=0.1)
    from exactsel.studies.size_criterion import SizeCriterion

    known = KnownModels(problem, SizeCriterion.of(problem, "bic"), [0, 1], lambda: False)
    for support in ((0,), (1,), (2,)):
        known.note(support, problem.fit(support).value)
    threshold = known.value((1,))
    assert not known.doubted(threshold)
    bad = problem.fit((0,))
    known.fits[0,] = type(bad)(bad.columns, bad.coef * 0.0, problem.null_objective, 0.0)
    known.models[0,] = 2.0 * problem.null_objective
    assert known.doubted(threshold)


@pytest.mark.parametrize("order", ["C", "F"])
def test_columns_that_are_even_already_are_not_copied_and_the_callers_never_changed(order):
    rng = np.random.default_rng(4)
    A = np.array(rng.standard_normal((40, 6)), order=order)
    A /= np.sqrt(np.mean(A**2, axis=0))
    y, before = rng.standard_normal(40), A.copy()
    problem = Problem(A, y, 2, lam=0.0)
    assert np.shares_memory(problem.AT, problem.preparation.AT)
    assert not np.shares_memory(problem.AT, A)
    solve(problem, signals=())
    assert np.array_equal(A, before)
    assert A.flags.writeable
