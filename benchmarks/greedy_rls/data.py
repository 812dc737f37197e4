"""The data sets of section 4.2 that are at hand, in the scale of the LIBSVM collection that the paper used."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FOLDER = "EXACTSEL_DATA"
"""The environment variable that names the folder with NAME.npz (arrays A and y)."""

NAMES = ("australian", "german.numer", "colon-cancer")

Floats = NDArray[np.float64]


class MissingData(Exception):
    """The data are not there; the text says what to do."""


@dataclass(frozen=True)
class Table:
    """A data set; ``standardise`` says how columns are scaled on the training part of each fold."""

    A: Floats
    y: Floats
    standardise: bool


def load(name: str) -> Table:
    """One of :data:`NAMES`; colon-cancer with every instance brought to mean 0 and deviation 1, as in LIBSVM."""
    folder = os.environ.get(FOLDER)
    if not folder:
        raise MissingData(f"{name} is skipped: {FOLDER} does not name a folder with {name}.npz (arrays A and y).")
    file = Path(folder) / f"{name}.npz"
    if not file.is_file():
        raise MissingData(f"{name} is skipped: there is no {file} (arrays A and y).")
    with np.load(file, allow_pickle=False) as arrays:
        A, y = arrays["A"].astype(float), arrays["y"].astype(float)
    if name == "colon-cancer":
        A = (A - A.mean(axis=1, keepdims=True)) / A.std(axis=1, keepdims=True)
    return Table(A, y, name == "colon-cancer")


def scaled(train: Floats, test: Floats, standardise: bool) -> tuple[Floats, Floats]:
    """Both parts with columns of mean 0 and deviation 1, or of range -1 to 1, on the training part."""
    if standardise:
        shift, unit = train.mean(axis=0), train.std(axis=0)
    else:
        low, high = train.min(axis=0), train.max(axis=0)
        shift, unit = (low + high) / 2.0, (high - low) / 2.0
    unit = np.where(unit > 0.0, unit, 1.0)
    return (train - shift) / unit, (test - shift) / unit
