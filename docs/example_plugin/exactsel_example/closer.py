"""A closer: regions with one slot left, divided by the column that takes it."""

import numpy as np

from exactsel.bounds.pointwise import solved_from_data
from exactsel.bounds.witness import FitPoint
from exactsel.closers.base import RegionSolver
from exactsel.errors import UnsupportedError
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.nodes.regions import Region, SubtreeResult
from exactsel.problem.capabilities import CLOSED_FORM, SINGLE_COLUMNS
from exactsel.problem.restrictions import is_restricted, proposed

ROUNDED = 1e-12  # part of the empty model's objective that a fit without a ridge may be rounded by


class LastSlot:
    """Fits every model of a region with one slot left (quadratic loss)."""

    name = "last-slot"

    def prepare(self, problem, options):
        """The closer of one search."""
        if not problem.has(CLOSED_FORM | SINGLE_COLUMNS) or is_restricted(problem):
            raise UnsupportedError("last-slot serves quadratic loss on single columns; leave the closer out.")
        return Fits(problem, options.cutoff)


class Fits(RegionSolver):
    """One part for each column that may take the slot, and one for the model without any."""

    name, words = LastSlot.name, "every column tried for the last slot"

    def __init__(self, problem, cutoff):
        self.problem, self.cutoff = problem, cutoff

    def close(self, tasks, work, work_budget):
        """Settle the regions with one slot left."""
        for task in tasks:
            rest, parts = task.region.state.copy(), []
            if np.count_nonzero(rest == IN) != self.problem.k - 1 or not np.any(rest == FREE):
                continue
            for column in np.flatnonzero(rest == FREE):
                parts.append(rest.copy())
                parts[-1][column], rest[column] = IN, OUT
            parts.append(rest)
            fits = [proposed(self.problem, np.flatnonzero(part == IN)) for part in parts]
            for fit in fits:
                work.offer(fit)
            children = [self.part(task.region, *each, work.upper) for each in zip(parts, fits, strict=True)]
            task.outcome = SubtreeResult(task.node, task.region, self.name, children, nodes=len(fits), closed=0)

    def part(self, region, state, fit, upper):
        """A part with the better of its own bound and that of the region; closed where it reaches the cut-off."""
        rounded = fit.value - ROUNDED * self.problem.null_objective, FitPoint()
        bound, proof = solved_from_data(self.problem, state) or rounded
        if not bound > region.bound:
            bound, proof = region.bound, region.proof
        return Region(state, bound, proof, closed="bound" if bound >= self.cutoff(upper) else None)
