"""Limits on the size of coefficients, for the second checker (every loss but the quadratic one).

Doubles select the dual vectors to evaluate; their bounds are computed in fractions. With v = A'b every model of an
objective of at most L has v'x <= L + L*(b), so one with v = t e_j and little else limits x_j. A ridge limits
coefficients, too; only where a column is long beside it do dual vectors say more, and of what they show a short column
takes v_l^2 / (2 lam). A model has m columns at most, so beside any column only the m - 1 largest of these parts count.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction as F

from .algebra import as_float, near, root
from .regression import Regression
from .work import tally

MODEL_RADIUS = 10**4
"""Claims about bounded models speak of those with |x_j| ||a_j|| <= this * ||y||."""

LONG = 10**6
"""Times the ridge weight of a column: its square from which dual vectors are used."""

CAREFUL = 0.9
"""Part of the room of the slopes that is used."""

STEPS = 6

FIRMER = 1e-10
"""Part of it added to the diagonal of H where columns depend on each other, beside a ridge."""


def sizes(r: Regression, x: dict[int, F], out: Iterable[int] = ()) -> list[F]:
    """R (d,): a model that costs no more than the empty one has |x_j| <= R_j (0: a column of zeros); [] if unknown.

    Columns in ``out`` are in no model.
    """
    level = r.objective({})
    g = r.slopes(x)
    banned = {*out}
    # Of columns that are constant beside an intercept nothing is left.
    used = [j for j in range(len(r.columns)) if r.G[j][j] and j not in banned]
    radii = {j: F(0) for j in range(len(r.columns))}
    if r.k == 0 or not used:
        return [*radii.values()]
    long = [j for j in used if r.G[j][j] >= LONG * r.ridge[j]]
    if r.lam:
        radii |= {j: near(root(2 * level / r.ridge[j], above=True) * F(1001, 1000)) for j in used}
    for part in (F(0), F(1, 2)):
        system, others = around(r, [v * (1 - part) for v in g], used, long, level), most_columns(r) - 1
        if system is not None and r.lam:
            radii |= dict(zip(long, lowered(*system, [radii[j] for j in long], others), strict=True))
        limited = None if system is None else within(*system, others)
        if limited is not None:
            for j, size in zip(long, limited, strict=True):
                radii[j] = min(size, radii[j]) if r.lam else size
            return [*radii.values()]
    return [*radii.values()] if r.lam else []


def sizes_in_scope(r: Regression) -> list[F]:
    """R (d,): how large coefficients are with |x_j| ||a_j|| <= MODEL_RADIUS ||y||, where columns have no means."""
    square = sum((w * v * v for w, v in zip(r.weights, r.y, strict=True)), F(0)) if r.loss.labels else 2 * r.c
    target = root(square, above=True)
    return [
        MODEL_RADIUS * target / root(r.G[j][j], above=False) if r.G[j][j] and r.k else F(0)
        for j in range(len(r.columns))
    ]


def sizes_in_bounds(r: Regression, scoped: bool, out: Iterable[int] = ()) -> list[F]:
    """R (d,): how large coefficients within their bounds are, quadratic loss without a ridge; [] if one has no limit.

    Where one has none, the scope limits it. Columns of zeros, and those in ``out``, do not count.
    """
    banned, valid_for = {*out}, sizes_in_scope(r)
    radii: list[F] = []
    for j, (low, high) in enumerate(zip(*r.bounds, strict=True)):
        largest = max(-low, high)
        if j in banned or not r.G[j][j]:
            radii.append(F(0))
        elif math.isfinite(largest):
            radii.append(min(F(largest), valid_for[j]) if scoped else F(largest))
        elif scoped:
            radii.append(valid_for[j])
        else:
            return []
    return radii


def around(
    r: Regression, g: list[F], used: list[int], long: list[int], level: F
) -> tuple[list[F | None], list[list[F]]] | None:
    """a and E for the long ones of the used columns, by dual vectors around slopes g: |x| <= a + E |x|.

    An a of None is that of a column of which they say nothing.
    """
    slack, room = zip(*(r.loss.room(v, t) for v, t in zip(g, r.y, strict=True)), strict=True)
    turned = directions(r, used, long, [as_float(w) * h for w, h in zip(r.weights, room, strict=True)])
    if turned is None:
        return None
    a: list[F | None] = []
    E: list[list[F]] = []
    value, now = pulls(r, g, used, long)
    gap = max(as_float(level - value), 1e-6 * as_float(level))
    for place, (moves, bend) in enumerate(turned):
        moves = [h * m for h, m in zip(room, moves, strict=True)]
        stuck = any(m and not slack[i] for i, m in enumerate(moves)) or not all(map(math.isfinite, moves))
        furthest = 0.0 if stuck else max((abs(m) / slack[i] for i, m in enumerate(moves) if m), default=0.0)
        if not 0.0 < furthest < 1e200:
            if not r.lam:
                return None
            a.append(None)
            E.append([F(0)] * len(long))
            continue
        already = as_float(now[place] / max(map(abs, r.columns[long[place]])))
        furthest, best = CAREFUL / furthest, 2.0 * gap / bend if bend > 0.0 else math.inf
        limits: list[F] = []
        rests: list[list[F]] = []
        for sign in (1, -1):
            length = min(furthest, math.hypot(already, math.sqrt(best)) - sign * already)
            moved = [v + near(F(sign * length * m)) if length * m else v for v, m in zip(g, moves, strict=True)]
            value, v = pulls(r, moved, used, long)
            pull = sign * v[place]
            if pull <= 0 and not r.lam:
                return None
            if pull <= 0:
                limits, rests = [], []
                break
            limits.append(max(F(0), level - value) / pull)
            rests.append([abs(u) / pull if j != place else F(0) for j, u in enumerate(v)])
        a.append(max(limits) if limits else None)
        E.append([near(max(up, down)) * F(1001, 1000) if up or down else F(0) for up, down in zip(*rests, strict=True)])
    return a, E


def pulls(r: Regression, g: list[F], used: list[int], long: list[int]) -> tuple[F, list[F]]:
    """What is left of -L* at slopes of the rows, at least, once short columns took theirs, and A'b on the long ones."""
    value, products = r.spoken(r.in_domain(g))
    taken = sorted((products[j] ** 2 / r.ridge[j] for j in {*used} - {*long}), reverse=True)
    return value - sum(taken[: most_columns(r) - 1], F(0)) / 2, [products[j] for j in long]


def most_columns(r: Regression) -> int:
    """Columns of a model, at most."""
    return sum(sorted(map(len, r.groups), reverse=True)[: r.k])


def directions(
    r: Regression, used: list[int], long: list[int], weights: list[float]
) -> list[tuple[list[float], float]] | None:
    """For each long column A H^-1 e_j and its entry j, H = A' diag(weights) A with the intercept and the ridge, columns
    as long as one; None where there is no inverse.
    """
    sides = [[as_float(v) for v in r.columns[j]] for j in used] + ([[1.0] * len(r.y)] if r.level else [])
    scale = [max(map(abs, side)) for side in sides]
    sides = [[v / s for v in side] for side, s in zip(sides, scale, strict=True)]
    m = len(sides)
    tally(m * m * (len(weights) + m) / 4)
    rows = [[sum(w * a * b for w, a, b in zip(weights, left, right, strict=True)) for right in sides] for left in sides]
    for i, j in enumerate(used):
        rows[i][i] += as_float(r.ridge[j] / F(scale[i]) ** 2)
    # The ridge may be most of a short column's entry: an inverse is looked for where all of these are one.
    roots = [math.sqrt(rows[i][i]) if rows[i][i] > 0.0 else 1.0 for i in range(m)]
    rows = [[v / (roots[i] * roots[j]) for j, v in enumerate(row)] for i, row in enumerate(rows)]
    firmer = [[v * (1.0 + FIRMER * (i == j)) for j, v in enumerate(row)] for i, row in enumerate(rows)]
    inverse = inverted(rows) or (inverted(firmer) if r.lam else None)
    if inverse is None:
        return None
    data = [list(row) for row in zip(*sides, strict=True)]
    places = [used.index(j) for j in long]
    inverse = [[v / (roots[i] * roots[j]) for j, v in enumerate(row)] for i, row in enumerate(inverse)]
    return [([sum(inverse[k][j] * v for k, v in enumerate(row)) for row in data], inverse[j][j]) for j in places]


def inverted(rows: list[list[float]]) -> list[list[float]] | None:
    """The inverse of a matrix; None where there is none."""
    m = len(rows)
    rows = [row + [float(i == j) for j in range(m)] for i, row in enumerate(rows)]
    for j in range(m):
        pivot = max(range(j, m), key=lambda i: abs(rows[i][j]))
        if not abs(rows[pivot][j]) > 1e-14 * abs(rows[pivot][pivot]) or rows[pivot][j] == 0.0:
            return None
        rows[j], rows[pivot] = rows[pivot], rows[j]
        rows[j] = [v / rows[j][j] for v in rows[j]]
        for i in range(m):
            if i != j and rows[i][j]:
                factor = rows[i][j]
                rows[i] = [v - factor * u for v, u in zip(rows[i], rows[j], strict=True)]
    return [row[m:] for row in rows]


def within(a: list[F | None], E: list[list[F]], others: int) -> list[F] | None:
    """R > 0 with R >= a + E R."""
    R = [near(v) * F(1001, 1000) for v in a if v is not None]
    for _ in range(STEPS if len(R) == len(a) else 0):
        needed = [v for v in reached(a, E, R, others) if v is not None]
        if not all(v > 0 for v in needed):
            return None
        if all(v >= u for v, u in zip(R, needed, strict=True)):
            return R
        R = [near(v) * F(1001, 1000) for v in needed]
    return None


def lowered(a: list[F | None], E: list[list[F]], R: list[F], others: int) -> list[F]:
    """What is no smaller than any coefficient because R is not, either."""
    for _ in range(STEPS):
        bounds = reached(a, E, R, others)
        R = [u if v is None else min(u, near(v) * F(1001, 1000)) for u, v in zip(R, bounds, strict=True)]
    return R


def reached(a: list[F | None], E: list[list[F]], R: list[F], others: int) -> list[F | None]:
    """a + E R, of a row of E the largest parts that ``others`` columns can have."""
    bounds: list[F | None] = []
    for v, row in zip(a, E, strict=True):
        parts = sorted((e * u for e, u in zip(row, R, strict=False)), reverse=True)
        bounds.append(None if v is None else v + sum(parts[:others], F(0)))
    return bounds
