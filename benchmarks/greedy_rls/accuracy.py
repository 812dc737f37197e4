"""Sections 4.2 and 4.3: test accuracy over the number of selected features, and leave-one-out against test accuracy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.model_selection import StratifiedKFold

from benchmarks.differences import p_text, paired
from benchmarks.folder import MissingData
from benchmarks.greedy_rls.data import Floats, load, scaled
from benchmarks.paper.tables import Row
from exactsel_heuristics.greedy_rls import select_path

LAMS = 2.0 ** np.arange(-15, 16)

LANDMARKS = (1, 2, 3, 4, 5, 7, 10, 14, 20, 24, 50, 100, 200, 500, 1000, 2000)


@dataclass(frozen=True)
class Fold:
    """Accuracies on one fold after 1, 2, ... features: (steps,), for ``random`` the mean over the orders."""

    lam: float
    greedy: Floats
    leave_one_out: Floats
    random: Floats
    majority: float


@dataclass(frozen=True)
class Curves:
    """Means over the folds, up to the shortest path among them."""

    folds: Sequence[Fold]

    @property
    def steps(self) -> int:
        """Number of features up to which all folds have figures."""
        return min(len(fold.greedy) for fold in self.folds)

    def mean(self, name: str) -> Floats:
        """One of greedy, leave_one_out and random, (steps,)."""
        mean: Floats = np.mean([getattr(fold, name)[: self.steps] for fold in self.folds], axis=0)
        return mean

    def at(self, name: str, features: int) -> list[float]:
        """One of them for so many features, by fold."""
        return [float(getattr(fold, name)[features - 1]) for fold in self.folds]

    @property
    def majority(self) -> float:
        """Accuracy of the class that is larger in the training part."""
        return float(np.mean([fold.majority for fold in self.folds]))


@dataclass(frozen=True)
class Accuracy:
    """Parameters; ``orders`` random orders of the features stand for the paper's random selection.

    ``bias`` appends a feature that is 1 everywhere, a candidate like the others; ``steps`` features are selected (all
    when None); ``folder`` and ``positive`` are those of :func:`benchmarks.greedy_rls.data.load`.
    """

    name: str
    criterion: str = "zero-one"
    bias: bool = False
    folds: int = 10
    orders: int = 10
    steps: int | None = None
    seed: int = 0
    folder: Path | None = None
    positive: float | None = None

    @property
    def title(self) -> str:
        """A heading that says what was run."""
        bias = ", with a constant feature" if self.bias else ""
        name = self.name if self.positive is None else f"{self.name}, {self.positive:g} or not"
        return f"Accuracy: {name}, criterion {self.criterion}, {self.folds} folds{bias}"

    @cached_property
    def curves(self) -> Curves:
        """All folds."""
        table = load(self.name, self.folder, self.positive)
        smallest = int(min(np.sum(table.y > 0), np.sum(table.y < 0)))
        if smallest < self.folds:
            raise MissingData(
                f"{self.name} is skipped: its smaller class has {smallest} rows, fewer than the {self.folds} folds."
            )
        splitter = StratifiedKFold(self.folds, shuffle=True, random_state=self.seed)
        folds = []
        for number, (train, test) in enumerate(splitter.split(table.A, table.y)):
            parts = scaled(table.A[train], table.A[test], table.standardise)
            if self.bias:
                parts = tuple(np.column_stack([part, np.ones(len(part))]) for part in parts)  # type: ignore[assignment]
            folds.append(self._fold(*parts, table.y[train], table.y[test], number))
        return Curves(folds)

    def rows(self) -> Iterator[Row]:
        """One row per landmark among the numbers of features."""
        curves = self.curves
        greedy, loo, random = (curves.mean(name) for name in ("greedy", "leave_one_out", "random"))
        for t in sorted({*(t for t in LANDMARKS if t < curves.steps), curves.steps}):
            yield {
                "features": t,
                "greedy RLS": float(greedy[t - 1]),
                "random selection": float(random[t - 1]),
                "greedy against random, Wilcoxon p": p_text(paired(curves.at("greedy", t), curves.at("random", t))),
                "majority voter": curves.majority,
                "leave-one-out, same model": float(loo[t - 1]),
                "leave-one-out minus test": float(loo[t - 1] - greedy[t - 1]),
            }

    def _fold(self, train: Floats, test: Floats, y: Floats, target: Floats, number: int) -> Fold:
        d = train.shape[1]
        steps = min(d, self.steps or d)
        lam = chosen_lam(train, y)
        path = select_path(train.T, y, lam, steps, self.criterion)
        rng = np.random.default_rng([self.seed, number])
        orders = [rng.permutation(d)[:steps] for _ in range(self.orders)]
        random = [accuracies(test[:, order], target, ridge_path(train[:, order], y, lam)) for order in orders]
        larger = 1.0 if np.sum(y > 0) >= np.sum(y < 0) else -1.0
        return Fold(
            lam,
            accuracies(test[:, path.columns], target, path.coefficients),
            leave_one_out_accuracies(train[:, path.columns], y, lam, path.coefficients),
            np.mean(random, axis=0),
            float(np.mean(target == larger)),
        )


def chosen_lam(A: Floats, y: Floats) -> float:
    """The ridge weight with the fewest wrong leave-one-out signs on all features; ties by the squared errors."""
    U, s, _ = np.linalg.svd(A, full_matrices=False)
    outside = 1.0 - np.einsum("ij,ij->i", U, U)
    projected = U.T @ y
    rest = y - U @ projected
    keys = []
    for lam in LAMS:
        left = lam / (s**2 + lam)
        slack = outside + (U**2) @ left
        errors = (rest + U @ (left * projected)) / slack
        keys.append((int(np.sum(y * (y - errors) <= 0.0)), float(np.sum(errors**2))))
    return float(LAMS[min(range(len(LAMS)), key=keys.__getitem__)])


def ridge_path(A: Floats, y: Floats, lam: float) -> Floats:
    """Ridge coefficients on the first 1, 2, ... columns of A, row by row, (d, d).

    With A = QR (of the data extended by sqrt(lam) I) the coefficients on the first t columns are the sum of the first
    t columns of R^{-1}, each times its entry of Q'y, because a leading block of R^{-1} is the inverse of that block.
    """
    n, d = A.shape
    extended = np.zeros((n + d + 1, d + 1))
    extended[:n, :d], extended[:n, d] = A, y
    extended[n:-1, :d] = np.sqrt(lam) * np.eye(d)
    triangle = np.linalg.qr(extended, mode="r")[:d]
    inverse = solve_triangular(triangle[:, :d], np.eye(d), check_finite=False)
    coefficients: Floats = np.cumsum(inverse * triangle[:, d], axis=1).T
    return coefficients


def accuracies(A: Floats, y: Floats, coefficients: Floats) -> Floats:
    """Share of right signs of every model, (models,); a prediction of zero is wrong."""
    share: Floats = np.mean(y * (coefficients @ A.T) > 0.0, axis=1)
    return share


def leave_one_out_accuracies(A: Floats, y: Floats, lam: float, coefficients: Floats) -> Floats:
    """Share of right leave-one-out signs of every model on the columns in the order of selection, (models,).

    Computed from the models anew, not taken from the selection: leverages from the rows of an orthogonal factor.
    """
    n, d = A.shape
    Q = np.linalg.qr(np.vstack([A, np.sqrt(lam) * np.eye(d)]))[0][:n]
    slack = 1.0 - np.cumsum(Q**2, axis=1).T
    errors = (y - coefficients @ A.T) / slack
    share: Floats = np.mean(y * (y - errors) > 0.0, axis=1)
    return share
