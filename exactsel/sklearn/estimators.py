"""Estimators with a given k and lam."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from exactsel.errors import InputError
from exactsel.sklearn.base import BestSubsetBase, LinearClassifier, LinearRegressor, two_classes
from exactsel.types import BoolArray


class BestSubsetRegressor(LinearRegressor):
    """Regression on at most k columns, proven best for the training data.

    Parameters
    ----------
    k : int
        Largest number of columns; more than there are counts as all.
    lam : float, optional
        Ridge weight of (lam/2)||x||²; by default 0 for quadratic loss, 1 otherwise. It corresponds to ``alpha`` of
        :class:`sklearn.linear_model.Ridge`.
    loss : str
        ``"quadratic"`` or ``"huber"``.
    delta : float, optional
        Huber threshold; by default 1.345 times the robust scale of y, or its standard deviation where half of y is
        equal.
    fit_intercept : bool or "auto"
        Whether the model has an unpenalised intercept; ``"auto"`` is True.
    standardize : bool
        Solve for columns of mean square 1; ``lam`` then weighs their coefficients. Undone in ``coef_``.
    rel_eps, time_limit
        Relative gap to stop at, and seconds.
    solver_options : dict, optional
        Further options of :func:`exactsel.solve`.

    Notes
    -----
    The fitted attributes are those of :class:`exactsel.sklearn.base.BestSubsetBase`.
    """

    def __init__(
        self,
        k: int = 5,
        lam: float | None = None,
        *,
        loss: str = "quadratic",
        delta: float | None = None,
        fit_intercept: bool | str = True,
        standardize: bool = False,
        rel_eps: float = 1e-6,
        time_limit: float | None = None,
        solver_options: dict[str, Any] | None = None,
    ) -> None:
        self.k = k
        self.lam = lam
        self.loss = loss
        self.delta = delta
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.rel_eps = rel_eps
        self.time_limit = time_limit
        self.solver_options = solver_options

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BestSubsetRegressor:
        """Find the best model.

        Parameters
        ----------
        X : array (n, d)
        y : array (n,)
        sample_weight : array (n,), optional
            How much each row counts; 2 is the same as the row twice, 0 as no such row.

        Returns
        -------
        BestSubsetRegressor
            Itself.
        """
        check_loss(self.loss, ("quadratic", "huber"))
        X, y = self._training_data(X, y)
        self.coef_, self.intercept_ = self._solve(
            X, y, self.loss, self.k, self._lam(self.loss), self._row_weights(X, sample_weight)
        )
        return self


class HuberBestSubsetRegressor(LinearRegressor):
    """Robust regression on at most k columns: :class:`BestSubsetRegressor` with Huber loss.

    Parameters
    ----------
    k, lam, delta, fit_intercept, standardize, rel_eps, time_limit, solver_options
        See :class:`BestSubsetRegressor`.

    Notes
    -----
    The fitted attributes are those of :class:`exactsel.sklearn.base.BestSubsetBase`.
    """

    def __init__(
        self,
        k: int = 5,
        lam: float | None = None,
        *,
        delta: float | None = None,
        fit_intercept: bool | str = True,
        standardize: bool = False,
        rel_eps: float = 1e-6,
        time_limit: float | None = None,
        solver_options: dict[str, Any] | None = None,
    ) -> None:
        self.k = k
        self.lam = lam
        self.delta = delta
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.rel_eps = rel_eps
        self.time_limit = time_limit
        self.solver_options = solver_options

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> HuberBestSubsetRegressor:
        """Find the best model.

        Parameters
        ----------
        X : array (n, d)
        y : array (n,)
        sample_weight : array (n,), optional
            How much each row counts; 2 is the same as the row twice, 0 as no such row.

        Returns
        -------
        HuberBestSubsetRegressor
            Itself.
        """
        X, y = self._training_data(X, y)
        self.coef_, self.intercept_ = self._solve(
            X, y, "huber", self.k, self._lam("huber"), self._row_weights(X, sample_weight)
        )
        return self


class BestSubsetClassifier(LinearClassifier):
    """Logistic regression of two classes on at most k columns, proven best for the training data.

    Parameters
    ----------
    k : int
        Largest number of columns; more than there are counts as all.
    lam : float, optional
        Ridge weight; 1 by default. It is 1/C of :class:`sklearn.linear_model.LogisticRegression`.
    fit_intercept, standardize, rel_eps, time_limit, solver_options
        See :class:`BestSubsetRegressor`.

    Notes
    -----
    The fitted attributes are those of :class:`exactsel.sklearn.base.BestSubsetBase`.
    """

    delta = None

    def __init__(
        self,
        k: int = 5,
        lam: float | None = None,
        *,
        fit_intercept: bool | str = True,
        standardize: bool = False,
        rel_eps: float = 1e-6,
        time_limit: float | None = None,
        solver_options: dict[str, Any] | None = None,
    ) -> None:
        self.k = k
        self.lam = lam
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.rel_eps = rel_eps
        self.time_limit = time_limit
        self.solver_options = solver_options

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BestSubsetClassifier:
        """Find the best model.

        Parameters
        ----------
        X : array (n, d)
        y : array (n,)
            Labels of two classes.
        sample_weight : array (n,), optional
            How much each row counts; 2 is the same as the row twice, 0 as no such row.

        Returns
        -------
        BestSubsetClassifier
            Itself.
        """
        X, labels = self._training_data(X, y)
        weights = self._row_weights(X, sample_weight)
        self._set_model(*self._solve(X, labels, "logistic", self.k, self._lam("logistic"), weights))
        return self


class BestSubsetSelector(SelectorMixin, BestSubsetBase):  # type: ignore[misc]
    """Keep the columns of the best model of at most k columns.

    Parameters
    ----------
    k, lam, delta, fit_intercept, standardize, rel_eps, time_limit, solver_options
        See :class:`BestSubsetRegressor`.
    loss : str
        ``"quadratic"``, ``"huber"``, or ``"logistic"`` for labels of two classes.

    Notes
    -----
    The fitted attributes are those of :class:`exactsel.sklearn.base.BestSubsetBase`.
    """

    def __init__(
        self,
        k: int = 5,
        lam: float | None = None,
        *,
        loss: str = "quadratic",
        delta: float | None = None,
        fit_intercept: bool | str = True,
        standardize: bool = False,
        rel_eps: float = 1e-6,
        time_limit: float | None = None,
        solver_options: dict[str, Any] | None = None,
    ) -> None:
        self.k = k
        self.lam = lam
        self.loss = loss
        self.delta = delta
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.rel_eps = rel_eps
        self.time_limit = time_limit
        self.solver_options = solver_options

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BestSubsetSelector:
        """Find the best model and keep its columns.

        Parameters
        ----------
        X : array (n, d)
        y : array (n,)
        sample_weight : array (n,), optional
            How much each row counts; 2 is the same as the row twice, 0 as no such row.

        Returns
        -------
        BestSubsetSelector
            Itself.
        """
        check_loss(self.loss, ("quadratic", "huber", "logistic"))
        labelled = self.loss == "logistic"
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=not labelled, ensure_min_samples=2)
        target = two_classes(y)[1] if labelled else np.asarray(y, dtype=np.float64)
        self.coef_, self.intercept_ = self._solve(
            X, target, self.loss, self.k, self._lam(self.loss), self._row_weights(X, sample_weight)
        )
        return self

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
        mask: BoolArray = np.zeros(self.n_features_in_, dtype=np.bool_)
        mask[self.support_] = True
        return mask


def check_loss(loss: str, known: tuple[str, ...]) -> None:
    """:class:`InputError` unless the loss is one of ``known``."""
    if loss not in known:
        raise InputError(f"loss is {loss!r}, but this estimator knows {' and '.join(known)}; choose one of them.")
