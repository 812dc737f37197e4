"""Proofs about signs and bounds of coefficients: damaged and hand-written ones, bounds in doubles, and the doors."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from boxed_cases import allowed_sets, curved_case, enumerated_fit, other_case, quadratic_case
from boxed_files import blank_for, claiming, random_proof
from click.testing import CliRunner
from corrupted import as_bytes, check
from hypothesis import given
from hypothesis import strategies as st
from recorded import refused, second_opinion
from samples import examples, sample

from exactsel import GroupedProblem, InputError, Problem, boxed, solve, verify
from exactsel.cli.main import cli
from exactsel.proofs.instance import instance_of
from exactsel.solving.claim import established
from exactsel_certificates import __main__ as first
from exactsel_certificates import standalone
from exactsel_certificates.boxes import gain, gains_above
from exactsel_certificates.checking import problem_hash
from exactsel_certificates.coefficient_text import read_box
from exactsel_certificates.container import CLOSE, FIRST_POINT, USE, parse_proof
from exactsel_certificates.exact import ExactBounds
from exactsel_certificates.formula import Box, Instance
from exactsel_certificates.given import GivenInstance
from exactsel_certificates.rigorous import RigorousBounds
from exactsel_certificates.standalone import __main__ as second
from exactsel_certificates.standalone.bounds import bounds
from exactsel_dev.reference import bounds as reference

WHOLE = 1e-9
"""Times what the empty model costs: how well the smallest objective is known."""


def case_of(seed):
    return quadratic_case(seed) if seed % 2 else other_case(seed)


@examples(100, 2000)
@given(st.integers(0, 2**32))
def test_bounds_in_doubles_are_below_the_exact_ones(seed):
    """And near them; the plain formulas in long doubles come to the same."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 9)), int(rng.integers(1, 6))
    A = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-3, 3, d)
    box = Box(
        np.where(rng.random(d) < 0.3, -np.inf, -rng.choice([0.0, 1e-9, 1.0, 1e9], d)),
        np.where(rng.random(d) < 0.3, np.inf, rng.choice([0.0, 1e-9, 1.0, 1e9], d)),
    )
    box.upper[0] = min(box.upper[0], 1e9)
    lam, k = float(10.0 ** rng.uniform(-6, 3)), int(rng.integers(0, d + 1))
    instance = Instance(A, 10.0 * rng.standard_normal(n), k, "quadratic", lam, box=box)
    state = rng.integers(0, 3, d).astype(np.uint8)
    state[np.flatnonzero(state == 2)[k:]] = 1
    S, C = np.flatnonzero(state == 2).tolist(), np.flatnonzero(state == 1).tolist()
    w = rng.standard_normal(d) / np.linalg.norm(A, axis=0)
    plain, exact = RigorousBounds(instance), ExactBounds(instance)
    for D in (plain.ridge, lam * (0.3 + rng.random(d))):
        bound = plain.bounds(plain.at_models(w[None], D), np.zeros(1, dtype=int), state[None])[0]
        truth = exact.at_model(S, C, [Fraction(v) for v in w.tolist()], D)
        assert Fraction(float(bound)) <= truth
        assert bound >= float(truth) - 1e-9 * (1.0 + abs(float(truth)))
        if D is plain.ridge:
            assert reference.bound_at_model(instance, S, C, w) == pytest.approx(float(truth), rel=1e-9, abs=1e-9)
        elif math.isfinite(reference.curved_bound(instance, S, C, w, D)):
            assert reference.curved_bound(instance, S, C, w, D) == pytest.approx(float(truth), rel=1e-9, abs=1e-9)


NUMBERS = st.one_of(
    st.floats(-1e6, 1e6),
    st.sampled_from([0.0, -0.0, 5e-324, 1e-300, -1e-300, 1e300, -1e300, 1e308, math.inf, math.nan]),
)
SIDES = st.one_of(st.sampled_from([0.0, 1.0, 5e-324, 1e300, math.inf]), st.floats(0.0, 1e6))


@examples(200, 5000)
@given(NUMBERS, st.floats(0.0, 10.0), st.floats(1e-60, 1e60), SIDES, SIDES)
def test_gains_are_rounded_upwards(v, error, D, low, high):
    box = Box(np.array([-low]), np.array([high]))
    with np.errstate(all="ignore"):
        found = float(gains_above(box, np.array([D]), np.array([[v]]), np.array([[error]]))[0, 0])
    if not math.isfinite(v):
        assert found == math.inf
        return
    for at in (v - error, v, v + error):
        exact = gain(box, Fraction(D), 0, Fraction(at))
        assert exact >= 0
        # Products below the smallest doubles vanish, which the bound allows for when all is added up.
        assert found == math.inf or Fraction(found) + Fraction(10) ** -290 >= exact
    if error == 0.0 and math.isfinite(found):
        assert (
            Fraction(found) <= gain(box, Fraction(D), 0, Fraction(v)) * (1 + Fraction(1, 10**14)) + Fraction(10) ** -290
        )
    for w in (-low, high, 0.0, -v / D):
        if -low <= w <= high and math.isfinite(w):
            at = Fraction(w)
            assert at * (Fraction(-v) - Fraction(D) * at / 2) <= gain(box, Fraction(D), 0, Fraction(v))


@pytest.fixture
def signed(tmp_path):
    """A problem with signs, its proof, and the file."""
    rng = np.random.default_rng(5)
    A = rng.standard_normal((15, 4))
    y = A @ [1.0, -2.0, 0.5, 0.0] + 0.1 * rng.standard_normal(15)
    problem = boxed(Problem(A, y, 2, lam=0.5), "all", [(0, -math.inf, 0.5)])
    solve(problem, proof=tmp_path / "run.exsel", signals=())
    return problem, parse_proof((tmp_path / "run.exsel").read_bytes())


@pytest.mark.smoke
def test_a_model_outside_its_limits_is_refused(signed):
    problem, proof = signed
    instance = instance_of(problem)
    for j, value in ((1, -1.0), (0, 0.75), (0, -1e-300)):
        wrong = claiming(
            proof, upper=1e300, lower=0.0,
            model_index=np.array([j], dtype=np.int32), model_value=np.array([value]),
        )  # fmt: skip
        verdict = check(wrong, instance)
        assert not verdict.verified
        assert f"coefficient of column {j} is {value!r}, but its limits are" in verdict.reason
        assert second_opinion(instance, wrong) == "coefficients outside their bounds"


def test_a_claim_that_comes_down_stays_one_about_limits(signed, tmp_path):
    """The file that a solve writes anew, where its checker shows less than was claimed."""
    problem, proof = signed
    file = tmp_path / "high.exsel"
    file.write_bytes(claiming(proof, lower=proof.upper * 1.5, upper=proof.upper * 2.0))
    shown = established(problem, file)
    assert proof.lower <= shown <= proof.upper
    verdict = verify(problem, file)
    assert verdict.verified
    assert (verdict.claimed_lower, parse_proof(file.read_bytes()).bounds) == (shown, True)


def test_a_proof_is_about_its_own_limits(signed):
    """The same data without limits, or with others; a proof for free coefficients says nothing here, true as it is."""
    problem, proof = signed
    instance = instance_of(problem)
    free = replace(instance, box=None)
    verdict = check(claiming(proof), free)
    assert "lacks limits on coefficients" in verdict.reason
    assert "--nonnegative, --bounds and --max-coef" in verdict.reason
    assert "another problem" in second_opinion(instance, claiming(proof), bounds=None)
    other = Box(instance.box.lower, np.full(4, np.inf))
    reason = check(claiming(proof), replace(instance, box=other)).reason
    assert "its hash is not that of the given data with lam = " in reason
    assert "another problem" in second_opinion(replace(instance, box=other), claiming(proof))
    plain = as_bytes(replace(proof, problem_hash=problem_hash(free), bounds=False))
    assert "has limits on coefficients" in check(plain, instance).reason
    assert "another problem" in second_opinion(instance, plain)


@pytest.mark.smoke
def test_a_header_that_says_nothing_of_limits_or_nonsense(signed):
    problem, proof = signed
    instance, sound = instance_of(problem), claiming(proof)
    assert b'"bounds": true' in sound
    for said in (b"1   ", b"fals", b'"ye"', b"[ ] "):
        wrong = sound.replace(b'"bounds": true', b'"bounds": ' + said)
        assert check(wrong, instance) is None
        with pytest.raises(standalone.Malformed):
            second_opinion(instance, wrong)
    silent = sound.replace(b'"bounds": true', b'"bounds": null')
    assert "has limits on coefficients" in check(silent, instance).reason
    assert "another problem" in second_opinion(instance, silent)


def test_limits_outside_the_domain_are_refused(signed):
    problem, proof = signed
    instance, data, d = instance_of(problem), claiming(signed[1]), 4
    inf = np.full(d, np.inf)
    for box, words in (
        (Box(np.zeros(3), inf), "two numbers"),
        (Box(np.full(d, 0.5), inf), "0 must lie"),
        (Box(np.full(d, np.nan), inf), "0 must lie"),
    ):
        with pytest.raises(ValueError, match=words):
            replace(instance, box=box)
        forged = object.__new__(Instance)
        for name, value in {**vars(instance), "box": box}.items():
            object.__setattr__(forged, name, value)
        assert not check(data, forged).verified
        assert refused(second_opinion(forged, data))
    logistic = replace(instance, loss="logistic", y=np.sign(instance.y), lam=0.0)
    assert not check(data, logistic).verified
    assert second_opinion(logistic, data) != ""
    scaled = GivenInstance(instance.A, instance.y, 2, "quadratic", 0.5, scale=True, box=instance.box)
    assert "columns are scaled" in check(data, scaled).reason
    assert "columns are scaled" in second_opinion(scaled, data)
    assert "no doubles" in check(data, replace(instance, box=Box(np.zeros(d, dtype=int), inf))).reason
    for wrong in (3, [[0.0] * d], [["0"] * d, [1.0] * d], [[0.0] * d, [math.nan] * d], [[0] * d, [1] * d]):
        assert "bounds" in second_opinion(instance, data, bounds=wrong)
    with_columns = standalone.check(data, instance.A.tolist(), [], 2, "", 0.0, 1.0, bounds=[[0.0] * d, [1.0] * d])
    assert "knows none of them" in with_columns
    assert proof.bounds


def test_a_point_proves_what_its_curvature_does():
    """Also within limits: the formula with the file's own curvature, in both checkers."""
    A, y = 10.0 * np.eye(3), np.array([10.0, 20.0, 30.0])
    instance = Instance(A, y, 1, "quadratic", 1.0, box=Box(np.zeros(3), np.full(3, np.inf)))
    proof = replace(
        parse_proof(blank_for(instance)), curvature=np.full(3, 100.9), point_value=np.zeros(0),
        point_size=np.zeros(1, np.int32), tree=np.array([8 * FIRST_POINT + USE, CLOSE], np.int32),
    )  # fmt: skip
    best = min(0.5 * float(y @ y) - 0.5 * (10.0 * t) ** 2 / 101.0 for t in y)
    for lower, verified in ((254.0, True), (best * (1 + 1e-9), False)):
        data = as_bytes(replace(proof, lower=lower, upper=1e300))
        assert check(data, instance).verified == verified
        assert (second_opinion(instance, data) == "") == verified


def test_zero_has_no_sign_and_no_limits_are_none(signed, tmp_path):
    problem = signed[0]
    plain = problem.without_coefficient_bounds
    signs = boxed(plain, "all", [(0, -0.0, 0.5)])
    assert signs.hash == boxed(plain, "all", [(0, 0.0, 0.5)]).hash
    instance = instance_of(signs)
    minus = replace(instance, box=Box(-instance.box.lower, instance.box.upper))
    solve(signs, proof=tmp_path / "run.exsel", signals=())
    data = (tmp_path / "run.exsel").read_bytes()
    assert check(data, minus).verified
    assert second_opinion(minus, data) == ""
    with pytest.raises(InputError, match="limit no coefficient"):
        boxed(plain, (), [])
    with pytest.raises(ValueError, match="all infinite"):
        replace(instance, box=Box(np.full(4, -np.inf), np.full(4, np.inf)))
    assert "infinite" in second_opinion(instance, data, bounds=[[-math.inf] * 4, [math.inf] * 4])
    lines = ["column,lower,upper", ""]
    assert read_box(lines, "", ["a", "b"], 2) is bounds(lines, "", ["a", "b"], 2) is None
    for text in ('"a,b",0,1', "1,-0,"):
        ours, theirs = (read(  # the two checkers
            [text], '"a,b", c', ["a,b", "c"], 2) for read in (read_box, bounds))  # fmt: skip
        assert [[*side] for side in ours] == [[*side] for side in theirs]


@pytest.mark.parametrize("seed", sample(10, 200))
def test_limits_go_with_hierarchies_and_groups_as_far_as_checkers_are_concerned(seed):
    """A proof about free coefficients of the same problem is one with limits, too."""
    rng = np.random.default_rng([seed, 73])
    A, y = rng.standard_normal((9, 4)), rng.standard_normal(9)
    given_ = {"groups": [0, 0, 1, None]} if seed % 2 else {"hierarchy": {1: [0], 3: [2]}}
    problem = Problem(A, y, 2, lam=0.4) if seed % 2 else Problem(A, y, 2, lam=0.4, **given_)
    if seed % 2:
        problem = GroupedProblem(problem, ["a", "a", "b", None])
    box = Box(np.where(rng.random(4) < 0.5, 0.0, -np.inf), np.full(4, np.inf))
    free = instance_of(problem)
    instance = replace(free, box=box)
    related = instance.hierarchy
    blank = replace(
        parse_proof(blank_for(instance)),
        point_value=rng.standard_normal(4) * 0.3, point_index=np.arange(4, dtype=np.int32),
        point_size=np.array([4], np.int32), tree=np.array([8 * FIRST_POINT + USE, CLOSE], np.int32),
    )  # fmt: skip
    more = {"groups": [[*group] for group in instance.groups], "hierarchy": [
        (j, [*own]) for j, own in ((1, (0,)), (3, (2,)))] if related else []}  # fmt: skip
    verdict = check(as_bytes(replace(blank, lower=1e299)), instance)
    assert not verdict.verified
    lower = verdict.lower * 0.999999
    data = as_bytes(replace(blank, lower=lower))
    assert check(data, instance).verified
    assert second_opinion(instance, data, **more) == ""
    # Limits take models away, so the bound at the same point is no smaller than without.
    unlimited = as_bytes(replace(blank, lower=1e299, bounds=False, problem_hash=problem_hash(free)))
    assert verdict.lower >= check(unlimited, free).lower * (1.0 - 1e-12)


LINES = "column,lower,upper\nb,-0.5,\n2,,0.25\n"


def test_the_command_lines(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 6))
    y = A[:, 0] - 2.0 * A[:, 1] + 0.5 * A[:, 2] + 0.1 * rng.standard_normal(30)
    np.savez("data.npz", A=A, y=y, k=3, lam=0.5, loss="quadratic", feature_names=np.array([*"abcdef"]))
    (tmp_path / "b.csv").write_text(LINES)
    limits = ["--nonnegative", "a, 3", "--bounds", "b.csv"]
    assert CliRunner().invoke(cli, ["solve", "data.npz", *limits, "--proof", "p.exsel", "--quiet"]).exit_code == 0
    checked = CliRunner().invoke(cli, ["verify", "p.exsel", "data.npz", *limits])
    assert checked.exit_code == 0
    assert "coefficients of 4 columns within limits" in checked.stdout
    assert "REJECTED" in CliRunner().invoke(cli, ["verify", "p.exsel", "data.npz"]).stdout
    for program in (first.main, second.main):
        assert program(["p.exsel", "data.npz", *limits]) == 0
        assert program(["p.exsel", "data.npz", "--nonnegative", "all", "--bounds", "b.csv"]) == 3
        assert program(["p.exsel", "data.npz"]) == 3
        assert program(["p.exsel", "data.npz", "--problem", "css", "--bounds", "b.csv"]) == 2
        for text, words in (
            ("a,0", "2 entries"), ("a,1,2", ""), ("z,0,1", "no single column"), ("a,0,1\n0,0,1", "twice"),
            ("a,x,1", ""), ("a,0,nan", ""), ('"a"x,0,1', "column,lower,upper"), ('"a,0,1', "column,lower,upper"),
        ):  # fmt: skip
            (tmp_path / "wrong.csv").write_text(text)
            capsys.readouterr()
            assert program(["p.exsel", "data.npz", "--bounds", "wrong.csv"]) in (2, 3)
            told = "".join(capsys.readouterr())
            assert words in told
            assert "Traceback" not in told
        assert program(["p.exsel", "data.npz", "--bounds", "nowhere.csv"]) == 2
        assert program(["p.exsel", "data.npz", "--nonnegative", "9"]) == 2


def test_a_limit_on_every_coefficient_at_the_command_lines(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((8, 12))
    np.savez("data.npz", A=A, y=A[:, 0] - A[:, 1] + 0.1 * rng.standard_normal(8), k=2, lam=0.0, loss="quadratic")
    limit = ["--max-coef", "0.75"]
    assert CliRunner().invoke(cli, ["solve", "data.npz", *limit, "--proof", "p.exsel", "--quiet"]).exit_code == 0
    for other, code in (([], 0), (["--nonnegative", "all"], 3)):
        checked = CliRunner().invoke(cli, ["verify", "p.exsel", "data.npz", *limit, *other])
        assert ("VERIFIED" in checked.stdout.splitlines()) == (code == 0)
        for program in (first.main, second.main):
            assert program(["p.exsel", "data.npz", *limit, *other]) == code
    for program in (first.main, second.main):
        assert program(["p.exsel", "data.npz", "--max-coef", "1"]) == 3
        assert program(["p.exsel", "data.npz"]) == 3
    refused = CliRunner().invoke(cli, ["solve", "data.npz", "--max-coef", "0"])
    assert "--max-coef is 0.0, but a positive, finite number was expected" in str(refused.exception)


WHOLE = 1e-9
"""Times what the empty model costs: how well the smallest objective is known."""


def test_a_column_leaves_nothing_to_others_that_have_limits():
    """Two columns as good as equal, each with a coefficient of at most 1: one cannot do the work of both."""
    rng = np.random.default_rng(3)
    a = rng.standard_normal(40)
    A = np.column_stack([a, a + 1e-15 * rng.standard_normal(40), rng.standard_normal(40)])
    y = 2.0 * a + 0.01 * rng.standard_normal(40)
    problem = boxed(Problem(A, y, 2, lam=1e-6), (), [(0, 0.0, 1.0), (1, 0.0, 1.0)])
    instance = replace(instance_of(problem), lam=0.0)
    best = min(enumerated_fit(problem, chosen) for chosen in allowed_sets(problem))
    assert best < 0.01
    blank = random_proof(rng, problem, instance)
    for point in ([1.0, 0.0, 0.0], [1.0, 1.0, 0.0]):
        for curvature in ([], [1e-3, 1e-16, 1e-3]):
            for tree in ([USE + 8 * FIRST_POINT, CLOSE], [USE + 8, CLOSE]):
                proof = replace(
                    blank, curvature=np.array(curvature), point_value=np.array(point), valid_for="bounded models",
                    point_index=np.arange(3, dtype=np.int32), point_size=np.array([3], np.int32),
                    dual_value=np.zeros(0), tree=np.array(tree, np.int32), lower=2.0 * best + 1e-6, upper=1e300,
                )  # fmt: skip
                assert not check(claiming(proof), instance).verified
                assert second_opinion(instance, claiming(proof)) != ""


@pytest.mark.parametrize("seed", sample(16, 2000))
def test_bounds_in_doubles_are_below_the_exact_ones_without_a_ridge(seed):
    problem, rng = curved_case(seed, lams=(0.0,)), np.random.default_rng([seed, 79])
    if problem is None:
        return
    instance = instance_of(problem)
    plain, exact = RigorousBounds(instance), ExactBounds(instance)
    D = np.linalg.eigvalsh(instance.A.T @ instance.A)[0] * (0.1 + 0.8 * rng.random(problem.d))
    if not np.all(D > 0.0):
        return
    state = rng.integers(0, 3, problem.d).astype(np.uint8)
    state[np.flatnonzero(state == 2)[problem.k :]] = 1
    S, C = np.flatnonzero(state == 2).tolist(), np.flatnonzero(state == 1).tolist()
    for x in (np.zeros(problem.d), rng.standard_normal(problem.d), problem.fit(range(problem.d)).coef):
        bound = plain.bounds(plain.at_models(x[None], D), np.zeros(1, dtype=int), state[None])[0]
        assert bound <= exact.at_model(S, C, [Fraction(v) for v in x.tolist()], D)
