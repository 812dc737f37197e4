"""Ctrl-C ends the command line at any moment, with a result where there is one; no test here depends on the clock.

Processes tell when they have come to the moment that is meant, and then wait there for ever.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from clocks import HANG

from exactsel import _jit, load, verify
from exactsel.cli.interrupting import PATIENCE, SECOND_PATIENCE

TRAP = Path(__file__).parents[2] / "instances" / "greedy-trap.npz"
DIABETES = Path(__file__).parents[2] / "instances" / "diabetes.npz"


HANGUP = getattr(signal, "SIGHUP", signal.SIGTERM)

posix = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")

HERE = """
import ctypes, os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell may have had ignored
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
def here():
    os.write(1, b"here\\n")
def stay_in_python():
    here()
    while True:
        time.sleep(0.01)
def stay_in_c():
    # The signal finds another thread, so this one stays in its call and runs no handler.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    here()
    ctypes.CDLL(None).select(0, None, None, None, None)
"""


class Process:
    """The command line in a process of its own, with its insides changed by the statements ``before``."""

    def __init__(self, *arguments: object, before: str, **options) -> None:
        code = f"{HERE}\n{before}\nfrom exactsel.cli.main import main\nmain()\n"
        self._process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,
        )  # fmt: skip

    def interrupted(self, signals: int = 1, number: int = signal.SIGINT) -> tuple[int, bytes, bytes]:
        """Wait until the process says that it is there, send the signals, and wait for its end."""
        for _ in range(signals):
            assert self._process.stdout.readline() == b"here\n"
            self._process.send_signal(number)
        out, err = self._process.communicate(timeout=HANG)
        return self._process.returncode, out, err


ENDED = (130, b"", b"interrupted.\n")

IMPORTING = """
import os
os.environ["EXACTSEL_JIT"] = "1"  # so that numba is imported, too
class Waiting:
    def find_spec(self, name, path=None, target=None):
        if name == "{module}":
            {stay}()
sys.meta_path.insert(0, Waiting())
"""

SWALLOWING = """
import builtins
class Waiting:
    def find_spec(self, name, path=None, target=None):
        if name == "sortedcontainers":
            try:
                stay_in_python()
            except BaseException:  # as half-imported modules do
                raise ImportError("cannot import name 'x' from partially initialized module 'y'") from None
sys.meta_path.insert(0, Waiting())
"""


@posix
class TestProcesses:
    @pytest.mark.parametrize(("module", "stay"), [
        ("exactsel.cli.output", "stay_in_python"), ("exactsel.cli.solve", "stay_in_c"), ("numpy", "stay_in_python"),
        ("numba", "stay_in_python"), ("numba", "stay_in_c"), ("exactsel.solving.solver", "stay_in_python"),
    ])  # fmt: skip
    def test_while_a_module_is_imported(self, module, stay):
        process = Process("solve", TRAP, "--quiet", before=IMPORTING.format(module=module, stay=stay))
        assert process.interrupted() == ENDED

    def test_a_module_that_makes_another_error_of_it(self):
        assert Process("solve", TRAP, before=SWALLOWING).interrupted() == ENDED

    @pytest.mark.parametrize("stay", ["stay_in_python", "stay_in_c"])
    def test_while_a_file_is_read(self, stay):
        before = f"import exactsel.data.reading as reading\nreading.read_instance = lambda *_, **__: {stay}()"
        assert Process("info", TRAP, before=before).interrupted() == ENDED

    @pytest.mark.parametrize(
        ("command", "stay"),
        [
            (("solve", TRAP, "--quiet"), "stay_in_python"), (("solve", TRAP, "--quiet"), "stay_in_c"),
            (("compare", TRAP), "stay_in_python"), (("path", TRAP), "stay_in_c"),
            (("solve", TRAP, "--method", "omp", "--quiet"), "stay_in_python"),
        ],
    )  # fmt: skip
    def test_before_a_search_has_a_result(self, command, stay):
        """The watch has taken the signal, but nothing comes of it."""
        before = "import exactsel.search.watch as watch\nenter = watch.Watch.__enter__\n"
        before += f"def wait(self):\n    enter(self)\n    {stay}()\nwatch.Watch.__enter__ = wait"
        assert Process(*command, before=before).interrupted() == ENDED

    @pytest.mark.parametrize("stay", ["stay_in_python", "stay_in_c"])
    def test_while_a_file_is_written(self, tmp_path, stay):
        """Nothing half-written stays."""
        before = f"import exactsel.data.instance as instance\ninstance.write_array = lambda *_: {stay}()"
        (tmp_path / "out.npz").write_bytes(b"old")
        assert Process("data", "convert", TRAP, tmp_path / "out.npz", before=before).interrupted() == ENDED
        assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("out.npz", b"old")]

    WAITING_SEARCH = """
import exactsel.search.engine as engine, exactsel.solving.solver as solving
from exactsel.search.events import Bounded
def search(state, expander, limits, watch, *others):
    told = False
    for event in engine.search(state, expander, limits, watch, *others):
        yield event
        if state.nodes > 0 and not told:
            told = True
            here()
            while not watch.stopped:
                time.sleep(0.01)
            for _ in range(200):  # longer than anybody without a result is waited for
                time.sleep(0.01)
            {then}
solving.search = search
"""

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, HANGUP])
    def test_a_search_ends_with_its_result(self, tmp_path, number):
        before = self.WAITING_SEARCH.format(then="pass")
        files = (
            "--proof",
            tmp_path / "run.exsel",
            "--trace",
            tmp_path / "run.jsonl",
            "--report",
            tmp_path / "run.html",
        )
        process = Process(
            "solve", DIABETES, "-k", "8", "--rel-eps", "0", "--json", "--quiet", "--no-subtrees", *files, before=before
        )
        code, out, err = process.interrupted(number=number)
        result = json.loads(out)
        assert (code, err) == (130, b"")
        assert (result["termination"], result["claim"]) == ("interrupted", "bounded")
        assert result["lower"] > 0
        assert verify(load(DIABETES).replace(k=8), tmp_path / "run.exsel").verified
        assert sorted(path.name for path in tmp_path.iterdir()) == ["run.exsel", "run.html", "run.jsonl"]
        assert SECOND_PATIENCE < PATIENCE < 1.0

    def test_a_second_signal_ends_it_at_once(self, tmp_path):
        before = self.WAITING_SEARCH.format(then="stay_in_c()")
        process = Process(
            "solve", DIABETES, "-k", "8", "--json", "--quiet", "--no-subtrees", "--proof", tmp_path / "run.exsel",
            before=before,
        )  # fmt: skip
        assert process.interrupted(signals=2) == ENDED
        assert list(tmp_path.iterdir()) == []

    THEN_READ = WAITING_SEARCH.format(then="here()\n            sys.stdin.readline()")

    def test_a_terminal_that_hangs_up_twice_does_not_cost_the_result(self):
        process = Process("solve", DIABETES, "-k", "8", "--json", "--quiet", "--no-subtrees", before=self.THEN_READ)
        code, out, err = process.interrupted(signals=2, number=HANGUP)
        assert (code, err) == (130, b"")
        assert json.loads(out)["termination"] == "interrupted"

    def test_a_hangup_that_was_ignored_from_the_start_stays_ignored(self):
        """As under nohup, in the midst of a search."""
        before = "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n" + self.WAITING_SEARCH.format(then="pass")
        before = before.replace("while not watch.stopped:", "for _ in range(20):")
        process = Process("solve", DIABETES, "-k", "3", "--json", "--quiet", "--no-subtrees", before=before)
        code, out, err = process.interrupted(number=HANGUP)
        assert (code, err) == (0, b"")
        assert json.loads(out)["termination"] in ("gap_closed", "tree_exhausted")

    def test_a_signal_after_the_search_does_not_cost_the_result(self, tmp_path):
        before = "import exactsel.report.run as run\nwrite = run.write_report\n"
        before += "def wait(*arguments, **options):\n    here()\n    for _ in range(200):\n        time.sleep(0.01)\n"
        before += "    write(*arguments, **options)\nrun.write_report = wait"
        process = Process("solve", TRAP, "--json", "--quiet", "--report", tmp_path / "run.html", before=before)
        code, out, err = process.interrupted()
        assert (code, err) == (130, b"")
        assert json.loads(out)["termination"] != "interrupted"
        assert (tmp_path / "run.html").exists()

    @pytest.mark.skipif(not _jit.ENABLED, reason="nothing is compiled")
    def test_while_a_kernel_is_compiled(self, tmp_path):
        """In a thread that never ends; there is no result yet, or that of the moment."""
        before = "import os\nos.environ['EXACTSEL_JIT'] = '1'\nimport numba.core.dispatcher as made\n"
        before += "def compile_for(self, *arguments):\n    stay_in_c()\n"
        before += "made._DispatcherBase._compile_for_args = compile_for"
        code, out, err = Process("solve", TRAP, "--quiet", before=before).interrupted()
        assert code == 130
        assert (out, err) == (b"", b"interrupted.\n") or b"feature" in out

    def test_an_ignored_signal_stays_ignored(self):
        """As under nohup, before the first search."""
        before = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nimport exactsel.registry as registry\n"
        before += "origins = registry.origins\ndef wait(kind):\n    here()\n    sys.stdin.readline()\n"
        before += "    registry.origins = origins\n    return origins(kind)\nregistry.origins = wait"
        process = Process("dev", "plugins", before=before)._process
        assert process.stdout.readline() == b"here\n"
        process.send_signal(signal.SIGINT)
        process.communicate(b"\n", timeout=HANG)
        assert process.returncode == 0


NEVER_COMPILED = """
from exactsel._jit import interpreting
interpreting.allowance.left = interpreting.allowance.whole = 2000  # too little for a search
from exactsel import interrupts
from exactsel._jit import dispatchers
aside = interrupts.aside
dispatchers.aside = lambda work, instead: aside(lambda: time.sleep(1e6), instead)
"""


@pytest.mark.skipif(not _jit.ENABLED, reason="nothing is compiled")
@pytest.mark.parametrize(("options", "code"), [((), 1), (("--threads", "2"), 1), (("--eps", "1e9"), 0)])
def test_a_time_limit_does_not_wait_for_the_compiler(options, code):
    """Nor does the end of the process; bounds hold, and people are told what to do."""
    command = ("solve", DIABETES, "--time-limit", "1", "--json", *options)
    process = Process(*command, before=NEVER_COMPILED)._process
    out, err = process.communicate(timeout=HANG)
    result = json.loads(out)
    assert process.returncode == code
    assert result["termination"] == ("time_limit" if code else "gap_closed")
    assert 0.0 <= result["lower"] <= result["upper"]
    assert ("run 'exactsel dev warmup' before" in err.decode()) == bool(code)
