"""Linear equalities on coefficients, Cx = c in the units of the data as given: what they do to a problem.

A model is admissible where Cx = c. With any weights t_i > 0 the objective of an admissible model is

    P(x) = P(x) + 1/2 sum_i t_i^2 (C_i x - c_i)^2,

so the problem of quadratic loss with the rows t_i C_i and the targets t_i c_i appended, and no equality, has bounds
that hold for all admissible models, for any t. t_i is a power of two: the rows are then as exact as C. Appended rows
have no weight and no part in an intercept, so they come in after the data have been prepared.

A coefficient is a double, so few models meet an equality exactly: :func:`violated` says how far off one may be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from exactsel_certificates.formula import FloatArray
from exactsel_certificates.prepared import Prepared
from exactsel_certificates.rigorous import TINY, U

TOLERANCE = 1e-12
"""An equality holds up to this part of the sum of the sizes of its terms and of its right-hand side."""

LARGEST, SMALLEST = 1e60, 1e-60
"""Entries of C and c, and these times t, are zero or between these in size."""


class Equalities(NamedTuple):
    """Equalities C x = c on the coefficients x of the data as given."""

    rows: FloatArray
    """C (m, d), no row of zeros."""
    right: FloatArray
    """c (m,)."""
    sizes: FloatArray
    """t (m,), powers of two; a proof has its own."""

    def entry(self) -> dict[str, list[object]]:
        """What a problem's hash holds of them."""
        return {
            "rows": [[float(v).hex() for v in row] for row in self.rows],
            "right": [float(v).hex() for v in self.right],
        }

    def describe(self) -> list[dict[str, object]]:
        """Each as plain data: the columns with numbers other than 0, these, and the right-hand side."""
        return [
            {"columns": np.flatnonzero(row).tolist(), "numbers": row[row != 0.0].tolist(), "right": float(right)}
            for row, right in zip(self.rows, self.right, strict=True)
        ]


def check_equalities(equalities: Equalities, columns: int) -> None:
    """:class:`ValueError` for equalities that are not as :class:`Equalities` says."""
    rows, right, sizes = (np.asarray(part) for part in equalities)
    m = len(right)
    if m == 0 or rows.shape != (m, columns) or right.shape != (m,) or sizes.shape != (m,):
        raise ValueError("equalities must be a row of numbers, one for each column, a right-hand side and a size each.")
    if not all(part.dtype == np.float64 and np.all(np.isfinite(part)) for part in (rows, right, sizes)):
        raise ValueError("equalities must be finite doubles.")
    with np.errstate(all="ignore"):
        stretched = [np.abs(rows) * sizes[:, None], np.abs(right) * sizes]
    for part in (np.abs(rows), np.abs(right), *stretched):
        if not np.all((part == 0.0) | ((part >= SMALLEST) & (part <= LARGEST))):
            raise ValueError(
                f"numbers of equalities, and these times t, must be 0 or between {SMALLEST:g} and {LARGEST:g} in size."
            )
    if not np.all(np.any(rows != 0.0, axis=1)):
        raise ValueError("an equality holds no coefficient; leave it out.")
    if not np.all(np.frexp(sizes)[0] == 0.5):
        raise ValueError("sizes of equalities must be powers of two.")


def appended(prepared: Prepared, equalities: Equalities) -> Prepared:
    """Prepared data of quadratic loss with the rows of the equalities, and their errors.

    Of prepared columns the coefficients are those of the data as given times the scales, as they were rounded: so it
    is only division by a scale that rounds.
    """
    rows = (equalities.rows * equalities.sizes[:, None]) / prepared.scale
    error = np.zeros(rows.shape[1])
    if np.any(np.frexp(prepared.scale)[0] != 0.5):
        most = 1.001 * U * np.sqrt(float(len(rows))) * np.max(np.abs(rows), axis=0)
        error = np.where(most > 0.0, most + TINY, 0.0)
    AT = np.concatenate([prepared.AT, rows.T], axis=1)
    y = np.concatenate([prepared.y, equalities.sizes * equalities.right])
    AT.flags.writeable = y.flags.writeable = False
    missed = np.where(error > 0.0, 1.001 * (prepared.column_error + error), prepared.column_error)
    return replace(prepared, AT=AT, y=y, column_error=missed)


def within_equalities(rows: FloatArray, right: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Upper limits (d,) that hold besides: where all numbers of a row are positive and no coefficient is negative.

    They only say what the row says: with x >= 0 and a sum of one no coefficient is above one.
    """
    limits = np.array(upper, dtype=np.float64)
    for row, value in zip(rows, right, strict=True):
        sign = 1.0 if np.all(row >= 0.0) else -1.0
        used = np.flatnonzero(row)
        if not np.all(sign * row >= 0.0) or not np.all(lower[used] >= 0.0) or sign * value < 0.0:
            continue
        for j in used:
            limit = value / row[j]
            exact = Fraction(float(limit)) * Fraction(float(row[j])) == Fraction(float(value))
            limits[j] = min(limits[j], limit + 0.0 if exact else np.nextafter(limit, np.inf))
    return limits


def independent(rows: Sequence[FloatArray], right: Sequence[float]) -> list[int]:
    """The equalities that do not follow from those before; :class:`ValueError` where some contradict others."""
    basis: list[int] = []
    reduced: list[tuple[int, dict[int, Fraction], Fraction]] = []
    for i, (row, value) in enumerate(zip(rows, right, strict=True)):
        terms = {int(j): Fraction(float(row[j])) for j in np.flatnonzero(row)}
        rest = Fraction(value)
        for pivot, other, other_rest in reduced:
            times = terms.get(pivot, Fraction(0))
            if times:
                for j, v in other.items():
                    terms[j] = terms.get(j, Fraction(0)) - times * v
                rest -= times * other_rest
        terms = {j: v for j, v in terms.items() if v}
        if terms:
            pivot = max(terms, key=lambda j: abs(terms[j]))
            reduced.append((pivot, {j: v / terms[pivot] for j, v in terms.items()}, rest / terms[pivot]))
            basis.append(i)
        elif rest:
            raise ValueError("the equalities contradict each other, so no model meets them all; correct or drop some.")
    return basis


def refused(equalities: Equalities, coef: FloatArray, dual_vectors: int) -> str:
    """Why a proof of a problem with equalities shows nothing, in one sentence; empty where nothing speaks against it.

    Its model misses an equality, or it has dual vectors, which are as long as the data as given are.
    """
    if dual_vectors:
        return "the proof has dual vectors, which say nothing of a problem with equalities."
    return violated(equalities, coef)


def violated(equalities: Equalities, coef: Sequence[float] | FloatArray) -> str:
    """What is wrong with coefficients (d,) of the data as given, in one sentence; empty where all equalities hold."""
    x = [float(v) for v in coef]
    used = [j for j, v in enumerate(x) if v]
    for i, (row, right) in enumerate(zip(equalities.rows, equalities.right, strict=True)):
        terms = [Fraction(float(row[j])) * Fraction(x[j]) for j in used]
        off, size = abs(sum(terms, -Fraction(float(right)))), sum(map(abs, terms), abs(Fraction(float(right))))
        if off > Fraction(TOLERANCE) * size:
            return f"the model misses equality {i} by {float(off):.3g}, which is more than rounding."
    return ""


def fine(value: float) -> bool:
    """Whether a number may stand in an equality."""
    return value == 0.0 or (math.isfinite(value) and SMALLEST <= abs(value) <= LARGEST)
