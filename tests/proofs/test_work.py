"""Proofs that ask for excessive work: each check ends within the work it may do, and neither accepts nor rejects."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hand_written import CLOSE, COUNTED, FIT, USE, strong_file, written
from heavy_proofs import case_of, cost, first_instance, heavy_proofs
from tiny_problems import Case, optimum

import exactsel
from exactsel.cli.main import cli
from exactsel.errors import InputError
from exactsel_certificates import work
from exactsel_certificates.__main__ import main as first_main
from exactsel_certificates.checking import verify
from exactsel_certificates.container import MalformedError, parse_proof
from exactsel_certificates.estimate import default_limits, estimate
from exactsel_certificates.standalone import Beyond, Malformed, TooMuch, check
from exactsel_certificates.standalone import work as second_work
from exactsel_certificates.standalone.__main__ import main as second_main
from exactsel_certificates.walk import closed_regions, first_region

HEAVY = dict(heavy_proofs())

FEW, FEW_FRACTIONS = 1e6, 1e4
"""Limits that every heavy proof goes beyond, in the units of either checker."""


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    """Nothing here is to wait for a compiler."""
    monkeypatch.setenv("EXACTSEL_JIT", "0")


@pytest.mark.parametrize("name", HEAVY)
def test_the_first_checker_stops(name):
    heavy = HEAVY[name]
    proof, instance = parse_proof(heavy.file.data()), first_instance(heavy.case)
    stated = []
    verdict = verify(proof, instance, work_limit=FEW, begin=lambda *said: stated.append(said))
    assert verdict.unfinished
    assert not verdict.verified
    assert verdict.operations <= FEW
    assert verdict.lower == 0.0, "what was not looked at may hold anything"
    assert verdict.reason.startswith("too much work: the proof asks for ")
    assert "NOT VERIFIED too much work" in str(verdict)
    assert "REJECTED" not in str(verdict)
    ((known, limit),) = stated if stated else ((estimate(proof, instance), FEW),)
    assert limit == FEW
    assert (known.operations > FEW) >= heavy.known, "what the tree tells is refused before it is begun"


@pytest.mark.parametrize("name", HEAVY)
def test_the_second_checker_stops(name):
    heavy = HEAVY[name]
    with pytest.raises(TooMuch, match="the proof asks for"):
        check(heavy.file.data(), **heavy.case._asdict(), work_limit=FEW_FRACTIONS)


@pytest.mark.parametrize("name", HEAVY)
def test_the_default_depends_on_sizes_alone(name):
    """Whatever a proof asks for, it is allowed no more than another of its size about a problem of that size."""
    heavy = HEAVY[name]
    proof, instance = parse_proof(heavy.file.data()), first_instance(heavy.case)
    limits = default_limits(proof, instance)
    n, d = instance.A.shape
    assert limits.known <= limits.total <= 5e11 * (1 + len(proof.tree) / 1000)
    assert limits.known <= 2e11 + 1e3 * (len(proof.tree) + 1000) * d * (n + d * d)
    assert limits == default_limits(proof, instance)


@pytest.mark.parametrize("name", ["a count of all sets", "counts of parts"])
def test_counts_are_refused_by_default(name):
    """A file of less than 2 kB asks for 1.8e12 sets: nothing is counted, by either."""
    heavy = HEAVY[name]
    data = heavy.file.data()
    assert len(data) < 2000
    verdict = verify(parse_proof(data), first_instance(heavy.case))
    assert verdict.unfinished
    assert verdict.estimate.sets > 1.8e12
    assert verdict.operations < 1e6
    with pytest.raises(TooMuch, match=r"asks for 1\.\d+e\+11 operations"):
        check(data, **heavy.case._asdict())


def small():
    """An honest proof, and the options of both commands for its problem."""
    case = Case([[1.0, 0.0, 2.0], [3.0, 1.0, 0.0], [0.0, 5.0, 1.0], [2.0, 2.0, 7.0]], [1.0, 2.0, 3.0, 4.0], 2, lam=1.0)
    return case, strong_file(case, optimum(case), by_fit=False)


def test_honest_proofs_are_far_below():
    case, file = small()
    proof, instance = parse_proof(file.data()), first_instance(case)
    verdict = verify(proof, instance)
    assert verdict.verified
    assert not verdict.unfinished
    assert 10 * verdict.operations < default_limits(proof, instance).known
    assert verdict.estimate.regions == verdict.regions
    assert verify(proof, instance, work_limit=verdict.operations).verified
    assert verify(proof, instance, work_limit=0.99 * verdict.operations).unfinished
    assert verify(proof, instance, work_limit=math.inf).verified


def test_a_false_claim_is_rejected_within_the_limit():
    case, file = small()
    false = file._replace(header=file.header | {"lower": (1e3).hex()})
    verdict = verify(parse_proof(false.data()), first_instance(case))
    assert not verdict.verified
    assert not verdict.unfinished
    assert "is claimed, but only" in verdict.reason


def test_what_exact_arithmetic_leaves_undone_is_no_rejection():
    """Where margins are too thin for doubles and nothing else may be done, it is not known whether the claim holds."""
    case, file = small()
    best = float(optimum(case).value)
    edge = file._replace(header=file.header | {"lower": math.nextafter(best, 0.0).hex()})
    assert verify(parse_proof(edge.data()), first_instance(case)).verified
    verdict = verify(parse_proof(edge.data()), first_instance(case), exact_limit=1.0)
    assert verdict.unfinished
    assert verdict.reason.startswith("too much work: a lower bound of")
    assert 0.9 * best < verdict.lower < best, "what was shown is told all the same"


class Clock:
    """A clock that goes on by a second each time somebody looks."""

    def __init__(self):
        self.time = 0.0

    def __call__(self):
        self.time += 1.0
        return self.time


@pytest.mark.parametrize("name", HEAVY)
def test_the_clock_is_looked_at_in_every_loop(name):
    heavy = HEAVY[name]
    proof, instance = parse_proof(heavy.file.data()), first_instance(heavy.case)
    verdict = verify(proof, instance, work_limit=1e13, time_limit=20.0, now=Clock())
    assert verdict.unfinished
    assert "has taken more than 20 seconds" in verdict.reason
    with pytest.raises(TooMuch, match="as long as it may"):
        check(heavy.file.data(), **heavy.case._asdict(), work_limit=1e13, time_limit=20.0, clock=Clock())


def test_estimates_are_those_of_the_walk():
    """Sizes of regions by counting words, and by walking the tree."""
    rng = np.random.default_rng(5)
    for seed in range(60):
        case = case_of(6, 7, 3)
        words, d, k = [], 7, 3

        def grow(included, left, words=words, k=k):
            if included == k or not left or rng.random() < 0.25:
                words.append(int(rng.choice([CLOSE, COUNTED])))
                return
            j, kind = int(rng.choice(left)), int(rng.integers(4))
            rest = [i for i in left if i != j]
            words.append(8 * j + kind)
            for more in {0: (1, 0), 1: (0, 1), 2: (1,), 3: (0,)}[kind]:
                grow(included + more, rest)

        grow(0, list(range(d)))
        proof = parse_proof(written(case, words, {}, 0.0, 1e300).data())
        leaves = [*closed_regions(proof.tree, first_region(d), k, 1)]
        counted = sum(
            work.sets_of(int(np.sum(leaf.states == 1)), k - int(np.sum(leaf.states == 2)))
            for leaf in leaves if leaf.witness[0] < 0
        )  # fmt: skip
        found = estimate(proof, first_instance(case))
        # Two counted regions that join are one: their sets are the same.
        assert found.regions >= len(leaves), seed
        assert found.sets >= counted, seed


def test_sets_are_counted_without_large_numbers():
    for m in range(9):
        for r in range(m + 1):
            expected = sum(math.comb(m, q) for q in range(r + 1)) if r < m else 1
            assert work.sets_of(m, r) == pytest.approx(expected)
            assert second_work.combinations_of(m, r) == pytest.approx(math.comb(m, r))
    assert 1e300 < work.sets_of(10**9, 10**8) < math.inf
    assert 1e300 < second_work.combinations_of(10**9, 10**8) < math.inf


@pytest.fixture
def files(tmp_path):
    """Write a problem and a proof of it; their names."""

    def write(case, file):
        proof, instance = tmp_path / "run.exsel", tmp_path / "instance.npz"
        proof.write_bytes(file.data())
        np.savez(instance, A=case.A, y=case.y, k=case.k, lam=case.lam, loss=case.loss)
        return [str(proof), str(instance)]

    return write


@pytest.mark.parametrize("main", [first_main, second_main])
def test_commands(files, capsys, main):
    heavy = HEAVY["counts of parts"]
    names = files(heavy.case, heavy.file)
    assert main(names) == 4
    out, err = capsys.readouterr()
    assert "NOT VERIFIED too much work: the proof asks for" in out
    assert "VERIFIED" not in out.replace("NOT VERIFIED", "")
    assert "REJECTED" not in out
    assert err.startswith("Work: 49 regions, ")
    assert err.count("\n") == 1
    names = files(*small())
    assert main(names) == 0
    assert capsys.readouterr().err.startswith("Work: ")
    assert main([*names, "--work-limit", "5"]) == 4
    assert main([*names, "--work-limit", "none", "--time-limit", "1e9"]) == 0
    for wrong in ("-1", "0", "nan", "much"):
        for option in ("--work-limit", "--time-limit"):
            with pytest.raises(SystemExit, match="2"):
                main([*names, option, wrong])
    names = files(small()[0], HEAVY["counts of parts"].file)
    assert main(names) == 3, "another problem is a rejection, before anything is counted"


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 60_000, b'{"a":' * 10_000, b"9" * 65_000, b'{"format": "exsel", "version": ' + b"9" * 60_000 + b"}",
        b'{"format": "exsel", "version": 1, "n": 1e999}', b'"' + b"\\u0000" * 10_000 + b'"',
    ],
)  # fmt: skip
def test_headers_that_are_deep_or_long(text):
    for data in (struct.pack("<Q", len(text)) + text, struct.pack("<Q", 2**63) + text):
        with pytest.raises(MalformedError):
            parse_proof(data)
        with pytest.raises((Malformed, Beyond)):
            check(data, [[1.0]], [1.0], 1, "quadratic", 1.0, 1.0)


@pytest.mark.parametrize("lower", ["0x1p999999999999", "0x" + "f" * 60_000, "0x0." + "0" * 60_000 + "1p-99999999999"])
def test_claims_with_huge_exponents(lower):
    case, file = small()
    data = file._replace(header=file.header | {"lower": lower}).data()
    try:
        proof = parse_proof(data)
    except MalformedError:
        proof = None
    assert proof is None or proof.lower == 0.0
    try:
        assert isinstance(check(data, **case._asdict()), str)
    except Malformed:
        assert proof is None


def test_outside_of_a_check_nothing_is_limited():
    """Searches use parts of the checker."""
    work.spend(1e30)
    work.refuse()
    second_work.tally(1e30)
    with work.within(work.Budget(limit=10.0)) as budget:
        work.spend(4.0)
        work.refuse()
        with work.within(work.Budget()) as inner:
            work.spend(1e20)
        with pytest.raises(work.TooMuchWorkError, match="more than 10 elementary operations"):
            work.spend(7.0)
    assert (budget.spent, budget.refused, inner.spent, inner.refused) == (4.0, True, 1e20, False)


def test_one_region_of_all_columns():
    """A fit on all columns of a problem with one place left is a fit for each of them."""
    case = case_of(10, 30, 1, lam=1.0)
    file = written(case, [8 * FIT + USE, CLOSE], {}, 1e-3 * cost(case), 1e300)
    verdict = verify(parse_proof(file.data()), first_instance(case))
    assert verdict.estimate.sets == 31.0
    assert json.dumps(verdict.as_dict(), allow_nan=False)


def exactsel_verify(*arguments):
    return CliRunner().invoke(cli, ["verify", *map(str, arguments)], standalone_mode=False)


def test_on_the_command_line(files):
    heavy = HEAVY["counts of parts"]
    names = files(heavy.case, heavy.file)
    shown = exactsel_verify(*names)
    assert shown.return_value == 4
    assert "NOT VERIFIED too much work: the proof asks for 1.84e+12 elementary operations or more" in shown.stdout
    assert "REJECTED" not in shown.output
    first, last = shown.stderr.strip().splitlines()
    assert first.startswith("Work: 49 regions, 0 of them by fits, 1.84e+12 sets to count, ")
    assert last == "Give --work-limit NUMBER or --work-limit none, or a longer --time-limit, to let the check finish."
    said = json.loads(exactsel_verify(*names, "--json").stdout)
    assert (said["verified"], said["unfinished"]) == (False, True)
    assert said["estimate"]["sets"] > 1.8e12
    # The hint, walked to its end.
    names = files(*small())
    assert exactsel_verify(*names, "--work-limit", "5").return_value == 4
    assert exactsel_verify(*names, "--work-limit", "1e9").return_value == 0
    assert exactsel_verify(*names, "--work-limit", "none", "--time-limit", "60").return_value == 0
    for wrong in ("-1", "0", "nan", "much"):
        refused = exactsel_verify(*names, "--work-limit", wrong).exception
        assert "is no positive number of operations; give one, like 1e12, or none." in str(refused)


def test_in_python(files, clock):
    case, file = small()
    name, _ = files(case, file)
    problem = exactsel.Problem(np.array(case.A), np.array(case.y), case.k, lam=case.lam)
    assert exactsel.verify(problem, name).verified
    for limits in ({"work_limit": 0.0}, {"time_limit": math.nan}, {"work_limit": -1}, {"time_limit": 0}):
        with pytest.raises(InputError, match=r"_(work|time)?limit is .*, but a positive number was expected"):
            exactsel.verify(problem, name, **limits)
    assert exactsel.verify(problem, name, time_limit=1.0).verified
    clock.jump_at_read = clock.reads + 3
    verdict = exactsel.verify(problem, name, time_limit=1.0)
    assert verdict.unfinished
    assert verdict.reason.startswith("too much work: the check has taken more than 1 seconds. A higher limit lets")
    assert not verdict.verified


def test_a_claim_is_lowered_to_what_its_proof_shows_whatever_it_takes(files, monkeypatch):
    """A run that looks at its own proof is not held to the limits of a reader."""
    from exactsel.solving.claim import established

    case, file = small()
    name, _ = files(case, file)
    problem = exactsel.Problem(np.array(case.A), np.array(case.y), case.k, lam=case.lam)
    monkeypatch.setattr("exactsel_certificates.estimate.SMALL", 0.0)
    monkeypatch.setattr("exactsel_certificates.estimate.MARGIN", 0.0)
    assert exactsel.verify(problem, name).unfinished
    assert established(problem, Path(name)) is None
