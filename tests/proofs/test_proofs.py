"""Proof files: what is written verifies, what is wrong does not, and two independent checkers agree."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from checked_solve import random_options
from click.testing import CliRunner
from corrupted import as_bytes, campaign, subject
from corrupted import check as checked
from instances_for_tests import optimum_of, random_case
from make_proofs import FOLDER as PROOFS
from own_loss import PseudoHuber
from recorded import second_opinion
from samples import many

import exactsel
from exactsel import Problem, certify, solve, verify
from exactsel.cli.main import cli
from exactsel.errors import InputError, UnsupportedError
from exactsel.proofs.instance import instance_of
from exactsel.solving.solver import Search
from exactsel_certificates import container, standalone
from exactsel_certificates.__main__ import main as check_by_command
from exactsel_certificates.standalone.__main__ import main as check_by_fractions

ROOT = Path(__file__).resolve().parents[2]


def files(kind):
    return sorted((PROOFS / kind).glob("*.exsel"))


def small_problem():
    return exactsel.load(PROOFS / "instance.npz")


# --- the files kept ---


@pytest.mark.smoke
@pytest.mark.parametrize("file", files("valid"), ids=lambda file: file.stem)
def test_valid_files_verify(file):
    assert verify(small_problem(), file).verified
    assert second_opinion(small_problem(), file.read_bytes()) == ""


@pytest.mark.smoke
@pytest.mark.parametrize("file", files("must_fail"), ids=lambda file: file.stem)
def test_files_that_must_fail_are_rejected(file):
    verdict = verify(small_problem(), file)
    assert not verdict.verified
    assert verdict.reason.endswith(".")
    assert second_opinion(small_problem(), file.read_bytes()) != ""


@pytest.mark.smoke
@pytest.mark.parametrize("file", files("malformed"), ids=lambda file: file.stem)
def test_malformed_files_are_refused(file):
    with pytest.raises(container.MalformedError, match=r"\.$"):
        raise_if_malformed(file.read_bytes())
    with pytest.raises(standalone.Malformed):
        second_opinion(small_problem(), file.read_bytes())
    with pytest.raises(InputError, match="is no proof"):
        verify(small_problem(), file)


def raise_if_malformed(data):
    exactsel_verdict = exactsel.proofs.verify.check(container.parse_proof(data), instance_of(small_problem()))
    assert exactsel_verdict is None


def test_every_file_has_its_reason():
    text = (PROOFS / "README.md").read_text(encoding="utf-8")
    for kind in ("valid", "must_fail", "malformed"):
        part = text.split(f"## {kind}\n")[1].split("##")[0]
        assert re.findall(r"\* `(.*?)`: \S", part).sort() == [file.stem for file in files(kind)].sort()
        assert len(files(kind)) > 5


# --- against every support, and against each other ---


def test_two_checkers_agree_and_tell_the_truth(tmp_path):
    file = tmp_path / "run.exsel"
    for seed in range(700_000, 700_000 + many(18, 120)):
        case = random_case(seed)
        problem, optimum = case.problem(), optimum_of(case)
        solve(problem, proof=file, signals=(), **random_options(seed, case))
        verdict = verify(problem, file)
        assert verdict.verified, (seed, verdict.reason)
        assert verdict.valid_for or verdict.lower <= optimum.ceiling, seed
        assert second_opinion(problem, file.read_bytes()) == "", seed


def test_a_sliver_above_the_truth_is_rejected():
    """One part in 10^9, by both checkers, wherever the proof itself is fine."""
    tried = 0
    for seed in range(710_000, 710_000 + many(12, 60)):
        at = subject(seed)
        if at is None:
            continue
        tried += 1
        proof = container.parse_proof(at.data)
        too_much = as_bytes(replace(proof, lower=at.high * (1 + 1e-9), upper=2 * proof.upper))
        verdict = checked(too_much, at.instance)
        assert not verdict.verified
        assert verdict.lower <= at.high * (1 + 1e-15)
        problem = random_case(seed).problem()
        assert second_opinion(problem, too_much).startswith("only")
    assert tried > many(4, 30)


def test_damaged_files_prove_nothing_untrue():
    counts = campaign(range(720_000, 720_000 + many(10, 40)), each=25)
    assert {outcome for _, outcome in counts} == {"accepted", "rejected", "malformed"}
    assert sum(counts.values()) > many(75, 600)


@pytest.mark.long
def test_many_damaged_files_prove_nothing_untrue():
    campaign(range(730_000, 731_000), each=60)


def test_altered_data_are_another_problem(tmp_path):
    file = tmp_path / "run.exsel"
    problem = small_problem()
    solve(problem, proof=file, signals=())
    A = np.array(problem.A)
    A[3, 2] = np.nextafter(A[3, 2], 2.0)
    for other in (
        Problem(A, problem.y, problem.k, lam=problem.lam),
        problem.replace(k=1), problem.replace(k=3), problem.replace(lam=0.5), problem.replace(loss="huber", delta=1.0),
        exactsel.ColumnSubsetProblem(problem.A, problem.k),
    ):  # fmt: skip
        verdict = verify(other, file)
        assert not verdict.verified
        assert "another problem" in verdict.reason
        assert verdict.lower == 0.0


def test_a_proof_relabelled_for_other_data_proves_what_holds_there(tmp_path):
    """With the other problem's hash in its header a proof is judged on that problem's own data."""
    file = tmp_path / "run.exsel"
    for seed in range(30):
        case = random_case(seed, loss="quadratic", lam=0.3)
        solve(case.problem(), proof=file, signals=())
        other = replace(case, A=case.A * 0.7, y=case.y + 0.1)
        relabelled = replace(container.read_proof(file), problem_hash=other.problem().hash)
        verdict = checked(as_bytes(relabelled), instance_of(other.problem()))
        assert verdict.lower <= optimum_of(other).ceiling


# --- the writer ---


@pytest.mark.parametrize("options", [
    {}, {"subtrees": False}, {"tree": "state-space"}, {"bound": "fit"}, {"bound": "pdal"}, {"bound": "supergradient"},
    {"branching": "largest", "subtrees": False}, {"frontier": "depth-first", "subtrees": False},
    {"frontier": "weighted"},
    {"heuristics": ()}, {"node_limit": 0}, {"node_limit": 3, "subtrees": False}, {"time_limit": 0.0}, {"eps": 0.05},
    {"memory_limit": 0.01, "subtrees": False},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("loss", ["quadratic", "huber"])
def test_every_kind_of_search_writes_a_proof(tmp_path, options, loss):
    if loss == "huber" and options.get("bound") == "fit":
        pytest.skip("the fit is for quadratic loss")
    rng = np.random.default_rng(5)
    problem = Problem(rng.standard_normal((30, 12)), rng.standard_normal(30), 4, lam=0.05, loss=loss)
    result = solve(problem, proof=tmp_path / "run.exsel", signals=(), **options)
    assert result.proof == str(tmp_path / "run.exsel")
    assert [file.name for file in tmp_path.iterdir()] == ["run.exsel"]
    verdict = verify(problem, result.proof)
    assert verdict.verified, verdict.reason
    assert result.lower <= verdict.lower
    assert verdict.support == result.support
    assert verdict.upper <= result.upper
    assert verdict.upper == pytest.approx(result.upper, rel=1e-12)


def test_points_that_were_forgotten_are_written_again(tmp_path, monkeypatch):
    problem = exactsel.load(ROOT / "instances" / "diabetes.npz")
    plain = solve(problem, proof=tmp_path / "a.exsel", subtrees=False, heuristics=())
    monkeypatch.setattr(exactsel.proofs.witnesses, "REMEMBERED_BYTES", 0)
    again = solve(problem, proof=tmp_path / "b.exsel", subtrees=False, heuristics=())
    assert plain.tree_hash == again.tree_hash
    a, b = (container.read_proof(tmp_path / name) for name in ("a.exsel", "b.exsel"))
    assert b.point_size.size > a.point_size.size
    assert verify(problem, tmp_path / "b.exsel").lower == verify(problem, tmp_path / "a.exsel").lower


def test_dependent_columns_restrict_the_claim(tmp_path):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((20, 6))
    A = np.column_stack([A, A[:, 0] + A[:, 1]])
    problem = Problem(A, rng.standard_normal(20), 3, lam=0.0)
    result = solve(problem, proof=tmp_path / "run.exsel")
    verdict = verify(problem, result.proof)
    assert verdict.verified, verdict.reason
    assert bool(result.valid_for) == bool(verdict.valid_for)
    assert second_opinion(problem, (tmp_path / "run.exsel").read_bytes()) == ""


def test_an_own_loss_is_refused_at_once(tmp_path):
    problem = Problem(np.eye(4), np.arange(4.0), 2, loss=PseudoHuber(1.0), lam=1.0)
    with pytest.raises(UnsupportedError, match=r"does not know the loss .* leave out proof, recheck and"):
        solve(problem, proof=tmp_path / "run.exsel")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_refused_at_once(tmp_path):
    with pytest.raises(InputError, match="cannot be written"):
        solve(small_problem(), proof=tmp_path / "none" / "run.exsel")


def test_a_search_that_goes_on_has_no_proof(tmp_path):
    problem = exactsel.load(ROOT / "instances" / "diabetes.npz")
    search = Search(problem, exactsel.Settings(node_limit=4, subtrees=False), signals=())
    search.run()
    writer = exactsel.proofs.writer.ProofWriter(problem, tmp_path / "run.exsel")
    started = next(iter(Search(problem, exactsel.Settings(node_limit=9), state=search.state, signals=())))
    with pytest.raises(InputError, match="from its root"):
        writer(started, search.state)
    with pytest.raises(InputError, match="has not come to an end"):
        writer.finish(0.0, 1.0, (), np.zeros(64), "")
    writer.close()


def test_certify_leaves_a_proof(tmp_path):
    problem = small_problem()
    certified = certify(problem, candidate=[0, 1], proof=tmp_path / "run.exsel")
    assert verify(problem, certified.result.proof).lower >= certified.lower
    assert [file.name for file in tmp_path.iterdir()] == ["run.exsel"]


def test_a_path_refuses_one_file_for_many_proofs(tmp_path):
    with pytest.raises(InputError, match="many proofs"):
        exactsel.solve_path(small_problem(), proof=tmp_path / "run.exsel")


# --- commands ---


def run(*arguments):
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], standalone_mode=False)


def test_commands_and_their_exit_codes(tmp_path):
    instance, file = PROOFS / "instance.npz", tmp_path / "run.exsel"
    assert run("solve", instance, "--proof", file, "--quiet").return_value == 0
    shown = run("verify", file, instance)
    assert shown.return_value == 0
    assert "VERIFIED" in shown.output
    assert run("verify", file, instance, "--lam", "2").return_value == 3
    assert json.loads(run("verify", file, instance, "-k", "1", "--json").output)["verified"] is False
    assert isinstance(run("verify", instance, instance).exception, InputError)
    assert isinstance(run("verify", tmp_path / "none", instance).exception, InputError)
    for command in (check_by_command, check_by_fractions):
        assert command([str(file), str(instance)]) == 0
        assert command([str(file), str(instance), "--lam", "2"]) == 3
        assert command([str(instance), str(instance)]) == 2


@pytest.mark.smoke
def test_the_checker_runs_without_the_solver(tmp_path):
    """In a Python that cannot import exactsel or numba; the second one without numpy."""
    code = (
        "import sys\n"
        "class Refuse:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in REFUSED: raise ImportError(name)\n"
        "REFUSED = sys.argv[1].split(',')\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "from exactsel_certificates.MODULE import main\n"
        "sys.exit(main(sys.argv[2:]))\n"
    )
    file = str(PROOFS / "valid" / "points.exsel")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "certificates")}
    alone = "exactsel,numba,scipy,numpy"
    for module, refused in (("__main__", "exactsel,numba,scipy"), ("standalone.__main__", alone)):
        command = [sys.executable, "-c", code.replace("MODULE", module), refused, file, str(PROOFS / "instance.npz")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_verdicts_can_be_read(tmp_path):
    verdict = verify(small_problem(), PROOFS / "valid" / "points.exsel")
    text = str(verdict)
    assert small_problem().hash in text
    assert repr(verdict.lower) in text
    assert json.loads(json.dumps(verdict.as_dict(), allow_nan=False))["support"] == list(verdict.support)
    assert verdict.gap == verdict.upper - verdict.lower
