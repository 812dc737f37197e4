"""Small problems are solved by the Python text of kernels, as long as an allowance lasts."""

from __future__ import annotations

import math
from functools import partial
from itertools import islice

import numpy as np
import pytest
from instances_for_tests import optimum_of, random_case
from own_loss import PseudoHuber
from samples import many, sample

from exactsel import ColumnSubsetProblem, GroupedProblem, Problem, Search, Settings, _jit, registry, solve, verify
from exactsel._jit import interpreting, kernel, njit
from exactsel._jit.interpreting import Exhausted, allowance, session
from exactsel.bounds.base import never_stop
from exactsel.errors import UnsupportedError
from exactsel.interrupts import hurrying
from exactsel.search.events import Started
from exactsel.search.watch import Watch
from exactsel.solving.small import MOST_COLUMNS, is_small
from exactsel.testing import check_branching, check_loss
from exactsel.testing.cases import small_problems

pytestmark = pytest.mark.skipif(not _jit.ENABLED, reason="everything is interpreted")


def fit_anew(problem):
    """A fit that is not one of those kept."""
    problem.objective.recent_fits.clear()
    problem.fit([0])


@pytest.fixture
def chooses(monkeypatch):
    """As where nobody says what is compiled."""
    monkeypatch.setattr(interpreting, "CHOOSES", True)
    monkeypatch.setattr(allowance, "left", 10**7)


@pytest.fixture
def nothing_compiled(monkeypatch, chooses):
    def refuse(self, *arguments, **named):
        raise AssertionError(f"{self.__name__} was to be compiled")

    monkeypatch.setattr(kernel.Kernel, "compiled", property(refuse))


def data(loss="quadratic", seed=0, n=30, d=10):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, d)) + rng.normal(size=(n, 1))
    y = A @ rng.choice([-1.0, 0.0, 1.0], d) + 2.0 * rng.normal(size=n)
    return A, np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y


def small(loss="quadratic", **options):
    if loss == "css":
        return ColumnSubsetProblem(data()[0], 3)
    if loss == "groups":
        return GroupedProblem(Problem(*data(), 3, lam=0.1), [f"group {j // 2}" for j in range(10)])
    return Problem.prepared(*data(loss), 3, loss=loss, lam=0.1, **options)


KINDS = ["quadratic", "huber", "logistic", "css", "groups"]


@pytest.mark.smoke
@pytest.mark.parametrize("seed", sample(80, 80))
def test_the_optimum_with_a_proof_and_without_the_compiler(seed, nothing_compiled, tmp_path):
    case = random_case(seed)
    optimum, problem = optimum_of(case), case.problem()
    slack = 1e-7 * (1.0 + abs(optimum.high))
    try:
        result = solve(problem, proof=tmp_path / "run.exsel", signals=())
    except UnsupportedError:
        result = solve(problem, signals=())
    assert optimum.low - slack <= result.upper <= optimum.high + slack
    assert result.lower <= optimum.high + slack
    if result.proof is not None:
        assert verify(problem, tmp_path / "run.exsel").verified


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(20))
def test_thousands_of_claims_are_true(chunk, nothing_compiled, tmp_path):
    """A minute or two: ``pytest -m long tests/search/test_interpreted.py``."""
    for seed in range(80 + 100 * chunk, 80 + 100 * (chunk + 1)):
        case = random_case(seed)
        optimum, problem = optimum_of(case), case.problem()
        rounding = 1e-12 * (1.0 + abs(optimum.high))
        try:
            result = solve(problem, proof=tmp_path / f"{seed}.exsel", signals=())
            assert verify(problem, tmp_path / f"{seed}.exsel").verified, seed
        except UnsupportedError:
            result = solve(problem, signals=())
        assert result.lower <= optimum.high + rounding, seed
        assert result.upper >= optimum.low - rounding, seed
        assert result.reached or result.claim == "bounded", seed


@pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic"])
@pytest.mark.parametrize("options", [{"intercept": True}, {"weights": np.arange(1.0, 31.0)}])
def test_intercepts_and_weights(loss, options, nothing_compiled):
    assert solve(small(loss, **options), signals=()).reached


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_claims_as_compiled(kind, monkeypatch):
    compiled = solve(small(kind), signals=())
    monkeypatch.setattr(interpreting, "CHOOSES", True)
    monkeypatch.setattr(allowance, "left", 10**7)
    interpreted = solve(small(kind), signals=())
    assert allowance.left < 10**7
    assert compiled.settings["kernels"] == "compiled"
    assert interpreted.settings["kernels"] == "interpreted"
    assert interpreted.claim == compiled.claim
    assert interpreted.support == compiled.support
    assert interpreted.upper == pytest.approx(compiled.upper, rel=1e-9)
    assert interpreted.lower == pytest.approx(compiled.lower, rel=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("calls", [0, 1, 30, 300, 3000])
def test_whatever_is_left_of_the_allowance(kind, calls, chooses, monkeypatch):
    """Where it ends does not depend on threads, so the tree does not either."""
    results = []
    for threads in (1, 3):
        monkeypatch.setattr(allowance, "left", calls)
        results.append(solve(small(kind), threads=threads, signals=()))
    assert results[0].reached
    if calls in (30, 300):
        assert results[0].settings["kernels"] == "interpreted, then compiled"
    assert results[0].tree_hash == results[1].tree_hash
    assert results[0].upper == results[1].upper
    assert results[0].lower == results[1].lower


@njit
def _told(x, i):
    if i < 0:
        raise ValueError("before the first")
    x[i] += 1.0


@njit
def _add_ones(x, rest, wanted):
    for i in range(wanted):
        _told(x, i)
        rest[0][i] += 2.0
    return x.sum()


def test_a_call_that_uses_up_the_allowance_is_done_anew(chooses, monkeypatch):
    monkeypatch.setattr(allowance, "left", 3)
    x, rest = np.zeros(5), (np.zeros(5),)
    with session(True):
        assert _add_ones(x, rest, 5) == 5.0
        np.testing.assert_array_equal(x, np.ones(5))
        np.testing.assert_array_equal(rest[0], np.full(5, 2.0))
        assert allowance.left == 0
        assert _add_ones(x, rest, 2) == 7.0
    np.testing.assert_array_equal(rest[0], [4.0, 4.0, 2.0, 2.0, 2.0])


@njit
def _until_stopped(x, stop, turns):
    for _ in range(turns):
        if stop[0]:
            return -1.0
        _told(x, 0)
    return x[0]


def test_a_flag_raised_meanwhile_stays_up_when_the_call_is_undone(chooses, monkeypatch):
    """Else a signal that comes while the allowance runs out would be lost."""
    x, stop = np.zeros(1), never_stop()
    told = _told.text

    def raising(x, i):
        stop[0] = True  # as the thread does that watches for signals
        told(x, i)
        raise Exhausted

    monkeypatch.setattr(_told, "text", raising)
    with session(True):
        assert _until_stopped(x, stop, 5) == -1.0
    assert stop[0]
    assert x[0] == 0.0


def test_an_interrupt_while_the_allowance_runs_out_ends_the_search(chooses, monkeypatch):
    watches, seen, call = [], [], interpreting.Session.call

    def watch(*arguments, **options):
        watches.append(Watch(*arguments, **options))
        return watches[-1]

    def interrupted(self, kernel, arguments, named):
        if self._included and not seen:
            seen.append(kernel)
            watches[0]._raise_flag("interrupted")
            raise Exhausted
        return call(self, kernel, arguments, named)

    monkeypatch.setattr("exactsel.solving.solver.Watch", watch)
    search = Search(small("huber"), Settings(heuristics=()), signals=())
    for event in search:
        if isinstance(event, Started):
            monkeypatch.setattr(interpreting.Session, "call", interrupted)
    assert seen
    assert search.result().termination == "interrupted"


@pytest.mark.parametrize("after", [0, 3, 50])
def test_a_time_limit_ends_a_kernel_that_is_interpreted(after, chooses, monkeypatch, tmp_path):
    """It is looked at between the calls of kernels inside one; what that wrote is undone, and the proof holds."""
    watches, calls, call = [], [], interpreting.Session.call

    def watch(*arguments, **options):
        watches.append(Watch(*arguments, **options))
        return watches[-1]

    def late(self, kernel, arguments, named):
        if self._included:
            calls.append(kernel)
            if len(calls) == after:
                watches[0]._raise_flag("time_limit")
        return call(self, kernel, arguments, named)

    monkeypatch.setattr(interpreting, "CALLS_A_LOOK", 1)
    monkeypatch.setattr(interpreting.Session, "call", late)
    monkeypatch.setattr("exactsel.solving.solver.Watch", watch)
    problem, proof = small("huber"), tmp_path / "run.exsel"
    result = solve(problem, proof=proof, time_limit=0.0 if after == 0 else 1e6, signals=())
    assert result.termination == "time_limit"
    assert -np.inf < result.lower <= result.upper
    assert verify(problem, proof).verified
    assert len(calls) < 20_000  # it did not go on to the end


class TestHalfOfTheAllowance:
    """Starting heuristics leave the search its half."""

    @pytest.fixture
    def hungry(self, monkeypatch):
        """A portfolio whose second method would go on for ever."""

        class Hungry:
            name = "hungry"

            def run(self, problem, context):
                while True:
                    fit_anew(problem)

        first = registry.load("heuristics", "forward")()
        monkeypatch.setattr("exactsel.start.models.portfolio_for", lambda problem, given: ([first, Hungry()], []))
        monkeypatch.setattr("exactsel.start.models.first_is_enough", lambda *what: False)

    @pytest.mark.parametrize("loss", KINDS[:3])
    def test_the_search_has_enough(self, loss, hungry, nothing_compiled, monkeypatch):
        monkeypatch.setattr(allowance, "whole", 10**5)
        monkeypatch.setattr(allowance, "left", 10**5)
        result = solve(small(loss), signals=())
        assert result.claim.reached
        assert result.settings["kernels"] == "interpreted"
        assert 0 < allowance.left <= 10**5 // 2

    def test_what_was_cut_short_comes_when_kernels_are_compiled(self, chooses, monkeypatch):
        """With too little for the search as well: its events tell who found the best model in the end."""
        ran = []

        class Patient:
            name = "patient"

            def run(self, problem, context):
                ran.append(interpreting.interprets())
                if len(ran) == 1:
                    while True:
                        fit_anew(problem)
                return registry.load("heuristics", "swap")().run(problem, context)

        monkeypatch.setattr("exactsel.start.models.portfolio_for", lambda problem, given: ([Patient()], []))
        monkeypatch.setattr(allowance, "whole", 300)
        monkeypatch.setattr(allowance, "left", 300)
        result = solve(small("huber"), subtrees=False, batch=1, signals=())
        assert result.claim.reached
        assert result.settings["kernels"] == "interpreted, then compiled"
        assert ran == [True, False]
        assert result.source == "patient"

    def test_little_is_left_to_whoever_comes_first(self, chooses, monkeypatch):
        monkeypatch.setattr(allowance, "whole", 10**5)
        monkeypatch.setattr(allowance, "left", 100)
        with session(True):
            assert list(interpreting.steps_leaving_half([1, 2, 3], pytest.fail)) == [1, 2, 3]
            _told(np.zeros(1), 0)
        assert allowance.left < 100

    def test_what_the_last_call_wrote_is_undone(self, chooses, monkeypatch):
        monkeypatch.setattr(allowance, "whole", 10)
        monkeypatch.setattr(allowance, "left", 10)
        x, stop, cut = np.zeros(1), never_stop(), []

        def steps():
            yield "first"
            _until_stopped(x, stop, 100)
            yield "never"

        with session(True):
            assert list(interpreting.steps_leaving_half(steps(), lambda: cut.append(True))) == ["first"]
        assert cut == [True]
        assert x[0] == 0.0
        assert 0 < allowance.left <= 5


@njit
def _half_of_a_log(x, i):
    x[0] += 1.0
    x[i] = np.nan if x[i] < 0.0 else x[i]
    _told(x, 0)
    return math.log(x[i]) / 2.0


def test_what_a_hurry_needs_is_compiled_where_its_text_raises(monkeypatch):
    """Compiled, the logarithm of -1 is nan; nobody sees what the text wrote before it raised."""
    monkeypatch.setattr(_half_of_a_log, "text", lambda x, i: x.fill(7.0) or math.log(-1.0))
    x = np.array([0.0, 4.0])
    with hurrying(True):
        assert interpreting.as_text(_half_of_a_log, (x, 1), {}) == math.log(4.0) / 2.0
    np.testing.assert_array_equal(x, [2.0, 4.0])


def test_the_text_in_a_hurry_takes_nothing_off_the_allowance(monkeypatch):
    monkeypatch.setattr(allowance, "left", 5)
    x, rest = np.zeros(9), (np.zeros(9),)
    assert interpreting.as_text(_add_ones, (x, rest, 9), {}) == 9.0
    assert allowance.left == 5
    assert interpreting.current.session is None


def test_errors_are_errors(chooses):
    with session(True), pytest.raises(ValueError, match="before the first"):
        _told(np.zeros(2), -1)


def test_only_in_a_session_and_only_where_it_is_wanted(chooses, monkeypatch):
    called = []
    monkeypatch.setattr(_told, "text", lambda x, i: called.append(i))
    _told(np.zeros(2), 0)
    with session(False):
        _told(np.zeros(2), 0)
    assert not called
    with session(True):
        _told(np.zeros(2), 1)
        with session(True):
            _told(np.zeros(2), 0)
    assert called == [1, 0]
    monkeypatch.setattr(interpreting, "CHOOSES", False)
    with session(True):
        _told(np.zeros(2), 1)
    assert called == [1, 0]


@pytest.mark.parametrize(
    "kit", [partial(check_branching, "half"), partial(check_loss, "quadratic")], ids=["branching", "loss"]
)  # fmt: skip
def test_conformance_kits_compile_nothing_and_leave_the_allowance(kit, nothing_compiled, monkeypatch):
    some = [*islice(small_problems(), 0, None, many(3, 1))]  # they come in tens of a size: so of all kinds
    monkeypatch.setattr("exactsel.testing.order.small_problems", lambda: some)
    monkeypatch.setattr(allowance, "left", 17)
    kit()
    assert allowance.left == 17


def test_the_allowance_is_no_error_for_those_outside():
    assert not issubclass(Exhausted, ArithmeticError)
    assert is_small(small())
    assert not is_small(Problem(np.ones((2, MOST_COLUMNS + 1)), np.ones(2), 1, lam=1.0))
    assert is_small(Problem(np.ones((6000, 10)), np.ones(6000), 1, lam=1.0))
    by_rows = Problem(np.ones((6000, 10)), np.ones(6000), 1, loss=PseudoHuber(0.7), lam=1.0)
    assert not is_small(by_rows)  # this loss does not say what its rows are in arrays


def test_who_looks_at_the_events_has_kernels_compiled(chooses):
    """A search in steps interprets only what it does itself."""
    sessions = {interpreting.current.session for _ in Search(small(), Settings(), signals=())}
    assert sessions == {None}


def test_a_time_limit_holds(chooses):
    result = solve(small("huber"), time_limit=1e-9, signals=())
    assert result.lower <= solve(small("huber"), signals=()).upper <= result.upper
