"""A quadratic function nowhere above P where models that count are, for the second checker: losses with tangents.

All in fractions, but for exponentials and logarithms, which are rounded outwards. Predictions that q touches at may be
any, so they are cut to some digits, and so are curvatures, downwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction as F
from typing import NamedTuple

from .algebra import Matrix, dot, near, solve
from .losses.base import OFF
from .regression import Regression
from .work import tally

BITS = 60
"""Binary digits of what is cut."""


class Quadratic(NamedTuple):
    """q(x, c) = value - h'(x, c) + (x, c)'H(x, c) / 2 <= P, c last and only where there is an intercept."""

    H: Matrix
    h: list[F]
    value: F


def below_minorant(
    r: Regression, level: F, points: Sequence[dict[int, F]], widths: Sequence[tuple[float, float]]
) -> Matrix | None:  # fmt: skip
    """What is to be semidefinite on the columns of models; None where the minorant is not shown to hold.

    It touches P at the first point, from whose predictions the intervals go down and up by ``widths``, one pair a row.
    """
    z = r.predict(points[0])
    low = [v - F(down) for v, (down, _) in zip(z, widths, strict=True)]
    high = [v + F(up) for v, (_, up) in zip(z, widths, strict=True)]
    held = max(level, r.objective(points[0]))
    # The point itself must not lie on a face, where every q needs it inside.
    if not all(v - down < v < v + up for v, (down, up) in zip(z, ((F(a), F(b)) for a, b in widths), strict=True)):
        return None
    first: Quadratic | None = None
    open_ends = {(i, side) for i in range(len(z)) for side in (0, 1)}
    for number, point in enumerate(points):
        at = [near(v, BITS) for v in (z if number == 0 else r.predict(point))]
        included = all(a <= v <= b for a, v, b in zip(low, at, high, strict=True))
        q = touching(r, at, low, high) if included else None
        first = q if number == 0 else first
        if q is None or first is None:
            return None
        open_ends -= away(r, q, low, high, held)
    return None if open_ends or first is None else counts(r, first, level)


def touching(r: Regression, z: Sequence[F], low: Sequence[F], high: Sequence[F]) -> Quadratic | None:
    """q from predictions z and the intervals; None where a row has no tangent."""
    bends, linear, value = [], [], F(0)
    tally(80 * len(z))
    for at, a, b, t, w in zip(z, low, high, r.y, r.weights, strict=True):
        row = r.loss.tangent(at, a, b, t)
        if row is None:
            return None
        l, s, p = row[0], w * row[1], w * cut(row[2])
        value += w * (l - OFF * (1 + b - a)) - s * at + p * at * at / 2
        bends.append(p)
        linear.append(p * at - s)
    sides = columns(r)
    weighted = [[p * v for p, v in zip(bends, column, strict=True)] for column in sides]
    H = [[dot(left, right) for right in sides] for left in weighted]
    for j, ridge in enumerate(r.ridge):
        # Without a ridge only models count that have no coefficients of columns of zeros.
        H[j][j] += ridge if ridge or any(r.columns[j]) else 1
    return Quadratic(H, [dot(linear, column) for column in sides], value)


def columns(r: Regression) -> list[list[F]]:
    """The columns, one of ones last where there is an intercept."""
    return [*r.columns, *([[F(1)] * len(r.y)] if r.level else [])]


def cut(value: F) -> F:
    """The number with fewer digits, no larger."""
    return F(max(0, value.numerator * 2**BITS // value.denominator), 2**BITS)


def away(r: Regression, q: Quadratic, low: Sequence[F], high: Sequence[F], level: F) -> set[tuple[int, int]]:
    """Rows whose lower (0) or upper (1) end no point with q at most the level reaches."""
    m, n = len(q.h), len(low)
    rows = [list(row) for row in zip(*columns(r), strict=True)]
    answers, pivots = solve(q.H, [q.h, *rows])
    if len(pivots) < m:
        return set()
    center = answers[0]
    square = max(F(0), 2 * (level - q.value) + dot(q.h, center))
    result = set()
    for i in range(n):
        middle, reach = dot(rows[i], center), dot(rows[i], answers[i + 1]) * square
        for side, room in ((0, middle - low[i]), (1, high[i] - middle)):
            if room > 0 and room * room > reach:
                result.add((i, side))
    return result


def counts(r: Regression, q: Quadratic, level: F) -> Matrix | None:
    """H - h h' / T with T = 2 (value - level), less the intercept, on whose columns it is to be semidefinite."""
    T = 2 * (q.value - level)
    if T <= 0:
        return None
    Q = [[v - a * b / T for v, b in zip(row, q.h, strict=True)] for row, a in zip(q.H, q.h, strict=True)]
    if r.level:
        last = Q.pop()
        if last[-1] <= 0:
            return None
        Q = [[v - row[-1] * b / last[-1] for v, b in zip(row, last, strict=False)][:-1] for row in Q]
    return Q
