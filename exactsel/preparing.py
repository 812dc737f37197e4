"""Centring and scaling before a solve, undone in the answer.

For quadratic loss an unpenalised intercept is exact by centring: with the column means m and the target's mean t, the
best intercept for coefficients x is t − mᵀx, and putting it in leaves the same problem on centred data. For other
losses this is not so, and :func:`wants_centring` refuses.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exactsel.errors import UnsupportedError
from exactsel.types import FloatArray


@dataclass(frozen=True)
class Preparation:
    """What was taken off the columns and the target, and what the columns were then divided by."""

    centre: FloatArray
    """(d,) zeros when nothing was taken off."""
    scale: FloatArray
    """(d,) ones when nothing was divided."""
    target: float

    @classmethod
    def of(cls, A: FloatArray, y: FloatArray, *, centre: bool, scale: bool) -> Preparation:
        """The preparation of these data: means, and root mean squares of what they leave.

        A column that is constant once centred (or zero) is left unscaled.
        """
        d = A.shape[1]
        means = A.mean(axis=0) if centre else np.zeros(d)
        sizes = np.ones(d)
        if scale:
            sizes = np.sqrt(np.mean((A - means) ** 2, axis=0))
            # Rounding leaves a constant column a tiny size, which would blow its noise up to a column.
            noise = 10 * np.finfo(np.float64).eps * np.abs(A).max(axis=0, initial=0.0)
            sizes[sizes <= noise] = 1.0
        return cls(means, sizes, float(y.mean()) if centre else 0.0)

    def columns(self, A: FloatArray) -> FloatArray:
        """The columns, prepared."""
        prepared: FloatArray = (A - self.centre) / self.scale
        return prepared

    def undo(self, coef: FloatArray) -> tuple[FloatArray, float]:
        """Coefficients of the given columns, and the intercept, from those of the prepared ones."""
        undone = coef / self.scale
        return undone, float(self.target - self.centre @ undone)


def wants_centring(fit_intercept: bool | str, loss: str) -> bool:
    """Whether to centre: ``"auto"`` does for quadratic loss, where that is an exact intercept, and for no other."""
    if fit_intercept not in (True, False, "auto"):
        raise UnsupportedError(f"fit_intercept is {fit_intercept!r}, but it must be True, False or 'auto'.")
    if fit_intercept == "auto":
        return loss == "quadratic"
    if fit_intercept and loss != "quadratic":
        raise UnsupportedError(
            f"an unpenalised intercept is exact by centring for quadratic loss only, not for {loss} loss; leave "
            f"fit_intercept at 'auto' and centre the data, or add a column of ones."
        )
    return bool(fit_intercept)
