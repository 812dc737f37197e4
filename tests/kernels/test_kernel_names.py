"""No two processes give compiled kernels the same name, or what they cache clashes where both are loaded."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys

import pytest

pytest.importorskip("numba")

NUMBER = """
from exactsel._jit.target import Identity
print(Identity.from_function(lambda: 0).unique_id)
"""


def test_processes_number_kernels_from_places_of_their_own():
    numbers = {subprocess.run([sys.executable, "-c", NUMBER], capture_output=True, check=True).stdout for _ in range(2)}
    assert len(numbers) == 2
    assert min(map(int, numbers)) > 10**6


def _tell(told):
    from exactsel._jit.target import Identity

    told.put(Identity.from_function(_tell).unique_id)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no process is forked here")
def test_so_do_processes_forked_from_one():
    import exactsel._jit.compiled  # noqa: F401

    fork = multiprocessing.get_context("fork")
    told = fork.SimpleQueue()
    for _ in range(2):
        child = fork.Process(target=_tell, args=(told,))
        child.start()
        child.join()
    assert abs(told.get() - told.get()) > 10**6
