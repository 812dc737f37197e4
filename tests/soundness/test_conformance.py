"""The conformance matrix: every kind of problem x every promise of a search.

A new loss, constraint, ridge, kind of rows or closer is one line of tests/fixtures/conformance.py, and a new promise is
one function here, which is tried on all of them.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from boxed_cases import allowed_sets
from boxed_files import claiming, random_proof
from conformance import (
    CLOSERS,
    CONSTRAINTS,
    LOSSES,
    RIDGES,
    ROUNDED,
    ROWS,
    D,
    Kind,
    is_defined,
    key,
    kinds,
    problem_of,
)
from corrupted import check
from drawn import drawn
from hypothesis import settings
from recorded import replayed, second_opinion

from exactsel import (
    BoxedProblem,
    Problem,
    best_model,
    boxed,
    certify,
    heuristics,
    near_optimal,
    solve,
    solve_path,
    verify,
)
from exactsel.bounds.apg import PreparedPerspective
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.boxed import PreparedBoxed
from exactsel.bounds.witness import ModelPoint
from exactsel.closers import counting, native, walking
from exactsel.errors import ExactselError
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.problem.restrictions import is_restricted, proposed, without_restrictions
from exactsel.proofs.instance import instance_of
from exactsel.search.state import SearchState
from exactsel.solving.choose import methods_for
from exactsel.solving.settings import Settings
from exactsel.solving.solver import Search
from exactsel.studies.size_criterion import SizeCriterion
from exactsel_certificates.container import parse_proof
from exactsel_certificates.formula import Box

SHORT = 2e-7
"""Relative: by how much less the checker in fractions may prove than the one in doubles, where there is no ridge."""

SMALL = 130
"""Entries of A up to which a checker looks exactly at what is wrong, which it tries to prove at length."""

FEW = 7
"""Columns up to which models of all sizes are listed."""


@cache
def found(kind):
    """The result of a search of this kind, run to its end."""
    return solve(kind.problem, signals=(), threads=1, **kind.options)


def optimum_is_that_of_brute_force(kind, tmp_path):
    result, least = found(kind), kind.least
    assert result.lower <= least + kind.rounded
    assert result.upper <= least + kind.fitted
    assert result.scope or result.upper >= least - kind.fitted
    assert kind.closed(result)
    assert result.absolute_gap <= 1e-3 * max(1.0, abs(least))
    assert kind.problem.fit(result.support).value <= result.upper + kind.fitted
    assert kind.admits(result.support, np.array(result.coef))


def every_lower_bound_holds(kind, tmp_path):
    """Wherever a search is interrupted."""
    told = []

    def note(event, state):
        told.append((state.lower, state.value))

    solve(kind.problem, signals=(), on_bound=note, **kind.options)
    for limit in (1, 2, 4, 7):
        half = solve(kind.problem, signals=(), node_limit=limit, **kind.options)
        told.append((half.lower, half.upper))
        if half.reached:
            break
    for lower, upper in told:
        assert lower <= kind.least + kind.rounded
        assert lower <= upper


def no_bound_is_above_its_region(kind, tmp_path):
    """Nor are those of its children; whatever the start."""
    problem, rng = kind.problem, np.random.default_rng(kind.problem.n)
    methods, options = methods_for(problem, Settings()), BoundOptions(thorough=bool(problem.d % 2))
    bound, values = methods.bound.prepare(problem, options), kind.values()

    def least_in(state):
        inside = {*np.flatnonzero(state == IN).tolist()}
        left = (
            value for chosen, value in values.items() if inside <= {*chosen} and not np.any(state[[*chosen]] == OUT)
        )
        return min(left, default=np.inf) + kind.rounded

    for _ in range(2):
        state = region_of(rng, problem)
        start = ModelPoint.from_dense(rng.standard_normal(problem.units.columns) * 10.0 ** rng.integers(-2, 3))
        for warm in (None, start):
            told = bound.tighten(state[None], [warm], np.inf, np.inf)
            if told.scope and not isinstance(problem, BoxedProblem):
                continue
            answers = told.answers
            assert answers.bound[0] <= least_in(state)
            for j in np.flatnonzero(state == FREE):
                for decision, said in ((IN, answers.bound_in), (OUT, answers.bound_out)):
                    child = np.where(np.arange(problem.d) == j, decision, state)
                    assert not said[0, j] > least_in(child)
        if isinstance(problem, BoxedProblem) and problem.lam > 0:
            for x in (np.zeros(problem.units.columns), rng.standard_normal(problem.units.columns)):
                assert problem.bound_at(x, state) <= least_in(state)


def region_of(rng, problem):
    state = problem.root_state.copy()
    free = np.flatnonzero(state == FREE)
    state[free[rng.random(free.size) < 0.2]] = OUT
    free = rng.permutation(np.flatnonzero(state == FREE))
    inside = free[: rng.integers(0, max(1, problem.k - np.count_nonzero(state == IN) + 1))]
    state[inside] = IN
    return state


def both_checkers_accept_the_proof(kind, tmp_path):
    """And none that claims more, or is about other limits."""
    file, problem = tmp_path / "run.exsel", kind.problem
    audit = not kind.vanishing  # what is committed there is proven by more than its witness
    result = solve(problem, signals=(), proof=file, audit=audit, failures=None, **kind.options)
    assert result.lower <= kind.least + kind.rounded
    verdict, data, instance = verify(problem, file), file.read_bytes(), instance_of(problem)
    assert verdict.verified, verdict
    assert result.lower <= verdict.lower <= kind.least + kind.rounded
    said = second_opinion(problem, data)
    if kind.vanishing and (less := re.match(r"only (\S+) is proven", said)):
        assert float(less[1]) >= verdict.lower - SHORT * abs(verdict.lower)
    else:
        assert said == ""
    above = kind.least + kind.fitted
    raised = claiming(parse_proof(data), lower=above, upper=1e300)
    if instance.A.size <= SMALL:
        assert not check(raised, instance).verified
        assert second_opinion(instance, raised) not in ("", "another problem")
    if instance.box is not None:
        wider = replace(instance, box=Box(instance.box.lower - 1.0, instance.box.upper + 1.0))
        assert not check(data, wider).verified


def no_proof_shows_what_is_untrue(kind, tmp_path):
    """Whatever its tree, its points and its curvature, and also where it is about bounded models."""
    problem, instance = kind.problem, instance_of(kind.problem)
    rng, above = np.random.default_rng(problem.n), kind.least + max(kind.rounded, ROUNDED * problem.null_objective)
    proof = random_proof(rng, problem, instance)
    for scope in ("", "bounded models") if problem.lam == 0 and isinstance(problem, BoxedProblem) else ("",):
        proof = replace(proof, scope=scope)
        verdict = check(claiming(proof, lower=above), instance)
        assert not verdict.verified
        assert verdict.lower <= above
        if instance.A.size <= SMALL:
            assert second_opinion(instance, claiming(proof, lower=above)) != ""
        assert check(claiming(proof, lower=verdict.lower), instance).verified


def the_record_proves_the_bound(kind, tmp_path):
    """To the slow twin of the checker."""
    search = Search(kind.problem, Settings(**kind.options), signals=(), details=True)
    events = [*search]
    replayed(kind.problem, search.result(), events, search.state)


def threads_change_nothing(kind, tmp_path):
    one, two = found(kind), solve(kind.problem, signals=(), threads=2, **kind.options)
    assert (two.tree_hash, two.nodes, two.lower, two.upper) == (one.tree_hash, one.nodes, one.lower, one.upper)
    assert two.support == one.support


def a_search_goes_on_from_its_checkpoint(kind, tmp_path):
    file, whole = tmp_path / "run.ckpt", found(kind)
    result = solve(kind.problem, signals=(), checkpoint=file, node_limit=2, **kind.options)
    end = solve(kind.problem, resume=file, signals=())
    assert result.lower <= end.lower + kind.rounded
    assert end.reached == whole.reached
    assert end.upper == pytest.approx(whole.upper, rel=1e-7, abs=kind.rounded)
    assert end.lower <= kind.least + kind.rounded


def gaps_of_heuristics_hold(kind, tmp_path):
    result = heuristics.run("forward", kind.problem, signals=())
    assert result.lower <= kind.least + kind.rounded
    assert result.scope or result.upper >= kind.least - kind.fitted


def a_path_is_that_of_brute_force(kind, tmp_path):
    """Over the sizes that any set of units that go together has."""
    problem, values = kind.problem, kind.values()
    sizes = range(max(1, len(problem.must_have)), problem.k + 1)
    allowed = {*allowed_sets(problem)}
    for result in solve_path(problem, ks=sizes, signals=()).results if problem.k else ():
        least = min((v for c, v in values.items() if c in allowed and len(c) <= result.problem["k"]), default=np.inf)
        assert result.lower <= least + kind.rounded
        assert result.upper <= least + kind.fitted
        assert result.scope or result.upper >= least - kind.fitted


def lists_and_certificates_are_those_of_brute_force(kind, tmp_path):
    """Near the optimum every model is listed and no other; of any model it is said how far it is off."""
    problem, tau = kind.problem, 0.1 * kind.size
    values = {chosen: kind.values()[chosen] for chosen in allowed_sets(problem) if len(chosen) == problem.k}
    if not values or not problem.k:
        return
    certified = certify(problem, support=sorted(values)[problem.n % len(values)], signals=())
    assert certified.value == pytest.approx(values[sorted(values)[problem.n % len(values)]], abs=kind.fitted)
    assert certified.value - certified.absolute_gap <= kind.least + kind.rounded
    if not kind.sure and kind.least < 1e-3 * kind.size:
        return
    near, least = near_optimal(problem, tau=tau, signals=()), kind.least
    listed = {model.support: model.value for model in near.models}
    for chosen, value in values.items():
        if abs(value - least - tau) > 10.0 * kind.fitted:
            assert (chosen in listed) == (value <= least + tau)
        if chosen in listed:
            assert listed[chosen] == pytest.approx(value, abs=kind.fitted)


def the_best_models_of_all_sizes_are_those_of_brute_force(kind, tmp_path):
    """By a criterion that prices columns, which knows no model that fits nearly exactly."""
    if kind.problem.units.columns > FEW:
        return
    problem, grouped = kind.problem.replace(k=kind.problem.d), kind.problem.units.grouped
    measure = SizeCriterion.of(getattr(problem, "unlimited", problem), "custom", 1.0, 2.0)
    most = measure.largest_size()
    price = {chosen: len(problem.units.columns_of(chosen)) for chosen in allowed_sets(problem)}
    values = {c: problem.fit(c).value for c, columns in price.items() if most is None or columns <= most}
    if not values or min(values.values()) < 1e-3 * problem.null_objective:
        return
    criteria = sorted(measure.value(value, price[chosen]) for chosen, value in values.items())
    found = best_model(problem, criterion="custom", penalty=2.0, top=3, signals=())
    room = 1.0 + abs(criteria[0])
    assert found.value == pytest.approx(criteria[0], abs=1e-5 * room)
    assert found.lower <= criteria[0] + 1e-9 * room
    for model, criterion in zip(found.models, criteria, strict=False) if found.complete and not grouped else ():
        assert model.criterion == pytest.approx(criterion, abs=1e-5 * room)


def fits_are_the_best_on_their_columns(kind, tmp_path):
    for chosen, value in kind.values().items():
        assert kind.problem.fit(chosen).value == pytest.approx(value, abs=kind.fitted)


CHECKS = (
    fits_are_the_best_on_their_columns,
    optimum_is_that_of_brute_force, every_lower_bound_holds, no_bound_is_above_its_region,
    both_checkers_accept_the_proof, no_proof_shows_what_is_untrue, the_record_proves_the_bound, threads_change_nothing,
    a_search_goes_on_from_its_checkpoint, gaps_of_heuristics_hold, a_path_is_that_of_brute_force,
    lists_and_certificates_are_those_of_brute_force, the_best_models_of_all_sizes_are_those_of_brute_force,
)  # fmt: skip


def rows():
    for kind, usual in (*kinds(), *drawn()):
        if usual or not settings().derandomize:  # thousands, which take long to collect
            yield pytest.param(kind, marks=[] if usual else [pytest.mark.slow], id=str(kind))


@pytest.mark.parametrize("kind", [*rows()])
def test_it_holds(kind, tmp_path):
    """One problem, with all that is promised of it: what it comes to is found once."""
    if kind.problem is None:
        return
    for promise in CHECKS:
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
def test_a_bound_that_is_too_high_is_found(check, monkeypatch, elsewhere):
    for made in (PreparedPerspective, PreparedBoxed):

        def lift(self, *arguments, tighten=made.tighten, **named):
            answer = tighten(self, *arguments, **named)
            values = answer.answers.bound
            values[np.isfinite(values)] *= 1.1
            return answer

        monkeypatch.setattr(made, "tighten", lift)
    tried, missed = misses(check, elsewhere, closer="bounds alone")
    assert len(missed) < tried, "the matrix is blind to this bug"


@pytest.mark.untrue
def test_a_restriction_that_a_closer_forgets_is_found(monkeypatch, elsewhere):
    """A model of the problem without restrictions is taken over as it is proposed."""

    def forgetting(problem, support):
        return None if support is None else without_restrictions(problem).fit(support)

    for closer in (walking, native, counting):
        monkeypatch.setattr(closer, "proposed", forgetting)
    met = ("tight limits", "one of each group", "parents")
    tried, missed = misses(optimum_is_that_of_brute_force, elsewhere, closer="no models at first", constraints=met)
    assert len(missed) < tried, "the matrix is blind to this bug"


@pytest.mark.untrue
def test_an_incumbent_that_is_not_the_best_is_found(monkeypatch, elsewhere):
    """Only the first model that is met is kept."""
    monkeypatch.setattr(SearchState, "take_over", lambda self, fit, source: None)
    tried, missed = misses(optimum_is_that_of_brute_force, elsewhere, closer="no models at first")
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
