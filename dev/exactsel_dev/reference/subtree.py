"""A subtree walked depth first in closed form (quadratic loss; selections): recompute the bounds of its regions.

The record of such a walk is a list of moves in preorder, each 8 * column + kind:

====  ==========================================================================================================
kind  meaning
====  ==========================================================================================================
0     the region is divided by the column: the part without it follows, then the part with it
1     the column is put in: the fit on the region's columns without it costs too much
2     the column is left out: with it, formula (3) at the fit on the region's columns costs too much
3     the region is closed
4     the region is left open
5     the region is closed: so is every set of its columns one by one, by its own fit
====  ==========================================================================================================

Column subset selection has no fits: eigenvalues close what is closed, and sets by their objectives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from exactsel_certificates.formula import ColumnInstance, FloatArray, Instance
from exactsel_dev.reference.bounds import curved_bound, fit_bound, least_squares
from exactsel_dev.reference.columns import eigenvalue_bound, selection_objective
from exactsel_dev.reference.hierarchy import respects

BRANCH, PUT_IN, LEFT_OUT, CLOSED, LEFT_OPEN, COUNTED = 0, 1, 2, 3, 4, 5


class Piece(NamedTuple):
    """A region met on the walk that is closed, with its recomputed bound, or left open (bound None)."""

    included: frozenset[int]
    candidates: frozenset[int]
    bound: float | None


def retrace(
    instance: Instance | ColumnInstance,
    included: frozenset[int],
    candidates: frozenset[int],
    moves: Sequence[int],
    curvature: FloatArray | None,
) -> Iterator[Piece]:
    """Every region the walk closes or leaves open; together they are the region it began with.

    Raises
    ------
    ValueError
        When the moves do not describe such a walk.
    """
    waiting = [(included, candidates)]
    for move in moves:
        column, kind = divmod(int(move), 8)
        if not waiting:
            raise ValueError("the subtree continues after its last region.")
        S, C = waiting.pop()
        if kind in (BRANCH, PUT_IN, LEFT_OUT):
            if column not in C or len(S) >= instance.k:
                raise ValueError(f"column {column} is no candidate where the subtree decides on it.")
            within, without = (S | {column}, C - {column}), (S, C - {column})
        if kind == BRANCH:
            waiting += [within, without]
        elif kind == PUT_IN:
            yield Piece(*without, region_bound(instance, *without, curvature))
            waiting.append(within)
        elif kind == LEFT_OUT:
            yield Piece(*within, _bound_within(instance, [*S, *C], *within, curvature))
            waiting.append(without)
        elif kind == CLOSED:
            yield Piece(S, C, region_bound(instance, S, C, curvature))
        elif kind == LEFT_OPEN:
            yield Piece(S, C, None)
        elif kind == COUNTED:
            yield Piece(S, C, counted_bound(instance, S, C))
        else:
            raise ValueError(f"{kind} is no kind of move.")
    if waiting:
        raise ValueError(f"the subtree ends with {len(waiting)} regions undecided.")


def region_bound(
    instance: Instance | ColumnInstance, included: frozenset[int], candidates: frozenset[int],
    curvature: FloatArray | None,
) -> float:  # fmt: skip
    """The fit on S and C, raised by formula (3); exact where one column or less is to be chosen."""
    if isinstance(instance, ColumnInstance):
        return eigenvalue_bound(instance, sorted(included), sorted(candidates))
    slots = instance.k - len(included)
    if slots == 1 and candidates:
        return min(fit_bound(instance, sorted(included | {j}), []) for j in candidates)
    fit = fit_bound(instance, sorted(included), sorted(candidates))
    if slots <= 0 or len(candidates) <= slots:
        return fit
    return max(fit, _bound_at_fit(instance, [*included, *candidates], included, candidates, curvature))


def counted_bound(instance: Instance | ColumnInstance, included: frozenset[int], candidates: frozenset[int]) -> float:
    """The smallest objective of the region's supports, each fitted on its own; inf where none is admissible."""
    slots = max(0, min(instance.k - len(included), len(candidates)))
    if isinstance(instance, ColumnInstance):
        return min(
            selection_objective(instance, [*included, *more]) for more in combinations(sorted(candidates), slots)
        )
    related = instance.hierarchy
    sizes = range(slots if related is None else 0, slots + 1)
    sets = (included | {*more} for size in sizes for more in combinations(sorted(candidates), size))
    fits = (fit_bound(instance, sorted(T), []) for T in sets if related is None or respects(related, T))
    return min(fits, default=np.inf)


def _bound_within(
    instance: Instance | ColumnInstance, columns: Sequence[int], included: frozenset[int], candidates: frozenset[int],
    curvature: FloatArray | None,
) -> float:  # fmt: skip
    """That of a region with one column of another one, over all ``columns`` of that, put in."""
    if isinstance(instance, ColumnInstance):
        return eigenvalue_bound(instance, sorted(included), sorted(candidates))
    return _bound_at_fit(instance, columns, included, candidates, curvature)


def _bound_at_fit(
    instance: Instance,
    columns: Sequence[int],
    included: frozenset[int],
    candidates: frozenset[int],
    curvature: FloatArray | None,
) -> float:
    """Formula (3) for a region at the fit on ``columns``; -inf without curvature."""
    if curvature is None:
        return -np.inf
    x = least_squares(instance, instance.columns_of(columns))
    return curved_bound(instance, sorted(included), sorted(candidates), x, curvature)
