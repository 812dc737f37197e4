"""The work that a proof needs, as far as its tree shows, and its limit, for the second checker."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from .domain import Problem
from .file import BY_COUNTING, regions
from .patterns import LEAF, MOST_PLACES, ROWS_A_DIGIT, of_leaves
from .selections import STEPS
from .work import combinations_of

SMALL = 1e7
"""Operations that are always allowed (less than a minute). No check of the test suite takes more than 5e5."""

MARGIN = 10.0
"""How many times what regions take by the formulas is allowed. Honest proofs that the tests make take, where points are
improved, 11 times a region's share of a word, and otherwise less than one."""

SPARE, SPARE_COUNTS = 20, 900
"""Words, and words that count, a proof is taken to have besides."""

FEW, USUAL = 3, 150
"""Columns in sets that each word may have counted, and columns of eliminations that each word may need."""

MOST_SLOW = 1e8
"""What counting may take of it, and improving points (some minutes each)."""


class Asked(NamedTuple):
    """Work that is known before a region is checked; operations on fractions besides."""

    regions: int
    sets: float
    """Sets of columns, or groups, to count."""
    fits: int
    """Regions for which a matrix is eliminated."""
    entries: int
    """Entries of A to read."""
    operations: float

    def __str__(self) -> str:
        return (
            f"{self.regions} regions, {self.fits} fits, {self.sets:.3g} sets to count, {self.entries} entries of A to "
            f"read: {self.operations:.3g} operations on fractions"
        )


def asked(p: dict[str, Any], problem: Problem) -> Asked:
    """The work of a proof about a problem, without that on points which are improved."""
    n, d, units = len(problem.A), len(problem.A[0]), len(problem.groups) or len(problem.A[0])
    width, products = d / units, not problem.loss or problem.loss.by_products
    count, sets, fits, entries = 0, 0.0, 0, 0
    operations, last = (n * d * (d if products else 1)) / 2.0 + 2.0 * n * d, 0
    demands: tuple[Iterable[int], Iterable[int]] = (problem.force_in, problem.force_out)
    for S, C, witness in regions(p["tree"], units, problem.k, *demands, problem.hierarchy):  # type: ignore[arg-type]
        slots = max(0, problem.k - len(S))
        m = width * (len(S) + (len(C) if slots else 0))
        count += 1
        operations += d
        if witness >= 3 and witness != last:
            last, entries = witness, entries + n * d
            operations += 2.0 * n * d
        if witness == BY_COUNTING:
            ways = combinations_of(len(C), min(slots, len(C)))
            sets += ways
            each = (
                of_patterns(n, slots)
                if by_patterns(p, problem)
                else of_set(width, slots)
                if problem.loss
                else of_selection(n, d, len(S) + slots)
            )
            operations += m * m * (1 + width * len(S)) + ways * each
        elif witness == LEAF and problem.loss and problem.loss.by_leaves:
            slots = min(slots, len(C))
            ways = combinations_of(len(C), slots) if slots <= MOST_PLACES else 0.0
            sets += ways
            operations += ways * of_leaves(n, len(S) + slots)
        elif witness < 0 or witness in (1, 2):
            many = len(C) if slots == 1 and witness > 0 else 1
            fits += many
            operations += many * (m**3 / 3 + m * m)
    return Asked(count, sets, fits, entries + n * d, operations)


class Most(NamedTuple):
    """Operations a check does at most."""

    known: float
    """The work that the tree shows to be needed before it is begun."""
    total: float
    """All there may be in the end."""


def default_limits(p: dict[str, Any], problem: Problem) -> Most:
    """What a check does at most unless the caller says otherwise: in proportion to the sizes of proof and problem."""
    n, d, units = len(problem.A), len(problem.A[0]), len(problem.groups) or len(problem.A[0])
    words = len(p["tree"]) + SPARE
    ways = sum(combinations_of(units, r) for r in range(min(problem.k, FEW) + 1))
    sets = min((len(p["tree"]) + SPARE_COUNTS) * ways, combinations_of(units, min(problem.k, units // 2)))
    region = 2.0 * n * d + d * d * (1 + min(d, USUAL) / 3)
    if not problem.loss:
        region += 4.0 * d * d * (n + STEPS * d)
    work = SMALL + MARGIN * (words * region + n * d * d)
    each = of_set(d / units, min(problem.k, FEW)) if problem.loss else of_selection(n, d, problem.k)
    if by_patterns(p, problem):
        sets, each = combinations_of(d, min(problem.k, d)), of_patterns(n, problem.k) / MARGIN
    work += min(MARGIN * sets * each, MOST_SLOW)
    if problem.loss and problem.loss.by_leaves:
        work += min(MARGIN * words * combinations_of(d, min(d, MOST_PLACES)) * of_leaves(n, problem.k), MOST_SLOW)
    return Most(work, work + min(MARGIN * words * 16.0 * n * d * d, MOST_SLOW))


def of_set(width: float, slots: int) -> float:
    """The work of counting a set of groups of that many columns; columns are tested pair by pair, groups set by set."""
    together = width * slots
    return 1 / 8 if width == 1.0 else 2 + together**2 + together**3 / 16


def by_patterns(p: dict[str, Any], problem: Problem) -> bool:
    """Whether sets are counted by their covariate patterns."""
    return problem.loss is not None and problem.loss.pattern_logs is not None and not p["minorant_point"]


def of_patterns(n: int, slots: int) -> float:
    """What a sum over the patterns of so many columns takes: whole numbers with as many bits as there are rows."""
    return 1 + min(n, 2.0 ** max(0, slots - 1)) * (1 + n / ROWS_A_DIGIT)


def of_selection(n: int, d: int, size: int) -> float:
    """What projecting out that many columns takes."""
    return 2.0 * n * d * (size + 1) + d * size**2 + size**3
