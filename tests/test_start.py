"""Starting up: figures to read (``pytest -rP tests/test_start.py``), with generous limits for noisy machines."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

from exactsel import load, solve

TWINS = Path(__file__).resolve().parents[1] / "instances" / "twins.npz"


def seconds_of(*arguments: object, repeats: int = 3) -> list[float]:
    """Wall time of some runs of the command, shown with the rest of a test's output."""
    command = [sys.executable, "-m", "exactsel", *map(str, arguments)]
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        times.append(time.perf_counter() - began)
    print(f"exactsel {arguments[0]}: {', '.join(f'{t:.2f}' for t in times)} s, median {statistics.median(times):.2f} s")
    return times


def test_help():
    assert min(seconds_of("--help")) < 3.0


def test_second_start_of_a_tiny_solve():
    solve(load(TWINS))  # compiles the kernels where that has not been done
    seconds_of("solve", TWINS, "--quiet", repeats=1)
    assert min(seconds_of("solve", TWINS, "--quiet")) < 10.0


def test_what_a_solve_does_not_load():
    probe = (
        f"import sys; from exactsel import load, solve; solve(load({str(TWINS)!r}))\n"
        "sys.stdout.write(repr(sorted({'cvxpy', 'matplotlib', 'sklearn', 'pandas'} & set(sys.modules))))"
    )
    done = subprocess.run([sys.executable, "-c", probe], check=True, capture_output=True, text=True, timeout=120)
    assert done.stdout == "[]"
