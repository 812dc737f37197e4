"""Information criteria as prices of a size: what a model's likelihood has to gain to pay for a column.

With -2 log L as in :mod:`exactsel.solving.likelihood`, p parameters (coefficients, the intercept, and the variance
where that is estimated), N rows, s columns in the model and d to choose from:

    aic    -2 log L + 2p                                    Akaike 1974
    aicc   aic + 2p(p + 1)/(N - p - 1)                      Hurvich and Tsai 1989
    bic    -2 log L + p log N                               Schwarz 1978
    ebic   bic + 2 gamma log C(d, s)                        Chen and Chen 2008
    hqic   -2 log L + 2p log log N                          Hannan and Quinn 1979
    cp     RSS/sigma^2 - N + 2q                             Mallows 1973
    adjr2  1 - (RSS/(N - q))/(TSS/(N - 1))                  Theil 1961; TSS/N and the sum of y^2 without an intercept
    custom -2 log L + price * p, or + a function of s
    l0     P + lam0 s                                       the penalised form of L0Learn, L0BnB and El0ps

P is the objective itself, whose loss need be no likelihood, and lam0 the price of a feature. q is p without the
variance, and sigma^2 is RSS/(N - q) of the model of all columns. Adjusted R² is the larger the better; here its
negative stands. With terms of several columns s and d count terms in ebic.

Smaller is better. Of two models of one size the one with the smaller objective is better by each of them: so the best
model by a criterion is the best model of its size, and a bound on the objective is a bound on the criterion.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from exactsel.arguments import shown
from exactsel.errors import InputError, UnsupportedError, did_you_mean, option
from exactsel.problem.capabilities import QUADRATIC_LOSS
from exactsel.problem.coefficient_bounds import independent
from exactsel.solving.likelihood import EXACT_FIT, ROUNDING, Likelihood
from exactsel.to_plain import counted

if TYPE_CHECKING:
    from exactsel.problem.regression import Problem

OF_LEAST_SQUARES = ("cp", "adjr2")
"""Criteria of the residual sum of squares itself."""

LINEAR = (*OF_LEAST_SQUARES, "l0")
"""Criteria that are a multiple of the objective and a constant of the size."""

NAMES = ("aic", "aicc", "bic", "ebic", "hqic", *OF_LEAST_SQUARES, "custom", "l0")
"""The criteria, all of them better when smaller; of adjusted R² that is its negative."""

TITLES = {
    "aic": "AIC", "aicc": "AICc", "bic": "BIC", "ebic": "EBIC", "hqic": "HQIC", "cp": "Cp", "adjr2": "adjusted R²",
    "custom": "criterion", "l0": "penalised objective",
}  # fmt: skip

Penalty = float | Callable[[int], float]
"""The price of a parameter, or what is added for a number of columns."""


def check_price(name: str, price: Penalty | None, columns: int) -> None:
    """:class:`InputError` for a penalty that the criterion of this name does not take, or lacks."""
    example = option("penalty", "0.1")
    if price is None:
        if name == "custom":
            raise InputError(f"criterion custom has no penalty, the price of a parameter; give one, as {example}.")
        if name == "l0":
            raise InputError(f"criterion l0 has no penalty, lam0 in P(x) + lam0 ||x||_0; give one, as {example}.")
        return
    if name not in ("custom", "l0"):
        raise InputError(
            f"a penalty was given with criterion {name}, but only custom and l0 take one; give "
            f"{option('criterion', 'l0')} for P(x) + penalty ||x||_0, or leave the penalty out."
        )
    if callable(price):
        if name == "l0":
            raise InputError(
                f"the penalty is a function, but that of criterion l0 is a number, the price of a feature; give a "
                f"number, or {option('criterion', 'custom')}."
            )
        return
    if not (isinstance(price, numbers.Real) and math.isfinite(price) and price >= 0):
        raise InputError(f"the penalty is {shown(price)}, but it must be a finite number that is not negative.")
    if not math.isfinite(float(price) * (columns + 1)):
        raise InputError(f"the penalty is {price}, and {columns} times it is beyond doubles; give a smaller one.")


def unit_of(problem: Problem, name: str) -> float:
    """What the residual sum of squares is measured in: its own mean in the model of all columns, or in that of none.

    Raises
    ------
    InputError
        With a ridge, and for Cp where the model of all columns leaves no row over or its columns depend on each other.
    UnsupportedError
        For any loss but the quadratic one.
    """
    title, objective = TITLES[name], problem.objective
    if not problem.has(QUADRATIC_LOSS):
        raise UnsupportedError(f"{title} is of least squares, but the loss is {problem.loss.name}; take aic or bic.")
    if objective.asked_lam > 0.0:
        raise InputError(
            f"{title} is of least squares, but lam is {objective.asked_lam:g}; give {option('lam', 0)}, or take bic."
        )
    if objective.equalities is not None:
        raise UnsupportedError(f"{title} takes a variance of models without equalities; take aic or bic.")
    likelihood = Likelihood.of(problem)
    columns, fixed = problem.units.columns, int(likelihood.intercept)
    if name == "adjr2":
        residual_df = likelihood.rows - fixed
        rss = 2.0 * float(problem.fit(()).value)
    else:
        residual_df = likelihood.rows - fixed - columns
        if not (residual_df > 1e-9 and likelihood.least_rows > columns + fixed and independent(problem.objective)):
            raise InputError(
                f"Cp takes the variance from the model of all features, but {columns} features of {likelihood.rows:g} "
                f"rows leave none over or depend on each other; take {option('criterion', 'bic')}, or drop features."
            )
        rss = 2.0 * float(problem.inner.fit(range(columns)).value)
    if not (residual_df > 0.0 and rss > EXACT_FIT * 2.0 * problem.null_objective):
        raise InputError(f"{title} has no meaning where no residual is left; take {option('criterion', 'bic')}.")
    return rss / residual_df


@dataclass(frozen=True)
class SizeCriterion:
    """One criterion for one problem's data."""

    name: str
    likelihood: Likelihood
    columns: int
    """d, or the number of terms."""
    gamma: float = 1.0
    """Of EBIC: 0 is BIC."""
    price: Penalty | None = None
    """Of a custom criterion; lam0 of l0."""
    unit: float = 1.0
    """Of Cp the variance of the errors in the model of all columns; of adjusted R² that of the target."""
    beyond: int = 0
    """Columns beyond one for each term, of terms that every model compared here has."""

    @classmethod
    def of(cls, problem: Problem, name: str, gamma: float = 1.0, price: Penalty | None = None) -> SizeCriterion:
        """The criterion of this name for a problem.

        Raises
        ------
        InputError
            For a name, a gamma or a price that cannot be used, and for too few rows.
        UnsupportedError
            For column subset selection.
        """
        if not isinstance(name, str) or name not in NAMES:
            raise InputError(
                f"criterion is {shown(name)}, but it must be one of {', '.join(NAMES)}"
                f"{did_you_mean(str(name), NAMES)}; choose one of them."
            )
        check_price(name, price, problem.units.columns)
        if not (math.isfinite(gamma) and gamma >= 0):
            raise InputError(f"gamma is {gamma}, but it must be a number that is not negative; 1 is usual.")
        unit = unit_of(problem, name) if name in OF_LEAST_SQUARES else 1.0
        criterion = cls(name, Likelihood.of(problem), problem.units.d, gamma, price, unit)
        if name == "hqic" and criterion.likelihood.rows < 3:
            raise InputError(
                f"log log N needs 3 rows, but there are {criterion.likelihood.rows:g}; choose another criterion."
            )
        return criterion

    @property
    def title(self) -> str:
        """How people write it."""
        return TITLES[self.name]

    def parameters(self, size: int) -> int:
        """p: coefficients of so many columns, the intercept, and the variance where that is estimated."""
        return size + self.likelihood.beside_columns

    def penalty(self, size: int) -> float:
        """What is added to -2 log L for so many columns; inf where the criterion is not defined for them."""
        p, rows = self.parameters(size), self.likelihood.rows
        if self.name in OF_LEAST_SQUARES:
            return 2.0 * (p - 1) - rows if self.name == "cp" else 0.0
        if self.name == "l0":
            return self.lam0 * size
        if self.name == "custom":
            return self._own_price(size, p)
        if self.name == "hqic":
            return 2.0 * p * math.log(math.log(rows))
        if self.name == "aicc":
            return 2.0 * p + (2.0 * p * (p + 1) / (rows - p - 1) if rows - p - 1 > 0 else math.inf)
        if self.name == "aic":
            return 2.0 * p
        if self.name == "bic" or self.gamma == 0.0:
            return p * math.log(rows)
        terms = size - self.beyond
        sets = math.lgamma(self.columns + 1) - math.lgamma(terms + 1) - math.lgamma(self.columns - terms + 1)
        return p * math.log(rows) + 2.0 * self.gamma * sets

    def _own_price(self, size: int, p: int) -> float:
        assert self.price is not None
        if not callable(self.price):
            return self.price * p
        added = float(self.price(size))
        if math.isnan(added) or added == -math.inf:
            raise InputError(f"the penalty of {counted(size, 'feature')} is {added}, but it must be a number.")
        return added

    def value(self, objective: float, size: int) -> float:
        """The criterion of a model with this objective on so many columns."""
        if self.name in LINEAR:
            return 2.0 * objective / self._divisor(size) + self._constant(size)
        return self.likelihood.deviance(objective) + self.penalty(size)

    def below(self, objective: float, size: int) -> float:
        """The criterion, rounding taken off: no model with this objective or a larger one has a smaller one."""
        if self.name in LINEAR:
            value = self.value(objective, size)
            return value - ROUNDING * (abs(value) + 2.0 * abs(self._constant(size))) if value > -math.inf else value
        deviance, penalty = self.likelihood.deviance(objective), self.penalty(size)
        if not (math.isfinite(deviance) and math.isfinite(penalty)):
            return deviance + penalty if deviance > -math.inf else -math.inf
        return deviance + penalty - self.likelihood.rounding(deviance) - ROUNDING * abs(penalty)

    def level(self, value: float, size: int) -> float:
        """The objective at which so many columns have a criterion of ``value``, rounded up.

        Every model of this size with a larger objective has a larger criterion.
        """
        if self.name in LINEAR:
            constant = self._constant(size)
            room = ROUNDING * (abs(value) + 2.0 * abs(constant))
            return math.inf if value == math.inf else 0.5 * self._divisor(size) * (value - constant + room)
        penalty = self.penalty(size)
        if not math.isfinite(penalty):
            return -math.inf
        if value == math.inf:
            return math.inf
        return self.likelihood.objective(value - penalty + ROUNDING * (abs(value) + abs(penalty)))

    def _divisor(self, size: int) -> float:
        """What twice the objective of so many columns is divided by, of criteria that are linear in it."""
        if self.name == "l0":
            return 2.0
        return self.unit if self.name == "cp" else self.unit * (self.likelihood.rows - self.parameters(size) + 1.0)

    def _constant(self, size: int) -> float:
        return -1.0 if self.name == "adjr2" else self.penalty(size)

    @property
    def lam0(self) -> float:
        """The price of a column in the penalised objective."""
        assert self.name == "l0"
        assert self.price is not None
        assert not callable(self.price)
        return float(self.price)

    def shown(self, value: float) -> float:
        """A value of the criterion as people know it: adjusted R² is the larger the better."""
        return -value if self.name == "adjr2" else value

    def resolution(self, objective: float, share: float, size: int) -> float:
        """What a change of the objective of a model on so many columns by this share of it is in the criterion."""
        if self.name in LINEAR:
            return 2.0 * share * abs(objective) / self._divisor(size)
        if self.likelihood.gaussian:
            return self.likelihood.rows * math.log1p(share)
        return 2.0 * share * abs(objective)

    def rounding(self, value: float) -> float:
        """By how much a value of the criterion may be off."""
        return 1e-12 * (abs(value) + (0.0 if self.name == "l0" else self.likelihood.rows))

    def largest_size(self) -> int | None:
        """The largest number of columns the criterion has a meaning for; None where it has one for all.

        With an estimated variance and no ridge that leaves one row at least to estimate it from.
        """
        limits = []
        if self.name == "l0":
            return None
        if self.likelihood.gaussian and not self.likelihood.ridge:
            limits.append(self.likelihood.least_rows - 1 - int(self.likelihood.intercept))
        if self.name == "aicc":
            limits.append(math.ceil(self.likelihood.rows) - 2 - self.likelihood.beside_columns)
        return min(limits) if limits else None

    def check_size(self, size: int) -> None:
        """:class:`InputError` for a size the criterion has no meaning for."""
        limit = self.largest_size()
        if limit is not None and size > limit:
            why = "N - p - 1 must be positive for AICc" if self.name == "aicc" else "more would fit every row exactly"
            reach = f"up to {counted(limit, 'feature')}" if limit >= 0 else "for none"
            raise InputError(
                f"models of {counted(size, 'feature')} are asked for, but with {self.likelihood.rows:g} rows "
                f"{self.title} is defined {reach} ({why}); give a smaller {option('k_max')}, or more rows."
            )

    def check_fit(self, objective: float, support: tuple[int, ...], null: float) -> None:
        """:class:`InputError` for a model that fits exactly, whose likelihood is unbounded."""
        if self.name != "l0" and self.likelihood.gaussian and objective <= EXACT_FIT * null:
            size = len(support)
            smaller = f"{option('k_max', min(10, size // 2))}, say," if size > 1 else f"another {option('target')}"
            raise InputError(
                f"a model of {counted(size, 'feature')} fits the target exactly, so its likelihood is unbounded "
                f"and {self.title} has no meaning; give {smaller} or {option('lam')} > 0."
            )
