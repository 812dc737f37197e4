"""The perspective relaxation where columns outnumber rows: on H - E, with a split E that starts from the spectrum.

Quadratic loss. Where d > n the matrix H = A'A + lam I has no curvature but the ridge's. But for any symmetric N with
zero diagonal and t_i the sum of the k - 1 largest |N_ij| of row i, E = N + diag(t) is diagonally dominant on any k
columns (bounds/split.py), so that models x of at most k columns have

    P(x) >= c - b'x + x'(H - E)x / 2.

N = -offdiag(F), F = max(0, level - A'A) as a function of the matrix, lifts all eigenvalues below the level, the null
space among them, to about the level; what that costs is t, and t shrinks when the entries of N are clipped at a small
multiple of their standard deviation. What is left has the smallest eigenvalue D > lam, and formula (3) with H - E in
place of H is a bound for every node, by the same kernels on another matrix. E is found once, at the root.

Measured (1,000 rows, lam = 2 on columns of squared length 1,000, k = 10, what is proven at the root as a part of the
best objective, without and with E): 1,500 columns .24 and .78, 3,000 .09 and .33.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from exactsel.algebra.elimination import definite, gamma, shift
from exactsel.algebra.spectrum import smallest_eigenvalue
from exactsel.algebra.threads import one_thread
from exactsel.bounds.apg import AcceleratedGradientBound, PreparedPerspective
from exactsel.bounds.base import BoundOptions, BoundSolver, Cheaper, PreparedBound, Tightened
from exactsel.bounds.fit import BOUNDED_MODELS, FitBound
from exactsel.bounds.split import SplitBound
from exactsel.bounds.split_point import SPLIT_UP_TO, rounded, split_matrix
from exactsel.bounds.wide import PreparedWide
from exactsel.bounds.witness import ModelPoint, Proof, SpectralPoint, SplitPoint
from exactsel.errors import UnsupportedError, option
from exactsel.kernels.node import is_convex, node_columns
from exactsel.problem.capabilities import QUADRATIC_LOSS
from exactsel.problem.coefficient_bounds import independent
from exactsel.problem.regression import Problem
from exactsel.types import FloatArray, StateArray

LEVELS = (0.2, 0.1)
"""Parts of the mean squared length of columns that eigenvalues are lifted to, tried in turn until curvature is left."""

CLIPPED = 2.0
"""Standard deviations of the entries of N at which they are clipped (9 cost more than they lift, 1.5 lift less)."""

SECONDS, SHARE_OF_TIME = 3e-10, 0.5
"""What the eigenvalues take, times the cube of the columns, and the part of a time limit that they may take."""

BYTES_AN_ENTRY, MOST_BYTES = 56, 4e9
"""Of the matrices (d, d) that finding a split takes, and in all at most: 8,451 columns."""

TRIAL_SHARE, FAR = 0.25, 0.25
"""Part of what the eigenvalues take that the bound without a split may take before, and part of the cut-off below which
its bound at the root promises nothing."""

PASS = 50.0
"""Multiplications for each entry of the data that solving a working set, and looking at all columns, takes."""

ALIKE = 4.0
"""Times the squared cosines that columns of noise have with all others, in the mean, from which no split is looked for:
of genes and spectra, which have ten times as much, none is found."""

KEPT = 0.99
"""Part of the smallest eigenvalue that is taken for the curvature."""


@dataclass(frozen=True)
class Spectral:
    """What was found for one problem."""

    split: SplitPoint
    curvature: FloatArray
    """(d,) D of formula (3) with H - E in place of H."""
    matrix: FloatArray
    """(d, d) H - E."""


@dataclass(frozen=True)
class SpectralBound(BoundSolver):
    """The perspective relaxation on H - E."""

    name = "spectral"

    def prepare(self, problem: Problem, options: BoundOptions) -> PreparedBound:
        """Bind to a problem of quadratic loss; without a split that leaves more than the ridge, the bound without."""
        if not problem.has(QUADRATIC_LOSS):
            raise UnsupportedError(
                f"the bound 'spectral' needs quadratic loss, but the loss is {problem.loss.name}; use "
                f"{option('bound', 'apg')}."
            )
        if problem.d <= SPLIT_UP_TO:
            return _prepared(problem, options)
        dear = _affordable(problem.d, options.seconds)
        return _Later(problem, options) if dear else _without(problem, options)


def _without(problem: Problem, options: BoundOptions) -> PreparedBound:
    """What there is beside a split."""
    return PreparedWide(problem, options) if problem.lam > 0 else FitBound().prepare(problem, options)


def _prepared(problem: Problem, options: BoundOptions) -> PreparedBound:
    split = spectral_split(problem) if _affordable(problem.d, options.seconds) else None
    if split is not None:
        return PreparedSpectral(problem, options, split)
    return SplitBound().prepare(problem, options) if problem.d <= SPLIT_UP_TO else _without(problem, options)


class _Later(PreparedBound):
    """A bound prepared on first use.

    Eigenvalues take long, and another closer, or the bound without them, may settle the root before.
    """

    def __init__(self, problem: Problem, options: BoundOptions) -> None:
        self._problem, self._options, self._lock = problem, options, Lock()
        self._inner: PreparedBound | None = None

    @property
    def cheaper(self) -> Cheaper | None:
        """The bound without a split, for a part of what the eigenvalues take; without a ridge that says nothing."""
        if self._problem.lam == 0:
            return None
        return Cheaper(_without(self._problem, self._options), self._trial_budget, before_all=True)

    def _trial_budget(self, state: StateArray, parent_bound: float, cutoff: float, upper: float) -> int:
        if parent_bound < FAR * (cutoff if cutoff < np.inf else upper):
            return 1
        # The eigenvalues take about d^3 multiplications.
        return 1 + int(TRIAL_SHARE * self._problem.d**2 / (PASS * self._problem.n))

    @property
    def valid_for(self) -> str:
        """See :class:`exactsel.bounds.base.PreparedBound`."""
        return "" if self._inner is None else self._inner.valid_for

    def tighten(
        self, states: StateArray, warm: Sequence[Any], cutoff: float, upper: float, known: FloatArray | None = None
    ) -> Tightened:
        """See :class:`exactsel.bounds.base.PreparedBound`."""
        with self._lock:
            self._inner = self._inner or _prepared(self._problem, self._options)
        return self._inner.tighten(states, warm, cutoff, upper, known)


def _affordable(d: int, seconds: float | None) -> bool:
    if BYTES_AN_ENTRY * d**2 > MOST_BYTES:
        return False
    return seconds is None or SECONDS * d**3 <= SHARE_OF_TIME * seconds


def spectral_split(problem: Problem) -> Spectral | None:
    """E and the curvature it leaves; None where there is none. Found once for all problems on the same data and k."""
    key = ("spectral split", problem.lam, problem.k)
    if key not in problem.shared:
        with one_thread():  # so that the last bits, and the tree, do not depend on the machine's cores
            problem.shared[key] = _found(problem) if problem.k > 0 else None
    cached: Spectral | None = problem.shared[key]
    return cached


def _found(problem: Problem) -> Spectral | None:
    H, d = problem.hessian, problem.d
    lengths = np.sqrt(np.diagonal(H))
    if not np.all(lengths > 0.0):
        return None
    unit = H / np.outer(lengths, lengths)
    if float(np.vdot(unit, unit)) / d - 1.0 > ALIKE * d / problem.n:
        return None
    values, vectors = np.linalg.eigh(unit)
    room = 2.0 * shift(d, gamma(problem.gram.roundings + problem.k + 16))
    for level in LEVELS:
        lifted = np.maximum(level - values, 0.0)
        below = lifted > 0.0
        N = -((vectors[:, below] * lifted[below]) @ vectors[:, below].T)
        np.fill_diagonal(N, 0.0)
        most = CLIPPED * float(np.sqrt(np.mean(N**2)))
        split = rounded(np.arange(d), lengths, np.clip(N, -most, most))
        remainder = H - split_matrix(split, np.arange(d), problem.k)
        unit = remainder / np.outer(lengths, lengths)
        delta = KEPT * smallest_eigenvalue(unit) - room
        unit[np.diag_indices(d)] -= delta + room
        if delta > 0.0 and np.all(delta * lengths**2 > problem.lam) and definite(unit):
            return Spectral(split, delta * lengths**2, remainder)
    return None


class PreparedSpectral(PreparedPerspective):
    """Bound to one problem; its points are for formula (3) with H - E."""

    def __init__(self, problem: Problem, options: BoundOptions, split: Spectral) -> None:
        super().__init__(
            AcceleratedGradientBound(), problem, options, split.curvature, problem, None, split.matrix
        )  # fmt: skip
        self._found, self.curvature = split, None  # which others would take for that of H
        self._fit = FitBound().prepare(problem, options) if problem.lam == 0.0 else None
        # What centring and weights round says nothing of models of any size where no curvature limits them.
        limited = problem.lam == 0.0 and problem.preparation is not None and problem.preparation.asked
        self._valid_for = BOUNDED_MODELS if limited and not independent(problem.objective) else ""

    def tighten(
        self, states: StateArray, warm: Sequence[Any], cutoff: float, upper: float, known: FloatArray | None = None
    ) -> Tightened:
        """See :class:`exactsel.bounds.base.PreparedBound`."""
        tightened = super().tighten(states, warm, cutoff, upper, known)
        proofs: list[Proof] = [self._shown(point) for point in tightened.warm]
        valid_for = self._valid_for
        if self._fit is not None and not self.options.stop[0]:
            valid_for = self._solve(states, cutoff, upper, tightened, proofs) or valid_for
        return Tightened(tightened.answers, proofs, tightened.warm, valid_for=valid_for)

    def _solve(
        self, states: StateArray, cutoff: float, upper: float, tightened: Tightened, proofs: list[Proof]
    ) -> str:  # fmt: skip
        """Without a ridge: bound nodes of one convex problem by the fit, for what E takes off costs them all of it.

        Returns the scope of these bounds.
        """
        answers, k = tightened.answers, self.problem.k
        convex = [row for row, state in enumerate(states) if is_convex(*node_columns(state), k)]
        rows = np.array([row for row in convex if not answers.bound[row] >= cutoff], dtype=np.intp)
        if not rows.size:
            return ""
        assert self._fit is not None
        fitted = self._fit.tighten(states[rows], [None] * rows.size, cutoff, upper)
        for mine, theirs in zip(list[Any](answers), fitted.answers, strict=True):
            mine[rows] = theirs
        for at, row in enumerate(rows.tolist()):
            proofs[row] = fitted.proofs[at]
        return fitted.valid_for

    def _shown(self, point: ModelPoint) -> SpectralPoint:
        split = self._found.split
        return SpectralPoint(
            point.index, point.value, self._found.curvature, split.columns, split.scale, split.entries
        )  # fmt: skip
