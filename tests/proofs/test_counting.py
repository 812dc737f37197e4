"""Regions closed by counting and by splits: what is verified is true, what is true is verified, by both checkers."""

from __future__ import annotations

import random
from fractions import Fraction as F
from itertools import combinations

import numpy as np
import pytest
from counted import first_says, instance_of, random_file
from hand_written import CLOSE, COUNTED, FIT, SPLIT, SPLIT_IN, USE, written
from hypothesis import given
from hypothesis import strategies as st
from samples import examples, sample
from standalone_says import said
from tiny_problems import Case, optimum, random_case

import exactsel
from exactsel.bounds.witness import SplitPoint
from exactsel.proofs.writer import ProofWriter
from exactsel.search import events as ev
from exactsel_certificates import counting, semidefinite
from exactsel_certificates.container import MalformedError, read_proof
from exactsel_certificates.exact import ExactBounds
from exactsel_certificates.formula import Instance
from exactsel_certificates.polishing import Polisher
from exactsel_certificates.rigorous import RigorousBounds
from exactsel_certificates.semidefinite import Semidefinite, Split
from exactsel_certificates.standalone import Malformed, check
from exactsel_certificates.standalone.counting import unproven
from exactsel_dev.reference.semidefinite import counted_bound, split_bound


@pytest.fixture(autouse=True)
def without_compiler(monkeypatch):
    """Numpy's counts; those that are compiled have tests of their own."""
    monkeypatch.setattr(semidefinite, "compiled", lambda sets, regions: None)


def is_counted(file):
    return any(word & 7 >= COUNTED for word in file.arrays["tree"])


def soundness(seed):
    """Claims above the truth fail, claims below what is proven do not; how it went."""
    rng = random.Random(seed)
    case = random_case(rng, "quadratic", widest=5)
    best = optimum(case)
    only_counts = rng.random() < 0.5
    file = random_file(rng, case, fits=not only_counts)
    if not is_counted(file) or best.value <= 0:
        return "other"
    upper = 1e300
    for more in (F(1, 10**9), F(1, 100), F(1)):
        claim = float(best.value * (1 + more)) + 1e-300
        verdict = first_says(case, file, lower=claim, upper=upper)
        assert not verdict.verified, (seed, more)
        assert F(verdict.lower) <= best.value, (seed, more, verdict.lower)
        assert said(case, file, lower=claim, upper=upper) != "", (seed, more)
    claim = float(best.value * (1 - F(1, 10**9)))
    second = said(case, file, lower=claim, upper=upper)
    first = first_says(case, file, lower=claim, upper=upper)
    assert F(first.lower) <= best.value
    if only_counts:
        assert second == "", (seed, second)
        simple = not (case.level or case.weights or case.scale)
        assert first.verified or not simple, (seed, first.reason)
    return "proven" if second == "" else "loose"


@pytest.mark.parametrize("chunk", sample(3, 20, smoke=1))
def test_what_is_verified_is_true(chunk):
    outcomes = [soundness(seed) for seed in range(chunk * 100, chunk * 100 + 100)]
    assert outcomes.count("proven") > 20
    assert outcomes.count("loose") > 3


# --- by hand ---


def weakly_dependent(d=8, k=3, n=60, seed=3):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    y = A @ np.linspace(1.0, 0.4, d) + rng.standard_normal(n)
    return Case(A.tolist(), y.tolist(), k, "quadratic", 0.0)


def clipped(case, level):
    """The split that takes every off-diagonal of Q at a level."""
    A, y = np.array(case.A), np.array(case.y)
    b = A.T @ y
    Q = A.T @ A + case.lam * np.eye(len(b)) - np.outer(b, b) / (y @ y - 2 * level)
    scale = np.sqrt(np.diagonal(Q))
    N = Q / scale / scale[:, None]
    return [*range(len(b))], scale.tolist(), N[np.tril_indices(len(b), -1)].astype(np.float16).astype(float).tolist()


def test_a_split_proves_what_the_fit_does_not():
    case = weakly_dependent()
    best = optimum(case)
    level = 0.6 * float(best.value)
    split = clipped(case, level)
    bound = split_bound(instance_of(case).plain, [], range(8), split[0], np.array(split[1]), np.array(split[2]))
    assert level < bound < float(best.value)
    file = written(case, [SPLIT, CLOSE], best.x, 0, 1e300, splits=[split])
    by_fit = written(case, [8 * FIT + USE, CLOSE], best.x, 0, 1e300)
    for share, holds in ((0.999, True), (1.001, False)):
        claims = {"lower": share * bound, "upper": 1e300}
        assert (said(case, file, **claims) == "") == first_says(case, file, **claims).verified == holds
    assert said(case, by_fit, lower=level, upper=1e300) != ""
    for words in ([8 + SPLIT, CLOSE], [SPLIT, 8 * FIT + USE, CLOSE], [8 * 99 + SPLIT, CLOSE]):
        other = written(case, words, best.x, level, 1e300, splits=[split])
        assert said(case, other, lower=level, upper=1e300) != ""
        assert not first_says(case, other, lower=level, upper=1e300).verified


def test_a_split_stays_in_force_below_a_word_and_holds_in_parts():
    case = weakly_dependent()
    best = optimum(case)
    level = 0.6 * float(best.value)
    tree = [SPLIT, 8 * 2 + SPLIT_IN, CLOSE, COUNTED]
    file = written(case, tree, best.x, 0, 1e300, splits=[clipped(case, level)])
    assert said(case, file, lower=level, upper=1e300) == ""
    assert first_says(case, file, lower=level, upper=1e300).verified


@examples(6, 60)
@given(st.integers(0, 2**32))
def test_a_forged_split_proves_no_more_than_its_matrix(seed):
    rng = np.random.default_rng(seed)
    case = weakly_dependent(seed=int(rng.integers(5)))
    best = float(optimum(case).value)
    columns, scale, entries = clipped(case, 0.6 * best)
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.integers(len(entries)))
        entries[place] = float(np.float16(rng.choice([-entries[place], 0.0, 1.0, 60000.0, 2 * entries[place]])))
    scale = (np.array(scale) * 10.0 ** rng.choice([0, 0, 0.1, 1, 300], len(scale))).tolist()
    with np.errstate(all="ignore"):
        bound = split_bound(instance_of(case).plain, [], range(8), columns, np.array(scale), np.array(entries))
    for claim in (0.3 * best, 0.5 * best, 0.6 * best, 1.0001 * best):
        file = written(case, [SPLIT, CLOSE], {}, 0, 1e300, splits=[(columns, scale, entries)])
        verified = first_says(case, file, lower=claim, upper=1e300).verified
        assert verified == (said(case, file, lower=claim, upper=1e300) == "") or abs(bound - claim) < 1e-6 * claim
        assert not verified or claim <= best
        assert not verified or not np.isfinite(bound) or claim <= bound * (1 + 1e-9)


def test_other_losses_prove_nothing_by_counting_and_groups_nothing_by_splits():
    grouped = Case([[1.0, 0.0, 1.0], [0.0, 2.0, 1.0], [1.0, 1.0, 0.0]], [1.0, 2.0, 3.0], 1, groups=[[0, 2], [1]])
    huber = Case(grouped.A, grouped.y, 1, "huber")
    for case, trees in ((grouped, ([SPLIT, CLOSE],)), (huber, ([COUNTED], [SPLIT, CLOSE]))):
        for tree in trees:
            file = written(case, tree, {}, 0, 1e300, splits=[([0, 1], [1.0, 1.0], [0.0])])
            assert said(case, file, lower=0.0, upper=1e300) == ""
            assert said(case, file, lower=1e-9, upper=1e300) != ""
            if case.groups:
                assert not first_says(case, file, lower=1e-9, upper=1e300).verified


# --- against slow twins ---


def random_instance(rng, most=7):
    n, d = int(rng.integers(2, 9)), int(rng.integers(1, most))
    A = rng.standard_normal((n, d)) if rng.random() < 0.6 else rng.integers(-1, 2, (n, d)).astype(float)
    if d > 1 and rng.random() < 0.3:
        A[:, -1] = A[:, 0] * float(rng.choice([1.0, -4.0, 3.0]))
    lam = float(rng.choice([0.0, 0.1, 3.0]))
    return Instance(A, rng.standard_normal(n), int(rng.integers(1, d + 1)), "quadratic", lam)


def copied(instance):
    """Whether a column is a multiple of another."""
    unit = instance.A / np.maximum(np.linalg.norm(instance.A, axis=0), 1e-300)
    return np.sum(np.abs(unit.T @ unit) > 1 - 1e-12) > unit.shape[1]


def random_state(rng, instance):
    state = rng.integers(0, 3, instance.A.shape[1]).astype(np.uint8)
    state[np.flatnonzero(state == 2)[instance.k :]] = 1
    return state, np.flatnonzero(state == 2).tolist(), np.flatnonzero(state == 1).tolist()


@examples(300, 600)
@given(st.integers(0, 2**32))
def test_counts_and_splits_equal_their_slow_twins(seed):
    rng = np.random.default_rng(seed)
    instance = random_instance(rng)
    state, S, C = random_state(rng, instance)
    columns = np.sort(rng.permutation(len(state))[: int(rng.integers(1, len(state) + 1))])
    N = np.tril(rng.standard_normal((len(columns),) * 2) * float(rng.choice([0.0, 0.01, 0.3])), -1).astype(np.float16)
    N = N.astype(float)
    scale = rng.uniform(0.5, 2.0, len(columns))
    entries = N[np.tril_indices(len(columns), -1)]
    plain, c = RigorousBounds(instance), 0.5 * float(instance.y @ instance.y)
    first = rng.permutation(len(state))[: int(rng.integers(len(state) + 1))]
    # Copies, and columns of zeros in S, are left out by the checker, not by the twin.
    plainly = instance.lam > 0 or (np.linalg.matrix_rank(instance.A[:, S]) == len(S) and not copied(instance))
    bounds = counted_bound(instance, S, C), split_bound(instance, S, C, columns.tolist(), scale, entries)
    for share in (0.5, 0.999, 1.001, 1.2):
        for bound, kind in zip(bounds, ("count", "split"), strict=True):
            level = share * bound if 1e-6 * c < bound < np.inf else share * 0.5 * c
            if not level < c * (1 - 1e-6):
                continue
            at = Semidefinite(plain, level, 1e9, first)
            if kind == "count":
                found = bool(at.counted(state[None], instance.k)[0])
                thin = {tuple(columns) for columns in at.undecided(state, instance.k)}
                assert found <= (not thin)
                found = found or all(counted_bound(instance, each, []) >= level for each in thin)
            else:
                found = at.split(state, instance.k, Split(columns, scale, N + N.T))
            if found:
                assert level <= bounds[0] * (1 + 1e-9)
                assert level <= bound * (1 + 1e-9) or not plainly
            elif kind == "count" or instance.lam > 0:
                assert not level < bound * (1 - 1e-6)


@pytest.mark.smoke
@pytest.mark.parametrize("chunk", sample(2, 10))
def test_nothing_holds_at_a_level_just_above_the_exact_value(chunk):
    """Levels from 1e-17 to 1e-3 above what columns of any condition cost; without a margin hundreds of these hold."""
    held = 0
    for seed in range(40 * chunk, 40 * chunk + 40):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 40))
        d = int(rng.integers(1, min(n, 7)))
        A = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-8, 8, d) ** (seed % 2)
        if seed % 4 > 1:
            A[:, -1] = A[:, 0] + 10.0 ** rng.uniform(-9, -2) * A[:, -1]
        y = rng.standard_normal(n) if seed % 3 else A @ rng.standard_normal(d) + 1e-3 * rng.standard_normal(n)
        instance = Instance(A, y, d, "quadratic", float(rng.choice([0.0, 0.0, 1e-6, 1.0])))
        value = Polisher(ExactBounds(instance)).least_squares([*range(d)])
        states = np.array([[2] * d, [1] * d], dtype=np.uint8)
        nothing = Split(np.arange(d), np.ones(d), np.zeros((d, d)))
        for size in range(-17, -2):
            for level in (float(value * (1 + F(1, 10**-size))), float(value * (1 - F(1, 10**-size)))):
                at = Semidefinite(RigorousBounds(instance), level, 1e9, np.arange(0))
                ways = [at.on_all(states > 0), at.counted(states, d), [at.split(states[1], d, nothing)]]
                assert F(level) <= value or not np.any(np.concatenate(ways)), seed
                held += bool(np.all(np.concatenate(ways)))
    assert held > 100


def definite(M, r):
    """Whether all principal submatrices of at most r columns have positive eigenvalues only."""
    sets = [chosen for size in range(1, r + 1) for chosen in combinations(range(len(M)), size)]
    return all(np.linalg.eigvalsh(M[np.ix_(chosen, chosen)])[0] > 0 for chosen in sets)


@pytest.mark.smoke
def test_every_count_against_eigenvalues():
    rng = np.random.default_rng(5)
    seen = set()
    for _ in range(150):
        m, r, s, B = (int(v) for v in rng.integers((1, 1, 0, 1), (7, 5, 3, 4)))
        G = rng.standard_normal((B, m, m + 2))
        M = G @ G.swapaxes(1, 2) - rng.uniform(0.0, 1.5) * np.eye(m)
        F, R = rng.standard_normal((2, B, s, m))
        R = F if s else R
        left = M - F.swapaxes(1, 2) @ R
        diagonal = np.diagonal(left, axis1=1, axis2=2).copy()
        sound = rng.random(B) < 0.9
        truth = np.array([definite(each, r) for each in left])
        np.testing.assert_array_equal(counting.all_hold(sound, M.copy(), F, R, diagonal, r), sound & truth)
        for each, d, holds in zip(left, diagonal, truth, strict=True):
            bad = {tuple(sorted(chosen)) for chosen in counting.unproven(each, d, r)}
            lower = [row[:i].tolist() for i, row in enumerate(each)]
            assert bad == {tuple(sorted(chosen)) for chosen in unproven(lower, d.tolist(), r)}
            assert holds == (not bad)
            below = [c for size in range(1, r + 1) for c in combinations(range(m), size)]
            wrong = {c for c in below if np.linalg.eigvalsh(each[np.ix_(c, c)])[0] <= 0}
            assert wrong <= bad
            seen |= {(r, bool(holds))}
    assert {(r, holds) for r in (1, 2, 3, 4) for holds in (True, False)} <= seen


# --- the file ---


def sound_file():
    case = weakly_dependent(d=4, k=2, n=9)
    return case, written(case, [SPLIT, 8 * 1 + SPLIT_IN, CLOSE, COUNTED], {0: 1.0}, 0, 1e300, splits=[
        ([0, 2, 3], [1.0, 2.0, 0.5], [0.25, 0.5, -0.125]), ([], [], []), ([1], [1.0], [])])  # fmt: skip


BROKEN = {
    "split_size": [[3, 0], [2, 1, 1], [3, 2, -1], [4, 0], [3, 0, 1, 1]],
    "split_column": [[0, 2, 2, 1], [0, 2, 4, 1], [2, 0, 3, 1], [0, 2, 3]],
    "split_scale": [[1.0, 0.0, 1.0, 1.0], [1.0, -1.0, 1.0, 1.0], [1.0] * 3, [float("inf"), 1.0, 1.0, 1.0]],
    "split_value": [[0.0] * 2, [0.0] * 4, [float("nan"), 0.0, 0.0], [0.0, float("inf"), 0.0]],
    "tree": [[SPLIT], [COUNTED, CLOSE], [8 * 1 + SPLIT_IN, COUNTED]],
}


@pytest.mark.smoke
def test_each_rule_about_splits():
    case, file = sound_file()
    assert said(case, file, lower=0.0, upper=1e300) == ""
    assert first_says(case, file, lower=0.0, upper=1e300).verified
    files = [file._replace(arrays=file.arrays | {name: value}) for name, values in BROKEN.items() for value in values]
    for left_out in [name for name in file.arrays if name.startswith("split")]:
        files.append(file._replace(arrays={name: v for name, v in file.arrays.items() if name != left_out}))
    files += [file._replace(header=file.header | {"version": version}) for version in (0, 2, 4, True, "1", None)]
    for broken in files:
        with pytest.raises(Malformed, match="is no proof"):
            check(broken.data(), **case._asdict())
        with pytest.raises(MalformedError, match=r"\.$"):
            first_says(case, broken)
    without = file._replace(arrays={name: v for name, v in file.arrays.items() if not name.startswith("split")})
    assert said(case, without, lower=0.0, upper=1e300) == ""
    assert first_says(case, without, lower=0.0, upper=1e300).verified
    for kind in ("i", "H"):
        other = file._replace(types=file.types | {"split_column": kind})
        assert said(case, other, lower=0.0, upper=1e300) == ""
        assert first_says(case, other, lower=0.0, upper=1e300).verified


def test_the_writer_stores_splits_once(tmp_path):
    case = weakly_dependent()
    level = 0.6 * float(optimum(case).value)
    problem = exactsel.Problem(np.array(case.A), np.array(case.y), case.k, lam=0.0)
    columns, scale, entries = clipped(case, level)
    split = SplitPoint(
        np.array(columns, dtype=np.int32),
        np.array(scale) / problem.objective.divisors[columns],
        np.array(entries, dtype=np.float16),
    )
    file = tmp_path / "run.exsel"
    writer = ProofWriter(problem, file)
    state = np.ones(8, dtype=np.int8)
    for event in (
        ev.Divided(0, (3,), (1,), 2),
        ev.Discarded(1, state, "bound", level, split),
        ev.Discarded(2, state, "bound", level, split),
        ev.Finished("done", ()),
    ):
        writer(event, None)
    writer.finish(level, 0.51 * float(problem.y @ problem.y), (), np.zeros(8), "")
    proof = read_proof(file)
    assert proof.split_size.tolist() == [8]
    assert proof.tree.tolist() == [8 * 3 + SPLIT_IN, SPLIT, CLOSE, CLOSE]
    np.testing.assert_array_equal(proof.split_value, split.entries)
    assert exactsel.verify(problem, file).verified


def test_sets_are_looked_at_one_by_one_within_the_limit_only(monkeypatch):
    """A region too large to count is not searched for what counting would suspect."""
    rng = np.random.default_rng(2)
    A, y = rng.normal(size=(60, 20)), rng.normal(size=60)
    case = Case(A.tolist(), y.tolist(), 6, "quadratic", 0.1)
    grouped = case._replace(groups=[[2 * g, 2 * g + 1] for g in range(10)])
    dependent = Case(np.hstack([A, A[:, :1]]).tolist(), y.tolist(), 6, "quadratic", 0.0)

    def never(*_):
        raise AssertionError("sets are looked at one by one")

    for name in ("semidefinite.unproven", "group_counting._doubtful", "group_counting._not_run"):
        monkeypatch.setattr(f"exactsel_certificates.{name}", never)
    for about, valid_for in ((case, ""), (grouped, ""), (dependent, "bounded models")):
        file = written(about, [COUNTED], {0: 1.0}, 0.5 * float(y @ y), 1e300, valid_for=valid_for)
        verdict = first_says(about, file, lower=0.49 * float(y @ y), upper=1e300, exact_limit=1.0)
        assert verdict.lower == 0.0
        with pytest.raises(AssertionError, match="one by one"):
            first_says(about, file, lower=0.49 * float(y @ y), upper=1e300)
