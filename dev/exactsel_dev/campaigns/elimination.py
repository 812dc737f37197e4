"""What each set of columns leaves of the target, or of all columns, exactly: elimination without a fraction.

Moments are whole numbers. Putting a column in is one step of Bareiss's elimination, in which every division goes
without a remainder; a pivot of zero belongs to a column that depends on those before it, exactly, and changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from exactsel.testing.instances import CSS
from exactsel_dev.campaigns.whole_numbers import WholeData, power

Matrix = list[list[int]]


class Elimination:
    """The optima of one instance with quadratic loss, or of column subset selection, by sets of columns."""

    def __init__(self, data: WholeData) -> None:
        self._d = data.instance.d
        css = data.instance.loss == CSS
        self._matrix, self._unit = _of_columns(data) if css else _of_regression(data)
        self._trace = css
        self._steps: dict[tuple[int, ...], tuple[Matrix, int]] = {(): (self._matrix, 1)}

    def value(self, columns: Iterable[int]) -> Fraction:
        """The smallest objective on these columns."""
        matrix, pivot = self._after(tuple(sorted(columns)))
        left = sum(matrix[j][j] for j in range(self._d)) if self._trace else matrix[-1][-1]
        return Fraction(left, pivot) * self._unit

    def _after(self, columns: tuple[int, ...]) -> tuple[Matrix, int]:
        """The matrix once these columns are eliminated, and the last pivot."""
        if columns not in self._steps:
            matrix, pivot = self._after(columns[:-1])
            self._steps[columns] = _step(matrix, pivot, columns[-1])
        return self._steps[columns]


def _step(matrix: Matrix, before: int, j: int) -> tuple[Matrix, int]:
    pivot, row = matrix[j][j], matrix[j]
    if pivot == 0:
        return matrix, before
    size = range(len(matrix))
    return [[(matrix[a][b] * pivot - matrix[a][j] * row[b]) // before for b in size] for a in size], pivot


def _of_columns(data: WholeData) -> tuple[Matrix, Fraction]:
    least = min(data.powers)
    columns = [[v << (p - least) for v in numbers] for numbers, p in zip(data.columns, data.powers, strict=True)]
    return [[data.moment(a, b) for b in columns] for a in columns], power(2 * least)


def _of_regression(data: WholeData) -> tuple[Matrix, Fraction]:
    """Moments of columns and target, the ridge on the diagonal, all times what makes whole numbers of them."""
    instance = data.instance
    centred = data.total if instance.intercept else 1
    vectors = [*data.columns, data.target]
    matrix = [[data.moment(a, b) for b in vectors] for a in vectors]
    ridge = [
        centred * data.lam * data.squared_scale(j) * power(-2 * data.powers[j] - data.weight_power)
        for j in range(instance.d)
    ]
    common = math.lcm(*(each.denominator for each in ridge), 1)
    matrix = [[common * value for value in row] for row in matrix]
    for j, each in enumerate(ridge):
        matrix[j][j] += int(common * each)
    return matrix, power(data.weight_power + 2 * data.target_power) / (2 * common * centred)


def minimiser(data: WholeData, columns: Iterable[int]) -> dict[int, Fraction]:
    """Coefficients of a best model on these columns, quadratic loss; those of dependent columns are zero."""
    matrix, _ = _of_regression(data)
    chosen = list(columns)
    rows = [[Fraction(matrix[a][b]) for b in (*chosen, -1)] for a in chosen]
    pivots: list[int] = []
    for p in range(len(chosen)):
        if rows[p][p] == 0:
            continue
        pivots.append(p)
        rows[p] = [value / rows[p][p] for value in rows[p]]
        for a in range(len(chosen)):
            if a != p and rows[a][p]:
                rows[a] = [value - rows[a][p] * other for value, other in zip(rows[a], rows[p], strict=True)]
    return {chosen[p]: rows[p][-1] * power(data.target_power - data.powers[chosen[p]]) for p in pivots}
