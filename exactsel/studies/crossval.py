"""Cross-validated error of the best models of many sizes and ridge weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from exactsel import clock
from exactsel.data.missing import middle_of
from exactsel.errors import InputError
from exactsel.kernels.rows import loss_value
from exactsel.losses.base import Loss
from exactsel.problem.boxed import boxed
from exactsel.problem.checks import default_delta, make_loss
from exactsel.problem.groups import GroupSpec, labels_of
from exactsel.problem.labels import labels_for
from exactsel.problem.offsets import checked_offset
from exactsel.problem.preparing import AUTO, checked_weights
from exactsel.problem.regression import Problem
from exactsel.problem.row_labels import check_rows
from exactsel.solving.executors import Workers
from exactsel.solving.outcome import Termination
from exactsel.studies.path import SolutionPath, solve_path
from exactsel.types import FloatArray, IntArray


@dataclass(frozen=True)
class ValidationErrors:
    """Mean loss of a held-out row: for quadratic loss half the mean squared error."""

    ks: tuple[int, ...]
    lams: tuple[float, ...]
    errors: FloatArray
    """(folds, lams, ks)"""
    stopped: frozenset[Termination] = frozenset()
    """Why searches of the folds stopped short of the tolerance asked for."""

    @property
    def proven(self) -> bool:
        """Whether every model of every fold reached the tolerance asked for."""
        return not self.stopped

    @property
    def mean(self) -> FloatArray:
        """(lams, ks) over the folds."""
        mean: FloatArray = self.errors.mean(axis=0)
        return mean

    @property
    def standard_error(self) -> FloatArray:
        """(lams, ks) of the mean over the folds."""
        folds = len(self.errors)
        error: FloatArray = self.errors.std(axis=0, ddof=1) / np.sqrt(folds) if folds > 1 else 0.0 * self.errors[0]
        return error

    @property
    def best(self) -> tuple[float, int]:
        """(lam, k) of the smallest mean error; among equals the smaller model, then the larger lam."""
        lams, ks = np.nonzero(self.mean == self.mean.min())
        place = min(range(len(ks)), key=lambda i: (self.ks[ks[i]], -self.lams[lams[i]]))
        return self.lams[lams[place]], self.ks[ks[place]]


def random_folds(n: int, folds: int, seed: int = 0) -> list[tuple[IntArray, IntArray]]:
    """(training rows, held-out rows) for each of ``folds`` random parts of n rows.

    Raises
    ------
    InputError
        When there are fewer than two folds, or fewer rows than folds.
    """
    if not 2 <= folds <= n:
        raise InputError(f"{folds} folds were asked for with {n} rows; choose between 2 and the number of rows.")
    order = np.random.default_rng(seed).permutation(n)
    parts = [np.sort(part) for part in np.array_split(order, folds)]
    return [(np.setdiff1d(order, part), part) for part in parts]


_DEMANDS = ("must_have", "must_not", "hierarchy", "hierarchy_kind", "groups", "per_group")

Progress = Callable[[int, SolutionPath, float], None]


class _Data(NamedTuple):
    """All rows, as they were given."""

    A: FloatArray
    y: FloatArray
    loss: Loss
    """Of every fold: a default Huber threshold is that of all rows."""
    weights: FloatArray | None
    offset: FloatArray | None
    missing: str

    @classmethod
    def of(
        cls, A: FloatArray, y: ArrayLike, loss: str | Loss, delta: float | None, weights: ArrayLike | None,
        offset: ArrayLike | None, missing: str,
    ) -> _Data:  # fmt: skip
        """The rows, checked."""
        target = np.asarray(labels_for(loss, y), dtype=np.float64)
        counted = None if weights is None else checked_weights(weights, target.size, loss)
        known = None if offset is None else checked_offset(offset, target.size)
        explained = target if known is None else target - known
        if loss == "huber" and delta is None:
            delta = default_delta(explained, counted)
        return cls(A, target, make_loss(loss, delta, explained), counted, known, missing)

    def problem(self, rows: IntArray, k: int, kept: IntArray, **options: Any) -> Problem:
        """The problem on these rows, of the columns ``kept``."""
        beside: dict[str, Any] = {
            name: None if values is None else values[rows]
            for name, values in (("weights", self.weights), ("offset", self.offset))
        }
        return Problem.prepared(self._filled(rows, rows)[:, kept], self.y[rows], k, loss=self.loss, **beside, **options)

    def columns_of(self, train: IntArray, labels: Sequence[Any] | None) -> IntArray:
        """The columns that matter: where there are terms of several columns, without levels no training row has.

        Rows with such a level are predicted as the reference.
        """
        every = np.arange(self.A.shape[1])
        if labels is None:
            return every
        rows = self._filled(train, train)
        counted = rows if self.weights is None else rows[self.weights[train] > 0]
        varies = np.ptp(counted, axis=0) > 0
        alive = {label for label, moves in zip(labels, varies, strict=True) if moves and label is not None}
        return every[[bool(moves) or label not in alive for label, moves in zip(labels, varies, strict=True)]]

    def held_out_losses(
        self, path: SolutionPath, train: IntArray, held_out: IntArray, kept: IntArray
    ) -> list[float]:  # fmt: skip
        """The mean loss of each model of the path over rows that were held out."""
        if path.interrupted:
            raise KeyboardInterrupt
        counts = (np.ones(self.y.size) if self.weights is None else self.weights)[held_out]
        if not counts.any():
            raise InputError("a fold holds out only rows of weight 0, so it measures nothing; choose fewer folds.")
        rows, beside = self._filled(held_out, train), 0.0 if self.offset is None else self.offset[held_out]
        models = [result.model for result in path.results if result.model is not None]
        return [
            _mean_loss(self.loss, model.predict(rows[:, kept]) + beside, self.y[held_out], counts) for model in models
        ]

    def _filled(self, rows: IntArray, known: IntArray) -> FloatArray:
        """These rows of A with what stands for their gaps by the rows ``known``."""
        A = self.A[rows]
        gaps = np.isnan(A)
        if not gaps.any():
            return A
        weights = None if self.weights is None else self.weights[known]
        return np.where(gaps, middle_of(self.A[known], self.missing, weights), A)


def cross_validate(
    A: FloatArray, y: FloatArray, folds: Iterable[tuple[IntArray, IntArray]], ks: Sequence[int],
    lams: Sequence[float], *, loss: str | Loss = "quadratic", delta: float | None = None, intercept: bool | str = AUTO,
    scale: bool = False, weights: ArrayLike | None = None, offset: ArrayLike | None = None,
    must_have: Sequence[int | str] = (), must_not: Sequence[int | str] = (),
    hierarchy: Mapping[Any, Any] | None = None, hierarchy_kind: str = "strong", groups: GroupSpec | None = None,
    per_group: int | None = None, nonnegative: str | Sequence[int | str] = (),
    bounds: Sequence[tuple[Any, float, float]] = (), missing: str = "mean", total: float | None = None,
    progress: Progress | None = None, executor: Any = None, workers: int | None = None, scheduler: str | None = None,
    **options: Any,
) -> ValidationErrors:  # fmt: skip
    """Solve the path on each fold's training rows and measure its models on the rows held out.

    Parameters
    ----------
    A, y : arrays (n, d), (n,); where A has no value, nan
    folds, ks, lams : iterable of (training rows, held-out rows), sizes and ridge weights to try
    loss, delta, must_have, must_not, hierarchy, hierarchy_kind, groups, per_group
        As for :class:`exactsel.Problem`; a default Huber threshold is that of all rows, the same in every fold.
    nonnegative, bounds : as for :func:`exactsel.boxed`
    intercept, scale : bool
        There is an intercept by default. A fold's columns are prepared by what its training rows are like, its models
        measured on the held-out rows as they are.
    weights : array (n,), optional, of rows; a fold's error is the weighted mean over its held-out rows
    offset : array (n,), optional, known part of predictions, as for :meth:`exactsel.Problem.prepared`
    missing : str, what stands for the nan of a column: ``mean`` or ``median`` of a fold's training rows, weighted
    total : float, optional, seconds for all problems, shared out evenly among those that are left
    progress : callable, optional, called after each fold with its number (from 1), its path and the seconds so far
    executor, workers, scheduler : optional, who expands the nodes of each search, as for :func:`exactsel.solve`
    **options
        As for :func:`exactsel.solve`; limits hold for each problem.
    """
    check_rows(A, y=y, weights=weights, offset=offset)
    labels = None if groups is None else labels_of(groups, A.shape[1])
    given = (must_have, must_not, hierarchy, hierarchy_kind, labels, per_group)
    demands: dict[str, Any] = dict(zip(_DEMANDS, given, strict=True))
    data = _Data.of(A, y, loss, delta, weights, offset, missing)
    terms, most = (None, A.shape[1]) if labels is None or per_group is not None else (labels, _how_many(labels))
    sizes, ridges = tuple(sorted({min(k, most) for k in ks})), tuple(sorted({*lams}, reverse=True))
    errors, stopped, began, parts = list[FloatArray](), set[Termination](), clock.now(), list(folds)
    with Workers(executor, workers, scheduler).engaged() as hired:
        for train, held_out in parts:
            kept = data.columns_of(train, terms)
            demands["groups"] = labels if terms is None else [terms[j] for j in kept.tolist()]
            with _told_of_fold(len(errors) + 1):
                problem = data.problem(
                    train, sizes[-1], kept, lam=ridges[0], intercept=intercept, scale=scale, **demands
                )
            chosen = boxed(problem, nonnegative, bounds) if len(nonnegative) or len(bounds) else problem
            left = (len(parts) - len(errors)) * len(sizes) * len(ridges) + 1  # and one for whoever solves on all rows
            path = solve_path(
                chosen, sizes, ridges, executor=hired, **options | _share(total, clock.now() - began, left)
            )
            stopped.update(result.termination for result in path.results if not result.reached)
            errors.append(np.reshape(data.held_out_losses(path, train, held_out, kept), (len(ridges), len(sizes))))
            if progress is not None:
                progress(len(errors), path, clock.now() - began)
    if not parts:
        raise InputError("there are no folds; give at least one pair of training and held-out rows.")
    return ValidationErrors(sizes, ridges, np.array(errors), frozenset(stopped))


def _how_many(labels: Sequence[str | None]) -> int:
    """How many terms columns of these labels make."""
    return len({*labels} - {None}) + list(labels).count(None)


@contextmanager
def _told_of_fold(number: int) -> Iterator[None]:
    """What cannot be done with the training rows of a fold says so."""
    try:
        yield
    except InputError as error:
        raise type(error)(f"with the training rows of fold {number} alone, {error}") from None


def _share(total: float | None, spent: float, problems: int) -> dict[str, Any]:
    """The time limit of each of so many problems that are left, if there is one for all."""
    return {} if total is None else {"time_limit": max(0.0, total - spent) / problems}


def _mean_loss(loss: Loss, fitted: FloatArray, y: FloatArray, counts: FloatArray) -> float:
    """The mean loss over rows that count as often as ``counts`` says."""
    if np.all(counts == 1.0):
        return float(loss_value(loss, fitted, y)) / len(y)
    each = [float(loss_value(loss, fitted[i : i + 1], y[i : i + 1])) for i in range(len(y))]
    return float(counts @ each / counts.sum())
