"""Column subset selection: whether all selections of a region cost at least so much, by going through them.

Where two columns are still to be chosen, with E what S leaves of A (here of each column), G = E'E and H = G'G columns j
and l take away

    H_jj / G_jj + |G_l - t G_j|^2 / (G_ll (1 - c^2)),    t = G_jl / G_jj,    c^2 = G_jl^2 / (G_jj G_ll),

of ||E||^2, the numerator being H_ll - 2 t H_jl + t^2 H_jj. In columns of length one an entry of G is off by gamma(n) at
most and one of H by (2 gamma(n) + gamma(d)) ||E||^2, so the sum is off by 24 gamma(n + d + 16) ||E||^2 / (1 - c^2) at
most where 1 - c^2 is no smaller than APART. Directions known up to angles a_j and a_l span a plane known up to
(a_j + a_l) (2 / (1 - c^2))^.5. What this does not clear is projected out by itself (selections.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from exactsel_certificates.rigorous import U, gamma
from exactsel_certificates.selections import DISTINCT, SelectionBounds
from exactsel_certificates.work import STEP, of_pairs, spend

APART = 1e-6
"""Pairs that are nearer to dependent are tested one by one."""


class SelectionCounting:
    """Bound to what knows the bounds of one matrix, and their target."""

    def __init__(self, bounds: SelectionBounds) -> None:
        self._bounds = bounds

    def counted(self, included: Sequence[int], candidates: Sequence[int]) -> bool:
        """Whether no selection of the region costs less than the target."""
        bounds = self._bounds
        if bounds.target <= 0.0:
            return True
        spend(STEP + 16.0 * len(candidates))
        useful = bounds.useful(included, candidates)
        slots = bounds.k - len(included)
        if slots < 2 or len(useful) <= slots:
            return bounds.bound(included, candidates) >= bounds.target
        if slots == 2:
            return self._pairs(list(included), useful)
        # Larger selections cost no more, so those that use all places are all that count.
        return all(
            self.counted([*included, j], useful[at + 1 :]) for at, j in enumerate(useful) if len(useful) - at >= slots
        )

    def _pairs(self, included: list[int], candidates: list[int]) -> bool:
        bounds = self._bounds
        m = len(candidates)
        spend(of_pairs(len(included), m, 2, bounds.n, bounds.d))
        with np.errstate(all="ignore"):
            cleared = self._cleared(included, candidates)
        for first, second in np.argwhere(~cleared):
            if first < second:
                spend(STEP)
                chosen = [*included, candidates[int(first)], candidates[int(second)]]
                if not bounds.bound(chosen, []) >= bounds.target:
                    return False
        return True

    def _cleared(self, included: list[int], candidates: list[int]) -> NDArray[np.bool_]:
        """The pairs (m, m) that are known to cost no less; none where S is known badly."""
        bounds, m = self._bounds, len(candidates)
        span, hidden = bounds.projected(included)
        if span is None:
            return np.zeros((m, m), dtype=bool)
        rest = span.residual(bounds.A)
        squares = np.einsum("ij,ij->j", rest, rest)
        total, error = float(squares.sum()), 1.01 * (span.angle + bounds.rounding)
        products = rest[:, candidates].T @ rest
        G, H = products[:, candidates], products @ products.T
        sizes, energies = np.diagonal(G), np.diagonal(H)
        t = G / sizes[:, None]
        apart = 1.0 - t * t.T
        second = (energies[None, :] - 2.0 * t * H + t * t * energies[:, None]) / (sizes[None, :] * apart)
        rounded = 24.0 * gamma(bounds.n + bounds.d + 16) / apart
        angles = error * bounds.norms[candidates] / np.sqrt(sizes)
        turned = 1.01 * (angles[:, None] + angles[None, :]) * np.sqrt(2.0 / apart)
        residuals = total * (1.0 - gamma(bounds.n * bounds.d)) - (energies / sizes)[:, None] - second - rounded * total
        moved = span.angle * bounds.size + turned * math.sqrt(total) * (1.0 + gamma(bounds.n * bounds.d))
        low = np.sqrt(np.maximum(residuals, 0.0)) * (1.0 - gamma(8)) - moved - bounds.rounding * bounds.size - hidden
        is_reliable = (apart >= APART) & (turned < DISTINCT) & (low > 0.0)
        return np.asarray(is_reliable & (low * low * (1.0 - 4.0 * U) >= bounds.target))
