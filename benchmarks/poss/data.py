"""Data sets, their random halves, and columns of mean 0 and variance 1."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from exactsel.types import FloatArray

FOLDER = "EXACTSEL_DATA"
"""The environment variable that names the folder with housing.npz and the others (arrays A and y)."""


class MissingData(Exception):
    """The data are not there; the text says what to do."""


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


def load(name: str) -> Data:
    """A data set from the folder; :class:`MissingData` when it is not there."""
    folder = os.environ.get(FOLDER)
    if not folder:
        raise MissingData(f"{name} is skipped: {FOLDER} does not name a folder with {name}.npz (arrays A and y).")
    file = Path(folder) / f"{name}.npz"
    if not file.is_file():
        raise MissingData(f"{name} is skipped: there is no {file} (arrays A and y).")
    with np.load(file, allow_pickle=False) as arrays:
        return Data(name, arrays["A"].astype(float), arrays["y"].astype(float))


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
    centre, scale = data.A[train].mean(axis=0), data.A[train].std(axis=0)
    constant = scale <= 1e-12 * np.abs(centre).max(initial=1.0)
    A = (data.A - centre) * np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, scale))
    y = (data.y - data.y[train].mean()) / data.y[train].std()
    return Half(A[train], y[train], A[test], y[test])
