"""Kernels are compiled for a target of our own; what others import of numba is what numba made."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactsel import _jit

if not _jit.ENABLED:
    pytest.skip("nothing is compiled", allow_module_level=True)

from numba.core import compiler

from exactsel._jit import versions
from exactsel._jit.target import Flags

ROOT = Path(__file__).parents[2]

SWITCHES = ("nrt", "boundscheck", "forceinline", "no_cpython_wrapper", "release_gil", "debuginfo")


def flags_with(values, kind):
    flags = kind()
    for name, value in values.items():
        setattr(flags, name, value)
    return flags


some_switches = st.dictionaries(st.sampled_from(SWITCHES), st.booleans())


@given(some_switches, some_switches)
def test_flags_are_equal_as_numba_compares_them(one, other):
    mine, theirs = flags_with(one, Flags), flags_with(other, Flags)
    expected = flags_with(one, compiler.Flags), flags_with(other, compiler.Flags)
    assert (mine == theirs) == (expected[0] == expected[1])
    assert hash(mine) == hash(expected[0])
    assert mine == expected[0]
    assert expected[1] == theirs
    assert mine.copy() == mine
    assert type(mine.copy()) is Flags


def test_other_objects_are_not_flags():
    assert Flags() != 3


SNAPSHOT = """
import sys
import numba, numpy as np

@numba.njit
def before(x, y):
    x[:2] = y
    return np.cumsum(x)[-1] + np.dot(x, x)

@numba.njit(parallel=True)
def in_parallel(x):
    for i in numba.prange(x.size):
        x[i] += 1
    return x

if COMPILES:  # what numba does once has been done
    before(np.ones(3), np.ones(2)), in_parallel(np.ones(3))

def attributes():
    found, classes = {}, {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("numba", "llvmlite"):
            for key, value in list(vars(module).items()):
                found[name, key] = value
                if isinstance(value, type) and value.__module__.partition(".")[0] in ("numba", "llvmlite"):
                    classes[value] = None
    for cls in classes:
        for key, value in vars(cls).items():
            found[cls, key] = value
    return found

first = attributes()
assert len(first) > 10_000
"""

THEN = """
after = attributes()
replaced = [name for name, value in first.items() if after.get(name) is not value]
print([name for name in replaced if type(first[name]) is not int])  # numba counts
print(sum(sum(each.stats.cache_misses.values()) for each in dispatchers))
"""

SOLVES = """
import exactsel
from exactsel._jit import njit, prange
from exactsel._jit.compiled import dispatchers

A = np.random.default_rng(0).normal(size=(30, 6))
y = np.sign(A[:, 0] + 0.1)
for loss, target in (("quadratic", A[:, 0]), ("huber", A[:, 1]), ("logistic", y), ("poisson", y + 1.0)):
    assert exactsel.solve(A, target, 2, loss=loss, lam=0.1).claim

import os, pathlib
from exactsel._jit import compiled

compiled.CACHE = pathlib.Path(os.environ["EMPTY"])  # what solves need may have been kept by others

@njit
def ours(x, y):
    x[:2] = y
    return np.cumsum(x)[-1] + before(x, y)

@njit(parallel=True)
def ours_in_parallel(x):
    for i in prange(x.size):
        x[i] += ours(x, np.ones(2))
    return x

ours_in_parallel(np.ones(3))
"""

LOSSES = """
from exactsel._jit.compiled import dispatchers
from exactsel.kernels.rows import loss_gradient
from exactsel.losses.huber import Huber
from exactsel.losses.logistic import Logistic
from exactsel.losses.poisson import Poisson
from exactsel.losses.quadratic import Quadratic

for loss in (Quadratic(), Huber(1.0), Logistic(), Poisson()):
    loss_gradient(loss, np.ones(3), np.ones(3), np.ones(3))
"""


def replaced_by(script, *, compiles=True, **environment):
    """Names of what the script replaces, and how many kernels it compiles."""
    done = subprocess.run(
        [sys.executable, "-c", f"COMPILES = {compiles}\n" + SNAPSHOT + script + THEN],
        env={**os.environ, "EXACTSEL_JIT": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    names, compiled = done.stdout.splitlines()
    return names, int(compiled)


def test_a_solve_replaces_nothing_of_numba(tmp_path):
    names, compiled = replaced_by(SOLVES, EMPTY=str(tmp_path))
    assert names == "[]"
    assert compiled > 0


@pytest.mark.smoke
def test_compiling_for_each_loss_replaces_nothing_of_numba(tmp_path):
    names, compiled = replaced_by(LOSSES, EXACTSEL_CACHE_DIR=str(tmp_path))
    assert names == "[]"
    assert compiled >= 4


def test_what_is_replaced_would_be_found():
    names, _ = replaced_by(
        "dispatchers = []\nnumba.core.ir.Inst._rec_list_vars = lambda *a: []\nnumba.core.codegen.ll = None",
        compiles=False,
    )
    assert "Inst" in names
    assert "numba.core.codegen" in names


NEWER = """
import importlib.metadata, sys
version = importlib.metadata.version
importlib.metadata.version = lambda name: "0.99.0" if name == "numba" else version(name)

import numpy as np
from exactsel import _jit
from exactsel._jit import atomic_add, choose_by_type, njit, prange
from exactsel._jit.compiled import dispatchers
from exactsel._jit.cache_paths import cache_folder
from exactsel.kernels.rows import loss_gradient, loss_value
from exactsel.losses.huber import Huber

@njit
def scaled(x, by):
    return x * by

@njit(parallel=True)
def total(x, cells):
    for i in prange(x.size):
        atomic_add(cells, 0, int(scaled(x[i], 2)))
    return cells

slopes = np.empty(3)
loss_gradient(Huber(1.0), np.array([0.5, 2.0, -3.0]), np.zeros(3), slopes)
print(slopes, loss_value(Huber(1.0), np.array([0.5, 2.0]), np.zeros(2)), total(np.ones(4), np.zeros(1, np.int64)))
print(sorted({type(each).__module__ + "." + type(each).__name__ for each in dispatchers}), cache_folder())
print([name for name in ("target", "linking", "dispatchers", "disk") if "exactsel._jit." + name in sys.modules])
"""


@pytest.mark.smoke
def test_with_a_newer_numba_kernels_are_its_own_and_not_kept(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", NEWER],
        env={**os.environ, "EXACTSEL_JIT": "1", "EXACTSEL_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "[ 0.5  1.  -1. ] 1.625 [8]", "['numba.core.registry.CPUDispatcher'] None", "[]"
    ]  # fmt: skip
    assert not list(tmp_path.iterdir())


def test_the_versions_tested_are_those_that_are_installed():
    text = (ROOT / "pyproject.toml").read_text()
    bound = ".".join(map(str, versions.BELOW))
    assert f'"numba>=0.63,<{bound}; sys_platform' in text
    assert f"numba >=0.63,<{bound}" in (ROOT / "packaging" / "conda" / "meta.yaml").read_text()
    assert versions.is_tested()


BY_TURNS = """
import numba, numpy as np
from exactsel._jit import njit

@njit
def first(n):
    return np.zeros(n).sum()

@numba.njit
def theirs(n):
    return np.zeros(n).sum() + np.zeros((n, 2)).sum()

@njit
def then(n):
    return np.zeros(n).sum() + np.zeros((n, 2)).sum() + 1.0

@numba.njit
def theirs_again(n):
    return np.zeros(n).sum() + 2.0

print(first(3), theirs(4), then(5), theirs_again(6))
"""


def test_kernels_and_what_others_compile_may_come_by_turns():
    """Types of numba's functions are shared by all targets, and know one implementation."""
    environment = os.environ | {"EXACTSEL_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", BY_TURNS], capture_output=True, text=True, env=environment, cwd=ROOT)
    assert done.stdout.split() == ["0.0", "0.0", "1.0", "2.0"], done.stderr
