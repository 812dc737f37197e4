"""Forged proofs without a ridge: a sample of the campaign, and faults planted in the checkers, which must show."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from exactsel_certificates import points
from exactsel_certificates.standalone import checking

ROOT = Path(__file__).resolve().parents[2]
SHARE = 0.06
"""Of the forgeries those that are tried in a sample."""


@pytest.fixture
def attacks(monkeypatch):
    """The modules; ``benchmarks`` is not an installed package."""
    monkeypatch.syspath_prepend(str(ROOT))
    names = ("ridgeless", "raw_files", "running", "commands")
    return SimpleNamespace(**{name: import_module(f"benchmarks.attacks.{name}") for name in names})


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_forgery_is_believed(attacks, seed):
    outcome = attacks.ridgeless.attacked(seed, SHARE)
    assert outcome.findings == []
    assert outcome.counts["forgeries"] > 20
    assert outcome.counts["rejected"] > 5


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
def test_no_forgery_is_believed_in_many_more(attacks, seed):
    assert attacks.ridgeless.attacked(seed).findings == []


def test_every_part_is_forged_and_the_honest_proof_is_no_forgery(attacks):
    at = attacks.ridgeless.subject_of(0)
    made = [*attacks.ridgeless.forgeries(np.random.default_rng(0), at)]
    assert made[0][0] == "nothing"
    assert attacks.raw_files.RawFile.of(made[0][1].data()).data() == made[0][1].data()
    names = {name for name, _ in made}
    assert {
        "another limit point", "limit point: not there", "its coefficients multiplied", "point_value multiplied",
        "minorant made up", "closed at once", "valid_for", "version", "the empty model as a bound", "file with a ridge",
        "file of another threshold", "points with a ridge", "tree with a ridge", "header",
    } <= names  # fmt: skip
    honest = attacks.running.Outcome(0)
    attacks.ridgeless.judge("honest", made[0][1].data(), at, True, honest)
    assert honest.counts["accepted, and true"] == honest.counts["second: accepted, and true"] == 1


def first_found(attacks, both):
    """The first thing that is found where all points are moved, and far too much is claimed of an empty model."""
    outcome = attacks.running.Outcome(0)
    for seed in range(6):
        at = attacks.ridgeless.subject_of(seed)
        for what, file in attacks.ridgeless.forgeries(np.random.default_rng(seed), at):
            if what == "point_value multiplied":
                *_, (claim, data) = attacks.ridgeless.claims(file, at)
                attacks.ridgeless.judge(f"{what}, {claim}", data, at, both, outcome)
                if outcome.findings:
                    return outcome.findings[0].what
    return ""


@pytest.mark.untrue
def test_limits_that_are_too_small_are_found(attacks, monkeypatch):
    radii = points.radii

    def small(instance, x):
        limits = radii(instance, x)
        return None if limits is None else limits._replace(size=1e-6 * limits.size)

    monkeypatch.setattr(points, "radii", small)
    assert first_found(attacks, False).startswith("false accept")


@pytest.mark.untrue
def test_limits_that_are_too_small_are_found_in_the_second_checker(attacks, monkeypatch):
    sizes = checking.sizes
    monkeypatch.setattr(checking, "sizes", lambda r, x, out=(): [value / 10**6 for value in sizes(r, x, out)])
    assert first_found(attacks, True).startswith("false accept: second")


def test_the_command_writes_its_table(attacks, monkeypatch):
    monkeypatch.setattr(attacks.ridgeless, "forgeries", lambda rng, at: [("nothing", at.file)])
    result = CliRunner().invoke(attacks.commands.main, ["without-ridge", "--count", "1", "--processes", "1"])
    assert result.exit_code == 0, result.output
    assert "without-ridge: nothing found" in result.output
    told = CliRunner().invoke(attacks.commands.main, ["without-ridge", "--only", "0"], catch_exceptions=False)
    assert "Case(" in told.output
