"""The conformance matrix: every kind of problem x every promise of a search.

A new loss, constraint, ridge, kind of rows or closer is one line of tests/fixtures/conformance.py, and a new promise is
one function here, which is tried on all of them.
"""

from __future__ import annotations

import re
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from conformance import (
    CLOSERS,
    CONSTRAINTS,
    LOSSES,
    RIDGES,
    ROWS,
    D,
    Kind,
    is_defined,
    key,
    kinds,
    least,
    problem_of,
)
from hypothesis import settings
from recorded import second_opinion

from exactsel import Problem, boxed, heuristics, solve, verify
from exactsel.bounds.apg import PreparedPerspective
from exactsel.bounds.boxed import PreparedBoxed
from exactsel.closers import counting, native, walking
from exactsel.errors import ExactselError
from exactsel.problem.restrictions import is_restricted, proposed, without_restrictions
from exactsel.search.state import SearchState
from exactsel.solving.choose import methods_for
from exactsel.solving.settings import Settings

ROUNDED = 1e-9
"""Times the objective of the empty model: by how much a fit elsewhere may be rounded."""

FITTED = 1e-6
"""Relative: by how much the model of a search may cost more than the best one, where there is no ridge."""

SHORT = 2e-7
"""Relative: by how much less the checker in fractions may prove than the one in doubles, where there is no ridge."""


@cache
def found(kind):
    """The result of a search of this kind, run to its end."""
    return solve(problem_of(kind), signals=(), threads=1, **kind.options)


def rounded(kind):
    return ROUNDED * max(1.0, problem_of(kind).null_objective)


def optimum_is_that_of_brute_force(kind, tmp_path):
    result, fitted = found(kind), (FITTED if kind.ridge == "no ridge" else 1e-8) * max(1.0, abs(least(kind)))
    assert result.lower <= least(kind) + rounded(kind)
    assert result.upper <= least(kind) + fitted
    assert result.scope or result.upper >= least(kind) - fitted
    assert result.reached or kind.closer == "finest tolerance"
    assert result.absolute_gap <= 1e-3 * max(1.0, abs(least(kind)))
    assert problem_of(kind).fit(result.support).value <= result.upper + fitted
    assert CONSTRAINTS[kind.constraint].admits(result.support, np.array(result.coef))


def every_lower_bound_holds(kind, tmp_path):
    """Wherever a search is interrupted."""
    told = []

    def note(event, state):
        told.append((state.lower, state.value))

    solve(problem_of(kind), signals=(), on_bound=note, **kind.options)
    for limit in (1, 2, 4, 7):
        half = solve(problem_of(kind), signals=(), node_limit=limit, **kind.options)
        told.append((half.lower, half.upper))
    for lower, upper in told:
        assert lower <= least(kind) + rounded(kind)
        assert lower <= upper


def both_checkers_accept_the_proof(kind, tmp_path):
    file = tmp_path / "run.exsel"
    problem, result = problem_of(kind), solve(problem_of(kind), signals=(), proof=file, **kind.options)
    assert result.lower <= least(kind) + rounded(kind)
    verdict = verify(problem, file)
    assert verdict.verified, verdict
    assert verdict.lower <= least(kind) + rounded(kind)
    said = second_opinion(problem, file.read_bytes())
    if kind.ridge == "no ridge" and (less := re.match(r"only (\S+) is proven", said)):
        assert float(less[1]) >= verdict.lower - SHORT * abs(verdict.lower)
    else:
        assert said == ""


def threads_change_nothing(kind, tmp_path):
    one, two = found(kind), solve(problem_of(kind), signals=(), threads=2, **kind.options)
    assert (two.tree_hash, two.nodes, two.lower, two.upper) == (one.tree_hash, one.nodes, one.lower, one.upper)
    assert two.support == one.support


def a_search_goes_on_from_its_checkpoint(kind, tmp_path):
    file, whole = tmp_path / "run.ckpt", found(kind)
    result = solve(problem_of(kind), signals=(), checkpoint=file, node_limit=2, **kind.options)
    end = solve(problem_of(kind), resume=file, signals=())
    assert result.lower <= end.lower + rounded(kind)
    assert end.reached == whole.reached
    assert end.upper == pytest.approx(whole.upper, rel=1e-7)
    assert end.lower <= least(kind) + rounded(kind)


def gaps_of_heuristics_hold(kind, tmp_path):
    result = heuristics.run("forward", problem_of(kind), signals=())
    assert result.lower <= least(kind) + rounded(kind)
    assert result.scope or result.upper >= least(kind) - FITTED * max(1.0, abs(least(kind)))


CHECKS = (
    optimum_is_that_of_brute_force, every_lower_bound_holds, both_checkers_accept_the_proof, threads_change_nothing,
    a_search_goes_on_from_its_checkpoint, gaps_of_heuristics_hold,
)  # fmt: skip


def cells():
    for check in CHECKS:
        for kind, usual in kinds():
            if not usual and settings().derandomize:
                continue  # thousands, which take long to collect
            marks = [] if usual else [pytest.mark.slow]
            yield pytest.param(check, kind, marks=marks, id=f"{check.__name__}: {kind}")


@pytest.mark.parametrize(("check", "kind"), [*cells()])
def test_it_holds(check, kind, tmp_path):
    check(kind, tmp_path)


# Planted bugs


def misses(check, tmp_path, *, closer, constraints=tuple(CONSTRAINTS)):
    """How many kinds with this closer a check is tried on, and those of them where it finds nothing wrong."""
    tried = [kind for kind, _ in kinds() if (kind.closer, kind.ridge, kind.rows) == (closer, "ridge", "plain")]
    tried, missed = (
        [kind for kind in tried if kind.constraint in constraints and kind.loss in ("quadratic", "huber")],
        [],
    )
    for kind in tried:
        found.cache_clear()
        try:
            check(kind, tmp_path)
        except (AssertionError, ExactselError):
            continue
        missed.append(kind)
    found.cache_clear()
    return len(tried), missed


@pytest.mark.untrue
@pytest.mark.parametrize(
    "check", [optimum_is_that_of_brute_force, every_lower_bound_holds, both_checkers_accept_the_proof],
    ids=lambda check: check.__name__,
)  # fmt: skip
def test_a_bound_that_is_too_high_is_found(check, monkeypatch, tmp_path):
    for made in (PreparedPerspective, PreparedBoxed):

        def lift(self, *arguments, tighten=made.tighten, **named):
            answer = tighten(self, *arguments, **named)
            values = answer.answers.bound
            values[np.isfinite(values)] *= 1.1
            return answer

        monkeypatch.setattr(made, "tighten", lift)
    tried, missed = misses(check, tmp_path, closer="bounds alone")
    assert len(missed) < tried, "the matrix is blind to this bug"


@pytest.mark.untrue
def test_a_restriction_that_a_closer_forgets_is_found(monkeypatch, tmp_path):
    """A model of the problem without restrictions is taken over as it is proposed."""

    def forgetting(problem, support):
        return None if support is None else without_restrictions(problem).fit(support)

    for closer in (walking, native, counting):
        monkeypatch.setattr(closer, "proposed", forgetting)
    met = ("tight limits", "one of each group", "parents")
    tried, missed = misses(optimum_is_that_of_brute_force, tmp_path, closer="no models at first", constraints=met)
    assert len(missed) < tried, "the matrix is blind to this bug"


@pytest.mark.untrue
def test_an_incumbent_that_is_not_the_best_is_found(monkeypatch, tmp_path):
    """Only the first model that is met is kept."""
    monkeypatch.setattr(SearchState, "take_over", lambda self, fit, source: None)
    tried, missed = misses(optimum_is_that_of_brute_force, tmp_path, closer="no models at first")
    assert len(missed) < tried, "the matrix is blind to this bug"


# The matrix itself


def test_no_cell_is_empty():
    """Each loss meets each constraint, and each of these each ridge, kind of rows and closer, among what is tried."""
    usual = [kind for kind, each_time in kinds() if each_time]
    whole = [kind for kind, _ in kinds()]
    assert {(kind.loss, kind.constraint) for kind in usual} == {(a, b) for a in LOSSES for b in CONSTRAINTS}
    for some in (usual, whole):
        assert {(kind.loss, kind.closer) for kind in some} == {(a, b) for a in LOSSES for b in CLOSERS}
        assert {(kind.loss, kind.rows) for kind in some} == {(a, b) for a in LOSSES for b in ROWS}
        assert {(kind.constraint, kind.closer) for kind in whole} == {(a, b) for a in CONSTRAINTS for b in CLOSERS}
        without = {(loss, "no ridge") for loss in LOSSES if loss != "squared_hinge"}
        assert {(kind.loss, kind.ridge) for kind in some} >= without
    assert len({key(kind) for kind in whole}) * len(CLOSERS) == len(whole), "every problem with every closer"
    assert len(whole) == len({*whole})
    possible = [Kind(*cell) for cell in np.array(np.meshgrid(*map(list, TABLES))).T.reshape(-1, len(TABLES)).tolist()]
    assert {*whole} == {kind for kind in possible if is_defined(kind)}


TABLES = (LOSSES, CONSTRAINTS, RIDGES, ROWS, CLOSERS)


def test_what_is_left_out_is_refused():
    for kind in (
        Kind("squared_hinge", "none", "no ridge", "plain", "all"),
        Kind("poisson", "none", "no ridge", "copies", "all"),
        Kind("quadratic", "groups", "no ridge", "copies", "all"),
    ):
        assert not is_defined(kind)
        with pytest.raises(ExactselError, match="lam is 0"):
            solve(problem_of(kind))


def test_the_problem_without_restrictions_keeps_its_regions_and_objective():
    plain = problem_of(Kind("quadratic", "none", "ridge", "plain", "all"))
    for name in CONSTRAINTS:
        problem = problem_of(Kind("quadratic", name, "ridge", "plain", "all"))
        free = without_restrictions(problem)
        assert is_restricted(problem) == (name not in ("none", "forced", "groups"))
        assert not is_restricted(free)
        assert (free.k, free.d) == (problem.k, problem.d)
        fit = proposed(problem, (0, 4))
        assert fit is None or free.fit(fit.support).value <= fit.value + 1e-9
    assert plain.d == D


@pytest.mark.parametrize("loss", LOSSES)
def test_a_restriction_nobody_meets_costs_no_more_nodes(loss):
    free, under = (found(Kind(loss, name, "ridge", "plain", "all")) for name in ("none", "limits nobody meets"))
    assert under.nodes <= 1.2 * free.nodes + 20


@pytest.mark.parametrize("d", [20, 450])
def test_no_walk_or_count_speaks_of_other_models_than_bounds_in_a_box(d):
    """With lam = 0 and dependent columns these are about smaller models; one claim has one scope."""
    rng = np.random.default_rng(d)
    problem = boxed(Problem(rng.normal(size=(12, d)), rng.normal(size=12), 2, lam=0.0), positive=True)
    methods, blind = methods_for(problem, Settings()), SimpleNamespace(curvature=None)
    assert methods.walker(problem, blind, None) is None
    assert methods.counter(problem, blind, None) is None
