"""Estimators that choose k and lam by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from exactsel.problem.preparing import wants_intercept
from exactsel.sklearn.base import BestSubsetBase, LinearClassifier, LinearRegressor
from exactsel.sklearn.estimators import check_loss
from exactsel.studies.crossval import cross_validate
from exactsel.types import FloatArray


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

    ks: Sequence[int] | None
    lams: Sequence[float] | None
    cv: Any

    def _choose(
        self, X: FloatArray, y: FloatArray, loss: str, weights: FloatArray | None, classes: bool
    ) -> tuple[FloatArray, float]:
        ks = list(range(1, min(10, X.shape[1]) + 1)) if self.ks is None else list(self.ks)
        lams = [self._lam(loss)] if self.lams is None else list(self.lams)
        folds = check_cv(self.cv, y, classifier=classes).split(X, y)
        found = cross_validate(
            X, y, folds, ks, lams, loss=loss, delta=self._delta(y, loss, weights), scale=bool(self.standardize),
            intercept=wants_intercept(self.fit_intercept, loss), weights=weights, **self._options(),
        )  # fmt: skip
        self.lam_, self.k_ = found.best
        self.cv_proven_ = found.proven
        self.cv_results_ = {
            "k": np.tile(found.ks, len(found.lams)), "lam": np.repeat(found.lams, len(found.ks)),
            "mean_error": found.mean.ravel(), "standard_error": found.standard_error.ravel(),
            "errors": found.errors.reshape(len(found.errors), -1),
        }  # fmt: skip
        return self._solve(X, y, loss, self.k_, self.lam_, weights)


class BestSubsetCV(LinearRegressor, ChoosingBase):
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
    delta, fit_intercept, standardize, rel_eps, time_limit, solver_options
        See :class:`exactsel.sklearn.BestSubsetRegressor`; limits hold for each problem.

    Notes
    -----
    The fitted attributes are those of :class:`exactsel.sklearn.crossval.ChoosingBase`.
    """

    lam = None

    def __init__(
        self,
        ks: Sequence[int] | None = None,
        lams: Sequence[float] | None = None,
        *,
        loss: str = "quadratic",
        cv: Any = 5,
        delta: float | None = None,
        fit_intercept: bool | str = True,
        standardize: bool = False,
        rel_eps: float = 1e-6,
        time_limit: float | None = None,
        solver_options: dict[str, Any] | None = None,
    ) -> None:
        self.ks = ks
        self.lams = lams
        self.loss = loss
        self.cv = cv
        self.delta = delta
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.rel_eps = rel_eps
        self.time_limit = time_limit
        self.solver_options = solver_options

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BestSubsetCV:
        """Choose k and lam, and find the best model with them.

        Parameters
        ----------
        X : array (n, d)
        y : array (n,)
        sample_weight : array (n,), optional
            How much each row counts; 2 is the same as the row twice, 0 as no such row.

        Returns
        -------
        BestSubsetCV
            Itself.
        """
        check_loss(self.loss, ("quadratic", "huber"))
        X, y = self._training_data(X, y)
        self.coef_, self.intercept_ = self._choose(X, y, self.loss, self._row_weights(X, sample_weight), classes=False)
        return self


class BestSubsetClassifierCV(LinearClassifier, ChoosingBase):
    """Logistic regression on the best columns, k and lam chosen by cross-validation.

    Parameters
    ----------
    ks, lams, cv, fit_intercept, standardize, rel_eps, time_limit, solver_options
        See :class:`BestSubsetCV` and :class:`exactsel.sklearn.BestSubsetClassifier`.

    Notes
    -----
    The fitted attributes are those of :class:`exactsel.sklearn.crossval.ChoosingBase`.
    """

    lam = None
    delta = None

    def __init__(
        self,
        ks: Sequence[int] | None = None,
        lams: Sequence[float] | None = None,
        *,
        cv: Any = 5,
        fit_intercept: bool | str = True,
        standardize: bool = False,
        rel_eps: float = 1e-6,
        time_limit: float | None = None,
        solver_options: dict[str, Any] | None = None,
    ) -> None:
        self.ks = ks
        self.lams = lams
        self.cv = cv
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.rel_eps = rel_eps
        self.time_limit = time_limit
        self.solver_options = solver_options

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BestSubsetClassifierCV:
        """Choose k and lam, and find the best model with them.

        Parameters
        ----------
        X : array (n, d)
        y : array (n,)
            Labels of two classes.
        sample_weight : array (n,), optional
            How much each row counts; 2 is the same as the row twice, 0 as no such row.

        Returns
        -------
        BestSubsetClassifierCV
            Itself.
        """
        X, labels = self._training_data(X, y)
        weights = self._row_weights(X, sample_weight)
        self._set_model(*self._choose(X, labels, "logistic", weights, classes=True))
        return self
