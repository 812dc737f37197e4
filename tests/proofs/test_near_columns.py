"""Proofs over dependent columns: both checkers verify honest ones, and nothing above the best bounded model."""

from __future__ import annotations

import json
import struct
import tempfile
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from bounded_models import best_bounded, nearly_independent, supports
from counted import first_says
from hand_written import CLOSE, COUNTED, SPLIT_IN, USE, written
from hypothesis import example, given
from hypothesis import strategies as st
from samples import examples, many
from standalone_says import said
from tiny_problems import Case, optimum

import exactsel
from exactsel.problem import redundant_columns
from exactsel.problem.redundant_columns import RedundantColumns
from exactsel_certificates.checking import verify
from exactsel_certificates.container import parse_proof
from exactsel_certificates.formula import Instance
from exactsel_certificates.given import GivenInstance
from exactsel_certificates.near import FARTHEST, NearColumns
from exactsel_certificates.rigorous import RigorousBounds
from exactsel_certificates.standalone import check
from exactsel_certificates.standalone import near as standalone_near
from exactsel_certificates.standalone.losses import LOSSES
from exactsel_certificates.standalone.regression import Regression
from exactsel_certificates.walk import IN

SEEDS = st.integers(0, 10**7)

SOLVE = partial(exactsel.solve, threads=1, heuristics=(), time_limit=20.0)


@pytest.fixture(autouse=True)
def small_problems_too(monkeypatch):
    monkeypatch.setattr(redundant_columns, "MOST_TAKING_PART", 0.9)


def with_lower(data, lower):
    """The file with another claim, and an upper bound nobody minds."""
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header |= {"lower": float(lower).hex(), "upper": (1e300).hex()}
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % 8)
    return struct.pack("<Q", len(text)) + text + data[8 + length :]


def second_says(problem, data):
    return check(data, problem.A.tolist(), problem.y.tolist(), problem.k, "quadratic", 0.0, 1.0)


@example(863)  # columns 3 and 4 make up for 2, and 6 is nearly dependent on them
@given(SEEDS)
@examples(300, 600)
def test_what_a_region_goes_without_every_region_below_it_goes_without(seed):
    rng, problem = np.random.default_rng(seed), nearly_independent(seed, most=9, most_k=5)
    known = RedundantColumns.of(problem)
    if known is None:
        return
    instance = Instance(problem.A, problem.y, problem.k, "quadratic", 0.0)
    near = NearColumns(instance, RigorousBounds(instance), np.zeros(0))
    order = rng.permutation(problem.d)
    size = int(rng.integers(1, problem.k + 1))
    S, candidates = np.sort(order[:size]), np.sort(order[size:])
    gone = np.setdiff1d(candidates, known.reduce(S, candidates, problem.k).candidates)
    state = np.ones((1, problem.d), dtype=np.uint8)
    state[0, S] = IN
    more = np.setdiff1d(candidates, gone)[: problem.k - size]
    for below in (S, np.append(S, more)):
        state[0, below] = IN
        assert not near.without(state)[0][0, gone].any()


@example(2946)  # its claim leaves less room than a near column costs
@given(SEEDS)
@examples(15, 120)
def test_honest_proofs_pass_and_raised_claims_do_not(tmp_path_factory, seed):
    problem = nearly_independent(seed, most=7, most_k=4)
    if RedundantColumns.of(problem) is None or RedundantColumns.of(problem).curvature is None:
        return
    file = tmp_path_factory.mktemp("near") / "p.exsel"
    found = SOLVE(problem, subtrees=seed % 2 == 0, proof=file)
    data = file.read_bytes()
    best = min(best_bounded(problem, support) for support in supports(problem.root_state, problem.k))
    assert Fraction(found.lower) <= best
    assert exactsel.verify(problem, file).verified
    for more in (1e-12, 1e-6, 1e-2):
        claim = float(best) * (1.0 + more) + 1e-300
        file.write_bytes(with_lower(data, claim))
        verdict = exactsel.verify(problem, file)
        assert not verdict.verified
        assert Fraction(verdict.lower) <= best
        assert second_says(problem, with_lower(data, claim)) != ""


def test_the_second_checker_verifies_nearly_all_of_what_the_first_does():
    """Where less than the price was left to spare, exact fits of single sets stand behind the first one's word."""
    verified = []
    for seed in range(many(50, 80)):
        problem = nearly_independent(seed, most=7, most_k=4)
        if RedundantColumns.of(problem) is not None and RedundantColumns.of(problem).curvature is not None:
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "p.exsel"
                found = SOLVE(problem, subtrees=seed % 2 == 0, proof=file)
                data = file.read_bytes()
            if found.lower > 1e-6 * problem.gram.constant:
                verified.append(second_says(problem, with_lower(data, found.lower * (1.0 - 1e-6))) == "")
    assert len(verified) > many(18, 30)
    assert np.mean(verified) > 0.9, verified


@given(SEEDS)
@examples(150, 300)
def test_both_checkers_call_the_same_columns_near(seed):
    """The second one in fractions: what the first leaves out it leaves out too."""
    rng, problem = np.random.default_rng(seed), nearly_independent(seed)
    instance = Instance(problem.A, problem.y, problem.k, "quadratic", 0.0)
    first = NearColumns(instance, RigorousBounds(instance), np.zeros(0))
    r = Regression(problem.A.tolist(), problem.y.tolist(), problem.k, LOSSES["quadratic"](1.0), 0.0)
    second = standalone_near.NearColumns(r, Fraction(0), [])
    columns = rng.permutation(problem.d)[: rng.integers(1, problem.d + 1)].tolist()
    others, j = columns[:-1], columns[-1]
    if first.independent([*others, j])[-1:] != [j] and first.independent(others) == others:
        assert second._near(others, j)
    assert Fraction(first.price) >= second.level


def test_a_column_a_little_too_far_is_not_left_out():
    rng = np.random.default_rng(2)
    A = rng.standard_normal((40, 5))
    A[:, 4] = A[:, 0] + A[:, 1]
    for away, near in ((0.0, True), (20.0 * FARTHEST, False)):
        B = A.copy()
        B[:, 4] += away * np.linalg.norm(A[:, 4]) * A[:, 3] / np.linalg.norm(A[:, 3])
        instance = Instance(B, A[:, 2], 3, "quadratic", 0.0)
        states = np.array([[2, 2, 1, 1, 1]], dtype=np.uint8)
        left = NearColumns(instance, RigorousBounds(instance), np.zeros(0)).without(states)[0]
        assert (left[0, 4] == 0) == near


def test_curvature_of_a_region_does_not_serve_a_wider_one():
    rng = np.random.default_rng(4)
    A = rng.standard_normal((30, 6))
    A[:, 5] = A[:, 0] - A[:, 1]
    instance = Instance(A, A[:, 2], 3, "quadratic", 0.0)
    D = np.full(6, 0.5 * np.linalg.eigvalsh(A[:, :5].T @ A[:, :5])[0])
    near, all_but_one = NearColumns(instance, RigorousBounds(instance), D), np.array([1, 1, 1, 1, 1, 0], dtype=np.uint8)
    nothing = np.zeros(6)
    assert near.convex(all_but_one, nothing)
    assert not near.convex(np.ones(6, dtype=np.uint8), nothing)
    assert not near.convex(all_but_one, np.eye(6)[5])
    assert not NearColumns(instance, RigorousBounds(instance), 100.0 * D).convex(all_but_one, nothing)


@pytest.mark.parametrize("claim", [1e-6, 0.01, 0.05])
def test_copies_share_a_coefficient_that_is_too_large_for_one_of_them(claim):
    """One column of each direction would do with coefficients of 1.5 R ||y||, which two of each have in halves."""
    A = [[1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 1 / 1.5e6, 1 / 1.5e6]]
    case = Case(A, [0.0, 1.0], 4, "quadratic", 0.0)
    file = written(case, [COUNTED], {}, 0.0, 1e300, valid_for="bounded models")
    assert said(case, file, lower=claim, upper=0.5) != ""
    assert not first_says(case, file, lower=claim, upper=0.5).verified


@pytest.mark.parametrize("claim", [0.1, 0.4, 0.49])
@pytest.mark.parametrize("tree", [[COUNTED], [8 * 3 + SPLIT_IN, COUNTED, COUNTED]])
def test_what_took_over_coefficients_is_not_left_out_itself(claim, tree):
    """e2 is near to three columns of S, one of which is then near to others of them, with a coefficient of 10^14."""
    columns = [[0.0, 1.0, -0.09], [1.0, 0.0, 0.9e-14], [1.0, 1e-13, 0.0], [0.0, 1.0, 0.0]]
    A = [list(row) for row in zip(*columns, strict=True)]
    case = Case(A, [0.0, 0.0, 1.0], 4, "quadratic", 0.0, force_in=[0, 1, 2])
    file = written(case, tree, {}, 0.0, 1e300, valid_for="bounded models")
    assert said(case, file, lower=claim, upper=0.5) != ""
    assert not first_says(case, file, lower=claim, upper=0.5).verified


@pytest.mark.parametrize("m", [6, 10])
def test_many_near_columns_are_paid_for_once_each(m):
    """What m columns of C hand to one of S would be lost with it, and m times the price exceeded by 4e-8 to 8e-8."""
    eta, k = 7.5e-15, 2 * m + 2
    columns = [[0.0, 2.0 * i + 1.0, 0.0] for i in range(m)] + [[1.0, 0.25, 0.0], [1.0, 0.0, eta]]
    columns += [[0.0, 1.0, -4.0 * eta]] * m
    A = [list(row) for row in zip(*columns, strict=True)]
    case = Case(A, [0.0, 0.0, 1.0], k, "quadratic", 0.0, force_in=[*range(m, k)])
    file = written(case, [COUNTED], {}, 0.0, 1e300, valid_for="bounded models")
    claim = 0.5 - 1.0001e-8 * k - 1e-11
    assert said(case, file, lower=claim, upper=0.5) != ""
    assert not first_says(case, file, lower=claim, upper=0.5).verified


@pytest.mark.parametrize("rel", [1e-11, 1e-14])
def test_a_scope_says_nothing_of_weighted_huber_loss(rel):
    """Lengths of weighted columns against one of an unweighted target: too little was taken off for centring."""
    A = [[1.0, 1.0], [0.0, 2.0**-56], [0.0, 0.0]]
    case = Case(A, [0.0, 1.0, -1.0], 2, "huber", 1e-5, 1e10, weights=[1e20] * 3, level=True)
    file = written(case, [8 * 3 + USE, CLOSE], {}, 0.0, 1e300, points=[{}], valid_for="bounded models")
    claim = 1e20 * (1.0 - rel)  # a bounded model costs 1e20 (1 - 2.28e-11)
    given = GivenInstance(
        np.array(case.A), np.array(case.y), 2, "huber", 1e-5, 1e10, weights=np.array(case.weights), intercept=True
    )
    header = file.header | {"lower": claim.hex(), "upper": (1.001e20).hex()}
    assert not verify(parse_proof(file._replace(header=header).data()), given).verified
    assert said(case, file, lower=claim, upper=1.001e20) != ""


@pytest.mark.parametrize("tree", [[SPLIT_IN, COUNTED, COUNTED], [SPLIT_IN, 8 + USE, CLOSE, CLOSE]])
def test_with_a_ridge_no_copy_is_left_out(tree):
    """Two copies share the work and so pay less for it; the file shows the empty model, which hides nothing."""
    case = Case([[1.0, 1.0], [0.5, 0.5]], [2.0, 1.0], 2, "quadratic", 1.0)
    best = float(optimum(case).value)
    file = written(case, tree, {}, 0.0, 1e300, curvature=(0.5, 0.5), valid_for="bounded models")
    for claim in (best * (1.0 + 1e-9), 0.9, 1.11):
        assert said(case, file, lower=claim, upper=2.5) != ""
        assert not first_says(case, file, lower=claim, upper=2.5).verified
