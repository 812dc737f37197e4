"""The parts of the engine one by one: frontiers, tolerance, claims, state, fail-closed, names."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from checked_solve import ceiling, check_result, drive
from hypothesis import given
from hypothesis import strategies as st
from instances_for_tests import optimum_of, random_case
from recorded import replayed
from samples import examples
from stopping import Stopping

from exactsel import registry
from exactsel.bounds.apg import AcceleratedGradientBound
from exactsel.bounds.witness import InfimumPoint
from exactsel.errors import InputError
from exactsel.kernels.node import FREE
from exactsel.nodes.node import Node, root_node
from exactsel.nodes.tolerance import Tolerance
from exactsel.problem.fit import Fit
from exactsel.search.frontier import BestFirst, DepthFirst
from exactsel.search.memory import MEBIBYTE, MemoryGuard
from exactsel.search.state import SearchState
from exactsel.solving.api import solve
from exactsel.solving.outcome import Claim, Termination, claim_of
from exactsel.solving.settings import Settings
from exactsel.solving.solver import Search


def node(number, bound, depth=0):
    return Node(number, -1, depth, np.zeros(1, dtype=np.int8), bound, InfimumPoint())


# --- frontiers ---


class SlowFrontier:
    """A list, sorted anew each time."""

    def __init__(self, key):
        self.key, self.nodes = key, []

    def push(self, one):
        self.nodes.append(one)

    def take(self, count):
        taken = sorted(self.nodes, key=self.key)[:count]
        self.nodes = [n for n in self.nodes if n not in taken]
        return taken

    def lower(self):
        return min((n.bound for n in self.nodes), default=math.inf)

    def prune(self, cutoff):
        removed = sorted((n for n in self.nodes if n.bound >= cutoff), key=by_bound)
        self.nodes = [n for n in self.nodes if n.bound < cutoff]
        return removed

    def __len__(self):
        return len(self.nodes)

    def __iter__(self):
        return iter(sorted(self.nodes, key=by_bound))


def _listed(answer):
    return answer if answer is None or isinstance(answer, (float, list)) else list(answer)


def by_bound(one):
    return one.bound, one.id


def by_depth(one):
    return -one.depth, one.bound, one.id


# Few different values, so that ties are the rule.
BOUNDS = st.sampled_from([-math.inf, 0.0, 0.5, 1.0, 1.5, math.inf])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("push"), BOUNDS, st.integers(0, 3)),
        st.tuples(st.just("take"), st.integers(0, 4)),
        st.tuples(st.just("prune"), BOUNDS),
    ),
    max_size=40,
)


@pytest.mark.smoke
@pytest.mark.parametrize(("make", "key"), [(BestFirst, by_bound), (DepthFirst, by_depth)])
@examples(300, 600)
@given(steps=STEPS)
def test_frontier_against_a_list(make, key, steps):
    fast, slow = make(), SlowFrontier(key)
    for number, (action, *arguments) in enumerate(steps):
        if action == "push":
            one = node(number, *arguments)
            fast.push(one)
            slow.push(one)
        else:
            assert _listed(getattr(fast, action)(*arguments)) == _listed(getattr(slow, action)(*arguments))
        assert len(fast) == len(slow)
        assert list(fast) == list(slow)
        assert fast.lower() == slow.lower()


def test_the_memory_guard_moves_every_node_and_moves_it_back():
    guard, usual = MemoryGuard(1.0), BestFirst()
    for number in range(5):
        usual.push(node(number, float(number), depth=number))
    assert guard.choose(usual, MEBIBYTE) is usual
    relief = guard.choose(usual, MEBIBYTE + 1)
    assert isinstance(relief, DepthFirst)
    assert [one.id for one in relief] == [0, 1, 2, 3, 4]
    assert relief.take(1)[0].id == 4
    assert guard.choose(relief, MEBIBYTE - 1) is relief
    assert guard.choose(relief, MEBIBYTE // 2) is usual
    assert [one.id for one in usual] == [0, 1, 2, 3]
    assert len(relief) == 0


# --- tolerance and claims ---


def test_tolerance_is_the_larger_of_absolute_and_relative():
    assert Tolerance(0.5, 0.01).absolute(10.0) == 0.5
    assert Tolerance(0.5, 0.01).absolute(-100.0) == 1.0
    assert Tolerance(0.0, 0.1).absolute(0.0) == 0.0
    assert Tolerance(0.0, 0.1, null=4.0).absolute(0.0) == pytest.approx(4e-11), "noise, beside the empty model"
    assert Tolerance(0.0, 0.1, null=4.0, loss="poisson").absolute(0.0) == pytest.approx(8e-15), "beside counts"
    assert Tolerance(0.0, 0.1, null=4.0).absolute(1.0) == 0.1
    assert Tolerance(0.0, 0.0).absolute(1e6) == pytest.approx(1e-5)
    assert Tolerance(0.25, 0.1).absolute(math.inf) == 0.25


def test_a_search_leaves_what_its_proof_claims_less():
    def left(rel_eps, taken=0.0):
        return Tolerance(0.0, rel_eps).for_search(lambda value: taken * value).absolute(1.0)

    assert left(1e-3) == pytest.approx(1e-3 * (1 - 2.0**-10), rel=1e-12)
    assert left(1e-9) == pytest.approx(8.9e-10, rel=1e-9)
    assert left(1e-10) == pytest.approx(0.5e-10, rel=1e-2)
    # What is taken off bounds when they are said of the data as given is left, too, and a little more.
    assert left(1e-3, 1e-4) == pytest.approx(0.875e-3, rel=1e-5)
    assert left(1e-6, 1e-10) == pytest.approx(1e-6 * (1 - 2.0**-10), rel=1e-12), "there is enough room"
    assert left(1e-6, 1e-9) < 1e-6 - 1e-9
    assert left(1e-6, 1e-3) == pytest.approx(0.5e-6, rel=2e-3), "never more than half"


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
@pytest.mark.parametrize("name", ["eps", "rel_eps"])
def test_a_tolerance_must_be_a_number_that_is_not_negative(name, value):
    with pytest.raises(InputError, match=rf"^{name} is {value}, .*set {name}\.$"):
        Tolerance(**{name: value})


ASKED = Tolerance(0.5, 0.0, null=1.0)


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("upper", "lower", "claim"),
    [
        (1.0, 1.0, Claim.OPTIMAL),
        (1.0, 1.0 - 0.9e-9, Claim.OPTIMAL),
        (1e3, 1e3 - 0.9e-6, Claim.OPTIMAL),
        (1e-3, 1e-3 - 0.9e-11, Claim.OPTIMAL),
        (1e-3, 1e-3 - 1.1e-11, Claim.WITHIN_EPS),
        (1e-8, 1e-8 - 0.9e-14, Claim.OPTIMAL),
        (1e-8, 1e-8 - 1.1e-14, Claim.WITHIN_EPS),
        (1e-10, 0.5e-10, Claim.WITHIN_EPS),
        (0.9e-22, 0.0, Claim.OPTIMAL),
        (1.1e-22, 0.0, Claim.WITHIN_EPS),
        (1.0, 1.0 - 2e-9, Claim.WITHIN_EPS),
        (1.0, 0.5, Claim.WITHIN_EPS),
        (1.0, 0.49, Claim.BOUNDED),
        (1.0, -1e300, Claim.BOUNDED),
        (1.0, -math.inf, Claim.HEURISTIC_ONLY),
        (math.inf, 1.0, Claim.HEURISTIC_ONLY),
        (math.inf, math.inf, Claim.HEURISTIC_ONLY),
        (-math.inf, -math.inf, Claim.HEURISTIC_ONLY),
        (math.nan, 1.0, Claim.HEURISTIC_ONLY),
        (1.0, math.nan, Claim.HEURISTIC_ONLY),
        (math.nan, math.nan, Claim.HEURISTIC_ONLY),
        (1.0, 1.0 + 1e-9, Claim.HEURISTIC_ONLY),
        (1.0, math.inf, Claim.HEURISTIC_ONLY),
    ],
)
def test_claims_fail_closed(upper, lower, claim):
    assert claim_of(upper, lower, ASKED) is claim


@given(st.floats(), st.floats(), st.floats(0, 1e6), st.floats(0, 1), st.floats(0, 1e6))
def test_no_claim_without_the_bound_that_supports_it(upper, lower, eps, rel_eps, null):
    claim = claim_of(upper, lower, Tolerance(eps, rel_eps, null))
    if claim is Claim.HEURISTIC_ONLY:
        return
    assert lower <= upper
    assert math.isfinite(upper - lower) or claim is Claim.BOUNDED
    if claim is Claim.OPTIMAL:
        assert upper - lower <= max(1e-9 * abs(upper), min(1e-6 * abs(upper), 1e-11 * null), 1e-22 * null)
    if claim is Claim.WITHIN_EPS:
        assert upper - lower <= max(eps, rel_eps * max(1e-15 * null, abs(upper)), 1e-11 * abs(upper), 1e-11 * null)


@given(st.floats(1e-3, 1e3), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1e3), st.integers(-300, 300))
def test_claims_do_not_depend_on_units(upper, part, rel_eps, null, power):
    unit = 2.0**power
    claims = [claim_of(upper * u, upper * part * u, Tolerance(0.0, rel_eps, null * u)) for u in (1.0, unit)]
    assert claims[0] is claims[1]


def test_every_word_has_its_sentence():
    for word in Termination:
        assert word.sentence
        assert word == word.value


# --- the state of a search ---


def a_state(upper=10.0):
    return SearchState(BestFirst(), Fit(np.zeros(0, dtype=np.int64), np.zeros(1), upper, 0.0), "nobody", "")


@pytest.mark.smoke
def test_the_lower_bound_is_the_smallest_of_everything_not_settled():
    state = a_state()
    assert state.lower == 10.0
    state.push(node(1, 4.0))
    state.push(node(2, 6.0))
    assert state.lower == 4.0
    assert [one.id for one in state.take(1)] == [1]
    assert state.lower == 4.0, "a node in flight still counts"
    state.in_flight = []
    assert state.lower == 6.0
    state.min_pruned_bound = 5.0
    assert state.lower == 5.0
    assert state.absolute_gap == 5.0


@pytest.mark.smoke
def test_what_is_put_back_is_open_again():
    state = a_state()
    for number in range(4):
        state.push(node(number, float(number)))
    size = state.open_bytes
    state.take(3)
    assert 0 < state.open_bytes < size
    state.put_back()
    assert state.open_bytes == size
    assert state.in_flight == []
    assert [one.id for one in state.frontier] == [0, 1, 2, 3]
    assert [one.id for one in state.prune(2.0)] == [2, 3]
    assert 0 < state.open_bytes < size


def test_the_lower_bound_is_never_above_the_model():
    state = a_state(upper=3.0)
    state.push(node(1, 7.0))
    assert state.lower == 3.0
    assert state.absolute_gap == 0.0


def test_the_root_is_everything():
    root = root_node(np.full(4, FREE, dtype=np.int8), 0.0)
    assert root.support.tolist() == []
    assert root.candidates.tolist() == [0, 1, 2, 3]
    assert root.bound == 0.0


# --- what goes wrong inside a bound proves nothing ---


@dataclass(frozen=True)
class Spoiled:
    """The default bound with some of its answers replaced, as a faulty plug-in would."""

    value: float
    name: str = "spoiled"

    def prepare(self, problem, options):
        return PreparedSpoiled(self.value, AcceleratedGradientBound().prepare(problem, options))


class PreparedSpoiled:
    def __init__(self, value, inner):
        self.value, self.inner, self.calls = value, inner, 0

    def tighten(self, states, *arguments):
        result = self.inner.tighten(states, *arguments)
        rng = np.random.default_rng(self.calls)
        self.calls += 1
        spoiled = rng.random(len(states)) < 0.5
        result.answers.bound[spoiled] = self.value
        for array in (result.answers.bound_in, result.answers.bound_out):
            array[spoiled[:, None] & (rng.random(array.shape) < 0.5)] = self.value
        result.answers.status[spoiled & (result.answers.status == 1)] = 0
        return result


@pytest.mark.smoke
@pytest.mark.parametrize("tree", ["binary", "state-space"])
@pytest.mark.parametrize("value", [math.nan, -math.inf, -1e300])
def test_a_bound_that_fails_only_weakens_the_proof(value, tree):
    for seed in range(800_000, 800_025):
        case = random_case(seed, lam=0.1, d=6)
        optimum, problem, events = optimum_of(case), case.problem(), []
        options = Settings(bound=Spoiled(value), tree=tree, heuristics=(), threads=1)
        result = drive(Search(problem, options, signals=()), optimum, events)
        check_result(case, optimum, result, events)
        replayed(problem, result, events)


@pytest.mark.filterwarnings("default::exactsel.errors.CompilingWarning")  # where the cache of kernels is empty
@pytest.mark.parametrize("tree", ["binary", "state-space"])
def test_a_round_that_is_stopped_leaves_no_trace(tree, clock):
    stopped = 0
    for seed in range(810_000, 810_012):
        case = random_case(seed, lam=0.1, d=7, n=10)
        optimum, problem, events = optimum_of(case), case.problem(), []
        for calls in (1, 2, 4):
            options = Settings(
                bound=Stopping(calls, clock), tree=tree, heuristics=(), threads=1, batch=2, time_limit=0.05
            )
            search = Search(problem, options, signals=())
            result = drive(search, optimum, events)
            assert search.state.in_flight == [] or search.state.can_begin_again
            replayed(problem, result, events)
            if result.termination is Termination.TIME_LIMIT:
                stopped += 1
                assert result.open_nodes > 0
                again = Search(
                    problem, Settings(tree=tree, heuristics=(), threads=1), state=search.state, signals=()
                )  # fmt: skip
                check_result(case, optimum, drive(again, optimum, events), events)
                replayed(problem, again.result(), events)
            events.clear()
    assert stopped > 10


def test_a_memory_limit_loses_nothing():
    seen = set()
    for seed in range(820_000, 820_030):
        case = random_case(seed, lam=0.01, d=8, n=9)
        optimum, problem, events = optimum_of(case), case.problem(), []
        options = Settings(
            memory_limit=3e-3, bound="supergradient", heuristics=(), threads=1, batch=2, rel_eps=0.0,
            frontier="weighted",
        )  # fmt: skip
        search = Search(problem, options, signals=())
        result = drive(search, optimum, events)
        assert result.lower <= ceiling(optimum)
        replayed(problem, result, events)
        seen.add(result.termination)
        if result.termination is Termination.MEMORY_LIMIT:
            assert result.open_nodes > 0
            again = Search(problem, replace(options, memory_limit=64.0), state=search.state, signals=())
            check_result(case, optimum, drive(again, optimum, events), events)
            replayed(problem, again.result(), events)
    assert Termination.MEMORY_LIMIT in seen


# --- names ---


@pytest.mark.parametrize("kind", ["bounds", "trees", "branchings", "frontiers"])
def test_plug_ins_carry_the_name_they_are_found_by(kind):
    for name in registry.names(kind):
        assert registry.load(kind, name)().name == name


@pytest.mark.parametrize(
    ("option", "word"),
    [("bound", "bound"), ("tree", "tree"), ("branching", "branching rule"), ("frontier", "frontier")],
)
def test_an_unknown_name_is_one_sentence(option, word):
    with pytest.raises(InputError, match=f"^there is no {word} called 'nonsense'; known are: .*\\.$"):
        solve(random_case(1).problem(), signals=(), **{option: "nonsense"})
