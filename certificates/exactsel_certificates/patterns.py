"""Sums over covariate patterns: a bound of logistic loss for any coefficients (FORMAT.md, COUNTED).

Rows that agree in the columns of a model have one prediction. With weights p and m of the rows of either label that
share a pattern these cost at least f(p + m) - f(p) - f(m), f(x) = x log x, and a model no less than the sum. More
columns divide the rows further, which costs less: only sets that fill all places give a bound.

Columns that divide the rows alike are one *class*. For a prefix of classes the weights of the rows that hold the rarer
value of i and of j are known for every pattern, label and later pair i, j; a further class takes those apart that hold
its rarer value, and what is left is the rest. Pairs are looked up at the end. Patterns of one label cost nothing.

**Rounding.** Weights are whole numbers of a sum below 2^24, so sums of them are exact in single precision. With u =
2^-53 an entry of the table of f is right to 17 u times itself. Sums of f over patterns are no more than f(N), N the sum
of all weights, and neither are those over the patterns of both labels separately. So a sum over c patterns is off by
less than (2 * 17 + 2 + c) 1.01 u f(N), and the level by two of these more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from exactsel_certificates.container import Proof
from exactsel_certificates.formula import FloatArray, Instance
from exactsel_certificates.losses.base import PATTERNS
from exactsel_certificates.rigorous import U
from exactsel_certificates.work import MATRIX, STEP, refuse, spend

MOST_WEIGHT = 1 << 22
"""Sum of the weights of the rows, at most: f is a table."""

MOST_ENTRIES = 1e7
"""Weights of pairs that are known at a time, at most."""

Numbers = NDArray[np.int64]

Classes = tuple[int, ...]


def by_patterns(proof: Proof, instance: Instance) -> bool:
    """Whether COUNTED is about covariate patterns in a proof."""
    plain = PATTERNS in instance.formulas.serves and instance.lam > 0 and not instance.groups
    return plain and proof.minorant_point.size == 0


@dataclass(frozen=True)
class Patterns:
    """The rows of a region as the columns of S and the classes of C divide them, equal ones together."""

    members: tuple[tuple[int, ...], ...]
    """The columns of each class."""
    constant: tuple[int, ...]
    """Columns of C that divide nothing."""
    bits: NDArray[np.bool_]
    """(m, rows) whether a row holds the rarer value of a class."""
    start: Numbers
    """(rows,) twice the number of the pattern in S, and 1 more for the label +1."""
    weights: FloatArray
    """(rows,) of the rows of the data that are alike."""
    row: Numbers
    """(rows,) one of these."""
    table: FloatArray
    """f(x) for x = 0, 1, ... up to the sum of the weights."""

    def columns_within(self, r: int, level: float) -> Iterator[tuple[int, ...]]:
        """The sets of r columns of C that may hold models below the level, one by one."""
        size = min(r, len(self.members))
        fewer, sets = bool(self.constant) or any(len(columns) > 1 for columns in self.members), list[Classes]()
        # One by one, so that a claim which the first of them refutes leaves no list of them all.
        for classes in (classes for part in self._sets(size, level + self._room(size)) for classes in part):
            yield from self._filled(classes, r)
            sets.append(classes)
        while fewer and size > 0:
            # A set of fewer classes costs no less than what one more makes of it, so all are parts of those found.
            size -= 1
            smaller, bound = (
                {part for classes in sets for part in combinations(classes, size)},
                level + self._room(size),
            )
            sets = sorted(classes for classes in smaller if not self.sum_of(classes) > bound)
            for classes in sets:
                yield from self._filled(classes, r)

    def sum_of(self, classes: Classes) -> float:
        """The sum over the patterns of one set of classes."""
        codes = self.codes(classes)
        p, m = np.bincount(codes, self.weights, _even(codes)).reshape(-1, 2).astype(np.int64).T
        return float(np.sum(self.table[p + m] - self.table[p] - self.table[m]))

    def codes(self, classes: Classes) -> Numbers:
        """(rows,) twice the number of the pattern in S and some classes, and 1 more for the label +1."""
        spend(STEP + 40.0 * len(self.start) * (1 + len(classes)))
        code = self.start >> 1
        for c in classes:
            code = np.unique(2 * code + self.bits[c], return_inverse=True)[1].reshape(-1)
        return np.asarray(2 * code + (self.start & 1), dtype=np.int64)

    def _filled(self, classes: Classes, r: int) -> Iterator[tuple[int, ...]]:
        """All sets of r columns of these classes, none of them without one, and of constant ones."""
        everything, seen = [*self.constant, *(j for c in classes for j in self.members[c])], set[tuple[int, ...]]()
        for chosen in product(*(self.members[c] for c in classes)):
            for more in combinations([j for j in everything if j not in chosen], r - len(chosen)):
                columns = tuple(sorted(chosen + more))
                spend(STEP)
                if columns not in seen:
                    seen.add(columns)
                    yield columns

    def _room(self, size: int) -> float:
        """How far a sum for a set of so many classes, and the level, may be off together."""
        return 1.01 * U * (self._patterns(size) + 38.0) * float(self.table[-1])

    def _patterns(self, size: int) -> float:
        """Patterns of so many classes at most."""
        return min(float(len(self.start)), 2.0**size * (_even(self.start) / 2))

    def _sets(self, size: int, bound: float) -> Iterator[list[Classes]]:
        """The sets of so many classes whose sums do not come out above a bound, prefix by prefix."""
        m = len(self.members)
        if size < 2:
            yield [classes for classes in combinations(range(m), size) if not self.sum_of(classes) > bound]
            return
        if 2.0 * self._patterns(size - 2) * m * m > MOST_ENTRIES:
            refuse()
            raise BeyondRoomError
        rows = [np.flatnonzero(self.start == code) for code in range(_even(self.start))]
        yield from self._below((), size, bound, rows, self._counts(rows), self._pairs(rows, 0))

    @cached_property
    def _numbers(self) -> NDArray[np.floating]:
        """(rows, m) the bits as numbers in which sums of weights are exact."""
        return np.ascontiguousarray(self.bits.T, dtype=np.float32)

    def _counts(self, rows: Sequence[Numbers]) -> Numbers:
        """(parts,) the weights of some parts of the rows."""
        return np.array([self.weights[some].sum() for some in rows], dtype=np.int64)

    def _pairs(self, rows: Sequence[Numbers], first: int) -> Numbers:
        """(parts, q, q) weights in parts of the rows that hold the rarer values of two classes from ``first`` on."""
        q = len(self.members) - first
        pairs = np.empty((len(rows), q, q), dtype=np.int64)
        for some, out in zip(rows, pairs, strict=True):
            spend(STEP + float(q) * (4.0 * len(some) + len(some) * q / MATRIX + q))
            part = self._numbers[some, first:]
            out[:] = (part.T * self.weights[some].astype(np.float32)) @ part
        return pairs

    def _below(
        self, prefix: Classes, remaining: int, bound: float, rows: Sequence[Numbers], counts: Numbers, pairs: Numbers
    ) -> Iterator[list[Classes]]:
        """The same with ``remaining`` classes after those of a prefix.

        ``rows`` are those of every pattern and label, if more than two classes are to come, ``counts`` their weights,
        and ``pairs`` the weights of pairs of classes after the last of the prefix.
        """
        first = prefix[-1] + 1 if prefix else 0
        if remaining == 2:
            yield self._last_two(prefix, first, bound, counts, pairs)
            return
        for c in range(first, len(self.members) - remaining + 1):
            included = [some[self.bits[c, some]] for some in rows]
            rest = [some[~self.bits[c, some]] for some in rows] if remaining > 3 else included
            held, after = self._counts(included), self._pairs(included, c + 1)
            sizes = np.concatenate([held, counts - held])
            tables = np.concatenate([after, pairs[:, c + 1 - first :, c + 1 - first :] - after])
            # A pattern with rows of one label costs nothing, however it is divided.
            indices = np.flatnonzero(np.repeat(np.all(sizes.reshape(-1, 2) > 0, axis=1), 2))
            parts = [*included, *rest]
            yield from self._below(
                (*prefix, c), remaining - 1, bound, [parts[i] for i in indices], sizes[indices], tables[indices]
            )  # fmt: skip

    def _last_two(self, prefix: Classes, first: int, bound: float, counts: Numbers, pairs: Numbers) -> list[Classes]:
        """The sets of a prefix and two classes from ``first`` on."""
        i, j = _pairs_of(pairs.shape[1])
        spend(8.0 * STEP + 40.0 * len(counts) * len(i))
        alone = np.diagonal(pairs, axis1=1, axis2=2)
        both, count_i, count_j = pairs[:, i, j], alone[:, i], alone[:, j]
        weights = np.stack([both, count_i - both, count_j - both, counts[:, None] - count_i - count_j + both])
        p, m = weights[:, 0::2], weights[:, 1::2]
        sums = np.sum(self.table[p + m] - self.table[p] - self.table[m], axis=(0, 1))
        open_pairs = np.flatnonzero(~(sums > bound))
        return [
            (*prefix, first + a, first + b) for a, b in zip(i[open_pairs].tolist(), j[open_pairs].tolist(), strict=True)
        ]


class BeyondRoomError(Exception):
    """Too many patterns for a table of all pairs of columns in each."""


@cache
def _pairs_of(q: int) -> tuple[Numbers, Numbers]:
    """All i < j of so many."""
    i, j = np.triu_indices(q, 1)
    return i.astype(np.int64), j.astype(np.int64)


def _even(codes: Numbers) -> int:
    """The smallest even number above some codes."""
    return 2 * (1 + int(np.max(codes)) // 2)


def patterns_of(instance: Instance, included: list[int], free: list[int]) -> Patterns | None:
    """The patterns of a region (S, C) of columns; None where C holds others than those of two values, or weights none
    that are counted.
    """
    A, n = np.asarray(instance.A), len(instance.y)
    weights = np.ones(n) if instance.weights is None else instance.weights
    spend(16.0 * n * (len(included) + len(free) + 1))
    total = float(np.sum(weights))
    if not (np.all(weights == np.rint(weights)) and total <= MOST_WEIGHT):
        return None
    alike, constant = dict[bytes, list[int]](), list[int]()
    bits = np.zeros((len(free), n), dtype=np.bool_)
    for j in free:
        other = A[:, j] != A[0, j]
        if not np.any(other):
            constant.append(j)
            continue
        if np.any(A[other, j] != A[np.argmax(other), j]):
            return None
        columns = alike.setdefault(np.packbits(other).tobytes(), [])
        if not columns:
            bits[len(alike) - 1] = other
        columns.append(j)
    bits = bits[: len(alike)]
    rarer = bits @ weights
    bits[2.0 * rarer > total] ^= True
    order = np.argsort(-np.minimum(rarer, total - rarer), kind="stable")
    members = tuple(tuple(columns) for columns in alike.values())
    _, pattern = (
        np.unique(A[:, included], axis=0, return_inverse=True) if included else (None, np.zeros(n, dtype=np.int64))
    )
    start = 2 * pattern.reshape(-1).astype(np.int64) + (np.asarray(instance.y) > 0)
    keys = np.concatenate([np.packbits(bits, axis=0).T, start.astype("<i8").view(np.uint8).reshape(n, 8)], axis=1)
    spend(8.0 * n * keys.shape[1] * max(1.0, np.log2(n)))
    _, row, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    x = np.arange(int(total) + 1, dtype=np.float64)
    return Patterns(
        tuple(members[i] for i in order), tuple(constant), np.ascontiguousarray(bits[order][:, row]), start[row],
        np.bincount(which.reshape(-1), weights).astype(np.float64), row, x * np.log(np.maximum(x, 1.0)),
    )  # fmt: skip
