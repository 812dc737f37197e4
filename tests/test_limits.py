"""Limits and interrupts: whatever ends a search, it ends soon, with a valid result and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from exactsel import Claim, Huber, Problem, Search, Settings, Termination, load, solve
from exactsel.generate import generate
from exactsel.instance import Instance, write_instance

INSTANCES = Path(__file__).resolve().parents[1] / "instances"
LATE = 3.0
"""Seconds allowed beyond a limit: about one is the aim, and test machines are noisy."""

posix = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


@pytest.fixture(scope="module", autouse=True)
def compiled():
    """Kernels compiled and on disk before anything is timed, for this process and its children."""
    for loss in ("quadratic", "huber", "logistic"):
        problem = small(loss)
        solve(problem)
    solve(small("quadratic", lam=0.0))


@pytest.fixture(scope="module")
def hard():
    """Searched for hours: nobody need wait for its end."""
    return generate("hard", k=12).problem()


@pytest.fixture(scope="module")
def files(tmp_path_factory, hard):
    """Instances on disk: one for a long search, one for long heuristics; their kernels are compiled here."""
    for loss in ("quadratic", "huber"):
        solve(small(loss), node_limit=5)
    folder = tmp_path_factory.mktemp("limits")
    write_instance(folder / "search.npz", Instance(hard.A, hard.y, k=12, lam=hard.lam))
    wide = big("huber", k=300)
    write_instance(folder / "heuristics.npz", Instance(wide.A, wide.y, k=300, lam=0.1, loss="huber", delta=3.0))
    return folder


def small(loss, lam=0.1, seed=0) -> Problem:
    rng = np.random.default_rng(seed)
    y = rng.standard_normal(20)
    return Problem(rng.standard_normal((20, 8)), np.sign(y) if loss == "logistic" else y, 3, loss=loss, lam=lam)


def big(loss, k=10, n=2000, d=1500, lam=0.1) -> Problem:
    rng = np.random.default_rng(0)
    A, x = rng.standard_normal((n, d)), np.zeros(d)
    x[rng.choice(d, k, replace=False)] = 1.0
    y = A @ x + 2.0 * rng.standard_normal(n)
    if loss == "logistic":
        y = np.where(y > 0, 1.0, -1.0)
    return Problem(A, y, k, loss=Huber(3.0) if loss == "huber" else loss, lam=lam)


def timed(problem, **options):
    began = time.perf_counter()
    result = solve(problem, **options)
    return result, time.perf_counter() - began


def check(result, problem) -> None:
    """A result that may be shown: bounds in order, the incumbent's value recomputed, JSON that is strict."""
    assert problem.loss.infimum <= result.lower <= result.upper
    assert result.upper == pytest.approx(problem.objective(result.coef), rel=1e-12)
    assert len(result.support) <= problem.k
    assert "NaN" not in result.to_json()
    assert "Infinity" not in result.to_json()


class TestTimeLimit:
    def test_a_long_search_ends(self, hard):
        result, seconds = timed(hard, time_limit=1.0)
        print(f"{seconds - 1.0:.3f} s beyond the limit")
        assert 0.9 < seconds < 1.0 + LATE
        assert (result.termination, result.claim) == (Termination.TIME_LIMIT, Claim.BOUNDED)
        assert result.lower > 0
        assert result.nodes > 0
        assert result.open_nodes > 0
        check(result, hard)

    @pytest.mark.parametrize(
        "options", [{"tree": "state-space", "bound": "pdal"}, {"bound": "fit"}, {"frontier": "depth-first"}]
    )
    def test_in_every_mode(self, hard, options):
        timed(small("quadratic"), **options)
        result, seconds = timed(hard, time_limit=0.5, **options)
        assert seconds < 0.5 + LATE
        assert (result.termination, result.claim) == (Termination.TIME_LIMIT, Claim.BOUNDED)
        check(result, hard)

    @pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic"])
    def test_zero(self, loss):
        problem = small(loss)
        for heuristics in ((), ("forward", "swap")):
            result, seconds = timed(problem, time_limit=0, heuristics=heuristics)
            assert seconds < LATE
            assert (result.nodes, result.termination, result.claim) == (0, Termination.TIME_LIMIT, Claim.BOUNDED)
            assert result.lower == problem.loss.infimum
            check(result, problem)

    @pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic"])
    @pytest.mark.parametrize(("k", "limit"), [(10, 0.3), (300, 1.0)])
    def test_setup_heuristics_and_bounds_of_a_big_instance(self, loss, k, limit):
        problem = big(loss, k)
        result, seconds = timed(problem, time_limit=limit)
        print(f"{seconds - limit:.3f} s beyond the limit")
        assert seconds < limit + LATE
        assert result.termination is Termination.TIME_LIMIT
        check(result, problem)

    def test_the_fit_of_many_columns_cannot_be_interrupted_but_ends(self):
        problem = big("quadratic", lam=0.0, n=1500, d=1000)
        result, seconds = timed(problem, time_limit=0.5)
        print(f"{seconds - 0.5:.3f} s beyond the limit")
        assert seconds < 0.5 + LATE
        check(result, problem)

    def test_a_limit_that_is_not_reached_changes_nothing(self):
        problem = small("huber")
        assert solve(problem, time_limit=1e6).tree_hash == solve(problem).tree_hash


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


class Interrupted:
    """A process of ``exactsel`` that gets a signal ``delay`` seconds after it began to listen for signals."""

    def __init__(self, arguments, delay: float, *signals: int) -> None:
        command = [sys.executable, "-m", "exactsel", *map(str, arguments)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            self.wait_until_it_listens(process)
            time.sleep(delay)
            began = time.perf_counter()
            for number in signals:
                process.send_signal(number)
            self.out, self.err = process.communicate(timeout=60)
            self.seconds = time.perf_counter() - began
        self.code = process.returncode
        assert "Traceback" not in self.err
        print(f"{self.seconds:.3f} s from the signal to the end of the process")

    def wait_until_it_listens(self, process) -> None:
        status = Path(f"/proc/{process.pid}/status")
        if not status.exists():
            time.sleep(5.0)
            return
        for _ in range(6000):
            caught = next(line for line in status.read_text().splitlines() if line.startswith("SigCgt"))
            if int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1:
                return
            time.sleep(0.01)
        raise AssertionError("the process never listened")


@posix
class TestInterrupt:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_during_the_search(self, files, number):
        ended = Interrupted(["solve", files / "search.npz", "--json"], 3.0, number)
        result = json.loads(ended.out)
        assert ended.code == 130
        assert ended.seconds < LATE
        assert (result["termination"], result["claim"]) == ("interrupted", "bounded")
        assert 0 < result["lower"] < result["upper"] <= 0.2507
        assert "termination  interrupted: the search was interrupted" in ended.err

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_during_the_heuristics(self, files, number):
        ended = Interrupted(["solve", files / "heuristics.npz", "--json"], 0.4, number)
        result = json.loads(ended.out)
        assert ended.code == 130
        assert ended.seconds < LATE
        assert (result["termination"], result["claim"], result["nodes"]) == ("interrupted", "bounded", 0)
        assert 0 <= result["lower"] < result["upper"]

    def test_certify_as_well(self, files):
        command = ["certify", files / "search.npz", "--support", "1,2,3", "--json"]
        ended = Interrupted(command, 3.0, signal.SIGTERM)
        result = json.loads(ended.out)
        assert ended.code == 130
        assert ended.seconds < LATE
        assert result["lower"] < result["candidate"]["value"]

    def test_in_this_process(self, hard):
        def interrupt():
            time.sleep(0.5)
            os.kill(os.getpid(), signal.SIGINT)

        helper = threading.Thread(target=interrupt)
        helper.start()
        result, seconds = timed(hard, time_limit=60)
        helper.join()
        assert seconds < 0.5 + LATE
        assert (result.termination, result.claim) == (Termination.INTERRUPTED, Claim.BOUNDED)
        check(result, hard)

    def test_a_second_signal_does_not_wait(self, hard):
        """The first one is noticed at the next event; a callback that never returns needs the second."""

        def linger(_event, _state):
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

        before = signal.getsignal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            solve(hard, callback=linger, time_limit=60)
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
            thread.join(60)
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

    def test_the_time_limit_holds_outside_the_main_thread(self, hard):
        ((result, seconds),) = self.in_threads(lambda: timed(hard, time_limit=0.5))
        assert seconds < 0.5 + LATE
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
