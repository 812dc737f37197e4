"""The interface of a loss in the second checker: exact formulas for one row, and the witnesses that may use them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction as F
from typing import ClassVar

from ..algebra import as_float, near
from ..values import Outside
from ..work import tally

FARTHEST = 1e100
"""Predictions further than this from their median count as this far when an intercept is computed."""

OFF = F(1, 10**40)
"""The largest error of value and slope in :meth:`Loss.tangent`."""


class Loss(ABC):
    """A sum over rows of a convex function l(z, t) >= 0 of the prediction z and the target t.

    The defaults refuse: a witness whose formula or capability a loss does not declare proves nothing about it.
    """

    name: ClassVar[str]
    """In the header of a file and in the options."""

    labels: ClassVar[bool] = False
    """Targets are -1 and 1."""

    needs_ridge: ClassVar[bool] = True
    """Problems with lam = 0 are refused."""

    bounded_models: ClassVar[bool] = False
    """A claim about bounded models limits coefficients."""

    by_products: ClassVar[bool] = False
    """l is (z - t)^2 / 2: inner products of columns give fits, curvatures, splits, strong columns and equalities."""

    by_leaves: ClassVar[bool] = False
    """A region with few slots may be closed by a fit on each of its supports; needs :meth:`in_floats`."""

    kinked: ClassVar[bool] = False
    """The second derivative jumps, so that a Newton step may need the careful curvature of :meth:`bent`."""

    operations: ClassVar[int] = 3
    """The work of a value or a conjugate of one row."""

    pattern_logs: Mapping[int, int] | None = None
    """f in whole units: m and p rows of one covariate pattern cost f(m + p) - f(m) - f(p) or more; None: no test."""

    def __init__(self, delta: object) -> None:
        """``delta`` is the parameter of the losses that have one; others ignore it."""
        self.parameters: dict[str, str] = {}  # as the hash of a problem has them

    @classmethod
    def check_target(cls, y: Sequence[float]) -> None:
        """Raise :class:`Outside` where the loss is not defined for targets."""
        if cls.labels and not all(abs(v) == 1 for v in y):
            raise Outside(f"y holds other numbers than -1 and 1, but these were expected with {cls.name} loss.")

    @abstractmethod
    def value(self, z: F, t: F) -> F:
        """l(z, t), rounded upwards."""

    @abstractmethod
    def minus_conjugate(self, g: F, t: F) -> F:
        """-l*(g, t) at a slope in the domain, rounded downwards."""

    @abstractmethod
    def in_domain(self, g: F, t: F) -> F:
        """The nearest slope in the domain of the conjugate."""

    @abstractmethod
    def bent(self, z: F, t: F, careful: bool = False) -> tuple[F, F]:
        """About the slope at z, in the domain, and the second derivative.

        Careful: the curvature of a parabola that touches l at z and is nowhere below it.
        """

    def slope(self, z: F, t: F) -> F:
        """About the slope at z, in the domain, in few digits."""
        return near(self.bent(z, t)[0])

    def slope_in_floats(self, z: float, t: float) -> float:
        """About the slope at z, which need not be trusted."""
        return as_float(self.slope(F(z), F(t)))

    def in_floats(self, z: float, t: float) -> tuple[float, float, float]:
        """About value, slope and second derivative at z, which need not be trusted."""
        raise NotImplementedError

    def room(self, g: F, t: F) -> tuple[float, float]:
        """How far a slope may move in the domain, and the share of a direction that it gets; zeros: it is fixed."""
        return 0.0, 0.0

    def tangent(self, z: F, low: F, high: F, t: F) -> tuple[F, F, F] | None:
        """Value, slope and a curvature that holds from z on [low, high]; None where no parabola is known."""
        return None

    def costs_nothing(self, y: Sequence[F], level: bool) -> bool:
        """Whether the empty model costs exactly zero, which rounding would hide; ``level``: with an intercept."""
        return False

    def gap(self, z: F, t: F) -> tuple[F, float]:
        """A prediction and a target of the same slope, where a difference of the two loses no digits."""
        return z, float(t)

    def intercept(self, z: Sequence[F], y: Sequence[F], weights: Sequence[F]) -> F:
        """About the c at which the weighted slopes at z + c sum to zero; any other is as sound.

        Doubles find it from the differences to the median, so that a constant common to all rows costs no digits.
        """
        gaps = [self.gap(p, t) for p, t in zip(z, y, strict=True)]
        middle = _median([gap for gap, _ in gaps], weights)
        far = F(FARTHEST)  # so that no sum overflows, for any numbers in a file
        near_by = (as_float(min(max(gap - middle, -far), far)) for gap, _ in gaps)
        rows = [(g, t, as_float(w)) for g, (_, t), w in zip(near_by, gaps, weights, strict=True)]
        return F(self.shift(rows)) - middle

    def shift(self, rows: Sequence[tuple[float, float, float]]) -> float:
        """The same in doubles, for rows of prediction, target and weight."""

        def total(c: float) -> float:
            tally(1 + len(rows) / 4)
            return math.fsum(w * self.slope_in_floats(g + c, t) for g, t, w in rows)

        return _crossing(total)


def _median(values: list[F], weights: Sequence[F]) -> F:
    """A value with at most half the weight below it and at most half above."""
    mass, half = F(0), sum(weights, F(0)) / 2
    for value, weight in sorted(zip(values, weights, strict=True)):
        mass += weight
        if mass >= half:
            return near(value)
    return F(0)


def _crossing(total: Callable[[float], float]) -> float:
    """About where a rising function is zero."""
    if total(0.0) == 0:
        return 0.0  # as where all rows agree with their median, whose cost is then exactly zero
    low, high = -1.0, 1.0
    while total(low) > 0 and low > -1e300:
        low *= 2
    while total(high) < 0 and high < 1e300:
        high *= 2
    while True:
        middle = low + (high - low) / 2
        if not low < middle < high:
            return min((low, high), key=lambda c: abs(total(c)))
        low, high = (low, middle) if total(middle) > 0 else (middle, high)
