"""The campaigns on proof files run at their smallest."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def campaigns(monkeypatch):
    """The package of the campaigns; ``benchmarks`` is not an installed package."""
    monkeypatch.syspath_prepend(str(ROOT))
    import benchmarks.proofs as package

    return package


def run(*arguments):
    from benchmarks.proofs.commands import main

    result = CliRunner().invoke(main, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.usefixtures("campaigns")
def test_brute_force_finds_nothing_wrong():
    assert "| 5 | 0 | 0 | 0 | 0 |" in run("brute", "--count", "5", "--both")


@pytest.mark.usefixtures("campaigns")
def test_damage_is_counted():
    assert "| all |" in run("corrupt", "--count", "30", "--each", "10")


@pytest.mark.usefixtures("campaigns")
def test_mutants_are_single_changes_and_noticed():
    from benchmarks.proofs.mutants import Probe, killed, mutants, outcome

    text = "def f(a, b):\n    return not a < b + 1 and True\n"
    changes = {mutant.text.split("  ->  ")[1] for mutant in mutants("walk", text)}
    assert {"2", "False", "b - 1", "a <= b + 1"} <= changes
    assert len(changes) == 6
    source = (ROOT / "certificates" / "exactsel_certificates" / "rigorous.py").read_text(encoding="utf-8")
    mutant = next(mutant for mutant in mutants("rigorous", source) if "m + 4" in mutant.text)
    trials = [Probe("lengths")]
    assert killed(mutant, trials, [outcome(trials[0])])


@pytest.mark.usefixtures("campaigns")
def test_every_probe_finds_what_it_calls():
    """One probe of each function, for its cheapest parameters."""
    from benchmarks.proofs.mutants import MODULES, NAMED, Probe, outcome, sources

    probes = {getattr(probe, "func", probe): name for name, probe in NAMED.items()}
    assert len(probes) > 20
    assert all(outcome(Probe(name)) for name in probes.values())
    assert all(text for _, text in sources(MODULES))
