"""Weighted A* for column subset selection (Arai, Maung, Xu and Schweitzer 2016), which the paper compares with."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from exactsel.problem.column_subset import ColumnSubsetProblem
from exactsel.types import FloatArray
from exactsel_heuristics.base import Context, Proposal

AT_ONCE = 64
"""Children whose eigenvalues are computed in one call."""

NEGLIGIBLE = 1e-12
"""Times the largest squared length of a column: what is left of a column that the selection spans."""


@dataclass(frozen=True)
class WeightedAStar:
    """Best-first search over the graph of selections; the first selection of k columns that is taken is the answer.

    A selection S has the error g(S) and the bound f(S), which is g(S) less the k - |S| largest eigenvalues of the Gram
    matrix of what S leaves over: no selection of k columns that contains S has a smaller error. The selection of
    smallest f + weight g is taken next, and every column is added to it in turn. With weight 0 this is A*, and the
    answer is optimal; else its error is at most (optimum + weight ||A||²) / (1 + weight). The paper has WA*-b with the
    weight 0.5; its text does not say what stands in the place of g there.
    """

    weight: float = 0.5

    def run(self, problem: ColumnSubsetProblem, context: Context) -> Proposal:
        """Search; the seed of the context changes nothing."""
        A, k = problem.A, problem.k
        fringe: list[tuple[float, int, tuple[int, ...]]] = [(0.0, 0, ())]
        known: set[tuple[int, ...]] = {()}
        evaluations = 0
        spanned = NEGLIGIBLE * float(np.max(np.einsum("ij,ij->j", A, A), initial=0.0))
        while True:
            selection = heapq.heappop(fringe)[-1]
            rest = remainder(A, selection)
            gram = rest.T @ rest
            useful = np.flatnonzero(np.diagonal(gram) > spanned)
            if len(selection) == k or not useful.size:
                return Proposal.of(selection, evaluations)
            children = [(j, tuple(sorted((*selection, int(j))))) for j in useful]
            fresh = [(j, child) for j, child in children if child not in known]
            left = k - len(selection) - 1
            for at in range(0, len(fresh), AT_ONCE):
                part = fresh[at : at + AT_ONCE]
                for (_, child), key in zip(part, self._keys(gram, [j for j, _ in part], left), strict=True):
                    evaluations += 1
                    # Of equal ones the younger is taken first: it is no less deep.
                    heapq.heappush(fringe, (float(key), -evaluations, child))
                    known.add(child)

    def _keys(self, gram: FloatArray, columns: list[int], left: int) -> FloatArray:
        """f + weight g of a selection with one more column: what is left of the others is projected once more."""
        grams = np.array([gram - np.outer(gram[j], gram[j]) / gram[j, j] for j in columns])
        errors = np.einsum("tii->t", grams)
        largest = np.linalg.eigvalsh(grams)[:, ::-1][:, :left].clip(min=0.0).sum(axis=1)
        keys: FloatArray = (1.0 + self.weight) * errors - largest
        return keys


def remainder(A: FloatArray, selection: tuple[int, ...]) -> FloatArray:
    """A less its projection onto the selected columns."""
    if not selection:
        return A
    Q = np.linalg.qr(A[:, list(selection)])[0]
    rest: FloatArray = A - Q @ (Q.T @ A)
    return rest
