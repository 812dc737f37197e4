"""Every experiment of benchmarks/paper runs, at its smallest, and leaves a table."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

ROOT = Path(__file__).resolve().parents[2]

SMALL = ["--instances", "1", "--limit", "60"]
COMMANDS = {
    "cost-huber": ["cost", "--ks", "2", "--n", "20", "--d", "8", "--faithful", "1", *SMALL],
    "cost-logistic": ["cost", "--loss", "logistic", "--ks", "2", "--n", "40", "--d", "8", "--faithful", "1", *SMALL],
    "recovery-huber": ["recovery", "--ns", "20", "--d", "8", "--k", "2", *SMALL],
    "recovery-logistic": ["recovery", "--loss", "logistic", "--ns", "40", "--d", "8", "--k", "2", *SMALL],
    "recovery-huber-stronger": ["recovery", "--stronger", "--ns", "20", "--d", "8", "--k", "2", *SMALL],
    "ablation": ["ablation", "--ds", "8", "--n", "20", "--k", "2", *SMALL],
    "dual-solvers-huber": ["dual-solvers", "--ks", "2", "--n", "20", "--d", "8", *SMALL],
    "dual-solvers-logistic": ["dual-solvers", "--loss", "logistic", "--ks", "2", "--n", "40", "--d", "8", *SMALL],
    "real-housing-centred": [
        "real",
        "--data",
        "housing",
        "--centred",
        "--ks",
        "2",
        "--lams",
        "0.1",
        "--epss",
        "0",
        "--limit",
        "60",
    ],
    "real-boston": ["real", "--data", "boston", "--ks", "2", "--lams", "0.1", "--epss", "0,0.01", "--limit", "60"],
}


@pytest.fixture
def commands(monkeypatch):
    """The module with the command line; ``benchmarks`` is not an installed package."""
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.paper import commands

    return commands


@pytest.fixture
def housing(tmp_path, monkeypatch):
    """A tiny stand-in for the Boston data."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "data"
    folder.mkdir()
    np.savez(folder / "housing.npz", A=rng.normal(size=(20, 3)), y=rng.normal(size=20))
    monkeypatch.setenv("EXACTSEL_DATA", str(folder))


def run(commands, folder: Path, arguments: list[str]) -> Result:
    result = CliRunner().invoke(commands.main, ["--folder", str(folder), *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def read(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.usefixtures("housing")
@pytest.mark.parametrize("name", COMMANDS)
def test_an_experiment_writes_its_table(commands, tmp_path, name):
    result = run(commands, tmp_path / "results", COMMANDS[name])
    rows = read(tmp_path / "results" / f"{name}.csv")
    table = (tmp_path / "results" / f"{name}.md").read_text(encoding="utf-8")
    assert rows
    assert table in result.output
    assert len([line for line in table.splitlines() if line.startswith("|")]) == len(rows) + 2
    assert not list((tmp_path / "results").glob(".*")), "a temporary file was left"


def test_real_data_that_are_missing_are_skipped_in_a_sentence(commands, tmp_path, monkeypatch):
    monkeypatch.delenv("EXACTSEL_DATA", raising=False)
    result = run(commands, tmp_path, ["real", "--data", "boston"])
    assert "housing is skipped: EXACTSEL_DATA does not name a folder" in result.output
    assert not list(tmp_path.glob("*"))


def test_a_run_that_was_stopped_is_repeated_once(commands, monkeypatch):
    """It may have met a kernel that was to be compiled."""
    from benchmarks.paper import runs

    made = []

    def timed(problem, mode, **options):
        made.append(options)
        return runs.Run(1.0, (0,), 1, 1, 0.5, solved=len(made) > 1)

    monkeypatch.setattr(runs, "timed", timed)
    assert runs.settled(None, {}, limit=3.0).solved
    assert made == [{"limit": 3.0, "rel": runs.EXACT}] * 2
    assert runs.settled(None, {}, limit=3.0, rel=0.1).solved
    assert made[2:] == [{"limit": 3.0, "rel": 0.1}]


def test_appendix_d_is_recovery_with_a_larger_ridge_weight(commands):
    for loss in ("huber", "logistic"):
        usual, stronger = commands.plans.recovery(loss), commands.plans.recovery(loss, stronger=True)
        assert stronger.lam == 10.0 * usual.lam
        assert commands.replace(stronger, lam=usual.lam) == usual


def test_all_sums_up_the_times_of_both_modes(commands, tmp_path, monkeypatch):
    tiny = commands.plans.Cost("huber", (2,), 20, 8, 0.01, instances=1, faithful=1, limit=60.0)
    monkeypatch.setattr(commands.plans, "QUICK", {"first": lambda: tiny, "second": lambda: tiny})
    run(commands, tmp_path, ["all", "--quick"])
    first, second, together = read(tmp_path / "totals.csv")
    assert together["table"] == "together"
    for mode in ("faithful s", "default s"):
        assert float(together[mode]) == pytest.approx(float(first[mode]) + float(second[mode]))


def test_a_number_of_runs_that_were_cut_short_is_marked(commands):
    from benchmarks.paper.tables import AtLeast, Spread, comma_separated, markdown

    rows = [{"calls": Spread.of([1.0, 3.0], at_least=True), "error": AtLeast(0.25), "k": 2000}]
    assert "| ≥ 2 ± 1.41 | ≥ 0.25 | 2,000 |" in markdown("title", rows)
    header, values = comma_separated(rows).splitlines()
    assert header == '"calls, mean","calls, sd",error,k'
    assert values == "2.0,1.4142135623730951,0.25,2000"


def test_the_expansion_of_real_data_is_that_of_the_paper(commands):
    from benchmarks.paper.real import expanded

    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=(30, 12)), rng.integers(0, 2, 30)])
    A, y = expanded((X, rng.normal(size=30)), centred=False)
    assert A.shape == (30, 103)
    np.testing.assert_allclose(np.linalg.norm(A, axis=0), 1.0)
    assert np.linalg.norm(y) == pytest.approx(1.0)
    assert abs(expanded((X, y), centred=True)[0].mean(axis=0)).max() < 1e-15


def test_centred_diabetes_is_the_instance_that_is_shipped(commands):
    from benchmarks.paper.real import diabetes, expanded
    from exactsel.data.instance import read_instance

    pytest.importorskip("sklearn")
    A, y = expanded(diabetes(), centred=True)
    shipped = read_instance(ROOT / "instances" / "diabetes.npz")
    np.testing.assert_allclose(A, shipped.A, atol=1e-12)
    np.testing.assert_allclose(y, shipped.y, atol=1e-12)


def test_how_soon_a_run_ends_is_shown(commands, monkeypatch):
    from benchmarks.limits import __main__ as limits

    monkeypatch.setattr(limits, "cases", lambda quick: [("tiny", limits.planted("quadratic", 2, 20, 8), 1.0, {})])
    monkeypatch.setattr(limits, "start", lambda arguments: 0.25)
    result = CliRunner().invoke(limits.main, ["--quick", "--repeats", "1"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "| tiny | 1 s | " in result.output
    assert "| a tiny solve | 0.25 |" in result.output
