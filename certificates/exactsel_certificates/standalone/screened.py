"""Problems whose columns were screened, for the second checker: exact bounds of models with a column not active.

The tree is about the table of the active columns. FORMAT.md, *Screening*, says what bounds the other models.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Iterable, Sequence
from fractions import Fraction as F
from heapq import nlargest
from typing import Any, NamedTuple

from .algebra import dot
from .arrays import MOST
from .bounds import checked_bounds
from .constraints import arguments_of, is_asked
from .domain import problem_of
from .losses import Loss
from .mismatch import difference
from .regression import Regression
from .sparse import Sparse, in_domain, of_table
from .values import Outside
from .work import TooMuch, tally


class Stated(NamedTuple):
    """The problem as the caller knows it."""

    A: Sparse
    y: list[float]
    k: int
    loss: Loss
    lam: float
    force_in: list[int]
    force_out: list[int]
    level: bool
    bounds: list[list[float]]
    """Lower and upper limits of coefficients, infinite where there is none; empty without any."""


def is_screened(data: bytes) -> bool:
    """Whether the header of a file speaks of columns that are not active; False for one that cannot be read."""
    size = int.from_bytes(data[:8], "little")
    try:
        header = json.loads(data[8 : 8 + size].decode()) if 0 < size <= 65536 else None
    except (ValueError, RecursionError):
        return False
    return isinstance(header, dict) and header.get("columns") is not None


def as_table(A: list[list[float]] | Sparse) -> list[list[float]]:
    """Sparse data as a table; Outside where it would be too large."""
    if not isinstance(A, Sparse):
        return A
    if A.n * len(A.rows) > MOST:
        raise Outside("the proof is about a table, but the problem is sparse and too large for one.")
    return in_domain(A).table(range(len(A.rows)))


def stated(
    A: object, y: object, k: int, loss: object, lam: object, delta: object, force_in: Iterable[int],
    force_out: Iterable[int], weights: object = None, level: object = False, groups: object = (), scale: object = False,
    bounds: object = None, **related: object,
) -> Stated:  # fmt: skip
    """The sparse problem these make; Outside where it is none a proof of screened columns can speak of.

    The problem on the active columns is validated again.
    """
    if weights is not None or groups or scale or is_asked(arguments_of(related)) or not loss:
        raise Outside("the proof screens columns, but the problem has groups, weights, a constraint or scaled columns.")
    if not isinstance(A, Sparse):
        plain = problem_of(A, y, k, loss, lam, delta, force_in, force_out, None, level, bounds=bounds)
        assert plain.loss is not None
        return Stated(
            of_table(plain.A), plain.y, plain.k, plain.loss, plain.lam, plain.force_in, plain.force_out, plain.level,
            plain.bounds,
        )  # fmt: skip
    A = in_domain(A)
    d = len(A.rows)
    # One column stands for all of them, so that everything else is validated.
    plain = problem_of(A.table([0]), y, min(k, 1), loss, lam, delta, (), (), None, level)
    have, out = [*force_in], [*force_out]
    if type(k) is not int or not 0 <= k <= d or len(have) > k:
        raise Outside(f"k is no whole number from 0 to {d}, or more columns are forced in.")
    columns = have + out
    if not all(type(j) is int and 0 <= j < d for j in columns) or len({*columns}) < len(columns):
        raise Outside("force_in and force_out hold something else than different columns.")
    limits = [] if bounds is None else checked_bounds(bounds, d, False)
    assert plain.loss is not None
    return Stated(A, plain.y, k, plain.loss, plain.lam, have, out, plain.level, limits)


def mismatch_of_screened(p: dict[str, Any], problem: Stated) -> str:
    """Why a proof is not about this problem; empty when it is."""
    ours: dict[str, object] = {"family": "regression", "loss": problem.loss.name, "n": problem.A.n}
    ours |= {"columns": len(problem.A.rows), "k": problem.k, "intercept": problem.level or None}
    ours |= dict.fromkeys(("groups", "hierarchy", "weights", "scale", "equalities"))
    ours |= {"bounds": bool(problem.bounds) or None, "problem_hash": sparse_hash(problem)}
    another = difference(p, ours, problem.loss, problem.lam)
    if another:
        return another
    if not {*problem.force_in} <= {*p["active_column"]}:
        return "a column that is forced in is not active"
    return "" if p["active_column"] else "no column is active"


def on_active(
    p: dict[str, Any], problem: Stated
) -> tuple[list[list[float]], int, list[int], list[int], list[list[float]] | None]:
    """The table of the active columns, and k, force_in, force_out and limits of coefficients there."""
    active = [*p["active_column"]]
    if len(active) * problem.A.n > MOST:
        raise TooMuch("the table of the active columns is too large for this checker")
    place = {j: i for i, j in enumerate(active)}
    forced = [place[j] for j in problem.force_in], [place[j] for j in problem.force_out if j in place]
    limits = [[side[j] for j in active] for side in problem.bounds]
    within = limits if any(math.isfinite(v) for side in limits for v in side) else None
    return problem.A.table(active), min(problem.k, len(active)), *forced, within


def sparse_hash(problem: Stated) -> str:
    """sha256 over everything that defines the problem."""
    about: dict[str, Any] = {"n": problem.A.n, "d": len(problem.A.rows), "k": problem.k, "loss": problem.loss.name}
    about |= {"lam": problem.lam.hex(), "parameters": problem.loss.parameters}
    if problem.force_in or problem.force_out:
        about |= {"force_in": problem.force_in, "force_out": problem.force_out}
    about |= {"intercept": True} if problem.level else {}
    about |= {"bounds": [[v.hex() for v in side] for side in problem.bounds]} if problem.bounds else {}
    digest = hashlib.sha256(b"exactsel-design-v1\0" + json.dumps(about, sort_keys=True).encode())
    start, starts = 0, [0]
    for column in problem.A.rows:
        start += len(column)
        starts.append(start)
    digest.update(struct.pack(f"<{len(starts)}q", *starts))
    for code, parts in (("i", problem.A.rows), ("d", problem.A.values)):
        for part in parts:
            digest.update(struct.pack(f"<{len(part)}{code}", *part))
    digest.update(struct.pack(f"<{len(problem.y)}d", *problem.y))
    return digest.hexdigest()


def work_of(p: dict[str, Any], problem: Stated) -> float:
    """Operations on fractions that the bounds take."""
    entries, d = problem.A.entries + problem.A.n, len(problem.A.rows)
    return (6.0 + 4.0 * len(p["screen_dual"])) * (entries + d) + 4.0 * len(p["screen_level"]) * d


def bounds(p: dict[str, Any], problem: Stated) -> tuple[F, F | float]:
    """A lower bound of all models, and one of those with a column that is not active (infinite without any)."""
    allowed = [j not in {*problem.force_out} for j in range(len(problem.A.rows))]
    active = {*p["active_column"]}
    others = [j for j, may in enumerate(allowed) if may and j not in active] if problem.k else []
    whole, with_column = F(0), [F(0)] * len(others)
    pairs = []
    if problem.loss.by_products:
        pairs.append(_Touched(problem, allowed, others).bounds(p["screen_level"]))
    if problem.lam or _limited(problem, allowed):
        n = problem.A.n
        for number in p["screen_dual"]:
            pairs.append(_at_dual(problem, p["dual_value"][number * n : number * n + n], allowed, others))
    for value, values in pairs:
        whole, with_column = max(whole, value), list(map(max, with_column, values))
    return whole, min(with_column, default=math.inf)


def _less(base: F, gains: Sequence[F], others: Sequence[int], k: int) -> tuple[F, list[F]]:
    """``base`` less the k largest gains, and for each of ``others`` less its own and the k - 1 largest besides."""
    if not k:
        return base, []
    ranked = nlargest(k, gains)
    first, rest, smallest = base - sum(ranked, F(0)), base - sum(ranked[:-1], F(0)), ranked[-1]
    return first, [first if gains[j] >= smallest else rest - gains[j] for j in others]


class _Touched:
    """Sums over the rows that each column touches, in whole numbers of a unit."""

    def __init__(self, problem: Stated, allowed: Sequence[bool], others: Sequence[int]) -> None:
        self.problem, self.others, y = problem, others, [F(v) for v in problem.y]
        middle = F(float(sum(y, F(0)) / len(y))) if problem.level else F(0)
        self.unit = max(v.denominator for v in (*y, middle))
        self.r = [int((v - middle) * self.unit) for v in y]
        self.columns = [rows if may else [] for rows, may in zip(problem.A.rows, allowed, strict=True)]
        tally(problem.A.entries + len(y), self.unit.bit_length())
        self.sums = [sum(self.r[i] for i in rows) for rows in self.columns]
        self.squares = [sum(self.r[i] ** 2 for i in rows) for rows in self.columns]

    def gains(self, c: F) -> list[F]:
        """h_j(c) of the columns."""
        tally(2 * len(self.columns), c.denominator.bit_length() + self.unit.bit_length())
        bottom, top = self.unit * c.denominator, c.numerator * self.unit
        q = c.denominator
        parts = zip(self.squares, self.sums, self.columns, strict=True)
        return [F(s2 * q * q - 2 * s1 * q * top + top * top * len(rows), bottom * bottom) for s2, s1, rows in parts]

    def bounds(self, levels: Sequence[float]) -> tuple[F, list[F]]:
        """The smallest bounds on the intervals between the levels."""
        nothing = F(0), [F(0)] * len(self.others)
        total, n, k = F(sum(v * v for v in self.r), self.unit**2), len(self.r), self.problem.k
        if not self.problem.level:
            whole, values = _less(total, self.gains(F(0)), self.others, k)
            return whole / 2, [value / 2 for value in values]
        ends = [F(c) for c in levels]
        if not ends or not (self._rises(ends[-1], 1) and self._rises(-ends[0], -1)):
            return nothing
        drift = F(sum(self.r), self.unit)
        minimum: tuple[F, list[F]] | None = None
        before = self.gains(ends[0])
        for low, high in zip(ends[:-1] or ends, ends[1:] or ends, strict=True):
            after = self.gains(high)
            best = min(max(drift / n, low), high)
            base = total - 2 * best * drift + n * best * best
            whole, values = _less(base, list(map(max, before, after)), self.others, k)
            minimum = (
                (whole, values) if minimum is None else (min(minimum[0], whole), list(map(min, minimum[1], values)))
            )
            before = after
        assert minimum is not None
        return minimum[0] / 2, [value / 2 for value in minimum[1]]

    def _rises(self, c: F, sign: int) -> bool:
        """Whether no model's cost falls beyond c: the sum of c - r over the rows it leaves is not negative."""
        gaps = [c - F(sign * v, self.unit) for v in self.r]
        bottom = math.lcm(*(gap.denominator for gap in gaps))
        whole = [gap.numerator * (bottom // gap.denominator) for gap in gaps]
        tally(self.problem.A.entries + len(whole), bottom.bit_length())
        touched = (sum(max(0, whole[i]) for i in rows) for rows in self.columns)
        return sum(whole) >= sum(nlargest(self.problem.k, touched))


def _limited(problem: Stated, allowed: Sequence[bool]) -> bool:
    """Whether limits on both sides keep the coefficients of all columns that a model may use finite."""
    sides = problem.bounds
    return bool(sides) and all(math.isfinite(v) for side in sides for v, may in zip(side, allowed, strict=True) if may)


def gain(v: F, lam: F, low: float = -math.inf, high: float = math.inf) -> F:
    """The largest -v w - (lam/2) w^2 over the coefficients w of a column from ``low`` to ``high``."""
    if not v:
        return F(0)
    w = -v / lam if lam else F(high if v < 0 else low)
    w = max(w, F(low)) if math.isfinite(low) else w
    w = min(w, F(high)) if math.isfinite(high) else w
    return -w * (v + lam * w / 2)


def _at_dual(
    problem: Stated, slopes: Sequence[float], allowed: Sequence[bool], others: Sequence[int]
) -> tuple[F, list[F]]:
    """Formula (2) at a dual vector."""
    empty = [[0.0]] * problem.A.n
    rows = Regression(empty, problem.y, 0, problem.loss, problem.lam, None, problem.level)
    value, beta = rows.weighed(rows.in_domain([F(v) for v in slopes]))
    gains: list[F] = []
    for may, at, values in zip(allowed, problem.A.rows, problem.A.values, strict=True):
        v = dot([F(a) for a in values], [beta[i] for i in at]) if may and at else F(0)
        gains.append(gain(v, F(problem.lam), *(side[len(gains)] for side in problem.bounds)))
    return _less(value, gains, others, problem.k)
