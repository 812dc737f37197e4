"""Sparse models one after the other in arrays: each is stored once, for any number of references.

They prove bounds and are what bound solvers start from, so they come back to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactsel.bounds.witness import CurvedPoint, ModelPoint
from exactsel.types import FloatArray, IntArray

NAMES = ("values", "sizes", "columns", "curvature_of", "curvatures")
"""Of the arrays in which points are written down."""

MOST_CURVATURES = 100
"""Different ones, in points packed together."""


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """m points; :meth:`of` and :meth:`held` make them, :meth:`point` gives one back."""

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
    def of(cls, points: Sequence[ModelPoint]) -> Points:
        """Points that :func:`can_be_packed`."""
        curvatures: list[FloatArray] = []
        of = [place_among(point.curvature, curvatures) if isinstance(point, CurvedPoint) else -1 for point in points]
        sizes = np.array([point.index.size for point in points], dtype=np.int64)
        columns = np.concatenate([np.zeros(0, np.int32), *(point.index for point in points)])
        values = np.concatenate([np.zeros(0), *(point.value for point in points)])
        return cls.held(values, sizes, columns, np.array(of, dtype=np.int8), tuple(curvatures))

    @classmethod
    def held(
        cls, values: FloatArray, sizes: IntArray, columns: NDArray[np.int32], curvature_of: NDArray[np.int8],
        curvatures: tuple[FloatArray, ...],
    ) -> Points:  # fmt: skip
        """Those with these entries, one after the other, so many (``sizes``) each."""
        wide = int(columns.max(initial=-1)) + 1
        held: NDArray[Any] = columns
        if sizes.size * -(-wide // 8) < columns.nbytes:
            bits = np.zeros((sizes.size, wide), dtype=bool)
            bits[np.repeat(np.arange(sizes.size), sizes), columns] = True
            held = np.packbits(bits, axis=1)
        return cls(values, np.cumsum(sizes), held, curvature_of, curvatures)

    @classmethod
    def joined(cls, parts: Sequence[Points]) -> Points:
        """All of some, one after the other."""
        curvatures: list[FloatArray] = []
        of = []
        for part in parts:
            places = np.array(
                [place_among(curvature, curvatures) for curvature in part.curvatures] + [-1], dtype=np.int8
            )
            of.append(places[part.curvature_of])
        values = np.concatenate([part.values for part in parts])
        columns = np.concatenate([part.all_columns() for part in parts])
        sizes = np.concatenate([part.sizes for part in parts])
        return cls.held(values, sizes, columns, np.concatenate(of), tuple(curvatures))

    def only(self, numbers: IntArray) -> Points:
        """These alone, in this order."""
        sizes = self.sizes[numbers]
        ends = np.cumsum(sizes)
        entries = np.arange(sizes.sum()) + np.repeat(self.ends[numbers] - ends, sizes)
        columns = self.columns[numbers if self.columns.ndim == 2 else entries]
        return Points(self.values[entries], ends, columns, self.curvature_of[numbers], self.curvatures)

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


def can_be_packed(points: Sequence[ModelPoint]) -> bool:
    """Whether points survive packing unchanged: a plug-in bound may pass on other points than a search makes."""
    usual = all(
        point.index.dtype == np.int32 and point.value.dtype == np.float64 and point.index.shape == point.value.shape
        and point.index.ndim == 1 for point in points
    )  # fmt: skip
    by_id = {id(point.curvature): point.curvature for point in points if isinstance(point, CurvedPoint)}
    curvatures = different(by_id.values())
    usual = (
        usual and len(curvatures) <= MOST_CURVATURES and all(curvature.dtype == np.float64 for curvature in curvatures)
    )
    if not (usual and points):
        return usual
    columns = np.concatenate([point.index for point in points])
    return int(columns.min(initial=0)) >= 0 and ascend(columns, np.array([point.index.size for point in points]))


def ascend(columns: NDArray[np.int32], sizes: IntArray) -> bool:
    """Whether the columns of each point do."""
    same_point = np.diff(np.repeat(np.arange(sizes.size), sizes)) == 0
    return bool(np.all(np.diff(columns.astype(np.int64))[same_point] > 0))


def different(curvatures: Iterable[FloatArray]) -> list[FloatArray]:
    """Each of some curvatures once."""
    pool: list[FloatArray] = []
    for curvature in curvatures:
        place_among(curvature, pool)
    return pool


def place_among(curvature: FloatArray, pool: list[FloatArray]) -> int:
    """Where a curvature is among those known, after it has been added if it is new."""
    for place, other in enumerate(pool):
        if other is curvature or np.array_equal(other, curvature):
            return place
    pool.append(curvature)
    return len(pool) - 1
