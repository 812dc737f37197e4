"""Regions of groups closed by counting: both checkers against every set of groups, and what they do it with."""

from __future__ import annotations

import random
from fractions import Fraction as F
from itertools import combinations, pairwise

import numpy as np
import pytest
from counted import first_says
from grouped_cases import random_grouped
from hand_written import COUNTED, written
from hypothesis import given
from hypothesis import strategies as st
from recorded import second_opinion
from samples import examples, sample
from standalone_says import said
from tiny_problems import optimum, random_case

from exactsel import Problem, solve, verify
from exactsel.kernels.node import FREE, IN
from exactsel_certificates import container
from exactsel_certificates.formula import Instance
from exactsel_certificates.group_counting import GroupCounting, _doubtful, _norms, _not_run
from exactsel_certificates.rigorous import RigorousBounds
from exactsel_certificates.semidefinite import Semidefinite
from exactsel_certificates.standalone.algebra import whole
from exactsel_certificates.standalone.counting import holds

SEEDS = st.integers(0, 10**7)


def blocks(rng, most=7):
    """Widths of groups and a symmetric matrix on them, nearly semidefinite, at times with dependent columns."""
    widths = rng.integers(1, 4, int(rng.integers(1, most)))
    m = int(widths.sum())
    basis = rng.standard_normal((m, int(rng.integers(1, m + 4))))
    M = basis @ basis.T + float(rng.choice([-0.5, 0.0, 0.1, 1.0, 5.0])) * np.eye(m)
    return np.concatenate([[0], np.cumsum(widths)]), M


@pytest.mark.parametrize("chunk", sample(3, 20, smoke=1))
def test_counts_of_groups_prove_what_is_true_and_nothing_else(chunk):
    """Claims a billionth above the truth fail, those a billionth below hold, in one count of everything."""
    tried = proven = 0
    for seed in range(chunk * 300, chunk * 300 + 300):
        case = random_case(random.Random(seed), "quadratic", widest=5)
        if not case.groups:
            continue
        best = optimum(case).value
        file = written(case, [8 * 3 + COUNTED], {}, 0.0, 1e300)
        if best <= 0:
            continue
        tried += 1
        for more in (F(1, 10**9), F(1, 100), F(1)):
            claim = float(best * (1 + more)) + 1e-300
            verdict = first_says(case, file, lower=claim, upper=1e300)
            assert not verdict.verified, (seed, more)
            assert F(verdict.lower) <= best, (seed, more)
            assert said(case, file, lower=claim, upper=1e300) != "", (seed, more)
        claim = float(best * (1 - F(1, 10**9)))
        assert said(case, file, lower=claim, upper=1e300) == "", seed
        simple = not (case.level or case.weights or case.scale)
        first = first_says(case, file, lower=claim, upper=1e300)
        assert first.verified or not simple, (seed, first.reason)
        proven += first.verified
    assert tried > 20
    assert proven > 15


@given(SEEDS)
@examples(300, 600)
def test_sets_are_doubtful_where_they_are_not_semidefinite(seed):
    rng = np.random.default_rng(seed)
    ends, M = blocks(rng)
    groups = len(ends) - 1
    r = int(rng.integers(1, min(groups, 3) + 1))
    with np.errstate(all="ignore"):
        doubtful = {frozenset(chosen) for chosen in _doubtful(M, ends, r)}
    left = {frozenset(chosen) for chosen in _not_run(M, ends, combinations(range(groups), r))}
    for chosen in combinations(range(groups), r):
        columns = np.concatenate([np.arange(ends[g], ends[g + 1]) for g in chosen])
        smallest = np.linalg.eigvalsh(M[np.ix_(columns, columns)])[0] / np.abs(M).max()
        if smallest < -1e-12:
            assert frozenset(chosen) in doubtful & left
        if smallest > 1e-9:
            assert frozenset(chosen) not in left
        if r == 1 and smallest > 1e-6:
            assert frozenset(chosen) not in doubtful


@given(SEEDS)
@examples(100, 200)
def test_norms_are_those_of_orthonormal_blocks(seed):
    rng = np.random.default_rng(seed)
    ends, M = blocks(rng)
    M += np.abs(np.linalg.eigvalsh(M)).max() * 1e-3 * np.eye(len(M)) - min(0.0, np.linalg.eigvalsh(M)[0]) * np.eye(
        len(M)
    )
    f = _norms(M, ends)
    parts = [slice(a, b) for a, b in pairwise(ends)]
    inverse_roots = []
    for part in parts:
        values, vectors = np.linalg.eigh(M[part, part])
        inverse_roots.append(vectors / np.sqrt(values) @ vectors.T)
    for g, h in combinations(range(len(parts)), 2):
        exact = np.linalg.norm(inverse_roots[g] @ M[parts[g], parts[h]] @ inverse_roots[h])
        assert exact <= f[g, h] <= exact * (1 + 1e-6) + 1e-6


@given(SEEDS)
@examples(200, 400)
def test_whole_numbers_decide_as_eigenvalues_do(seed):
    rng = np.random.default_rng(seed)
    ends, M = blocks(rng, 6)
    M = np.round(M * 64) / 64
    M = (M + M.T) / 2
    groups = [list(range(a, b)) for a, b in pairwise(ends)]
    r = int(rng.integers(0, len(groups) + 2))
    smallest = [
        np.linalg.eigvalsh(M[np.ix_(columns, columns)])[0]
        for chosen in combinations(groups, min(r, len(groups)))
        if (columns := [j for group in chosen for j in group])
    ]
    least = min(smallest, default=1.0)
    if abs(least) > 1e-9:
        found = holds(whole([[F(v) for v in row] for row in M.tolist()]), groups, r)
        assert found == (least > 0)


def level_counting(instance, level):
    bounds = RigorousBounds(instance)
    first = np.zeros(0, dtype=np.int64)
    return GroupCounting(Semidefinite(bounds, level, 1e9, first), instance.groups)


def test_regions_are_counted_with_what_is_inside():
    """Against least squares on every union; suspects are exactly the unions that fail."""
    rng = np.random.default_rng(5)
    held = failed = 0
    for _ in range(60):
        A, y = rng.standard_normal((30, 12)), rng.standard_normal(30)
        groups = ((0, 1), (2,), (3, 4, 5), (6, 7), (8,), (9, 10, 11))
        k = int(rng.integers(1, 5))
        instance = Instance(A, y, k, "quadratic", 0.1, groups=groups)
        state = np.full(6, FREE, dtype=np.uint8)
        state[rng.permutation(6)[: int(rng.integers(0, k + 1))]] = IN
        included, free = np.flatnonzero(state == IN), np.flatnonzero(state == FREE)
        values = {}
        for chosen in combinations(free.tolist(), min(k - included.size, free.size)):
            columns = sorted(j for g in (*included.tolist(), *chosen) for j in groups[g])
            H = A[:, columns].T @ A[:, columns] + 0.1 * np.eye(len(columns))
            values[tuple(columns)] = 0.5 * y @ y - 0.5 * (A[:, columns].T @ y) @ np.linalg.solve(H, A[:, columns].T @ y)
        level = float(rng.choice(list(values.values()))) * float(rng.choice([1 - 1e-9, 1 + 1e-9]))
        counting = level_counting(instance, level)
        below = {columns for columns, value in values.items() if value < level}
        undecided = {tuple(columns) for columns in counting.undecided(state, k)}
        assert undecided == below
        assert counting.counted(state[None], k)[0] == (not below)
        held, failed = held + (not below), failed + bool(below)
    assert held > 5
    assert failed > 5


def test_nothing_is_counted_beyond_the_limit():
    rng = np.random.default_rng(6)
    instance = Instance(
        rng.standard_normal((9, 4)), rng.standard_normal(9), 2, "quadratic", 1.0, groups=((0, 1), (2, 3))
    )
    counting = GroupCounting(
        Semidefinite(RigorousBounds(instance), 1e-6, 0.0, np.zeros(0, dtype=np.int64)), instance.groups
    )
    assert not counting.counted(np.full((1, 2), FREE, dtype=np.uint8), 2)[0]


def test_proofs_of_walks_over_groups_are_verified(tmp_path):
    """Hard problems with a few dozen groups; the claim is nearly the optimum, and what is above it fails."""
    counted = 0
    for seed in range(6):
        rng = np.random.default_rng([41, seed])
        A = rng.standard_normal((60, 30)) + 0.7 * rng.standard_normal((60, 1))
        labels = [f"g{int(g)}" for g in np.sort(rng.integers(0, 14, 30))]
        problem = Problem(A, A @ rng.standard_normal(30) * 0.3 + rng.standard_normal(60), 4, lam=0.1, groups=labels)
        file = tmp_path / "run.exsel"
        result = solve(problem, proof=file, signals=(), threads=1)
        proof = container.read_proof(file)
        counted += int(np.sum(proof.tree & 7 == container.COUNTED))
        verdict = verify(problem, file)
        assert verdict.verified, verdict.reason
        assert verdict.lower >= result.lower * (1 - 1e-8)
        data = file.read_bytes().replace(proof.lower.hex().encode(), (result.upper * (1 + 1e-9)).hex().encode(), 1)
        file.write_bytes(data)
        assert not verify(problem, file).verified
        if seed == 0:
            assert second_opinion(problem, data) != ""
    assert counted > 6


def test_proofs_of_random_groups_are_verified_by_both(tmp_path):
    for seed in range(40):
        case = random_grouped(830_000 + seed, loss="quadratic", lam=1.0)
        problem, best = case.problem(), case.optimum()
        file = tmp_path / "run.exsel"
        solve(problem, proof=file, signals=(), threads=1)
        verdict = verify(problem, file)
        assert verdict.verified, seed
        assert verdict.lower <= best.ceiling
        assert second_opinion(problem, file.read_bytes()) == "", seed
