"""Lower bounds of all models on sparse data, and of those with a given column (FORMAT.md, *Screening*).

*Touched rows*: a model changes predictions only in rows in which one of its columns has an entry. *Formula (2)* at a
dual vector. Both are in doubles, with every rounding subtracted (rigorous.py explains how).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exactsel_certificates.boxes import gains_above
from exactsel_certificates.entries import Entries, SparseInstance
from exactsel_certificates.formula import FloatArray, Instance
from exactsel_certificates.rigorous import ROUNDED, TINY, RigorousBounds, U, gamma, lengths
from exactsel_certificates.work import spend

NEAR = 24
"""Roundings of a term of a sum besides those of the sum, at most."""


class LeftOut(NamedTuple):
    """Lower bounds of objectives."""

    whole: float
    """Of all models."""
    with_column: FloatArray
    """(d,) of those that use a column; infinite where none may."""

    def better(self, other: LeftOut) -> LeftOut:
        """The larger of each."""
        return LeftOut(max(self.whole, other.whole), np.maximum(self.with_column, other.with_column))


def work_of(entries: float, d: float, levels: int, duals: int) -> float:
    """Elementary operations of :func:`left_out`."""
    return 16.0 * (3 + duals) * (entries + d) + 32.0 * levels * d


def left_out(instance: SparseInstance, levels: FloatArray, duals: FloatArray) -> LeftOut:
    """The best of what the levels of an intercept and some dual vectors (m, n) prove, and of zero."""
    spend(work_of(instance.A.values.size, instance.A.shape[1], levels.size, len(duals)))
    allowed = np.ones(instance.A.shape[1], dtype=np.bool_)
    allowed[list(instance.force_out)] = False
    allowed &= instance.k > 0
    best = LeftOut(0.0, np.where(allowed, 0.0, np.inf))
    with np.errstate(all="ignore"):
        if instance.formulas.quadratic:
            best = best.better(_sound(lambda: touched_rows(instance, levels, allowed), best))
        if is_limited(instance):
            for dual in duals:
                best = best.better(_sound(partial(at_dual, instance, dual, allowed), best))
    return best


def is_limited(instance: SparseInstance) -> bool:
    """Whether a ridge or limits on both sides keep the coefficients of all columns but those of force_out finite."""
    if instance.lam > 0.0 or instance.box is None:
        return instance.lam > 0.0
    limited = np.isfinite(instance.box.lower) & np.isfinite(instance.box.upper)
    limited[list(instance.force_out)] = True
    return bool(np.all(limited))


def _sound(find: Callable[[], LeftOut], nothing: LeftOut) -> LeftOut:
    """What is found where it is a number; exact sums raise an error where they overflow."""
    try:
        bounds = find()
    except OverflowError:
        return nothing
    whole = bounds.whole if math.isfinite(bounds.whole) else 0.0
    return LeftOut(whole, np.where(np.isnan(bounds.with_column), nothing.with_column, bounds.with_column))


def touched_rows(instance: SparseInstance, levels: FloatArray, allowed: NDArray[np.bool_]) -> LeftOut:
    """Quadratic loss: the rows that no column of a model touches keep their residual.

    With U the rows that a model touches and r = y - m it costs at least f(c) = sum over i not in U of (r_i - c)^2 / 2
    for some c, and sum over U is at most the sum of h_j(c) = sum of (r_i - c)^2 over the rows of column j. On an
    interval h_j is at most the larger of its ends. f is convex, so beyond the last level it is no smaller than there if
    its slope does not fall, and the same before the first one.
    """
    A, y, k = instance.A, instance.y, instance.k
    n = y.size
    if instance.intercept and not levels.size:
        return LeftOut(0.0, np.where(allowed, 0.0, np.inf))
    middle = float(np.mean(y)) if instance.intercept else 0.0
    r = y - middle
    rows, room, tiny = r[A.rows], gamma(n + NEAR), n * TINY
    sums = (A.sums(rows * rows), A.sums(np.abs(rows)), A.sums(rows), A.counts.astype(np.float64))
    squares, sizes, signed, many = (np.where(allowed, part, 0.0) for part in sums)
    total, drift = float(r @ r), abs(math.fsum(r)) + room * float(np.sum(np.abs(r)))
    if not instance.intercept:
        return _halved(total * (1.0 - room) - tiny, squares * (1.0 + room) + tiny, allowed, k)
    if not (_rises(A, r, allowed, levels[-1], k) and _rises(A, -r, allowed, -levels[0], k)):
        return LeftOut(0.0, np.where(allowed, 0.0, np.inf))

    def most_at(c: float) -> FloatArray:
        off = room * (squares + 2.0 * abs(c) * sizes + c * c * many) + tiny
        return np.asarray(squares - 2.0 * c * signed + c * c * many + off)

    bounds, before = LeftOut(math.inf, np.full(many.size, np.inf)), most_at(float(levels[0]))
    for low, high in zip(levels[:-1].tolist() or levels.tolist(), levels[1:].tolist() or levels.tolist(), strict=True):
        after, far = most_at(high), max(abs(low), abs(high))
        nearest = 0.0 if low <= 0.0 <= high else min(abs(low), abs(high))
        base = total + n * nearest * nearest - 2.0 * far * drift
        base -= room * (total + n * far * far + 2.0 * far * drift) + tiny
        there = _halved(base, np.maximum(before, after), allowed, k)
        bounds = LeftOut(min(bounds.whole, there.whole), np.minimum(bounds.with_column, there.with_column))
        before = after
    return bounds


def _rises(A: Entries, r: FloatArray, allowed: NDArray[np.bool_], c: float, k: int) -> bool:
    """Whether no model's f falls beyond c: the sum of c - r over the rows that it leaves is not negative."""
    gaps = c - r
    size = 4.0 * U * (np.abs(r) + abs(c))
    above = np.where(gaps + size > 0.0, (gaps + size) * ROUNDED, 0.0)
    touched = np.where(allowed, A.sums(above[A.rows]), 0.0) * (1.0 + gamma(r.size + NEAR))
    total = math.fsum(gaps)
    return total - 2.0 * U * abs(total) - math.fsum(size) * ROUNDED >= _largest(touched, k) + r.size * TINY


def at_dual(instance: SparseInstance, slopes: FloatArray, allowed: NDArray[np.bool_]) -> LeftOut:
    """Formula (2) at a dual vector, the slopes of the rows (n,), where :func:`is_limited` says so.

    Within limits a column takes what boxes.py says.
    """
    bounds = _Sparse(instance)
    slopes = bounds.projected(slopes[None])
    if instance.formulas.quadratic and instance.intercept:
        base, V, error = bounds.without_mean(slopes[0])
    else:
        bases, products, errors = bounds.correlations(slopes)
        base, V, error = float(bases[0]), products[0], errors[0]
    if instance.box is None:
        terms = ((np.abs(V) + error) / math.sqrt(instance.lam)) ** 2 * ROUNDED
    else:
        terms = 2.0 * gains_above(instance.box, np.full(V.size, instance.lam), V, error)
    return _halved(2.0 * base, np.where(allowed, terms, 0.0), allowed, instance.k)


class _Sparse(RigorousBounds):
    """The sums over rows of the bounds in doubles, and the products with columns from their entries."""

    def __init__(self, instance: SparseInstance) -> None:
        self.entries, self.y = instance.A, instance.y
        stated = instance.intercept and not instance.formulas.quadratic
        self.instance = Instance(
            np.zeros((instance.y.size, 1)), instance.y, 0, instance.loss, instance.lam, instance.delta,
            intercept=stated, plugin=instance.plugin,
        )  # fmt: skip
        self.loss = instance.formulas
        self.n, self.d = instance.A.shape
        self.many = self.n + 4
        scale = np.maximum(np.zeros(self.d), instance.A.counts > 0) * 1.0
        filled = np.flatnonzero(instance.A.counts)
        if filled.size:
            scale[filled] = np.maximum.reduceat(np.abs(instance.A.values), instance.A.starts[filled])
        by = np.repeat(np.where(scale > 0, scale, 1.0), instance.A.counts)
        squares = instance.A.sums((instance.A.values / by) ** 2)
        self.norms = scale * np.sqrt(squares) * (1.0 + gamma(self.n + NEAR))
        self.sizes = None

    def products_of(self, B: FloatArray) -> FloatArray:
        """A'b for the rows of B."""
        return np.array([self.entries.sums(self.entries.values * b[self.entries.rows]) for b in B])

    def without_mean(self, b: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """What :meth:`correlations` says of b less its mean, exactly; quadratic loss with an intercept.

        That vector sums up to zero, so any number may be taken off y, and columns need not be centred.
        """
        middle = float(np.mean(self.y))
        r, many = self.y - middle, gamma(self.n + NEAR)
        length, size = float(lengths(b[None])[0]), float(lengths(r[None])[0])
        mean = (abs(math.fsum(b)) * ROUNDED + TINY) / self.n * ROUNDED
        along = mean * (abs(math.fsum(r)) + 2.0 * U * float(np.sum(np.abs(r)))) * ROUNDED
        base = -0.5 * length * length * ROUNDED - float(b @ r)
        base -= (many * length * size + along + self.n * TINY) * ROUNDED + 4.0 * U * abs(base)
        V = self.products_of(b[None])[0]
        error = self.norms * (many * length + mean * math.sqrt(self.n) + TINY) * ROUNDED + self.n * TINY
        return base, V, error


def _halved(whole: float, gains: FloatArray, allowed: NDArray[np.bool_], k: int) -> LeftOut:
    """Half of ``whole`` less the k largest gains (d,), and less those with a given one of them."""
    many = min(k, gains.size)
    first = _largest(gains, many)
    off = 8.0 * U * (abs(whole) + first) + TINY
    if many == 0:
        return LeftOut(0.5 * (whole - off), np.full(gains.size, np.inf))
    smallest = float(np.partition(gains, gains.size - many)[gains.size - many])
    others = np.where(gains >= smallest, first, gains + _largest(gains, many - 1) * ROUNDED)
    others = others * (1.0 + 4.0 * U)
    with_column = 0.5 * (whole - others - off - 4.0 * U * others)
    return LeftOut(0.5 * (whole - first - off), np.where(allowed, with_column, np.inf))


def _largest(gains: FloatArray, many: int) -> float:
    """The sum of the ``many`` largest, rounded upwards."""
    many = min(many, gains.size)
    if many == 0:
        return 0.0
    return float(np.sum(np.partition(gains, gains.size - many)[gains.size - many :])) * (1.0 + gamma(many))
