"""Intercept, scaling and row weights: what is done to the data before a solve, and undone in the answer.

For quadratic loss an unpenalised intercept is exact by centring: with the column means m and the target's mean t, the
best intercept for coefficients x is t - m'x, and putting it in leaves the same problem on centred data. Row weights w
are likewise exact: rows are multiplied by sqrt(w), and means weighted by w.

For other losses the prepared problem keeps weights and intercept (:mod:`exactsel.losses.adjusted`). Columns are centred
all the same: that only changes which intercept is best, and makes the numbers better. Rows of weight 0 are removed.

Prepared numbers are rounded. By how much, and what that does to a bound, is worked out in
:mod:`exactsel_certificates.prepared` and :mod:`exactsel_certificates.transfer`, which the checker of proofs uses too:
what is claimed is always about the data as they were given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from exactsel import registry
from exactsel.arguments import shown
from exactsel.errors import InputError, UnsupportedError, option
from exactsel.losses.adjusted import can_be_adjusted
from exactsel.losses.base import Loss
from exactsel.losses.quadratic import Quadratic
from exactsel.problem.design import DesignColumns, DesignMatrix, typed_as_array
from exactsel.types import FloatArray
from exactsel_certificates.prepared import Prepared, prepare

AUTO = "auto"
"""An intercept for every loss that can have one: the default for data and tables."""

SMALLEST_WEIGHT = 1e-30
"""Positive weights below this, or above its inverse, are refused: products with them could underflow."""

SPLIT_FROM, SPLIT_TO = 1e-200, 1e150
"""Sizes between which what rounding takes of a product of two doubles is a double that their halves give."""


@dataclass(frozen=True)
class Preparation:
    """The data as given, what was taken off the columns and the target, and what the columns were then divided by."""

    AT: FloatArray
    """(d, n) the columns as given, one a row; read-only."""
    y: FloatArray
    """(n,) the target as given; read-only."""
    weights: FloatArray | None
    """(n,) weights of the rows; None where all count the same."""
    centred: bool
    scaled: bool
    loss: str
    """The loss the data are for: only the quadratic one has weights and target worked into the data."""
    made: Prepared
    exposure: FloatArray | None = None
    """(n,) what counts were divided by, and weights multiplied with, where Poisson loss has an offset."""

    @classmethod
    def of(
        cls, A: FloatArray, y: FloatArray, *, centre: bool, scale: bool, weights: FloatArray | None = None,
        loss: str = "quadratic", exposure: FloatArray | None = None,
    ) -> Preparation:  # fmt: skip
        """The preparation of data A (n, d), y (n,); a column that is constant, or zero, is left unscaled."""
        if isinstance(A, DesignMatrix):
            return cls._of_design(A.T, y, centre, scale, weights, loss, exposure)
        data = prepare(A, y, loss, weights, centre, scale)
        AT, y = np.ascontiguousarray(A.T), y.copy()
        AT.flags.writeable = y.flags.writeable = False
        return cls(AT, y, weights, centre, scale, loss, data, exposure)

    @classmethod
    def _of_design(
        cls, AT: DesignColumns, y: FloatArray, centre: bool, scale: bool, weights: FloatArray | None, loss: str,
        exposure: FloatArray | None,
    ) -> Preparation:  # fmt: skip
        """That of data that are not held as a table: means are taken off products, for quadratic loss alone.

        Bounds are worked out for the data as given, so no error is kept account of.
        """
        if scale or weights is not None:
            what = option("standardize", True) if scale else "row weights"
            raise UnsupportedError(
                f"{what} cannot be served with sparse data of {AT.shape[1]} x {len(AT)}, which stay sparse; leave "
                f"it out, or keep fewer features."
            )
        d, n = AT.shape
        included = centre and loss == "quadratic"
        means = AT.summary.totals / n if included else np.zeros(d)
        middle = math.fsum(y) / n if included else 0.0
        target, nothing = y - middle, np.zeros(d)
        target.flags.writeable = y.flags.writeable = False
        prepared = typed_as_array(AT.centred(means) if included else AT)
        data = Prepared(
            prepared, target, None, centre and not included, np.stack([means, nothing]),
            (middle, 0.0), np.ones(d), nothing, nothing, 0.0, 0.0, 0.0,
        )  # fmt: skip
        return cls(typed_as_array(AT), y, weights, centre, scale, loss, data, exposure)

    @property
    def weighted(self) -> bool:
        """Whether rows have weights of their own, beside those that stand for exposures."""
        if self.weights is None or self.exposure is None:
            return self.weights is not None
        return not np.array_equal(self.weights, self.exposure)

    @property
    def asked(self) -> bool:
        """Whether the data are to be prepared, beyond columns of even length (exactsel.problem.column_scales)."""
        return self.centred or self.scaled or self.weights is not None

    @property
    def scale(self) -> FloatArray:
        """(d,) what the columns were divided by."""
        return self.made.scale

    @property
    def row_weights(self) -> FloatArray | None:
        """(n,) how often the rows count: the weights without exposures; None where all count once."""
        return self.weights if self.weights is None or self.exposure is None else self.weights / self.exposure

    @property
    def loss_weights(self) -> FloatArray | None:
        """The weights left to the loss, those of the rows that count."""
        return self.made.weights

    @property
    def loss_intercept(self) -> bool:
        """Whether the intercept is left to the loss."""
        return self.made.intercept

    def check_loss(self, loss: Loss) -> None:
        """:class:`UnsupportedError` where the data were prepared for another loss."""
        name = loss if isinstance(loss, str) else loss.name
        if name != self.loss and (self.centred or self.weights is not None):
            raise UnsupportedError(
                f"intercept and weights were prepared for {self.loss} loss, but the loss is now {name}; make a new "
                f"problem with Problem.prepared."
            )

    def undo(self, coef: FloatArray, level: float | None = None) -> tuple[FloatArray, float]:
        """Coefficients of the given columns, and the intercept, from those of the prepared ones.

        ``level`` is the intercept of the prepared data, where the loss has one; :meth:`exactsel.Problem.as_given` finds
        it.
        """
        if level is None and self.loss_intercept:
            raise InputError(f"the intercept with {self.loss} loss depends on the rows; use the problem's as_given.")
        undone = coef / self.scale
        used = np.flatnonzero(undone)
        # Far from zero the parts of this sum cancel, so it is rounded once only.
        alone, means = [*self.made.target, level or 0.0], -self.made.centre[:, used]
        return undone, sum_rounded_once(alone, means, np.broadcast_to(undone[used], means.shape))


def sum_rounded_once(alone: list[float], first: FloatArray, second: FloatArray) -> float:
    """The sum of numbers and of the products of two arrays, as if it were exact before it is rounded."""
    product = first * second
    sizes = np.abs(np.concatenate([alone, *(part.ravel() for part in (first, second, product))]))
    if np.all((sizes == 0.0) | ((sizes > SPLIT_FROM) & (sizes < SPLIT_TO))):
        high, low = _halves(first)
        other, rest = _halves(second)
        # What rounding takes of a product is a double, and these sums are exact (Dekker 1971).
        missing = ((high * other - product) + high * rest + low * other) + low * rest
        return math.fsum([*alone, *product.ravel().tolist(), *missing.ravel().tolist()])
    total = sum(map(Fraction, alone), Fraction(0))
    total += sum((Fraction(a) * Fraction(b) for a, b in zip(first.flat, second.flat, strict=True)), Fraction(0))
    return float(total)


def _halves(numbers: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Two numbers of at most 26 digits each for every one of some, of which it is the sum (Veltkamp 1968)."""
    spread = 134217729.0 * numbers
    high = spread - (spread - numbers)
    return high, numbers - high


def checked_weights(weights: ArrayLike, rows: int, loss: str | Loss) -> FloatArray:
    """Row weights as floats; :class:`InputError` where they cannot be used."""
    try:
        values = np.array(weights, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        raise InputError("the weights are not numeric; give one number per row.") from None
    if values.size != rows:
        raise InputError(f"there are {values.size} weights for {rows} rows; give one number per row.")
    if not (np.all(np.isfinite(values)) and np.all(values >= 0) and np.any(values > 0)):
        raise InputError("the weights must be finite, not negative and not all zero; correct them.")
    if not can_have_intercept(loss):
        raise UnsupportedError(
            f"{_called(loss)} loss is not declared to take row weights; its author can, see 'A loss' in "
            f"CONTRIBUTING.md; or repeat rows where the weights are whole numbers."
        )
    sizes = values[values > 0]
    if sizes.min() < SMALLEST_WEIGHT or sizes.max() > 1 / SMALLEST_WEIGHT:
        raise InputError(
            f"the weights range from {sizes.min():.3g} to {sizes.max():.3g}, but between {SMALLEST_WEIGHT:g} and "
            f"{1 / SMALLEST_WEIGHT:g} was expected; multiply them by a constant, or set the smallest to 0."
        )
    return values


def can_have_intercept(loss: str | Loss) -> bool:
    """Whether an intercept and weights are known for a loss: the quadratic one, or one declared adjustable."""
    kind = registry.load("losses", loss) if isinstance(loss, str) else type(loss)
    return kind is Quadratic or can_be_adjusted(kind)


def needs_all_levels(intercept: bool | str | None, loss: str | Loss | None) -> bool:
    """Whether factors keep their reference level: where models have no intercept, for which it would stand."""
    wanted = AUTO if intercept is None else intercept
    _check_intercept(wanted)
    return not wanted or (isinstance(wanted, str) and not can_have_intercept("quadratic" if loss is None else loss))


def _called(loss: str | Loss) -> str:
    return loss if isinstance(loss, str) else loss.name


def _check_intercept(fit_intercept: object) -> None:
    if not isinstance(fit_intercept, bool | np.bool_ | int | str) or fit_intercept not in (True, False, AUTO):
        raise UnsupportedError(f"fit_intercept is {shown(fit_intercept)}, but it must be True, False or 'auto'.")


def wants_intercept(fit_intercept: bool | str, loss: str | Loss) -> bool:
    """Whether there is to be an intercept: ``"auto"`` wants one for the losses for which it is exact."""
    _check_intercept(fit_intercept)
    takes_intercept = can_have_intercept(loss)
    if fit_intercept is True and not takes_intercept:
        raise UnsupportedError(
            f"{_called(loss)} loss is not declared to take an unpenalised intercept; its author can, see 'A loss' in "
            f"CONTRIBUTING.md; or add a column of ones (which is penalised, and counts towards k)."
        )
    return takes_intercept if fit_intercept == AUTO else bool(fit_intercept)


def check_two_classes(y: FloatArray, loss: str) -> None:
    """:class:`InputError` where the labels are all equal, or all counts zero, so that no intercept is best."""
    if loss == "poisson" and not np.any(y > 0):
        raise InputError(
            "all counts are 0, so the smaller the intercept the better, and none is best; give rows with counts, or "
            "leave the intercept out."
        )
    if loss == "logistic" and np.all(y == y[0]):
        raise InputError(
            f"all labels are {y[0]:g}, so the larger the intercept the better, and none is best; give rows of both "
            f"classes, or leave the intercept out."
        )
