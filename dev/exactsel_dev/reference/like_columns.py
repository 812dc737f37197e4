"""Weak columns that are like each other, taken together: the slow twin, over all sets of columns (FORMAT.md, LIKE)."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def like_gain(C: FloatArray, u: FloatArray, tau: float, r: int) -> float:
    """The most any r columns can take off, by their cosines C and what they have in common with the target."""
    touch = (np.abs(C) >= tau) & ~np.eye(len(C), dtype=bool)
    parts = {m: [set_ for set_ in combinations(range(len(C)), m) if _connected(touch, set_)] for m in range(1, r + 1)}
    if any(np.linalg.eigvalsh(C[np.ix_(part, part)])[0] < 1e-9 for m in parts for part in parts[m]):
        return float("inf")
    inverses = {m: [np.linalg.inv(C[np.ix_(part, part)]) for part in parts[m]] for m in parts}
    worst = {m: max((float(np.max(np.sum(np.abs(R), axis=1))) for R in inverses[m]), default=1.0) for m in parts}
    most = 0.0
    for way in _ways(r, r):
        if not all(parts[m] for m in way):
            continue
        total, factors = 0.0, _factors(way, [worst[m] for m in way])
        for m in {*way}:
            factor, values = factors[way.index(m)], []
            for part, R in zip(parts[m], inverses[m], strict=True):
                others = [j for j in range(len(C)) if j not in part and not touch[list(part), j].any()]
                cross = C[np.ix_(part, others)]
                like = np.sort(np.einsum("ij,ik,kj->j", cross, R, cross))[::-1][: r - m]
                t = float(np.sum(np.sqrt(like))) if m == 1 and way.count(1) == r else np.sqrt(factor * np.sum(like))
                gain = float(u[list(part)] @ R @ u[list(part)])
                values.append(gain / (1.0 - t) if t < 1.0 else float("inf"))
            values = sorted(values, reverse=True)
            total += sum(values[: way.count(1)]) if m == 1 else way.count(m) * values[0]
        most = max(most, total)
    return most


def _connected(touch: NDArray[np.bool_], part: tuple[int, ...]) -> bool:
    left = {*part[1:]}
    waiting = [part[0]]
    while waiting:
        new = {j for j in left if touch[waiting[-1], j]}
        waiting.pop()
        left -= new
        waiting += new
    return not left


def _ways(total: int, largest: int) -> list[tuple[int, ...]]:
    if not total:
        return [()]
    return [(m, *rest) for m in range(min(total, largest), 0, -1) for rest in _ways(total - m, m)]


def _factors(way: tuple[int, ...], worst: list[float]) -> FloatArray:
    m, L, w = np.array(way, dtype=float), np.array(worst), np.ones(len(way))
    if len(way) == 1:
        return np.zeros(1)
    for _ in range(40):
        w = np.sqrt(w * m * (sum(way) - m) * (w @ L - w * L))
        w /= w.max()
    return np.asarray((w @ L - w * L) / w)
