"""Data sets from files, and a sparse table of zeros and ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from benchmarks.folder import read
from benchmarks.wide.designs import Design
from exactsel import Problem


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


@dataclass(frozen=True)
class Sparse:
    """Zeros and few ones, as words in texts are, and a target of k of the more frequent columns."""

    name: str
    n: int
    p: int
    k: int
    density: float
    method: str = ""
    """The heuristic to run; empty: solve."""
    snr: float = 5.0
    seed: int = 0
    aim: float | None = None
    series: str = ""

    def problem(self) -> Problem:
        """The problem to solve."""
        rng = np.random.default_rng([43, self.seed])
        A = sparse.random(self.n, self.p, self.density, format="csc", random_state=rng, data_rvs=np.ones)
        frequent = np.argsort(-np.diff(A.indptr), kind="stable")[: 10 * self.k]
        signal = np.asarray(A[:, np.sort(frequent[::10])].sum(axis=1)).ravel()
        y = signal + rng.standard_normal(self.n) * math.sqrt(float(signal.var()) / self.snr)
        return Problem(A, y, self.k, lam=0.0)

    def small(self) -> Design | None:
        """None: a small table is not kept sparse."""
        return None
