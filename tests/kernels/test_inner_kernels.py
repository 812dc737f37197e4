"""Kernels that kernels call are lowered once and taken in by each that Python calls."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from exactsel import _jit
from exactsel._jit import njit, prange

pytestmark = pytest.mark.skipif(not _jit.ENABLED, reason="nothing is compiled")


@njit
def scaled(x, factor):
    return x * factor


@njit
def both(x, rows):
    if x.size != rows:
        raise ValueError("not as many")
    return scaled(x, 2), scaled(x, 3.0), np.zeros(rows)


@njit
def factorial(n):
    return 1 if n <= 1 else n * factorial(n - 1)


@njit
def of_factorial(n):
    return factorial(n) + factorial(3)


@njit(parallel=True)
def squares(n):
    out = np.empty(n)
    for i in prange(n):
        out[i] = scaled(float(i), i)
    return out


@njit
def of_squares(n):
    return squares(n).sum()


@njit
def assigned(x, y):
    x[1:3] = y
    return x


def inner_of(kernel):
    """The dispatcher kernels call."""
    return kernel.compiled.inner


def test_a_kernel_python_calls_takes_in_what_it_calls():
    double, triple, zeros = both(np.arange(3.0), 3)
    np.testing.assert_array_equal(double, [0.0, 2.0, 4.0])
    np.testing.assert_array_equal(triple, [0.0, 3.0, 6.0])
    np.testing.assert_array_equal(zeros, np.zeros(3))


def test_an_error_of_a_kernel_is_raised():
    with pytest.raises(ValueError, match="not as many"):
        both(np.arange(3.0), 4)


def test_numbers_in_a_call_make_no_kernels_of_their_own():
    of_factorial(4)
    both(np.arange(2.0), 2)
    assert len(inner_of(factorial).overloads) <= 1  # none where its caller came from the disk
    assert all("Literal" not in str(kinds) for kinds in inner_of(scaled).overloads)


def test_what_was_called_inside_can_be_called_from_python_and_the_other_way_round():
    assert of_factorial(5) == 126
    assert factorial(5) == 120
    assert of_factorial(4) == 30
    np.testing.assert_array_equal(scaled(np.ones(2), 4), [4.0, 4.0])
    np.testing.assert_array_equal(both(np.ones(2), 2)[0], [2.0, 2.0])


def test_only_what_python_calls_becomes_machine_code():
    both(np.arange(3.0), 3)
    assert all(not found.library._finalized for found in inner_of(scaled).overloads.values())
    assert all(found.library._finalized for found in both.compiled.overloads.values())


def test_parallel_kernels_inside_others():
    assert of_squares(20) == sum(i * i for i in range(20))
    np.testing.assert_array_equal(squares(5), np.arange(5.0) ** 2)


def test_shapes_that_do_not_fit_are_an_error():
    np.testing.assert_array_equal(assigned(np.zeros(4), np.ones(2)), [0.0, 1.0, 1.0, 0.0])
    with pytest.raises(ValueError, match="another shape"):
        assigned(np.zeros(4), np.ones(3))


STRANGER = """
import numba, numpy as np
from numba.core.cpu import CPUContext
from numba.np import arrayobj
before = CPUContext.get_executable, arrayobj.raise_with_shape_context

@numba.njit
def theirs(x):
    return np.zeros(x.size).sum() + np.cumsum(x)[-1]

{first}
from exactsel._jit import njit

@njit
def ours(x):
    return np.zeros(x.size), np.cumsum(x)

assert ours(np.ones(3))[1].tolist() == [1.0, 2.0, 3.0]
assert theirs(np.ones(3)) == 3.0

@numba.njit
def later(x):
    x[:2] = np.zeros(x.size)
    return np.cumsum(x)

try:
    later(np.ones(3))
except ValueError as error:
    assert "cannot assign" in str(error), error
assert (CPUContext.get_executable, arrayobj.raise_with_shape_context) == before
"""


@pytest.mark.parametrize("first", ["", "theirs(np.ones(2))"])
def test_other_peoples_functions_are_compiled_as_ever(first, tmp_path):
    """What both need may have been compiled for either of them first."""
    script = STRANGER.format(first=first)
    (tmp_path / "script.py").write_text(script)
    done = subprocess.run([sys.executable, str(tmp_path / "script.py")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
