"""From a bound for prepared data to one for the data as given.

Let x' be coefficients of prepared columns, P~(x') their objective for the prepared doubles and P(x) that of the same
model for the data as given. With E_j what column j is off and e what the target is off (:mod:`prepared`), the residuals
of a model differ by Ex' - e, but for what lies along the intercept, of length eta2 at most. The losses are convex and
their slopes obey sum w_i l'^2 <= 2 b L, with b = 1 for quadratic and Huber loss, 1/4 for logistic and 2 for squared
hinge loss. So

    P(x) >= (1 - 2.1 s) ( P~(x') - eta1 sqrt(2 b P~(x')) - eta2^2 / 2 ),      eta1 = sum_j |x'_j| ||E_j|| + ||e||

where s is how far the scales are off: they matter for the ridge term alone. The other way round P(x) is at most
P~(x') + eta1 sqrt(2 b P~(x')) + max(1, b) eta1^2 / 2, enlarged by 2.1 s. The upper one is for one model, whose |x'_j|
are known. The lower one is for all models, of which only those of an objective below some known ``upper`` matter; that
limits x':

* (lam/2) ||x'||^2 <= upper (1 + 2.1 s);
* with t a verified lower bound of the smallest eigenvalue of A~'A~ + lam I, quadratic loss:
  sqrt(t) ||x'|| <= 2 sqrt(2 upper) + ||y~|| + (the errors' lengths) ||x'||, over the columns that are not zero. Columns
  and their errors are divided by powers of two near their lengths here, and coefficients multiplied: the error of a
  long column then meets coefficients that are small;
* what dual vectors say of coefficients (radii.py; every loss but the quadratic one), where that is known, together with
  the first;
* where the claim is about bounded models only, |x'_j| ||a~_j|| <= R ||y~||, with another R for Huber and logistic loss
  (radii.py).

Slopes of Poisson loss have no such b for all models. In a model of an objective of at most U a row of weight w has a
mean exp(z) of at most M = max(4 y, 2.5 U / w): for p >= 4 y the row costs .4 p or more. Where no prediction is off by
more than 0.01 the mean of either problem is then at most 1.02 M, and (exp(z) - y)^2 <= 2 max(exp(z), y) l(z) gives
b = 1.02 M with the largest M; elsewhere nothing is known.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from exactsel_certificates.formula import FloatArray, Instance
from exactsel_certificates.prepared import Prepared, lengths
from exactsel_certificates.rigorous import TINY, U, leaves_convex, powers_near
from exactsel_mapped import column_blocks

RADIUS = 1e6
"""R, for bounded models."""

EIGENVALUES_UP_TO = 600
"""Columns up to which a smallest eigenvalue is looked for where there is a ridge ..."""

WITHOUT_RIDGE_UP_TO = 3000
"""... and where there is none, and nothing else limits the models (some seconds)."""

SHARES = (0.99, 0.5, 0.1)
"""Parts of the computed eigenvalue that are tried."""

STEPS, LEAP = 120, 2.0**16
"""Steps taken to find the bound a claim needs, and the factor of a step in the dark."""

OF_THE_DATA = ("exact", "_columns", "_target", "_divisors", "_smallest")
"""What depends on the prepared data and the ridge alone, and takes longest."""

NEGLIGIBLE = 1e-12
"""Where rounding takes less than this part of a bound, no better limit on the models is looked for."""


@dataclass(frozen=True)
class Transfer:
    """What the preparation of one problem can do to its bounds."""

    prepared: Prepared
    instance: Instance
    """The prepared problem."""
    limits: FloatArray | None = None
    """(d,) how large coefficients x' can be (radii.py), for all models that cost less than the empty one ..."""
    scoped: bool = False
    """... or for those alone that claims about bounded models speak of."""

    @cached_property
    def _most(self) -> int:
        """Columns of a model, at most."""
        groups = self.instance.groups
        if not groups:
            return min(self.instance.k, len(self.prepared.AT))
        return sum(sorted((len(group) for group in groups), reverse=True)[: self.instance.k])

    def _steepness(self, cost: float, eta: float) -> float:
        """b, for models that cost no more than ``cost``, whose residuals differ by ``eta`` at most."""
        return self.instance.formulas.steepness(self.prepared.y, self.prepared.weights, cost, eta)

    @property
    def _shrunk(self) -> float:
        """What the scales may take, as a factor."""
        return 1.0 - 2.2 * self.prepared.scale_error - 4 * U

    def take_over(self, other: Transfer) -> None:
        """Take over what another one has found that does not depend on which models there are, of the same data."""
        if other.prepared is self.prepared and other.instance.lam == self.instance.lam:
            cache = {name: vars(other)[name] for name in OF_THE_DATA if name in vars(other)}
            vars(self).update(cache)

    @cached_property
    def exact(self) -> bool:
        """Whether the preparation is free of errors, so that bounds are the same."""
        prepared = self.prepared
        off = (
            prepared.column_error,
            prepared.column_rest,
            prepared.target_error,
            prepared.target_rest,
            prepared.scale_error,
        )
        return not any(np.any(part) for part in off)

    def lower(self, bound: float, upper: float, bounded: bool) -> float:
        """A lower bound for the data as given, where ``bound`` is one for the prepared data; at most ``upper``.

        ``upper`` is an objective for the data as given that some model does not exceed, ``bounded`` whether the bound
        is about bounded models only.
        """
        if self.exact or not bound > 0.0:
            return min(bound, upper)
        return min(self._reached(bound, upper, bounded), upper)

    def needed(self, claim: float, upper: float, bounded: bool) -> float:
        """A bound for the prepared data from which :meth:`lower` gets to ``claim``; inf where none is found."""
        if self.exact or claim <= 0.0:
            return claim
        needed = claim
        for _ in range(STEPS):
            reached = self._reached(needed, upper, bounded)
            if reached >= claim:
                return needed
            # Where rounding takes everything the necessary distance is unknown.
            further = needed + 1.01 * (claim - reached) if reached > 0.0 else max(LEAP * needed, TINY)
            needed = max(further, math.nextafter(needed, math.inf))
        return math.inf

    def upper(self, value: float, coef: FloatArray) -> float:
        """An upper bound for the data as given, where ``value`` is one for the prepared data.

        ``coef`` (d,) are those of the model for the data as given; ``value`` is about their product with the scales,
        rounded.
        """
        prepared = self.prepared
        sizes = np.abs(coef * prepared.scale)
        off = prepared.column_error + 2.0 * U * self._columns
        eta = 1.001 * float(sizes @ off + prepared.target_error)
        steep = self._steepness(value, eta)
        if steep == math.inf:
            return math.inf
        more = eta * math.sqrt(2.0 * steep * value) + 0.5 * max(1.0, steep) * eta * eta
        return (value + 1.001 * more) * (1.0 + 2.2 * prepared.scale_error + 16 * U) + (
            TINY if value > 0 or more > 0 else 0
        )

    def _reached(self, bound: float, upper: float, bounded: bool) -> float:
        """:meth:`lower` without the limit at ``upper``."""
        lower = (bound - self._loss(bound, upper, bounded)) * self._shrunk
        return math.nextafter(lower, 0.0) if lower > TINY else 0.0

    def _loss(self, bound: float, upper: float, bounded: bool) -> float:
        """What the errors of the columns and the target take of ``bound``, at most; all of it where that is best."""
        best = bound
        for eta1, eta2 in self._errors(upper, bounded):
            steep = self._steepness(upper, eta1)
            if steep == math.inf:
                continue
            loss = 1.001 * (eta1 * math.sqrt(2.0 * steep * bound) + 0.5 * eta2 * eta2) + TINY
            # The formula rises with P~ only from eta1^2 b / 2 on; below, nothing is certain.
            if loss < best and bound > 0.5 * steep * eta1 * eta1:
                best = loss
            if best <= NEGLIGIBLE * bound:
                break
        return best

    def _errors(self, upper: float, bounded: bool) -> Iterator[tuple[float, float]]:
        """eta1 and eta2 by each way of limiting the models."""
        prepared = self.prepared
        error, rest = self._off
        if not (error or rest):
            # No column a model may use is off: then only the target's errors count, for all models.
            yield prepared.target_error, prepared.target_rest
            return
        grown = upper * (1.0 + 2.2 * prepared.scale_error)
        if self.limits is not None and (bounded or not self.scoped):
            size = 1.001 * math.sqrt(2.0 * grown / self.instance.lam) if self.instance.lam > 0 else math.inf
            sizes = np.minimum(self.limits, size)
            error, rest = self._summed(sizes, prepared.column_error), self._summed(sizes, prepared.column_rest)
            yield error + prepared.target_error, rest + prepared.target_rest
        if self.instance.lam > 0:
            size = 1.001 * math.sqrt(2.0 * grown / self.instance.lam)
            yield size * error + prepared.target_error, size * rest + prepared.target_rest
        if self.instance.formulas.quadratic and self._smallest > 0:
            error, rest = self._off_even
            spread = 0.999 * math.sqrt(self._smallest) - error - rest
            if spread > 0:
                size = 1.001 * (2.0 * math.sqrt(2.0 * grown) + self._target + prepared.target_error) / spread
                yield size * error + prepared.target_error, size * rest + prepared.target_rest
        if bounded and self.instance.formulas.quadratic:  # whose weights are in the prepared data; others have a ridge
            shares, rests = self._shares
            yield shares + prepared.target_error, rests + prepared.target_rest

    def _summed(self, sizes: FloatArray, part: FloatArray) -> float:
        """The largest sum of what coefficients of these sizes make of the errors of columns, rounded upwards."""
        return 1.001 * float(np.sum(np.sort(sizes * part)[::-1][: self._most]))

    @cached_property
    def _off(self) -> tuple[float, float]:
        """Lengths of what the columns of one model are off, at most."""
        return _largest(self.prepared.column_error, self._most), _largest(self.prepared.column_rest, self._most)

    @cached_property
    def _off_even(self) -> tuple[float, float]:
        """The same of columns divided by powers of two near their lengths."""
        error, rest = self.prepared.column_error / self._divisors, self.prepared.column_rest / self._divisors
        return _largest(error, self._most), _largest(rest, self._most)

    @cached_property
    def _columns(self) -> FloatArray:
        """Lengths of the prepared columns, rounded upwards."""
        AT = self.prepared.AT
        return np.concatenate([lengths(AT[block], self.prepared.weights) for block in column_blocks(AT)])

    @cached_property
    def _target(self) -> float:
        return float(lengths(self.prepared.y[None])[0])

    @cached_property
    def _shares(self) -> tuple[float, float]:
        """What bounded models make of the errors: R ||y~|| times the largest parts of a column's length."""
        with np.errstate(all="ignore"):
            shares, rests = (
                np.where(part > 0, part / (0.999 * self._columns), 0.0)
                for part in (self.prepared.column_error, self.prepared.column_rest)
            )
        size = 1.001 * RADIUS * self._target
        largest = [float(np.sum(np.sort(part)[::-1][: self._most])) for part in (shares, rests)]
        return size * largest[0], size * largest[1]

    @cached_property
    def _divisors(self) -> FloatArray:
        """(d,) powers of two near the lengths of the prepared columns."""
        return powers_near(self._columns)

    @cached_property
    def _smallest(self) -> float:
        """A verified lower bound of the smallest eigenvalue of A~'A~ + lam I, quadratic loss, its columns divided by
        powers of two near their lengths; 0 where none is found.
        """
        prepared, lam = self.prepared, self.instance.lam
        # Columns of zeros, free of errors, may have any coefficient: nothing below depends on it.
        used = np.any(prepared.AT, axis=1) | (prepared.column_error > 0) | (prepared.column_rest > 0)
        AT, squares = prepared.AT[used] / self._divisors[used, None], self._divisors[used] ** 2
        d, n = AT.shape
        if d == 0 or d > (EIGENVALUES_UP_TO if lam > 0 else WITHOUT_RIDGE_UP_TO) or n < d:
            return 0.0
        hessian = AT @ AT.T + np.diag(lam / squares)
        if not np.all(np.isfinite(hessian)):
            return 0.0
        eigenvalue = float(np.linalg.eigvalsh(hessian)[0])
        about = Instance(prepared.AT[used].T, prepared.y, d, "quadratic", lam)
        for share in SHARES:
            if eigenvalue > 0 and leaves_convex(about, share * eigenvalue * squares):
                return share * eigenvalue
        return 0.0


def _largest(parts: FloatArray, many: int) -> float:
    """Length of the ``many`` largest, rounded upwards."""
    return 1.001 * float(np.linalg.norm(np.sort(parts)[::-1][:many]))
