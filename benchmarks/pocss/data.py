"""Matrices: those of a folder, and a generated one; how their columns are scaled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.folder import read
from exactsel.types import FloatArray

GENERATED = "generated"
"""The name of a matrix that needs no file."""


def matrix(name: str, folder: Path | None = None) -> FloatArray:
    """The raw matrix (n, d) of this name; :class:`benchmarks.folder.MissingData` when it is not there."""
    return generated() if name == GENERATED else read(name, folder, ("A",))[0]


def generated() -> FloatArray:
    """40 rows and 20 columns of unlike scale with 6 strong directions; one column is constant, one a duplicate."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 6)) @ rng.standard_normal((6, 20)) + rng.standard_normal((40, 20))
    A *= np.geomspace(1.0, 100.0, 20)
    A[:, 3], A[:, 7] = 5.0, A[:, 8]
    return A


def unit(A: FloatArray) -> FloatArray:
    """Columns divided by their length; a zero column stays zero."""
    lengths = np.linalg.norm(A, axis=0)
    return A / np.where(lengths > 0.0, lengths, 1.0)


def symmetric(A: FloatArray) -> FloatArray:
    """Columns mapped onto [-1, 1] and then to unit length; a constant column becomes zero."""
    low, high = A.min(axis=0), A.max(axis=0)
    spread = np.where(high > low, high - low, 1.0)
    return unit(np.where(high > low, 2.0 * (A - low) / spread - 1.0, 0.0))


def centred(A: FloatArray) -> FloatArray:
    """Columns without their mean, of unit length; a constant column becomes zero."""
    constant = A.max(axis=0) == A.min(axis=0)
    return unit(np.where(constant, 0.0, A - A.mean(axis=0)))


SCALINGS: dict[str, Callable[[FloatArray], FloatArray]] = {"unit": unit, "symmetric": symmetric, "centred": centred}
"""``unit`` is what the paper says and the default: "All feature vectors are normalized to unit vectors"."""
