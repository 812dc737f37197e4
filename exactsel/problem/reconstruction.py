"""The objective of column subset selection: what the chosen columns leave unexplained of the whole matrix.

    f(S) = ||A - S S⁺ A||_F²

S S⁺ projects on the span of the chosen columns. There is no target, and selections have no coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from exactsel.algebra.projection import unexplained
from exactsel.algebra.threads import one_thread
from exactsel.algebra.triangle import triangle
from exactsel.problem.capabilities import RECONSTRUCTION
from exactsel.problem.fit import Selection
from exactsel.problem.identity import data_hash
from exactsel.problem.subset_objective import SubsetObjective
from exactsel.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False, repr=False)
class Reconstruction(SubsetObjective):
    """||A - S S⁺ A||_F² of selections S of columns of A, read-only."""

    AT: FloatArray

    kind = "css"
    capabilities = RECONSTRUCTION
    lam = infimum = 0.0
    loss = preparation = reduction = ridge_limits = before = divisors = equalities = coefficient_bounds = None
    text = "||A - S S⁺ A||², the part of the matrix the chosen columns S leave unexplained"

    @cached_property
    def at_zero(self) -> float:
        """||A||_F², the value of the empty selection."""
        return float(np.einsum("ij,ij->", self.AT, self.AT))

    @cached_property
    def gram(self) -> FloatArray:
        """A'A (d, d)."""
        with one_thread():  # so that the last bits do not depend on the machine's cores
            gram: FloatArray = self.AT @ self.AT.T
        return gram

    @cached_property
    def reduced(self) -> FloatArray:
        """A' rotated and cut to at most d entries a column, (d, min(n, d)): every projection is the same on it."""
        if self.n <= self.d:
            return self.AT
        return np.ascontiguousarray(triangle(self.A).T)

    def fit(self, columns: IntArray) -> Selection:
        """The value of a selection, by an orthogonal factorisation of the data; dependent columns are harmless."""
        return Selection(columns, np.zeros(0), unexplained(self.AT, columns), 0.0)

    def minima(self, supports: IntArray, threads: int | None = None) -> FloatArray:
        """The value of each selection, a row of column numbers padded with -1; ``threads`` is not needed."""
        return np.array([unexplained(self.reduced, row[row >= 0]) for row in np.asarray(supports, dtype=np.int64)])

    def best_rank_error(self, rank: int) -> float:
        """||A - A_r||_F² of the best approximation of this rank, below which no selection of ``rank`` columns gets."""
        singular = np.linalg.svd(self.reduced, compute_uv=False)
        return float(np.sum(singular[rank:] ** 2))

    def hash_with(self, **entries: object) -> str:
        """sha256 over the matrix and ``entries``."""
        return data_hash({"problem": self.kind, "n": self.n, "d": self.d, **entries}, self.AT)

    def replace(self, **changes: object) -> Reconstruction:
        """The objective itself: nothing of it can be changed."""
        if changes:
            raise TypeError(f"ColumnSubsetProblem has no argument {next(iter(changes))!r}")
        return self
