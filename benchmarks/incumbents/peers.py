"""scikit-learn, abess and zoopt on the problems with quadratic loss: what they find in how many seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec

import numpy as np

from exactsel import Problem
from exactsel.types import FloatArray

Support = list[int]
Peer = Callable[[FloatArray, FloatArray, int], Support]


def forward_of_sklearn(A: FloatArray, y: FloatArray, k: int) -> Support:
    """Forward selection scored by the fit on the same rows."""
    from sklearn.feature_selection import SequentialFeatureSelector
    from sklearn.linear_model import LinearRegression

    rows = np.arange(len(y))
    selector = SequentialFeatureSelector(
        LinearRegression(fit_intercept=False), n_features_to_select=k, cv=[(rows, rows)], scoring="r2"
    )
    return np.flatnonzero(selector.fit(A, y).get_support()).tolist()


def elimination_of_sklearn(A: FloatArray, y: FloatArray, k: int) -> Support:
    """Recursive feature elimination."""
    from sklearn.feature_selection import RFE
    from sklearn.linear_model import LinearRegression

    selector = RFE(LinearRegression(fit_intercept=False), n_features_to_select=k)
    return np.flatnonzero(selector.fit(A, y).support_).tolist()


def pursuit_of_sklearn(A: FloatArray, y: FloatArray, k: int) -> Support:
    """Orthogonal matching pursuit."""
    from sklearn.linear_model import OrthogonalMatchingPursuit

    return np.flatnonzero(OrthogonalMatchingPursuit(n_nonzero_coefs=k, fit_intercept=False).fit(A, y).coef_).tolist()


def splicing_of_abess(A: FloatArray, y: FloatArray, k: int) -> Support:
    """Best subset by splicing, for this one size."""
    from abess import LinearRegression

    return np.flatnonzero(LinearRegression(support_size=k, fit_intercept=False).fit(A, y).coef_).tolist()


def poss_of_zoopt(A: FloatArray, y: FloatArray, k: int) -> Support:
    """POSS with the paper's number of evaluations, up to 20,000."""
    from zoopt import Dimension, Objective, Opt, Parameter

    d = A.shape[1]

    def value(solution: object) -> float:
        chosen = np.flatnonzero(np.array(solution.get_x()) == 1)  # type: ignore[attr-defined]
        if not chosen.size:
            return float(y @ y)
        rest = y - A[:, chosen] @ np.linalg.lstsq(A[:, chosen], y, rcond=None)[0]
        return float(rest @ rest)

    def excess(solution: object) -> float:
        return k - sum(solution.get_x())  # type: ignore[attr-defined,no-any-return]

    budget = min(20_000, int(2 * np.e * k * k * d))
    dimension = Dimension(d, [[0, 1]] * d, [False] * d)
    found = Opt.min(Objective(value, dimension, constraint=excess), Parameter(algorithm="poss", budget=budget))
    return np.flatnonzero(np.array(found.get_x()) == 1).tolist()


PEERS: dict[str, tuple[str, Peer]] = {
    "scikit-learn, forward": ("sklearn", forward_of_sklearn),
    "scikit-learn, RFE": ("sklearn", elimination_of_sklearn),
    "scikit-learn, OMP": ("sklearn", pursuit_of_sklearn),
    "abess": ("abess", splicing_of_abess),
    "zoopt, POSS": ("zoopt", poss_of_zoopt),
}
"""By name: the package it needs, and what it does with standardised data."""


def run_peers(problem: Problem) -> Iterator[tuple[str, float, float]]:
    """Of each that is installed its name, the objective of a refit on its support, and its seconds."""
    A, y = np.array(problem.A), np.array(problem.y)
    for name, (package, select) in PEERS.items():
        if find_spec(package) is None:
            continue
        began = time.perf_counter()
        support = select(A, y, problem.k)
        seconds = time.perf_counter() - began
        yield name, problem.fit(sorted(support)[: problem.k]).value, seconds
