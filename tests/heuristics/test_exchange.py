"""Exchange descent: the compiled kernels against a plain twin, and what the heuristic promises."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import examples

from exactsel import ColumnSubsetProblem, InputError, Problem
from exactsel.errors import UnsupportedError
from exactsel.start.heuristic import Context
from exactsel.testing.cases import awkward_problems
from exactsel_heuristics import _exchange_objectives as objectives
from exactsel_heuristics._scoring import perturbed
from exactsel_heuristics.exchange import ExchangeDescent

SLACK = 1e-7


def problem_of(kind, seed, n=20, d=9, k=3, lam=0.1, **options):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, d)) + 0.6 * rng.normal(size=(n, 1))
    if kind == "css":
        return ColumnSubsetProblem(A, k)
    y = A[:, :3].sum(axis=1) + rng.normal(size=n)
    if kind == "logistic":
        y = np.where(y > 0, 1.0, -1.0)
    return Problem(A, y, k, loss=kind, lam=lam, **options)


def descents_of(problem):
    return (
        objectives.reconstruction_descents(problem)
        if problem.kind == "css"
        else objectives.least_squares_descents(problem)
    )


def plain_descent(problem, start):
    """The same by refits: fill, then exchange each column in the order of the table, until nothing changes."""
    allowed = [j for j in range(problem.d) if problem.root_state[j] == 1]
    forced = [j for j in range(problem.d) if problem.root_state[j] == 2]
    least = objectives.IMPROVEMENT * abs(problem.null_objective)

    def value(columns):
        return problem.fit(sorted(columns)).value

    wanted = [*forced, *[j for j in start if j not in forced]]
    changed = True
    while changed:
        chosen = list(dict.fromkeys(wanted))[: problem.k]
        while len(chosen) < problem.k:
            best = min((j for j in allowed if j not in chosen), key=lambda j: value([*chosen, j]), default=None)
            if best is None or not value(chosen) - value([*chosen, best]) > least:
                break
            chosen.append(best)
        changed = False
        for q in [j for j in chosen if j not in forced]:
            place = chosen.index(q)
            chosen[place] = chosen[-1]
            chosen.pop()
            best = min((j for j in allowed if j not in chosen), key=lambda j: value([*chosen, j]))
            joining = best if value([*chosen, q]) - value([*chosen, best]) > least else q
            changed = changed or joining != q
            chosen.append(joining)
        wanted = chosen
    return tuple(sorted(chosen))


@given(st.integers(0, 10_000), st.sampled_from(["quadratic", "ridgeless", "demands", "css"]))
@examples(60, 120)
def test_the_kernel_does_what_the_plain_twin_does(seed, kind):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 6))
    demands = {"force_in": (1,), "force_out": (4,)} if kind == "demands" else {}
    lam = 0.0 if kind == "ridgeless" else 0.1
    problem = problem_of("css" if kind == "css" else "quadratic", seed, k=k, lam=lam, **demands)
    descents = descents_of(problem)
    free = np.flatnonzero(descents.allowed)
    start = rng.choice(free, min(int(rng.integers(0, k + 1)), k), replace=False)
    supports, explained, rounds = descents.run(objectives.padded_rows([start.tolist()], k))
    found = tuple(sorted(supports[0][supports[0] >= 0].tolist()))
    assert found == plain_descent(problem, start.tolist())
    assert problem.null_objective - explained[0] == pytest.approx(problem.fit(found).value, abs=SLACK)
    assert rounds[0] >= 1


@pytest.mark.parametrize(("label", "problem"), [case for case in awkward_problems() if case[1].k > 0])
def test_awkward_problems_are_descended_to_a_support_no_exchange_improves(label, problem):
    """Copies, constants, zeros, scales: nothing is certain of the way, but the end is a local optimum."""
    if problem.kind in ("grouped", "boxed") or problem.units.constraint is not None:
        return
    if problem.kind == "regression" and not problem.objective.is_quadratic:
        return
    proposal = ExchangeDescent(starts=20).run(problem, Context(seed=1))
    value, state = problem.fit(proposal.support).value, problem.root_state
    included = {*proposal.support} | {j for j in range(problem.d) if state[j] == 2}
    for leaving in [None, *[j for j in included if state[j] == 1]]:
        stays = included - {leaving}
        for joining in range(problem.d):
            if state[joining] == 1 and len(stays | {joining}) <= problem.k:
                other = problem.fit(sorted(stays | {joining})).value
                assert other >= value - SLACK * (1.0 + abs(problem.null_objective)), (label, leaving, joining)


def test_wide_data_without_their_gram_matrix(monkeypatch):
    problem = problem_of("quadratic", 5, n=12, d=30)
    with_matrix = ExchangeDescent(starts=30).run(problem, Context(seed=2))
    monkeypatch.setattr(objectives, "GRAM_COLUMNS", 10)
    assert objectives.least_squares_descents(problem).objective.G.size == 0
    assert ExchangeDescent(starts=30).run(problem, Context(seed=2)).support == with_matrix.support
    with pytest.raises(UnsupportedError, match="Gram matrix of 10 columns"):
        ExchangeDescent().run(ColumnSubsetProblem(np.eye(11), 2), Context())


@pytest.mark.parametrize("kind", ["quadratic", "huber", "logistic", "css"])
def test_the_answer_depends_on_the_seed_and_not_on_threads(kind, monkeypatch):
    monkeypatch.setattr(objectives, "SHARED_WORK", 0.0)
    problem = problem_of(kind, 7, d=14, k=4)
    answers = [ExchangeDescent(starts=40).run(problem, Context(seed=3, threads=t)) for t in (1, 2, 3)]
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize("kind", ["quadratic", "huber", "logistic", "css"])
def test_portions_go_on_from_what_is_known(kind):
    problem = problem_of(kind, 11, d=14, k=4)
    known = ExchangeDescent(starts=50).run(problem, Context(seed=0))
    assert known.others
    again = ExchangeDescent().run(problem, Context(seed=1, start=known.support, supports=known.others, work=1.0))
    assert problem.fit(again.support).value <= problem.fit(known.support).value
    little, much = (ExchangeDescent().run(problem, Context(seed=1, work=work)) for work in (1e5, 1e7))
    assert little.evaluations < much.evaluations


@pytest.mark.parametrize("kind", ["huber", "logistic"])
@pytest.mark.parametrize("intercept", [False, True])
def test_other_losses_come_close_to_the_best_support(kind, intercept):
    rng = np.random.default_rng(4)
    for seed in range(6):
        plain = problem_of(kind, seed, n=40, d=10, k=3)
        problem = Problem.prepared(
            plain.A, plain.y, 3, loss=kind, lam=0.1, intercept=intercept, weights=rng.uniform(0.5, 2.0, 40)
        )
        best = min(problem.fit(columns).value for columns in combinations(range(10), 3))
        found = problem.fit(ExchangeDescent(starts=200).run(problem, Context(seed=seed)).support).value
        assert found <= best * (1.0 + 1e-9)


def test_what_it_refuses():
    with pytest.raises(InputError, match="starts"):
        ExchangeDescent(starts=0)
    groups = Problem(np.eye(6), np.ones(6), 2, groups=[0, 0, 1, 1, 2, 2], lam=0.1)
    with pytest.raises(UnsupportedError, match="single features"):
        ExchangeDescent().run(groups, Context())
    wide = Problem(np.ones((3, 2001)), np.array([1.0, -1.0, 1.0]), 2, loss="logistic", lam=0.1)
    with pytest.raises(UnsupportedError, match="Hessian of 2000 features"):
        ExchangeDescent().run(wide, Context())


def test_perturbed_supports_keep_their_size_and_are_new():
    rng, pool = np.random.default_rng(0), np.arange(2, 20)
    for _ in range(200):
        support = tuple(sorted(rng.choice(pool, 6, replace=False).tolist()))
        other = perturbed(support, pool, 6, rng)
        assert len(set(other)) == 6
        assert set(other) <= set(pool.tolist())
        assert 2 <= len(set(support) - set(other)) <= 3


def test_it_stops_when_told_to():
    problem = problem_of("quadratic", 3)
    context = Context(seed=0, start=(0, 1))
    stopped = ExchangeDescent().run(problem, replace(context, should_stop=lambda: True))
    assert stopped.support == (0, 1)
