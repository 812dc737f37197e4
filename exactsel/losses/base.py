"""The contract of a loss: a named tuple of parameters and a few scalar functions.

A loss L(z) = sum_i l(z_i, y_i) is a :class:`typing.NamedTuple` whose fields are its (float) parameters and whose
static methods ``point_*`` define the scalar function l. Everything else, the vector operations and every compiled
kernel, is derived from them, so one file is a complete loss::

    class Squared(NamedTuple):
        name = "squared"
        smoothness = 1.0
        infimum = 0.0

        @staticmethod
        def point_value(loss, z, y):
            return 0.5 * (z - y) ** 2
        ...

The first parameter of each ``point_*`` function must be called ``loss`` and the body must be plain scalar Python
(``math`` is fine): numba compiles it into the kernels.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from exactsel.types import FloatArray

POINT_FUNCTIONS = ("point_value", "point_derivative", "point_curvature", "point_majorizer", "point_prox")
DUAL_FUNCTIONS = ("point_conjugate", "point_conjugate_derivative", "point_project")


@runtime_checkable
class Loss(Protocol):
    """What the solver needs to know of a convex, smooth loss (a sum over rows, not a mean)."""

    name: str
    smoothness: float
    """Every l(., y) has a derivative with this Lipschitz constant."""
    infimum: float
    """A number no value of L is below (``-inf`` when unknown)."""

    @staticmethod
    def point_value(loss: Any, z: float, y: float) -> float:
        """L(z) of one row."""
        ...

    @staticmethod
    def point_derivative(loss: Any, z: float, y: float) -> float:
        """dl/dz."""
        ...

    @staticmethod
    def point_curvature(loss: Any, z: float, y: float) -> float:
        """Second derivative of l (any generalised one where l is not twice differentiable)."""
        ...

    @staticmethod
    def point_majorizer(loss: Any, z: float, y: float) -> float:
        """A w with l(t) <= l(z) + l'(z)(t - z) + (w/2)(t - z)^2 for all t; ``smoothness`` always will do."""
        ...

    @staticmethod
    def point_prox(loss: Any, u: float, step: float, y: float) -> float:
        """argmin_z  step * l(z, y) + (z - u)^2 / 2."""
        ...

    @staticmethod
    def point_conjugate(loss: Any, b: float, y: float) -> float:
        """l*(b) = sup_z b z - l(z, y), for b in its domain (only supergradient ascent asks for it)."""
        ...

    @staticmethod
    def point_conjugate_derivative(loss: Any, b: float, y: float) -> float:
        """A finite (sub)derivative of l* at b (only supergradient ascent asks for it)."""
        ...

    @staticmethod
    def point_project(loss: Any, b: float, y: float) -> float:
        """The point of the domain of l* nearest to b."""
        ...

    def check_target(self, y: FloatArray) -> None:
        """Raise :class:`exactsel.errors.InputError` when the target does not suit this loss."""
        ...

    def check_parameters(self) -> None:
        """Raise :class:`exactsel.errors.InputError` when a parameter is out of range."""
        ...
