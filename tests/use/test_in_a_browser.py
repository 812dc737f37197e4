"""What a browser's Python can do: small problems without compiler and threads, the second checker in Pyodide itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from clocks import HANG
from command_line import INSTANCES, TWINS

from exactsel import load, solve

ROOT = Path(__file__).resolve().parents[2]
LIKE_A_BROWSER = ROOT / "tests" / "fixtures" / "like_a_browser.py"
VERIFY = ROOT / "dev" / "pyodide" / "verify.mjs"
PYODIDE = os.environ.get("EXACTSEL_PYODIDE")


def in_a_browser(*commands: str) -> list[str]:
    """What each command prints on stdout, and its exit code."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("EXACTSEL_")}
    words = [sys.executable, str(LIKE_A_BROWSER), *commands]
    done = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=HANG, check=False, env=environment
    )
    assert "Traceback" not in done.stdout, done.stdout
    shown = done.stdout.split("exit ")
    assert len(shown) == len(commands) + 1, done.stdout
    return [text if number == 0 else text.partition("\n")[2] for number, text in enumerate(shown[:-1])] + [
        " ".join(text.partition("\n")[0] for text in shown[1:])
    ]


def test_small_problems_are_solved_without_a_compiler_threads_or_processes(tmp_path):
    proof, page = tmp_path / "run.exsel", tmp_path / "play.html"
    *shown, codes = in_a_browser(
        f"solve {TWINS} --proof {proof} --threads 2 --time-limit 600",
        f"verify {proof} {TWINS}",
        f"best {INSTANCES / 'exponential-decay.npz'} --k-max 3",
        f"play {TWINS} --html {page}",
        f"path {TWINS}",
        f"certify {TWINS} --support 0,1",
        f"compare {INSTANCES / 'greedy-trap.npz'}",
        f"solve {INSTANCES / 'labels.npz'}",
        f"solve {INSTANCES / 'diabetes.npz'} -k 4 --loss huber --quiet",
    )
    assert codes == "0 0 0 0 0 0 0 0 0"
    assert "Optimal" in shown[0]
    (upper,) = re.findall(r"^upper +(\S+)", shown[0], re.MULTILINE)
    assert float(upper) == pytest.approx(solve(load(TWINS)).upper, rel=1e-9)
    assert "VERIFIED" in shown[1]
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_arrays_are_compared_and_certified_without_a_compiler():
    data = "import exactsel; X, y = exactsel.datasets.load('diabetes'); "
    *shown, codes = in_a_browser(
        f"python {data} print(exactsel.compare(X, y, 3, methods=['forward', 'omp']))",
        f"python {data} print(exactsel.certify(X, y, candidate=[2, 3, 8]).gap)",
    )
    assert codes == "0 0"
    assert "forward" in shown[0]
    assert float(shown[1]) >= 0.0


def test_a_search_that_would_need_the_compiler_ends_at_its_limit():
    shown, codes = in_a_browser(f"solve {INSTANCES / 'hidden-six.npz'} --loss huber --delta 0.1 --node-limit 3")
    assert codes in ("0", "1")
    assert "upper" in shown
    assert "lower" in shown


@pytest.mark.skipif(PYODIDE is None or shutil.which("node") is None, reason="EXACTSEL_PYODIDE names no Pyodide")
def test_the_second_checker_verifies_in_pyodide(tmp_path):
    proof = tmp_path / "run.exsel"
    solve(load(TWINS), proof=proof)
    for instance, code in ((TWINS, 0), (str(INSTANCES / "overlap.npz"), 3)):
        words = ["node", str(VERIFY), str(proof), instance]
        done = subprocess.run(words, capture_output=True, text=True, timeout=HANG, check=False)
        assert done.returncode == code, done.stderr[-2000:]
