"""Estimators that choose k and lam by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)

from exactsel import clock
from exactsel.arguments import mapping, numbers, shown, switch, whole_numbers
from exactsel.errors import InputError
from exactsel.losses.base import CLASSES
from exactsel.problem.constraints import ARGUMENTS, asked_again, under
from exactsel.problem.groups import GroupedUnits, labels_of
from exactsel.problem.units import Units
from exactsel.sklearn.base import BestSubsetBase, ChoiceOfLoss, LinearClassifier, LinearRegressor, Self
from exactsel.solving.settings import Settings
from exactsel.studies.crossval import cross_validate
from exactsel.studies.path import SolutionPath
from exactsel.types import FloatArray

TOTAL_SECONDS = 60.0
"""A cross-validation of ten sizes may take hours to prove, so proofs of that length need an explicit limit."""


@dataclass(eq=False, repr=False)
class ChoosingBase(BestSubsetBase):
    """Choose k and lam, then solve on all rows.

    Attributes
    ----------
    k_, lam_
        The choice: the smallest mean error, among equals the smaller model.
    cv_results_ : dict
        ``k``, ``lam``, ``mean_error``, ``standard_error`` (one entry per pair) and ``errors`` (folds, pairs): mean loss
        of a held-out row, for quadratic loss half the mean squared error.
    cv_proven_ : bool
        Whether every model of every fold reached the requested tolerance.
    """

    ks: Sequence[int] | None = None
    lams: Sequence[float] | None = None
    _: KW_ONLY
    cv: Any = 5
    verbose: int = 0
    groups: Any = None
    factors: Any = None
    hierarchy: Any = None
    hierarchy_kind: str = "strong"
    not_both: Any = None
    positive: bool = False

    def fit(self: Self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, **params: Any) -> Self:
        """Choose k and lam, then find the best model on all rows.

        Parameters
        ----------
        X : array, data frame or sparse matrix (n, d)
        y : array (n,)
            Of a classifier the labels of two classes.
        sample_weight : array (n,), optional
            How much each row counts.
        **params
            For the splitter, where scikit-learn's metadata routing is on: ``groups`` for GroupKFold, say.

        Returns
        -------
        estimator
            Itself.
        """
        _raise_for_params(params, self, "fit")
        routed = process_routing(self, "fit", sample_weight=sample_weight, **params) if _routing_enabled() else None
        self._fitted(X, y, sample_weight, **({} if routed is None else routed.splitter.split))
        return self

    def get_metadata_routing(self) -> MetadataRouter:
        """What :meth:`fit` takes itself, and what it hands to the splitter of rows."""
        splitter = check_cv(self.cv, classifier=self.loss in CLASSES)
        mapping = MethodMapping().add(caller="fit", callee="split")
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        return router.add(splitter=splitter, method_mapping=mapping)

    def _best_model(
        self, X: FloatArray, y: FloatArray, weights: FloatArray | None, **split: Any
    ) -> tuple[FloatArray, float]:
        ks = list(range(1, min(10, X.shape[1]) + 1)) if self.ks is None else whole_numbers("ks", self.ks)
        lams = [self._lam()] if self.lams is None else numbers("lams", self.lams)
        if not ks or not lams:
            raise InputError("ks or lams is an empty list, so there is nothing to choose from; give some.")
        try:
            folds = list(check_cv(self.cv, y, classifier=self.loss in CLASSES).split(X, y, **split))
        except TypeError:
            raise InputError(
                f"cv is {shown(self.cv)}, but a number of folds, a splitter or pairs of rows were expected; give one."
            ) from None
        options, began = self._options(), clock.now()
        total = self.time_limit if "time_limit" not in mapping("solver_options", self.solver_options) else None
        Settings(time_limit=total)
        says = any(whole_numbers("verbose", int(self.verbose) if isinstance(self.verbose, bool) else self.verbose))
        if total is not None:
            del options["time_limit"]
        columns = Units.of(X.shape[1], self._names, (), ())
        units = columns if self._groups is None else GroupedUnits.of_columns(columns, self._groups)
        units = under(units, {name: getattr(self, name) for name in ARGUMENTS})
        groups = None if self._groups is None else labels_of(self._groups, X.shape[1], self._names)
        validation = cross_validate(
            X, y, cv=folds, ks=ks, lams=lams, loss=self.loss, delta=self._delta(y, weights),
            standardize=switch("standardize", self.standardize), fit_intercept=self._intercept(),
            sample_weight=weights, total=total, positive=switch("positive", self.positive), groups=groups,
            progress=partial(_say, len(folds)) if says else None, **asked_again(units), **options,
        )  # fmt: skip
        self.lam_, self.k_ = validation.best
        self.cv_proven_ = validation.proven
        self.cv_results_ = {
            "k": np.tile(validation.ks, len(validation.lams)), "lam": np.repeat(validation.lams, len(validation.ks)),
            "mean_error": validation.mean.ravel(), "standard_error": validation.standard_error.ravel(),
            "errors": validation.errors.reshape(len(validation.errors), -1),
        }  # fmt: skip
        limits = {} if total is None else {"time_limit": max(0.0, total - (clock.now() - began))}
        self._stopped_folds = validation.stopped
        return self._solve(X, y, self.k_, self.lam_, weights, **limits)


def _say(folds: int, number: int, path: SolutionPath, seconds: float) -> None:
    """One line for a fold."""
    proven = sum(result.reached for result in path.results)
    print(f"fold {number} of {folds}: {proven} of {len(path.results)} models proven best, {seconds:.1f} s so far")


@dataclass(eq=False, repr=False)
class BestSubsetCV(LinearRegressor, ChoiceOfLoss, ChoosingBase):
    """Regression on the best columns, their number and the ridge weight chosen by cross-validation.

    Parameters
    ----------
    ks : sequence of int, optional
        Sizes to try; 1 to 10 by default.
    lams : sequence of float, optional
        Ridge weights to try; by default that of :class:`exactsel.sklearn.BestSubsetRegressor`.
    loss : str
        ``"quadratic"`` or ``"huber"``.
    cv : int, splitter or iterable
        As in scikit-learn.
    time_limit : float, optional
        Seconds for all problems together, shared out evenly among those that are left; None for no limit. A
        :class:`sklearn.exceptions.ConvergenceWarning` states where that was too little to prove all models best.
    verbose : int
        1 prints a line for each fold.
    delta, fit_intercept, standardize, rel_eps, groups, factors, hierarchy, hierarchy_kind, not_both, positive,
    solver_options
        See :class:`exactsel.sklearn.BestSubsetRegressor`.

    Notes
    -----
    The fitted attributes are those of :class:`exactsel.sklearn.crossval.ChoosingBase`.
    """

    _: KW_ONLY
    time_limit: float | None = TOTAL_SECONDS


@dataclass(eq=False, repr=False)
class BestSubsetClassifierCV(LinearClassifier, ChoosingBase):
    """A classifier on the best columns, k and lam chosen by cross-validation.

    Parameters
    ----------
    loss : str
        ``"logistic"`` or ``"squared_hinge"``.
    ks, lams, cv, time_limit, verbose, class_weight, fit_intercept, standardize, rel_eps, groups, factors, hierarchy,
    hierarchy_kind, not_both, positive, solver_options
        See :class:`BestSubsetCV` and :class:`exactsel.sklearn.BestSubsetClassifier`.

    Notes
    -----
    The fitted attributes are those of :class:`exactsel.sklearn.crossval.ChoosingBase`.
    """

    _: KW_ONLY
    time_limit: float | None = TOTAL_SECONDS
    class_weight: Any = None
    loss: str = "logistic"

    losses = CLASSES
