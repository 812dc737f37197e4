"""Data sets, their random halves, and columns of mean 0 and variance 1."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.folder import read
from exactsel.types import FloatArray, IntArray


@dataclass(frozen=True)
class Data:
    """A data set: A (n, d) and y (n,)."""

    name: str
    A: FloatArray
    y: FloatArray


@dataclass(frozen=True)
class Half:
    """A training part, standardised, and the other half in the same units."""

    A: FloatArray
    y: FloatArray
    A_test: FloatArray
    y_test: FloatArray

    def test_r2(self, coef: FloatArray) -> float:
        """The share of the test part's variance that a model explains; negative when its mean does better."""
        rest = self.y_test - self.A_test @ coef
        spread = self.y_test - self.y_test.mean()
        return float(1.0 - (rest @ rest) / (spread @ spread))


def load(name: str, folder: Path | None = None) -> Data:
    """A data set from the folder, whatever it is; :class:`benchmarks.folder.MissingData` when it is not there."""
    A, y = read(name, folder)
    return Data(name, A, y)


def generated(name: str, n: int = 60, d: int = 12) -> Data:
    """Correlated columns and a target that needs half of them: something to run on without any file."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, 4)) @ rng.standard_normal((4, d)) + 0.5 * rng.standard_normal((n, d))
    return Data(name, A, A[:, ::2] @ rng.standard_normal((d + 1) // 2) + rng.standard_normal(n))


def half(data: Data, seed: int, number: int) -> Half:
    """The split of this number: a random half of the rows to train on, the others to test on.

    Columns and target get mean 0 and variance 1 on the training part; a column that is constant there becomes zero.
    """
    order = np.random.default_rng([seed, number]).permutation(data.y.size)
    train, test = order[: data.y.size // 2], order[data.y.size // 2 :]
    A, y = _standardised(data, train)
    return Half(A[train], y[train], A[test], y[test])


def whole(data: Data) -> tuple[FloatArray, FloatArray]:
    """All rows, columns and target of mean 0 and variance 1; a constant column becomes zero."""
    return _standardised(data, np.arange(data.y.size))


def _standardised(data: Data, train: IntArray) -> tuple[FloatArray, FloatArray]:
    """Columns and target in units in which they have mean 0 and variance 1 on the rows ``train``."""
    centre, scale = data.A[train].mean(axis=0), data.A[train].std(axis=0)
    constant = scale <= 1e-12 * np.abs(centre).max(initial=1.0)
    A = (data.A - centre) * np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, scale))
    return A, (data.y - data.y[train].mean()) / data.y[train].std()
