"""Column subset selection: bounds of regions from exact projections, for columns that are nearly dependent.

Doubles know the span of nearly dependent columns badly. Here the Gram matrix of A is one of integers (each column is
integers times a power of two), and projecting out columns is elimination without fractions (Bareiss): with the pivots
S, N_ij / p is the inner product of what S leaves of columns i and j, exactly, where p is the last pivot's determinant.

So ||E||^2 is exact, and so is the objective of S and any one column. Going on with the columns of C gives what lies
outside of their span, again exactly, and the rows of a matrix R with R'R = (QE)'(QE), rounded once. Its singular values
are trusted to 16 (m + d) 2^-53 ||R||.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from exactsel_certificates.exact import float_below, root_above, root_below
from exactsel_certificates.formula import ColumnInstance, FloatArray
from exactsel_certificates.rigorous import U, gamma, lengths
from exactsel_certificates.scaled import IntegerArray, Scaled, scaled
from exactsel_certificates.work import look

NEGLIGIBLE = Fraction(1, 10**9)
"""A column of which less than this is left, once those before it are projected out, may be spoken of under a scope."""


class ExactSelections:
    """Bound to one matrix."""

    def __init__(self, instance: ColumnInstance, reconstruction: float) -> None:
        self.reconstruction = Fraction(reconstruction)
        columns = [scaled(column) for column in np.asarray(instance.A, dtype=np.float64).T]
        self.d = len(columns)
        self.gram = np.empty((self.d, self.d), dtype=object)
        for i, first in enumerate(columns):
            look()
            for j, second in enumerate(columns[: i + 1]):
                self.gram[i, j] = self.gram[j, i] = int(first.values @ second.values)
        self.exponents = [column.exponent for column in columns]
        lowest = 2 * min(self.exponents)
        # What turns inner products of the integers into those of the columns, as integers over a power of two.
        self.squares = Scaled(np.array([1 << (2 * e - lowest) for e in self.exponents], dtype=object), lowest)
        self.total = self._trace(self.gram, 1)

    def bound(self, included: Sequence[int], candidates: Sequence[int], slots: int, bounded: bool) -> float:
        """A number no selection of the region is below, within the scope where ``bounded``."""
        lower = self._bound(included, candidates, slots, Fraction(0))
        return max(lower, self._bound(included, candidates, slots, NEGLIGIBLE)) if bounded else lower

    def _bound(self, included: Sequence[int], candidates: Sequence[int], slots: int, negligible: Fraction) -> float:
        if len(candidates) <= slots:
            included, candidates, slots = sorted([*included, *candidates]), [], 0
        N, last, hidden = self.gram, 1, Fraction(0)
        for j in included:
            residual = Fraction(int(N[j, j]), last * int(self.gram[j, j])) if N[j, j] else Fraction(0)
            if residual <= negligible**2:
                hidden += root_above(residual) if residual else 0
                continue
            N, last = _eliminated(N, j, last)
        rest = self._trace(N, last)
        if slots == 1:
            rest -= max((self._captured(N, last, j) for j in candidates), default=Fraction(0))
        return self._less(rest, 0.0, hidden) if slots <= 1 else self._spectral(N, last, candidates, slots, hidden)

    def _spectral(self, N: IntegerArray, last: int, candidates: Sequence[int], slots: int, hidden: Fraction) -> float:
        """What the ``slots`` best directions in the span of the candidates leave."""
        rows = []
        for j in candidates:
            if N[j, j]:
                rows.append(self._row(N, last, j))
                N, last = _eliminated(N, j, last)
        tail = 0.0
        if len(rows) > slots:
            R = np.array(rows)
            size = float(lengths(np.ravel(R)[None, :])[0])
            singular = np.linalg.svd(R, compute_uv=False)
            error = (16.0 * sum(R.shape) + 64.0) * U * size
            tail = float(np.linalg.norm(singular[slots:])) * (1.0 - gamma(R.size)) - error
        return self._less(self._trace(N, last), tail, hidden)

    def _less(self, outside: Fraction, tail: float, hidden: Fraction) -> float:
        """outside + tail^2, with what a scope hides taken off the length."""
        value = outside + Fraction(max(0.0, tail)) ** 2 if math.isfinite(tail) else outside
        if hidden:
            length = root_below(value) - self.reconstruction * hidden * root_above(self.total)
            value = max(Fraction(0), length) ** 2
        return float_below(value)

    def _trace(self, N: IntegerArray, last: int) -> Fraction:
        """The sum of the squares of what is left of all columns."""
        return self._times_power(int(np.diagonal(N) @ self.squares.values), last)

    def _captured(self, N: IntegerArray, last: int, j: int) -> Fraction:
        """By how much column j lowers that sum."""
        if not N[j, j]:
            return Fraction(0)
        return self._times_power(int((N[j] * N[j]) @ self.squares.values), int(N[j, j]) * last)

    def _times_power(self, value: int, divisor: int) -> Fraction:
        return Fraction(value, divisor) * Fraction(2) ** self.squares.exponent

    def _row(self, N: IntegerArray, last: int, j: int) -> FloatArray:
        """The inner products of what is left of the columns with the direction of column j, to a few roundings."""
        divisor = int(N[j, j]) * last
        entries = (root_below(Fraction(int(v) ** 2, divisor)) if v else Fraction(0) for v in N[j])
        signs = [1 if v >= 0 else -1 for v in N[j]]
        scaled_up = zip(signs, entries, self.exponents, strict=True)
        return np.array([float(sign * entry * Fraction(2) ** e) for sign, entry, e in scaled_up])


def _eliminated(N: IntegerArray, j: int, last: int) -> tuple[IntegerArray, int]:
    """Inner products once column j is projected out, and what they are multiples of; all divisions leave nothing."""
    look()
    pivot = int(N[j, j])
    return (pivot * N - np.multiply.outer(N[:, j], N[j])) // last, pivot
