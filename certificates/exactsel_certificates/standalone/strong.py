"""Strong columns, and what the others can add to them, for the second checker (FORMAT.md, STRONG).

What eliminations leave is exact; its roots and quotients are floats whose few roundings are allowed for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction as F
from itertools import accumulate

from .algebra import Matrix, as_float, solve
from .like_columns import LikeColumns
from .regression import Regression
from .work import tally

LEAST = 2.0**-400
"""D that is smaller is not made use of: doubles below some 2^-1022 are not as close as all others."""

ROOM = 2.0**-40
"""For the roundings of sums, roots and quotients of some floats, relative to what is summed."""


class StrongColumns:
    """Bound to one problem with quadratic loss and one level."""

    def __init__(self, r: Regression, level: F) -> None:
        self.r, self.k, self.T = r, r.k, 2 * (r.c - level)
        self.usable = r.loss.by_products and self.T > 0 and all(len(group) == 1 for group in r.groups)
        self.known: dict[tuple[tuple[int, ...], tuple[int, ...]], list[list[float]]] = {}
        self.alike: dict[tuple[tuple[int, ...], tuple[int, ...], F], LikeColumns] = {}

    def product(self, i: int, j: int) -> F:
        """An entry of H."""
        return self.r.G[i][j] + (self.r.ridge[i] if i == j else 0)

    def closes(self, S: set[int], C: set[int], strong: Iterable[int], tau: F | None = None) -> bool:
        """Whether a region holds nothing below the level; columns are taken together from a cosine of tau on."""
        if not self.usable:
            return False
        F_, places = {*strong} | S, max(0, self.k - len(S))
        used = {j for j in S | (C if places else set()) if self.product(j, j)}
        B, W = sorted(used & F_), sorted(used - F_)
        b = self.r.b
        x, pivots = solve([[self.product(i, j) for j in B] for i in B], [[b[j] for j in B]])
        slack = self.T - sum((v * b[j] for j, v in zip(B, x[0], strict=True)), F(0))
        if len(pivots) < len(B) or slack <= 0 or not W:
            return slack > 0 and not W
        tally(len(B) * len(W), slack.denominator.bit_length())
        if tau is not None:
            over = [b[w] - sum((v * self.r.G[w][j] for j, v in zip(B, x[0], strict=True)), F(0)) for w in W]
            like = self.like(tuple(sorted(j for j in F_ if self.product(j, j))), tuple(W), tau, places)
            return like.usable and like.most_gain(over, slack, min(places, len(W))) <= 1.0
        gains = []
        for w, D in zip(W, self.dominance(sorted(j for j in F_ if self.product(j, j)), W), strict=True):
            u = b[w] - sum((v * self.r.G[w][j] for j, v in zip(B, x[0], strict=True)), F(0))
            # Also where u is 0: such a column may still take from the others.
            if not D[min(places, len(W)) - 1] > LEAST:
                return False
            gains.append(as_float(u * u / (slack * self.product(w, w))) / D[min(places, len(W)) - 1])
        return sum(sorted(gains, reverse=True)[:places]) * (1.0 + ROOM) <= 1.0

    def like(self, strong: tuple[int, ...], W: tuple[int, ...], tau: F, places: int) -> LikeColumns:
        """What is known of sets of weak columns that are like each other."""
        key = strong, W, tau
        if key not in self.alike or self.alike[key].most < min(places, len(W)):
            self.alike.clear()  # Regions of one tree have the same.
            self.alike[key] = LikeColumns(self.eliminated(strong, W), tau, places)
        return self.alike[key]

    def dominance(self, strong: Sequence[int], W: Sequence[int]) -> list[list[float]]:
        """D of each weak column, as a part of its own square, for 1, 2, ... places."""
        key = tuple(strong), tuple(W)
        if key not in self.known:
            self.known.clear()  # Regions of one tree have the same.
            M = self.eliminated(strong, W)
            cosines = [
                [_cosine(M[i][j], M[i][i], M[j][j]) if i != j else 0.0 for j in range(len(W))] for i in range(len(W))
            ]
            self.known[key] = [
                [
                    share * (1.0 - total * (1.0 + ROOM)) * (1.0 - ROOM)
                    for total in (0.0, *accumulate(sorted(row, reverse=True)))
                ]
                for row, share in zip(
                    cosines, (float(M[i][i] / self.product(w, w)) for i, w in enumerate(W)), strict=True
                )
            ]
        return self.known[key]

    def eliminated(self, strong: Sequence[int], W: Sequence[int]) -> Matrix:
        """What elimination of the strong columns leaves of the products of the others."""
        G = self.r.G
        X, pivots = solve(
            [[self.product(i, j) for j in strong] for i in strong], [[G[i][w] for i in strong] for w in W]
        )
        if len(pivots) < len(strong):
            return [[F(0)] * len(W) for _ in W]
        tally(len(W) ** 2 * (1 + len(strong)), max((v.denominator.bit_length() for x in X for v in x), default=0))
        return [
            [
                self.product(i, j) - sum((G[i][f] * v for f, v in zip(strong, x, strict=True)), F(0))
                for j, x in zip(W, X, strict=True)
            ]
            for i in W
        ]


def _cosine(product: F, left: F, right: F) -> float:
    """The size of a product by those of the columns, rounded upwards; infinite where one of them is nothing."""
    if left <= 0 or right <= 0:
        return math.inf
    return math.sqrt(product * product / (left * right)) * (1.0 + ROOM)
