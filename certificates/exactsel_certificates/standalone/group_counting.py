"""Counting set by set in whole numbers, for the second checker: is a matrix semidefinite on any r groups of columns,
or on all sets of at most r that are allowed?

Floats look for the unions whose eliminations come too near to zero to be sure of, and whole numbers decide on those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, combinations_with_replacement

from .work import tally

Whole = list[list[int]]

BITS = 60
"""Binary digits behind the point that entries are cut to before they become floats."""


def holds(
    rest: Whole, groups: Sequence[Sequence[int]], r: int, eliminated: Callable[[Whole, int], Whole | None],
    allowed: Callable[[tuple[int, ...]], bool] | None = None,
) -> bool:  # fmt: skip
    """Whether ``rest`` is semidefinite on the rows of any r of the groups; ``eliminated`` decides on one union.

    With ``allowed`` on those of all sets of at most r of the groups that it holds of.
    """
    r = min(r, len(groups))
    square = [rest[i][i] for i in range(len(rest))]
    half = [v.bit_length() // 2 for v in square]
    pairs = combinations_with_replacement(range(len(rest)), 2)
    bad = {(j, i) for j, i in pairs if (square[i] < 0 if i == j else rest[i][j] ** 2 > square[i] * square[j])}
    tally(len(rest) ** 2)
    if bad and r > 1 and allowed is None:
        return False
    sizes = range(r if allowed is None else 0, r + 1)
    for chosen in (chosen for size in sizes for chosen in combinations(range(len(groups)), size)):
        tally(2 if allowed is None else 2 + len(groups) / 8)
        if allowed is not None and not allowed(chosen):
            continue
        union = [i for g in chosen for i in groups[g]]
        tally(len(union) ** 2 + len(union) ** 3 / 16)
        if bad and not bad.isdisjoint(combinations_with_replacement(sorted(union), 2)):
            return False
        # What is left of a column of square zero is nothing.
        union = [i for i in union if square[i] > 0]
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
