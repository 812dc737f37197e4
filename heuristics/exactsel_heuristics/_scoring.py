"""Shared by the heuristics: rank columns, evaluate many supports, and score additions by the gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from exactsel.problem.capabilities import QUADRATIC_LOSS
from exactsel.types import FloatArray, IntArray
from exactsel_heuristics._limits import within

if TYPE_CHECKING:
    from exactsel.problem.regression import Problem


BATCH_WORK = 2e8
"""Rough number of floating-point operations between two questions whether to stop (about a tenth of a second)."""

IMPROVEMENT = 1e-12
"""Times abs(P(0)): a decrease of the objective that is no more than this counts as rounding."""


def largest(scores: FloatArray, count: int) -> IntArray:
    """The ``count`` columns of largest score (d,), ascending; among equal scores the lower column wins."""
    return np.sort(np.argsort(-scores, kind="stable")[:count])


def smallest_decrease(problem: Problem) -> float:
    """The least decrease of the objective that counts as an improvement."""
    return IMPROVEMENT * problem.objective.at_zero


def smoothness(problem: Problem) -> float:
    """About a Lipschitz constant of the gradient of L in the predictions, for any row weights."""
    objective = problem.objective
    return float(objective.steepness * (1.0 if objective.weights is None else objective.weights.max()))


def guaranteed_decrease(problem: Problem, gradient: FloatArray) -> FloatArray:
    """What changing one coefficient alone is sure to gain (d,), g_j^2 / (2 (smoothness ||a_j||^2 + lam)).

    By the descent lemma a lower bound on the decrease, from the gradient of P (d,); 0 for a column that is zero when
    lam = 0. Within limits a coefficient that is zero goes as far as they let it.
    """
    objective = problem.objective
    curvature = smoothness(problem) * objective.norms**2 + objective.lam
    if problem.coefficient_bounds is not None:
        step = within(problem, -np.divide(gradient, curvature, out=np.zeros(objective.d), where=curvature > 0.0))
        gained: FloatArray = -step * (gradient + 0.5 * curvature * step)
        return gained
    return np.divide(gradient**2, 2.0 * curvature, out=np.zeros(objective.d), where=curvature > 0.0)


def steepest_columns(problem: Problem) -> IntArray:
    """The k columns that gain most alone, ascending: the answer of a method that was stopped before it had one."""
    gradient = problem.gradient(np.zeros(problem.d))
    return largest(guaranteed_decrease(problem, gradient), problem.k)


def padded(supports: Sequence[Sequence[int]], width: int) -> IntArray:
    """Supports as the rows of one array (len(supports), width), filled up with -1."""
    rows = np.full((len(supports), width), -1, dtype=np.int64)
    for row, support in zip(rows, supports, strict=True):
        row[: len(support)] = support
    return rows


def evaluate(problem: Problem, supports: IntArray, should_stop: Callable[[], bool]) -> tuple[FloatArray, int]:
    """Objectives (m,) of many supports (m, width), padded with -1, in batches; and how many were evaluated.

    inf where columns are numerically dependent, and for what was not reached: ``should_stop`` is called before each
    batch but the first.
    """
    values = np.full(len(supports), np.inf)
    size = _batch_size(problem, supports.shape[1])
    done = 0
    while done < len(supports) and not (done and should_stop()):
        batch = problem.objectives(supports[done : done + size])
        values[done : done + size] = np.where(np.isnan(batch), np.inf, batch)
        done = min(done + size, len(supports))
    return values, done


def _batch_size(problem: Problem, width: int) -> int:
    """Supports per batch such that a batch takes about :data:`BATCH_WORK` operations."""
    # About ten Newton steps per refit, each forming a weighted Gram matrix from the data.
    work = width**3 + 1 if problem.has(QUADRATIC_LOSS) else 10 * problem.n * (width + 1) ** 2
    return int(np.clip(BATCH_WORK / work, 16, 4096))


def perturbed(support: tuple[int, ...], pool: IntArray, k: int, rng: np.random.Generator) -> tuple[int, ...]:
    """The support with two of its k columns or more, up to half, replaced by random ones of the ``pool``."""
    size = min(k, pool.size)
    replaced = int(rng.integers(min(2, size), max(min(2, size), size // 2) + 1))
    kept = rng.permutation(np.array(support, dtype=np.int64))[: max(0, k - replaced)]
    included = np.zeros(1 + max((*support, int(pool.max(initial=0)))), dtype=np.bool_)
    included[list(support)] = True
    others = pool[~included[pool]]
    drawn = rng.choice(others, min(k - kept.size, others.size), replace=False)
    return tuple(np.concatenate([kept, drawn]).tolist())
