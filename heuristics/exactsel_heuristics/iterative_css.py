"""Iterative column subset selection: exchange one chosen column at a time for the best one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from exactsel.errors import InputError
from exactsel.types import FloatArray
from exactsel_heuristics._projection import Projection, smallest_decrease, whole_matrix
from exactsel_heuristics.base import Context, Proposal, column_subset

if TYPE_CHECKING:
    from exactsel.problem.column_subset import ColumnSubsetProblem
    from exactsel.problem.interface import SubsetProblem


@dataclass(frozen=True)
class IterativeColumnSelection:
    """Local search over single exchanges from k random columns (IterFS, Ordozgoiti, Gomez Canaval and Mozo 2016).

    A pass removes each chosen column in turn and adds the column that lowers the objective most, which may be the same
    one; passes are repeated until one changes nothing. Taking a column out and scoring all others costs O(d min(n, d)).
    Places left free by dependent columns are filled greedily.

    Parameters
    ----------
    restarts : int
        Number of searches; the best result is kept. The first starts at ``context.start``, if there is one, and the
        others at random columns.
    max_passes : int
        Limit on the passes of one search.

    References
    ----------
    B. Ordozgoiti, S. Gomez Canaval and A. Mozo, A fast iterative algorithm for improved unsupervised feature
    selection. ICDM 2016.
    """

    name: ClassVar[str] = "iterative-css"
    restarts: int = 1
    max_passes: int = 100

    def __post_init__(self) -> None:
        for label in ("restarts", "max_passes"):
            if getattr(self, label) < 1:
                raise InputError(f"{label} of 'iterative-css' is {getattr(self, label)}; give 1 or more.")

    def run(self, problem: SubsetProblem, context: Context) -> Proposal:
        """Search ``restarts`` times, the first time from ``context.start``; never worse than that.

        No exchange of one column lowers the objective, unless the search was cut short. :class:`InputError` when the
        start has more than k columns, or a column the problem does not have.
        """
        problem = column_subset(problem, self.name)
        start = _checked_start(problem, context)
        search, rng = _Search(problem, context, start or ()), context.rng()
        for restart in range(self.restarts):
            drawn = rng.choice(problem.d, problem.k, replace=False)
            if context.should_stop():
                break
            warm_start = start if restart == 0 else None
            search.descend(
                whole_matrix(problem, drawn, context.should_stop).columns if warm_start is None else warm_start,
                self.max_passes,
            )
        return Proposal.of(search.best, search.evaluations, curve=search.curve)


class _Search:
    """Descents on one problem: the best selection they met, and what they cost."""

    def __init__(self, problem: ColumnSubsetProblem, context: Context, fallback: Iterable[int]) -> None:
        self._problem, self._context = problem, context
        self._decrease = smallest_decrease(problem)
        self._value = np.inf
        self.best = list(fallback)
        self.evaluations = 0
        self.curve: list[tuple[int, float]] = []

    def descend(self, columns: Iterable[int], max_passes: int) -> None:
        """Exchange columns, pass after pass, until a pass brings no improvement."""
        chosen = [int(j) for j in columns]
        value = self._recorded(chosen)
        for _ in range(max_passes):
            if self._context.should_stop():
                break
            # Built again for each pass, so that rounding does not pile up from pass to pass.
            projection = whole_matrix(self._problem, chosen, self._context.should_stop)
            if self._context.should_stop():
                break
            self._fill(projection)
            self._exchange_each(projection)
            chosen, before = list(projection.columns), value
            value = self._recorded(chosen)
            if not value < before - self._decrease:
                break

    def _fill(self, projection: Projection) -> None:
        """Add the best columns while places are free and a column lowers the objective."""
        while len(projection.columns) < self._problem.k and not self._context.should_stop():
            gains = self._gains(projection)
            best = int(np.argmax(gains))
            if not gains[best] > self._decrease or not projection.add(best):
                break

    def _exchange_each(self, projection: Projection) -> None:
        """Replace each chosen column in turn by the best one, which goes to the end of the list."""
        for _ in range(len(projection.columns)):
            if self._context.should_stop():
                break
            leaving = projection.remove(0)
            gains = self._gains(projection)
            best = int(np.argmax(gains))
            projection.add(best if gains[best] > gains[leaving] + self._decrease else leaving)

    def _gains(self, projection: Projection) -> FloatArray:
        self.evaluations += self._problem.d - len(projection.columns)
        return projection.gains()

    def _recorded(self, columns: list[int]) -> float:
        """The objective of a selection, computed afresh; the selection is kept if it is the best so far."""
        value = float(self._problem.objectives(np.array([columns], dtype=np.int64))[0])
        self.evaluations += 1
        if value < self._value:
            self.best, self._value = columns, value
            self.curve.append((self.evaluations, value))
        return value


def _checked_start(problem: ColumnSubsetProblem, context: Context) -> tuple[int, ...] | None:
    """The start to improve, ascending and without repetitions, or None."""
    if context.start is None:
        return None
    start = Proposal.of(context.start, 0).support
    if len(start) > problem.k:
        raise InputError(
            f"the start of 'iterative-css' has {len(start)} columns, but at most k = {problem.k} are allowed; give a "
            "smaller selection."
        )
    outside = [j for j in start if not 0 <= j < problem.d]
    if outside:
        raise InputError(
            f"the start of 'iterative-css' names column {outside[0]}, but the columns are 0 to {problem.d - 1}; "
            "correct it."
        )
    return start
