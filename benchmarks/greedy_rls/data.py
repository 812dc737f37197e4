"""Classification data: those of section 4.2, in the scale of the LIBSVM collection that the paper used, and others."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.folder import MissingData, key, read

GENERATED = "generated"
"""The name of a set that needs no file."""

NAMES = ("adult", "australian", "colon-cancer", "german.numer", "ijcnn1", "mnist5")
"""The data sets of the paper, in its order."""

SHAPES = {
    "adult": (32561, 123),
    "australian": (683, 14),
    "colon-cancer": (62, 2000),
    "german.numer": (1000, 24),
    "ijcnn1": (141691, 22),
    "mnist5": (70000, 780),
}
"""Rows and columns, as the paper's Table 1 prints them."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """A data set, labels -1 and 1; ``standardise`` says how columns are scaled on the training part of each fold."""

    A: Floats
    y: Floats
    standardise: bool


def load(name: str, folder: Path | None = None, positive: float | None = None) -> Table:
    """A classification data set from the folder.

    Colon-cancer gets every instance brought to mean 0 and deviation 1, as in LIBSVM. Columns are standardised where
    there are more of them than rows, as there, and brought to the range -1 to 1 elsewhere.

    Parameters
    ----------
    name : str
    folder : Path, optional
    positive : float, optional
        The class to tell from all others (5, as the paper does with the digits); the larger of two when None.

    Raises
    ------
    MissingData
        When the data are not there, or their labels do not make two classes.
    """
    A, y = generated() if name == GENERATED else read(name, folder)
    classes = np.unique(y)
    if positive is None and classes.size != 2:
        raise MissingData(
            f"{name} is skipped: its y has {classes.size} different values where a classification of two is wanted; "
            "--positive CLASS tells one from the others."
        )
    labels = np.where(y == (classes[-1] if positive is None else positive), 1.0, -1.0)
    if np.ptp(labels) == 0.0:
        raise MissingData(f"{name} is skipped: its y has no {positive:g}, or nothing else.")
    if key(name) == key("colon-cancer"):
        A = (A - A.mean(axis=1, keepdims=True)) / A.std(axis=1, keepdims=True)
    return Table(A, labels, A.shape[1] > A.shape[0])


def generated() -> tuple[Floats, Floats]:
    """60 rows of 12 correlated columns, of which three decide the class, with noise."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 12)) + 0.5 * rng.standard_normal((60, 1))
    return A, np.sign(A[:, :3].sum(axis=1) + rng.standard_normal(60))


def scaled(train: Floats, test: Floats, standardise: bool) -> tuple[Floats, Floats]:
    """Both parts with columns of mean 0 and deviation 1, or of range -1 to 1, on the training part."""
    if standardise:
        shift, unit = train.mean(axis=0), train.std(axis=0)
    else:
        low, high = train.min(axis=0), train.max(axis=0)
        shift, unit = (low + high) / 2.0, (high - low) / 2.0
    unit = np.where(unit > 0.0, unit, 1.0)
    return (train - shift) / unit, (test - shift) / unit
