"""Counting over groups in whole numbers, for the second checker: is a matrix semidefinite on any r groups of columns?

Floats look for the unions whose eliminations come too near to zero to be sure of, and whole numbers decide on those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

from .work import tally

Whole = list[list[int]]

BITS = 60
"""Binary digits behind the point that entries are cut to before they become floats."""


def holds(
    rest: Whole, groups: Sequence[Sequence[int]], r: int, eliminated: Callable[[Whole, int], Whole | None]
) -> bool:
    """Whether ``rest`` is semidefinite on the rows of any r of the groups; ``eliminated`` decides on one union."""
    r = min(r, len(groups))
    square = [rest[i][i] for i in range(len(rest))]
    if r > 0 and any(v < 0 for v in square):
        return False
    tally(len(rest) ** 2)
    owner = {i: g for g, group in enumerate(groups) for i in group}
    for i in range(len(rest)):
        for j in range(i):
            met = r > 1 or (r == 1 and owner[i] == owner[j])
            if met and rest[i][j] ** 2 > square[i] * square[j]:
                return False
    # What is left of a column of square zero is nothing in every union it is in.
    kept = [[i for i in group if square[i] > 0] for group in groups]
    half = [v.bit_length() // 2 for v in square]
    for chosen in combinations(range(len(groups)), r):
        union = [i for g in chosen for i in kept[g]]
        tally(2 + len(union) ** 2 + len(union) ** 3 / 16)
        if (
            not surely(
                [[scaled(rest[i][j], BITS - half[i] - half[j]) for j in union[: n + 1]] for n, i in enumerate(union)]
            )
            and eliminated([[rest[i][j] for j in union] for i in union], len(union)) is None
        ):
            return False
    return True


def scaled(value: int, bits: int) -> float:
    """About value * 2^bits / 2^BITS: at most 2 for the entries of a semidefinite matrix of this scale."""
    return float((value << bits if bits >= 0 else value >> -bits) / 2**BITS)


def surely(M: list[list[float]]) -> bool:
    """Whether an elimination in floats of the lower triangle M shows it to be positive definite.

    Entries are at most 2, and right to 2^-51; an elimination of m rows may be off by some 4 m + 16 roundings more.
    """
    m = len(M)
    room = m * (m + 8) * 2.0**-49
    for i in range(m):
        M[i][i] -= room
    for i in range(m):
        pivot = M[i][i]
        if not pivot > 0:
            return False
        for l in range(i + 1, m):
            factor = M[l][i] / pivot
            for j in range(i + 1, l + 1):
                M[l][j] -= factor * M[j][i]
    return True
