"""The points, dual vectors and splits of a proof file."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from exactsel_certificates.container import FIRST_STRONG, LEAVE_OUT, Proof
from exactsel_certificates.formula import FloatArray, Instance
from exactsel_certificates.radii import Radii, radii, within_box, within_scope
from exactsel_certificates.rigorous import TINY, gamma, leaves_convex
from exactsel_certificates.semidefinite import Split
from exactsel_certificates.work import of_fits, spend


class Points:
    """The points of a proof, made dense on demand."""

    def __init__(self, proof: Proof) -> None:
        self.d, self.n = proof.d, proof.n
        self._size = proof.point_size
        self._first = np.cumsum(proof.point_size, dtype=np.int64) - proof.point_size
        self._index, self._value, self._dual = proof.point_index, proof.point_value, proof.dual_value
        self.duals = proof.dual_value.size // max(1, proof.n)
        m = proof.split_size.astype(np.int64)
        self._splits = np.cumsum([0, *m]), np.cumsum([0, *(m * (m - 1) // 2)])
        self.splits = len(m)
        self._of_splits = proof.split_column, proof.split_scale, proof.split_value

    def split(self, number: int) -> Split:
        """The split of this number."""
        (first, end), (low, high) = (starts[number : number + 2].tolist() for starts in self._splits)
        columns, scale, values = self._of_splits
        N = np.zeros((end - first, end - first))
        N[np.tril_indices(end - first, -1)] = values[low:high]
        return Split(columns[first:end].astype(np.intp), scale[first:end].astype(np.float64), N + N.T)

    def has_strong(self, words: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which arguments, less FIRST_STRONG, name strong columns that are there."""
        return (words >= 0) & (words < 2 * FIRST_STRONG) & (words % FIRST_STRONG < len(self))

    def strong(self, word: int) -> tuple[NDArray[np.intp], float]:
        """Strong columns, and the cosine from which on others are taken together; infinite where none are."""
        like, number = divmod(word, FIRST_STRONG)
        first, size = int(self._first[number]), int(self._size[number])
        columns = self._index[first : first + size].astype(np.intp)
        return columns, float(np.max(self._value[first : first + size], initial=0.0)) if like else math.inf

    def __len__(self) -> int:
        return len(self._size)

    def models(self, numbers: NDArray[np.int64]) -> FloatArray:
        """The points of these numbers, (B, d)."""
        W = np.zeros((len(numbers), self.d))
        sizes = self._size[numbers].astype(np.int64)
        rows = np.repeat(np.arange(len(numbers)), sizes)
        places = np.repeat(self._first[numbers] - (np.cumsum(sizes) - sizes), sizes) + np.arange(len(rows))
        W[rows, self._index[places].astype(np.int64)] = self._value[places]
        return W

    def dual_vectors(self, numbers: NDArray[np.int64]) -> FloatArray:
        """The dual vectors of these numbers, (B, n)."""
        return np.array(self._dual.reshape(self.duals, self.n)[numbers], dtype=np.float64)


def left_first(proof: Proof) -> NDArray[np.int64]:
    """The columns a tree speaks of, in the order in which it first does."""
    words = proof.tree[proof.tree & 7 <= LEAVE_OUT] >> 3
    columns, first = np.unique(words[(words >= 0) & (words < proof.d)], return_index=True)
    return np.asarray(columns[np.argsort(first)], dtype=np.int64)


def shown_radii(instance: Instance, proof: Proof) -> Radii | None:
    """Limits on coefficients: the scope's, or those around the point a proof names for them.

    None where it names none. Where a model has no columns there is nothing to limit. With quadratic loss and without a
    ridge those that the problem sets, and the scope.
    """
    if instance.formulas.quadratic:
        limited = instance.box is not None and instance.lam == 0
        return within_box(instance, proof.valid_for != "") if limited else None
    points, named = Points(proof), proof.limit_point.astype(np.int64)
    if not (named.size == 1 and 0 <= named[0] < len(points)):
        return None
    if instance.k == 0:
        return Radii(np.inf, np.zeros(instance.A.shape[1]))
    scoped = proof.valid_for and instance.lam == 0 and instance.formulas.scoped
    return within_scope(instance) if scoped else radii(instance, points.models(named)[0])


def taken_after_split(instance: Instance, proof: Proof) -> FloatArray | None:
    """E (d, d) where the file names a split that leaves its curvature; None where it names none that does.

    For models of at most k columns x'Ex >= 0, so formula (3) holds after E has been taken off (FORMAT.md, witness
    3 + 2p). E is what its doubles say: any N and any positive scale are as good, so what they are rounded to changes
    nothing, and its diagonal is rounded upwards.
    """
    d = instance.A.shape[1]
    named, splits = proof.curvature_split, Points(proof)
    if not named.size or not instance.formulas.quadratic or instance.groups or proof.curvature.size != d:
        return None
    spend(of_fits(1, d) + 2.0 * instance.A.shape[0] * d * d)
    E = _matrix(splits.split(int(named[0])), d, instance.k)
    return E if leaves_convex(instance, proof.curvature, E) else None


def _matrix(split: Split, d: int, k: int) -> FloatArray:
    """E in doubles: diagonally dominant, after scaling, on any k columns."""
    E = np.zeros((d, d))
    with np.errstate(all="ignore"):
        largest = -np.sort(-np.abs(split.entries), axis=1)[:, : max(0, k - 1)]
        t = np.sum(largest, axis=1) * (1.0 + gamma(k + 16)) * split.scale**2
        entries = np.multiply.outer(split.scale, split.scale) * split.entries
    entries[np.diag_indices(len(t))] = t + TINY
    E[np.ix_(split.columns, split.columns)] = entries
    return E
