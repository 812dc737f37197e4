"""A fitted model in the names statistics packages have for its parts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

import numpy as np

from exactsel.errors import InputError
from exactsel.types import FloatArray

if TYPE_CHECKING:
    import pandas

    from exactsel.problem.regression import Problem
    from exactsel.solving.result import Result


class FittedModel:
    """The attributes of a result that bear the names of statsmodels and R."""

    @property
    def params(self) -> pandas.Series:
        """The coefficients in the model as a pandas Series, the intercept, if there is one, first."""
        return self.to_series()  # type: ignore[attr-defined]

    @property
    def aic(self) -> float:
        """AIC of the model, see :attr:`bic`."""
        return _criterion(self, 2.0)  # type: ignore[arg-type]

    @property
    def bic(self) -> float:
        """BIC of the model, R's for lam = 0 (:mod:`exactsel.solving.likelihood`).

        The parameters are all coefficients, the intercept, and the variance where that is estimated. nan for an exact
        fit, and for losses that are no likelihood.
        """
        likelihood = self._likelihood  # type: ignore[attr-defined]
        return math.nan if likelihood is None else _criterion(self, math.log(likelihood.rows))  # type: ignore[arg-type]

    @property
    def fittedvalues(self) -> FloatArray:
        """(n,) the model's predictions of the rows it was made from, on the scale of the target.

        Probabilities of the label +1 for logistic loss, expected counts for Poisson loss, scores for squared hinge
        loss. An offset is counted in.

        Raises
        ------
        InputError
            Where the result comes without its data, from a file or from another process.
        """
        return _fitted(self)[0]  # type: ignore[arg-type]

    @property
    def resid(self) -> FloatArray:
        """(n,) the target less :attr:`fittedvalues`; labels count as 0 and 1.

        Raises
        ------
        InputError
            As for :attr:`fittedvalues`.
        """
        fitted, target = _fitted(self)  # type: ignore[arg-type]
        return target - fitted


def _criterion(result: Result, price: float) -> float:
    likelihood = result._likelihood
    if likelihood is None or not likelihood.known:
        return math.nan
    deviance = likelihood.deviance(result.upper)
    exact = likelihood.gaussian and not result.upper > likelihood.exact
    return math.nan if exact else deviance + price * (len(result._shown) + likelihood.beside_columns)


def _fitted(result: Result) -> tuple[FloatArray, FloatArray]:
    """Fitted values and the target."""
    if result._kept is None:
        raise InputError(
            "this result comes without its data, as it is from a file or from another process; give the rows to "
            "result.predict."
        )
    problem = cast("Problem", result._kept.problem)  # of which predictions are asked
    z, target = result.predict(problem.A), np.asarray(problem.target)
    if problem.loss.name == "logistic":
        from scipy.special import expit

        return np.asarray(expit(z)), 0.5 * (target + 1.0)
    if problem.loss.name != "poisson":
        beside = 0.0 if problem.objective.offset is None else problem.objective.offset
        return z + beside, target + beside
    preparation = problem.preparation
    exposure = 1.0 if preparation is None or preparation.exposure is None else preparation.exposure
    return np.exp(z) * exposure, target * exposure
