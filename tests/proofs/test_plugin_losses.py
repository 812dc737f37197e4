"""Proofs about losses of other packages: written by the solver, checked with the formulas that the package brings."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from clocks import HANG
from recorded import second_opinion

from exactsel import Problem, solve, verify
from exactsel.errors import UnsupportedError
from exactsel.proofs.instance import instance_of
from exactsel.proofs.writer import ProofWriter
from exactsel_certificates.__main__ import main as check_by_command
from exactsel_certificates.checking import verify as check
from exactsel_certificates.container import parse_proof
from exactsel_certificates.domain import OutsideError, admitted
from exactsel_certificates.formula import Instance, objective
from exactsel_certificates.losses import LOSSES
from exactsel_certificates.losses.base import LEAVES, Loss

PACKAGE = Path(__file__).resolve().parents[2] / "docs" / "example_plugin"


@pytest.fixture(autouse=True)
def on_the_path(monkeypatch):
    monkeypatch.syspath_prepend(PACKAGE)


def drawn(seed, **options):
    from exactsel_example import Asymmetric

    rng = np.random.default_rng([46, seed])
    A = rng.standard_normal((12, 5))
    y = A[:, :2] @ np.array([1.0, -2.0]) + 0.5 * rng.standard_normal(12)
    if options.get("weights"):
        options["weights"] = rng.uniform(0.5, 2.0, 12)
    make = Problem.prepared if options else Problem
    return make(A, y, 2, loss=Asymmetric(), lam=0.3, **options)


KINDS = ({}, {"intercept": True}, {"intercept": True, "weights": True, "scale": True})


def main(folder):
    """Proofs of the problems, and their least objectives by brute force, from a process that compiles nothing."""
    for at, options in enumerate(KINDS):
        problem = drawn(0, **options)
        result = solve(problem, proof=f"{folder}/{at}.exsel", heuristics=())
        least = min(problem.fit(list(S)).value for S in combinations(range(5), 2))
        Path(folder, f"{at}.json").write_text(json.dumps([result.claim, result.upper, least]))


@pytest.fixture(scope="module")
def proofs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plugin")
    places = [str(PACKAGE), *sys.path]
    environment = {**os.environ, "EXACTSEL_JIT": "0", "PYTHONPATH": os.pathsep.join(filter(None, places))}
    subprocess.run([sys.executable, __file__, str(folder)], env=environment, check=True, timeout=HANG)
    return folder


@pytest.mark.parametrize("at", range(len(KINDS)))
def test_a_proof_holds_and_one_that_claims_more_does_not(at, proofs):
    problem, path = drawn(0, **KINDS[at]), proofs / f"{at}.exsel"
    claim, upper, least = json.loads((proofs / f"{at}.json").read_text())
    assert claim == "optimal"
    assert upper == pytest.approx(least, rel=1e-8)
    verdict = verify(problem, path)
    assert verdict.verified, verdict.reason
    assert verdict.lower <= least <= verdict.upper * (1 + 1e-9)
    assert "the formulas of asymmetric loss in exactsel_example.checked hold" in verdict.assumed
    about, proof = instance_of(problem), parse_proof(path.read_bytes())
    forged = check(replace(proof, lower=1.01 * least, upper=1.02 * least), about)
    assert not forged.verified
    assert forged.lower <= least
    lower_cost = check(replace(proof, lower=0.5 * least, upper=0.9 * least), about)
    assert "is what it costs" in lower_cost.reason
    assert "asymmetric" in second_opinion(problem, path.read_bytes()) != ""


def test_formulas_of_another_loss_reject_the_proof(proofs):
    @dataclass(frozen=True)
    class Other(type(instance_of(drawn(0)).plugin)):
        tilt: float = 1.0

    about, proof = instance_of(drawn(0)), parse_proof((proofs / "0.exsel").read_bytes())
    assert "its hash is not that" in check(proof, replace(about, plugin=Other())).reason
    assert "its loss is" in check(proof, replace(about, loss="huber", delta=1.0, plugin=None)).reason


def test_a_name_without_formulas_is_refused():
    about = instance_of(drawn(0))
    with pytest.raises(ValueError, match="formulas are known for quadratic, huber, logistic, squared_hinge, poisson"):
        replace(about, plugin=None)
    with pytest.raises(ValueError, match="a plug-in has formulas for 'asymmetric'; give that name"):
        replace(about, loss="huber")


@pytest.mark.parametrize("claimed", [{"quadratic": True}, {"serves": frozenset({LEAVES})}])
def test_formulas_that_claim_witnesses_of_other_losses_are_refused(claimed):
    about = instance_of(drawn(0))
    greedy = type("Greedy", (type(about.plugin),), claimed)
    with pytest.raises(ValueError, match="claims witnesses of quadratic or logistic loss"):
        replace(about, plugin=greedy())


def test_a_loss_without_a_ridge_of_its_own_is_refused():
    with pytest.raises(OutsideError, match="lam is 0, but asymmetric loss needs a ridge"):
        admitted(replace(instance_of(drawn(0)), lam=0.0))


def test_formulas_that_do_not_match_are_refused(tmp_path, monkeypatch):
    problem = drawn(0)
    monkeypatch.setattr(type(problem.loss), "checked_by", lambda self: LOSSES["huber"].of(1.0))
    with pytest.raises(UnsupportedError, match=r"checked_by of 'asymmetric' returns 'huber'"):
        ProofWriter(problem, tmp_path / "run.exsel")


def test_the_command_loads_a_package_only_where_it_is_named(proofs, tmp_path, monkeypatch, capsys):
    path, data, about = proofs / "0.exsel", tmp_path / "data.npz", instance_of(drawn(0))
    np.savez(data, A=about.A, y=about.y)
    info = tmp_path / "exactsel_example-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: exactsel-example\nVersion: 1.0\n")
    listed = re.search(r'"(exactsel_certificates.losses)"\]\n(.*)\n', (PACKAGE / "pyproject.toml").read_text())
    (info / "entry_points.txt").write_text(f"[{listed[1]}]\n{listed[2]}\n".replace('"', ""))
    monkeypatch.syspath_prepend(tmp_path)
    asked = [str(path), str(data), "--loss", "asymmetric", "-k", "2", "--lam", "0.3"]
    assert check_by_command([*asked, "--loss-from", "exactsel-example"]) == 0
    assert check_by_command(asked) == 2
    assert "formulas are known for" in capsys.readouterr().err
    assert check_by_command([*asked, "--loss-from", "no-such-package"]) == 2
    assert "no package 'no-such-package' is installed" in capsys.readouterr().err


def test_bounds_of_formulas_lie_below_objectives():
    rng = np.random.default_rng(7)
    about = instance_of(drawn(1))
    assert isinstance(about, Instance)
    assert isinstance(about.formulas, Loss)
    z, y = 3.0 * rng.standard_normal((2, 400))
    g = 2.0 * rng.standard_normal(400)
    rows, _ = about.formulas.minus_conjugate(g, y)
    assert np.all(rows <= about.formulas.values(z, y) - g * z + 1e-12)
    at = about.formulas.slopes(z, y)
    assert about.formulas.minus_conjugate(at, y)[0] == pytest.approx(about.formulas.values(z, y) - at * z, abs=1e-12)
    assert np.all(about.formulas.values_above(z, y, np.full(400, 0.1)) >= about.formulas.values(z + 0.1, y) - 1e-12)
    assert objective(about, np.zeros(5)) == pytest.approx(float(np.sum(about.formulas.values(0.0 * about.y, about.y))))


if __name__ == "__main__":
    main(sys.argv[1])
