"""A bound: formula (2) at the ridge fit on all columns a node allows."""

import numpy as np

from exactsel.bounds.base import Tightened, sparse_points
from exactsel.bounds.pointwise import bound_at_model
from exactsel.errors import UnsupportedError
from exactsel.kernels.node import CUT, RELAXED, empty_answers, is_convex, node_columns, solved_columns, write_solved


class RidgeBound:
    """Any model proves a bound, as its gradient is a dual vector; this takes the fit without a limit on its size."""

    name = "ridge"

    def prepare(self, problem, options):
        """Bind to a problem with lam > 0."""
        if problem.lam == 0:
            raise UnsupportedError("the bound 'ridge' needs a positive lam; give --lam, or use --bound auto.")
        return PreparedRidge(problem, options)


class PreparedRidge:
    """The bound for one problem."""

    def __init__(self, problem, options):
        self.problem, self.options = problem, options

    def tighten(self, states, warm, cutoff, upper, known=None):
        """Bound each node; nothing is passed on to children."""
        answers = empty_answers(len(states), self.problem.d, self.problem.k)
        for row, state in enumerate(states):
            if not self.options.stop[0]:  # what is not bounded keeps the status UNFINISHED and the bound -inf
                self._bound(answers, row, state, cutoff)
        return Tightened(answers, sparse_points(answers), [None] * len(states))

    def _bound(self, answers, row, state, cutoff):
        problem = self.problem
        columns, fixed = node_columns(state)  # S, then C
        if is_convex(columns, fixed, problem.k):
            columns = solved_columns(columns, fixed, problem.k)
            x = problem.fit(columns).coef
            write_solved(answers, row, columns, x[columns], bound_at_model(problem, state, x))
            return
        x = problem.fit(columns).coef
        bound = bound_at_model(problem, state, x)
        answers.bound[row] = answers.bound_in[row, columns] = answers.bound_out[row, columns] = bound
        answers.status[row] = CUT if bound >= cutoff else RELAXED
        answers.point[row] = answers.x[row] = x
        size = np.abs(x[columns])
        answers.indicator[row, columns] = size / max(size.max(), 1e-300)
        largest = columns[fixed:][np.argsort(-size[fixed:], kind="stable")[: problem.k - fixed]]
        answers.support[row] = np.concatenate([columns[:fixed], largest])
