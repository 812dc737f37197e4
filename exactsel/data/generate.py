"""Instances to try things on: the synthetic families of the literature and the Diabetes data.

Each generator takes the number of rows, of columns, the subset size, a seed and the ridge weight, all with defaults,
and returns an :class:`exactsel.Instance`. A seed fixes the instance: random numbers come from numpy's PCG64
and no sum is handed to BLAS, whose order of addition depends on the processor.

References
----------
.. [1] S. Sakaue, N. Marumo, "Best-first search algorithm for non-convex sparse minimization", arXiv:1910.01296.
.. [2] P. Jain, A. Tewari, P. Kar, "On iterative hard thresholding methods for high-dimensional M-estimation",
   NeurIPS 2014.
.. [3] J. Liu, S. Rosen, C. Zhong, C. Rudin, "OKRidge: scalable optimal k-sparse ridge regression", NeurIPS 2023.
.. [4] B. Efron, T. Hastie, I. Johnstone, R. Tibshirani, "Least angle regression", Annals of Statistics 32, 2004.
.. [5] D. Bertsimas, A. King, R. Mazumder, "Best subset selection via a modern optimization lens", Annals of
   Statistics 44, 2016.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Protocol

import numpy as np

from exactsel.data.instance import Instance
from exactsel.errors import InputError
from exactsel.problem.checks import checked_lam
from exactsel.types import FloatArray, IntArray

DIABETES_ROWS, DIABETES_COLUMNS = 442, 64


@dataclass(frozen=True, eq=False, repr=False)
class Planted(Instance):
    """An instance whose target was made from known coefficients.

    Parameters
    ----------
    x_true : array (d,)
        The coefficients the target was made from, in the units of ``A`` and ``y``; a file stores them as well. With
        noise they need not be optimal.

    Raises
    ------
    InputError
        As :class:`exactsel.Instance`.
    """

    x_true: FloatArray = field(kw_only=True)

    @property
    def support(self) -> tuple[int, ...]:
        """The columns the target was made from, ascending."""
        return tuple(int(j) for j in np.flatnonzero(self.x_true))


class Generator(Protocol):
    """What every entry of :data:`GENERATORS` can be called with."""

    def __call__(self, n: int = ..., d: int = ..., k: int = ..., seed: int = ..., *, lam: float = ...) -> Instance:
        """Make an instance with n rows, d columns and subset size k."""
        ...


def generate(
    name: str,
    *,
    n: int | None = None,
    d: int | None = None,
    k: int | None = None,
    seed: int | None = None,
    lam: float | None = None,
) -> Instance:
    """Make the instance called ``name``; what is None takes that generator's default.

    Parameters
    ----------
    name : str
        A key of :data:`GENERATORS`.
    n, d, k : int, optional
        Rows, columns and subset size.
    seed : int, optional
        Same seed, same instance.
    lam : float, optional
        Ridge weight stored with the instance.

    Returns
    -------
    Instance
        A :class:`Planted` one, except for the Diabetes data.

    Raises
    ------
    InputError
        For an unknown name, for sizes the generator cannot make, and for a ridge weight no problem can have.
    """
    if name not in GENERATORS:
        raise InputError(f"there is no generator called '{name}'; known are: {', '.join(sorted(GENERATORS))}.")
    arguments = {"n": n, "d": d, "k": k, "seed": seed, "lam": lam}
    return GENERATORS[name](**{key: value for key, value in arguments.items() if value is not None})  # type: ignore[arg-type]


def huber(n: int = 50, d: int = 50, k: int = 10, seed: int = 0, *, lam: float = 0.01) -> Planted:
    """Sparse regression with noise and outliers, after the Huber instance of [1]_, section 4.1.

    Rows are normal with correlation 0.2 between any two columns; columns are scaled to unit norm. The true
    coefficients are 1 on k random columns. Normal noise e is scaled to ``||A x_true|| = 10 ||e||``, then a tenth of
    its entries, chosen at random, is multiplied by 10.

    Chosen here, as the paper's text leaves it open: ``delta`` is 1.345 times the root mean square of the noise before
    the outliers, which keeps 95% of the efficiency of least squares on the clean rows.

    Parameters
    ----------
    n, d, k : int
        Rows, columns and size of the true support, 1 <= k <= d.
    seed : int
        Not negative.
    lam : float
        Ridge weight.

    Returns
    -------
    Planted
        With loss ``"huber"``.

    Raises
    ------
    InputError
        When a size or lam is out of range.
    """
    rng = _checked_rng("huber", n, d, k, seed, lam)
    A = _unit_columns(_equicorrelated(rng, n, d, 0.2))
    x_true = np.zeros(d)
    x_true[rng.choice(d, k, replace=False)] = 1.0
    signal = _predict(A, x_true)
    noise = rng.standard_normal(n)
    noise *= _norm(signal) / (10.0 * _norm(noise))
    delta = 1.345 * _norm(noise) / np.sqrt(n)
    noise[rng.choice(n, n // 10, replace=False)] *= 10.0
    return Planted(A, signal + noise, k, lam, "huber", delta, x_true=x_true)


def logistic(n: int = 200, d: int = 50, k: int = 5, seed: int = 0, *, lam: float = 1.0) -> Planted:
    """Ill-conditioned classification, after the logistic instance of [1]_, section 4.1, with the design of [2]_.

    Rows are normal: the first half of the columns (rounded up) has correlation 0.7, the other half 0.2, and there is
    none between the halves. The true coefficients are 1 on k random columns, half of them (rounded up) in the first
    half. A label is +1 with probability 1 / (1 + exp(-a'x_true)), else -1.

    Chosen here, as the paper's text leaves it open: columns are scaled to norm sqrt(n), not 1, so that entries are of
    size 1 and labels carry a signal (with unit norm they would be coin flips, the more so the larger n).

    Parameters
    ----------
    n, d, k : int
        Rows, columns and size of the true support, 1 <= k <= d.
    seed : int
        Not negative.
    lam : float
        Ridge weight.

    Returns
    -------
    Planted
        With loss ``"logistic"``.

    Raises
    ------
    InputError
        When a size or lam is out of range.
    """
    rng = _checked_rng("logistic", n, d, k, seed, lam)
    heavy, in_heavy = (d + 1) // 2, (k + 1) // 2
    A = np.hstack([_equicorrelated(rng, n, heavy, 0.7), _equicorrelated(rng, n, d - heavy, 0.2)])
    A = _unit_columns(A) * np.sqrt(n)
    x_true = np.zeros(d)
    x_true[rng.choice(heavy, in_heavy, replace=False)] = 1.0
    x_true[heavy + rng.choice(d - heavy, k - in_heavy, replace=False)] = 1.0
    positive = rng.random(n) < 1.0 / (1.0 + np.exp(-_predict(A, x_true)))
    return Planted(A, np.where(positive, 1.0, -1.0), k, lam, "logistic", x_true=x_true)


def quadratic(n: int = 200, d: int = 100, k: int = 10, seed: int = 0, *, lam: float = 0.1, rho: float = 0.5) -> Planted:
    """Sparse linear regression with the design of OKRidge's experiments [3]_.

    Rows are normal with correlation ``rho**|i - j|`` between columns i and j; nothing is scaled. The true coefficients
    are 1 on k equally spaced columns. The variance of the noise is a fifth of that of the signal.

    Parameters
    ----------
    n, d, k : int
        Rows, columns and size of the true support, 1 <= k <= d. The paper goes up to d = 3000.
    seed : int
        Not negative.
    lam : float
        Ridge weight.
    rho : float
        Correlation of neighbouring columns, between -1 and 1.

    Returns
    -------
    Planted
        With loss ``"quadratic"``.

    Raises
    ------
    InputError
        When a size, lam or rho is out of range.
    """
    rng = _checked_rng("quadratic", n, d, k, seed, lam)
    A = _autoregressive(rng, n, d, rho)
    x_true = np.zeros(d)
    x_true[[int(i * (d / k)) for i in range(k)]] = 1.0
    signal = _predict(A, x_true)
    noise = rng.standard_normal(n) * np.sqrt(_variance(signal) / 5.0)
    return Planted(A, signal + noise, k, lam, "quadratic", x_true=x_true)


def hard(n: int = 200, d: int = 100, k: int = 5, seed: int = 0, *, lam: float = 0.01, rho: float = 0.7) -> Planted:
    """Linear regression without a clean support to find.

    Rows are as in :func:`quadratic`. Every column is active: the coefficient of rank r is +1 or -1 over sqrt(r), ranks
    and signs random; the noise has the variance of the signal. Columns and y are then scaled to unit norm.

    Parameters
    ----------
    n, d, k : int
        Rows, columns and subset size, 1 <= k <= d.
    seed : int
        Not negative.
    lam : float
        Ridge weight.
    rho : float
        Correlation of neighbouring columns, between -1 and 1.

    Returns
    -------
    Planted
        With loss ``"quadratic"`` and d, not k, true coefficients.

    Raises
    ------
    InputError
        When a size, lam or rho is out of range.

    Notes
    -----
    Not from a paper: made for exactsel's benchmarks, because planted supports are easily found.
    """
    rng = _checked_rng("hard", n, d, k, seed, lam)
    A = _autoregressive(rng, n, d, rho)
    x_true = rng.choice([-1.0, 1.0], d) / np.sqrt(1 + rng.permutation(d))
    signal = _predict(A, x_true)
    y = signal + rng.standard_normal(n) * np.sqrt(_variance(signal))
    norms, length = _column_norms(A), _norm(y)
    return Planted(A / norms, y / length, k, lam, "quadratic", x_true=x_true * norms / length)


def diabetes(
    n: int = DIABETES_ROWS, d: int = DIABETES_COLUMNS, k: int = 5, seed: int = 0, *, lam: float = 0.01
) -> Instance:
    """The Diabetes data of [4]_ with squares and products, as in [1]_, section 4.2, and [5]_.

    64 columns: the 10 of the study, the squares of the 9 that are not binary (the square of sex says nothing new) and
    the 45 products of two. Columns and y are centred, so that no intercept is needed, and scaled to unit norm.

    Parameters
    ----------
    n, d, seed : int
        There as for the other generators; only the defaults are possible.
    k : int
        Subset size, 1 <= k <= 64.
    lam : float
        Ridge weight.

    Returns
    -------
    Instance
        With loss ``"quadratic"`` and names such as ``age``, ``age^2``, ``age*sex``.

    Raises
    ------
    InputError
        For other sizes or another seed than the data set has, and when scikit-learn, which brings the data, is not
        installed.
    """
    _checked_rng("diabetes", n, d, k, seed, lam)
    if (n, d, seed) != (DIABETES_ROWS, DIABETES_COLUMNS, 0):
        raise InputError(
            f"diabetes is a fixed data set of {DIABETES_ROWS} rows and {DIABETES_COLUMNS} columns, but n={n}, d={d}, "
            f"seed={seed} was asked for; leave them out."
        )
    try:
        from sklearn.datasets import load_diabetes
    except ImportError:
        raise InputError(
            "the Diabetes data come with scikit-learn, which is not installed; pip install scikit-learn."
        ) from None
    data = load_diabetes()
    expanded, names = _with_squares_and_products(data.data, list(data.feature_names), binary=1)
    A = _unit_columns(expanded - expanded.mean(axis=0))
    y = data.target - data.target.mean()
    return Instance(A, y / _norm(y), k, lam, "quadratic", feature_names=names)


GENERATORS: dict[str, Generator] = {
    "huber": huber,
    "logistic": logistic,
    "quadratic": quadratic,
    "hard": hard,
    "diabetes": diabetes,
}
"""Generators by name."""


def _checked_rng(name: str, n: int, d: int, k: int, seed: int, lam: float) -> np.random.Generator:
    for word, value in (("n", n), ("d", d), ("k", k), ("seed", seed)):
        try:
            operator.index(value)
        except TypeError:
            raise InputError(f"{word} is {value!r}, but generator '{name}' needs a whole number.") from None
    if n < 1 or d < 1:
        raise InputError(f"n={n} and d={d} were asked for, but '{name}' needs at least one row and one column.")
    if not 1 <= k <= d:
        raise InputError(f"k={k} was asked for, but '{name}' needs k between 1 and d={d}; change k or d.")
    if seed < 0:
        raise InputError(f"the seed is {seed}, but it must not be negative; use 0, 1, 2 and so on.")
    checked_lam(lam)
    return np.random.default_rng(seed)


def _equicorrelated(rng: np.random.Generator, n: int, d: int, correlation: float) -> FloatArray:
    """Normal rows with the same correlation between any two columns, through one shared variable."""
    shared, noise = rng.standard_normal((n, 1)), rng.standard_normal((n, d))
    rows: FloatArray = np.sqrt(correlation) * shared + np.sqrt(1.0 - correlation) * noise
    return rows


def _autoregressive(rng: np.random.Generator, n: int, d: int, rho: float) -> FloatArray:
    """Normal rows with correlation rho**|i - j|: each column is rho times the one before plus fresh noise."""
    if not -1.0 <= rho <= 1.0:
        raise InputError(f"rho is {rho}, but a correlation lies between -1 and 1.")
    A: FloatArray = rng.standard_normal((n, d))
    fresh = np.sqrt(1.0 - rho**2)
    for j in range(1, d):
        A[:, j] = rho * A[:, j - 1] + fresh * A[:, j]
    return A


def _with_squares_and_products(X: FloatArray, names: list[str], binary: int) -> tuple[FloatArray, tuple[str, ...]]:
    """The columns of X, then their squares (not that of column ``binary``), then their products two by two."""
    d = X.shape[1]
    factors = [(j, j) for j in range(d) if j != binary] + list(combinations(range(d), 2))
    columns = [X[:, j] for j in range(d)] + [X[:, i] * X[:, j] for i, j in factors]
    labels = [f"{names[i]}^2" if i == j else f"{names[i]}*{names[j]}" for i, j in factors]
    return np.column_stack(columns), tuple(names + labels)


def _predict(A: FloatArray, x: FloatArray) -> FloatArray:
    used: IntArray = np.flatnonzero(x)
    total: FloatArray = np.sum(A[:, used] * x[used], axis=1)
    return total


def _norm(vector: FloatArray) -> float:
    return float(np.sqrt(np.sum(vector * vector)))


def _column_norms(A: FloatArray) -> FloatArray:
    norms: FloatArray = np.sqrt(np.sum(A * A, axis=0))
    return norms


def _unit_columns(A: FloatArray) -> FloatArray:
    return A / _column_norms(A)


def _variance(vector: FloatArray) -> float:
    return float(np.mean((vector - np.mean(vector)) ** 2))
