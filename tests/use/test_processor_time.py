"""What tests cost is summed by folder, and a folder that is over its budget fails the run; no clock is read."""

from __future__ import annotations

import math
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
from processor_time import ALLOWED, BUDGETS, COMPILED, NAME, Costs, Measuring, UnderTheLock, one_round

from exactsel import _jit
from exactsel._jit import njit

OUTSIDE = """
import numpy as np

def test_much():
    began = {time}
    while {time} < began + 0.3:
        np.arange(10).sum()

def test_little():
    pass
"""


def told(costs, *seconds, folder="search", others=0.0, locked=0.0, rounds=(0.01,)):
    for own in seconds:
        properties = [("something else", 1), (NAME, (own, others, locked, list(rounds)))]
        report = SimpleNamespace(when="teardown", nodeid=f"tests/{folder}/test_it.py::test", user_properties=properties)
        costs.pytest_runtest_logreport(report)


def test_a_folder_that_costs_too_much_is_named_and_fails_the_run():
    costs = Costs({"search": 100, "use": 100})
    told(costs, 1.0, 1.4)
    told(costs, 9.0, folder="elsewhere")
    assert costs.over() == []
    told(costs, 0.2)
    assert costs.cost("search") == pytest.approx(260.0)
    assert costs.over() == ["tests/search took 260 rounds, more than 2.5 times its 100"]
    session = SimpleNamespace(exitstatus=0)
    costs.pytest_sessionfinish(session)
    assert session.exitstatus == pytest.ExitCode.TESTS_FAILED
    lines = []
    costs.pytest_terminal_summary(SimpleNamespace(section=lines.append, write_line=lines.append))
    assert any(line.startswith("OVER ITS BUDGET: tests/search took 260 rounds") for line in lines)


@pytest.mark.parametrize("slower", [0.3, 1.0, 7.0])
def test_a_slower_processor_and_a_busy_one_change_nothing(slower):
    """The loop and the tests get slower alike."""
    for seconds, over in ((2.4, False), (2.6, True)):
        costs = Costs({"search": 100})
        told(costs, seconds * slower, rounds=(0.008 * slower, 0.012 * slower))
        assert bool(costs.over()) == over


def test_processes_that_tests_start_count_unless_they_had_to_compile():
    costs = Costs({"search": 100})
    told(costs, 1.0, others=2.0)
    assert costs.over()
    told(costs, 0.0, locked=COMPILED + 1.0)
    assert costs.compiled
    assert costs.cost("search") == pytest.approx(100.0)
    assert not costs.over()


def test_time_under_the_lock_is_that_of_whoever_took_it_first(monkeypatch):
    """Each look at the clock is a second later than the one before."""
    lock, seconds = UnderTheLock(), count()
    with monkeypatch.context() as patch:
        patch.setattr("time.thread_time", lambda: float(next(seconds)))
        for step in (lock.begins, lock.begins, lock.ends, lock.ends, lock.begins, lock.ends):
            step()
    assert (lock.seconds, lock.times) == (2.0, 2)


@pytest.mark.skipif(not _jit.ENABLED, reason="nothing is compiled")
def test_what_the_compiler_takes_is_no_cost_of_a_test():
    @njit
    def in_no_cache(x):
        return math.sin(x) + np.arange(3.0).sum()

    lock = UnderTheLock()
    in_no_cache(2.0)
    first = lock.times
    assert first > 0
    for _ in range(1000):
        in_no_cache(2.0)
    assert lock.times == first, "what is compiled is not compiled again"


def test_a_run_over_its_budget_fails(tmp_path):
    """What Python does is counted, and time that only passes is not."""
    for name, clock in (("busy", "time.process_time()"), ("waiting", "time.monotonic()")):
        folder = tmp_path / "tests" / name
        folder.mkdir(parents=True)
        (folder / f"test_{name}.py").write_text("import time\n" + OUTSIDE.format(time=clock).replace(
            "np.arange(10).sum()", "np.arange(10).sum()" if name == "busy" else "time.sleep(0.1)"
        ))  # fmt: skip
    ends = {}
    for allowed in (1, 10**6):
        costs = Costs({"busy": allowed, "waiting": 10**6})
        arguments = [
            "-q",
            "-p",
            "no:randomly",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:unraisableexception",
            "--rootdir",
            str(tmp_path),
        ]
        ends[allowed] = pytest.main([*arguments, "-c", "/dev/null", str(tmp_path)], plugins=[Measuring(), costs])
        assert costs.own["busy"] > 0.29
        assert costs.own["waiting"] < 0.29
    assert ends == {1: pytest.ExitCode.TESTS_FAILED, 10**6: pytest.ExitCode.OK}


def test_each_folder_has_a_budget(request):
    folders = {path.parent.name for path in (request.config.rootpath / "tests").glob("*/test_*.py")}
    assert folders == {*BUDGETS}
    assert all(budget > 0 for budget in BUDGETS.values())
    assert ALLOWED >= 2.0, "machines differ"
    assert one_round() > 0.0
