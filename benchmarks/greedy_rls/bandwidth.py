"""How fast this machine moves numbers: the limit that greedy RLS, which computes little per number, is held against."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from exactsel._jit import njit, parallel_section, prange

REPEATS = 5

Floats = NDArray[np.float64]


@njit(parallel=True)
def triad(a: Floats, b: Floats, c: Floats) -> None:
    """The stream triad a = b + 3 c: two arrays read, one written."""
    for i in prange(a.size):
        a[i] = b[i] + 3.0 * c[i]


@njit(parallel=True)
def scale(a: Floats) -> None:
    """One array read and written in place, as greedy RLS does with its cache matrix."""
    for i in prange(a.size):
        a[i] *= 0.999


def measure(threads: int, entries: int) -> float:
    """Bytes per second, the faster of the two loops above at its best of five.

    Parameters
    ----------
    threads : int
    entries : int
        Length of the arrays; 30 million (240 MB each) exceed any processor's cache.
    """
    a, b, c = (np.full(entries, 1.0) for _ in range(3))
    with parallel_section(threads):
        return max(
            24.0 * entries / min(_seconds(triad, a, b, c) for _ in range(REPEATS + 1)),
            16.0 * entries / min(_seconds(scale, a) for _ in range(REPEATS + 1)),
        )


def _seconds(loop: object, *arrays: Floats) -> float:
    start = time.perf_counter()
    loop(*arrays)  # type: ignore[operator]
    return time.perf_counter() - start
