"""Estimators that choose k and lam by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from exactsel.problem.preparing import wants_intercept
from exactsel.sklearn.base import BestSubsetBase, ChoiceOfLoss, LinearClassifier, LinearRegressor
from exactsel.studies.crossval import cross_validate
from exactsel.types import FloatArray


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
        Whether every model of every fold reached the tolerance asked for.
    """

    ks: Sequence[int] | None = None
    lams: Sequence[float] | None = None
    _: KW_ONLY
    cv: Any = 5
    hierarchy: Any = None
    hierarchy_kind: str = "strong"

    def _best_model(self, X: FloatArray, y: FloatArray, weights: FloatArray | None) -> tuple[FloatArray, float]:
        ks = list(range(1, min(10, X.shape[1]) + 1)) if self.ks is None else list(self.ks)
        lams = [self._lam()] if self.lams is None else list(self.lams)
        folds = check_cv(self.cv, y, classifier=self.loss == "logistic").split(X, y)
        found = cross_validate(
            X, y, folds, ks, lams, loss=self.loss, delta=self._delta(y, weights), scale=bool(self.standardize),
            intercept=wants_intercept(self.fit_intercept, self.loss), weights=weights,
            hierarchy=self.hierarchy, hierarchy_kind=self.hierarchy_kind, **self._options(),
        )  # fmt: skip
        self.lam_, self.k_ = found.best
        self.cv_proven_ = found.proven
        self.cv_results_ = {
            "k": np.tile(found.ks, len(found.lams)), "lam": np.repeat(found.lams, len(found.ks)),
            "mean_error": found.mean.ravel(), "standard_error": found.standard_error.ravel(),
            "errors": found.errors.reshape(len(found.errors), -1),
        }  # fmt: skip
        return self._solve(X, y, self.k_, self.lam_, weights)


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
    delta, fit_intercept, standardize, rel_eps, time_limit, hierarchy, hierarchy_kind, solver_options
        See :class:`exactsel.sklearn.BestSubsetRegressor`; limits hold for each problem.

    Notes
    -----
    The fitted attributes are those of :class:`exactsel.sklearn.crossval.ChoosingBase`.
    """


@dataclass(eq=False, repr=False)
class BestSubsetClassifierCV(LinearClassifier, ChoosingBase):
    """Logistic regression on the best columns, k and lam chosen by cross-validation.

    Parameters
    ----------
    ks, lams, cv, fit_intercept, standardize, rel_eps, time_limit, hierarchy, hierarchy_kind, solver_options
        See :class:`BestSubsetCV` and :class:`exactsel.sklearn.BestSubsetClassifier`.

    Notes
    -----
    The fitted attributes are those of :class:`exactsel.sklearn.crossval.ChoosingBase`.
    """

    loss = "logistic"
    losses = ("logistic",)
