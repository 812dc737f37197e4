"""Columns forced in or out: against brute force over what is left, for every loss and way to search."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from instances_for_tests import LOSSES, random_case

from exactsel import Problem, certify, solve
from exactsel.errors import InputError
from exactsel.heuristics import names, run
from exactsel.incumbents import admissible
from exactsel.search import subtrees


def demanding(seed, loss=None):
    """A random problem with columns forced in and out, and its optimum by trying every support."""
    rng = np.random.default_rng(seed)
    case = random_case(seed, loss=loss, lam=float(10.0 ** rng.uniform(-3, 1)))
    d = case.A.shape[1]
    order = rng.permutation(d)
    inside = order[: rng.integers(0, case.k + 1)].tolist()
    outside = order[len(inside) :][: rng.integers(0, d - len(inside) + 1)].tolist()
    free = sorted({*range(d)} - {*inside} - {*outside})
    plain = case.problem()
    size = min(case.k - len(inside), len(free))
    optimum = min(plain.fit([*inside, *extra]).value for extra in combinations(free, size))
    problem = Problem(
        case.A, case.y, case.k, loss=case.loss, lam=case.lam, delta=case.delta, must_have=inside, must_not=outside
    )
    return problem, optimum


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("block", range(3))
def test_against_every_admissible_support(loss, block, monkeypatch):
    monkeypatch.setattr(subtrees, "SUBSEARCH_SHARE", 1e9)
    monkeypatch.setattr(subtrees, "LEAST_SUBSEARCH", 1)
    for seed in range(910_000 + 50 * block, 910_050 + 50 * block):
        rng = np.random.default_rng(seed)
        problem, optimum = demanding(seed, loss)
        options = {"tree": ["binary", "binary", "state-space"][rng.integers(3)], "threads": 1}
        if rng.random() < 0.3:
            options["heuristics"] = "none"
        result = solve(problem, rel_eps=1e-9, signals=(), details=True, **options)
        tiny = 1e-8 * (1.0 + abs(optimum))
        assert result.upper == pytest.approx(optimum, abs=tiny), seed
        assert result.lower <= optimum + 1e-12 * (1.0 + abs(optimum)), seed
        assert result.reached
        assert not {*result.support} & {*problem.must_not}
        assert len({*result.support} | {*problem.must_have}) <= problem.k


def test_nothing_demanded_is_the_same_problem():
    case = random_case(3, loss="quadratic", lam=0.1)
    plain = case.problem()
    assert plain.replace(must_not=()).hash == plain.hash
    assert plain.replace(must_not=[0]).hash != plain.hash
    assert plain.replace(must_not=[0]).replace(lam=0.2).must_not == (0,)


def test_every_heuristic_gives_an_admissible_model():
    rng = np.random.default_rng(8)
    A = rng.standard_normal((40, 9))
    problem = Problem(A, A[:, :3].sum(axis=1), 3, lam=0.1, must_have=[7], must_not=[0, 1])
    for name in names():
        try:
            found = run(name, problem)
        except InputError:
            continue  # for column subset selection
        assert not {*found.support} & {0, 1}
        assert len({*found.support} | {7}) <= 3
        assert found.upper >= found.lower


def test_columns_by_name_and_what_is_refused():
    A = np.eye(4)
    names_of = ["a", "b", "c", "c"]
    problem = Problem(A, np.ones(4), 2, lam=1.0, feature_names=names_of, must_have=["b"], must_not=[np.int64(0)])
    assert (problem.must_have, problem.must_not) == ((1,), (0,))
    assert problem.root_state.tolist() == [0, 2, 1, 1]
    assert admissible((0, 2, 3), problem) in ((1, 2), (1, 3))
    for inside, outside, words in (
        (["x"], [], "no column is called that"),
        (["c"], [], "2 columns are called that"),
        ([4], [], "numbered 0 to 3"),
        ([1], [1], "leave it in one of them"),
        ([0, 1, 2], [], "raise k"),
        ([True], [], "numbered"),
    ):
        with pytest.raises(InputError, match=words):
            Problem(A, np.ones(4), 2, lam=1.0, feature_names=names_of, must_have=inside, must_not=outside)


def test_a_candidate_that_breaks_a_demand_is_refused():
    rng = np.random.default_rng(9)
    A = rng.standard_normal((30, 6))
    problem = Problem(A, A[:, 0] + A[:, 1], 2, lam=0.1, must_have=[2], must_not=[3])
    assert certify(problem, support=solve(problem).support).reached
    for support in ([0, 1], [2, 3]):
        with pytest.raises(InputError, match=r"must_have|must_not"):
            certify(problem, support=support)
