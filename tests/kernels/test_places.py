"""Kernels are handed named tuples by their place; what they do with them, and with elements, is what Python does."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal

from exactsel import _jit
from exactsel._jit import njit, prange

if not _jit.ENABLED:
    pytest.skip("nothing is compiled", allow_module_level=True)


class Rows(NamedTuple):
    A: np.ndarray
    scale: float
    flag: bool


class Data(NamedTuple):
    rows: Rows
    x: np.ndarray
    limits: tuple[int, float]


class Pair(NamedTuple):
    low: float
    high: float


def data(m=4):
    A = np.arange(m * 3, dtype=np.float64).reshape(m, 3) - 4.0
    return Data(Rows(A, 0.5, True), np.arange(m) * 1.0, (m, 2.5))


@njit
def part_sum(rows, i):
    return rows.A[i, 0] * rows.scale if rows.flag else -1.0


@njit
def handed_on(given, i):
    return part_sum(given.rows, i) + part_sum(given.rows, -1)


@njit
def given_back(given, other, first):
    chosen = given if first else other
    if not first:
        given = other
    return chosen.rows, given


@njit
def made_anew(given, count):
    """Tuples of its own, one after the other in the same variable, that a kernel below reads."""
    total = 0.0
    for i in range(count):
        made = Data(Rows(given.rows.A, given.rows.scale + i, i % 2 == 0), given.x, (i, 1.0))
        total += handed_on(made, i % given.x.size) + made.limits[0]
        given = Data(made.rows, given.x, given.limits)
    return total


@njit
def written_while_read(given, rounds):
    """Arrays change where tuples do not: what is handed over is where arrays lie."""
    before = given.x[0]
    for i in range(rounds):
        given.x[0] += given.rows.A[0, 1] + i
        given.rows.A[0, 1] = given.x[0]
    return before, given.x[0], part_sum(given.rows, 0)


@njit
def down(given, depth):
    """A kernel that calls itself with a tuple of its own."""
    if depth == 0:
        return given.rows.scale
    below = Data(Rows(given.rows.A, given.rows.scale * 2.0, False), given.x, given.limits)
    return given.rows.scale + down(below, depth - 1)


@njit(parallel=True)
def in_parallel(A, scale, out):
    for i in prange(out.size):
        out[i] = part_sum(Rows(A, scale, True), i)
    return out


@njit
def widened(pair, steps):
    """A tuple of numbers alone, of one type."""
    for _ in range(steps):
        pair = Pair(pair.low - 1.0, pair.high + pair.low)
    return pair


def text(kernel):
    """What its Python text makes of the same."""
    return kernel.py_func


@pytest.mark.smoke
def test_parts_of_what_was_handed_over_are_handed_on():
    assert handed_on(data(), 1) == text(handed_on)(data(), 1) == -0.5 + 2.5


@pytest.mark.parametrize("first", [True, False])
def test_what_was_handed_over_can_be_given_back(first):
    rows, whole = given_back(data(4), data(6), first)
    m = 4 if first else 6
    assert_array_equal(rows.A, data(m).rows.A)
    assert (rows.scale, rows.flag, whole.limits) == (0.5, True, (m, 2.5))
    assert_array_equal(whole.x, data(m).x)


def test_tuples_of_its_own_are_read_as_they_were_when_it_called():
    assert made_anew(data(), 7) == text(made_anew)(data(), 7)


def test_arrays_that_change_are_read_as_they_are():
    mine, theirs = data(), data()
    assert written_while_read(mine, 5) == text(written_while_read)(theirs, 5)
    assert_array_equal(mine.x, theirs.x)
    assert_array_equal(mine.rows.A, theirs.rows.A)


def test_each_depth_has_a_tuple_of_its_own():
    assert down(data(), 6) == text(down)(data(), 6) == 0.5 * (2**7 - 1)


def test_threads_have_tuples_of_their_own():
    with _jit.parallel_section(2):
        found = in_parallel(data(50).rows.A, 0.5, np.empty(50))
    assert_array_equal(found, data(50).rows.A[:, 0] * 0.5)


def test_tuples_of_numbers_alone_can_be_replaced():
    assert widened(Pair(1.0, 2.0), 4) == text(widened)(Pair(1.0, 2.0), 4)


def test_no_reference_is_lost_or_kept():
    import sys

    given = data()
    before = [sys.getrefcount(each) for each in (given.x, given.rows.A)]
    for _ in range(20):
        given_back(given, given, True), made_anew(given, 3), handed_on(given, 0)
    assert [sys.getrefcount(each) for each in (given.x, given.rows.A)] == before


@njit
def taken(A, i, j):
    return A[i, j], A[-1, j], A[i, 0], A.shape[0], A.shape[1], A.size


@njit
def put(A, i, j, value):
    A[i, j] = value
    A[-1, 0] = A[i, j]
    return A


@njit
def along(x, i):
    x[i] += x[-1]
    return x[i], x.size


def apart(A):
    """The same with room between the numbers."""
    return np.repeat(np.repeat(A, 2, 0), 3, 1)[::2, ::3]


LAYOUTS = {"C": np.ascontiguousarray, "F": np.asfortranarray, "A": apart}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, np.uint8, np.bool_])
@given(st.data())
def test_elements_are_those_that_python_takes(layout, kind, draw):
    m, n = draw.draw(st.integers(1, 5)), draw.draw(st.integers(1, 5))
    numbers = st.integers(0, 1 if kind is np.bool_ else 9)
    A = LAYOUTS[layout](draw.draw(hnp.arrays(np.int64, (m, n), elements=numbers)).astype(kind))
    i, j = draw.draw(st.integers(-m, m - 1)), draw.draw(st.integers(-n, n - 1))
    assert taken(A, i, j) == text(taken)(A, i, j)
    mine, theirs = LAYOUTS[layout](A), LAYOUTS[layout](A.copy())
    assert_array_equal(put(mine, i, j, 1), text(put)(theirs, i, j, 1))


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint32, np.uint64, np.int8])
def test_places_may_be_of_any_type(kind):
    mine, theirs = np.arange(5.0), np.arange(5.0)
    assert along(mine, kind(3)) == text(along)(theirs, kind(3))
    assert_array_equal(mine, theirs)


def test_what_is_written_takes_the_type_of_the_array():
    x = np.arange(4, dtype=np.int64)
    y = np.arange(4, dtype=np.float32)
    assert put(x.reshape(2, 2), 0, 1, 2.75).tolist() == [[0, 2], [2, 3]]
    assert put(y.reshape(2, 2), 0, 1, 0.1).tolist() == [[0.0, float(np.float32(0.1))], [float(np.float32(0.1)), 3.0]]
