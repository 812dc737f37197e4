"""Exact bounds for column subset selection, for the second checker."""

from __future__ import annotations

from fractions import Fraction as F
from itertools import combinations

from .algebra import Matrix, dot, near, positives, solve

STEPS = 44
"""Binary digits an eigenvalue is found to."""


class Selections:
    """Exact bounds for column subset selection."""

    def __init__(self, A: list[list[float]], k: int) -> None:
        self.columns = [[F(row[j]) for row in A] for j in range(len(A[0]))]
        self.k = k

    def left(self, S: set[int]) -> Matrix:
        """The columns of A less their projection on the span of S."""
        chosen = [self.columns[j] for j in sorted(S)]
        sides = [[dot(a, column) for a in chosen] for column in self.columns]
        answers, _ = solve([[dot(a, b) for b in chosen] for a in chosen], sides)
        return [
            [v - sum((x * a[i] for x, a in zip(answer, chosen, strict=True)), F(0)) for i, v in enumerate(column)]
            for column, answer in zip(self.columns, answers, strict=True)
        ]

    def objective(self, S: set[int]) -> F:
        """||A - S S+ A||_F^2."""
        return sum((dot(e, e) for e in self.left(S)), F(0))

    def counted(self, S: set[int], C: set[int]) -> F:
        """The least any selection of the region costs, each looked at by itself: more columns never cost more."""
        slots = self.k - len(S)
        if slots <= 1 or len(C) <= slots:
            return self.bound(S, C)
        return min(self.objective(S | {*more}) for more in combinations(sorted(C), slots))

    def bound(self, S: set[int], C: set[int]) -> F:
        """What no selection of the region is below."""
        slots = self.k - len(S)
        if slots <= 0 or len(C) <= slots:
            return self.objective(S if slots <= 0 else S | C)
        if slots == 1:
            return min(self.objective(S | {j}) for j in C)
        E = self.left(S)
        chosen = [E[j] for j in sorted(C)]
        gram = [[dot(a, b) for b in chosen] for a in chosen]
        _, pivots = solve(gram, [])
        chosen, gram = [chosen[i] for i in pivots], [[gram[i][j] for j in pivots] for i in pivots]
        images = [[dot(e, a) for e in E] for a in chosen]
        energy = [[dot(a, b) for b in images] for a in images]
        total = sum((dot(e, e) for e in E), F(0))
        return total - sum((largest(energy, gram, rank, total) for rank in range(min(slots, len(pivots)))), F(0))


def largest(B: Matrix, N: Matrix, rank: int, top: F) -> F:
    """A number hardly above the eigenvalue of (B, N) of this rank, 0 being the largest: at most rank are above it.

    None is above ``top``.
    """
    unit: F = near(top) * (1 + F(1, 2**50)) / 2**STEPS
    low, high = 0, int(2**STEPS)
    while high - low > 1:
        middle = (low + high) // 2
        t = middle * unit
        count = positives([[b - t * n for b, n in zip(r, s, strict=True)] for r, s in zip(B, N, strict=True)])
        if 0 <= count <= rank:
            high = middle
        else:
            low = middle
    return high * unit
