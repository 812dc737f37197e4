"""A short search with the curvature of the ridge alone, before half a second goes into that of several hundred columns.

With a strong signal and a ridge to match, the perspective bound of the ridge closes the tree in tens of nodes. Whether
it does shows soon: in a tree that closes, the open nodes are few compared with the nodes bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from exactsel.curvature import affordable
from exactsel.problem import Problem
from exactsel.search.engine import Limits, search
from exactsel.search.events import Event, Finished, Started
from exactsel.search.expand import Expander
from exactsel.search.state import SearchState
from exactsel.search.subtrees import MOST_COLUMNS
from exactsel.search.watch import Watch
from exactsel.settings import Settings
from exactsel.subset import SubsetProblem

FIRST, MOST = 16, 128
"""Nodes after which the trial is given up unless it goes well, and after which it is given up at all."""

FEW_OPEN = 0.6
"""Open nodes, as a part of the nodes bounded, up to which it goes well (measured: .3 and .55 where the tree then closed
in 27 and 65 nodes, .95 and more where it would have taken hundreds or thousands)."""


def wants_trial(problem: SubsetProblem, settings: Settings) -> bool:
    """Whether curvature is costly here, and the default search wanted.

    With fewer columns it costs little, and subtrees are walked with it; with more only a cheap one is made.
    """
    default = settings.subtrees and settings.bound == "auto" and settings.tree == "binary"
    if not default or not isinstance(problem, Problem) or not problem.is_quadratic or problem.lam == 0:
        return False
    return problem.d > MOST_COLUMNS and affordable(problem.d, settings.time_limit) == "balanced"


def try_ridge(state: SearchState, expander: Expander, limits: Limits, watch: Watch) -> Iterator[Event]:
    """Search until that is done, given up, or stopped; whoever goes on from ``state`` says that it is finished."""
    for most in (FIRST, MOST):
        if most > FIRST and len(state.frontier) > FEW_OPEN * state.nodes:
            return
        allowed = most if limits.node_limit is None else min(most, limits.node_limit)
        for event in search(state, expander, replace(limits, node_limit=allowed), watch):
            if not isinstance(event, Finished) and (most == FIRST or not isinstance(event, Started)):
                yield event
