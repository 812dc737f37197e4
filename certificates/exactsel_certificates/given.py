"""The problem as given where it has row weights, an intercept or scaled columns, and what its models cost exactly.

:mod:`exactsel_certificates.prepared` defines the objective.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from exactsel_certificates.equalities import Equalities, appended, check_equalities
from exactsel_certificates.exact import ExactBounds, float_above, nearest
from exactsel_certificates.formula import Box, FloatArray, Instance, objective_at, predicted
from exactsel_certificates.levels import find_levels
from exactsel_certificates.losses import ExactLoss, exactly
from exactsel_certificates.losses.base import residuals
from exactsel_certificates.prepared import Prepared, prepare
from exactsel_certificates.radii import Radii, of_allowed_columns
from exactsel_certificates.rigorous import model_objective
from exactsel_certificates.scaled import Scaled, scaled, weights_of
from exactsel_certificates.transfer import Transfer
from exactsel_certificates.work import EXACT, spend

CLOSE_ENOUGH = 1e-12
"""Part of an objective that rounding may take before it is computed exactly ..."""

EXACT_ENTRIES = 20_000_000
"""... where the model has no more entries of A than this."""


@dataclass(frozen=True)
class GivenInstance(Instance):
    """A regression problem as given: weights, intercept and scaling are stated, not worked into A and y.

    Unlike in an :class:`Instance`, quadratic loss may have ``weights`` and ``intercept`` too, and weights may be zero.
    The formulas are for the prepared problem, :attr:`plain`.
    """

    scale: bool = False
    """Whether the ridge term is about columns divided by the root of their (weighted) mean square."""
    equalities: Equalities | None = None
    """What coefficients of the data as given must meet; quadratic loss."""

    def _check_rows(self) -> None:
        w = self.weights
        if w is not None and not (
            w.shape == self.y.shape and np.all(np.isfinite(w)) and np.all(w >= 0) and np.any(w > 0)
        ):
            raise ValueError("the weights must be finite numbers, one for each row, none negative and not all zero.")
        if self.equalities is not None:
            check_equalities(self.equalities, self.A.shape[1])
            if not self.formulas.quadratic:
                raise ValueError("equalities go with quadratic loss.")

    @cached_property
    def prepared(self) -> Prepared:
        """The prepared data."""
        preparation = prepare(self.A, self.y, self.loss, self.weights, self.intercept, self.scale)
        return preparation if self.equalities is None else appended(preparation, self.equalities)

    def take(self, prepared: Prepared) -> None:
        """Believe that these are the prepared data: for the solver, which has just made them."""
        self.__dict__["prepared"] = prepared

    @cached_property
    def plain(self) -> Instance:
        """The prepared problem; with scales that are not powers of two limits on coefficients are 0 or infinite."""
        prepared, box = self.prepared, self.box
        box = None if box is None else Box(box.lower * prepared.scale, box.upper * prepared.scale)
        plain = Instance(
            prepared.AT.T, prepared.y, self.k, self.loss, self.lam, self.delta, self.force_in, self.force_out,
            prepared.weights, prepared.intercept, self.groups, hierarchy=self.hierarchy, box=box, plugin=self.plugin,
        )  # fmt: skip
        return of_allowed_columns(plain)

    @cached_property
    def transfer(self) -> Transfer:
        """What the preparation can do to bounds."""
        return Transfer(self.prepared, self.plain)

    def limit(self, radii: Radii, scoped: bool = True) -> None:
        """Take into account how large coefficients of prepared columns can be (radii.py).

        What is known is about models of a prepared objective up to the level. It is used for those that cost less than
        the empty model. On the way from that one to such a model costs stay below the empty model's, while a prepared
        objective above the level would have to pass it, where the sizes hold and tell the true cost to be more. Sizes
        with an infinite level are those of the models a claim about bounded models speaks of; of all, not ``scoped``.
        """
        if math.isinf(radii.level):
            size, prepared = radii.size.copy(), self.prepared
            if self.formulas.quadratic:
                # A column that is zero as prepared, but not known to be, may have any coefficient.
                unknown = ~np.any(prepared.AT, axis=1) & ((prepared.column_error > 0) | (prepared.column_rest > 0))
                unknown[self.columns_of(self.force_out)] = False
                size[unknown] = np.inf
            self.__dict__["transfer"] = Transfer(prepared, self.plain, size, scoped=scoped)
            return
        transfer = Transfer(self.prepared, self.plain, radii.size)
        empty = objective_above(self, np.zeros(len(radii.size)))
        if transfer.exact or transfer.lower(radii.level, empty, False) >= empty:
            self.__dict__["transfer"] = transfer

    def exact_objective(self, x: Sequence[float]) -> Fraction:
        """The objective of coefficients (d,) for the data as given: exact for quadratic loss, else no smaller.

        Other losses take the best intercept that is found in doubles.
        """
        used = [j for j, value in enumerate(x) if value]
        w = weights_of(self.weights, self.y.size)
        total = int(sum(w.values.tolist()))
        A = scaled(np.asarray(self.A, dtype=np.float64)[:, used].reshape(self.y.size, len(used)))
        coef = scaled([float(x[j]) for j in used])
        ridge = Fraction(0)
        for place, j in enumerate(used):
            ridge += self._square(A, place, w, total) * Fraction(float(x[j])) ** 2
        z = Scaled(A.values @ coef.values if used else 0 * w.values, A.exponent + coef.exponent)
        return Fraction(self.lam) * ridge / 2 + self._exact_loss(z, w, total)

    def _square(self, A: Scaled, place: int, w: Scaled, total: int) -> Fraction:
        """The square of the scale of a column; the common factor of the weights cancels."""
        if not self.scale:
            return Fraction(1)
        column = A.values[:, place]
        mean = Fraction(int(sum(w.values * column)), total) if self.intercept else Fraction(0)
        square = Fraction(int(sum(w.values * column * column)), total) - mean * mean
        return square * Fraction(4) ** A.exponent if square else Fraction(1)

    def _exact_loss(self, z: Scaled, w: Scaled, total: int) -> Fraction:
        loss, y, rows = exactly(self.formulas), scaled(self.y), z
        if loss.of_residuals:
            rows, y = residuals(z, y), Scaled(0 * y.values, 0)
        if not loss.quadratic:
            return loss.exact_value(self._levelled(rows, loss.of_residuals), y, w)
        squares = Fraction(int(sum(w.values * rows.values * rows.values)))
        if self.intercept:
            squares -= Fraction(int(sum(w.values * rows.values)) ** 2, total)
        return squares * Fraction(2) ** (2 * rows.exponent + w.exponent) / 2

    def _levelled(self, rows: Scaled, of_residuals: bool) -> Scaled:
        """Predictions, or residuals, with the intercept added that is best for them, up to rounding.

        Their common part is subtracted first, exactly, so that doubles keep many digits.
        """
        if not self.intercept:
            return rows
        counted = np.ones(self.y.size, dtype=np.bool_) if self.weights is None else self.weights > 0
        values = rows.values[counted]
        middle = sorted(values.tolist())[len(values) // 2]
        doubles = np.array([nearest(Fraction(int(v - middle)) * Fraction(2) ** rows.exponent) for v in values])
        y = np.zeros(doubles.size) if of_residuals else self.y[counted]
        w = None if self.weights is None else self.weights[counted]
        with np.errstate(all="ignore"):
            level = scaled(find_levels(self.formulas, y, w, doubles[None])[:1])
        exponent = min(rows.exponent, level.exponent)
        at = Scaled(rows.values - middle, rows.exponent).at(exponent)
        return Scaled(at + level.at(exponent)[0], exponent)


def objective_above(instance: Instance, coef: FloatArray) -> float:
    """No smaller than the objective of a model (d,) for the data as given, and as close as is affordable."""
    x = np.asarray(coef, dtype=np.float64)
    used = np.flatnonzero(x)
    if not used.size and fitted_by_none(instance):
        return 0.0
    with np.errstate(all="ignore"):
        plain, inner = _prepared(instance, x)
        z, level = predicted(plain, inner)
        value = model_objective(plain, inner, level)
        if isinstance(instance, GivenInstance):
            value = instance.transfer.upper(value, x)
        is_tight = value <= objective_at(plain, inner, z) * (1.0 + CLOSE_ENOUGH)
    if is_tight or plain.y.size * (1 + used.size) > EXACT_ENTRIES:
        return value
    if isinstance(instance, GivenInstance):
        return min(value, exactly_above(instance, x))
    alone = Instance(
        plain.A[:, used], plain.y, used.size, plain.loss, plain.lam, plain.delta,
        weights=plain.weights, intercept=plain.intercept, plugin=plain.plugin,
    )  # fmt: skip
    return min(value, exactly_above(alone, x[used]))


def fitted_by_none(instance: Instance) -> bool:
    """Whether the empty model costs exactly nothing, which doubles would not show."""
    counts = instance.y if instance.weights is None else instance.y[instance.weights > 0]
    return instance.formulas.costs_nothing(counts, instance.intercept)


def _prepared(instance: Instance, x: FloatArray) -> tuple[Instance, FloatArray]:
    """The prepared problem and the coefficients of its columns."""
    if isinstance(instance, GivenInstance):
        return instance.plain, x * instance.prepared.scale
    return instance, x


def exactly_above(instance: Instance, coef: FloatArray) -> float:
    """The same in exact arithmetic, at any cost; infinite where the loss has no formulas for that."""
    if not isinstance(instance.formulas, ExactLoss):
        return math.inf
    if not np.any(coef) and fitted_by_none(instance):
        return 0.0
    spend(4.0 * EXACT * instance.y.size * (1 + np.count_nonzero(coef)))
    if isinstance(instance, GivenInstance):
        return float_above(instance.exact_objective(coef.tolist()))
    return float_above(ExactBounds(instance).objective(coef))
