"""Look at what a worker says of some nodes before it is committed: regions, and bounds by what is said to prove them.

Every bound a worker sends is evaluated anew from its witness, and the regions it makes of a node must divide that node.
What a kernel closed below a node by itself is a proof of many steps: of those subtrees a part is looked at in full.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from exactsel.errors import InvariantError
from exactsel.problem.interface import SubsetProblem
from exactsel.proofs.audit import Audit
from exactsel.search.commit import commit
from exactsel.search.events import Discarded, Finished, Fixed
from exactsel.search.expand import Expander
from exactsel.search.frontier import BestFirst
from exactsel.search.node import Node
from exactsel.search.regions import NodeSearched, NodeWalked, Outcome, Round
from exactsel.search.state import SearchState

SHARE = 64
"""One subtree in so many is looked at in full."""


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
        One subtree in so many is looked at in full; 1: all.
    """

    def __init__(
        self, problem: SubsetProblem, expander: Expander, stopped: Callable[[], bool], share: int = SHARE
    ) -> None:
        self._problem, self._expander, self._stopped, self._share = problem, expander, stopped, share
        self._empty = problem.fit(problem.root_state[:0].nonzero()[0])
        Audit(problem)
        self.bounds = 0
        """How many bounds have been evaluated."""

    def __call__(self, nodes: Sequence[Node], done: Round) -> str:
        """One sentence, empty where nothing is wrong."""
        audit, state = Audit(self._problem), SearchState(BestFirst(), self._empty, "", self._problem.hash)
        state.scope = done.scope
        state.next_id = 1 + max((node.id for node in nodes), default=0)
        in_full = [outcome for outcome in done.outcomes if self._is_told(outcome)]
        try:
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
        return not isinstance(outcome, NodeSearched | NodeWalked) or outcome.node.id % self._share == 0

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
        if isinstance(outcome, NodeSearched) and outcome.search.dropped > closed:
            raise InvariantError(
                f"what was closed below node {outcome.node.id} is said to be bounded by {outcome.search.dropped!r}, "
                f"but a part of it is by {closed!r} alone."
            )

    def _look_at_open(self, outcome: Outcome, audit: Audit, state: SearchState) -> None:
        """The regions a subtree left open: they lie in its node, and what is said to prove their bounds does."""
        assert isinstance(outcome, NodeSearched | NodeWalked)
        for region in outcome.children:
            audit.look_at_part(outcome.node, region, state)
