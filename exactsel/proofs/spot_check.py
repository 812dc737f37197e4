"""Look at what a worker says of some nodes before it is committed: regions, and bounds by what is said to prove them.

Every bound a worker sends is evaluated anew from its witness, and the regions it makes of a node must divide that node.
What a kernel closed below a node by itself is a proof of many steps: of those subtrees a part is looked at in full.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence

import numpy as np

from exactsel.errors import InvariantError
from exactsel.kernels.node import IN, OUT
from exactsel.problem.fit import Fit
from exactsel.problem.interface import SubsetProblem
from exactsel.proofs.audit import Audit
from exactsel.proofs.evaluating import Evaluator
from exactsel.search.commit import closed_child, commit
from exactsel.search.events import Discarded, Finished, Fixed
from exactsel.search.expand import Expander
from exactsel.search.frontier import BestFirst
from exactsel.search.node import Node
from exactsel.search.pool import SHARE
from exactsel.search.regions import NodeDivided, NodeSearched, NodeWalked, Outcome, Region, Round, as_region
from exactsel.search.state import SearchState

REASONS = (None, "inherited", "bound", "incumbent", "solved", "excluded")
"""Why a worker may say that a region is closed, or not at all: for these a bound is shown, or there is no model."""


class SpotCheck:
    """What is wrong with the outcome for some nodes.

    Parameters
    ----------
    problem : SubsetProblem
        One the checker knows; :class:`exactsel.errors.UnsupportedError` for others.
    expander : Expander
        The search's own, to tell what kernels did.
    stopped : callable
        Whether the search is to stop.
    share : int
        One subtree in so many is looked at in full; 1: all. Workers cannot know which.
    """

    def __init__(
        self, problem: SubsetProblem, expander: Expander, stopped: Callable[[], bool], share: int = SHARE
    ) -> None:
        self._problem, self._expander, self._stopped, self._share = problem, expander, stopped, share
        self._empty = problem.fit(problem.root_state[:0].nonzero()[0])
        self._salt = secrets.randbelow(2**31)
        self._evaluator = Evaluator(problem)
        self.bounds = 0
        """How many bounds have been evaluated."""

    def __call__(self, nodes: Sequence[Node], done: Round) -> str:
        """One sentence, empty where nothing is wrong."""
        audit = Audit(self._problem, self._evaluator)
        state = SearchState(BestFirst(), self._empty, "", self._problem.hash)
        state.scope = done.scope
        state.next_id = 1 + max((node.id for node in nodes), default=0)
        in_full = [outcome for outcome in done.outcomes if self._is_told(outcome)]
        try:
            for fit in done.models:
                self._look_at_model(fit)
            for outcome in done.outcomes:
                self._look_at_form(outcome)
            state.in_flight = [outcome.node for outcome in in_full]
            audit.begin(state.in_flight, state, known=True)
            for outcome in in_full:
                self._tell(outcome, audit, state)
            for outcome in done.outcomes:
                if not self._is_told(outcome):
                    self._look_at_open(outcome, audit, state)
            if self._stopped():
                return "the search is to stop, and what kernels did has not been told to the end"
            audit.look_at_opened(state)
            audit(Finished("checked", state.open_nodes()), state)
        except InvariantError as error:
            return str(error)
        self.bounds += audit.bounds
        return ""

    def _is_told(self, outcome: Outcome) -> bool:
        """Whether an outcome is looked at in full: all that are not subtrees, and a part of these."""
        subtree = isinstance(outcome, NodeSearched | NodeWalked)
        return not subtree or (outcome.node.id + self._salt) % self._share == 0

    def _look_at_model(self, fit: Fit) -> None:
        """A model the problem admits."""
        problem, units = self._problem, self._problem.units
        chosen = {*units.units_of(fit.support), *units.must_have}
        banned = any(problem.root_state[unit] == OUT for unit in chosen)
        if banned or len(chosen) > problem.k or units.completed(chosen, problem.k) is None:
            raise InvariantError(f"the model on {fit.support} is none that the problem admits.")

    def _look_at_form(self, outcome: Outcome) -> None:
        """What this search can have done, and nothing that stands for something else."""
        expander, regions = self._expander, list[Region](getattr(outcome, "children", ()))
        if isinstance(outcome, NodeSearched):
            numbers = outcome.numbers
            sound = expander.subsearcher is not None and len(regions) == len(numbers) == len({*numbers})
            sound &= all(0 < number < outcome.search.numbers for number in numbers if number)
        else:
            regions.append(outcome.region)
            sound = not isinstance(outcome, NodeWalked) or (expander.walker or expander.counter) is not None
        if isinstance(outcome, NodeDivided):
            regions.append(outcome.rest)
            sound = len(outcome.columns) == len(outcome.children) > 0
        if not sound or any(region.closed not in REASONS for region in regions):
            raise InvariantError(f"this search does not do with node {outcome.node.id} what is said of it.")

    def _tell(self, outcome: Outcome, audit: Audit, state: SearchState) -> None:
        """Commit an outcome to a state of its own, while the audit listens."""
        closed, first = math.inf, state.next_id - 1
        for event in commit(state, outcome, self._expander, details=True):
            audit(event, state)
            if isinstance(outcome, NodeSearched) and isinstance(event, Fixed | Discarded):
                # Regions that were left open, and overtaken by a model since, are no part of it.
                left = isinstance(event, Discarded) and event.node - first in outcome.numbers
                closed = closed if left else min(closed, event.bound)
        state.in_flight = state.in_flight[1:]
        if isinstance(outcome, NodeSearched) and not outcome.search.dropped <= closed:
            raise InvariantError(
                f"what was closed below node {outcome.node.id} is said to be bounded by {outcome.search.dropped!r}, "
                f"but a part of it is by {closed!r} alone."
            )

    def _look_at_open(self, outcome: Outcome, audit: Audit, state: SearchState) -> None:
        """The regions a subtree left open: they lie in its node, and what is said to prove their bounds does."""
        assert isinstance(outcome, NodeSearched | NodeWalked)
        node = outcome.node
        if isinstance(outcome, NodeWalked):
            now = node.state.copy()
            for i, fixing in enumerate(outcome.region.fixings):
                child = closed_child(node, outcome.region.fixings, i, self._problem)
                if child is not None:
                    audit.look_at_part(node, as_region(child), state)
                now[fixing.column] = IN if fixing.inside else OUT
            implied = self._problem.units.implied(now, self._problem.k)
            if implied is None or not np.array_equal(implied, outcome.region.state):
                raise InvariantError(f"node {node.id} is another region than the columns fixed make it.")
        for region in outcome.children:
            audit.look_at_part(node, region, state)
