"""The optimum of a tiny instance, by trying every admissible support; nothing here knows of the search."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property

from exactsel.testing.campaigns.convex_fits import intervals
from exactsel.testing.campaigns.elimination import Elimination, minimiser
from exactsel.testing.campaigns.existence import dependent, separated
from exactsel.testing.campaigns.instances import CSS, TinyInstance
from exactsel.testing.campaigns.model_values import LOGISTIC_BLUR, model_value
from exactsel.testing.campaigns.ridgeless_fits import optimum
from exactsel.testing.campaigns.whole_numbers import WholeData, power

LOOSE, SCALE = Fraction(1, 10**12), Fraction(1, 100)
"""An interval wider than LOOSE times the optimum, or times SCALE of the empty model's, says little of small faults."""

RADIUS = 10**6
"""A scope speaks of models with |x_j| ||a_j|| <= this * ||y||."""


class Truth:
    """What is true of one instance; the optimum lies in [``low``, ``high``], for quadratic loss and css exactly."""

    def __init__(self, instance: TinyInstance) -> None:
        self.instance = instance
        self.data = WholeData(instance)
        self._exact = instance.loss in ("quadratic", CSS)
        self.ridgeless = instance.loss in ("huber", "logistic") and instance.lam == 0

    @cached_property
    def _elimination(self) -> Elimination:
        return Elimination(self.data)

    @cached_property
    def _interval(self) -> tuple[Fraction, Fraction]:
        sets = [self.instance.columns_of(chosen) for chosen in self.instance.largest]
        if self._exact:
            best = min(self._elimination.value(columns) for columns in sets)
            return best, best
        if self.ridgeless:
            return optimum(self.data, sets)
        low, high = intervals(self.data, sets)
        return max(Fraction(0), _fraction(low.min())), _fraction(high.min())

    @property
    def low(self) -> Fraction:
        """The optimum is no smaller."""
        return self._interval[0]

    @property
    def high(self) -> Fraction:
        """The optimum is no larger."""
        return self._interval[1]

    @property
    def loose(self) -> bool:
        """Whether the interval is too wide to tell small faults."""
        return self.high - self.low > LOOSE * max(self.high, SCALE * self.empty)

    @cached_property
    def empty(self) -> Fraction:
        """The objective of the empty model."""
        return self.cost(()) if self.instance.loss == CSS else model_value(self.data, [0.0] * self.instance.d)

    def cost(self, columns: Iterable[int]) -> Fraction:
        """The smallest objective on some columns, for quadratic loss and css."""
        return self._elimination.value(columns)

    def upper_on(self, columns: Iterable[int]) -> Fraction:
        """What some model on these columns costs, next to the best, for Huber and logistic loss."""
        if self.ridgeless:
            return optimum(self.data, [tuple(columns)])[1]
        _, high = intervals(self.data, [tuple(columns)])
        return _fraction(high.min())

    @property
    def allowed(self) -> list[int]:
        """The columns that models may hold."""
        banned = {*self.instance.columns_of(frozenset(self.instance.force_out))}
        return [j for j in range(self.instance.d) if j not in banned]

    @cached_property
    def separated(self) -> bool:
        """Whether all columns that models may hold separate the classes together."""
        return self.instance.loss == "logistic" and separated(self.data, self.allowed)

    @cached_property
    def dependent(self) -> bool:
        """Whether columns that models may hold make up for others, for Huber and logistic loss."""
        return dependent(self.data, self.allowed)

    def of_model(self, coef: Iterable[float]) -> Fraction:
        """The objective of a model with the best intercept; for logistic loss slightly less."""
        return model_value(self.data, list(coef))

    @property
    def blur(self) -> Fraction:
        """Relative: what :meth:`of_model` may be less than the true objective."""
        return 2 * LOGISTIC_BLUR if self.instance.loss in ("logistic", "poisson") else Fraction(0)

    def best_in_scope(self) -> Fraction | None:
        """The best value known to be reached by a model a scope speaks of, quadratic loss; None if there is none."""
        found = [
            self._elimination.value(columns)
            for columns in (self.instance.columns_of(chosen) for chosen in self.instance.admissible)
            if self._bounded(minimiser(self.data, columns))
        ]
        return min(found, default=None)

    def _bounded(self, coef: dict[int, Fraction]) -> bool:
        """Whether a model is well within the scope."""
        data = self.data
        size = Fraction(data.moment(data.target, data.target)) * power(2 * data.target_power)
        for j, x in coef.items():
            square = Fraction(data.moment(data.columns[j], data.columns[j])) * power(2 * data.powers[j])
            if x * x * square > Fraction(RADIUS, 2) ** 2 * size:
                return False
        return True


def _fraction(value: object) -> Fraction:
    """A long double as a fraction; no bound at all where it is not finite."""
    number = float(value)  # type: ignore[arg-type]
    if math.isnan(number) or math.isinf(number):
        return Fraction(0) if number < 0 or math.isnan(number) else Fraction(2) ** 20000
    top, bottom = value.as_integer_ratio()  # type: ignore[attr-defined]
    return Fraction(int(top), int(bottom))
