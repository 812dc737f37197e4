"""Bounds for the given ridge, which may be none, from a search with a slightly different one.

See :mod:`exactsel.problem.infinitesimal_ridge` and :mod:`exactsel.problem.long_columns`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactsel.types import BoolArray, FloatArray
from exactsel_certificates.radii import Radii


class RidgeLimits(NamedTuple):
    """What is known where the ridge that is searched with is more than the one given."""

    point: FloatArray
    """(d,) about the fit on all columns, around which the limits were found."""
    limits: Radii
    """How large coefficients of models are that cost no more than the empty one."""
    taken: float
    """What the ridge adds to the objective of such a model, at most."""
    allowed: BoolArray
    """(d,) columns these models may use."""
    most: int
    """The most columns of a model."""
    valid_for: str = ""
    """The models in words that all of this is about, where the data do not limit coefficients."""

    def serves(self, allowed: BoolArray, most: int) -> bool:
        """Whether what is known holds for models of at most ``most`` of the columns ``allowed``, too."""
        return bool(np.all(self.allowed | ~allowed)) and most <= self.most
