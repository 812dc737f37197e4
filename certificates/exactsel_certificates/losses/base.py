"""The interface of a loss for a check: all that a check knows of l(z, y), the cost of a row y at a prediction z.

Each loss is one file of this folder, and one entry of the table in ``__init__.py``. A convex loss that is never below
zero suits. What a loss does not define it does not serve: a region closed by such a witness proves nothing, and a
problem that needs it is refused.

Functions take arrays of rows; ``y`` (n,) goes with predictions ``z`` (n,) or ``Z`` (P, n), slopes ``G`` likewise.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from exactsel_certificates.scaled import Scaled, fraction_of

FloatArray: TypeAlias = NDArray[np.float64]
Reals: TypeAlias = NDArray[np.floating[Any]]
"""Doubles, or long doubles."""

U = 2.0**-53

LEAVES, PATTERNS, MINORANTS = "leaves", "patterns", "minorants"
"""Witnesses that are for some losses only: the last columns of a fit, sums over covariate patterns, and minorants."""


@dataclass(frozen=True)
class Loss(ABC):
    """A loss in doubles; its fields are its parameters, positive numbers."""

    name: ClassVar[str]
    serves: ClassVar[frozenset[str]] = frozenset()
    """The witnesses of :data:`LEAVES`, :data:`PATTERNS` and :data:`MINORANTS` that its formulas are for."""
    quadratic: ClassVar[bool] = False
    """Whether it is half the squared residual: fits, splits, counted sets and formula (3) are for that alone, and row
    weights and an intercept are worked into its data."""
    of_residuals: ClassVar[bool] = False
    """Whether it depends on z - y alone."""
    without_ridge: ClassVar[bool] = False
    """Whether lam may be 0."""
    scoped: ClassVar[bool] = False
    """Whether, without a ridge, claims may be about bounded models only."""
    logarithms: ClassVar[bool] = False
    """Whether its formulas take logarithms or exponentials."""
    steep: ClassVar[float] = math.inf
    """b with sum w l'^2 <= 2 b L, and l'' <= max(1, b); infinite where there is none."""
    roundings: ClassVar[int] = 32
    """Of which a row of :meth:`minus_conjugate` is off by no more, in parts of its size."""

    @property
    def parameters(self) -> Mapping[str, float]:
        """The parameters by name."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    def words(self) -> str:
        """The loss for people."""
        parameters = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"{self.name}({parameters})" if parameters else self.name

    @classmethod
    def of(cls, delta: float) -> Loss:
        """The loss with this threshold, where it has one."""
        return cls()

    def refused_target(self, y: FloatArray) -> str:
        """Why a target is none for this loss; empty where it is one."""
        return ""

    @abstractmethod
    def values(self, z: Reals, y: Reals) -> Reals:
        """l(z, y); in doubles right to 64 units of 2^-53 where a minorant is served."""

    @abstractmethod
    def values_above(self, z: FloatArray, y: FloatArray, error: FloatArray) -> FloatArray:
        """No smaller than l, but for 64 roundings, at predictions that are off by ``error`` at most."""

    @abstractmethod
    def slopes(self, Z: FloatArray, y: FloatArray) -> FloatArray:
        """About l'(Z, y), any numbers; right to 64 units where a minorant is served."""

    @abstractmethod
    def bends(self, Z: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """About l''(Z, y), and curvatures of quadratics that touch l there and lie above it."""

    @abstractmethod
    def projected(self, G: FloatArray, y: FloatArray) -> FloatArray:
        """The nearest slopes in the domain of the conjugate l*, exactly."""

    @abstractmethod
    def minus_conjugate(self, G: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """-l*(G, y) at slopes in its domain, and sizes of which these are off by :attr:`roundings` at most."""

    def levels(self, y: FloatArray, weights: FloatArray | None, Z: FloatArray) -> FloatArray | None:
        """About the best intercepts (P,), where there is a formula; any numbers will do."""
        return None

    def room(self, g: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """About 1 / l*'' at slopes, and how far these may move in the domain; None where dual vectors limit nothing."""
        return None

    def curvature_on(self, z: FloatArray, y: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """Curvatures that hold on [low, high] from z (minorant.py), rounded downwards; for minorants."""
        return np.zeros(z.shape)

    def steepness(self, y: FloatArray, weights: FloatArray | None, cost: float, eta: float) -> float:
        """The same in models that cost at most ``cost``, where predictions are off by ``eta`` at most (transfer.py)."""
        return self.steep

    def costs_nothing(self, y: FloatArray, intercept: bool) -> bool:
        """Whether an empty model costs exactly nothing that its best intercept in doubles would not show."""
        return False


class ExactLoss(Loss):
    """A loss with formulas in exact arithmetic besides; logarithms have 50 digits, rounded to the side that is safe."""

    kinked: ClassVar[bool] = False
    """Whether l'' jumps, so that a Newton step may go too far."""

    @abstractmethod
    def exact_value(self, z: Scaled, y: Scaled, w: Scaled) -> Fraction:
        """The sum of w l(z, y), rounded upwards."""

    @abstractmethod
    def exact_slopes(self, z: Scaled, y: Scaled) -> tuple[Scaled, Scaled]:
        """About l'(z, y), in the domain of l*, and about l''."""

    @abstractmethod
    def exact_minus_conjugate(self, slopes: Scaled, y: Scaled, w: Scaled) -> Fraction:
        """The sum of -w l*(slopes, y), rounded downwards."""

    def exact_majorizer(self, z: Scaled, y: Scaled) -> list[Fraction]:
        """Curvatures of quadratics that touch the rows' losses and lie above them; where it is kinked."""
        raise NotImplementedError


def of_labels(name: str, y: FloatArray) -> str:
    """Why a target holds no labels -1 and 1; empty where it does."""
    return "" if np.all(np.abs(y) == 1.0) else f"y holds other values than -1 and 1, which {name} loss needs."


class Squares(ExactLoss):
    """A loss with l*(b) = b^2 / ``stiff`` + y b."""

    stiff: ClassVar[int] = 2
    roundings = 4

    def minus_conjugate(self, G: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        squares, pulls = (1.0 / self.stiff) * G * G, y * G
        return -(squares + pulls), squares + np.abs(pulls)

    def exact_minus_conjugate(self, slopes: Scaled, y: Scaled, w: Scaled) -> Fraction:
        square = fraction_of(w.values @ (slopes.values * slopes.values), 2 * slopes.exponent + w.exponent)
        product = fraction_of(w.values @ (slopes.values * y.values), slopes.exponent + y.exponent + w.exponent)
        return -square / self.stiff - product


def residuals(z: Scaled, y: Scaled) -> Scaled:
    """z - y."""
    exponent = min(z.exponent, y.exponent)
    return Scaled(z.at(exponent) - y.at(exponent), exponent)


def labels(y: Scaled) -> NDArray[np.object_]:
    """Labels -1 and 1 as whole numbers."""
    return np.array([1 if value > 0 else -1 for value in y.values], dtype=object)


def whole(values: list[int]) -> Scaled:
    """Whole numbers."""
    return Scaled(np.array(values, dtype=object), 0)
