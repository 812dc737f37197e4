"""Centring, scaling and row weights before a solve, undone in the answer.

For quadratic loss an unpenalised intercept is exact by centring: with the column means m and the target's mean t, the
best intercept for coefficients x is t − mᵀx, and putting it in leaves the same problem on centred data. For other
losses this is not so, and :func:`wants_centring` refuses. Row weights w are likewise exact for quadratic loss: rows are
multiplied by √w, and means weighted by w.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from exactsel.errors import InputError, UnsupportedError
from exactsel.types import FloatArray


@dataclass(frozen=True)
class Preparation:
    """What was taken off the columns and the target, and what the columns were then divided by."""

    centre: FloatArray
    """(d,) zeros when nothing was taken off."""
    scale: FloatArray
    """(d,) ones when nothing was divided."""
    target: float
    weights: FloatArray | None = None
    """(n,) weights of the rows; None where all count the same."""
    centred: bool = False
    scaled: bool = False

    @classmethod
    def of(
        cls, A: FloatArray, y: FloatArray, *, centre: bool, scale: bool, weights: FloatArray | None = None
    ) -> Preparation:
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
        return cls(means, sizes, float(np.average(y, weights=weights)) if centre else 0.0, weights, centre, scale)

    def columns(self, A: FloatArray) -> FloatArray:
        """The columns, prepared."""
        prepared: FloatArray = (A - self.centre) / self.scale
        return prepared if self.weights is None else prepared * np.sqrt(self.weights)[:, None]

    def targets(self, y: FloatArray) -> FloatArray:
        """The target, prepared."""
        prepared: FloatArray = y - self.target
        return prepared if self.weights is None else prepared * np.sqrt(self.weights)

    def check_loss(self, loss: Any) -> None:
        """:class:`UnsupportedError` where what was done to the data is not exact for a loss."""
        name = loss if isinstance(loss, str) else loss.name
        wants_centring(self.centred, name)
        if self.weights is not None:
            checked_weights(self.weights, self.weights.size, name)

    def undo(self, coef: FloatArray) -> tuple[FloatArray, float]:
        """Coefficients of the given columns, and the intercept, from those of the prepared ones."""
        undone = coef / self.scale
        return undone, float(self.target - self.centre @ undone)


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
    if loss != "quadratic":
        raise UnsupportedError(
            f"row weights are exact for quadratic loss only so far, not for {loss} loss; repeat rows instead where the "
            f"weights are whole numbers."
        )
    return values


def wants_centring(fit_intercept: bool | str, loss: str) -> bool:
    """Whether to centre: ``"auto"`` does for quadratic loss, where that is an exact intercept, and for no other."""
    if fit_intercept not in (True, False, "auto"):
        raise UnsupportedError(f"fit_intercept is {fit_intercept!r}, but it must be True, False or 'auto'.")
    if fit_intercept == "auto":
        return loss == "quadratic"
    if fit_intercept and loss != "quadratic":
        raise UnsupportedError(
            f"an unpenalised intercept is exact by centring for quadratic loss only, not for {loss} loss; do without "
            f"it, or add a column of ones (which is penalised, and counts towards k)."
        )
    return bool(fit_intercept)
