"""How large coefficients can be without a ridge, for the second checker (Huber and logistic loss, lam = 0).

Doubles say which dual vectors to look at; what these show is worked out in fractions. With v = A'b every model of an
objective of at most L has v'x <= L + L*(b), so one with v = t e_j and little else limits x_j.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction as F

from .algebra import as_float, near, root
from .regression import Regression
from .rows import slopes
from .work import tally

MODEL_RADIUS = 10**4
"""Claims about bounded models speak of those with |x_j| ||a_j|| <= this * ||y||."""

CAREFUL = 0.9
"""Part of the room of the slopes that is used."""

STEPS = 6


def sizes(r: Regression, x: dict[int, F], out: Iterable[int] = ()) -> list[F]:
    """R (d,): a model that costs no more than the empty one has |x_j| <= R_j (0: a column of zeros); [] if unknown.

    Columns in ``out`` are in no model.
    """
    level = r.objective({})
    g = slopes(r.loss, r.delta, r.predict(x), r.y)
    banned = {*out}
    # Of columns that are constant beside an intercept nothing is left.
    used = [j for j in range(len(r.columns)) if r.G[j][j] and j not in banned]
    if r.k == 0 or not used:
        return [F(0)] * len(r.columns)
    for part in (F(0), F(1, 2)):
        found = around(r, [v * (1 - part) for v in g], used, level)
        if found is not None:
            known = dict(zip(used, found, strict=True))
            return [known.get(j, F(0)) for j in range(len(r.columns))]
    return []


def sizes_in_scope(r: Regression) -> list[F]:
    """R (d,): how large coefficients are with |x_j| ||a_j|| <= MODEL_RADIUS ||y||, where columns have no means."""
    square = sum((w * v * v for w, v in zip(r.weights, r.y, strict=True)), F(0)) if r.loss == "logistic" else 2 * r.c
    target = root(square, above=True)
    return [
        MODEL_RADIUS * target / root(r.G[j][j], above=False) if r.G[j][j] and r.k else F(0)
        for j in range(len(r.columns))
    ]


def around(r: Regression, g: list[F], used: list[int], level: F) -> list[F] | None:
    """The same for some columns by dual vectors around slopes g."""
    most = as_float(r.delta) if r.loss == "huber" else 1.0
    now = [as_float(abs(v)) for v in g]
    left = [max(0.0, most - v) if r.loss == "huber" else min(v, 1.0 - v) for v in now]
    room = [(most - v) * (most + v) / most**2 if r.loss == "huber" else v * (1.0 - v) for v in now]
    turned = directions(r, used, [as_float(w) * h for w, h in zip(r.weights, room, strict=True)])
    if turned is None:
        return None
    a, E = [], []
    gap = max(as_float(level - pulls(r, g, used)[0]), 1e-6 * as_float(level))
    for place, (moves, bend) in enumerate(turned):
        moves = [h * m for h, m in zip(room, moves, strict=True)]
        if any(m and not left[i] for i, m in enumerate(moves)):
            return None
        furthest = max((abs(m) / left[i] for i, m in enumerate(moves) if m), default=0.0)
        if not 0.0 < furthest < 1e200:
            return None
        if not all(map(math.isfinite, moves)):
            return None
        length = min(CAREFUL / furthest, math.sqrt(2.0 * gap / bend) if bend > 0.0 else math.inf)
        limits, rests = [], []
        for sign in (1, -1):
            moved = [v + near(F(sign * length * m)) if m else v for v, m in zip(g, moves, strict=True)]
            value, v = pulls(r, moved, used)
            pull = sign * v[place]
            if pull <= 0:
                return None
            limits.append(max(F(0), level - value) / pull)
            rests.append([abs(u) / pull if j != place else F(0) for j, u in enumerate(v)])
        a.append(max(limits))
        E.append([near(max(up, down)) * F(1001, 1000) if up or down else F(0) for up, down in zip(*rests, strict=True)])
    return limited(a, E)


def pulls(r: Regression, g: list[F], used: list[int]) -> tuple[F, list[F]]:
    """-L* at slopes of the rows, at least, and A'b on the used columns."""
    if r.loss == "huber":
        g = [min(max(v, -r.delta), r.delta) for v in g]
    else:
        g = [-min(max(-v * t, F(0)), F(1)) * t for v, t in zip(g, r.y, strict=True)]
    value, products = r.spoken(g)
    return value, [products[j] for j in used]


def directions(r: Regression, used: list[int], weights: list[float]) -> list[tuple[list[float], float]] | None:
    """For each used column A H^-1 e_j and its entry j, H = A' diag(weights) A with the intercept and columns as long as
    one; None where there is no inverse.
    """
    sides = [[as_float(v) for v in r.columns[j]] for j in used] + ([[1.0] * len(r.y)] if r.level else [])
    scale = [max(map(abs, side)) for side in sides]
    sides = [[v / s for v in side] for side, s in zip(sides, scale, strict=True)]
    m = len(sides)
    tally(m * m * (len(weights) + m) / 4)
    rows = [[sum(w * a * b for w, a, b in zip(weights, left, right, strict=True)) for right in sides] for left in sides]
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
    inverse = [row[m:] for row in rows]
    data = [list(row) for row in zip(*sides, strict=True)]
    return [
        ([sum(inverse[k][j] * v for k, v in enumerate(row)) for row in data], inverse[j][j]) for j in range(len(used))
    ]


def limited(a: list[F], E: list[list[F]]) -> list[F] | None:
    """R > 0 with R >= a + E R."""
    R = [near(v) * F(1001, 1000) for v in a]
    for _ in range(STEPS):
        needed = [v + sum((e * u for e, u in zip(row, R, strict=True)), F(0)) for v, row in zip(a, E, strict=True)]
        if not all(v > 0 for v in needed):
            return None
        if all(v >= u for v, u in zip(R, needed, strict=True)):
            return R
        R = [near(v) * F(1001, 1000) for v in needed]
    return None
