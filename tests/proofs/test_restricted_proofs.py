"""Proofs about signs, bounds, hierarchies and limits on groups that close regions without regard to them."""

from __future__ import annotations

import numpy as np
import pytest
from restricted_files import (
    first_says,
    random_file,
    restricted_case,
    second_says,
    truth,
)
from samples import sample

LOSSES = ("quadratic", "quadratic", "quadratic", "huber", "logistic")


@pytest.mark.parametrize("seed", sample(150, 20_000, smoke=9))
def test_nothing_untrue_is_established_by_any_proof(seed):
    instance = restricted_case(seed, LOSSES[seed % len(LOSSES)])
    proof, best = random_file(seed, instance), truth(instance)
    size = 1e-9 * max(1.0, float(instance.y @ instance.y))
    for more in (size, 0.05 * best + size):
        verdict = first_says(instance, proof, lower=best + more, upper=1e300)
        assert not verdict.verified
        assert verdict.lower <= best + size
        assert second_says(instance, proof, lower=best + more, upper=1e300) != ""
    for part in (1.0 - 1e-6, 0.5):
        assert first_says(instance, proof, lower=part * best, upper=1e300).lower <= best + size
