"""Newton's method among sparse models: local search on quadratic models of the objective, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from numpy.linalg import LinAlgError

from exactsel._jit import available_threads
from exactsel.algebra.threads import one_thread
from exactsel.errors import UnsupportedError
from exactsel.problem.capabilities import CLOSED_FORM
from exactsel.problem.regression import Problem
from exactsel.problem.rows import Rows, Unusable, known_fit
from exactsel_heuristics._scoring import smallest_decrease, steepest_columns
from exactsel_heuristics._second_order import MOST_COLUMNS, second_order_model
from exactsel_heuristics.base import Context, Proposal, at_least, regression
from exactsel_heuristics.forward import ForwardSelection
from exactsel_heuristics.swap import SwapLocalSearch

if TYPE_CHECKING:
    from exactsel.problem.interface import SubsetProblem


@dataclass(frozen=True)
class NewtonSwap:
    """Subset selection on the second-order model of P, again at the model it finds, until none is better.

    The first model of P is the one at its minimum over all columns; forward selection and single exchanges are then
    made on the model, whose Gram matrix (d, d) stands for the data however many rows they have. P itself is evaluated
    once a step, for the objective of the support found.

    Parameters
    ----------
    max_steps : int
        Limit on the number of second-order models.
    """

    name: ClassVar[str] = "newton-swap"
    max_steps: int = 10

    def __post_init__(self) -> None:
        """Raise :class:`InputError` for an option out of range."""
        at_least(self.name, "max_steps", self.max_steps, 1)

    def run(self, problem: SubsetProblem, context: Context) -> Proposal:
        """Select up to k columns, deterministically.

        For quadratic loss this is forward selection followed by exchanges. :class:`UnsupportedError` above 2,000
        columns, for other losses than the quadratic one.
        """
        problem = regression(problem, self.name)
        with one_thread():  # many small products, on which threads of BLAS only get in each other's way
            return self._search(problem, context)

    def _search(self, problem: Problem, context: Context) -> Proposal:
        if problem.has(CLOSED_FORM):  # which is its own second-order model
            return Proposal.of(_selected(problem, (), context), 1)
        if problem.d > MOST_COLUMNS:
            raise UnsupportedError(
                f"{self.name} forms the Hessian of {MOST_COLUMNS} features at most, but there are {problem.d}; "
                f"use the heuristic swap."
            )
        best, evaluations, threads = problem.fit(()), 0, available_threads()
        if context.should_stop():
            return Proposal.of((), 0)
        try:
            with (
                Rows(problem.objective, threads=threads, should_stop=context.should_stop) as rows,
            ):
                at = known_fit(problem.objective, rows)[0]
                for _ in range(self.max_steps):
                    if context.should_stop():
                        break
                    support = _selected(second_order_model(problem, rows, at), best.support, context)
                    fit = problem.fit(support)
                    evaluations += 1
                    if not fit.value < best.value - smallest_decrease(problem):
                        break
                    best, at = fit, rows.model(fit.coef, problem.objective)
        except (Unusable, LinAlgError):
            pass  # what has been found so far is the answer
        if evaluations == 0 and context.should_stop():
            return Proposal.of(steepest_columns(problem), 0)
        return Proposal.of(best.support, evaluations)


def _selected(model: Problem, start: tuple[int, ...], context: Context) -> tuple[int, ...]:
    """The best support found on a quadratic problem, from ``start`` on and from forward selection."""
    starts = [ForwardSelection().run(model, context).support, *([start] if start else [])]
    supports = [SwapLocalSearch().run(model, Context(start=support, should_stop=context.should_stop)).support
             for support in starts if support]  # fmt: skip
    return min(supports, key=lambda support: model.fit(support).value, default=())
