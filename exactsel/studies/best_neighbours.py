"""Good models near those known: columns dropped, added and exchanged, the promising ones fitted.

Which are promising is estimated: at the best coefficients of a model the loss is nearly its quadratic Taylor
polynomial, whose least value on any other set of columns takes a small linear system and no pass over the rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nsmallest

import numpy as np

from exactsel.kernels.refit import gram_objectives
from exactsel.problem.boxed import with_free_coefficients
from exactsel.problem.capabilities import CLOSED_FORM
from exactsel.problem.fit import Fit
from exactsel.problem.regression import Problem
from exactsel.problem.rows import Rows
from exactsel.studies.best_search import AcrossSizes
from exactsel.studies.size_supports import meets
from exactsel.types import FloatArray, IntArray

GROWING = 30
"""Number of rounds over neighbours of the best models."""

MOST_NEIGHBOURS = 20_000
"""Neighbours evaluated in all."""

LIKELY = 1.5
"""How much further than the n-th best model a neighbour may seem to be from the model it is near to, to be fitted."""

FITTED = 5
"""Neighbours of a model that are fitted, in addition to the requested number of models."""

Sets = list[tuple[int, ...]]


def grow(study: AcrossSizes, top: int) -> None:
    """Search for the requested number of good models, and estimate their objectives."""
    seen: set[tuple[int, ...]] = set()
    looked_at = 0
    for _ in range(GROWING):
        before, best = _about(study, top)
        for value, support in best:
            if support in seen:
                continue
            seen.add(support)
            neighbours = [each for each in _neighbours(study, support) if not study.known.met(each)]
            looked_at += len(neighbours)
            if study.is_over() or looked_at > MOST_NEIGHBOURS:
                return
            _take(study, _promising(study, support, value, neighbours, top), top)
        if not _about(study, top)[0] < before:
            return


def backward(study: AcrossSizes) -> None:
    """Guess a model of each size by backward elimination.

    From all columns on, it removes the column whose loss costs the least.
    """
    problem, units = with_free_coefficients(study.problem), study.problem.units
    support = tuple(j for j in range(units.d) if j not in units.force_out)
    while not study.is_over():
        if len(support) in study.by_size and meets(units, support):
            study.known.guess(support, study.known.fitted(support).value)
        subsets = [tuple(i for i in support if i != j) for j in support if j not in units.force_in]
        if len(support) <= min(study.sizes) or not subsets:
            return
        estimated = estimates(problem, study.known.fitted(support), {len(support) - 1: subsets})[len(support) - 1]
        support = subsets[int(np.argmin(estimated))]


def _about(study: AcrossSizes, top: int) -> tuple[float, list[tuple[float, tuple[int, ...]]]]:
    """About the criterion of the n-th best model met, inf where there are fewer; and the n best, with theirs."""
    best = nsmallest(top, ((study.criterion.value(v, len(s)), s) for s, v in study.known.about.items()))
    return (best[-1][0] if len(best) == top else np.inf), best


def _promising(study: AcrossSizes, support: tuple[int, ...], value: float, neighbours: Sets, top: int) -> Sets:
    """Those neighbours of a model whose criterion is likely to be small; all where that would save nothing."""
    count, problem = FITTED + top, with_free_coefficients(study.problem)
    if problem.has(CLOSED_FORM) or len(neighbours) <= count:
        return neighbours
    most = value + LIKELY * max(0.0, _about(study, top)[0] - value)  # 0 for inf - inf
    by_size = _of_sizes(neighbours)
    estimated = estimates(problem, study.known.fitted(support), by_size)
    each = [
        (study.criterion.value(max(estimate, 0.0), size), chosen)
        for size, sets in by_size.items()
        for estimate, chosen in zip(estimated[size].tolist(), sets, strict=True)
    ]
    return [chosen for estimate, chosen in nsmallest(count, each) if estimate <= most]


def _take(study: AcrossSizes, supports: Iterable[tuple[int, ...]], top: int) -> None:
    """Guess those of these models that are among the best so far."""
    threshold = _about(study, top)[0]
    for size, sets in _of_sizes(supports).items():
        quick = study.by_size[size].problem.objectives(_array(sets, size), study.threads)
        for row in np.argsort(quick, kind="stable")[:top].tolist():
            if study.criterion.value(max(quick[row], 0.0), size) <= threshold:
                study.known.guess(sets[row], max(float(quick[row]), 0.0))


def _neighbours(study: AcrossSizes, support: tuple[int, ...]) -> Sets:
    """The sets of a size that counts which differ in one column, or in one for another, and meet the demands."""
    units, included = study.problem.units, set(support)
    free = [j for j in range(units.d) if j not in included and j not in units.force_out]
    drop = [included - {j} for j in support if j not in units.force_in]
    candidates = [*drop, *(included | {j} for j in free), *(less | {j} for less in drop for j in free)]
    sets = [tuple(sorted(each)) for each in candidates]
    return [each for each in sets if len(each) in study.sizes and meets(units, each)]


def estimates(problem: Problem, best: Fit, by_size: dict[int, Sets]) -> dict[int, FloatArray]:
    """What models on other sets of columns cost, by the Taylor polynomial at the ``best`` model on one set.

    inf where the polynomial has no least value.
    """
    objective, objectives = problem.objective, {}
    with np.errstate(over="ignore", invalid="ignore"), Rows(objective) as rows:
        z = rows.predictions(rows.model(best.coef, objective))
        values, slopes, bends = rows.at(z)
        H, h = rows.gram(bends), rows.products(bends * z - slopes)
        constant = float(np.sum(values - slopes * z + 0.5 * bends * z * z))
    always = np.arange(problem.d, len(h))
    for size, sets in by_size.items():
        columns = np.hstack([_array(sets, size), np.broadcast_to(always, (len(sets), len(always)))])
        costs = np.empty(len(sets))
        gram_objectives(H, h, constant, 0.0, np.ascontiguousarray(columns), costs)
        objectives[size] = np.where(np.isfinite(costs), costs, np.inf)
    return objectives


def _of_sizes(supports: Iterable[tuple[int, ...]]) -> dict[int, Sets]:
    by_size: dict[int, Sets] = {}
    for support in supports:
        by_size.setdefault(len(support), []).append(support)
    return by_size


def _array(sets: Sets, size: int) -> IntArray:
    return np.array(sets, dtype=np.int64).reshape(len(sets), size)
