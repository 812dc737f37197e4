"""Whether there is a best model without a ridge, exactly: dependent columns, and columns that separate the classes.

Columns separate the classes where some w (and c) has b_i = y_i (a_i'w + c) >= 0 on all rows, not 0 on all. By Stiemke's
theorem there is no such w if and only if some q > 0 has sum q_i y_i (a_i, 1) = 0, and by Gordan's there is none with
b > 0 on all rows if and only if some q >= 0 other than 0 has. Both are questions for phase one of the simplex method,
which is done here in fractions, by Bland's rule: nothing is rounded, so nothing is a matter of tolerances.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from exactsel_dev.campaigns.ridgeless_fits import counting
from exactsel_dev.campaigns.whole_numbers import WholeData


def dependent(data: WholeData, columns: Sequence[int]) -> bool:
    """Whether some of these columns make up for another, with the intercept; columns that cannot count left out."""
    sides = _sides(data, columns)
    done: list[tuple[int, list[Fraction]]] = []
    for side in sides:
        left = list(map(Fraction, side))
        for place, other in done:
            left = [a - left[place] * b for a, b in zip(left, other, strict=True)]
        place = next((i for i, value in enumerate(left) if value), -1)
        if place < 0:
            return True
        done.append((place, [value / left[place] for value in left]))
    return False


def separated(data: WholeData, columns: Sequence[int]) -> bool:
    """Whether these columns separate the classes, completely or not."""
    sides = _signed(data, columns)
    return not _solvable(sides, [-sum(side) for side in sides])


def separated_completely(data: WholeData, columns: Sequence[int]) -> bool:
    """Whether predictions can be strictly on the right side on all rows."""
    sides = _signed(data, columns)
    return not _solvable([*sides, [1] * len(data.rows)], [0] * len(sides) + [1])


def _sides(data: WholeData, columns: Sequence[int]) -> list[list[int]]:
    sides = [data.columns[j] for j in counting(data, columns)]
    return [*sides, [1] * len(data.rows)] if data.instance.intercept else sides


def _signed(data: WholeData, columns: Sequence[int]) -> list[list[int]]:
    signs = [1 if label > 0 else -1 for label in data.target]
    return [[sign * value for sign, value in zip(signs, side, strict=True)] for side in _sides(data, columns)]


def _solvable(sides: Sequence[Sequence[int]], right: Sequence[int]) -> bool:
    """Whether some q >= 0 has sides q = right."""
    if not sides:
        return True
    n, m = len(sides[0]), len(sides)
    rows = []
    for i, (side, value) in enumerate(zip(sides, right, strict=True)):
        sign = -1 if value < 0 else 1
        rows.append(
            [Fraction(sign * a) for a in side] + [Fraction(i == p) for p in range(m)] + [Fraction(sign * value)]
        )
    basis = list(range(n, n + m))
    costs = [-sum((row[j] for row in rows), Fraction(0)) for j in range(n)]
    costs += [Fraction(0)] * m + [-sum((row[-1] for row in rows), Fraction(0))]
    while costs[-1] < 0:
        enters = next((j for j in range(n) if costs[j] < 0), None)
        if enters is None:
            return False
        ratios = [(row[-1] / row[enters], basis[i], i) for i, row in enumerate(rows) if row[enters] > 0]
        _, _, leaves = min(ratios)
        pivot = rows[leaves] = [value / rows[leaves][enters] for value in rows[leaves]]
        basis[leaves] = enters
        for i, row in enumerate(rows):
            if i != leaves and row[enters]:
                rows[i] = [a - row[enters] * b for a, b in zip(row, pivot, strict=True)]
        costs = [a - costs[enters] * b for a, b in zip(costs, pivot, strict=True)]
    return True
