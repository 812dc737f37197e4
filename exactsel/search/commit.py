"""Commit what a round returned: the state takes it over, and an event says so for each thing taken over.

Commits happen in one place and in one order, for any executor of the nodes. The tree hash records them here, and equal
hashes mean equal searches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from exactsel.bounds.witness import ListedPoints
from exactsel.enumeration.native import NativeTree
from exactsel.kernels.node import IN, OUT
from exactsel.nodes.left_open import LeftBelow
from exactsel.nodes.node import Node
from exactsel.nodes.regions import FailedTrials, Fixings, NodeDivided, Outcome, Region, Round, SubtreeResult
from exactsel.nodes.subtree import moves_of
from exactsel.problem.fit import Fit
from exactsel.problem.interface import SubsetProblem
from exactsel.search.details import events_of
from exactsel.search.events import (
    Bounded,
    Discarded,
    Divided,
    Event,
    Fixed,
    IncumbentFound,
    SubtreeClosed,
)
from exactsel.search.expand import Expander
from exactsel.search.invariants import check_incumbent
from exactsel.search.state import SearchState

OPENED_AGAIN = ("inherited", "bound", "incumbent")
"""Why regions are closed that a finer tolerance may open again: their bound reached the cut-off."""


def commit_models(state: SearchState, finished: Round, expander: Expander) -> Iterator[Event]:
    """Take over better models, and discard the open nodes they overtake."""
    state.valid_for = finished.valid_for or state.valid_for
    if finished.counted is not None:
        state.counted, state.proven = finished.counted, max(state.proven, finished.counted.bound)
    state.seconds.add(finished.seconds)
    failed = finished.failed_trials
    if failed != FailedTrials():
        state.nodes += failed.nodes
        state.bound_calls += failed.calls
        state.iterations += failed.iterations
        state.walks.wasted += float(failed.calls + failed.iterations) * expander.problem.d**2
        state.record(b"tried", failed.nodes, failed.calls, failed.iterations)
    if finished.rounded:
        state.portions.hand_on([finished.rounded], finished.relaxed)
    for fit in finished.models:
        yield from commit_model(state, fit, "search")
    if finished.models:
        yield from prune(state, expander)


def commit_model(state: SearchState, fit: Fit, source: str) -> Iterator[Event]:
    """Take over a model if it is better."""
    if fit.value < state.value:
        state.take_over(fit, source)
        check_incumbent(state)
        state.record(b"incumbent", *fit.support, values=(fit.value,))
        yield IncumbentFound(state.upper, fit.support, fit.coef, state.source)


def prune(state: SearchState, expander: Expander) -> Iterator[Event]:
    """Discard the open nodes the incumbent overtakes."""
    for node in state.prune(expander.cutoff(state.value)):
        yield _discard(state, node.id, Region(node.state, node.bound, node.proof, closed="incumbent"))


def commit(state: SearchState, outcome: Outcome, expander: Expander, details: bool) -> Iterator[Event]:
    """Commit the outcome of one node; with ``details`` also the kernels' steps one by one."""
    node, region = outcome.node, outcome.region
    yield from _commit_visits(state, node.id, region)
    if region.fixings:
        yield from _commit_fixings(state, node, region.fixings, expander.problem)
    if expander.counts_work:
        _note_work(state, outcome, expander)
    if isinstance(outcome, SubtreeResult):
        yield from _commit_subtree(state, outcome, expander, details)
    elif isinstance(outcome, NodeDivided):
        yield from _commit_divided(state, outcome)
    else:
        yield from _settle(state, node.id, region, node.parent, node.depth)


def _commit_fixings(state: SearchState, node: Node, fixings: Fixings, problem: SubsetProblem) -> Iterator[Event]:
    """There may be one for each column of the data in every node: they are committed together."""
    state.record_fixings(node.id, fixings)
    below = fixings.bounds < state.value
    if not below.all():
        state.drop(float(fixings.bounds[~below].min()), None)
    for i in np.flatnonzero(below).tolist():
        state.drop(float(fixings.bounds[i]), partial(closed_child, node, fixings, i, problem))
    yield Fixed(node.id, fixings)


def _commit_divided(state: SearchState, outcome: NodeDivided) -> Iterator[Event]:
    node, regions = outcome.node, (*outcome.children, outcome.rest)
    ids = _new_ids(state, len(regions))
    state.depth = max(state.depth, node.depth + 1)
    state.record(b"divided", node.id, *outcome.columns)
    yield Divided(node.id, outcome.columns, tuple(ids[:-1]), ids[-1])
    for number, region in zip(ids, regions, strict=True):
        yield from _commit_visits(state, number, region)
        yield from _settle(state, number, region, node.id, node.depth + 1)


def _commit_subtree(state: SearchState, result: SubtreeResult, expander: Expander, details: bool) -> Iterator[Event]:
    """Commit what a closer made of a subtree: what it closed, and the regions it left open."""
    node, children, first = result.node, result.children, state.next_id - 1
    if expander.plug_in is not None and result.closer == expander.plug_in:
        moves_of(result)  # refuses children that do not divide the region
    numbers = range(1, len(children) + 1) if result.numbers is None else result.numbers
    used = result.numbered if result.numbers is not None else len(children)
    ids = tuple(first + number if number else node.id for number in numbers)
    state.valid_for = state.valid_for or result.valid_for
    state.next_id += used
    state.nodes += result.nodes
    state.bound_calls += result.bound_calls
    state.iterations += result.iterations
    state.drop(result.min_pruned_bound, lambda: replace(node, state=result.region.state, warm=None))
    state.depth = max(state.depth, node.depth + (1 if used else 0))
    state.discarded += result.closed
    extra = () if result.numbers is None else (result.iterations, *ids)
    bounds = [region.bound for region in children] if result.bounds is None else result.bounds
    state.record(result.closer.encode(), node.id, result.nodes, *extra, values=(result.min_pruned_bound, *bounds))
    expansion = result.expansion if details else None
    if isinstance(expansion, NativeTree):
        yield from events_of(expansion, node, lambda number: first + number if number else node.id, expander.problem)
    else:
        yield SubtreeClosed(node.id, ids, first, result)
    if isinstance(children, LeftBelow):
        yield from _wait_all(state, ids, children)
    else:
        yield from _settle_all(state, ids, children, node)


def _note_work(state: SearchState, outcome: Outcome, expander: Expander) -> None:
    """Enter what bound calls and walks have cost, from which the search counts_work where walks pay."""
    region, k, bounded = outcome.region, expander.problem.k, int(np.count_nonzero(outcome.node.state))
    for visit in region.visits:
        state.walks.note_bound(expander.bound_work(bounded, visit.iterations))
    slots, columns = k - int(np.count_nonzero(region.state == IN)), int(np.count_nonzero(region.state))
    if isinstance(outcome, SubtreeResult):
        if outcome.fraction is not None:
            state.walks.note_count(outcome.work or 0.0)
        elif outcome.work is not None:
            state.walks.note_walk(slots, columns, outcome.work, outcome.finished)
    elif outcome.unused_walk is not None:
        state.walks.note_walk(slots, columns, outcome.unused_work, finished=False)
        state.nodes += outcome.unused_walk
        state.record(b"in vain", outcome.node.id, outcome.unused_walk)
    elif region.closed is None:
        state.walks.note_no_walk(slots)


def _commit_visits(state: SearchState, number: int, region: Region) -> Iterator[Event]:
    if region.visits:
        state.nodes += 1
    for visit in region.visits:
        state.bound_calls += 1
        state.iterations += visit.iterations
        state.record(b"bounded", number, visit.iterations, values=(visit.bound,))
        yield Bounded(number, visit.bound, visit.solved, visit.iterations)


def _settle_all(state: SearchState, ids: Sequence[int], regions: Sequence[Region], parent: Node) -> Iterator[Event]:
    for number, region in zip(ids, regions, strict=True):
        yield from _settle(state, number, region, parent.id, parent.depth + 1)


def _wait_all(state: SearchState, ids: Sequence[int], below: LeftBelow) -> Iterator[Event]:
    """As :func:`_settle_all`, without making nodes that may never be taken."""
    for at in np.flatnonzero(below.overtaken).tolist():
        yield _discard(state, ids[at], below[at])
    state.push_table(below.opened(ids))


def _settle(state: SearchState, number: int, region: Region, parent: int, depth: int) -> Iterator[Event]:
    """Discard a region that is closed, and open a node of one that is not."""
    if region.closed is not None:
        yield _discard(state, number, region)
        return
    state.push(
        Node(
            number, parent, depth, region.state, region.bound, region.proof, region.warm, region.tight, region.estimate
        )
    )


def closed_child(node: Node, fixings: Fixings, i: int, problem: SubsetProblem) -> Node | None:
    """The child that a fixing closes, after those before it; None where it holds no model."""
    state, last = node.state.copy(), fixings[i]
    state[fixings.columns[:i]] = np.where(fixings.included[:i], IN, OUT)
    state[last.column] = OUT if last.included else IN
    implied = problem.units.implied(state, problem.k)
    if implied is None:
        return None
    return replace(node, state=implied, bound=last.bound, proof=last.proof, warm=None, tight=False)


def _discard(state: SearchState, number: int, region: Region) -> Discarded:
    again = region.closed in OPENED_AGAIN and not isinstance(region.proof, ListedPoints)
    make_node = (lambda: Node(number, -1, 0, region.state, region.bound, region.proof)) if again else None
    state.drop(region.bound, make_node)
    state.discarded += 1
    state.record(b"discarded", number, values=(region.bound,))
    return Discarded(number, region.state, region.closed or "", region.bound, region.proof)


def _new_ids(state: SearchState, count: int) -> range:
    ids = range(state.next_id, state.next_id + count)
    state.next_id += count
    return ids
