"""Searches on columns stored by their entries: as with whole ones, threads, and sparse input by every way in."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from click.testing import CliRunner
from prepared_cases import entries_case

from exactsel import Problem, solve
from exactsel.cli.main import cli
from exactsel.kernels.columns import PLACE
from exactsel.problem import storing

LOSSES = ("huber", "logistic")


def test_most_of_the_matrix_of_conformance_is_sparse():
    stored = [entries_case(seed)[0].raw.AT.where[:, PLACE] < 0 for seed in range(40)]
    assert np.mean(np.concatenate(stored)) > 0.4


def many_rows(seed, loss="logistic", n=600):
    """A problem with as many rows as it takes for columns to be stored by their entries, beside a whole one."""
    rng = np.random.default_rng(seed)
    A = (rng.random((n, 9)) < 0.12) * np.where(np.arange(9) % 2, 1.0, rng.standard_normal((n, 9))) + 0.0
    A[:, 8] = rng.standard_normal(n)
    signal = 2.0 * A[:, 1] - 3.0 * A[:, 3] + A[:, 8] + rng.standard_normal(n)
    return A, np.where(signal > 0, 1.0, -1.0) if loss == "logistic" else signal


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_same_as_with_whole_columns(loss, intercept, monkeypatch):
    A, y = many_rows(1, loss)
    results = []
    for least in (1, 10**9):
        monkeypatch.setattr(storing, "LEAST_ROWS", least)
        problem = Problem.prepared(A, y, 3, loss=loss, lam=0.5, intercept=intercept, scale=intercept)
        assert np.count_nonzero(problem.raw.AT.where[:, PLACE] < 0) == (8 if least == 1 else 0)
        results.append(solve(problem, signals=()))
    sparse, whole = results
    assert sparse.support == whole.support
    assert sparse.upper == pytest.approx(whole.upper, rel=1e-12)
    assert sparse.lower == pytest.approx(whole.lower, rel=1e-6)
    assert sparse.lower <= whole.upper


@pytest.mark.parametrize("threads", [2, 3])
def test_the_tree_does_not_depend_on_threads(threads):
    A, y = many_rows(2)
    problem = Problem.prepared(A, y, 3, loss="logistic", lam=1.0, intercept=True)
    hashes = {solve(problem, threads=count, signals=()).tree_hash for count in (1, threads)}
    assert len(hashes) == 1


@pytest.mark.parametrize("ending", ["svm", "mtx", "npz"])
def test_sparse_files(ending, tmp_path):
    A, y = many_rows(3)
    data, target, proof = tmp_path / f"d.{ending}", tmp_path / "y.npy", tmp_path / "run.exsel"
    if ending == "svm":
        pytest.importorskip("sklearn.datasets").dump_svmlight_file(A, y, str(data))
    elif ending == "mtx":
        scipy.io.mmwrite(data, scipy.sparse.coo_matrix(A), precision=17)
    else:
        scipy.sparse.save_npz(data, scipy.sparse.csc_matrix(A))
    np.save(target, y)
    given = [data, "-k", 2, "--loss", "logistic", "--lam", 1, *([] if ending == "svm" else ["--target", target])]
    for command in (["solve", *given, "--proof", proof], ["verify", proof, *given]):
        done = CliRunner().invoke(cli, [*map(str, command)])
        assert done.exit_code == 0, done.output


@pytest.mark.parametrize("kind", ["csr_matrix", "csc_array", "coo_array"])
def test_sparse_matrices(kind):
    A, y = many_rows(4)
    sparse = Problem(getattr(scipy.sparse, kind)(A), y, 2, loss="logistic", lam=1.0)
    dense = Problem(A, y, 2, loss="logistic", lam=1.0)
    assert sparse.hash == dense.hash
    for mine, theirs in zip(sparse.raw, dense.raw, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert solve(sparse, signals=()).tree_hash == solve(dense, signals=()).tree_hash
