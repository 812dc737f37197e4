"""Information criteria as prices of a size: what a model's likelihood has to gain to pay for a column.

With -2 log L as in :mod:`exactsel.solving.likelihood`, p parameters (coefficients, the intercept, and the variance
where that is estimated), N rows, s columns in the model and d to choose from:

    aic    -2 log L + 2p                                    Akaike 1974
    aicc   aic + 2p(p + 1)/(N - p - 1)                      Hurvich and Tsai 1989
    bic    -2 log L + p log N                               Schwarz 1978
    ebic   bic + 2 gamma log C(d, s)                        Chen and Chen 2008
    hqic   -2 log L + 2p log log N                          Hannan and Quinn 1979
    custom -2 log L + price * p, or + a function of s

Smaller is better. Of two models of one size the one with the smaller objective is better by each of them: so the best
model by a criterion is the best model of its size, and a bound on the objective is a bound on the criterion.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from exactsel.arguments import shown
from exactsel.errors import InputError, did_you_mean, option
from exactsel.solving.likelihood import EXACT_FIT, ROUNDING, Likelihood

NAMES = ("aic", "aicc", "bic", "ebic", "hqic", "custom")
"""The criteria, all of them better when smaller."""

TITLES = {"aic": "AIC", "aicc": "AICc", "bic": "BIC", "ebic": "EBIC", "hqic": "HQIC", "custom": "criterion"}

Penalty = float | Callable[[int], float]
"""The price of a parameter, or what is added for a number of columns."""


@dataclass(frozen=True)
class SizeCriterion:
    """One criterion for one problem's data."""

    name: str
    likelihood: Likelihood
    columns: int
    """d."""
    gamma: float = 1.0
    """Of EBIC: 0 is BIC."""
    price: Penalty | None = None
    """Of a custom criterion."""

    @classmethod
    def of(cls, problem: Any, name: str, gamma: float = 1.0, price: Penalty | None = None) -> SizeCriterion:
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
        if (name == "custom") != (price is not None):
            raise InputError(
                "a penalty is the price of a parameter in a criterion of one's own; give it with criterion custom, and "
                "with no other."
            )
        if not (math.isfinite(gamma) and gamma >= 0):
            raise InputError(f"gamma is {gamma}, but it must be a number that is not negative; 1 is usual.")
        if price is not None and not callable(price) and not (math.isfinite(price) and price >= 0):
            raise InputError(f"the penalty is {price}, but a price must be a number that is not negative.")
        made = cls(name, Likelihood.of(problem), problem.units.columns, gamma, price)
        if name == "hqic" and made.likelihood.rows < 3:
            raise InputError(
                f"log log N needs 3 rows, but there are {made.likelihood.rows:g}; choose another criterion."
            )
        return made

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
        if self.name == "custom":
            return self._own_price(size, p)
        if self.name == "hqic":
            return 2.0 * p * math.log(math.log(rows))
        if self.name == "aicc":
            return 2.0 * p + (2.0 * p * (p + 1) / (rows - p - 1) if rows - p - 1 > 0 else math.inf)
        if self.name == "aic":
            return 2.0 * p
        sets = math.lgamma(self.columns + 1) - math.lgamma(size + 1) - math.lgamma(self.columns - size + 1)
        return p * math.log(rows) + (2.0 * self.gamma * sets if self.name == "ebic" else 0.0)

    def _own_price(self, size: int, p: int) -> float:
        assert self.price is not None
        if not callable(self.price):
            return self.price * p
        added = float(self.price(size))
        if math.isnan(added) or added == -math.inf:
            raise InputError(f"the penalty of {size} columns is {added}, but it must be a number.")
        return added

    def value(self, objective: float, size: int) -> float:
        """The criterion of a model with this objective on so many columns."""
        return self.likelihood.deviance(objective) + self.penalty(size)

    def below(self, objective: float, size: int) -> float:
        """The criterion, rounding taken off: no model with this objective or a larger one has a smaller one."""
        deviance, penalty = self.likelihood.deviance(objective), self.penalty(size)
        if not (math.isfinite(deviance) and math.isfinite(penalty)):
            return deviance + penalty if deviance > -math.inf else -math.inf
        return deviance + penalty - self.likelihood.rounding(deviance) - ROUNDING * abs(penalty)

    def level(self, value: float, size: int) -> float:
        """The objective at which so many columns come to a criterion of ``value``, rounded up: every model of this size
        with a larger objective has a larger criterion.
        """
        penalty = self.penalty(size)
        if not math.isfinite(penalty):
            return -math.inf
        if value == math.inf:
            return math.inf
        return self.likelihood.objective(value - penalty + ROUNDING * (abs(value) + abs(penalty)))

    def resolution(self, objective: float, share: float) -> float:
        """What a change of an objective by this share of it is in the criterion."""
        if self.likelihood.gaussian:
            return self.likelihood.rows * math.log1p(share)
        return 2.0 * share * abs(objective)

    def largest_size(self) -> int | None:
        """The largest number of columns the criterion has a meaning for; None where it has one for all.

        With an estimated variance and no ridge that leaves one row at least to estimate it from.
        """
        limits = []
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
            reach = f"up to {limit} columns" if limit >= 0 else "for none"
            raise InputError(
                f"models of {size} columns are asked for, but with {self.likelihood.rows:g} rows {self.title} is "
                f"defined {reach} ({why}); give a smaller {option('k_max')}, or more rows."
            )

    def check_fit(self, objective: float, support: tuple[int, ...], null: float) -> None:
        """:class:`InputError` for a model that fits exactly, whose likelihood is unbounded."""
        if self.likelihood.gaussian and objective <= EXACT_FIT * null:
            raise InputError(
                f"the model on columns {', '.join(map(str, support)) or 'none'} fits the target exactly, so that its "
                f"likelihood has no bound and the criterion no meaning; give a smaller {option('k_max')} or lam > 0."
            )
