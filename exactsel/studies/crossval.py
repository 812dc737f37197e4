"""Cross-validated error of the best models of many sizes and ridge weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from exactsel import clock
from exactsel.arguments import numbers, shown, whole_numbers
from exactsel.data.missing import middle_of
from exactsel.errors import InputError, UnsupportedError
from exactsel.kernels.rows import loss_value
from exactsel.losses.base import Loss
from exactsel.observers.lines import Say, teller
from exactsel.problem.interface import SubsetProblem, is_regression
from exactsel.problem.regression import Problem
from exactsel.problem.some_rows import on_rows
from exactsel.solving.api import OPTIONS
from exactsel.solving.executors import Workers
from exactsel.solving.outcome import Termination
from exactsel.solving.problem_arguments import Gaps, gaps_asked, problem_asked
from exactsel.studies.path import USUAL_SIZES, SolutionPath, solve_path, with_a_ridge
from exactsel.to_plain import counted, html_line, html_table, html_view
from exactsel.types import FloatArray, IntArray

if TYPE_CHECKING:
    pass

LEAVE_ONE_OUT = ("loo", "n")
"""What stands for as many folds as there are rows."""


@dataclass(frozen=True)
class ValidationErrors:
    """Mean loss of a held-out row: for quadratic loss half the mean squared error."""

    ks: tuple[int, ...]
    lams: tuple[float, ...]
    errors: FloatArray
    """(folds, lams, ks)"""
    stopped: frozenset[Termination] = frozenset()
    """Why searches of the folds stopped short of the requested tolerance."""

    @property
    def proven(self) -> bool:
        """Whether every model of every fold reached the requested tolerance."""
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

    @property
    def one_standard_error(self) -> tuple[float, int]:
        """(lam, k) of the smallest model whose mean error is within one standard error of the smallest.

        Among models of this size it is the one with the smallest mean error. These folds do not distinguish errors
        so close (Breiman, Friedman, Olshen and Stone 1984, section 3.4.3).
        """
        lam, k = self.best
        place = self.lams.index(lam), self.ks.index(k)
        lams, ks = np.nonzero(self.mean <= self.mean[place] + self.standard_error[place])
        chosen = min(range(len(ks)), key=lambda i: (self.ks[ks[i]], self.mean[lams[i], ks[i]]))
        return self.lams[lams[chosen]], self.ks[ks[chosen]]

    def __repr__(self) -> str:
        folds, sizes = counted(len(self.errors), "fold"), counted(len(self.ks), "size")
        return f"<ValidationErrors of {folds}, {len(self.lams)} lam, {sizes}>"

    def __str__(self) -> str:
        """One line for each size and lam, and the choice."""
        rows = [self._head, *self._rows()]
        lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, (4, 10, 14, 0), strict=True)) for row in rows)
        return "\n".join([*(line.rstrip() for line in lines), self._choice])

    def _repr_html_(self) -> str:
        return html_view(html_line(self._choice, strong=True), html_table(self._rows(), self._head))

    @property
    def _head(self) -> tuple[str, ...]:
        return ("k", "lam", "held-out loss", "standard error")

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (str(size), f"{ridge:.6g}", f"{self.mean[i, j]:.6g}", f"{self.standard_error[i, j]:.3g}")
            for i, ridge in enumerate(self.lams)
            for j, size in enumerate(self.ks)
        ]

    @property
    def _choice(self) -> str:
        lam, k = self.one_standard_error
        return f"k = {k}, lam = {lam:g}: the smallest size within one standard error of the smallest held-out loss."


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


Progress = Callable[[int, SolutionPath, float], None]


class _Data(NamedTuple):
    """All rows: the problem of them, and their table where entries are missing."""

    problem: Problem
    gaps: Gaps | None

    @property
    def free(self) -> Problem:
        """The problem without limits of coefficients, which do not change what a model costs."""
        return self.problem.without_coefficient_bounds

    def fold(self, rows: IntArray, columns: IntArray) -> Problem:
        """The problem on these rows, of these ``columns``."""
        return on_rows(self.problem, rows, self._filled(rows, rows), columns)

    def columns_of(self, train: IntArray) -> IntArray:
        """The columns that matter: where there are terms of several columns, without levels no training row has.

        Rows with such a level are predicted as the reference. Where no training row has the reference, the first level
        that is there takes its place, so that without a ridge levels do not depend on the intercept.
        """
        units, preparation = self.free.units, self.free.preparation
        every = np.arange(units.columns)
        if not units.grouped:
            return every
        rows = self._filled(train, train)
        counted = rows if preparation is None or preparation.weights is None else rows[preparation.weights[train] > 0]
        varies = np.ptp(counted, axis=0) > 0
        alive = np.bincount(units.unit_of, varies, units.d) > 0
        columns: IntArray = every[varies | ~alive[units.unit_of]]
        if preparation is None or not preparation.centred or self.free.lam > 0.0:
            return columns
        return _with_a_reference(counted, columns, units.unit_of)

    def held_out_losses(
        self, path: SolutionPath, train: IntArray, held_out: IntArray, columns: IntArray
    ) -> list[float]:  # fmt: skip
        """The mean loss of each model of the path over rows that were held out."""
        if path.interrupted:
            raise KeyboardInterrupt
        preparation, y, beside = self.free.preparation, self.free.target[held_out], np.zeros(held_out.size)
        weights = None if preparation is None else preparation.row_weights
        counts = np.ones(held_out.size) if weights is None else weights[held_out]
        if preparation is not None and preparation.exposure is not None:
            y, beside = y * preparation.exposure[held_out], np.log(preparation.exposure[held_out])
        rows = self._filled(held_out, train)
        models = [result.model for result in path.results if result.model is not None]
        return [_mean_loss(self.free.loss, model.predict(rows[:, columns]) + beside, y, counts) for model in models]

    def _filled(self, rows: IntArray, train: IntArray) -> FloatArray:
        """These rows of the table with what stands for their gaps by the ``train`` rows."""
        if self.gaps is None:
            return self.free.A[rows]
        A, preparation = self.gaps.A[rows], self.free.preparation
        weights = None if preparation is None or preparation.row_weights is None else preparation.row_weights[train]
        return np.where(np.isnan(A), middle_of(self.gaps.A[train], self.gaps.way, weights), A)


def cross_validate(
    problem: SubsetProblem | object, y: ArrayLike | None = None, k: int | None = None, *, cv: object = 5,
    ks: Iterable[int] | None = None, lams: Iterable[float] | None = None, total: float | None = None,
    progress: Progress | None = None, executor: object = None, workers: int | None = None, scheduler: str | None = None,
    verbose: int = 0, **options: object,
) -> ValidationErrors:  # fmt: skip
    """Solve the path on each fold's training rows and measure its models on the rows held out.

    Columns are centred, scaled and filled in by what a fold's training rows are like. A default Huber threshold is that
    of all rows, the same in every fold; a fold's error is the weighted mean over its held-out rows.

    Parameters
    ----------
    problem : problem; or array, sparse matrix or data frame (n, d)
        Its k is the largest size unless ``ks`` is given. Data come with ``y``, as for :func:`exactsel.solve`.
    y, k : array (n,), int, optional
        Target of the data; the largest size, by default 10 or as many as there are columns.
    cv : int, "loo", splitter or iterable of (training rows, held-out rows)
        Folds: so many random parts, one for each row, or those of a splitter of scikit-learn.
    ks, lams : iterable of int, iterable of float, optional
        Sizes, by default 1 to k, and ridge weights to try, by default the problem's own.
    total : float, optional
        Seconds for all problems, shared out evenly among those that are left.
    progress : callable, optional
        Called after each fold with its number (from 1), its path and the seconds so far.
    verbose : int
        1 says a line on stderr for each fold.
    executor, workers, scheduler : optional
        Executor that expands the nodes of each search, as for :func:`exactsel.solve`.
    **options
        As for :func:`exactsel.solve`; limits hold for each problem.

    Raises
    ------
    InputError
        For folds that cannot be used, and what cannot be said of the training rows of one.
    UnsupportedError
        For column subset selection, which has no target to predict.
    """
    sizes = None if ks is None else whole_numbers("ks", ks)
    options = with_a_ridge(problem, options, lams)
    gaps = gaps_asked(problem, y, options)
    subset_problem, settings = problem_asked(problem, y, k, options, known=OPTIONS, at_most=max(sizes or [USUAL_SIZES]))
    data = _Data(of_a_target(subset_problem), gaps)
    tried = tuple(sorted({min(size, subset_problem.d) for size in sizes or range(1, subset_problem.k + 1)}))
    ridges = (data.free.objective.asked_lam,) if lams is None else numbers("lams", list(lams))
    with Workers(executor, workers, scheduler).engaged() as hired:
        folds, tell = folds_of(cv, data.free, settings.get("seed", 0)), teller(verbose)
        reporter = progress if progress is not None or tell is None else fold_lines(tell, len(folds))
        return _validated(data, folds, tried, ridges, _Shares(total, reporter, settings | {"executor": hired}))


def validated(
    problem: SubsetProblem, gaps: Gaps | None, cv: object, ks: Sequence[int], lams: Sequence[float],
    options: dict[str, Any], hired: Workers, progress: Progress | None = None,
) -> ValidationErrors:  # fmt: skip
    """:func:`cross_validate` for a given problem and the known missing entries of its table."""
    data = _Data(of_a_target(problem), gaps)
    with hired.engaged() as executor:
        shares = _Shares(None, progress, options | {"executor": executor})
        return _validated(data, folds_of(cv, data.free, options.get("seed", 0)), tuple(sorted(ks)), lams, shares)


def fold_lines(tell: Say, folds: int) -> Progress:
    """Says a line for each fold, and how many models were proven best."""

    def done(number: int, path: SolutionPath, seconds: float) -> None:
        proven, many = sum(result.reached for result in path.results), len(path.results)
        gap = max((result.gap for result in path.results), default=0.0)
        tell(
            f"fold {number} of {folds}: {proven} of {many} models proven best, largest gap {gap:.2e}, "
            f"{seconds:.1f} s so far"
        )

    return done


def of_a_target(problem: SubsetProblem) -> Problem:
    """The problem; :class:`UnsupportedError` where there is no target to predict."""
    if not is_regression(problem):
        raise UnsupportedError("column subset selection has no target to predict; give a regression.")
    return problem


def folds_of(cv: Any, problem: Problem, seed: int = 0) -> list[tuple[IntArray, IntArray]]:
    """(training rows, held-out rows) for each fold that ``cv`` (as :func:`cross_validate` has it) stands for.

    Raises
    ------
    InputError
        For what stands for none, and for a fold whose held-out rows have weight 0.
    """
    target = problem.target
    if isinstance(cv, str) and cv.casefold() in LEAVE_ONE_OUT:
        folds = random_folds(len(target), len(target), seed)
    elif isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        folds = random_folds(len(target), int(cv), seed)  # a problem's n does not count rows of weight 0
    else:
        splits = callable(getattr(cv, "split", None)) and not isinstance(cv, str)
        parts = cv.split(problem.A, target) if splits else cv
        try:
            folds = [(np.asarray(train, dtype=np.int64), np.asarray(held, dtype=np.int64)) for train, held in parts]
        except (TypeError, ValueError):
            raise InputError(
                f'cv is {shown(cv)}, but a number of folds, "loo", a splitter or pairs of rows were expected; give one.'
            ) from None
    if not folds:
        raise InputError("there are no folds; give at least one pair of training and held-out rows.")
    weights = None if problem.preparation is None else problem.preparation.row_weights
    if not all(held.size and (weights is None or weights[held].any()) for _, held in folds):
        raise InputError("a fold holds out only rows of weight 0, so it measures nothing; choose fewer folds.")
    return folds


class _Shares(NamedTuple):
    """How the searches of the folds are run."""

    total: float | None
    progress: Progress | None
    options: dict[str, Any]


def _validated(
    data: _Data, parts: Sequence[tuple[IntArray, IntArray]], sizes: tuple[int, ...], lams: Sequence[float],
    shares: _Shares,
) -> ValidationErrors:  # fmt: skip
    """See :func:`cross_validate`."""
    ridges, errors, stopped = tuple(sorted({*lams}, reverse=True)), list[FloatArray](), set[Termination]()
    began = clock.now()
    for train, held_out in parts:
        with _told_of_fold(len(errors) + 1):
            columns = data.columns_of(train)
            fold = data.fold(train, columns)
            remaining = (len(parts) - len(errors)) * len(sizes) * len(ridges) + 1  # and one for the solve on all rows
            limits = _share(shares.total, clock.now() - began, remaining)
            path = solve_path(fold, ks=sizes, lams=ridges, **shares.options | limits)
        stopped.update(result.termination for result in path.results if not result.reached)
        errors.append(np.reshape(data.held_out_losses(path, train, held_out, columns), (len(ridges), len(sizes))))
        if shares.progress is not None:
            shares.progress(len(errors), path, clock.now() - began)
    return ValidationErrors(sizes, ridges, np.array(errors), frozenset(stopped))


@contextmanager
def _told_of_fold(number: int) -> Iterator[None]:
    """What cannot be done with the training rows of a fold says so."""
    try:
        yield
    except InputError as error:
        raise type(error)(f"with the training rows of fold {number} alone, {error}") from None


def _with_a_reference(rows: FloatArray, columns: IntArray, unit_of: IntArray) -> IntArray:
    """These ``columns``, without one level of each factor whose levels are one in every row."""
    left_out = []
    for unit in np.unique(unit_of[columns]):
        members = columns[unit_of[columns] == unit]
        levels = rows[:, members]
        if members.size > 1 and np.all((levels == 0.0) | (levels == 1.0)) and np.all(levels.sum(axis=1) == 1.0):
            left_out.append(members[0])
    return np.setdiff1d(columns, left_out)


def _share(total: float | None, spent: float, problems: int) -> dict[str, Any]:
    """The time limit of each of so many problems that are left, if there is one for all."""
    return {} if total is None else {"time_limit": max(0.0, total - spent) / problems}


def _mean_loss(loss: Loss, fitted: FloatArray, y: FloatArray, counts: FloatArray) -> float:
    """The mean loss over rows that count as often as ``counts`` says."""
    if np.all(counts == 1.0):
        return float(loss_value(loss, fitted, y)) / len(y)
    each = [float(loss_value(loss, fitted[i : i + 1], y[i : i + 1])) for i in range(len(y))]
    return float(counts @ each / counts.sum())
