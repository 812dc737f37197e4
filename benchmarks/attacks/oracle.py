"""The truth about a case: the smallest objective over every admissible support, exactly or in a certified interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations

import numpy as np

from benchmarks.attacks.cases import Case
from benchmarks.attacks.enclosures import enclosure, model_objective
from benchmarks.attacks.exact import Data, huber_objective, power, quadratic_objective
from benchmarks.attacks.rational import (
    Support,
    best_coefficients,
    limited_value,
    regression_values,
    selection_values,
)

LOOSE = Fraction(1, 10**15)
"""An interval wider than this (relatively) says little; such cases are counted apart."""

RADIUS = 10**6
"""A scope's models have |x_j| ||a_j|| <= this * ||y||."""


@dataclass(frozen=True)
class Truth:
    """The optimum lies in [low, high]."""

    low: Fraction
    high: Fraction

    @property
    def loose(self) -> bool:
        """Whether the interval is too wide to notice small faults."""
        return self.high - self.low > LOOSE * self.high


TELLABLE = 1e-11
"""Smallest singular value of independent columns of length one."""


class Oracle:
    """Everything there is to know about a case; ``delta`` is the Huber threshold where the case leaves it open."""

    def __init__(self, case: Case, delta: float | None = None) -> None:
        self.case = case
        self.data = Data(case)
        self.delta = (delta if case.delta is None else case.delta) if case.loss == "huber" else None

    def supports(self, k: int) -> list[Support]:
        """Every admissible set of as many units as there may be; smaller ones are parts of these.

        With limits on groups or a hierarchy, of which that is not so, all of them.
        """
        if self.case.per_group is not None or self.case.hierarchy:
            return [support for size in range(k + 1) for support in self.of_size(size)]
        included, outside = set(self.case.force_in), set(self.case.force_out)
        free = [u for u in range(len(self.case.units)) if u not in included | outside]
        places = min(k - len(included), len(free))
        return [tuple(sorted((*included, *chosen))) for chosen in combinations(free, places)]

    def of_size(self, size: int) -> list[Support]:
        """Every admissible set of so many units."""
        return [chosen for chosen in combinations(range(len(self.case.units)), size) if self.case.admits(chosen)]

    def truth(self, k: int | None = None) -> Truth:
        """The optimum with at most k units."""
        intervals = self.values(self.supports(self.case.k if k is None else k), prune=True).values()
        return Truth(min(low for low, _ in intervals), min(high for _, high in intervals))

    def values(self, supports: Sequence[Support], prune: bool = False) -> dict[Support, tuple[Fraction, Fraction]]:
        """The smallest objective on every support; with ``prune`` an interval may be wide where another is better."""
        if self.case.loss == "quadratic" and self.case.lower is not None:
            exact = ((s, limited_value(self.data, [j for u in s for j in self.case.units[u]])) for s in supports)
            return {support: (value, value) for support, value in exact}
        if self.case.loss in ("quadratic", "css"):
            values = selection_values if self.case.loss == "css" else regression_values
            return {support: (value, value) for support, value in values(self.data, supports).items()}
        found: dict[Support, tuple[Fraction, Fraction]] = {}
        best: Fraction | None = None
        for support in supports:
            columns = [j for u in support for j in self.case.units[u]]
            found[support] = enclosure(self.data, columns, self.delta, best if prune else None)
            best = found[support][1] if best is None else min(best, found[support][1])
        return found

    @cached_property
    def empty(self) -> Fraction:
        """The objective of the empty model (its upper end)."""
        if self.case.loss == "css":
            return selection_values(self.data, [()])[()]
        return self.objective([0.0] * self.case.d)[1]

    def objective(self, coef: Sequence[float]) -> tuple[Fraction, Fraction]:
        """The objective of a model's coefficients, for the data as given, with the best intercept."""
        if self.case.loss in ("logistic", "squared_hinge", "poisson"):
            return model_objective(self.data, coef)
        if self.delta is not None:
            value = huber_objective(self.data, coef, Fraction(self.delta))
        else:
            value = quadratic_objective(self.data, coef)
        return value, value

    def bounded_truth(self, k: int | None = None) -> Fraction | None:
        """An upper estimate of the optimum among the models a scope speaks of; None if none of the best is one.

        Only for quadratic loss: of every support the minimiser that elimination gives is looked at.
        """
        best: Fraction | None = None
        supports = self.supports(self.case.k if k is None else k)
        for support, (value, _) in self.values(supports).items():
            columns = [j for u in support for j in self.case.units[u]]
            if (best is None or value < best) and self._bounded(best_coefficients(self.data, columns)):
                best = value
        return best

    def tame(self, support: Support) -> bool:
        """Whether the best model on a support has coefficients of a size that doubles can tell.

        A column that is another one but for the last bits leaves less than all others together, by coefficients that no
        fit in doubles finds; nor is a model with them one of those a scope speaks of.
        """
        if self.case.lam > 0 or self.case.lower is not None:
            return True
        if self.case.loss not in ("quadratic", "huber"):
            return self._independent([j for u in support for j in self.case.units[u]])
        return self._bounded(best_coefficients(self.data, [j for u in support for j in self.case.units[u]]))

    def _independent(self, columns: list[int]) -> bool:
        """Whether doubles can tell that columns, of length one, are independent."""
        A = self.case.A[:, columns]
        A = A - A.mean(axis=0) if self.case.intercept else A
        lengths = np.linalg.norm(A, axis=0)
        if not (columns and np.all(lengths > 0)):
            return not columns
        return bool(np.linalg.svd(A / lengths, compute_uv=False)[-1] > TELLABLE)

    def _bounded(self, coef: dict[int, Fraction]) -> bool:
        """Whether all |x_j| ||a_j|| stay within half the scope's radius, centred where the search is about that."""
        data, centred = self.data, self.case.intercept
        size = Fraction(data.moment(data.target, data.target, centred)) * power(2 * data.target_power)
        for j, x in coef.items():
            column = data.columns[j]
            square = Fraction(data.moment(column, column, centred)) * power(2 * data.powers[j])
            if x * x * square > Fraction(RADIUS, 2) ** 2 * size:
                return False
        return True
