"""Linear algebra in fractions, for the second checker."""

from __future__ import annotations

import math
import sys
from fractions import Fraction as F

from .work import tally

Matrix = list[list[F]]


def solve(H: Matrix, sides: list[list[F]]) -> tuple[list[list[F]], list[int]]:
    """Solutions of Hx = side (H semidefinite, exact) with dependent columns at zero, and the independent columns."""
    m = len(H)
    rows = [H[i][:] + [side[i] for side in sides] for i in range(m)]
    kept = []
    for j in range(m):
        if rows[j][j] == 0:
            continue
        kept.append(j)
        tally(m * (m + len(sides)) + 1, rows[j][j].denominator.bit_length() + rows[j][j].numerator.bit_length())
        for i in range(m):
            if i != j and rows[i][j] != 0:
                factor = rows[i][j] / rows[j][j]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[j], strict=True)]
    answers = [[rows[j][m + s] / rows[j][j] if j in kept else F(0) for j in range(m)] for s in range(len(sides))]
    return answers, kept


def positives(M: Matrix) -> int:
    """How many eigenvalues of a symmetric matrix are positive; -1 where elimination meets a zero it cannot pass."""
    rows, count = [row[:] for row in M], 0
    for j in range(len(rows)):
        pivot = rows[j][j]
        if pivot == 0:
            if any(rows[i][j] for i in range(j + 1, len(rows))):
                return -1
            continue
        count += pivot > 0
        tally((len(rows) - j) ** 2, pivot.denominator.bit_length() + pivot.numerator.bit_length())
        for i in range(j + 1, len(rows)):
            factor = rows[i][j] / pivot
            if factor:
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[j], strict=True)]
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
