"""The summary people know of a fitted model: deviances, R², standard errors and intervals, as if it had been given.

Standard errors are those of the model on its columns; that these were chosen on the same data is not accounted for,
and each summary says so. With I the information of the loss, J the variance of its slopes and H = I + the ridge,

    quadratic   s² H^-1 I H^-1, I = A'WA, s² = residual sum of squares / (N - p)        t with N - p degrees
    logistic    H^-1 I H^-1, I = A'W diag(p(1-p)) A at the model                          normal
    poisson     the same, I = A'W diag(exp(z)) A                                          normal
    huber       H^-1 J H^-1, I = A'W diag(|r| <= delta) A, J = A'W diag(psi²) A N/(N - p) normal (a sandwich)

over the columns as given and the intercept, which has no ridge; W holds the row weights, and N is their sum. Without a
ridge these are the textbook's (s² (A'A)^-1, (A'WA)^-1). With one the coefficients are shrunk: the errors are those
about the mean of the shrunk ones. They do not include the bias, which the summary says too. Within limits of
coefficients I, J and H are those of the columns whose coefficients lie between their limits, and p counts these.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from exactsel.errors import InputError, UnsupportedError, option
from exactsel.problem.interface import SubsetProblem, is_regression
from exactsel.problem.regression import Problem
from exactsel.solving.likelihood import Likelihood
from exactsel.solving.model_summary import ModelSummary, SummaryRow
from exactsel.types import BoolArray, FloatArray

if TYPE_CHECKING:
    from exactsel.solving.result import Result

SELECTED = (
    "Standard errors, p-values and intervals do not account for the selection: the features were chosen on the same "
    "data, so the errors are too small and the intervals too short."
)
SHRUNK = (
    "The ridge (lam = {lam:g}) shrinks the coefficients; standard errors leave out the bias this brings, and the "
    "likelihood, with AIC and BIC, is the penalised one."
)
DEPENDENT = "The chosen features depend on each other, so their standard errors are not defined."
FEW = "There are no more rows than parameters, so that nothing is left to tell the size of errors from."
LIMITED = "Nor do they account for the limits: the free coefficients' are those of the fit on their features alone."
HELD = (
    "At a limit, and so without standard errors: {names}. The residual degrees of freedom count the free coefficients "
    "only, AIC and BIC all features of the model."
)
INTERCEPT = "(intercept)"


class Summarised:
    """What a result says in the words of statistics."""

    def summary(self, problem: Problem | None = None, *, level: float = 0.95) -> ModelSummary:
        """Deviances, R², standard errors and intervals of the model (:mod:`exactsel.solving.summary`).

        Parameters
        ----------
        problem : Problem, optional
            What was solved; needed where the result comes from elsewhere and has no search that could continue.
        level : float
            Of the intervals.

        Raises
        ------
        InputError
            For a level outside its range, and where the data are not available.
        UnsupportedError
            For column subset selection, reduced rows, and losses that are no likelihood.
        """
        return summary_of(self, problem, level)  # type: ignore[arg-type]

    def to_statsmodels(self, problem: Problem | None = None) -> Any:
        """The model fitted once more by statsmodels, without a ridge, on the chosen columns: its results object.

        Standard errors and tests of it do not account for the selection either.

        Raises
        ------
        UnsupportedError
            Where statsmodels is not installed, for Huber loss, where there is a ridge, and where a coefficient lies
            at a limit.
        """
        return statsmodels_of(self, problem)  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Data:
    """A model's rows and parameters, for the data as given; the intercept, if there is one, first."""

    problem: Problem
    columns: FloatArray
    """(n, parameters)"""
    y: FloatArray
    weights: FloatArray
    coef: FloatArray
    ridge: FloatArray
    """(parameters,)"""
    chosen: tuple[int, ...]
    names: tuple[str, ...]
    intercept: bool
    held: BoolArray
    """Which parameters (parameters,) lie at a limit."""
    limited: bool
    """Whether there are limits at all."""


def summary_of(result: Result, problem: Problem | None, level: float) -> ModelSummary:
    """See :meth:`Summarised.summary`."""
    from scipy.special import ndtr, ndtri, stdtr, stdtrit  # statistics are a quarter of a second of imports

    _check_level(level)
    data = _data(result, problem)
    loss, rows, p = data.problem.loss.name, Likelihood.of(data.problem).rows, np.count_nonzero(~data.held)
    fitted, residual_df = data.columns @ data.coef, float(rows - p)
    null, deviance = _null_deviance(data), _deviance(data, fitted)
    dispersion = 1.0 if loss != "quadratic" else deviance / residual_df if residual_df > 0 else math.nan
    errors = _errors(data, fitted, dispersion, residual_df)
    if loss == "quadratic":
        tail, width = (
            stdtr(max(residual_df, 1.0), -np.abs(data.coef) / errors),
            stdtrit(max(residual_df, 1.0), 0.5 + 0.5 * level),
        )
    else:
        tail, width = ndtr(-np.abs(data.coef) / errors), ndtri(0.5 + 0.5 * level)
    parameters = tuple(
        SummaryRow(
            name, None if column < 0 else column, float(x), float(error), float(x / error), float(2.0 * below),
            float(x - width * error), float(x + width * error),
        )
        for name, column, x, error, below in zip(
            data.names, (*[-1] * data.intercept, *data.chosen), data.coef, errors, tail, strict=True
        )
    )  # fmt: skip
    likelihood = Likelihood.of(data.problem)
    penalty = 0.5 * float(data.ridge @ data.coef**2)
    minus, alone = likelihood.deviance(0.5 * deviance + penalty), likelihood.deviance(0.5 * null)
    counted = len(data.chosen) + likelihood.beside_columns
    quality, binary = result.quality, loss in ("logistic", "poisson")
    share = math.nan if quality is None or binary else quality.explained
    mcfadden = 1.0 - likelihood.deviance(0.5 * deviance) / alone if binary and alone > 0 else math.nan
    adjusted = math.nan if quality is None or binary else quality.adjusted
    return ModelSummary(
        loss, rows, len(data.chosen), residual_df, null, deviance, dispersion, -0.5 * minus, minus + 2 * counted,
        minus + counted * math.log(rows), share, adjusted, mcfadden,
        level, "t" if loss == "quadratic" else "z", parameters, _warnings(data, errors, residual_df),
        None if data.problem.units.coding is None else data.problem.units.coding.target,
    )  # fmt: skip


def _warnings(data: _Data, errors: FloatArray, residual_df: float) -> tuple[str, ...]:
    lam = data.problem.objective.asked_lam
    shrunk = [SHRUNK.format(lam=lam)] if lam > 0 and data.chosen else []
    few = [FEW] if residual_df <= 0 else [DEPENDENT] if np.any(np.isnan(errors[~data.held])) else []
    names = [name for name, held in zip(data.names, data.held, strict=True) if held]
    held = [HELD.format(names=", ".join(names))] if names else []
    return (SELECTED, *([LIMITED] if data.limited and data.chosen else []), *held, *shrunk, *few)


def refuse_no_summary(problem: SubsetProblem, level: float) -> None:
    """:class:`InputError` for a level outside its range, :class:`UnsupportedError` for problems without a summary."""
    _check_level(level)
    if not is_regression(problem):
        raise UnsupportedError("column subset selection has no coefficients, and so no summary; give a regression.")
    objective = problem.objective
    if objective.reduction is not None:
        raise UnsupportedError("the rows of this instance have been reduced; a summary needs the rows themselves.")
    if objective.equalities is not None:
        raise UnsupportedError(
            "no standard errors are known for coefficients that meet equalities; solve without equalities, or leave "
            "the summary out."
        )
    if objective.loss.name not in ("quadratic", "huber", "logistic", "poisson"):
        raise UnsupportedError(
            f"no standard errors are known for {objective.loss.name} loss; use quadratic, huber, logistic or "
            f"poisson loss."
        )


def _check_level(level: float) -> None:
    if not 0.0 < level < 1.0:
        raise InputError(f"{option('level')} is {level}, but it must be between 0 and 1; give 0.95, say.")


def _problem_behind(result: Result, problem: Problem | None) -> Problem:
    """What was solved, if it can be summed up."""
    if problem is None and result._kept is not None:
        problem = result._kept.problem  # type: ignore[assignment]
    if problem is None:
        raise InputError("this result comes without its data; give the problem it is of: result.summary(problem).")
    refuse_no_summary(problem, 0.95)
    if problem.units.columns != result.coef.size:
        raise InputError(
            f"the problem has {problem.units.columns} features, but the result is of {result.coef.size}; give its own."
        )
    return problem


def _held(problem: Problem, coef: FloatArray, chosen: Sequence[int]) -> BoolArray:
    """Which of the chosen coefficients, as shown, lie at a limit; scaled ones have no other limit than zero."""
    limits = problem.coefficient_bounds
    return np.zeros(len(chosen), dtype=np.bool_) if limits is None else limits.reached(coef)[list(chosen)]


def _data(result: Result, user_problem: Problem | None) -> _Data:
    behind = _problem_behind(result, user_problem)
    problem = behind.without_coefficient_bounds
    preparation, model, chosen = problem.preparation, result.model, result._shown
    assert model is not None
    AT, y = (problem.AT, problem.y) if preparation is None else (preparation.AT, preparation.y)
    weights = np.ones(y.size) if preparation is None or preparation.weights is None else preparation.weights
    first = model.intercept is not None
    scale = np.ones(problem.units.columns) if preparation is None else preparation.scale
    column_names = result.column_names
    names = tuple(column_names[j] if column_names else f"x{j}" for j in chosen)
    included = list(chosen)
    return _Data(
        problem, np.column_stack([np.ones((y.size, int(first))), AT[included].T]), y, weights,
        np.array([*([model.intercept] if first else []), *model.coef[included]], dtype=np.float64),
        np.array([*([0.0] if first else []), *(problem.objective.asked_lam * scale[included] ** 2)]),
        chosen, (*([INTERCEPT] if first else []), *names), first,
        np.concatenate([np.zeros(int(first), dtype=np.bool_), _held(behind, model.coef, chosen)]),
        behind.coefficient_bounds is not None,
    )  # fmt: skip


def _deviance(data: _Data, fitted: FloatArray) -> float:
    """Twice the loss of predictions; the residual sum of squares for quadratic loss."""
    z, y = fitted, data.y
    if data.problem.loss.name == "logistic":
        return float(2.0 * data.weights @ np.logaddexp(0.0, -y * z))
    if data.problem.loss.name == "poisson":
        logarithms = np.log(np.where(y > 0, y, 1.0))
        return float(2.0 * data.weights @ (np.exp(np.minimum(z, 700.0)) - y * (z + 1.0 - logarithms)))
    size = np.abs(y - z)
    if data.problem.loss.name == "huber":
        delta = data.problem.loss_parameters["delta"]
        return float(2.0 * data.weights @ np.where(size <= delta, 0.5 * size**2, delta * size - 0.5 * delta**2))
    return float(data.weights @ size**2)


def _null_deviance(data: _Data) -> float:
    """Of the intercept alone, or of nothing where there is none."""
    if not data.intercept:
        return _deviance(data, np.zeros(data.y.size))
    name, middle = data.problem.loss.name, float(np.average(data.y, weights=data.weights))
    if name == "logistic":
        middle = math.log1p(middle) - math.log1p(-middle)
    elif name == "poisson":
        middle = math.log(middle)
    elif name == "huber":
        return 2.0 * data.problem.fit(()).value
    return _deviance(data, np.full(data.y.size, middle))


def _errors(data: _Data, fitted: FloatArray, dispersion: float, residual_df: float) -> FloatArray:
    """The standard errors (parameters,); nan where they are not defined."""
    name, residual, w = data.problem.loss.name, data.y - fitted, data.weights
    undefined, free = np.full(data.coef.size, math.nan), np.flatnonzero(~data.held)
    if residual_df <= 0 or not free.size:
        return undefined
    if name == "logistic":
        curvature, slopes = w / (2.0 + 2.0 * np.cosh(np.minimum(np.abs(fitted), 700.0))), None
    elif name == "poisson":
        curvature, slopes = w * np.exp(np.minimum(fitted, 700.0)), None
    elif name == "huber":
        delta = data.problem.loss_parameters["delta"]
        curvature = w * (np.abs(residual) <= delta)
        slopes = w * np.clip(residual, -delta, delta) ** 2 * data.weights.sum() / residual_df
    else:
        curvature, slopes = w, None
    columns = data.columns[:, free]
    sizes = np.sqrt(np.maximum(np.einsum("ij,ij->j", columns, columns), np.finfo(float).tiny))
    unit = columns / sizes
    information = unit.T @ (curvature[:, None] * unit)
    hessian = information + np.diag(data.ridge[free] / sizes**2)
    if np.linalg.matrix_rank(hessian, hermitian=True) < free.size:
        return undefined
    meat = information if slopes is None else unit.T @ (slopes[:, None] * unit)
    inverse = np.linalg.inv(hessian)
    variances = np.diag(inverse @ meat @ inverse) * dispersion
    errors: FloatArray = np.sqrt(np.maximum(variances, 0.0)) / sizes
    undefined[free] = np.where(errors > 0, errors, math.nan)
    return undefined


def statsmodels_of(result: Result, problem: Problem | None) -> Any:
    """See :meth:`Summarised.to_statsmodels`."""
    data = _data(result, problem)
    if data.problem.loss.name == "huber":
        raise UnsupportedError(
            "statsmodels estimates a scale in Huber regression, which is another model; see summary()."
        )
    lam = data.problem.objective.asked_lam
    if lam > 0:
        raise UnsupportedError(
            f"statsmodels fits without a ridge, but the model has lam = {lam:g}; solve with lam = 0, or see summary()."
        )
    if np.any(data.held):
        raise UnsupportedError(
            "statsmodels fits without limits, but a coefficient of the model lies at one; see summary()."
        )
    try:
        import pandas
        from statsmodels import api
    except ImportError:
        raise UnsupportedError("this needs statsmodels; run: pip install statsmodels, or see summary().") from None
    exog = pandas.DataFrame(data.columns, columns=list(data.names))
    weighted = not np.all(data.weights == 1.0)
    if data.problem.loss.name == "quadratic" and not weighted:
        return api.OLS(data.y, exog).fit()
    binary = data.problem.loss.name == "logistic"
    if binary and not weighted:
        return api.Logit((data.y > 0).astype(float), exog).fit(disp=0)
    family = api.families.Binomial() if binary else api.families.Gaussian()
    family = api.families.Poisson() if data.problem.loss.name == "poisson" else family
    y = (data.y > 0).astype(float) if binary else data.y
    return api.GLM(y, exog, family=family, freq_weights=data.weights).fit()
