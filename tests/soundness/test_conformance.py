"""The conformance matrix: every kind of problem x every promise of a search.

A new loss, constraint, ridge, kind of rows or closer is one line of tests/fixtures/conformance.py, a way to draw
problems at random one of tests/fixtures/drawn.py, and a new promise one function of tests/fixtures/promised.py.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from conformance import (
    APART,
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
    problem_of,
)
from drawn import drawn
from promised import (
    CHECKS,
    OF_SEARCHES,
    OF_STUDIES,
    SEARCHED,
    STUDIED,
    both_checkers_accept_the_proof,
    every_lower_bound_holds,
    found,
    optimum_is_that_of_brute_force,
    searched,
)
from samples import whole

from exactsel import (
    Problem,
    boxed,
    solve,
)
from exactsel.bounds.apg import PreparedPerspective
from exactsel.bounds.boxed import PreparedBoxed
from exactsel.closers import enumeration, minors, native
from exactsel.errors import ExactselError
from exactsel.problem.restrictions import is_restricted, proposed, without_restrictions
from exactsel.search.state import SearchState
from exactsel.solving.choose import methods_for
from exactsel.solving.settings import Settings


def rows():
    for always, in_turn, some in ((SEARCHED, OF_SEARCHES, kinds()), (STUDIED, OF_STUDIES, drawn())):
        for number, (kind, usual) in enumerate(some):
            if usual or whole():  # thousands, which take long to collect
                # Losses follow each other after as many constraints, so that each loss meets each promise.
                turn = (number + number // len(CONSTRAINTS)) % 2
                checks = CHECKS if whole() or number % 6 == 0 else always + in_turn[turn::2]
                yield pytest.param(kind, checks, marks=[] if usual else [pytest.mark.slow], id=str(kind))


@pytest.mark.parametrize(("kind", "checks"), [*rows()])
def test_it_holds(kind, checks, tmp_path):
    """One problem, with what is promised of it: what it comes to is found once."""
    if kind.problem is None:
        return
    for promise in checks:
        try:
            promise(kind, tmp_path)
        except Exception as error:
            raise AssertionError(f"{promise.__name__}: {kind}") from error


# Planted bugs


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Searches that contradict themselves leave a file where they are run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def is_found(check, tmp_path, *, closer, constraints=tuple(CONSTRAINTS)):
    """Whether a check finds something wrong with any kind that has this closer: the first one is enough."""
    tried = [kind for kind, _ in kinds() if (kind.closer, kind.ridge, kind.rows) == (closer, "ridge", "plain")]
    for kind in tried:
        if kind.constraint in constraints and kind.loss in ("quadratic", "huber"):
            searched.cache_clear()
            try:
                check(kind, tmp_path)
            except (AssertionError, ExactselError):
                return True
            finally:
                searched.cache_clear()
    return False


@pytest.mark.untrue
@pytest.mark.parametrize(
    "check", [optimum_is_that_of_brute_force, every_lower_bound_holds, both_checkers_accept_the_proof],
    ids=lambda check: check.__name__,
)  # fmt: skip
def test_a_bound_that_is_too_high_is_found(check, monkeypatch, elsewhere):
    for made in (PreparedPerspective, PreparedBoxed):

        def lift(self, *arguments, tighten=made.tighten, **named):
            answer = tighten(self, *arguments, **named)
            values = answer.answers.bound
            values[np.isfinite(values)] *= 1.1
            return answer

        monkeypatch.setattr(made, "tighten", lift)
    assert is_found(check, elsewhere, closer="bounds alone"), "the matrix is blind to this bug"


@pytest.mark.untrue
def test_a_restriction_that_a_closer_forgets_is_found(monkeypatch, elsewhere):
    """A model of the problem without restrictions is taken over as it is proposed."""

    def forgetting(problem, support):
        return None if support is None else without_restrictions(problem).fit(support)

    for closer in (enumeration, native, minors):
        monkeypatch.setattr(closer, "proposed", forgetting)
    met = ("tight limits", "one of each group", "parents")
    blind = not is_found(optimum_is_that_of_brute_force, elsewhere, closer="no models at first", constraints=met)
    assert not blind, "the matrix is blind to this bug"


@pytest.mark.untrue
def test_an_incumbent_that_is_not_the_best_is_found(monkeypatch, elsewhere):
    """Only the first model that is met is kept."""
    monkeypatch.setattr(SearchState, "take_over", lambda self, fit, source: None)
    blind = not is_found(optimum_is_that_of_brute_force, elsewhere, closer="no models at first")
    assert not blind, "the matrix is blind to this bug"


# The matrix itself


def test_no_cell_is_empty():
    """Each loss meets each constraint, and each of these each ridge, kind of rows and closer, among what is tried."""
    usual = [kind for kind, each_time in kinds() if each_time]
    whole = [kind for kind, _ in kinds()]
    every = {(a, b) for a in LOSSES for b in CONSTRAINTS}
    assert {(kind.loss, kind.constraint) for kind in usual} == every - APART
    assert {(kind.loss, kind.constraint) for kind in whole} == every
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
    assert methods.enumeration(problem, blind, None) is None
    assert methods.counter(problem, blind, None) is None
