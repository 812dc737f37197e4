"""The curvature that the rows of some data have about."""

from __future__ import annotations

import numpy as np

from exactsel.losses.base import Loss
from exactsel.types import FloatArray


def typical_curvature(loss: Loss, y: FloatArray) -> float:
    """The smoothness of the loss; where it has none, twice the largest curvature that a row has without a model or at
    its own minimum.
    """
    smoothness = float(loss.smoothness)
    if np.isfinite(smoothness):
        return smoothness
    targets = [float(t) for t in np.unique(y)]
    where = [(0.0, t) for t in targets]
    if hasattr(loss, "point_conjugate_derivative"):
        where += [(loss.point_conjugate_derivative(loss, 0.0, t), t) for t in targets]
    return 2.0 * max(loss.point_curvature(loss, z, t) for z, t in where)
