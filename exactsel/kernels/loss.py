"""Call a loss from a kernel: scalar dispatch on the loss's type."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from exactsel._jit import overload, without_annotations


def point_value(loss: Any, z: float, y: float) -> float:
    """l(z, y)."""
    return float(type(loss).point_value(loss, z, y))


def point_derivative(loss: Any, z: float, y: float) -> float:
    """l'(z, y)."""
    return float(type(loss).point_derivative(loss, z, y))


def point_curvature(loss: Any, z: float, y: float) -> float:
    """l''(z, y)."""
    return float(type(loss).point_curvature(loss, z, y))


def point_prox(loss: Any, u: float, step: float, y: float) -> float:
    """argmin_z step*l(z, y) + (z - u)^2/2."""
    return float(type(loss).point_prox(loss, u, step, y))


def point_conjugate(loss: Any, b: float, y: float) -> float:
    """l*(b, y)."""
    return float(type(loss).point_conjugate(loss, b, y))


def point_conjugate_derivative(loss: Any, b: float, y: float) -> float:
    """A derivative of l*(., y) at b."""
    return float(type(loss).point_conjugate_derivative(loss, b, y))


def point_majorizer(loss: Any, z: float, y: float) -> float:
    """A w with l(t) <= l(z) + l'(z)(t - z) + (w/2)(t - z)^2 for all t."""
    return float(type(loss).point_majorizer(loss, z, y))


def point_curvature_on(loss: Any, low: float, high: float, z: float, y: float) -> float:
    """A w with l(t) >= l(z) + l'(z)(t - z) + (w/2)(t - z)^2 for all t in [low, high]; only some losses have it."""
    return float(type(loss).point_curvature_on(loss, low, high, z, y))


def point_project(loss: Any, b: float, y: float) -> float:
    """The nearest point to b where l* is finite."""
    return float(type(loss).point_project(loss, b, y))


def _compile_from_loss(stub: Callable[..., Any]) -> None:
    """Make compiled calls of ``stub`` run the method of that name of the loss they are given."""

    def choose(loss: Any, *_arguments: Any) -> Callable[..., Any]:
        return without_annotations(getattr(loss.instance_class, stub.__name__))

    choose.__signature__ = inspect.signature(without_annotations(stub))  # type: ignore[attr-defined]
    choose.chosen = lambda kind: getattr(kind, stub.__name__, None)  # type: ignore[attr-defined]
    overload(stub)(choose)


for _stub in (
    point_value,
    point_derivative,
    point_curvature,
    point_prox,
    point_conjugate,
    point_conjugate_derivative,
    point_project,
    point_majorizer,
    point_curvature_on,
):
    _compile_from_loss(_stub)
