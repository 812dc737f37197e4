"""Spot checks of a worker's results before they are committed: regions, and bounds by their witnesses.

Every bound a worker sends is evaluated again from its witness, and the regions it makes of a node must divide that
node. The subtrees that a kernel closed below a node by itself are proofs of many steps: a part of them is checked in
full.
"""

from __future__ import annotations

import math
import random
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

import numpy as np

from exactsel.enumeration.native import NativeTree
from exactsel.errors import InvariantError
from exactsel.kernels.node import FREE, OUT
from exactsel.nodes.left_open import LeftBelow
from exactsel.nodes.node import Node
from exactsel.nodes.regions import NodeDivided, Outcome, Round, SubtreeResult
from exactsel.nodes.subtree import moves_of
from exactsel.nodes.table import NodeTable
from exactsel.problem.fit import Fit
from exactsel.problem.interface import SubsetProblem
from exactsel.proofs.evaluating import UNTRUSTED, Evaluator
from exactsel.proofs.recheck import Recheck
from exactsel.search.commit import commit
from exactsel.search.events import Discarded, Finished, Fixed
from exactsel.search.expand import Expander
from exactsel.search.frontier import BestFirst
from exactsel.search.pool import SHARE
from exactsel.search.state import SearchState
from exactsel.types import IntArray

REASONS = (None, "inherited", "bound", "incumbent", "solved", "excluded")
"""Why a worker may say that a region is closed, or not at all: for these a bound is shown, or there is no model."""


SAMPLED = 1 / 8
"""Part of the regions that a walk has closed, in the checked subtrees, whose bounds are evaluated: that takes several
times as long as all that the kernel did there. That these regions are complete is always checked."""


class SpotCheck:
    """What is wrong with the outcome for some nodes.

    Parameters
    ----------
    problem : SubsetProblem
        One the checker knows; :class:`exactsel.errors.UnsupportedError` for others.
    expander : Expander
        The search's own, to read the kernels' steps.
    stopped : callable
        Whether the search is to stop.
    share : int
        One subtree in so many is checked step by step, and SAMPLED of its regions; 1: all. Workers cannot know which.
    """

    def __init__(
        self, problem: SubsetProblem, expander: Expander, stopped: Callable[[], bool], share: int = SHARE
    ) -> None:
        self._problem, self._expander, self._stopped, self._share = problem, expander, stopped, share
        self._empty = problem.fit(problem.first_support or ())
        self._salt, self._random = secrets.randbelow(2**31), random.Random(secrets.randbits(64))
        self._evaluator = Evaluator(problem, UNTRUSTED)
        self.bounds = 0
        """How many bounds have been evaluated."""

    def __call__(self, nodes: Sequence[Node], done: Round) -> str:
        """One sentence, empty where nothing is wrong."""
        expansion = [outcome for outcome in done.outcomes if self._is_told(outcome)]

        def look(recheck: Recheck, state: SearchState) -> None:
            for fit in done.models:
                self._look_at_model(fit)
            for outcome in done.outcomes:
                self._look_at_form(outcome)
            self._tell(expansion, recheck, state)
            node_ids = {outcome.node.id for outcome in expansion}
            others = [outcome for outcome in done.outcomes if outcome.node.id not in node_ids]
            subtrees = [outcome for outcome in others if isinstance(outcome, SubtreeResult)]
            for outcome in subtrees:
                if not isinstance(outcome.expansion, NativeTree):
                    self._look_at_parts(outcome, recheck, state)
            self._look_at_left(
                [subtree for subtree in subtrees if isinstance(subtree.expansion, NativeTree)], recheck, state
            )

        return self._wrong(nodes, done.valid_for, look)

    def _wrong(self, nodes: Sequence[Node], valid_for: str, look: Callable[[Recheck, SearchState], None]) -> str:
        """What a recheck finds that follows a search of its own from some nodes on."""
        recheck = Recheck(self._problem, self._evaluator, None if self._share == 1 else self._samples)
        state = _Looked(BestFirst(), self._empty, "", self._problem.hash)
        state.valid_for = valid_for
        state.next_id = 1 + max((node.id for node in nodes), default=0)
        try:
            look(recheck, state)
            if self._stopped():
                return "the search is to stop, and what kernels did has not been told to the end"
            recheck.look_at_opened(state)
            recheck(Finished("checked", state.open_nodes()), state)
        except InvariantError as error:
            return str(error)
        self.bounds += recheck.bounds
        return ""

    def _samples(self) -> bool:
        return self._random.random() < SAMPLED

    def _is_told(self, outcome: Outcome) -> bool:
        """Whether an outcome is checked in full: all that are not subtrees, and a part of these."""
        return not isinstance(outcome, SubtreeResult) or (outcome.node.id + self._salt) % self._share == 0

    def _look_at_model(self, fit: Fit) -> None:
        """A model the problem admits."""
        problem, units = self._problem, self._problem.units
        chosen = {*units.units_of(fit.support), *units.force_in}
        banned = any(problem.root_state[unit] == OUT for unit in chosen)
        if banned or len(chosen) > problem.k or units.completed(chosen, problem.k) is None:
            raise InvariantError(f"the model on {fit.support} is none that the problem admits.")

    def _look_at_form(self, outcome: Outcome) -> None:
        """What this search can have done, and nothing that stands for something else."""
        regions, sound = [outcome.region], True
        if isinstance(outcome, SubtreeResult):
            sound = self._expander.closes_by(outcome.closer)
            numbers, expansion = outcome.numbers, outcome.expansion
            if numbers is not None:
                sound &= len(outcome.children) == len(numbers) == len({*numbers})
                sound &= all(0 <= number <= outcome.numbered for number in numbers)
            if isinstance(expansion, NativeTree):
                sound &= self._expander.native is not None and numbers is not None
            else:
                regions += outcome.children
                sound &= expansion is not None or outcome.min_pruned_bound == math.inf
        elif isinstance(outcome, NodeDivided):
            regions += (*outcome.children, outcome.rest)
            sound = len(outcome.columns) == len(outcome.children) > 0
        if not sound or any(region.closed not in REASONS for region in regions):
            raise InvariantError(f"this search does not do with node {outcome.node.id} what is said of it.")

    def _tell(self, outcomes: Sequence[Outcome], recheck: Recheck, state: SearchState) -> None:
        """Commit outcomes to a state of its own, while the recheck listens."""
        state.in_flight = [outcome.node for outcome in outcomes]
        recheck.begin(state.in_flight, state, known=True)
        for outcome in outcomes:
            closed, first = math.inf, state.next_id - 1
            for event in commit(state, outcome, self._expander, details=True):
                recheck(event, state)
                if _is_search(outcome) and isinstance(event, Fixed | Discarded):
                    # Regions that were left open, and overtaken by a model since, are no part of it.
                    is_open = isinstance(event, Discarded) and event.node - first in (outcome.numbers or ())
                    bounds = (event.bound,) if isinstance(event, Discarded) else event.fixings.bounds
                    closed = closed if is_open else min(closed, *bounds)
            state.in_flight = state.in_flight[1:]
            if _is_search(outcome) and not outcome.min_pruned_bound <= closed:
                raise InvariantError(
                    f"what was closed below node {outcome.node.id} is said to be bounded by "
                    f"{outcome.min_pruned_bound!r}, but a part of it is by {closed!r} alone."
                )

    def _look_at_parts(self, outcome: SubtreeResult, recheck: Recheck, state: SearchState) -> None:
        """The regions left open in a subtree: they lie in its node, and what is said to prove their bounds does."""
        node = outcome.node
        if recheck.look_at_fixings(node, outcome.region.fixings, state) != outcome.region.state.tobytes():
            raise InvariantError(f"node {node.id} is another region than the columns fixed make it.")
        for region in outcome.children:
            recheck.look_at_part(node, region, state)
        if outcome.expansion is None:
            moves_of(outcome)  # which raises where they do not divide the region

    def _look_at_left(self, outcomes: Sequence[SubtreeResult], recheck: Recheck, state: SearchState) -> None:
        """The same of the regions that searches inside the kernel left open, all at once.

        A bound that its point does not prove in doubles is checked by itself, with all the checker's means.
        """
        for table, below in _by_tables(outcomes):
            sizes = [len(outcome.children) for outcome in below]
            rows = np.concatenate([_rows(outcome) for outcome in below])
            owner = np.repeat(np.arange(len(below)), sizes)
            above, states = np.stack([outcome.node.state for outcome in below])[owner], table.states()[rows]
            outside = np.any((above != FREE) & (above != states), axis=1)
            if np.any(outside):
                node = below[owner[np.argmax(outside)]].node
                raise InvariantError(f"a region left open below node {node.id} does not lie in it.")
            bounds, proofs, points = table.rows["bound"][rows], table.rows["proof"][rows], table.objects.points
            needed = np.array([bound - recheck.margin(bound) for bound in bounds.tolist()])
            at_points = np.flatnonzero((proofs >= 0) & (proofs < len(points)) & (bounds > 0.0))
            used, which = np.unique(proofs[at_points], return_inverse=True)
            lower = np.where(bounds > 0.0, -np.inf, np.inf)
            if used.size:
                used_points = [points.point(number) for number in used.tolist()]
                lower[at_points] = self._evaluator.at_points(
                    states[at_points], used_points, which, state.valid_for != ""
                )
            holds = lower >= needed
            recheck.bounds += int(np.count_nonzero(holds[at_points]))
            for at in np.flatnonzero(~holds).tolist():
                outcome = below[owner[at]]
                recheck.look_at_part(outcome.node, outcome.children[int(rows[at] - _rows(outcome)[0])], state)


@dataclass
class _Looked(SearchState):
    """A state that no search continues: open nodes are in no order, closed nodes are not kept to be opened again."""

    kept: list[Node] = field(default_factory=list)
    """What is open, beside nodes in flight."""

    def push(self, node: Node) -> None:
        """Open a node."""
        self._note_opened(node)
        self.kept.append(node)

    def push_table(self, table: NodeTable) -> None:
        """Open nodes."""
        for node in table:
            self.push(node)

    def open_nodes(self) -> Sequence[Node]:
        """What is open."""
        return [*self.in_flight, *self.kept]

    def drop(self, bound: float, again: Callable[[], Node | None] | None) -> None:
        """A region was closed at a bound."""
        self.min_pruned_bound = min(self.min_pruned_bound, bound)

    def record(self, kind: bytes, *numbers: float, values: Sequence[float] = ()) -> None:
        """Nothing reads its hash."""


def _is_search(outcome: Outcome) -> TypeGuard[SubtreeResult]:
    """Whether the kernel for relaxations dealt with a node."""
    return isinstance(outcome, SubtreeResult) and isinstance(outcome.expansion, NativeTree)


def _rows(outcome: SubtreeResult) -> IntArray:
    """Where the regions left open below a node are."""
    below = outcome.children
    assert isinstance(below, LeftBelow)
    return below.first + np.arange(len(below))


def _by_tables(outcomes: Sequence[SubtreeResult]) -> list[tuple[NodeTable, list[SubtreeResult]]]:
    """The outcomes that left something open, by the table that holds it."""
    groups: dict[int, tuple[NodeTable, list[SubtreeResult]]] = {}
    for outcome in outcomes:
        below = outcome.children
        if len(below):
            assert isinstance(below, LeftBelow)
            groups.setdefault(id(below.table), (below.table, []))[1].append(outcome)
    return list(groups.values())
