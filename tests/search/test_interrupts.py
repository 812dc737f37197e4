"""What an interrupt may not leave behind: in the watch, in a kernel half compiled, in a campaign."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from clocks import HANG

from benchmarks.attacks import interrupts as campaign
from exactsel import Problem, Search, _jit, interrupts, solve, verify
from exactsel.files import replacing
from exactsel.interrupts import CompilationStopped, aside, dispensable, dispensable_steps
from exactsel.search.events import Finished, Started
from exactsel.search.expand import Expander
from exactsel.search.watch import Watch
from exactsel.studies import compare as comparing
from exactsel_heuristics.foba import ForwardBackward

posix = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


@posix
class TestSignals:
    def test_which_end_a_command(self):
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as under nohup
        try:
            assert interrupts.ending_signals() == (signal.SIGINT, signal.SIGTERM)
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
            assert interrupts.ending_signals() == (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        finally:
            signal.signal(signal.SIGHUP, before)

    def test_what_a_terminal_sends_to_all_is_left_to_who_began_a_worker(self):
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGHUP)}
        try:
            interrupts.leave_to_others()
            assert {signal.getsignal(number) for number in before} == {signal.SIG_IGN}
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def test_a_second_hangup_does_nothing(self):
        with Watch(None, [signal.SIGHUP, signal.SIGTERM]) as watch:
            for _ in range(3):
                signal.raise_signal(signal.SIGHUP)
            assert watch.interrupted
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGTERM)


def problem(seed: int = 3, n: int = 20, d: int = 9, k: int = 3) -> Problem:
    rng = np.random.default_rng(seed)
    return Problem(rng.standard_normal((n, d)), rng.standard_normal(n), k, lam=0.1)


@pytest.mark.smoke
class TestWatches:
    """Signals are simulated by calling the handler, as the interpreter would."""

    @posix
    def test_a_signal_to_an_inner_watch_reaches_the_outer_one(self):
        with Watch(None, [signal.SIGINT]) as outer:
            with Watch(None, [signal.SIGINT]) as inner:
                signal.raise_signal(signal.SIGINT)
                assert inner.stopped
            assert outer.interrupted
            with Watch(None, [signal.SIGINT]) as later, Watch(None, ()) as deaf:
                assert later.stopped
                assert not deaf.stopped
        with Watch(None, [signal.SIGINT]) as next_one:
            assert not next_one.stopped

    @posix
    def test_a_second_signal_does_what_it_would_have_done(self):
        caught = []
        before = signal.signal(signal.SIGINT, lambda number, frame: caught.append(number))
        try:
            with Watch(None, [signal.SIGINT]) as outer:
                signal.raise_signal(signal.SIGINT)
                with pytest.raises(KeyboardInterrupt), Watch(None, [signal.SIGINT]):
                    signal.raise_signal(signal.SIGINT)
                assert outer.interrupted
        finally:
            signal.signal(signal.SIGINT, before)
        assert caught == [signal.SIGINT]

    @posix
    def test_who_listened_before_still_hears(self):
        ears, mouth = socket.socketpair()
        mouth.setblocking(False)
        previous = signal.set_wakeup_fd(mouth.fileno())
        try:
            with Watch(None, [signal.SIGINT]):
                signal.raise_signal(signal.SIGINT)
                ears.settimeout(HANG)
                assert ears.recv(1) == bytes([signal.SIGINT])
        finally:
            signal.set_wakeup_fd(previous)
            ears.close()
            mouth.close()

    def test_a_library_changes_no_handler(self):
        before = signal.getsignal(signal.SIGINT), signal.set_wakeup_fd(-1)
        signal.set_wakeup_fd(before[1])
        names = {thread.name for thread in threading.enumerate()}
        solve(problem())
        assert signal.getsignal(signal.SIGINT) == before[0]
        assert signal.set_wakeup_fd(before[1]) == before[1]
        assert "exactsel-guard" not in names
        assert interrupts.in_main() is None

    def test_a_result_at_hand_is_one_of_the_outer_watch_too(self):
        with Watch(None, [signal.SIGINT]) as outer:
            assert not outer.result_at_hand
            solve(problem())
            assert outer.result_at_hand


class TestCompiling:
    @pytest.fixture
    def stopped(self):
        """A watch of this thread that has taken a signal."""
        with Watch(None, [signal.SIGINT]) as watch:
            watch._raise_flag("interrupted")
            yield watch

    @pytest.fixture
    def compiler(self):
        """Compiles until the test has ended."""
        ended = threading.Event()
        yield lambda: ended.wait(HANG)
        ended.set()

    def test_what_is_dispensable_is_given_up(self, stopped, compiler):
        with dispensable(), pytest.raises(CompilationStopped):
            aside(compiler)

    def test_what_is_needed_is_not(self, stopped):
        """What is needed to write down the result, say."""
        began = threading.Event()

        def work():
            began.wait(3 * interrupts.POLL)
            return "done"

        assert aside(work) == "done"
        assert list(dispensable_steps([1, 2])) == [1, 2]
        for _ in dispensable_steps([1]):
            assert aside(work) == "done"

    def test_what_is_needed_may_be_done_otherwise(self, stopped, compiler):
        """As plain Python, where a compilation given up before still holds the compiler."""
        assert aside(compiler, "plain") == "plain"
        assert aside(lambda: "compiled at last", "at once") == "at once"
        with dispensable(), pytest.raises(CompilationStopped):
            aside(compiler, "plain")

    def test_without_a_signal_it_is_not(self):
        assert aside(lambda: time.sleep((interrupts.LOADS + 2) * interrupts.POLL) or "compiled", "plain") == "compiled"

    @pytest.mark.skipif(not _jit.ENABLED, reason="nothing is compiled")
    def test_a_kernel_that_is_needed_runs_as_plain_python(self, stopped, compiler):
        def twice(x):
            return 2 * x

        kernel = _jit.njit(twice).compiled
        kernel._compile_for_args = lambda *arguments: aside(compiler, kernel.py_func)
        assert kernel(3) == 6
        assert kernel.signatures == []

    def test_other_threads_do_not_care(self, stopped):
        outcome = []

        def work():
            with dispensable():
                outcome.append(aside(lambda: time.sleep(3 * interrupts.POLL) or "done"))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join(HANG)
        assert outcome == ["done"]

    def test_threads_that_work_for_a_watch_do(self, stopped, compiler):
        outcome = []

        def work():
            interrupts.adopt((stopped,))
            try:
                aside(compiler)
            except CompilationStopped:
                outcome.append("stopped")

        thread = threading.Thread(target=work)
        thread.start()
        thread.join(HANG)
        assert outcome == ["stopped"]

    @pytest.mark.parametrize("gives_up", [False, True])
    def test_time_limits_count_for_compiling_where_they_say_so(self, gives_up, compiler):
        with Watch(0.0, gives_up=gives_up) as watch, dispensable():
            assert watch.stopped
            if gives_up:
                with pytest.raises(CompilationStopped):
                    aside(compiler)
                assert interrupts.compiles_on()
            else:
                assert aside(lambda: time.sleep(3 * interrupts.POLL) or "done") == "done"

    def test_the_limit_of_somebody_around_does_not_count(self):
        """Who is given up has to know; else a search would begin the same round again and again."""
        with Watch(0.0, gives_up=True) as outer, Watch(None, gives_up=True), dispensable():
            assert outer.stopped
            assert aside(lambda: time.sleep(3 * interrupts.POLL) or "done") == "done"

    def test_what_a_hurry_needs_runs_as_plain_python(self, compiler):
        with interrupts.hurrying(True):
            assert aside(compiler, "plain") == "plain"

    def test_errors_come_back(self):
        with pytest.raises(ZeroDivisionError):
            aside(lambda: 1 / 0)

    def test_what_compiles_inside_is_in_the_same_thread(self):
        assert aside(lambda: aside(threading.get_ident) == threading.get_ident())

    @pytest.mark.parametrize("threads", [1, 2])
    @pytest.mark.parametrize("after", [0, 1, 4])
    def test_a_search_ends_with_the_state_of_the_moment(self, tmp_path, monkeypatch, threads, after):
        """Compilation is given up in its (after + 1)-th round; the proof holds."""
        options = {"subtrees": False, "batch": 1, "heuristics": (), "threads": threads}
        whole = solve(problem(), **options)
        rounds, watches, enter, original = [], [], Watch.__enter__, Expander.expand

        def expand(expander, nodes, upper, work_budget):
            rounds.append(nodes)
            if len(rounds) > after:
                watches[0]._raise_flag("interrupted")
                raise CompilationStopped
            return original(expander, nodes, upper, work_budget)

        def noted(watch):
            watches.append(watch)
            return enter(watch)

        monkeypatch.setattr(Watch, "__enter__", noted)
        monkeypatch.setattr(Expander, "expand", expand)
        result = solve(problem(), **options, proof=tmp_path / "run.exsel")
        assert result.termination == "interrupted"
        assert result.lower <= whole.upper <= result.upper
        assert verify(problem(), tmp_path / "run.exsel").verified

    @pytest.mark.parametrize("where", ["prepare", "run"])
    def test_given_up_before_the_search(self, tmp_path, monkeypatch, where):
        def stop(*arguments, **options):
            raise CompilationStopped

        if where == "prepare":
            monkeypatch.setattr("exactsel.bounds.apg.AcceleratedGradientBound.prepare", stop)
        else:
            monkeypatch.setattr("exactsel.solving.solver.starting_models", stop)
        result = solve(problem(), proof=tmp_path / "run.exsel")
        assert (result.termination, result.nodes) == ("interrupted", 0)
        assert verify(problem(), tmp_path / "run.exsel").verified
        events = list(Search(problem()))
        assert [type(event) for event in events] == [Started, Finished]

    def test_a_comparison_leaves_out_what_has_not_had_its_turn(self, monkeypatch):
        def run(heuristic, *arguments):
            interrupts.current()._raise_flag("interrupted")
            raise CompilationStopped

        monkeypatch.setattr(ForwardBackward, "run", run)
        compared = comparing.compare(problem(), methods="omp,foba,forward")
        assert [row.method for row in compared.rows] == ["omp"]
        assert [method for method, _ in compared.left_out] == ["foba", "forward"]
        assert compared.result.termination == "interrupted"


def test_a_file_half_written_is_known_by_name(tmp_path):
    with replacing(tmp_path / "file") as stream:
        (path,) = interrupts._half_written
        assert Path(path).parent == tmp_path
        stream.write(b"new")
    assert not interrupts._half_written


class TestCampaign:
    def made(self, code, seconds):
        return campaign.Try("solve", True, 0.5, code, seconds, "interrupted.")

    def test_the_row(self):
        tries = [self.made(130, 0.1), self.made(130, 1.5), self.made(70, 0.1), self.made(-9, 120.0)]
        lines = campaign.report(tries, [".x"])
        assert lines[0].startswith("| interrupts | 4 | exit 130 within a second: 1 | slower: 1 |")
        assert "other exit codes: {70: 1, -9: 1} | slowest 120.00 s | left behind: 1 |" in lines[0]
        assert [line.partition(":")[0] for line in lines[1:]] == ["slower", "wrong", "wrong", "left behind"]
        assert "solve, empty cache: signal at 0.50 s, exit 70 after 0.10 s   interrupted." in lines[2]

    def test_a_run_that_has_ended_is_tried_again_earlier(self, monkeypatch, tmp_path):
        moments = []

        def attempt(name, command, cold, moment, folder, number):
            moments.append(moment)
            return self.made(None if len(moments) < 3 else 130, 0.1)

        monkeypatch.setattr(campaign, "attempt", attempt)
        assert campaign.try_until_in_time("info", [], False, 1.0, tmp_path, 1).good
        assert moments == pytest.approx([1.0, 0.7, 0.49])

    @posix
    def test_one_process(self, monkeypatch):
        monkeypatch.setattr(campaign, "SHORT", 1.0)
        monkeypatch.setattr(campaign, "LONG", 1.0)
        before = signal.getsignal(signal.SIGINT)
        try:
            done = CliRunner().invoke(campaign.interrupts, ["--count", "1", "--seed", "1"])
        finally:
            signal.signal(signal.SIGINT, before)
        assert "| interrupts | 1 |" in done.output
        assert "other exit codes: none" in done.output
