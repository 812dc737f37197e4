"""Products of a problem's columns, each divided by its length: in double precision."""

from __future__ import annotations

import numpy as np

from exactsel.problem.regression import Problem
from exactsel.types import FloatArray, IntArray

BY_MATRIX = 64
"""Products a matrix product may form for each one that is needed: one by one they wait for memory."""


class Products:
    """Products of a problem's columns, which are made one long, the ridge included; of wide data no table is made."""

    def __init__(self, problem: Problem) -> None:
        self.AT, lam, is_tall = problem.AT, problem.lam, problem.n >= problem.d
        self.table = problem.gram.G if is_tall else None
        """Of all pairs, unscaled and without the ridge, where it is no larger than the data."""
        squares = np.einsum("ij,ij->i", self.AT, self.AT) if self.table is None else np.diagonal(self.table)
        self.length = np.sqrt(squares + lam)
        self.inverse = np.where(self.length > 0.0, 1.0 / np.where(self.length > 0.0, self.length, 1.0), 0.0)
        self._ridge = lam * self.inverse**2
        self.target = (problem.gram.b if is_tall else self.AT @ problem.y) * self.inverse
        self.constant = problem.gram.constant if is_tall else 0.5 * float(problem.y @ problem.y)
        self.roundings = problem.gram.roundings if is_tall else problem.n + 8
        self.terms = 0 if is_tall else problem.n
        """Products that are summed in single precision."""

    def among(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Those of a few columns with some others."""
        products = self.AT[rows] @ self.AT.T if self.table is None else self.table[rows]
        products = products[:, columns] * np.outer(self.inverse[rows], self.inverse[columns])
        return np.asarray(products + np.where(rows[:, None] == columns, self._ridge[rows, None], 0.0))

    def of_pairs(self, left: IntArray, right: IntArray) -> FloatArray:
        """Those of pairs of different columns."""
        products = self._formed(left, right) if self.table is None else self.table[left, right]
        return np.asarray(products * self.inverse[left] * self.inverse[right])

    def _formed(self, left: IntArray, right: IntArray) -> FloatArray:
        """Each pair by itself, or all pairs of the columns where that is no more than a product of matrices likes."""
        (rows, at_row), (columns, at_column) = (np.unique(each, return_inverse=True) for each in (left, right))
        if len(rows) * len(columns) > BY_MATRIX * len(left):
            return np.asarray(np.einsum("ij,ij->i", self.AT[left], self.AT[right]))
        return np.asarray((self.AT[rows] @ self.AT[columns].T)[at_row, at_column])
