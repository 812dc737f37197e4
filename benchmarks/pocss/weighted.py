"""Weighted A* for column subset selection (Arai, Maung, Xu and Schweitzer 2016), which the paper compares with."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
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
        while fringe:
            _, _, selection = heapq.heappop(fringe)
            children = self._children(A, k, selection, known) if len(selection) < k else iter(())
            empty = True
            for key, child in children:
                # Of equal ones the younger is taken first: it is no less deep.
                evaluations, empty = evaluations + 1, False
                known.add(child)
                heapq.heappush(fringe, (key, -evaluations, child))
            if len(selection) == k or (empty and not fringe):
                return Proposal.of(selection, evaluations)
        raise AssertionError("the fringe always holds a selection")

    def _children(
        self, A: FloatArray, k: int, selection: tuple[int, ...], known: set[tuple[int, ...]]
    ) -> Iterator[tuple[float, tuple[int, ...]]]:
        rest = remainder(A, selection)
        gram = rest.T @ rest
        left, lengths = k - len(selection) - 1, np.diagonal(gram)
        spanned = NEGLIGIBLE * float(np.max(np.einsum("ij,ij->j", A, A), initial=0.0))
        columns = [j for j in np.flatnonzero(lengths > spanned) if tuple(sorted((*selection, j))) not in known]
        for at in range(0, len(columns), AT_ONCE):
            part = columns[at : at + AT_ONCE]
            grams = np.array([gram - np.outer(gram[j], gram[j]) / lengths[j] for j in part])
            errors = np.einsum("tii->t", grams)
            largest = np.linalg.eigvalsh(grams)[:, ::-1][:, :left].clip(min=0.0).sum(axis=1)
            for j, error, gain in zip(part, errors, largest, strict=True):
                yield error - gain + self.weight * error, tuple(sorted((*selection, int(j))))


def remainder(A: FloatArray, selection: tuple[int, ...]) -> FloatArray:
    """A less its projection onto the selected columns."""
    if not selection:
        return A
    Q = np.linalg.qr(A[:, list(selection)])[0]
    rest: FloatArray = A - Q @ (Q.T @ A)
    return rest
