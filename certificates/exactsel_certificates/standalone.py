"""A second checker of proof files, from FORMAT.md alone: fractions, no numpy. For small instances.

It shares no line with the other checker. Bounds are exact rational numbers; only logarithms are rounded, outwards.
Claims about column subset selection with a scope are beyond it. ``standalone_cli.py`` beside it is its command line.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Iterator, Sequence
from fractions import Fraction as F
from itertools import accumulate, pairwise
from typing import Any

from exactsel_certificates.standalone_rows import entropy, intercept, logistic, shares

NAMES = ["curvature", "model_value", "point_value", "dual_value", "model_index", "point_size", "tree", "point_index"]
TYPES = {"<f8": "d", "<f4": "f", "<i4": "i", "<u2": "H", "u1": "B"}
ALLOWED = [["<f8"], ["<f8"], ["<f8", "<f4"], ["<f8"], ["<i4"], ["<i4"], ["<i4"], ["<i4", "<u2", "u1"]]
RADIUS = 10**6
Matrix = list[list[F]]


class Malformed(Exception):
    """The file breaks a rule of the format."""


class Beyond(Exception):
    """True or not, this checker cannot say."""


def need(condition: bool, what: str) -> None:
    """Malformed unless ``condition``."""
    if not condition:
        raise Malformed(what)


def read(data: bytes) -> dict[str, Any]:
    """Header and arrays of a proof file in one dictionary."""
    need(len(data) >= 8, "no header")
    size = struct.unpack("<Q", data[:8])[0]
    need(size <= 65536 and 8 + size <= len(data), "header too long")
    try:
        proof: dict[str, Any] = json.loads(data[8 : 8 + size].decode())
        lower, upper = float.fromhex(proof["lower"]), float.fromhex(proof["upper"])
        sizes = [proof[name] for name in ("n", "d", "k")]
        listed = [(name, kind, count) for name, kind, count in proof["arrays"]]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, AttributeError):
        raise Malformed("bad header") from None
    need(proof.get("format") == "exsel" and type(proof.get("version")) is int and proof["version"] == 1, "version")
    need(proof.get("groups") is None, "reserved")
    need(all(proof.get(name) is None or proof[name] is True for name in ("weights", "intercept")), "flags")
    need(math.isfinite(lower) and math.isfinite(upper), "claim")
    need(all(type(s) is int and 0 <= s < 2**31 for s in sizes), "sizes")
    need(proof.get("scope") in ("", "bounded models"), "scope")
    need(all(type(proof.get(name)) is str for name in ("family", "loss", "problem_hash")), "texts")
    need([name for name, _, _ in listed] == NAMES, "arrays")
    position = 8 + size
    for (name, kind, count), allowed in zip(listed, ALLOWED, strict=True):
        need(kind in allowed and type(count) is int and 0 <= count <= len(data), "array " + name)
        form = f"<{count}{TYPES[kind]}"
        need(position + struct.calcsize(form) <= len(data), "cut off")
        proof[name] = struct.unpack_from(form, data, position)
        position += struct.calcsize(form)
    need(position == len(data), "bytes left over")
    return proof | {"lower": lower, "upper": upper, "points": check_arrays(proof)}


def check_arrays(p: dict[str, Any]) -> list[dict[int, F]]:
    """The points, once everything about the arrays is seen to be in order."""
    need(all(math.isfinite(v) for name in NAMES[:4] for v in p[name]), "not finite")
    need(len(p["curvature"]) in (0, p["d"]) and all(v > 0 for v in p["curvature"]), "curvature")
    need(len(p["model_index"]) == len(p["model_value"]) and len(p["point_index"]) == len(p["point_value"]), "lengths")
    need(len(p["dual_value"]) % max(p["n"], 1) == 0, "dual vectors")
    need(all(s >= 0 for s in p["point_size"]) and sum(p["point_size"]) == len(p["point_index"]), "point sizes")
    points = []
    for end, size in zip(accumulate(p["point_size"]), p["point_size"], strict=True):
        columns = p["point_index"][end - size : end]
        need(rising(columns, p["d"]), "point")
        points.append(dict(zip(columns, map(F, p["point_value"][end - size : end]), strict=True)))
    need(rising(p["model_index"], p["d"]), "model")
    return points


def rising(columns: tuple[int, ...], d: int) -> bool:
    """Whether these are columns in ascending order."""
    return all(0 <= j < d for j in columns) and all(i < j for i, j in pairwise(columns))


def regions(
    tree: tuple[int, ...], d: int, k: int, inside: Sequence[int] = (), outside: Sequence[int] = ()
) -> Iterator[tuple[set[int], set[int], int]]:
    """S, C and witness of every closed region."""
    todo = [(set(inside), set(range(d)) - set(inside) - set(outside))]
    witness = 0
    for word in tree:
        need(bool(todo), "words after the last region")
        kind, j = word & 7, word >> 3
        need(0 <= kind <= 5 and j >= 0, "no such word")
        if kind == 5:
            witness = j
            continue
        S, C = todo.pop()
        if kind == 4:
            yield S, C, witness
            continue
        need(j in C and len(S) < k, "column cannot be decided")
        within, without = (S | {j}, C - {j}), (S, C - {j})
        if kind in (0, 1):
            todo += [without, within] if kind == 0 else [within, without]
        else:
            closed, on = (without, within) if kind == 2 else (within, without)
            yield (*closed, witness)
            todo.append(on)
    need(not todo, "regions left")


def solve(H: Matrix, sides: list[list[F]]) -> tuple[list[list[F]], list[int]]:
    """Solutions of Hx = side (H semidefinite, exact) with dependent columns at zero, and the independent columns."""
    m = len(H)
    rows = [H[i][:] + [side[i] for side in sides] for i in range(m)]
    kept = []
    for j in range(m):
        if rows[j][j] == 0:
            continue
        kept.append(j)
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


def dot(a: list[F], b: list[F]) -> F:
    """a'b."""
    return sum((x * y for x, y in zip(a, b, strict=True)), F(0))


class Regression:
    """Exact bounds for one regression problem."""

    def __init__(
        self, A: list[list[float]], y: list[float], k: int, loss: str, lam: float, delta: float,
        weights: Sequence[float] | None = None, level: bool = False,
    ) -> None:  # fmt: skip
        self.columns = [[F(row[j]) for row in A] for j in range(len(A[0]))]
        self.weights, self.level = [F(1)] * len(y) if weights is None else [F(w) for w in weights], level
        self.y, self.k, self.loss, self.lam, self.delta = [F(v) for v in y], k, loss, F(lam), delta
        d = len(self.columns)
        self.G = [[F(0)] * d for _ in range(d)]
        for i in range(d):
            for j in range(i + 1):
                self.G[i][j] = self.G[j][i] = dot(self.columns[i], self.columns[j])
        self.b = [dot(column, self.y) for column in self.columns]
        self.c = dot(self.y, self.y) / 2

    def counted(self, S: set[int], C: set[int], terms: dict[int, F]) -> F:
        """The terms of S and the largest of C, one for each place left."""
        largest = sorted((terms[j] for j in C), reverse=True)[: max(0, self.k - len(S))]
        return sum((terms[j] for j in S), F(0)) + sum(largest, F(0))

    def predict(self, x: dict[int, F]) -> list[F]:
        """Ax, and the intercept where there is one."""
        z = [sum((v * self.columns[j][i] for j, v in x.items()), F(0)) for i in range(len(self.y))]
        c = intercept(self.loss, self.delta, z, self.y, self.weights) if self.level else F(0)
        return [v + c for v in z]

    def curved(self, S: set[int], C: set[int], x: dict[int, F], D: list[F]) -> F:
        """Formula (3)."""
        Mx = {}
        for j in S | C | x.keys():
            Mx[j] = sum((self.G[j][i] * v for i, v in x.items()), F(0)) + (self.lam - D[j]) * x.get(j, 0)
        terms = {j: (Mx[j] - self.b[j]) ** 2 / D[j] for j in S | C}
        return self.c - sum((v * Mx[j] for j, v in x.items()), F(0)) / 2 - self.counted(S, C, terms) / 2

    def dual(self, S: set[int], C: set[int], beta: list[float]) -> F:
        """Formula (2) at the nearest vector in the domain of the conjugate."""
        if self.lam == 0:
            return F(0)
        if self.loss == "huber":
            beta = [min(max(v, -self.delta), self.delta) for v in beta]
        p = [min(max(-v * float(label), 0.0), 1.0) for v, label in zip(beta, self.y, strict=True)]
        if self.loss == "logistic":
            exact = [-F(q) * label for q, label in zip(p, self.y, strict=True)]
            rows = [entropy([q]) for q in p]
        else:
            exact = [F(v) for v in beta]
            rows = [-v * v / 2 - v * t for v, t in zip(exact, self.y, strict=True)]
        counts = shares(exact, self.weights, self.level)
        value, exact = dot(counts, rows), [s * v for s, v in zip(counts, exact, strict=True)]
        terms = {j: dot(self.columns[j], exact) ** 2 / self.lam for j in S | C}
        return value - self.counted(S, C, terms) / 2

    def at_point(self, S: set[int], C: set[int], x: dict[int, F], curvatures: list[list[F]]) -> F:
        """The bound a point proves."""
        if self.loss == "quadratic":
            return max((self.curved(S, C, x, D) for D in curvatures), default=F(0))
        z = [float(v) for v in self.predict(x)]
        if self.loss == "huber":
            return self.dual(S, C, [v - float(t) for v, t in zip(z, self.y, strict=True)])
        half = [math.tanh(v * float(t) / 2) for v, t in zip(z, self.y, strict=True)]
        return self.dual(S, C, [-float(t) * (1 - h) / 2 for h, t in zip(half, self.y, strict=True)])

    def at_fit(self, S: set[int], C: set[int], curvatures: list[list[F]], bounded: bool) -> F:
        """The bound the fit proves."""
        if self.k - len(S) == 1 and C:
            return min(self.at_fit(S | {j}, set(), curvatures, bounded) for j in C)
        used = sorted(S if len(S) >= self.k else S | C)
        H = [[self.G[i][j] + (self.lam if i == j else 0) for j in used] for i in used]
        x, _ = solve(H, [[self.b[j] for j in used]])
        fit = dict(zip(used, x[0], strict=True))
        value = self.c - sum((v * self.b[j] for j, v in fit.items()), F(0)) / 2
        rounded = {j: F(float(v)) for j, v in fit.items()} if curvatures else {}
        values = [value, *(self.curved(S, C, rounded, D) for D in curvatures)]
        if bounded:
            values += [self.bounded(S, C, used, H, F(1, 10**e)) for e in (8, 12)]
        return max(values)

    def bounded(self, S: set[int], C: set[int], used: list[int], H: Matrix, share: F) -> F:
        """A bound for models of bounded size, at a fit that leaves out nearly dependent directions."""
        ridge = [[v + (share * H[i][i] if i == j else 0) for j, v in enumerate(row)] for i, row in enumerate(H)]
        x = {j: F(0) for j in used}
        for _ in range(6):
            left = [self.b[j] - sum((self.G[j][i] * v for i, v in x.items()), F(0)) for j in used]
            step, _ = solve(ridge, [[F(float(v)) for v in left]])
            x = {j: F(round((x[j] + s) * 2**140), 2**140) for j, s in zip(used, step[0], strict=True)}
        residual = [p - t for p, t in zip(self.predict(x), self.y, strict=True)]
        size, terms = root(2 * self.c, above=True), {}
        for j in S | C:
            v = abs(dot(self.columns[j], residual))
            terms[j] = RADIUS * size * v / root(self.G[j][j], above=False) if v else F(0)
        return -dot(residual, residual) / 2 - dot(residual, self.y) - self.counted(S, C, terms)

    def objective(self, x: dict[int, F]) -> F:
        """P(x), rounded upwards."""
        z, ridge = self.predict(x), self.lam * sum((v * v for v in x.values()), F(0)) / 2
        if self.loss == "logistic":
            return ridge + dot(self.weights, [logistic([-a * b]) for a, b in zip(z, self.y, strict=True)])
        sizes = [abs(a - b) for a, b in zip(z, self.y, strict=True)]
        if self.loss == "quadratic":
            return ridge + dot(sizes, sizes) / 2
        delta = F(self.delta)
        return ridge + dot(self.weights, [r * r / 2 if r <= delta else delta * (r - delta / 2) for r in sizes])


class Selections:
    """Exact bounds for column subset selection."""

    def __init__(self, A: list[list[float]], k: int) -> None:
        self.columns = [[F(row[j]) for row in A] for j in range(len(A[0]))]
        self.k = k

    def left(self, S: set[int]) -> Matrix:
        """The columns of A less their projection on the span of S."""
        chosen = [self.columns[j] for j in sorted(S)]
        sides = [[dot(a, column) for a in chosen] for column in self.columns]
        answers, _ = solve([[dot(a, b) for b in chosen] for a in chosen], sides)
        return [
            [v - sum((x * a[i] for x, a in zip(answer, chosen, strict=True)), F(0)) for i, v in enumerate(column)]
            for column, answer in zip(self.columns, answers, strict=True)
        ]

    def objective(self, S: set[int]) -> F:
        """||A - S S+ A||_F^2."""
        return sum((dot(e, e) for e in self.left(S)), F(0))

    def bound(self, S: set[int], C: set[int]) -> F:
        """What no selection of the region is below."""
        places = self.k - len(S)
        if places <= 0 or len(C) <= places:
            return self.objective(S if places <= 0 else S | C)
        if places == 1:
            return min(self.objective(S | {j}) for j in C)
        E = self.left(S)
        chosen = [E[j] for j in sorted(C)]
        gram = [[dot(a, b) for b in chosen] for a in chosen]
        _, kept = solve(gram, [])
        chosen, gram = [chosen[i] for i in kept], [[gram[i][j] for j in kept] for i in kept]
        images = [[dot(e, a) for e in E] for a in chosen]
        energy = [[dot(a, b) for b in images] for a in images]
        total = sum((dot(e, e) for e in E), F(0))
        return total - sum((largest(energy, gram, rank, total) for rank in range(min(places, len(kept)))), F(0))


def largest(B: Matrix, N: Matrix, rank: int, top: F) -> F:
    """A number hardly above the eigenvalue of (B, N) of this rank, 0 being the largest: at most rank are above it."""
    low, high = 0.0, float(top) * (1 + 1e-12)
    while high - low > 1e-13 * float(top):
        middle = (low + high) / 2
        t = F(middle)
        count = positives([[b - t * n for b, n in zip(r, s, strict=True)] for r, s in zip(B, N, strict=True)])
        if 0 <= count <= rank:
            high = middle
        else:
            low = middle
    return F(high)


def problem_hash(A: list[list[float]], y: list[float], header: dict[str, Any]) -> str:
    """sha256 over everything that defines the problem."""
    digest = hashlib.sha256(b"exactsel-problem-v1\0" + json.dumps(header, sort_keys=True).encode())
    for row in [*A, y]:
        digest.update(struct.pack(f"<{len(row)}d", *row))
    return digest.hexdigest()


def check(
    data: bytes, A: list[list[float]], y: list[float], k: int, loss: str, lam: float, delta: float,
    must_have: Sequence[int] = (), must_not: Sequence[int] = (), weights: Sequence[float] | None = None,
    level: bool = False,
) -> str:  # fmt: skip
    """Empty when the file proves its claim about this problem (``loss`` "" for column subset selection), else why not.

    ``level`` says whether models have an intercept.

    Raises
    ------
    Malformed, Beyond
    """
    p, n, d = read(data), len(A), len(A[0])
    parameters = {"delta": float(delta).hex()} if loss == "huber" else {}
    about: dict[str, Any] = {"n": n, "d": d, "k": k}
    about |= {"loss": loss, "lam": float(lam).hex(), "parameters": parameters} if loss else {"problem": "css"}
    if must_have or must_not:
        about |= {"must_have": list(must_have), "must_not": list(must_not)}
    flags = {"intercept": True if level else None, "weights": None if weights is None else True}
    about |= {name: True for name, value in flags.items() if value}
    numbers = [*y, *(weights or ())] if loss else []
    ours = ("regression" if loss else "css", loss, n, d, k, problem_hash(A, numbers, about))
    if ours != tuple(p[name] for name in ("family", "loss", "n", "d", "k", "problem_hash")):
        return "another problem"
    if any(p.get(name) != value for name, value in flags.items()):
        return "another problem"
    model = {j: F(v) for j, v in zip(p["model_index"], p["model_value"], strict=True) if v}
    if len({*model, *must_have}) > k or {*model} & {*must_not}:
        return "columns that are not allowed"
    lower, upper, bounded = F(p["lower"]), F(p["upper"]), p["scope"] != ""
    if not loss:
        if bounded:
            raise Beyond("a claim about bounded reconstructions")
        selections = Selections(A, k)
        low = min(selections.bound(S, C) if w == 2 else F(0) for S, C, w in regions(p["tree"], d, k))
        return "" if low >= lower and selections.objective(set(model)) <= upper else f"only {float(low)!r} is proven"
    r = Regression(A, y, k, loss, lam, delta, weights, level)
    D = [F(v) for v in p["curvature"]]
    M = [[v - (D[i] - r.lam if i == j else 0) for j, v in enumerate(row)] for i, row in enumerate(r.G)] if D else []
    curvatures = ([D] if D and semidefinite(M) else []) + ([[r.lam] * d] if lam > 0 else [])
    low = upper
    for S, C, w in regions(p["tree"], d, k, must_have, must_not):
        number, dual = divmod(w - 3, 2)
        bound = F(0)
        if w == 1 and loss == "quadratic":
            bound = r.at_fit(S, C, curvatures, bounded)
        elif w >= 3 and not dual and number < len(p["points"]):
            bound = r.at_point(S, C, p["points"][number], curvatures)
        elif w >= 3 and dual and (number + 1) * n <= len(p["dual_value"]):
            bound = r.dual(S, C, p["dual_value"][number * n : number * n + n])
        low = min(low, max(bound, F(0)))
    value = r.objective(model)
    return "" if low >= lower and value <= upper else f"only {float(low)!r} is proven, the model costs {float(value)!r}"
