"""The optimum over every support as an exact rational number: quadratic loss, and column subset selection.

What columns S leave of the target is a Schur complement of the matrix of moments, which elimination in whole numbers
(Bareiss) gives without any fraction. The matrix is positive semidefinite, so a pivot of zero has a row of zeros: that
column is a combination of those before, and is passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from math import inf, lcm

from benchmarks.attacks.exact import Data, power

Matrix = list[list[int]]
Support = tuple[int, ...]

INFINITE = inf
"""Of a limit: none."""


def regression_values(data: Data, supports: Sequence[Support]) -> dict[Support, Fraction]:
    """The smallest objective on every support (of groups)."""
    matrix, factor = _moments(data)
    d = data.case.d

    def value(left: Matrix, pivot: int) -> Fraction:
        return factor * Fraction(left[d][d], pivot)

    return _eliminated(matrix, data.case.units, supports, value)


def selection_values(data: Data, supports: Sequence[Support]) -> dict[Support, Fraction]:
    """What every selection leaves of the matrix."""
    matrix = [[data.moment(a, b, False) for b in data.columns] for a in data.columns]
    squares = [power(2 * exponent) for exponent in data.powers]

    def value(left: Matrix, pivot: int) -> Fraction:
        return sum((Fraction(left[j][j], pivot) * squares[j] for j in range(len(left))), Fraction(0))

    return _eliminated(matrix, data.case.units, supports, value)


def _moments(data: Data) -> tuple[Matrix, Fraction]:
    """The moments of the columns (ridge added) and of the target, and what half the last entry is to be times."""
    case, centred = data.case, data.case.intercept
    whole = [*data.columns, data.target]
    matrix = [[data.moment(a, b, centred) for b in whole] for a in whole]
    unit = Fraction(data.total) if centred else Fraction(1)
    ridges = []
    for j in range(case.d):
        step = power(data.weight_power + 2 * data.powers[j])
        ridges.append(data.lam * data.squared_scale(j) * unit / step)
    common = lcm(1, *(ridge.denominator for ridge in ridges))
    matrix = [[common * entry for entry in row] for row in matrix]
    for j, ridge in enumerate(ridges):
        matrix[j][j] += int(common * ridge)
    return matrix, power(data.weight_power + 2 * data.target_power) / (2 * unit * common)


def _eliminated(
    matrix: Matrix, units: Sequence[Support], supports: Sequence[Support], value: Callable[[Matrix, int], Fraction]
) -> dict[Support, Fraction]:
    """The value of every support; supports that begin alike share the elimination of what they begin with."""
    known: dict[Support, tuple[Matrix, int]] = {(): (matrix, 1)}

    def after(support: Support) -> tuple[Matrix, int]:
        if support not in known:
            left, pivot = after(support[:-1])
            for j in units[support[-1]]:
                left, pivot = _without(left, pivot, j)
            known[support] = left, pivot
        return known[support]

    return {support: value(*after(support)) for support in supports}


def _without(matrix: Matrix, before: int, j: int) -> tuple[Matrix, int]:
    """One step of elimination; the pivot's own row becomes zero."""
    pivot, row = matrix[j][j], matrix[j]
    if pivot == 0:
        return matrix, before
    left = [[(pivot * entry - given[j] * other) // before for entry, other in zip(given, row, strict=True)]
            for given in matrix]  # fmt: skip
    return left, pivot


def best_coefficients(data: Data, columns: Sequence[int]) -> dict[int, Fraction]:
    """A minimiser on some columns; those that depend on the ones before get zero."""
    matrix, _ = _moments(data)
    right = {j: Fraction(matrix[j][data.case.d]) for j in columns}
    scale = {j: power(data.target_power - data.powers[j]) for j in columns}
    return {j: x * scale[j] for j, x in _solved(matrix, right).items()}


def _solved(matrix: Matrix, right: dict[int, Fraction]) -> dict[int, Fraction]:
    """The solution for the rows and columns of ``right``, in units of the whole numbers; see ``best_coefficients``."""
    columns = list(right)
    used: list[int] = []
    rows = [[*(Fraction(matrix[j][i]) for i in columns), right[j]] for j in columns]
    for place, _ in enumerate(columns):
        pivot = rows[place][place]
        if pivot == 0:
            continue
        used.append(place)
        rows[place] = [entry / pivot for entry in rows[place]]
        for other, row in enumerate(rows):
            if other != place and row[place]:
                factor = row[place]
                rows[other] = [a - factor * b for a, b in zip(row, rows[place], strict=True)]
    return {columns[place]: rows[place][-1] for place in used}


def limited_value(data: Data, columns: Sequence[int]) -> Fraction:
    """The smallest objective on some columns whose coefficients have limits: every face of the box is looked at.

    The minimum over a box is one without limits over some face, all else held at limits.
    """
    matrix, factor = _moments(data)
    case, d = data.case, data.case.d
    assert case.lower is not None
    assert case.upper is not None
    limits: dict[int, tuple[Fraction | None, Fraction | None]] = {}
    for j in columns:
        unit = power(data.powers[j] - data.target_power)
        low, high = (None if x in (inf, -inf) else Fraction(x) * unit for x in (case.lower[j], case.upper[j]))
        limits[j] = low, high
    best: Fraction | None = None
    for face in product(*([None, *{x for x in limits[j] if x is not None}] for j in columns)):
        point = {j: x for j, x in zip(columns, face, strict=True) if x is not None}
        free = [j for j in columns if j not in point]
        right = {j: matrix[j][d] - sum((matrix[j][i] * x for i, x in point.items()), Fraction(0)) for j in free}
        point |= _solved(matrix, right)
        if all(_between(x, *limits[j]) for j, x in point.items()):
            cost = matrix[d][d] - sum((2 * matrix[j][d] * x for j, x in point.items()), Fraction(0))
            cost += sum((matrix[j][i] * x * z for j, x in point.items() for i, z in point.items()), Fraction(0))
            best = cost if best is None else min(best, cost)
    assert best is not None  # the corner nearest to zero at least, since zero is within limits
    return factor * best


def _between(x: Fraction, low: Fraction | None, high: Fraction | None) -> bool:
    return (low is None or low <= x) and (high is None or x <= high)
