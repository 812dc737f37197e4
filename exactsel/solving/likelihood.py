"""Objectives as likelihoods: the loss of a model in the units of information criteria.

    quadratic   -2 log L = N log(2 pi * 2P/N) + N      errors normal, their variance estimated as 2P/N
    logistic    -2 log L = 2P                          labels Bernoulli
    poisson     -2 log L = 2P + 2 sum w (log y! - y log y + y)   counts Poisson; P is half their deviance
    huber       -2 log L = 2P + 2N log Z(delta)        the density exp(-loss(r))/Z, residuals of scale 1
    others      -2 log L = 2P                          up to a constant

N counts rows as often as their weights say, and P is the objective as it is minimised. With lam = 0 these are the
likelihoods statisticians know. With lam > 0 P holds the ridge term, which is the logarithm of a normal prior on the
coefficients: the numbers are then penalised likelihoods, and what is best by them is what a search can prove.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from exactsel.errors import UnsupportedError
from exactsel.problem.capabilities import FREE_COEFFICIENTS
from exactsel.problem.interface import SubsetProblem, is_regression
from exactsel.problem.regression import Problem
from exactsel.rounding import UNIT

EXACT_FIT = 1e-11
"""Times the objective of the empty model: an objective that is rounding noise, so that the model fits exactly."""

ROUNDING = 64.0 * UNIT
"""Times the terms of a sum of logarithms and penalties: more than what rounding does to it."""


@dataclass(frozen=True)
class Likelihood:
    """-2 log-likelihood as a function of the objective, which it increases with."""

    loss: str
    rows: float
    """N: how many rows, those of weight 2 counted twice; of reduced data the rows behind them."""
    least_rows: int
    """Rows with weight, however large: as many coefficients fit them exactly."""
    intercept: bool
    ridge: bool
    """Whether lam > 0."""
    constant: float = 0.0
    """Added for losses whose density has a constant."""
    exact: float = 0.0
    """An objective up to which a model fits exactly, but for rounding."""

    @classmethod
    def of(cls, problem: Problem) -> Likelihood:
        """The likelihood of a problem's rows.

        Raises
        ------
        UnsupportedError
            For column subset selection, which has no target.
        """
        if not problem.has(FREE_COEFFICIENTS):
            raise UnsupportedError("column subset selection has no target, and so no likelihood; give a regression.")
        preparation, reduction = problem.preparation, problem.objective.reduction
        base = problem.objective
        rows, least = float(base.observations), base.observations
        if reduction is not None:
            rows, least = float(reduction.weight), int(reduction.rows)
        elif preparation is not None and preparation.row_weights is not None:
            counted = preparation.row_weights
            rows, least = float(counted.sum()), int(np.count_nonzero(counted))
        intercept = (preparation is not None and bool(preparation.centred)) or (
            reduction is not None and reduction.intercept
        )
        constant = 0.0
        if problem.loss.name == "huber":
            constant = 2.0 * rows * math.log(_huber_integral(problem.loss_parameters["delta"]))
        if problem.loss.name == "poisson":
            constant = _of_counts(problem)
        null = problem.null_objective
        if base.equalities is not None:
            null = 0.5 * float(np.sum(base.y[: base.observations] ** 2))
        return cls(
            problem.loss.name, rows, least, intercept, problem.objective.asked_lam > 0, constant,
            EXACT_FIT * null,
        )  # fmt: skip

    @property
    def known(self) -> bool:
        """Whether the loss is a likelihood; else -2 log L is only what it would be if twice the loss were it."""
        return self.loss in ("quadratic", "logistic", "poisson", "huber")

    @property
    def gaussian(self) -> bool:
        """Whether the variance of the errors is estimated, as for quadratic loss."""
        return self.loss == "quadratic"

    @property
    def beside_columns(self) -> int:
        """Parameters beside one coefficient a column: the intercept, and the variance where that is estimated."""
        return int(self.intercept) + int(self.gaussian)

    def deviance(self, objective: float) -> float:
        """-2 log-likelihood of a model with this objective; -inf for an exact fit where the variance is estimated."""
        if not self.gaussian:
            return 2.0 * objective + self.constant
        if not objective > 0:
            return -math.inf
        return self.rows * (math.log(4.0 * math.pi * objective / self.rows) + 1.0)

    def objective(self, deviance: float) -> float:
        """The objective with this -2 log-likelihood, rounded up: every larger one has a larger deviance."""
        if not self.gaussian:
            return 0.5 * (deviance - self.constant) + self._room(deviance)
        shifted = deviance / self.rows - 1.0
        if shifted > 600.0:
            return math.inf
        room = 1.0 + ROUNDING * (4.0 + abs(shifted))
        return room * self.rows * math.exp(shifted) / (4.0 * math.pi)

    def _room(self, deviance: float) -> float:
        return ROUNDING * (abs(deviance) + abs(self.constant))

    def rounding(self, deviance: float) -> float:
        """More than what rounding does to a -2 log-likelihood of this size."""
        if not math.isfinite(deviance):
            return 0.0
        return ROUNDING * (abs(deviance) + (4.0 * self.rows if self.gaussian else abs(self.constant)))


def likelihood_of(problem: SubsetProblem) -> Likelihood | None:
    """The likelihood of a problem's rows, limits on coefficients aside; None for column subset selection."""
    return Likelihood.of(problem.without_coefficient_bounds) if is_regression(problem) else None


def _of_counts(problem: Problem) -> float:
    """-2 log-likelihood of counts whose means are the counts themselves."""
    from scipy.special import gammaln, xlogy

    y, weights, preparation = problem.y, 1.0 if problem.weights is None else problem.weights, problem.preparation
    if preparation is not None and preparation.exposure is not None:
        y, weights = preparation.y * preparation.exposure, preparation.row_weights  # type: ignore[assignment]
    return float(2.0 * np.sum(weights * (gammaln(y + 1.0) - xlogy(y, y) + y)))


def _huber_integral(delta: float) -> float:
    """The integral of exp(-loss(r)) over all r: a normal middle, exponential tails."""
    middle = math.sqrt(2.0 * math.pi) * math.erf(delta / math.sqrt(2.0))
    return middle + 2.0 / delta * math.exp(-0.5 * delta**2)
