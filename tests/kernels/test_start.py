"""Starting up: kernels are compiled once and kept, and a solve loads no more than it needs.

How long a start takes is shown by ``python -m benchmarks.limits``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from clocks import HANG

from exactsel import _jit

TWINS = Path(__file__).resolve().parents[2] / "instances" / "twins.npz"

COMPILED = """
import json, sys
import numpy as np
from exactsel._jit import compiled
from exactsel.kernels.selection import top_sum
assert top_sum(np.array([3.0, 1.0, 2.0]), 0, 2, np.empty(3)) == 5.0
counts = [dispatcher.stats for dispatcher in compiled.dispatchers]
misses, hits = (sum(sum(getattr(c, name).values()) for c in counts) for name in ("cache_misses", "cache_hits"))
sys.stdout.write(json.dumps([misses, hits]))
"""


def output_of(probe: str, **environment: str) -> str:
    command = [sys.executable, "-c", probe]
    done = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, timeout=HANG, check=True
    )
    return done.stdout


@pytest.mark.skipif(not _jit.ENABLED, reason="nothing is compiled")
def test_a_kernel_is_compiled_once(tmp_path):
    folder = str(tmp_path / "cache")
    misses, hits = json.loads(output_of(COMPILED, EXACTSEL_CACHE_DIR=folder))
    assert misses > 0
    assert hits == 0
    misses, hits = json.loads(output_of(COMPILED, EXACTSEL_CACHE_DIR=folder))
    assert misses == 0
    assert hits > 0


def test_what_a_solve_does_not_load():
    probe = (
        f"import sys; from exactsel import load, solve; solve(load({str(TWINS)!r}))\n"
        "sys.stdout.write(repr(sorted({'cvxpy', 'matplotlib', 'sklearn', 'pandas'} & set(sys.modules))))"
    )
    assert output_of(probe) == "[]"


@pytest.mark.skipif(not _jit.ENABLED, reason="numba is never loaded")
@pytest.mark.parametrize("options", ["", ", loss='huber'", ", loss='logistic'"])
def test_a_small_solve_does_not_load_the_compiler(options):
    probe = (
        "import sys\nimport numpy as np\nfrom exactsel import Problem, solve\n"
        "A = np.arange(24.0).reshape(8, 3) ** 0.5\ny = np.array([1.0, -1.0] * 4)\n"
        f"result = solve(Problem(A, y, 2, lam=0.1{options}))\nassert result.reached\n"
        "sys.stdout.write(repr(sorted({'numba', 'llvmlite'} & set(sys.modules))))"
    )
    assert output_of(probe) == "[]"
    if not options:
        assert output_of(probe, EXACTSEL_JIT="1") == "['llvmlite', 'numba']", "the probe would not see them"
