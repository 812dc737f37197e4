"""The counts that a checker repeats by default: a search with a proof makes no others."""

from __future__ import annotations


def checkable_by_patterns(n: int, cells: int, m: int, r: int) -> bool:
    """Whether a checker sums over the covariate patterns of all sets of r of m columns; n rows lie in so many cells."""
    from exactsel_certificates.estimate import countable  # loads most of the checker, which other searches do not need

    return countable(n, cells, m, r)
