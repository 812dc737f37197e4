"""Projections on the span of chosen columns, with what is needed to say how far rounding may have moved them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exactsel.types import FloatArray, IntArray

NEGLIGIBLE = 1e-9
"""A column of which less than this share is left, once the columns before it are projected out, adds no direction: what
is left is too much rounding to be relied upon."""

ENTRIES = 1_000_000
"""Entries of the data whose residual is held at a time."""


@dataclass(frozen=True)
class Span:
    """The span of some columns.

    ``basis`` (m, n) holds orthonormal rows. ``skipped`` is the sum of the shares left of the columns that added no
    direction (0 for exact copies and zero columns), and ``condition`` the reciprocal of the smallest singular value
    of the columns that did, scaled to length one (1 for none).
    """

    basis: FloatArray
    skipped: float
    condition: float

    def residual(self, vectors: FloatArray) -> FloatArray:
        """What is left of each row of ``vectors`` (any number, n) once its projection on the span is taken off."""
        rest = vectors - (vectors @ self.basis.T) @ self.basis
        return rest - (rest @ self.basis.T) @ self.basis


def span_of(columns: FloatArray) -> Span:
    """The span of the rows of ``columns`` (m, n), by Gram-Schmidt with every row orthogonalised twice."""
    basis = np.empty((min(columns.shape), columns.shape[1]))
    coordinates: list[FloatArray] = []
    skipped, seen = 0.0, set()
    for column in columns:
        length, key = float(np.linalg.norm(column)), column.tobytes()
        if length == 0.0 or key in seen:
            continue
        seen.add(key)
        unit, size = column / length, len(coordinates)
        rest = unit
        for _ in range(2):
            rest = rest - (basis[:size] @ rest) @ basis[:size]
        remainder = float(np.linalg.norm(rest))
        if remainder <= NEGLIGIBLE or size == len(basis):
            skipped += remainder
            continue
        # A short remainder is not yet orthogonal enough: its rounding was blown up with it.
        rest = rest / remainder
        rest = rest - (basis[:size] @ rest) @ basis[:size]
        basis[size] = rest / np.linalg.norm(rest)
        coordinates.append(basis[: size + 1] @ unit)
    return Span(basis[: len(coordinates)], skipped, _condition(coordinates))


def _condition(coordinates: list[FloatArray]) -> float:
    """The condition of unit columns from their coordinates in the basis, a triangle."""
    if not coordinates:
        return 1.0
    triangle = np.zeros((len(coordinates), len(coordinates)))
    for i, entries in enumerate(coordinates):
        triangle[i, : entries.size] = entries
    return 1.0 / float(np.linalg.svd(triangle, compute_uv=False)[-1])


def unexplained(AT: FloatArray, chosen: IntArray) -> float:
    """||A - S S⁺ A||_F² for the columns ``chosen`` of A, given as AT (d, n); dependent columns are harmless."""
    span, total = span_of(AT[chosen]), 0.0
    for first in range(0, len(AT), max(1, ENTRIES // AT.shape[1])):
        rest = span.residual(AT[first : first + max(1, ENTRIES // AT.shape[1])])
        total += float(np.einsum("ij,ij->", rest, rest))
    return total
