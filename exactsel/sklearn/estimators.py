"""Estimators with a given k and lam."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from exactsel.losses.base import CLASSES
from exactsel.sklearn.base import (
    ChoiceOfLoss,
    GivenSize,
    HuberThreshold,
    LinearClassifier,
    LinearRegressor,
)
from exactsel.sklearn.given import SPARSE, as_searched, two_classes
from exactsel.types import BoolArray, FloatArray


@dataclass(eq=False, repr=False)
class BestSubsetRegressor(LinearRegressor, ChoiceOfLoss, GivenSize):
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
        Relative gap to stop at, and seconds. A fit that ends with a larger gap warns of it
        (:class:`sklearn.exceptions.ConvergenceWarning`).
    groups : mapping or sequence of labels, optional
        Columns that count as one, such as one-hot blocks: names of groups with their columns (numbers, or names where
        X has some), or one label per column, None for a column on its own. k then counts groups.
    factors : "auto" or sequence of str, optional
        Columns of a data frame that become factors, terms of 0/1 columns that k counts once; "auto" for all that hold
        text or are categorical. Rows to predict are then frames like that of the fit, and a level that it does not
        have is refused. ``coef_`` and ``support_`` are of the coded columns.
    hierarchy : mapping, optional
        Columns (or groups) chosen only together with their parents: ``{"a*b": ["a", "b"]}``, by number or name; the
        parents count towards k. See :class:`exactsel.Problem`.
    hierarchy_kind : str
        ``"strong"``: with all their parents; ``"weak"``: with one of them at least.
    not_both : sequence of pairs, optional
        Columns (or groups) of which the model holds at most one: ``[("a", "b"), ("b", "c")]``, by number or name.
    per_group : int, optional
        Columns are chosen one by one, at most so many of each of the ``groups``.
    positive : bool
        Coefficients must not be negative; the intercept may be. Without groups.
    max_coef : float, optional
        No coefficient is larger than this in size; what is proven is about such models. With many more columns than
        rows that is what makes proofs short (:func:`exactsel.boxed`).
    sum_to : float, optional
        What all coefficients add up to, as 1 for the weights of a portfolio; quadratic loss.
    criterion : str, optional
        ``"aic"``, ``"aicc"``, ``"bic"``, ``"ebic"``, ``"hqic"``, ``"cp"``, ``"adjr2"``, or ``"l0"`` with a
        ``penalty``: the best model of any size up to k by it, proven over these sizes, too
        (:func:`exactsel.best_model`). ``best_models_``, ``k_`` and ``criterion_`` then say more.
    penalty : float, optional
        The price of a column of criterion ``"l0"``, which is P(x) + penalty ||x||_0.
    solver_options : dict, optional
        Further options of :func:`exactsel.solve`.

    Notes
    -----
    The fitted attributes are those of :class:`exactsel.sklearn.base.BestSubsetBase`.
    """


@dataclass(eq=False, repr=False)
class HuberBestSubsetRegressor(LinearRegressor, HuberThreshold, GivenSize):
    """Robust regression on at most k columns: :class:`BestSubsetRegressor` with Huber loss.

    Parameters
    ----------
    k, lam, delta, fit_intercept, standardize, rel_eps, time_limit, groups, factors, hierarchy,
    hierarchy_kind, not_both, per_group, positive, max_coef, sum_to, criterion, penalty, solver_options
        See :class:`BestSubsetRegressor`.

    Notes
    -----
    The fitted attributes are those of :class:`exactsel.sklearn.base.BestSubsetBase`.
    """

    loss = "huber"


@dataclass(eq=False, repr=False)
class PoissonBestSubsetRegressor(LinearRegressor, GivenSize):
    """Poisson regression of counts on at most k columns, with the log link: the best for the training data, proven.

    Parameters
    ----------
    k : int
        Largest number of columns; more than there are counts as all.
    lam : float, optional
        Ridge weight; 1 by default. It is n times ``alpha`` of :class:`sklearn.linear_model.PoissonRegressor`, which
        takes the mean over rows.
    fit_intercept, standardize, rel_eps, time_limit, groups, factors, hierarchy,
    hierarchy_kind, not_both, criterion, penalty, solver_options
        See :class:`BestSubsetRegressor`.

    Notes
    -----
    :meth:`predict` gives expected counts. The fitted attributes are those of
    :class:`exactsel.sklearn.base.BestSubsetBase`. Of counts over different exposures fit the rates, with the exposures
    for ``sample_weight``.
    """

    loss = "poisson"
    losses = ("poisson",)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def predict(self, X: ArrayLike) -> FloatArray:
        """Expected counts.

        Parameters
        ----------
        X : array (n, d)

        Returns
        -------
        array (n,)
        """
        counts: FloatArray = np.exp(np.minimum(super().predict(X), 700.0))
        return counts


@dataclass(eq=False, repr=False)
class BestSubsetClassifier(LinearClassifier, GivenSize):
    """A classifier of two classes on at most k columns, proven best for the training data.

    Parameters
    ----------
    k : int
        Largest number of columns; more than there are counts as all.
    lam : float, optional
        Ridge weight; 1 by default. It is 1/C of :class:`sklearn.linear_model.LogisticRegression`, or of LinearSVC.
    loss : str
        ``"logistic"``, or ``"squared_hinge"``: the loss of :class:`sklearn.svm.LinearSVC`, of which there are no
        probabilities.
    class_weight : mapping or "balanced", optional
        How much the rows of each class count, as in scikit-learn; multiplied by ``sample_weight``.
    fit_intercept, standardize, rel_eps, time_limit, groups, factors, hierarchy,
    hierarchy_kind, not_both, per_group, positive, max_coef, sum_to, criterion, penalty, solver_options
        See :class:`BestSubsetRegressor`.

    Notes
    -----
    The fitted attributes are those of :class:`exactsel.sklearn.base.BestSubsetBase`.
    """

    _: KW_ONLY
    class_weight: Any = None
    loss: str = "logistic"

    losses = CLASSES


@dataclass(eq=False, repr=False)
class BestSubsetSelector(SelectorMixin, ChoiceOfLoss, GivenSize):  # type: ignore[misc]
    """Keep the columns of the best model of at most k columns.

    Parameters
    ----------
    k, lam, delta, fit_intercept, standardize, rel_eps, time_limit, groups, factors, hierarchy,
    hierarchy_kind, not_both, per_group, positive, max_coef, sum_to, criterion, penalty, solver_options
        See :class:`BestSubsetRegressor`.
    loss : str
        ``"quadratic"``, ``"huber"``, or ``"logistic"`` or ``"squared_hinge"`` for labels of two classes.

    Notes
    -----
    The fitted attributes are those of :class:`exactsel.sklearn.base.BestSubsetBase`.
    """

    losses = ("quadratic", "huber", *CLASSES)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _training_data(self, X: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
        labelled = self.loss in CLASSES
        X, y = validate_data(
            self, X, y, accept_sparse=SPARSE, dtype=np.float64, y_numeric=not labelled, ensure_min_samples=2
        )
        X = as_searched(X)
        return X, two_classes(y)[1] if labelled else np.asarray(y, dtype=np.float64)

    def transform(self, X: ArrayLike) -> Any:
        """The chosen columns of X, factors coded as they were in the fit.

        Parameters
        ----------
        X : array or data frame (n, d)

        Returns
        -------
        array (n, chosen)
        """
        check_is_fitted(self)
        return super().transform(self._rows(X))

    def _get_support_mask(self) -> BoolArray:
        return self._mask()
