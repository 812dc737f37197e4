"""Sparse models read from arrays that may come from anywhere (nodes/points.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactsel.nodes.points import NAMES, Points, ascend
from exactsel.search.layout import require


def points_from(arrays: dict[str, NDArray[Any]], columns: int) -> Points:
    """What :meth:`exactsel.nodes.points.Points.arrays` wrote down of points over so many columns.

    :class:`exactsel.errors.InputError` where it is damaged.
    """
    values, sizes, held, of, flat = (arrays[name] for name in NAMES)
    typed = ((values, np.float64), (sizes, np.int64), (of, np.int8), (flat, np.float64))
    require(all(array.dtype == kind for array, kind in typed), "other types of points")
    require(held.dtype in (np.uint8, np.int32), "other types of columns")
    require(all(array.ndim == 1 for array in (values, sizes, of, flat)), "other shapes of points")
    require(sizes.size == of.size and np.all(sizes >= 0), "impossible sizes of points")
    require(sum(sizes.tolist()) == values.size, "another number of entries of points")
    require(bool(np.all(np.isfinite(values)) and np.all(np.isfinite(flat))), "points that are not finite")
    require(flat.size % columns == 0, "a curvature of another size")
    require(bool(np.all((of >= -1) & (of < flat.size // columns))), "curvatures that are not there")
    bits = held.dtype == np.uint8
    require(
        held.ndim == (2 if bits else 1) and len(held) == (sizes if bits else values).size,
        "columns of other points",
    )
    points = Points(values, np.cumsum(sizes), held, of, tuple(flat.reshape(-1, columns).copy()))
    if bits:
        require(
            np.array_equal(np.count_nonzero(np.unpackbits(held, axis=1), axis=1), sizes),
            "columns of other points",
        )
    found = points.all_columns()
    require(bool(np.all((found >= 0) & (found < columns))), "points of unknown columns")
    require(ascend(found, sizes), "columns out of order")
    return points
