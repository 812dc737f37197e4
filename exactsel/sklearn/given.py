"""Input of the estimators: sparse matrices, names that are numbers, labels of two classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from exactsel.arguments import shown
from exactsel.errors import InputError
from exactsel.problem.checks import default_delta
from exactsel.problem.doubles import as_array, may_round, tell_of_rounding
from exactsel.problem.frames import frame_columns, frame_matrix, is_frame, tell_of_column
from exactsel.problem.numbered import NumberedName, as_name
from exactsel.types import FloatArray

SPARSE = ("csr", "csc", "coo")
"""Kinds of sparse matrices that are taken."""


def numbered_names(X: Any) -> list[str] | None:
    """The names of a frame's columns where some are numbers, of which scikit-learn makes no names."""
    names = [as_name(label) for label in X.columns] if is_frame(X) else []
    return names if any(isinstance(name, NumberedName) for name in names) else None


def tell_of_rounding_in(X: Any, y: Any, weights: Any) -> None:
    """A word about what whole numbers lose as doubles, of which scikit-learn says nothing."""
    if is_frame(X):
        for column in frame_columns(X):
            tell_of_column(column, "X")
    for name, values in (("X", None if is_frame(X) else X), ("y", y), ("sample_weight", weights)):
        if values is None or (issparse(values) and values.dtype.kind == "f" and values.dtype.itemsize <= 8):
            continue
        if issparse(values) and not may_round(values.data, values.data.astype(np.float64)):
            continue
        array = as_array(values.toarray() if issparse(values) else values)
        tell_of_rounding(array, array.astype(np.float64), name, refuse=name != "sample_weight")


def as_searched(X: Any) -> FloatArray:
    """The matrix as the search takes it: with its zeros, unless it is sparse and so large that it stays so."""
    matrix: FloatArray = frame_matrix(X, None)[0] if issparse(X) else X
    return matrix


def two_classes(y: ArrayLike) -> tuple[Any, FloatArray]:
    """The two classes of a target, and -1 and +1 for them."""
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    classes = np.unique(y)
    if kind != "binary" or len(classes) > 2:
        raise InputError(
            f"Only binary classification is supported. The type of the target is {kind}. For several classes put the "
            f"estimator into sklearn.multiclass.OneVsRestClassifier, which chooses features for each of them."
        )
    if len(classes) < 2:
        raise InputError(f"the target holds one class, {classes[0]!r}, but a classifier needs two; give rows of both.")
    return classes, np.where(y == classes[1], 1.0, -1.0)


def check_no_penalty(penalty: object) -> None:
    """:class:`InputError` for the price of a column where no criterion has one."""
    if penalty is not None:
        raise InputError(
            f"penalty is {shown(penalty)}, but there is no criterion; give criterion='l0' for "
            f"P(x) + penalty ||x||_0, or leave penalty out."
        )


def huber_threshold(y: FloatArray, weights: FloatArray | None) -> float:
    """The default threshold; where half of y is equal, so that y has no robust scale, from its standard deviation."""
    try:
        return default_delta(y, weights)
    except InputError:
        spread = np.sqrt(np.average((y - np.average(y, weights=weights)) ** 2, weights=weights))
        return 1.345 * (float(spread) or 1.0)
