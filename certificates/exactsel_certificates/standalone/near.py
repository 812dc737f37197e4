"""Columns that others make up for, in claims about bounded models, for the second checker (FORMAT.md, Near columns)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction as F
from itertools import combinations
from typing import Any

from .algebra import semidefinite, solve, whole
from .counting import Semidefinite, eliminated, least_squares
from .file import BY_COUNTING, point, split
from .regression import RADIUS, Regression
from .work import combinations_of, leave_undone

FARTHEST = F(1, 10**14)
"""Distances of columns, in their lengths, that are neglected; ..."""

DISTANCES = (F(1, 10**15), FARTHEST)
"""... the fewer of them, the less is to be proven besides."""

MOST_SETS = 20_000
"""Sets of columns that are tested one by one."""


class NearColumns:
    """Bound to one problem, a claim about bounded models, the curvature of the file and what is neglected."""

    def __init__(self, r: Regression, claim: F, D: Sequence[F], farthest: F = FARTHEST) -> None:
        if r.lam != 0:
            raise ValueError("near columns may be left out where there is no ridge only.")
        self.r, self.D, self.farthest = r, D, farthest
        self.level = claim + r.k * farthest * RADIUS * 2 * r.c
        self.counts = Semidefinite(r, least_squares(r, self.level))
        self.M = r.left(D) if D else []

    def closes(self, S: set[int], C: set[int], witness: int, p: dict[str, Any]) -> bool:
        """Whether a witness of the file closes a region."""
        if witness == BY_COUNTING:
            return self.counted(S, C)
        if witness < 0:
            return ~witness + 1 < len(p["splits"]) and self.counts.split(*self._without(S, C), split(p, ~witness))
        if witness == 1:
            return self.at(S, C, None)
        number, dual = divmod(witness - 3, 2)
        has_point = witness >= 3 and not dual and number < len(p["points"]) - 1
        return has_point and self.at(S, C, self.r.given(point(p, number)))

    def counted(self, S: set[int], C: set[int]) -> bool:
        """Whether counting closes a region.

        Once columns were removed from it, those of S may have taken over their coefficients, which are then not bounded
        any more: of single sets only columns of C are removed then.
        """
        slots = min(len(C), max(0, self.r.k - len(S)))
        basis, rest = self._without(S, C)
        alone = basis == S and (rest == C or len(S) >= self.r.k)
        S, C = basis, rest
        slots = min(slots, len(C))
        if not self.counts.Q:
            return False
        if combinations_of(len(C), slots) > MOST_SETS:
            leave_undone()
            return False
        sets = combinations(sorted(C), slots)
        return all(self._holds(self._independent([*S, *T], [*S, *T] if alone else T)) for T in sets)

    def at(self, S: set[int], C: set[int], x: dict[int, F] | None) -> bool:
        """Whether formula (3) closes a region, at a point for the data as given or, without one, at the fit."""
        S, C = self._without(S, C)
        used = sorted(S | C | {*(x or {})})
        if not self.D or not semidefinite([[self.M[i][j] for j in used] for i in used]):
            return False
        if x is None:
            return self.r.at_fit(S, C, [self.D], bounded=False) >= self.level
        return self.r.least(S, C, self.r.curved(x, self.D)) >= self.level

    def _holds(self, columns: list[int]) -> bool:
        Q = self.counts.Q
        return eliminated(whole([[Q[i][j] for j in columns] for i in columns]), len(columns)) is not None

    def _without(self, S: set[int], C: set[int]) -> tuple[set[int], set[int]]:
        """A region without the columns that S makes up for; nothing is left of C where it has no places."""
        basis = self._independent(S, S)
        return {*basis}, {j for j in C if not self._near(basis, j)} if len(S) < self.r.k else set()

    def _independent(self, columns: Collection[int], may_go: Collection[int]) -> list[int]:
        """Columns without those of ``may_go`` that the others make up for, each of them by itself."""
        every = sorted(columns)
        basis, left_out = every[:], list[int]()
        for j in sorted(may_go):
            others = [i for i in basis if i != j]
            if self._near(others, j):
                basis, left_out = others, [*left_out, j]
        return basis if all(self._near(basis, j) for j in left_out) else every

    def _near(self, others: list[int], j: int) -> bool:
        """Whether a column is as near to the span of others as may be neglected."""
        G = self.r.G
        side = [G[i][j] for i in others]
        (x,), _ = solve([[G[i][l] for l in others] for i in others], [side])
        residual = G[j][j] - sum((a * b for a, b in zip(x, side, strict=True)), F(0))
        return bool(others) and residual <= self.farthest**2 * G[j][j]
