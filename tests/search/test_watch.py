"""The watch: what ends a search raises its flag, and nothing else does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from clocks import HANG, wait_for

from exactsel import Problem, Search, Settings, solve
from exactsel.search.watch import Watch
from exactsel.solving import solver


def send_to_self(number):
    os.kill(os.getpid(), number)
    time.sleep(HANG)


def test_nothing_happens_without_a_reason():
    with Watch() as watch:
        time.sleep(0.05)
        assert not watch.stopped
        assert watch.reason is None
        assert not watch.flag[0]


@pytest.mark.smoke
def test_the_deadline_raises_the_flag_by_itself(real_time):
    """Nobody asks: a kernel that polls the flag must learn of the deadline."""
    with Watch(0.05) as watch:
        assert wait_for(lambda: watch.flag[0])
        assert watch.reason == "time_limit"
        assert watch.stopped


def test_a_deadline_of_zero_has_passed():
    with Watch(0.0) as watch:
        assert watch.stopped
        assert watch.reason == "time_limit"


@pytest.mark.smoke
@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs POSIX signals")
def test_a_signal_raises_the_flag_and_a_second_one_the_interrupt():
    before = signal.getsignal(signal.SIGUSR1)
    with Watch(signals=[signal.SIGUSR1]) as watch:
        os.kill(os.getpid(), signal.SIGUSR1)
        assert wait_for(lambda: watch.stopped)
        assert watch.reason == "interrupted"
        with pytest.raises(KeyboardInterrupt):
            send_to_self(signal.SIGUSR1)
    assert signal.getsignal(signal.SIGUSR1) is before


def test_a_flag_is_not_raised_before_its_time(clock):
    with Watch(0.01) as watch:
        time.sleep(0.05)
        assert not watch.flag[0]
        clock.jump(0.009)
        time.sleep(0.05)
        assert not watch.stopped
        clock.jump(0.002)
        assert wait_for(lambda: watch.flag[0])


def test_outside_the_main_thread_only_the_deadline_is_watched(real_time):
    seen = {}

    def watched():
        handler = signal.getsignal(signal.SIGINT)
        with Watch(0.02, [signal.SIGINT]) as watch:
            seen["handler"] = signal.getsignal(signal.SIGINT) is handler
            seen["stopped"] = wait_for(lambda: watch.flag[0])

    thread = threading.Thread(target=watched)
    thread.start()
    thread.join()
    assert seen == {"handler": True, "stopped": True}


def test_watches_leave_no_thread_behind():
    for _ in range(20):
        with Watch(10.0, [signal.SIGINT]):
            pass
        assert "exactsel-watch" not in [thread.name for thread in threading.enumerate()]


INTERRUPTED = """
    import sys, time
    import numpy as np
    from exactsel import Problem, Settings
    from exactsel.solving.solver import Search
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 120))
    problem = Problem(A, A[:, :30] @ rng.standard_normal(30) + 5 * rng.standard_normal(60), 20, lam=0.01)
    search = Search(problem, Settings(bound=sys.argv[1], heuristics=(), threads=1, rel_eps=0.0))
    ready = False
    for event in search:
        if search.state.nodes > 20 and not ready:
            ready = True
            print("ready", flush=True)
    result = search.result()
    print(result.termination.value, result.claim.value, result.lower <= result.upper, result.open_nodes > 0, flush=True)
"""


@pytest.mark.parametrize("bound", ["apg", pytest.param("fit", marks=pytest.mark.slow)])
def test_control_c_ends_a_search_with_a_result(bound):
    script = textwrap.dedent(INTERRUPTED)
    with subprocess.Popen(
        [sys.executable, "-c", script, bound], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "ready\n", process.stderr.read()
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=HANG)
    assert output == "interrupted bounded True True\n", errors
    assert process.returncode == 0


def test_part_of_the_time_is_kept_until_there_is_a_result(clock):
    with Watch(10.0, early=4.0) as watch:
        clock.jump(5.9)
        assert not watch.stopped
        clock.jump(0.2)
        assert watch.stopped
        assert (watch.reason, watch.time_left) == ("time_limit", pytest.approx(3.9))
    with Watch(10.0, early=4.0) as watch:
        watch.keep_result()
        clock.jump(9.9)
        assert not watch.stopped
        clock.jump(0.2)
        assert watch.stopped


def test_only_who_gets_a_bound_at_hand_keeps_time(monkeypatch, tmp_path):
    A = np.random.default_rng(1).standard_normal((40, 8))
    kept, problem = [], Problem(A, A[:, :4].sum(axis=1) + A[:, 0] ** 2, 3, lam=0.5)
    watch = solver.Watch
    monkeypatch.setattr(solver, "Watch", lambda *given, early, **more: kept.append(early) or watch(*given, **more))
    solve(problem, time_limit=1e6, signals=())
    solve(problem, time_limit=1e6, signals=(), proof=tmp_path / "run.exsel")
    Search(problem, Settings(time_limit=1e6), signals=()).run()
    begun = solve(problem, node_limit=1, subtrees=False, heuristics=(), signals=())
    begun.resume(node_limit=None, time_limit=1e6)
    assert kept[0] == 1.0
    assert not any(kept[1:])
    assert len(kept) == 5
