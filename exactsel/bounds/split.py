"""The split: a bound for quadratic loss that takes many small correlations away at the price of a few.

With H = A'A + lam I, b = A'y, c = ||y||^2/2, a level L < c and T = 2 (c - L), no model on columns S is below L if and
only if Q = H - b b'/T is positive semidefinite on S (algebra/elimination.py). So a node (S, C) with r places holds
nothing below L if and only if every r x r principal submatrix of M, the Schur complement of S in Q on C, is positive
semidefinite: M has to be *r-sparse positive semidefinite* (Blekherman, Dey, Molinaro, Sun 2022, on the k-PSD closure;
Boman, Chen, Parekh, Toledo 2005, on factor width).

A sufficient condition. For any symmetric N with zero diagonal and t_i the sum of the r - 1 largest |N_ij| of row i,
every r x r principal submatrix of N + diag(t) is diagonally dominant with a diagonal that is not negative. So it is
enough that

    M - N - diag(t)  is positive semidefinite.

N takes away every entry of M that can be spared, for the price of r - 1 of them in a row; N = 0 is the fit on S and C
together. It is found by Polyak steps on f = ||(delta - R)_+||_F^2 / 2, R the matrix above with M scaled to unit
diagonal, each of which takes the eigenvectors of R below delta (kernels/split.py). Where no N is found in a few steps,
the last one still bounds the node: with E = N + diag(t) in the units of H, by c - b' (H - E)^-1 b / 2. For any N, all
claims are proven by a Cholesky factorisation of Q - E with room for rounding.

The column to branch on is the largest entry of the eigenvector of the smallest eigenvalue of R, the direction that no N
could lift (measured on the hardest instance: 213 nodes, for 1,259 by the column whose pivot has fallen most).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactsel._jit import working_threads
from exactsel.algebra import dense
from exactsel.algebra.eigenvectors import smallest_eigenvectors
from exactsel.algebra.elimination import definite, entry_error, shift
from exactsel.bounds.apg import AcceleratedGradientBound, PreparedPerspective
from exactsel.bounds.base import BoundOptions, BoundSolver, Cheaper, PreparedBound, Tightened
from exactsel.bounds.fit import FitBound, FitTightened
from exactsel.bounds.reduced import PreparedReduced
from exactsel.bounds.split_answer import NOTHING, Attempt, Batch, Region, SplitTightened, Value, products, suggest
from exactsel.bounds.split_point import LARGEST_ENTRY, rescaled, rounded, sound, split_matrix
from exactsel.bounds.witness import FitPoint, InfimumPoint, SplitPoint
from exactsel.errors import UnsupportedError, option
from exactsel.kernels.node import CUT, RELAXED, UNFINISHED, empty_answers, is_convex, node_columns
from exactsel.kernels.split import descend, remainder, row_sums
from exactsel.problem.capabilities import QUADRATIC_LOSS
from exactsel.problem.redundant_columns import RedundantColumns
from exactsel.problem.regression import Problem
from exactsel.rounding import UNIT
from exactsel.types import FloatArray, IntArray, StateArray

PARTS = (1.0, 0.97, 0.9, 0.75, 0.5)
"""Parts of a split that does not prove enough which are tried as a bound; none of it is the fit."""

CLOSE = 0.7
"""Part of the cut-off from which on the bound beside the split is left alone: it is cheaper, and has little to do."""

LEADING = 0.5
"""Part of what the bound beside it leaves open at the root that the split may leave open to be used from there on."""

TRIAL_SHARE = 1 / 4
"""Part of the work of the split's first answer in which the bound beside it may close everything."""

NO_SPLIT = InfimumPoint()
"""What children are handed where no split was found and the bound beside it leaves nothing: they look for none."""

ROOT_WORK = 6e9
"""Steps times the cube of the columns that may go into the root, beyond the first attempt (about a second)."""


@dataclass(frozen=True)
class SplitBound(BoundSolver):
    """The split below the root where it is much the better bound there, else the relaxation (or the fit)."""

    steps: int = 8
    """Steps of the ascent at one node."""
    delta: float = 0.01
    """Eigenvalues of R below this are lifted. Above many of them all effort goes into directions that nothing can lift,
    below all of them it ends on the boundary."""
    relaxation: float = 2.5
    """Of the Polyak steps."""
    rounds: int = 5
    """Levels tried at the root, where the first attempt fails ..."""
    thorough_rounds: int = 12
    thorough_steps: int = 60
    """... and how many, with how many steps each, where the root's bound is what will be shown."""

    name = "split"

    def prepare(self, problem: Problem, options: BoundOptions) -> PreparedBound:
        """Bind to a problem with quadratic loss."""
        if not problem.has(QUADRATIC_LOSS):
            raise UnsupportedError(
                f"the bound 'split' needs quadratic loss, but the loss is {problem.loss.name}; use "
                f"{option('bound', 'apg')}."
            )
        spans = RedundantColumns.of(problem)
        if spans is not None and spans.curvature is not None:
            relaxation = AcceleratedGradientBound().with_curvature(problem, options, spans.curvature)
            return PreparedReduced(problem, options, spans, PreparedSplit(self, problem, options, relaxation))
        try:
            beside = AcceleratedGradientBound().prepare(problem, options)
        except UnsupportedError:  # no curvature at all
            beside = FitBound().prepare(problem, options)
        return PreparedSplit(self, problem, options, beside)


class PreparedSplit(PreparedBound):
    """Bound to one problem."""

    def __init__(self, solver: SplitBound, problem: Problem, options: BoundOptions, beside: PreparedBound) -> None:
        self.problem, self.options, self._solver, self._beside = problem, options, solver, beside
        self.curvature = beside.curvature
        self._H, self._b, self._constant = problem.hessian, problem.gram.b, problem.gram.constant
        self._roundings = problem.gram.roundings

    @property
    def cheaper(self) -> Cheaper:
        """See :class:`exactsel.bounds.base.PreparedBound`: the bound beside it."""
        return Cheaper(self._beside, self._trial_budget)

    def _trial_budget(self, state: StateArray, parent_bound: float, cutoff: float, upper: float) -> int:
        aim = cutoff if cutoff < np.inf else upper
        if not parent_bound < CLOSE * aim:
            return 0
        columns, fixed = node_columns(state)
        candidates = int(np.count_nonzero(self._H[columns[fixed:], columns[fixed:]]))
        return int(TRIAL_SHARE * (self._solver.steps + 1) * candidates * (1 + self._rounds(candidates)))

    def tighten(
        self, states: StateArray, warm: Sequence[Any], cutoff: float, upper: float, known: FloatArray | None = None
    ) -> Tightened:
        """See :class:`exactsel.bounds.base.PreparedBound`.

        ``warm`` holds the parent's split where that was the better bound, else what the bound beside it left.
        """
        count, d, k = len(states), self.problem.d, self.problem.k
        batch = Batch(
            empty_answers(count, d, k), [InfimumPoint()] * count, [InfimumPoint()] * count, [None] * count,
            np.zeros((count, d), dtype=np.bool_),
        )  # fmt: skip
        convex = np.array([is_convex(*node_columns(state), k) for state in states], dtype=np.bool_)
        splits = [memory if isinstance(memory, SplitPoint) and sound(memory) else None for memory in warm]
        beside = convex | np.array([split is None for split in splits], dtype=np.bool_)
        if beside.any():
            self._ask_beside(np.flatnonzero(beside), states, warm, (cutoff, upper, known), batch)
        split_rows = [row for row in np.flatnonzero(~convex).tolist() if splits[row] is not None]
        self._in_threads(lambda row: self._bound_node(row, states[row], splits[row], cutoff, batch), split_rows)
        left_open = np.array([row for row in split_rows if batch.answers.status[row] != CUT], dtype=np.intp)
        if left_open.size and isinstance(self._beside, PreparedPerspective) and not self.options.stop[0]:
            self._ask_beside_too(left_open, states, (cutoff, upper, known), batch)
        for row in np.flatnonzero(~convex).tolist():
            if splits[row] is None:
                self._try_fit(row, states[row], cutoff, -np.inf if known is None else float(known[row]), batch)
            if warm[row] is None:
                self._bound_root(row, states[row], cutoff, upper, batch)
        if self.options.stop[0]:
            batch.answers.status[:] = UNFINISHED
        return SplitTightened(
            batch.answers, batch.proofs, batch.warm, batch.out_by_fit, batch.of_children, valid_for=batch.valid_for
        )

    def _in_threads(self, work: Callable[[int], None], rows: Sequence[int]) -> None:
        """Do some work for each row, which no other row has to do with."""
        workers = min(working_threads(self.options.threads), len(rows))
        if workers > 1:
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(work, rows))
        else:
            for row in rows:
                work(row)

    def _ask_beside(
        self, rows: IntArray, states: StateArray, warm: Sequence[Any],
        aims: tuple[float, float, FloatArray | None], batch: Batch,
    ) -> None:  # fmt: skip
        """Let the other bound answer for some nodes."""
        cutoff, upper, parent_bounds = aims
        starts = [None if isinstance(warm[row], (SplitPoint, InfimumPoint)) else warm[row] for row in rows]
        parents = None if parent_bounds is None else parent_bounds[rows]
        tightened = self._beside.tighten(states[rows], starts, cutoff, upper, parents)
        for mine, theirs in zip(list[Any](batch.answers), tightened.answers, strict=True):
            mine[rows] = theirs
        for at, row in enumerate(rows.tolist()):
            batch.proofs[row] = tightened.proofs[at]
            batch.warm[row] = NO_SPLIT if tightened.warm[at] is None else tightened.warm[at]
            batch.of_children[row] = tightened.proofs[at]
        if isinstance(tightened, FitTightened):
            batch.out_by_fit[rows] = tightened.out_by_fit
            sizes = np.abs(tightened.answers.x)  # roots of drop costs: the costliest is to be branched on
            batch.answers.indicator[rows] = 0.5 * sizes / np.maximum(sizes.max(axis=1, keepdims=True), 1e-300)
        batch.valid_for = tightened.valid_for

    def _ask_beside_too(
        self, rows: IntArray, states: StateArray, aims: tuple[float, float, FloatArray | None], batch: Batch
    ) -> None:
        """Let the other bound answer too where a split has left nodes open, which says little of what is in between.

        It takes a small part of what the split takes, and speaks of children.
        """
        cutoff, upper, parent_bounds = aims
        tightened = self._beside.tighten(
            states[rows], [None] * rows.size, cutoff, upper, None if parent_bounds is None else parent_bounds[rows]
        )
        mine, theirs, batch.valid_for = batch.answers, tightened.answers, tightened.valid_for or batch.valid_for
        mine.iterations[rows] += theirs.iterations
        mine.bound_in[rows], mine.bound_out[rows] = theirs.bound_in, theirs.bound_out
        for at, row in enumerate(rows.tolist()):
            batch.of_children[row] = tightened.proofs[at]
            if theirs.bound[at] > mine.bound[row]:
                mine.bound[row], batch.proofs[row] = theirs.bound[at], tightened.proofs[at]
                mine.status[row] = CUT if theirs.bound[at] >= cutoff else RELAXED

    def _try_fit(self, row: int, state: StateArray, cutoff: float, parent_bound: float, batch: Batch) -> None:
        """Take the fit where the bound beside brought nothing, as with hardly any ridge, and the fit does."""
        if batch.answers.status[row] != RELAXED or batch.answers.bound[row] > max(parent_bound, 0.0):
            return
        value = self._value(self._region(state), None)
        if value.bound > batch.answers.bound[row]:
            batch.answers.bound[row], batch.proofs[row] = value.bound, value.proof
            batch.answers.status[row] = CUT if value.bound >= cutoff else RELAXED

    def _bound_node(self, row: int, state: StateArray, parent: SplitPoint | None, cutoff: float, batch: Batch) -> None:
        """Bound a node below one where the split was the better bound."""
        node = self._region(state)
        attempt = self._ascend(node, parent if self.options.warm_start else None, cutoff)
        batch.answers.iterations[row] += products(node, attempt)
        last = parent if attempt.point is None else attempt.point
        value = Value(cutoff, last or InfimumPoint(), None) if attempt.proven else self._value(node, last)
        self._answer(row, node, attempt.direction, value, last, cutoff, batch)

    def _bound_root(self, row: int, state: StateArray, cutoff: float, upper: float, batch: Batch) -> None:
        """Bound a node without a parent, and give the split's answer where it is much better than the one there is."""
        aim = cutoff if cutoff < np.inf else upper
        bound = float(batch.answers.bound[row])
        if batch.answers.status[row] == CUT or not bound < (1.0 if self.options.thorough else CLOSE) * aim:
            return
        node = self._region(state)
        attempt = self._ascend(node, None, aim)
        batch.answers.iterations[row] += products(node, attempt)
        if attempt.proven and attempt.point is not None:
            value = Value(aim, attempt.point, None)
            self._answer(row, node, attempt.direction, value, attempt.point, cutoff, batch)
            return
        point, value, spent = self._climb(node, bound, aim)
        batch.answers.iterations[row] += spent
        enough = 1.0 if self.options.thorough or self.options.stop[0] else LEADING
        if point is not None and aim - value.bound < enough * (aim - bound):
            self._answer(row, node, attempt.direction, value, point, cutoff, batch)

    def _answer(
        self, row: int, node: Region, direction: FloatArray, value: Value, last: SplitPoint | None, cutoff: float,
        batch: Batch,
    ) -> None:  # fmt: skip
        """Give the split's answer for a node; ``last`` is what its children start from."""
        answers = batch.answers
        answers.bound[row], answers.status[row] = value.bound, CUT if value.bound >= cutoff else RELAXED
        answers.bound_in[row], answers.bound_out[row] = -np.inf, -np.inf
        batch.proofs[row], batch.warm[row] = value.proof, last
        suggest(row, node, direction, value.x, answers)

    def _climb(self, node: Region, bound: float, aim: float) -> tuple[SplitPoint | None, Value, int]:
        """Prove as high a level as some rounds of steps can, each halving what is open."""
        low, high, best, point, spent = max(bound, 0.0), aim, NOTHING, None, 0
        for _ in range(self._rounds(node.candidates.size)):
            threshold = 0.5 * (low + high)
            attempt = self._ascend(node, point, threshold)
            spent += products(node, attempt)
            if not attempt.proven or attempt.point is None:
                high = threshold
                if self.options.stop[0]:
                    break
                continue
            point = attempt.point
            value = self._value(node, point)
            best = max(best, value, Value(threshold, point, value.x), key=lambda candidate: candidate.bound)
            low = max(threshold, best.bound)
            if not self.options.thorough and aim - best.bound < LEADING * (aim - bound):
                break
        return point, best, spent

    def _rounds(self, candidates: int) -> int:
        if self.options.thorough:
            return self._solver.thorough_rounds
        affordable = ROOT_WORK / (max(1, self._solver.steps) * max(1, candidates) ** 3)
        return min(self._solver.rounds, int(affordable))

    def _region(self, state: StateArray) -> Region:
        columns, fixed = node_columns(state)
        slots = self.problem.k - fixed
        used = self._H[columns, columns] > 0.0
        columns, fixed = columns[used], int(np.count_nonzero(used[:fixed]))
        return Region(columns, fixed, slots, self._H[np.ix_(columns, columns)], self._b[columns])

    def _ascend(self, node: Region, parent: SplitPoint | None, threshold: float) -> Attempt:
        """Look for an N that proves the node to hold nothing below ``threshold``."""
        nothing = Attempt(None, False, 0, np.zeros(node.candidates.size))
        if not threshold < (1.0 - 1e-9) * self._constant or node.candidates.size == 0:
            return nothing
        M = self._complement(node, threshold)
        if M is None:
            return nothing
        diagonal = np.diagonal(M)
        if diagonal.min() <= 0.0:  # S with this column alone is a better model
            return nothing._replace(direction=(diagonal == diagonal.min()).astype(float))
        scale = np.sqrt(diagonal)
        N = np.zeros_like(M) if parent is None else rescaled(parent, node.candidates, scale)
        return self._steps(node, M / np.outer(scale, scale), scale, N, threshold)

    def _complement(self, node: Region, threshold: float) -> FloatArray | None:
        """The Schur complement of S in Q on C; None where Q is not positive definite on S."""
        fixed = node.fixed
        Q = node.H - np.outer(node.b, node.b) / (2.0 * (self._constant - threshold))
        if fixed == 0:
            return Q
        try:
            factor = np.linalg.cholesky(Q[:fixed, :fixed])
        except np.linalg.LinAlgError:
            return None
        half = dense.solve_triangular(factor, Q[:fixed, fixed:], lower=True, check_finite=False)
        complement: FloatArray = Q[fixed:, fixed:] - half.T @ half
        return complement

    def _steps(self, node: Region, M: FloatArray, scale: FloatArray, N: FloatArray, threshold: float) -> Attempt:
        solver, m, direction = self._solver, len(M), np.zeros(len(M))
        most = solver.thorough_steps if self.options.thorough else solver.steps
        sums, largest = np.empty(m), np.empty((m, max(0, min(node.slots - 1, m - 1))), dtype=np.int64)
        R, G = np.empty((m, m)), np.empty((m, m))
        for step in range(most + 1):
            row_sums(N, sums, largest)
            remainder(M, N, sums, R)
            if definite(R):
                point = rounded(node.candidates, scale, N)
                if self._proves(node, self._matrix(node, point), threshold):
                    return Attempt(point, True, step, direction)
            if step == most or self.options.stop[0]:
                break
            # Half the digits, in half the time: which way N goes is no part of any proof.
            try:
                values, vectors = smallest_eigenvectors(R, solver.delta)
            except np.linalg.LinAlgError:
                break
            if values.size == 0:  # all that is missing is lost in rounding N
                break
            direction = np.abs(vectors[:, 0]).astype(np.float64)
            short = solver.delta - values
            lifted = ((vectors * short) @ vectors.T).astype(np.float64)
            descend(N, lifted, largest, 0.5 * float(short @ short), solver.relaxation, G)
            np.clip(N, -LARGEST_ENTRY, LARGEST_ENTRY, out=N)
        return Attempt(rounded(node.candidates, scale, N), False, step, direction)

    def _matrix(self, node: Region, point: SplitPoint | None) -> FloatArray:
        """H - E on the node's columns."""
        matrix = node.H.copy()
        if point is not None:
            included = np.isin(node.columns, point.columns)
            # A column of S that was a candidate when N was made is one still, and has its place.
            slots = node.slots + int(np.count_nonzero(included[: node.fixed]))
            matrix[np.ix_(included, included)] -= split_matrix(point, node.columns[included], slots)
        return matrix

    def _proves(self, node: Region, matrix: FloatArray, threshold: float) -> bool:
        """Whether a factorisation of Q - E, H - E being ``matrix``, shows that the node holds nothing below a level."""
        if not threshold < self._constant:
            return False
        error = entry_error(self._roundings, self._constant, threshold) + 8.0 * (self.problem.k + 4) ** 2 * UNIT
        Q = matrix - np.outer(node.b, node.b) / (2.0 * (self._constant - threshold))
        Q[np.diag_indices(len(Q))] -= shift(len(Q), error) * np.diagonal(node.H)
        return definite(Q)

    def _value(self, node: Region, point: SplitPoint | None) -> Value:
        """What N, or the largest part of it that can be used, proves where it does not prove enough."""
        if self._constant == 0.0:
            return NOTHING
        for part in _parts(point):
            matrix = self._matrix(node, part)
            try:
                factor = dense.cho_factor(matrix, lower=True, check_finite=False)
            except np.linalg.LinAlgError:
                continue
            x = dense.cho_solve(factor, node.b, check_finite=False)
            value = self._constant - 0.5 * float(node.b @ x)
            error = entry_error(self._roundings, self._constant, min(value, 0.5 * self._constant))
            lost = shift(len(matrix), error) * float(np.diagonal(node.H) @ x**2) + 1e-12 * self._constant
            for threshold in (value - lost, value - 1e3 * lost):
                if threshold > 0.0 and self._proves(node, matrix, threshold):
                    return Value(threshold, FitPoint() if part is None else part, x)
            return Value(-math.inf, InfimumPoint(), x)
        return NOTHING


def _parts(point: SplitPoint | None) -> Iterator[SplitPoint | None]:
    """The split, smaller and smaller parts of it, and in the end nothing, which is the fit."""
    if point is not None:
        for part in PARTS:
            yield SplitPoint(point.columns, point.scale * math.sqrt(part), point.entries)
    yield None
