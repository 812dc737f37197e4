"""BLAS keeps to one thread until the last of several searches is done."""

from __future__ import annotations

import sys
import threading

import pytest
import scipy.linalg  # noqa: F401  brings a BLAS library of its own
from threadpoolctl import ThreadpoolController, threadpool_limits

from exactsel.algebra import dense, threads
from exactsel.algebra.threads import one_thread


def counts() -> set[int]:
    """Threads of all BLAS libraries."""
    return {library.num_threads for library in ThreadpoolController().select(user_api="blas").lib_controllers}


@pytest.fixture(autouse=True)
def two():
    """Two threads, whatever the machine has."""
    with threadpool_limits(2, user_api="blas"):
        if counts() != {2}:
            pytest.skip("this BLAS has no threads")
        yield


def test_one_within_another():
    with one_thread():
        with one_thread():
            assert counts() == {1}
        assert counts() == {1}
    assert counts() == {2}


def test_an_error_gives_them_back():
    with pytest.raises(ValueError, match="stop"), one_thread():
        raise ValueError("stop")
    assert counts() == {2}


@pytest.mark.parametrize("first_to_leave", ["first", "second"])
def test_another_thread_that_is_done_first_gives_nothing_back(first_to_leave):
    included, leave = threading.Event(), threading.Event()

    def other():
        with one_thread():
            included.set()
            leave.wait(60)

    thread = threading.Thread(target=other)
    if first_to_leave == "second":
        with one_thread():
            thread.start()
            assert included.wait(60)
        assert counts() == {1}
        leave.set()
        thread.join(60)
    else:
        thread.start()
        assert included.wait(60)
        with one_thread():
            leave.set()
            thread.join(60)
            assert counts() == {1}
    assert counts() == {2}


def test_a_library_that_comes_later(monkeypatch):
    """The first limit knows of no scipy; the next one, within it, does, and all is undone at the end."""
    shared, own = threads._libraries((True,))
    if len(shared) < 2 or own:
        pytest.skip("numpy and scipy share a BLAS library")
    monkeypatch.setattr(threads, "_libraries", lambda loaded: (shared if all(loaded) else shared[:1], []))
    hidden = {name: sys.modules[name] for name in threads.LIBRARIES}
    for name in hidden:
        monkeypatch.delitem(sys.modules, name)
    with one_thread():
        assert counts() == {1, 2}
        sys.modules.update(hidden)
        with one_thread():
            assert counts() == {1}
        assert counts() == {1}
    assert counts() == {2}


def test_a_library_that_an_import_brings(monkeypatch):
    """Inside the limit and without entering it again, as where scipy is first needed in the middle of a search."""
    shared, own = threads._libraries((True,))
    if len(shared) < 2 or own:
        pytest.skip("numpy and scipy share a BLAS library")
    monkeypatch.setattr(threads, "_libraries", lambda loaded: (shared[:1], []))
    with one_thread():
        assert counts() == {1, 2}
        monkeypatch.setattr(threads, "_libraries", lambda loaded: (shared, []))
        assert dense.cholesky([[4.0]]) == [[2.0]]
        assert counts() == {1}
    assert counts() == {2}
    dense.cholesky([[4.0]])
    assert counts() == {2}


class PerThread:
    """A library as OpenMP has it: every thread has a number of its own."""

    filepath = "openmp"

    def __init__(self):
        self.own = threading.local()

    @property
    def num_threads(self):
        return getattr(self.own, "number", 4)

    def set_num_threads(self, number):
        self.own.number = number


def test_a_number_for_each_thread(monkeypatch):
    library, seen = PerThread(), []
    monkeypatch.setattr(threads, "_libraries", lambda loaded: ([], [library]))

    def other():
        with one_thread(), one_thread():
            seen.append(library.num_threads)
        seen.append(library.num_threads)

    with one_thread():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(60)
        assert library.num_threads == 1
    assert seen == [1, 4]
    assert library.num_threads == 4
