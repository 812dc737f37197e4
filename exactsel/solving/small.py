"""Which problems are begun without the compiler."""

from __future__ import annotations

from exactsel._jit import CHOOSES
from exactsel.problem.interface import SubsetProblem

MOST_ENTRIES = 50_000
"""Entries of the data, ..."""

MOST_COLUMNS = 120
"""... and columns, with which the Python text of kernels comes to an end soon enough."""


def is_small(problem: SubsetProblem) -> bool:
    """Whether kernels are interpreted as long as the allowance lasts (:mod:`exactsel._jit.interpreting`)."""
    columns = problem.units.columns
    return CHOOSES and columns <= MOST_COLUMNS and problem.n * columns <= MOST_ENTRIES
