"""The problems: every data set of a folder under every loss it can have, and column subset selection on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import numpy as np

from exactsel import ColumnSubsetProblem, Problem
from exactsel.types import FloatArray

LOSSES = ("quadratic", "huber", "logistic", "css")

LABELLED = ("logistic", "squared_hinge")
"""Losses of two labels."""

RIDGE = {"quadratic": 0.0, "huber": 0.01, "logistic": 0.01, "squared_hinge": 0.01}
"""lam of a problem with this loss, on standardised columns."""

DELTA = 1.0
"""Huber threshold, in standard deviations of the target."""


@dataclass(frozen=True)
class Case:
    """One problem, made when asked for."""

    data: str
    loss: str
    k: int
    make: Callable[[], Problem | ColumnSubsetProblem]

    @property
    def name(self) -> str:
        """For example ``sonar, quadratic, k = 8``."""
        return f"{self.data}, {self.loss}, k = {self.k}"


def cases(folder: Path, data: str, losses: str, k: int) -> Iterator[Case]:
    """Of the data sets in a folder (arrays A and y) whose names match one of the patterns, separated by commas."""
    for file in sorted(folder.glob("*.npz")):
        if not any(fnmatch(file.stem, pattern.strip()) for pattern in data.split(",")):
            continue
        with np.load(file, allow_pickle=False) as arrays:
            A, y = arrays["A"].astype(np.float64), arrays["y"].astype(np.float64)
        A = A[:, np.ptp(A, axis=0) > 0.0]
        for loss in LOSSES:
            if loss not in losses.split(",") or (loss == "logistic" and np.unique(y).size != 2):
                continue
            size = min(k, A.shape[1])
            yield Case(file.stem, loss, size, lambda A=A, y=y, loss=loss, size=size: standardised(A, y, loss, size))


def standardised(A: FloatArray, y: FloatArray, loss: str, k: int) -> Problem | ColumnSubsetProblem:
    """The problem on standardised columns with this loss, or that of column subset selection."""
    A = A - A.mean(axis=0)
    if loss == "css":
        return ColumnSubsetProblem(A / np.linalg.norm(A, axis=0), k)
    A /= A.std(axis=0)
    y = np.where(y == y.max(), 1.0, -1.0) if loss in LABELLED else (y - y.mean()) / y.std()
    delta = DELTA if loss == "huber" else None
    problem: Problem = Problem.prepared(A, y, k, lam=RIDGE[loss], loss=loss, delta=delta, intercept=True)
    return problem
