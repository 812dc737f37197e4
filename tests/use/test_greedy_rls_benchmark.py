"""The benchmarks of greedy RLS run at their smallest, and their shortcuts compute what they stand for."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from leave_one_out import leave_one_out, random_data

from benchmarks.greedy_rls import reference
from exactsel_heuristics.greedy_rls import select_path

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def benchmarks(monkeypatch):
    """The modules of the benchmark; ``benchmarks`` is not an installed package."""
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.greedy_rls import accuracy, commands, data, scaling

    return SimpleNamespace(accuracy=accuracy, commands=commands, data=data, scaling=scaling)


@pytest.fixture
def tiny_data(tmp_path, monkeypatch):
    """Stand-ins for the real data: two informative columns among eight."""
    for number, name in enumerate(("australian", "german.numer", "colon-cancer")):
        rng = np.random.default_rng(number)
        A, y = rng.normal(size=(60, 8)), np.where(rng.random(60) < 0.4, 1, -1)
        A[:, 3] += 2.0 * y
        A[:, 6] -= 2.0 * y
        np.savez(tmp_path / f"{name}.npz", A=A, y=y)
    monkeypatch.setenv("EXACTSEL_DATA", str(tmp_path))


def run(benchmarks, *arguments):
    result = CliRunner().invoke(benchmarks.commands.main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def cells(table):
    """The rows of a Markdown table by column name."""
    head, _, *body = (
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("|")
    )
    return [dict(zip(head, row, strict=True)) for row in body]


@pytest.mark.parametrize("command", ["scaling", "comparison"])
def test_the_timings_write_their_table(benchmarks, tmp_path, command):
    out = tmp_path / "new" / "table.md"
    output = run(benchmarks, command, "--quick", "--out", str(out))
    assert out.read_text(encoding="utf-8") in output
    rows = cells(output)
    assert len(rows) == 2
    assert all(row.get("same path", "yes") == "yes" for row in rows)


@pytest.mark.usefixtures("tiny_data")
def test_accuracy_writes_tables_and_a_plot(benchmarks, tmp_path):
    out, plot = tmp_path / "table.md", tmp_path / "curves.png"
    output = run(benchmarks, "accuracy", "--quick", "--bias", "--out", str(out), "--plot", str(plot))
    tables = out.read_text(encoding="utf-8").split("###")[1:]
    assert [table.split(",")[0] for table in tables] == [
        " Accuracy: australian",
        " Accuracy: colon-cancer",
        " Accuracy: german.numer",
    ]
    for table in (tables[0], tables[2]):
        row = cells(table)[1]
        assert row["features"] == "2"
        assert float(row["greedy RLS"]) > float(row["random selection"])
        assert float(row["greedy RLS"]) > 0.8
    assert "features | greedy RLS" in output
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_any_two_classes_will_do(benchmarks, tmp_path, monkeypatch):
    monkeypatch.delenv("EXACTSEL_DATA", raising=False)
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 90)
    A = rng.normal(size=(90, 5))
    A[:, 2] += 3.0 * (y == 2)
    np.savez(tmp_path / "digits.npz", A=A, y=y)
    np.savez(tmp_path / "two.npz", A=A, y=(y == 2).astype(int))
    arguments = ["accuracy", "--quick", "--folder", str(tmp_path), "--data", "all"]
    output = run(benchmarks, *arguments)
    assert "digits is skipped: its y has 3 different values" in output
    assert "### Accuracy: two, criterion zero-one" in output
    told = run(benchmarks, *arguments, "--positive", "2")
    assert "### Accuracy: digits, 2 or not, criterion zero-one" in told
    assert "two is skipped: its y has no 2" in told
    assert cells(output) == cells(told), "the same labels in two spellings"
    assert "german.numer is skipped: there is no" in run(benchmarks, *arguments[:-2])
    assert len(cells(run(benchmarks, *arguments[:1], "--steps", "2", *arguments[2:-1], "two"))) == 2


def test_classes_that_cannot_be_folded_are_skipped(benchmarks, tmp_path):
    y = np.repeat([0.0, 1.0], [38, 2])
    np.savez(tmp_path / "rare.npz", A=np.random.default_rng(0).normal(size=(40, 3)), y=y)
    output = run(benchmarks, "accuracy", "--folder", str(tmp_path), "--data", "rare")
    assert "rare is skipped: its smaller class has 2 rows, fewer than the 10 folds" in output


def test_missing_data_are_skipped_in_a_sentence(benchmarks, tmp_path, monkeypatch):
    monkeypatch.setenv("EXACTSEL_DATA", str(tmp_path))
    assert "colon-cancer is skipped: there is no" in run(benchmarks, "accuracy", "--data", "colon-cancer")
    monkeypatch.delenv("EXACTSEL_DATA")
    assert "EXACTSEL_DATA does not name a folder" in run(benchmarks, "accuracy", "--data", "australian")


@pytest.mark.parametrize(("n", "d"), [(30, 6), (6, 10)])
def test_the_shortcuts_of_the_benchmark(benchmarks, n, d):
    """Models on leading columns, their leave-one-out accuracies, and the choice of lam, each against its definition."""
    A, y = random_data(14, n, d, "zero-one")
    coefficients = benchmarks.accuracy.ridge_path(A, y, 0.3)
    shares = benchmarks.accuracy.leave_one_out_accuracies(A, y, 0.3, coefficients)
    for m in range(1, d + 1):
        np.testing.assert_allclose(coefficients[m - 1, :m], reference.train(A[:, :m], y, 0.3), atol=1e-10)
        errors = reference.retrained_errors(A, y, 0.3, list(range(m)))
        assert shares[m - 1] == np.mean(y * (y - errors) > 0.0)
    lams = benchmarks.accuracy.LAMS
    keys = [reference.criterion_key(leave_one_out(A, y, lam), y, "zero-one") for lam in lams]
    assert benchmarks.accuracy.chosen_lam(A, y) == lams[keys.index(min(keys))]


def test_the_exponent_of_growth_and_the_bytes_moved(benchmarks):
    scaling = benchmarks.scaling
    assert scaling.exponent((10, 20, 40), (0.1, 0.4, 1.6)) == pytest.approx(2.0)
    assert np.isnan(scaling.exponent((10,), (0.1,)))
    assert scaling.moved(10, 3, 2, 3) == 8 * 10 * 3 * 2 * 3


@pytest.mark.parametrize("standardise", [False, True])
def test_test_data_take_the_scale_of_the_training_data(benchmarks, standardise):
    rng = np.random.default_rng(0)
    train, test = rng.normal(3.0, 2.0, (50, 4)), rng.normal(3.0, 2.0, (10, 4))
    train[:, 2] = test[:, 2] = 7.0
    a, b = benchmarks.data.scaled(train, test, standardise)
    assert np.all(a[:, 2] == 0.0)
    rest = a[:, [0, 1, 3]]
    if standardise:
        np.testing.assert_allclose([rest.mean(axis=0), rest.std(axis=0)], [[0.0] * 3, [1.0] * 3], atol=1e-12)
    else:
        np.testing.assert_allclose([rest.min(axis=0), rest.max(axis=0)], [[-1.0] * 3, [1.0] * 3])
    np.testing.assert_allclose(np.diff(b[:, 0]) / np.diff(test[:, 0]), np.ptp(a[:, 0]) / np.ptp(train[:, 0]))


@pytest.mark.skipif("EXACTSEL_DATA" not in os.environ, reason="EXACTSEL_DATA names no folder")
def test_the_caches_do_not_drift_on_the_whole_path_of_colon_cancer(benchmarks):
    table = benchmarks.data.load("colon-cancer")
    A, y, lam = benchmarks.data.scaled(table.A, table.A, standardise=True)[0], table.y, 2.0**-15
    found = select_path(A.T, y, lam, 2000)
    assert len(found.columns) == 2000
    for m in (1, 10, 50, 61, 62, 100, 500, 2000):
        S = A[:, found.columns[:m]]
        G = np.linalg.inv(S @ S.T + lam * np.eye(62))
        assert found.errors[m - 1] == pytest.approx(np.sum((G @ y / np.diagonal(G)) ** 2), rel=1e-8)
