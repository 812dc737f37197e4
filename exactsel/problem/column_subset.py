"""Column subset selection: the second family of problems.

    minimise  f(S) = ||A - S S⁺ A||_F²   over at most k columns S of A

S S⁺ projects on the span of the chosen columns, so f is what they leave unexplained of the whole matrix; there is no
target. Centre and scale the columns beforehand if you want that: the objective takes them as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from exactsel.algebra.projection import unexplained
from exactsel.algebra.threads import one_thread
from exactsel.algebra.triangle import triangle
from exactsel.problem.capabilities import RECONSTRUCTION
from exactsel.problem.checks import checked_k, checked_matrix
from exactsel.problem.design import is_design
from exactsel.problem.fit import Selection
from exactsel.problem.frames import frame_matrix
from exactsel.problem.frozen import FrozenProblem
from exactsel.problem.identity import data_hash
from exactsel.problem.units import Units
from exactsel.to_plain import html_table
from exactsel.types import FloatArray, IntArray, StateArray

_DATA_ONLY = ("squared_norm", "gram", "reduced")
"""Cached properties that depend on the matrix alone."""


class ColumnSubsetProblem(FrozenProblem):
    """One instance of column subset selection, validated once and frozen.

    Parameters
    ----------
    A : array, sparse matrix or data frame (n, d)
        The matrix whose columns are to be selected; finite numbers. float32 is converted.
    k : int
        Largest number of columns. More than d is taken as d, with a warning.
    feature_names : sequence of str, optional
        Names of the columns.

    Raises
    ------
    InputError
        With one sentence that says what was found, what was expected and what to do.

    References
    ----------
    C. Feng, C. Qian and K. Tang, Unsupervised feature selection by Pareto optimization. AAAI 2019.
    """

    kind = "css"
    """What files and reports call it."""
    infimum = 0.0
    valid_for = ""
    """No selection leaves less than nothing unexplained."""
    objective: None = None
    """A selection has no coefficients."""
    _of_models = RECONSTRUCTION

    def __init__(self, A: ArrayLike, k: int, *, feature_names: Sequence[str] | None = None) -> None:
        given, feature_names = frame_matrix(A, feature_names)
        given = given.table() if is_design(given) else given
        self.AT: FloatArray = np.ascontiguousarray(checked_matrix(given).T)
        """The transposed data (d, n), so that a column of A is contiguous; read-only."""
        self.d, self.n = self.AT.shape
        self.AT.flags.writeable = False
        self._settle(checked_k(k, self.d), Units.of(self.d, feature_names, (), ()))

    def _settle(self, k: int, units: Units) -> None:
        """Store what is not data, and freeze."""
        self.k = k
        self.units = units
        """Columns, chosen one by one."""
        self.feature_names = units.names
        self._frozen = True

    def __repr__(self) -> str:
        return f"ColumnSubsetProblem(n={self.n}, d={self.d}, k={self.k})"

    def _repr_html_(self) -> str:
        return html_table([("minimise", self.objective_text), ("data", repr(self)), ("k", str(self.k))])

    @property
    def A(self) -> FloatArray:
        """The data (n, d), read-only."""
        return self.AT.T

    @property
    def objective_text(self) -> str:
        """What is minimised, for people."""
        return "||A - S S⁺ A||², the part of the matrix the chosen columns S leave unexplained"

    @cached_property
    def hash(self) -> str:
        """sha256 over everything that defines the problem (names excluded)."""
        header = {"problem": self.kind, "n": self.n, "d": self.d, "k": self.k}
        return data_hash(header, self.AT)

    @cached_property
    def squared_norm(self) -> float:
        """||A||_F², the objective of the empty selection."""
        return float(np.einsum("ij,ij->", self.AT, self.AT))

    @cached_property
    def gram(self) -> FloatArray:
        """A'A (d, d)."""
        with one_thread():  # so that the last bits do not depend on the machine's cores
            gram: FloatArray = self.AT @ self.AT.T
        return gram

    @cached_property
    def reduced(self) -> FloatArray:
        """A' rotated and cut to at most d entries a column, (d, min(n, d)): every projection is the same on it."""
        if self.n <= self.d:
            return self.AT
        return np.ascontiguousarray(triangle(self.A).T)

    @property
    def null_objective(self) -> float:
        """The objective of the empty selection."""
        return self.squared_norm

    def fit(self, columns: Iterable[int]) -> Selection:
        """The objective of a selection, by an orthogonal factorisation of the data; dependent columns are harmless."""
        chosen = np.unique(np.fromiter(columns, dtype=np.int64))
        return Selection(chosen, np.zeros(0), unexplained(self.AT, chosen), 0.0)

    def objectives(self, supports: IntArray, threads: int | None = None) -> FloatArray:
        """The objective of each selection, a row of column numbers padded with -1; ``threads`` is not needed."""
        return np.array([unexplained(self.reduced, row[row >= 0]) for row in np.asarray(supports, dtype=np.int64)])

    def best_rank_error(self, rank: int) -> float:
        """||A - A_r||_F² of the best approximation of this rank, below which no selection of ``rank`` columns gets."""
        singular = np.linalg.svd(self.reduced, compute_uv=False)
        return float(np.sum(singular[rank:] ** 2))

    @property
    def without_coefficient_bounds(self) -> ColumnSubsetProblem:
        """The problem itself."""
        return self

    def solved_from_data(self, state: StateArray, allowed: IntArray) -> None:
        """The kernels' bounds of selections are as sharp as the data allow."""

    def describe(self) -> dict[str, Any]:
        """The problem as plain data, without its arrays."""
        return {
            "problem": self.kind, "n": self.n, "d": self.d, "k": self.k,
            "problem_hash": self.hash, "feature_names": self.feature_names,
        }  # fmt: skip

    def replace(self, **changes: Any) -> ColumnSubsetProblem:
        """A copy with k or feature_names changed; what was worked out from the matrix is kept."""
        k = checked_k(changes.pop("k", self.k), self.d)
        named = {name: changes.pop(name) for name in ("feature_names",) if name in changes}
        if changes:
            raise TypeError(f"ColumnSubsetProblem has no argument {next(iter(changes))!r}")
        replaced = ColumnSubsetProblem.__new__(ColumnSubsetProblem)
        same = ("AT", "n", "d", *(name for name in _DATA_ONLY if name in self.__dict__))
        replaced.__dict__.update({name: self.__dict__[name] for name in same})
        replaced._settle(k, self.units.replace(**named))
        return replaced
