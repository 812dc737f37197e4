"""Column subset selection: the objective and the bound of a region, slow and plain.

The objective of a selection S of columns of A is ||A - S S⁺ A||_F². A region (S, C) holds all selections made of the
columns in S and at most r = k - |S| of those in C. With E the part of A that S leaves unexplained, any r columns of C
add at most r directions, all in the span of E_C, and these capture at most the r largest eigenvalues of E E' restricted
to that span; so no selection of the region leaves less than

    ||E||_F² - (sum of the r largest eigenvalues)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exactsel_certificates.formula import ColumnInstance, FloatArray

NEGLIGIBLE = 1e-9
"""Directions of unit columns with a singular value below this are rounding."""


def unexplained(instance: ColumnInstance, chosen: Sequence[int]) -> FloatArray:
    """A - S S⁺ A, (n, d)."""
    columns = instance.A[:, sorted(chosen)]
    lengths = np.linalg.norm(columns, axis=0)
    units = columns[:, lengths > 0] / lengths[lengths > 0]
    directions, singular, _ = np.linalg.svd(units, full_matrices=False)
    basis = directions[:, singular > NEGLIGIBLE * max(singular.max(initial=0.0), 1e-300)]
    rest = instance.A - basis @ (basis.T @ instance.A)
    return np.asarray(rest - basis @ (basis.T @ rest))


def selection_objective(instance: ColumnInstance, chosen: Sequence[int]) -> float:
    """||A - S S⁺ A||_F²."""
    return float(np.sum(unexplained(instance, chosen) ** 2))


def eigenvalue_bound(instance: ColumnInstance, included: Sequence[int], candidates: Sequence[int]) -> float:
    """The least any selection of the region can leave unexplained; exact where one column or less is to be chosen."""
    slots = instance.k - len(included)
    if slots < 0:
        raise ValueError(f"{len(included)} columns are fixed inside, but a selection may have {instance.k} only.")
    if len(candidates) <= slots:
        return selection_objective(instance, [*included, *candidates])
    if slots <= 1:
        additions = [[*included, j] for j in candidates] if slots == 1 else [list(included)]
        return min(selection_objective(instance, chosen) for chosen in additions)
    rest = unexplained(instance, included)
    # All left singular vectors of E_C: those of zero singular values only enlarge the span, which is safe. Exact copies
    # of a column add nothing to it.
    first = {instance.A[:, j].tobytes(): j for j in sorted(candidates, reverse=True)}
    directions = rest[:, sorted(first.values())]
    # Unit columns, so that the direction of a short one is not lost in the rounding of a long one.
    lengths = np.linalg.norm(directions, axis=0)
    span = np.linalg.svd(directions / np.where(lengths > 0, lengths, 1.0), full_matrices=False)[0]
    singular = np.linalg.svd(span.T @ rest, compute_uv=False)
    return float(np.sum(rest**2) - np.sum(singular[:slots] ** 2))


def rounding_of_eigenvalues(instance: ColumnInstance) -> float:
    """How far the numbers above may be off: they are differences of numbers as large as ||A||_F²."""
    return float(16 * sum(instance.A.shape) * 2.0**-53 * np.sum(instance.A**2))
