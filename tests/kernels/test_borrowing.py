"""Parts of arguments hold no reference of their own, and nothing is freed too early, twice, or never."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest

from exactsel import _jit
from exactsel._jit import njit, prange

if not _jit.ENABLED:
    pytest.skip("nothing is compiled", allow_module_level=True)

from numba import typeof
from numba.core.runtime import _nrt_python, rtsys

_nrt_python.memsys_enable_stats()


class Inner(NamedTuple):
    x: np.ndarray
    y: np.ndarray


class Outer(NamedTuple):
    inner: Inner
    z: np.ndarray
    both: tuple[np.ndarray, np.ndarray]
    number: int


@njit
def total(data):
    inner = data.inner
    return inner.x.sum() + inner.y.sum() + data.z.sum() + data.both[0].sum() + data.both[1].sum() + data.number


@njit
def a_part(data):
    inner = data.inner
    return inner.y


@njit
def a_tuple(data):
    inner = data.inner
    return inner


@njit
def argument(data):
    return data


@njit
def put_together(data):
    inner = data.inner
    made = Inner(inner.y, np.arange(3.0))
    swapped = Outer(made, inner.x, (data.z, data.z), 1)
    return swapped.inner, swapped.both[0]


@njit
def assigned_anew(data, times):
    inner = data.inner
    for _ in range(times):
        inner = Inner(inner.y + 1.0, inner.x)
    return inner.x.sum(), inner


@njit
def on_some_ways(data, flag):
    if flag > 0:
        inner = data.inner
        x = inner.x
    else:
        x = np.ones(4)
    result = x.sum()
    for i in range(flag):
        part = data.both[i % 2]
        result += part[0]
    return result


@njit
def argument_assigned_anew(data, times):
    for i in range(times):
        data = Outer(Inner(data.z, data.inner.x), data.inner.y, data.both, i)
    return data


@njit
def through_calls(data):
    inner = data.inner
    held = put_together(Outer(inner, inner.x + 1.0, data.both, 0))
    return held[0].x, total(data), held


@njit(parallel=True)
def in_parallel(data, out):
    inner, z = data.inner, data.z
    x, y = inner.x, inner.y
    for i in prange(out.size):
        rows = Inner(x, y + i)
        out[i] = total(Outer(rows, z, (x, rows.y), i))
    return out


CASES = [
    (total, ()), (a_part, ()), (a_tuple, ()), (argument, ()), (put_together, ()), (assigned_anew, (0,)),
    (assigned_anew, (3,)), (on_some_ways, (0,)), (on_some_ways, (5,)), (argument_assigned_anew, (4,)),
    (through_calls, ()), (in_parallel, (np.zeros(7),)),
]  # fmt: skip


def flat(value):
    return [each for part in value for each in flat(part)] if isinstance(value, tuple) else [np.asarray(value)]


def arrays():
    return [np.arange(4.0) + i for i in range(5)]


def of(x, y, z, u, v):
    return Outer(Inner(x, y), z, (u, v), 3)


@pytest.mark.parametrize(("kernel", "further"), CASES)
def test_values_are_those_of_the_text_and_references_end(kernel, further):
    held = arrays()
    kernel(of(*held), *further)  # compiled, and what it keeps for itself made
    expected = [each.copy() for each in flat(kernel.py_func(of(*held), *further))]
    references, before = [sys.getrefcount(each) for each in held], rtsys.get_allocation_stats()
    for _ in range(20):
        got = kernel(of(*held), *further)
        for mine, theirs in zip(flat(got), expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)
        kept = flat(got)  # parts outlive the call, whatever comes after
        del got
        for mine, theirs in zip(kept, expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)
        del kept, mine
    after = rtsys.get_allocation_stats()
    assert [sys.getrefcount(each) for each in held] == references
    assert after.alloc - before.alloc == after.free - before.free
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free


SEARCH = """
import gc
import numpy as np
from exactsel import Problem, solve
from numba.core.runtime import rtsys

rng = np.random.default_rng(0)
A = rng.normal(size=(40, 12))
y = A[:, :4].sum(axis=1) + rng.normal(size=40)
for loss, target in (("quadratic", y), ("huber", y), ("logistic", np.sign(y))):
    def run():
        solve(Problem(A, target, 4, loss=loss, lam=0.5), signals=())
    run()
    gc.collect()
    before = rtsys.get_allocation_stats()
    run()
    gc.collect()
    after = rtsys.get_allocation_stats()
    print(loss, after.alloc - before.alloc - after.free + before.free)
    assert after.alloc - before.alloc > 10
"""


@pytest.mark.slow
def test_a_search_leaves_nothing_behind():
    environment = {**os.environ, "EXACTSEL_JIT": "1", "NUMBA_NRT_STATS": "1"}
    done = subprocess.run([sys.executable, "-c", SEARCH], env=environment, capture_output=True, text=True, check=True)
    left = dict(line.split() for line in done.stdout.splitlines())
    assert left == {"quadratic": "0", "huber": "0", "logistic": "0"}


@njit
def first_entries(data):
    inner = data.inner
    x = inner.x
    return x[0] + inner.y[0] + data.both[1][0]


def test_what_only_reads_counts_nothing():
    counted = {}
    for kernel in (first_entries, put_together):
        inner = kernel.compiled.inner
        inner.compile((typeof(of(*arrays())),))
        (result,) = inner.overloads.values()
        counted[kernel] = str(result.library.as_lowered()).count("call void @NRT_incref")
    assert counted[first_entries] == 0 < counted[put_together]
