"""A relaxation in the form its kernels take, so that they can also search by themselves
(:mod:`exactsel.enumeration`).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from exactsel.bounds.witness import ModelPoint
from exactsel.kernels.apg import Perspective
from exactsel.problem.regression import Problem
from exactsel.types import FloatArray


class KernelForm(NamedTuple):
    """A problem as the relaxation's kernels take it: in the variables ``scale`` * x."""

    perspective: Perspective
    scale: FloatArray


class Relaxation(Protocol):
    """A prepared bound whose kernel can search by itself."""

    problem: Problem
    second_order: bool
    """Whether nodes that would begin at their fits are bounded by Newton's method on the relaxation."""

    @property
    def kernel_form(self) -> KernelForm:
        """What its kernel works on."""
        ...

    def begins_at_fits(self) -> bool:
        """Whether nodes begin at the fit on their columns (:mod:`exactsel.bounds.newton_fit`)."""
        ...

    def as_point(self, x: FloatArray) -> ModelPoint:
        """The proof point of a model (d,) of the problem."""
        ...
