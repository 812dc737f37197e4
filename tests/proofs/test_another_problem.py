"""Mistakes in what a proof is checked against: both checkers name what differs and what to do, in the same sentence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from recorded import given_instance, second_opinion

from exactsel import ColumnSubsetProblem, InputError, Problem, solve, verify
from exactsel.cli.main import main
from exactsel_certificates.checking import verify as check
from exactsel_certificates.container import parse_proof

RNG = np.random.default_rng(5)
A, Y = RNG.normal(size=(12, 4)), RNG.normal(size=12)
ANOTHER = "the proof is about another problem: "


def problem(rows=12, columns=4, k=2, **options):
    return Problem(A[:rows, :columns], Y[:rows], k, **{"lam": 0.5, **options})


MISTAKES = {
    "k": (problem(k=3), "its k is 2, but 3 was given; give -k 2 as for the solve."),
    "rows": (problem(rows=11), "its number of rows is 12, but 11 was given; give the same data as for the solve."),
    "columns": (
        problem(columns=3),
        "its number of columns is 4, but 3 was given; give the same data as for the solve.",
    ),
    "loss": (
        problem(loss="huber", delta=1.0),
        "its loss is 'quadratic', but 'huber' was given; give --loss as for the solve.",
    ),
    "family": (
        ColumnSubsetProblem(A, 2),
        "its family is 'regression', but 'css' was given; give --problem as for the solve.",
    ),
    "groups": (
        problem(groups={"g": [0, 1]}),
        "its number of groups is 0, but 3 was given; leave out --groups as for the solve.",
    ),
    "pairs": (
        problem(not_both=[(0, 1)]),
        "its constraint is 'none', but 'not_both' was given; leave out --hierarchy, --not-both and --per-group as for "
        "the solve.",
    ),
    "intercept": (
        Problem.prepared(A, Y, 2, lam=0.5, intercept=True),
        "this one has an intercept, unlike that of the proof; leave out --intercept as for the solve.",
    ),
    "weights": (
        Problem.prepared(A, Y, 2, lam=0.5, weights=np.arange(1.0, 13.0)),
        "this one has row weights, unlike that of the proof; leave out --weights as for the solve.",
    ),
    "lam": (
        problem(lam=0.25),
        "its hash is not that of the given data with lam = 0.25; give the data and options of the solve, such as "
        "--lam and --force-in.",
    ),
    "target": (
        Problem(A, -Y, 2, lam=0.5),
        "its hash is not that of the given data with lam = 0.5; give the data and options of the solve, such as "
        "--lam and --force-in.",
    ),
    "forced": (
        problem(force_in=[0]),
        "its hash is not that of the given data with lam = 0.5; give the data and options of the solve, such as "
        "--lam and --force-in.",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def proof(tmp_path_factory):
    file = tmp_path_factory.mktemp("proof") / "run.exsel"
    solve(problem(), proof=file, signals=())
    return file


@pytest.mark.parametrize("mistake", MISTAKES)
def test_both_checkers_name_what_differs(proof, mistake):
    other, sentence = MISTAKES[mistake]
    verdict = verify(other, proof)
    assert not verdict.verified
    assert verdict.reason == ANOTHER + sentence
    assert second_opinion(other, proof.read_bytes()) == ANOTHER + sentence


def test_the_parameter_of_a_loss_is_named(tmp_path):
    solve(problem(loss="huber", delta=1.0), proof=tmp_path / "run.exsel", signals=())
    other = problem(loss="huber", delta=2.0)
    reason = verify(other, tmp_path / "run.exsel").reason
    assert "given data with lam = 0.5 and delta = 2.0; give" in reason
    assert second_opinion(other, (tmp_path / "run.exsel").read_bytes()) == reason


def test_other_data_of_a_column_selection(tmp_path):
    solve(ColumnSubsetProblem(A, 2), proof=tmp_path / "run.exsel", signals=())
    sentence = ANOTHER + "its hash is not that of the given data; give the same data as for the solve."
    assert verify(ColumnSubsetProblem(-A, 2), tmp_path / "run.exsel").reason == sentence
    assert second_opinion(ColumnSubsetProblem(-A, 2), (tmp_path / "run.exsel").read_bytes()) == sentence


def test_a_claim_about_equalities_is_compared(proof):
    stated = replace(parse_proof(proof.read_bytes()), equalities=True)
    reason = check(stated, given_instance(problem())).reason
    assert reason == (
        ANOTHER + "this one lacks linear equalities on coefficients, unlike that of the proof; give --sum-to and "
        "--equality as for the solve."
    )


@pytest.mark.parametrize(
    ("length", "sentence"),
    [
        (0, "the file has 0 bytes and announces a header of 0; it is cut off or no proof."),
        (200, "; it is cut off or no proof."),
        (-3, "entries do not fit into the file; take the whole file."),
    ],
)
def test_a_truncated_proof(proof, tmp_path, length, sentence):
    cut = tmp_path / "cut.exsel"
    cut.write_bytes(proof.read_bytes()[:length])
    with pytest.raises(InputError, match=r"cut\.exsel is no proof: ") as told:
        verify(problem(), cut)
    assert str(told.value).endswith(sentence)


def test_advice_about_k_works(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.savez("data.npz", A=A, y=Y, k=3, lam=0.5)
    solve(problem(), proof=Path("run.exsel"), signals=())
    for words, code in (([], 3), (["-k", "2"], 0)):
        with pytest.raises(SystemExit) as ended:
            main(["verify", "run.exsel", "data.npz", *words])
        assert ended.value.code == code
        assert ("give -k 2 as for the solve" in capsys.readouterr().out) == (code == 3)
