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
from own_threshold import OwnHuber
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


WITH_OFFSET = {
    "quadratic": {"intercept": True},
    "own-huber": {"delta": 0.7, "lam": 0.3},
    "poisson": {"lam": 0.3, "weights": np.linspace(0.5, 2.0, 12)},
}


def offset_problem(loss):
    rng = np.random.default_rng([47, 0])
    A, offset = rng.standard_normal((12, 5)), 0.3 * rng.standard_normal(12)
    y = rng.poisson(2.0, 12).astype(float) if loss == "poisson" else A[:, 0] + rng.standard_normal(12)
    options = {name: value for name, value in WITH_OFFSET[loss].items() if name != "delta"}
    made = OwnHuber(0.7) if loss == "own-huber" else loss
    return A, y, offset, Problem.prepared(A, y, 2, loss=made, offset=offset, **options)


def main(folder):
    """Proofs of the problems, and their least objectives by brute force, from a process that compiles nothing."""
    for at, options in enumerate(KINDS):
        problem = drawn(0, **options)
        result = solve(problem, proof=f"{folder}/{at}.exsel", heuristics=())
        least = min(problem.fit(list(S)).value for S in combinations(range(5), 2))
        Path(folder, f"{at}.json").write_text(json.dumps([result.claim, result.upper, least]))
    for loss in WITH_OFFSET:
        solve(offset_problem(loss)[-1], proof=f"{folder}/{loss}.exsel", heuristics=())


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


def install(folder, monkeypatch, package, entry):
    """Make a package known that has this entry point."""
    info = folder / f"{package.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[exactsel_certificates.losses]\n{entry}\n")
    monkeypatch.syspath_prepend(folder)


@pytest.fixture
def of_threshold(proofs, tmp_path, monkeypatch):
    """A command about the loss with a threshold, whose file holds no threshold."""
    A, y, offset, _ = offset_problem("own-huber")
    np.savez(tmp_path / "data.npz", A=A, y=y)
    np.savetxt(tmp_path / "offset.txt", offset)
    install(tmp_path, monkeypatch, "own-package", "own-huber = own_threshold:CheckedOwn\nlost = own_threshold:Lost")
    asked = [str(proofs / "own-huber.exsel"), str(tmp_path / "data.npz"), "-k", "2", "--lam", "0.3"]
    return [*asked, "--loss", "own-huber", "--loss-from", "own-package", "--offset", str(tmp_path / "offset.txt")]


def test_the_command_takes_the_threshold_of_a_plug_in(of_threshold, tmp_path, capsys):
    assert check_by_command(of_threshold) == 2
    assert "delta of own-huber loss is not given; give --delta NUMBER." in capsys.readouterr().err
    assert check_by_command([*of_threshold, "--delta", "0.7"]) == 0
    assert check_by_command([*of_threshold, "--loss-parameter", "delta=0.7"]) == 0
    assert check_by_command([*of_threshold, "--delta", "0.8"]) == 3
    A, y, *_ = offset_problem("own-huber")
    np.savez(tmp_path / "data.npz", A=A, y=y, delta=0.7)
    assert check_by_command(of_threshold) == 0
    assert check_by_command([*of_threshold, "--delta", "0.8"]) == 3
    assert check_by_command(of_threshold[:-2]) == 3  # without the offset


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["delta=0.7", "delta=0.8"], "delta of own-huber loss is given twice; its parameters are delta."),
        (["tilt=1"], "tilt=1 is no parameter of own-huber loss; its parameters are delta."),
        (["delta=much"], "--loss-parameter delta=much holds no number; give delta=NUMBER."),
        (["delta"], "--loss-parameter delta holds no number; give delta=NUMBER."),
    ],
)
def test_wrong_parameters_are_one_sentence(options, sentence, of_threshold, capsys):
    assert check_by_command([*of_threshold, *(word for text in options for word in ("--loss-parameter", text))]) == 2
    assert capsys.readouterr().err == f"Error: {sentence}\n"


def test_losses_that_are_not_there_and_thresholds_of_none(of_threshold, capsys):
    lost = [{"own-huber": "lost"}.get(word, word) for word in of_threshold]
    assert check_by_command(lost) == 2
    assert re.search("'lost' of the package 'own-package' cannot be loaded .*; install it", capsys.readouterr().err)
    given = of_threshold[: of_threshold.index("--loss")]
    assert check_by_command([*given, "--delta", "1"]) == 2
    assert "--delta is given, but quadratic loss has no threshold; leave it out." in capsys.readouterr().err
    assert check_by_command([*given, "--loss", "logistic", *of_threshold[-2:]]) == 2
    assert "logistic loss takes no offset; leave --offset out." in capsys.readouterr().err
    assert check_by_command([*given, "--loss", "poisson", "--scale", *of_threshold[-2:]]) == 2
    assert "poisson loss of scaled columns takes no offset" in capsys.readouterr().err


@pytest.mark.parametrize("loss", ["quadratic", "poisson"])
def test_the_command_takes_an_offset(loss, proofs, tmp_path, capsys):
    A, y, offset, _ = offset_problem(loss)
    np.savez(tmp_path / "data.npz", A=A, y=y, lam=0.0 if loss == "quadratic" else 0.3)
    for name, values in (("offset", offset), ("weights", WITH_OFFSET["poisson"]["weights"]), ("short", offset[:5])):
        np.save(tmp_path / f"{name}.npy", values)
    asked = [str(proofs / f"{loss}.exsel"), str(tmp_path / "data.npz"), "-k", "2", "--loss", loss]
    asked += ["--intercept"] if loss == "quadratic" else ["--weights", str(tmp_path / "weights.npy")]
    assert check_by_command([*asked, "--offset", str(tmp_path / "offset.npy")]) == 0
    assert check_by_command(asked) == 3
    assert check_by_command([*asked, "--offset", str(tmp_path / "short.npy")]) == 2
    assert "the offset has shape (5,), but y has (12,); give one number per row." in capsys.readouterr().err


def test_the_command_loads_a_package_only_where_it_is_named(proofs, tmp_path, monkeypatch, capsys):
    path, data, about = proofs / "0.exsel", tmp_path / "data.npz", instance_of(drawn(0))
    np.savez(data, A=about.A, y=about.y)
    listed = re.search(r'"exactsel_certificates.losses"\]\n(.*)\n', (PACKAGE / "pyproject.toml").read_text())
    install(tmp_path, monkeypatch, "exactsel-example", listed[1].replace('"', ""))
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
