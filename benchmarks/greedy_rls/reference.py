"""Greedy RLS done slowly: Algorithms 1 and 2 of Pahikkala, Airola and Salakoski (2010), as they stand in the paper.

They select the same columns as Algorithm 3, which :mod:`exactsel_heuristics.greedy_rls` implements; the tests hold
the three together, and the benchmarks compare their growth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from exactsel.types import FloatArray
from exactsel_heuristics._greedy_rls_kernels import UNDECIDED

Key = tuple[float, ...]
Scores = Callable[[list[int]], "dict[int, Key]"]


def criterion_key(errors: FloatArray, y: FloatArray, criterion: str) -> Key:
    """What is compared: the sum of squared errors, for the zero-one loss after the number of wrong signs.

    Parameters
    ----------
    errors : array (n,)
        Leave-one-out errors, target minus prediction; inf where there is no prediction.
    y : array (n,)
    criterion : {"squared", "zero-one"}
    """
    squared = float(np.sum(errors**2))
    if criterion == "squared":
        return (squared,)
    if not np.isfinite(squared):
        return (np.inf, np.inf)
    return (float(np.sum(y * (y - errors) <= UNDECIDED)), squared)


def train(A: FloatArray, y: FloatArray, lam: float) -> FloatArray | None:
    """The black box t(X, y, lam) of the paper, equation (3); None when lam = 0 and the columns are dependent."""
    if lam == 0.0 and np.linalg.matrix_rank(A) < A.shape[1]:
        return None
    extended = np.vstack([A, np.sqrt(lam) * np.eye(A.shape[1])])
    coef: FloatArray = np.linalg.lstsq(extended, np.concatenate([y, np.zeros(A.shape[1])]), rcond=None)[0]
    return coef


def retrained_errors(A: FloatArray, y: FloatArray, lam: float, columns: list[int]) -> FloatArray:
    """Leave-one-out errors (n,) on some columns, by training n times."""
    errors = np.full(y.size, np.inf)
    for j in range(y.size):
        others = np.arange(y.size) != j
        coef = train(A[np.ix_(others, columns)], y[others], lam)
        if coef is not None:
            errors[j] = y[j] - A[j, columns] @ coef
    return errors


def wrapper_scores(A: FloatArray, y: FloatArray, lam: float, criterion: str) -> Scores:
    """The middle loop of Algorithm 1: the criterion of every addition to a list of columns."""

    def scores(chosen: list[int]) -> dict[int, Key]:
        candidates = (i for i in range(A.shape[1]) if i not in chosen)
        return {i: criterion_key(retrained_errors(A, y, lam, [*chosen, i]), y, criterion) for i in candidates}

    return scores


def wrapper(A: FloatArray, y: FloatArray, lam: float, k: int, criterion: str) -> tuple[list[int], list[float]]:
    """Algorithm 1, the standard wrapper: every candidate, every row left out, trained from scratch.

    Parameters
    ----------
    A : array (n, d)
    y : array (n,)
    lam : float
        0 is served as documented in :class:`exactsel_heuristics.greedy_rls.GreedyRegularizedLeastSquares`.
    k : int
    criterion : {"squared", "zero-one"}

    Returns
    -------
    path, errors
        The columns in order of selection and the criterion after each step.
    """
    scores = wrapper_scores(A, y, lam, criterion)
    path: list[int] = []
    errors: list[float] = []
    while len(path) < min(k, A.shape[1]):
        keys = scores(path)
        best = min(keys, key=lambda i: (keys[i], i))
        if not np.isfinite(keys[best][0]):
            break
        path.append(best)
        errors.append(keys[best][0])
    return path, errors


def low_rank_update(A: FloatArray, y: FloatArray, lam: float, k: int, criterion: str) -> tuple[list[int], list[float]]:
    """Algorithm 2, the low-rank updated LS-SVM of Ojeda, Suykens and De Moor: O(k d n^2); lam > 0.

    Parameters and result as for :func:`wrapper`.
    """
    G = np.eye(y.size) / lam
    path: list[int] = []
    errors: list[float] = []
    while len(path) < min(k, A.shape[1]):
        keys = dict(_low_rank_keys(A, y, G, path, criterion))
        best = min(keys, key=lambda i: (keys[i], i))
        G = _updated(G, A[:, best])
        path.append(best)
        errors.append(keys[best][0])
    return path, errors


def _low_rank_keys(
    A: FloatArray, y: FloatArray, G: FloatArray, path: list[int], criterion: str
) -> Iterator[tuple[int, Key]]:
    for i in range(A.shape[1]):
        if i not in path:
            candidate = _updated(G, A[:, i])
            yield i, criterion_key(candidate @ y / np.diagonal(candidate), y, criterion)


def _updated(G: FloatArray, v: FloatArray) -> FloatArray:
    """(K + vv' + lam I)^{-1} from G = (K + lam I)^{-1}, equation (10)."""
    image = G @ v
    updated: FloatArray = G - np.outer(image, image) / (1.0 + v @ image)
    return updated
