"""Newton's method among sparse models: local search on quadratic models of the objective, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.linalg import LinAlgError

from exactsel._jit import available_threads, loss_session
from exactsel.errors import UnsupportedError
from exactsel.problem.regression import Problem
from exactsel.problem.rows import Rows, Unusable, known_fit
from exactsel.types import FloatArray
from exactsel_heuristics._scoring import smallest_decrease
from exactsel_heuristics.base import Context, Proposal, at_least, regression
from exactsel_heuristics.forward import ForwardSelection
from exactsel_heuristics.swap import SwapLocalSearch

if TYPE_CHECKING:
    from exactsel_heuristics.base import AnyProblem

MOST_COLUMNS = 2000
"""With more columns than this their Hessian is not formed."""


@dataclass(frozen=True)
class NewtonSwap:
    """Subset selection on the second-order model of P, again at the model it finds, until none is better.

    The first model of P is the one at its minimum over all columns; forward selection and single exchanges are then
    made on the model, whose Gram matrix (d, d) stands for the data however many rows they have. P itself is asked once
    a step, for the objective of the support found.

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

    def run(self, problem: AnyProblem, context: Context) -> Proposal:
        """Select up to k columns.

        Parameters
        ----------
        problem : Problem
            For quadratic loss this is forward selection followed by exchanges.
        context : Context
            Only ``should_stop`` is used; the method is deterministic.

        Returns
        -------
        Proposal

        Raises
        ------
        UnsupportedError
            Above 2,000 columns, for other losses than the quadratic one.
        """
        problem = regression(problem, self.name)
        if problem.is_quadratic:  # which is its own second-order model
            return Proposal.of(_selected(problem, (), context), 1)
        if problem.d > MOST_COLUMNS:
            raise UnsupportedError(
                f"{self.name} forms the Hessian of {MOST_COLUMNS} columns at most, but there are {problem.d}; "
                f"use the heuristic swap."
            )
        best, evaluations = problem.fit(()), 0
        try:
            with loss_session(problem.loss), Rows(problem.objective, threads=available_threads()) as rows:
                at = known_fit(problem.objective, rows)[0]
                for _ in range(self.max_steps):
                    if context.should_stop():
                        break
                    support = _selected(_second_order_model(problem, rows, at), best.support, context)
                    fit = problem.fit(support)
                    evaluations += 1
                    if not fit.value < best.value - smallest_decrease(problem):
                        break
                    best, at = fit, rows.model(fit.coef, problem.objective)
        except (Unusable, LinAlgError):
            pass  # what has been found so far is the answer
        return Proposal.of(best.support, evaluations)


def _selected(model: Problem, start: tuple[int, ...], context: Context) -> tuple[int, ...]:
    """The best support found on a quadratic problem, from ``start`` on and from forward selection."""
    starts = [ForwardSelection().run(model, context).support, *([start] if start else [])]
    found = [SwapLocalSearch().run(model, Context(start=support, should_stop=context.should_stop)).support
             for support in starts if support]  # fmt: skip
    return min(found, key=lambda support: model.fit(support).value, default=())


def _second_order_model(problem: Problem, rows: Rows, at: FloatArray) -> Problem:
    """The problem on the second-order model of P at coefficients (m,) of the scaled columns, an intercept last.

    It is x'Hx/2 - h'x; least squares on d rows have this objective, up to a constant, with A'A = H - lam I and A'y = h.

    Raises
    ------
    Unusable
        Where no row bends.
    """
    _, slopes, bends = rows.at(rows.predictions(at))
    H = rows.gram(bends)
    h = H @ at - (rows.products(slopes) + rows.ridge * at)
    H, h = H / np.outer(rows.scale, rows.scale), h / rows.scale
    d = problem.d
    if problem.intercept:
        if not H[d, d] > 0.0:
            raise Unusable
        H, h = H[:d, :d] - np.outer(H[:d, d], H[d, :d]) / H[d, d], h[:d] - H[:d, d] * (h[d] / H[d, d])
    values, vectors = np.linalg.eigh(H - problem.lam * np.eye(d))
    if not values[-1] > 0.0:
        raise Unusable  # no row bends: the ridge alone would choose
    with np.errstate(all="ignore"):
        roots = np.sqrt(np.maximum(values, values[-1] * 1e-12))
        A, y = (vectors * roots) @ vectors.T, vectors @ ((vectors.T @ h) / roots)
    if not (np.all(np.isfinite(A)) and np.all(np.isfinite(y))):
        raise Unusable
    return Problem(
        A, y, problem.k, lam=problem.lam,
        must_have=problem.must_have, must_not=problem.must_not,
    )  # fmt: skip
