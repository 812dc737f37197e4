"""The base class of the estimators: data preparation, solving, and the attributes that state the bounds."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_feature_names_in, _check_sample_weight, check_is_fitted, validate_data

from exactsel.arguments import mapping, shown, switch
from exactsel.errors import InputError
from exactsel.losses.base import CLASSES
from exactsel.problem.coding import ColumnCoding
from exactsel.problem.constraints import ARGUMENTS
from exactsel.problem.preparing import checked_weights, wants_intercept
from exactsel.problem.regression import Problem
from exactsel.problem.row_labels import check_rows
from exactsel.sklearn.demands import constrained, within_limits
from exactsel.sklearn.factors import coded_factors_of, coded_rows, knowing_coding, suggesting_factors
from exactsel.sklearn.given import (
    SPARSE,
    as_searched,
    check_no_penalty,
    huber_threshold,
    numbered_names,
    tell_of_rounding_in,
    two_classes,
)
from exactsel.sklearn.unproven import warn_of_gap
from exactsel.solving.api import solve
from exactsel.solving.outcome import Termination
from exactsel.solving.result import Result
from exactsel.studies.best import best_model
from exactsel.types import BoolArray, FloatArray, IntArray

DEFAULT_LAM = {"quadratic": 0.0}
"""Ridge weight when none is given; 1 for other losses, as scikit-learn's C = 1."""

Self = TypeVar("Self", bound="BestSubsetBase")


@dataclass(eq=False, repr=False)
class BestSubsetBase(BaseEstimator):  # type: ignore[misc]
    """A linear model on at most k columns, found by :func:`exactsel.solve`.

    The fields of an estimator and of what it derives from are its parameters.

    Attributes
    ----------
    coef_, intercept_
        The model, for the columns as given.
    support_ : array of int
        The chosen columns; :meth:`get_support` gives a mask. With ``groups`` all columns of the chosen groups, whose
        names are ``result_.feature_names``.
    objective_, lower_bound_, gap_ : float
        L(Ax + c) + (lam/2)||x||² of the model (a weighted sum over rows, on scaled columns), what no model of at most k
        columns is below, and the difference, relative to the objective.
    claim_, termination_ : str
        What is proven (``optimal``, ``within_eps``, ``bounded``), and why the search stopped.
    nodes_, n_iter_ : int
        Nodes of the search, and iterations of its bounds.
    result_ : exactsel.Result
        All the rest.
    """

    _: KW_ONLY
    fit_intercept: bool | str = True
    standardize: bool = False
    rel_eps: float = 1e-6
    time_limit: float | None = None
    solver_options: dict[str, Any] | None = None

    # No parameters, unless a class that derives from this one makes them so.
    lam = cast("float | None", None)
    delta = cast("float | None", None)
    groups = cast("Any", None)
    factors = cast("Any", None)
    hierarchy = cast("Any", None)
    hierarchy_kind = "strong"
    per_group = cast("int | None", None)
    not_both = cast("Any", None)
    positive = False
    max_coef = cast("float | None", None)
    sum_to = cast("float | None", None)
    criterion = cast("str | None", None)
    penalty = cast("float | None", None)
    class_weight = cast("Any", None)
    loss = ""

    _numbered = cast("Sequence[str] | None", None)
    _coding = cast("ColumnCoding | None", None)
    _coded_groups = cast("Any", None)
    _stopped_folds = cast("Collection[Termination] | None", None)

    losses: ClassVar[tuple[str, ...]] = ("quadratic", "huber")
    """What ``loss`` may be."""

    def fit(self: Self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Find the best model; for an estimator that chooses them, first k and lam.

        Parameters
        ----------
        X : array, data frame or sparse matrix (n, d)
        y : array (n,)
            Of a classifier the labels of two classes.
        sample_weight : array (n,), optional
            How much each row counts; 2 is the same as the row twice, 0 as no such row.

        Returns
        -------
        estimator
            Itself.
        """
        self._fitted(X, y, sample_weight)
        return self

    def _fitted(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, **split: Any) -> None:
        """Fit; ``split`` is what an estimator that chooses hands to its splitter of rows."""
        if not isinstance(self.loss, str) or self.loss not in self.losses:
            raise InputError(
                f"loss is {shown(self.loss)}, but this estimator knows {' and '.join(self.losses)}; choose one of them."
            )
        check_rows(X, y=y, sample_weight=sample_weight)
        has_factors = not (self.factors is None or (isinstance(self.factors, list | tuple) and not self.factors))
        coded = coded_factors_of(X, self.factors, self.groups, self._intercept()) if has_factors else None
        self._coding, self._coded_groups = (None, None) if coded is None else (coded.coding, coded.groups)
        with suggesting_factors(X, y):
            A, target = self._training_data(X if coded is None else coded.A, y)
        self._numbered = numbered_names(X) if coded is None else coded.names
        tell_of_rounding_in(X, y if self.loss not in CLASSES else None, sample_weight)
        self._set_model(*self._best_model(A, target, self._row_weights(A, sample_weight, y), **split))
        found = self.result_ if self.criterion is None else self.best_models_
        warn_of_gap(found, mapping("solver_options", self.solver_options), self._stopped_folds)

    def get_feature_names_out(self, input_features: object = None) -> Any:
        """Names of the chosen columns.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names of all columns, where they were not fitted with names; else ``x0``, ``x1`` and so on.

        Returns
        -------
        array of str
        """
        mask = self._mask()
        names = self._names if self._coding is not None and input_features is None else input_features
        return _check_feature_names_in(self, names)[mask]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _training_data(self, X: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """The rows and their targets (for a classifier -1 and +1), checked."""
        raise NotImplementedError

    def _best_model(
        self, X: FloatArray, y: FloatArray, weights: FloatArray | None, **split: Any
    ) -> tuple[FloatArray, float]:
        """Coefficients and intercept of the best model, for the columns as given."""
        raise NotImplementedError

    def _set_model(self, coef: FloatArray, intercept: float) -> None:
        self.coef_: Any = coef
        self.intercept_: Any = intercept

    def get_support(self, indices: bool = False) -> BoolArray | IntArray:
        """The chosen columns, as a mask or as numbers."""
        mask = self._mask()
        return np.flatnonzero(mask) if indices else mask

    def _mask(self) -> BoolArray:
        check_is_fitted(self)
        mask: BoolArray = np.zeros(self.n_features_in_, dtype=np.bool_)
        mask[self.support_] = True
        return mask

    @property
    def _names(self) -> Any:
        """The names of the columns, also where they are numbers; None where there are none."""
        return getattr(self, "feature_names_in_", self._numbered)

    @property
    def _groups(self) -> Any:
        """The groups of columns, which the factors are where there are some."""
        return self.groups if self._coding is None else self._coded_groups

    def _rows(self, X: ArrayLike) -> Any:
        """Rows to predict, factors coded as they were in the fit."""
        return coded_rows(X, self._coding, np.flatnonzero(np.ravel(self.coef_)))

    def _options(self) -> dict[str, Any]:
        limits = {"rel_eps": self.rel_eps, "time_limit": self.time_limit}
        return limits | mapping("solver_options", self.solver_options)

    def _intercept(self) -> bool:
        """Whether models have an intercept."""
        wanted = self.fit_intercept
        return wants_intercept(wanted if isinstance(wanted, str) else switch("fit_intercept", wanted), self.loss)

    def _lam(self) -> float:
        return DEFAULT_LAM.get(self.loss, 1.0) if self.lam is None else self.lam

    def _delta(self, y: FloatArray, weights: FloatArray | None) -> float | None:
        """The Huber threshold."""
        return huber_threshold(y, weights) if self.loss == "huber" and self.delta is None else self.delta

    def _row_weights(self, X: FloatArray, sample_weight: ArrayLike | None, y: ArrayLike) -> FloatArray | None:
        """The weights of the rows, those of their classes included; None where all count the same."""
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)
        if self.class_weight is not None:
            of_classes = compute_sample_weight(self.class_weight, y)
            weights = of_classes if weights is None else weights * of_classes
        return None if weights is None else checked_weights(weights, len(X), "quadratic")

    def _solve(
        self, X: FloatArray, y: FloatArray, k: int, lam: float, weights: FloatArray | None, **limits: Any
    ) -> tuple[FloatArray, float]:
        """Solve, store what is proven, and return coefficients and intercept for the columns as given; ``limits`` take
        precedence over the estimator's options.
        """
        size = min(k, X.shape[1]) if isinstance(k, int | np.integer) else k
        problem = Problem.prepared(
            X, y, size, loss=self.loss, lam=lam, delta=self._delta(y, weights), weights=weights,
            intercept=self._intercept(), scale=switch("standardize", self.standardize), feature_names=self._names,
        )  # fmt: skip
        problem = knowing_coding(problem, self._coding)
        problem = constrained(problem, self._groups, {name: getattr(self, name) for name in ARGUMENTS})
        chosen: Any = within_limits(problem, switch("positive", self.positive), self.max_coef, self.sum_to)
        result = self._searched(chosen, self._options() | limits)
        self._note(result)
        assert result.model is not None
        return result.model.coef, result.model.intercept or 0.0

    def _searched(self, problem: Problem, options: dict[str, Any]) -> Result:
        """The best model of at most k columns, or of any size up to k by a criterion."""
        if self.criterion is None:
            check_no_penalty(self.penalty)
            return solve(problem, **options)
        chosen: dict[str, Any] = {"criterion": self.criterion, "penalty": self.penalty, "k_max": problem.k}
        self.best_models_ = best_model(problem, **chosen, **options)
        self.k_ = self.best_models_.k
        self.criterion_ = self.best_models_.criterion.shown(self.best_models_.value)
        return self.best_models_.result

    def _note(self, result: Result) -> None:
        self.result_ = result
        self.support_ = np.array(result.columns, dtype=np.int64)
        self.objective_, self.lower_bound_, self.gap_ = result.upper, result.lower, result.gap
        self.claim_, self.termination_ = result.claim.value, result.termination.value
        self.nodes_, self.n_iter_ = result.nodes, max(1, result.iterations)


@dataclass(eq=False, repr=False)
class GivenSize(BestSubsetBase):
    """Base class of estimators with parameters k and lam."""

    k: int = 5
    lam: float | None = None
    _: KW_ONLY
    groups: Any = None
    factors: Any = None
    hierarchy: Any = None
    hierarchy_kind: str = "strong"
    per_group: int | None = None
    not_both: Any = None
    positive: bool = False
    max_coef: float | None = None
    sum_to: float | None = None
    criterion: str | None = None
    penalty: float | None = None

    def _best_model(
        self, X: FloatArray, y: FloatArray, weights: FloatArray | None, **split: Any
    ) -> tuple[FloatArray, float]:
        return self._solve(X, y, self.k, self._lam(), weights)


@dataclass(eq=False, repr=False)
class HuberThreshold(BestSubsetBase):
    """The part of an estimator that is about Huber loss."""

    _: KW_ONLY
    delta: float | None = None


@dataclass(eq=False, repr=False)
class ChoiceOfLoss(HuberThreshold):
    """The part of an estimator that can minimise several losses."""

    _: KW_ONLY
    loss: str = "quadratic"


class LinearRegressor(RegressorMixin, BestSubsetBase):  # type: ignore[misc]
    """The part of a regressor that is about data and predictions."""

    def _training_data(self, X: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
        X, y = validate_data(self, X, y, accept_sparse=SPARSE, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        return as_searched(X), np.asarray(y, dtype=np.float64)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """R² of the predictions, see :class:`sklearn.base.RegressorMixin`; rows as for :meth:`fit`."""
        check_rows(X, y=y, sample_weight=sample_weight)
        return float(super().score(X, y, sample_weight))

    def predict(self, X: ArrayLike) -> FloatArray:
        """Predicted targets.

        Parameters
        ----------
        X : array (n, d)

        Returns
        -------
        array (n,)
        """
        check_is_fitted(self)
        X = validate_data(self, self._rows(X), accept_sparse=SPARSE, dtype=np.float64, reset=False)
        predicted: FloatArray = X @ self.coef_ + self.intercept_
        return predicted


class LinearClassifier(ClassifierMixin, BestSubsetBase):  # type: ignore[misc]
    """The part of a classifier of two classes that is about labels and predictions."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _training_data(self, X: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
        X, y = validate_data(self, X, y, accept_sparse=SPARSE, dtype=np.float64, ensure_min_samples=2)
        self.classes_, labels = two_classes(y)
        return as_searched(X), labels

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """The part of labels predicted right, see :class:`sklearn.base.ClassifierMixin`; rows as for :meth:`fit`."""
        check_rows(X, y=y, sample_weight=sample_weight)
        return float(super().score(X, y, sample_weight))

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Scores of the rows, positive for the second class; with logistic loss its log-odds.

        Parameters
        ----------
        X : array (n, d)

        Returns
        -------
        array (n,)
        """
        check_is_fitted(self)
        X = validate_data(self, self._rows(X), accept_sparse=SPARSE, dtype=np.float64, reset=False)
        scores: FloatArray = X @ self.coef_[0] + self.intercept_[0]
        return scores

    def predict(self, X: ArrayLike) -> Any:
        """Predicted classes.

        Parameters
        ----------
        X : array (n, d)

        Returns
        -------
        array (n,)
        """
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(np.intp)]

    @available_if(lambda estimator: estimator.loss == "logistic")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Probabilities of the two classes; with logistic loss only.

        Parameters
        ----------
        X : array (n, d)

        Returns
        -------
        array (n, 2)
        """
        from scipy.special import expit

        scores = self.decision_function(X)
        return np.column_stack([expit(-scores), expit(scores)])

    def _set_model(self, coef: FloatArray, intercept: float) -> None:
        self.coef_, self.intercept_ = coef[np.newaxis], np.array([intercept])
