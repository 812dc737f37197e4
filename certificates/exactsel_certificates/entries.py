"""Sparse data: a matrix by its entries, and a regression problem on one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from exactsel_certificates.formula import Box, FloatArray, Instance
from exactsel_certificates.losses import Loss, loss_of

Columns = NDArray[np.int64]


@dataclass(frozen=True)
class Entries:
    """A matrix (n, d): the entries of column j are the places ``starts[j]`` up to ``starts[j + 1]``; none is zero."""

    starts: Columns
    """(d + 1,)"""
    rows: Columns
    """Rows of the entries, ascending in each column."""
    values: FloatArray
    n: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.n, self.starts.size - 1

    @property
    def counts(self) -> Columns:
        """(d,) entries of each column."""
        return np.diff(self.starts)

    def sums(self, terms: FloatArray) -> FloatArray:
        """For each column (d,) the sum of the terms of its entries, in any order."""
        total, filled = np.zeros(self.starts.size - 1), np.flatnonzero(self.counts)
        if filled.size:
            total[filled] = np.add.reduceat(terms, self.starts[filled])
        return total

    def table(self, columns: Sequence[int] | Columns) -> FloatArray:
        """Some columns (n, m)."""
        table = np.zeros((self.n, len(columns)))
        for place, j in enumerate(columns):
            part = slice(self.starts[j], self.starts[j + 1])
            table[self.rows[part], place] = self.values[part]
        return table

    @classmethod
    def of(cls, rows: object, columns: object, values: object, shape: tuple[int, int]) -> Entries:
        """From entries in any order; :class:`ValueError` where one is outside, or two are in one place."""
        rows, columns = np.asarray(rows, dtype=np.int64), np.asarray(columns, dtype=np.int64)
        values, (n, d) = np.asarray(values, dtype=np.float64), shape
        if not rows.size == columns.size == values.size or min(shape) < 0:
            raise ValueError(f"{values.size} entries come with {rows.size} rows and {columns.size} columns.")
        if rows.size and (min(rows.min(), columns.min()) < 0 or rows.max() >= n or columns.max() >= d):
            raise ValueError(f"an entry lies outside of the {n} x {d} matrix.")
        order = np.lexsort((rows, columns))
        rows, columns, values = rows[order], columns[order], values[order]
        if np.any((rows[1:] == rows[:-1]) & (columns[1:] == columns[:-1])):
            raise ValueError("the matrix holds an entry twice.")
        filled = values != 0.0
        starts = np.append(0, np.cumsum(np.bincount(columns[filled], minlength=d))).astype(np.int64)
        return cls(starts, rows[filled], values[filled], n)

    @classmethod
    def of_table(cls, A: object) -> Entries:
        """From a table (n, d)."""
        columns, rows = np.nonzero(np.asarray(A).T)
        return cls.of(rows, columns, np.asarray(A)[rows, columns], np.asarray(A).shape)


@dataclass(frozen=True)
class SparseInstance:
    """A regression problem as given, on sparse data; fields as those of :class:`.formula.Instance`."""

    A: Entries
    y: FloatArray
    k: int
    loss: str
    lam: float
    delta: float = np.inf
    force_in: tuple[int, ...] = ()
    force_out: tuple[int, ...] = ()
    intercept: bool = False
    box: Box | None = None
    plugin: Loss | None = None

    weights: ClassVar[None] = None
    groups: ClassVar[tuple[tuple[int, ...], ...]] = ()
    hierarchy: ClassVar[None] = None
    scale: ClassVar[bool] = False

    @cached_property
    def formulas(self) -> Loss:
        """What is known of the loss."""
        return loss_of(self.loss, self.delta, self.plugin)


def sparse_of(instance: Instance) -> SparseInstance | None:
    """The same problem on sparse data; None where it has what sparse problems do not."""
    if instance.weights is not None or instance.groups or instance.hierarchy is not None:
        return None
    if getattr(instance, "scale", False) or getattr(instance, "equalities", None) is not None:
        return None
    return SparseInstance(
        Entries.of_table(instance.A), instance.y, instance.k, instance.loss, instance.lam, instance.delta,
        instance.force_in, instance.force_out, instance.intercept, instance.box, instance.plugin,
    )  # fmt: skip
