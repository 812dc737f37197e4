"""Limits and interrupts: whatever ends a search, it ends soon, with a valid result and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from clocks import HANG, Clock, JumpAt

from exactsel import Claim, Huber, Problem, Search, Settings, Termination, load, solve
from exactsel.bounds.base import BoundOptions
from exactsel.data.generate import generate
from exactsel.data.instance import Instance, write_instance
from exactsel.enumeration.closed_form import ClosedFormEnumeration
from exactsel.search.rounds import Rounds

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
posix = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


@pytest.fixture(scope="module")
def hard():
    """Searched for hours: nobody need wait for its end."""
    return generate("hard", k=12).problem()


@pytest.fixture(scope="module")
def files(tmp_path_factory, hard):
    """Instances on disk: one for a long search, one for its heuristics."""
    folder = tmp_path_factory.mktemp("limits")
    write_instance(folder / "search.npz", Instance(hard.A, hard.y, k=12, lam=hard.lam))
    wide = big("huber", k=60, n=300, d=200)
    write_instance(folder / "heuristics.npz", Instance(wide.A, wide.y, k=60, lam=0.1, loss="huber", delta=3.0))
    return folder


def small(loss, lam=0.1, seed=0) -> Problem:
    rng = np.random.default_rng(seed)
    y = rng.standard_normal(20)
    return Problem(rng.standard_normal((20, 8)), np.sign(y) if loss == "logistic" else y, 3, loss=loss, lam=lam)


def big(loss, k, n, d, lam=0.1) -> Problem:
    rng = np.random.default_rng(0)
    A, x = rng.standard_normal((n, d)), np.zeros(d)
    x[rng.choice(d, k, replace=False)] = 1.0
    y = A @ x + 2.0 * rng.standard_normal(n)
    if loss == "logistic":
        y = np.where(y > 0, 1.0, -1.0)
    return Problem(A, y, k, loss=Huber(3.0) if loss == "huber" else loss, lam=lam)


def check(result, problem) -> None:
    """A result that may be shown: bounds in order, the incumbent's value recomputed, JSON that is strict."""
    assert problem.loss.infimum <= result.lower <= result.upper
    assert result.upper == pytest.approx(problem.objective(result.coef), rel=1e-12)
    assert len(result.support) <= problem.k
    assert "NaN" not in result.to_json()
    assert "Infinity" not in result.to_json()


@pytest.fixture
def rounds(monkeypatch, clock):
    """For each round a search begins: whether time was up by then."""
    seen, begin = [], Rounds.begin

    def note(*arguments):
        seen.append(clock.jumped)
        return begin(*arguments)

    monkeypatch.setattr(Rounds, "begin", note)
    return seen


@pytest.mark.smoke
class TestTimeLimit:
    """Time stands still, and then the limit is passed; from there on, what a search still does is counted.

    What that comes to in seconds is measured by ``python -m benchmarks.limits``.
    """

    @pytest.mark.parametrize("nodes", [1, 30, 500])
    def test_a_long_search_ends(self, hard, clock, rounds, nodes):
        result = solve(hard, time_limit=1000.0, callback=JumpAt(clock, nodes))
        assert (result.termination, result.claim) == (Termination.TIME_LIMIT, Claim.BOUNDED)
        assert not any(rounds), "a round was begun after the limit"
        assert result.lower > 0
        assert result.nodes >= nodes
        assert result.open_nodes > 0
        check(result, hard)

    @pytest.mark.parametrize(
        "options", [{"tree": "state-space", "bound": "pdal"}, {"bound": "fit"}, {"frontier": "depth-first"}]
    )
    def test_in_every_mode(self, hard, clock, rounds, options):
        result = solve(hard, time_limit=1000.0, callback=JumpAt(clock, 20), **options)
        assert (result.termination, result.claim) == (Termination.TIME_LIMIT, Claim.BOUNDED)
        assert not any(rounds), "a round was begun after the limit"
        check(result, hard)

    @pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic"])
    def test_zero(self, loss, clock):
        problem = small(loss)
        for heuristics in ((), ("forward", "swap")):
            result = solve(problem, time_limit=0, heuristics=heuristics)
            assert (result.nodes, result.termination, result.claim) == (0, Termination.TIME_LIMIT, Claim.BOUNDED)
            check(result, problem)
        assert not clock.jumped

    @pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic"])
    @pytest.mark.parametrize("k", [10, 60])
    def test_setup_and_heuristics_look_at_the_clock_and_obey_it(self, loss, k, monkeypatch):
        problem = big(loss, k, n=300, d=200)
        for read in (2, 3, 5, 15):
            clock = Clock()
            clock.jump_at_read = read
            monkeypatch.setattr("exactsel.clock._read", clock)
            result = solve(problem, time_limit=1000.0)
            assert (result.nodes, result.termination) == (0, Termination.TIME_LIMIT)
            assert clock.jumped
            # Asked again once by each heuristic that calls another, by the loop over them, and by the search, and
            # twice or three times for a bound at hand.
            assert clock.reads_after <= 12
            check(result, problem)

    def test_time_that_passes(self, real_time, hard):
        result = solve(hard, time_limit=0.3)
        assert (result.termination, result.claim) == (Termination.TIME_LIMIT, Claim.BOUNDED)
        check(result, hard)

    def test_a_limit_that_is_not_reached_changes_nothing(self):
        problem = small("huber")
        assert solve(problem, time_limit=1e6).tree_hash == solve(problem).tree_hash

    def test_a_walk_that_is_told_to_stop_hands_back_nothing(self):
        problem = small("quadratic")
        states = problem.root_state[None]
        enumeration = ClosedFormEnumeration(problem, None, BoundOptions(stop=np.array([True])))
        never = ClosedFormEnumeration(problem, None, BoundOptions())
        assert never.explore(states, np.inf, 0.0, 10_000)[0].finished
        long = generate("hard", k=12).problem()
        enumeration = ClosedFormEnumeration(long, None, BoundOptions(stop=np.array([True])))
        assert enumeration.explore(long.root_state[None], np.inf, 0.0, 100_000) is None


@pytest.mark.smoke
class TestNodeLimit:
    @pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic"])
    def test_zero(self, loss):
        problem = small(loss)
        result = solve(problem, node_limit=0)
        assert (result.nodes, result.bound_calls, result.open_nodes) == (0, 0, 1)
        assert (result.termination, result.claim) == (Termination.NODE_LIMIT, Claim.BOUNDED)
        assert result.lower == problem.loss.infimum
        check(result, problem)

    @pytest.mark.parametrize("limit", [1, 2, 17, 100])
    def test_it_is_kept(self, hard, limit):
        result = solve(hard, node_limit=limit)
        assert (result.nodes, result.termination, result.claim) == (limit, Termination.NODE_LIMIT, Claim.BOUNDED)
        check(result, hard)

    def test_lower_bounds_rise_with_it(self, hard):
        lowers = [solve(hard, node_limit=limit).lower for limit in (1, 50, 500)]
        assert lowers == sorted(lowers)

    def test_the_tree_of_the_paper_bounds_children_at_once(self, hard):
        result = solve(hard, tree="state-space", node_limit=1, heuristics=())
        assert result.nodes == 1
        assert 1 < solve(hard, tree="state-space", node_limit=2, heuristics=()).nodes <= 2 + hard.d


WATCHED = """
    import runpy, sys, time
    from pathlib import Path
    from exactsel.observers.history import History
    from exactsel_heuristics.forward import ForwardSelection

    moment, flag = sys.argv[1], Path(sys.argv[2])
    del sys.argv[1:3]
    watch, run = History.__call__, ForwardSelection.run

    def searching(self, event, state):
        watch(self, event, state)
        if state.nodes > 20 and state.lower > 0:
            flag.touch()

    def selecting(self, problem, context):
        flag.touch()
        while not context.should_stop():
            time.sleep(0.001)
        return run(self, problem, context)

    if moment == "search":
        History.__call__ = searching
    else:
        ForwardSelection.run = selecting
    runpy.run_module("exactsel", run_name="__main__", alter_sys=True)
"""
"""``exactsel``, which says by a file that it has come to its search, or to its heuristics and lingers there."""


class Interrupted:
    """A process of ``exactsel`` that gets signals at a given moment."""

    def __init__(self, folder: Path, moment: str, arguments, *signals: int) -> None:
        flag = folder / "there"
        command = [sys.executable, "-c", textwrap.dedent(WATCHED), moment, flag, *arguments]
        with subprocess.Popen(
            [*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            end = time.monotonic() + HANG
            while not flag.exists() and process.poll() is None and time.monotonic() < end:
                time.sleep(0.01)
            for number in signals:
                process.send_signal(number)
            try:
                self.out, self.err = process.communicate(timeout=HANG)
            finally:
                process.kill()
        self.code = process.returncode
        assert flag.exists(), self.err
        assert "Traceback" not in self.err


@posix
class TestInterrupt:
    """The searches take hours: that they end at all is due to the signal."""

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_during_the_search(self, files, number, tmp_path):
        ended = Interrupted(tmp_path, "search", ["solve", files / "search.npz", "--bound", "apg", "--json"], number)
        result = json.loads(ended.out)
        assert ended.code == 130
        assert (result["termination"], result["claim"]) == ("interrupted", "bounded")
        # At least the model of forward selection is there by now; when others come depends on the moment.
        assert 0 < result["lower"] < result["upper"] <= 0.2536
        assert "termination  interrupted: the search was interrupted" in ended.err

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_during_the_heuristics(self, files, number, tmp_path):
        ended = Interrupted(tmp_path, "heuristics", ["solve", files / "heuristics.npz", "--json"], number)
        result = json.loads(ended.out)
        assert ended.code == 130
        assert (result["termination"], result["claim"], result["nodes"]) == ("interrupted", "bounded", 0)
        assert 0 <= result["lower"] < result["upper"]

    def test_certify_as_well(self, files, tmp_path):
        command = ["certify", files / "search.npz", "--support", "1,2,3", "--bound", "apg", "--json"]
        ended = Interrupted(tmp_path, "search", command, signal.SIGTERM)
        result = json.loads(ended.out)
        assert ended.code == 130
        assert result["lower"] < result["candidate"]["value"]

    def test_in_this_process(self, hard):
        """From another thread, while a kernel holds this one as often as not."""
        reached = threading.Event()

        def interrupt():
            if reached.wait(HANG):
                os.kill(os.getpid(), signal.SIGINT)

        def note(_event, state):
            if state.nodes > 20:
                reached.set()

        helper = threading.Thread(target=interrupt)
        helper.start()
        result = solve(hard, callback=note)
        helper.join()
        assert (result.termination, result.claim) == (Termination.INTERRUPTED, Claim.BOUNDED)
        check(result, hard)

    def test_a_second_signal_does_not_wait(self, hard):
        """The first one is noticed at the next event; a callback that never returns needs the second."""

        def linger(_event, _state):
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

        before = signal.getsignal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            solve(hard, callback=linger)
        assert signal.getsignal(signal.SIGINT) is before


class TestNothingIsLeftBehind:
    def state(self):
        handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
        descriptor = signal.set_wakeup_fd(-1)
        signal.set_wakeup_fd(descriptor)
        watchers = [thread for thread in threading.enumerate() if thread.name == "exactsel-watch"]
        return handlers, descriptor, watchers

    def fail(self, _event, _state):
        raise RuntimeError("a callback's fault")

    @posix
    def test_signal_handlers_and_threads(self):
        problem, before = small("quadratic"), self.state()
        both = (signal.SIGINT, signal.SIGTERM)
        for options in ({}, {"time_limit": 0}, {"signals": both}, {"signals": ()}, {"signals": both, "node_limit": 1}):
            solve(problem, **options)
            assert self.state() == before
        with pytest.raises(RuntimeError, match="a callback's fault"):
            solve(problem, signals=both, callback=self.fail)
        assert self.state() == before
        with pytest.raises(ValueError, match="the bound 'pdal' divides by lam"):
            solve(problem.replace(lam=0), bound="pdal", heuristics=())
        assert self.state() == before

    def test_a_search_that_is_left_early(self):
        before = self.state()
        search = Search(small("quadratic"), Settings(heuristics=()))
        for _event in search:
            break
        assert self.state() == before
        assert search.result().termination is Termination.INTERRUPTED
        check(search.result(), search.problem)

    @pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files as Linux shows them")
    def test_open_files(self):
        problem = small("quadratic")
        solve(problem)
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(20):
            solve(problem, node_limit=1)
        assert len(os.listdir("/proc/self/fd")) == before


class TestThreads:
    def in_threads(self, *jobs):
        results = [None] * len(jobs)

        def work(i):
            try:
                results[i] = jobs[i]()
            except BaseException as error:
                results[i] = error

        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(jobs))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANG)
            assert not thread.is_alive()
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return results

    def test_outside_the_main_thread(self):
        problem = load(INSTANCES / "twins.npz")
        (result,) = self.in_threads(lambda: solve(problem))
        assert result.tree_hash == solve(problem).tree_hash
        assert result.claim is Claim.OPTIMAL

    def test_the_time_limit_holds_outside_the_main_thread(self, hard, clock):
        (result,) = self.in_threads(lambda: solve(hard, time_limit=1000.0, callback=JumpAt(clock, 20)))
        assert result.termination is Termination.TIME_LIMIT

    def test_two_at_once_agree_with_one_after_the_other(self):
        problems = [small(loss, seed=seed) for loss in ("quadratic", "huber", "logistic") for seed in (1, 2)]
        expected = [solve(problem).tree_hash for problem in problems]
        fresh = [Problem(p.A, p.y, p.k, loss=p.loss, lam=p.lam) for p in problems]
        together = self.in_threads(*[lambda p=p: solve(p).tree_hash for p in fresh])
        assert together == expected

    def test_two_on_the_same_problem(self, hard):
        one, other = self.in_threads(*[lambda: solve(hard, node_limit=300).tree_hash] * 2)
        assert one == other == solve(hard, node_limit=300).tree_hash
