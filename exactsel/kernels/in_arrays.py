"""A loss in whole arrays, for kernels that are interpreted: one call of numpy in the place of a loop over rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from exactsel.types import FloatArray


def of_rows(loss: Any, name: str, *rows: FloatArray) -> FloatArray:
    """What the scalar function ``point_<name>`` of a loss gives for every row (n,).

    A loss may have the same in arrays, ``rows_<name>``; without it rows are taken one after the other.
    """
    in_arrays = getattr(type(loss), f"rows_{name}", None)
    if in_arrays is not None:
        return in_arrays(loss, *rows)  # type: ignore[no-any-return]
    point = getattr(type(loss), f"point_{name}")
    return np.array([point(loss, *row) for row in zip(*(each.tolist() for each in rows), strict=True)])
