"""The record of a search: its steps in order, what was left open, and what is claimed.

A search starts from one region, the root (nothing inside, every column a candidate), and its steps are of these kinds:

* :class:`Divided`: a region is replaced by a chain of children; child t puts in the t-th column of the chain and
  leaves out those before it, ``rest`` leaves out all. Together they hold every model the region holds.
* :class:`Fixed`: one of the two children a column gives is closed, and the region goes on as the other.
* :class:`Discarded`: a region is closed.
* :class:`Walked`: a region is walked depth first, and replaced by what the walk left open.

Whatever is closed, and every region still :class:`Open` at the end, comes with a bound and a witness: what to put into
the formulas of :mod:`exactsel_dev.reference.bounds` to get that bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from exactsel_certificates.formula import FloatArray


class Model(NamedTuple):
    """A coefficient vector (d,); the gradient of L at Ax is the dual vector."""

    x: FloatArray


class Split(NamedTuple):
    """Columns (m,), their scale (m,), and the strict lower triangle of N row by row (m (m - 1) / 2,)."""

    columns: tuple[int, ...]
    scale: FloatArray
    entries: FloatArray


class Curved(NamedTuple):
    """A coefficient vector (d,) and the curvature D (d,) for formula (3), after a split or not; quadratic loss."""

    x: FloatArray
    curvature: FloatArray
    split: Split | None = None


class Dual(NamedTuple):
    """A dual vector (n,)."""

    beta: FloatArray


class Fit(NamedTuple):
    """The least-squares fit on the region's columns."""


class Eigenvalues(NamedTuple):
    """The eigenvalues of what the region's S leaves of the matrix (column subset selection)."""


class Strong(NamedTuple):
    """Strong columns (m,), apart from which the others are weak."""

    columns: tuple[int, ...]
    threshold: float = math.inf
    """Where the cosine of others is no smaller they are taken together."""


class LeafFits(NamedTuple):
    """The best models on S and each set of candidates that fills all places (logistic loss)."""


class Infimum(NamedTuple):
    """No objective is negative."""


Witness: TypeAlias = Model | Curved | Dual | Fit | Eigenvalues | Infimum | Split | Strong | LeafFits


class Fixed(NamedTuple):
    """One child of ``region`` is closed with ``bound``; the region goes on as the other."""

    region: int
    column: int
    included: bool
    """True: the column is put in, since leaving it out is closed. False: it is left out, putting it in is closed."""
    bound: float
    witness: Witness


class Divided(NamedTuple):
    """``region`` is replaced by ``children``, one per column of the chain, and ``rest``."""

    region: int
    columns: tuple[int, ...]
    children: tuple[int, ...]
    rest: int


class Discarded(NamedTuple):
    """``region`` is closed; ``included`` and ``candidates`` are what the search believed it to be."""

    region: int
    included: tuple[int, ...]
    candidates: tuple[int, ...]
    bound: float
    witness: Witness


class Open(NamedTuple):
    """A region nobody has closed, with the bound known for it."""

    region: int
    included: tuple[int, ...]
    candidates: tuple[int, ...]
    bound: float
    witness: Witness


class Walked(NamedTuple):
    """``region`` is replaced by the regions a depth-first walk left open; all others it closed (see subtree.py)."""

    region: int
    included: tuple[int, ...]
    candidates: tuple[int, ...]
    moves: tuple[int, ...]
    min_pruned_bound: float
    """Claimed: a bound of every region the walk closed."""
    open_regions: tuple[int, ...]
    curvature: FloatArray | None


Step: TypeAlias = Fixed | Divided | Discarded | Walked


@dataclass(frozen=True)
class Record:
    """A whole search: its steps in order, what was left open, and what is claimed."""

    steps: tuple[Step, ...]
    open_regions: tuple[Open, ...]
    lower: float
    """Claimed: no model has a smaller objective."""
    upper: float
    """Claimed: the objective of ``coef``."""
    coef: FloatArray
    """(d,) the best model found; for column subset selection 1 at each chosen column and 0 elsewhere."""
