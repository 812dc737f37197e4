"""The witnesses of a proof on their way to its file: points are stored once, and named by a word from then on."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from exactsel.bounds.witness import (
    CurvedPoint,
    DualPoint,
    EigenvaluePoint,
    FitPoint,
    InfimumPoint,
    LeafFits,
    ListedPoints,
    ModelPoint,
    SpectralPoint,
    SplitPoint,
    StrongPoint,
    shown,
)
from exactsel.bounds.witness import Proof as Point
from exactsel.proofs.spools import Spools
from exactsel.search.layout import require
from exactsel.types import FloatArray, IntArray
from exactsel_certificates import container as fmt

SPOOLS = (
    "point_value", "point_index", "point_size", "dual_value", "split_size", "split_column", "split_scale", "split_value"
)  # fmt: skip
"""What they are stored in, under the names the proof file has for them."""

INDICES = ("point_index", "split_column")
"""Those that hold numbers of columns."""

REMEMBERED_BYTES = 32 * 2**20
"""Memory for the points written last."""

Number = TypeVar("Number", int, IntArray)

POINT_BYTES = 400
"""What remembering a point takes besides its numbers."""


class Witnesses:
    """Stores points in spools; ``columns`` is how many columns the data have."""

    def __init__(self, spools: Spools, columns: int, scales: FloatArray | None = None) -> None:
        """``scales`` (columns,) are powers of two that columns were divided by and a reader's are not."""
        self._spools, self._divisors = spools, scales
        self.index_type = "u1" if columns <= 2**8 else "<u2" if columns <= 2**16 else "<i4"
        self.curvature: FloatArray | None = None
        """The D of formula (3) that points are for, if any."""
        self.curvature_split = -1
        """The split that leaves it; -1 where it is that of all."""
        self.points = self.splits = self.duals = 0
        """How many have been stored."""
        self._known: OrderedDict[int, tuple[Point, int, int]] = OrderedDict()
        self._known_bytes = 0

    def use(self, point: Point, bound: float) -> int:
        """The word that names a witness; what needs none beyond the infimum gets that."""
        if isinstance(point, InfimumPoint | ListedPoints) or bound <= 0.0:
            return 8 * fmt.INFIMUM + fmt.USE
        if isinstance(point, FitPoint):
            return 8 * fmt.FIT + fmt.USE
        if isinstance(point, LeafFits):
            return fmt.LEAF
        if isinstance(point, EigenvaluePoint):
            return 8 * fmt.EIGENVALUES + fmt.USE
        entry = self._known.get(id(point))
        if entry is None:
            entry = (point, *self.store(shown(point)))
            self._known[id(point)] = entry
            self._known_bytes += entry[2]
            while self._known_bytes > REMEMBERED_BYTES:
                self._known_bytes -= self._known.popitem(last=False)[1][2]
        return entry[1]

    def store(self, point: ModelPoint | DualPoint | SplitPoint | SpectralPoint | StrongPoint) -> tuple[int, int]:
        """Store a point; the word that names it as a witness, and the bytes it takes."""
        write = self._spools.write
        if isinstance(point, SplitPoint):
            write("split_column", point.columns.astype(self.index_type).tobytes())
            scale = point.scale if self._divisors is None else point.scale * self._divisors[point.columns]
            write("split_scale", scale.astype("<f8", copy=False).tobytes())
            write("split_value", point.entries.astype("<f2", copy=False).tobytes())
            write("split_size", np.int32(len(point.columns)).astype("<i4").tobytes())
            self.splits += 1
            return 8 * (self.splits - 1) + fmt.SPLIT, POINT_BYTES + 2 * point.entries.size
        if isinstance(point, DualPoint):
            write("dual_value", np.asarray(point.beta, dtype="<f8").tobytes())
            self.duals += 1
            return 8 * (fmt.FIRST_POINT + 2 * (self.duals - 1) + 1) + fmt.USE, POINT_BYTES + point.beta.nbytes
        if isinstance(point, StrongPoint):
            # A threshold is no coefficient: powers of two round nothing.
            of_units = np.ones(len(point.columns)) if self._divisors is None else self._divisors[point.columns]
            values = of_units * (point.threshold if point.threshold.size else 1.0)
            number = self.store_all(point.columns, values, np.array([len(point.columns)]))
            first = fmt.FIRST_LIKE if point.threshold.size else fmt.FIRST_STRONG
            return 8 * (first + number) + fmt.SPLIT, POINT_BYTES + 12 * len(point.columns)
        if isinstance(point, CurvedPoint | SpectralPoint):
            self.keep_curvature(point.curvature)
        if isinstance(point, SpectralPoint) and self.curvature_split < 0:
            self.curvature_split = self.splits
            self.store(SplitPoint(point.columns, point.scale, point.entries))
        first = self.store_all(point.index, point.value, np.array([len(point.index)]))
        return word_of(first), POINT_BYTES + 12 * len(point.index)

    def store_all(self, columns: NDArray[Any], values: FloatArray, sizes: NDArray[Any]) -> int:
        """Store sparse points, one after the other; the number of the first."""
        if self._divisors is not None:
            values = values / self._divisors[columns]
        self._spools.write("point_index", columns.astype(self.index_type).tobytes())
        self._spools.write("point_value", values.astype("<f8", copy=False).tobytes())
        self._spools.write("point_size", sizes.astype("<i4").tobytes())
        first, self.points = self.points, self.points + len(sizes)
        return first

    def keep_curvature(self, curvature: FloatArray) -> None:
        """Keep the first one met: all points of a search are for the same."""
        if self.curvature is None:
            self.curvature = curvature if self._divisors is None else curvature * self._divisors**2

    @property
    def named_split(self) -> NDArray[np.int32]:
        """The split that leaves the curvature, as the file names it."""
        return np.array([self.curvature_split] if self.curvature_split >= 0 else [], dtype="<i4")

    def stored(self, array: str) -> int:
        """How many entries an array of the proof file has."""
        kind = self.index_type if array in INDICES else fmt.ARRAYS[array][0]
        return self._spools.size(array) // np.dtype(kind).itemsize

    def saved(self) -> dict[str, Any]:
        """What is not in the spools, as JSON holds it."""
        curvature = None if self.curvature is None else self.curvature.tolist()
        numbers = {name: getattr(self, name) for name in ("points", "splits", "duals", "curvature_split")}
        return numbers | {"curvature": curvature}

    def restore(self, saved: dict[str, Any]) -> None:
        """Take over what was saved; :class:`exactsel.errors.InputError` where the spools hold something else."""
        for name in ("points", "splits", "duals", "curvature_split"):
            setattr(self, name, int(saved[name]))
        self.curvature = None if saved["curvature"] is None else np.array(saved["curvature"], dtype=np.float64)
        stored = (self.stored("point_size"), self.stored("split_size"))
        require(stored == (self.points, self.splits), "other points of its proof than it counts")


def word_of(point: Number) -> Number:
    """The word that names a sparse point, or the words that name some."""
    return 8 * (fmt.FIRST_POINT + 2 * point) + fmt.USE
