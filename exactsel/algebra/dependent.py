"""Columns that are constant, or follow from the others, to be named in a message."""

from __future__ import annotations

import numpy as np

from exactsel.types import FloatArray

TOLERANCE = 1e-7
"""Of what is left of a column beside the others, relative to its size: less, and no curvature is left to bound with."""

MOST_ENTRIES = 4_000_000
"""Of data that are looked through; a message need not name a column of more."""


def dependent_columns(AT: FloatArray) -> list[int]:
    """Numbers of columns (rows of ``AT``, (d, n)) that vanish, or else of those that follow from columns before them.

    Found by an orthogonal factorisation, up to rounding: this is for people, and no proof rests on it. Empty where
    nothing is found, and for data too large to look through.
    """
    if AT.size > MOST_ENTRIES:
        return []
    sizes = np.linalg.norm(AT, axis=1)
    vanish = sizes <= TOLERANCE * sizes.max(initial=0.0)
    if vanish.any():
        return [int(j) for j in np.flatnonzero(vanish)]
    rest = np.zeros(len(AT))
    diagonal = np.diag(np.linalg.qr((AT / sizes[:, None]).T, mode="r"))
    rest[: diagonal.size] = np.abs(diagonal)
    return [int(j) for j in np.flatnonzero(rest <= TOLERANCE)]
