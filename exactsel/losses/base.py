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

A loss of the residual z - y says so by the constant ``of_residuals = True``, and then takes offsets. The argument
``delta`` sets a field of that name.

A loss may say the same of all rows at once, in static methods ``rows_value``, ``rows_derivative``, ``rows_curvature``,
``rows_majorizer`` and ``rows_curvature_on`` of arrays (n,): with these, tables of many rows are solved without the
compiler where there is little to search (:mod:`exactsel.kernels.in_arrays`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, TypeGuard, runtime_checkable

from exactsel.types import FloatArray

POINT_FUNCTIONS = ("point_value", "point_derivative", "point_curvature", "point_majorizer", "point_prox")
CURVATURE_ON = "point_curvature_on"
"""A function a loss may have, see :func:`curvature_known`."""

CLASSES = ("logistic", "squared_hinge")
"""Names of the built-in losses whose target is labels -1 and +1."""

DUAL_FUNCTIONS = ("point_conjugate", "point_conjugate_derivative", "point_project")


@runtime_checkable
class Loss(Protocol):
    """What the solver needs to know of a convex, smooth loss (a sum over rows, not a mean)."""

    name: str
    smoothness: float
    """Every l(., y) has a derivative with this Lipschitz constant; inf where there is none (Poisson loss)."""
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
        """A w with l(t) <= l(z) + l'(z)(t - z) + (w/2)(t - z)^2 for all t; ``smoothness`` always will do.

        Where that is inf, it need hold only on the way from z to the minimum, and on to the other side of z.
        """
        ...

    @staticmethod
    def point_prox(loss: Any, u: float, step: float, y: float) -> float:
        """argmin_z  step * l(z, y) + (z - u)^2 / 2."""
        ...

    @staticmethod
    def point_conjugate(loss: Any, b: float, y: float) -> float:
        """l*(b) = sup_z b z - l(z, y), for b in its domain (only supergradient ascent uses it)."""
        ...

    @staticmethod
    def point_conjugate_derivative(loss: Any, b: float, y: float) -> float:
        """A finite (sub)derivative of l* at b (only supergradient ascent uses it)."""
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


class NamedTupleLoss(Loss, Protocol):
    """A loss that is a named tuple of its parameters, as every usable one is."""

    _fields: tuple[str, ...]

    def __iter__(self) -> Iterator[float]:
        """The values of the parameters."""
        ...

    def _make(self, values: Iterable[float | None], /) -> NamedTupleLoss: ...


def is_named_tuple(loss: object) -> TypeGuard[NamedTupleLoss]:
    """Whether a loss is a named tuple."""
    return isinstance(loss, tuple) and hasattr(loss, "_fields")


def curvature_known(loss: Any) -> bool:
    """Whether the loss has ``point_curvature_on(loss, low, high, z, y)``, a curvature that holds on an interval.

    That is a w >= 0 with l(t) >= l(z) + l'(z)(t - z) + (w/2)(t - z)^2 for every t in [low, high], where
    low <= z <= high; rounding is to be taken off. A loss without it has no quadratic minorants, and nothing else lacks.

    Where l'' grows up to some point and falls from there on (Huber, logistic and quadratic loss), it is enough to
    evaluate z and both ends. The largest w that t alone allows is

        phi(t) = 2 (l(t) - l(z) - l'(z)(t - z)) / (t - z)^2 = (2 / u^2) int_0^u v m(v) dv,   u = t - z,

    with m(v) the mean of l'' between z and z + v: a mean of means. To one side of z the mean m of such a function grows
    while l'' is above it; once l'' is below m it is falling, so it stays below and m falls from there on. The same
    argument with m in place of l'' and phi in place of m says that phi grows, then falls. So on each side phi is
    nowhere less than the smaller of its value at the end and its limit at z, which is l''(z) (where l'' jumps at z, the
    limit on one side is 0, and phi is 0 on all of that side).
    """
    return hasattr(type(loss), CURVATURE_ON)
