"""The test that no model on some columns costs less than a level, in whole numbers, for the second checker.

With T = 2 (c - level) > 0 that is so if and only if T (G + ridge) - b b' is positive semidefinite on them. One
elimination without fractions (Bareiss) takes S off a region; then floats look for sets of columns whose determinants
are too small to be sure of, and whole numbers decide on those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction as F
from itertools import combinations, combinations_with_replacement

from .algebra import Matrix, Whole, root, whole
from .demands import Demands
from .regression import Regression
from .strong import StrongColumns
from .work import tally

BITS = 60
"""Binary digits behind the point that entries are cut to before they become floats."""


def least_squares(r: Regression, level: F) -> Matrix:
    """The matrix that is to be semidefinite on some columns, by inner products; none where it says nothing."""
    d, T = range(len(r.b)), 2 * (r.c - level)
    if not r.loss.by_products or T <= 0:
        return []
    return [[r.G[i][j] + (r.ridge[i] if i == j else 0) - r.b[i] * r.b[j] / T for j in d] for i in d]


class Semidefinite:
    """Bound to one problem and one matrix Q."""

    def __init__(
        self, r: Regression, Q: Matrix, demands: Demands | None = None, strong: StrongColumns | None = None
    ) -> None:
        """``demands`` say which sets of columns may be chosen, if not all may; ``strong`` describes strong columns."""
        self.demands, self.strong = demands, strong
        self.k, self.squares, self.Q = r.k, r.squares, Q
        self.groups, self.single = r.groups, all(len(group) == 1 for group in r.groups)
        # With lam = 0 they change no model's value.
        self.zeros = {j for j in range(len(r.b)) if r.G[j][j] + r.ridge[j] == 0}

    def on_all(self, S: set[int], C: set[int]) -> bool:
        """Whether no model on all columns of a region costs less than the level."""
        used = [j for g in sorted(S | C if len(S) < self.k else S) for j in self.groups[g]]
        return bool(self.Q) and eliminated(whole([[self.Q[i][j] for j in used] for i in used]), len(used)) is not None

    def counted(self, S: set[int], C: set[int]) -> bool:
        """Whether no model of the region (S, C) costs less than the level, by counting them."""
        r = max(0, self.k - len(S))
        if not self.Q:
            return False
        if not self.single:
            return self._set_by_set(S, C, r)
        return self._all_counted(S, C, r) or (self.demands is not None and self._set_by_set(S, C, r))

    def _all_counted(self, S: set[int], C: set[int], r: int) -> bool:
        """The same by all sets of columns."""
        used = [*sorted(S), *(sorted(C) if r else [])]
        rest = eliminated(whole([[self.Q[i][j] for j in used] for i in used]), len(S))
        if rest is None:
            return False
        if r == 0:
            return True
        square = [rest[i][i] for i in range(len(rest))]
        if any(v < 0 for v in square):
            return False
        if r > 1 and any(v * v > square[i] * square[j] for i, row in enumerate(rest) for j, v in enumerate(row)):
            return False
        # What is left of a column of square zero is nothing, or goes with no other.
        support = [i for i, v in enumerate(square) if v > 0] if r > 2 else []
        rest = [[rest[i][j] for j in support] for i in support]
        return all(
            eliminated([[rest[i][j] for j in chosen] for i in chosen], len(chosen)) is not None
            for chosen in doubtful(rest, min(r, len(rest)))
        )

    def _set_by_set(self, S: set[int], C: set[int], r: int) -> bool:
        """The same where S and C are groups, or by the sets of columns that are allowed."""
        included, free = [j for g in sorted(S) for j in self.groups[g]], [self.groups[g] for g in sorted(C) if r]
        used = [*included, *(j for group in free for j in group)]
        rest = eliminated(whole([[self.Q[i][j] for j in used] for i in used]), len(included))
        at = {j: i for i, j in enumerate(used[len(included) :])}
        if rest is None:
            return False
        units, count = sorted(C), len(self.groups)

        def allowed(chosen: tuple[int, ...]) -> bool:
            held = S | {units[g] for g in chosen}
            return self.demands is None or self.demands.allows(held, {*range(count)} - held, count, self.k)

        groups, some = [[at[j] for j in group] for group in free], self.demands is not None and self.single
        return holds(rest, groups, r, allowed if some else None)

    def split(self, S: set[int], C: set[int], split: tuple[Sequence[int], Sequence[float], Sequence[float]]) -> bool:
        """The same by Q - E (FORMAT.md, SPLIT); ``split`` holds the columns, the scale and the entries of N."""
        r = max(0, self.k - len(S))
        if not self.Q or not self.single:
            return False
        C = C - self.zeros if r else set()
        used = [*sorted(S), *sorted(C)]
        E = taken(r + len(S & {*split[0]}), S | C, split, self.squares)
        M = [[self.Q[i][j] - E.get((i, j), F(0)) for j in used] for i in used]
        return eliminated(whole(M), len(used)) is not None


def taken(
    r: int, used: set[int], split: tuple[Sequence[int], Sequence[float], Sequence[float]], squares: Sequence[F]
) -> dict[tuple[int, int], F]:
    """The entries of E on the columns used, with r places for those the split holds, in S or not.

    Any positive scale would do, so its roots are near ones.
    """
    columns, scale, entries = split
    pairs = zip(((i, j) for i in range(len(columns)) for j in range(i)), map(F, entries), strict=True)
    N = {(columns[i], columns[j]): v for (i, j), v in pairs if {columns[i], columns[j]} <= used}
    N |= {(j, i): v for (i, j), v in N.items()}
    s = {j: F(v) * root(squares[j], above=True) for j, v in zip(columns, scale, strict=True) if j in used}
    E = {(i, j): s[i] * s[j] * v for (i, j), v in N.items()}
    for i in s:
        sizes = sorted((abs(v) for (row, _), v in N.items() if row == i), reverse=True)
        E[i, i] = s[i] * s[i] * sum(sizes[: max(0, r - 1)], F(0))
    return E


def eliminated(M: Whole, first: int) -> Whole | None:
    """What the first columns of a symmetric matrix leave of the others, times a positive number; None where these, or
    they and another one, are not semidefinite.
    """
    rows, last = [row[:] for row in M], 1
    for i in range(first):
        pivot, row = rows[i][i], rows[i]
        if pivot == 0 and not any(row[i + 1 :]):
            continue
        if pivot <= 0:
            return None
        for l in range(i + 1, len(rows)):
            factor = row[l]
            rows[l] = [0] * (i + 1) + [
                (pivot * v - factor * w) // last for v, w in zip(rows[l][i + 1 :], row[i + 1 :], strict=True)
            ]
        tally((len(rows) - i) ** 2, pivot.bit_length())
        last = pivot
    return [row[first:] for row in rows[first:]]


def doubtful(M: Whole, r: int) -> Iterator[tuple[int, ...]]:
    """The sets of at most r columns of M that floats do not show to be positive definite.

    The diagonal is positive, and all pairs are semidefinite. So entries that are scaled are at most 2, and right to
    2^-51; eliminations of r columns may be off by some 4 r + 16 roundings more.
    """
    h = [row[i].bit_length() // 2 for i, row in enumerate(M)]
    floats = [[scaled(v, BITS - h[i] - h[j]) for j, v in enumerate(row[: i + 1])] for i, row in enumerate(M)]
    room = r * (r + 8) * 2.0**-49
    return unproven([row[:-1] for row in floats], [row[-1] - room for row in floats], r)


def unproven(M: list[list[float]], diagonal: list[float], r: int) -> Iterator[tuple[int, ...]]:
    """The same for a matrix given below its diagonal, and that: one column eliminated at a time, down to pairs."""
    for i, pivot in enumerate(diagonal) if r > 0 else ():
        tally(1 + i * (i if r > 2 else 1) / 8)
        row = M[i]
        if not pivot > 0:
            yield from ((*rest, i) for size in range(r) for rest in combinations(range(i), size))
        elif r == 2:
            yield from ((j, i) for j, (v, w) in enumerate(zip(row, diagonal, strict=False)) if not v * v < pivot * w)
        elif r > 2:
            factors = [v / pivot for v in row]
            pivots = [w - f * v for w, f, v in zip(diagonal, factors, row, strict=False)]
            below = [[v - f * w for v, w in zip(M[l], row, strict=False)] for l, f in enumerate(factors)]
            yield from ((*chosen, i) for chosen in unproven(below, pivots, r - 1))


def holds(
    rest: Whole, groups: Sequence[Sequence[int]], r: int, allowed: Callable[[tuple[int, ...]], bool] | None = None
) -> bool:
    """Whether ``rest`` is semidefinite on the rows of any r of the groups.

    With ``allowed`` on those of all sets of at most r of the groups that it holds of. Floats look for the unions whose
    eliminations come too near to zero to be sure of, and whole numbers decide on those.
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
