"""Bound regions, fix columns by what the bounds say, and evaluate the models relaxations are rounded to."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from exactsel.bounds.base import PreparedBound, Tightened, scope_of
from exactsel.bounds.pointwise import allowed_columns, solved_from_data
from exactsel.bounds.witness import Proof
from exactsel.closers.refits import Refits
from exactsel.kernels.node import CUT, FREE, ILL_CONDITIONED, IN, OUT, SOLVED, UNFINISHED, Answers
from exactsel.nodes.node import is_convex
from exactsel.nodes.regions import Fixings, NodeBounds, Region, RoundWork, Visit, constrained
from exactsel.problem.capabilities import PLAIN_REGRESSION
from exactsel.problem.interface import SubsetProblem
from exactsel.types import FloatArray, StateArray


class Reached(NamedTuple):
    """What was known of a region when its bound call was broken off."""

    state: StateArray
    bound: float
    proof: Proof
    valid_for: str


class Interrupted(Exception):
    """The stop flag was raised inside a round; the round leaves no trace."""

    def __init__(self, reached: Reached | None = None) -> None:
        super().__init__()
        self.reached = reached


Visited = tuple[Region, NodeBounds | None]
"""A region after its bound calls, and what the last one said of it where it may be divided."""


@dataclass(frozen=True)
class Visitor:
    """Makes the bound calls of a round."""

    problem: SubsetProblem
    bound: PreparedBound
    refits: Refits
    fixes: bool
    """Fix columns by the bounds their children would inherit."""
    cutoff: Callable[[float], float]
    """The bound at which a region is closed, given the best objective known."""

    def visit(self, regions: Sequence[Region], work: RoundWork) -> list[Visited]:
        """Bound the regions, fix columns, and bound again what fixing turned into a convex problem."""
        tightened, estimates = self._bounded(regions, work)
        cutoff = self.cutoff(work.upper)
        visited: list[Visited] = []
        for i, region in enumerate(regions):
            after = self._with_bound(region, tightened, i, cutoff, float(estimates[i]))
            if after.closed is not None:
                visited.append((after, None))
                continue
            if self.fixes:
                after = self._constrained(_fixed(after, tightened, i, cutoff, self.problem.k))
            visited.append((after, None if after.closed is not None else NodeBounds(tightened, i)))
        self._solve_convex(visited, work)
        return visited

    def _constrained(self, region: Region) -> Region:
        """The region with what the constraint makes of the columns just fixed."""
        return region if not region.fixings else constrained(region, self.problem)

    def _solve_convex(self, visited: list[Visited], work: RoundWork) -> None:
        """Bound what fixing turned into a convex problem again, in place."""
        convex = [
            i for i, (region, _) in enumerate(visited)
            if region.closed is None and region.fixings and self._is_convex(region.state)
        ]  # fmt: skip
        if not convex:
            return
        tightened, _ = self._bounded([visited[i][0] for i in convex], work)
        cutoff = self.cutoff(work.upper)
        for row, i in enumerate(convex):
            visited[i] = (self._with_bound(visited[i][0], tightened, row, cutoff, math.nan), None)

    def _bounded(self, regions: Sequence[Region], work: RoundWork) -> tuple[Tightened, FloatArray]:
        """One bound call, and the quick objective of the model each region's relaxation was rounded to."""
        began = time.perf_counter()
        states = np.stack([region.state for region in regions])
        inherited = np.array([region.bound for region in regions])
        warm = [region.warm for region in regions]
        tightened = self.bound.tighten(states, warm, self.cutoff(work.upper), work.upper, inherited)
        if np.any(tightened.answers.status == UNFINISHED):
            raise Interrupted(self._reached(states, tightened))
        work.valid_for = scope_of(self.bound, tightened) or work.valid_for
        bounded = time.perf_counter()
        estimates = self._evaluate(regions, tightened, work)
        work.seconds.bound += bounded - began
        work.seconds.refit += time.perf_counter() - bounded
        return tightened, estimates

    def _reached(self, states: StateArray, tightened: Tightened) -> Reached | None:
        """What is known of the only region of a bound call that was broken off."""
        bound = float(tightened.answers.bound[0])
        if len(states) > 1 or not math.isfinite(bound):
            return None
        return Reached(states[0], bound, tightened.proofs[0], scope_of(self.bound, tightened))

    def _evaluate(self, regions: Sequence[Region], tightened: Tightened, work: RoundWork) -> FloatArray:
        """Evaluate the supports the relaxed models suggest; every row's quick objective.

        A convex region that seems to hold a better model is always refitted from the data: kernels may work on the
        Gram matrix, which loses digits.
        """
        answers = tightened.answers
        solved = np.array([
            self._is_solved(region.state, status)
            for region, status in zip(regions, answers.status.tolist(), strict=True)
        ])  # fmt: skip
        promising = solved & ~(answers.bound >= self.cutoff(work.upper))
        supports = self.refits.admissible(answers)
        values = self.refits.quick(supports)
        if not np.all(np.isnan(values)):
            best = int(np.nanargmin(values))
            work.note_rounding(supports[best], float(values[best]), self._sizes(answers, best))
        for row in np.flatnonzero(promising | ~(values >= work.upper)).tolist():
            support = supports[row]
            if solved[row] and answers.status[row] != SOLVED:
                support = allowed_columns(regions[row].state, self.problem.k)
            work.offer(self.refits.better(support, work.upper))
        return values

    def _sizes(self, answers: Answers, row: int) -> FloatArray:
        """How large the relaxed coefficients are; empty where no method begins from more than k units."""
        some = self.problem.has(PLAIN_REGRESSION)
        return np.abs(answers.x[row]) if some else np.zeros(0)

    def _with_bound(self, region: Region, tightened: Tightened, i: int, cutoff: float, estimate: float) -> Region:
        """The region after a bound call: the better of the old bound and the new one, and whether it is closed.

        ``estimate`` is the objective of the model its relaxation was rounded to, nan where that is not known.
        """
        answers = tightened.answers
        status, bound, proof = int(answers.status[i]), float(answers.bound[i]), tightened.proofs[i]
        solved = self._is_solved(region.state, status)
        if solved and not bound >= cutoff:
            bound, proof = self._solve_from_data(region.state, bound, proof)
        visit = Visit(bound, solved, int(answers.iterations[i]))
        if not bound > region.bound:
            bound, proof = region.bound, region.proof
        closed = "solved" if solved else "bound" if status == CUT or bound >= cutoff else None
        # Written out because it is done for every node, and dataclasses.replace takes its time.
        return Region(
            region.state, bound, proof, tightened.warm[i], True,
            (*region.visits, visit), region.fixings, closed, region.estimate if math.isnan(estimate) else estimate,
        )  # fmt: skip

    def _is_solved(self, state: StateArray, status: int) -> bool:
        """Whether a region holds one convex problem that is to be solved, not split, for any bound."""
        if self.problem.units.to_divide(state, self.problem.k) is not None:
            return False
        return status in (SOLVED, ILL_CONDITIONED) or (status != CUT and is_convex(state, self.problem.k))

    def _is_convex(self, state: StateArray) -> bool:
        units, k = self.problem.units, self.problem.k
        return is_convex(state, k) and units.to_divide(state, k) is None

    def _solve_from_data(self, state: StateArray, bound: float, proof: Proof) -> tuple[float, Proof]:
        """Sharpen the bound of a convex region: kernels work on the Gram matrix, which loses digits."""
        sharper = solved_from_data(self.problem, state)
        return sharper if sharper is not None and not bound >= sharper[0] else (bound, proof)


def _fixed(region: Region, tightened: Tightened, i: int, cutoff: float, k: int) -> Region:
    """The region with every column fixed one of whose children would be discarded at birth.

    Exclusions come first: then each closed child's bound, computed before any fixing, still holds for the
    smaller region it is closed in.
    """
    answers, state = tightened.answers, region.state
    free = state == FREE
    useless, needed = answers.bound_in[i] >= cutoff, answers.bound_out[i] >= cutoff
    if not (useless.any() or needed.any()):
        return region
    left_out = (free & useless).nonzero()[0]
    put_in = (free & needed & ~useless).nonzero()[0]
    # More columns that must be in than places: filling the places leaves a convex region, which is then solved.
    put_in = put_in[: k - int(np.count_nonzero(state == IN))]
    if left_out.size + put_in.size == 0:
        return region
    columns, included = np.concatenate([left_out, put_in]), np.arange(left_out.size + put_in.size) >= left_out.size
    bounds = np.concatenate([answers.bound_in[i, left_out], answers.bound_out[i, put_in]])

    def proof_of(place: int) -> Proof:
        return tightened.child_proof(i, int(columns[place]), not included[place])

    state = state.copy()
    state[left_out], state[put_in] = OUT, IN
    return Region(
        state, region.bound, region.proof, region.warm, region.tight,
        region.visits, Fixings(columns, included, bounds, proof_of), region.closed, region.estimate,
    )  # fmt: skip
