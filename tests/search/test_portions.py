"""Portions of work for heuristics between the rounds of a search."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from every_search import SEARCHES
from instances_for_tests import optimum_of, random_case
from samples import sample

from exactsel import ColumnSubsetProblem, GroupedProblem, Problem, Search, Settings, solve
from exactsel.errors import UnsupportedError
from exactsel.search.events import IncumbentFound
from exactsel.search.saved import state_from_parts, state_parts
from exactsel.solving.choose import make as registered
from exactsel.start import primal_heuristics
from exactsel.start.heuristic import Context, Proposal
from exactsel.start.portfolio import AUTO, CLOSED_FORM, OTHER_LOSSES, SELECTIONS, portfolio_for
from exactsel.start.primal_heuristics import KEPT, LEAST_SHARE, Portions, PrimalHeuristics


@pytest.fixture
def at_once(monkeypatch):
    """Portions from the first round on, and again soon."""
    monkeypatch.setattr(primal_heuristics, "LATER", 0.0)
    monkeypatch.setattr(primal_heuristics, "AGAIN", 1.2)
    monkeypatch.setattr(Portions, "due", 0.0)
    monkeypatch.setattr(Portions.__init__, "__defaults__", (0, 0.0, *Portions.__init__.__defaults__[2:]))


def hard(loss="quadratic", seed=0, n=60, d=24, k=6):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, d)) + rng.normal(size=(n, 1))
    if loss == "css":
        return ColumnSubsetProblem(A, k)
    y = A @ rng.choice([-1.0, 0.0, 1.0], d) + 3.0 * rng.normal(size=n)
    y = np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y
    return Problem(A, y, k, loss=loss, lam=0.1)


@pytest.mark.parametrize("seed", sample(60, 60))
def test_searches_with_portions_are_right(seed, at_once):
    case = random_case(seed)
    optimum, problem = optimum_of(case), case.problem()
    slack = 1e-7 * (1.0 + abs(optimum.high))
    result = solve(problem, subtrees=False, batch=1, signals=())
    assert optimum.low - slack <= result.upper <= optimum.high + slack
    assert result.lower <= optimum.high + slack


@pytest.mark.long
@pytest.mark.parametrize("threads", [1, 2])
def test_thousands_of_searches_with_portions_are_right(threads, at_once):
    """Some minutes: ``pytest -m long tests/search/test_portions.py``. A few end at the limit of doubles, and say so."""
    given_up = 0
    for seed in range(60, 3060):
        case = random_case(seed)
        optimum, problem = optimum_of(case), case.problem()
        slack = 1e-7 * (1.0 + abs(optimum.high))
        result = solve(problem, subtrees=seed % 3 == 0, batch=1 + seed % 5, threads=threads, seed=seed, signals=())
        given_up += not result.reached
        assert optimum.low - slack <= result.upper, f"seed {seed}"
        assert result.upper <= optimum.high + slack or not result.reached, f"seed {seed}"
        assert result.lower <= optimum.high + slack, f"seed {seed}"
    assert given_up <= 15


@pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic", "css"])
def test_the_tree_does_not_depend_on_threads(loss, at_once):
    results = [
        solve(hard(loss), subtrees=False, batch=4, threads=threads, node_limit=60, signals=()) for threads in (1, 2, 3)
    ]
    assert len({result.tree_hash for result in results}) == 1
    assert len({result.upper for result in results}) == 1


class Told:
    """A heuristic that knows the answer, in its second portion."""

    name, portions = "told", True

    def __init__(self, support):
        self.support, self.contexts = support, []

    def run(self, problem, context):
        self.contexts.append(context)
        known = len(self.contexts) > 2  # the first run is the one before the search
        return Proposal.of(self.support if known else (), 1, others=[(0, 1)])


def test_a_model_found_on_the_way_is_named_and_prunes(at_once):
    problem = hard()
    best = solve(problem, signals=()).support
    told = Told(best)
    search = Search(problem, Settings(heuristics=(told,), subtrees=False, batch=1, node_limit=40), signals=())
    events = list(search)
    found = [event for event in events if isinstance(event, IncumbentFound) and event.source == "told"]
    assert [event.support for event in found] == [best]
    first, *later = told.contexts
    assert first.work == np.inf
    assert first.supports == ()
    assert later[0].start is not None
    assert all(context.work < np.inf for context in later)
    assert len({context.seed for context in told.contexts}) == len(told.contexts)
    assert any((0, 1) in context.supports for context in later), "what a portion hands on comes back"
    assert any(len(support) == problem.k for support in later[0].supports), "roundings of relaxations are handed on"
    assert search.state.lower <= search.state.upper


def test_a_share_dies_out_and_grows_with_what_it_brings():
    problem = hard()
    fruitless = Told(())
    improver = PrimalHeuristics(problem, (fruitless,), 0, 1, lambda: False)
    record, best = Portions(), problem.fit(())
    for number in range(40):
        list(improver.improve(record, 1e9 * 2.0**number, best, -np.inf))
    assert record.shares[0] < LEAST_SHARE
    assert len(fruitless.contexts) < 15
    told = Told((0, 1, 2))
    told.contexts = [None, None]
    improver, record = PrimalHeuristics(problem, (told,), 0, 1, lambda: False), Portions()
    assert [method for _, method in improver.improve(record, 1e9, best, -np.inf)] == ["told"]
    assert record.shares[0] > primal_heuristics.FIRST_SHARE


def test_portions_cut_short_are_due_again():
    """What they found is kept; seed, shares and the supports handed on are as if they had not begun."""

    class Cut(Told):
        def run(self, problem, context):
            stopped.append(True)
            return super().run(problem, context)

    problem, stopped = hard(), []
    best = problem.fit(())
    cut = Cut((0, 1, 2))
    cut.contexts = [None, None]
    never = Told(())
    improver = PrimalHeuristics(problem, (cut, never), 7, 1, lambda: bool(stopped))
    record = Portions(shares={0: 0.05})
    record.hand_on([(3, 1)])
    assert [fit.support for fit, _ in improver.improve(record, 1e10, best, -np.inf)] == [(0, 1, 2)]
    assert never.contexts == []
    assert (record.number, record.due, record.shares) == (0, primal_heuristics.FIRST_DUE, {0: 0.05})
    assert [support.tolist() for support in record.supports] == [[1, 3]]
    stopped.clear()
    improver = PrimalHeuristics(problem, (cut,), 7, 1, lambda: False)
    list(improver.improve(record, 1e10, best, -np.inf))
    assert record.number == 1
    assert cut.contexts[-1].seed == cut.contexts[-2].seed


def test_neighbouring_seeds_have_portions_of_their_own():
    seeds = set()
    for seed in range(4):
        told, record = Told(()), Portions()
        improver = PrimalHeuristics(hard(), (told,), seed, 1, lambda: False)
        for number in range(4):
            list(improver.improve(record, 1e9 * 2.0**number, hard().fit(()), -np.inf))
        seeds |= {context.seed for context in told.contexts}
    assert len(seeds) == 16


@pytest.mark.parametrize("hierarchy", [None, {2: [0, 1], 5: [3]}])
def test_groups_get_portions(hierarchy, at_once):
    rng = np.random.default_rng(3)
    A = rng.normal(size=(50, 16)) + rng.normal(size=(50, 1))
    y = A @ rng.choice([-1.0, 0.0, 1.0], 16) + 3.0 * rng.normal(size=50)
    options = {} if hierarchy is None else {"hierarchy": hierarchy}
    problem = GroupedProblem(Problem(A, y, 3, lam=0.1), [f"group {j // 2}" for j in range(16)], **options)
    search = Search(problem, Settings(subtrees=False, batch=1), signals=())
    result = search.run()
    assert search.state.portions.number > 1
    allowed = [problem.fit(support).value for support in combinations(range(8), 3)]
    if hierarchy is None:
        assert result.upper == pytest.approx(min(allowed), rel=1e-9)
    else:
        assert result.upper == pytest.approx(solve(problem, heuristics=(), signals=()).upper, rel=1e-9)


def test_who_cannot_work_in_portions_or_cannot_serve_gets_none():
    class Whole:
        name = "whole"

        def run(self, problem, context):
            raise AssertionError("asked for a portion")

    class Refusing(Told):
        def run(self, problem, context):
            self.contexts.append(context)
            raise UnsupportedError("not this one")

    problem, refusing = hard(), Refusing(())
    improver = PrimalHeuristics(problem, (Whole(), refusing), 0, 1, lambda: False)
    record = Portions()
    for _ in range(3):
        assert list(improver.improve(record, 1e10, problem.fit(()), -np.inf)) == []
    assert len(refusing.contexts) == 1
    assert not PrimalHeuristics(problem, (Whole(),), 0, 1, lambda: False).is_due(record, 1e99)


def test_what_is_handed_on_is_limited_and_newest_first():
    record = Portions()
    record.hand_on([(3, 1)])
    record.hand_on([(j, j + 1) for j in range(40)])
    assert len(record.supports) == KEPT
    assert record.supports[0].tolist() == [0, 1]
    record.hand_on([(3, 1), ()])
    assert record.supports[0].tolist() == [1, 3]
    assert all(support.size for support in record.supports)
    for number in (1, 2, 3, 4, 5, 3, 3):
        record.hand_on([], (9, number))
    assert [units.tolist() for units in record.relaxed] == [[9, 3], [9, 5], [9, 4], [9, 2]]


class Paid(Told):
    """A heuristic that brings nothing."""

    def __init__(self, first_share=None):
        super().__init__(())
        if first_share is not None:
            self.first_share = first_share


def test_portions_are_larger_where_the_bound_is_far_off():
    problem = hard()
    best = problem.fit((0, 1, 2))
    work = {}
    for lower in (-np.inf, 0.0, 0.95 * best.value):
        methods, record = (Paid(), Paid(first_share=0.005)), Portions()
        improver = PrimalHeuristics(problem, methods, 0, 1, lambda: False)
        list(improver.improve(record, 3e9, best, lower))
        assert record.shares == {0: 0.02 * primal_heuristics.DECAY} | (
            {1: 0.005 * primal_heuristics.DECAY} if lower <= 0.0 else {}
        )
        list(improver.improve(record, 5e9, best, lower))
        work[lower] = [[context.work for context in method.contexts] for method in methods]
    assert work[0.0] == work[-np.inf]
    assert [len(each) for each in work[0.95 * best.value]] == [2, 1], "the second method waits"
    assert work[0.95 * best.value][0][0] == pytest.approx(0.02 * 3e9)
    assert work[0.0][0][0] == pytest.approx(primal_heuristics.WIDE_TIMES * 0.02 * 3e9)
    record = Portions(shares={0: 0.09})
    never = Paid()
    list(PrimalHeuristics(problem, (never,), 0, 1, lambda: False).improve(record, 3e9, best, 0.0))
    assert never.contexts[0].work == pytest.approx(primal_heuristics.MOST_SHARE * 3e9), "a tenth of the search at most"


def test_what_relaxations_hold_beyond_k_is_handed_on(at_once):
    told = Told(())
    search = Search(hard(), Settings(heuristics=(told,), subtrees=False, batch=1, node_limit=40), signals=())
    search.run()
    relaxed = [units for context in told.contexts[1:] for units in context.relaxed]
    assert relaxed
    assert all(len({*units}) == len(units) <= 2 * search.problem.k - 1 for units in relaxed)
    assert any(len(units) > search.problem.k for units in relaxed)


@pytest.mark.parametrize("kind", ["quadratic, default", "huber, default"])
def test_a_saved_search_goes_on_with_its_portions(kind, at_once):
    make, _ = SEARCHES[kind]
    problem = hard("huber" if "huber" in kind else "quadratic")
    options = {"subtrees": False, "batch": 1}  # a limit on nodes cuts larger batches
    assert make is not None
    whole = Search(problem, Settings(**options, node_limit=60), signals=())
    whole.run()
    part = Search(problem, Settings(**options, node_limit=30), signals=())
    part.run()
    frontier = registered("frontiers", "best-first")
    state = state_from_parts(map(bytes, state_parts(part.state)), problem, frontier, part.state.statement)
    assert state.portions.number == part.state.portions.number > 0
    for name in ("supports", "relaxed"):
        kept = [s.tolist() for s in getattr(part.state.portions, name)]
        assert [s.tolist() for s in getattr(state.portions, name)] == kept != []
    rest = Search(problem, Settings(**options, node_limit=60), state=state, signals=())
    assert rest.run().upper == whole.result().upper
    assert rest.state.tree_hash == whole.state.tree_hash


def test_the_portfolio_suits_the_problem():
    assert portfolio_for(hard(), AUTO) == tuple(CLOSED_FORM)
    assert portfolio_for(hard("logistic"), AUTO) == tuple(OTHER_LOSSES)
    assert portfolio_for(hard("css"), AUTO) == tuple(SELECTIONS)
    assert portfolio_for(hard(), ("poss",)) == (("poss",), ("poss",))
    assert portfolio_for(hard(), ()) == ((), ())


def test_methods_named_by_the_user_get_their_portions_too(at_once):
    result = solve(hard(), heuristics="poss", subtrees=False, batch=1, node_limit=30, signals=())
    assert result.settings["heuristics"] == ["poss"]
    quiet = Search(hard(), Settings(heuristics=(), subtrees=False, batch=1, node_limit=30), signals=())
    quiet.run()
    assert quiet.state.portions.number == 0


@pytest.mark.parametrize("method", ["poss", "pocss", "pposs", "greedy-rls", "exchange", "swap"])
def test_a_portion_is_a_matter_of_work(method):
    from exactsel import registry

    problem = hard("css" if method == "pocss" else "quadratic")
    heuristic = registry.load("heuristics", method)()
    assert heuristic.portions
    context = Context(seed=5, work=3e6)
    less, more = heuristic.run(problem, context), heuristic.run(problem, replace(context, work=3e7))
    assert less.evaluations < more.evaluations
    assert heuristic.run(problem, context) == less
    if method != "greedy-rls":
        onward = replace(context, start=more.support, supports=more.others)
        assert problem.fit(heuristic.run(problem, onward).support).value <= problem.fit(more.support).value + 1e-9
