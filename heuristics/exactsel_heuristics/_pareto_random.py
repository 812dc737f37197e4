"""Random choices of Pareto optimisation from a counter-based generator.

Each number is a hash of (key, iteration, stream, number), so it does not depend on the thread that draws it, or on the
time. Compiled kernels and their plain twins make identical choices, for any number of threads.
"""

from __future__ import annotations

import math

import numpy as np

from exactsel._jit import njit, overload
from exactsel.types import IntArray

_MASK = 2**64 - 1
_GOLDEN, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_GOLDEN_64, _FIRST_64, _SECOND_64 = np.uint64(_GOLDEN), np.uint64(_FIRST), np.uint64(_SECOND)
_S11, _S27, _S30, _S31 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31)


def random_bits(key: int, iteration: int, stream: int, number: int) -> int:
    """53 random bits: the counters absorbed one after the other by the finaliser of splitmix64.

    Reference: G. L. Steele, D. Lea and C. H. Flood, Fast splittable pseudorandom number generators. OOPSLA 2014.
    """
    state = int(key) & _MASK
    for counter in (iteration, stream, number):
        state = (state + _GOLDEN * (int(counter) + 1)) & _MASK
        state = ((state ^ (state >> 30)) * _FIRST) & _MASK
        state = ((state ^ (state >> 27)) * _SECOND) & _MASK
        state ^= state >> 31
    return state >> 11


def _wrapping_bits(key, iteration, stream, number):  # type: ignore[no-untyped-def]
    """The same in wrapping 64-bit arithmetic, which plain numpy scalars refuse to do silently."""
    state = np.uint64(key)
    for counter in (iteration, stream, number):
        state = state + _GOLDEN_64 * np.uint64(counter + 1)
        state = (state ^ (state >> _S30)) * _FIRST_64
        state = (state ^ (state >> _S27)) * _SECOND_64
        state = state ^ (state >> _S31)
    return np.int64(state >> _S11)


# Numba compares the names of the parameters, annotations included.
overload(random_bits)(lambda key, iteration, stream, number: _wrapping_bits)


@njit
def uniform(key: int, iteration: int, stream: int, number: int) -> float:
    """A random number strictly between 0 and 1."""
    return (random_bits(key, iteration, stream, number) + 0.5) * 2.0**-53


@njit
def next_flip(key: int, iteration: int, stream: int, number: int, position: int, rate: float) -> int:
    """The next flipped position after ``position`` (-1 at first): geometric skipping.

    ``rate`` is 1 / log(1 - flip probability), see :func:`skipping_rate`. A result of d or more means that no
    further position is flipped.
    """
    return position + 1 + int(math.log(uniform(key, iteration, stream, number)) * rate)


def skipping_rate(d: int) -> float:
    """1 / log(1 - 1/d); 0 for d = 1, where every position is flipped."""
    return 1.0 / math.log1p(-1.0 / d) if d > 1 else 0.0


def flipped_positions(key: int, iteration: int, stream: int, d: int) -> list[int]:
    """The positions of {0, ..., d - 1} that one mutation flips, each with probability 1/d, ascending."""
    positions: list[int] = []
    position = -1
    while True:
        position = next_flip(key, iteration, stream, len(positions), position, skipping_rate(d))
        if position >= d:
            return positions
        positions.append(position)


@njit(inline=True)
def plan_flips(
    key: int, iteration: int, stream: int, d: int, rate: float, support: IntArray, drops: IntArray, adds: IntArray
) -> tuple[int, int]:
    """The positions one mutation flips, sorted out by what they do to ``support`` (ascending), and how many these are.

    ``drops`` receives places in ``support``, ascending, ``adds`` columns, ascending, as many as fit; there can be more.
    """
    dropped, added, place = 0, 0, 0
    number, position = 0, -1
    while True:
        position = next_flip(key, iteration, stream, number, position, rate)
        number += 1
        if position >= d:
            return dropped, added
        while place < support.size and support[place] < position:
            place += 1
        if place < support.size and support[place] == position:
            drops[dropped] = place
            dropped += 1
        else:
            if added < adds.size:
                adds[added] = position
            added += 1
