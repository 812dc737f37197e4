"""Classes of columns of two values that divide the rows alike: what is counted once, and put back before fitting.

Columns that are copies or complements of each other, with any scale and shift, are one *class*. A set of columns that
holds two of a class, or a constant one, is a set of fewer classes. As a finer division costs less, every set of classes
within a level is contained in a larger one that is, as long as there are further classes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from exactsel.kernels.cell_counting import CellData, cell_bounds
from exactsel.kernels.node import FREE, IN
from exactsel.problem.regression import Problem
from exactsel.rounding import UNIT
from exactsel.types import BoolArray, FloatArray, IntArray, StateArray

SMALL_SETS = 100_000
"""Sets of fewer classes that are examined."""


@dataclass(frozen=True)
class Classes:
    """The free columns of a region, those that divide the rows alike together, and the rows, equal ones together."""

    members: tuple[tuple[int, ...], ...]
    """The columns of each class; those with most rows on the rarer side first."""
    constant: tuple[int, ...]
    """Free columns that divide nothing."""
    fixed: tuple[int, ...]
    """Columns of the region that are in."""
    data: CellData
    cells: int
    """Those that the columns in make."""

    @property
    def columns(self) -> list[int]:
        """All free columns."""
        return sorted([*self.constant, *(j for columns in self.members for j in columns)])


def classes_of(problem: Problem, state: StateArray) -> Classes:
    """The classes of a region (d,) whose free columns take two values each."""
    AT, alike, constant = problem.AT, dict[bytes, list[int]](), list[int]()
    weights = _weights(problem)
    for j in np.flatnonzero(state == FREE).tolist():
        other = AT[j] != AT[j, 0]
        if other.any():
            alike.setdefault(np.packbits(other).tobytes(), []).append(j)
        else:
            constant.append(j)
    members = [tuple(columns) for columns in alike.values()]
    bits = np.array([AT[columns[0]] != AT[columns[0], 0] for columns in members], dtype=np.bool_).reshape(-1, problem.n)
    often = bits @ weights
    bits[2 * often > weights.sum()] ^= True
    order = np.argsort(-np.minimum(often, weights.sum() - often), kind="stable")
    bits, members = bits[order], [members[i] for i in order]
    fixed = np.flatnonzero(state == IN)
    cell = (
        np.unique(AT[fixed].T, axis=0, return_inverse=True)[1].reshape(-1) if fixed.size else np.zeros(problem.n, int)
    )
    start = 2 * cell.astype(np.int64) + (problem.y > 0)
    keys = np.column_stack([np.packbits(bits, axis=0).T, np.ascontiguousarray(start).view(np.uint8).reshape(-1, 8)])
    _, index, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    bits = np.ascontiguousarray(bits[:, index])
    columns = np.nonzero(bits.T)[1]
    first = np.append(0, np.cumsum(np.count_nonzero(bits, axis=0)))
    sums = np.bincount(which.reshape(-1), weights=weights, minlength=index.size).astype(np.int64)
    x = np.arange(int(weights.sum()) + 1, dtype=np.float64)
    table = x * np.log(np.maximum(x, 1.0))
    data = CellData(bits.view(np.uint8), first, columns.astype(np.int64), start[index], sums, table)
    return Classes(tuple(members), tuple(constant), tuple(fixed.tolist()), data, int(cell.max()) + 1)


def level_of(classes: Classes, upper: float, size: int) -> float:
    """What a computed sum over the cells of ``size`` columns must be above for the exact one not to be below ``upper``.

    With N rows f(x) = x log x sums to no more than f(N) over cells, and the rows of a label to no more than all. A
    value of the table is off by at most 4 units, and each of four operations a cell by one unit of f(N).
    """
    cells = classes.cells * 2.0**size
    return math.nextafter(upper + 1.01 * float(classes.data.table[-1]) * UNIT * (4.0 * cells + 16.0), math.inf)


def supports_of(
    classes: Classes, sets: IntArray, slots: int, upper: float, most: int, stop: BoolArray
) -> IntArray | None:  # fmt: skip
    """All sets of so many free columns, with those in, that belong to some classes of ``sets`` (rows) or fewer.

    None where there are more than ``most``, or after a stop.
    """
    supports, looked = set[tuple[int, ...]](), 0
    while True:
        for row in sets.tolist():
            if _ways(classes, row, slots) + len(supports) > most:
                return None
            supports.update(filled(classes, row, slots))
        looked += sets.size
        if sets.shape[1] == 0 or len(sets) == 0 or looked > SMALL_SETS or not _room_for_fewer(classes):
            break
        smaller = sorted({row for parent in sets.tolist() for row in combinations(parent, len(parent) - 1)})
        within = sets_within(classes, np.array(smaller, dtype=np.int64).reshape(len(smaller), -1), upper, stop)
        if within is None:
            return None
        sets = within
    if looked > SMALL_SETS:
        return None
    chosen = np.array(sorted(supports), dtype=np.int64).reshape(-1, slots)
    return np.sort(np.hstack([np.tile(np.array(classes.fixed, dtype=np.int64), (len(chosen), 1)), chosen]), axis=1)


def sets_within(classes: Classes, sets: IntArray, upper: float, stop: BoolArray) -> IntArray | None:
    """Those of some sets of classes (rows) whose cells let them come below U; None after a stop."""
    bounds = np.empty(len(sets))
    cell_bounds(classes.data, classes.cells, sets, stop, bounds)
    if stop[0]:
        return None
    return sets[~(bounds > level_of(classes, upper, sets.shape[1]))]


def _room_for_fewer(classes: Classes) -> bool:
    """Whether columns can be added to a set without another class."""
    return bool(classes.constant) or any(len(columns) > 1 for columns in classes.members)


def _ways(classes: Classes, row: list[int], slots: int) -> int:
    """No fewer than the sets of columns that belong to exactly these classes."""
    pool = len(classes.constant) + sum(len(classes.members[c]) - 1 for c in row)
    return math.prod(len(classes.members[c]) for c in row) * math.comb(pool, slots - len(row))


def filled(classes: Classes, row: list[int], slots: int) -> Iterator[tuple[int, ...]]:
    """All sets of so many columns that belong to exactly these classes, some more than once."""
    pool = [*classes.constant, *(j for c in row for j in classes.members[c])]
    for chosen in product(*(classes.members[c] for c in row)):
        others = [j for j in pool if j not in chosen]
        for more in combinations(others, slots - len(row)):
            yield tuple(sorted(chosen + more))


def _weights(problem: Problem) -> FloatArray:
    return np.ones(problem.n) if problem.weights is None else problem.weights
