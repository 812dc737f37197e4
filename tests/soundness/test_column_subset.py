"""Exact column subset selection: the problem, its bound and the search, against every selection there is."""

from __future__ import annotations

from itertools import combinations

import exactly
import numpy as np
import pytest
import tiny_problems
from hypothesis import given
from hypothesis import strategies as st
from instances_for_tests import random_case
from recorded import instance_of, replayed
from samples import examples, sample

import exactsel
from exactsel import ColumnSubsetProblem, Settings, certify, solve
from exactsel.algebra.projection import span_of, unexplained
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.eigenvalue import EigenvalueBound
from exactsel.errors import InputError, UnsupportedError
from exactsel.kernels.node import FREE, IN, OUT, SOLVED
from exactsel.solving.solver import Search
from exactsel_certificates.formula import ColumnInstance
from exactsel_dev.reference.columns import eigenvalue_bound, selection_objective

TINY = 1e-9
"""Times ||A||²: what rounding may do to an objective, and (1000 times less) to a lower bound."""


def random_problem(seed):
    """The matrices of the regression tests: copies, zeros, constants, binary, few rows, badly scaled, correlated."""
    case = random_case(seed, loss="quadratic", lam=1.0)
    return ColumnSubsetProblem(case.A, case.k), case.kind


def all_objectives(problem):
    """The objective of every selection of at most k columns, by the checker's plain formula."""
    instance = ColumnInstance(np.array(problem.A), problem.k)
    return {
        chosen: selection_objective(instance, chosen)
        for size in range(problem.k + 1)
        for chosen in combinations(range(problem.d), size)
    }


def checked(seed, **options):
    """Solve, and hold every bound on the way against the optimum; replay the record."""
    problem, _ = random_problem(seed)
    optimum, scale = min(all_objectives(problem).values()), max(problem.null_objective, 1e-300)
    search, events = Search(problem, Settings(**options), signals=()), []
    for event in search:
        events.append(event)
        assert search.state.lower <= optimum + 1e-12 * scale, (seed, event)
        assert search.state.upper >= optimum - TINY * scale, (seed, event)
    result = search.result()
    assert result.lower <= result.upper
    found = problem.fit(result.support).value
    assert found - 1e-15 * scale <= result.upper <= found + 1e-12 * scale + 1e-290
    told = exactly.stated(problem.A, np.zeros(problem.n), loss="")
    assert result.upper >= tiny_problems.columns_left(told, [*result.support]).value
    assert len(result.support) <= problem.k
    report = replayed(problem, result, events, search.state)
    assert report.proven <= optimum + TINY * scale
    return problem, optimum, scale, result


@pytest.mark.parametrize("block", sample(8, 8))
def test_against_every_selection(block):
    rng = np.random.default_rng(block)
    for seed in range(block * 60, block * 60 + 60):
        options = {
            "tree": str(rng.choice(["binary", "binary", "state-space"])),
            "frontier": str(rng.choice(["best-first", "depth-first", "weighted"])),
            "branching": str(rng.choice(["auto", "half", "costliest"])),
            "batch": [None, 1, 3][rng.integers(3)],
            "threads": int(rng.integers(1, 3)),
            "heuristics": "none" if rng.random() < 0.7 else "greedy-css",
            "force_quit": bool(rng.random() < 0.8),
        }
        _, optimum, scale, result = checked(seed, **options)
        assert result.upper <= optimum + max(TINY * scale, result.absolute_gap), (seed, options)
        assert result.absolute_gap <= 1e-6 * max(abs(result.upper), 1e-12) + 1e-8 * scale, (seed, options, result)


@pytest.mark.long
def test_against_every_selection_by_the_thousand():
    for seed in range(1_000, 9_000):
        _, optimum, scale, result = checked(seed, heuristics="none")
        assert result.upper <= optimum + max(TINY * scale, result.absolute_gap)


def random_state(rng, d, k):
    state = np.full(d, FREE, dtype=np.int8)
    state[rng.permutation(d)[: rng.integers(0, min(k, d) + 1)]] = IN
    free = np.flatnonzero(state == FREE)
    state[free[rng.random(free.size) < 0.3]] = OUT
    return state


def values_of_region(values, included, free, k):
    """The selections inside S and C together, with at most k - |S| columns of C."""
    return {
        chosen: value
        for chosen, value in values.items()
        if {*chosen} <= included | free and len({*chosen} - included) <= k - len(included)
    }


@pytest.mark.smoke
def test_node_and_child_bounds_hold_for_every_selection_of_the_node():
    for seed in range(250):
        problem, kind = random_problem(seed)
        values, scale = all_objectives(problem), max(problem.null_objective, 1e-300)
        bound = EigenvalueBound().prepare(problem, BoundOptions())
        rng = np.random.default_rng(seed)
        for _ in range(4):
            state = random_state(rng, problem.d, problem.k)
            answers = bound.tighten(state[None], [None], np.inf, np.inf).answers
            included = set(np.flatnonzero(state == IN))
            free = set(np.flatnonzero(state == FREE))
            region = values_of_region(values, included, free, problem.k)
            slack = 1e-12 * scale
            assert answers.bound[0] <= min(region.values()) + slack, (seed, kind)
            for j in np.flatnonzero(state == FREE) if answers.status[0] != SOLVED else ():
                with_j = min(values_of_region(values, included | {j}, free - {j}, problem.k).values())
                without = min(values_of_region(values, included, free - {j}, problem.k).values())
                assert answers.bound_in[0, j] <= with_j + slack, (seed, kind, j)
                assert answers.bound_out[0, j] <= without + slack, (seed, kind, j)


def test_the_solver_proves_no_more_than_the_checkers_formula():
    for seed in range(150):
        problem, _ = random_problem(seed)
        bound = EigenvalueBound().prepare(problem, BoundOptions())
        rng, scale = np.random.default_rng(seed), max(problem.null_objective, 1e-300)
        state = random_state(rng, problem.d, problem.k)
        ours = float(bound.tighten(state[None], [None], np.inf, np.inf).answers.bound[0])
        plain = eigenvalue_bound(
            instance_of(problem), np.flatnonzero(state == IN).tolist(), np.flatnonzero(state == FREE).tolist()
        )
        assert ours <= plain + TINY * scale


def test_on_independent_columns_the_bound_is_the_formula():
    rng = np.random.default_rng(0)
    for _ in range(50):
        d = int(rng.integers(3, 9))
        problem = ColumnSubsetProblem(rng.standard_normal((d + 3, d)), 3)
        state = random_state(rng, d, 1)
        bound = EigenvalueBound().prepare(problem, BoundOptions())
        ours = float(bound.tighten(state[None], [None], np.inf, np.inf).answers.bound[0])
        plain = eigenvalue_bound(
            instance_of(problem), np.flatnonzero(state == IN).tolist(), np.flatnonzero(state == FREE).tolist()
        )
        assert ours == pytest.approx(plain, rel=1e-8)


@examples(150, 300)
@given(st.integers(0, 10**6), st.integers(0, 8))
def test_projection_is_the_pseudo_inverse(seed, count):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((int(rng.integers(1, 10)), 8))
    if rng.random() < 0.5:
        A[:, 1], A[:, 2], A[:, 3] = A[:, 0], 0.0, 2 * A[:, 0]
    chosen = np.sort(rng.permutation(8)[:count])
    S = A[:, chosen]
    direct = float(np.sum((A - S @ (np.linalg.pinv(S) @ A)) ** 2)) if count else float(np.sum(A**2))
    assert unexplained(np.ascontiguousarray(A.T), chosen) == pytest.approx(direct, abs=1e-10 * np.sum(A**2))


def test_a_span_knows_its_condition():
    columns = np.array([[1.0, 0.0, 0.0], [1.0, 1e-3, 0.0]])
    assert span_of(columns).condition == pytest.approx(np.linalg.cond(columns.T), rel=0.5)
    assert span_of(np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 0.0]])).skipped == 0.0
    assert 0 < span_of(np.array([[1.0, 0.0], [1.0, 1e-12]])).skipped < 1e-11
    assert span_of(np.zeros((0, 3))).basis.shape == (0, 3)


class TestNearlyDependentColumns:
    """Two columns a hair apart: what spans their difference is rounding, and the claim must say so."""

    @pytest.fixture
    def problem(self):
        rng = np.random.default_rng(4)
        A = rng.standard_normal((6, 4))
        A[:, 1] = A[:, 0] * (1 + 1e-14) + 1e-14 * A[:, 1]
        return ColumnSubsetProblem(A, 2)

    def test_the_scope_is_stated(self, problem):
        result = solve(problem, heuristics="none")
        assert "nearly dependent" in result.valid_for
        assert result.reached
        assert not {0, 1} <= {*result.support}

    def test_the_scope_outlives_a_resumed_search(self, problem):
        broken = [Search(problem, Settings(node_limit=limit, batch=1), signals=()) for limit in range(1, 8)]
        scopes = [search.run().valid_for for search in broken]
        unfinished = [
            search for search, valid_for in zip(broken, scopes, strict=True) if valid_for and search.state.frontier
        ]
        assert unfinished
        for search in unfinished:
            # A new process would go on with a bound that has not met the two columns itself.
            assert Search(problem, Settings(), state=search.state, signals=()).run().valid_for == search.state.valid_for

    def test_copies_that_rotation_tells_apart_need_no_scope(self):
        """With more rows than columns the data are reduced by QR, which rounds equal columns differently."""
        for seed in range(20):
            rng = np.random.default_rng(seed)
            A = rng.standard_normal((200, 7))
            A[:, 4], A[:, 6] = A[:, 0], A[:, 2]
            problem = ColumnSubsetProblem(A, 3)
            result = solve(problem, heuristics="none")
            assert result.valid_for == ""
            best = min(problem.fit(c).value for c in combinations(range(7), 3))
            assert result.lower <= best
            assert result.upper == pytest.approx(best, rel=1e-12)

    def test_exact_copies_need_no_scope(self):
        A = np.random.default_rng(5).standard_normal((6, 4))
        A[:, 1], A[:, 2] = A[:, 0], 0.0
        result = solve(ColumnSubsetProblem(A, 2), heuristics="none")
        assert result.valid_for == ""
        assert result.claim == "optimal"


def test_same_tree_for_any_number_of_threads_and_after_a_break():
    rng = np.random.default_rng(6)
    problem = ColumnSubsetProblem(rng.standard_normal((25, 22)) @ rng.standard_normal((22, 22)), 6)
    whole = solve(problem, threads=1)
    assert whole.nodes > 50
    assert solve(problem, threads=2).tree_hash == whole.tree_hash
    first = Search(problem, Settings(node_limit=30), signals=())
    for _ in first:
        pass
    assert first.result().claim == "bounded"
    second = Search(problem, Settings(), state=first.state, signals=())
    for _ in second:
        pass
    assert second.result().upper == pytest.approx(whole.upper)
    assert second.result().reached


def test_the_best_rank_error_is_below_every_selection():
    rng = np.random.default_rng(7)
    problem = ColumnSubsetProblem(rng.standard_normal((9, 6)), 3)
    singular = np.linalg.svd(problem.A, compute_uv=False)
    assert problem.objective.best_rank_error(3) == pytest.approx(np.sum(singular[3:] ** 2))
    assert solve(problem).upper >= problem.objective.best_rank_error(3)


class TestInterface:
    @pytest.fixture
    def problem(self):
        return ColumnSubsetProblem(np.random.default_rng(8).standard_normal((7, 5)), 2, feature_names=list("abcde"))

    def test_certify(self, problem):
        best = solve(problem)
        assert certify(problem, support=best.support).reached
        other = next(c for c in combinations(range(5), 2) if c != best.support)
        certified = certify(problem, support=[problem.feature_names[j] for j in other])
        assert certified.improved
        assert certified.excess > 0
        assert certified.as_dict()["candidate"]["coef"] is None
        assert "a selection of columns" in str(certified)
        with pytest.raises(InputError, match="has no coefficients"):
            certify(problem, coef=np.zeros(5))

    def test_results_have_no_coefficients(self, problem):
        result = solve(problem)
        assert result.coef.size == 0
        plain = result.as_dict()
        assert plain["coef"] is None
        assert plain["problem"] == "css"
        assert "loss" not in plain

    def test_bounds_and_families_do_not_mix(self, problem):
        for bound in ("apg", "fit", "pdal"):
            with pytest.raises(UnsupportedError, match="for problems with a target"):
                solve(problem, bound=bound)
        regression = exactsel.Problem(np.eye(3), np.ones(3), 1, lam=0.1)
        with pytest.raises(UnsupportedError, match="for column subset selection"):
            solve(regression, bound="eigenvalue")
        with pytest.raises(UnsupportedError, match="pocss or greedy-css"):
            solve(problem, heuristics="forward")
        with pytest.raises(UnsupportedError, match="a ColumnSubsetProblem"):
            solve(regression, heuristics="greedy-css")

    def test_it_is_frozen_and_hashed(self, problem):
        with pytest.raises(AttributeError, match="frozen"):
            problem.k = 3
        assert problem.replace(k=3).hash != problem.hash
        assert ColumnSubsetProblem(problem.A, 2).hash == problem.hash
        with pytest.raises(ValueError, match="read-only"):
            problem.AT[0, 0] = 1.0

    def test_bad_input(self):
        with pytest.raises(InputError, match="k, the largest number"):
            ColumnSubsetProblem(np.eye(3), None)
        with pytest.raises(InputError, match="NaN"):
            ColumnSubsetProblem(np.array([[np.nan]]), 1)
        with pytest.warns(UserWarning, match="using k = 3"):
            assert ColumnSubsetProblem(np.eye(3), 5).k == 3
