"""Sparse models one after the other in arrays: each is there once, whoever refers to it.

They prove bounds and are what bound solvers start from, so they come back to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactsel.bounds.witness import CurvedPoint, ModelPoint
from exactsel.search.layout import require
from exactsel.types import FloatArray, IntArray

NAMES = ("values", "sizes", "columns", "curvature_of", "curvatures")
"""Of the arrays in which points are written down."""

MOST_CURVATURES = 100
"""Different ones, in points packed together."""


@dataclass(frozen=True, slots=True, eq=False)
class PackedPoints:
    """m points; :meth:`of` makes them, :meth:`point` gives one back."""

    values: FloatArray
    """The entries of all points."""
    ends: IntArray
    """(m,) where those of each end."""
    columns: NDArray[Any]
    """Which columns they are for: int32, one for each entry, or where that takes less uint8 (m, ·), a bit a column."""
    curvature_of: NDArray[np.int8]
    """(m,) the place of a point's D of formula (3) among ``curvatures``; -1 where it is for formula (2)."""
    curvatures: tuple[FloatArray, ...]
    """As a rule one for a whole search."""

    @classmethod
    def of(cls, points: Sequence[ModelPoint]) -> PackedPoints:
        """Points that :func:`can_be_packed`."""
        curvatures: list[FloatArray] = []
        of = [place_among(point.curvature, curvatures) if isinstance(point, CurvedPoint) else -1 for point in points]
        sizes = np.array([point.index.size for point in points], dtype=np.int64)
        columns = np.concatenate([np.zeros(0, np.int32), *(point.index for point in points)])
        values = np.concatenate([np.zeros(0), *(point.value for point in points)])
        return cls._packed(values, sizes, columns, np.array(of, dtype=np.int8), tuple(curvatures))

    @classmethod
    def _packed(
        cls, values: FloatArray, sizes: IntArray, columns: NDArray[np.int32], curvature_of: NDArray[np.int8],
        curvatures: tuple[FloatArray, ...],
    ) -> PackedPoints:  # fmt: skip
        wide = int(columns.max(initial=-1)) + 1
        held: NDArray[Any] = columns
        if sizes.size * -(-wide // 8) < columns.nbytes:
            bits = np.zeros((sizes.size, wide), dtype=bool)
            bits[np.repeat(np.arange(sizes.size), sizes), columns] = True
            held = np.packbits(bits, axis=1)
        return cls(values, np.cumsum(sizes), held, curvature_of, curvatures)

    @classmethod
    def joined(cls, parts: Sequence[PackedPoints]) -> PackedPoints:
        """All of some, one after the other."""
        curvatures: list[FloatArray] = []
        of = []
        for part in parts:
            places = np.array([place_among(one, curvatures) for one in part.curvatures] + [-1], dtype=np.int8)
            of.append(places[part.curvature_of])
        values = np.concatenate([part.values for part in parts])
        columns = np.concatenate([part.all_columns() for part in parts])
        sizes = np.concatenate([part.sizes for part in parts])
        return cls._packed(values, sizes, columns, np.concatenate(of), tuple(curvatures))

    def only(self, numbers: IntArray) -> PackedPoints:
        """These alone, in this order."""
        sizes = self.sizes[numbers]
        ends = np.cumsum(sizes)
        entries = np.arange(sizes.sum()) + np.repeat(self.ends[numbers] - ends, sizes)
        columns = self.columns[numbers if self.columns.ndim == 2 else entries]
        return PackedPoints(self.values[entries], ends, columns, self.curvature_of[numbers], self.curvatures)

    def __len__(self) -> int:
        return self.ends.size

    @property
    def sizes(self) -> IntArray:
        """(m,) how many entries each has."""
        return np.diff(self.ends, prepend=0)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays; a curvature is that of the whole search."""
        return self.values.nbytes + self.ends.nbytes + self.columns.nbytes + self.curvature_of.nbytes

    def all_columns(self) -> NDArray[np.int32]:
        """The columns of all entries."""
        if self.columns.ndim == 1:
            return self.columns
        return np.unpackbits(self.columns, axis=1).nonzero()[1].astype(np.int32)

    def point(self, number: int) -> ModelPoint:
        """One of them; it does not keep the others."""
        first, end = (int(self.ends[number - 1]) if number else 0), int(self.ends[number])
        packed = self.columns
        columns = packed[first:end].copy() if packed.ndim == 1 else np.unpackbits(packed[number]).nonzero()[0]
        index, value = columns.astype(np.int32, copy=False), self.values[first:end].copy()
        of = int(self.curvature_of[number])
        return ModelPoint(index, value) if of < 0 else CurvedPoint(index, value, self.curvatures[of])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What they are written down as."""
        curvatures = np.concatenate([np.zeros(0), *self.curvatures])
        held = (self.values, self.sizes, self.columns, self.curvature_of, curvatures)
        return dict(zip(NAMES, held, strict=True))

    @classmethod
    def read(cls, arrays: dict[str, NDArray[Any]], columns: int) -> PackedPoints:
        """What :meth:`arrays` wrote down of points over so many columns; :class:`InputError` where it is damaged."""
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
        points = cls(values, np.cumsum(sizes), held, of, tuple(flat.reshape(-1, columns).copy()))
        if bits:
            require(
                np.array_equal(np.count_nonzero(np.unpackbits(held, axis=1), axis=1), sizes),
                "columns of other points",
            )
        found = points.all_columns()
        require(bool(np.all((found >= 0) & (found < columns))), "points of unknown columns")
        require(_ascend(found, sizes), "columns out of order")
        return points


def can_be_packed(points: Sequence[ModelPoint]) -> bool:
    """Whether points come back as they are: whoever wrote a bound may hand on others than a search makes."""
    usual = all(
        point.index.dtype == np.int32 and point.value.dtype == np.float64 and point.index.shape == point.value.shape
        and point.index.ndim == 1 for point in points
    )  # fmt: skip
    found = {id(point.curvature): point.curvature for point in points if isinstance(point, CurvedPoint)}
    curvatures: list[FloatArray] = []
    for curvature in found.values():
        place_among(curvature, curvatures)
    usual = usual and len(curvatures) <= MOST_CURVATURES and all(one.dtype == np.float64 for one in curvatures)
    if not (usual and points):
        return usual
    columns = np.concatenate([point.index for point in points])
    return int(columns.min(initial=0)) >= 0 and _ascend(columns, np.array([point.index.size for point in points]))


def _ascend(columns: NDArray[np.int32], sizes: IntArray) -> bool:
    """Whether the columns of each point do."""
    same_point = np.diff(np.repeat(np.arange(sizes.size), sizes)) == 0
    return bool(np.all(np.diff(columns.astype(np.int64))[same_point] > 0))


def place_among(curvature: FloatArray, known: list[FloatArray]) -> int:
    """Where a curvature is among those known, after it has been added if it is new."""
    for place, one in enumerate(known):
        if one is curvature or np.array_equal(one, curvature):
            return place
    known.append(curvature)
    return len(known) - 1
