"""Counting: is every principal submatrix of at most r columns of a symmetric matrix positive definite, by elimination?

The matrix is M - F'R but for its diagonal, which is given besides; only entries below the diagonal are read. One column
is eliminated at a time, until pairs are left: with w what is left of the diagonal, (l, j) passes where t^2 < w_l w_j,
which elimination of a matrix nearer than four roundings confirms. Comparisons are such that nan fails.

Where numba is installed, counts that take long are made by compiled.py, which gives the same answers.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from exactsel_certificates.formula import FloatArray
from exactsel_certificates.rigorous import each_runs
from exactsel_certificates.work import look

BLOCK = 1 << 16
"""Numbers in a table of pairs."""

COMPILED_FROM = 5e9
"""Sets that take about as long as compiling, where many regions are counted at once."""

COMPILING = 5.0
"""Seconds that compiling takes, about."""

REGION = 1e5
"""Sets that take about as long as what there is to do for each region besides."""

MOST = 10**18
"""More sets than any count takes."""


def how_many(m: int, r: int) -> int:
    """How many sets of at most r there are of m columns, up to about MOST; one where one elimination shows all."""
    total, sets = 1, 1
    for q in range(min(m, r) if r < m else 0):
        sets = sets * (m - q) // (q + 1)
        total += sets
        if total > MOST:
            break
    return total


def all_hold(
    sound: NDArray[np.bool_], M: FloatArray, F: FloatArray, R: FloatArray, diagonal: FloatArray, r: int
) -> NDArray[np.bool_]:
    """For matrices M (B, m, m), F and R (B, s, m), diagonals (B, m): ``sound`` and whether all sets of r hold."""
    with np.errstate(all="ignore"):
        ok: NDArray[np.bool_] = sound & (np.all(diagonal > 0, axis=1) if r > 0 else True)
        if r <= 1 or not np.any(ok):
            return ok
        if r == 2:
            return np.asarray(ok & _pairs_hold(M, F, R, diagonal))
        M = M - F.swapaxes(1, 2) @ R
        if r >= M.shape[1]:
            M[:, range(M.shape[1]), range(M.shape[1])] = diagonal
            return np.asarray(ok & each_runs(M))
        for i in range(1, M.shape[1]):
            look()
            row = M[:, i, :i]
            factor = row / diagonal[:, i, None]
            pivots = diagonal[:, :i] - factor * row
            ok = all_hold(ok, M[:, :i, :i], factor[:, None], row[:, None], pivots, r - 1)
        return ok


def _pairs_hold(M: FloatArray, F: FloatArray, R: FloatArray, diagonal: FloatArray) -> NDArray[np.bool_]:
    """The same for r = 2 where the diagonals are known to be positive."""
    B, m = diagonal.shape
    ok = np.ones(B, dtype=np.bool_)
    step = max(1, BLOCK // (B * m))
    for first in range(0, m, step):
        end = min(m, first + step)
        t = M[:, first:end, :end] - _product(F[:, :, first:end], R[:, :, :end])
        t *= t
        t[:, range(end - first), range(first, end)] = 0.0
        # Above the diagonal stands what stands below it, or rounded in another way: no harm is done by looking.
        ok &= np.all(t < diagonal[:, first:end, None] * diagonal[:, None, :end], axis=(1, 2))
    return ok


def _product(F: FloatArray, R: FloatArray) -> FloatArray:
    """F'R for each of (B, s, .) and (B, s, .)."""
    if F.shape[1] == 1:
        return np.asarray(F.swapaxes(1, 2) * R)
    return np.asarray(F.swapaxes(1, 2) @ R)


_processor_time: Callable[[], float] = getattr(time, "thread_time", time.process_time)
"""Seconds of this thread, or of the process where the system does not separate threads, as in a browser."""


class _Work:
    """The work that counts have requested of this process, in sets.

    A check beside a running search counts a little at a time, and in the end takes longer than compiling does.
    """

    asked_for = 0.0
    seconds = 0.0
    """What counting without the twin has taken: of a few regions at a time, much longer than their sets say."""


@contextmanager
def without_twin() -> Iterator[None]:
    """Note how long this takes."""
    began = _processor_time()
    yield
    _Work.seconds += _processor_time() - began


def compiled(sets: float, regions: int) -> Callable[..., None] | None:
    """The compiled twin, which takes all regions at once; None without numba, or where compiling would take longer.

    That is where these sets of so many regions, and all earlier ones, are few and have not taken long.
    """
    _Work.asked_for += sets + REGION * regions
    is_loaded = "numba" in sys.modules  # importing it takes as long as many a proof
    pays = _Work.asked_for >= COMPILED_FROM or _Work.seconds >= COMPILING
    if not (is_loaded or pays) or os.environ.get("EXACTSEL_JIT", "1") == "0":
        return None
    count, stored = _twin()
    return count if stored or pays else None


@cache
def _twin() -> tuple[Callable[..., None] | None, bool]:
    """The compiled twin, and whether it is known to this machine from an earlier check."""
    try:
        from exactsel_certificates.compiled import count
    except ImportError:
        return None, True
    return count, any(Path(count.stats.cache_path).glob("compiled.count-*.nbi"))


def unproven(M: FloatArray, diagonal: FloatArray, r: int) -> Iterator[tuple[int, ...]]:
    """Sets of at most r columns of M (m, m), given with its diagonal (m,): every one that is not shown to hold."""
    if r == 2:
        yield from _unproven_pairs(M, diagonal)
        return
    for i in range(len(diagonal)) if r > 0 else ():
        row = M[i, :i]
        if not diagonal[i] > 0:
            for size in range(r):
                yield from ((i, *rest) for rest in combinations(range(i), size))
        elif r > 2:
            look()
            with np.errstate(all="ignore"):
                factor = row / diagonal[i]
                rest, pivots = M[:i, :i] - np.multiply.outer(factor, row), diagonal[:i] - factor * row
            yield from ((i, *chosen) for chosen in unproven(rest, pivots, r - 1))


def _unproven_pairs(M: FloatArray, diagonal: FloatArray) -> Iterator[tuple[int, ...]]:
    """The same of one column or two."""
    alone = ~(diagonal > 0)
    with np.errstate(all="ignore"):
        apart = np.multiply.outer(diagonal, diagonal) > M * M
    apart[alone] = False
    yield from ((i,) for i in np.flatnonzero(alone).tolist())
    yield from zip(*(side.tolist() for side in np.nonzero(np.tril(~apart, -1))), strict=True)
