"""Column subset selection: objective and pseudo-inverse when one column leaves or joins (Lemmas 1 to 4).

Reference formulas of C. Feng, C. Qian and K. Tang, Unsupervised feature selection by Pareto optimization, AAAI 2019.
They work on the data, at O(n d) a column. The search itself uses the Gram form (:mod:`._pareto_css`), which gives
the same values at O(m^2) a column, m being the number of columns selected, and needs no n x m array per member of
the archive; the tests hold the two together. All functions assume that the selected columns are independent.
"""

from __future__ import annotations

import numpy as np

from exactsel.types import FloatArray


def delete_column(A: FloatArray, value: float, pseudo_inverse: FloatArray, i: int) -> tuple[float, FloatArray]:
    """Take the i-th column out of the selection (Lemmas 1 and 3).

    Parameters
    ----------
    A : array (n, d)
    value : float
        The objective of the selection S.
    pseudo_inverse : array (m, n)
        S⁺.
    i : int
        A place in the selection.

    Returns
    -------
    value : float
    pseudo_inverse : array (m - 1, n)
    """
    rho = pseudo_inverse[i]
    squared = float(rho @ rho)
    beta = A.T @ rho
    remaining = pseudo_inverse - np.outer(pseudo_inverse @ rho, rho) / squared
    return value + float(beta @ beta) / squared, np.delete(remaining, i, axis=0)


def insert_column(
    A: FloatArray, value: float, columns: tuple[int, ...], pseudo_inverse: FloatArray, i: int, j: int
) -> tuple[float, FloatArray]:
    """Put column j of A into the selection as its i-th column (Lemmas 2 and 4).

    Parameters
    ----------
    A : array (n, d)
    value : float
        The objective of the selection S = A[:, columns].
    columns : tuple of int
    pseudo_inverse : array (m, n)
        S⁺.
    i : int
        The place that column j gets.
    j : int
        A column that does not depend on the selected ones.

    Returns
    -------
    value : float
    pseudo_inverse : array (m + 1, n)
    """
    weights = pseudo_inverse @ A[:, j]
    residual = A[:, j] - A[:, list(columns)] @ weights
    delta = A.T @ residual
    # delta_j equals residual'residual, which is what keeps its digits.
    squared = float(residual @ residual)
    row = residual / squared
    return value - float(delta @ delta) / squared, np.insert(pseudo_inverse - np.outer(weights, row), i, row, axis=0)
