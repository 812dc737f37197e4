"""Witnesses of lower bounds: points at which the bound's formula can be evaluated again.

A node (S, C) is a region of models. Its bound is proven by one of these, each checkable from the problem and
the node alone:

* :class:`ModelPoint`: an x; its dual vector is the gradient of L at Ax, and formula (2) gives the bound.
* :class:`CurvedPoint`: an x for formula (3), which uses more curvature than the ridge has (quadratic loss).
* :class:`DualPoint`: the dual vector itself (methods that work on the dual, as in the paper's).
* :class:`FitPoint`: the unconstrained minimum over S and C together, which a checker can recompute.
* :class:`EigenvaluePoint`: the eigenvalues of what S leaves of the matrix (column subset selection), likewise.
* :class:`SplitPoint`: a matrix to subtract before the test of semidefiniteness (quadratic loss).
* :class:`SpectralPoint`: an x for formula (3) after a split has been taken off (quadratic loss).
* :class:`StrongPoint`: columns apart from which all others are nearly orthogonal (quadratic loss).
* :class:`InfimumPoint`: no value of the loss is smaller.
* :class:`ListedPoints`: many of these, for a region that was solved by listing.
* :class:`LeafFits`: every model that the last one or two places of a region can make (logistic loss).
* :class:`CountedPatterns`: the covariate patterns of all sets of columns, for a whole problem.

What may prove the bound of an open node is registered here with the arrays it holds (:func:`register`): by that it is
packed, checked, measured and written down everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from exactsel.types import FloatArray


@dataclass(frozen=True, slots=True)
class ModelPoint:
    """A sparse coefficient vector: x[index] = value, zero elsewhere."""

    index: NDArray[np.int32]
    value: FloatArray

    @classmethod
    def from_dense(cls, x: FloatArray) -> ModelPoint:
        """Keep the non-zero entries of x."""
        index = x.nonzero()[0]
        return cls(index.astype(np.int32), x[index])

    def dense(self, d: int) -> FloatArray:
        """The vector with all its d entries."""
        x = np.zeros(d)
        x[self.index] = self.value
        return x


@dataclass(frozen=True, slots=True)
class CurvedPoint(ModelPoint):
    """A sparse coefficient vector, and the curvature D (d,) taken for every column (one array for a whole search)."""

    curvature: FloatArray


@dataclass(frozen=True, slots=True)
class DualPoint:
    """A dual vector (n,) in the domain of the conjugate loss."""

    beta: FloatArray


@dataclass(frozen=True, slots=True)
class FitPoint:
    """The minimum over all models on S and C, of any size (quadratic loss)."""


@dataclass(frozen=True, slots=True)
class EigenvaluePoint:
    """Column subset selection: any r columns capture at most the r largest eigenvalues (bounds/eigenvalue.py)."""


@dataclass(frozen=True, slots=True)
class InfimumPoint:
    """The loss is nowhere below its infimum."""


@dataclass(frozen=True, slots=True)
class SplitPoint:
    """A symmetric N with zero diagonal, for matrices of columns times ``scale``: FORMAT.md says what it proves."""

    columns: NDArray[np.int32]
    """(m,) ascending; all other rows of N are zero."""
    scale: FloatArray
    """(m,) positive."""
    entries: NDArray[np.float16]
    """(m (m - 1) / 2,) the strict lower triangle, row by row."""


@dataclass(frozen=True, slots=True)
class SpectralPoint:
    """A sparse coefficient vector for formula (3) with H - E, E a split of all columns for models of k columns."""

    index: NDArray[np.int32]
    value: FloatArray
    curvature: FloatArray
    """(d,) the D that H - E leaves (this and all below: the same arrays for a whole search)."""
    columns: NDArray[np.int32]
    """(m,) as those of a :class:`SplitPoint` ..."""
    scale: FloatArray
    entries: NDArray[np.float16]


@dataclass(frozen=True, slots=True)
class StrongPoint:
    """Strong columns, besides which the others are weak: FORMAT.md says what they prove."""

    columns: NDArray[np.int32]
    """(m,) ascending."""
    threshold: FloatArray
    """(1,) where the cosine of weak columns is no smaller they are taken together; (0,) where none are."""


@dataclass(frozen=True, slots=True)
class ListedPoints:
    """The parts a listing divides a region into (enumeration/below_minorant.py), and what proves each."""

    words: NDArray[np.int64]
    """The parts in preorder, see kernels/listing_record.py."""
    models: tuple[ModelPoint, ...]
    """For each set listed what proves its bound."""
    touching: tuple[ModelPoint, ...]
    """Where the quadratic minorant touches P, and where others do that help to show it."""
    widths: NDArray[np.float32]
    """(2, n) how far the intervals go from the predictions at the first of these, down and up."""


@dataclass(frozen=True, slots=True)
class LeafFits:
    """Logistic loss: no model on S and any r <= 2 columns of C costs less (kernels/leaf_closing.py), as fits show."""


@dataclass(frozen=True, slots=True)
class CountedPatterns:
    """Every set of columns of the whole problem costs so much by its patterns or its fit (enumeration/patterns.py)."""


Proof: TypeAlias = (
    ModelPoint
    | DualPoint
    | FitPoint
    | EigenvaluePoint
    | InfimumPoint
    | SplitPoint
    | SpectralPoint
    | StrongPoint
    | LeafFits
    | ListedPoints
    | CountedPatterns
)


class Field(NamedTuple):
    """An array a witness holds, by the words of :class:`exactsel.search.contents.Held`."""

    type: str
    shape: tuple[str, ...]
    entries: str = ""
    shared: bool = False
    """Whether all witnesses of a search share it, so that it takes no memory of a node's."""


class Kind(NamedTuple):
    """How a type of witness is packed, and what checkers are shown for it."""

    fields: dict[str, Field]
    shown: Callable[[Any], Proof] | None
    """Makes the witness, of one of the types above, that is written into proofs; None where it is one itself."""


KINDS: dict[type, Kind] = {}
"""What may prove the bound of an open node."""


def register(cls: type, fields: dict[str, Field], view: Callable[[Any], Proof] | None = None) -> None:
    """Let a frozen dataclass whose ``fields`` are arrays prove bounds of open nodes.

    One that holds nothing is as good as another of its kind. A witness the checkers have no word for needs a ``view``.
    """
    KINDS[cls] = Kind(fields, view)


def is_witness(candidate: object) -> bool:
    """Whether something may prove the bound of an open node."""
    return type(candidate) in KINDS


def holds_nothing(witness: object) -> bool:
    """Whether a witness is as good as any other of its kind."""
    return type(witness) in KINDS and not KINDS[type(witness)].fields


def shown(witness: object) -> Any:
    """What checkers are shown of a witness."""
    kind = KINDS.get(type(witness))
    return witness if kind is None or kind.shown is None else kind.shown(witness)


_MODEL = {"index": Field("int32", ("entries",), "column"), "value": Field("float64", ("entries",), "finite")}

register(ModelPoint, _MODEL)
register(CurvedPoint, _MODEL | {"curvature": Field("float64", ("columns",), "finite", shared=True)})
register(DualPoint, {"beta": Field("float64", ("n",), "finite")})
register(
    SplitPoint,
    {
        "columns": Field("int32", ("chosen",), "column"), "scale": Field("float64", ("chosen",), "finite"),
        "entries": Field("float16", ("any",), "finite"),
    },
)  # fmt: skip
register(
    SpectralPoint,
    _MODEL | {
        "curvature": Field("float64", ("columns",), "finite", shared=True),
        "columns": Field("int32", ("chosen",), "column", shared=True),
        "scale": Field("float64", ("chosen",), "finite", shared=True),
        "entries": Field("float16", ("any",), "finite", shared=True),
    },
)  # fmt: skip
register(
    StrongPoint,
    {"columns": Field("int32", ("any",), "column"), "threshold": Field("float64", ("any",), "finite")},
)
for _empty in (FitPoint, EigenvaluePoint, InfimumPoint, LeafFits):
    register(_empty, {})
