"""Good models near those known: columns dropped, added and exchanged, the promising ones fitted.

Which are promising is estimated: at the best coefficients of a model the loss is nearly its quadratic Taylor
polynomial, whose least value on any other set of columns takes a small linear system and no pass over the rows.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from exactsel.kernels.refit import gram_objectives
from exactsel.problem.regression import Problem
from exactsel.problem.rows import Rows
from exactsel.studies.best_search import AcrossSizes, meets
from exactsel.types import FloatArray, IntArray

GROWING = 4
"""Times that neighbours of the best models are looked at."""

MOST_NEIGHBOURS = 20_000
"""Neighbours looked at in all."""

FITTED = 5
"""Neighbours of a model that are fitted, beside as many as models are asked for."""

Sets = list[tuple[int, ...]]


def grow(across: AcrossSizes, top: int) -> None:
    """Look for as many good models as are asked for, and note them."""
    seen: set[tuple[int, ...]] = set()
    looked_at = 0
    for _ in range(GROWING):
        ranked = [model.support for model in across.ranked()[:top] if model.support not in seen]
        before = nth_best(across, top)
        for support in ranked:
            seen.add(support)
            near = [each for each in _neighbours(across, support) if each not in across.models]
            looked_at += len(near)
            if across.over or looked_at > MOST_NEIGHBOURS:
                return
            _take(across, _promising(across, support, near, FITTED + top), top)
        if not nth_best(across, top) < before:
            return


def backward(across: AcrossSizes) -> None:
    """Note a model of each size: from all columns on, the one without which the least is lost is left out."""
    problem, units = across.problem, across.problem.units
    statement = across.statement
    support = tuple(j for j in range(units.d) if j not in units.must_not)
    while not across.over:
        if len(support) in across.places and meets(units, support):
            across.note(support, statement.upper(across.places[len(support)].problem.fit(support)))
        near = [tuple(i for i in support if i != j) for j in support if j not in units.must_have]
        if len(support) <= min(across.sizes) or not near:
            return
        estimated = estimates(problem, support, {len(support) - 1: near})[len(support) - 1]
        support = near[int(np.argmin(estimated))]


def nth_best(across: AcrossSizes, top: int) -> float:
    """The criterion of the n-th best model met; inf where there are fewer."""
    values = sorted(across.value(support) for support in across.models)
    return values[top - 1] if len(values) >= top else np.inf


def _promising(across: AcrossSizes, support: tuple[int, ...], near: Sets, count: int) -> Sets:
    """Those neighbours of a model whose criterion is likely to be small; all where that would save nothing."""
    if across.problem.is_quadratic or len(near) <= count:
        return near
    by_size = _of_sizes(near)
    estimated = estimates(across.problem, support, by_size)
    each = [
        (across.criterion.value(max(value, 0.0), size), chosen)
        for size, sets in by_size.items()
        for value, chosen in zip(estimated[size].tolist(), sets, strict=True)
    ]
    return [chosen for _, chosen in sorted(each)[:count]]


def _take(across: AcrossSizes, supports: Iterable[tuple[int, ...]], top: int) -> None:
    """Note those of these models that are among the best so far."""
    statement = across.statement
    for size, sets in _of_sizes(supports).items():
        problem = across.places[size].problem
        quick, threshold = problem.objectives(_array(sets, size), across.threads), nth_best(across, top)
        for row in np.argsort(quick, kind="stable")[:top].tolist():
            if across.criterion.value(max(quick[row], 0.0), size) <= threshold:
                across.note(sets[row], statement.upper(problem.fit(sets[row])))


def _neighbours(across: AcrossSizes, support: tuple[int, ...]) -> Sets:
    """The sets of a size that counts which differ in one column, or in one for another, and meet the demands."""
    units, inside = across.problem.units, set(support)
    free = [j for j in range(units.d) if j not in inside and j not in units.must_not]
    drop = [inside - {j} for j in support if j not in units.must_have]
    near = [*drop, *(inside | {j} for j in free), *(less | {j} for less in drop for j in free)]
    sets = [tuple(sorted(each)) for each in near]
    return [each for each in sets if len(each) in across.sizes and meets(units, each)]


def estimates(problem: Problem, support: tuple[int, ...], by_size: dict[int, Sets]) -> dict[int, FloatArray]:
    """What models on other sets of columns cost, by the Taylor polynomial at the best model on ``support``.

    inf where the polynomial has no least value.
    """
    objective, found = problem.objective, {}
    with np.errstate(over="ignore", invalid="ignore"), Rows(objective) as rows:
        z = rows.predictions(rows.model(problem.replace(k=len(support)).fit(support).coef, objective))
        values, slopes, bends = rows.at(z)
        H, h = rows.gram(bends), rows.products(bends * z - slopes)
        constant = float(np.sum(values - slopes * z + 0.5 * bends * z * z))
    always = np.arange(problem.d, len(h))
    for size, sets in by_size.items():
        columns = np.hstack([_array(sets, size), np.broadcast_to(always, (len(sets), len(always)))])
        made = np.empty(len(sets))
        gram_objectives(H, h, constant, 0.0, np.ascontiguousarray(columns), made)
        found[size] = np.where(np.isfinite(made), made, np.inf)
    return found


def _of_sizes(supports: Iterable[tuple[int, ...]]) -> dict[int, Sets]:
    by_size: dict[int, Sets] = {}
    for support in supports:
        by_size.setdefault(len(support), []).append(support)
    return by_size


def _array(sets: Sets, size: int) -> IntArray:
    return np.array(sets, dtype=np.int64).reshape(len(sets), size)
