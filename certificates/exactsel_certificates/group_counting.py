"""Counting over groups: does no model on S and any r groups of C cost less than a level, by eliminations in doubles?

As semidefinite.py has it, that is so where Q - mu I is positive semidefinite on S and the columns of any r groups, mu
for as many columns as these can have. S is eliminated first, which leaves M. What is left to be shown is that M, these
very doubles, is semidefinite on every union of r groups (were it eliminated further, that would only add to what mu
covers). Most unions pass by norms: with any invertible B_g, X_gh = B_g M_gh B_h' and x_g = B_g' z_g

    x'Mx  >=  sum (1 - e_g) |z_g|^2 - 2 sum f_gh |z_g| |z_h|,    e_g >= |X_gg - I|,  f_gh >= |X_gh|  (Frobenius),

where f includes what rounding does to the products, gamma(2m) |B_g| |M_gh| |B_h|. So it is enough that the matrix with
1 on the diagonal and -f_gh / ((1 - e_g) (1 - e_h))^1/2 elsewhere is semidefinite on every r rows. Unions of which that
is not shown are eliminated one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from exactsel_certificates.counting import how_many
from exactsel_certificates.formula import FloatArray
from exactsel_certificates.rigorous import States, each_runs, gamma
from exactsel_certificates.semidefinite import MOST_ENTRIES, Masks, Semidefinite
from exactsel_certificates.walk import FREE, IN
from exactsel_certificates.work import STEP, of_counting, of_fits, refuse, spend

SHORT = 1e-9
"""Part by which norms must fall short of what is enough, far above rounding in numbers of size 1."""

BY_NORMS_UP_TO = 3
"""Groups in sets that are tested by their norms."""

AT_ONCE = 4096
"""Unions eliminated together: where one fails all are done again."""


class GroupCounting:
    """Bound to one problem of groups and one level."""

    def __init__(self, columns: Semidefinite, groups: Sequence[Sequence[int]]) -> None:
        self._all, self.usable = columns, columns.usable
        if self.usable:
            at = np.empty(len(columns.order), dtype=np.intp)
            at[columns.order] = np.arange(len(at))
            self._groups = [at[np.asarray(group, dtype=np.intp)] for group in groups]

    def counted(self, states: States, k: int) -> Masks:
        """For regions (B, groups): whether none of their models costs less than the level, by counting all of them."""
        result = np.zeros(len(states), dtype=np.bool_)
        for row, state in enumerate(states if self.usable else ()):
            free, slots = int(np.sum(state == FREE)), max(0, k - int(np.sum(state == IN)))
            sets = how_many(free, slots)
            if self._all.counted_sets + sets > self._all.most:
                refuse()
                continue
            spend(of_counting(int(np.sum(state == IN)), free, slots))
            self._all.counted_sets += sets
            result[row] = next(self._unproven(state, k), None) is None
        return result

    def may_count(self, state: NDArray[np.uint8], k: int) -> bool:
        """As for columns."""
        return self._all.may_count(state, k)

    def undecided(self, state: NDArray[np.uint8], k: int) -> Iterator[list[int]]:
        """The sets of columns of a region that counting does not show to hold nothing below the level."""
        for positions in self._unproven(state, k):
            yield sorted(self._all.order[positions].tolist())

    def _unproven(self, state: NDArray[np.uint8], k: int) -> Iterator[list[int]]:
        """The same as positions in Q."""
        included = self._distinct([self._groups[g] for g in np.flatnonzero(state == IN)], [])
        slots = max(0, k - int(np.sum(state == IN)))
        free = [self._groups[g] for g in np.flatnonzero(state == FREE)] if slots else []
        groups = [np.array(columns, dtype=np.intp) for g in free if (columns := self._distinct([g], included))]
        r = min(slots, len(groups))
        M = self._left(included, groups, r)
        if M is None:
            # Nothing else to say: every set is, for all that is known, below the level.
            yield from (
                [*included, *np.concatenate(chosen)] if chosen else included for chosen in combinations(groups, r)
            )
            return
        ends = np.cumsum([0, *map(len, groups)])
        doubtful = _doubtful(M, ends, r) if 0 < r <= BY_NORMS_UP_TO else combinations(range(len(groups)), r)
        for chosen in _not_run(M, ends, doubtful if r else ()):
            yield [*included, *(int(j) for g in chosen for j in groups[g])]

    def _distinct(self, groups: Sequence[NDArray[np.intp]], others: Sequence[int]) -> list[int]:
        """The columns of some groups, one of each direction, and none of that of another column or of none."""
        directions, columns = {-1, *self._all.alike[list(others)].tolist()}, []
        for j in (int(j) for group in groups for j in group):
            if int(self._all.alike[j]) not in directions:
                directions.add(int(self._all.alike[j]))
                columns.append(j)
        return columns

    def _left(self, included: Sequence[int], groups: Sequence[NDArray[np.intp]], r: int) -> FloatArray | None:
        """What Q - mu I leaves of the groups' columns where those inside are eliminated; None where it is no good."""
        s = len(included)
        widest = sum(sorted(map(len, groups), reverse=True)[:r])
        used = np.concatenate([np.array(included, dtype=np.intp), *groups]).astype(np.intp)
        spend((s + 8.0) * len(used) ** 2 + 4.0 * float(len(used)) ** 3)
        M = self._all.Q[np.ix_(used, used)]
        M[range(len(used)), range(len(used))] -= self._all.room(s + widest)
        with np.errstate(all="ignore"):
            for i in range(s):
                if not M[i, i] > 0:
                    return None
                M[i + 1 :, i + 1 :] -= np.multiply.outer(M[i, i + 1 :] / M[i, i], M[i, i + 1 :])
        M = np.triu(M[s:, s:])
        return M + np.triu(M, 1).T


def _norms(M: FloatArray, ends: NDArray[np.intp]) -> FloatArray:
    """The f of this file's head, scaled, for all pairs of groups; inf for groups that are not positive definite."""
    m, starts = len(M), ends[:-1]
    B, sound = np.eye(m), np.ones(len(starts), dtype=np.bool_)
    for g, (first, end) in enumerate(zip(starts, ends[1:], strict=True)):
        try:
            B[first:end, first:end] = np.linalg.inv(np.linalg.cholesky(M[first:end, first:end]))
        except np.linalg.LinAlgError:
            sound[g] = False
    with np.errstate(all="ignore"):
        X = B @ M @ B.T
        X[range(m), range(m)] -= 1.0

        def of_blocks(squares: FloatArray) -> FloatArray:
            sums = np.add.reduceat(np.add.reduceat(squares, starts, axis=0), starts, axis=1)
            return np.asarray(np.sqrt(sums) * (1.0 + SHORT))

        size = np.sqrt(np.add.reduceat(np.sum(B * B, axis=1), starts)) * (1.0 + SHORT)
        f = of_blocks(X * X) + gamma(2 * m + 16) * of_blocks(M * M) * np.multiply.outer(size, size)
        gaps = 1.0 - np.diagonal(f)
        f = f / np.sqrt(np.multiply.outer(gaps, gaps)) * (1.0 + SHORT)
        # A diagonal block is any one that its inverse factor makes nearly one.
        good = np.isfinite(f) & np.multiply.outer(sound & (gaps > 0.5), sound & (gaps > 0.5))
    return np.where(good, f, np.inf)


def _doubtful(M: FloatArray, ends: NDArray[np.intp], r: int) -> Iterator[tuple[int, ...]]:
    """The sets of r (1 to 3) groups that norms do not show to be semidefinite."""
    f = _norms(M, ends)
    if r == 1:
        yield from ((int(g),) for g in np.flatnonzero(~np.isfinite(np.diagonal(f))))
        return
    for g in range(r - 1, len(f)):
        if r == 2:
            yield from ((g, int(h)) for h in np.flatnonzero(~(f[g, :g] < 1.0 - SHORT)))
            continue
        with np.errstate(all="ignore"):
            row = f[g, :g]
            gaps = 1.0 - SHORT - row * row
            most = f[:g, :g] + np.multiply.outer(row, row)
            passed = (most * most < np.multiply.outer(gaps, gaps) * (1.0 - SHORT)) & (gaps > 0) & (gaps > 0)[:, None]
        for h, l in zip(*np.nonzero(np.tril(~passed, -1)), strict=True):
            yield g, int(h), int(l)


def _not_run(M: FloatArray, ends: NDArray[np.intp], sets: Iterable[tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
    """Those sets of groups on whose columns an elimination of M does not run to its end."""
    widths = np.diff(ends)
    # The last row is that of columns no model has.
    padded = np.zeros((len(M) + 1, len(M) + 1))
    padded[:-1, :-1] = M
    waiting: list[tuple[int, ...]] = []
    most = 1

    def run() -> Iterator[tuple[int, ...]]:
        width = max(sum(int(widths[g]) for g in chosen) for chosen in waiting)
        spend(of_fits(len(waiting), width) + 4.0 * STEP * len(waiting))
        table = np.full((len(waiting), width), len(M), dtype=np.intp)
        for row, chosen in zip(table, waiting, strict=True):
            used = [j for g in chosen for j in range(ends[g], ends[g + 1])]
            row[: len(used)] = used
        stack = padded[table[:, :, None], table[:, None, :]]
        stack[:, range(width), range(width)] += table == len(M)
        yield from (chosen for chosen, passed in zip(waiting, each_runs(stack), strict=True) if not passed)

    for chosen in sets:
        most = max(most, sum(int(widths[g]) for g in chosen))
        waiting.append(chosen)
        if len(waiting) >= min(AT_ONCE, math.ceil(MOST_ENTRIES / most**2)):
            yield from run()
            waiting = []
    if waiting:
        yield from run()
