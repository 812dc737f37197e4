"""Weighted A* for column subset selection (Arai, Maung, Xu and Schweitzer 2016), which the paper compares with."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from exactsel.errors import UnsupportedError
from exactsel.problem.column_subset import ColumnSubsetProblem
from exactsel.types import FloatArray
from exactsel_heuristics.base import Context, Proposal

NEGLIGIBLE = 1e-12
"""Times the largest squared length of a column: what is left of a column that the selection spans."""


LIMIT = 5_000


@dataclass(frozen=True)
class WeightedAStar:
    """Best-first search over the graph of selections; the first selection of k columns that is taken is the answer.

    A selection S has the error g(S); h(S) is the sum of the k - |S| largest eigenvalues of the Gram matrix of what S
    leaves over, and f(S) = g(S) - h(S), so that no selection of k columns that contains S has a smaller error than
    f(S). The selection of smallest f + weight h is taken next, and every column is added to it in turn. With weight 0
    this is A*, and the answer is optimal; else its error is at most weight h(no column) above the optimum. The paper
    has WA*-b with the weight 0.5; its text does not say what stands in the place of h there.
    """

    weight: float = 0.5
    limit: int = LIMIT
    """Keys after which the search is given up."""

    def run(self, problem: ColumnSubsetProblem, context: Context) -> Proposal:
        """Search; the seed of the context changes nothing.

        Raises
        ------
        UnsupportedError
            When ``limit`` keys have been computed and no selection of k columns has been taken.
        """
        # Gram matrices are all that is asked for: the triangle of A has those of A, and no more rows than columns.
        A, k = np.linalg.qr(problem.A, mode="r"), problem.k
        spanned = NEGLIGIBLE * float(np.max(np.einsum("ij,ij->j", A, A), initial=0.0))
        fringe: list[tuple[float, int, tuple[int, ...], bool]] = [(0.0, 0, (), True)]
        known: set[tuple[int, ...]] = {()}
        evaluations = 0
        while True:
            _, number, selection, exact = heapq.heappop(fringe)
            rest = remainder(A, selection)
            gram = rest.T @ rest
            lengths, left = np.diagonal(gram), k - len(selection)
            if not exact:
                # It comes before the bounds of all others; does it still with its own key?
                evaluations += 1
                if evaluations > self.limit:
                    raise UnsupportedError(
                        f"WA* is left out at k = {k}: no selection of k columns came first in {self.limit:,} keys."
                    )
                key = float(lengths.sum()) - (1.0 - self.weight) * largest(gram, left)
                heapq.heappush(fringe, (key, number, selection, True))
                continue
            useful = np.flatnonzero(lengths > spanned)
            if left == 0 or not useful.size:
                return Proposal.of(selection, evaluations)
            most = largest(gram, left - 1)
            for j in useful:
                child = tuple(sorted((*selection, int(j))))
                if child not in known:
                    # What a column takes away makes no eigenvalue larger, so this is no larger than the child's key.
                    error = float(lengths.sum() - gram[j] @ gram[j] / lengths[j])
                    bound = error - (1.0 - self.weight) * most
                    # Of equal ones the younger is taken first: it is no less deep.
                    heapq.heappush(fringe, (bound, -len(known), child, False))
                    known.add(child)


def largest(gram: FloatArray, count: int) -> float:
    """The sum of the largest eigenvalues."""
    return float(np.linalg.eigvalsh(gram)[::-1][:count].clip(min=0.0).sum())


def remainder(A: FloatArray, selection: tuple[int, ...]) -> FloatArray:
    """A less its projection onto the selected columns."""
    if not selection:
        return A
    Q = np.linalg.qr(A[:, list(selection)])[0]
    rest: FloatArray = A - Q @ (Q.T @ A)
    return rest
