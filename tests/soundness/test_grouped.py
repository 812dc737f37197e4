"""Groups of columns: searches and proofs against every set of groups, and the bound's parts against slow twins."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction as F
from itertools import combinations, pairwise

import exactly
import numpy as np
import pytest
from checked_solve import ceiling, check_replay, drive, rounding
from corrupted import as_bytes, campaign, grouped_subject
from grouped_cases import plain_problem, random_grouped
from hypothesis import given
from hypothesis import strategies as st
from instances_for_tests import LOSSES
from recorded import second_opinion
from samples import examples, many

from exactsel import Problem, UnsupportedError, solve, verify
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.grouped import GroupedBound
from exactsel.kernels.grouped import prox_units, unit_sums
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.problem.grouped import GroupedProblem
from exactsel.proofs.instance import instance_of
from exactsel.search.events import Finished
from exactsel.solving.settings import Settings
from exactsel.solving.solver import Search
from exactsel.start.portfolio import AUTO
from exactsel_certificates import container, standalone
from exactsel_certificates.checking import verify as check
from exactsel_dev.reference.bounds import bound_at_model, curved_bound

NEARLY = 1e-7

LIMIT_OF_SLOW = 40
"""Cases per loss that also go through the checker in fractions, which takes its time."""


def random_options(rng):
    return {
        "tree": str(rng.choice(["binary", "binary", "state-space"])),
        "branching": str(rng.choice(["auto", "half", "largest", "costliest"])),
        "frontier": str(rng.choice(["best-first", "best-first", "depth-first", "weighted"])),
        "batch": [None, 1, 2, 7, 64][int(rng.integers(5))],
        "heuristics": [(), (), ("forward",), AUTO][int(rng.integers(4))],
        "rel_eps": float(rng.choice([0.0, 1e-6, 0.1])),
        "warm_start": bool(rng.random() < 0.8),
        "force_quit": bool(rng.random() < 0.8),
        "threads": 1,
    }


def searched(case, options, path):
    """A search that kept every promise at every event, and left a proof; None where it was refused for lam = 0."""
    problem, optimum, events = case.problem(), case.optimum(), []
    search = Search(problem, Settings(**options), signals=(), details=True)
    try:
        result = drive(search, optimum, events)
    except UnsupportedError:
        assert problem.lam == 0
        return None
    check_replay(problem, optimum, result, events, search.state)
    assert isinstance(events[-1], Finished)
    assert result.lower <= min(result.upper, ceiling(optimum))
    assert result.upper - optimum.high <= result.absolute_gap + rounding(optimum)
    # With rel_eps = 0 and nearly dependent columns rounding alone can leave a gap, and the claim then says so.
    assert result.reached or result.absolute_gap <= NEARLY * (1.0 + abs(result.upper))
    used = {g for g, columns in enumerate(case.groups) if np.any(result.coef[list(columns)])}
    assert set(result.support) == used
    assert len(used | {*case.force_in}) <= case.k
    assert not used & {*case.force_out}
    again = solve(problem, proof=path, signals=(), **options)
    # Columns chosen one by one are searched by kernels, unless each node is to be told of.
    assert not problem.units.grouped or again.tree_hash == result.tree_hash
    return problem, optimum, result


def above(data, by):
    """The same proof with a larger claim."""
    proof = container.parse_proof(data)
    claim = (proof.upper * (1 + by)).hex().encode()
    return data.replace(proof.lower.hex().encode(), claim, 1), proof


def hold(loss, seeds, path, slow=LIMIT_OF_SLOW):
    solved = refused = 0
    for seed in seeds:
        case = random_grouped(seed, loss=loss)
        done = searched(case, random_options(np.random.default_rng([32, seed])), path)
        if done is None:
            refused += 1
            continue
        problem, optimum, _ = done
        solved += 1
        verdict = verify(problem, path)
        assert verdict.verified, (seed, verdict.reason)
        assert verdict.lower <= ceiling(optimum), seed
        if solved <= slow:
            assert second_opinion(problem, path.read_bytes()) == "", seed
    return solved, refused


@pytest.mark.parametrize("loss", LOSSES)
def test_searches_hold_against_every_set_of_groups(loss, tmp_path):
    solved, refused = hold(loss, range(800_000, 800_000 + many(24, 100)), tmp_path / "run.exsel", slow=many(6, 15))
    assert solved >= many(15, 80)
    assert refused <= many(5, 20)


@pytest.mark.long
@pytest.mark.parametrize("loss", LOSSES)
def test_hundreds_of_searches_hold(loss, tmp_path):
    solved, _ = hold(loss, range(810_000, 810_600), tmp_path / "run.exsel")
    assert solved >= 450


def test_a_sliver_above_the_truth_is_rejected(tmp_path):
    """One part in 10^9, by both checkers."""
    file, tried = tmp_path / "run.exsel", 0
    for seed in range(820_000, 820_000 + many(16, 60)):
        case = random_grouped(seed, lam=1.0)
        problem, optimum = case.problem(), case.optimum()
        if optimum.high < 1e-6:
            continue
        solve(problem, proof=file, signals=())
        data, proof = above(file.read_bytes(), 1e-9)
        assert not check(container.parse_proof(data), instance_of(problem)).verified, (seed, proof.lower)
        assert second_opinion(problem, data) != "", seed
        tried += 1
    assert tried >= many(4, 40)


def test_a_proof_about_other_groups_is_rejected(tmp_path):
    rng = np.random.default_rng(3)
    A, y = rng.standard_normal((20, 6)), rng.standard_normal(20)
    plain = Problem(A, y, 2, lam=0.5)
    problem = GroupedProblem(plain, [0, 0, 1, 1, 2, 2])
    file = tmp_path / "run.exsel"
    solve(problem, proof=file, signals=())
    assert verify(problem, file).verified
    data = file.read_bytes()
    for other in (
        GroupedProblem(plain, [0, 1, 0, 1, 2, 2]),
        GroupedProblem(plain, [0, 0, 1, 1, 2, None]),
        GroupedProblem(plain, [0, 0, 1, 1, 2, 2], force_in=["0"]),
        plain,
    ):
        verdict = verify(other, file)
        assert not verdict.verified
        assert "about" in verdict.reason
        assert "another problem" in second_opinion(other, data)
    forged = data.replace(b'"groups": 3', b'"groups": 2')
    assert not check(container.parse_proof(forged), instance_of(problem)).verified
    assert "another problem" in second_opinion(problem, forged)
    malformed = data.replace(b'"groups": 3', b'"groups":-3')
    with pytest.raises(container.MalformedError, match="neither null nor a number of groups"):
        container.parse_proof(malformed)
    with pytest.raises(standalone.Malformed):
        second_opinion(problem, malformed)


def test_damaged_files_prove_nothing_untrue():
    counts = campaign(range(850_000, 850_000 + many(8, 30)), 25, grouped_subject)
    assert {outcome for _, outcome in counts} == {"accepted", "rejected", "malformed"}
    assert sum(counts.values()) > many(50, 400)


@pytest.mark.long
def test_many_damaged_files_prove_nothing_untrue():
    campaign(range(860_000, 860_500), 60, grouped_subject)


def fit_words(included, free, k):
    """A tree that closes every region by the fit: convex ones, and every other one with a single place left."""
    slots = k - len(included)
    if slots <= 0 or len(free) <= slots or (slots == 1 and sum(free) % 2):
        return [container.CLOSE]
    g, *rest = free
    return [8 * g + container.SPLIT_IN, *fit_words([*included, g], rest, k), *fit_words(included, rest, k)]


def test_fits_prove_regions_of_groups(tmp_path):
    """No search of ours writes such proofs; the format allows them, and both checkers must judge them alike."""
    file, tried = tmp_path / "run.exsel", 0
    for seed in range(870_000, 870_000 + many(12, 40)):
        case = random_grouped(seed, loss="quadratic", lam=0.2)
        problem, optimum = case.problem(), case.optimum()
        if optimum.high < 1e-6:
            continue
        solve(problem, proof=file, signals=())
        free = [g for g in range(problem.d) if g not in problem.force_in and g not in problem.force_out]
        words = [8 * container.FIT + container.USE, *fit_words([*problem.force_in], free, problem.k)]
        proof = container.read_proof(file)
        for share, verified in ((1.0 - 1e-9, True), (1.0 + 1e-9, False)):
            claim = replace(
                proof, tree=np.array(words, dtype=np.int32), lower=optimum.high * share, upper=proof.upper * (1 + 1e-8)
            )
            verdict = check(claim, instance_of(problem))
            assert verdict.verified == verified, (seed, share, verdict.reason)
            assert verdict.lower <= ceiling(optimum), seed
            assert (second_opinion(problem, as_bytes(claim)) == "") == verified, seed
        tried += 1
    assert tried >= many(7, 30)


@pytest.mark.parametrize("loss", LOSSES)
def test_groups_of_single_columns_are_the_plain_problem(loss):
    for seed in range(830_000, 830_000 + many(8, 20)):
        case = random_grouped(seed, loss=loss, lam=0.3)
        alone = type(case)(case.case, (None,) * len(case.labels), min(case.k, len(case.labels)))
        problem = alone.problem()
        mine, plain = solve(problem, signals=()), solve(plain_problem(problem), signals=())
        assert mine.problem["problem_hash"] == plain.problem["problem_hash"]
        assert (mine.upper, mine.lower, mine.tree_hash) == (plain.upper, plain.lower, plain.tree_hash), seed


# --- the parts of the bound ---


def slow_prox(u, first, fixed, slots, weight):
    """By its definition: the best indicators on the groups' lengths, found by bisection on their common level."""
    lengths = np.array([np.linalg.norm(u[a:b]) for a, b in pairwise(first)])
    z = np.ones(len(lengths))
    free = lengths[fixed:]
    if np.count_nonzero(free) > slots:
        low, high = 0.0, (1.0 + weight) / free[free > 0].min()
        for _ in range(200):
            middle = 0.5 * (low + high)
            z[fixed:] = np.clip(middle * free - weight, 0.0, 1.0)
            low, high = (low, middle) if z[fixed:].sum() > slots else (middle, high)
    z = np.repeat(z, np.diff(first))
    return np.where(z > 0, u * z / (z + weight), 0.0)


sizes = st.lists(st.integers(1, 5), min_size=1, max_size=6)
entries = st.one_of(st.sampled_from([0.0, 0.5, 1.0, -1.0, 2.0]), st.floats(-50, 50).map(lambda v: round(v, 6)))


@examples(200, 400)
@given(sizes, st.data())
def test_prox_of_groups(sizes, data):
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    u = np.array(data.draw(st.lists(entries, min_size=int(first[-1]), max_size=int(first[-1]))))
    fixed = data.draw(st.integers(0, len(sizes) - 1))
    slots = data.draw(st.integers(1, len(sizes) - fixed))
    weight = data.draw(st.sampled_from([1e-3, 0.1, 1.0, 20.0]))
    x, lengths, shrunk = np.empty(u.size), np.empty(len(sizes)), np.empty(len(sizes))
    prox_units(u, first, fixed, slots, weight, 0.0, lengths, shrunk, x)
    np.testing.assert_allclose(x, slow_prox(u, first, fixed, slots, weight), rtol=1e-7, atol=1e-9)
    squares = [float(np.sum(x[a:b] ** 2)) for a, b in pairwise(first)]
    np.testing.assert_allclose(shrunk**2, squares, rtol=1e-9, atol=1e-12)
    sums = np.empty(len(sizes))
    unit_sums(x * x, first, sums)
    exact = np.array([sum(map(float, (x * x)[a:b])) for a, b in pairwise(first)])
    assert np.all(sums >= exact * (1 - 1e-15))
    assert np.all(sums <= exact * (1 + 1e-14))


def test_prox_of_groups_minimises():
    """Against the relaxation's own definition, solved by cvxpy."""
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(5)
    for _ in range(20):
        sizes = rng.integers(1, 5, int(rng.integers(1, 5)))
        first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        u, weight = rng.standard_normal(int(first[-1])), float(10 ** rng.uniform(-1, 1))
        fixed = int(rng.integers(0, len(sizes)))
        slots = int(rng.integers(1, len(sizes) - fixed + 1))
        x, lengths, shrunk = np.empty(u.size), np.empty(len(sizes)), np.empty(len(sizes))
        norm, _ = prox_units(u, first, fixed, slots, weight, 0.0, lengths, shrunk, x)
        w, z = cp.Variable(u.size), cp.Variable(len(sizes))
        parts = [cp.quad_over_lin(w[a:b], z[i]) for i, (a, b) in enumerate(pairwise(first))]
        limits = [z >= 0, z <= 1, cp.sum(z[fixed:]) <= slots, *([z[:fixed] == 1] if fixed else [])]
        cost = 0.5 * weight * sum(parts) + 0.5 * cp.sum_squares(w - u)
        best = cp.Problem(cp.Minimize(cost), limits).solve(solver=cp.CLARABEL)
        assert 0.5 * weight * norm + 0.5 * np.sum((x - u) ** 2) == pytest.approx(best, rel=1e-6, abs=1e-8)


@pytest.mark.smoke
@pytest.mark.parametrize("loss", LOSSES)
def test_no_bound_lies_above_its_region(loss):
    """At random points and nodes: the formulas in long doubles, and the kernels' own bounds, children's included."""
    rng = np.random.default_rng(6)
    for seed in range(840_000, 840_040):
        case = random_grouped(seed, loss=loss, lam=float(10.0 ** rng.uniform(-2, 1)))
        problem = case.problem()
        instance, d = instance_of(problem), len(case.labels)
        state = rng.choice(np.array([OUT, FREE, FREE, IN], dtype=np.int8), problem.d)
        included, free = np.flatnonzero(state == IN), np.flatnonzero(state == FREE)
        if included.size > problem.k or not (included.size + free.size) or not problem.units.grouped:
            continue
        truth = best_of(case, problem.k, state)
        slack = 1e-9 * (1.0 + abs(truth))
        for x in (rng.standard_normal(d), np.zeros(d)):
            assert bound_at_model(instance, included.tolist(), free.tolist(), x) <= truth + slack
            if loss == "quadratic":
                ridge = np.full(d, problem.lam)
                assert curved_bound(instance, included.tolist(), free.tolist(), x, ridge) <= truth + slack
        prepared = GroupedBound().prepare(problem, BoundOptions())
        answers = prepared.tighten(state[None], [None], np.inf, truth).answers
        assert answers.bound[0] <= truth + slack
        for g in free:
            for values, decision in ((answers.bound_in, IN), (answers.bound_out, OUT)):
                child = state.copy()
                child[g] = decision
                assert values[0, g] <= best_of(case, problem.k, child) + slack


def best_of(case, k, state):
    """The smallest objective in a region; inf where none of its models is allowed."""
    included = np.flatnonzero(state == IN)
    part = type(case)(case.case, case.labels, k, tuple(included.tolist()), tuple(np.flatnonzero(state == OUT).tolist()))
    return float(part.values(part.supports())[0].min()) if included.size <= k else np.inf


def delta_of(problem):
    return problem.loss_parameters.get("delta")


@pytest.mark.parametrize("loss", ["huber", "logistic"])
def test_groups_with_an_intercept_and_weights(loss, tmp_path):
    """Against the best of all sets of groups; fits with intercept and weights are checked in test_intercept.py."""
    path = tmp_path / "adjusted.exsel"
    for seed in range(870_000, 870_000 + many(10, 30)):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((12, 6)) + 3.0
        z = A @ (rng.standard_normal(6) * (rng.random(6) < 0.6)) - 2.0 + rng.standard_normal(12)
        y = np.where(z > np.median(z), 1.0, -1.0) if loss == "logistic" else z + 10.0 * (rng.random(12) < 0.1)
        weights = rng.choice([0.5, 1.0, 3.0], 12) if seed % 2 else None
        inner = Problem.prepared(A, y, 2, loss=loss, lam=0.3, intercept=True, scale=True, weights=weights)
        problem = GroupedProblem(inner, {"a": [0, 4], "b": [1, 2, 3]})
        fits = [problem.fit(units) for size in range(3) for units in combinations(range(problem.d), size)]
        told = exactly.stated(A, y, loss=loss, lam=0.3, delta=delta_of(inner), weights=weights, level=True, scale=True)
        best = min(exactly.objective(told, inner.as_given(fit.coef)[0]) for fit in fits)
        result = solve(problem, proof=path, signals=(), threads=1, rel_eps=1e-9)
        assert result.lower <= best
        assert (
            exactly.objective(told, result.model.coef) * (1 - exactly.CLOSE) <= result.upper <= best * (1 + F(2, 10**9))
        )
        assert check(container.parse_proof(path.read_bytes()), instance_of(problem)).verified
        assert result.model.intercept is not None
        if seed < many(870_003, 870_006):
            assert second_opinion(problem, path.read_bytes()) == ""
        data, _ = above(path.read_bytes(), 1e-6)
        assert not check(container.parse_proof(data), instance_of(problem)).verified
