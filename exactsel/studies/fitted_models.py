"""Fitted models as candidates: results of exactsel, estimators, feature selectors and pipelines of scikit-learn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from exactsel.errors import InputError
from exactsel.problem.frames import is_frame
from exactsel.problem.interface import is_problem
from exactsel.problem.numbered import Position
from exactsel.problem.row_labels import check_rows
from exactsel.solving.result import Result
from exactsel.to_plain import counted
from exactsel.types import FloatArray


class Transformer(Protocol):
    """The steps of a pipeline before its last one."""

    def transform(self, X: object, /) -> ArrayLike:
        """The transformed data."""

    def get_feature_names_out(self) -> Iterable[object]:
        """The names of the columns of the transformed data."""


class Pipeline(Protocol):
    """A chain of steps, each on what the one before it gives."""

    steps: Sequence[tuple[str, object]]

    def __getitem__(self, part: slice, /) -> Transformer:
        """The chain of some of the steps."""


def refuse_estimator(data: object) -> None:
    """:class:`InputError` for an estimator in the place of the data."""
    if _is_estimator(data):
        raise InputError(
            f"the first argument is a {type(data).__name__}, but the data were expected; "
            f"call certify(X, y, candidate=model)."
        )


def through_steps(
    data: object, y: ArrayLike | None, candidate: object, options: dict[str, Any]
) -> tuple[object, object, str]:
    """Data and candidate as the last step of a pipeline has them, and the features in words; ``options`` get names.

    A search over parameters stands for its best estimator. Anything else stays as it is, with an empty text.
    """
    features, names = "", None
    while _is_estimator(candidate):
        candidate = getattr(candidate, "best_estimator_", candidate)
        if not _is_pipeline(candidate):
            _check_fitted(candidate)
            break
        pipeline, candidate = candidate, candidate.steps[-1][1]
        if is_problem(data):
            raise InputError(
                f"the candidate is a {type(pipeline).__name__}, but a problem holds no data for its steps; "
                f"call certify(X, y, candidate=model) with the data as the pipeline takes them."
            )
        before, count = pipeline[:-1], len(pipeline.steps) - 1
        if count:
            check_rows(data, y=y, sample_weight=options.get("sample_weight"))
            data = transformed = _transformed(before, data, type(pipeline).__name__)
            names = _names(before, data)
            number = counted(np.shape(transformed)[1], "feature")
            steps = "step before {} gives" if count == 1 else "steps before {} give"
            features = f"the {number} that the {steps.format(type(candidate).__name__)}"
    if names is not None and options.get("feature_names") is None:
        options["feature_names"] = names
    return data, candidate, features


def restricted_to(result: Result, features: str) -> Result:
    """The result, which says that it compares models of these features only."""
    if not features:
        return result
    models = f"{result.valid_for}," if result.valid_for else "models"
    return replace(result, valid_for=f"{models} of {features}")


def support_or_coef(candidate: object) -> tuple[Sequence[Any] | None, FloatArray | None] | None:
    """The support or the coefficients of a result of ours or of a fitted estimator; None for plain data."""
    if hasattr(candidate, "support") and not isinstance(candidate, np.ndarray):
        return list(map(Position, candidate.support)), None
    selected = getattr(candidate, "get_support", None)
    if callable(selected):
        return list(map(Position, np.flatnonzero(selected()))), None
    if not hasattr(candidate, "coef_"):
        if _is_estimator(candidate):
            raise InputError(
                f"the candidate is a {type(candidate).__name__}, which has neither coef_ nor get_support; "
                f"give the features that it uses, as support=[0, 2]."
            )
        return None
    coef = np.asarray(candidate.coef_, dtype=np.float64)
    if coef.size != max(coef.shape, default=0):
        raise InputError(f"the estimator's coefficients have the shape {coef.shape}; give one of one target.")
    if np.any(np.asarray(getattr(candidate, "intercept_", 0.0))):
        # The objective here has no intercept, so only the choice of columns can be compared.
        return list(map(Position, np.flatnonzero(coef.reshape(-1)))), None
    return None, coef.reshape(-1)


def _is_estimator(value: object) -> bool:
    """Whether it has the interface of scikit-learn's estimators."""
    return not isinstance(value, type) and callable(getattr(value, "get_params", None)) and hasattr(value, "fit")


def _is_pipeline(value: object) -> TypeGuard[Pipeline]:
    return hasattr(value, "steps") and hasattr(value, "named_steps")


def _check_fitted(model: object) -> None:
    """:class:`InputError` for an estimator without the attributes that a fit sets."""
    names = getattr(model, "__dict__", {})
    if _is_estimator(model) and not any(name.endswith("_") and not name.startswith("_") for name in names):
        raise _not_fitted(type(model).__name__)


def _not_fitted(name: str) -> InputError:
    return InputError(f"the candidate, a {name}, is not fitted; call fit first.")


def _transformed(steps: Transformer, data: object, name: str) -> ArrayLike:
    """The data after these steps."""
    try:
        return steps.transform(data)
    except ValueError as error:
        if type(error).__name__ != "NotFittedError":
            raise
        raise _not_fitted(name) from error


def _names(steps: Transformer, data: object) -> list[str] | None:
    """The names of the transformed columns; None where the data have them, or a step does not name its columns."""
    if is_frame(data):
        return None
    try:
        return [str(name) for name in steps.get_feature_names_out()]
    except (AttributeError, ValueError):
        return None
