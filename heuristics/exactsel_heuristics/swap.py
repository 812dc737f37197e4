"""Swap local search: exchange one column in against one out while that lowers the objective."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from exactsel.errors import InputError
from exactsel.kernels.node import FREE
from exactsel.problem.capabilities import PLAIN_REGRESSION, QUADRATIC_LOSS
from exactsel.problem.interface import is_regression
from exactsel.types import FloatArray, IntArray
from exactsel_heuristics._elimination import Elimination
from exactsel_heuristics._refitting import CALL_WORK, FIT_WORK, KEPT, Shortlist, swap_by_refits
from exactsel_heuristics._scoring import evaluate, guaranteed_decrease, largest, padded, perturbed, smallest_decrease
from exactsel_heuristics.base import Context, Proposal, at_least, regression
from exactsel_heuristics.forward import ForwardSelection

if TYPE_CHECKING:
    from exactsel.problem.interface import SubsetProblem
    from exactsel.problem.regression import Problem

PORTION_SHORTLIST = 5
"""Entering columns refitted for each leaving one in a portion of work."""

START_WORK = 1e6
"""As many multiplications as it takes time for a search to begin."""

CONFIRMATIONS = 5
"""Moves refitted per pass before the pass counts as fruitless: quick objectives may flatter near-dependent columns."""


@dataclass(frozen=True)
class Neighbours:
    """Supports one move away (rows padded with -1), their quick objectives, and the number of evaluations paid."""

    supports: IntArray
    values: FloatArray
    evaluations: int


@dataclass(frozen=True)
class SwapLocalSearch:
    """Local search over single exchanges (Miller 2002; Hazimeh and Mazumder 2020).

    Each pass evaluates every exchange of one column of the support for one outside, and every addition while the
    support has fewer than k columns, and makes the best move; it ends at a support no single move improves. Quadratic
    loss scores all moves of a pass in closed form. Other losses refit all of them while there are at most
    ``exhaustive``, and otherwise, for each leaving column, the ``shortlist`` entering columns of largest guaranteed
    decrease. Within limits of coefficients refits keep to them, and quadratic loss refits all. A move is made only
    after an exact refit confirms it.

    Parameters
    ----------
    max_passes : int
        Limit on the number of moves.
    shortlist : int
        Entering columns refitted per leaving column on large neighbourhoods; not used with quadratic loss.
    exhaustive : int
        Size up to which a whole neighbourhood is refitted; not used with quadratic loss.

    References
    ----------
    A. J. Miller, Subset Selection in Regression. Chapman and Hall/CRC, 2002, chapter 3.
    H. Hazimeh and R. Mazumder, Fast best subset selection: coordinate descent and local combinatorial optimization
    algorithms. Operations Research 68(5), 2020.
    """

    name: ClassVar[str] = "swap"
    portions: ClassVar[bool] = True
    max_passes: int = 1000
    shortlist: int = 50
    exhaustive: int = 4000

    def __post_init__(self) -> None:
        """Raise :class:`InputError` for an option out of range."""
        at_least(self.name, "shortlist", self.shortlist, 1)
        at_least(self.name, "exhaustive", self.exhaustive, 0)
        at_least(self.name, "max_passes", self.max_passes, 0)

    def run(self, problem: SubsetProblem, context: Context) -> Proposal:
        """Improve ``context.start``, or the result of forward selection when there is none; never worse.

        With groups every exchange of one group for another is tried by a refit in every pass. :class:`InputError` when
        the start has more than k columns, or a column the problem does not have.
        """
        if is_regression(problem) and not problem.has(PLAIN_REGRESSION):
            if context.start is not None:
                _start(problem, context)
            whole = math.isinf(context.work)
            shortlist = Shortlist(self.shortlist, self.exhaustive) if whole else Shortlist(PORTION_SHORTLIST, 0)
            return swap_by_refits(problem, context, self.max_passes, shortlist)
        problem = regression(problem, self.name)
        if not math.isinf(context.work):
            return self._portion(problem, context)
        start = _start(problem, context)
        support, evaluations = start.support, start.evaluations + 1
        value, decrease = problem.fit(support).value, smallest_decrease(problem)
        for _ in range(self.max_passes):
            if context.should_stop():
                break
            neighbours = self._neighbours(problem, support, value, context)
            evaluations += neighbours.evaluations
            moved, fits = _confirmed(problem, neighbours, value - decrease)
            evaluations += fits
            if moved is None:
                break
            support, value = moved
        return Proposal.of(support, evaluations)

    def _portion(self, problem: Problem, context: Context) -> Proposal:
        """Search from the start, and from perturbations of the current supports until the work is done."""
        rng, work, evaluations = context.rng(), context.work, 0
        evaluation = FIT_WORK * problem.n * (problem.k + 1) ** 2 + CALL_WORK
        if problem.has(QUADRATIC_LOSS):  # in closed form, a row of moves at a time
            evaluation = FIT_WORK * problem.k
        pool = np.flatnonzero(problem.root_state == FREE)
        small = replace(self, shortlist=min(self.shortlist, PORTION_SHORTLIST), exhaustive=0)
        if not problem.has(QUADRATIC_LOSS):  # a shortlist takes a gradient on all columns
            evaluation += problem.n * problem.d / (small.shortlist + 1)
        supports = [*([context.start] if context.start else []), *context.supports]
        best: tuple[int, ...] = context.start or ()
        value, number = problem.fit(best).value, 0
        while work > 0.0 and not context.should_stop():
            base = supports[int(rng.integers(len(supports)))] if supports else ()
            begin = best if number == 0 and best else perturbed(base, pool, problem.k, rng)
            proposal = small.run(problem, Context(start=begin, should_stop=context.should_stop))
            fit = problem.fit(proposal.support)
            evaluations, number = evaluations + proposal.evaluations + 1, number + 1
            work -= START_WORK + proposal.evaluations * evaluation
            supports.append(proposal.support)
            if fit.value < value:
                best, value = proposal.support, fit.value
        return Proposal.of(best, evaluations, others=[support for support in supports[-KEPT:] if support != best])

    def _neighbours(self, problem: Problem, support: tuple[int, ...], value: float, context: Context) -> Neighbours:
        if problem.has(QUADRATIC_LOSS):
            return quadratic_neighbours(problem, support, value)
        supports, fits = self._supports(problem, support, context)
        values, count = evaluate(problem, supports, context.should_stop)
        return Neighbours(supports, values, count + fits)

    def _supports(self, problem: Problem, support: tuple[int, ...], context: Context) -> tuple[IntArray, int]:
        """The supports to refit in this pass, and how many fits it took to choose them."""
        outside = np.setdiff1d(np.arange(problem.d), support)
        stays = [tuple(i for i in support if i != leaving) for leaving in support]
        if len(support) < problem.k:
            stays.append(support)
        if len(stays) * outside.size <= self.exhaustive:
            return padded([(*stay, j) for stay in stays for j in outside.tolist()], problem.k), 0
        supports: list[tuple[int, ...]] = []
        fits = 0
        for stay in stays:
            if fits and context.should_stop():
                break
            scores = guaranteed_decrease(problem, problem.gradient(problem.fit(stay).coef))[outside]
            supports.extend((*stay, j) for j in outside[largest(scores, self.shortlist)].tolist())
            fits += 1
        return padded(supports, problem.k), fits


def quadratic_neighbours(problem: Problem, support: tuple[int, ...], value: float) -> Neighbours:
    """The most promising moves from a support of this objective, under quadratic loss; all are scored in closed form.

    At most :data:`CONFIRMATIONS` are returned. Columns of the support that depend on earlier ones are removed first;
    that frees places for additions.
    """
    elimination = Elimination(problem, support)
    columns = elimination.columns
    gains = elimination.exchange_gains()
    stays = [tuple(i for i in columns if i != leaving) for leaving in columns]
    if len(columns) < problem.k:
        gains = np.vstack([gains, elimination.addition_gains()])
        stays.append(tuple(columns))
    moves = largest(gains.ravel(), CONFIRMATIONS)
    supports = padded([(*stays[move // problem.d], int(move % problem.d)) for move in moves], problem.k)
    return Neighbours(supports, value - gains.ravel()[moves], len(stays) * (problem.d - len(columns)))


def _confirmed(
    problem: Problem, neighbours: Neighbours, below: float
) -> tuple[tuple[tuple[int, ...], float] | None, int]:
    """The best neighbour whose exact refit lies ``below``, with its objective, or None; and the number of refits."""
    fits = 0
    for i in np.argsort(neighbours.values, kind="stable")[:CONFIRMATIONS]:
        if not neighbours.values[i] < below:
            break
        fit = problem.fit(neighbours.supports[i][neighbours.supports[i] >= 0])
        fits += 1
        if fit.value < below:
            return (tuple(fit.columns.tolist()), fit.value), fits
    return None, fits


def _start(problem: Problem, context: Context) -> Proposal:
    if context.start is None:
        return ForwardSelection().run(problem, context)
    start = Proposal.of(context.start, 0)
    if len(start.support) > problem.k:
        raise InputError(
            f"the start of the local search has {len(start.support)} features, but at most k = {problem.k} are "
            "allowed; give a smaller support."
        )
    outside = [j for j in start.support if not 0 <= j < problem.d]
    if outside:
        raise InputError(
            f"the start of the local search names feature {outside[0]}, but the features are 0 to {problem.d - 1}."
        )
    return start
