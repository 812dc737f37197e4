"""Claims about bounded models, quadratic loss, lam = 0: fits on dependent columns, in doubles (FORMAT.md, witness 1).

For any b every model with |x_j| ||a_j|| <= R ||y|| costs at least -L*(b) - R ||y|| G(|v_j| / ||a_j||), v = A'b. Here
b is what a projection leaves of y, so that v is rounding; nothing is expected of it. Where columns depend on each other
this takes the place of systems in exact arithmetic. Where the margin is thinner than R times what rounding does to v,
the point alone is corrected by exact gradients, as its bound is formed.
"""

from __future__ import annotations

from itertools import islice

import numpy as np
from numpy.typing import NDArray

from exactsel_certificates.container import FIT
from exactsel_certificates.fits import MOST_ENTRIES
from exactsel_certificates.formula import FloatArray
from exactsel_certificates.regions import RegressionRegions
from exactsel_certificates.rigorous import RigorousBounds, States, gamma
from exactsel_certificates.transfer import RADIUS
from exactsel_certificates.walk import BY_COUNTING, FREE, IN, OUT, Leaves
from exactsel_certificates.work import STEP, of_points, spend

CUT = 1e-14
"""Part of the largest singular value below which a direction counts as rounding."""

NEAR = 1e-4
"""Part of the target that may be missing in doubles for more digits to be worth while."""

SVD = 16.0
"""Operations of a singular value decomposition beside n m^2."""

SETS = 4096
"""Sets of columns that counting leaves and that are processed together."""


class ScopedFits:
    """Bound to the regions of one problem without limits on coefficients."""

    def __init__(self, whole: RegressionRegions) -> None:
        self._whole, self._k, self._plain = whole, whole.k, whole.plain
        self._bounds = RigorousBounds(whole.instance)
        n, norms = whole.plain.n, whole.plain.norms
        with np.errstate(all="ignore"):
            largest = RADIUS * whole.fits.target / (norms * (1.0 - 2.0 * gamma(n + 8))) * (1.0 + gamma(8))
            self._unit = np.where(norms > 0, whole.plain.A / norms, 0.0)
        self._sizes = np.where(norms > 0, largest, 0.0)

    exact_regions = 0
    """Those that need exact arithmetic are counted by ``whole``."""

    def bounds(self, leaves: Leaves) -> FloatArray:
        """A bound for each region closed by a fit or by counting; 0 for the others."""
        states, slots = leaves.states, self._k - np.sum(leaves.states == IN, axis=1)
        result, target = np.zeros(len(states)), self._whole.target
        fits, single = leaves.witness == FIT, (slots == 1) & np.any(states == FREE, axis=1)
        used = np.where((slots <= 0)[:, None], states == IN, states != OUT)
        rows = np.flatnonzero(fits)
        result[rows] = np.maximum(self._at_fits(used[rows], states[rows]), 0.0)
        short = np.flatnonzero(((fits & single) | (leaves.witness == BY_COUNTING)) & (result < target))
        if not self._whole.fits.affordable(self._plain.d):
            return result
        counted = self._whole.semidefinite.counted(states[short], self._k)
        result[short[counted]] = target
        for row in short[~counted].tolist():
            if fits[row]:
                result[row] = max(result[row], self._of_additions(states[row]))
            elif self._counted(states[row]):
                result[row] = target
        return self._refined(result, np.flatnonzero(fits & (result < target)), states, used)

    def _refined(
        self, result: FloatArray, rows: NDArray[np.intp], states: States, used: NDArray[np.bool_]
    ) -> FloatArray:
        """The bounds with those of some rows at fits of more digits, where the margin is thin."""
        for row in rows[result[rows] >= (1.0 - NEAR) * self._whole.target].tolist():
            result[row] = max(result[row], self._whole.in_scope(states[row], np.flatnonzero(used[row]).tolist()))
        return result

    def _counted(self, state: NDArray[np.uint8]) -> bool:
        """Whether every set that counting leaves open costs no less than the level."""
        counting = self._whole.semidefinite
        if not (counting.usable and counting.may_count(state, self._k)):
            return False
        undecided, has_sets = counting.undecided(state, self._k), False
        while sets := list(islice(undecided, SETS)):
            spend(STEP * len(sets))
            # A set stands for those with copies of its columns, too: k of them may carry k times what one can alone.
            together = self._k if any(map(counting.has_copies, sets)) else 1
            used = np.zeros((len(sets), len(state)), dtype=np.bool_)
            for row, columns in enumerate(sets):
                used[row, columns] = True
            bounds = self._at_fits(used, np.where(used, np.uint8(IN), np.uint8(OUT)), together)
            if not np.all(bounds >= self._whole.target):
                return False
            has_sets = True
        return has_sets

    def _of_additions(self, state: NDArray[np.uint8]) -> float:
        """The smallest bound of a region with one more column, each of its candidates."""
        candidates = np.flatnonzero(state == FREE)
        states = np.tile(np.where(state == FREE, np.uint8(OUT), state), (len(candidates), 1))
        states[np.arange(len(candidates)), candidates] = IN
        return float(np.min(self._at_fits(states == IN, states)))

    def _at_fits(self, used: NDArray[np.bool_], states: States, together: int = 1) -> FloatArray:
        """Bounds of regions, each at what the span of the ``used`` columns leaves of y.

        They hold where coefficients are so many times larger than those of bounded models, ``together``.
        """
        n, d = self._plain.n, self._plain.d
        result, sizes = np.zeros(len(used)), np.sum(used, axis=1)
        self._bounds.sizes = together * self._sizes
        for m in np.unique(sizes).tolist():
            rows = np.flatnonzero(sizes == m)
            spend(SVD * len(rows) * n * (m + 1.0) ** 2 + of_points(len(rows), len(rows), n, d))
            for part in np.array_split(rows, 1 + len(rows) * n * (m + 1) // MOST_ENTRIES):
                columns = np.nonzero(used[part])[1].reshape(len(part), m)
                evaluated = self._bounds.at_duals(-self._left(columns))
                result[part] = self._bounds.bounds(evaluated, np.arange(len(part)), states[part])
        return result

    def _left(self, columns: NDArray[np.intp]) -> FloatArray:
        """What the spans of some columns (p, m) leave of y, nearly."""
        residual = np.tile(self._plain.y, (len(columns), 1))[:, :, None]
        if columns.shape[1]:
            with np.errstate(all="ignore"):
                try:
                    U, s, _ = np.linalg.svd(self._unit[:, columns].swapaxes(0, 1), full_matrices=False)
                except np.linalg.LinAlgError:
                    return np.asarray(residual[:, :, 0])
                U *= (s > CUT * s[:, :1])[:, None, :]
                for _ in range(2):
                    residual = residual - U @ (U.swapaxes(1, 2) @ residual)
        return np.asarray(residual[:, :, 0])
