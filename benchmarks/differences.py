"""Whether two methods differ: rank tests, which assume nothing about how results are distributed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import mannwhitneyu, wilcoxon

SAME = 1e-9
"""Results that differ by at most this are tied: they differ by rounding."""


def paired(first: Sequence[float], second: Sequence[float]) -> float:
    """The p value of Wilcoxon's signed-rank test, both sides; 1 where no pair differs, nan of fewer than two pairs.

    Parameters
    ----------
    first, second : sequence of float
        Results on the same splits, folds or instances, in the same order.
    """
    differences = np.subtract(first, second, dtype=float)
    if differences.size < 2:
        return math.nan
    differences[np.abs(differences) <= SAME] = 0.0
    if not differences.any():
        return 1.0
    return float(wilcoxon(differences, method="approx" if differences.size > 25 else "auto").pvalue)


def unpaired(first: Sequence[float], second: Sequence[float]) -> float:
    """The p value of the Mann-Whitney test, both sides; nan where a sample has fewer than two results.

    Parameters
    ----------
    first, second : sequence of float
        Results of independent runs.
    """
    if min(len(first), len(second)) < 2:
        return math.nan
    together = np.concatenate([np.asarray(first, dtype=float), np.asarray(second, dtype=float)])
    if np.ptp(together) <= SAME:
        return 1.0
    return float(mannwhitneyu(first, second).pvalue)


def p_text(p: float) -> str:
    """A p value as a table shows it; a dash where there was nothing to test."""
    if math.isnan(p):
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
