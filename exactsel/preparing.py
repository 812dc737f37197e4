"""Intercept, scaling and row weights: what is done to the data before a solve, and undone in the answer.

For quadratic loss an unpenalised intercept is exact by centring: with the column means m and the target's mean t, the
best intercept for coefficients x is t - m'x, and putting it in leaves the same problem on centred data. Row weights w
are likewise exact: rows are multiplied by sqrt(w), and means weighted by w.

For other losses the prepared problem keeps weights and intercept (:mod:`exactsel.losses.adjusted`). Columns
are centred all the same: that only changes which intercept is best, and makes the numbers better. Rows of weight 0 are
left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from exactsel.errors import InputError, UnsupportedError
from exactsel.types import BoolArray, FloatArray

ADJUSTABLE = ("quadratic", "huber", "logistic")
"""Losses that can have an intercept and weights."""

SMALLEST_WEIGHT = 1e-30
"""Positive weights below this, or above its inverse, are refused: products with them could underflow."""


@dataclass(frozen=True)
class Preparation:
    """What was taken off the columns and the target, and what the columns were then divided by."""

    centre: FloatArray
    """(d,) zeros when nothing was taken off."""
    scale: FloatArray
    """(d,) ones when nothing was divided."""
    target: float
    """What was taken off the target."""
    weights: FloatArray | None = None
    """(n,) weights of the rows; None where all count the same."""
    centred: bool = False
    scaled: bool = False
    loss: str = "quadratic"
    """The loss the data are for: only the quadratic one has weights and target worked into the data."""

    @classmethod
    def of(
        cls, A: FloatArray, y: FloatArray, *, centre: bool, scale: bool, weights: FloatArray | None = None,
        loss: str = "quadratic",
    ) -> Preparation:  # fmt: skip
        """The preparation of these data: (weighted) means, and root mean squares of what they leave.

        A column that is constant once centred (or zero) is left unscaled.
        """
        d = A.shape[1]
        means = np.average(A, axis=0, weights=weights) if centre else np.zeros(d)
        sizes = np.ones(d)
        if scale:
            sizes = np.sqrt(np.average((A - means) ** 2, axis=0, weights=weights))
            # Rounding leaves a constant column a tiny size, which would blow its noise up to a column.
            noise = 10 * np.finfo(np.float64).eps * np.abs(A).max(axis=0, initial=0.0)
            sizes[sizes <= noise] = 1.0
        return cls(means, sizes, _middle(y, weights, loss) if centre else 0.0, weights, centre, scale, loss)

    @property
    def rows(self) -> slice | BoolArray:
        """The rows that count."""
        return slice(None) if self.weights is None or self.loss == "quadratic" else self.weights > 0

    @property
    def loss_weights(self) -> FloatArray | None:
        """The weights left to the loss, those of the rows that count."""
        return None if self.weights is None or self.loss == "quadratic" else self.weights[self.rows]

    @property
    def loss_intercept(self) -> bool:
        """Whether the intercept is left to the loss."""
        return self.centred and self.loss != "quadratic"

    def columns(self, A: FloatArray) -> FloatArray:
        """The columns, prepared."""
        prepared: FloatArray = (A[self.rows] - self.centre) / self.scale
        return prepared * self._roots()[:, None]

    def targets(self, y: FloatArray) -> FloatArray:
        """The target, prepared."""
        prepared: FloatArray = y[self.rows] - self.target
        return prepared * self._roots()

    def _roots(self) -> FloatArray:
        """What the rows of the data are multiplied by."""
        return np.ones(1) if self.weights is None or self.loss != "quadratic" else np.sqrt(self.weights)

    def check_loss(self, loss: Any) -> None:
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
        return undone, float(self.target + (level or 0.0) - self.centre @ undone)


def _middle(y: FloatArray, weights: FloatArray | None, loss: str) -> float:
    """What is taken off the target: its mean where that makes the intercept exact, else what suits the loss."""
    if loss == "quadratic":
        return float(np.average(y, weights=weights))
    return weighted_median(y, weights) if loss == "huber" else 0.0


def weighted_median(values: FloatArray, weights: FloatArray | None = None) -> float:
    """The median of values (n,), each as many times as its weight says."""
    if weights is None:
        return float(np.median(values))
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    lower, upper = np.searchsorted(below, 0.5 * below[-1], "left"), np.searchsorted(below, 0.5 * below[-1], "right")
    return float(0.5 * (values[order[lower]] + values[order[min(upper, len(order) - 1)]]))


def checked_weights(weights: ArrayLike, rows: int, loss: str) -> FloatArray:
    """Row weights as floats; :class:`InputError` where they cannot be used."""
    try:
        values = np.array(weights, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        raise InputError("the weights are not numeric; give one number per row.") from None
    if values.size != rows:
        raise InputError(f"there are {values.size} weights for {rows} rows; give one number per row.")
    if not (np.all(np.isfinite(values)) and np.all(values >= 0) and np.any(values > 0)):
        raise InputError("the weights must be finite, not negative and not all zero; correct them.")
    if loss not in ADJUSTABLE:
        raise UnsupportedError(
            f"row weights are known for {', '.join(ADJUSTABLE)} loss only, not for {loss} loss; repeat rows instead "
            f"where the weights are whole numbers."
        )
    sizes = values[values > 0]
    if sizes.min() < SMALLEST_WEIGHT or sizes.max() > 1 / SMALLEST_WEIGHT:
        raise InputError(
            f"the weights range from {sizes.min():.3g} to {sizes.max():.3g}, but between {SMALLEST_WEIGHT:g} and "
            f"{1 / SMALLEST_WEIGHT:g} was expected; multiply them by a constant, or set the smallest to 0."
        )
    return values


def wants_intercept(fit_intercept: bool | str, loss: str) -> bool:
    """Whether there is to be an intercept: ``"auto"`` wants one for the losses for which it is exact."""
    if fit_intercept not in (True, False, "auto"):
        raise UnsupportedError(f"fit_intercept is {fit_intercept!r}, but it must be True, False or 'auto'.")
    known = loss in ADJUSTABLE
    if fit_intercept is True and not known:
        raise UnsupportedError(
            f"an unpenalised intercept is known for {', '.join(ADJUSTABLE)} loss only, not for {loss} loss; do "
            f"without it, or add a column of ones (which is penalised, and counts towards k)."
        )
    return known if fit_intercept == "auto" else bool(fit_intercept)


def check_two_classes(y: FloatArray, loss: str) -> None:
    """:class:`InputError` where the labels are all equal, so that no intercept is best."""
    if loss == "logistic" and np.all(y == y[0]):
        raise InputError(
            f"all labels are {y[0]:g}, so the larger the intercept the better, and none is best; give rows of both "
            f"classes, or leave the intercept out."
        )
