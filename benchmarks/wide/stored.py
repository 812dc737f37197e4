"""Data sets from files, a sparse table of zeros and ones, and a table that stays in its file."""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.folder import read
from benchmarks.wide.designs import Design
from exactsel import Problem, load


@dataclass(frozen=True)
class Stored:
    """A data set of the folder that EXACTSEL_DATA names, with an intercept."""

    name: str
    data: str
    k: int
    lam: float = 0.0
    """Of columns scaled to length √n."""
    aim: float | None = None
    series: str = ""

    def problem(self) -> Problem:
        """The problem to solve; :class:`benchmarks.folder.MissingData` where the file is not there."""
        A, y = read(self.data)
        return Problem.prepared(A, y, self.k, lam=self.lam, fit_intercept=True, standardize=True)

    def small(self) -> Design | None:
        """A small one of the same kind, to load kernels."""
        return Design("small", 50, 200, self.k, lam=self.lam)


@dataclass(frozen=True, kw_only=True)
class _Made:
    """What is made with a method in mind, and too large for a table."""

    method: str = ""
    """The heuristic to run; empty: solve."""
    snr: float = 5.0
    seed: int = 0
    aim: float | None = None
    series: str = ""

    def small(self) -> Design | None:
        """None: a small one is a table."""
        return None


@dataclass(frozen=True)
class Sparse(_Made):
    """Zeros and few ones, as words in texts are, and a target of k of the more frequent columns."""

    name: str
    n: int
    p: int
    k: int
    density: float

    def problem(self) -> Problem:
        """The problem to solve."""
        rng = np.random.default_rng([43, self.seed])
        A = sparse.random(self.n, self.p, self.density, format="csc", random_state=rng, data_rvs=np.ones)
        frequent = np.argsort(-np.diff(A.indptr), kind="stable")[: 10 * self.k]
        signal = np.asarray(A[:, np.sort(frequent[::10])].sum(axis=1)).ravel()
        y = signal + rng.standard_normal(self.n) * math.sqrt(float(signal.var()) / self.snr)
        return Problem(A, y, self.k, lam=0.0)


ROWS_AT_ONCE = 2**24
"""Numbers that are drawn and written at a time."""


@dataclass(frozen=True)
class Mapped(_Made):
    """Normal numbers in single precision that stay in a file, and a target of k evenly spaced columns.

    The file goes into the folder for temporary files, without a name as soon as it is mapped: the system removes it
    when the process ends.
    """

    name: str
    n: int
    p: int
    k: int
    lam: float

    def problem(self) -> Problem:
        """The problem to solve, on the table in its file."""
        rng = np.random.default_rng([44, self.seed])
        with tempfile.TemporaryDirectory() as folder:
            file, target = Path(folder) / "A.npy", Path(folder) / "y.npy"
            np.save(target, self._write(file, rng))
            loaded = load(file, target=target, k=self.k, lam=self.lam)
        assert isinstance(loaded, Problem)
        return loaded

    def _write(self, file: Path, rng: np.random.Generator) -> NDArray[np.float64]:
        """Write the table, some rows at a time; the target."""
        chosen = np.linspace(0, self.p - 1, self.k).astype(int)
        signal, step = np.zeros(self.n), max(1, ROWS_AT_ONCE // self.p)
        with file.open("wb") as stream:
            header = {"descr": "<f4", "fortran_order": False, "shape": (self.n, self.p)}
            np.lib.format.write_array_header_1_0(stream, header)
            for first in range(0, self.n, step):
                block = rng.standard_normal((min(step, self.n - first), self.p), dtype=np.float32)
                signal[first : first + step] = block[:, chosen].sum(axis=1)
                stream.write(block.data)
        return signal + rng.standard_normal(self.n) * math.sqrt(float(signal.var()) / self.snr)
