"""The path of the penalised objective P(x) + lam0 ||x||_0 over lam0, from the best models of every size.

At a lam0 the best size is where P + lam0 s is smallest, s the number of columns. So the sizes that are best somewhere
are the corners of the lower convex hull of P over s, and each is best between the slopes of the two edges it is on.
What is proven of every size is proven of the path: at each lam0 no model of the sizes of the path is below the smallest
lower + lam0 s.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from exactsel.errors import InputError, option
from exactsel.solving.result import Result
from exactsel.to_plain import finite

EMPTY = 1e-12
"""Part of the objective of the model without columns that rounding may take."""


@dataclass(frozen=True)
class PenaltyRange:
    """The values of lam0 at which one model has the smallest penalised objective, among the sizes of a path."""

    low: float
    high: float
    """inf for the smallest size."""
    size: int
    """||x||_0: how many columns it has."""
    objective: float
    """P, without the price."""
    gap: float
    """(value - lower)/|value| of the penalised objective, at most, wherever lam0 is in this range."""
    columns: tuple[int, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "low": self.low, "high": finite(self.high), "size": self.size, "objective": self.objective,
            "gap": finite(self.gap), "support": list(self.columns),
        }  # fmt: skip


@dataclass(frozen=True)
class _Corner:
    size: int
    objective: float
    columns: tuple[int, ...]


def check_ridge_weights(lams: Collection[float | None]) -> None:
    """:class:`InputError` for several ridge weights, or that of no coefficients: they have no path over lam0."""
    if None in lams:
        raise InputError(
            "a path over lam0 prices coefficients, but column subset selection has none; give a regression."
        )
    if len({*lams}) != 1:
        raise InputError(
            f"a path over lam0 is that of one ridge weight, but there are {len({*lams})}; give one, as "
            f"{option('lams', 0.1)}."
        )


def penalty_ranges(results: Sequence[Result]) -> tuple[PenaltyRange, ...]:
    """The path over lam0, from large to small, from the results of a path over sizes.

    Raises
    ------
    InputError
        For results of several ridge weights, or of problems whose models have no coefficients.
    """
    check_ridge_weights({result.problem.get("lam") for result in results})
    corners = _hull(results)
    slopes = [(left.objective - right.objective) / (right.size - left.size) for left, right in pairwise(corners)]
    floors = _floors(results)
    ranges = []
    for corner, high, low in zip(corners, [math.inf, *slopes], [*slopes, 0.0], strict=True):
        # Value less bound is convex in lam0, so it is largest at an end.
        gap = max(_gap(corner, lam0, floors) for lam0 in (low, high))
        ranges.append(PenaltyRange(low, high, corner.size, corner.objective, gap, corner.columns))
    return tuple(ranges)


def _hull(results: Sequence[Result]) -> list[_Corner]:
    """The corners of the lower convex hull of P over the number of columns, while P falls."""
    models = [_Corner(len(result.columns), result.upper, tuple(map(int, result.columns))) for result in results]
    if not results[0].problem["force_in"]:
        models.append(_Corner(0, results[0].null_objective, ()))
    hull: list[_Corner] = []
    for model in sorted(models, key=lambda each: (each.size, each.objective)):
        if hull and (model.size == hull[-1].size or model.objective >= hull[-1].objective):
            continue
        while len(hull) > 1 and _slope(hull[-2], hull[-1]) <= _slope(hull[-2], model):
            hull.pop()
        hull.append(model)
    return hull


def _slope(left: _Corner, right: _Corner) -> float:
    """How much a column brings."""
    return (left.objective - right.objective) / (right.size - left.size)


def _floors(results: Sequence[Result]) -> list[tuple[int, float]]:
    """Numbers of columns, and what no model of so many columns up to the next number is below."""
    floors, fewest = [], 0
    if not results[0].problem["force_in"]:
        floors, fewest = [(0, results[0].null_objective * (1.0 - EMPTY))], 1
    for result in sorted(results, key=lambda each: int(each.problem["k"])):
        k = int(result.problem["k"])
        floors.append((fewest, max(other.lower for other in results if other.problem["k"] >= k)))
        fewest = k + 1
    return floors


def _gap(corner: _Corner, lam0: float, floors: list[tuple[int, float]]) -> float:
    """The relative gap of the penalised objective at lam0."""
    if lam0 == math.inf:
        return 0.0
    value = corner.objective + lam0 * corner.size
    lower = min(floor + lam0 * size for size, floor in floors)
    return (value - lower) / abs(value) if value > lower else 0.0
