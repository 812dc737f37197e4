"""Two-stage column subset selection: sample columns, then pick among them by a rank-revealing factorisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from exactsel.algebra import dense
from exactsel.errors import InputError
from exactsel.types import FloatArray, IntArray
from exactsel_heuristics._projection import squared_lengths
from exactsel_heuristics._singular import SingularVectors, leading_singular_vectors
from exactsel_heuristics.base import Context, Proposal, column_subset

if TYPE_CHECKING:
    from exactsel.problem.column_subset import ColumnSubsetProblem
    from exactsel.problem.interface import SubsetProblem


@dataclass(frozen=True)
class TwoStageColumnSelection:
    """The two-stage algorithm (Boutsidis, Mahoney and Drineas 2009).

    The random stage keeps column j with probability min(1, c p_j), independently; p is half the share of the column
    in the k leading right singular vectors (its leverage), half its share in what the best approximation of rank k
    leaves over. The deterministic stage takes k of the kept columns by a QR factorisation with column pivoting of
    V_k', restricted to them and rescaled by 1 / sqrt(min(1, c p_j)).

    The source proves its bound for c of the order k log k and a rank-revealing factorisation of Pan; here c is
    2k unless given, as in the experiments of Feng, Qian and Tang (2019), and the factorisation is LAPACK's.

    Parameters
    ----------
    candidates : int, optional
        c, the expected number of columns kept by the random stage, as long as no probability reaches 1; 2k when not
        given. Fewer than k are taken as k.
    repeats : int
        Runs of both stages; the best selection is kept. The source suggests 40 to make failure unlikely.

    References
    ----------
    C. Boutsidis, M. W. Mahoney and P. Drineas, An improved approximation algorithm for the column subset selection
    problem. SODA 2009.
    """

    name: ClassVar[str] = "two-stage"
    candidates: int | None = None
    repeats: int = 1

    def __post_init__(self) -> None:
        if self.candidates is not None and self.candidates < 1:
            raise InputError(
                f"the number of candidates of 'two-stage' is {self.candidates}, but at least one column of the "
                "matrix must be sampled; give 1 or more, or leave it out for twice k."
            )
        if self.repeats < 1:
            raise InputError(f"the repeats of 'two-stage' are {self.repeats}, but it must run at least once; give 1.")

    def run(self, problem: SubsetProblem, context: Context) -> Proposal:
        """Select k columns, or as many as A has independent ones."""
        problem = column_subset(problem, self.name)
        if problem.k == 0 or context.should_stop():
            return Proposal.of((), 0)
        leading = leading_singular_vectors(problem)
        expected = max(self.candidates or 2 * problem.k, problem.k)
        keep = np.minimum(1.0, expected * sampling_distribution(problem, leading))
        rng, best, evaluations = context.rng(), Proposal.of((), 0), 0
        value, curve = problem.null_objective, []
        # What comes before takes longer than the first run, which is made in any case.
        while evaluations < self.repeats and not (evaluations and context.should_stop()):
            chosen = _pivots(leading.right, keep, _sampled(keep, leading.values.size, rng))
            reached = problem.fit(chosen).value
            evaluations += 1
            if reached < value:
                best, value = Proposal.of(chosen, evaluations), reached
                curve.append((evaluations, value))
        return Proposal.of(best.support, evaluations, curve=curve)


def sampling_distribution(problem: ColumnSubsetProblem, leading: SingularVectors) -> FloatArray:
    """The probabilities p (d,) of the random stage, which sum to 1; zeros for a zero matrix.

    Half leverage, half share in A - A_k; leverage alone where k reaches the rank of A.
    """
    leverage = squared_lengths(leading.right) / max(leading.values.size, 1)
    if leading.complete:
        return leverage
    beyond = squared_lengths(problem.objective.reduced - (leading.right * leading.values) @ leading.left)
    mixture: FloatArray = 0.5 * leverage + 0.5 * beyond / beyond.sum()
    return mixture


def _sampled(keep: FloatArray, least: int, rng: np.random.Generator) -> IntArray:
    """Columns kept with the given probabilities, ascending; the likeliest are added when fewer than ``least`` are."""
    drawn = rng.random(keep.size) < keep
    order = np.argsort(np.where(drawn, -np.inf, -keep), kind="stable")
    count = max(int(np.count_nonzero(drawn)), least)
    return np.sort(order[:count])


def _pivots(right: FloatArray, keep: FloatArray, candidates: IntArray) -> IntArray:
    """The candidates a pivoted QR factorisation of their rescaled rows of V_k takes first, ascending."""
    scaled = right[candidates] / np.sqrt(keep[candidates])[:, None]
    _, pivots = dense.qr(scaled.T, mode="r", pivoting=True, check_finite=False)
    return np.sort(candidates[pivots[: right.shape[1]]])
