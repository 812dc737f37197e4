"""The prox of the perspective regulariser within limits: by its dual, it is the minimum."""

from __future__ import annotations

import numpy as np
import pytest

from exactsel.kernels.limited_prox import prox_limited
from exactsel.types import FloatArray


def _gains(v: FloatArray, low: FloatArray, high: FloatArray, weight: float) -> FloatArray:
    """c(v) = max of v w - weight w^2 / 2 over the box."""
    with np.errstate(divide="ignore", invalid="ignore"):
        best = np.where(v == 0.0, 0.0, v / weight)
    w = np.clip(best, low, high)
    return np.asarray(np.where(w == 0.0, 0.0, w * (v - 0.5 * weight * w)))


@pytest.mark.parametrize("weight", [0.0, 1e-3, 0.3, 2.0, 50.0])
@pytest.mark.parametrize("same", [True, False])
def test_the_prox_within_limits_has_no_gap_to_its_dual(weight: float, same: bool) -> None:
    rng = np.random.default_rng(int(1000 * weight) + same)
    for _ in range(200):
        m = int(rng.integers(1, 12))
        fixed = int(rng.integers(0, m))
        slots = int(rng.integers(1, m - fixed + 1))
        u = np.round(rng.normal(size=m) * 3.0, int(rng.integers(0, 6)))  # ties, and zeros
        u *= 10.0 ** float(rng.integers(-3, 4))
        sizes = [1.0] if same else [0.0, 0.3, 1.0, 40.0] + ([np.inf] if weight > 0.0 else [])
        low, high = -rng.choice(sizes, m), rng.choice(sizes, m)
        x = np.empty(m)
        norm, _ = prox_limited(u, low, high, fixed, slots, weight, float(rng.choice([0.0, 1.0])), x)
        assert np.all((x >= low) & (x <= high))
        gains = _gains(u - x, low, high, weight)
        taken = gains[:fixed].sum() + np.sort(gains[fixed:])[::-1][:slots].sum()
        primal = 0.5 * np.sum((x - u) ** 2) + 0.5 * weight * norm
        dual = u @ (u - x) - 0.5 * np.sum((u - x) ** 2) - taken
        assert primal == pytest.approx(dual, rel=1e-7, abs=1e-9 * float(u @ u))
        assert dual <= primal + 1e-10 * float(u @ u)
