"""Exact linear algebra, digits of logarithms, and weights of rows with an intercept, for the second checker."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction as F

from .work import tally

Matrix = list[list[F]]
Whole = list[list[int]]

DIGITS = Context(prec=50)

BITS = 200
"""Binary digits of improved points, and of slopes at them."""

UNIT = 2**80
"""Of logarithms as whole numbers."""


def whole(M: Matrix) -> Whole:
    """The same matrix times a positive number, in whole numbers."""
    unit = math.lcm(*(v.denominator for row in M for v in row))
    tally(len(M) ** 2, unit.bit_length())
    return [[v.numerator * (unit // v.denominator) for v in row] for row in M]


def solve(H: Matrix, sides: list[list[F]]) -> tuple[list[list[F]], list[int]]:
    """Solutions of Hx = side (H semidefinite, exact) with dependent columns at zero, and the independent columns.

    In whole numbers, since common divisors take most of the time of fractions.
    """
    m, unit = len(H), math.lcm(*(v.denominator for row in H for v in row))
    units = [math.lcm(*(v.denominator for v in side)) for side in sides]
    columns = zip(*(whole([side])[0] for side in sides), strict=True) if sides else ((),) * m
    rows = [[*row[j:], *right] for j, (row, right) in enumerate(zip(whole(H), columns, strict=True))]
    pivots, last = list[int](), 1
    for j, row in enumerate(rows):
        if row[0] == 0:
            continue
        pivots.append(j)
        tally(m * (m + len(sides)) + 1, row[0].bit_length())
        eliminate(rows, j, last)
        last = row[0]
    answers = []
    for s, scale in enumerate(units):
        x = [0] * m  # times the determinant, which is the last pivot, they are whole
        for j in reversed(pivots):
            row = rows[j]
            x[j] = (last * row[m - j + s] - sum(map(int.__mul__, row[1 : m - j], x[j + 1 :]))) // row[0]
        answers.append([F(unit * v, last * scale) for v in x])
    return answers, pivots


def eliminate(rows: Whole, j: int, last: int) -> None:
    """One step of Bareiss's elimination, in place: each row begins at its diagonal, and ``last`` is the last pivot."""
    top = rows[j]
    for i in range(j + 1, len(rows)):
        pairs = zip(rows[i], top[i - j :], strict=True)
        rows[i] = [(top[0] * v - top[i - j] * w) // last for v, w in pairs]


def positives(M: Matrix) -> int:
    """How many eigenvalues of a symmetric matrix are positive; -1 where elimination meets a zero it cannot pass."""
    rows, count, last = [row[j:] for j, row in enumerate(whole(M))], 0, 1
    for j, row in enumerate(rows):
        if row[0] == 0:
            if any(row):
                return -1
            continue
        count += (row[0] > 0) == (last > 0)
        tally((len(rows) - j) ** 2, row[0].bit_length())
        eliminate(rows, j, last)
        last = row[0]
    return count


def semidefinite(M: Matrix) -> bool:
    """Whether a symmetric matrix has no negative eigenvalue: none of -M's is positive."""
    return positives([[-value for value in row] for row in M]) == 0


def root(value: F, above: bool) -> F:
    """The square root, rounded outwards."""
    scale = 2 ** max(0, 80 + (value.denominator.bit_length() - value.numerator.bit_length()) // 2)
    return F(math.isqrt(value.numerator * scale * scale // value.denominator) + above, scale)


def near(value: F, bits: int = 60) -> F:
    """A number of so many binary digits close to a fraction, of any size."""
    scale = F(2) ** (bits - value.numerator.bit_length() + value.denominator.bit_length())
    return round(value * scale) / scale


def inverse_root(value: F) -> F:
    """A number of few digits close to 1 / the square root of a positive one."""
    return near(1 / root(value, above=False))


def as_float(value: F) -> float:
    """The nearest double; the largest of that sign where there is none."""
    largest = F(sys.float_info.max)
    return float(min(max(value, -largest), largest))


def dot(a: list[F], b: list[F]) -> F:
    """a'b."""
    bottoms = [x.denominator * y.denominator for x, y in zip(a, b, strict=True)]
    common = math.lcm(*bottoms)
    tally(1 + len(a), common.bit_length())
    tops = (x.numerator * y.numerator * (common // q) for x, y, q in zip(a, b, bottoms, strict=True))
    return F(sum(tops), common)


def decimal(value: F) -> Decimal:
    """A fraction in the digits of the context."""
    return Decimal(value.numerator) / Decimal(value.denominator)


def shares(slopes: Sequence[F], weights: Sequence[F]) -> list[F]:
    """What each slope is multiplied by: its weight and, for those that outweigh the others, what makes the sum zero."""
    plus = sum((w * g for w, g in zip(weights, slopes, strict=True) if g > 0), F(0))
    minus = -sum((w * g for w, g in zip(weights, slopes, strict=True) if g < 0), F(0))
    if plus == 0 or minus == 0:
        return [F(0)] * len(slopes)
    rising, falling = min(F(1), minus / plus), min(F(1), plus / minus)
    return [w * (rising if g > 0 else falling) for w, g in zip(weights, slopes, strict=True)]
