"""Bounds of one tree over all sizes, as proofs for models of at most so many columns.

At every dual vector b and for every region, bound (4) less the price of k columns is no larger than bound (2) of the
models of at most k columns in that region: the r largest q_j / (2 lam) sum up to no more than the r largest
max(0, q_j / (2 lam) - lam0) and r lam0. So what the tree proves of the penalised objective, less k lam0, is proven of P
for k columns by the same points and the same divisions, up to the regions that have k columns in. What is left of those
is one set of columns, and its fit proves what it costs. Proof files need no word for prices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from exactsel.bounds.witness import InfimumPoint, ModelPoint
from exactsel.enumeration.penalised import PenalisedTree
from exactsel.enumeration.penalised_record import TreeRecord
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.nodes.node import ROOT_ID
from exactsel.nodes.regions import Fixing, Fixings
from exactsel.proofs.writer import ProofWriter
from exactsel.search.events import Discarded, Divided, Event, Finished, Fixed
from exactsel.solving.claim import established
from exactsel.studies.best_search import AcrossSizes, proof_file
from exactsel.types import StateArray


@dataclass
class TreeProofs:
    """What a tree has proven of each size."""

    across: AcrossSizes
    tree: PenalisedTree
    floors: dict[int, float]
    """What was said of each size."""

    def write(self) -> None:
        """Write the proofs of the sizes of which nothing more is proven otherwise; claim no more than these show."""
        study = self.across
        for size, floor in self.floors.items():
            lower, by = study.lower_of(size)
            if by == size and lower == floor:
                file = proof_file(study.proofs or "", size)
                study.floors[size] = self._written(size, max(0.0, floor), file)
                study.floor_proofs[size] = file

    def _written(self, size: int, floor: float, file: str) -> float:
        """Write one; the lower bound it claims."""
        study = self.across
        problem, models = study.by_size[size].problem, study.known
        support = models.best_within(size)
        fit = models.fitted(support)
        upper = models.statement.upper(fit)
        with closing(ProofWriter(problem, file)) as writer:
            for event in self._events(size, floor):
                writer(event)
            lower = writer.claim(min(floor, upper), upper, "")
            writer.finish(lower, upper, support, problem.objective.coef_as_given(fit.coef), "")
        bound = established(problem, writer.path)
        return lower if bound is None else min(lower, bound)

    def _events(self, size: int, floor: float) -> Iterator[Event]:
        tree, root = self.tree, self.tree.problem.root_state
        assert tree.record is not None
        by_root = -math.inf if tree.root_floors is None else float(tree.root_floors[size])
        if floor == 0.0 or by_root >= tree.lower - tree.price * size:
            proof = InfimumPoint() if floor == 0.0 else tree.root_proof
            yield Discarded(ROOT_ID, root, "bound", by_root, proof)
            yield Finished("", ())
        else:
            yield from events_for(tree.record, root, size, tree.price, tree.fitted)


def events_for(
    record: TreeRecord, root: StateArray, size: int, price: float, fitted: Callable[[tuple[int, ...]], ModelPoint]
) -> Iterator[Event]:  # fmt: skip
    """The events of a search for models of at most ``size`` columns, with the tree's regions and points.

    ``root`` (d,) is the first region's state, and ``fitted`` gives the point of the best model on some columns.
    """
    charged = price * size
    todo = [(ROOT_ID, root.copy())]
    while todo:
        number, state = todo.pop()
        node = record.nodes[number]
        for column, included, bound, proof in node.fixed:
            if np.count_nonzero(state == IN) == size:
                break
            yield Fixed(number, Fixings.of([Fixing(column, included, bound - charged, proof)]))
            state[column] = IN if included else OUT
        support = np.flatnonzero(state == IN)
        if support.size == size and np.any(state == FREE):
            yield Discarded(number, state, "solved", np.inf, fitted(tuple(support.tolist())))
        elif node.column < 0:
            yield Discarded(number, state, "bound", node.bound - charged, node.witness)
        else:
            child, rest = node.children
            yield Divided(number, (node.column,), (child,), rest)
            without = state.copy()
            without[node.column] = OUT
            state[node.column] = IN
            todo += [(rest, without), (child, state)]
    yield Finished("", ())
