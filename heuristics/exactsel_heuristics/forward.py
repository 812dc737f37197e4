"""Forward selection: add the column whose refit lowers the objective most."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from exactsel.errors import TimeLimitError
from exactsel.problem.capabilities import CLOSED_FORM, PLAIN_REGRESSION
from exactsel.problem.interface import is_regression
from exactsel.types import IntArray
from exactsel_heuristics._elimination import Elimination
from exactsel_heuristics._refitting import Shortlist, forward_by_refits
from exactsel_heuristics._scoring import evaluate, guaranteed_decrease, largest, padded, smallest_decrease
from exactsel_heuristics.base import Context, Proposal, at_least, regression

if TYPE_CHECKING:
    from exactsel.problem.interface import SubsetProblem
    from exactsel.problem.regression import Problem


KEPT_UP_TO = 2000
"""Columns up to which the state of a selection is kept for a larger one on the same data."""


@dataclass(frozen=True)
class ForwardSelection:
    """Greedy forward selection (guarantee by Das and Kempe 2011).

    Starting from the empty model, each of at most k steps adds the column whose refit lowers the objective most.
    Quadratic loss scores all columns in closed form. Other losses refit every candidate when that takes at most
    ``exhaustive`` refits in all, and otherwise the ``shortlist`` columns of largest guaranteed decrease. Within limits
    of coefficients refits keep to them, and quadratic loss refits every candidate.

    Parameters
    ----------
    shortlist : int
        Candidates refitted per step on large problems; not used with quadratic loss.
    exhaustive : int
        Number of refits, d k, up to which every candidate is tried; not used with quadratic loss.

    References
    ----------
    A. Das and D. Kempe, Submodular meets spectral: greedy algorithms for subset selection, sparse approximation and
    dictionary selection. ICML 2011.
    """

    name: ClassVar[str] = "forward"
    shortlist: int = 100
    exhaustive: int = 2000

    def __post_init__(self) -> None:
        """Raise :class:`InputError` for an option out of range."""
        at_least(self.name, "shortlist", self.shortlist, 1)
        at_least(self.name, "exhaustive", self.exhaustive, 0)

    def run(self, problem: SubsetProblem, context: Context) -> Proposal:
        """Select up to k columns, or groups, deterministically; fewer when no further one helps.

        With groups every group is tried by a refit in every step.
        """
        if is_regression(problem) and not problem.has(PLAIN_REGRESSION):
            shortlist = Shortlist(self.shortlist, self.exhaustive)
            return forward_by_refits(problem, context, shortlist)
        problem = regression(problem, self.name)
        if problem.has(CLOSED_FORM):
            return _by_elimination(problem, context)
        return self._by_refits(problem, context)

    def _by_refits(self, problem: Problem, context: Context) -> Proposal:
        decrease = smallest_decrease(problem)
        support: list[int] = []
        value, evaluations = problem.objective(np.zeros(problem.d)), 0
        while len(support) < problem.k and not context.should_stop():
            candidates, fits = self._candidates(problem, support)
            supports = padded([[*support, int(j)] for j in candidates], len(support) + 1)
            values, count = evaluate(problem, supports, context.should_stop)
            evaluations += count + fits
            best = int(np.argmin(values))
            if not values[best] < value - decrease:
                break
            value = float(values[best])
            support.append(int(candidates[best]))
        return Proposal.of(support, evaluations)

    def _candidates(self, problem: Problem, support: list[int]) -> tuple[IntArray, int]:
        """The columns to try next, and how many fits it took to choose them."""
        if problem.d * problem.k <= self.exhaustive:
            return np.setdiff1d(np.arange(problem.d), support), 0
        scores = guaranteed_decrease(problem, problem.gradient(problem.fit(support).coef))
        scores[support] = -np.inf
        return largest(scores, min(self.shortlist, problem.d - len(support))), 1


def _by_elimination(problem: Problem, context: Context) -> Proposal:
    """Forward selection for quadratic loss, O(d m) in step m once the Gram matrix is there.

    It continues the selection of fewer columns on the same data, whose first steps are the same.
    """
    decrease = smallest_decrease(problem)
    key = ("forward", problem.lam)
    # Taken out while it is at work, so that no other thread continues it.
    elimination = problem.shared.pop(key, None) or Elimination(problem)
    before = len(elimination.columns)
    first = min(before, problem.k)
    evaluations = sum(problem.d - m for m in range(first))
    ended = False
    with suppress(TimeLimitError):  # in the middle of a pass: the columns so far are a model
        while len(elimination.columns) < problem.k and not context.should_stop():
            gains = elimination.addition_gains()
            evaluations += problem.d - len(elimination.columns)
            best = int(np.argmax(gains))
            if not gains[best] > decrease or not elimination.add(best):
                break
        ended = True
    if ended and problem.d <= KEPT_UP_TO:  # a pass that was cut off leaves tables half made
        problem.shared[key] = elimination
    return Proposal.of(elimination.columns[: problem.k], evaluations)
