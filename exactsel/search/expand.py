"""One round's work: bound some nodes, fix columns, round, split.

:meth:`Expander.expand` is a pure function of (problem, nodes, upper, settings): it changes no state the search can
see, so a thread, a process or a resumed run may do it, twice if need be. The engine commits what it returns.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from exactsel.bounds.base import PreparedBound, Tightened
from exactsel.bounds.pointwise import allowed_columns, solved_from_data
from exactsel.bounds.witness import FitPoint, Proof
from exactsel.kernels.node import CUT, FREE, ILL_CONDITIONED, IN, OUT, SOLVED, UNFINISHED
from exactsel.problem.fit import Fit
from exactsel.problem.interface import SubsetProblem
from exactsel.search.branching import Branching
from exactsel.search.node import Node, is_convex
from exactsel.search.regions import Answer, Expansion, Fixing, Region, Round, Visit, as_region, inherit
from exactsel.search.tolerance import Tolerance
from exactsel.search.trees import Tree
from exactsel.types import BoolArray, FloatArray, IntArray, StateArray
from exactsel.walks.closed_form import Subtree, SubtreeWalker
from exactsel.walks.dependent import DependentWalker
from exactsel.walks.effort import WORTH_KEEPING, Effort, supports, walk_budget
from exactsel.walks.relaxation import Below, Subsearcher

REMEMBERED = 200_000
"""Supports whose objectives are kept in mind so as not to refit them again."""


class Interrupted(Exception):
    """The stop flag was raised inside a round; the round leaves no trace."""


class _SearchedBelow(NamedTuple):
    """What the relaxation's kernel brought: better models, and the expansions of the nodes it was given, by id."""

    found: list[Fit]
    expansions: dict[int, Expansion]


class Expander:
    """Everything :meth:`expand` needs besides nodes and upper, fixed for a whole search."""

    def __init__(
        self,
        problem: SubsetProblem,
        tree: Tree,
        branching: Branching,
        bound: PreparedBound,
        tolerance: Tolerance,
        threads: int = 1,
        walker: SubtreeWalker | DependentWalker | None = None,
        subsearcher: Subsearcher | None = None,
    ) -> None:
        self.problem = problem
        self.tree = tree
        self.branching = branching
        self.bound = bound
        self.tolerance = tolerance
        self.threads = threads
        self.walker = walker
        self.subsearcher = subsearcher
        self.seconds = {"bound": 0.0, "refit": 0.0, "subtrees": 0.0}
        # A cache only: a support that was no improvement once never is one later.
        self._values: dict[bytes, float] = {}

    @property
    def walker_curvature(self) -> FloatArray | None:
        """The curvature subtrees are walked with, if any."""
        return None if self.walker is None else self.walker.curvature

    def cutoff(self, upper: float) -> float:
        """The bound at which a region is discarded."""
        return upper if self.tree.prunes_at_upper else upper - self.tolerance.absolute(upper)

    def expand(self, nodes: Sequence[Node], upper: float, effort: Effort | None = None) -> Round:
        """Bound and split the nodes; :class:`Interrupted` when told to stop midway.

        ``effort``, what the search has spent so far, says whether subtrees are left to the kernels.
        """
        if self.tree.eager:
            return self._expand_eagerly(nodes, upper)
        effort = effort or Effort()
        below = self._search_below(nodes, upper, effort)
        if below is None:
            return self._expand_here(nodes, upper, effort)
        rest = [node for node in nodes if node.id not in below.expansions]
        better = list(below.found)
        upper = min([upper, *(fit.value for fit in better)])
        if rest:
            careful = self._expand_here(rest, upper, effort)
            better += careful.found
            below.expansions.update((expansion.node.id, expansion) for expansion in careful.expansions)
        return Round(tuple(better), tuple(below.expansions[node.id] for node in nodes))

    def _expand_here(self, nodes: Sequence[Node], upper: float, effort: Effort) -> Round:
        found, regions = self._visit([as_region(node) for node in nodes], upper)
        upper = min([upper, *(fit.value for fit, _ in found)])
        better = [fit for fit, _ in found]
        subtrees = self._walk([region for region, _ in regions], upper, effort)
        for subtree in subtrees.values():
            if subtree is not None and subtree.support is not None:
                fit = self.problem.fit(subtree.support)
                if fit.value < upper:
                    upper = fit.value
                    better.append(fit)
        expansions = []
        for i, (node, (region, answer)) in enumerate(zip(nodes, regions, strict=True)):
            subtree = subtrees.get(i)
            if subtree is not None and self._worth_keeping(region, subtree):
                expansions.append(self._open_rest(node, region, subtree, upper))
                continue
            expansion = self._divide(node, region, answer, upper)
            if i in subtrees:
                expansion = replace(expansion, vain_walk=0 if subtree is None else subtree.nodes)
            expansions.append(expansion)
        return Round(tuple(better), tuple(expansions))

    def _search_below(self, nodes: Sequence[Node], upper: float, effort: Effort) -> _SearchedBelow | None:
        """Leave the nodes to the relaxation's own kernel, but for convex ones, which are solved with more care."""
        if self.subsearcher is None:
            return None
        given = [node for node in nodes if not is_convex(node.state, self.problem.k)]
        cost = self.subsearcher.iteration_cost
        budget = effort.subsearch_budget(cost, len(given)) if given else 0
        if budget == 0:
            return None
        began = time.perf_counter()
        tolerance = self.tolerance.absolute(upper)
        searched = self.subsearcher.explore(
            np.stack([node.state for node in given]), [node.warm for node in given],
            np.array([node.bound for node in given]), upper, tolerance, budget, effort.horizon,
        )  # fmt: skip
        if searched is None:
            raise Interrupted
        found: list[Fit] = []
        for below in searched:
            fit = None if below.support is None else self.problem.fit(below.support)
            if fit is not None and fit.value < upper:
                upper = fit.value
                found.append(fit)
        self.seconds["subtrees"] += time.perf_counter() - began
        cutoff = self.cutoff(upper)
        expansions = {
            node.id: _expansion_below(node, below, cutoff) for node, below in zip(given, searched, strict=True)
        }
        return _SearchedBelow(found, expansions)

    def _walk(self, regions: Sequence[Region], upper: float, effort: Effort) -> dict[int, Subtree | None]:
        """Walk the subtrees of the open regions for which that promises to pay; by row, None where it was refused."""
        walks = effort.walks
        if self.walker is None or walks is None:
            return {}
        cutoff, k = self.cutoff(upper), self.problem.k
        rows = [
            row for row, region in enumerate(regions)
            if region.closed is None and region.bound < cutoff
            and walks.wants(k - int(np.count_nonzero(region.state == IN)), int(np.count_nonzero(region.state)))
        ]  # fmt: skip
        if not rows:
            return {}
        began = time.perf_counter()
        states = np.stack([regions[row].state for row in rows])
        budget = walk_budget(int(np.count_nonzero(states, axis=1).max()), first=not walks.begun)
        if effort.left is not None:
            budget = min(budget, effort.left // len(rows))
        if budget == 0:
            return {}
        walked = self.walker.explore(states, upper, self.tolerance.absolute(upper), budget)
        if walked is None:
            raise Interrupted
        self.seconds["subtrees"] += time.perf_counter() - began
        return dict(zip(rows, walked, strict=True))

    def _worth_keeping(self, region: Region, subtree: Subtree) -> bool:
        """Whether a walk has dealt with so much of its region that what it left open is better to go on from."""
        if subtree.finished:
            return True
        left = sum(self._supports(state) for state in subtree.open_states)
        return left <= WORTH_KEEPING * self._supports(region.state)

    def _supports(self, state: StateArray) -> int:
        return supports(self.problem.k - int(np.count_nonzero(state == IN)), int(np.count_nonzero(state == FREE)))

    def _open_rest(self, node: Node, region: Region, subtree: Subtree, upper: float) -> Expansion:
        """What a walk left open, with the better of the region's bound and the fit's."""
        cutoff = self.cutoff(upper)
        pieces = tuple(
            inherit(region, state, float(bound), FitPoint(), cutoff)
            for state, bound in zip(subtree.open_states, subtree.open_bounds, strict=True)
        )
        return Expansion(node, region, children=pieces, subtree=subtree)

    def _expand_eagerly(self, nodes: Sequence[Node], upper: float) -> Round:
        """The paper's order: split a bounded node and bound its children one after the other."""
        found: list[Fit] = []
        expansions = []
        for node in nodes:
            region = as_region(node)
            if not node.tight:
                region, upper = self._visit_one(region, upper, found)
                expansions.append(Expansion(node, region))
                continue
            split = self.tree.split(node.state, -1, self.problem.k)
            children = []
            for state in split.children:
                child, upper = self._visit_one(replace(region, state=state, tight=False), upper, found)
                children.append(child)
            last = children[-1]
            rest = replace(last, state=split.rest, visits=(), closed="contained")
            expansions.append(Expansion(node, region, split, tuple(children), rest))
        return Round(tuple(found), tuple(expansions))

    def _visit_one(self, region: Region, upper: float, found: list[Fit]) -> tuple[Region, float]:
        better, regions = self._visit([region], upper)
        found.extend(fit for fit, _ in better)
        return regions[0][0], min([upper, *(fit.value for fit, _ in better)])

    def _visit(
        self, regions: list[Region], upper: float
    ) -> tuple[list[tuple[Fit, int]], list[tuple[Region, Answer | None]]]:
        """Bound the regions, fix columns, and bound again what fixing turned into a convex problem."""
        result = self._tighten(regions, upper)
        found, estimates = self._better_models(regions, result, upper)
        upper = min([upper, *(fit.value for fit, _ in found)])
        cutoff = self.cutoff(upper)
        visited: list[tuple[Region, Answer | None]] = []
        for i, region in enumerate(regions):
            region = self._with_bound(region, result, i, cutoff, float(estimates[i]))
            answer = None
            if region.closed is None:
                if self.tree.fixes:
                    region = self._fix(region, result, i, cutoff)
                answer = Answer(result, i)
            visited.append((region, answer))
        convex = [
            i for i, (region, _) in enumerate(visited)
            if region.closed is None and region.fixings and is_convex(region.state, self.problem.k)
        ]  # fmt: skip
        if convex:
            again = self._tighten([visited[i][0] for i in convex], upper)
            found += [
                (fit, convex[row]) for fit, row in self._better_models([visited[i][0] for i in convex], again, upper)[0]
            ]
            cutoff = self.cutoff(min([upper, *(fit.value for fit, _ in found)]))
            for row, i in enumerate(convex):
                visited[i] = (self._with_bound(visited[i][0], again, row, cutoff, math.nan), None)
        return found, visited

    def _tighten(self, regions: Sequence[Region], upper: float) -> Tightened:
        began = time.perf_counter()
        states = np.stack([region.state for region in regions])
        known = np.array([region.bound for region in regions])
        result = self.bound.tighten(states, [region.warm for region in regions], self.cutoff(upper), upper, known)
        if np.any(result.answers.status == UNFINISHED):
            raise Interrupted
        self.seconds["bound"] += time.perf_counter() - began
        return result

    def _with_bound(self, region: Region, result: Tightened, i: int, cutoff: float, estimate: float) -> Region:
        """The region after a bound call: the better of the old bound and the new one, and whether it is closed.

        ``estimate`` is the objective of the model its relaxation was rounded to, nan where that is not known.
        """
        answers = result.answers
        status, bound, proof = int(answers.status[i]), float(answers.bound[i]), result.proofs[i]
        solved = self._is_solved(region.state, status)
        if solved and not bound >= cutoff:
            bound, proof = self._solve_from_data(region.state, bound, proof)
        visit = Visit(bound, solved, int(answers.iterations[i]))
        if not bound > region.bound:
            bound, proof = region.bound, region.proof
        closed = "solved" if solved else "bound" if status == CUT or bound >= cutoff else None
        # Written out because it is done for every node, and dataclasses.replace takes its time.
        return Region(
            region.state, bound, proof, result.warm[i], True,
            (*region.visits, visit), region.fixings, closed, region.estimate if math.isnan(estimate) else estimate,
        )  # fmt: skip

    def _is_solved(self, state: StateArray, status: int) -> bool:
        """Whether a region holds one convex problem that is to be solved, not split, whatever the bound made of it."""
        return status in (SOLVED, ILL_CONDITIONED) or (status != CUT and is_convex(state, self.problem.k))

    def _solve_from_data(self, state: StateArray, bound: float, proof: Proof) -> tuple[float, Proof]:
        """Sharpen the bound of a convex region: kernels work on the Gram matrix, which loses digits."""
        sharper = solved_from_data(self.problem, state)
        return sharper if sharper is not None and not bound >= sharper[0] else (bound, proof)

    def _fix(self, region: Region, result: Tightened, i: int, cutoff: float) -> Region:
        """Fix every column one of whose children would be discarded at birth.

        Exclusions come first: then each closed child's bound, computed before any fixing, still holds for the
        smaller region it is closed in.
        """
        answers, state = result.answers, region.state
        free = state == FREE
        useless, needed = answers.bound_in[i] >= cutoff, answers.bound_out[i] >= cutoff
        if not (useless.any() or needed.any()):
            return region
        dropped = (free & useless).nonzero()[0]
        put_in = (free & needed & ~useless).nonzero()[0]
        # More columns that must be in than places: filling the places leaves a convex region, which is then solved.
        put_in = put_in[: self.problem.k - int(np.count_nonzero(state == IN))]
        if dropped.size + put_in.size == 0:
            return region
        fixings = [
            Fixing(int(j), False, float(answers.bound_in[i, j]), result.child_proof(i, int(j), True)) for j in dropped
        ]
        fixings += [
            Fixing(int(j), True, float(answers.bound_out[i, j]), result.child_proof(i, int(j), False)) for j in put_in
        ]
        state = state.copy()
        state[dropped], state[put_in] = OUT, IN
        return Region(
            state, region.bound, region.proof, region.warm, region.tight,
            region.visits, tuple(fixings), region.closed, region.estimate,
        )  # fmt: skip

    def _divide(self, node: Node, region: Region, answer: Answer | None, upper: float) -> Expansion:
        """Split an open region; children start from the better of its bound and what its dual vector says of them."""
        cutoff = self.cutoff(upper)
        if region.closed is None and region.bound >= cutoff:
            region = replace(region, closed="incumbent")
        if region.closed is not None or answer is None:
            return Expansion(node, region)
        view = answer.view(region.state)
        chosen = self.branching.select(view)
        column = int(view.candidates[chosen])
        split = self.tree.split(region.state, column, self.problem.k)
        children = tuple(
            inherit(region, state, view.bound_in[chosen], answer.proof(column, True), cutoff)
            for state in split.children
        )
        rest = inherit(region, split.rest, view.bound_out[chosen], answer.proof(column, False), cutoff)
        return Expansion(node, region, split, children, rest)

    def _better_models(
        self, regions: Sequence[Region], result: Tightened, upper: float
    ) -> tuple[list[tuple[Fit, int]], FloatArray]:
        """Evaluate the supports the relaxed models suggest.

        Returns the models better than ``upper``, each with its row, and the quick objective of every row's support.
        A convex region that seems to hold a better model is always refitted from the data: kernels may work on the
        Gram matrix, which loses digits.
        """
        began = time.perf_counter()
        answers = result.answers
        solved = np.array([
            self._is_solved(region.state, status)
            for region, status in zip(regions, answers.status.tolist(), strict=True)
        ])  # fmt: skip
        promising = solved & ~(answers.bound >= self.cutoff(upper))
        values, fresh = self._evaluate(answers.support)
        better = []
        for row in np.flatnonzero(promising | (fresh & ~(values >= upper))).tolist():
            support = answers.support[row]
            if solved[row] and answers.status[row] != SOLVED:
                support = allowed_columns(regions[row].state, self.problem.k)
            fit = self.problem.fit(support[support >= 0])
            if fit.value < upper:
                upper = fit.value
                better.append((fit, row))
        self.seconds["refit"] += time.perf_counter() - began
        return better, values

    def _evaluate(self, supports: IntArray) -> tuple[FloatArray, BoolArray]:
        """Quick objectives of supports (nan where that fails), and which had not been evaluated lately."""
        if len(self._values) >= REMEMBERED:
            self._values.clear()
        keys = [np.sort(support).tobytes() for support in supports]
        fresh = np.array([key not in self._values for key in keys], dtype=np.bool_)
        new = np.flatnonzero(fresh)
        if new.size:
            values = self.problem.objectives(supports[new], self.threads)
            self._values.update(zip((keys[row] for row in new), values.tolist(), strict=True))
        return np.array([self._values[key] for key in keys]), fresh


def _expansion_below(node: Node, below: Below, cutoff: float) -> Expansion:
    """A node searched below by the kernel, with the regions left open."""
    pieces, numbers = [], []
    for piece in below.open_regions():
        proof = node.proof if piece.proof is None else piece.proof
        warm = node.warm if piece.start is None else piece.start
        closed = "incumbent" if piece.bound >= cutoff else None
        pieces.append(Region(piece.state, piece.bound, proof, warm, closed=closed, estimate=node.estimate))
        numbers.append(piece.number)
    return Expansion(node, as_region(node), children=tuple(pieces), below=below, numbers=tuple(numbers))
