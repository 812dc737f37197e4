"""Tiny problems, their exact optima, and proof files written by hand: for the checker that knows no numpy.

Nothing here is taken from the checker or the solver. Optima of quadratic loss and of column subset selection are exact:
normal equations in fractions on every support, the intercept a coefficient like the others. For the other losses the
optimum is the objective of a model found by Newton's method, which no true lower bound is above.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import struct
from fractions import Fraction as F
from itertools import combinations
from typing import Any, NamedTuple

RADIUS = 10**6
TYPES = {"d": "<f8", "f": "<f4", "i": "<i4", "H": "<u2", "B": "u1"}
ORDER = ("curvature", "model_value", "point_value", "dual_value", "model_index", "point_size", "tree", "point_index")
SPLIT_IN, SPLIT_OUT, PUT_IN, LEAVE_OUT, CLOSE, USE = range(6)
FIT, EIGENVALUES = 1, 2


class Case(NamedTuple):
    """A problem, in the words of the checker."""

    A: list[list[float]]
    y: list[float]
    k: int
    loss: str = "quadratic"
    lam: float = 1.0
    delta: float = 1.0
    weights: list[float] | None = None
    level: bool = False
    scale: bool = False
    groups: list[list[int]] = []  # noqa: RUF012
    must_have: list[int] = []  # noqa: RUF012
    must_not: list[int] = []  # noqa: RUF012

    @property
    def units(self):
        return self.groups or [[j] for j in range(len(self.A[0]))]

    def supports(self):
        """All sets of units a model may use."""
        free = [g for g in range(len(self.units)) if g not in self.must_have and g not in self.must_not]
        for size in range(self.k - len(self.must_have) + 1):
            for more in combinations(free, size):
                yield [*self.must_have, *more]

    def row_weights(self):
        return [F(w) for w in self.weights] if self.weights is not None else [F(1)] * len(self.y)

    def squares(self):
        """Squares of the scales: s_j^2."""
        w = self.row_weights() if self.loss else []
        result = []
        for j in range(len(self.A[0])):
            column = [F(row[j]) for row in self.A]
            mean = sum(a * b for a, b in zip(w, column, strict=True)) / sum(w) if self.level else F(0)
            square = sum(a * (b - mean) ** 2 for a, b in zip(w, column, strict=True)) / sum(w) if self.scale else F(0)
            result.append(square or F(1))
        return result


class Best(NamedTuple):
    """A best model: for quadratic loss and column subset selection exactly."""

    value: F
    x: dict[int, F]
    c: F


def solved(H, right):
    """A solution of a consistent semidefinite system."""
    m = len(H)
    rows = [[*H[i], right[i]] for i in range(m)]
    pivots = []
    for j in range(m):
        free = [i for i in range(m) if i not in pivots and rows[i][j] != 0]
        if not free:
            continue
        p = free[0]
        pivots.append(p)
        rows[p] = [v / rows[p][j] for v in rows[p]]
        for i in range(m):
            if i != p and rows[i][j]:
                rows[i] = [a - rows[i][j] * b for a, b in zip(rows[i], rows[p], strict=True)]
    x = [F(0)] * m
    for p in pivots:
        first = next(j for j in range(m) if rows[p][j])
        x[first] = rows[p][m]
    return x


def least_squares(case, columns):
    """The exact best model on some columns, by normal equations with a coefficient for the intercept."""
    w, s = case.row_weights(), case.squares()
    design = [[F(row[j]) for j in columns] + [F(1)] * case.level for row in case.A]
    width = len(columns) + case.level
    H = [[sum(w[i] * r[p] * r[q] for i, r in enumerate(design)) for q in range(width)] for p in range(width)]
    for p, j in enumerate(columns):
        H[p][p] += F(case.lam) * s[j]
    found = solved(H, [sum(w[i] * r[p] * F(case.y[i]) for i, r in enumerate(design)) for p in range(width)])
    x, c = dict(zip(columns, found, strict=False)), found[-1] if case.level else F(0)
    return Best(objective(case, x, c), x, c)


def objective(case, x, c):
    """What a model with this intercept costs; exact but for logistic loss."""
    total = F(case.lam) * sum((s * x.get(j, 0) ** 2 for j, s in enumerate(case.squares())), F(0)) / 2
    for row, t, w in zip(case.A, case.y, case.row_weights(), strict=True):
        z = sum((v * F(row[j]) for j, v in x.items()), F(0)) + c
        if case.loss == "logistic":
            gap = float(-z * F(t))
            total += w * F(max(gap, 0.0) + math.log1p(math.exp(-abs(gap))))
        else:
            r = abs(z - F(t))
            inside = case.loss == "quadratic" or r <= F(case.delta)
            total += w * (r * r / 2 if inside else F(case.delta) * (r - F(case.delta) / 2))
    return total


def newton(case, columns):
    """About the best model on some columns, with Huber or logistic loss."""
    w, s = case.row_weights(), case.squares()
    total = sum(w)
    means = [sum(a * F(row[j]) for a, row in zip(w, case.A, strict=True)) / total for j in columns]
    roots = [math.sqrt(s[j]) for j in columns]
    middle = sorted(case.y)[len(case.y) // 2] if case.loss == "huber" and case.level else 0.0
    rows = [
        [float(F(row[j]) - (m if case.level else 0)) / r for j, m, r in zip(columns, means, roots, strict=True)]
        + [1.0] * case.level
        for row in case.A
    ]
    y = [float(F(t) - F(middle)) for t in case.y]
    width = len(columns) + case.level
    ridge = [case.lam] * len(columns) + [1e-9] * case.level

    def look(x):
        value, g = (
            sum(r * v * v for r, v in zip(ridge, x, strict=True)) / 2,
            [r * v for r, v in zip(ridge, x, strict=True)],
        )
        H = [[ridge[p] if p == q else 0.0 for q in range(width)] for p in range(width)]
        for row, t, weight in zip(rows, y, map(float, w), strict=True):
            z = sum(a * b for a, b in zip(row, x, strict=True))
            if case.loss == "huber":
                r = z - t
                inside = abs(r) <= case.delta
                value += weight * (r * r / 2 if inside else case.delta * (abs(r) - case.delta / 2))
                slope, bend = min(max(r, -case.delta), case.delta), float(inside)
            else:
                e = math.exp(-abs(t * z))
                value += weight * (max(-t * z, 0.0) + math.log1p(e))
                p = e / (1 + e) if t * z > 0 else 1 / (1 + e)
                slope, bend = -t * p, p * (1 - p)
            for p in range(width):
                g[p] += weight * slope * row[p]
                for q in range(width):
                    H[p][q] += weight * (bend + 1e-6) * row[p] * row[q]
        return value, g, H

    x = [0.0] * width
    for _ in range(300 if width else 0):
        value, g, H = look(x)
        step = eliminated(H, g)
        length = 1.0
        while length > 1e-12 and look([a - length * b for a, b in zip(x, step, strict=True)])[0] > value:
            length /= 2
        x = [a - length * b for a, b in zip(x, step, strict=True)]
        if length <= 1e-12 or max(map(abs, step)) <= 1e-13 * max(1.0, *map(abs, x)):
            break
    coef = {j: F(v / r) for j, v, r in zip(columns, x, roots, strict=False)}
    c = level_of(case, coef) if case.level else F(0)
    return Best(objective(case, coef, c), coef, c)


def eliminated(H, g):
    """The solution of a positive definite system, in doubles."""
    m = len(g)
    rows = [[*row, v] for row, v in zip(H, g, strict=True)]
    for p in range(m):
        for i in range(m):
            if i != p:
                factor = rows[i][p] / rows[p][p]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[p], strict=True)]
    return [rows[p][m] / rows[p][p] for p in range(m)]


def level_of(case, x):
    """About the best intercept of a model, by halving."""
    gaps = [sum((v * F(row[j]) for j, v in x.items()), F(0)) for row in case.A]
    gaps = [z - F(t) for z, t in zip(gaps, case.y, strict=True)] if case.loss == "huber" else gaps
    middle = sorted(gaps)[len(gaps) // 2]
    rows = [*zip([float(g - middle) for g in gaps], case.y, map(float, case.row_weights()), strict=True)]

    def slope(c):
        if case.loss == "huber":
            return sum(w * min(max(g + c, -case.delta), case.delta) for g, _, w in rows)
        return sum(-w * t / (1 + math.exp(min(max(t * (g + c), -700), 700))) for g, t, w in rows)

    low, high = -1e4, 1e4
    for _ in range(90):
        c = (low + high) / 2
        low, high = (low, c) if slope(c) > 0 else (c, high)
    return F(low) - middle


def columns_left(case, columns):
    """What a choice of columns leaves of all of them, exactly."""
    total = F(0)
    for j in range(len(case.A[0])):
        part = Case(case.A, [row[j] for row in case.A], 0, lam=0.0)
        total += 2 * least_squares(part, columns).value
    return Best(total, dict.fromkeys(columns, F(1)), F(0))


def fitted(case, units):
    """The best model on some units."""
    columns = sorted(j for g in units for j in case.units[g])
    return {"": columns_left, "quadratic": least_squares}.get(case.loss, newton)(case, columns)


def optimum(case):
    """The best model of all."""
    return min((fitted(case, units) for units in case.supports()), key=lambda best: best.value)


def within_scope(case, best):
    """Whether a claim about bounded models speaks of this one."""
    w = case.row_weights()

    def square(values):
        mean = sum(a * b for a, b in zip(w, values, strict=True)) / sum(w) if case.level else F(0)
        return sum(a * (b - mean) ** 2 for a, b in zip(w, values, strict=True))

    size = square([F(v) for v in case.y])
    return all(v * v * square([F(row[j]) for row in case.A]) <= RADIUS**2 * size for j, v in best.x.items())


def problem_hash(case):
    about: dict[str, Any] = {"n": len(case.A), "d": len(case.A[0]), "k": case.k}
    if case.loss:
        parameters = {"delta": float(case.delta).hex()} if case.loss == "huber" else {}
        about |= {"loss": case.loss, "lam": float(case.lam).hex(), "parameters": parameters}
    else:
        about |= {"problem": "css"}
    if case.must_have or case.must_not:
        about |= {"must_have": case.must_have, "must_not": case.must_not}
    flags = {"weights": case.weights is not None, "intercept": case.level, "scale": case.scale}
    about |= {name: True for name, flag in flags.items() if flag} | ({"groups": case.groups} if case.groups else {})
    body = b"".join(struct.pack("<d", v) for row in case.A for v in row)
    if case.loss:
        body += b"".join(struct.pack("<d", v) for v in [*case.y, *(case.weights or [])])
    return hashlib.sha256(b"exactsel-problem-v1\0" + json.dumps(about, sort_keys=True).encode() + body).hexdigest()


class File(NamedTuple):
    """What a proof file holds, in plain lists."""

    header: dict[str, Any]
    arrays: dict[str, list[Any]]
    types: dict[str, str]

    def data(self):
        """The bytes."""
        listed = [[name, TYPES[self.types[name]], len(self.arrays[name])] for name in ORDER]
        text = json.dumps(self.header | {"arrays": listed}).encode()
        text += b" " * (-len(text) % 8)
        body = b"".join(struct.pack(f"<{len(self.arrays[n])}{self.types[n]}", *self.arrays[n]) for n in ORDER)
        return struct.pack("<Q", len(text)) + text + body


def written(case, tree, model, lower, upper, points=(), duals=(), curvature=(), scope=""):
    """A proof file; points and the model are {column: number}."""
    flags = {"weights": case.weights is not None, "intercept": case.level, "scale": case.scale}
    header = {
        "format": "exsel", "version": 2 if any(flags.values()) else 1, "family": "regression" if case.loss else "css",
        "loss": case.loss, "n": len(case.A), "d": len(case.A[0]), "k": case.k, "problem_hash": problem_hash(case),
        "lower": float(lower).hex(), "upper": float(upper).hex(), "scope": scope, "groups": len(case.groups) or None,
    }  # fmt: skip
    shown = [[(j, float(v)) for j, v in sorted(point.items())] for point in [model, *points]]
    arrays = {
        "curvature": [*curvature], "dual_value": [v for beta in duals for v in beta], "tree": [*tree],
        "model_index": [j for j, _ in shown[0]], "model_value": [v for _, v in shown[0]],
        "point_size": [len(point) for point in shown[1:]],
        "point_index": [j for point in shown[1:] for j, _ in point],
        "point_value": [v for point in shown[1:] for _, v in point],
    }  # fmt: skip
    types = dict(zip(ORDER, "ddddiiiB", strict=True))
    return File(header | {name: True if flag else None for name, flag in flags.items()}, arrays, types)


def free_units(case):
    """Units neither forced in nor out."""
    return [g for g in range(len(case.units)) if g not in case.must_have and g not in case.must_not]


def full_tree(case, witness_of):
    """Every region split until its models are known, then closed by the witness for its units."""
    words = []

    def grow(S, C):
        if len(S) == case.k or not C:
            words.extend([8 * witness_of(S) + USE, CLOSE])
            return
        words.append(8 * C[0] + SPLIT_IN)
        grow([*S, C[0]], C[1:])
        grow(S, C[1:])

    grow(case.must_have, free_units(case))
    return words


def strong_file(case, best, with_duals=False, by_fit=True):
    """A proof that leaves nothing out: each region at its own best model, or its fit."""
    points, duals = [], []

    def witness_of(S):
        if not case.loss:
            return EIGENVALUES
        if case.loss == "quadratic" and by_fit:
            return FIT
        at = fitted(case, S)
        points.append(prepared(case, at.x))
        duals.append(slopes(case, at))
        return 3 + 2 * (len(points) - 1) + with_duals

    tree = full_tree(case, witness_of)
    return written(case, tree, best.x, 0.0, 1e300, points, duals)


def random_tree(rng, case, witnesses):
    """A tree of any shape, its regions closed by any of some witnesses."""
    words = []

    def grow(S, C):
        if rng.random() < 0.7:
            words.append(8 * rng.choice(witnesses) + USE)
        if len(S) >= case.k or not C or rng.random() < 0.3:
            words.append(8 * rng.randrange(3) + CLOSE)
            return
        kind, j = rng.randrange(4), rng.choice(C)
        words.append(8 * j + kind)
        rest = [i for i in C if i != j]
        parts = [([*S, j], rest), (S, rest)]
        for part in {SPLIT_IN: parts, SPLIT_OUT: parts[::-1], PUT_IN: parts[:1], LEAVE_OUT: parts[1:]}[kind]:
            grow(*part)

    grow(case.must_have, free_units(case))
    return words


def random_case(rng: random.Random, loss=None):
    """Any problem of the domain, tiny."""
    loss = rng.choice(["quadratic", "quadratic", "huber", "logistic", ""]) if loss is None else loss
    n, d = rng.randint(2, 6), rng.randint(1, 4)
    whole = rng.random() < 0.4
    A = [[float(rng.randint(-2, 2)) if whole else rng.gauss(0, 1) for _ in range(d)] for _ in range(n)]
    y = [float(rng.choice([-1, 1])) if loss == "logistic" else rng.gauss(0, 2) for _ in range(n)]
    if d > 1 and rng.random() < 0.3:  # a copy, or nearly one
        for row in A:
            row[-1] = row[0] * rng.choice([1.0, 1.0, 1.0, 1 + 1e-9])
    if not loss:
        return Case(A, y, rng.randint(0, d), "", 0.0)
    lam = rng.choice([1e-3, 0.1, 1.0, 30.0] + [0.0] * 2 * (loss == "quadratic"))
    level, scale = rng.random() < 0.5, rng.random() < 0.4
    weights = [rng.choice([0.0, 1.0, 0.5, 3.0, rng.random(), 1e4]) for _ in range(n)] if rng.random() < 0.5 else None
    if weights and not any(weights):
        weights[0] = 1.0
    if level and rng.random() < 0.5:
        offset = rng.choice([1e12, -1e12, 1e6])
        A = [[v + offset * (j % 2) for j, v in enumerate(row)] for row in A]
        y = [v + offset for v in y] if loss != "logistic" else y
    groups, units = [], d
    if d > 1 and rng.random() < 0.2:
        groups, units = [[0, d - 1], *[[j] for j in range(1, d - 1)]], d - 1
    k = rng.randint(0, units)
    named = rng.sample(range(units), rng.randint(0, min(2, units))) if rng.random() < 0.2 else []
    have = sorted(named[:1]) if k else []
    return Case(
        A, y, k, loss, lam, rng.choice([0.1, 1.0, 5.0]), weights, level, scale, groups, have,
        sorted(set(named) - set(have)),
    )  # fmt: skip


def slopes(case, best):
    """The slopes of the rows at a model, as a dual vector holds them."""
    result = []
    for row, t, w in zip(case.A, case.y, case.row_weights(), strict=True):
        z = sum((v * F(row[j]) for j, v in best.x.items()), F(0)) + best.c
        if case.loss == "logistic":
            gap = min(max(float(z * F(t)), -700.0), 700.0)
            result.append(-t / (1 + math.exp(gap)))
        elif case.loss == "huber":
            result.append(min(max(float(z - F(t)), -case.delta), case.delta))
        else:
            result.append(float(z - F(t)) * math.sqrt(w))
    return result


def prepared(case, x):
    """Coefficients of prepared columns."""
    return {j: float(v) * math.sqrt(s) for (j, v), s in zip(x.items(), (case.squares()[j] for j in x), strict=True)}


def random_file(rng, case, best):
    """A proof of any quality; its claims are those of the best model, and need not be proven by it."""
    if rng.random() < 0.4:
        return strong_file(case, best, rng.random() < 0.5, rng.random() < 0.5)
    if not case.loss:
        return written(case, random_tree(rng, case, [EIGENVALUES] * 4 + [0, 1, 3]), best.x, 0.0, 1e300)
    bests = [best]
    for _ in range(2):
        free = free_units(case)
        bests.append(fitted(case, [*case.must_have, *rng.sample(free, rng.randint(0, len(free)))]))
    points = [prepared(case, at.x) for at in bests]
    points.append({j: rng.gauss(0, 1) for j in range(len(case.A[0]))})
    duals = [slopes(case, at) for at in bests] + [[rng.gauss(0, 1) for _ in case.y]]
    witnesses = [0, *([FIT] * 4 if case.loss == "quadratic" else [FIT]), *(3 + i for i in range(9))]
    curvature = [case.lam + rng.choice([0.0, 1e-3, 0.3, 10.0]) for _ in case.A[0]] if rng.random() < 0.5 else []
    curvature = curvature if all(v > 0 for v in curvature) else []
    scope = "bounded models" if rng.random() < 0.15 else ""
    return written(case, random_tree(rng, case, witnesses), best.x, 0.0, 1e300, points, duals, curvature, scope)
