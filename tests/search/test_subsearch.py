"""Searches inside the kernel: against brute force, against the search they stand in for, and replayed step by step."""

from __future__ import annotations

import math

import numpy as np
import pytest
from checked_solve import ceiling, checked_solve
from hypothesis import given, settings
from hypothesis import strategies as st
from instances_for_tests import optimum_of, random_case
from recorded import instance_of, plain, replayed, steps_of, witness_of
from regions import random_state, region_values
from samples import examples, sample, whole

from exactsel import Problem, Settings, solve, verify
from exactsel.bounds.apg import AcceleratedGradientBound
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.witness import InfimumPoint, LeafFits
from exactsel.closers.native import NativeSearch
from exactsel.enumeration import work_budget as subtrees
from exactsel.enumeration.native import NativeBranchAndBound
from exactsel.enumeration.work_budget import WorkBudget
from exactsel.kernels.elementary import exp_of_minus_size, log1p_of_part
from exactsel.kernels.loss import point_derivative, point_value
from exactsel.kernels.node import FREE
from exactsel.kernels.rows import row_values, total_value
from exactsel.losses import Huber, Logistic, Quadratic
from exactsel.nodes.node import Node
from exactsel.nodes.tolerance import Tolerance
from exactsel.search.details import events_of
from exactsel.search.events import Bounded, Discarded, Fixed, SubtreeClosed
from exactsel.solving.solver import Search
from exactsel_dev.reference import replay

UNIT = 2.0**-53


@pytest.fixture
def eager(monkeypatch):
    """Let the kernel search below every node, from the first round on."""
    monkeypatch.setattr(subtrees, "SUBSEARCH_SHARE", 1e9)
    monkeypatch.setattr(subtrees, "LEAST_SUBSEARCH", 1)

    def at_most(nodes):
        monkeypatch.setattr(subtrees, "MOST_SUBSEARCH", nodes)

    return at_most


class TestRows:
    """The vectorised functions against the library's."""

    @settings(deadline=None)
    @given(st.lists(st.floats(-800.0, 800.0), min_size=1, max_size=40))
    def test_exp(self, sizes):
        t = np.array(sizes)
        out = np.empty_like(t)
        exp_of_minus_size(t, out)
        exact = np.array([math.exp(-abs(v)) if abs(v) <= 708.0 else 0.0 for v in sizes])
        assert np.all(np.abs(out - exact) <= 4 * UNIT * exact)

    @settings(deadline=None)
    @given(st.floats(0.0, 1.0))
    def test_log1p(self, e):
        assert abs(log1p_of_part(e) - math.log1p(e)) <= 6 * UNIT * math.log1p(e) + 5e-324

    @settings(deadline=None)
    @given(
        st.sampled_from([Quadratic(), Huber(0.7), Logistic()]),
        st.lists(st.tuples(st.floats(-750.0, 750.0), st.booleans()), min_size=1, max_size=30),
    )
    def test_rows_are_the_scalar_functions(self, loss, rows):
        z = np.array([value for value, _ in rows])
        y = np.array([1.0 if positive else -1.0 for _, positive in rows])
        values, slopes = np.empty_like(z), np.empty_like(z)
        row_values(loss, z, y, values, slopes)
        for i in range(z.size):
            value, slope = point_value(loss, z[i], y[i]), point_derivative(loss, z[i], y[i])
            assert abs(values[i] - value) <= 8 * UNIT * abs(value) + 1e-307
            assert abs(slopes[i] - slope) <= 8 * UNIT * abs(slope) + 1e-307
        total = total_value(loss, z, y, values, slopes)
        assert total == pytest.approx(float(np.sum(values)), rel=1e-14, abs=1e-307)


def searcher_of(problem, threads=1):
    prepared = AcceleratedGradientBound().prepare(problem, BoundOptions(threads=threads))
    return NativeBranchAndBound(prepared, BoundOptions(threads=threads))


@pytest.mark.parametrize("block", sample(3, 6, smoke=1))
def test_what_is_below_a_node_is_found_closed_or_left_open(block):
    for seed in range(700_000 + 60 * block, 700_060 + 60 * block):
        rng = np.random.default_rng(seed)
        case = random_case(seed, lam=float(10.0 ** rng.uniform(-3, 1)))
        problem = case.problem()
        if problem.k == 0 or (problem.objective.is_quadratic and not whole()):  # for which no search calls the kernel
            continue
        state = random_state(rng, problem)
        values = region_values(problem, state)
        best = min(values.values())
        upper = [math.inf, best * (1 + 1e-9) + 1e-9, 1.5 * best + 1.0][rng.integers(3)]
        tolerance = float(rng.choice([1e-9, 1e-6, 0.1])) * max(1.0, abs(min(upper, best)))
        budget = int(rng.choice([1, 2, 5, 300]))
        horizon = float(rng.choice([0.0, 0.5 * best, 0.99 * best, math.inf]))
        below = searcher_of(problem).explore(
            state[None], [None], np.zeros(1), upper, tolerance, budget, horizon
        )[0]  # fmt: skip
        tiny, sliver = 1e-9 * (1.0 + abs(best)), 1e-12 * (1.0 + abs(best))
        met = upper if below.support is None else problem.fit(below.support).value
        opened = list(below.open_regions())
        assert min([met, *(region.bound for region in opened)]) <= best + tolerance + tiny, seed
        assert below.min_pruned_bound >= min(met, upper) - tolerance - tiny, seed
        for region in opened:
            assert region.bound <= min(region_values(problem, region.state).values()) + sliver, seed
        assert below.nodes <= budget
        check_steps(problem, state, below, opened, sliver)


def check_steps(problem, state, below, opened, sliver):
    """Every step's bound holds for what it closes, and the steps take the node apart without a gap."""
    node = Node(0, -1, 0, state, problem.infimum, InfimumPoint())
    events = list(events_of(below, node, lambda number: number, problem))
    for event in events:
        if isinstance(event, Discarded):
            assert event.bound <= min(region_values(problem, event.state).values()) + sliver
        if isinstance(event, Fixed):
            assert event.fixings.bounds.min() >= below.min_pruned_bound
    if np.any(state != FREE):
        return
    regions = [replay.Open(r.number, *map(tuple, sides(r.state)), r.bound, witness(node, r, problem.d)) for r in opened]
    lower = min([below.min_pruned_bound, *(r.bound for r in opened)])
    coef = problem.fit(below.support or ()).coef
    upper = problem.objective(coef)
    record = replay.Record(tuple(steps_of(events, problem.d)), tuple(regions), min(lower, upper), upper, coef)
    replay.replay(instance_of(problem), record)


def sides(state):
    return np.flatnonzero(state == 2).tolist(), np.flatnonzero(state == FREE).tolist()


def witness(node, region, d):
    return witness_of(node.proof if region.proof is None else region.proof, d)


@pytest.mark.parametrize("block", sample(3, 8))
def test_random_problems_searched_inside_the_kernel(block, eager):
    for seed in range(710_000 + 40 * block, 710_040 + 40 * block):
        rng = np.random.default_rng(seed)
        case = random_case(seed, loss=str(rng.choice(["huber", "logistic"])))
        eager(int(rng.choice([1, 3, 256])))
        options = {
            "threads": int(rng.choice([1, 2])),
            "heuristics": [(), ("forward",)][rng.integers(2)],
            "rel_eps": float(rng.choice([0.0, 1e-6, 0.05])),
            "batch": [None, 1, 3][rng.integers(3)],
            "node_limit": None,
        }
        checked_solve(case, options)


@pytest.mark.parametrize("block", sample(4, 4))
def test_long_searches_keep_every_promise(block, eager, monkeypatch):
    """In strict order, with tighter bounds and regions above the horizon left to later rounds, from the start."""
    monkeypatch.setattr(subtrees.Phase, "note", lambda self, nodes, open_nodes: setattr(self, "long", True))
    for seed in range(730_000 + 40 * block, 730_040 + 40 * block):
        rng = np.random.default_rng(seed)
        case = random_case(seed, loss=str(rng.choice(["huber", "logistic"])), lam=float(10.0 ** rng.uniform(-3, 1)))
        eager(int(rng.choice([1, 3, 256])))
        monkeypatch.setattr("exactsel.search.engine.HORIZON", int(rng.choice([0, 1, 4])))
        checked_solve(case, {"threads": 1, "heuristics": (), "batch": int(rng.choice([1, 2])), "rel_eps": 1e-6})


def hard(loss, n=100, d=40, k=6):
    """Columns that have much in common and nothing to say: some thousand nodes."""
    rng = np.random.default_rng(5)
    A = rng.standard_normal((n, d)) + 0.5 * rng.standard_normal((n, 1))
    y = rng.standard_normal(n)
    if loss == "intercept":
        weights = rng.choice([0.5, 1.0, 2.0], n)
        return Problem.prepared(A, np.sign(y + 0.5), k, loss="logistic", lam=2.0, weights=weights, intercept=True)
    return Problem(A, np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y, k, loss=loss, lam=2.0)


class TestInTheSearch:
    @pytest.fixture(params=["huber", "logistic", "intercept"])
    def problem(self, request):
        return hard(request.param)

    def run(self, problem, details=False, **options):
        search, events = Search(problem, Settings(**options), signals=(), details=details), []
        for event in search:
            events.append(event)
        return search.result(), events

    def agree(self, problem, report, result):
        """What is said of data as they were given is a little less."""
        assert report.lower == result.lower or problem.intercept
        assert 0 <= report.lower - result.lower <= 1e-11 * report.lower

    def test_it_is_the_search_it_stands_in_for(self, problem, monkeypatch):
        """From the optimum on, the nodes below a cut-off are the same in any order, if none are closed at once."""
        monkeypatch.setattr("exactsel.enumeration.native.LAST_PLACES", 0)
        result, events = self.run(problem)
        assert any(isinstance(event, SubtreeClosed) for event in events)
        plain_result, plain_events = self.run(problem, subtrees=False)
        assert not any(isinstance(event, SubtreeClosed) for event in plain_events)
        assert result.support == plain_result.support
        assert abs(result.nodes - plain_result.nodes) <= 0.05 * plain_result.nodes
        assert abs(result.iterations - plain_result.iterations) <= 0.05 * plain_result.iterations

    def test_last_places_are_closed_at_once(self, problem, monkeypatch):
        """With logistic loss; the answer is the same."""
        result, _ = self.run(problem)
        monkeypatch.setattr("exactsel.enumeration.native.LAST_PLACES", 0)
        without, _ = self.run(problem)
        assert result.support == without.support
        assert result.nodes < 0.5 * without.nodes or problem.loss.name == "huber"

    def test_nobody_is_told_what_nobody_asks_for(self, problem):
        """A search that is only run keeps no models of what it closes at once, and is the same search."""
        brief, told = Search(problem, Settings(), signals=()).run(), self.run(problem)[0]
        assert brief.tree_hash == told.tree_hash
        assert brief.lower == told.lower

    def test_details_change_nothing_but_what_is_told(self, problem):
        result, _ = self.run(problem)
        detailed, told = self.run(problem, details=True)
        assert result.tree_hash == detailed.tree_hash
        assert result.lower == detailed.lower
        assert not any(isinstance(event, SubtreeClosed) for event in told)
        assert sum(isinstance(event, Bounded) for event in told) == detailed.bound_calls
        if problem.loss.name == "logistic":  # the slow twin fits every set of last columns: fewer of them will do
            fewer, intercept = problem.A[:, :18], problem.intercept
            problem = Problem.prepared(fewer, problem.target, 6, loss="logistic", lam=2.0, fit_intercept=intercept)
            detailed, told = self.run(problem, details=True, heuristics=())
            assert any(isinstance(event, Discarded) and isinstance(event.proof, LeafFits) for event in told)
        self.agree(problem, replayed(problem, detailed, told), detailed)

    def test_the_proof_is_the_same_whoever_tells_the_steps(self, problem, tmp_path):
        """Written down in bulk, and from the single events: the same regions, the same bound."""
        brief = solve(problem, proof=tmp_path / "brief.exsel", rel_eps=1e-4)
        told = solve(problem, proof=tmp_path / "told.exsel", rel_eps=1e-4, details=True)
        assert brief.tree_hash == told.tree_hash
        verdicts = [verify(problem, tmp_path / name) for name in ("brief.exsel", "told.exsel")]
        assert all(verdict.verified for verdict in verdicts)
        assert verdicts[0].regions == verdicts[1].regions
        assert verdicts[0].lower == verdicts[1].lower

    def test_an_interrupted_search_leaves_a_proof(self, problem, tmp_path):
        result = solve(problem, proof=tmp_path / "run.exsel", node_limit=600, heuristics="none")
        verdict = verify(problem, tmp_path / "run.exsel")
        assert verdict.verified
        assert result.lower * (1 - 1e-8) <= verdict.lower <= result.upper

    def test_the_tree_does_not_depend_on_threads(self, problem):
        runs = [self.run(problem, details=True, threads=threads) for threads in (1, 2)]
        assert runs[0][0].tree_hash == runs[1][0].tree_hash
        assert [plain(event) for event in runs[0][1]] == [plain(event) for event in runs[1][1]]

    def test_interrupted_and_resumed(self, problem):
        options = {"heuristics": "none", "rel_eps": 1e-6}
        limit = 700 if problem.loss.name == "huber" else 40 if problem.intercept else 150
        first = Search(problem, Settings(**options, node_limit=limit), signals=(), details=True)
        events = list(first)
        result = first.result()
        assert limit <= result.nodes <= limit + 16
        assert result.lower < result.upper
        self.agree(problem, replayed(problem, result, events), result)
        second = Search(problem, Settings(**options), state=first.state, signals=()).run()
        assert second.reached
        assert second.upper == pytest.approx(self.run(problem)[0].upper, rel=1e-9)

    def test_the_tree_can_be_drawn(self, problem):
        nodes = solve(problem, record=True, node_limit=600).tree().number_of_nodes()
        # What is closed at once is one node, and ten or more bound calls of those counted.
        assert nodes > (50 if problem.intercept else 200)

    def test_other_settings_do_without(self, problem):
        for options in ({"bound": "apg"}, {"frontier": "depth-first"}, {"branching": "largest"}):
            _, events = self.run(problem, node_limit=600, **options)
            assert not any(isinstance(event, SubtreeClosed) for event in events)


def test_a_better_model_met_inside_is_taken_over(eager):
    eager(256)
    for seed in range(720_000, 720_040):
        case = random_case(seed, loss="huber", lam=0.1, n=12, d=8)
        solved = checked_solve(case, {"heuristics": (), "threads": 1})
        assert solved.result.upper <= ceiling(optimum_of(case)) + solved.result.absolute_gap


@examples(200, 400)
@given(st.integers(0, 10**6), st.integers(0, 10**7), st.floats(1.0, 1e9), st.integers(1, 64))
def test_the_budget_is_bounded_by_work_and_by_what_is_left(nodes, iterations, cost, searches):
    work_budget = WorkBudget(nodes, nodes, iterations)
    budget = work_budget.subsearch_budget(cost, searches)
    assert budget == 0 or subtrees.LEAST_SUBSEARCH <= budget <= subtrees.MOST_SUBSEARCH
    assert budget * cost <= subtrees.SUBSEARCH_WORK
    limited = WorkBudget(nodes, nodes, iterations, left=10).subsearch_budget(cost, searches)
    assert limited <= budget
    assert limited * searches <= 10 + searches


def test_what_was_closed_with_the_tolerance_of_a_worse_model_is_left_open():
    """The tolerance is a tenth of the objective: .2 when the kernel begins, .1 once it has halved the objective."""
    tolerance = Tolerance(0.0, 0.1)
    kernels = NativeSearch(None, tolerance, lambda upper: upper - tolerance.absolute(upper), None)
    assert kernels.closed_too_soon(0.85, 2.0, 1.0)
    assert not kernels.closed_too_soon(0.91, 2.0, 1.0)
    assert not kernels.closed_too_soon(0.75, 2.0, 1.0), "closed for another reason"
    assert not kernels.closed_too_soon(np.inf, 2.0, 1.0)
    assert not kernels.closed_too_soon(0.85, 1.0, 1.0)
