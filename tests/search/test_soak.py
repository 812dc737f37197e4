"""The soak and the signals of benchmarks/reliability at their smallest; what they are to find is found."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys

import numpy as np
import pytest

from benchmarks.reliability import soak, stops
from benchmarks.reliability.jobs import TIMED, Job, Stage, Stop, Subject, drawn, small_problems, stopped
from benchmarks.reliability.leaks import Holding, descriptors, held, trend
from exactsel.search.events import LowerBoundRaised

posix = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


@posix
@pytest.mark.smoke
def test_a_short_one(tmp_path):
    """Limits, interrupts and resumes at random, none of them by the clock."""
    tally = soak.run(small_problems(0, 5), tmp_path, 2, seconds=float("inf"), jobs=12, timed=False)
    assert (tally.wrong, tally.jobs) == ([], 12)
    assert min(tally.bounds, tally.proofs, tally.trees) > 0
    assert {"begun", "from file", "from result", "KeyboardInterrupt", "BrokenOffError", "node_limit"} <= {*tally.ways}
    assert tally.holdings[-1][1].descriptors == tally.holdings[2][1].descriptors
    lines = [json.loads(line) for line in (tmp_path / "soak.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["job"] for line in lines] == list(range(1, 13))
    assert json.loads((tmp_path / "soak.json").read_text(encoding="utf-8"))["jobs"] == 12
    assert next(soak.told(tally)).startswith("12 jobs in ")


def test_jobs_follow_from_the_seed():
    jobs = [drawn(random.Random(5), 9, timed=True) for _ in range(2)]
    assert jobs[0] == jobs[1]
    many = [drawn(rng, 9, timed=True) for rng in [random.Random(6)] for _ in range(200)]
    assert {stage.stop.kind for job in many for stage in job.stages} == {*TIMED, "none"}


SUBJECT = Subject("a problem", next(iter(small_problems(0, 1)))[1], {}, 1.0, 1.5, 10, 0.1, {})


class TestWhatIsFound:
    @pytest.mark.parametrize(("lower", "upper", "wrong"), [(1.4, 1.4, 0), (1.6, 2.0, 1), (0.5, 0.9, 1)])
    def test_untrue_bounds(self, lower, upper, wrong):
        onlooker = soak.Onlooker(SUBJECT, lambda: None)
        onlooker.compare(lower, upper, "here")
        assert len(onlooker.wrong) == wrong

    def test_a_bound_that_is_told_too_high(self, monkeypatch, tmp_path):
        (name, problem, settings) = next(iter(small_problems(0, 1)))
        subject = soak.known(name, problem, settings, tmp_path)
        monkeypatch.setattr(soak, "IncumbentFound", LowerBoundRaised)
        monkeypatch.setattr(LowerBoundRaised, "upper", property(lambda event: 0.0), raising=False)
        job = Job(0, False, False, None, (Stage(False, 1, 4096.0, Stop("none")),))
        assert "LowerBoundRaised" in soak.carry_out(job, subject, tmp_path, soak.Tally())[0]

    def test_a_descriptor_and_a_file(self, tmp_path):
        before = held([tmp_path])
        with open(tmp_path / "left", "w", encoding="utf-8"):
            after = held([tmp_path])
            assert str(tmp_path / "left") in descriptors().values() or sys.platform != "linux"
        assert after.descriptors == before.descriptors + 1
        assert (before.files, after.files) == ((), ("left",))
        holdings = [(float(i), before) for i in range(10)]
        assert soak.Tally(holdings=holdings).leaks() == []
        assert "descriptors" in soak.Tally(holdings=[*holdings, (11.0, after)]).leaks()[0]

    def test_memory(self):
        """It may move up and down; what is told is how much more there is at the end."""
        steady = [(60.0 * i, 300.0 + 15.0 * (i % 3)) for i in range(100)]
        assert not trend(steady).grows
        assert abs(trend(steady).slope) < 10.0
        growing = [(at, amount + at / 60.0) for at, amount in steady]
        assert trend(growing).grows
        assert trend(growing).slope == pytest.approx(60.0, abs=5.0)
        holdings = [(at, Holding(amount, 5, 1, 1, ())) for at, amount in growing]
        assert "memory grew" in soak.Tally(holdings=holdings).leaks()[0]

    def test_what_is_allocated(self, tmp_path):
        """Whatever the holes are between pieces: more that is not given back is a leak."""
        before = held([tmp_path])
        kept = np.ones(2**23)
        after = held([tmp_path])
        assert before.blocks > 0
        assert after.allocated == before.allocated == 0.0 or after.allocated - before.allocated > 60.0
        assert kept.size == 2**23
        holdings = [(float(i), Holding(500.0, 5, 1, 1, (), 100.0 + i)) for i in range(30)]
        assert "allocated grew" in soak.Tally(holdings=holdings).leaks()[0]
        steady = [(float(i), Holding(500.0 + i % 7, 5, 1, 1, (), 100.0)) for i in range(30)]
        assert soak.Tally(holdings=steady).leaks() == []

    def test_an_error(self, tmp_path, monkeypatch):
        def failing(*_, **__):
            raise RuntimeError("nobody knows")

        monkeypatch.setattr(soak, "solve", failing)
        job = Job(0, False, False, None, (Stage(False, 1, 4096.0, Stop("none")),))
        assert "RuntimeError: nobody knows" in soak.carry_out(job, SUBJECT, tmp_path, soak.Tally())[0]


@posix
def test_a_signal_that_comes_too_late_is_nobodys(monkeypatch):
    before = signal.getsignal(signal.SIGUSR1)
    with stopped(Stop("signal", 0.0), SUBJECT):
        signal.raise_signal(signal.SIGUSR1)
    assert signal.getsignal(signal.SIGUSR1) == before


ASKS = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"


@posix
@pytest.mark.parametrize("ignored", [True, False])
def test_children_heed_interrupts(ignored):
    """Also where this process was begun in the background, so that SIGINT is ignored here."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.default_int_handler)
    try:
        here = signal.getsignal(signal.SIGINT)
        with stops.heeding_interrupts():
            said = subprocess.run([sys.executable, "-c", ASKS], capture_output=True, text=True, check=True).stdout
        assert (said.strip(), signal.getsignal(signal.SIGINT)) == ("True", here)
    finally:
        signal.signal(signal.SIGINT, before)


STAYING = """
import faulthandler, signal, time
faulthandler.register(signal.SIGUSR1, all_threads=True)
signal.signal(signal.SIGINT, signal.SIG_IGN)
print("here", flush=True)
def waits_for_ever():
    while True:
        time.sleep(0.01)
waits_for_ever()
"""


@posix
def test_a_process_that_does_not_end_says_where_it_stands(monkeypatch):
    monkeypatch.setattr(stops, "PATIENCE", 0.0)
    monkeypatch.setattr(stops, "AGAIN", 0.1)
    process = subprocess.Popen([sys.executable, "-c", STAYING], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"here\n"
    process.send_signal(signal.SIGINT)
    stops._until_the_end(process)
    assert any(b"in waits_for_ever" in line for line in iter(process.stderr.readline, b""))
    process.kill()
    process.communicate()
