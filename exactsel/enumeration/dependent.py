"""Walk whole subtrees where columns depend on each other and lam = 0 (see kernels/subtree_dependent.py).

The walk is done on columns nearby that fulfil the relations exactly. For a model with abs(x_j) ||a_j|| <= R ||y|| the
residual is off by at most R ||y|| times the distances of its columns, so bounds speak of such models only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from exactsel.algebra.column_dependencies import IntegerDependencies, basis_of, find_relations
from exactsel.bounds.base import BoundOptions
from exactsel.enumeration.base import EnumerationResult, SubtreeSolver
from exactsel.enumeration.closed_form import walk_result
from exactsel.kernels.dependent_basis import Start
from exactsel.kernels.dependent_value import QuadraticData
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.kernels.subtree_dependent import walk_dependent
from exactsel.kernels.subtree_record import STOPPED, SubtreeLimits, empty_walk
from exactsel.problem.capabilities import CLOSED_FORM
from exactsel.problem.regression import BOUNDED_MODEL_RADIUS, Problem
from exactsel.types import FloatArray, StateArray

LARGEST = 400
"""With more columns than this a node takes too long for this method to pay."""

TRUSTED_CONDITION = 1e8
"""Largest ||G|| trace(K) at which downdates are trusted to give drop costs to a millionth."""

SHARE_OF_TOLERANCE = 0.25
"""What is given up for rounding may be this part of the tolerance ..."""

NULL_SHARE = 1e-2
"""... and is judged on this part of the empty model's objective where the incumbent's is smaller ..."""

ALWAYS_ALLOWED = 1e-10
"""... of which it may be this part in any case."""

ROUNDING = 2e-16
"""Times the columns plus the root of the rows: what an entry of a Gram matrix of unit columns is taken to be off by."""

ROOM = 10.0
"""How much the trace of K must be able to grow through exchanges of columns."""


@dataclass(frozen=True)
class _Start:
    start: Start
    slots: int
    trusted: float


class DependentEnumeration(SubtreeSolver):
    """Bound to one problem; a pure function of what :meth:`explore` is given."""

    curvature = None
    """There is none where columns are dependent."""

    valid_for = f"models with |x_j| ||a_j|| <= {BOUNDED_MODEL_RADIUS:g} ||y|| (lam = 0 and dependent features)"

    def __init__(self, problem: Problem, relations: IntegerDependencies, options: BoundOptions) -> None:
        self.problem = problem
        self._options = options
        self._relations = relations
        lengths = np.linalg.norm(problem.AT, axis=1)
        lengths[lengths == 0.0] = 1.0
        self._unit: FloatArray = problem.reduced[0] / lengths
        gram = problem.gram
        G = gram.G / np.outer(lengths, lengths)
        self._data = QuadraticData(G, gram.b / lengths, gram.constant)
        self._unit_rounding = ROUNDING * (problem.d + problem.n**0.5)
        self._largest = float(np.linalg.eigvalsh(G)[-1])
        farthest = np.sort(relations.distance)[::-1][: problem.k].sum()
        # The lengths in the scope are computed ones.
        self._away = 1.001 * BOUNDED_MODEL_RADIUS * float(np.linalg.norm(problem.y)) * float(farthest)

    @staticmethod
    def of(problem: Problem, options: BoundOptions) -> DependentEnumeration | None:
        """The walker for a problem; None where there is nothing to gain or no exact relation."""
        if problem.lam > 0 or not problem.has(CLOSED_FORM) or problem.k == 0 or problem.d > LARGEST:
            return None
        if "relations" not in problem.shared:
            problem.shared["relations"] = find_relations(problem.AT, problem.y)
        relations = problem.shared["relations"]
        if relations is None or not 0 < relations.coordinates.shape[0] < problem.d:
            return None
        return DependentEnumeration(problem, relations, options)

    def explore(
        self, states: StateArray, upper: float, tolerance: float, budget: int, work: float = math.inf,
        adopts: bool = True,
    ) -> list[EnumerationResult | None] | None:  # fmt: skip
        """As :meth:`exactsel.enumeration.base.SubtreeSolver.explore`, one node after the other."""
        columns = max(1, int(np.count_nonzero(states, axis=1).max(initial=0)))
        budget = int(min(budget, work / columns**2))
        walk = empty_walk(len(states), self.problem.d, self.problem.k, budget)
        results: list[EnumerationResult | None] = []
        for row, state in enumerate(states):
            begin = self._start(state, upper, tolerance)
            if begin is None:
                results.append(None)
                continue
            walk_dependent(
                self._data, self._relations.scale, begin.slots, begin.start,
                SubtreeLimits(upper, tolerance, budget, work, adopts), begin.trusted, self._unit_rounding, self._away,
                self._options.stop, walk, row,
            )  # fmt: skip
            if walk.status[row] == STOPPED:
                return None
            walk.work[row] = float(walk.nodes[row] + 4 * columns) * columns**2
            results.append(walk_result(walk, row))
        return results

    def _start(self, state: StateArray, upper: float, tolerance: float) -> _Start | None:
        """The region's first fit; None where rounding would cost too much of the tolerance."""
        included, candidates = np.flatnonzero(state == IN), np.flatnonzero(state == FREE)
        basis = basis_of(self._relations, self._unit, included, candidates)
        if basis is None:
            return None
        columns = np.concatenate([basis.included, basis.further])
        H, b = self._data.H[np.ix_(columns, columns)], self._data.b[columns]
        K = np.linalg.inv(H)
        K = 0.5 * (K + K.T)
        x = K @ b
        x = x + K @ (b - H @ x)
        constant = self._data.constant
        allowed = max(
            SHARE_OF_TOLERANCE * tolerance, ALWAYS_ALLOWED * max(NULL_SHARE * constant, min(abs(upper), constant))
        )
        missing = self._away * float(np.sqrt(2.0 * min(upper, constant)))
        trusted = TRUSTED_CONDITION / self._largest
        if not (missing <= allowed and ROOM * float(np.trace(K)) <= trusted):
            return None
        base = state.copy()
        base[candidates] = OUT
        base[basis.included] = OUT
        start = Start(
            base, columns, basis.included.size, basis.others, basis.T, basis.denominator, K, x,
            constant - 0.5 * float(b @ x),
        )  # fmt: skip
        slots = self.problem.k - (included.size - basis.included.size)
        return _Start(start, slots, trusted)
