"""The bounds (2) and (3) of many regions at once, in doubles, with every rounding error taken off.

Assumed: IEEE doubles rounded to nearest, sums of products in any order (with or without fused operations, but no
Strassen-like products), and for logistic and Poisson loss logarithms (for Poisson loss exponentials, too) within 16
units of 2^-53. With u = 2^-53, a sum of m products
is then off by at most gamma(m) times the sum of their absolute values; Cauchy and Schwarz turn that into lengths of
vectors. Overflow makes a bound -inf or nan, which proves nothing.

Underflow, gradual or flushed to zero, adds at most ETA = 2^-1022 to a product or quotient, and nothing to a sum. In the
domain (domain.py) columns and y are zero or at least 1e-60 long, their entries, lam and delta at most 1e60, lam and
delta at least 1e-60, weights between 1e-30 and 1e30, and curvatures between 1e-200 and 1e200; points may hold any
doubles. :data:`TINY` is 1e17 ETA, and it is allowed for wherever ETA may enter:

* in each entry of Ax and A'b, a sum of n or d products, by ``n TINY`` in its error;
* in lengths, which are off by ETA where all entries are that small, in the bracket that is multiplied by the length of
  a column: ``TINY`` times 1e60 is still nothing beside what doubles know of a column of that length;
* in the value of each row, which is multiplied by a weight: ``TINY`` times the sum of the weights;
* in squares of coefficients, which are multiplied by lam: ``TINY`` for each of them in the bracket;
* in terms and their sums, by the ``TINY`` of the last step. Terms are divided by square roots of curvatures before they
  are squared: what vanishes then is below ETA.

Squares of the longest columns, of y, of lam and their products with 2^-53 stay far above ETA, so relative allowances
are what they seem. The shares of levels.py are at least 1e-60 or zero, so that their products with weights do not
vanish either.

Lengths are rounded upwards, so every number below that is called ``error`` or ``size`` is an upper estimate.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exactsel_certificates.boxes import gains_above, within
from exactsel_certificates.formula import FloatArray, Instance, row_blocks
from exactsel_certificates.levels import find_levels, side_parts
from exactsel_certificates.sums import (
    blocked_roundings,
    blocked_sums,
    careful_products,
    product_roundings,
    products,
    row_slices,
)
from exactsel_certificates.walk import FREE, IN, OUT
from exactsel_mapped import column_blocks, is_kept

U = 2.0**-53

ROUNDED = 1.0 + 2.0**-49
"""A factor that makes up for a handful of roundings."""

TINY = 1e-290
"""What is allowed for underflow, see above."""

DENSE_UP_TO = 4096
"""Columns up to which square tables of them are made; beyond it only where that takes no more than the data."""

LARGEST_CURVATURE = 1e200
"""Curvatures above this, or below its inverse, are not used."""

States = NDArray[np.uint8]

Rows = NDArray[np.intp]


def gamma(m: int) -> float:
    """What m roundings in a row can do, relative to the sum of absolute values."""
    return 1.001 * (m + 4) * U


def lengths(rows: FloatArray) -> FloatArray:
    """Upper estimates of the lengths of rows (B, n); scaled, so that no square is lost."""
    largest = np.max(np.abs(rows), axis=1, initial=0.0)
    scale = np.where(largest > 0, largest, 1.0)
    with np.errstate(all="ignore"):
        squares = np.sum((rows / scale[:, None]) ** 2, axis=1)
        return np.asarray(scale * np.sqrt(squares) * (1.0 + gamma(rows.shape[1] + 8)))


def counted(terms: FloatArray, states: States, k: int) -> FloatArray:
    """For each region the sum of ``terms`` (B, units) over S and over the k - |S| largest in C, rounded upwards."""
    included = states == IN
    total = np.sum(terms, axis=1, where=included)
    slots = np.clip(k - np.sum(included, axis=1), 0, terms.shape[1])
    most = int(np.max(slots, initial=0))
    smallest = np.where(states == FREE, -terms, 0.0)
    if 0 < most < terms.shape[1]:
        smallest = np.partition(smallest, most - 1, axis=1)
    ranked = -np.sort(smallest[:, :most], axis=1)
    sums = np.concatenate([np.zeros((len(terms), 1)), np.cumsum(ranked, axis=1)], axis=1)
    total = total + sums[np.arange(len(terms)), slots]
    return np.asarray(total * (1.0 + gamma(terms.shape[1])))


class Evaluated(NamedTuple):
    """What points say: region i is bounded by base[i] - (1/2) (the terms of point i that count in it)."""

    base: FloatArray
    """(P,) rounded downwards."""
    terms: FloatArray
    """(P, d), or one for each group, rounded upwards."""


class RigorousBounds:
    """Bound to one instance: evaluates points, and bounds regions at them."""

    def __init__(self, instance: Instance) -> None:
        self.instance, self.loss = instance, instance.formulas
        self.A = instance.A if is_kept(instance.A) else np.ascontiguousarray(instance.A, dtype=np.float64)
        self.y = np.asarray(instance.y, dtype=np.float64)
        self.n, self.d = self.A.shape
        self.many = product_roundings(self.n)
        """Roundings in a product of two columns, at most."""
        blocks = column_blocks(self.A.T)
        self.norms = np.concatenate([lengths(np.ascontiguousarray(self.A[:, block].T)) for block in blocks])
        """Upper estimates of the lengths of the columns (d,)."""
        self.ridge = np.full(self.d, instance.lam)
        self.unit = U
        self.sizes: FloatArray | None = None
        """(d,) how large coefficients can be (radii.py), where that is known: bounds speak of these models only."""

    def at_models(self, W: FloatArray, curvature: FloatArray, E: FloatArray | None = None) -> Evaluated:
        """For formula (3) at models W (P, d); quadratic loss. ``curvature`` lam makes it formula (2).

        The curvature, (d,) or one for each model, must be lam or leave the rest convex (see :func:`leaves_convex`);
        with E (d, d) after that has been taken off, too (points.py).
        """
        with np.errstate(all="ignore"):
            Z = W @ self.A.T
            error_of_z = gamma(self.d) * _times(np.abs(W), self.norms) + self.n * TINY
            rest = self.instance.lam - curvature
            convex = rest * W * W
            residual = Z - self.y
            # ||AW||^2 - ||y||^2 by rows: where a fit is nearly exact, the two are nearly the same.
            rows = residual * (Z + self.y)
            slack = gamma(self.d + 8) * np.sum(np.abs(convex), axis=1)
            slack += 0.5 * gamma(blocked_roundings(self.n) + 16) * blocked_sums(np.abs(rows))
            slack += error_of_z * (lengths(Z) + 0.5 * error_of_z) * ROUNDED + self.n * TINY
            V = products(residual, self.A)
            pull, off = rest * W, 4 * U * np.abs(rest * W)
            if E is not None:
                split, sizes = W @ E, (np.abs(W) @ np.abs(E)) * (1.0 + gamma(self.d))
                convex, pull, off = convex - W * split, pull - split, off + gamma(self.d + 4) * sizes
                slack += gamma(2 * self.d + 8) * np.sum(np.abs(W) * sizes, axis=1)
            error = self.norms * (error_of_z + gamma(self.many + 2) * lengths(residual))[:, None] + self.n * TINY
            error = error * ROUNDED + 4 * U * (np.abs(V) + np.abs(pull)) + off
            terms = self._taken(V + pull, error, curvature)
            base = -0.5 * (blocked_sums(rows) + np.sum(convex, axis=1)) - slack
            return Evaluated(base, self._per_unit(terms))

    def gradients(self, W: FloatArray) -> FloatArray:
        """Dual vectors (B, n) in the domain of the conjugate: about the slopes of the rows at AW', row by row."""
        with np.errstate(all="ignore"):
            Z = W @ self.A.T
            if self.instance.intercept:
                Z = Z + find_levels(self.loss, self.y, self.instance.weights, Z)[:, None]
            return self.projected(self.loss.slopes(Z, self.y))

    def projected(self, B: FloatArray) -> FloatArray:
        """The nearest dual vectors in the domain of the conjugate; comparing floats is exact."""
        return self.loss.projected(B, self.y)

    def at_duals(self, B: FloatArray) -> Evaluated:
        """For formula (2) at dual vectors B (P, n) in the domain of the conjugate; lam > 0, or sizes are known.

        With weights or an intercept B holds the slopes of the rows, from which the dual vector is made. Where sizes
        take the ridge's place a term is what v_j x_j can take of the bound, twice; in a box, and with sizes beside a
        ridge, see boxes.py.
        """
        with np.errstate(all="ignore"):
            base, V, error = self.correlations(B)
            if self.instance.lam == 0 and self.sizes is not None and self.instance.box is None:
                terms = 2.0 * self.sizes * (np.abs(V) + error) * ROUNDED
            else:
                terms = self._taken(V, error, self.ridge)
            return Evaluated(base, self._per_unit(terms))

    def _taken(self, V: FloatArray, error: FloatArray, curvature: FloatArray) -> FloatArray:
        """What columns take off bounds (P, d), twice, at products V, off by ``error``."""
        box = within(self.instance.box, self.sizes)
        if box is not None:
            return 2.0 * gains_above(box, curvature, V, error)
        return np.asarray(((np.abs(V) + error) / np.sqrt(curvature)) ** 2 * ROUNDED)

    def products_of(self, B: FloatArray) -> FloatArray:
        """A'b (P, d) for the rows of B (P, n)."""
        return products(B, self.A)

    def correlations(self, B: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """At dual vectors B (P, n), as above: -L*(b) (P,), rounded downwards, A'b (P, d), and what that is off by."""
        if self.instance.adjusted:
            return self._at_slopes(B)
        V = self.products_of(B)
        error = self.norms * (gamma(self.many + 2) * lengths(B) + TINY)[:, None] + self.n * TINY
        return self._minus_conjugate(B), V, error

    def _per_unit(self, terms: FloatArray) -> FloatArray:
        """The terms (P, d) of columns as those of groups (P, units), rounded upwards; unchanged without groups."""
        groups = self.instance.groups
        if not groups:
            return terms
        starts = np.cumsum([0, *(len(group) for group in groups[:-1])])
        order = [j for group in groups for j in group]
        return np.asarray(np.add.reduceat(terms[:, order], starts, axis=1) * (1.0 + gamma(self.d)))

    def _at_slopes(self, G: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """:meth:`correlations` with weights and intercept (see levels.py), at slopes G (P, n) in the domain of l*.

        The dual vector is exact by definition; its entries in doubles, B here, and the parts of the two sides are off
        by what the roundings of two sums and 8 more can do, also where these do not tell which side is the larger.
        """
        weights, plus, minus = self.instance.weights, np.ones((len(G), 1)), np.ones((len(G), 1))
        B, value, size, total = np.empty(G.shape), np.zeros(len(G)), np.zeros(len(G)), 0.0
        with np.errstate(all="ignore"):
            if self.instance.intercept:
                plus, minus = (parts[:, None] for parts in side_parts(*self._sides(G)))
            for some in row_slices(self.n):
                w = 1.0 if weights is None else weights[some]
                shares = np.where(G[:, some] > 0, plus, minus)
                B[:, some] = w * G[:, some] * shares
                rows, sizes = self.loss.minus_conjugate(G[:, some], self.y[some])
                value += blocked_sums(shares * w * rows)
                size += blocked_sums(shares * w * sizes)
            total = float(self.n if weights is None else np.sum(weights))
            V, many = self.products_of(B), _sliced_roundings(self.n)
            roundings = gamma(self.many + 2 * many + 32)
            error = self.norms * (roundings * lengths(B) + self.n * TINY)[:, None] + self.n * TINY
        return value - gamma(3 * many + 64) * size - TINY * total, V, error

    def _sides(self, G: FloatArray) -> FloatArray:
        """Sums (2, P) of the weighted slopes that are positive, and of the others, sizes only."""
        sums = np.zeros((2, len(G)))
        for some in row_slices(self.n):
            part = G[:, some] if self.instance.weights is None else self.instance.weights[some] * G[:, some]
            rising = part > 0
            sums += [blocked_sums(np.where(rising, part, 0.0)), -blocked_sums(np.where(rising, 0.0, part))]
        return sums

    def _minus_conjugate(self, B: FloatArray) -> FloatArray:
        rows, sizes = self.loss.minus_conjugate(B, self.y)
        slack = gamma(blocked_roundings(self.n) + self.loss.roundings) * blocked_sums(sizes)
        return np.asarray(blocked_sums(rows) - slack - TINY * self.n)

    def bounds(self, points: Evaluated, which: Rows, states: States) -> FloatArray:
        """Bounds of regions (B, units), each at the point ``which`` (B,) numbers; -inf where it is no number."""
        base, terms = points.base[which], points.terms[which]
        with np.errstate(all="ignore"):
            taken = 0.5 * counted(terms, states, self.instance.k)
            bound = base - taken
            bound = bound - 8 * U * (np.abs(base) + taken) - TINY
        sound = np.isfinite(bound) & np.all(np.isfinite(terms) | (states == OUT), axis=1)
        return np.where(sound, bound, -np.inf)


def _sliced_roundings(n: int) -> int:
    """Roundings any term meets in sums of rows slice by slice, each a blocked one, at most."""
    slices = row_slices(n)
    return blocked_roundings(min(n, slices[0].stop)) + len(slices)


def _times(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """rows @ weights for non-negative numbers, rounded upwards."""
    return np.asarray((rows @ weights) * (1.0 + gamma(len(weights))))


def leaves_convex(instance: Instance, curvature: FloatArray, E: FloatArray | None = None) -> bool:
    """Whether M = A'A + lam I - diag(D), less E (d, d) where there is one, is positive semidefinite for the exact data.

    A Cholesky factorisation in doubles that runs to its end proves that its matrix is no further than
    gamma(d + 1) trace from semidefinite (Rump: Verification of positive definiteness, BIT 2006). The matrix it is given
    lies below M by that and by everything rounding may have done to its entries. Columns are divided by powers of two
    near their lengths before, which rounds nothing and changes no sign, so that a long column hides no short one.
    """
    A = np.asarray(instance.A, dtype=np.float64)
    n, d = A.shape
    if E is None and d > max(n, DENSE_UP_TO):
        # Dependent columns leave no curvature but the ridge's: a table of d x d numbers would only take memory.
        return bool(np.all(curvature == instance.lam))
    with np.errstate(all="ignore"):
        hessian, many = careful_products(A.T, A)
        scale = powers_near(np.sqrt(np.diagonal(hessian) + instance.lam))
        hessian, ridge, taken = hessian / scale[:, None] / scale, instance.lam / scale**2, curvature / scale**2
        # One per cent is far more than its own rounding.
        trace = 1.01 * (float(np.trace(hessian)) + float(np.sum(ridge)))
        M = hessian + np.diag(ridge - taken)
        entries = trace + float(np.sum(taken))
        if E is not None:
            E = E / scale[:, None] / scale
            M = M - E
            # Off by so much is no entry's subtraction, and of a matrix the sum of its entries is more than its norm.
            entries += 1.01 * float(np.max(np.sum(np.abs(E), axis=1), initial=0.0))
        room = (gamma(d + 4) + gamma(many + 4)) * trace + 4 * U * entries + (n + d) * TINY
        lowered = M - room * np.eye(d)
    sound = np.all(curvature >= 1 / LARGEST_CURVATURE) and np.all(curvature <= LARGEST_CURVATURE)
    if not np.all(np.isfinite(lowered)) or not sound:
        return False
    return runs_to_its_end(lowered)


def powers_near(sizes: FloatArray) -> FloatArray:
    """The smallest powers of two above the sizes (d,), 1 for those that are zero."""
    return np.where(sizes > 0, np.ldexp(1.0, np.frexp(sizes)[1]), 1.0)


def runs_to_its_end(matrix: FloatArray) -> bool:
    """Whether the Cholesky factorisation of a symmetric matrix, or of every one of several, exists in doubles."""
    try:
        factor = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return bool(np.all(np.isfinite(factor)))


def each_runs(stack: FloatArray) -> NDArray[np.bool_]:
    """The same for each of some matrices (B, m, m) on its own."""
    if runs_to_its_end(stack):
        return np.ones(len(stack), dtype=np.bool_)
    return np.array([len(stack) > 1 and runs_to_its_end(matrix) for matrix in stack])


def model_objective(instance: Instance, x: object, level: float | None = None) -> float:
    """An upper estimate of the objective of a model (d,), in doubles; inf where there is none.

    With an intercept the best one is looked for, where no ``level`` is given.
    """
    loss, y, x = instance.formulas, np.asarray(instance.y), np.asarray(x, dtype=np.float64)
    used = np.flatnonzero(x)
    x, d = x[used], used.size
    with np.errstate(all="ignore"):
        parts = ((part @ x, np.abs(part) @ np.abs(x)) for part in row_blocks(instance.A, used))
        # What underflow does to a prediction is less than the factor and the TINY at the end allow for.
        z, size = (np.concatenate(each) for each in zip(*parts, strict=True))
        error = gamma(d) * size + 2 * U * (np.abs(z) + np.abs(y))
        if instance.intercept:
            if level is None:
                level = find_levels(loss, y, instance.weights, z[None])[0]
            z = z + level
            error = error + 2 * U * (np.abs(z) + np.abs(level))
        rows = np.concatenate([loss.values_above(z[some], y[some], error[some]) for some in row_slices(len(y))])
        rows = rows if instance.weights is None else instance.weights * (rows + TINY)
        squares = np.sum(x * x) + TINY * np.count_nonzero(x)
        if not np.isfinite(np.sum(rows)):
            return np.inf
        # Rows are summed without rounding, so that as much can be said of a model on a million rows as on ten.
        value = float(math.fsum(rows) + 0.5 * instance.lam * squares) * (1.0 + gamma(d + 64)) + TINY
    return value if np.isfinite(value) else np.inf
