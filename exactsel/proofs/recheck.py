"""Look over a search's shoulder: evaluate every bound again as it is committed, and follow every region.

An observer of a search with details. It keeps a list of its own of what is open, made from the events alone, and takes
nothing over from the search but witnesses: a bound that its witness does not prove, a region that is lost, is there
twice or is another than the events make it, end the search. That takes several times as long as the search.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

import numpy as np

from exactsel.bounds.witness import ListedPoints, Proof
from exactsel.errors import InvariantError, UnsupportedError
from exactsel.kernels import moves as kinds
from exactsel.kernels.subtree_record import COUNTED as COUNTED_MOVE
from exactsel.kernels.subtree_record import LEFT_OPEN
from exactsel.nodes.node import Node
from exactsel.nodes.regions import Fixing, Region
from exactsel.nodes.subtree import moves_of
from exactsel.nodes.tolerance import Tolerance
from exactsel.problem.interface import SubsetProblem
from exactsel.proofs.evaluating import COUNTED, Claim, Evaluator
from exactsel.proofs.writer import CLAIM_MARGIN
from exactsel.rounding import UNIT
from exactsel.search.events import Discarded, Divided, Event, Finished, Fixed, RoundEnded, Started, SubtreeClosed
from exactsel.search.state import SearchState
from exactsel_certificates import container as fmt
from exactsel_certificates.formula import ColumnInstance
from exactsel_certificates.walk import BY_COUNTING, FREE, IN, OUT, regions

AT_ONCE = 64
"""Claims that wait until so many are evaluated together."""

_KINDS = np.zeros(8, dtype=np.int32)
_KINDS[[kinds.BRANCHED, kinds.PUT_IN, kinds.LEFT_OUT]] = fmt.SPLIT_OUT, fmt.PUT_IN, fmt.LEAVE_OUT
_KINDS[[kinds.CLOSED, LEFT_OPEN, COUNTED_MOVE]] = fmt.CLOSE, fmt.CLOSE, fmt.COUNTED


class Recheck:
    """Observes one search with details, from its beginning or from where an earlier one has stopped.

    Parameters
    ----------
    problem : SubsetProblem
        One the checker knows; :class:`exactsel.errors.UnsupportedError` for others.
    evaluator : Evaluator, optional
        One made for the problem before.
    samples : callable, optional
        Called for each region a walk has closed, to decide whether to evaluate its bound; by default all are.
    """

    def __init__(
        self, problem: SubsetProblem, evaluator: Evaluator | None = None, samples: Callable[[], bool] | None = None
    ) -> None:
        self._evaluator, self._samples = evaluator or Evaluator(problem), samples
        instance = self._evaluator.instance
        self._margin = Tolerance().of(problem).margin
        self._k, self._null, self._size = problem.k, problem.null_objective, problem.n + problem.d
        self._css = isinstance(instance, ColumnInstance)
        hierarchy = None if isinstance(instance, ColumnInstance) else instance.hierarchy
        self._rule = None if hierarchy is None else hierarchy.rule(problem.k).implied
        self._regions: dict[int, bytes | None] = {}
        self._claims: list[Claim] = []
        self._least = math.inf
        """The smallest bound of all that was closed."""
        self.bounds = 0
        """How many have been evaluated."""

    def __call__(self, event: Event, state: SearchState) -> None:
        """Take in what the event says.

        Raises
        ------
        InvariantError
            Where it contradicts what was said before, or a witness does not prove its bound.
        """
        if isinstance(event, Fixed):
            self._fix(event, state)
        elif isinstance(event, Divided):
            self._divide(event)
        elif isinstance(event, Discarded):
            self._close(event, state)
        elif isinstance(event, SubtreeClosed):
            self._walk(event, state)
        elif isinstance(event, RoundEnded):
            self._end_round(state)
        elif isinstance(event, Started):
            self.begin(event.open_nodes, state)
        elif isinstance(event, Finished):
            self._end(event.open_nodes, state)

    def begin(self, nodes: Sequence[Node], state: SearchState, known: bool = False) -> None:
        """These are open at the beginning; ``known`` where their bounds need no check."""
        state.opened = []
        for node in nodes:
            self._regions[node.id] = self._implied(node.state.tobytes(), range(len(node.state)))
            if not known:
                self._claim(self._regions[node.id], node.proof, node.bound, node.id, state)

    def _fix(self, event: Fixed, state: SearchState) -> None:
        region = self._known(event.node)
        for fixing in event.fixings:
            self._note_closed(fixing.bound)
        self._regions[event.node] = self._after_fixings(region, event.node, event.fixings, state)

    def _divide(self, event: Divided) -> None:
        region = self._taken(event.node)
        for column, child in zip(event.columns, event.children, strict=True):
            self._add(child, self._with(region, column, IN))
            region = self._with(region, column, OUT)
        self._add(event.rest, region)

    def _close(self, event: Discarded, state: SearchState) -> None:
        region = self._taken(event.node)
        self._note_closed(event.bound)
        if event.bound == math.inf and region is None:
            return
        self._same(event.node, region, event.state.tobytes())
        self._claim(region, event.proof, event.bound, event.node, state)

    def _walk(self, event: SubtreeClosed, state: SearchState) -> None:
        """A subtree a closer dealt with: the regions it closed, all by one bound, and those it left open."""
        region, min_pruned_bound = self._taken(event.node), event.result.min_pruned_bound
        self._same(event.node, region, event.result.region.state.tobytes())
        assert region is not None
        self._note_closed(min_pruned_bound)
        expansion, order = moves_of(event.result)
        kind, columns = expansion.moves & 7, (expansion.moves & ~7).astype(np.int32)
        words: list[int] = []
        for move, argument in zip(kind.tolist(), columns.tolist(), strict=True):
            witness = fmt.INFIMUM if move == LEFT_OPEN else fmt.FIT
            words += (8 * witness + fmt.USE, argument + int(_KINDS[move]))
        if expansion.curvature is not None and np.all(expansion.curvature > 0):
            self._evaluator.curvature = expansion.curvature
        open_ids = [event.open_ids[at] for at in order]
        try:
            for part, witness in regions(np.array(words, dtype=np.int32), region, self._k, self._rule):
                if witness == fmt.INFIMUM:
                    self._add(open_ids.pop(0), part)
                    continue
                if self._samples is not None and not self._samples():
                    continue
                proof: Proof | str = COUNTED if witness == BY_COUNTING else self._evaluator.closing
                self._claim(part, proof, min_pruned_bound, event.node, state)
        except (fmt.MalformedError, IndexError) as error:
            raise InvariantError(f"the subtree below node {event.node} is no tree: {error}") from None
        if open_ids:
            raise InvariantError(f"the subtree below node {event.node} lacks the open node {open_ids[0]}.")

    def _end_round(self, state: SearchState) -> None:
        if state.open_count != len(self._regions):
            raise InvariantError(
                f"{state.open_count} nodes are open in round {state.rounds}, but {len(self._regions)} are not closed."
            )
        self._look_at_closed(state)
        self.look_at_opened(state)
        if len(self._claims) >= AT_ONCE:
            self._evaluate(state)

    def _note_closed(self, bound: float) -> None:
        self._least = bound if not bound >= self._least else self._least

    def _look_at_closed(self, state: SearchState) -> None:
        """What the search makes of all it has closed is no more than that."""
        if not state.min_pruned_bound <= self._least:
            raise InvariantError(
                f"what was closed is said to be bounded by {state.min_pruned_bound!r} in round {state.rounds}, but "
                f"a part of it "
                f"is by {self._least!r} alone."
            )

    def look_at_part(self, node: Node, region: Region, state: SearchState) -> None:
        """A region that was left open in a node: it lies in it, and its bound is to be evaluated."""
        undecided = node.state == FREE
        if not np.array_equal(node.state[~undecided], region.state[~undecided]):
            raise InvariantError(f"a region left open below node {node.id} does not lie in it.")
        self._claim(region.state.tobytes(), region.proof, region.bound, node.id, state)

    def look_at_fixings(self, node: Node, fixings: Sequence[Fixing], state: SearchState) -> bytes | None:
        """What fixing columns of a node has closed, whose bounds are to be evaluated; the region that is left."""
        return self._after_fixings(node.state.tobytes(), node.id, fixings, state)

    def _after_fixings(
        self, region: bytes | None, node: int, fixings: Sequence[Fixing], state: SearchState
    ) -> bytes | None:
        for fixing in fixings:
            closed = self._with(region, fixing.column, OUT if fixing.included else IN)
            self._claim(closed, fixing.proof, fixing.bound, node, state)
            region = self._with(region, fixing.column, IN if fixing.included else OUT)
        return region

    def look_at_opened(self, state: SearchState) -> None:
        """The nodes opened since the last time: they are what the decisions made them; bounds are to be evaluated."""
        opened, state.opened = state.opened or [], []
        for node in chain.from_iterable((entry,) if isinstance(entry, Node) else entry for entry in opened):
            if node.id in self._regions:
                self._same(node.id, self._regions[node.id], node.state.tobytes())
                self._claim(self._regions[node.id], node.proof, node.bound, node.id, state)

    def _end(self, nodes: Sequence[Node], state: SearchState) -> None:
        state.opened = None
        self._look_at_closed(state)
        self._evaluate(state)
        ids = [node.id for node in nodes]
        if len(ids) != len(self._regions) or set(ids) != set(self._regions):
            raise InvariantError(f"{len(ids)} nodes are open at the end, but {len(self._regions)} are not closed.")

    def _claim(self, region: bytes | None, proof: Proof | str, bound: float, node: int, state: SearchState) -> None:
        """Note a bound to be evaluated; regions without models have any bound, and no objective is below 0."""
        if isinstance(proof, ListedPoints):
            raise UnsupportedError(
                "a search that lists models cannot be rechecked; leave recheck out, and check its proof."
            )
        if region is not None and not bound <= 0.0:
            self._claims.append(Claim(region, proof, bound, node, state.rounds))

    def _evaluate(self, state: SearchState) -> None:
        margins = [self.margin(claim.bound) for claim in self._claims]
        wrong = self._evaluator.short(self._claims, margins, state.valid_for != "")
        if wrong is not None:
            claim, bound = wrong
            raise InvariantError(
                f"a bound of {claim.bound!r} was committed for node {claim.node} in round {claim.round}, but what is "
                f"said to prove it ({type(claim.proof).__name__}) proves {bound!r}."
            )
        self.bounds += len(self._claims)
        self._claims = []

    def margin(self, bound: float) -> float:
        """By how much a bound may exceed that of a checker with another rounding: as much as proofs claim less."""
        margin = CLAIM_MARGIN * bound + self._margin
        return margin + (64 * self._size * UNIT * math.sqrt(bound * self._null) if self._css else 0.0)

    # --- regions ---

    def _implied(self, state: bytes, changed: Iterable[int]) -> bytes | None:
        return state if self._rule is None else self._rule(state, changed)

    def _with(self, region: bytes | None, column: int, decision: int) -> bytes | None:
        if region is None or region[column] != FREE:
            if region is None or region[column] == decision:
                return region
            return None
        return self._implied(region[:column] + bytes([decision]) + region[column + 1 :], [column])

    def _add(self, node: int, region: bytes | None) -> None:
        if node in self._regions:
            raise InvariantError(f"node {node} is there twice.")
        self._regions[node] = region

    def _known(self, node: int) -> bytes | None:
        if node not in self._regions:
            raise InvariantError(f"node {node} is spoken of, but was closed before, or never opened.")
        return self._regions[node]

    def _taken(self, node: int) -> bytes | None:
        region = self._known(node)
        del self._regions[node]
        return region

    def _same(self, node: int, mine: bytes | None, theirs: bytes) -> None:
        if mine != theirs:
            raise InvariantError(f"node {node} is another region than the decisions that led to it make it.")
