"""The leaf test, for any last one or two columns, of the second checker.

The first one bounds most sets beside the fit on the others; here each has a fit of its own.
"""

from __future__ import annotations

from fractions import Fraction as F
from itertools import combinations

from .patterns import closed_by_fit
from .regression import Regression

LEAF = ~1
"""The witness of regions closed this way."""

MOST_PLACES = 2


class LeafRegions:
    """Bound to one problem and one level."""

    def __init__(self, r: Regression, level: F) -> None:
        self.r, self.level = r, level
        self.closed: dict[frozenset[int], bool] = {}

    def closes(self, S: set[int], C: set[int]) -> bool:
        """Whether no model on S and as many columns of C as there are places is below the level."""
        slots = min(max(0, self.r.k - len(S)), len(C))
        usable = self.r.loss.by_leaves and (self.r.lam or self.r.sizes)
        if not usable or slots > MOST_PLACES or len(self.r.groups) < len(self.r.columns):
            return False
        sets = combinations(sorted(C), slots)
        return all(self.closed_by_fit(frozenset(S.union(more))) for more in sets)

    def closed_by_fit(self, T: frozenset[int]) -> bool:
        """The same of all models on some columns."""
        if T not in self.closed:
            self.closed[T] = closed_by_fit(self.r, T, self.level)
        return self.closed[T]


def of_leaves(n: int, columns: int) -> float:
    """What a fit on so many columns of n rows takes."""
    return n * (30.0 + 2.0 * (columns + 2) ** 2)
