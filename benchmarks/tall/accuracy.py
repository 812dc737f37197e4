"""The factor beside the Gram matrix, both made in blocks, where columns depend on each other more and more."""

from __future__ import annotations

import time

import numpy as np

from exactsel import gram
from exactsel.types import FloatArray

ROWS = 20_000


def ill_conditioned(columns: int, condition: float, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """A (rows, columns) of length 1 each with about this condition, and a target nearly in their span."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((ROWS, columns))
    A[:, 1:] = A[:, :1] + A[:, 1:] / condition
    return A, A @ rng.standard_normal(columns) + 1e-4 * rng.standard_normal(ROWS)


def by_gram(A: FloatArray, y: FloatArray, block: int = 2048) -> tuple[FloatArray, FloatArray] | None:
    """The instance from [A y]'[A y], blocks added up with what rounding loses (Neumaier), and its Cholesky factor."""
    width = A.shape[1] + 1
    total, lost = np.zeros((width, width)), np.zeros((width, width))
    for first in range(0, len(A), block):
        rows = np.column_stack([A[first : first + block], y[first : first + block]])
        part = rows.T @ rows
        new = total + part
        lost += np.where(np.abs(total) >= np.abs(part), (total - new) + part, (part - new) + total)
        total = new
    try:
        R = np.linalg.cholesky(total + lost).T
    except np.linalg.LinAlgError:
        return None
    return R[:, :-1], R[:, -1]


def by_factor(A: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The instance :func:`exactsel.gram` makes."""
    instance = gram(A, y, intercept=False)
    assert instance.y is not None
    return instance.A, instance.y


def accuracy(columns: int = 10) -> list[dict[str, object]]:
    """Relative errors of the objective of the best model of all columns, refitted from what is left of the rows."""
    table = []
    for exponent in (0, 2, 4, 6, 8, 10):
        A, y = ill_conditioned(columns, 10.0**exponent)
        long = A.astype(np.longdouble), y.astype(np.longdouble)
        row: dict[str, object] = {"condition": f"1e{exponent}"}
        for name, way in (("factor", by_factor), ("Gram matrix, compensated", by_gram)):
            began = time.process_time()
            made = way(A, y)
            seconds = time.process_time() - began
            row[name] = "none: not positive definite" if made is None else f"{_off(made, long, A, y):.1e}"
            row[f"{name}, CPU s"] = f"{seconds:.3f}"
        table.append(row)
    return table


def _off(
    made: tuple[FloatArray, FloatArray], long: tuple[np.ndarray, np.ndarray], A: FloatArray, y: FloatArray
) -> float:
    """How much dearer the model that is best for what is left is than the best, over all rows, and how far its
    objective is off; the larger of the two.
    """
    x, best = np.linalg.lstsq(made[0], made[1], rcond=None)[0], np.linalg.lstsq(A, y, rcond=None)[0]
    true, least = (float(np.sum((long[0] @ model - long[1]) ** 2)) for model in (x, best))
    said = float(np.sum((made[0] @ x - made[1]) ** 2))
    return max(abs(said - true), true - least) / least
