"""The work that a proof needs, as far as its tree shows before a region is checked, and the work that a check may take.

How many regions there are, by what each is closed and how many sets each leaves is a walk of the words. The additional
work of exact arithmetic shows only as regions are checked, and is counted then (work.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np

from exactsel_certificates.container import EIGENVALUES, FIRST_POINT, FIRST_STRONG, FIT, INFIMUM, Proof
from exactsel_certificates.formula import ColumnInstance, Instance
from exactsel_certificates.group_counting import BY_NORMS_UP_TO
from exactsel_certificates.leaf_regions import MOST_PLACES
from exactsel_certificates.losses.base import LEAVES
from exactsel_certificates.patterns import MOST_ENTRIES, by_patterns
from exactsel_certificates.walk import BY_COUNTING, LEAF_CLOSED, first_region, region_sizes
from exactsel_certificates.work import (
    EXACT,
    STEP,
    of_counting,
    of_fits,
    of_leaves,
    of_pairs,
    of_patterns,
    of_points,
    of_selections,
    sets_of,
)

AnyInstance: TypeAlias = Instance | ColumnInstance

SMALL = 2e11
"""Operations that are always allowed, less than a minute. Nearly dependent columns without a ridge take most, all in
exact arithmetic: up to 1.5e10 for an honest proof on 14 x 10 numbers. Of others the costliest small proof of the tests
takes 1.8e8, of a claim at the edge of what is true on 11 x 6 numbers."""

MARGIN = 10.0
"""How many times more is allowed than honest proofs take. Of those measured (the test suite; benchmarks/proofs honest;
diabetes, sonar, german.numer, svmguide3) none takes more than 1.5 (n d + d^2) operations a word, which is 68 times less
than the limit. Those in exact arithmetic take less than one exact fit for each word and each of SPARE_WORDS. Of the
proofs of the test suite none takes a thousandth of the total."""

SPARE_WORDS = 100
"""Words a proof is taken to have besides, for proofs of few regions."""

USUAL_COLUMNS = 150.0
"""Regions of many columns are bounded at points, not by fits, splits or a minorant, which take cubes of columns."""

FEW, SPARE_COUNTS = 3, 900
"""Words may have that many columns counted in each set. A proof of a single region that has all sets of four columns of
a wide table counted takes 22 times less than is allowed for 450 columns, 11 times less for 1000, and one that has all
sets of three of 4088 columns counted 79 times less."""

OF_UNION = 1000.0
"""Sets of groups are eliminated one by one."""

MOST_PATTERNS = 2e11
"""What sums over the covariate patterns of all sets may take of it, beside what is always allowed."""

MOST_SETS, MOST_EXACT = 1e12, 1e12
"""What counting may take of it (some minutes where it is compiled), and exact arithmetic (about ten minutes)."""


class Estimate(NamedTuple):
    """Work that is known of before a check begins."""

    regions: int
    """Closed regions to evaluate."""
    sets: float
    """Sets of columns (groups) to count."""
    fits: int
    """Regions for which a fit, a split or the minorant has to be worked out."""
    entries: float
    """Entries of A to read."""
    operations: float
    """All together, in elementary operations, without what exact arithmetic adds."""

    def with_more(self, entries: float, operations: float) -> Estimate:
        """The same with entries to read, and operations, besides."""
        return self._replace(entries=self.entries + entries, operations=self.operations + operations)

    def __str__(self) -> str:
        return (
            f"{self.regions} regions, {self.fits} of them by fits, {self.sets:.3g} sets to count, {self.entries:.3g} "
            f"entries of A to read: {self.operations:.3g} elementary operations"
        )


class _Closed(NamedTuple):
    """By what a region is closed, and how many of its units are in and free."""

    witness: int
    included: int
    free: int


def estimate(proof: Proof, instance: AnyInstance) -> Estimate:
    """The work that the tree of a proof about this problem needs; :class:`MalformedError` where it is none."""
    n, d = instance.A.shape
    k = instance.k
    regression = isinstance(instance, Instance)
    patterns = isinstance(instance, Instance) and by_patterns(proof, instance)
    width = d / max(1, instance.units) if isinstance(instance, Instance) else 1.0
    split = float(np.max(proof.split_size, initial=0))
    regions, changes, closed = _closed(proof, instance)
    sets, fits, entries, operations = 0.0, 0, 1.0 * n * d, 0.0
    square = bool(proof.curvature.size)
    by_strong = any(witness == ~FIRST_STRONG for witness, _, _ in closed)
    strong = float(np.max(proof.point_size, initial=0)) if by_strong else 0.0
    operations += 2.0 * (n + strong + 16.0) * d * d if by_strong else 0.0
    for (witness, included, free), count in closed.items():
        if witness == ~FIRST_STRONG:
            operations += count * (8.0 * strong * (strong + 2.0) + 2.0 * n * (strong + 1.0)) * d
            continue
        slots = max(0, k - included)
        s, used = int(width * included), int(width * (included + (free if slots else 0)))
        if witness == BY_COUNTING and not regression:
            sets += count * sets_of(free, slots)
            operations += count * of_pairs(included, free, slots, n, d)
            continue
        if witness == BY_COUNTING and patterns:
            sets += count * sets_of(free, slots)
            operations += count * of_patterns(n, free, min(free, slots))
            continue
        if witness == BY_COUNTING or (witness == FIT and regression and slots == 1):
            sets += count * sets_of(free, slots)
            operations += count * of_counting(s, int(width * free), slots)
            if width > 1.0 and slots > BY_NORMS_UP_TO:
                operations += count * sets_of(free, slots) * (of_fits(1, int(width * (slots + 1))) + 4.0 * STEP)
        elif witness == LEAF_CLOSED:
            slots = min(slots, free)
            sets += count * sets_of(free, slots) if slots <= MOST_PLACES else 0.0
            operations += count * (4.0 * n * d + of_leaves(n, included, free, slots)) if slots <= MOST_PLACES else 0.0
            continue
        elif witness == FIT or witness < 0:
            fits += count
            entries += count * float(n) * d if witness == FIT else 0.0
            operations += of_fits(count, used) + (of_points(count, count, n, d) if witness == FIT else 0.0)
            operations += 0.0 if witness == FIT else 64.0 * count * split * split
        elif witness == EIGENVALUES and not regression:
            fits += count
            entries += count * float(n) * d
            operations += of_selections(count, n, d)
            continue
        elif witness >= FIRST_POINT:
            operations += of_points(0, count, n, d)
            continue
        square = square or witness < FIRST_POINT
    entries += changes * float(n) * d
    operations += of_points(changes, 0, n, d) + 2.0 * regions * (STEP + 16.0 * d) + 8.0 * n * d
    operations += 1.0 * n * d * d if square else 0.0
    operations += of_fits(1, d) + (n + 2.0 * changes) * d * d if proof.curvature_split.size else 0.0
    operations += len(proof.minorant_point) * 4.0 * (n * float(d) ** 2 + float(d) ** 3)
    return Estimate(regions, sets, fits, entries, operations)


def _closed(proof: Proof, instance: AnyInstance) -> tuple[int, int, Counter[_Closed]]:
    """How many regions there are, how often the point changes, and how many regions there are of each kind."""
    closed, changes, last = Counter[_Closed](), 0, INFIMUM
    leaves = isinstance(instance, Instance) and LEAVES in instance.formulas.serves
    for witness, included, free in _regions(proof, instance):
        if FIRST_POINT <= witness != last:
            changes, last = changes + 1, witness
        by_strong = BY_COUNTING < witness <= ~FIRST_STRONG
        itself = witness == BY_COUNTING or (witness == LEAF_CLOSED and leaves)
        kind = witness if itself else min(max(witness, ~FIRST_STRONG if by_strong else ~0), FIRST_POINT)
        closed[_Closed(kind, included, free)] += 1
    return sum(closed.values()), changes, closed


def _regions(proof: Proof, instance: AnyInstance) -> Iterator[tuple[int, int, int]]:
    """Of every region the tree closes the witness, and how many units are in and free."""
    if not isinstance(instance, Instance):
        return region_sizes(proof.tree, first_region(instance.A.shape[1]), instance.k)
    root = first_region(instance.units, instance.force_in, instance.force_out)
    implied = None if instance.hierarchy is None else instance.hierarchy.rule(instance.k).implied
    return region_sizes(proof.tree, root, instance.k, implied)


class WorkLimits(NamedTuple):
    """Elementary operations a check takes at most."""

    known: float
    """The work that the tree shows to be needed before the check begins."""
    total: float
    """All there may be in the end, exact arithmetic included."""


def default_limits(proof: Proof, instance: AnyInstance) -> WorkLimits:
    """What a check takes at most, unless the caller says otherwise.

    These are in proportion to the sizes of the proof and of the problem, for any content of the proof: for each word of
    the tree a region evaluated in doubles and one in exact arithmetic, sets that a word may have counted, and what is
    made of the whole table once.
    """
    n, d = (float(size) for size in instance.A.shape)
    words, k = len(proof.tree) + SPARE_WORDS, float(instance.k)
    if isinstance(instance, ColumnInstance):
        dense, exact = of_selections(1, int(n), int(d)) + 4.0 * n * d * d, 2.0 * d**3
        few = sets_of(int(d), min(instance.k, FEW))
        sets = (n + d) * min(sets_of(int(d), instance.k), (words + SPARE_COUNTS) * few)
    else:
        dense, exact = n * d + d * d * min(d, USUAL_COLUMNS) / 3.0, 4.0 * n * d + 8.0 * n * (k + 1) ** 2 + (k + 4) ** 4
        few = sets_of(instance.units, min(instance.k, FEW))
        sets = min(sets_of(instance.units, instance.k), (words + SPARE_COUNTS) * few)
        sets *= OF_UNION if instance.groups else 1.0
    table = 2.0 * n * d * d
    table += 32.0 * (n + d) * d * min(d, USUAL_COLUMNS) if proof.minorant_point.size else 0.0
    table += 40.0 * n * d * d if proof.limit_point.size else 0.0
    if isinstance(instance, Instance) and LEAVES in instance.formulas.serves:
        dense += of_leaves(int(n), int(k), d, MOST_PLACES) / MARGIN
    if isinstance(instance, Instance) and by_patterns(proof, instance):
        table += min(of_patterns(int(n), int(d), instance.k), MOST_PATTERNS) / MARGIN
    work = SMALL + MARGIN * (words * dense + table) + min(MARGIN * sets, MOST_SETS)
    return WorkLimits(work, work + min(MARGIN * words * EXACT * exact, MOST_EXACT))


def countable(n: int, cells: int, m: int, r: int) -> bool:
    """Whether a check sums, by default, over the patterns of all sets of r of m columns.

    Others divide the n rows into so many ``cells``.
    """
    room = 2.0 * min(n, 2.0 ** (r - 2) * cells) * m * m <= MOST_ENTRIES
    return room and of_patterns(n, m, r) <= SMALL + MOST_PATTERNS
