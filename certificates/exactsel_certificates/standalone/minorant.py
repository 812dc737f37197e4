"""A quadratic function nowhere above P where models that count are, for the second checker (Huber and logistic loss).

All in fractions, but for exponentials and logarithms, which are rounded outwards. Predictions that q touches at may be
any, so they are cut to some digits, and so are curvatures, downwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction as F
from typing import NamedTuple

from .algebra import Matrix, dot, near, solve
from .regression import Regression
from .rows import DIGITS, logistic
from .work import tally

BITS = 60
"""Binary digits of what is cut."""

OFF = F(1, 10**40)
"""No slope or value of a row is off by more."""

FAR = 500
"""Predictions of logistic loss beyond this are not evaluated: exponentials of huge numbers take long."""


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
    if r.loss not in ("huber", "logistic"):
        return None
    held = max(level, r.objective(points[0]))
    # The point itself must not lie on a face, where every q needs it inside.
    if not all(v - down < v < v + up for v, (down, up) in zip(z, ((F(a), F(b)) for a, b in widths), strict=True)):
        return None
    first: Quadratic | None = None
    left = {(i, side) for i in range(len(z)) for side in (0, 1)}
    for number, point in enumerate(points):
        at = [near(v, BITS) for v in (z if number == 0 else r.predict(point))]
        included = all(a <= v <= b for a, v, b in zip(low, at, high, strict=True))
        q = touching(r, at, low, high) if included else None
        first = q if number == 0 else first
        if q is None or first is None:
            return None
        left -= away(r, q, low, high, held)
    return None if left or first is None else counts(r, first, level)


def touching(r: Regression, z: Sequence[F], low: Sequence[F], high: Sequence[F]) -> Quadratic | None:
    """q from predictions z and the intervals; None where numbers are too large for it."""
    if r.loss == "logistic" and any(max(-a, b) > FAR for a, b in zip(low, high, strict=True)):
        return None
    bends, linear, value = [], [], F(0)
    tally(80 * len(z))
    for at, a, b, t, w in zip(z, low, high, r.y, r.weights, strict=True):
        l, s, p = huber(r.delta, at, a, b, t) if r.loss == "huber" else logistic_row(at, a, b, t)
        p, s = w * cut(p), w * s
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


def huber(delta: F, z: F, low: F, high: F, t: F) -> tuple[F, F, F]:
    """Value, slope and a curvature that holds on [low, high] from z."""
    r = abs(z - t)
    value = r * r / 2 if r <= delta else delta * (r - delta / 2)
    slope = min(max(z - t, -delta), delta)
    if r > delta:
        return value, slope, F(0)
    bend = F(1)
    for end, excess in ((high, high - t - delta), (low, t - low - delta)):
        if excess > 0:
            bend = min(bend, 1 - (excess / (end - z)) ** 2 if end != z else F(0))
    return value, slope, bend


def logistic_row(z: F, low: F, high: F, t: F) -> tuple[F, F, F]:
    """The same; value and slope are off by less than :data:`OFF`."""
    with localcontext(DIGITS):
        e = (-abs(Decimal(z.numerator) / Decimal(z.denominator))).exp()
        part = F(e / (1 + e))
    value, bend = logistic(-t * z), part * (1 - part) - OFF
    slope = -t * (1 - part if t * z <= 0 else part)
    least = bend
    for end in (low, high):
        width = abs(end - z)
        rise = logistic(-t * end) - value - slope * (end - z) - OFF * (2 + width)
        secant = 2 * rise / width**2 if width else F(0)
        # No bend falls faster than exp(-width).
        least = min(least, max(secant, bend * (1 - width)))
    return value, slope, least


def away(r: Regression, q: Quadratic, low: Sequence[F], high: Sequence[F], level: F) -> set[tuple[int, int]]:
    """Rows whose lower (0) or upper (1) end no point with q at most the level reaches."""
    m, n = len(q.h), len(low)
    rows = [list(row) for row in zip(*columns(r), strict=True)]
    answers, kept = solve(q.H, [q.h, *rows])
    if len(kept) < m:
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
